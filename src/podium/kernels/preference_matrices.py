"""Pairwise matrices Y as lists and votes, and products with them by running sums along the lists."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from podium.kernels import segments
from podium.kernels.dispatch import F8, I4, I8

__all__ = [
    "MatrixOperator",
    "PreferenceMatrices",
    "build_dense_matrix",
    "compact_matrices",
    "select_matrices",
]


class PreferenceMatrices(NamedTuple):
    """Many pairwise matrices Y, each over the items of one query, each the sum of lists and votes."""

    slots: I8  # items of query q: slots[q] .. slots[q + 1]
    query: I8  # query of each matrix
    list_starts: I8  # lists of matrix g: list_starts[g] .. list_starts[g + 1]
    starts: I8  # rows of list l: starts[l] .. starts[l + 1]
    item: I4  # slot of each row
    value: F8  # position of each row on its list's scale, ascending inside the list; equal values are ties
    binary: bool  # the strength of i over j is 1 where i is above j, not the difference of their values
    below: bool  # whether lists put unlisted items below the listed ones, with strength 1
    vote_starts: I8  # votes of matrix g: vote_starts[g] .. vote_starts[g + 1]
    winner: I4
    loser: I4
    strength: F8  # of each vote

    @property
    def sizes(self) -> I8:
        """Items of each matrix."""
        return np.diff(self.slots)[self.query]

    @property
    def starts_out(self) -> I8:
        """Matrix g owns the entries starts_out[g] .. starts_out[g + 1] of a vector over (matrix, item)."""
        return segments.offsets(self.sizes)

    @property
    def owner(self) -> I8:
        """The matrix of each entry of a vector over (matrix, item)."""
        return np.repeat(np.arange(len(self.query)), self.sizes)

    def find_entries(self, slot: I4, lengths: I8) -> I8:
        """Slots as entries of a vector over (matrix, item), given the number of rows per matrix."""
        return slot.astype(np.int64) + np.repeat(self.starts_out[:-1] - self.slots[self.query], lengths)


def select_matrices(m: PreferenceMatrices, which: I8) -> PreferenceMatrices:
    """Some of the matrices, in the requested order."""
    list_starts, lists = segments.gather_segments(m.list_starts, which)
    starts, rows = segments.gather_segments(m.starts, lists)
    vote_starts, votes = segments.gather_segments(m.vote_starts, which)
    return m._replace(
        query=m.query[which],
        list_starts=list_starts,
        starts=starts,
        item=m.item[rows],
        value=m.value[rows],
        vote_starts=vote_starts,
        winner=m.winner[votes],
        loser=m.loser[votes],
        strength=m.strength[votes],
    )


def compact_matrices(m: PreferenceMatrices) -> tuple[PreferenceMatrices, I8]:
    """The same matrices without the items they do not mention, and the old entry of each new one."""
    rows, votes = np.diff(m.starts[m.list_starts]), np.diff(m.vote_starts)
    sides = (m.find_entries(m.item, rows), m.find_entries(m.winner, votes), m.find_entries(m.loser, votes))
    held = np.zeros(int(m.starts_out[-1]), np.bool_)
    for entries in sides:
        held[entries] = True
    if m.below:
        held |= np.repeat(rows > 0, m.sizes)
    new = segments.offsets(held)
    item, winner, loser = (new[entries].astype(np.int32) for entries in sides)
    query = np.arange(len(m.query))
    smaller = m._replace(slots=new[m.starts_out], query=query, item=item, winner=winner, loser=loser)
    return smaller, np.flatnonzero(held)


def build_dense_matrix(m: PreferenceMatrices, g: int) -> F8:
    """Matrix number g as a dense array."""
    base, end = m.slots[m.query[g] : m.query[g] + 2].tolist()
    size = end - base
    table = np.zeros((size, size))
    for number in range(int(m.list_starts[g]), int(m.list_starts[g + 1])):
        rows = slice(int(m.starts[number]), int(m.starts[number + 1]))
        held, value = m.item[rows].astype(np.int64) - base, m.value[rows]
        over = value[None, :] - value[:, None]
        table[held[:, None], held] += over > 0 if m.binary else np.maximum(over, 0.0)
        if m.below and len(held):
            rest = np.ones(size, np.bool_)
            rest[held] = False
            table[held] += rest
    votes = slice(int(m.vote_starts[g]), int(m.vote_starts[g + 1]))
    np.add.at(table, (m.winner[votes] - base, m.loser[votes] - base), m.strength[votes])
    return table


class _ListBlock(NamedTuple):
    """Lists of similar length, side by side; padding rows point to the entry after the last."""

    at: I8  # (lists, width): entry of each row in a vector over (matrix, item)
    gap: F8  # value of each row minus that of the row before it
    after: I8  # place of the first row with a larger value
    tied: I8  # place of the first row with the same value
    matrix: I8  # matrix of each list
    partial: F8  # 1 for lists that do not hold all items, 0 for the others


class MatrixOperator:
    """Products of all matrices with the parts of one vector over (matrix, item)."""

    def __init__(self, m: PreferenceMatrices) -> None:
        self.m, self.owner, self.count = m, m.owner, len(m.query)
        self.size = len(self.owner)
        self.winner, self.loser = (
            m.find_entries(side, np.diff(m.vote_starts)) for side in (m.winner, m.loser)
        )
        self.blocks = list(_group_lists_by_length(m, self.size))

    def compute_dots(self, x: F8, y: F8) -> F8:
        """Inner products, one per matrix."""
        return np.bincount(self.owner, x * y, self.count).astype(np.float64, copy=False)

    def _sum_by_entry(self, at: I8, value: F8) -> F8:
        """Sums by entry, and one more for padding."""
        return np.bincount(at, value, self.size + 1).astype(np.float64, copy=False)

    def multiply(self, x: F8) -> F8:
        """Y x."""
        padded = np.append(x, 0.0)
        out = self._sum_by_entry(self.winner, self.m.strength * x[self.loser])
        whole = np.bincount(self.owner, x, self.count) if self.m.below else None
        for block in self.blocks:
            here = padded[block.at]
            later = np.zeros((len(here), here.shape[1] + 1))
            later[:, :-1] = np.cumsum(here[:, ::-1], 1)[:, ::-1]  # sums from each row on
            # a difference of values is the sum of the gaps between, so sums of sums replace pairs
            if self.m.binary:
                got = np.take_along_axis(later, block.after, 1)
            else:
                got = np.zeros_like(here)
                got[:, :-1] = np.cumsum((block.gap * later[:, :-1])[:, :0:-1], 1)[:, ::-1]
            if whole is not None:
                # `partial` is 0 for full lists, where the difference would be rounding instead of 0
                got += (block.partial * (whole[block.matrix] - later[:, 0]))[:, None]
            out += self._sum_by_entry(block.at.ravel(), got.ravel())
        return out[:-1]

    def multiply_transposed(self, x: F8) -> F8:
        """Y' x."""
        padded = np.append(x, 0.0)
        out = self._sum_by_entry(self.loser, self.m.strength * x[self.winner])
        for block in self.blocks:
            here = padded[block.at]
            earlier = np.zeros((len(here), here.shape[1] + 1))
            np.cumsum(here, 1, out=earlier[:, 1:])  # sums up to each row
            if self.m.binary:
                got = np.take_along_axis(earlier, block.tied, 1)
            else:
                got = np.cumsum(block.gap * earlier[:, :-1], 1)
            if self.m.below:
                given = block.partial * earlier[:, -1]
                out[:-1] += np.bincount(block.matrix, given, self.count)[self.owner]
                # the line above adds it to the listed items too
                got -= given[:, None]
            out += self._sum_by_entry(block.at.ravel(), got.ravel())
        return out[:-1]


