"""Which queries count, what is reported about the others, parts, experts' own lists, and comparisons."""

from __future__ import annotations

import math

import numpy as np
import pytest

from podium.core.errors import InputError, ParameterError, PodiumWarning
from podium.data.labels import Labels
from podium.data.preferences import Preferences
from podium.evaluate import compare, evaluate, expert_rankings
from podium.methods.base import make


def lists(queries, items="abc", expert="e"):
    return Preferences.from_lists({q: {expert: list(items)} for q in queries})


def test_which_queries_count():
    result = make("rrf").aggregate(lists([1, 2, 3]))
    labels = Labels.from_dict({3: {"a": 1}, 9: {"a": 1}, 1: {"b": 1}})
    judged = evaluate(result, labels, "mrr")
    assert (list(judged.queries), judged["mrr"].tolist()) == ([1, 3], [0.5, 1.0])
    assert (judged.missing, judged.unlabelled) == (1, 1)
    everything = evaluate(result, labels, "mrr", queries="all")
    assert (list(everything.queries), everything["mrr"].tolist()) == ([1, 3, 9], [0.5, 1.0, 0.0])
    assert everything.mean() == {"mrr": 0.5}
    assert repr(everything) == "Evaluation(3 queries, 1 missing, 1 unlabelled: mrr 0.5000)"


def test_labels_without_a_grade_do_not_make_a_query_judged():
    known = Labels.from_dict({1: {"a": 1}, 2: {"a": 1}})
    labels = Labels(known.index, np.array([1.0, np.nan]))
    assert list(evaluate(make("rrf").aggregate(lists([1, 2])), labels, "mrr").queries) == [1]


@pytest.mark.parametrize(
    ("labels", "what"),
    [({"1": {"a": 1}}, "share no query"), ({1: {"A": 1}}, "share no item"), ({1: {0: 1}}, "share no item")],
)
def test_strangers_are_loud(labels, what):
    with pytest.warns(PodiumWarning, match=what):
        found = evaluate(make("rrf").aggregate(lists([1])), Labels.from_dict(labels), "mrr")
    assert math.isnan(found.mean()["mrr"]) if "query" in what else found.mean()["mrr"] == 0


def test_order_of_queries_and_rows_does_not_change_the_mean():
    rng = np.random.default_rng(0)
    rows = [(q, i, float(rng.normal()), int(rng.integers(0, 3))) for q in range(50) for i in range(9)]
    means = set()
    for _ in range(5):
        rows = [rows[k] for k in rng.permutation(len(rows))]
        q, i, s, g = zip(*rows, strict=True)
        result = make("combsum").aggregate(Preferences.from_rows(q, ["e"] * len(q), i, score=s))
        means.add(
            tuple(evaluate(result, Labels.from_rows(q, i, g), ["ndcg@5", "map", "err"]).mean().values())
        )
    assert len(means) == 1


def test_parts_are_rounded_before_they_are_averaged():
    result = make("rrf").aggregate(lists([1, 2, 3, 4]))
    labels = Labels.from_dict({1: {"a": 1}, 2: {"c": 1}, 3: {"b": 1}, 4: {"c": 1}})
    found = evaluate(result, labels, "mrr")
    assert found["mrr"].tolist() == [1, 1 / 3, 1 / 2, 1 / 3]
    parts = [0, 0, 0, 1]  # means 0.61111 and 0.33333
    assert found.mean_over_parts(parts)["mrr"] == pytest.approx((0.6111 + 0.3333) / 2, abs=1e-15)
    assert found.mean_over_parts(np.array(parts), digits=None)["mrr"] == pytest.approx((11 / 18 + 1 / 3) / 2)
    assert found.mean_over_parts(dict(zip([1, 2, 3, 4], parts, strict=True))) == found.mean_over_parts(parts)
    with pytest.raises(InputError, match="3 part numbers"):
        found.mean_over_parts([0, 1, 2])
    with pytest.raises(InputError, match="has no part number"):
        found.mean_over_parts({1: 0})


def test_frames_and_lookup():
    found = evaluate(
        make("rrf").aggregate(lists(["x", "y"])), Labels.from_dict({q: {"b": 1} for q in "xy"}), "mrr p@1"
    )
    frame = found.to_frame()
    assert frame.to_pydict() == {"query": ["x", "y"], "mrr": [0.5, 0.5], "p@1": [0.0, 0.0]}
    with pytest.raises(ParameterError, match="map was not evaluated"):
        found["map"]
    with pytest.raises(ParameterError, match="accepted: judged, all"):
        evaluate(make("rrf").aggregate(lists("x")), Labels.from_dict({"x": {"a": 1}}), "mrr", queries="some")
    with pytest.raises(ParameterError, match="no metric was given"):
        evaluate(make("rrf").aggregate(lists("x")), Labels.from_dict({"x": {"a": 1}}), [])


def test_undefined_queries_are_left_out_and_counted():
    result = make("rrf").aggregate(lists([1, 2]))
    found = evaluate(
        result, Labels.from_dict({1: {"a": 2, "b": 1, "c": 0}, 2: {"a": 1, "b": 1}}), ["tau_b", "mrr"]
    )
    assert found.mean()["tau_b"] == 1.0
    assert found.count_undefined() == {"tau_b": 1, "mrr": 0}


