"""Comparisons chosen while votes arrive: a pair for each voter, from the first vote to the last."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from podium.analysis.leaderboard.pair_choice import PairChooser
from podium.analysis.leaderboard.score_posterior import build_prior, fit_posterior
from podium.analysis.leaderboard.tally import Tally
from podium.core.errors import InputError, ParameterError
from podium.core.params import suggest_names
from podium.data.ids import Id
from podium.data.preferences import Preferences
from podium.kernels.contest_counts import Contests
from podium.kernels.dispatch import F8, I8
from podium.kernels.grouping import sum_by_group

__all__ = ["ComparisonPlanner", "PairCounts", "count_pairs", "merge_items"]

FEW = 16  # votes after which the scores are fitted again, at least
SHARE = 4  # ... and one vote per this many items


class PairCounts(NamedTuple):
    """Votes by pair of item numbers, `first` < `second`, in order of `first * items + second`."""

    key: I8
    won: F8
    lost: F8
    tied: F8

    def to_contests(self, size: int) -> Contests:
        """The contests of one query."""
        first, second = (part.astype(np.int32) for part in np.divmod(self.key, size))
        return Contests(np.array([0, size]), np.array([0, len(self.key)]), first, second, *self[1:])

    def count_votes(self, size: int, first: int, second: int) -> float:
        """The votes between two items."""
        key = min(first, second) * size + max(first, second)
        at = int(np.searchsorted(self.key, key))
        if at == len(self.key) or self.key[at] != key:
            return 0.0
        return float(self.won[at] + self.lost[at] + self.tied[at])


def count_pairs(first: I8, second: I8, outcome: F8, weight: F8, size: int) -> PairCounts:
    """Votes by pair; `outcome` is the share of the vote that `first` got, 0.5 is a tie."""
    low, high = np.minimum(first, second), np.maximum(first, second)
    key, row = np.unique(low * size + high, return_inverse=True)
    share, tie = np.where(first < second, outcome, 1 - outcome), outcome == 0.5
    columns = (np.where(tie, 0, share), np.where(tie, 0, 1 - share), tie.astype(np.float64))
    won, lost, tied = (sum_by_group(row, weight * column, len(key)) for column in columns)
    return PairCounts(key, won, lost, tied)


def merge_items(known: Sequence[Id], listed: Sequence[Id] | None) -> list[Id]:
    """The items to compare: those of the list, which must name all that have votes, or those with votes."""
    if listed is None:
        return list(known)
    items = list(listed)
    names = set(items)
    if len(names) < len(items):
        twice = next(item for item, count in Counter(items).items() if count > 1)
        raise InputError(f"the list of items names {twice!r} twice", remedy="name every item once")
    missing = [item for item in known if item not in names]
    if missing:
        raise InputError(
            f"{missing[0]!r} has votes and is not in the list of items",
            remedy="list every item, or leave its votes out",
        )
    return items


class ComparisonPlanner:
    """Suggests pairs one at a time; a vote changes the next suggestion at once.

    >>> planner = ComparisonPlanner(["a", "b", "c"])
    >>> first, second = planner.suggest()
    >>> planner.add_vote(first, second, 1.0)
    >>> planner.votes
    1
    """

    def __init__(
        self,
        items: Sequence[Id],
        votes: Preferences | Tally | None = None,
        *,
        top: int | None = None,
        seed: int = 0,
    ) -> None:
        """`top`: only who is among the best `top` matters."""
        tally = Tally.from_preferences(votes) if isinstance(votes, Preferences) else votes
        self.items = merge_items([] if tally is None else tally.items.tolist(), items)
        if len(self.items) < 2:
            raise InputError(f"there are {len(self.items)} items", remedy="a comparison needs two")
        if top is not None and not 0 < top < len(self.items):
            raise ParameterError(
                f"top is {top}; accepted: 1 to {len(self.items) - 1}, fewer than there are items"
            )
        self._codes = {item: code for code, item in enumerate(self.items)}
        self._rng, self._top = np.random.default_rng(seed), top
        size = len(self.items)
        empty: I8 = np.zeros(0, np.int64)
        self._counts = count_pairs(empty, empty, np.zeros(0), np.zeros(0), size)
        self._recent: list[tuple[int, int, float]] = []
        self.votes = 0
        self._posterior = build_prior(size)
        if tally is not None:
            self.votes = round(tally.votes)
            code = np.array([self._codes[item] for item in tally.items], np.int64)
            sides = [(tally.won, 1.0), (tally.lost, 0.0), (tally.tied, 0.5)]
            a, b = np.tile(code[tally.first], 3), np.tile(code[tally.second], 3)
            outcome = np.repeat([share for _, share in sides], len(tally.won))
            self._counts = count_pairs(a, b, outcome, np.concatenate([w for w, _ in sides]), size)
        self.refit()

    def refit(self) -> None:
        """Fit all scores to all votes; `add_vote` does so from time to time."""
        size = len(self.items)
        if self._recent:
            a, b, outcome = (np.array(column) for column in zip(*self._recent, strict=True))
            new = count_pairs(a, b, outcome, np.ones(len(a)), size)
            key, row = np.unique(np.concatenate((self._counts.key, new.key)), return_inverse=True)
            sums = (np.concatenate(pair) for pair in zip(self._counts[1:], new[1:], strict=True))
            self._counts = PairCounts(key, *(sum_by_group(row, column, len(key)) for column in sums))
            self._recent = []
        if len(self._counts.key):
            start = self._posterior.means if self._posterior.means.any() else None
            self._posterior = fit_posterior(self._counts.to_contests(size), start)
        self._chooser = PairChooser(self._posterior, rng=self._rng, top=self._top)
        self._open: dict[tuple[int, int], int] = {}  # suggested pairs without a vote

    @property
    def scores(self) -> dict[Id, float]:
        """The scores so far (log odds), by item."""
        return dict(zip(self.items, self._chooser.means.tolist(), strict=True))

    def suggest(self) -> tuple[Id, Id]:
        """The next two items to compare; which one is first is random."""
        pair = self._chooser.choose()
        if pair is None:  # every pair is waiting for a vote
            self._chooser = PairChooser(self._posterior, rng=self._rng, top=self._top)
            pair = self._chooser.choose()
            assert pair is not None
        self._chooser.count_as_answered(pair)
        key = (min(pair[:2]), max(pair[:2]))
        self._open[key] = self._open.get(key, 0) + 1
        first, second = pair[:2] if self._rng.random() < 0.5 else pair[1::-1]
        return self.items[first], self.items[second]

    def add_vote(self, first: Id, second: Id, outcome: float) -> None:
        """Add a vote: `outcome` is 1 if `first` won, 0 if `second` did, 0.5 for a tie."""
        for item in (first, second):
            if item not in self._codes:
                raise ParameterError(
                    f"there is no item {item!r}; {suggest_names(str(item), map(str, self.items))}"
                )
        if first == second:
            raise ParameterError(f"the vote compares {first!r} with itself")
        if not 0 <= outcome <= 1:
            raise ParameterError(f"the outcome is {outcome}; accepted: 1, 0, or 0.5 for a tie")
        i, j = self._codes[first], self._codes[second]
        self._recent.append((i, j, float(outcome)))
        self.votes += 1
        key = (min(i, j), max(i, j))
        if self._open.get(key, 0):
            self._open[key] -= 1
        else:
            self._chooser.count_as_answered(self._chooser.describe(i, j))
        self._chooser.move_means(i, j, float(outcome))
        if len(self._recent) >= max(FEW, len(self.items) // SHARE):
            self.refit()
