"""The influence of every voter on every score and place: what the board would be without the voter's votes.

One Newton step from the fitted scores (an infinitesimal jackknife of the voters) gives the scores without each
voter; the most influential voters are checked by a fit without their votes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from podium.analysis.leaderboard.inference import NEAR, compute_cluster_gradients
from podium.analysis.leaderboard.result import Leaderboard, leaderboard
from podium.analysis.leaderboard.tally import Tally
from podium.core.errors import InputError, ParameterError, capture_warnings
from podium.core.params import suggest_names
from podium.core.results import Result, ViewBlock, build_grid, show_field
from podium.core.tables import Grid
from podium.core.text import join_names
from podium.data.ids import Id
from podium.data.preferences import Preferences
from podium.evaluate import charts
from podium.kernels.bootstrap import Clusters, refit_contests
from podium.kernels.dispatch import F8, I8

__all__ = ["PlaceChange", "VoterInfluence", "VoterInfluences", "fit_without_rows", "measure_influence"]

SHOWN = 20  # voters that are fitted again
CELLS = 4_000_000  # voters x items of a table held at once


@dataclass(frozen=True)
class PlaceChange:
    """The place of an item with all votes, and without those of a voter."""

    item: Id
    place: int
    without: int


@dataclass(frozen=True)
class VoterInfluence:
    """What the board would be without the votes of one voter, by a fit without them."""

    voter: Id
    votes: float
    item: Id  # whose score changes most
    change: float  # of that score, in points, if the voter's votes are left out
    one_step: float  # the same by one Newton step
    leader: Id  # without the voter
    places: tuple[PlaceChange, ...]  # that change, the largest change first


@dataclass(frozen=True, eq=False, repr=False)
class VoterInfluences(Result[VoterInfluence]):
    """The most influential voters, fitted again without each; the influence of all voters by one step."""

    rows: tuple[VoterInfluence, ...]
    board: Leaderboard = field(repr=False)
    largest: F8 = field(repr=False)  # by voter: largest change of a score, in points
    moved: I8 = field(repr=False)  # by voter: items whose place changes
    leaders: I8 = field(repr=False)  # by voter: code of the first item without the voter
    gradients: Any = field(repr=False)

    key, shown = "voter", 15
    facts = ("voter_count", "deciding_voters", "moving_voters", "conclusion", "rows")

    @property
    def voter_count(self) -> int:
        """Number of voters."""
        return len(self.largest)

    @property
    def deciding_voters(self) -> list[Id]:
        """Voters without whom another item would lead, the most influential first."""
        changed = {row.voter for row in self.rows if row.leader != self.board.rows[0].item}
        fitted = {row.voter for row in self.rows}
        others = np.flatnonzero(self.leaders != self.board.estimate.order[0])
        names = [self.board.tally.experts[k] for k in others[np.argsort(-self.largest[others])].tolist()]
        return [
            *(row.voter for row in self.rows if row.voter in changed),
            *(n for n in names if n not in fitted),
        ]

    @property
    def moving_voters(self) -> int:
        """Voters without whom some place would change."""
        return int((self.moved > 0).sum())

    @property
    def conclusion(self) -> str:
        """Whether a single voter decides who leads, and how many move some place."""
        leader, deciding = self.board.rows[0].item, self.deciding_voters
        moving = f"{self.moving_voters:,} of {self.voter_count:,} voters move some place"
        if deciding:
            who = join_names(deciding, last="or")
            one = "any one of " if len(deciding) > 1 else ""
            return f"without the votes of {one}{who}, {leader} would not lead; {moving}"
        return f"{leader} leads without any one voter too; {moving}"

    def headline(self) -> str:
        """Number of voters, and those who decide who leads."""
        return f"{self.voter_count:,} voters, {len(self.deciding_voters):,} of them decide who leads"

    def compute_changes(self, voters: list[Id]) -> F8:
        """Voters x items (in id order): change of each score, in points, without the voter; by one Newton step."""
        experts, codes = self.board.tally.experts, []
        for voter in voters:
            code = experts.code_of(voter)
            if code is None:
                raise ParameterError(
                    f"there is no voter {voter!r}; {suggest_names(str(voter), map(str, experts))}"
                )
            codes.append(code)
        everything = dict.fromkeys(codes)
        for begin, changes in _iterate_changes(self.board, self.gradients):
            for code in everything:
                if begin <= code < begin + len(changes):
                    everything[code] = changes[code - begin] * self.board.settings.factor
        return np.array([everything[code] for code in codes])

    def grid(self) -> Grid:
        """The most influential voters."""

        def format_places(row: Any) -> str:
            shown = [f"{c.item} {c.place} to {c.without}" for c in row.places[:2]]
            return ", ".join(shown) + (f" and {len(row.places) - 2} more" if len(row.places) > 2 else "")

        columns = [
            ("voter", show_field("voter")),
            ("moves most", show_field("item")),
            ("places without it", format_places),
            ("points", show_field("change", "{:+.2f}".format)),
            ("one step", show_field("one_step", "{:+.2f}".format)),
            ("votes", show_field("votes", "{:,.10g}".format)),
        ]
        return build_grid(columns, self.rows, left=3)

    def blocks(self) -> tuple[ViewBlock, ...]:
        """The conclusion, and the most influential voters."""
        return f"{self.conclusion[:1].upper()}{self.conclusion[1:]}.", self.grid()

    def chart(self) -> Any:
        """The most influential voters as an Altair chart."""
        alt = charts.import_altair()
        values = [
            {"voter": str(row.voter), "points": row.change, "item": str(row.item), "votes": row.votes}
            for row in self.rows
        ]
        names, axis = [v["voter"] for v in values], alt.Axis(labelLimit=240)
        return (
            alt.Chart(alt.Data(values=values))
            .mark_bar()
            .encode(
                y=alt.Y("voter:N", sort=names, title=None, axis=axis),
                x=alt.X("points:Q", title="change of the score that moves most without the voter"),
                tooltip=["voter:N", "points:Q", "item:N", "votes:Q"],
            )
            .properties(width=460, height={"step": 16}, title="Most influential voters")
        )


def measure_influence(
    votes: Preferences | Tally | Leaderboard, *, most: int = SHOWN, **settings: Any
) -> VoterInfluences:
    """The influence of every voter (expert) on every place; `most` voters are fitted again without their votes.

    `settings` are those of `leaderboard`.
    """
    board = votes
    if not isinstance(board, Leaderboard):
        with capture_warnings():  # the checks of the board report the same
            board = leaderboard(board, **settings)
    if board.settings.judges == "discounted":
        raise ParameterError(
            "influence is that of whole votes, and discounted judges share one; leave judges out"
        )
    tally, e = board.tally, board.estimate
    if len(tally.experts) < 2:
        raise InputError(
            f"all votes come from one voter, {tally.experts[0]!r}",
            remedy="name the column of the voters, such as -O expert=user_id",
        )
    order = np.argsort(tally.expert, kind="stable")
    starts = np.searchsorted(tally.expert[order], np.arange(len(tally.experts) + 1))
    pair = tally.pair_of_row(e.contests.side is not None)
    clusters = Clusters(starts, pair[order], *(c[order] for c in tally.sums))
    gradients = compute_cluster_gradients(e, clusters)
    largest, moved, leaders = np.zeros(len(tally.experts)), *np.zeros((2, len(tally.experts)), np.int64)
    ranks = _rank(e.scores[None])[0]
    for begin, changes in _iterate_changes(board, gradients):
        rows = slice(begin, begin + len(changes))
        without = e.scores + changes
        places = _rank(without)
        largest[rows] = np.abs(changes).max(axis=1) * board.settings.factor
        moved[rows], leaders[rows] = (places != ranks).sum(axis=1), places.argmin(axis=1)
    top = np.argsort(-largest, kind="stable")[:most].tolist()
    influences = VoterInfluences((), board, largest, moved, leaders, gradients)
    steps = influences.compute_changes([tally.experts[k] for k in top]) if top else np.zeros((0, len(e)))
    fitted = tuple(_refit(board, clusters, k, step) for k, step in zip(top, steps, strict=True))
    return VoterInfluences(fitted, board, largest, moved, leaders, gradients)


def _iterate_changes(board: Leaderboard, gradients: Any) -> Iterator[tuple[int, F8]]:
    """First voter, and voters x items: change of the natural scores without each voter, by one Newton step."""
    e, voters = board.estimate, len(board.tally.experts)
    step = max(1, CELLS // len(e.inverse_hessian))
    starts, width = np.searchsorted(gradients.rows, np.arange(voters + 1)), len(e.inverse_hessian)
    for begin in range(0, voters, step):
        end = min(begin + step, voters)
        rows = slice(int(starts[begin]), int(starts[end]))
        place = (gradients.rows[rows] - begin) * width + gradients.columns[rows]
        dense = np.bincount(place, gradients.values[rows], (end - begin) * width).reshape(end - begin, width)
        changes = (dense @ e.inverse_hessian)[:, : len(e)]
        yield begin, changes - changes[:, e.origin].mean(axis=1, keepdims=True)


def _rank(scores: F8) -> I8:
    """Places from 1 in each row, ties by number."""
    return np.argsort(np.argsort(-np.round(scores / NEAR), axis=1, kind="stable"), axis=1, kind="stable") + 1


def fit_without_rows(board: Leaderboard, pair: I8, won: F8, lost: F8, tied: F8) -> F8:
    """Scores without some votes, given by the pair of contests that they are on; centered like those of the board."""
    e = board.estimate
    counts = [
        np.maximum(getattr(e.contests, name) - np.bincount(pair, c, len(e.contests.first)), 0.0)
        for name, c in (("won", won), ("lost", lost), ("tied", tied))
    ]
    left = e.contests._replace(won=counts[0], lost=counts[1], tied=counts[2])
    scores = refit_contests(left, e.solution, 1e-9).scores
    return np.asarray(scores - scores[e.origin].mean(), np.float64)


def _refit(board: Leaderboard, clusters: Clusters, voter: int, step: F8) -> VoterInfluence:
    rows = slice(int(clusters.starts[voter]), int(clusters.starts[voter + 1]))
    won, lost, tied = (c[rows] for c in (clusters.won, clusters.lost, clusters.tied))
    scores = fit_without_rows(board, clusters.pair[rows], won, lost, tied)
    e, items = board.estimate, board.tally.items
    change = (scores - e.scores) * board.settings.factor
    before, after = _rank(e.scores[None])[0], _rank(scores[None])[0]
    most = int(np.abs(change).argmax())
    other = np.flatnonzero(before != after)
    places = sorted(
        (PlaceChange(items[k], int(before[k]), int(after[k])) for k in other.tolist()),
        key=lambda c: (-abs(c.place - c.without), c.place),
    )
    votes = float(won.sum() + lost.sum() + tied.sum())
    return VoterInfluence(
        board.tally.experts[voter], votes, items[most], float(change[most]), float(step[most]),
        items[int(after.argmin())], tuple(places),
    )  # fmt: skip
