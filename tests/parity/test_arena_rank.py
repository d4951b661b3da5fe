"""The same contextual board as arena-rank 0.1.1, from its stored output.

`arena_rank_contextual.json` holds 400 made votes and what ContextualBradleyTerry returned for them, with ftol=1e-14,
gtol=1e-12 and the settings stored beside each result; the versions are in the file.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from podium.analysis.leaderboard import contextual_leaderboard
from podium.data.vote_table import VoteTable

STORED = json.loads((Path(__file__).parent / "arena_rank_contextual.json").read_text())


@pytest.fixture(scope="module")
def votes():
    a, b, winner, *lengths = (list(column) for column in zip(*STORED["votes"], strict=True))
    outcome = [{"model_a": 1.0, "model_b": 0.0, "tie": 0.5}[w] for w in winner]
    named = {"length": tuple(lengths[:2]), "markdown": tuple(lengths[2:])}
    return VoteTable.from_columns(a, b, outcome, attributes=named)


@pytest.mark.parametrize("case", STORED["cases"], ids=lambda c: f"{c['reweighted']}-{c['reg']}")
def test_ratings_effects_and_intervals(votes, case):
    board = contextual_leaderboard(
        votes,
        ["length", "markdown"],
        standardize="center" if case["normalize_features"] else "none",
        pair_floor=case["min_pair_count"] if case["reweighted"] else None,
        ridge=case["reg"] * len(votes),  # its loss is a mean over the votes
        l2=1e-6,
        over="votes",
    )
    rows = [board[item] for item in case["competitors"]]
    np.testing.assert_allclose([r.score for r in rows], case["ratings"], atol=1e-4)
    np.testing.assert_allclose([e.coefficient for e in board.effects], case["coeffs"], atol=1e-6)
    # its Hessian leaves the ridge out and adds 1e-5 to the diagonal, so a larger ridge changes its errors
    slack = 0.02 if case["reg"] < 1e-3 else 0.1
    np.testing.assert_allclose([r.low for r in rows], case["lower"], atol=slack)
    np.testing.assert_allclose([r.high for r in rows], case["upper"], atol=slack)
