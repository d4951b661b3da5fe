"""Tallied votes: per expert, query and pair of items, the wins of each side.

A tally keeps everything a leaderboard needs, and tallies can be added, so saved leaderboards store them. Sums
of squared weights are kept next to the sums of weights: votes of unequal weights vary more than their sum
suggests. Items with the same id are one item, whatever the query.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from podium.analysis.leaderboard.inference import MOST_ITEMS
from podium.core.errors import InputError, ParameterError
from podium.data.ids import Id, Ids, code_ids
from podium.data.preferences import Preferences
from podium.kernels import segments
from podium.kernels.bootstrap import Clusters, Squares
from podium.kernels.contest_scores import Contests, count_contests
from podium.kernels.dispatch import B1, F8, I8
from podium.kernels.pairwise_votes import Votes

__all__ = ["SamplingUnit", "Tally", "WeightMeaning", "check_items"]

SamplingUnit = Literal["votes", "experts", "queries"]
WeightMeaning = Literal["frequency", "importance"]  # how vote weights enter the errors
MOST_PAIRS = 200_000_000  # largest number of contests that lists may expand to
SQUARES = ("won_squares", "lost_squares", "tied_squares")
SOFT = 1e-6  # rounding tolerance of vote shares that sum to 1
MARKS = ("listed", "fractional")
COLUMNS = ("expert", "query", "first", "second", "side", "won", "lost", "tied", *SQUARES)


@dataclass(frozen=True, eq=False, repr=False)
class Tally:
    """Rows are unique and sorted; `side` is 1 if `first` was shown first, -1 if `second` was, 0 if unknown.

    >>> votes = Preferences.from_comparisons([0] * 3, ["j"] * 3, ["a", "a", "b"], ["b", "b", "a"])
    >>> tally = Tally.from_preferences(votes)
    >>> tally, tally.won.tolist(), tally.lost.tolist()
    (Tally(3 votes on 2 items by 1 expert), [2.0], [1.0])
    """

    items: Ids  # distinct, in id order, like the other ids
    experts: Ids
    queries: Ids
    expert: I8
    query: I8
    first: I8
    second: I8
    side: I8
    won: F8
    lost: F8
    tied: F8
    won_squares: F8  # sums of the squared weights of the votes
    lost_squares: F8
    tied_squares: F8
    listed: bool = False  # some votes come from lists, whose contests are correlated
    fractional: bool = False  # some weight is not a whole number

    @classmethod
    def from_preferences(cls, preferences: Preferences) -> Tally:
        """All pairwise preferences in lists and comparisons."""
        index = preferences.index
        item = code_ids(index.items.tolist(), "item").with_sorted_ids()
        query = code_ids(index.queries.tolist(), "query").with_sorted_ids()
        tables = [t for t in (_comparison_rows(preferences), _list_pair_rows(preferences)) if len(t[0])]
        if not tables:
            raise InputError("there are no votes", remedy="a leaderboard needs lists or comparisons")
        rows = _concat_columns(tables)
        rows |= {"query": query.codes[rows["query"]]}
        rows |= {name: item.codes[rows[name]] for name in ("first", "second")}
        weight, listed = preferences.comparisons.weight, bool(preferences.lists.rows)
        fractional = bool((weight != np.rint(weight)).any())
        ids = item.ids, preferences.experts, query.ids
        return cls(*ids, **_merge_equal_rows(rows), listed=listed, fractional=fractional)

    @property
    def votes(self) -> float:
        """Total weight of the votes."""
        return float(self.won.sum() + self.lost.sum() + self.tied.sum())

    def __repr__(self) -> str:
        experts = f"{len(self.experts):,} expert{'' if len(self.experts) == 1 else 's'}"
        return f"Tally({self.votes:,.10g} votes on {len(self.items):,} items by {experts})"

    def __add__(self, other: Tally) -> Tally:
        """The votes of both tallies."""
        ids, codes = [], []
        for name in ("items", "experts", "queries"):
            mine, theirs = getattr(self, name), getattr(other, name)
            both = code_ids(mine.tolist() + theirs.tolist(), name[:-1]).with_sorted_ids()
            _check_id_types(both.ids, name)
            ids.append(both.ids)
            codes.append((both.codes[: len(mine)], both.codes[len(mine) :]))
        parts = []
        for k, t in enumerate((self, other)):
            item, expert, query = (c[k] for c in codes)
            places = expert[t.expert], query[t.query], item[t.first], item[t.second]
            parts.append((*places, t.side, *t.sums, *t.weight_squares("importance")))
        items, experts, queries = ids
        marks = {name: getattr(self, name) or getattr(other, name) for name in MARKS}
        return Tally(items, experts, queries, **_merge_equal_rows(_concat_columns(parts)), **marks)

    def pool_queries(self) -> Tally:
        """The same votes pooled over queries: one row per observed pair."""
        rows = {name: getattr(self, name) for name in COLUMNS}
        rows["query"] = np.zeros_like(self.query)
        return replace(self, queries=Ids(["all"]), **_merge_equal_rows(rows))

    def drop_unplayed_items(self) -> tuple[Tally, list[Id]]:
        """The tally without items that have no votes, and those items."""
        seen = np.zeros(len(self.items), np.bool_)
        seen[self.first] = seen[self.second] = True
        if seen.all():
            return self, []
        new = np.cumsum(seen) - 1
        items = self.items.take(np.flatnonzero(seen))
        kept = replace(self, items=items, first=new[self.first], second=new[self.second])
        return kept, self.items.take(np.flatnonzero(~seen)).tolist()

    def split_by_query(self) -> Iterator[tuple[Id, Tally]]:
        """One tally per query, on the items compared there; queries without votes are omitted."""
        for code in np.unique(self.query).tolist():
            rows = self.query == code
            columns = {name: getattr(self, name)[rows] for name in COLUMNS}
            columns["query"] = np.zeros_like(columns["query"])
            part = replace(self, queries=Ids([self.queries[code]]), **columns)
            yield self.queries[code], part.drop_unplayed_items()[0]

    def without_experts(self, experts: Sequence[Id]) -> Tally:
        """The votes of all other experts; the items stay."""
        known = {str(e): e for e in self.experts}
        for expert in experts:
            if str(expert) not in known:
                from podium.core.params import suggest_names

                raise ParameterError(
                    f"there is no expert {expert!r} to exclude; {suggest_names(str(expert), known)}"
                )
        left_out = {self.experts.code_of(known[str(e)]) for e in experts}
        kept = np.flatnonzero([c not in left_out for c in range(len(self.experts))])
        new = np.full(len(self.experts), -1)
        new[kept] = np.arange(len(kept))
        rows = new[self.expert] >= 0
        if not rows.any():
            raise InputError("no votes are left", remedy="exclude fewer experts")
        columns = {name: getattr(self, name)[rows] for name in COLUMNS}
        columns["expert"] = new[columns["expert"]]
        return replace(self, experts=self.experts.take(kept), **columns)

    def scale_by_expert(self, weights: F8) -> Tally:
        """Multiply each expert's votes by its share of one vote among correlated experts.

        The squares are multiplied once, as if there were fewer votes: if n experts are identical, each with a
        share of 1 / n, their votes vary together, as one vote does.
        """
        by_row = weights[self.expert]
        names = ("won", "lost", "tied", *SQUARES)
        return replace(self, **{name: getattr(self, name) * by_row for name in names})

    @property
    def sums(self) -> tuple[F8, F8, F8]:
        """Per row: weight of the votes for first, for second, and for neither."""
        return self.won, self.lost, self.tied

    def weight_squares(self, meaning: WeightMeaning) -> Squares:
        """Per row: sums of squared weights; as a frequency, a vote of weight w is w votes of weight 1."""
        if meaning == "frequency":
            return Squares(*self.sums)
        return Squares(self.won_squares, self.lost_squares, self.tied_squares)

    def to_contests(self, *, sides: bool = False) -> Contests:
        """All votes as the contests of one query; with `sides`, split by which item was shown first."""
        size = len(self.items)
        pair = self._pair_keys(sides)
        unique, which = np.unique(pair, return_inverse=True)
        won, lost, tied = (
            np.asarray(np.bincount(which, weights=c, minlength=len(unique)), np.float64)
            for c in (self.won, self.lost, self.tied)
        )
        key, side = (unique // 3, (unique % 3 - 1).astype(np.float64)) if sides else (unique, None)
        first, second = (key // size).astype(np.int32), (key % size).astype(np.int32)
        ends = np.array([0, size]), np.array([0, len(unique)])
        return Contests(*ends, first, second, won, lost, tied, side)

    def _pair_keys(self, sides: bool) -> I8:
        pair = self.first * len(self.items) + self.second
        return pair * 3 + self.side + 1 if sides else pair

    def pair_squares(self, meaning: WeightMeaning, *, sides: bool = False) -> Squares:
        """Sums of squared weights by pair, for contests made with the same `sides`."""
        pair = self.pair_of_row(sides)
        return Squares(
            *(np.asarray(np.bincount(pair, weights=c), np.float64) for c in self.weight_squares(meaning))
        )

    def cluster_labels(self, over: SamplingUnit, groups: I8 | None = None) -> I8 | None:
        """Per row, the number of its sampling unit; None if every vote is its own.

        If votes come from lists, all votes of an expert on a query form one unit; if votes are soft, its
        votes on two items. `groups` numbers the experts; correlated experts share a number.
        """
        if over == "votes":
            if self.listed:
                return self.expert * len(self.queries) + self.query
            return self._cell_of_row if self.is_soft else None
        if over == "experts":
            return self.expert if groups is None else groups[self.expert]
        if over == "queries":
            return self.query
        raise ParameterError(f"over is {over!r}; accepted: votes, experts, queries")

    @property
    def is_soft(self) -> bool:
        """Whether votes are shares: each expert's votes on two items of a query sum to at most one vote."""
        if not self.fractional:
            return False
        total = np.bincount(self._cell_of_row, weights=sum(self.sums))
        return len(total) > 1 and float(total.max()) <= 1 + SOFT

    @functools.cached_property
    def _cell_of_row(self) -> I8:
        """Per row, the number of its expert, query and two items."""
        voice = _encode_keys(self.expert * len(self.queries) + self.query)[1]
        return _encode_keys((voice * len(self.items) + self.first) * len(self.items) + self.second)[1]

    def build_clusters(
        self, over: SamplingUnit, *, sides: bool = False, groups: I8 | None = None
    ) -> Clusters | None:
        """Resampling clusters for contests made with the same `sides`; None for single votes."""
        label = self.cluster_labels(over, groups)
        if label is None:
            return None
        number, which = np.unique(label, return_inverse=True)
        if len(number) < 2:
            raise ParameterError(
                f"all votes come from one of the {'lists' if over == 'votes' else over}; "
                f"intervals over {over} need at least two"
            )
        order = np.argsort(which, kind="stable")
        starts = np.searchsorted(which[order], np.arange(len(number) + 1))
        return Clusters(starts, self.pair_of_row(sides)[order], *(c[order] for c in self.sums))

    def pair_of_row(self, sides: bool = False) -> I8:
        """Per row, the number of its pair among the contests made with the same `sides`."""
        return np.asarray(np.unique(self._pair_keys(sides), return_inverse=True)[1], np.int64)

    def count_by_item(self) -> tuple[F8, F8, F8]:
        """Wins, losses and ties per item."""
        size = len(self.items)

        def sum_by_item(of_first: F8, of_second: F8) -> F8:
            a = np.bincount(self.first, weights=of_first, minlength=size)
            return np.asarray(a + np.bincount(self.second, weights=of_second, minlength=size), np.float64)

        return (
            sum_by_item(self.won, self.lost),
            sum_by_item(self.lost, self.won),
            sum_by_item(self.tied, self.tied),
        )


