"""A leaderboard that voters with improbable votes cannot move, beside the plain one, with its price.

The votes of a voter count with the weight that `vote_trust.py` gives it: fully if its votes are as probable as those
of an honest voter usually are, not at all if they are as improbable as for one honest voter in 500, and in
between otherwise. That is stricter than the checks that name voters, because leaving votes out accuses nobody.
The price is what the votes left out cost on a board without planted votes: wider intervals.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from podium.analysis.leaderboard.chart import draw_leaderboard
from podium.analysis.leaderboard.checks import LeaderboardCheck
from podium.analysis.leaderboard.interval_scheme import IntervalScheme
from podium.analysis.leaderboard.result import Leaderboard, Standing, leaderboard, resolve_settings
from podium.analysis.leaderboard.tally import SQUARES, Tally
from podium.analysis.leaderboard.vote_trust import VoteTrust, assess_trust, tally_votes
from podium.core.errors import InputError, ParameterError, capture_warnings
from podium.core.results import Result, ViewBlock
from podium.core.settings import LeaderboardSettings
from podium.core.tables import Grid
from podium.core.text import join_names
from podium.data.frames import FrameBackend, records_frame
from podium.data.ids import Id
from podium.data.preferences import Preferences
from podium.data.vote_table import VoteTable
from podium.kernels.dispatch import F8

__all__ = ["RobustLeaderboard", "robust_leaderboard", "weigh_experts"]


@dataclass(frozen=True, eq=False, repr=False)
class RobustLeaderboard(Result[Standing]):
    """Standings with the votes weighted by the trust in their voters, best first; the plain board; the price."""

    rows: tuple[Standing, ...]
    settings: LeaderboardSettings
    plain: Leaderboard
    trust: VoteTrust
    board: Leaderboard = field(repr=False)  # fitted to the weighted votes

    key, shown = "item", 15
    facts = (
        "settings", "votes", "counted_votes", "reduced_voters", "excluded_voters", "wider", "extra_votes",
        "conclusion", "scheme", "rows", "plain", "checks", "trust",
    )  # fmt: skip

    @property
    def votes(self) -> float:
        """Number of votes before they are weighted."""
        return self.plain.votes

    @property
    def tally(self) -> Tally:
        """The weighted votes."""
        return self.board.tally

    @property
    def counted_votes(self) -> float:
        """Sum of the weights of the votes."""
        return self.board.votes

    @property
    def reduced_voters(self) -> int:
        """Voters whose votes count less than fully."""
        return int((self.trust.weights < 1).sum())

    @property
    def excluded_voters(self) -> int:
        """Voters whose votes do not count."""
        return int((self.trust.weights == 0).sum())

    @property
    def checks(self) -> tuple[LeaderboardCheck, ...]:
        """Checks of the weighted votes."""
        return self.board.checks

    @property
    def scheme(self) -> IntervalScheme:
        """Sampling unit of the errors."""
        return self.board.scheme

    @property
    def groups(self) -> tuple[tuple[Id, ...], ...]:
        """Longest runs of adjacent items that are statistically tied."""
        return self.board.groups

    @property
    def wider(self) -> float:
        """Median of how much longer the intervals are than those of the plain board: 0.02 for 2 %."""
        plain = {row.item: row.error for row in self.plain.rows}
        ratios = [row.error / plain[row.item] for row in self.rows if plain.get(row.item, 0.0) > 0]
        return float(np.median(ratios)) - 1 if ratios else 0.0

    @property
    def extra_votes(self) -> float:
        """Votes that would make up for the weight that is left out, as a share of those that count."""
        return self.votes / max(self.counted_votes, 1e-300) - 1

    @property
    def conclusion(self) -> str:
        """Who leads with and without the weights, and the price."""
        first, plain = self.rows[0].item, self.plain.rows[0].item
        lead = f"{first} leads on both boards" if first == plain else f"{first} leads instead of {plain}"
        length = f"{abs(self.wider):.1%} {'longer' if self.wider >= 0 else 'shorter'}"
        return (
            f"{lead}; {self.excluded_voters:,} of {self.trust.voter_count:,} voters are left out and "
            f"{self.reduced_voters - self.excluded_voters:,} count less, {self.votes - self.counted_votes:,.0f} of "
            f"{self.votes:,.0f} votes; intervals are {length}, and {self.extra_votes:.1%} more votes "
            "would make up for it"
        )

    def headline(self) -> str:
        """Number of items and votes, and the first item."""
        return f"{len(self)} items, {self.counted_votes:,.0f} of {self.votes:,.10g} votes, first: {self.rows[0].item!r}"

    def grid(self, *, digits: int | None = None, between: str = " .. ", top: int | None = None) -> Grid:
        """The robust standings with the plain score and rank beside them."""
        form = "{:.5g}" if digits is None else f"{{:z.{digits}f}}"
        interval = f"{100 * self.settings.level:.6g}% interval"
        head = ("rank", "item", "score", interval, "ranks", "plain rank", "plain score", "change", "votes")
        plain = {row.item: row for row in self.plain.rows}
        rows = []
        for r in self.rows[:top]:
            ends = (form.format(v) if math.isfinite(v) else "open" for v in (r.low, r.high))
            other = plain[r.item]
            rows.append((
                str(r.rank), str(r.item), form.format(r.score), between.join(ends), f"{r.rank_low}..{r.rank_high}",
                str(other.rank), form.format(other.score), form.replace("{:", "{:+").format(r.score - other.score),
                f"{r.votes:,.0f}",
            ))  # fmt: skip
        return Grid(head, tuple(rows), 2)

    def chart(self, *, top: int | None = None) -> Any:
        """The robust board as an Altair chart."""
        return draw_leaderboard(self.board, top=top)

    def blocks(self) -> tuple[ViewBlock, ...]:
        """The standings, the price, and the voters with improbable votes."""
        return self.grid(), f"{self.conclusion}.", f"{self.trust.conclusion}."

    def _compute_facts(self) -> dict[str, Any]:
        return {"plain": self.plain.to_dict()["rows"]}

    def to_frame(self, backend: FrameBackend = "pyarrow") -> Any:
        """A dataframe with one row per item, best first; columns as in `Standing`."""
        return records_frame(self.rows, Standing, "item", backend)


def weigh_experts(tally: Tally, weights: F8) -> Tally:
    """The tally with each expert's votes multiplied by a weight; votes of weight 0 are left out."""
    by_row = weights[tally.expert]
    kept = np.flatnonzero(by_row > 0)
    if not len(kept):
        raise InputError(
            "the votes of every voter are improbable, so none are left",
            remedy="look at the checks of the voters first",
        )
    codes = ("expert", "query", "first", "second", "side")
    columns: dict[str, Any] = {name: getattr(tally, name)[kept] for name in codes}
    columns |= {name: getattr(tally, name)[kept] * by_row[kept] for name in ("won", "lost", "tied")}
    columns |= {name: getattr(tally, name)[kept] * by_row[kept] ** 2 for name in SQUARES}
    return replace(tally, **columns)


