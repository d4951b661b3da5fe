"""Boards of slices: shrinkage, dependence on the slice, small slices, bad input."""

from __future__ import annotations

import numpy as np
import pytest

from podium.analysis.leaderboard import contextual_leaderboard
from podium.core.errors import InputError, ParameterError
from podium.data.vote_table import VoteTable

ITEMS, ELO = 6, 400 / np.log(10)


def make_votes(sizes, deviations=None, seed=0, extra=None):
    """Votes of slices a, b, ... of given sizes; `deviations` by slice and item."""
    random = np.random.default_rng(seed)
    scores, n = np.linspace(0.9, -0.9, ITEMS), sum(sizes)
    part = np.repeat(np.arange(len(sizes)), sizes)
    own = scores + (np.zeros((len(sizes), ITEMS)) if deviations is None else deviations)
    a = random.integers(0, ITEMS, n)
    b = (a + random.integers(1, ITEMS, n)) % ITEMS
    won = random.random(n) < 1 / (1 + np.exp(own[part, b] - own[part, a]))
    names = {"topic": np.array(list("abcdefgh"))[part], **(extra or {})}
    return VoteTable.from_columns(
        [f"m{i}" for i in a], [f"m{i}" for i in b], won.astype(float), attributes=names
    )


def test_a_planted_deviation_is_found():
    planted = np.zeros((3, ITEMS))
    planted[1, 4] = 1.5
    boards = contextual_leaderboard(make_votes((8000, 4000, 4000), planted), slices="topic").slices
    assert "b" in boards.dependent_items["m4"]
    assert min(boards, key=lambda r: r.p).item == "m4"
    assert list(boards.votes) == ["a", "b", "c"]
    row = next(r for r in boards if (r.slice, r.item) == ("b", "m4"))
    assert row.rank < row.whole_rank
    # against the mean of the items, the deviation is 1.5 less a sixth of it
    assert row.low < (-0.54 + 1.25) * ELO + 1000 < row.high
    assert any(line.startswith("m4 has +") and "in b: place" in line for line in boards.dependence)


def test_equal_slices_have_the_scores_of_the_whole():
    """In 20 sets of equal slices at most a few name an item, and slices shrink to the whole board."""
    named = 0
    for seed in range(20):
        boards = contextual_leaderboard(make_votes((2000, 1000), seed=seed), slices="topic").slices
        named += bool(boards.dependent_items)
        assert max(abs(r.score - r.whole_score) for r in boards) < 25
    assert named <= 4


def test_a_slice_of_ten_votes_stays_near_the_whole_board():
    planted = np.zeros((3, ITEMS))
    planted[1] = np.linspace(-0.5, 0.5, ITEMS)
    board = contextual_leaderboard(make_votes((5000, 5000, 10), planted), slices="topic")
    small = [r for r in board.slices if r.slice == "c"]
    assert board.slices.small == ["c"]
    assert "c has 10 votes, so its scores are close to those of all votes" in board.slices.dependence
    assert max(abs(r.score - r.whole_score) for r in small) < 40
    widths = [np.mean([r.high - r.low for r in board.slices if r.slice == s]) for s in "ac"]
    assert widths[0] < widths[1]


def test_intervals_of_slices_cover_the_truth():
    """Deviations drawn from the prior: 90 to 99 % of the intervals hold them."""
    held = []
    for seed in range(15):
        random = np.random.default_rng(seed + 100)
        planted = random.normal(scale=0.4, size=(4, ITEMS))
        boards = contextual_leaderboard(make_votes((1500,) * 4, planted, seed), slices="topic").slices
        truth = np.linspace(0.9, -0.9, ITEMS) + planted
        truth = (truth - truth.mean(axis=1, keepdims=True)) * ELO + 1000
        held += [r.low < truth["abcd".index(r.slice), int(r.item[1])] < r.high for r in boards]
    assert 0.90 < np.mean(held) < 0.99


def test_columns_that_cannot_slice():
    many = make_votes((300,), extra={"number": np.arange(300), "pair": (np.ones(300), np.ones(300))})
    with pytest.raises(InputError, match="all votes have the same 'topic', 'a'"):
        contextual_leaderboard(many, slices="topic")
    with pytest.raises(InputError, match="has 300 values, more than 200 slices"):
        contextual_leaderboard(many, slices="number")
    with pytest.raises(InputError, match="'pair' has a value for each side"):
        contextual_leaderboard(many, slices="pair")
    with pytest.raises(ParameterError, match="there is no attribute 'topics'; did you mean topic"):
        contextual_leaderboard(many, slices="topics")


def test_slices_by_a_number_and_over_experts():
    votes = make_votes((900, 900), extra={"year": np.repeat([2025, 2026], 900)})
    boards = contextual_leaderboard(votes, slices="year", over="votes").slices
    assert set(boards.votes) == {"2025", "2026"}
    assert boards.grid().head == ("item", "all", *boards.votes)


def test_scores_of_slices_are_measured_from_the_reference():
    planted = np.zeros((2, ITEMS))
    planted[1, 4] = 1.5
    boards = contextual_leaderboard(
        make_votes((3000, 3000), planted), slices="topic", reference="m2", anchor=500
    ).slices
    assert [(r.score, r.low, r.high) for r in boards if r.item == "m2"] == [
        pytest.approx((500, 500, 500))
    ] * 2
