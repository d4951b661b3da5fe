"""Comparisons: hand-computed cases, scipy's tests, curves against one evaluation per depth, and plain words."""

from __future__ import annotations

import csv
import io
import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from podium import Labels, Preferences, make
from podium.core.errors import InputError, ParameterError
from podium.data.demo import demo
from podium.evaluate import compare, evaluate
from podium.evaluate.comparison import compare_evaluations
from podium.evaluate.evaluation import Evaluation
from podium.evaluate.metric_curves import curves
from podium.evaluate.significance import assess_differences, mean_interval
from podium.metrics.base import parse_all
from podium.metrics.binary import Judged


def evaluation(values, judged=None, metric="ndcg@10", name=""):
    """An evaluation with these values by query."""
    from podium.data.ids import Ids

    metrics = parse_all(metric)
    rows = [values]
    if judged is not None:
        metrics += (Judged(cutoff=metrics[0].cutoff),)
        rows.append(judged)
    return Evaluation(metrics, Ids([f"q{i}" for i in range(len(values))]), np.array(rows, float), name)


A = [0.2, 0.4, 0.6, 0.8, 0.5, 0.5]
B = [0.3, 0.4, 0.9, 0.7, 0.6, 0.8]


def test_rows_by_hand():
    both = {"a": evaluation(A), "b": evaluation(B)}
    row = compare_evaluations(both, "ndcg@10", test="randomization").row("b", "ndcg@10")
    assert row.mean == pytest.approx(sum(B) / 6)
    assert row.difference == pytest.approx((0.1 + 0 + 0.3 - 0.1 + 0.1 + 0.3) / 6)
    assert (row.wins, row.ties, row.losses) == (4, 1, 1)
    # of the 32 sign patterns of (.1, .3, -.1, .1, .3) these reach a sum of .7 or more in size: those with both .3 alike
    # and at least two of the three .1 as they are, and their mirror images: 2 x (3 + 1)
    assert row.p == pytest.approx(8 / 32)
    assert row.low <= 0 <= row.high


@pytest.mark.parametrize(("test", "expected"), [
    ("t", lambda d: stats.ttest_1samp(d, 0).pvalue),
    ("wilcoxon", lambda d: stats.wilcoxon(d[d != 0], method="approx").pvalue),
    ("randomization", lambda d: stats.permutation_test(
        (d,), lambda x, axis: np.mean(x, axis=axis), permutation_type="samples", n_resamples=np.inf).pvalue),
])  # fmt: skip
def test_p_values_are_those_of_scipy(test, expected):
    found = compare_evaluations({"a": evaluation(A), "b": evaluation(B)}, "ndcg@10", test=test)
    assert found.row("b", "ndcg@10").p == pytest.approx(expected(np.array(B) - np.array(A)), abs=1e-9)


def test_holm_is_over_the_whole_table_and_over_all_pairs():
    rng = np.random.default_rng(0)
    many = {f"m{i}": evaluation(rng.random(12) + i / 20) for i in range(4)}
    found = compare_evaluations(many, "ndcg@10", test="t")
    raw = [r.p for r in found.rows if r.p is not None]
    adjusted = [r.p_holm for r in found.rows if r.p is not None]
    order = np.argsort(raw)
    expected, worst = [0.0] * 3, 0.0
    for step, i in enumerate(order):
        worst = max(worst, min(1.0, raw[i] * (3 - step)))
        expected[i] = worst
    assert adjusted == pytest.approx(expected)
    pairs = found.pairs()
    assert len(pairs) == 6
    assert all(p.difference >= 0 for p in pairs)
    one = next(p for p in pairs if {p.better, p.worse} == {"m0", "m3"})
    plain = found.row("m3", "ndcg@10")
    assert one.p == pytest.approx(plain.p)
    assert abs(one.difference) == pytest.approx(abs(plain.difference))
    assert one.p_holm >= plain.p_holm - 1e-12


