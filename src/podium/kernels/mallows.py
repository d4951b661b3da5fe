"""The Mallows model under Kendall's distance: how far rankings scatter around a center.

A list with blocks of t_1, t_2, ... tied items, n in all, is a word over its blocks; its distance to the
center is the number of inversions. Over all words with these blocks phi^inversions sums to [n]! / ([t_1]!
[t_2]! ...), where [n]! = prod_{j <= n} (1 + phi + ... + phi^(j - 1)). So only the number of occurrences of
each size matters, as a whole list (counted up) or as a block (counted down).
"""

from __future__ import annotations

import numpy as np

from podium.kernels.dispatch import F8
from podium.kernels.pairwise_votes import Votes, count_items_above

__all__ = ["compute_expected_distance", "compute_log_likelihood", "count_block_sizes", "estimate_dispersion"]


def count_block_sizes(votes: Votes) -> F8:
    """For every size: the weight of the lists of that size, minus that of their blocks of that size."""
    lengths, sizes = np.diff(votes.starts), np.diff(votes.slots)
    query = np.repeat(np.arange(len(sizes)), np.diff(votes.query_starts))
    whole = sizes[query] if votes.below else lengths
    above, upto = count_items_above(votes.starts, votes.rank)
    weight = np.where(lengths > 0, votes.list_weight, 0.0)
    top = int(sizes.max(initial=0)) + 3

    def sum_by_size(size: object, weights: F8) -> F8:
        return np.bincount(np.asarray(size, np.int64), weights, top).astype(np.float64, copy=False)

    block = upto - above
    pairs = votes.vote_weight[~votes.tie].sum()
    # every row of a block counts its share, so that the block counts once
    found = sum_by_size(whole, weight) - sum_by_size(block, np.repeat(weight, lengths) / np.maximum(block, 1))
    if votes.below:
        found -= sum_by_size(whole - lengths, weight)
    # a comparison is a list of two, and its blocks of one item have no inversions
    found[2] += pairs
    return found


def estimate_dispersion(sizes: F8, distance: float) -> float:
    """The phi in [0, 1] under which the expected distance equals the observed one."""
    if distance <= 0 or compute_expected_distance(sizes, 1.0) <= distance:
        return 0.0 if distance <= 0 else 1.0
    low, high = 0.0, 1.0
    # ends where no double lies between the two
    while high - low > 1e-15 and low < (middle := (low + high) / 2) < high:
        if compute_expected_distance(sizes, middle) < distance:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def compute_expected_distance(sizes: F8, phi: float) -> float:
    """The mean inversions of words with these sizes: sum over j <= n of sum_i i phi^i / sum_i phi^i, i < j."""
    if phi == 1.0:
        n = np.arange(len(sizes))
        return float(sizes @ (n * (n - 1) / 4))
    return float(sizes @ np.cumsum(_compute_factors(len(sizes), phi)[1]))


def compute_log_likelihood(sizes: F8, distance: float, phi: float) -> float:
    """distance log(phi) - log Z."""
    if distance <= 0 and phi == 0:
        return 0.0
    return float(distance * np.log(phi) - sizes @ np.cumsum(np.log(_compute_factors(len(sizes), phi)[0])))


def _compute_factors(top: int, phi: float) -> tuple[F8, F8]:
    """For every n below `top`: 1 + phi + ... + phi^(n - 1) (1 for n = 0), and the mean power in that sum."""
    power = phi ** np.arange(max(top - 1, 0))
    total = np.concatenate(([0.0], np.cumsum(power)))[:top]
    first = np.concatenate(([0.0], np.cumsum(power * np.arange(len(power)))))[:top]
    total[:1] = 1.0
    return total, first / total
