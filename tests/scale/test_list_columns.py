"""Results without preferences in between: the same bits as the general way, and taken only where it holds."""

from __future__ import annotations

import warnings

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import podium
from podium.core.errors import InputError, ParameterError, PodiumWarning
from podium.scale import batch, batch_function
from shards import lists

NAMES = ("query", "item", "rank", "score", "tied")


def both(method, table, **how):
    """The answer, and that of the general way (or what it says); how often the straight way was taken."""
    found, taken, said = [], [], []
    original = batch.rank_columns
    for blocked in (False, True):
        with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always", PodiumWarning)

            def rank(*given, blocked=blocked):
                answer = None if blocked else original(*given)
                taken.append(answer is not None)
                return answer

            patch.setattr(batch, "rank_columns", rank)
            try:
                found.append(batch_function(method, **how)(table).combine_chunks())
            except (InputError, ParameterError) as error:
                found.append(str(error))
            said.append([str(w.message) for w in told])
    assert said[0] == said[1]
    return *found, any(taken)


ids = st.integers(-(2**63) + 1, 2**63 - 1) | st.integers(0, 6)
row = st.tuples(st.integers(0, 3), st.integers(0, 3), ids)
KINDS = ("int64", "int32", "text", "coded")


def item_column(item, kind):
    """Ids of a kind; texts with beginnings in common, of all lengths around eight bytes, some of them equal."""
    if kind == "int64":
        return pa.array(item)
    if kind == "int32":
        return pa.array((item % 1000).astype(np.int32))
    texts = [("" if i % 7 == 0 else "item-é"[: i % 8] + "x" * (i % 19)) + str(i % 40) for i in item.tolist()]
    column = pa.array(texts)
    return column if kind == "text" else column.dictionary_encode()


@given(
    rows=st.lists(row, min_size=1, max_size=60, unique=True),
    ranks=st.sampled_from(["rank", "score", "both", "any"]),
    method=st.sampled_from(["rrf(k=3)", "rbc(persistence=0.5)", "rrf(k=0)"]),
    kind=st.sampled_from(KINDS),
    top=st.none() | st.integers(1, 4),
    mixed=st.booleans(),
)
@settings(max_examples=200, deadline=None)
def test_the_same_bits_as_the_general_way(rows, ranks, method, kind, top, mixed):
    rng = np.random.default_rng(len(rows))
    rows = (
        [tuple(rows[i]) for i in rng.permutation(len(rows))] if mixed else sorted(rows, key=lambda r: r[:2])
    )
    query, expert, item = (np.array(c) for c in zip(*rows, strict=True))
    starts = np.flatnonzero(np.r_[True, (query[1:] != query[:-1]) | (expert[1:] != expert[:-1]), True])
    place = np.concatenate([np.arange(1, n + 1) for n in np.diff(starts)])
    given_rank = rng.integers(1, 9, len(rows)) if ranks == "any" else place
    columns = {"query": query, "expert": expert, "item": item_column(item, kind)}
    if ranks != "score":
        columns["rank"] = given_rank.astype(np.int32)
    if ranks in ("score", "both"):
        columns["score"] = 10.0 - place // 2
    got, expected, taken = both(method, pa.table(columns), top=top)
    assert got == expected if isinstance(got, str) else got.equals(expected)
    named = columns["item"].to_pylist()
    repeated = len(set(zip(query.tolist(), expert.tolist(), named, strict=True))) < len(rows)
    assert taken == (not repeated) or mixed


def test_codes_that_stand_for_one_text_are_one_item():
    texts = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, 1], pa.int32()), pa.array(["a", "b", "a"]))
    table = pa.table({"query": [1] * 4, "expert": [1, 1, 2, 2], "item": texts, "rank": [1, 2, 1, 2]})
    got, expected, taken = both("rrf", table)
    assert not taken
    assert got.equals(expected)
    assert got["item"].to_pylist() == ["a", "b"]


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("top", [None, 3])
@pytest.mark.parametrize("kind", ["integers", "text", "dictionaries"])
def test_threads_change_nothing(monkeypatch, threads, top, kind):
    monkeypatch.setenv("PODIUM_THREADS", str(threads))
    got, expected, taken = both("rrf", lists(range(50), ids=kind), top=top)
    assert taken
    assert got.equals(expected)


