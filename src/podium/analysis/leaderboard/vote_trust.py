"""Which voters cast votes that are improbable for an honest voter, with the reasons in words.

Five checks (`voter_checks.py`) give a p-value for every voter; all of them together are corrected by Holm's method,
so that an honest voter is named on at most a stated share of boards, the `alarm` rate. The board that voters are
compared with is fitted again with little weight on voters whose votes are improbable, so that many planted votes
do not hide each other.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from podium.analysis.leaderboard.checks import LeaderboardCheck
from podium.analysis.leaderboard.decisive_votes import (
    DecisiveVotes,
    compute_chances,
    fit_decisive_votes,
    list_decisive_votes,
)
from podium.analysis.leaderboard.result import Leaderboard
from podium.analysis.leaderboard.tally import Tally
from podium.analysis.leaderboard.voter_checks import (
    COMMON,
    VoterCheck,
    VoterItems,
    VoteTimes,
    check_bursts,
    check_copies,
    check_favored_items,
    check_one_item,
    check_sides,
    list_voter_items,
    measure_item_groups,
    measure_item_shares,
)
from podium.core.errors import InputError, ParameterError
from podium.core.params import suggest_names
from podium.core.results import Result, ViewBlock, build_grid, show_field
from podium.core.tables import Grid, format_p_value
from podium.core.text import format_count, join_names
from podium.data.ids import CodedColumn, Id, Ids
from podium.data.preferences import Preferences
from podium.data.vote_table import SideColumns, VoteTable
from podium.evaluate import charts
from podium.evaluate.significance import holm
from podium.kernels.dispatch import F8

__all__ = ["SuspectVoter", "VoteTrust", "assess_trust", "compute_voter_weights", "tally_votes"]

ALARM = 0.01
FULL, NONE = 0.1, 0.002  # p-values of a voter above which its votes count fully, and below which not at all
ROUNDS = 2  # fits of the board, each with the weights that the previous one gives
FEW = 4  # votes below which hardly anything is improbable enough to name a voter
DRAWN = 20  # voters in the chart


@dataclass(frozen=True)
class SuspectVoter:
    """A voter whose votes are improbable, and why."""

    voter: Id
    votes: int
    p: float  # smallest p-value, corrected for all voters and checks
    checks: tuple[str, ...]
    reasons: tuple[str, ...]


@dataclass(frozen=True, eq=False, repr=False)
class VoteTrust(Result[SuspectVoter]):
    """The voters whose votes are improbable, the most improbable first; p-values and weights of all voters."""

    rows: tuple[SuspectVoter, ...]
    alarm: float  # largest probability that some honest voter is named
    votes: int  # all votes, ties included
    checks: tuple[LeaderboardCheck, ...]
    few: int  # voters with too few votes to be checked
    voters: Ids = field(repr=False)
    p: F8 = field(repr=False)  # by voter: smallest p-value, corrected for all checks of the voter
    adjusted: F8 = field(repr=False)  # the same, corrected for all voters
    weights: F8 = field(repr=False)  # by voter, for a robust fit

    key, shown = "voter", 15
    facts = ("alarm", "voter_count", "votes", "few", "suspect_votes", "conclusion", "rows", "checks")

    @property
    def voter_count(self) -> int:
        """Number of voters."""
        return len(self.voters)

    @property
    def suspect_votes(self) -> int:
        """Votes of the named voters."""
        return sum(row.votes for row in self.rows)

    @property
    def conclusion(self) -> str:
        """What the checks found, and how often they are wrong, in one sentence."""
        rate = f"an honest voter is named on at most {100 * self.alarm:.3g} % of boards"
        if not self.rows:
            words = f"the votes of none of {format_count(self.voter_count, 'voter')} are improbable"
        else:
            names = join_names([row.voter for row in self.rows])
            share = self.suspect_votes / max(self.votes, 1)
            words = (
                f"improbable votes of {len(self.rows):,} of {self.voter_count:,} voters ({names}): "
                f"{self.suspect_votes:,} votes, {share:.2%} of all"
            )
        note = ""
        if self.few:
            note = f"; {format_count(self.few, 'voter')} cast fewer than {FEW} votes, too few to be checked"
        return f"{words} ({rate}){note}"

    def headline(self) -> str:
        """Number of voters, and how many are named."""
        return f"{self.voter_count:,} voters, {len(self.rows):,} with improbable votes"

    def grid(self) -> Grid:
        """The named voters with the reasons."""
        columns = [
            ("voter", show_field("voter")),
            ("why", lambda row: "; ".join(row.reasons)),
            ("votes", show_field("votes", "{:,}".format)),
            ("p", show_field("p", format_p_value)),
        ]
        return build_grid(columns, self.rows, left=2)

    def checks_grid(self) -> Grid:
        """Every check with its result."""
        rows = tuple((check.name, check.verdict, check.text) for check in self.checks)
        return Grid(("check", "verdict", "result"), rows, 3)

    def blocks(self) -> tuple[ViewBlock, ...]:
        """The conclusion, the named voters, and the checks."""
        sentence = f"{self.conclusion[:1].upper()}{self.conclusion[1:]}."
        return (sentence, *([self.grid()] if self.rows else []), self.checks_grid())

    def chart(self) -> Any:
        """The most improbable voters as an Altair chart: the p-value of each, corrected for its checks."""
        alt = charts.import_altair()
        order = np.argsort(np.nan_to_num(self.p, nan=1.0), kind="stable")[:DRAWN].tolist()
        named = {str(row.voter) for row in self.rows}
        values = [
            {
                "voter": str(self.voters[k]),
                "surprise": float(-np.log10(max(np.nan_to_num(self.p[k], nan=1.0), 1e-30))),
                "verdict": "named" if str(self.voters[k]) in named else "not named",
            }
            for k in order
        ]
        axis = alt.Axis(labelLimit=240)
        return (
            alt.Chart(alt.Data(values=values))
            .mark_bar()
            .encode(
                y=alt.Y("voter:N", sort=[v["voter"] for v in values], title=None, axis=axis),
                x=alt.X("surprise:Q", title="-log10 of the p-value"),
                color=alt.Color(
                    "verdict:N", sort=["named", "not named"], legend=alt.Legend(title=None, orient="bottom")
                ),
                tooltip=["voter:N", "surprise:Q", "verdict:N"],
            )
            .properties(width=460, height={"step": 16}, title="Most improbable voters")
        )

    def p_value(self, voter: Id) -> float:
        """p-value of one voter's votes, corrected for all checks and voters."""
        code = self.voters.code_of(voter)
        if code is None:
            raise ParameterError(
                f"there is no voter {voter!r}; {suggest_names(str(voter), map(str, self.voters))}"
            )
        return float(self.adjusted[code])


