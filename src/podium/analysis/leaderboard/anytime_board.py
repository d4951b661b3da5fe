"""A leaderboard whose claims hold at every look: which items may be the best, ranks, and win rates of pairs.

Which items may be the best, and win rates, follow from direct votes on each pair without a choice model, and hold
exactly (see `confidence_sequences.py`). Ranks follow from the scores of the plain board and its errors, in large
samples. All of it is computed from the counted votes, so a saved board continues where it stopped.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from podium.analysis.leaderboard.confidence_sequences import (
    PairEvidence,
    bound_win_rate,
    close_claims,
    compute_log_evidence,
    mixture_critical_value,
)
from podium.analysis.leaderboard.inference import LEAST
from podium.analysis.leaderboard.result import Leaderboard, leaderboard
from podium.analysis.leaderboard.tally import Tally
from podium.core.errors import InputError, ParameterError
from podium.core.params import suggest_names
from podium.core.results import Result, ViewBlock
from podium.core.settings import LeaderboardSettings
from podium.core.tables import Grid
from podium.core.text import join_names
from podium.data.ids import Id
from podium.data.preferences import Preferences
from podium.kernels.dispatch import B1
from podium.kernels.distributions import logistic, normal_cdf, student_cdf
from podium.kernels.grouping import sum_by_group

__all__ = [
    "AnytimeLeaderboard",
    "AnytimeStanding",
    "PairSequence",
    "anytime_leaderboard",
    "collect_evidence",
    "find_rank_claims",
]

FORESEEABLE = 100  # estimates beyond this multiple of the given votes are not reported
EVEN = 0.005  # an expected advantage smaller than this is no basis for an estimate


@dataclass(frozen=True)
class AnytimeStanding:
    """One item: ranks that hold at every look (by the model), and the evidence against its being the best."""

    item: Id
    rank: int  # by score
    rank_low: int
    rank_high: int
    score: float
    may_lead: bool
    against: float  # e-value against its being the best; above 1 / (1 - level) it is excluded
    rate: float  # share of its direct votes against the leader that it won; NaN without any
    rate_low: float
    rate_high: float
    votes: float


@dataclass(frozen=True)
class PairSequence:
    """Two items at every look: the share of votes for the first, its confidence sequence, and e-values."""

    first: Id
    second: Id
    rate: float
    low: float
    high: float
    votes: float
    first_above: float  # e-value that the first is above the second
    second_above: float


@dataclass(frozen=True, eq=False, repr=False)
class AnytimeLeaderboard(Result[AnytimeStanding]):
    """Standings by score, with claims that hold at every look."""

    rows: tuple[AnytimeStanding, ...]
    plain: Leaderboard
    evidence: PairEvidence = field(repr=False)

    key, shown = "item", 15
    facts = ("settings", "votes", "leader", "contenders", "votes_needed", "conclusion", "rows", "warning")

    @property
    def settings(self) -> LeaderboardSettings:
        """Settings of the board."""
        return self.plain.settings

    @property
    def votes(self) -> float:
        """Number of votes."""
        return self.plain.votes

    @property
    def contenders(self) -> tuple[Id, ...]:
        """Items that may be the best, by score."""
        return tuple(row.item for row in self.rows if row.may_lead)

    @property
    def leader(self) -> Id | None:
        """The best item, if it is certain."""
        return self.contenders[0] if len(self.contenders) == 1 else None

    @property
    def votes_needed(self) -> dict[Id, int] | None:
        """Direct votes against the first item until each other contender is excluded.

        The true advantage is taken to be the one the scores give. None if some contender is about as strong as the
        first item, or needs more than a hundred times the given votes.
        """
        rivals = [item for item in self.contenders if item != self.rows[0].item]
        needed = {item: _count_votes_needed(self, item) for item in rivals}
        known = {item: votes for item, votes in needed.items() if votes is not None}
        most = FORESEEABLE * max(self.votes, 1.0)
        return known if len(known) == len(needed) and sum(known.values()) <= most else None

    @property
    def conclusion(self) -> str:
        """Whether the leader is certain, and how many votes are missing."""
        level = f"{100 * self.settings.level:.6g}%"
        if self.leader is not None:
            return f"{self.leader} is the best at {level}, at every look"
        if not self.contenders:
            return "every item lost clearly to some other one: there is no best item, or votes are not independent"
        words = f"{join_names(self.contenders, last='and')} may be the best at {level}"
        needed = self.votes_needed
        if needed is None or self.rows[0].item not in self.contenders:
            return f"{words}; too close to foresee how many votes would decide"
        parts = ", ".join(f"{votes:,} with {item}" for item, votes in list(needed.items())[:3])
        more = f" and {len(needed) - 3} more" if len(needed) > 3 else ""
        return (
            f"{words}; about {sum(needed.values()):,} more comparisons of {self.rows[0].item} ({parts}{more}) "
            "would make it the certain leader, if its lead is as large as it seems"
        )

    @property
    def warning(self) -> str:
        """What breaks the guarantee, if something does."""
        scheme = self.plain.scheme
        if scheme.over == "votes":
            return ""
        return (
            f"votes within {scheme.over} may be correlated ({scheme.text}); ranks allow for it, but who may lead and "
            "win rates count each vote as a fresh one, and may be too sure"
        )

    def compare_pair(self, first: Id, second: Id) -> PairSequence:
        """Two items: win rate with its confidence sequence, and e-values."""
        items, evidence = self.plain.tally.items, self.evidence
        codes = []
        for item in (first, second):
            code = items.code_of(item)
            if code is None:
                raise ParameterError(
                    f"there is no item {item!r}; {suggest_names(str(item), map(str, items))}"
                )
            codes.append(code)
        a, b = codes
        half = evidence.tied[a, b] / 2
        won, lost = evidence.won[a, b] + half, evidence.won[b, a] + half
        low, high = bound_win_rate(np.array([won]), np.array([lost]), self.settings.level)
        rate = won / (won + lost) if won + lost else math.nan
        above = (float(np.exp(min(evidence.below[j, i], 700.0))) for i, j in ((a, b), (b, a)))
        return PairSequence(first, second, rate, float(low[0]), float(high[0]), won + lost, *above)

    def headline(self) -> str:
        """Number of items and votes, and who may be the best."""
        return f"{len(self)} items, {self.votes:,.10g} votes, may be the best: {join_names(self.contenders)}"

    def grid(self, *, digits: int = 0, top: int | None = None) -> Grid:
        """The standings."""
        interval = f"{100 * self.settings.level:.6g}% at every look"
        head = (
            "rank", "item", "score", "ranks", "may lead", "e against", "wins over first", interval, "votes",
        )  # fmt: skip
        rows = []
        for r in self.rows[:top]:
            against = f"{r.against:.3g}" if r.against < 1e6 else "> 1e6"
            rate = "" if math.isnan(r.rate) else f"{r.rate:.3f}"
            ends = "" if math.isnan(r.rate) else f"{r.rate_low:.3f}..{r.rate_high:.3f}"
            rows.append((
                str(r.rank), str(r.item), f"{r.score:z.{digits}f}", f"{r.rank_low}..{r.rank_high}",
                "yes" if r.may_lead else "no", against, rate, ends, f"{r.votes:,.10g}",
            ))  # fmt: skip
        return Grid(head, tuple(rows), 2)

    def chart(self) -> Any:
        """The scores as an Altair chart, with the plain board's intervals for one look."""
        return self.plain.chart()

    def blocks(self) -> tuple[ViewBlock, ...]:
        """The standings, and who leads."""
        return self.grid(), f"{self.conclusion}.", *([f"Warning: {self.warning}."] if self.warning else [])

    def _compute_facts(self) -> dict[str, Any]:
        return {"votes_needed": self.votes_needed}