def check_items(preferences: Preferences) -> None:
    """Reject more items than a leaderboard supports, before counting their comparisons."""
    index = preferences.index
    if len(index.items) <= MOST_ITEMS:
        return
    found = len(set(index.items.tolist()))
    if found > MOST_ITEMS:
        apart = len(index) > 1 and int(index.sizes.max()) <= MOST_ITEMS
        raise InputError(
            f"{found:,} items are too many for one leaderboard; intervals need a matrix for at most "
            f"{MOST_ITEMS:,} items",
            remedy="keep the items with the most votes"
            + (", or build one leaderboard per query (--by query)" if apart else ""),
        )


def _comparison_rows(p: Preferences) -> tuple[Any, ...]:
    """Expert, query, slots, side, outcome and its square of each comparison, lower slot first."""
    v = p.comparisons
    swap = v.winner > v.loser
    side = np.zeros(len(v), np.int64) if v.side is None else v.side.astype(np.int64)
    win = np.where(v.tie, 0.0, v.weight)
    first, second = np.minimum(v.winner, v.loser), np.maximum(v.winner, v.loser)
    sums = (np.where(swap, 0.0, win), np.where(swap, win, 0.0), np.where(v.tie, v.weight, 0.0))
    return (
        v.expert.astype(np.int64),
        v.query_of_row,
        first.astype(np.int64),
        second.astype(np.int64),
        np.where(swap, -side, side),
        *sums,
        *(c * c for c in sums),
    )


