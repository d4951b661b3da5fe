"""Batches of comparisons under a budget: which pairs, in which slice, by which judge."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from podium.analysis.leaderboard.comparison_planner import PairCounts, count_pairs, merge_items
from podium.analysis.leaderboard.judge_costs import JudgeChoice, JudgedPair, check_costs
from podium.analysis.leaderboard.pair_choice import ChosenPair, PairChooser
from podium.analysis.leaderboard.score_posterior import (
    SPREAD,
    ScorePosterior,
    build_prior,
    center_posterior,
    fit_posterior,
)
from podium.analysis.leaderboard.slice_shrinkage import SliceVotes, shrink_slices
from podium.analysis.leaderboard.slices import number_slices
from podium.analysis.leaderboard.tally import Tally
from podium.core.errors import InputError, ParameterError
from podium.core.results import Result
from podium.core.tables import Grid
from podium.core.text import format_count
from podium.data.frames import FrameBackend, records_frame
from podium.data.ids import Id
from podium.data.preferences import Preferences
from podium.data.vote_table import VoteTable
from podium.kernels.contextual_contests import ContextualVotes
from podium.kernels.dispatch import F8, I8
from podium.kernels.distributions import logistic, normal_cdf

__all__ = ["SuggestedComparison", "Suggestions", "suggest_comparisons"]

MOST_CELLS = 100_000_000  # items squared times slices
MOST_COMPARISONS = 10_000_000
SAMPLE = 20_000  # pairs from which the expected tau is computed


@dataclass(frozen=True)
class SuggestedComparison:
    """A comparison to request: which item is first is random, so that sides are balanced."""

    first: Id
    second: Id
    slice: str | None
    judge: Id | None
    cost: float
    chance: float  # probability that `first` wins
    gain: float  # nats that an answer is expected to add about the difference
    votes: float  # on the two so far (in this slice)


@dataclass(frozen=True, eq=False, repr=False)
class Suggestions(Result[SuggestedComparison]):
    """The comparisons of a batch, in the order in which they were chosen."""

    rows: tuple[SuggestedComparison, ...]
    items: int
    votes: float
    cost: float
    expected_tau: float  # Kendall's tau between the order by current scores and the true one
    column: str | None  # of the slices
    note: str  # why there are fewer comparisons than requested, if so

    key, shown = "first", 30
    facts = ("items", "votes", "cost", "expected_tau", "column", "note", "rows")

    def headline(self) -> str:
        """Number of comparisons, and what is known so far."""
        return (
            f"{len(self):,} comparisons of {self.items:,} items, {self.votes:,.10g} votes so far, "
            f"expected tau {self.expected_tau:.2f}"
        )

    def grid(self) -> Grid:
        """The comparisons; columns for slices, judges and costs where there are any."""
        columns = [
            ("first", [str(r.first) for r in self.rows]),
            ("second", [str(r.second) for r in self.rows]),
        ]
        if self.column is not None:
            columns.append((self.column, [str(r.slice) for r in self.rows]))
        if any(r.judge is not None for r in self.rows):
            columns.append(("judge", [str(r.judge) for r in self.rows]))
        left = len(columns)
        if any(r.cost != 1 for r in self.rows):
            columns.append(("cost", [f"{r.cost:g}" for r in self.rows]))
        columns += [
            ("first wins", [f"{r.chance:.0%}" for r in self.rows]),
            ("nats", [f"{r.gain:.2g}" for r in self.rows]),
            ("votes", [f"{r.votes:,.10g}" for r in self.rows]),
        ]
        return Grid(tuple(n for n, _ in columns), tuple(zip(*(c for _, c in columns), strict=True)), left)

    def to_frame(self, backend: FrameBackend = "pyarrow") -> Any:
        """A dataframe with one row per comparison; columns as in `SuggestedComparison`."""
        return records_frame(self.rows, SuggestedComparison, "first", backend)


class SlicePart(NamedTuple):
    """What is known in one slice of the votes, or in all of them."""

    name: str | None
    posterior: ScorePosterior
    counts: PairCounts


def suggest_comparisons(
    votes: Preferences | Tally | VoteTable | None = None,
    count: int | None = None,
    *,
    items: Sequence[Id] | None = None,
    slices: str | None = None,
    cost: float | Mapping[Id, float] = 1.0,
    budget: float | None = None,
    top: int | None = None,
    seed: int = 0,
) -> Suggestions:
    """The comparisons that are most informative about the order, at most `count` and within the `budget`.

    `items` lists all items, also those without votes; without votes it is needed. With `slices`, an attribute of the
    `VoteTable`, each comparison names the slice in which to make it. `cost` is the price of a vote, or a price per
    judge: then each comparison names the judge whose vote is worth most for its price. With `top`, only the
    membership in the best `top` matters. A pair occurs once per slice, unless `count` exceeds the number of pairs.

    >>> asked = suggest_comparisons(items=["a", "b", "c", "d"], count=6)
    >>> sorted(item for row in asked for item in (row.first, row.second))
    ['a', 'a', 'a', 'b', 'b', 'b', 'c', 'c', 'c', 'd', 'd', 'd']
    """
    given = votes.to_preferences() if isinstance(votes, VoteTable) else votes
    tally = Tally.from_preferences(given) if isinstance(given, Preferences) else given
    names = merge_items([] if tally is None else tally.items.tolist(), items)
    if len(names) < 2:
        raise InputError(
            f"there are {len(names)} items to compare",
            remedy="a comparison needs two; give votes, or a list of the items",
        )
    if top is not None and not 0 < top < len(names):
        raise ParameterError(f"top is {top}; accepted: 1 to {len(names) - 1}, fewer than there are items")
    codes = {item: code for code, item in enumerate(names)}
    whole = _fit_whole(tally, codes)
    # votes by slice, where slices do not differ
    parts, alike = ([whole], {}) if slices is None else _fit_slices(votes, slices, codes, whole)
    code = None if tally is None else np.array([codes[item] for item in tally.items], np.int64)
    if isinstance(cost, Mapping):
        check_costs(cost)
    price = min(cost.values()) if isinstance(cost, Mapping) else float(cost)
    most = _count_affordable(count, budget, price)
    repeats = math.ceil(most / (len(names) * (len(names) - 1) / 2))
    judges = None
    if isinstance(cost, Mapping):
        judges = JudgeChoice(cost, tally, code, whole.posterior.means, most=repeats)
    rng = np.random.default_rng(seed)
    choosers = [PairChooser(part.posterior, rng=rng, top=top, most=repeats) for part in parts]
    rows: list[SuggestedComparison] = []
    left = math.inf if budget is None else budget * (1 + 1e-12)
    while len(rows) < most and choosers and left >= price:
        at = max(range(len(parts)), key=lambda k: choosers[k].need) if len(parts) > 1 else 0
        pair = choosers[at].choose()
        if pair is None:
            del choosers[at], parts[at]
            continue
        choice = JudgedPair(None, price, 1.0) if judges is None else judges.choose(pair, left)
        if choice is None:  # every judge who can be paid has compared the pair
            continue
        choosers[at].count_as_answered(pair, choice.factor)
        left -= choice.cost
        name = min(alike, key=lambda n: (alike[n], n)) if alike else parts[at].name
        if name in alike:
            alike[name] += 1
        rows.append(_describe(parts[at], pair, names, name, choice, swap=bool(rng.random() < 0.5)))
    note = _explain_shortage(len(rows), count, budget, is_spent=left < price)
    total = 0.0 if tally is None else tally.votes
    tau = _expect_tau(whole.posterior, np.random.default_rng(seed))
    return Suggestions(tuple(rows), len(names), total, sum(r.cost for r in rows), tau, slices, note)


def _explain_shortage(planned: int, count: int | None, budget: float | None, *, is_spent: bool) -> str:
    """Why there are fewer comparisons than requested, if so."""
    comparisons = format_count(planned, "comparison")
    if count is not None and planned < count and is_spent:
        return f"{comparisons}: more would exceed the budget of {budget:g}"
    if not is_spent and (count is None or planned < count):
        return f"{comparisons}: the judges who can be paid have compared all other pairs"
    return ""


def _count_affordable(count: int | None, budget: float | None, cheapest: float) -> int:
    """The number of comparisons at most."""
    if count is None and budget is None:
        raise ParameterError("neither a number of comparisons nor a budget is given; give one of them")
    if count is not None and count < 1:
        raise ParameterError(f"count is {count}; accepted: 1 and above")
    if budget is not None and not (math.isfinite(budget) and budget > 0):
        raise ParameterError(f"budget is {budget}; accepted: finite numbers above 0")
    if not (math.isnan(cheapest) or (math.isfinite(cheapest) and cheapest > 0)):
        raise ParameterError(f"cost is {cheapest}; accepted: finite numbers above 0")
    affordable = math.inf if budget is None else math.floor(budget / cheapest * (1 + 1e-12))
    if affordable < 1:
        raise ParameterError(f"the budget of {budget:g} pays for no comparison; one costs {cheapest:g}")
    most = min(affordable, math.inf if count is None else count)
    if most > MOST_COMPARISONS:
        raise ParameterError(
            f"{most:,.0f} comparisons are more than {MOST_COMPARISONS:,}; plan fewer at a time"
        )
    return int(most)


def _fit_whole(tally: Tally | None, codes: Mapping[Id, int]) -> SlicePart:
    """The posterior and the counts of all votes."""
    size = len(codes)
    if tally is None:
        empty: I8 = np.zeros(0, np.int64)
        counts = count_pairs(empty, empty, np.zeros(0), np.zeros(0), size)
        return SlicePart(None, build_prior(size), counts)
    code = np.array([codes[item] for item in tally.items], np.int64)
    outcome = np.repeat([1.0, 0.0, 0.5], len(tally.won))
    first, second = np.tile(code[tally.first], 3), np.tile(code[tally.second], 3)
    counts = count_pairs(first, second, outcome, np.concatenate((tally.won, tally.lost, tally.tied)), size)
    return SlicePart(None, fit_posterior(counts.to_contests(size)), counts)


def _fit_slices(
    votes: Any, column: str, codes: Mapping[Id, int], whole: SlicePart
) -> tuple[list[SlicePart], dict[str | None, float]]:
    """The same by slice; where slices do not differ, that of all votes, and the number of votes by slice."""
    if not isinstance(votes, VoteTable):
        raise ParameterError("slices need votes with attributes; give a VoteTable")
    names, number = number_slices(votes, column)
    size = len(codes)
    if size**2 * len(names) > MOST_CELLS:
        raise InputError(
            f"{size:,} items in {len(names):,} slices are too many",
            remedy="plan without slices, or use a column with fewer values",
        )
    code = np.array([codes[item] for item in votes.items], np.int64)
    first, second = code[votes.first], code[votes.second]
    rows = [np.flatnonzero((number == k) & (votes.weight > 0)) for k in range(len(names))]
    parts = [
        SliceVotes(
            ContextualVotes(
                size, first[r], second[r], votes.outcome[r], votes.weight[r], np.zeros((len(r), 0))
            ),
            np.zeros(len(r)),
        )
        for r in rows
    ]
    fitted = shrink_slices(parts, whole.posterior.means, SPREAD**-2)
    if fitted is None:
        return [whole], {name: float(votes.weight[r].sum()) for name, r in zip(names, rows, strict=True)}
    sliced = []
    for name, r, means, covariance in zip(names, rows, fitted.scores, fitted.covariances, strict=True):
        counts = count_pairs(first[r], second[r], votes.outcome[r], votes.weight[r], size)
        sliced.append(SlicePart(name, center_posterior(means, covariance), counts))
    return sliced, {}


def _describe(
    part: SlicePart,
    pair: ChosenPair,
    names: Sequence[Id],
    slice_name: str | None,
    choice: JudgedPair,
    *,
    swap: bool,
) -> SuggestedComparison:
    first, second = pair[1::-1] if swap else pair[:2]
    means = part.posterior.means
    gap = float(means[first] - means[second])
    chance = float(logistic(gap / math.sqrt(1 + math.pi * pair.variance / 8)))
    met = part.counts.count_votes(len(names), first, second)
    judge, price, _ = choice
    return SuggestedComparison(names[first], names[second], slice_name, judge, price, chance, pair.gain, met)


def _expect_tau(posterior: ScorePosterior, rng: np.random.Generator) -> float:
    """Kendall's tau between the order of the means and the true one, expected under the posterior."""
    size = len(posterior.means)
    first: I8 = rng.integers(0, size, SAMPLE)
    second: I8 = (first + rng.integers(1, size, SAMPLE)) % size
    variance: F8 = posterior.variances[first] + posterior.variances[second]
    if posterior.covariance is not None:
        variance = variance - 2 * posterior.covariance[first, second]
    z = np.abs(posterior.means[first] - posterior.means[second]) / np.sqrt(np.maximum(variance, 1e-12))
    return float(np.mean(2 * normal_cdf(z) - 1))
