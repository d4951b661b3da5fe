"""What is written is what is read, for every format and the ids it can carry; other ids are refused."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podium import Features, Labels, Preferences
from podium.core.errors import InputError, PodiumWarning
from podium.core.registry import formats
from podium.formats.base import Content
from podium.storage.files import Source

blank = " \t\n\r\v\f\0"
words = st.text(st.characters(codec="utf-8", exclude_characters=blank), min_size=1, max_size=6)
texts = st.text(st.characters(codec="utf-8", exclude_characters="\0\r"), min_size=1, max_size=6)
mixed = texts | st.integers(-(2**62), 2**62) | st.sampled_from([1, "1"])
names = words.filter(lambda w: "#" not in w)  # a # begins a comment in LETOR files
numbers = st.integers(-(2**62), 2**62)
values = st.floats(allow_nan=False, allow_infinity=False)


@st.composite
def scored(draw: st.DrawFn, ids: st.SearchStrategy[Any]) -> Preferences:
    lists = draw(
        st.dictionaries(
            ids,
            st.dictionaries(
                ids, st.dictionaries(ids, values, min_size=1, max_size=4), min_size=1, max_size=3
            ),
            min_size=1,
            max_size=3,
        )
    )
    return Preferences.from_lists(lists)


@st.composite
def ranked(
    draw: st.DrawFn, ids: st.SearchStrategy[Any], experts: st.SearchStrategy[Any], queries: int = 3
) -> Preferences:
    pool = draw(st.lists(ids, min_size=1, max_size=5, unique_by=lambda v: (type(v), v)))
    rows = draw(
        st.dictionaries(
            st.tuples(ids, experts),
            st.dictionaries(st.sampled_from(pool), st.integers(1, 9), min_size=1),
            min_size=1,
            max_size=queries,
        )
    )
    flat = [(q, e, i, r) for (q, e), items in rows.items() for i, r in items.items()]
    query, expert, item, rank = zip(*flat, strict=True)
    return Preferences.from_rows(query, expert, item, rank=rank)


@st.composite
def voted(draw: st.DrawFn, ids: st.SearchStrategy[Any]) -> Preferences:
    pair = st.tuples(ids, ids).filter(lambda p: p[0] != p[1])
    rows = draw(
        st.lists(st.tuples(ids, ids, pair, st.booleans(), st.floats(0.01, 1e6)), min_size=1, max_size=8)
    )
    query, expert, pairs, tie, weight = zip(*rows, strict=True)
    return Preferences.from_comparisons(
        query, expert, [p[0] for p in pairs], [p[1] for p in pairs], tie=tie, weight=weight
    )


@st.composite
def labelled(draw: st.DrawFn, ids: st.SearchStrategy[Any]) -> Labels:
    grades = st.dictionaries(ids, st.integers(0, 4) | values.filter(lambda v: v >= 0), min_size=1, max_size=4)
    return Labels.from_dict(draw(st.dictionaries(ids, grades, min_size=1, max_size=3)))


def round_trip(name: str, content: Content, **options: Any) -> Content:
    chosen = formats.get(name)()
    raw = b"".join(chosen.write(content))
    found: Content = chosen.read([Source("file", raw)], **options)
    return found


@settings(deadline=None)
@given(scored(words))
def test_trec(p: Preferences) -> None:
    assert round_trip("trec", Content(p), unlisted=p.unlisted).preferences == p


@settings(deadline=None)
@given(ranked(words, words))
def test_trec_keeps_ranks(p: Preferences) -> None:
    found = round_trip("trec", Content(p)).preferences
    assert found is not None
    assert found.lists.rank.tolist() == p.lists.rank.tolist()
    assert found.lists.item.tolist() == p.lists.item.tolist()


@settings(deadline=None)
@given(labelled(words))
def test_qrels(labels: Labels) -> None:
    assert round_trip("qrels", Content(labels=labels)).labels == labels


@pytest.mark.parametrize("name", ["csv", "jsonl", "parquet"])
@settings(deadline=None)
@given(data=st.data())
def test_tables(name: str, data: st.DataObject) -> None:
    ids = {"csv": texts, "jsonl": mixed, "parquet": data.draw(st.sampled_from([texts, numbers]))}[name]
    for p in (data.draw(scored(ids)), data.draw(ranked(ids, ids))):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PodiumWarning)
            assert round_trip(name, Content(p)).preferences == p
    votes = data.draw(voted(ids))
    assert round_trip(name, Content(votes)).preferences == votes
    labels = data.draw(labelled(ids))
    assert round_trip(name, Content(labels=labels), missing=()).labels == labels


@settings(deadline=None)
@given(ranked(names, st.integers(1, 30).map(str)))
def test_letor_ranks(p: Preferences) -> None:
    found = round_trip(
        "letor", Content(p, Labels(p.index, np.zeros(len(p.index.items)))), kind="ranks"
    ).preferences
    assert found is not None
    experts = [e for e in found.experts.tolist() if e in p.experts.tolist()]
    assert found.with_experts(experts) == p
    assert found.index.arrival.tolist() == p.index.arrival.tolist()


@settings(deadline=None)
@given(labelled(names), st.integers(1, 4), st.randoms())
def test_letor_features(labels: Labels, width: int, random: Any) -> None:
    cells = [[random.choice([np.nan, 0.0, 0.1, -1e300]) for _ in range(width)] for _ in labels.grades]
    x = Features(labels.index, np.array(cells, np.float64), tuple(str(k + 1) for k in range(width)))
    found = round_trip("letor", Content(labels=labels, features=x), kind="features")
    assert found.labels == labels
    assert found.features is not None
    np.testing.assert_array_equal(found.features.values, x.values)


@settings(deadline=None)
@given(data=st.data())
def test_preflib(data: st.DataObject) -> None:
    names = data.draw(st.lists(words, min_size=1, max_size=5, unique=True))
    ballots = data.draw(
        st.lists(
            st.dictionaries(st.sampled_from(names), st.integers(1, 3), min_size=1), min_size=1, max_size=4
        )
    )
    rows = [
        (f"v{k + 1}", n, 1 + sum(o < r for o in ballot.values()))
        for k, ballot in enumerate(ballots)
        for n, r in ballot.items()
    ]
    expert, item, rank = zip(*rows, strict=True)
    p = Preferences.from_rows(["file"] * len(rows), expert, item, rank=rank)
    assert round_trip("preflib", Content(p)).preferences == p


@pytest.mark.parametrize("name", ["trec", "qrels", "letor", "csv", "preflib"])
@pytest.mark.parametrize("bad", ["", "a b", "a\tb", "a\nb", "a\rb", "\0", "\ud800"])
def test_ids_a_format_cannot_carry_are_refused(name: str, bad: str) -> None:
    content = Content(Preferences.from_lists({"q": {"1": ["x", bad]}}), None)
    if name == "qrels":
        content = Content(labels=Labels.from_dict({"q": {"x": 1, bad: 0}}))
    if (name == "csv" and bad in ("a b", "a\tb", "a\nb")) or (name == "preflib" and bad in ("a b", "a\tb")):
        found = round_trip(name, content).preferences
        assert found is not None
        assert bad in found.index.items.tolist()
        return
    with pytest.raises(InputError, match="cannot be written"):
        round_trip(name, content)


@pytest.mark.parametrize("name", ["trec", "csv"])
def test_numbers_that_would_become_the_same_text(name: str) -> None:
    clash = Preferences.from_lists({"q": {"e": [1, "1"]}})
    with pytest.raises(InputError, match="would be the same"):
        round_trip(name, Content(clash))
