"""The random walk over contests: from an item to those that beat it, at the rate at which they do.

Negahban, Oh & Shah's rank centrality. Its stationary distribution does not change when all rates are divided
by one number, so none is needed. Components that never met have separate walks, with mass by number of items.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from podium._core import rank_centrality as core
from podium.kernels import segments
from podium.kernels.contest_counts import Contests, find_weak_components
from podium.kernels.dispatch import F8, run_in_threads

__all__ = ["Centrality", "compute_rank_centrality"]


class Centrality(NamedTuple):
    """Probabilities by slot, and the number of sweeps of the slowest query."""

    probability: F8
    sweeps: int
    converged: bool


def compute_rank_centrality(
    contests: Contests, smoothing: float, tolerance: float, most_sweeps: int
) -> Centrality:
    """Stationary probabilities; `smoothing` votes are added to both sides of every pair that met."""
    sizes, pairs = np.diff(contests.starts), np.diff(contests.pair_starts)
    # a tie moves the walk both ways, at half the rate each
    half, total = contests.tied / 2 + smoothing, contests.won + contests.lost + contests.tied + 2 * smoothing
    up, down = (contests.lost + half) / total, (contests.won + half) / total  # first -> second, and back
    label, found = find_weak_components(contests), np.zeros(int(contests.starts[-1]))
    taken = np.zeros(len(sizes), np.int64)
    columns = (contests[:4], up, down, label, tolerance, most_sweeps, found, taken)
    run_in_threads(core.compute_rank_centrality, segments.offsets(pairs + sizes), *columns)
    return Centrality(found, int(taken.max(initial=0)), bool((taken <= most_sweeps).all()))
