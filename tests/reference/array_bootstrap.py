"""Bootstrap rounds, several at once, as numpy expressions."""

from __future__ import annotations

import numpy as np

from podium.kernels.bootstrap import SHRINK, STEPS


def iterate_rounds(contests, half, l2, matrix, drawn, scores, tolerance):
    """Iterate some rounds at once: the final scores, and which rounds converged."""
    from scipy.sparse import csr_array

    size, pairs = scores.shape[1], np.arange(len(contests.first))
    ends = np.concatenate((contests.first, contests.second)), np.concatenate((pairs, pairs))
    signs = np.repeat((1.0, -1.0), len(pairs))
    by_item = csr_array((signs, ends), shape=(size, len(pairs)))
    both = abs(by_item)
    tie = np.array([c.tied for c in drawn]) * (0.5 if half else 0.0)
    won, lost = np.array([c.won for c in drawn]) + tie, np.array([c.lost for c in drawn]) + tie
    scores, active, before = scores.copy(), np.arange(len(scores)), np.full(len(scores), np.inf)
    done = np.zeros(len(scores), np.bool_)
    for _ in range(STEPS):
        x = scores[active]
        gap = x[:, contests.first] - x[:, contests.second]
        share = 1 / (1 + np.exp(-np.clip(gap, -500, 500)))
        total = won[active] + lost[active]
        # rescaling by the current diagonal adapts the fixed inverse to the resampled votes
        scale = 1 / np.sqrt((both @ (total * share * (1 - share)).T).T + l2)
        move = (((by_item @ (total * share - won[active]).T).T + l2 * x) * scale) @ matrix * scale
        move -= move.mean(axis=1, keepdims=True)
        longest = np.abs(move).max(axis=1, initial=0.0)
        scores[active] = x - move
        last = before[active]
        # the geometric series of steps shrinking at the last observed ratio bounds the remaining distance
        left = np.divide(
            longest**2, last - longest, out=longest.copy(), where=np.isfinite(last) & (last > longest)
        )
        near = (longest <= tolerance) | (left <= tolerance)
        done[active[near]] = True
        before[active] = longest
        active = active[~near & (longest <= SHRINK * last)]
        if not len(active):
            break
    return scores, done