def assess_trust(
    votes: Preferences | Tally | VoteTable | Leaderboard,
    *,
    time: str | None = None,
    alarm: float = ALARM,
    l2: float = 0.001,
) -> VoteTrust:
    """Check every voter (the experts of the votes) for improbable votes.

    `time` names the attribute of a `VoteTable` that says when a vote was cast: numbers of seconds. With probability
    at most `alarm`, some honest voter is named; honest voters may differ in taste.
    """
    if not 0 < alarm < 1:
        raise ParameterError(f"alarm is {alarm}; accepted: numbers between 0 and 1, both excluded")
    tally = tally_votes(votes)
    times = None if time is None else _read_times(votes, time, tally)
    decisive = list_decisive_votes(tally)
    # a voter who mostly votes on one item is left out of the first fit, whatever the votes
    weights = _weigh_by_items(decisive, list_voter_items(decisive), np.ones(decisive.voters))
    start, chances = None, None
    for _ in range(ROUNDS):
        estimate = fit_decisive_votes(decisive, weights, l2, start)
        start = estimate.solution.scores
        chances = compute_chances(decisive, estimate, weights)
        groups = measure_item_groups(decisive, chances)
        checks = [
            check_favored_items(decisive, groups, tally.items),
            check_one_item(decisive, groups, tally.items, weights),
        ]
        by_items = _weigh_by_items(decisive, list_voter_items(decisive), weights)
        old, weights = weights, np.minimum(compute_voter_weights(_combine(checks)), by_items)
        if np.allclose(weights, old, atol=0.05):
            break
    assert chances is not None
    checks = [*checks, check_sides(decisive, chances), check_copies(decisive, chances, tally.experts)]
    if times is not None:
        checks.append(check_bursts(times, decisive.voters))
    return _build_trust(tally, decisive, checks, alarm, by_items)


