"""Plackett-Luce, Mallows, the multinomial model and completion: kernels against definitions and finite differences."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import approx_fprime, minimize, minimize_scalar

from podium import Preferences
from podium._core import matrix_completion as core_completion
from podium._core import multinomial as core_multinomial
from podium._core import plackett_luce as core_luce
from podium.kernels import mallows, matrix_completion, multinomial
from podium.kernels.comparison_graph import find_connections
from podium.kernels.markov_chains import build_ballots
from podium.methods.majority import collect_votes
from reference import array_completion, array_likelihoods, newton
from reference import completion as plain_completion
from reference import multinomial as plain_multinomial
from reference import plackett_luce as plain_luce

ITEMS = "abcdef"


def random_blocks(random, size):
    """Tied blocks of some of the items, best first."""
    held = random.permutation(size)[: random.integers(1, size + 1)]
    grades = np.sort(random.integers(0, size, len(held)))
    return [held[grades == g].tolist() for g in np.unique(grades)]


def votes_of(rankings, below=False):
    """Preferences of one query, one expert a ranking, with all items as candidates."""
    rows = [
        (e, ITEMS[i], rank)
        for e, blocks in enumerate(rankings)
        for rank, block in enumerate(blocks, 1)
        for i in block
    ]
    expert, item, rank = zip(*rows, strict=True)
    size = len(ITEMS)
    p = Preferences.from_rows(
        ["q"] * len(rows), expert, item, rank=rank,
        candidates=(["q"] * size, list(ITEMS)), unlisted="below" if below else "unknown",
    )  # fmt: skip
    return collect_votes(p, np.ones(len(p.experts)))[0]


def hessian(slope, at):
    """The Hessian from differences of the gradient."""
    h, eye = 1e-6, np.eye(len(at))
    return np.array([(slope(at + h * e) - slope(at - h * e)) / (2 * h) for e in eye])


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("below", [False, True])
def test_plackett_luce_slopes(seed, below):
    random = np.random.default_rng(seed)
    rankings = [random_blocks(random, 6) for _ in range(5)]
    votes, prior, s = votes_of(rankings, below), 0.7, random.normal(size=6)
    likelihood = array_likelihoods.PlackettLuce(
        *array_likelihoods.build_stages(build_ballots(votes, 0), 6, prior)
    )

    def direct(x):
        tie_of_all = ([list(range(6))], prior * 6 / 5, False)
        return plain_luce.log_likelihood([*((r, 1.0, below) for r in rankings), tie_of_all], x, 6)

    np.testing.assert_allclose(likelihood.value(s), direct(s))
    gradient, bend = likelihood.slopes(s)
    np.testing.assert_allclose(gradient, approx_fprime(s, direct), atol=1e-5)
    np.testing.assert_allclose(-bend, hessian(lambda x: likelihood.slopes(x)[0], s), atol=1e-6)
    x = random.normal(size=6)
    value, slope, diagonal, product = core_luce.differentiate(votes, 0, prior, s, x)
    np.testing.assert_allclose(value, likelihood.value(s))
    np.testing.assert_allclose(slope, gradient, atol=1e-12)
    np.testing.assert_allclose(diagonal, np.diag(bend), atol=1e-12)
    np.testing.assert_allclose(product, bend @ x, atol=1e-12)


def test_newton_finds_a_far_maximum_and_says_when_it_does_not():
    class Far:
        """-cosh around a point, with two scores that only their difference moves."""

        scale = 1.0

        def value(self, s):
            return -np.cosh(s[0] - s[1] - 9)

        def slopes(self, s):
            slope, bend = -np.sinh(s[0] - s[1] - 9), np.cosh(s[0] - s[1] - 9)
            return np.array([slope, -slope]), bend * np.array([[1.0, -1.0], [-1.0, 1.0]])

    score, gradient, steps, value = newton.maximize_concave(Far(), np.zeros(2), 1e-12, 100)
    np.testing.assert_allclose(score, [4.5, -4.5])
    assert (gradient <= 1e-12, steps < 100, value) == (True, True, -1.0)
    assert newton.maximize_concave(Far(), np.zeros(2), 1e-12, 3)[2] == 4


@pytest.mark.parametrize("seed", range(5))
def test_mallows_normaliser_and_dispersion(seed):
    random = np.random.default_rng(seed)
    lists = []
    for _ in range(6):
        word = np.sort(random.integers(0, 3, random.integers(1, 6)))
        word = np.unique(word, return_inverse=True)[1]
        swapped = random.permutation(word) if random.random() < 0.5 else word
        lists.append((tuple(swapped.tolist()), float(random.integers(1, 4))))
    sizes = np.zeros(8)
    for word, weight in lists:
        sizes[len(word)] += weight
        for size in np.bincount(word):
            sizes[size] -= weight
    distance = sum(weight * plain_luce.inversions(word) for word, weight in lists)
    for phi in (0.05, 0.5, 0.99, 1.0):
        expected = plain_luce.mallows_log_likelihood(lists, phi)
        np.testing.assert_allclose(mallows.compute_log_likelihood(sizes, distance, phi), expected, atol=1e-12)
    phi = mallows.estimate_dispersion(sizes, distance)
    best = minimize_scalar(
        lambda x: -plain_luce.mallows_log_likelihood(lists, x),
        bounds=(1e-9, 1), method="bounded", options={"xatol": 1e-10},
    )  # fmt: skip
    np.testing.assert_allclose(phi, best.x, atol=1e-5)


def test_block_sizes_count_lists_ties_unlisted_blocks_and_comparisons():
    votes = votes_of([[[0, 1], [2]], [[3]]], below=True)
    # two lists of six; blocks 2, 1, 3 unlisted; and 1, 5 unlisted
    np.testing.assert_array_equal(mallows.count_block_sizes(votes)[:7], [0, -2, -1, -1, 0, -1, 2])
    pairs = Preferences.from_comparisons(
        ["q"] * 3, ["j"] * 3, ["a", "a", "b"], ["b", "b", "c"], tie=[False, True, False]
    )
    assert mallows.count_block_sizes(collect_votes(pairs, np.ones(1))[0])[2] == 2


def random_groups(random, size, experts):
    y = random.integers(0, 3, (experts, size, size)).astype(float)
    y[:, np.arange(size), np.arange(size)] = 0.0
    net = (y.sum(axis=2) - y.sum(axis=1)).ravel()
    starts, offsets = np.array([0, experts]), np.arange(experts + 1) * size
    return y, multinomial.PreferenceGroups(np.array([0, size]), starts, offsets, net, y.sum(axis=(1, 2)))


@pytest.mark.parametrize("seed", range(4))
def test_multinomial_slopes(seed):
    random = np.random.default_rng(seed)
    y, groups = random_groups(random, 5, 3)
    s, t, prior = random.normal(size=5), random.uniform(0, 2, 3), 0.3
    net = groups.net.reshape(3, 5)
    likelihood = array_likelihoods.Multinomial(net, groups.total, t, prior)

    def direct(x):
        return plain_multinomial.log_posterior(y, x, t, prior)

    np.testing.assert_allclose(likelihood.value(s), direct(s))
    gradient, bend = likelihood.slopes(s)
    np.testing.assert_allclose(gradient, approx_fprime(s, direct), atol=1e-4)
    np.testing.assert_allclose(-bend, hessian(lambda x: likelihood.slopes(x)[0], s), atol=1e-5)
    x = random.normal(size=5)
    value, slope, diagonal, product = core_multinomial.differentiate(net, groups.total, t, prior, s, x)
    np.testing.assert_allclose(value, direct(s))
    np.testing.assert_allclose(slope, gradient, atol=1e-11)
    np.testing.assert_allclose(diagonal, np.diag(bend), atol=1e-11)
    np.testing.assert_allclose(product, bend @ x, atol=1e-11)


@pytest.mark.parametrize("seed", range(3))
def test_adherence_slopes(seed):
    random = np.random.default_rng(seed)
    y, groups = random_groups(random, 5, 3)
    s, t = random.normal(size=5), random.uniform(0.1, 2, 3)
    slope, bend = multinomial.compute_adherence_slopes(groups, t, s)
    found = approx_fprime(t, lambda x: plain_multinomial.log_posterior(y, s, x, 0.0))
    np.testing.assert_allclose(slope, found, atol=1e-4)
    again = hessian(lambda x: multinomial.compute_adherence_slopes(groups, x, s)[0], t)
    np.testing.assert_allclose(bend, np.diag(again), atol=1e-4)


def test_the_common_scale_minimises_the_priors():
    t = np.array([0.2, 1.5, 3.0])
    c = multinomial._solve_rescaling(np.array([7.0]), 0.3, np.array([t.sum()]), np.array([(t**2).sum()]), 2.0)
    best = minimize_scalar(lambda x: 0.3 * x * x * 7 + 2 * ((t / x - 1) ** 2).sum(), bounds=(0.01, 9))
    np.testing.assert_allclose(c, best.x, rtol=1e-4)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("below", [False, True])
@pytest.mark.parametrize("combine", range(3))
def test_differences(seed, below, combine):
    random = np.random.default_rng(seed)
    rankings = [random_blocks(random, 6) for _ in range(5)]
    votes = votes_of(rankings, below)
    value, bottom = votes.rank.astype(float), np.full(5, np.inf)
    how = matrix_completion.DifferenceRule(value, bottom, True, combine, 1.0)
    table, known = array_completion.build_differences(votes, how, 0)
    net, filled = matrix_completion.build_differences(votes, how, 0)
    np.testing.assert_allclose(net, table, atol=1e-13)
    np.testing.assert_array_equal(filled, known)
    np.testing.assert_allclose(table, -table.T)
    if not below and combine == 0:
        ranks = [[next((n for n, b in enumerate(r, 1) if i in b), 0) for i in range(6)] for r in rankings]
        direct = plain_completion.build_differences([(r, 1.0) for r in ranks], 6, "binary")
        np.testing.assert_allclose((table, known), direct)


def random_table(random, size, share):
    table = random.normal(size=(size, size))
    known = np.triu(random.random((size, size)) < share, 1).astype(float)
    known += known.T
    return (table - table.T) * known, known


@pytest.mark.parametrize("seed", range(4))
def test_projection_is_the_truncated_decomposition(seed):
    random = np.random.default_rng(seed)
    table = random_table(random, 7, 1.0)[0]
    plane = array_completion.find_start_plane(table)
    expected = plain_completion.rank_two(table)
    np.testing.assert_allclose(array_completion.project_rank_two(table, plane, 0.0)[0], expected, atol=1e-6)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("shrink", [1.0, 0.3])
def test_completion_has_the_limit_of_plain_projections(seed, shrink):
    random = np.random.default_rng(seed)
    scores = random.normal(size=7)
    noise, known = random_table(random, 7, 0.7)
    table = known * (scores[:, None] - scores + 0.2 * noise)
    expected = plain_completion.complete_matrix(table, known, shrink, 400)
    s, steps, change = array_completion.CompletionProblem(table, known, shrink).solve(1e-11, 5000)
    np.testing.assert_allclose(s, expected.mean(axis=1), atol=1e-8)
    assert (steps <= 5000, change <= 1e-11) == (True, True)
    again, done, whole = core_completion.complete_matrix(table, known, shrink, 1e-11, 5000)
    np.testing.assert_allclose(again, s, atol=1e-9)
    assert done <= 5000
    np.testing.assert_allclose(whole, expected, atol=1e-8)


def test_completion_recovers_scores_from_some_of_the_differences():
    random = np.random.default_rng(1)
    scores = np.sort(random.normal(size=12))
    _, known = random_table(random, 12, 0.7)
    table = known * (scores[:, None] - scores)
    found, steps, _ = array_completion.CompletionProblem(table, known, 0.0).solve(1e-12, 100_000)
    assert steps < 100_000
    np.testing.assert_allclose(found, scores - scores.mean(), atol=1e-8)


def test_extrapolation_never_makes_the_fit_worse():
    random = np.random.default_rng(3)
    table, known = random_table(random, 8, 0.5)
    problem = array_completion.CompletionProblem(table, known, 0.05)
    errors = []
    for steps in range(2, 80):
        problem.solve(1e-15, steps)
        errors.append(problem.error)
    assert (np.diff(errors) <= 1e-9 * errors[0]).all()


def test_connections():
    rated = {"a": {"x": 2, "y": 1}, "b": {"y": 2, "x": 1}, "c": {"u": 2, "v": 1}}
    p = Preferences.from_lists({"q": rated, "r": {"d": {"s": 1, "t": 1}}})
    found = find_connections(collect_votes(p, np.ones(len(p.experts)))[0])
    items = p.index.items.tolist()
    assert [i for i, above in zip(items, found.above, strict=True) if not above] == ["v"]
    assert [i for i, below in zip(items, found.below, strict=True) if not below] == ["u"]
    group, level = dict(zip(items, found.group, strict=True)), dict(zip(items, found.level, strict=True))
    assert group["u"] == group["v"] != group["x"]
    assert level["u"] != level["v"]
    assert level["x"] == level["y"]
    assert level["s"] == level["t"]


def test_unlisted_items_are_below_in_connections():
    p = Preferences.from_lists({"q": {"a": ["x", "y"], "b": ["z"], "c": ["y", "z", "x"]}}, unlisted="below")
    found = find_connections(collect_votes(p, np.ones(3))[0])
    assert found.below.tolist() == [True, True, True]
    assert len(set(found.level)) == 1
    weightless = find_connections(collect_votes(p, np.array([1.0, 0.0, 0.0]))[0])
    assert weightless.above.tolist() == [True, True, False]


def test_whole_fits_agree_with_a_general_optimizer():
    random = np.random.default_rng(5)
    y, groups = random_groups(random, 5, 3)
    t = np.array([0.5, 1.0, 2.0])
    fit = multinomial.MultinomialFit(np.zeros(5), np.zeros(1), np.zeros(1, np.int64), np.zeros(1))
    multinomial.fit_scores(groups, t, 0.3, 1e-11, 100, fit, np.ones(1, np.bool_))
    best = minimize(
        lambda x: -plain_multinomial.log_posterior(y, x, t, 0.3), np.zeros(5), options={"gtol": 1e-9}
    )
    np.testing.assert_allclose(fit.score, best.x, atol=1e-6)
