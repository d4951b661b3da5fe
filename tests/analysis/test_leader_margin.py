"""Influence of voters against fits without them; margins against brute force; bad input."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from podium.analysis.leaderboard import leaderboard, measure_influence, measure_leader_margin
from podium.core.errors import InputError, ParameterError
from podium.data.preferences import Preferences


def draw_votes(seed, voters=12, votes=400, items=5, ties=0.0, spread=0.6):
    random = np.random.default_rng(seed)
    scores = np.linspace(spread, -spread, items)
    a = random.integers(0, items, votes)
    b = (a + random.integers(1, items, votes)) % items
    won = random.random(votes) < 1 / (1 + np.exp(scores[b] - scores[a]))
    names = np.array([f"m{i}" for i in range(items)])
    return Preferences.from_comparisons(
        ["all"] * votes, [f"v{i}" for i in random.integers(0, voters, votes)],
        names[np.where(won, a, b)].tolist(), names[np.where(won, b, a)].tolist(),
        tie=random.random(votes) < ties, side=np.where(won, 1, -1),
    )  # fmt: skip


SETTINGS = (
    {},
    {"ties": "davidson"},
    {"sides": "fit"},
    {"model": "thurstone", "scale": "natural"},
    {"ties": "ignore"},
)


@pytest.mark.parametrize("settings", SETTINGS)
def test_influence_equals_fits_without_each_voter(settings):
    votes = draw_votes(1, ties=0.2)
    board = leaderboard(votes, **settings)
    influence = measure_influence(board)
    assert len(influence) == 12
    steps, exact = [], []
    for row in influence:
        other = leaderboard(votes.without_expert(row.voter), **settings)
        change = {r.item: r.score - board[r.item].score for r in other.rows}
        assert row.change == pytest.approx(change[row.item], abs=1e-4)
        assert abs(row.change) == pytest.approx(max(map(abs, change.values())), abs=1e-4)
        assert row.leader == other.rows[0].item
        places = {r.item: k for k, r in enumerate(board.rows, 1)}
        moved = {r.item: k for k, r in enumerate(other.rows, 1) if places[r.item] != k}
        assert {c.item: c.without for c in row.places} == moved
        steps.append(influence.compute_changes([row.voter])[0])
        exact.append([change[item] for item in board.tally.items])
    steps, exact = np.array(steps), np.array(exact)
    # one Newton step leaves an error of second order: a voter has a twelfth of the votes
    assert np.abs(steps - exact).max() < 0.2 * np.abs(exact).max()
    assert np.corrcoef(steps.ravel(), exact.ravel())[0, 1] > 0.995


def test_one_step_is_the_derivative_by_the_weight_of_a_voter():
    """A fit with slightly less weight of one voter moves by that share of the one-step change."""
    votes = draw_votes(2)
    board = leaderboard(votes)
    step, share = measure_influence(board).compute_changes(["v3"])[0], 1e-4
    own = np.array([votes.experts[int(c)] == "v3" for c in votes.comparisons.expert])
    c = votes.comparisons
    weight = np.where(own, 1 - share, 1.0)
    names = votes.index.items
    less = Preferences.from_comparisons(
        ["all"] * len(c), [votes.experts[int(e)] for e in c.expert], [names[int(w)] for w in c.winner],
        [names[int(w)] for w in c.loser], tie=c.tie, weight=weight, side=c.side,
    )  # fmt: skip
    other = leaderboard(less, over="votes")
    change = np.array([other[item].score - board[item].score for item in board.tally.items])
    assert change / share == pytest.approx(step, abs=2e-2)


def test_added_votes_are_the_smallest_number():
    """With one vote less the leader stays; no other kind of vote takes the lead with fewer."""
    for seed in range(4):
        votes = draw_votes(seed, votes=150, items=4)
        board = leaderboard(votes)
        row = measure_leader_margin(board).rows[0]
        assert row.item == board.rows[0].item

        def find_leader(winner, loser, count, votes=votes):
            extra = Preferences.from_comparisons(
                ["all"] * count, ["x"] * count, [winner] * count, [loser] * count
            )
            return leaderboard(Preferences.concat([votes, extra])).rows[0].item

        assert find_leader(row.added_winner, row.added_loser, row.added) != row.item
        if row.added > 1:
            for winner, loser in itertools.permutations([r.item for r in board.rows], 2):
                assert find_leader(winner, loser, row.added - 1) == row.item


def test_removed_votes_change_the_leader_and_are_few():
    """Against brute force over all sets of removed votes, on a small board."""
    pairs = [("a", "b")] * 6 + [("b", "a")] * 4 + [("b", "c")] * 5 + [("c", "b")] * 3
    pairs += [("a", "c")] * 4 + [("c", "a")] * 3
    board = leaderboard(_build(pairs))
    row = measure_leader_margin(board).rows[0]
    assert row.item == "a"
    smallest = next(
        count
        for count in range(1, len(pairs))
        if any(
            leaderboard(_build([p for k, p in enumerate(pairs) if k not in gone])).rows[0].item != "a"
            for gone in set(itertools.combinations(range(len(pairs)), count))
        )
    )
    assert smallest <= row.removed <= smallest + 1


def _build(pairs):
    n = len(pairs)
    return Preferences.from_comparisons(["all"] * n, ["j"] * n, [w for w, _ in pairs], [v for _, v in pairs])


def test_removed_voters_change_the_order():
    for seed in range(3):
        votes = draw_votes(seed, voters=30, votes=600)
        board = leaderboard(votes)
        for row in measure_leader_margin(board, places=4).rows:
            if row.removed_voters is None:
                continue
            left = votes
            for voter in row.voters:
                left = left.without_expert(voter)
            other = [r.item for r in leaderboard(left).rows]
            assert other.index(row.rival) < other.index(row.item)
            assert len(row.voters) == row.removed_voters


def test_a_leader_who_never_lost():
    """No removed vote helps the rivals of an item that won everything; enough added ones do."""
    votes = _build([("a", "b")] * 5 + [("b", "c"), ("c", "b")] * 3)
    row = measure_leader_margin(votes).rows[0]
    assert row.item == "a"
    assert row.added is not None
    assert measure_leader_margin(votes).conclusion.startswith("the lead of a is lost to")


def test_bad_input():
    votes = _build([("a", "b"), ("b", "a"), ("a", "b")])
    with pytest.raises(InputError, match=r"all votes come from one voter, 'j'.*name the column"):
        measure_influence(votes)
    assert measure_leader_margin(votes).rows[0].removed_voters is None
    with pytest.raises(ParameterError, match="places is 0"):
        measure_leader_margin(votes, places=0)
    two = draw_votes(3, voters=3, votes=60)
    for measure in (measure_influence, measure_leader_margin):
        with pytest.raises(ParameterError, match="leave judges out"):
            measure(two, judges="discounted")
    with pytest.raises(ParameterError, match="there is no voter 'nobody'"):
        measure_influence(two).compute_changes(["nobody"])


def test_two_items_and_ties_only():
    row = measure_leader_margin(_build([("a", "b")] * 3 + [("b", "a")] * 2)).rows[0]
    assert (row.item, row.rival, row.added) == ("a", "b", 2)
    tied = Preferences.from_comparisons(["all"] * 4, ["j", "k"] * 2, ["a"] * 4, ["b"] * 4, tie=[True] * 4)
    assert measure_leader_margin(tied).rows[0].added == 1
