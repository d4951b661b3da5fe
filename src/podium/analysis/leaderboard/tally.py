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

from podium.analysis.leaderboard.score_estimate import MOST_ITEMS
from podium.core.errors import InputError, ParameterError
from podium.data.ids import Id, Ids, code_ids
from podium.data.preferences import Preferences
from podium.kernels.bootstrap import Clusters, Squares
from podium.kernels.contest_counts import (
    Contests,
    PairVotes,
    expand_lists,
    group_votes_by_pair,
    orient_votes,
)
from podium.kernels.dispatch import F8, I8
from podium.kernels.grouping import number_rows, sum_by_group, sum_rows
from podium.methods.majority import collect_votes

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
        index, v = preferences.index, preferences.comparisons
        item = code_ids(index.items.tolist(), "item").with_sorted_ids()
        query = code_ids(index.queries.tolist(), "query").with_sorted_ids()
        side = np.zeros(len(v), np.int64) if v.side is None else v.side
        columns: list[tuple[Any, ...]] = [
            (v.winner, v.loser, v.tie, v.weight, side, v.expert, v.query_of_row)
        ]
        lists = preferences.lists
        if lists.rows:
            sizes = index.sizes[lists.query_of_list] if preferences.unlisted == "below" else lists.lengths
            if float((lists.lengths * (sizes - lists.lengths / 2)).sum()) > MOST_PAIRS:
                raise InputError(
                    f"the lists expand to more than {MOST_PAIRS:,} comparisons of two items",
                    remedy="keep only the top of the lists",
                )
            equal = np.ones(len(preferences.experts))
            *pairs, source = expand_lists(collect_votes(preferences, equal)[0])
            ones, no_side = np.ones(len(source)), np.zeros(len(source), np.int64)
            columns.append((*pairs, ones, no_side, lists.expert[source], lists.query_of_list[source]))
        winner, loser, tie, weight, side, expert, of_query = map(np.concatenate, zip(*columns, strict=True))
        if not len(winner):
            raise InputError("there are no votes", remedy="a leaderboard needs lists or comparisons")
        votes = orient_votes(item.codes[winner], item.codes[loser], tie, weight, side=side)
        squares = (column * column for column in votes[4:])
        rows = _sum_columns(expert, query.codes[of_query], *votes[1:], *squares)
        listed, fractional = bool(lists.rows), bool((v.weight != np.rint(v.weight)).any())
        return cls(item.ids, preferences.experts, query.ids, **rows, listed=listed, fractional=fractional)

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
            # 1 next to '1': two files that write one id in two ways would create two ids
            numbers = {str(i): i for i in both.ids if not isinstance(i, str)}
            alike = (
                next((i for i in both.ids if isinstance(i, str) and i in numbers), None) if numbers else None
            )
            if alike is not None:
                raise InputError(
                    f"the merged {name} have both {alike!r} and {numbers[alike]!r}, which look like one id",
                    remedy="write ids as numbers in both, or as text in both (tables in CSV hold text)",
                )
            ids.append(both.ids)
            codes.append((both.codes[: len(mine)], both.codes[len(mine) :]))
        parts = []
        for k, t in enumerate((self, other)):
            item, expert, query = (c[k] for c in codes)
            places = expert[t.expert], query[t.query], item[t.first], item[t.second]
            parts.append((*places, t.side, *t.sums, *t.weight_squares("importance")))
        items, experts, queries = ids
        marks = {name: getattr(self, name) or getattr(other, name) for name in MARKS}
        rows = _sum_columns(*map(np.concatenate, zip(*parts, strict=True)))
        return Tally(items, experts, queries, **rows, **marks)

    def pool_queries(self) -> Tally:
        """The same votes pooled over queries: one row per observed pair."""
        expert, _, *rest = (getattr(self, name) for name in COLUMNS)
        return replace(self, queries=Ids(["all"]), **_sum_columns(expert, np.zeros_like(self.query), *rest))

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
        rows = PairVotes(self.expert, self.first, self.second, self.side, *self.sums)
        return group_votes_by_pair(np.array([0, len(self.items)]), rows, sides=sides)

    def pair_of_row(self, sides: bool = False) -> I8:
        """Per row, the number of its pair among the contests made with the same `sides`."""
        return number_rows(self.first, self.second, *([self.side + 1] if sides else []))[1]

    def pair_squares(self, meaning: WeightMeaning, *, sides: bool = False) -> Squares:
        """Sums of squared weights by pair, for contests made with the same `sides`."""
        pair = self.pair_of_row(sides)
        count = int(pair.max(initial=-1)) + 1
        return Squares(*(sum_by_group(pair, c, count) for c in self.weight_squares(meaning)))

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
        return number_rows(self.expert, self.query, self.first, self.second)[1]

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

    def count_by_expert(self) -> F8:
        """Weight of the votes per expert."""
        return sum_by_group(self.expert, self.won + self.lost + self.tied, len(self.experts))

    def count_by_item(self) -> tuple[F8, F8, F8]:
        """Wins, losses and ties per item."""
        size = len(self.items)
        columns = (self.won, self.lost), (self.lost, self.won), (self.tied, self.tied)
        wins, losses, ties = (
            sum_by_group(self.first, a, size) + sum_by_group(self.second, b, size) for a, b in columns
        )
        return wins, losses, ties


def check_items(preferences: Preferences) -> None:
    """Reject more items than a leaderboard supports, before counting their comparisons."""
    index = preferences.index
    if len(index.items) <= MOST_ITEMS:
        return
    count = len(set(index.items.tolist()))
    if count > MOST_ITEMS:
        apart = len(index) > 1 and int(index.sizes.max()) <= MOST_ITEMS
        raise InputError(
            f"{count:,} items are too many for one leaderboard; intervals need a matrix for at most "
            f"{MOST_ITEMS:,} items",
            remedy="keep the items with the most votes"
            + (", or build one leaderboard per query (--by query)" if apart else ""),
        )


def _sum_columns(expert: I8, query: I8, first: I8, second: I8, side: I8, *values: F8) -> dict[str, Any]:
    """The columns of a tally: equal rows merged, in order."""
    (*keys, shown), sums = sum_rows((expert, query, first, second, side + 1), values)
    return dict(zip(COLUMNS, (*keys, shown - 1, *sums), strict=True))