def _weigh_by_items(votes: DecisiveVotes, items: VoterItems, weights: F8) -> F8:
    """Weights by how unusual the items of a voter are, whatever its votes; 1 if pairs were assigned or chosen."""
    shares = measure_item_shares(votes, items, weights)
    if shares.unusual > COMMON:
        return np.ones(votes.voters)
    return compute_voter_weights(np.where(np.isnan(shares.p), 1.0, shares.p))


def _combine(checks: list[VoterCheck]) -> F8:
    """The smallest p-value of each voter, corrected for the number of its checks."""
    table = np.array([check.p for check in checks])
    known = (~np.isnan(table)).sum(axis=0)
    return np.where(
        known > 0, np.minimum(np.nanmin(np.where(np.isnan(table), 1.0, table), axis=0) * known, 1.0), 1.0
    )


def compute_voter_weights(p: F8) -> F8:
    """Weights for a robust fit: 1 for a voter with a p-value of 10 % or more, 0 below 0.2 %, log-linear between."""
    ramp = np.log(np.maximum(p, 1e-300) / NONE) / np.log(FULL / NONE)
    return np.asarray(np.clip(ramp, 0.0, 1.0), np.float64)


def tally_votes(votes: Preferences | Tally | VoteTable | Leaderboard) -> Tally:
    """The counted votes of any container of votes."""
    if isinstance(votes, Leaderboard):
        return votes.tally
    if isinstance(votes, VoteTable):
        votes = votes.to_preferences()
    tally = Tally.from_preferences(votes) if isinstance(votes, Preferences) else votes
    return tally.drop_unplayed_items()[0]


def _read_times(votes: Any, time: str, tally: Tally) -> VoteTimes:
    if not isinstance(votes, VoteTable):
        raise ParameterError("times belong to single votes; give a VoteTable that has them as an attribute")
    column = votes.get_attribute(time)
    if isinstance(column, CodedColumn | SideColumns):
        raise InputError(
            f"the attribute {time!r} is not a number of seconds",
            remedy=f"read a date as {time}:seconds",
        )
    if len(tally.experts) < 2:
        return VoteTimes(np.zeros(0, np.int64), np.zeros(0))  # the checks of voters say why
    return VoteTimes(tally.experts.codes_of(votes.expert.ids)[votes.expert.codes], column)


def _build_trust(
    tally: Tally, votes: DecisiveVotes, checks: list[VoterCheck], alarm: float, by_items: F8
) -> VoteTrust:
    table = np.array([check.p for check in checks])
    adjusted = holm(table.ravel()).reshape(table.shape)
    named = adjusted <= alarm
    counts = np.rint(tally.count_by_expert()).astype(np.int64)
    smallest = np.min(np.where(np.isnan(adjusted), 1.0, adjusted), axis=0)
    rows = []
    for voter in np.flatnonzero(named.any(axis=0)).tolist():
        own = [k for k in np.argsort(table[:, voter]).tolist() if named[k, voter]]
        rows.append(
            SuspectVoter(
                tally.experts[voter],
                int(counts[voter]),
                float(smallest[voter]),
                tuple(checks[k].name for k in own),
                tuple(checks[k].describe(voter) for k in own),
            )
        )
    p = _combine(checks)
    place = {row.voter: k for k, row in enumerate(rows)}
    order = sorted(rows, key=lambda row: (p[tally.experts.code_of(row.voter)], place[row.voter]))
    results = []
    for check, flags in zip(checks, named, strict=True):
        tested, count = int((~np.isnan(check.p)).sum()), int(flags.sum())
        details: dict[str, Any] = {"tested": tested, "named": count, "spread": check.spread}
        if check.unknown:
            results.append(LeaderboardCheck(check.name, "unknown", check.unknown, details))
            continue
        words = f"{count:,} of {format_count(tested, 'voter')} named"
        if check.spread > 0:
            words += f"; honest voters are allowed to differ (standard deviation {check.spread:.2g})"
        results.append(LeaderboardCheck(check.name, "warning" if count else "ok", words, details))
    few = int(((votes.counts < FEW) & (counts > 0)).sum())
    return VoteTrust(
        tuple(order), alarm, int(counts.sum()), tuple(results), few, tally.experts, p, smallest,
        np.minimum(compute_voter_weights(p), by_items),
    )  # fmt: skip
