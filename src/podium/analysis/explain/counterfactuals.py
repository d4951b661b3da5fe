"""The smallest single changes that swap two items, each verified by aggregating again.

Three kinds: the weight of one expert, the place of the lower item in one expert's list, additional votes of
one expert. A change counts only if the lower item then has the strictly larger score. The search assumes that
a larger change of the same kind does not undo the swap. Where a method violates this, a smaller change may
exist, but every reported change is valid.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from podium.core.errors import capture_warnings
from podium.data.features import Features
from podium.data.ids import Id
from podium.data.lists import Comparisons, Lists
from podium.data.preferences import Preferences
from podium.kernels.dispatch import F8, I8
from podium.methods.base import Aggregator

__all__ = ["Change", "SwapSearch", "scale_expert_weight"]

ChangeKind = Literal["weight", "move", "votes"]
LARGEST = 1024.0  # largest factor of an expert's weight that is tried
CLOSE = 1.01  # the search for a weight stops at this ratio
WORK, LEAST, MOST = 3_000_000, 30, 3_000  # total rows aggregated; minimum and maximum number of aggregations


@dataclass(frozen=True)
class Change:
    """One change after which the two items are swapped.

    `value` is the factor of a weight (0 removes the expert), the new rank of the lower item in the expert's
    list (`score` is the score it gets there), or the number of added votes; `before` is the old value (None:
    not listed).
    """

    kind: ChangeKind
    expert: Id
    value: float
    before: float | None
    text: str
    size: float  # by kind: |log factor|, places moved (from the end if not listed), votes
    score: float | None = None


def scale_expert_weight(
    aggregator: Aggregator, preferences: Preferences, expert: Id, factor: float
) -> Aggregator | None:
    """The method with one expert's weight multiplied by a factor; None if the method has no weights."""
    other = copy.copy(aggregator)
    if aggregator.tags.weighted:
        given = aggregator.expert_weights_for(preferences.experts).tolist()
        weights = dict(zip(preferences.experts.tolist(), given, strict=True))
        other.weights = weights | {expert: weights[expert] * factor}
        return other if any(other.weights.values()) else None
    learned = getattr(aggregator, "weights_", None)
    if isinstance(learned, Mapping) and expert in learned:
        other.weights_ = {**learned, expert: learned[expert] * factor}  # type: ignore[attr-defined]
        return other
    return None


