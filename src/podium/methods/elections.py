"""Voting rules that read ballots as a whole: points by place, elimination in rounds, and medians of grades."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from podium.core.errors import ParameterError
from podium.core.params import Choice, Range
from podium.data.preferences import Form, Preferences
from podium.kernels import majority, segments
from podium.kernels.dispatch import B1, F8, I8
from podium.kernels.pairwise_votes import count_items_above, whole_weights
from podium.methods.base import LIST_FORMS, Aggregator, Outcome, Tags
from podium.methods.costs import Cost
from podium.methods.positional import MissingRule

__all__ = ["InstantRunoff", "MajorityJudgment", "ScoringRule"]

RULES = ("plurality", "veto", "k_approval", "dowdall", "borda")
NO_ROUNDS = "keep the top of the lists, or use a method that needs no rounds, such as borda or scoring"


@dataclass(kw_only=True, eq=False, repr=False)
class ScoringRule(Aggregator):
    """Points by place, summed over experts: a positional scoring rule.

    `points` is a rule or the points of the first places, falling; later places have 0. With M items the rules
    are `plurality` (1, 0, 0, ...), `veto` (1, ..., 1, 0), `k_approval` (1 for the first k places), `dowdall`
    (1, 1/2, 1/3, ...) and `borda` (M - 1, ..., 1, 0). Tied items share the points of their places, and so do
    the items that an expert does not list, unless `missing` says otherwise: `"last"` gives them the points of
    the last place; `"ignore"` restricts the expert to its own items.

    >>> from podium import fuse
    >>> fuse([["a", "b", "c"], ["b", "c", "a"], ["a", "c", "b"]], method="scoring(points=[3, 1])").scores
    [6.0, 4.0, 2.0]
    """

    name = "scoring"
    aliases = ("positional_scoring", "scoring_rule")
    citation = "Young, SIAM Journal on Applied Mathematics 1975"
    tags = Tags(accepts=LIST_FORMS, additive=True)

    points: Annotated[Any, f"{', '.join(RULES)}, or the points of the first places"] = "dowdall"
    k: Annotated[int, Range(1, 2**31 - 1), "with points='k_approval': number of approved places"] = 3
    missing: MissingRule = "share"

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.points, str) and self.points in RULES:
            return
        accepted = f"{', '.join(RULES)}, or numbers from 0 that do not rise, such as [3, 1]"
        given = self.points if isinstance(self.points, list | tuple) else ()
        numbers = [p for p in given if isinstance(p, int | float) and not isinstance(p, bool)]
        falling = np.isfinite(numbers).all() and all(np.diff([*numbers, 0.0]) <= 0)
        if not numbers or len(numbers) < len(given) or not falling:
            raise ParameterError(f"{self.name}: points is {self.points!r}; accepted: {accepted}")
        self.points = [float(p) for p in numbers]

    def _sum_first_points(self, places: I8, size: I8) -> F8:
        """Sum of the points of the first places of lists of `size` items."""
        if self.points == "borda":
            return np.asarray(places * size - places * (places + 1) / 2, np.float64)
        if self.points == "dowdall":
            return segments.offsets(1.0 / np.arange(1.0, places.max(initial=0) + 1))[places]
        if isinstance(self.points, list):
            return segments.offsets(np.array(self.points))[np.minimum(places, len(self.points))]
        most: Any = {"plurality": 1, "k_approval": self.k, "veto": size - 1}[self.points]
        return np.asarray(np.minimum(places, most), np.float64)

    def _scores(self, preferences: Preferences, weights: F8) -> F8:
        lists, sizes = preferences.lists, preferences.index.sizes
        above, upto = count_items_above(lists.starts, lists.rank)
        length, weight = lists.lengths, weights[lists.expert]
        size = length if self.missing == "ignore" else sizes[lists.query_of_list]
        of_row = size[lists.list_of_row]
        tied = self._sum_first_points(upto, of_row) - self._sum_first_points(above, of_row)
        points = tied / np.maximum(upto - above, 1)
        whole = self._sum_first_points(size, size)
        if self.missing == "share":
            unlisted = (whole - self._sum_first_points(length, size)) / np.maximum(size - length, 1)
        elif self.missing == "last":
            unlisted = whole - self._sum_first_points(np.maximum(size - 1, 0), size)
        else:
            unlisted = np.zeros(len(lists))
        total = lists.sum_affine(points, -weight * unlisted, weight, len(preferences.index.items))
        everyone = np.bincount(lists.query_of_list, weights=weight * unlisted, minlength=len(sizes))
        return total + np.repeat(everyone, sizes)


@dataclass(kw_only=True, eq=False, repr=False)
class InstantRunoff(Aggregator):
    """Eliminate the items with the fewest first places, round by round; score = items below minus items above.

    In each round a ballot counts for its best remaining item; tied items share it, and a ballot without
    remaining items does not count. Items eliminated together are ordered by the same rule among themselves;
    if all remaining items have equally many first places, they are tied.

    >>> from podium import fuse
    >>> fuse([list("abc"), list("abc"), list("bca"), list("cba"), list("cba")], method="irv").ranking
    ['c', 'a', 'b']
    """

    name = "irv"
    aliases = ("instant_runoff", "hare")
    citation = "Ware 1871; Tideman, Collective Decisions and Voting 2006"
    tags = Tags(accepts=LIST_FORMS, pairwise="items")

    def _estimate_costs(self, preferences: Preferences) -> list[Cost]:
        sizes = preferences.index.sizes.astype(np.float64)
        if not len(sizes):
            return []
        table = sizes * np.diff(preferences.lists.query_starts)
        worst = int((table * sizes).argmax())
        size, cells = float(sizes[worst]), float(table[worst])
        pairs = size * (size - 1) / 2
        return [Cost(pairs, "pairs of items", 25 * cells, 5 * cells * size, worst, NO_ROUNDS)]

    def _scores(self, preferences: Preferences, weights: F8) -> F8:
        lists, index = preferences.lists, preferences.index
        whole, _ = whole_weights(weights)
        scores = np.zeros(len(index.items))
        for q in np.flatnonzero(index.sizes).tolist():
            base, size = int(index.starts[q]), int(index.sizes[q])
            first, last = lists.query_starts[q : q + 2].tolist()
            rows = slice(int(lists.starts[first]), int(lists.starts[last]))
            rank = np.full((last - first, size), np.inf)
            rank[lists.list_of_row[rows] - first, lists.item[rows] - base] = lists.rank[rows]
            blocks = order_by_elimination(rank, whole[lists.expert[first:last]])
            scores[base : base + size] = majority.score_blocks(blocks, size)
        return scores


def order_by_elimination(rank: F8, weight: F8) -> list[I8]:
    """Tied blocks of items, best first, from a table of ranks by ballot and item (infinite where unlisted)."""
    blocks: list[I8] = []
    waiting = [np.arange(rank.shape[1])]
    while waiting:
        left = waiting.pop()
        while len(left) > 1:
            here = rank[:, left]
            best = here.min(axis=1, keepdims=True)
            is_first = (here == best) & np.isfinite(best)
            share = weight / np.maximum(is_first.sum(axis=1), 1)
            count = np.einsum("b,bi->i", share, is_first)
            # shares of a ballot are fractions, whose sums have rounding errors
            fewest = count <= count.min() + 1e-9 * weight.sum()
            if fewest.all():
                break
            waiting.append(left[fewest])
            left = left[~fewest]
        blocks.append(left)
    return blocks


@dataclass(kw_only=True, eq=False, repr=False)
class MajorityJudgment(Aggregator):
    """The median grade, then the share of the grades above or below it; score = items below minus items above.

    The median is the lower one of an even number of grades. Among items with the same median, let p be the
    share of higher grades and q that of lower ones: items with p > q come first, the largest p leading, then
    the others, the smallest q leading (the majority gauge).

    >>> from podium import fuse
    >>> fuse([{"a": 4, "b": 5}, {"a": 3, "b": 1}, {"a": 3, "b": 2}], method="majority_judgment").ranking
    ['a', 'b']
    """

    name = "majority_judgment"
    aliases = ("majority_judgement",)
    citation = "Balinski & Laraki, PNAS 2007"
    tags = Tags(accepts=frozenset({Form.RATING}))

    missing: Annotated[
        str,
        Choice("ignore", "worst"),
        "items that an expert does not rate: no grade, or the lowest of the query",
    ] = "ignore"

    def _scores(self, preferences: Preferences, weights: F8) -> Outcome:
        index = preferences.index
        item, grade, weight = self._collect_grades(preferences, whole_weights(weights)[0])
        order = np.lexsort((grade, item))
        item, grade, weight = item[order], grade[order], weight[order]
        slots = len(index.items)
        total = np.bincount(item, weight, slots)
        running = np.cumsum(weight) - np.concatenate(([0.0], np.cumsum(total)))[item]
        # the first grade at which the running weight reaches one half
        reached = np.flatnonzero(2 * running >= total[item])
        median = np.full(slots, -np.inf)
        median[item[reached[::-1]]] = grade[reached[::-1]]
        higher, lower = (
            np.bincount(item, weight * beyond, slots)
            for beyond in (grade > median[item], grade < median[item])
        )
        gauge = np.where(higher > lower, higher, -lower) / np.where(total > 0, total, 1.0)
        # by slot, the items of its query that are worse minus those that are better
        query = index.query_of_slot
        columns: Sequence[Any] = (query, median, gauge)
        order = np.lexsort(columns[::-1])
        changes: list[B1] = [np.diff(c[order], prepend=np.nan) != 0 for c in columns]
        first = np.flatnonzero(np.logical_or.reduce(changes))
        size = np.diff(np.append(first, len(query)))
        starts = np.searchsorted(query, query[order[first]])
        ends = np.searchsorted(query, query[order[first]], side="right")
        scores = np.empty(len(query))
        scores[order] = np.repeat((first - starts) - (ends - first - size), size)
        return Outcome(scores, absent=total <= 0)

    def _collect_grades(self, preferences: Preferences, weights: F8) -> tuple[I8, F8, F8]:
        """Item, grade and weight of every grade, also of those that `missing` adds."""
        lists, index = preferences.lists, preferences.index
        which = lists.list_of_row
        item, weight = lists.item.astype(np.int64), weights[lists.expert][which]
        grade = np.zeros(0) if lists.score is None else lists.score
        counted = weight > 0
        item, grade, weight = item[counted], grade[counted], weight[counted]
        if self.missing == "ignore":
            return item, grade, weight
        lowest = np.full(len(index), np.inf)
        np.minimum.at(lowest, index.query_of_slot[item], grade)
        voters = np.bincount(lists.query_of_list, weights[lists.expert], len(index))
        added = np.repeat(voters, index.sizes) - np.bincount(item, weight, len(index.items))
        missed = np.flatnonzero(added > 0)
        return (
            np.concatenate((item, missed)),
            np.concatenate((grade, lowest[index.query_of_slot[missed]])),
            np.concatenate((weight, added[missed])),
        )
