"""Compiled kernels of rankings, learning and matrices against numpy references on random inputs.

Sums run in another order in numpy, so results agree to rounding, or to the tolerance of an iteration.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from podium.kernels import (
    belief_lambdas,
    isotonic,
    lambdas,
    pairwise_votes,
    preference_matrices,
    preference_svd,
    ranking_expectations,
    ranking_measures,
    stagewise_model,
    standardize_columns,
)
from podium.kernels.preference_matrices import PreferenceMatrices
from reference import (
    array_beliefs,
    array_isotonic,
    array_lambdas,
    array_measures,
    array_stagewise,
    array_standardize,
    array_svd,
)
from reference.fuzz_inputs import sample_scores, sample_short_starts, sample_size, sample_starts, sample_votes

# -- rankings and learning -----------------------------------------------------------------------------------------


def sample_target(random, starts):
    """A metric target of rows sorted best grade first."""
    rows, queries = int(starts[-1]), len(starts) - 1
    group = np.repeat(np.arange(queries), np.diff(starts))
    level = random.integers(0, 4, rows).astype(np.int32)
    level = level[np.lexsort((-level, group))]
    kind = int(random.choice([0, 1, 2, lambdas.PAIRS]))
    gain = level / 4.0 if kind == 2 else (level > 1).astype(float) if kind == 1 else 2.0**level - 1
    width = int(np.diff(starts).max(initial=0)) + 1
    discount = np.arange(1.0, width + 1) if kind == 1 else 1 / np.log2(np.arange(width) + 2.0)
    return lambdas.MetricTarget(
        kind,
        gain,
        level,
        discount,
        random.integers(1, width + 1, queries),
        np.where(random.random(queries) < 0.2, 0.0, random.random(queries)),
        random.random(rows) if random.random() < 0.5 else None,
    )


def test_lambdas(random):
    starts = sample_starts(random, sample_size(random))
    target, scores = sample_target(random, starts), sample_scores(random, int(starts[-1]))
    expected = array_lambdas.compute_lambdas(scores, starts, target)
    largest = np.abs(expected).max(initial=0.0)
    found = lambdas.compute_lambdas(scores, starts, target)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12 * (1 + largest))


def test_linear_pass(random):
    starts = sample_short_starts(random, max(sample_size(random), 1))
    target, values = sample_target(random, starts), random.normal(size=(int(starts[-1]), 5))
    visit, adam = random.integers(0, len(starts) - 1, 15), bool(random.integers(2))
    states = [
        lambdas.OptimizerState(
            np.ones(5), np.zeros(5), np.zeros(5), np.zeros(1, np.int64), adam, 0.01, 0.1, False
        )
        for _ in range(2)
    ]
    lambdas.train_linear_pass(values, starts, target, visit, 4, states[0])
    array_lambdas.train_linear_pass(values, starts, target, visit, 4, states[1])
    np.testing.assert_allclose(states[0].weights, states[1].weights, rtol=1e-7, atol=1e-9)


def test_crf_pass_and_subsets(random):
    starts = sample_starts(random, max(sample_size(random), 1))
    filled = np.flatnonzero(np.diff(starts))
    visit, size = random.choice(filled, 20), int(random.integers(1, 6))
    target, uniform = sample_target(random, starts), random.random((20, 2 * size))
    rows = ranking_expectations.sample_subsets(starts, target.level, visit, size, uniform)
    expected = array_lambdas.sample_subsets(starts, target.level, visit, size, uniform)
    np.testing.assert_array_equal(rows, expected)
    count = sample_size(random)
    entries = sample_starts(random, count, int(starts[-1]))
    columns = int(random.integers(1, 6))
    group, values = random.integers(0, 3, count), random.normal(size=(count, columns))
    potentials = ranking_expectations.Potentials(entries, group, values)
    weight = random.random(len(starts) - 1)
    states = [
        lambdas.OptimizerState(
            np.full(3 * columns, 0.1), np.zeros(3 * columns), np.zeros(3 * columns), np.zeros(1, np.int64),
            True, 0.01, 0.0, False,
        )
        for _ in range(2)
    ]  # fmt: skip
    loss = ranking_expectations.train_crf_pass(potentials, target, weight, visit, rows, 3, states[0])
    other = array_lambdas.train_crf_pass(potentials, target, weight, visit, rows, 3, states[1])
    np.testing.assert_allclose(loss, other, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(states[0].weights, states[1].weights, rtol=1e-6, atol=1e-8)


def test_walks_and_earlier_rows(random):
    rows = sample_size(random)
    starts = sample_starts(random, rows)
    segments = len(starts) - 1
    query = random.integers(-1, segments, int(random.integers(1, 20)))
    rankings = ranking_measures.Rankings(
        query, starts, random.permutation(rows).astype(np.int32), random.integers(0, 4, rows).astype(np.int32)
    )
    gains = ([0.0, 0.5, 1.0, 0.0], [0.0, 1.0, 1.0, 0.0], [0.0, 0.3, 0.9, 0.0], [0.0, 1.0, 1.0, -1.0])
    walks = [
        ranking_measures.RankingWalk(
            kind, np.array(gains[kind]), np.arange(1.0, rows + 2), random.integers(0, 30, len(query))
        )
        for kind in range(4)
    ]
    found = ranking_measures.walk_rankings(rankings, walks)
    np.testing.assert_allclose(found, array_measures.walk_rankings(rankings, walks), rtol=1e-12)
    value = random.integers(0, random.choice([2, 50, 1000]), rows)
    for one, two in zip(
        ranking_measures.count_earlier(starts, value),
        array_measures.count_earlier(starts, value),
        strict=True,
    ):
        np.testing.assert_array_equal(one, two)


def test_belief_lambdas(random):
    starts = sample_short_starts(random, sample_size(random), 600)
    scores, belief = (
        sample_scores(random, int(starts[-1])),
        random.integers(0, 5, int(starts[-1])).astype(float),
    )
    cutoff = int(random.integers(1, 12))
    found = belief_lambdas.compute_belief_lambdas(scores, belief, starts, cutoff)
    expected = array_beliefs.compute_belief_lambdas(scores, belief, starts, cutoff)
    for one, two in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-8, atol=1e-9 * (1 + np.abs(two).max(initial=0.0)))


# -- matrices and columns ------------------------------------------------------------------------------------------


def sample_single_lists(random):
    """One list per query, and no votes."""
    lengths = random.integers(1, 30, 1 + sample_size(random) // 30)
    starts = np.concatenate(([0], np.cumsum(lengths)))
    rank = np.concatenate([np.sort(random.integers(1, random.choice([5, 10**6]), n)) for n in lengths])
    item = np.concatenate([a + random.permutation(n) for a, n in zip(starts[:-1], lengths, strict=True)])
    queries, none = np.arange(len(starts)), np.zeros(0, np.int32)
    return pairwise_votes.Votes(
        starts, queries, starts, item.astype(np.int32), rank.astype(np.int32), np.ones(len(lengths)),
        0 * queries, none, none, none.astype(bool), np.zeros(0), bool(random.integers(2)),
    )  # fmt: skip


def sample_matrices(random):
    """Pairwise matrices of lists and votes."""
    votes = sample_single_lists(random) if random.random() < 0.3 else sample_votes(random, 20)
    value = votes.rank.astype(np.float64)
    return PreferenceMatrices(
        votes.slots, np.arange(len(votes.slots) - 1), votes.query_starts, votes.starts, votes.item, value,
        bool(random.integers(2)), votes.below, votes.vote_starts, votes.winner, votes.loser,
        votes.vote_weight,
    )  # fmt: skip


def test_leading_vectors(random):
    m = sample_matrices(random)
    found = preference_svd.compute_leading_vectors(m)
    # one at a time: the reference iterates all of them until the slowest has converged
    parts = [preference_matrices.select_matrices(m, np.array([g])) for g in range(len(m.query))]
    expected = [array_svd.compute_leading_vectors(part).sigma[0] for part in parts]
    np.testing.assert_allclose(found.sigma, expected, rtol=1e-9, atol=1e-9)
    for g, (a, b) in enumerate(itertools.pairwise(m.starts_out)):
        # both satisfy Y v = sigma u; where two values are nearly equal the vectors may differ
        assert np.linalg.norm(found.v[a:b]) == pytest.approx(1.0) or found.sigma[g] == 0.0
    operator = array_svd.MatrixOperator(m)
    np.testing.assert_allclose(
        operator.multiply(found.v),
        found.u * found.sigma[m.owner],
        atol=1e-6 * (1 + found.sigma.max(initial=0.0)),
    )
    row, column = preference_svd.sum_rows_and_columns(m)
    ones = np.ones(operator.size)
    np.testing.assert_allclose(row, operator.multiply(ones), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(column, operator.multiply_transposed(ones), rtol=1e-9, atol=1e-9)


def test_stages(random):
    rows = sample_size(random)
    starts, experts = sample_short_starts(random, rows, 60), int(random.integers(1, 5))
    places, theta = random.integers(1, 30, (rows, experts)) / 2, random.integers(0, 4, experts).astype(float)
    distance = str(random.choice(["kendall", "footrule"]))
    found = stagewise_model.compute_stage_scores(places, starts, theta, distance)
    np.testing.assert_array_equal(
        found, array_stagewise.compute_stage_scores(places, starts, theta, distance)
    )


def test_standardized_columns_and_falling_values(random):
    rows = sample_size(random)
    starts = sample_starts(random, rows)
    values = random.normal(size=(rows, 3)) * [1.0, 1e150, 1e-150]
    values[random.random((rows, 3)) < 0.1] = np.nan
    values[:, 0] = np.round(values[:, 0])
    by_range = bool(random.integers(2))
    found = standardize_columns.standardize_by_group(starts, values, by_range=by_range)
    if rows:
        largest = np.fmax.reduce(np.abs(values), axis=0, initial=0.0)
        scaled = np.ldexp(values, np.minimum(-np.frexp(largest)[1], 1000))
        expected = array_standardize.standardize_by_group(starts, scaled, by_range)
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
    order = isotonic.build_block_order(np.repeat(-np.arange(rows, dtype=float), 1), starts)
    given = sample_scores(random, rows)
    falling = isotonic.project_isotonic(given, order)
    expected = array_isotonic.fit_falling(given[order.rows], starts)
    np.testing.assert_allclose(falling[order.rows], expected, rtol=1e-9, atol=1e-9)
