"""Inverse-propensity weights: pairs that were shown often count less, so that a board does not follow the traffic.

A vote on a pair of items with n votes weighs 1 / max(n, floor), as if pairs had been shown equally often; the
floor keeps rare pairs from dominating. Weights have mean 1 over the votes.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from podium.analysis.leaderboard.tally import Tally
from podium.core.errors import ParameterError
from podium.kernels.dispatch import F8, I8
from podium.kernels.grouping import number_rows, sum_by_group

__all__ = ["compute_pair_weights", "weight_pairs"]


def compute_pair_weights(first: I8, second: I8, votes: F8, floor: float) -> F8:
    """The weight of each row of votes; the order of the two items does not matter."""
    if not floor >= 1:
        raise ParameterError(f"pair_floor is {floor}; accepted: numbers from 1, such as 50")
    pair = number_rows(np.minimum(first, second), np.maximum(first, second))[1]
    count = sum_by_group(pair, votes, int(pair.max(initial=-1)) + 1)
    weights = 1 / np.maximum(count[pair], floor)
    return np.asarray(weights / (weights @ votes) * votes.sum(), np.float64)


def weight_pairs(tally: Tally, floor: float) -> Tally:
    """The same votes with inverse-propensity weights, which are importance weights."""
    by_row = compute_pair_weights(
        tally.first, tally.second, sum(tally.sums, np.zeros(len(tally.first))), floor
    )
    sums = {name: getattr(tally, name) * by_row for name in ("won", "lost", "tied")}
    squares = tally.weight_squares("importance")._asdict()
    scaled = {f"{name}_squares": column * by_row**2 for name, column in squares.items()}
    return replace(tally, **sums, **scaled, fractional=True)
