"""The graph of items placed above other items, to report what the data leave undetermined."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from podium.kernels import graphs
from podium.kernels.dispatch import B1, I8
from podium.kernels.pairwise_votes import Votes, count_items_above

__all__ = ["Connections", "find_connections"]


class Connections(NamedTuple):
    """By slot: whether it is ever placed above another item, or below one (a tie is both); and its groups.

    Items of one `group` are connected by comparisons, directly or through others; within a `level` each is
    also above each, directly or through others.
    """

    above: B1
    below: B1
    group: I8
    level: I8


def find_connections(votes: Votes) -> Connections:
    """Read all votes of positive weight; neighbors in a list suffice, and ties count both ways."""
    counts = np.repeat(votes.list_weight > 0, np.diff(votes.starts))
    above_row, upto = count_items_above(votes.starts, votes.rank)
    item, row = votes.item.astype(np.int64), np.arange(len(votes.item))
    base = np.repeat(votes.starts[:-1], np.diff(votes.starts))
    stop = np.repeat(votes.starts[1:], np.diff(votes.starts))
    head = base + above_row  # the first row of the same rank
    # links to the first item of a rank, and from it to the next rank, connect what all pairs would
    tied, next_ = counts & (row != head), counts & (row == head) & (base + upto < stop)
    counted = votes.vote_weight > 0
    won, lost = votes.winner[counted].astype(np.int64), votes.loser[counted].astype(np.int64)
    even = votes.tie[counted]
    # pairs of slots, upper and lower, with the same connectivity as the votes
    links = [
        (item[head[tied]], item[tied]),
        (item[tied], item[head[tied]]),
        (item[next_], item[(base + upto)[next_]]),
        (won, lost),
        (lost[even], won[even]),
    ]
    if votes.below:
        # the last place of every list is above all unlisted items
        lists = np.flatnonzero((votes.list_weight > 0) & (np.diff(votes.starts) > 0))
        query = np.repeat(np.arange(len(votes.slots) - 1), np.diff(votes.query_starts))[lists]
        size = np.diff(votes.slots)[query]
        # a cell for each list and each item of its query; cells that stay free are unlisted items
        begin = np.cumsum(size) - size
        free = np.ones(int(size.sum()), np.bool_)
        where = np.full(len(votes.list_weight), -1)
        where[lists] = begin - votes.slots[query]
        offset = np.repeat(where, np.diff(votes.starts))
        counts = np.repeat(votes.list_weight > 0, np.diff(votes.starts))
        free[(offset + item)[counts]] = False
        slot = np.arange(len(free)) - np.repeat(begin - votes.slots[query], size)
        last = np.repeat(item[head[votes.starts[1:][lists] - 1]], size)
        links.append((last[free], slot[free]))
    upper, lower = (np.concatenate(sides) for sides in zip(*links, strict=True))
    slots = int(votes.slots[-1])
    above, below = np.zeros(slots, np.bool_), np.zeros(slots, np.bool_)
    above[upper] = below[lower] = True
    group = graphs.label_weak_components(upper, lower, slots)
    return Connections(above, below, group, graphs.label_strong_components(upper, lower, slots))
