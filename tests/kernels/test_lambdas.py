"""LambdaRank's kernels against plain loops and finite differences."""

from __future__ import annotations

import numpy as np
import pytest

from podium import Labels
from podium.kernels import dispatch
from podium.kernels import lambdas as kernels
from podium.learning.examples import Examples
from reference import lambdas as plain

METRICS = [
    "ndcg",
    "ndcg:exp",
    "ndcg@5:letor",
    "map",
    "map@4",
    "err(max_grade=2)",
    "err(max_grade=2)@3",
    "rbp",
    "mrr",
    "p@3",
]
KINDS = ["sum", "precision", "cascade"]


def examples(seed, queries=12, longest=11, grades=3):
    random = np.random.default_rng(seed)
    rows = [(q, i) for q in range(queries) for i in range(random.integers(2, longest))]
    labels = Labels.from_rows(*zip(*rows, strict=True), random.integers(0, grades, len(rows)).astype(float))
    return Examples.from_labels(labels.index, labels), random


@pytest.fixture(params=[10**9, 0], ids=["one thread", "threads"])
def both(request, monkeypatch):
    monkeypatch.setattr(dispatch, "THREAD_WORK", request.param)


@pytest.mark.parametrize("metric", METRICS)
def test_gradient_is_that_of_the_pairwise_objective(metric, both):
    found, random = examples(1)
    t = found.build_target(metric)
    scores = random.normal(size=len(found))
    slope = kernels.compute_lambdas(scores, found.starts, t)
    for q in range(len(found.labels)):
        rows = slice(*found.starts[q : q + 2].tolist())
        s = scores[rows].tolist()
        pairs = plain.weights_of_pairs(
            KINDS[t.kind],
            s,
            t.level[rows].tolist(),
            t.gain[rows].tolist(),
            t.discount.tolist(),
            int(t.limit[q]),
            t.scale[q],
        )
        np.testing.assert_allclose(slope[rows], plain.gradient(pairs, s), atol=1e-12)
        for i in range(len(s)):
            up, down = list(s), list(s)
            up[i] += 1e-6
            down[i] -= 1e-6
            difference = (plain.objective(pairs, up) - plain.objective(pairs, down)) / 2e-6
            assert slope[rows][i] == pytest.approx(difference, abs=1e-7)


@pytest.mark.parametrize("metric", METRICS)
def test_threads_change_nothing_with_ties(metric, monkeypatch):
    found, random = examples(2, queries=40, longest=30)
    t = found.build_target(metric)
    for scores in (
        random.normal(size=len(found)).round(1),
        np.zeros(len(found)),
        random.normal(size=len(found)) * 1e4,
    ):
        small = kernels.compute_lambdas(scores, found.starts, t)
        monkeypatch.setattr(dispatch, "THREAD_WORK", 0)
        np.testing.assert_allclose(
            kernels.compute_lambdas(scores, found.starts, t), small, rtol=1e-9, atol=1e-13
        )
        monkeypatch.undo()
        assert np.isfinite(small).all()


@pytest.mark.parametrize("metric", ["ndcg:exp", "map", "err(max_grade=2)"])
def test_tied_rows_of_one_grade_share_their_gradient(metric, both):
    labels = Labels.from_dict({"q": {"a": 1, "b": 1, "c": 0, "d": 0, "e": 2}})
    t = Examples.from_labels(labels.index, labels).build_target(metric)
    slope = kernels.compute_lambdas(np.zeros(5), np.array([0, 5]), t)
    assert slope[1] == pytest.approx(slope[2])  # the rows lie best grade first: e, a, b, c, d
    assert slope[3] == pytest.approx(slope[4])
    assert slope[0] < 0 < slope[3]
    assert slope.sum() == pytest.approx(0)


@pytest.mark.parametrize("adam", [True, False])
@pytest.mark.parametrize("batch", [1, 4])
def test_a_pass_of_the_linear_model(adam, batch, monkeypatch):
    """A step after every batch along the mean gradient; in several threads as in one."""
    found, random = examples(3)
    values = random.normal(size=(len(found), 3))
    t, visit = found.build_target("ndcg:exp"), random.permutation(len(found.labels))

    def run():
        start = [np.zeros(3), np.zeros(3), np.zeros(3), np.zeros(1, np.int64)]
        optimizer = kernels.OptimizerState(*start, adam, 0.05, 0.1, False)
        for _ in range(3):
            kernels.train_linear_pass(values, found.starts, t, visit, batch, optimizer)
        return optimizer.weights

    small = run()
    monkeypatch.setattr(dispatch, "THREAD_WORK", 0)
    np.testing.assert_allclose(run(), small, rtol=1e-9)
    weights = np.zeros(3)
    if not adam:
        for _ in range(3):
            for first in range(0, len(visit), batch):
                gradient = np.zeros(3)
                chosen = visit[first : first + batch]
                for q in chosen:
                    rows = slice(*found.starts[q : q + 2].tolist())
                    one = kernels.compute_lambdas(
                        values[rows] @ weights,
                        np.array([0, rows.stop - rows.start]),
                        t.select_queries(np.arange(rows.start, rows.stop), np.array([q])),
                    )
                    gradient += one @ values[rows]
                weights -= 0.05 * (gradient / len(chosen) + 0.1 * weights)
        np.testing.assert_allclose(small, weights, rtol=1e-9)


