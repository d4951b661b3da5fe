"""The smallest number of votes that changes the leader, or the order of two neighbors.

Added votes are planted wins of one item over another, the same for all of them. Removed votes are taken in the order
of their influence on the difference of the two scores, by one Newton step; removed voters likewise. Every number is
checked by a fit: with that many votes the order changes. Fewer may do it with a cleverer choice of votes to remove,
so the numbers are upper bounds of the true margin.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from podium.analysis.leaderboard.inference import NEAR, compute_cluster_gradients, compute_vote_slopes
from podium.analysis.leaderboard.result import Leaderboard, leaderboard
from podium.analysis.leaderboard.score_estimate import add_votes, find_least_count
from podium.analysis.leaderboard.tally import Tally
from podium.analysis.leaderboard.voter_influence import fit_without_rows
from podium.core.errors import ParameterError, capture_warnings
from podium.core.results import Column, Result, ViewBlock, build_grid, show_field
from podium.core.tables import Grid
from podium.core.text import format_count, join_names
from podium.data.ids import Id
from podium.data.preferences import Preferences
from podium.evaluate import charts
from podium.kernels.bootstrap import Clusters, refit_contests
from podium.kernels.dispatch import F8, I8
from podium.kernels.distributions import logistic

__all__ = ["LeaderMargin", "PlaceMargin", "measure_leader_margin"]

PLACES = 10  # neighbors that are examined
TRIED = 4  # ways to change the leader that are fitted, the most effective ones by one Newton step
MOST = 1 << 40  # added votes up to which a change is searched for


@dataclass(frozen=True)
class PlaceMargin:
    """How few votes take a place from an item; None where no number of such votes does."""

    place: int
    item: Id
    rival: Id  # the item that passes it
    added: int | None  # planted votes
    added_winner: Id | None  # which item they are for ...
    added_loser: Id | None  # ... and against
    removed: int | None
    removed_voters: int | None
    voters: tuple[Id, ...] = ()  # the voters to remove, the most influential first


@dataclass(frozen=True, eq=False, repr=False)
class LeaderMargin(Result[PlaceMargin]):
    """Margins of the first places: the leader against all others, the others against their next neighbor."""

    rows: tuple[PlaceMargin, ...]
    votes: float
    board: Leaderboard = field(repr=False)

    key, shown = "item", 15
    facts = ("votes", "conclusion", "rows")

    @property
    def conclusion(self) -> str:
        """How few votes change the leader, in one sentence."""
        row, parts = self.rows[0], []
        if row.added is not None:
            share = row.added / max(self.votes, 1)
            parts.append(
                f"{format_count(row.added, 'added vote')} for {row.added_winner} over {row.added_loser} "
                f"({share:.2%} of all)"
            )
        if row.removed is not None:
            parts.append(f"{format_count(row.removed, 'removed vote')}")
        if row.removed_voters is not None:
            who = join_names(row.voters, 3)
            parts.append(f"{format_count(row.removed_voters, 'removed voter')} ({who})")
        if not parts:
            return f"no number of such votes takes the lead from {row.item}"
        return f"the lead of {row.item} is lost to {row.rival} with {', or '.join(parts)}"

    def headline(self) -> str:
        """The leader, and how few votes change it."""
        return f"first: {self.rows[0].item!r}, lost with {self.rows[0].added} added or {self.rows[0].removed} removed"

    def grid(self) -> Grid:
        """The margin of each place."""

        def show_number(name: str) -> Callable[[PlaceMargin], str]:
            return lambda row: "-" if getattr(row, name) is None else f"{getattr(row, name):,}"

        columns: list[Column] = [
            ("place", show_field("place")),
            ("item", show_field("item")),
            ("lost to", show_field("rival")),
            ("votes added", show_number("added")),
            ("votes removed", show_number("removed")),
            ("voters removed", show_number("removed_voters")),
        ]
        if all(row.removed_voters is None for row in self.rows):
            columns.pop()
        return build_grid(columns, self.rows, left=3)

    def blocks(self) -> tuple[ViewBlock, ...]:
        """The conclusion, and the margins."""
        return f"{self.conclusion[:1].upper()}{self.conclusion[1:]}.", self.grid()

    def chart(self) -> Any:
        """The margins as an Altair chart."""
        alt = charts.import_altair()
        kinds = (("added", "votes added"), ("removed", "votes removed"))
        values = [
            {"item": f"{row.place}. {row.item}", "votes": max(getattr(row, name), 0.5), "kind": kind}
            for row in self.rows
            for name, kind in kinds
            if getattr(row, name) is not None
        ]
        names, axis = [f"{row.place}. {row.item}" for row in self.rows], alt.Axis(labelLimit=240)
        return (
            alt.Chart(alt.Data(values=values))
            .mark_point(size=70, strokeWidth=2)
            .encode(
                y=alt.Y("item:N", sort=names, title=None, axis=axis),
                x=alt.X("votes:Q", scale=alt.Scale(type="log"), title="votes that take the place away"),
                color=alt.Color("kind:N", legend=alt.Legend(title=None, orient="bottom")),
                shape=alt.Shape("kind:N", legend=None),
                tooltip=["item:N", "kind:N", "votes:Q"],
            )
            .properties(width=460, height={"step": 22}, title="Margin of each place")
        )


class _Cells(NamedTuple):
    """Votes that can be removed: the pair of contests, how many of each outcome, and the effect of one of them."""

    pair: I8
    counts: tuple[F8, F8, F8]  # won, lost and tied votes removed with the cell
    number: I8  # of votes (or 1 for a voter)
    effect: F8  # by cell: change of the difference of the scores, over all its votes
    owner: I8 | None = None  # voter of each row; rows of one voter are removed together


def measure_leader_margin(
    votes: Preferences | Tally | Leaderboard, *, places: int = PLACES, **settings: Any
) -> LeaderMargin:
    """How few added or removed votes, or removed voters, change the leader and each of the first `places`.

    `settings` are those of `leaderboard`.
    """
    if places < 1:
        raise ParameterError(f"places is {places}; accepted: whole numbers from 1")
    board = votes
    if not isinstance(board, Leaderboard):
        with capture_warnings():  # the checks of the board report the same
            board = leaderboard(board, **settings)
    if board.settings.judges == "discounted":
        raise ParameterError("margins count whole votes, and discounted judges share one; leave judges out")
    order = board.estimate.order.tolist()
    rows = []
    for place, (item, rival) in enumerate(itertools.pairwise(order[: places + 1]), 1):
        rows.append(_measure_place(board, place, item, rival))
    return LeaderMargin(tuple(rows), board.votes, board)


def _measure_place(board: Leaderboard, place: int, item: int, rival: int) -> PlaceMargin:
    items = board.tally.items
    kinds = _rank_planted_votes(board, item) if place == 1 else [(rival, item)]
    added = min(
        ((n, kind) for kind in kinds if (n := _count_added(board, item, rival, kind, place)) is not None),
        default=(None, (rival, item)),
    )
    rivals = board.estimate.order[1 : 1 + TRIED].tolist() if place == 1 else [rival]
    removed: tuple[float, int] = (np.inf, rival)
    for other in rivals:
        number = _count_removed(board, item, other, _list_votes(board, item, other))
        if number is not None and number[0] < removed[0]:
            removed = (number[0], other)
    voters = None
    if len(board.tally.experts) > 1:
        # all voters whose removal hurts the item, the most influential first
        e, tally = board.estimate, board.tally
        starts = np.searchsorted(tally.expert, np.arange(len(tally.experts) + 1))
        pair = tally.pair_of_row(e.contests.side is not None)
        gradients = compute_cluster_gradients(e, Clusters(starts, pair, *tally.sums))
        effect = gradients.multiply(e.inverse_hessian[item] - e.inverse_hessian[removed[1]])
        kept = np.flatnonzero(effect < 0)
        kept = kept[np.argsort(effect[kept], kind="stable")]
        cells = _Cells(pair, tally.sums, np.ones(len(kept), np.int64), effect[kept], kept)
        voters = _count_removed(board, item, removed[1], cells)
    winner, loser = added[1]
    return PlaceMargin(
        place, items[item], items[removed[1] if place == 1 and np.isfinite(removed[0]) else rival], added[0],
        items[winner] if added[0] is not None else None, items[loser] if added[0] is not None else None,
        int(removed[0]) if np.isfinite(removed[0]) else None, None if voters is None else voters[0],
        () if voters is None else tuple(board.tally.experts[k] for k in voters[1]),
    )  # fmt: skip


# -- added votes -----------------------------------------------------------------------------------------------


def _rank_planted_votes(board: Leaderboard, leader: int) -> list[tuple[int, int]]:
    """Winner and loser of the planted votes that seem to take the lead with the fewest, by one Newton step."""
    e = board.estimate
    size, inverse = len(e), e.inverse_hessian
    others = np.array([k for k in e.order.tolist() if k != leader])
    challengers = others[: 4 * TRIED]
    kinds = [(int(k), leader) for k in others] + [
        (int(k), int(j)) for k in challengers for j in range(size) if j not in (k, leader)
    ]
    winner, loser = np.array(kinds).T
    surprise = 1 - logistic(e.scores[winner] - e.scores[loser])
    rate = inverse[:, winner] - inverse[:, loser]
    # difference of each challenger and the leader per planted vote
    gain = (rate[challengers] - rate[leader]) * surprise
    gap = (e.scores[leader] - e.scores[challengers])[:, None]
    needed = np.where(gain > 0, gap / np.maximum(gain, 1e-300), np.inf).min(axis=0)
    best = np.argsort(needed, kind="stable")[:TRIED].tolist()
    runner_up = (int(others[0]), leader)
    return [runner_up, *(kinds[k] for k in best if kinds[k] != runner_up)]


def _count_added(board: Leaderboard, item: int, rival: int, kind: tuple[int, int], place: int) -> int | None:
    """The smallest number of planted votes after which the item is passed: by anyone for the lead, or by the rival."""
    e = board.estimate

    def is_passed(votes: int) -> bool:
        scores = refit_contests(add_votes(e.contests, *kind, votes), e.solution, 1e-10).scores
        best = np.delete(scores, item).max() if place == 1 else scores[rival]
        return bool(best - scores[item] > NEAR)

    return find_least_count(is_passed, MOST)


# -- removed votes ---------------------------------------------------------------------------------------------


def _list_votes(board: Leaderboard, item: int, rival: int) -> _Cells:
    """All votes by pair and outcome, those whose removal hurts the item most first."""
    e = board.estimate
    c, size = e.contests, len(e)
    direction = (e.inverse_hessian[item] - e.inverse_hessian[rival])[:size]
    pull = direction[c.first] - direction[c.second]
    pairs, counts, numbers, effects = [], [], [], []
    for k, (slope, total) in enumerate(zip(compute_vote_slopes(e), (c.won, c.lost, c.tied), strict=True)):
        whole = np.floor(total)
        columns = np.zeros((3, len(whole)))
        columns[k] = whole
        pairs.append(np.arange(len(whole)))
        counts.append(columns)
        numbers.append(whole.astype(np.int64))
        effects.append(pull * slope * whole)
    pair, number, effect = (np.concatenate(parts) for parts in (pairs, numbers, effects))
    won, lost, tied = np.concatenate(counts, axis=1)
    rate = np.divide(effect, number, out=np.zeros(len(effect)), where=number > 0)
    kept = np.flatnonzero((number > 0) & (rate < 0))
    kept = kept[np.argsort(rate[kept], kind="stable")]
    return _Cells(pair[kept], (won[kept], lost[kept], tied[kept]), number[kept], effect[kept])


def _count_removed(board: Leaderboard, item: int, rival: int, cells: _Cells) -> tuple[int, list[int]] | None:
    """The smallest number of the first votes (or voters) without which the rival is ahead, and the voters."""
    total, ends = int(cells.number.sum()), np.cumsum(cells.number)
    by_voter = board.tally.expert if cells.owner is not None else None

    def is_passed(number: int) -> bool:
        if by_voter is not None:
            assert cells.owner is not None
            gone = np.zeros(len(board.tally.experts), np.bool_)
            gone[cells.owner[:number]] = True
            rows = np.flatnonzero(gone[by_voter])
            scores = fit_without_rows(board, cells.pair[rows], *(c[rows] for c in cells.counts))
        else:
            # the last cell is removed in part
            last = int(np.searchsorted(ends, number))
            share = np.zeros(len(ends))
            share[:last] = 1.0
            share[last] = (number - (ends[last - 1] if last else 0)) / cells.number[last]
            scores = fit_without_rows(board, cells.pair, *(c * share for c in cells.counts))
        return bool(scores[rival] - scores[item] > NEAR)

    gap = board.estimate.scores[item] - board.estimate.scores[rival]
    guess = int(np.searchsorted(-np.cumsum(cells.effect), gap)) if total else 0
    # a first guess by one Newton step, then doubling and bisection
    high = max(1, min(int(ends[min(guess, len(ends) - 1)]) if total else 1, total)) // 2 or 1
    low = 0
    while total and not is_passed(min(high, total)):
        if high >= total:
            return None
        low, high = high, high * 2
    if not total:
        return None
    high = min(high, total)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_passed(middle) else (middle, high)
    return high, [] if cells.owner is None else cells.owner[:high].tolist()
