"""Compiled distributions, sums, graphs, matrices and likelihoods against scipy and numpy on random inputs."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import optimize, special
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, connected_components

from podium._core import graphs as core_graphs
from podium._core import matrix_completion as core_completion
from podium._core import multinomial as core_multinomial
from podium._core import plackett_luce as core_luce
from podium._core import ranking_expectations as core_expectations
from podium.kernels import (
    annotator_em,
    assignment,
    bootstrap,
    contest_counts,
    contest_models,
    contest_scores,
    contest_solvers,
    distributions,
    graphs,
    linear_ordering,
    markov_chains,
    matrix_completion,
    multinomial,
    ranking_expectations,
    smooth_sums,
)
from podium.kernels.sparse_rows import SparseRows
from reference import array_bootstrap, array_completion, array_likelihoods
from reference.fuzz_inputs import sample_size, sample_starts, sample_votes

# -- numbers, graphs and sparse matrices ---------------------------------------------------------------------------


def log_betainc(a, b, x):
    cdf = special.betainc(a, b, x)
    with np.errstate(divide="ignore"):
        return np.log(np.where(cdf > 1e-200, cdf, 0.0))  # scipy loses its digits below


def diverge(x, y):
    """Of two functions of scipy; what is lost in their difference is not compared."""
    value = special.gammaln(y) - special.gammaln(x) - (y - x) * special.digamma(x)
    return np.where(value > 1e-5 * (special.gammaln(x) + special.gammaln(y)), value, np.nan)


@pytest.mark.parametrize(
    ("name", "theirs", "kinds", "tolerance"),
    [
        ("normal_cdf", special.ndtr, "x", 1e-12),
        ("normal_log_cdf", special.log_ndtr, "x", 1e-12),
        ("normal_quantile", special.ndtri, "p", 1e-12),
        ("scaled_erfc", special.erfcx, "x", 1e-13),
        ("log_gamma", special.gammaln, "d", 1e-12),
        ("digamma", special.digamma, "d", 1e-12),
        ("log_gamma_divergence", diverge, "dd", 1e-9),
        ("student_cdf", special.stdtr, "dx", 1e-11),
        ("student_quantile", special.stdtrit, "dp", 1e-9),
        ("poisson_cdf", special.pdtr, "nd", 1e-10),
        ("gamma_quantile", special.gammaincinv, "dp", 1e-10),
        ("beta_log_cdf", log_betainc, "ddp", 1e-8),
        ("beta_quantile", special.betaincinv, "ddp", 1e-9),
    ],
)
def test_distributions(random, name, theirs, kinds, tolerance):
    rows = sample_size(random)
    sample = {
        "x": lambda: random.normal(0, random.choice([0.1, 1.0, 6.0]), rows),
        "p": lambda: random.uniform(0, 1, rows),
        "d": lambda: 10 ** random.uniform(0, 4, rows),
        "n": lambda: random.integers(0, 3_000, rows).astype(float),
    }
    arguments = [sample[kind]() for kind in kinds]
    expected = theirs(*arguments)
    known = np.isfinite(expected) & (np.abs(expected) > 1e-250)  # both underflow below
    found = np.asarray(getattr(distributions, name)(*arguments))
    np.testing.assert_allclose(found[known], expected[known], rtol=tolerance, atol=1e-13)


FUNCTIONS = (
    lambda d: np.tanh(d / 2) / 2,
    lambda d: 1 / (2 + 2 * np.cosh(np.minimum(np.abs(d), 700))),
    lambda d: np.abs(d) + 2 * np.log1p(np.exp(-np.abs(d))),
)


def test_smooth_sums(random):
    size, kind = sample_size(random), int(random.integers(3))
    x, mass = random.normal(0, random.choice([0.1, 3.0, 150.0]), size), random.normal(size=size)
    target = random.normal(0, 20, int(random.integers(0, 40)))
    values = FUNCTIONS[kind](target[:, None] - x)
    most = 1e-13 * (1 + np.abs(mass).sum() * max(1.0, np.abs(values).max(initial=0.0)))
    np.testing.assert_allclose(
        smooth_sums.sums(kind, x, mass, target), (values * mass).sum(axis=1), atol=most
    )
    sets = [random.permutation(size)[: int(random.integers(0, 60))] for _ in range(5)]
    weight, expected = random.normal(size=5), np.zeros(size)
    for members, w in zip(sets, weight, strict=True):
        expected[members] += w * (FUNCTIONS[kind](x[members, None] - x[members]) * mass[members]).sum(axis=1)
    starts = np.concatenate(([0], np.cumsum([len(s) for s in sets])))
    found = smooth_sums.within_sets(kind, starts, np.concatenate(sets), weight, x, mass)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)


def test_graphs(random):
    edges, nodes = sample_size(random), int(random.choice([1, 5, 200, 4_000]))
    source, target = random.integers(0, nodes, (2, edges))
    starts, targets = core_graphs.sort_edges(source, target, nodes)
    np.testing.assert_array_equal(starts, np.searchsorted(np.sort(source), np.arange(nodes + 1)))
    np.testing.assert_array_equal(targets, target[np.argsort(source, kind="stable")])
    graph = csr_array((np.ones(edges), (source, target)), shape=(nodes, nodes))
    weak = connected_components(graph, directed=True, connection="weak")[1]
    found = graphs.label_weak_components(source, target, nodes)
    np.testing.assert_array_equal(found, np.unique(weak, return_index=True)[1].argsort().argsort()[weak])
    strong = connected_components(graph, directed=True, connection="strong")[1]
    found = graphs.label_strong_components(source, target, nodes)
    pairs = set(zip(found.tolist(), strong.tolist(), strict=True))
    assert len(pairs) == len(np.unique(found)) == len(np.unique(strong))
    root, mark = int(random.integers(nodes)), np.zeros(nodes, bool)
    mark[breadth_first_order(graph, root, return_predecessors=False)] = True
    np.testing.assert_array_equal(graphs.mark_reachable(source, target, nodes, root), mark)


def test_sparse_products(random):
    n, (height, width) = sample_size(random), random.integers(1, 60, 2).tolist()
    rows, columns = random.integers(0, height, n), random.integers(0, width, n)
    values = random.integers(-9, 9, n).astype(float)
    found, expected = (
        SparseRows.from_entries(values, rows, columns, (height, width)),
        np.zeros((height, width)),
    )
    np.add.at(expected, (rows, columns), values)
    np.testing.assert_array_equal(found.to_dense(), expected)
    dense = random.integers(-5, 5, (width, 3)).astype(float)
    np.testing.assert_array_equal(found.multiply(dense), expected @ dense)
    np.testing.assert_array_equal(found.multiply_columns(), expected.T @ expected)


def test_linear_ordering(random):
    size = int(random.integers(0, 25))
    margin = random.integers(-5, 6, (size, size)).astype(float)
    margin = np.triu(margin, 1) - np.triu(margin, 1).T
    start = random.permutation(size)
    found = linear_ordering.improve_order(margin, start).tolist()
    assert sorted(found) == list(range(size))

    def value(order):
        return np.triu(margin[np.ix_(order, order)], 1).sum()

    assert value(found) >= value(start)
    for k, to in itertools.permutations(range(size), 2):  # no single item has a better place
        moved = [*found[:k], *found[k + 1 :]]
        assert value([*moved[:to], found[k], *moved[to:]]) <= value(found)


# -- likelihoods ---------------------------------------------------------------------------------------------------


def test_assignments(random):
    size = int(random.integers(1, 60))
    cost = random.integers(0, random.choice([2, 10, 1000]), (size, size)).astype(float)
    ours, (rows, columns) = assignment.assign_rows(cost), optimize.linear_sum_assignment(cost)
    assert sorted(ours.column.tolist()) == list(range(size))
    assert cost[np.arange(size), ours.column].sum() == cost[rows, columns].sum()
    reduced = cost - ours.row_price[:, None] - ours.column_price
    assert (reduced >= 0).all()
    assert (reduced[np.arange(size), ours.column] == 0).all()


def test_multinomial_model(random):
    size, experts, prior = int(random.integers(2, 60)), int(random.integers(1, 12)), random.uniform(0.1, 2)
    y = random.integers(0, 3, (experts, size, size)).astype(float)
    y[:, np.arange(size), np.arange(size)] = 0.0
    net, total, t = y.sum(axis=2) - y.sum(axis=1), y.sum(axis=(1, 2)), random.uniform(0, 2, experts)
    likelihood = array_likelihoods.Multinomial(net, total, t, prior)
    s, x = random.normal(size=(2, size))
    value, slope, diagonal, product = core_multinomial.differentiate(net, total, t, prior, s, x)
    gradient, bend = likelihood.slopes(s)
    scale = 1e-12 * (1 + np.abs(bend).max())
    np.testing.assert_allclose(value, likelihood.value(s), rtol=1e-11)
    np.testing.assert_allclose(slope, gradient, atol=10 * scale)
    np.testing.assert_allclose(diagonal, np.diag(bend), atol=10 * scale)
    np.testing.assert_allclose(product, bend @ x, atol=10 * size * scale)
    starts, offsets = np.array([0, experts]), np.arange(experts + 1) * size
    groups = multinomial.PreferenceGroups(np.array([0, size]), starts, offsets, net.ravel(), total)
    fit = multinomial.MultinomialFit(np.zeros(size), np.zeros(1), np.zeros(1, np.int64), np.zeros(1))
    multinomial.fit_scores(groups, t, prior, 1e-9, 100, fit, np.ones(1, np.bool_))
    if total.sum():
        # at the maximum nothing is gained in any direction
        assert np.abs(likelihood.slopes(fit.score)[0]).max() <= 1e-8 * likelihood.scale
        np.testing.assert_allclose(fit.value[0], likelihood.value(fit.score), rtol=1e-11)


def test_plackett_luce_derivatives(random):
    votes, prior = sample_votes(random, 30), float(random.uniform(0.1, 2))
    for q in np.flatnonzero(np.diff(votes.slots) > 1).tolist():
        size = int(np.diff(votes.slots)[q])
        s, x = random.normal(size=(2, size))
        found = core_luce.differentiate(votes, q, prior, s, x)
        stages = array_likelihoods.build_stages(markov_chains.build_ballots(votes, q), size, prior)
        likelihood = array_likelihoods.PlackettLuce(*stages)
        gradient, bend = likelihood.slopes(s)
        scale = 1e-11 * (1 + np.abs(bend).max())
        np.testing.assert_allclose(found[0], likelihood.value(s), rtol=1e-10)
        for one, two in zip(found[1:], (gradient, np.diag(bend), bend @ x), strict=True):
            np.testing.assert_allclose(one, two, atol=size * scale)


def test_expected_metrics(random):
    size, kind = int(random.integers(1, 7)), int(random.integers(3))
    omega = random.normal(0, random.choice([0.1, 1.0, 30.0]), size)
    grades = np.sort(random.integers(0, 4, size))[::-1]
    gain = grades / 4.0 if kind == 2 else (grades > 1).astype(float) if kind == 1 else 2.0**grades - 1
    discount = np.arange(1.0, size + 1) if kind == 1 else 1 / np.log2(np.arange(size) + 2.0)
    limit = int(random.integers(1, size + 1))
    falls = ranking_expectations.place_weights(size)
    found = core_expectations.compute_expected_metric(omega, gain, kind, discount, limit, falls)
    expected = ranking_expectations.compute_expected_metric(
        omega[None], gain[None], kind, discount, np.array([limit])
    )
    np.testing.assert_allclose(found[0], expected[0][0], rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(found[1], expected[1][0], rtol=1e-7, atol=1e-11)


def test_completed_matrices(random):
    size, shrink = int(random.integers(2, 12)), float(random.uniform(0.3, 1.0))
    scores = random.normal(size=size)
    known = np.triu(random.random((size, size)) < 0.8, 1).astype(float)
    known += known.T
    noise = random.normal(size=(size, size))
    table = known * (scores[:, None] - scores + 0.1 * (noise - noise.T))
    problem = array_completion.CompletionProblem(table, known, shrink)
    with np.errstate(all="ignore"):
        expected, steps, _ = problem.solve(1e-11, 3_000)
    found, done, _ = core_completion.complete_matrix(table, known, shrink, 1e-11, 3_000)
    if steps <= 3_000 and np.isfinite(expected).all():
        assert done <= 3_000
        np.testing.assert_allclose(found, expected, atol=1e-7)
    votes = sample_votes(random, 12)
    rule = matrix_completion.DifferenceRule(
        votes.rank.astype(float), np.full(len(votes.list_weight), np.inf), True, 0, 1.0
    )
    whole = matrix_completion.complete_matrices(votes, rule, 0.5, 1e-9, 500)
    for q, (a, b) in enumerate(itertools.pairwise(votes.slots.tolist())):
        if b - a > 1:
            single = core_completion.complete_matrix(
                *matrix_completion.build_differences(votes, rule, q), 0.5, 1e-9, 500
            )
            np.testing.assert_array_equal(whole.score[a:b], single[0])
            assert whole.steps[q] == single[1]


# -- contests and ratings ------------------------------------------------------------------------------------------


def sample_contests(random, items, votes):
    """Contests of one query, and the single votes behind them."""
    winner = random.integers(0, items, votes)
    loser = (winner + 1 + random.integers(0, items - 1, votes)) % items
    rows = contest_counts.orient_votes(winner, loser, random.random(votes) < 0.2, np.ones(votes))
    return contest_counts.group_votes_by_pair(np.array([0, items]), rows), rows


@pytest.mark.parametrize(
    ("model", "ties"),
    [
        ("bradley_terry", "half"),
        ("bradley_terry", "davidson"),
        ("bradley_terry", "rao_kupper"),
        ("thurstone", "half"),
    ],
)
def test_derivatives_of_contests(random, model, ties, monkeypatch):
    if random.random() < 0.5:
        monkeypatch.setattr(contest_solvers, "CHUNK", 1)
    met, _ = sample_contests(random, int(random.integers(2, 60)), max(sample_size(random), 1))
    if random.random() < 0.3:
        met = met._replace(side=random.integers(-1, 2, len(met.first)).astype(float))
    law = contest_models.resolve_contest_model(model, ties, 0.01, 1.0)
    problem = contest_scores.build_query_problem(met, 0, law, contest_scores.find_weak_components(met))
    x, v = random.normal(0, random.choice([0.5, 5.0]), problem.unknowns), random.normal(size=problem.unknowns)
    if problem.widths:
        x[problem.size] = 0.7
    dense, sparse = contest_solvers.DenseNewton(problem), contest_solvers.SparseNewton(problem, 1e-9)
    one, two = dense.compute_derivatives(x), sparse.compute_derivatives(x)
    scale = 1e-11 * (1 + np.abs(one.diagonal).max())
    for name in ("gradient", "bend", "border", "corner", "diagonal"):
        np.testing.assert_allclose(getattr(two, name), getattr(one, name), rtol=1e-9, atol=scale)
    assert sparse.compute_value(x) == pytest.approx(dense.compute_value(x), rel=1e-11)
    matrix = contest_models.build_dense_hessian(problem, one)
    np.testing.assert_allclose(sparse.multiply_hessian(two, v), matrix @ v, atol=100 * scale)


def test_resampled_clusters(random):
    items, votes = int(random.integers(2, 12)), max(sample_size(random), 100)
    met, rows = sample_contests(random, items, votes)
    starts = np.unique(sample_starts(random, votes))
    number = {pair: n for n, pair in enumerate(zip(met.first.tolist(), met.second.tolist(), strict=True))}
    pair = [number[ends] for ends in zip(rows.first.tolist(), rows.second.tolist(), strict=True)]
    clusters = bootstrap.Clusters(starts, np.array(pair), rows.won, rows.lost, rows.tied)
    solution = contest_scores.fit_contests(met, l2=0.01)
    hessian = contest_scores.compute_hessian(met, solution, 0).to_dense()
    found = bootstrap.fit_resamples(met, solution, np.linalg.inv(hessian), clusters, rounds=5, seed=1)
    inverse = bootstrap._center_inverse(np.linalg.inv(hessian))
    matrix = inverse * np.sqrt(np.outer(*[hessian.diagonal()] * 2))
    keys = bootstrap.derive_round_keys(1, 5)
    drawn = [bootstrap.resample_contests(met, clusters, key[None]) for key in keys]
    start = np.tile(solution.scores, (5, 1))
    expected, done = array_bootstrap.iterate_rounds(met, True, 0.01, matrix, drawn, start, 1e-5)
    np.testing.assert_allclose(found[done], expected[done], atol=1e-4)


def test_ratings(random):
    rows, items, groups, levels = sample_size(random), 30, 6, int(random.integers(2, 5))
    item, group = random.integers(0, items, rows), random.integers(0, groups, rows)
    level, weight = random.integers(0, levels, rows), random.integers(0, 3, groups).astype(float)
    prior, truth = random.random((groups, levels, levels)) + 0.1, random.random((items, levels))
    given = annotator_em.Ratings(items, item, group, level, weight, prior)
    rated = np.unique(item)
    counts = prior.copy()
    for a in range(levels):
        np.add.at(counts[:, a], (group, level), truth[item, a])
    share = truth[rated].sum(axis=0) + 1.0
    tables = np.log(counts) - np.log(counts.sum(axis=-1, keepdims=True))
    found = annotator_em._estimate_tables(given, truth, rated)
    np.testing.assert_allclose(found, [*tables.ravel(), *np.log(share / share.sum())], rtol=1e-10, atol=1e-12)
    odds = np.tile(np.log(share / share.sum()), (items, 1))
    np.add.at(odds, item, weight[group, None] * tables[group, :, level])
    chance = np.exp(odds - odds.max(axis=1, keepdims=True))
    believed = annotator_em._update_class_truths(given, rated, found)[2]
    np.testing.assert_allclose(believed, chance / chance.sum(axis=1, keepdims=True), rtol=1e-9, atol=1e-12)