def test_positive_weights_stay_positive(both):
    found, _ = examples(4)
    values = -found.labels.grades[:, None] * np.ones((1, 2))  # worse items have larger features
    optimizer = kernels.OptimizerState(
        np.ones(2), np.zeros(2), np.zeros(2), np.zeros(1, np.int64), False, 5.0, 0.0, True
    )
    for _ in range(20):
        kernels.train_linear_pass(
            values, found.starts, found.build_target("ndcg"), found.find_useful_queries(), 1, optimizer
        )
    assert (optimizer.weights == 0).all()


@pytest.mark.parametrize("metric", ["ndcg:exp", "map", "err(max_grade=2)"])
def test_a_pair_weighs_the_product_of_its_rows(metric, both):
    found, random = examples(5, queries=6)
    scores, weight = random.normal(size=len(found)), random.uniform(0, 2, len(found))
    t = found.build_target(metric)
    slope = kernels.compute_lambdas(scores, found.starts, t._replace(weight=weight))
    for q in range(len(found.labels)):
        rows = slice(*found.starts[q : q + 2].tolist())
        s, w = scores[rows].tolist(), weight[rows]
        columns = (
            t.level[rows].tolist(),
            t.gain[rows].tolist(),
            t.discount.tolist(),
            int(t.limit[q]),
            t.scale[q],
        )
        pairs = plain.weights_of_pairs(KINDS[t.kind], s, *columns)
        weighed = {(i, j): v * w[i] * w[j] for (i, j), v in pairs.items()}
        np.testing.assert_allclose(slope[rows], plain.gradient(weighed, s), atol=1e-12)


# -- pairs (RankNet) -----------------------------------------------------------------------------------------------


def mean_pair_loss(pairs, scores) -> float:
    total = sum(w for *_, w in pairs)
    return sum(w * np.log1p(np.exp(scores[j] - scores[i])) for i, j, w in pairs) / total


@pytest.mark.parametrize("metric", ["tau_a", "pairs"])
def test_every_pair_of_grades_counts_alike(metric, both):
    """Finite differences of the mean logistic loss over the pairs of each query."""
    found, random = examples(5)
    t = found.build_target(metric)
    scores = random.normal(size=len(found))
    slope = kernels.compute_lambdas(scores, found.starts, t)
    for q in range(len(found.labels)):
        rows = slice(*found.starts[q : q + 2].tolist())
        grades, s = found.labels.grades[rows], scores[rows]
        pairs = [(i, j, 1.0) for i in range(len(s)) for j in range(len(s)) if grades[i] > grades[j]]
        if not pairs:
            assert not slope[rows].any()
            continue
        steps = 1e-5 * np.eye(len(s))
        finite = [(mean_pair_loss(pairs, s + e) - mean_pair_loss(pairs, s - e)) / 2e-5 for e in steps]
        np.testing.assert_allclose(slope[rows], finite, rtol=1e-6, atol=1e-9)


def test_given_pairs_may_contradict_each_other():
    pairs = {0: [("a", "b", 2.0), ("b", "c", 1.0), ("c", "a", 0.5)], 1: [("x", "y", 1.0), ("y", "x", 3.0)]}
    labels = Labels.from_pairs(pairs)
    found, random = Examples.from_labels(labels.index, labels), np.random.default_rng(0)
    target = found.build_target("tau_a")
    scores = random.normal(size=len(found))
    slope = kernels.compute_lambdas(scores, found.starts, target)
    row = {found.labels.index.items[r]: r for r in range(len(found))}

    def loss(at) -> float:
        return sum(mean_pair_loss([(row[a], row[b], w) for a, b, w in some], at) for some in pairs.values())

    finite = [(loss(scores + e) - loss(scores - e)) / 2e-5 for e in 1e-5 * np.eye(len(found))]
    np.testing.assert_allclose(slope, finite, rtol=1e-6, atol=1e-9)
    for q in (1, 0):  # the same by query, as batches take them
        rows = np.arange(*found.starts[q : q + 2])
        part = target.select_queries(rows, np.array([q]))
        np.testing.assert_allclose(
            kernels.compute_lambdas(scores[rows], np.array([0, len(rows)]), part), slope[rows], rtol=1e-12
        )
