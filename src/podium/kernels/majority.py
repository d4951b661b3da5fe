"""Orders from pairwise majorities, one query at a time; scores count items below minus items above.

Results do not depend on ids: items that the votes do not distinguish get equal scores. The functions of a
matrix are the small-input bodies; `score_by_majority` chooses between them and their compiled twins of the
same name.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from podium.kernels import segments
from podium.kernels.dispatch import B1, F8, I8, run_in_threads
from podium.kernels.pairwise_votes import (
    Votes,
    compute_margins,
    compute_pair_work,
    compute_vote_matrix,
    is_large_pair_work,
)

__all__ = ["condorcet", "copeland", "greedy", "ranked_pairs", "schulze", "score_blocks", "score_by_majority"]


def score_by_majority(method: Callable[..., F8], votes: Votes, cubic: float, *options: bool) -> F8:
    """Scores of every slot by one of the methods below; `cubic` as in `compute_pair_work`."""
    work = compute_pair_work(votes, cubic)
    scores = np.zeros(int(votes.slots[-1]))
    if is_large_pair_work(work):
        from podium.kernels.compiled import majority as compiled

        run_in_threads(getattr(compiled, method.__name__), work, votes, *options, scores)
        return scores
    for q in np.flatnonzero(np.diff(votes.slots)).tolist():
        scores[votes.slots[q] : votes.slots[q + 1]] = method(compute_vote_matrix(votes, q), *options)
    return scores


def copeland(table: F8) -> F8:
    """Items beaten minus items lost to."""
    return np.asarray(np.sign(compute_margins(table)).sum(axis=1), np.float64)


def condorcet(table: F8) -> F8:
    """Merge sort by majority, from the order of net votes; items without votes start, and so stay, last."""
    margin = compute_margins(table)
    start = np.where((table + table.T).any(axis=1), margin.sum(axis=1), -np.inf)
    blocks = [
        b for group in _split_by_key(np.arange(len(table)), start) for b in _refine_block(margin, group)
    ]
    beats = _compare_blocks(margin, blocks)
    runs = [[b] for b in range(len(blocks))]
    while len(runs) > 1:
        runs = [
            _merge_runs(beats, *runs[i : i + 2]) if i + 1 < len(runs) else runs[i]
            for i in range(0, len(runs), 2)
        ]
    return score_blocks([blocks[b] for b in runs[0]], len(table))


def greedy(table: F8) -> F8:
    """Repeatedly take the item with the largest net preference over those left."""
    margin = compute_margins(table)
    potential = margin.sum(axis=1)
    left = np.ones(len(table), np.bool_)
    order = []
    while left.any():
        rest = np.flatnonzero(left)
        taken = rest[potential[rest] == potential[rest].max()]
        while len(taken) > 1:
            inside = margin[np.ix_(taken, taken)].sum(axis=1)
            best = taken[inside == inside.max()]
            if len(best) == len(taken):
                break
            taken = best
        order.append(taken)
        left[taken] = False
        potential += margin[taken].sum(axis=0)
    return score_blocks(order, len(table))


def schulze(table: F8, winning: bool) -> F8:
    """Items beaten minus items lost to, by the strength of the strongest path of majorities."""
    margin = compute_margins(table)
    path = np.where(margin > 0, table if winning else margin, 0.0)
    for k in range(len(table)):
        np.maximum(path, np.minimum(path[:, k, None], path[k]), out=path)
    return copeland(path)


def ranked_pairs(table: F8) -> F8:
    """Lock majorities by falling margin; equal margins are locked together, except those in a cycle."""
    margin = compute_margins(table)
    reach = np.eye(len(table), dtype=np.bool_)
    for size in np.unique(margin[margin > 0])[::-1]:
        pairs = np.argwhere((margin == size) & ~reach & ~reach.T)
        trial = reach.copy()
        for i, j in pairs:
            _add_to_closure(trial, i, j)
        for i, j in pairs[~trial[pairs[:, 1], pairs[:, 0]]]:
            _add_to_closure(reach, i, j)
    return np.asarray(reach.sum(axis=1) - reach.sum(axis=0), np.float64)


def _add_to_closure(reach: B1, i: int, j: int) -> None:
    """Update the transitive closure of a relation with i -> j."""
    if not reach[i, j]:
        reach[reach[:, i]] |= reach[j]


def _split_by_key(items: I8, key: F8) -> list[I8]:
    """Groups of equal key, the largest key first."""
    order = np.argsort(-key, kind="stable")
    cuts = np.flatnonzero(key[order][1:] != key[order][:-1]) + 1
    return list(np.split(items[order], cuts))


def _refine_block(margin: F8, block: I8) -> list[I8]:
    """Split a block recursively by wins minus losses within it until nothing more can be separated."""
    if len(block) == 1:
        return [block]
    groups = _split_by_key(block, np.sign(margin[np.ix_(block, block)]).sum(axis=1))
    return groups if len(groups) == 1 else [b for g in groups for b in _refine_block(margin, g)]


def _compare_blocks(margin: F8, blocks: list[I8]) -> list[list[bool]]:
    """Whether each block beats each other one by summed votes."""
    order = np.concatenate(blocks)
    starts = segments.offsets([len(b) for b in blocks[:-1]]).astype(np.int64)
    inside = margin[np.ix_(order, order)]
    found: list[list[bool]] = (np.add.reduceat(np.add.reduceat(inside, starts, 0), starts, 1) > 0).tolist()
    return found


def _merge_runs(beats: list[list[bool]], left: list[int], right: list[int]) -> list[int]:
    """Merge two runs of blocks; the left one goes first unless the right one beats it."""
    merged, i, j = [], 0, 0
    while i < len(left) and j < len(right):
        if beats[right[j]][left[i]]:
            merged.append(right[j])
            j += 1
        else:
            merged.append(left[i])
            i += 1
    return merged + left[i:] + right[j:]


def score_blocks(blocks: list[I8], size: int) -> F8:
    """Items below minus items above, from tied blocks in order."""
    scores, above = np.empty(size), 0
    for block in blocks:
        scores[block] = size - 2 * above - len(block)
        above += len(block)
    return scores