@dataclass
class SwapSearch:
    """Search for changes that put `lower` above `upper` (both are slots); `tried` counts aggregations."""

    aggregator: Aggregator
    preferences: Preferences
    query: int  # code
    upper: int
    lower: int
    features: Features | None
    gaps: Mapping[Id, float]  # how much each expert favors the upper item
    exact: bool
    trials: int = field(default=0, init=False)
    given_up: bool = field(default=False, init=False)

    def find_changes(self) -> tuple[Change, ...]:
        """All changes, smallest of each kind first."""
        changes: list[Change | None] = []
        lists, table = self.preferences.lists, self.preferences.comparisons
        first, last = lists.query_starts[self.query : self.query + 2]
        begin, end = table.query_starts[self.query : self.query + 2]
        with capture_warnings():  # warnings about edited preferences do not concern the data
            for expert in self.gaps:
                if self.given_up:
                    break
                changes.append(self._find_weight_change(expert))
                code = self.preferences.experts.code_of(expert)
                if code is None:
                    continue
                own = first + np.flatnonzero(lists.expert[first:last] == code)
                if len(own):
                    changes.append(self._find_move(expert, int(own[0])))
                if (table.expert[begin:end] == code).any():
                    changes.append(self._find_extra_votes(expert, code))
        kinds = ("weight", "move", "votes")
        return tuple(sorted(filter(None, changes), key=lambda c: (kinds.index(c.kind), c.size)))

    # -- trials ----------------------------------------------------------------------------------------------

    def _makes_swap(self, aggregator: Aggregator | None, preferences: Preferences) -> bool:
        rows = preferences.lists.rows + len(preferences.comparisons)
        if self.trials >= min(MOST, max(LEAST, WORK // max(rows, 1))):
            self.given_up = True
            return False
        if aggregator is None:
            return False
        self.trials += 1
        scores = aggregator.aggregate(preferences, self.features).scores
        return bool(scores[self.lower] > scores[self.upper])

    def _item_name(self, slot: int) -> str:
        return str(self.preferences.index.items[slot])

    # -- weights ---------------------------------------------------------------------------------------------

    def _find_weight_change(self, expert: Id) -> Change | None:
        test = self._build_weight_test(expert)
        if test is None:
            return None
        if self._can_scale:
            factor = self._solve_factor(expert, test)
        else:
            # the factor closest to 1 that passes, searched in both directions
            factors = [_bisect_factor(test, LARGEST), _bisect_factor(test, 1 / LARGEST)]
            nearest = min((f for f in factors if f is not None), key=lambda f: abs(math.log(f)), default=None)
            factor = 0.0 if nearest is None and test(0.0) else nearest
        if factor is None:
            return None
        if factor == 0:
            return Change("weight", expert, 0.0, 1.0, f"{expert} were left out", math.inf)
        how = "less" if factor < 1 else "more"
        text = f"{expert} counted {factor:g} times as much, or {how}"
        return Change("weight", expert, factor, 1.0, text, abs(math.log(factor)))

    @property
    def _can_scale(self) -> bool:
        """Whether an expert's contribution to a sum can be multiplied: a sum without weights only leaves it out."""
        tags = self.aggregator.tags
        return self.exact and (tags.weighted or tags.supervised)

    def _build_weight_test(self, expert: Id) -> Callable[[float], bool] | None:
        """A test of whether a factor swaps the items; None if this expert's weight is unknown."""
        if self.preferences.experts.code_of(expert) is None:  # item features, or a pool of experts
            return self._build_sum_test(expert) if self.exact else None
        if scale_expert_weight(self.aggregator, self.preferences, expert, 1.0) is not None:
            return lambda f: self._makes_swap(
                scale_expert_weight(self.aggregator, self.preferences, expert, f), self.preferences
            )
        if self._can_scale:
            return self._build_sum_test(expert)
        if len(self.preferences.experts) < 2:
            return None
        # the only change is to leave the expert out
        return lambda f: f == 0 and self._makes_swap(self.aggregator, self.preferences.without_expert(expert))

    def _build_sum_test(self, expert: Id) -> Callable[[float], bool]:
        """Multiply the expert's contribution, since a learned sum has no weights to set."""
        total = math.fsum(self.gaps.values())
        slack = 1e-9 * max(map(abs, self.gaps.values()), default=0.0)
        return lambda f: total + (f - 1) * self.gaps[expert] < -slack

    def _solve_factor(self, expert: Id, test: Callable[[float], bool]) -> float | None:
        """The factor at which the gap, linear in the factor, is 0; rounded away from 1 and verified."""
        gap, total = self.gaps[expert], math.fsum(self.gaps.values())
        if gap == 0:
            return None
        at = 1 - total / gap
        if not math.isfinite(at) or at < 0:
            return 0.0 if gap > 0 and test(0.0) else None  # an item that no other expert ranks goes last
        return next((f for f in _round_away(at, up=gap < 0) if f <= 1e6 and test(f)), None)

    # -- lists and votes -------------------------------------------------------------------------------------

    def _find_move(self, expert: Id, which: int) -> Change | None:
        """The lowest rank that swaps the items, by bisection."""
        lists = self.preferences.lists
        old, _ = _find_entry(lists, which, self.lower)
        worst = int(lists.last_rank[which]) + 2 if old is None else old

        def swaps_at_rank(rank: int) -> bool:
            return self._makes_swap(self.aggregator, _move_item(self.preferences, which, self.lower, rank))

        if worst < 2 or not swaps_at_rank(1):
            return None
        low, high = 1, worst  # low swaps them, high does not (or is the item's rank)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if swaps_at_rank(middle) else (low, middle)
        after = _move_item(self.preferences, which, self.lower, low).lists
        rank, score = _find_entry(after, which, self.lower)
        assert rank is not None
        name, now = self._item_name(self.lower), "not listed now" if old is None else f"now {old}"
        with_score = "" if score is None else f", score {score:.6g}"
        text = f"{expert} put {name} at rank {rank}{with_score} ({now})"
        return Change("move", expert, rank, old, text, worst - rank, score)

    def _find_extra_votes(self, expert: Id, code: int) -> Change | None:
        """The fewest added votes for the lower item over the upper one, by doubling and bisection."""
        cast = self.preferences.comparisons.weight[self.preferences.comparisons.expert == code].sum()

        def swaps_with_votes(votes: int) -> bool:
            more = _add_votes(self.preferences, self.query, code, self.lower, self.upper, float(votes))
            return self._makes_swap(self.aggregator, more)

        high = 1
        while not swaps_with_votes(high):
            high *= 2
            if high > max(64, 4 * cast) or self.given_up:
                return None
        low = high // 2
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if swaps_with_votes(middle) else (middle, high)
        what = f"{high:,} more vote{'' if high == 1 else 's'}"
        text = f"{expert} cast {what} for {self._item_name(self.lower)} over {self._item_name(self.upper)}"
        return Change("votes", expert, high, 0.0, text, high)


def _bisect_factor(test: Callable[[float], bool], end: float) -> float | None:
    if not test(end):
        return None
    near, far = 1.0, end
    while max(near / far, far / near) > CLOSE:
        middle = math.sqrt(near * far)
        near, far = (near, middle) if test(middle) else (middle, far)
    return next((f for f in _round_away(far, up=end > 1) if test(f)), far)


def _round_away(value: float, *, up: bool) -> list[float]:
    """The value to 3, 2 and 1 digits, rounded away from 1; then values slightly and far beyond it."""
    if value <= 0:
        return [] if not up else [1e-6]
    out = []
    for digits in (3, 2, 1):
        unit = 10.0 ** (math.floor(math.log10(value)) - digits + 1)
        steps = math.ceil(value / unit) if up else math.floor(value / unit)
        out += [float(f"{(steps + extra) * unit:.{digits + 1}g}") for extra in ((0, 1) if up else (0, -1))]
    return [f for f in np.unique(out).tolist()[:: 1 if up else -1] if f >= 0]


# -- preferences with one edit ---------------------------------------------------------------------------------------


def _find_entry(lists: Lists, which: int, slot: int) -> tuple[int | None, float | None]:
    """Rank and score of a slot in a list; None where there is none."""
    rows = slice(int(lists.starts[which]), int(lists.starts[which + 1]))
    positions = np.flatnonzero(lists.item[rows] == slot)
    if not len(positions):
        return None, None
    score = np.nan if lists.score is None else float(lists.score[rows][positions[0]])
    return int(lists.rank[rows][positions[0]]), None if np.isnan(score) else score


def _move_item(preferences: Preferences, which: int, slot: int, rank: int) -> Preferences:
    """The preferences with a slot moved to a rank of a list; the items it passes shift down.

    If the list has scores, the slot gets one between its new neighbors. Ranks that follow from the scores
    still do.
    """
    lists = preferences.lists
    begin, end = int(lists.starts[which]), int(lists.starts[which + 1])
    old, _ = _find_entry(lists, which, slot)
    rest = lists.item[begin:end] != slot
    item, place = lists.item[begin:end][rest], lists.rank[begin:end][rest].astype(np.int64)
    place = place + ((place >= rank) & (place < (np.inf if old is None else old)))
    score = None
    if lists.score is not None:
        given = lists.score[begin:end]
        score = np.append(given[rest], _score_between(given[rest], place, rank))
        if not np.isnan(given).any() and (_compute_competition_ranks(given) == lists.rank[begin:end]).all():
            place = _compute_competition_ranks(score)
            place, rank = place[:-1], int(place[-1])
    items, ranks = np.append(item, slot).astype(np.int32), np.append(place, rank).astype(np.int32)
    order = np.lexsort((items, ranks))
    starts = lists.starts.copy()
    starts[which + 1 :] += len(items) - (end - begin)
    edited = Lists(
        lists.query_starts,
        lists.expert,
        starts,
        np.concatenate((lists.item[:begin], items[order], lists.item[end:])),
        np.concatenate((lists.rank[:begin], ranks[order], lists.rank[end:])),
        None
        if score is None or lists.score is None
        else np.concatenate((lists.score[:begin], score[order], lists.score[end:])),
    )
    return replace(preferences, lists=edited)


def _score_between(score: F8, place: I8, rank: int) -> float:
    """A score between the items above the rank and the others; NaN if the list has no scores."""
    above, below = score[place < rank], score[place > rank]
    if not len(score) or np.isnan(score).any():
        return float("nan")
    step = float(np.ptp(score)) / max(len(score), 2) or 1.0
    if not len(above):
        return float(below.max()) + step
    return float(above.min()) - step if not len(below) else (float(above.min()) + float(below.max())) / 2


def _compute_competition_ranks(score: F8) -> I8:
    """1, 2, 2, 4: one plus the number of larger scores."""
    return np.asarray(np.searchsorted(np.sort(-score), -score, side="left") + 1, np.int64)


def _add_votes(
    preferences: Preferences, query: int, expert: int, winner: int, loser: int, votes: float
) -> Preferences:
    """The preferences with additional votes of an expert for one slot over another."""
    table = preferences.comparisons
    begin, end = (int(v) for v in table.query_starts[query : query + 2])
    at = begin + int(np.searchsorted(table.expert[begin:end], expert, side="right"))
    starts = table.query_starts.copy()
    starts[query + 1 :] += 1
    more = Comparisons(
        starts,
        np.insert(table.expert, at, expert),
        np.insert(table.winner, at, winner),
        np.insert(table.loser, at, loser),
        np.insert(table.tie, at, False),
        np.insert(table.weight, at, votes),
        None if table.side is None else np.insert(table.side, at, 0),
    )
    return replace(preferences, comparisons=more)