def _list_pair_rows(p: Preferences) -> tuple[Any, ...]:
    """The same for every two items that a list orders: each list counts as its own query."""
    t, below = p.lists, p.unlisted == "below"
    lengths = t.lengths
    sizes = p.index.sizes[t.query_of_list] if below else lengths
    if float((lengths * (sizes - lengths / 2)).sum()) > MOST_PAIRS:
        raise InputError(
            f"the lists expand to more than {MOST_PAIRS:,} comparisons of two items",
            remedy="keep only the top of the lists",
        )
    slots = segments.offsets(sizes)
    base = p.index.starts[t.query_of_list]
    slot_of = t.item.astype(np.int64)
    item = np.arange(t.rows)
    if below:
        item = slot_of + np.repeat(slots[:-1] - base, lengths)
        slot_of = np.repeat(base - slots[:-1], sizes) + np.arange(int(slots[-1]))
    none, lists = np.zeros(0, np.int32), len(t)
    no_votes = (np.zeros(lists + 1, np.int64), none, none, np.zeros(0, np.bool_), np.zeros(0))
    own = Votes(
        slots, np.arange(lists + 1), t.starts, item.astype(np.int32), t.rank, np.ones(lists), *no_votes, below
    )
    met = count_contests(own)
    which = np.repeat(np.arange(lists), np.diff(met.pair_starts))
    first, second = slot_of[met.first], slot_of[met.second]
    swap = first > second
    won, lost = np.where(swap, met.lost, met.won), np.where(swap, met.won, met.lost)
    first, second = np.minimum(first, second), np.maximum(first, second)
    side = np.zeros(len(first), np.int64)
    return (
        t.expert[which].astype(np.int64),
        t.query_of_list[which],
        first,
        second,
        side,
        *(won, lost, met.tied) * 2,
    )