@pytest.mark.parametrize("test", ["t", "randomization"])
def test_intervals_of_many_are_those_of_one(test):
    d = np.random.default_rng(1).normal(size=(4, 30))
    found = assess_differences(d, test=test, rounds=500, seed=3)
    for i in range(4):
        one = mean_interval(d[i], test=test, rounds=500, seed=3)
        assert one == pytest.approx((found.low[i], found.high[i]), abs=1e-12)
    d[1, :5] = np.nan  # a row that leaves queries out is the row without them
    holes = assess_differences(d, test=test, rounds=500, seed=3)
    assert holes.low[1] == pytest.approx(mean_interval(d[1, 5:], test=test, rounds=500, seed=3)[0], abs=1e-12)
    assert holes.low[0] == pytest.approx(found.low[0], abs=1e-12)


@pytest.mark.parametrize("queries", [10, 30, 100])
def test_few_queries_do_not_narrow_the_intervals(queries):
    """Two results of which neither is better: 95 % intervals leave 0 out in about 5 of 100 comparisons."""
    random, missed, count = np.random.default_rng([queries, 1]), 0, 2000
    for _ in range(count):
        both = {name: evaluation(random.beta(0.4, 1.0, queries)) for name in "ab"}
        row = compare_evaluations(both, "ndcg@10", rounds=300).row("b", "ndcg@10")
        missed += not row.low <= 0 <= row.high
        assert (row.p <= 0.05) == (not row.low <= 0 <= row.high)
    assert 0.035 <= missed / count <= 0.065


# -- by query ---------------------------------------------------------------------------------------------------


def test_per_query_by_hand():
    third = [0.2, 0.4, 0.6, 0.1, 0.5, math.nan]
    several = {
        "a": evaluation(A, [1.0] * 6),
        "b": evaluation(B, [0.5] * 6),
        "c": evaluation(third, [0.0] * 6),
    }
    found = compare_evaluations(several, "ndcg@10")
    rows = found.per_query()
    assert [r.query for r in rows][:3] == ["q3", "q2", "q5"]
    first = rows[0]
    assert (first.other, first.winner) == ("c", "a")
    assert first.difference == pytest.approx(-0.7)
    assert first.judged == {"a": 1.0, "b": 0.5, "c": 0.0}
    sizes = [abs(r.difference) for r in rows]
    assert sizes == sorted(sizes, reverse=True)
    assert next(r for r in rows if r.query == "q1").winner is None  # all the same
    only = found.per_query(name="b")
    assert {r.other for r in only} == {"b"}
    with pytest.raises(ParameterError, match="no result"):
        found.per_query(name="zzz")
    with pytest.raises(ParameterError, match="was not compared"):
        found.per_query("map")


@given(
    st.lists(
        st.tuples(st.sampled_from([0, 0.25, 0.5, 1]), st.sampled_from([0, 0.25, 0.5, 1])),
        min_size=1,
        max_size=9,
    )
)
@settings(max_examples=50, deadline=None)
def test_counts_and_rows_agree(values):
    one, two = zip(*values, strict=True)
    found = compare_evaluations({"a": evaluation(one), "b": evaluation(two)}, "ndcg@10", rounds=20)
    row, rows = found.row("b", "ndcg@10"), found.per_query()
    assert (row.wins, row.ties, row.losses) == (
        sum(r.winner == "b" for r in rows), sum(r.winner is None for r in rows), sum(r.winner == "a" for r in rows)
    )  # fmt: skip
    assert row.difference == pytest.approx(sum(r.difference for r in rows) / len(rows))


# -- curves -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", ["ndcg", "ndcg@7:letor", "p", "recall", "map", "rbp(p=0.5)"])
def test_a_curve_is_one_evaluation_per_depth(metric):
    data = demo(15)
    c = make("rrf").aggregate(data.preferences)
    (curve,) = curves({"rrf": c}, data.labels, metric, [1, 2, 5, 30])
    base = parse_all(metric)[0]
    for i, k in enumerate(curve.depths):
        alone = evaluate(c, data.labels, [base @ k, Judged(cutoff=k)], queries="all")
        assert curve.mean[i] == alone.mean()[str(base @ k)]
        assert curve.judged[i] == alone.mean()[f"judged@{k}"]
        values = alone[base @ k]
        if values.std() > 0:
            low, high = stats.t.interval(0.95, len(values) - 1, values.mean(), stats.sem(values))
            assert (curve.low[i], curve.high[i]) == pytest.approx((low, high), abs=1e-12)


