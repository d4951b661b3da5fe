"""The random walk over contests: from an item to those that beat it, at the rate at which they do.

Negahban, Oh & Shah's rank centrality. Its stationary distribution does not change when all rates are divided
by one number, so none is needed. Components that never met have separate walks, with mass by number of items.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from podium.kernels import segments
from podium.kernels.contest_counts import Contests, find_weak_components
from podium.kernels.dispatch import F8, I8, is_large, run_in_threads

__all__ = ["Centrality", "compute_rank_centrality"]

# units of work (see `dispatch.SMALL`) in numpy per query and per cubed number of items
QUERY, CUBE = (100, 0.0005)


class Centrality(NamedTuple):
    """Probabilities by slot, and the number of sweeps of the slowest query (None after a direct solution)."""

    probability: F8
    sweeps: int | None
    converged: bool


def compute_rank_centrality(
    contests: Contests, smoothing: float, tolerance: float, most_sweeps: int
) -> Centrality:
    """Stationary probabilities; `smoothing` votes are added to both sides of every pair that met."""
    sizes, pairs = np.diff(contests.starts), np.diff(contests.pair_starts)
    half, total = contests.tied / 2 + smoothing, contests.won + contests.lost + contests.tied + 2 * smoothing
    up, down = (contests.lost + half) / total, (contests.won + half) / total  # first -> second, and back
    label, found = find_weak_components(contests), np.zeros(int(contests.starts[-1]))
    work = QUERY * (sizes > 0) + pairs / 10 + CUBE * sizes**3.0
    if is_large(int(min(work.sum(), 2**60))):
        from podium.kernels.compiled.rank_centrality import compute_rank_centrality as kernel

        taken = np.zeros(len(sizes), np.int64)
        columns = (contests[:4], up, down, label, tolerance, most_sweeps, found, taken)
        run_in_threads(kernel, segments.offsets(pairs + sizes), *columns)
        return Centrality(found, int(taken.max(initial=0)), bool((taken <= most_sweeps).all()))
    for q in np.flatnonzero(sizes).tolist():
        found[slice(*contests.starts[q : q + 2].tolist())] = _solve_balance(contests, q, up, down, label)
    return Centrality(found, None, True)


def _solve_balance(contests: Contests, query: int, up: F8, down: F8, label: I8) -> F8:
    """Balance equations of all flows, with the mass of each component replacing the redundant ones."""
    base, end = contests.starts[query : query + 2].tolist()
    pairs = slice(*contests.pair_starts[query : query + 2].tolist())
    first, second = contests.first[pairs] - base, contests.second[pairs] - base
    rates = np.zeros((end - base, end - base))
    rates[first, second], rates[second, first] = up[pairs], down[pairs]
    here = label[base:end]
    same = here[:, None] == here
    balance = np.diag(rates.sum(axis=1)) - rates.T + same / same.sum(axis=1)
    found = np.linalg.solve(balance, np.full(end - base, 1 / (end - base)))
    return np.asarray(np.maximum(found, 0.0), np.float64)
