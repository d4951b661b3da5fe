"""Expected metrics over all rankings: plain and compiled kernels against the definition and finite differences."""

from __future__ import annotations

import numpy as np
import pytest

from podium.kernels import dispatch, ranking_expectations
from podium.kernels.lambdas import PAIRS, MetricTarget, OptimizerState
from podium.kernels.ranking_measures import CASCADE, PRECISION, SUM
from reference import permutations as reference

KINDS = {"sum": SUM, "precision": PRECISION, "cascade": CASCADE}


def problem(kind: str, n: int, seed: int):
    """omega, gains from the best, discounts and a limit."""
    random = np.random.default_rng((seed, n))
    gain = (
        random.integers(0, 2, n).astype(float)
        if kind == "precision"
        else random.choice([0.0, 0.2, 0.7, 1.0], n)
    )
    discount = np.arange(1.0, n + 1) if kind == "precision" else 1 / np.log2(np.arange(n) + 2)
    return random.normal(0, 2, n), np.sort(gain)[::-1].copy(), discount, int(random.integers(1, n + 1))


def plain(omega, gain, kind, discount, limit):
    value, slope = ranking_expectations.compute_expected_metric(
        omega[None], gain[None], kind, discount, np.array([limit])
    )
    return value[0], slope[0]


def compiled(omega, gain, kind, discount, limit):
    from podium._core.ranking_expectations import compute_expected_metric

    return compute_expected_metric(
        omega, gain, kind, discount, limit, ranking_expectations.place_weights(len(omega))
    )


@pytest.mark.parametrize("body", [plain, compiled])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_expectation_and_gradient_by_definition(body, kind, n) -> None:
    for seed in range(4):
        omega, gain, discount, limit = problem(kind, n, seed)

        def value(at, gain=gain, discount=discount, limit=limit):
            return reference.compute_expected_metric(at.tolist(), gain.tolist(), kind, discount, limit)

        found, slope = body(omega, gain, KINDS[kind], discount, limit)
        np.testing.assert_allclose(found, value(omega), rtol=1e-12, atol=1e-14)
        h = 1e-5 * np.eye(n)
        finite = [(value(omega + e) - value(omega - e)) / 2e-5 for e in h]
        np.testing.assert_allclose(slope, finite, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [6, 7])