def anytime_leaderboard(
    votes: Preferences | Tally | Leaderboard, *, settings: LeaderboardSettings | None = None, **changes: Any
) -> AnytimeLeaderboard:
    """A leaderboard whose claims hold at every look, under any rule for choosing the next comparison.

    `settings` and keywords are those of `leaderboard`.
    """
    board = votes if isinstance(votes, Leaderboard) else leaderboard(votes, settings=settings, **changes)
    evidence = collect_evidence(board.tally)
    claims, contenders = find_rank_claims(board), evidence.find_contenders(board.settings.level)
    order = board.estimate.order
    best, n = int(order[0]), len(evidence)
    half = evidence.tied[:, best] / 2
    won, lost = evidence.won[:, best] + half, evidence.won[best] + half
    low, high = bound_win_rate(won, lost, board.settings.level)
    rates = np.divide(won, won + lost, out=np.full(n, np.nan), where=won + lost > 0)
    by_item = {row.item: row for row in board.rows}
    rows = []
    for i in order.tolist():
        plain = by_item[board.tally.items[i]]
        rows.append(
            AnytimeStanding(
                plain.item,
                plain.rank,
                1 + int(claims[:, i].sum()),
                n - int(claims[i].sum()),
                plain.score,
                bool(contenders[i]),
                float(np.exp(min(evidence.against_best[i], 700.0))),
                float(rates[i]),
                float(low[i]),
                float(high[i]),
                plain.votes,
            )
        )
    return AnytimeLeaderboard(tuple(rows), board, evidence)


