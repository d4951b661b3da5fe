"""`fuse` on plain Python gives what the tables give, and says what is wrong with bad input."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podium import Preferences, fuse, make, registry
from podium.aggregators.base import LIST_FORMS
from podium.errors import InputError, ParameterError
from podium.testing import strategies

LISTS = st.lists(strategies.answers(strategies.ids(), max_items=8), min_size=1, max_size=5)


@pytest.mark.parametrize(
    "spec", ["rrf", "rrf(k=1)", "rbc", "rbc(persistence=0.5)", "borda", "combmnz", "isr"]
)
@settings(deadline=None, max_examples=60)
@given(lists=LISTS, weights=st.lists(st.floats(0.125, 4), min_size=5, max_size=5), weighted=st.booleans())
def test_same_as_the_tables(spec, lists, weights, weighted):
    given_weights = weights[: len(lists)] if weighted else None
    quick = fuse(lists, spec, weights=given_weights)
    whole = make(spec, weights=given_weights).aggregate(
        Preferences.from_lists({"q": dict(enumerate(lists))})
    )["q"]
    assert quick.ranking == [r.item for r in whole]
    assert quick.tied == [r.tied for r in whole]
    assert quick.scores == pytest.approx([r.score for r in whole], rel=1e-12)


@pytest.mark.parametrize(
    "name",
    [
        n
        for n, c in registry.aggregators.all().items()
        if c.tags.accepts >= LIST_FORMS and not c.tags.supervised
    ],
)
def test_every_method_by_name(name):
    assert fuse([["a", "b", "c"], ["a", "c", "b"], ["a", "b"]], name).ranking[0] == "a"


def test_weights_change_the_answer():
    lists = [["a", "b"], ["b", "a"]]
    assert fuse(lists, weights=[1, 0]).ranking == ["a", "b"]
    assert fuse(lists, weights=[0, 1]).ranking == ["b", "a"]
    assert fuse(lists, weights=[0.5, 0.5]).tied == [True, True]


def test_three_chunks_do_not_outvote_a_document_first_in_both():
    lists = [["doc", "chunked", "chunked", "chunked"], ["doc", "other"]]
    assert fuse(lists, duplicates="first").ranking[0] == "doc"
    assert fuse(lists, duplicates="best").ranking[0] == "doc"
    with pytest.raises(InputError, match="list 1: item 'chunked' appears twice"):
        fuse(lists)
    with pytest.raises(InputError, match="list 1: item 'chunked' appears twice"):
        fuse(lists, "borda")


def test_named_answers_and_scores():
    answers = {"bm25": {"a": 9.1, "b": 3.0}, "dense": {"b": 0.9, "c": 0.1}}
    assert fuse(answers, "combsum", weights={"bm25": 1, "dense": 2}).ranking[0] == "b"
    with pytest.raises(ParameterError, match="no weight for expert 'dense'"):
        fuse(answers, "combsum", weights={"bm25": 1})


def test_nothing_in_nothing_out():
    assert fuse([]).ranking == []
    assert fuse([[], []]).ranking == []
    assert fuse([[], ["a"]], "borda", weights=[1, 2]).ranking == ["a"]


@pytest.mark.parametrize("lists", ["abc", ["abc"], [1, 2], [None]])
def test_lists_must_be_lists(lists):
    with pytest.raises(InputError, match=r"give lists of ids|give a list of lists"):
        fuse(lists)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: fuse([["a"]], weights=[1, 2]), "2 weights for 1 experts"),
        (lambda: fuse([["a"]], weights=[-1]), "a weight is -1; accepted: finite numbers from 0"),
        (lambda: fuse([["a"]], weights=[False]), "a weight is False"),
        (lambda: fuse([["a"]], weights=[float("nan")]), "a weight is nan"),
        (lambda: fuse([["a"]], weights=[0]), "all weights are 0"),
        (lambda: fuse([["a"]], "rff"), "no method is called 'rff'; did you mean"),
        (lambda: fuse([["a"]], "rrf(k=-1)"), "k is -1; accepted: number in"),
        (lambda: fuse([["a"]], "rrf(kk=1)"), "rrf has no parameter 'kk'; did you mean k"),
        (lambda: fuse([["a"]], "rrf(__import__('os'))"), "cannot read"),
        (lambda: fuse([["a"]], "combmax", weights=[1]), "combmax takes no weights"),
    ],
)
def test_bad_parameters(call, message):
    with pytest.raises(ParameterError, match=message.replace("(", r"\(")):
        call()
