"""Constructors say what is wrong and where; the tables are sorted, grouped and frozen."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podium import Labels, Preferences
from podium.core.errors import InputError, ParameterError, PodiumWarning
from podium.data.preferences import Form
from podium.testing import strategies


def rows(**kwargs):
    return Preferences.from_rows(["q"] * 3, ["e"] * 3, ["a", "b", "c"], **kwargs)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"rank": [1, 0, 2]}, "row 2: the rank is 0; ranks start at 1"),
        ({"rank": [1, -3, 2]}, "row 2: the rank is -3"),
        ({"rank": [1, 2.5, 2]}, "row 2: the rank is 2.5; ranks are whole numbers"),
        ({"rank": [1, np.nan, 2]}, "row 2: the rank is nan"),
        ({"rank": [1, np.inf, 2]}, "row 2: the rank is inf"),
        ({"rank": [1, 1e12, 2]}, "row 2: the rank is 1000000000000"),
        ({"rank": [1, "x", 2]}, "row 2: the rank is 'x'; a rank is a number"),
        ({"score": [1, np.nan, 2]}, "row 2: the score is nan"),
        ({"score": [1, -np.inf, 2]}, "row 2: the score is -inf"),
        ({"score": [1, None, 2]}, "row 2: the score is"),
        ({"rank": [1, 2]}, "differ in length"),
        ({}, "neither ranks nor scores"),
    ],
)
def test_bad_values_name_the_row(given, message):
    with pytest.raises(InputError, match=message.replace("(", r"\(")):
        rows(**given)


@pytest.mark.parametrize("bad", [1.5, None, True, b"x", ("a",)])
def test_ids_are_strings_or_integers(bad):
    with pytest.raises(InputError, match=r"row 3: the item id is .*ids are strings or integers"):
        Preferences.from_rows(["q"] * 3, ["e"] * 3, ["a", "b", bad], rank=[1, 2, 3])


def test_unknown_policy():
    with pytest.raises(ParameterError, match="duplicates is 'last'; accepted: error, first, best, sum"):
        rows(rank=[1, 2, 3], duplicates="last")


def test_ids_come_back_as_given():
    nasty = ["a,b", 'say "x"', " space ", "tab\there", "żółw", "x" * 10_000, 7, "7", "A", "a", -1, "🎉"]
    p = Preferences.from_rows([1] * len(nasty), ["e"] * len(nasty), nasty, rank=range(1, len(nasty) + 1))
    by_rank = p.index.items.take(p.lists.item[np.argsort(p.lists.rank)]).tolist()
    assert by_rank == nasty
    assert [type(v) for v in by_rank] == [type(v) for v in nasty]
    assert p.index.items.tolist() == sorted(nasty, key=lambda v: (isinstance(v, str), v))


def test_rows_are_grouped_and_sorted():
    p = Preferences.from_rows(
        ["r", "q", "r", "q"], ["z", "z", "a", "a"], ["y", "x", "x", "x"], rank=[2, 1, 9, 4]
    )
    assert p.queries.tolist() == ["r", "q"]
    assert p.experts.tolist() == ["a", "z"]
    assert p.lists.query_starts.tolist() == [0, 2, 4]
    assert p.lists.expert.tolist() == [0, 1, 0, 1]
    assert p.index.items.tolist() == ["x", "y", "x"]
    assert p.lists.item.tolist() == [0, 1, 2, 2]
    assert p.lists.rank.tolist() == [9, 2, 4, 1]


def test_scores_imply_competition_ranks():
    assert rows(score=[2.0, 3.0, 2.0]).lists.rank.tolist() == [1, 2, 2]


def test_ranks_keep_their_gaps():
    assert rows(rank=[7, 3, 300]).lists.rank.tolist() == [3, 7, 300]


def test_a_list_read_upside_down_is_warned_of():
    with pytest.warns(PodiumWarning, match="scores rise down the lists"):
        rows(rank=[1, 2, 3], score=[0.1, 0.2, 0.3])


DUPLICATED = {
    "query": ["q"] * 5,
    "expert": ["e"] * 5,
    "item": ["d", "x", "x", "x", "y"],
}


def test_duplicates_are_an_error_by_default():
    with pytest.raises(
        InputError, match=r"row 3: item 'x' in the list of expert 'e' for query 'q' appears twice"
    ):
        Preferences.from_rows(*DUPLICATED.values(), rank=[1, 2, 3, 4, 5])


@pytest.mark.parametrize(
    ("policy", "order", "ranks"),
    [
        ("first", ["d", "x", "y"], [1, 2, 3]),
        ("best", ["d", "x", "y"], [1, 2, 3]),
        ("sum", ["x", "d", "y"], [1, 2, 3]),
    ],
)
def test_duplicate_policies(policy, order, ranks):
    """Three chunks of x at places 2-4 beat d at place 1 only under 'sum' (5 against 4 + 3 + 2)."""
    for shuffle in range(5):
        at = np.random.default_rng(shuffle).permutation(5)
        columns = [[c[i] for i in at] for c in DUPLICATED.values()]
        p = Preferences.from_rows(*columns, rank=(at + 1), duplicates=policy)
        assert p.index.items.take(p.lists.item).tolist() == order
        assert p.lists.rank.tolist() == ranks


def test_best_and_first_differ_when_scores_disagree_with_ranks():
    columns = (["q"] * 3, ["e"] * 3, ["x", "y", "x"])
    values = {"rank": [1, 2, 3], "score": [0.1, 0.5, 0.9]}
    with pytest.warns(PodiumWarning):
        best = Preferences.from_rows(*columns, **values, duplicates="best")
    first = Preferences.from_rows(*columns, rank=[1, 2, 3], score=[0.9, 0.5, 0.1], duplicates="first")
    assert best.index.items.take(best.lists.item).tolist() == ["y", "x"]
    assert first.index.items.take(first.lists.item).tolist() == ["x", "y"]


def test_candidates_nobody_lists_are_kept():
    p = Preferences.from_rows(["q"], ["e"], ["a"], rank=[1], candidates=(["q", "r"], ["b", "c"]))
    assert (p.queries.tolist(), p.index.items.tolist()) == (["q", "r"], ["a", "b", "c"])


def test_comparisons():
    p = Preferences.from_comparisons(
        ["q"] * 3, ["w", "v", "v"], "aab", "bcc", tie=[False, True, False], weight=[1, 2, 3]
    )
    assert p.forms == {Form.COMPARISON}
    assert p.experts.tolist() == ["v", "w"]
    assert p.comparisons.weight.tolist() == [2, 3, 1]
    with pytest.raises(InputError, match="row 2: an item is compared with itself"):
        Preferences.from_comparisons(["q"] * 2, ["w"] * 2, "ab", "cb")
    with pytest.raises(InputError, match="row 1: the weight is 0"):
        Preferences.from_comparisons(["q"], ["w"], "a", "b", weight=[0])
    with pytest.raises(InputError, match="row 1: the weight is nan"):
        Preferences.from_comparisons(["q"], ["w"], "a", "b", weight=[np.nan])


def test_mixed_answers_are_refused():
    with pytest.raises(InputError, match="some answers are lists and some map items to scores"):
        Preferences.from_lists({"q": {"a": ["x"], "b": {"x": 1.0}}})


@settings(deadline=None)
@given(strategies.preferences(name=strategies.ids()), st.randoms())
def test_splitting_and_putting_together_is_the_identity(p, random):
    queries = p.queries.tolist()
    parts = [p.select([q]) for q in queries]
    assert Preferences.concat(parts) == p
    assert Preferences.concat(parts).index.arrival.tolist() == p.index.arrival.tolist()
    experts = [p.with_experts([e]) for e in p.experts]
    assert Preferences.concat(experts) == p


@settings(deadline=None)
@given(strategies.rankings(), strategies.ratings(name=st.sampled_from(["u1", "u2", "u3", "u4"])))
def test_lists_without_scores_beside_lists_with(a, b):
    both = Preferences.concat([a, b])
    assert both.lists.rows == a.lists.rows + b.lists.rows
    scores = both.lists.fill_scores(both.index.sizes)
    assert np.isfinite(scores).all()


def test_concat_refuses_the_same_list_twice():
    p = Preferences.from_lists({"q": {"e": ["a", "b"]}})
    with pytest.raises(InputError, match="item 'a' in the list of expert 'e' for query 'q' appears twice"):
        Preferences.concat([p, p])


def test_unknown_query_expert_item_are_named():
    p = Preferences.from_lists({"q": {"e": ["a", "b"]}})
    with pytest.raises(InputError, match="there is no query 'Q'"):
        p.select(["Q"])
    with pytest.raises(ParameterError, match="there is no expert 'f'"):
        p.with_experts(["f"])
    with pytest.raises(InputError, match="query 'q' has no item 'z'"):
        p.index.slot("q", "z")


def test_every_item_has_the_slot_that_holds_it():
    given = {"q": {"e": ["b", 10, "a", 9, -3, "", "é", "Z", 2**70]}, "r": {"e": ["b"]}, "s": {"e": []}}
    index = Preferences.from_lists(given).index
    for q in index.queries:
        here = range(*index.slots(q).indices(len(index.items)))
        assert [index.slot(q, index.items[at]) for at in here] == list(here)
    assert index.slot("q", np.int64(9)) == index.slot("q", 9)
    for no_item in ("9", "c", 11, "zz", -9, None, 1.5, ("a",), float("nan")):
        for q in index.queries:
            with pytest.raises(InputError, match="has no item"):
                index.slot(q, no_item)


def test_labels():
    with pytest.raises(InputError, match="row 2: item 'a' is labeled twice for query 'q'"):
        Labels.from_rows(["q", "q"], ["a", "a"], [1, 2])
    with pytest.raises(InputError, match="row 1: the grade is nan"):
        Labels.from_rows(["q"], ["a"], [np.nan])
    labels = Labels.from_dict({"q": {"b": 1, "a": 2}, "r": {"c": 0}})
    p = Preferences.from_lists({"r": {"e": ["d", "c"]}, "q": {"e": ["a"]}, "s": {"e": ["a"]}})
    assert labels.align(p.index)[:2].tolist()[0] == 0
    np.testing.assert_array_equal(labels.align(p.index), [0, np.nan, 2, np.nan])


@settings(deadline=None, max_examples=50)
@given(strategies.rankings(name=strategies.ids()), strategies.labels(name=strategies.ids()))
def test_aligning_labels_is_a_lookup(p, labels):
    known = {(type(q), q, type(i), i): g for q, i, g in _triples(labels)}
    for slot, grade in enumerate(labels.align(p.index).tolist()):
        q, i = p.queries[int(p.index.query_of_slot[slot])], p.index.items[slot]
        assert grade == pytest.approx(known.get((type(q), q, type(i), i), np.nan), nan_ok=True)


def _triples(labels):
    for slot, grade in enumerate(labels.grades.tolist()):
        yield labels.queries[int(labels.index.query_of_slot[slot])], labels.index.items[slot], grade


@pytest.mark.parametrize("score", [np.array([0.9, 0.1, np.nan]), np.array([np.nan] * 3), [1.0, np.inf, 2.0]])
def test_scores_that_are_no_numbers_are_refused_in_arrays_too(score):
    with pytest.raises(InputError, match=r"row \d: the score is"):
        rows(score=score)


def test_only_lists_that_repeat_are_renumbered():
    columns = (["q"] * 5, ["e1"] * 3 + ["e2"] * 2, list("abaab"))
    for policy in ("first", "best", "sum"):
        p = Preferences.from_rows(*columns, rank=[1, 2, 3, 1, 7], duplicates=policy)
        assert p.lists.rank.tolist() == [1, 2, 1, 7]


def test_which_copy_survives_does_not_depend_on_the_order():
    found = [
        Preferences.from_rows(
            ["q"] * 2, ["e"] * 2, ["a", "a"], rank=[1, 1], score=s, duplicates="first"
        ).lists.score
        for s in ([0.9, 0.1], [0.1, 0.9])
    ]
    assert [f.tolist() for f in found] == [[0.9], [0.9]]


def test_a_list_is_scored_whole_or_not_at_all():
    a = Preferences.from_lists({"q": {"e": {"a": 0.5}}})
    b = Preferences.from_lists({"q": {"e": ["b"]}})
    with pytest.raises(InputError, match="scores for only some of its items"):
        Preferences.concat([a, b])


def test_the_callers_arrays_are_not_ours():
    rank, score = np.array([1, 2], np.int32), np.array([2.0, 1.0])
    p = Preferences.from_rows(["q"] * 2, ["e"] * 2, ["a", "b"], rank=rank, score=score)
    rank[0], score[0] = 99, -1
    assert (p.lists.rank.tolist(), p.lists.score.tolist()) == ([1, 2], [2.0, 1.0])


def test_empty_answers_keep_their_query_and_expert():
    p = Preferences.from_lists({"q": {"a": []}, "r": {"a": ["x"], "b": []}})
    assert (p.queries.tolist(), p.experts.tolist()) == (["q", "r"], ["a", "b"])


def test_asking_twice_or_for_nobody_is_an_error():
    p = Preferences.from_lists({"q": {1: ["a"], 2: ["b"]}})
    with pytest.raises(InputError, match="query 'q' is selected twice"):
        p.select(["q", "q"])
    with pytest.raises(ParameterError, match="there is no expert 'nobody'"):
        p.without_expert("nobody")
    assert p.without_expert(np.int64(1)).experts.tolist() == [2]


def test_marks_of_ties_are_true_or_false():
    with pytest.raises(InputError, match="row 1: the tie mark is 'false'"):
        Preferences.from_comparisons([0], ["j"], ["a"], ["b"], tie=["false"])


def test_very_large_integers_stay_what_they_are():
    p = Preferences.from_rows(["q"] * 2, ["e"] * 2, np.array([2**63 + 5, 1], np.uint64), rank=[1, 2])
    assert p.index.items.tolist() == [1, 2**63 + 5]


def test_labels_can_be_copied_and_sent():
    import dataclasses
    import pickle

    labels = Labels.from_dict({"q": {"x": 1, "y": 0}})
    labels.align(labels.index)
    assert pickle.loads(pickle.dumps(labels)) == labels
    assert dataclasses.replace(labels, grades=labels.grades + 1).memo == {}


def test_weights_that_add_up_to_infinity_are_refused():
    with pytest.raises(InputError, match="add up to infinity; rescale them"):
        Preferences.from_comparisons([0] * 2, ["j"] * 2, ["a", "b"], ["b", "c"], weight=[1.7e308] * 2)