def _group_lists_by_length(m: PreferenceMatrices, size: int) -> Iterator[_ListBlock]:
    """Lists grouped by the power of two above their length, so that padding costs little."""
    lengths = np.diff(m.starts)
    matrix = np.repeat(np.arange(len(m.query)), np.diff(m.list_starts))
    entry = m.find_entries(m.item, np.diff(m.starts[m.list_starts]))
    scale = np.ceil(np.log2(np.maximum(lengths, 1))).astype(np.int64)
    for which in np.unique(scale[lengths > 0]):
        lists = np.flatnonzero((scale == which) & (lengths > 0))
        place = np.arange(int(lengths[lists].max()))
        held = place < lengths[lists, None]
        row = np.where(held, m.starts[lists, None] + place, 0)
        owner = matrix[lists]
        value = np.where(held, m.value[row], np.inf)
        step = np.zeros_like(value)
        step[:, 1:] = np.subtract(value[:, 1:], value[:, :-1], out=step[:, 1:], where=held[:, 1:])
        new = (step > 0) | ~held
        new[:, 0] = True
        # running extremes: the place at which the row's value began, and at which the next one begins
        tied = np.maximum.accumulate(np.where(new, place, 0), 1)
        ends = np.full((len(lists), len(place) + 1), len(place))
        ends[:, :-1][new] = np.broadcast_to(place, new.shape)[new]
        after = np.minimum.accumulate(ends[:, ::-1], 1)[:, ::-1][:, 1:]
        yield _ListBlock(
            at=np.where(held, entry[row], size),
            gap=step,
            after=after,
            tied=tied,
            matrix=owner,
            partial=(lengths[lists] < m.sizes[owner]).astype(np.float64),
        )