@pytest.mark.parametrize("text", [False, True])
def test_many_ties_are_put_in_the_order_of_ids(text):
    n = 500  # experts with one item each: all are tied
    item = (np.random.default_rng(1).permutation(n) - n // 2).tolist()
    item = [f"a longer id {i}" for i in item] if text else item
    table = pa.table({"query": [1] * n, "expert": np.arange(n), "item": item, "rank": np.ones(n, np.int32)})
    got, expected, taken = both("rrf", table)
    assert taken
    assert got["item"].to_pylist() == sorted(item)
    assert got["tied"].to_pylist() == [True] * n
    assert got.equals(expected)
    assert batch_function("rrf", top=1)(table)["tied"].to_pylist() == [True]


def test_chunks_that_cut_a_query_are_joined():
    table = lists(range(6), ids="integers")
    cut = pa.concat_tables([table.slice(0, 5), table.slice(5, 9), table.slice(14)])
    got, expected, taken = both("rrf", cut)
    assert taken
    assert got.equals(expected)


def test_weights_by_name_and_kept_columns():
    table = lists(range(6), ids="integers")
    table = table.append_column(
        "lang", pa.array(["de" if q % 2 else None for q in table["query"].to_pylist()])
    )
    weights = {e: e + 0.5 for e in range(5)}  # one of them is silent
    got, expected, taken = both(podium.make("rrf", weights=weights), table, keep=["lang"])
    assert taken
    assert got.equals(expected)
    assert got["lang"].null_count


NOTHING = pa.array([None], pa.int32())


@pytest.mark.parametrize(
    ("change", "how"),
    [
        (lambda t: pa.concat_tables([t, t.slice(0, 1)]), {}),  # a query comes back
        (
            lambda t: t.set_column(2, "item", pa.array([1] * len(t), pa.int32())),
            {},
        ),  # an item twice in a list
        (lambda t: t.set_column(3, "rank", pa.array([0] * len(t), pa.int32())), {}),
        (lambda t: t.set_column(3, "rank", pa.array([2_000_000] * len(t), pa.int32())), {}),
        (lambda t: t.set_column(3, "rank", pa.array([1.5] * len(t))), {}),
        (lambda t: t.set_column(4, "score", pa.array([float("nan")] * len(t))), {}),
        (lambda t: t.set_column(4, "score", pa.array(np.arange(len(t)) * 1.0)), {}),  # upside down
        (lambda t: pa.concat_tables([t.slice(1), t.slice(0, 1).set_column(2, "item", NOTHING)]), {}),
        (lambda t: t.sort_by([("query", "ascending"), ("expert", "descending")]), {}),
        (lambda t: t, {"ties": "trec"}),
        (lambda t: t, {"unlisted": "below"}),
    ],
)
def test_what_is_out_of_the_ordinary_goes_the_general_way(change, how):
    got, expected, taken = both("rrf", change(lists(range(5), ids="integers")), **how)
    assert not taken
    assert got == expected if isinstance(got, str) else got.equals(expected)


@pytest.mark.parametrize("method", ["isr", "log_isr", "borda", "combsum"])
def test_other_methods_go_the_general_way(method):
    got, expected, taken = both(method, lists(range(5), ids="integers"))
    assert not taken
    assert got.equals(expected)


def test_any_method_can_offer_it(monkeypatch):
    """The batch function asks the method: it takes what the method returns, or the general way for None."""
    table = lists(range(5), ids="integers")
    borda, rrf = (batch_function(name)(table) for name in ("borda", "rrf"))
    offered = []
    monkeypatch.setattr(podium.Borda, "column_ranker", lambda self: lambda columns, top: offered.append(top))
    assert batch_function("borda")(table).equals(borda)
    assert offered == [None]
    monkeypatch.setattr(podium.Borda, "column_ranker", lambda self: podium.make("rrf").column_ranker())
    assert batch_function("borda")(table).equals(rrf)


def test_an_expert_of_weight_zero_and_scores_that_overflow():
    table = lists(range(5), ids="integers")
    for weights in ({e: float(e) for e in range(4)}, dict.fromkeys(range(4), 1.7e308)):
        got, expected, taken = both(podium.make("rrf(k=0)", weights=weights), table)
        assert not taken
        assert got == expected if isinstance(got, str) else got.equals(expected)


def test_sums_that_differ_in_the_last_bit_are_one_score():
    """1/3 + 1/4 + 1/5 in two orders."""
    ranks = {"a": (1, 2, 3), "b": (1, 3, 2), "c": (2, 1, 3)}
    table = [("q", e, i, ranks[i][e]) for e in range(3) for i in sorted(ranks, key=lambda i: ranks[i][e])]
    columns = dict(zip(("query", "expert", "item", "rank"), zip(*table, strict=True), strict=True))
    assert 1 / 3 + 1 / 4 + 1 / 5 != 1 / 3 + 1 / 5 + 1 / 4
    got, expected, taken = both("rrf(k=2)", pa.table(columns | {"rank": np.array(columns["rank"], np.int32)}))
    assert taken
    assert got.equals(expected)
    assert len(set(got["score"].to_pylist())) == 1
    assert got["item"].to_pylist() == ["a", "b", "c"]


def test_texts_of_one_hash_are_told_apart():
    """Sixteen bytes whose two halves are chosen so that the hash comes out the same."""
    multiplier, word = 0x9E3779B97F4A7C15, 1 << 64
    inverse = pow(multiplier, -1, word)

    def mixed(first):  # what `hash_span` makes of the first half
        h = (16 ^ first) * multiplier % word
        return h ^ (h >> 32)

    goal, texts = 12345, []
    for first in range(0x4141414141414141, 0x4141414141414141 + 200_000):
        second = (goal * inverse % word) ^ mixed(first)
        whole = first.to_bytes(8, "little") + second.to_bytes(8, "little")
        if all(b < 128 for b in whole):
            texts.append(whole.decode())
    assert len(texts) > 100
    columns = {"query": [1] * len(texts), "expert": [1] * len(texts), "item": texts}
    got, expected, taken = both(
        "rrf", pa.table(columns | {"rank": np.arange(1, len(texts) + 1, dtype=np.int32)})
    )
    assert taken
    assert got.equals(expected)
    assert got["item"].to_pylist() == texts