def test_compiled_equals_plain(kind, n) -> None:
    for seed in range(3):
        omega, gain, discount, limit = problem(kind, n, seed)
        a, b = (body(omega, gain, KINDS[kind], discount, limit) for body in (plain, compiled))
        np.testing.assert_allclose(a[0], b[0], rtol=1e-12)
        np.testing.assert_allclose(a[1], b[1], rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize("body", [plain, compiled])
def test_scores_of_any_size(body) -> None:
    """However sharp the distribution, nothing overflows, and the best ranking takes all."""
    gain, discount = np.array([1.0, 0.5, 0.0, 0.0]), 1 / np.log2(np.arange(4) + 2)
    for size in (1e3, 1e8, 1e300):
        for omega, right in (([3, 2, 1, 0], True), ([-3, -2, -1, 0], False)):
            value, slope = body(size * np.array(omega, float), gain, SUM, discount, 4)
            assert np.isfinite(slope).all()
            assert (value == pytest.approx(1.0)) == right
    value, _ = body(np.zeros(4), gain, SUM, discount, 4)  # all rankings alike: the mean of the discounts
    assert value == pytest.approx(discount.mean() * 1.5 / (discount[0] + 0.5 * discount[1]))


def test_most_probable_ranking_is_the_sort() -> None:
    random = np.random.default_rng(0)
    for _ in range(10):
        omega = random.normal(size=5)
        assert reference.most_probable(omega.tolist()) == tuple(np.argsort(-omega).tolist())


# -- subsets --------------------------------------------------------------------------------------------------


def draw(level, size, visits, seed=0):
    uniform = np.random.default_rng(seed).random((visits, 2 * size))
    starts = np.array([0, 3, 3 + len(level)])
    levels = np.concatenate(([9, 9, 9], level)).astype(np.int32)
    visit = np.ones(visits, np.int64)
    return ranking_expectations.sample_subsets(starts, levels, visit, size, uniform)


@pytest.mark.parametrize("size", [2, 4, 6])
@pytest.mark.parametrize(
    "level", [[2, 1, 1, 0, 0, 0, 0, 0, 0], [3, 2, 1, 0, 0, 0, 0], [1, 0], list(range(9, 0, -1))]
)
def test_subsets_hold_every_grade(level, size) -> None:
    found = draw(level, size, 400)
    levels, seen = len(set(level)), set()
    for rows in found:
        chosen = [int(r) - 3 for r in rows if r >= 0]
        seen |= set(chosen)
        assert len(chosen) == min(size, len(level))
        assert chosen == sorted(set(chosen))
        assert len({level[i] for i in chosen}) == min(levels, len(chosen))
    assert seen == set(range(len(level)))


def test_subsets_are_drawn_evenly() -> None:
    """One item of each grade, the others any: the chance of an item is known."""
    level, size, visits = [1, 1, 0, 0, 0, 0, 0, 0], 4, 20_000
    found = draw(level, size, visits)
    share = np.bincount(found.ravel() - 3) / visits
    expected = [1 / 2 + 1 / 2 * 2 / 6] * 2 + [1 / 6 + 5 / 6 * 2 / 6] * 6
    np.testing.assert_allclose(share, expected, atol=0.02)


# -- pairs ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [2, 3, 5])
@pytest.mark.parametrize("cyclic", [False, True])
def test_expected_pairs_by_definition(n, cyclic) -> None:
    """The expected share of pairs in the right order over all rankings, and its derivative; cycles included."""
    from podium._core.ranking_expectations import compute_expected_metric

    random = np.random.default_rng(n)
    omega, weights = random.normal(0, 2, n), random.random((n, n)) * (1 - np.eye(n))
    pairs = weights if cyclic else np.triu(weights, 1)

    def value(at) -> float:
        return sum(
            chance * sum(pairs[order[p], order[q]] for p in range(n) for q in range(p + 1, n))
            for order, chance in reference.distribution(at.tolist())
        ) / pairs.sum()  # fmt: skip

    falls, ones = ranking_expectations.place_weights(n), np.ones(n)
    compiled_result = compute_expected_metric(omega, 0 * ones, PAIRS, ones, n, falls, pairs)
    plain_result = ranking_expectations.compute_expected_metric(
        omega[None], 0 * ones[None], PAIRS, ones, np.array([n]), pairs[None]
    )
    finite = [(value(omega + e) - value(omega - e)) / 2e-5 for e in 1e-5 * np.eye(n)]
    for mean, slope in (compiled_result, (plain_result[0][0], plain_result[1][0])):
        assert mean == pytest.approx(value(omega), rel=1e-12)
        np.testing.assert_allclose(slope, finite, rtol=1e-6, atol=1e-9)
    with pytest.raises(ValueError, match="no pairs"):
        compute_expected_metric(omega, 0 * ones, PAIRS, ones, n, falls)


def test_weights_of_pairs_are_looked_up() -> None:
    level = np.array([2, 1, 1, 0], np.int32)
    target = MetricTarget(PAIRS, np.zeros(4), level, np.ones(4), np.array([4]), np.ones(1))
    rows = np.array([[0, 1, 3], [1, 2, -1]])
    expected = [[[0, 1, 1], [0, 0, 1], [0, 0, 0]], np.zeros((3, 3))]
    np.testing.assert_array_equal(ranking_expectations.weigh_pairs(target, rows), expected)
    given = (np.array([0, 3]), np.array([0, 1, 3]), np.array([1, 3, 0]), np.array([2.0, 1.0, 0.5]))
    expected = [[[0, 2, 0], [0, 0, 1], [0.5, 0, 0]], np.zeros((3, 3))]
    np.testing.assert_array_equal(
        ranking_expectations.weigh_pairs(target._replace(pairs=given), rows), expected
    )


def test_subsets_of_pairs_hold_a_pair() -> None:
    starts, visits = np.array([0, 3, 23]), 4000
    pairs = (np.array([0, 1, 4]), np.array([0, 5, 7, 9]), np.array([1, 6, 8, 10]), np.ones(4))
    uniform = np.random.default_rng(0).random((visits, 8))
    rows = ranking_expectations.sample_pair_subsets(starts, pairs, np.full(visits, 1), 4, uniform)
    assert (np.diff(rows, axis=1) > 0).all()
    assert rows.min() >= 3
    assert rows.max() < 23
    shares = [
        ((rows == a).any(axis=1) & (rows == b).any(axis=1)).mean() for a, b in ((5, 6), (7, 8), (9, 10))
    ]
    # its own draw, or by chance two of the others: 2 of 18, 1 of 17
    np.testing.assert_allclose(shares, 1 / 3 + 2 / 3 * 2 / (18 * 17), atol=0.03)
    short = ranking_expectations.sample_pair_subsets(starts, pairs, np.array([0]), 4, uniform[:1])
    assert short.tolist() == [[0, 1, 2, -1]]


# -- passes ---------------------------------------------------------------------------------------------------


def training(seed=0, queries=7, groups=3):
    random = np.random.default_rng(seed)
    sizes = random.integers(2, 7, queries)
    starts = np.concatenate(([0], np.cumsum(sizes)))
    level = np.concatenate([np.sort(random.integers(0, 3, n))[::-1] for n in sizes]).astype(np.int32)
    counts = random.integers(0, groups + 1, len(level))
    group = np.concatenate([random.permutation(groups)[:c] for c in counts]).astype(np.int64)
    entries = ranking_expectations.Potentials(
        np.concatenate(([0], np.cumsum(counts))), group, random.normal(size=(len(group), 3))
    )
    gain, discount = 2.0**level - 1, 1 / np.log2(np.arange(7) + 2)
    target = MetricTarget(SUM, gain, level, discount, np.minimum(sizes, 4), np.ones(queries))
    return entries, starts, target, random.uniform(0.5, 2, queries)


def optimizer(weights, *, adam, rate=0.1, l2=0.01) -> OptimizerState:
    return OptimizerState(
        weights, np.zeros_like(weights), np.zeros_like(weights), np.zeros(1, np.int64), adam, rate, l2, False
    )


@pytest.mark.parametrize("adam", [True, False])
def test_passes_do_not_depend_on_threads(adam, monkeypatch) -> None:
    entries, starts, target, weight = training()
    ends = []
    for thread_work in (0, 10**12):
        monkeypatch.setattr(dispatch, "THREAD_WORK", thread_work)
        random, weights = np.random.default_rng(1), np.zeros(9)
        steps = optimizer(weights, adam=adam)
        losses = []
        for _ in range(20):
            visit = random.permutation(7)
            rows = ranking_expectations.sample_subsets(starts, target.level, visit, 4, random.random((7, 8)))
            losses.append(ranking_expectations.train_crf_pass(entries, target, weight, visit, rows, 3, steps))
        ends.append((weights, losses))
    np.testing.assert_allclose(ends[0][0], ends[1][0], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(ends[0][1], ends[1][1], rtol=1e-10)


@pytest.mark.parametrize("thread_work", [0, 10**12])
def test_a_step_goes_down_the_gradient(thread_work, monkeypatch) -> None:
    """One plain step on all queries against finite differences of the expected loss."""
    monkeypatch.setattr(dispatch, "THREAD_WORK", thread_work)
    entries, starts, target, weight = training(seed=3)
    visit = np.arange(7)
    rows = ranking_expectations.sample_subsets(starts, target.level, visit, 7, np.zeros((7, 14)))
    start = np.random.default_rng(5).normal(size=9)

    def loss(weights) -> float:
        omega, total = ranking_expectations.compute_row_scores(entries, weights.reshape(3, 3)), 0.0
        for q in visit:
            here = slice(starts[q], starts[q + 1])
            gain = target.gain[here].tolist()
            value = reference.compute_expected_metric(
                omega[here].tolist(), gain, "sum", target.discount, target.limit[q]
            )
            total += weight[q] * (1 - value)
        return total / 7 + 0.005 * float(weights @ weights)

    weights = start.copy()
    ranking_expectations.train_crf_pass(
        entries, target, weight, visit, rows, 7, optimizer(weights, adam=False, rate=1.0)
    )
    finite = [(loss(start + e) - loss(start - e)) / 2e-5 for e in 1e-5 * np.eye(9)]
    np.testing.assert_allclose(start - weights, finite, rtol=1e-5, atol=1e-9)