def find_rank_claims(board: Leaderboard) -> B1:
    """Whether the item of the row is above that of the column: differences of scores, at every look together."""
    scores, matrix, degrees = board.estimate.scores, board.matrix, board.degrees
    size = len(scores)
    a, b = np.triu_indices(size, 1)
    variance = np.maximum(matrix[a, a] + matrix[b, b] - 2 * matrix[a, b], 1e-300)
    bound = mixture_critical_value(1 / variance, (1 - board.settings.level) / max(len(a), 1))
    gap = scores[a] - scores[b]
    z = np.abs(gap) / np.sqrt(variance)
    tail, fewer = normal_cdf(-z), np.minimum(degrees[a], degrees[b])
    few = np.flatnonzero(np.isfinite(fewer))
    tail[few] = np.where(fewer[few] > LEAST, student_cdf(np.maximum(fewer[few], LEAST), -z[few]), 0.5)
    clear = (tail <= normal_cdf(-bound)) & (z >= bound)
    claims = np.zeros((size, size), np.bool_)
    claims[a, b], claims[b, a] = clear & (gap > 0), clear & (gap < 0)
    return close_claims(claims)


def collect_evidence(tally: Tally) -> PairEvidence:
    """The evidence of all votes; only single whole votes are evidence at every look."""
    if tally.listed:
        raise InputError(
            "claims at every look need votes on two items, and these come from lists",
            remedy="the contests of one list are not independent votes",
        )
    if tally.fractional:
        raise InputError(
            "some vote has a weight that is not a whole number",
            remedy="claims at every look count single votes; leave the weights out",
        )
    size = len(tally.items)
    place, turned = tally.first * size + tally.second, tally.second * size + tally.first
    won = sum_by_group(place, tally.won, size * size) + sum_by_group(turned, tally.lost, size * size)
    tied = sum_by_group(place, tally.tied, size * size) + sum_by_group(turned, tally.tied, size * size)
    return PairEvidence.from_counts(won.reshape(size, size), tied.reshape(size, size))


def _count_votes_needed(board: AnytimeLeaderboard, rival: Id) -> int | None:
    """Direct votes of the first item against a rival until the rival is excluded, if the scores are true."""
    evidence, tally = board.evidence, board.plain.tally
    first, other = tally.items.code_of(board.rows[0].item), tally.items.code_of(rival)
    assert first is not None
    assert other is not None
    scores = board.plain.estimate.scores
    chance = float(logistic(scores[first] - scores[other]))
    if chance < 0.5 + EVEN:
        return None
    bound = -math.log(1 - board.settings.level)
    wins, losses = evidence.won[:, other].copy(), evidence.won[other].copy()

    def is_excluded(votes: int) -> bool:
        beat, lost = wins.copy(), losses.copy()
        beat[first] += chance * votes
        lost[first] += (1 - chance) * votes
        pairs = compute_log_evidence(beat, lost)[None]
        pooled = compute_log_evidence(np.array([beat.sum()]), np.array([lost.sum()]))
        return bool(evidence.combine(pairs, pooled, np.array([other]))[0] >= bound)

    high = 1
    while not is_excluded(high):
        high *= 2
        if high > 2**40:
            return None
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_excluded(middle) else (middle, high)
    return high