def test_an_experts_own_lists():
    p = Preferences.from_lists({1: {"x": ["c", "a"], "y": ["a", "b", "c"]}, 2: {"y": ["a"]}})
    own = expert_rankings(p, "x")
    assert {q: own.ranking(q) for q in own} == {1: ["c", "a"]}
    found = evaluate(own, Labels.from_dict({1: {"b": 1, "a": 1}, 2: {"a": 1}}), ["recall", "mrr"])
    assert (found.mean(), found.missing) == ({"recall": 0.5, "mrr": 0.5}, 1)
    with pytest.raises(ParameterError, match="no expert 'z'"):
        expert_rankings(p, "z")


def test_ties_of_an_expert_follow_the_rule():
    p = Preferences.from_lists({1: {"x": {"b": 1.0, "c": 1.0, "a": 1.0, "z": 2.0}}})
    orders = {ties: expert_rankings(p, "x", ties=ties).ranking(1) for ties in ("item", "trec", "input")}
    assert orders == {"item": list("zabc"), "trec": list("zcba"), "input": list("zbca")}
    again = expert_rankings(p, "x").with_ties("input")
    assert (again.ranking(1), again.ties, again.tied.tolist()) == (
        list("zbca"),
        "input",
        [False, True, True, True],
    )


# -- comparisons ------------------------------------------------------------------------------------------


@pytest.fixture
def contest():
    rng = np.random.default_rng(7)
    truth = {q: {i: int(rng.integers(0, 3)) for i in range(8)} for q in range(30)}

    def seen_through(noise):
        scores = {q: {i: g + float(rng.normal(0, noise)) for i, g in t.items()} for q, t in truth.items()}
        return expert_rankings(Preferences.from_lists({q: {"e": s} for q, s in scores.items()}), "e")

    return {f"noise {n}": seen_through(n) for n in (0.3, 1.0, 3.0)}, Labels.from_dict(truth)


def test_comparison_rows(contest):
    results, labels = contest
    table = compare(results, labels, ["ndcg@5", "map"], baseline="noise 3.0", rounds=2000)
    assert [(r.metric, r.name) for r in table.rows] == [(m, n) for m in ("ndcg@5", "map") for n in results]
    base, best = table.row("noise 3.0", "ndcg@5"), table.row("noise 0.3", "ndcg@5")
    assert base.difference is base.p is base.wins is None
    a, b = (evaluate(results[n], labels, "ndcg@5")["ndcg@5"] for n in ("noise 0.3", "noise 3.0"))
    assert best.difference == pytest.approx(np.mean(a - b)) == pytest.approx(best.mean - base.mean)
    assert (best.wins, best.ties, best.losses) == ((a > b).sum(), (a == b).sum(), (a < b).sum())
    assert best.low < best.difference < best.high
    assert best.p <= best.p_holm < 0.01
    assert best.judged == 1.0
    assert compare(results, labels, "map").baseline == "noise 0.3"


def test_comparison_uses_the_same_queries_for_all(contest):
    results, labels = contest
    p = Preferences.from_lists({q: {"e": list(range(8))} for q in range(10)})
    results["short"] = expert_rankings(p, "e")
    judged = compare(results, labels, "map", queries="judged", test="t", rounds=200)
    assert judged.queries == 10
    everything = compare(results, labels, "map", test="wilcoxon", rounds=200)
    assert everything.queries == 30
    assert everything.row("short", "map").mean < judged.row("short", "map").mean


def test_bad_comparisons(contest):
    results, labels = contest
    with pytest.raises(ParameterError, match="no result 'x'"):
        compare(results, labels, "map", baseline="x")
    with pytest.raises(ParameterError, match="accepted: t, wilcoxon, randomization"):
        compare(results, labels, "map", test="z")
    with pytest.raises(ParameterError, match="nothing to compare"):
        compare({}, labels, "map")


def test_labels_may_be_a_dictionary():
    result, grades = make("rrf").aggregate(lists([1, 2])), {1: {"a": 0, "b": 2}, 2: {"c": 1}}
    assert evaluate(result, grades, "map").mean() == evaluate(result, Labels.from_dict(grades), "map").mean()


@pytest.mark.parametrize(
    ("labels", "said"),
    [(None, "evaluate was given a NoneType; give labels, or a dictionary"),
     ([("q", "a", 1)], "evaluate was given a list"),
     ({1: ["a"]}, "Labels.from_dict was given a list; give query -> item -> grade"),
     ({1: 2}, "Labels.from_dict was given a int")],
)  # fmt: skip
def test_labels_of_another_kind_are_refused_in_words(labels, said):
    with pytest.raises(InputError, match=said):
        evaluate(make("rrf").aggregate(lists([1])), labels, "map")


def test_a_result_of_another_kind_is_refused_in_words():
    with pytest.raises(InputError, match="evaluate was given a Preferences; give a consensus"):
        evaluate(lists([1]), Labels.from_dict({1: {"a": 1}}), "map")