def test_a_curve_by_hand():
    c = make("rrf").aggregate(Preferences.from_lists({"q": {"e": ["a", "b", "c"]}}))
    (curve,) = curves({"x": c}, Labels.from_dict({"q": {"b": 1, "z": 1}}), "ndcg", [1, 2, 3])
    ideal = 1 + 1 / math.log2(3)
    assert curve.mean == pytest.approx((0.0, 1 / math.log2(3) / ideal, 1 / math.log2(3) / ideal))
    assert curve.judged == pytest.approx((0, 1 / 2, 1 / 3))
    assert all(math.isnan(v) for v in curve.low + curve.high)  # one query has no band


def test_curves_refuse_what_has_no_depth():
    data = demo(5)
    c = {"rrf": make("rrf").aggregate(data.preferences)}
    with pytest.raises(ParameterError, match="no cutoff"):
        curves(c, data.labels, "tau")
    with pytest.raises(ParameterError, match="depths"):
        curves(c, data.labels, "ndcg", [0, 1])


# -- words ------------------------------------------------------------------------------------------------------


def test_a_clear_difference_is_said_and_no_other():
    rng = np.random.default_rng(0)
    base = rng.random(60) * 0.5
    better = base + 0.1 + 0.01 * rng.random(60)
    several = {"a": evaluation(base), "same": evaluation(base), "better": evaluation(better),
               "worse": evaluation(base - 0.1), "unsure": evaluation(base + rng.normal(0, 0.2, 60))}  # fmt: skip
    said = compare_evaluations(several, "ndcg@10").conclusion()
    assert "Better than a in ndcg@10: better (+0.1" in said
    assert "Worse than a in ndcg@10: worse (-0.1000" in said
    assert "unsure is statistically tied with a." in said
    assert "same equals a on every query." in said


def test_one_query_proves_nothing():
    found = compare_evaluations({"a": evaluation([0.1]), "b": evaluation([0.9])}, "ndcg@10")
    row = found.row("b", "ndcg@10")
    assert (row.difference, row.wins) == (pytest.approx(0.8), 1)
    assert math.isnan(row.p)
    assert math.isnan(row.low)
    assert "only one query" in found.conclusion()
    assert found.grids()[0].rows[0] == ("b", "0.9000", "", "+0.8000", "", "", "1/0/0")


def test_nothing_judged_is_said():
    p = Preferences.from_lists({q: {"e": ["a", "b"], "f": ["b", "c"]} for q in "xyz"})
    labels = Labels.from_dict({q: {"elsewhere": 1, "c": 1} for q in "xyz"})
    from podium.evaluate import expert_rankings

    results = {name: expert_rankings(p, name) for name in ("f", "e")}
    with pytest.warns(UserWarning, match="share no item"):
        found = compare(results, labels, "ndcg@10")
    assert "No item in the top 10 of e is judged: its ndcg@10 is meaningless." in found.notes
    assert "0%" in found.to_markdown()


def test_labels_of_other_queries_are_an_error_in_words():
    c = {"rrf": make("rrf").aggregate(Preferences.from_lists({"q1": {"e": ["a"]}}))}
    with pytest.raises(InputError, match=r"no result shares a query.*'q1'.*'Q1'"):
        compare(c, Labels.from_dict({"Q1": {"a": 1}}), "map")


def test_queries_without_an_answer_are_said():
    p = Preferences.from_lists({q: {"e": ["a", "b"]} for q in range(12)})
    labels = Labels.from_dict({q: {"a": 1, "b": 0} for q in range(15)})
    results = {"whole": make("rrf").aggregate(p), "part": make("rrf").aggregate(p.select(range(10)))}
    notes = compare(results, labels, "map").notes
    assert "whole does not answer 3 judged queries, which count as 0." in notes
    assert "part does not answer 5 judged queries, which count as 0." in notes
    assert not any("answer" in n for n in compare(results, labels, "map", queries="judged").notes)


