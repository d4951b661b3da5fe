"""Orders from pairwise majorities as numpy expressions of the vote matrix of one query."""

from __future__ import annotations

import numpy as np

from podium.kernels.pairwise_votes import count_items_above


def compute_vote_matrix(votes, query):
    """The matrix W of one query, for small inputs."""
    base, size = int(votes.slots[query]), int(votes.slots[query + 1] - votes.slots[query])
    first, last = votes.query_starts[query : query + 2]
    starts = votes.starts[first : last + 1]
    rows = slice(int(starts[0]), int(starts[-1]))
    item = votes.item[rows].astype(np.int64) - base
    weight = votes.list_weight[first:last]
    lengths = np.diff(starts)
    end = np.repeat(starts[1:], lengths) - starts[0]
    _, upto = count_items_above(starts - starts[0], votes.rank[rows])
    below = end - (np.repeat(starts[:-1], lengths) - starts[0]) - upto  # rows below each row in its list
    better = np.repeat(np.arange(len(item)), below)
    worse = np.repeat(end, below) - np.repeat(np.cumsum(below), below) + np.arange(len(better))
    won = np.bincount(
        item[better] * size + item[worse],
        weights=np.repeat(np.repeat(weight, lengths), below),
        minlength=size**2,
    )
    table = won.astype(np.float64, copy=False).reshape(size, size)  # without any rows the type is integer
    if votes.below and len(weight):
        held = np.zeros((len(weight), size))
        held[np.repeat(np.arange(len(weight)), lengths), item] = 1.0
        table += (held * weight[:, None]).T @ (1.0 - held)
    return _add_comparisons(table, votes, query, base)


def _add_comparisons(table, votes, query, base):
    rows = slice(*votes.vote_starts[query : query + 2].tolist())
    if rows.start < rows.stop:
        weight = np.where(votes.tie[rows], 0.0, votes.vote_weight[rows])
        at = (votes.winner[rows].astype(np.int64) - base) * len(table) + (votes.loser[rows] - base)
        table += np.bincount(at, weights=weight, minlength=table.size).reshape(table.shape)
    return table


def compute_margins(table):
    """W - W'."""
    return table - table.T


def copeland(table):
    """Items beaten minus items lost to."""
    return np.asarray(np.sign(compute_margins(table)).sum(axis=1), np.float64)


def condorcet(table):
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


def greedy(table):
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


def schulze(table, winning):
    """Items beaten minus items lost to, by the strength of the strongest path of majorities."""
    margin = compute_margins(table)
    path = np.where(margin > 0, table if winning else margin, 0.0)
    for k in range(len(table)):
        np.maximum(path, np.minimum(path[:, k, None], path[k]), out=path)
    return copeland(path)


def ranked_pairs(table):
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


def _find_strengths(table, winning):
    margin = compute_margins(table)
    return np.where(margin > 0, table if winning else margin, 0.0)


def _take_least_defeated(strength):
    blocks, left = [], np.arange(len(strength))
    while len(left):
        worst = strength[np.ix_(left, left)].max(axis=0)
        blocks.append(left[worst == worst.min()])
        left = left[worst > worst.min()]
    return score_blocks(blocks, len(strength))


def minimax(table, winning):
    """Repeatedly take the items whose strongest defeat by those left is weakest."""
    return _take_least_defeated(_find_strengths(table, winning))


def split_cycle(table, winning):
    """Repeatedly take the items that none of those left defeats."""
    strength = _find_strengths(table, winning)
    path = strength.copy()
    for k in range(len(path)):
        path = np.maximum(path, np.minimum(path[:, k, None], path[k]))
    return _take_least_defeated((strength > path.T).astype(np.float64))


def _add_to_closure(reach, i, j):
    """Update the transitive closure of a relation with i -> j."""
    if not reach[i, j]:
        reach[reach[:, i]] |= reach[j]


def _split_by_key(items, key):
    """Groups of equal key, the largest key first."""
    order = np.argsort(-key, kind="stable")
    cuts = np.flatnonzero(key[order][1:] != key[order][:-1]) + 1
    return list(np.split(items[order], cuts))


def _refine_block(margin, block):
    """Split a block recursively by wins minus losses within it until nothing more can be separated."""
    if len(block) == 1:
        return [block]
    groups = _split_by_key(block, np.sign(margin[np.ix_(block, block)]).sum(axis=1))
    return groups if len(groups) == 1 else [b for g in groups for b in _refine_block(margin, g)]


def _compare_blocks(margin, blocks):
    """Whether each block beats each other one by summed votes."""
    order = np.concatenate(blocks)
    starts = np.concatenate(([0], np.cumsum([len(b) for b in blocks[:-1]]))).astype(np.int64)
    inside = margin[np.ix_(order, order)]
    return (np.add.reduceat(np.add.reduceat(inside, starts, 0), starts, 1) > 0).tolist()


def _merge_runs(beats, left, right):
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


def score_blocks(blocks, size):
    """Items below minus items above, from tied blocks in order."""
    scores, above = np.empty(size), 0
    for block in blocks:
        scores[block] = size - 2 * above - len(block)
        above += len(block)
    return scores