def _check_id_types(ids: Ids, name: str) -> None:
    """Reject 1 next to '1': two files that write one id in two ways would create two ids."""
    numbers = {str(i): i for i in ids if not isinstance(i, str)}
    both = [i for i in ids if isinstance(i, str) and i in numbers] if numbers else []
    if both:
        raise InputError(
            f"the merged {name} have both {both[0]!r} and {numbers[both[0]]!r}, which look like one id",
            remedy="write ids as numbers in both, or as text in both (tables in CSV hold text)",
        )


def _concat_columns(parts: Sequence[tuple[Any, ...]]) -> dict[str, Any]:
    return dict(zip(COLUMNS, map(np.concatenate, zip(*parts, strict=True)), strict=True))


def _merge_equal_rows(rows: dict[str, Any]) -> dict[str, Any]:
    """Merge equal rows, sorted by their columns."""
    expert, query, first, second, side, *sums = rows.values()
    queries, items = int(query.max(initial=0)) + 1, int(second.max(initial=0)) + 1
    cells, cell = _encode_keys(expert * queries + query)
    key = ((cell * items + first) * items + second) * 3 + side + 1
    keys, which = _encode_keys(key)
    totals = [np.asarray(np.bincount(which, weights=c, minlength=len(keys)), np.float64) for c in sums]
    pair = keys // 3
    of = cells[pair // items // items]
    found = (of // queries, of % queries, pair // items % items, pair % items, keys % 3 - 1, *totals)
    return dict(zip(COLUMNS, found, strict=True))


def _encode_keys(key: I8) -> tuple[I8, I8]:
    """Distinct values in order, and the number of each row's value; by marking if the values are small."""
    top = int(key.max(initial=0)) + 1
    if top > 4 * len(key) + 1000:
        distinct, which = np.unique(key, return_inverse=True)
        return distinct, which
    there: B1 = np.zeros(top, np.bool_)
    there[key] = True
    return np.flatnonzero(there), (np.cumsum(there) - 1)[key]
