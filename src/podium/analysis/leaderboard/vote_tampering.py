"""How far a leaderboard can be trusted against tampering: improbable voters, influence, margins, a robust fit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from podium.analysis.leaderboard.leader_margin import LeaderMargin, measure_leader_margin
from podium.analysis.leaderboard.result import Leaderboard, leaderboard
from podium.analysis.leaderboard.robust_board import RobustLeaderboard, robust_leaderboard
from podium.analysis.leaderboard.tally import Tally
from podium.analysis.leaderboard.vote_trust import ALARM, SuspectVoter, VoteTrust, assess_trust, tally_votes
from podium.analysis.leaderboard.voter_influence import VoterInfluences, measure_influence
from podium.core.errors import PodiumError, capture_warnings
from podium.core.results import Result, ViewBlock
from podium.core.settings import LeaderboardSettings
from podium.core.tables import Grid
from podium.data.preferences import Preferences
from podium.data.vote_table import VoteTable

__all__ = ["TamperingAssessment", "assess_tampering"]


@dataclass(frozen=True, eq=False, repr=False)
class TamperingAssessment(Result[SuspectVoter]):
    """Everything about tampering with one board; the rows are the voters with improbable votes.

    `missing` says why a part is None: without a column of voters only the margin is known.
    """

    board: Leaderboard = field(repr=False)
    margin: LeaderMargin
    trust: VoteTrust | None = None
    influence: VoterInfluences | None = None
    robust: RobustLeaderboard | None = None
    missing: str = ""

    key, shown = "voter", 15
    facts = ("votes", "lines", "trust", "influence", "margin", "robust", "missing")

    @property
    def rows(self) -> tuple[SuspectVoter, ...]:
        """Voters with improbable votes."""
        return () if self.trust is None else self.trust.rows

    @property
    def votes(self) -> float:
        """Number of votes."""
        return self.board.votes

    @property
    def lines(self) -> tuple[str, ...]:
        """The conclusion of each part."""
        parts = (self.trust, self.influence, self.margin)
        given = [part.conclusion for part in parts if part is not None]
        given += [] if self.robust is None else [f"with a robust fit, {self.robust.conclusion}"]
        return (*given, *([f"voters are not checked: {self.missing}"] if self.missing else []))

    def headline(self) -> str:
        """The conclusion about voters, or about the leader where voters are unknown."""
        return self.margin.headline() if self.trust is None else self.trust.headline()

    def grid(self) -> Grid:
        """The voters with improbable votes."""
        return Grid(("voter", "why", "votes", "p"), (), 2) if self.trust is None else self.trust.grid()

    def blocks(self) -> tuple[ViewBlock, ...]:
        """The conclusions, then the tables."""
        grids = [self.grid()] if self.rows else []
        if self.influence is not None:
            grids.append(self.influence.grid())
        return self.lines, *grids, self.margin.grid()

    def chart(self) -> Any:
        """The margin of each place as an Altair chart."""
        return self.margin.chart()

    def _compute_facts(self) -> dict[str, Any]:
        robust = None
        if self.robust is not None:
            robust = {k: v for k, v in self.robust.to_dict().items() if k not in ("trust", "plain")}
        return {"robust": robust}


def assess_tampering(
    votes: Preferences | Tally | VoteTable | Leaderboard,
    *,
    table: VoteTable | None = None,
    time: str | None = None,
    alarm: float = ALARM,
    places: int = 10,
    settings: LeaderboardSettings | None = None,
    strict: bool = True,
) -> TamperingAssessment:
    """Check voters, measure their influence and the margins of the first `places`, and fit a robust board.

    `time` is the attribute of the votes (or of `table`, the single votes of a board) that says when a vote was cast;
    `alarm` the largest probability that some honest voter is named. Votes whose voters cannot be checked are an
    error, or, without `strict`, leave the parts about voters out.
    """
    with capture_warnings():  # the checks of the board report the same
        board = (
            votes if isinstance(votes, Leaderboard) else leaderboard(tally_votes(votes), settings=settings)
        )
    margin = measure_leader_margin(board, places=places)
    try:
        single = votes if isinstance(votes, VoteTable) else table or board
        trust = assess_trust(single, time=time, alarm=alarm, l2=board.settings.l2)
        influence = measure_influence(board)
        robust = robust_leaderboard(board, trust=trust)
    except PodiumError as error:
        if strict:
            raise
        return TamperingAssessment(board, margin, missing=str(error))
    return TamperingAssessment(board, margin, trust, influence, robust)
