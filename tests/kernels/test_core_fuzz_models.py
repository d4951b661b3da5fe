"""Compiled kernels of contests, choices and annotators against numpy references on random inputs.

Sums run in another order in numpy, so results agree to rounding, or to the tolerance of an iteration.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from podium.kernels import (
    annotator_em,
    bootstrap,
    contest_counts,
    contest_models,
    contest_scores,
    elo,
    markov_chains,
    matrix_completion,
    noisy_contests,
    plackett_luce,
    poisson_binomial,
    rank_centrality,
)
from podium.kernels.contest_solvers import DenseNewton, iterate_newton
from reference import (
    array_annotators,
    array_balance,
    array_bootstrap,
    array_chains,
    array_completion,
    array_contests,
    array_elo,
    array_likelihoods,
    array_rank_laws,
)
from reference.fuzz_inputs import sample_size, sample_votes

# -- contests and choices ------------------------------------------------------------------------------------------


def test_counts_of_contests(random, monkeypatch):
    votes = sample_votes(random)
    if random.random() < 0.5:
        monkeypatch.setattr(contest_counts, "TABLE", 0)  # all queries by sorting
    found = contest_scores.count_contests(votes)
    by_side = contest_scores.count_contests(votes, 1.0, np.zeros(len(votes.winner)))  # from all single votes
    expected = array_contests.count_contests(votes)
    for one, other, two in zip(found[1:7], by_side[1:7], expected, strict=True):
        np.testing.assert_array_equal(one, two)
        np.testing.assert_array_equal(other, two)
    wins, losses = contest_scores.count_wins_and_losses(found)
    up, down = found.won + found.tied / 2, found.lost + found.tied / 2
    for ours, one, two in ((wins, up, down), (losses, down, up)):
        by_slot = np.zeros(int(votes.slots[-1]))
        np.add.at(by_slot, found.first, one)
        np.add.at(by_slot, found.second, two)
        np.testing.assert_array_equal(ours, by_slot)


@pytest.mark.parametrize(
    ("model", "ties"),
    [
        ("bradley_terry", "half"),
        ("bradley_terry", "davidson"),
        ("bradley_terry", "rao_kupper"),
        ("thurstone", "half"),
    ],
)
def test_scores_from_contests(random, model, ties):
    met = contest_scores.count_contests(sample_votes(random))
    found = contest_scores.fit_contests(met, model=model, ties=ties, l2=0.01)
    for q in np.flatnonzero(np.diff(met.starts)).tolist():
        problem = contest_scores.build_query_problem(met, q, found.model, found.component)
        x = np.zeros(problem.unknowns)
        if problem.widths:
            x[problem.size] = contest_models.compute_start_width(problem.model.kind, 0.2)
        answer, _, _, converged = iterate_newton(DenseNewton(problem), x, 1e-9, 200)
        if converged and found.converged[q]:
            scores = found.scores[met.starts[q] : met.starts[q + 1]]
            np.testing.assert_allclose(scores, answer[: problem.size], atol=1e-6)


def test_chains(random):
    votes, teleport = sample_votes(random), float(random.uniform(0.05, 0.5))
    for kind in (1, 2, 3):
        found = markov_chains.solve_list_chain(votes, kind, teleport, 1e-13, 10_000)
        expected = array_chains.solve_chain(votes, kind, teleport)
        np.testing.assert_allclose(found.probability, expected, atol=1e-11)
    found = markov_chains.solve_majority_chain(votes, teleport, 1e-13, 10_000)
    np.testing.assert_allclose(found.probability, array_chains.solve_chain(votes, None, teleport), atol=1e-11)
    for q in range(len(votes.slots) - 1):
        for one, two in zip(
            markov_chains.build_ballots(votes, q), array_chains.build_ballots(votes, q), strict=True
        ):
            np.testing.assert_array_equal(one, two)


def test_plackett_luce(random):
    votes = sample_votes(random, 20)
    found = plackett_luce.fit_plackett_luce(votes, 0.5, 1e-11, 200)
    expected = array_likelihoods.fit_plackett_luce(votes, 0.5, 1e-11, 200)
    np.testing.assert_allclose(found.score, expected, atol=1e-7)


def test_completion(random):
    votes, combine = sample_votes(random, 20), int(random.integers(3))
    value = votes.rank.astype(np.float64)
    bottom = np.where(random.random(len(votes.list_weight)) < 0.5, np.inf, 2e6)
    how = matrix_completion.DifferenceRule(value, bottom, bool(random.integers(2)), combine, 0.5)
    if not (how.binary and np.isinf(bottom).all()):
        how = how._replace(combine=min(combine, 1))  # log odds need strengths of at most 1
    for q in range(len(votes.slots) - 1):
        found = matrix_completion.build_differences(votes, how, q)
        expected = array_completion.build_differences(votes, how, q)
        for one, two in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, two, rtol=1e-9, atol=1e-9 * (1 + np.abs(two).max(initial=0.0)))


def test_rank_centrality(random):
    met = contest_scores.count_contests(sample_votes(random))
    found = rank_centrality.compute_rank_centrality(met, 1.0, 1e-13, 10_000)
    half, total = met.tied / 2 + 1.0, met.won + met.lost + met.tied + 2.0
    label = contest_counts.find_weak_components(met)
    for q in np.flatnonzero(np.diff(met.starts)).tolist():
        rates = (met.lost + half) / total, (met.won + half) / total
        expected = array_balance.solve_balance(met, q, *rates, label)
        np.testing.assert_allclose(found.probability[met.starts[q] : met.starts[q + 1]], expected, atol=1e-9)


def test_elo(random):
    votes = sample_votes(random, 30)
    starts = np.concatenate(([0], np.cumsum(np.diff(votes.query_starts) + np.diff(votes.vote_starts))))
    order = np.arange(int(starts[-1])) - np.repeat(starts[:-1], np.diff(starts))
    expected = array_elo.play_events(votes, starts, order, 20.0, 0.01, np.zeros(int(votes.slots[-1])))
    np.testing.assert_allclose(elo.compute_elo(votes, 20.0, 0.01), expected, atol=1e-9)


def test_bootstrap(random):
    items, votes = int(random.integers(2, 12)), max(sample_size(random), 100)
    winner = random.integers(0, items, votes)
    loser = (winner + 1 + random.integers(0, items - 1, votes)) % items
    rows = contest_counts.orient_votes(winner, loser, random.random(votes) < 0.2, np.ones(votes))
    met = contest_counts.group_votes_by_pair(np.array([0, items]), rows)
    solution = contest_scores.fit_contests(met, l2=0.01)
    hessian = contest_scores.compute_hessian(met, solution, 0).to_dense()
    law = bootstrap.build_poisson_tables(np.concatenate((met.won, met.lost, met.tied)))
    found = bootstrap.fit_resamples(met, solution, np.linalg.inv(hessian), law, rounds=5, seed=1)
    inverse = bootstrap._center_inverse(np.linalg.inv(hessian))
    matrix = inverse * np.sqrt(np.outer(*[hessian.diagonal()] * 2))
    drawn = [bootstrap.resample_contests(met, law, k[None]) for k in bootstrap.derive_round_keys(1, 5)]
    start = np.tile(solution.scores, (5, 1))
    expected, done = array_bootstrap.iterate_rounds(met, True, 0.01, matrix, drawn, start, 1e-5)
    np.testing.assert_allclose(found[done], expected[done], atol=1e-4)


# -- annotators ----------------------------------------------------------------------------------------------------


def sample_annotator_votes(random):
    """Votes of some groups on the pairs of two queries."""
    sizes, groups = random.integers(2, 8, 2), int(random.integers(1, 6))
    starts = np.concatenate(([0], np.cumsum(sizes)))
    ends = [p for a, b in itertools.pairwise(starts) for p in itertools.combinations(range(a, b), 2)]
    first, second = np.array(ends, np.int32).T.copy()
    pair_starts = np.searchsorted(first, starts)
    rows = sample_size(random)
    pair = np.sort(random.integers(0, len(first), rows))
    won, lost = random.integers(0, 3, (2, rows)).astype(np.float64)
    zeros = np.zeros(rows, np.int64)
    votes = (starts, pair_starts, first, second, pair, random.integers(0, groups, rows), won, lost, zeros)
    return annotator_em.AnnotatorVotes(*votes), groups


def test_coins_and_expected_elo(random):
    given, groups = sample_annotator_votes(random)
    other = random.integers(0, groups, len(given.pair))
    coins = annotator_em.AccuracyModel(given.group, other, *random.random((3, groups)))
    truth = random.random(len(given.first))
    for one, two in zip(
        annotator_em.sum_agreement(given, coins, truth),
        array_annotators.sum_agreement(given, coins, truth),
        strict=True,
    ):
        np.testing.assert_allclose(one, two, rtol=1e-12)
    logs = np.log(random.random((2, groups)))
    for one, two in zip(
        annotator_em._sum_evidence(given, coins, *logs),
        array_annotators.sum_evidence(given, coins, *logs),
        strict=True,
    ):
        np.testing.assert_allclose(one, two, rtol=1e-11, atol=1e-12)
    won, lost = random.random((2, len(given.first)))
    found = annotator_em.compute_expected_elo(given, won, lost, 10.0, 0.05)
    expected = array_annotators.compute_expected_elo(given, won, lost, 10.0, 0.05)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


def test_noisy_contests(random):
    given, groups = sample_annotator_votes(random)
    known, slots = bool(random.integers(2)), int(given.starts[-1])
    prior = (np.zeros(0), np.zeros(0)) if known else tuple(random.random((2, groups)))
    rows = (given.first[given.pair], given.second[given.pair], given.group, given.won, given.lost)
    problem = noisy_contests.build_noisy_contests(rows, slots, 0.5, *prior)
    x = random.normal(size=slots + len(prior[0]))
    at = noisy_contests.compute_derivatives(problem, x)
    columns, sums = np.empty((3, len(rows[0]))), np.zeros((2, len(x)))
    array_annotators.compute_noisy_derivatives(problem, x, known, columns, sums)
    np.testing.assert_allclose((at.dd, at.dt, at.tt), columns, rtol=1e-9, atol=1e-12)
    v = random.normal(size=len(x))
    expected = array_annotators.multiply_noisy_hessian(problem, at, v)
    np.testing.assert_allclose(
        noisy_contests.multiply_hessian(problem, at, v), expected, rtol=1e-9, atol=1e-9
    )


def test_rank_laws(random):
    win = random.random((int(random.integers(0, 6)), int(random.integers(0, 80))))
    found = poisson_binomial.convolve_directly(win)
    np.testing.assert_array_equal(found, array_rank_laws.convolve_directly(win))
    rows, opponents = int(random.integers(1, 10)), int(random.integers(1, 30))
    first, last = np.sort(random.integers(0, opponents + 1, (2, rows)), axis=0)
    value, own = random.integers(0, 3, opponents).astype(float), random.integers(0, 3, rows).astype(float)
    many, unjudged_items = random.integers(1, 12, opponents), random.integers(0, 5, rows)
    unjudged_edge = np.where(unjudged_items > 0, random.choice([0.0, 0.1], rows), 0.0)
    uneven = np.array(
        [
            int(many[a:b][value[a:b] != o].sum()) + (n if s else 0)
            for a, b, o, s, n in zip(first, last, own, unjudged_edge, unjudged_items, strict=True)
        ]
    )
    size = uneven + random.integers(0, 5, rows)
    contests = poisson_binomial.OpponentTable(
        np.zeros(rows, np.int64), own, first, last, value, many, np.array([0.1]), 0.05, unjudged_edge, unjudged_items,
        size, uneven,
    )  # fmt: skip
    tilt = random.random(1)
    most = int(size.max())
    table = poisson_binomial.compute_discount_drops(contests, 1 / np.log2(np.arange(most + 2) + 2.0))
    found = poisson_binomial.compute_excess_discount(contests, tilt, table)
    expected = array_rank_laws.compute_excess_discount(contests, tilt, table)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-15)
    powers = poisson_binomial.approximate_log_discount(most)
    found = poisson_binomial.compute_power_excess(contests, tilt, powers)
    expected = array_rank_laws.compute_power_excess(contests, tilt, powers)
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-13)
