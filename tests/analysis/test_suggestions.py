"""Batches of comparisons: variances against exact inverses, choices against brute force, budgets and judges."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest

import podium
from podium.analysis.leaderboard import ComparisonPlanner, Tally, suggest_comparisons
from podium.analysis.leaderboard.judge_costs import estimate_slopes
from podium.analysis.leaderboard.pair_choice import PairChooser, expect_information
from podium.analysis.leaderboard.score_posterior import (
    ScorePosterior,
    build_prior,
    fit_posterior,
    propagate_variances,
)
from podium.core.errors import InputError, ParameterError
from podium.data.vote_table import VoteTable


def make_votes(truth, count, seed=0, **columns):
    """Votes on random pairs of items 0, 1, ... with the given log odds."""
    rng = np.random.default_rng(seed)
    a = rng.integers(0, len(truth), count)
    b = (a + rng.integers(1, len(truth), count)) % len(truth)
    won = rng.random(count) < 1 / (1 + np.exp(truth[b] - truth[a]))
    return VoteTable.from_columns(a.tolist(), b.tolist(), won.astype(float), **columns)


def exact_variances(first, second, information, size, precision):
    hessian = precision * np.eye(size)
    for i, j, weight in zip(first, second, information, strict=True):
        step = np.zeros(size)
        step[i], step[j] = 1, -1
        hessian += weight * np.outer(step, step)
    return np.linalg.inv(hessian).diagonal()


def test_variances_are_exact_on_a_tree():
    rng = np.random.default_rng(1)
    second = np.arange(1, 30)
    first = np.array([rng.integers(0, k) for k in second])
    information = rng.uniform(0.1, 3, 29)
    variances = propagate_variances(first, second, information, 30, 0.25, rounds=30)
    assert np.allclose(variances, exact_variances(first, second, information, 30, 0.25))


def test_variances_are_close_on_a_random_graph():
    rng = np.random.default_rng(2)
    first = rng.integers(0, 200, 1500)
    second = (first + rng.integers(1, 200, 1500)) % 200
    information = rng.uniform(0.1, 0.25, 1500)
    variances = propagate_variances(first, second, information, 200, 0.25)
    assert np.allclose(variances, exact_variances(first, second, information, 200, 0.25), rtol=0.1)


def test_expected_information_is_the_mean_over_the_difference():
    rng = np.random.default_rng(3)
    for gap, variance in itertools.product((0.0, 0.7, 2.0), (0.01, 0.5, 4.0)):
        chance = 1 / (1 + np.exp(-rng.normal(gap, variance**0.5, 200_000)))
        assert expect_information(np.array(gap), np.array(variance)) == pytest.approx(
            (chance * (1 - chance)).mean(), rel=0.12
        )


def test_opponents_are_those_whose_vote_reduces_the_doubt_most():
    """Against brute force: every pair of the chosen item, its exact new covariance, the same measure of doubt."""
    posterior = fit_posterior(
        Tally.from_preferences(make_votes(np.linspace(-2, 2, 12), 120).to_preferences()).to_contests()
    )
    chooser = PairChooser(posterior, rng=np.random.default_rng(0))
    weights, before = chooser.weights.copy(), posterior.variances.copy()
    pair = chooser.choose()
    assert pair.first == int(np.argmax(weights * before**1.5))
    values = {}
    for other in set(range(12)) - {pair.first}:
        step = np.zeros(12)
        step[pair.first], step[other] = 1, -1
        variance = step @ posterior.covariance @ step
        gap = posterior.means[pair.first] - posterior.means[other]
        information = float(expect_information(np.array(gap), np.array(variance)))
        precision = np.linalg.pinv(posterior.covariance) + information * np.outer(step, step)
        saved = (before - np.linalg.pinv(precision).diagonal()) / np.sqrt(before) * weights
        values[other] = saved[pair.first] + saved[other]
    # a random tenth is added to each, so that the graph stays mixed
    assert values[pair.second] >= max(values.values()) / 1.1
    assert pair.value == pytest.approx(values[pair.second], rel=1e-6)


def test_a_chosen_pair_counts_as_answered():
    posterior = build_prior(6)
    chooser = PairChooser(posterior, rng=np.random.default_rng(0))
    pair = chooser.choose()
    chooser.count_as_answered(pair)
    step = np.zeros(6)
    step[pair.first], step[pair.second] = 1, -1
    precision = np.linalg.pinv(posterior.covariance) + pair.information * np.outer(step, step)
    assert np.allclose(chooser.covariance, np.linalg.pinv(precision))


@pytest.mark.parametrize("size", [10, 400])
def test_before_the_first_vote_rounds_are_random_pairings(size):
    batch = suggest_comparisons(items=range(size), count=3 * size // 2)
    pairs = [frozenset((row.first, row.second)) for row in batch]
    assert len(set(pairs)) == len(pairs)
    for number in range(3 if size == 400 else 1):
        half = pairs[number * size // 2 : (number + 1) * size // 2]
        assert len(frozenset().union(*half)) == size
    assert set(Counter(item for pair in pairs for item in pair).values()) <= {2, 3, 4}
    assert (batch.votes, batch.expected_tau) == (0, 0)
    again = suggest_comparisons(items=range(size), count=3 * size // 2)
    assert again.rows == batch.rows
    assert suggest_comparisons(items=range(size), count=3 * size // 2, seed=1).rows != batch.rows


def test_a_pair_is_repeated_only_after_there_are_no_others():
    pairs = Counter(frozenset((r.first, r.second)) for r in suggest_comparisons(items="abc", count=7))
    assert sorted(pairs.values()) == [2, 2, 3]


def test_close_items_meet_once_scores_are_known():
    truth = np.linspace(-6, 6, 60)
    batch = suggest_comparisons(make_votes(truth, 3000), 60)
    gaps = [abs(truth[r.first] - truth[r.second]) for r in batch]
    assert np.mean(gaps) < 1.2  # 4 for two items at random
    assert batch.expected_tau > 0.9


def test_with_top_only_the_boundary_matters():
    truth = np.linspace(-6, 6, 60)
    batch = suggest_comparisons(make_votes(truth, 3000), 30, top=10)
    # items are numbered from the worst; at least one of two is near the boundary between ranks 10 and 11
    ranks = [sorted((60 - r.first, 60 - r.second), key=lambda rank: abs(rank - 10.5)) for r in batch]
    assert all(5 <= near <= 16 for near, _ in ranks)
    assert all(far <= 25 for _, far in ranks)
    for top in (0, 60):
        with pytest.raises(ParameterError, match="1 to 59"):
            suggest_comparisons(make_votes(truth, 300), 5, top=top)


def test_items_without_votes_are_asked_first():
    batch = suggest_comparisons(make_votes(np.zeros(5), 400), 6, items=range(8))
    assert {5, 6, 7} <= {item for r in batch.rows[:3] for item in (r.first, r.second)}
    with pytest.raises(InputError, match="4 has votes and is not in the list"):
        suggest_comparisons(make_votes(np.zeros(5), 400), 6, items=range(4))
    with pytest.raises(InputError, match="twice"):
        suggest_comparisons(items=[1, 2, 1], count=1)
    with pytest.raises(InputError, match="a comparison needs two"):
        suggest_comparisons(items=[1], count=1)


def test_the_slice_in_doubt_is_asked():
    rng = np.random.default_rng(0)
    names = np.where(rng.random(2000) < 0.95, "code", "prose")
    truth = np.linspace(-1, 1, 5)
    a = rng.integers(0, 5, 2000)
    b = (a + rng.integers(1, 5, 2000)) % 5
    sign = np.where(names == "code", 1, -1)  # the order is reversed in prose
    won = rng.random(2000) < 1 / (1 + np.exp(sign * (truth[b] - truth[a])))
    votes = VoteTable.from_columns(
        a.tolist(), b.tolist(), won.astype(float), attributes={"category": names.tolist()}
    )
    batch = suggest_comparisons(votes, 10, slices="category")
    count = Counter(r.slice for r in batch)
    assert count == {"prose": 10}  # a twentieth of the votes
    # slices that do not differ: the one with the fewest votes
    alike = VoteTable.from_columns(
        a.tolist(),
        b.tolist(),
        (rng.random(2000) < 0.5).astype(float),
        attributes={"category": names.tolist()},
    )
    assert {r.slice for r in suggest_comparisons(alike, 20, slices="category")} == {"prose"}
    with pytest.raises(ParameterError, match="VoteTable"):
        suggest_comparisons(votes.to_preferences(), 20, slices="category")


def test_slopes_of_judges_are_recovered():
    rng = np.random.default_rng(4)
    truth, slopes = rng.normal(size=40) * 1.5, np.array([0.0, 1.0, 2.0])
    a = rng.integers(0, 40, 9000)
    b = (a + rng.integers(1, 40, 9000)) % 40
    who = rng.integers(0, 3, 9000)
    won = rng.random(9000) < 1 / (1 + np.exp(slopes[who] * (truth[b] - truth[a])))
    table = VoteTable.from_columns(a.tolist(), b.tolist(), won.astype(float), expert=who.tolist())
    assert np.allclose(
        estimate_slopes(Tally.from_preferences(table.to_preferences()), truth), slopes, atol=0.12
    )


def test_judges_are_chosen_by_what_they_are_worth_for_their_cost():
    rng = np.random.default_rng(5)
    truth = rng.normal(size=20)
    a = rng.integers(0, 20, 4000)
    b = (a + rng.integers(1, 20, 4000)) % 20
    judge = np.array(["careful", "careless"])[rng.integers(0, 2, 4000)]
    slope = np.where(judge == "careful", 2.0, 0.3)
    won = rng.random(4000) < 1 / (1 + np.exp(slope * (truth[b] - truth[a])))
    votes = VoteTable.from_columns(a.tolist(), b.tolist(), won.astype(float), expert=judge.tolist())
    even = suggest_comparisons(votes, 30, cost={"careful": 1, "careless": 1})
    assert {r.judge for r in even} == {"careful"}
    dear = suggest_comparisons(votes, 30, cost={"careful": 100, "careless": 1})
    assert {r.judge for r in dear} == {"careless"}
    bound = suggest_comparisons(votes, 30, cost={"careful": 3, "careless": 1}, budget=10)
    assert bound.cost == sum(r.cost for r in bound) <= 10
    assert "more would exceed the budget of 10" in bound.note


def test_no_judge_gets_a_pair_again_that_judges_see_once():
    pairs = [(a, b) for a in range(4) for b in range(a)]
    votes = VoteTable.from_columns(*map(list, zip(*pairs, strict=True)), [1.0] * 6, expert=["one"] * 6)
    batch = suggest_comparisons(votes, 20, cost={"one": 1, "two": 1})
    assert {r.judge for r in batch} == {"two"}
    assert len(batch) == len({frozenset((r.first, r.second)) for r in batch}) == 6
    assert batch.note == "6 comparisons: the judges who can be paid have compared all other pairs"


def test_budgets():
    assert len(suggest_comparisons(items=range(9), cost=0.1, budget=1)) == 10
    assert len(suggest_comparisons(items=range(9), count=4, cost=0.1, budget=1)) == 4
    for arguments, message in (
        ({}, "neither a number"),
        ({"count": 0}, "count is 0"),
        ({"budget": 0.5}, "pays for no comparison"),
        ({"budget": float("nan")}, "budget is nan"),
        ({"count": 3, "cost": -1}, "cost is -1"),
    ):
        with pytest.raises(ParameterError, match=message):
            suggest_comparisons(items=range(9), **arguments)
    for costs in ({}, {"j": 0.0}, {"j": float("inf")}):
        with pytest.raises(InputError, match="cost"):
            suggest_comparisons(items=range(9), count=3, cost=costs)


@pytest.mark.parametrize("size", [20, 320])
def test_the_planner_follows_votes_at_once_and_agrees_with_a_fit(size):
    rng = np.random.default_rng(6)
    truth = rng.normal(size=size) * 2
    planner = ComparisonPlanner(list(range(size)))
    for _ in range(20 * size):
        a, b = planner.suggest()
        planner.add_vote(a, b, float(rng.random() < 1 / (1 + np.exp(truth[b] - truth[a]))))
    before = np.array([*planner.scores.values()])
    planner.refit()
    after = np.array([*planner.scores.values()])
    assert np.corrcoef(before, after)[0, 1] > 0.99
    assert np.corrcoef(after, truth)[0, 1] > 0.93
    assert planner.votes == 20 * size


def test_the_planner_continues_from_votes_and_refuses_nonsense():
    votes = make_votes(np.linspace(-1, 1, 6), 200).to_preferences()
    planner = ComparisonPlanner(range(8), votes, top=3)
    assert planner.votes == 200
    assert {6, 7} & set(planner.suggest())
    for arguments in ((1, 99, 1.0), (1, 1, 1.0), (1, 2, 2.0)):
        with pytest.raises(ParameterError):
            planner.add_vote(*arguments)
    with pytest.raises(ParameterError, match="top is 8"):
        ComparisonPlanner(range(8), top=8)


def test_two_items_can_always_be_asked():
    planner = ComparisonPlanner(["a", "b"])
    for _ in range(40):
        assert set(planner.suggest()) == {"a", "b"}
    planner.add_vote("b", "a", 0.5)
    assert set(planner.suggest()) == {"a", "b"}


def test_pairs_that_are_chosen_save_votes():
    """The direction that benchmarks/active_pairs.py measures, on a small set."""
    rng = np.random.default_rng(7)
    truth = rng.normal(size=100) * 4
    random_votes = make_votes(truth, 1000, seed=8)
    planner = ComparisonPlanner(list(range(100)))
    for _ in range(1000):
        a, b = planner.suggest()
        planner.add_vote(a, b, float(rng.random() < 1 / (1 + np.exp(truth[b] - truth[a]))))
    planner.refit()
    fitted = fit_posterior(Tally.from_preferences(random_votes.to_preferences()).to_contests()).means

    def tau(scores):
        return (np.sign(scores[:, None] - scores) * np.sign(truth[:, None] - truth)).sum() / 9900

    assert tau(np.array([*planner.scores.values()])) > tau(fitted) + 0.02


def test_results_describe_themselves():
    batch = podium.suggest_comparisons(items=["a", "b", "c"], count=2)
    assert "2 comparisons of 3 items" in repr(batch)
    assert batch.grid().head == ("first", "second", "first wins", "nats", "votes")
    assert set(batch.to_dict()) == {"items", "votes", "cost", "expected_tau", "column", "note", "rows"}
    assert isinstance(build_prior(3), ScorePosterior)