def robust_leaderboard(
    votes: Preferences | Tally | VoteTable | Leaderboard,
    *,
    time: str | None = None,
    trust: VoteTrust | None = None,
    settings: LeaderboardSettings | None = None,
    **changes: Any,
) -> RobustLeaderboard:
    """A leaderboard in which voters with improbable votes count little or nothing.

    `time` is the attribute of a `VoteTable` that says when a vote was cast; `trust` an assessment of the same
    votes made before. The other keywords are those of `LeaderboardSettings`.
    """
    how = votes.settings if isinstance(votes, Leaderboard) else resolve_settings(settings, changes)
    if how.judges == "discounted":
        raise ParameterError("judges is discounted; a robust board weighs voters already, so leave it out")
    with capture_warnings():  # the checks report the same
        plain = votes if isinstance(votes, Leaderboard) else leaderboard(tally_votes(votes), settings=how)
        trust = trust or assess_trust(votes, time=time, l2=how.l2)
        weighted = weigh_experts(plain.tally, trust.weights)
        # a vote of a smaller weight is still one vote
        robust = leaderboard(weighted, settings=replace(how, vote_weights="importance"))
    lost = [item for item in plain.tally.items if robust.tally.items.code_of(item) is None]
    if lost:
        raise InputError(
            f"only voters with improbable votes voted on {join_names(lost)}",
            remedy="leave these items out, or use the plain board",
        )
    return RobustLeaderboard(robust.rows, how, plain, trust, robust)
