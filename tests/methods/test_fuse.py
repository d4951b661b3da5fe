"""`fuse` on plain Python gives what the tables give, and says what is wrong with bad input."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podium import Preferences, fuse, make
from podium.core import registry
from podium.core.errors import InputError, ParameterError, UnsupportedFormError
from podium.methods.base import LIST_FORMS
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


@pytest.mark.parametrize("spec", ["rrf", "rbc(persistence=0.5)"])
@settings(deadline=None, max_examples=60)
@given(
    lists=st.dictionaries(
        strategies.ids(), strategies.answers(strategies.ids(), max_items=8), min_size=1, max_size=5
    ),
    weights=st.lists(st.floats(0.125, 4), min_size=5, max_size=5),
    weighted=st.booleans(),
)
def test_named_lists_give_the_bits_of_the_tables(spec, lists, weights, weighted):
    given_weights = dict(zip(lists, weights, strict=False)) if weighted else None
    quick = fuse(lists, spec, weights=given_weights)
    whole = make(spec, weights=given_weights).aggregate(Preferences.from_lists({"q": lists}))["q"]
    assert quick.ranking == [r.item for r in whole]
    assert quick.tied == [r.tied for r in whole]
    assert quick.scores == [r.score for r in whole]


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


def test_an_iterator_is_read_once_and_whole():
    answers = ({"a": 1.0, "b": 0.5} if i == 0 else {"c": 1.0} for i in range(2))
    assert sorted(fuse(answers).ranking) == ["a", "b", "c"]


class LongerThanItsLength(list):
    """Claims one item, and yields a hundred thousand."""

    def __iter__(self):
        return iter(range(100_000))


def test_a_list_that_yields_more_than_its_length_is_read_whole():
    for weights in (None, [2.0]):
        found = fuse([LongerThanItsLength(["a"])], weights=weights)
        assert found.ranking == list(range(100_000))


def test_an_aggregator_keeps_its_parameters():
    with pytest.raises(ParameterError, match="already has its parameters"):
        fuse([["a"]], make("rrf"), k=0)
    method = make("rrf")
    fuse([["a"]], method)
    method.k = 0
    assert fuse([["a"]], method).scores == [1.0]
    assert fuse([["a"]]).scores == [1 / 61]


def test_deep_ranks_stay_apart():
    items = [f"{9999 - i}" for i in range(1000)]
    for spec in ("rrf", "rbc", "rbc(persistence=0.5)"):
        assert fuse([items], spec).ranking == items
        assert make(spec).aggregate(Preferences.from_lists({0: {0: items}})).ranking(0) == items


def test_named_lists_want_named_weights():
    with pytest.raises(ParameterError, match="name the weights"):
        fuse({"b": ["x"], "a": ["y"]}, weights=[5, 1])


@pytest.mark.parametrize("n", [2_000, 20_000])
@pytest.mark.parametrize("weight", [0.1, 0.7, 1 / 3])
def test_medians_do_not_depend_on_how_much_else_there_is(n, weight):
    query = [q for q in range(n) for _ in range(4)]
    p = Preferences.from_rows(query, [1, 1, 2, 2] * n, ["a", "b"] * 2 * n, score=[1.0, 0.0, 0.0, 1.0] * n)
    scores = make("combmed", weights={1: weight, 2: weight}).aggregate(p).scores
    assert set(scores.tolist()) == {0.5}


def test_one_vote_elsewhere_does_not_change_a_mean_rating():
    rated = Preferences.from_lists({"q1": {"w1": {"x": 5, "y": 1}, "w2": {"x": 1, "z": 4, "t": 3}}})
    both = Preferences.concat([rated, Preferences.from_comparisons(["q2"], ["w1"], ["m"], ["n"])])
    assert make("majority").aggregate(both)["q1"] == make("majority").aggregate(rated)["q1"]


def test_scores_that_overflow_are_refused():
    huge = Preferences.from_lists({"q": {"e": {"a": 1e308, "b": 0.0, "c": -1e308}}})
    with pytest.raises(InputError, match="too far apart"):
        make("combsum").aggregate(huge)
    twice = Preferences.from_lists({"q": {1: {"a": 1.5e308}, 2: {"a": 1.5e308}}})
    with pytest.raises(InputError, match="the scores of query 'q' are too large for combsum"):
        make("combsum(normalizer='none')").aggregate(twice)


def test_what_nobody_lists_is_last_everywhere():
    lists = (["q"] * 5, ["e1", "e2", "e2", "e3", "e3"], list("xbcbc"))
    p = Preferences.from_rows(*lists, rank=[1, 1, 2, 1, 2], candidates=(["q"], ["a0"]))
    for name, cls in registry.aggregators.all().items():
        if not cls.tags.supervised and p.forms <= cls.tags.accepts:
            assert make(name).aggregate(p).ranking("q")[-1] == "a0", name


def test_explaining_by_leaving_out():
    p = Preferences.from_lists({"q": {"e1": {"a": 1.0, "b": 0.5}, "e2": {"b": 1.0, "a": 0.9}}})
    assert make("combmax").explain(p, "q", "a")["e1"] > 0
    votes = Preferences.from_comparisons([0], ["j"], ["a"], ["b"])
    with pytest.raises(UnsupportedFormError):
        make("rrf").explain(votes, 0, "a")