def test_results_that_lack_as_many_queries_share_a_sentence_and_are_judged_by_what_they_answer():
    p = Preferences.from_lists({q: {"e": ["a", "b"]} for q in range(2)})
    labels = Labels.from_dict({q: {"a": 1, "b": 0} for q in range(10)})
    found = compare({n: make(n).aggregate(p) for n in ("rrf", "borda")}, labels, "ndcg@10")
    assert "rrf, borda do not answer 8 judged queries, which count as 0." in found.notes
    assert found.row("rrf", "ndcg@10").judged == 1.0
    assert found.row("rrf", "ndcg@10").mean == pytest.approx(0.2)


def test_neither_intervals_nor_p_depend_on_the_order_of_the_queries():
    random = np.random.default_rng(3)
    lists = {f"q{q}": {e: random.permutation(12).tolist() for e in "abc"} for q in range(40)}
    labels = Labels.from_dict({q: {i: int(i < 3) for i in range(12)} for q in lists})

    def rows(order):
        p = Preferences.from_lists({q: lists[q] for q in order})
        return compare({n: make(n).aggregate(p) for n in ("rrf", "borda", "mc4")}, labels, "ndcg@5").rows

    assert rows(lists) == rows([*lists][::-1])


def test_uneven_judging_is_said():
    several = {"pool": evaluation([0.5] * 20, [1.0] * 20), "new": evaluation([0.4] * 20, [0.6] * 20)}
    (note,) = compare_evaluations(several, "ndcg@10").notes
    assert note.startswith("Judged in the top 10: 60% of new, 100% of pool")


# -- files ------------------------------------------------------------------------------------------------------


@pytest.fixture
def found():
    data = demo(15)
    results = {n: make(n).aggregate(data.preferences) for n in ("rrf", "borda", "combmnz")}
    return compare(results, data.labels, "ndcg@5 tau")


def test_every_format_holds_the_same_figures(found):
    mean = found.row("borda", "ndcg@5").mean
    rows = list(csv.DictReader(io.StringIO(found.to_csv())))
    assert len(rows) == 6
    assert float(next(r for r in rows if (r["name"], r["metric"]) == ("borda", "ndcg@5"))["mean"]) == mean
    document = json.loads(found.to_json())
    assert (
        next(r for r in document["rows"] if (r["name"], r["metric"]) == ("borda", "ndcg@5"))["mean"] == mean
    )
    assert document["verdicts"].keys() == {"ndcg@5", "tau_b"}
    for text in (found.to_markdown(), found.to_latex(), found.to_html()):
        assert f"{mean:.4f}" in text
        assert "nan" not in text.lower()
    assert found.to_html().startswith("<!doctype html>")
    assert found.to_html(page=False).startswith("<div")


def test_the_same_answer_in_any_order_of_results(found):
    back = dict(reversed(found.evaluations.items()))
    again = compare_evaluations(back, found.metrics, baseline="rrf")
    for row in found.rows:
        other = again.row(row.name, row.metric)
        assert (other.mean, other.p, other.wins) == (row.mean, row.p, row.wins)
        assert other.low == (None if row.low is None else pytest.approx(row.low, abs=1e-12))


def test_arguments_of_another_kind_are_refused_in_words():
    from podium import diagnose, report, tune

    data = demo(5)
    c = make("rrf").aggregate(data.preferences)
    for call, said in (
        (lambda: compare([c], data.labels, "map"), "compare was given a list; give results by name"),
        (lambda: compare({"rrf": c}, None, "map"), "compare was given a NoneType"),
        (lambda: tune(data.preferences), "tune was given a Preferences; give podium.Dataset"),
        (lambda: diagnose(data), "diagnose was given a Dataset; give preferences and labels"),
        (lambda: report(data), "report was given a Dataset; give preferences and labels"),
    ):
        with pytest.raises(InputError, match=said):
            call()
    assert len(tune(data, "ndcg@5", "rrf", trials=2).trials) == 2
