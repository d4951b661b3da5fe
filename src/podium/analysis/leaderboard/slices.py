"""Boards of slices of the votes (a category, a language, a month), shrunk toward the board of all votes.

Within a slice the score of an item is a score common to all slices plus a deviation (see `slice_shrinkage.py`): a
slice with ten votes keeps the common scores, one with many votes gets scores of its own, and where slices do not
differ all keep the scores of the whole board. The effects of covariates are those of the whole board.

Whether a place depends on the slice is tested for each item and slice: is the deviation larger than by chance if
the slice were like all other votes? p-values come from the sandwich covariance of the gradient, with the fit of
the whole board taken into account, and are Holm-corrected over all items and slices.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from podium.analysis.leaderboard import inference as u
from podium.analysis.leaderboard.slice_shrinkage import SliceVotes, shrink_slices
from podium.core.errors import InputError
from podium.core.results import Result, ViewBlock
from podium.core.settings import LeaderboardSettings
from podium.core.tables import Grid
from podium.data.ids import CodedColumn, Id, Ids
from podium.data.vote_table import SideColumns, VoteTable
from podium.evaluate.significance import holm
from podium.kernels.contextual_contests import (
    ContextualFit,
    ContextualVotes,
    add_up_by_cluster,
    add_up_gradients,
    compute_products,
)
from podium.kernels.dispatch import B1, F8, I8
from podium.kernels.distributions import student_cdf

__all__ = ["SliceBoards", "SliceStanding", "WholeBoard", "build_slice_boards", "number_slices"]

MOST_SLICES = 200
FEW = 100  # votes below which a slice is named as small
SMALL_SPREAD = 0.01  # for the test where slices do not differ


@dataclass(frozen=True)
class SliceStanding:
    """One item in one slice: its shrunk score and rank there, and the p-value of differing from the other votes."""

    slice: str
    item: Id
    rank: int
    whole_rank: int
    score: float
    low: float
    high: float
    whole_score: float
    votes: float  # in this slice
    p: float


@dataclass(frozen=True, eq=False, repr=False)
class SliceBoards(Result[SliceStanding]):
    """The items in each slice: slices with the most votes first (numbers and dates in order), items best first."""

    rows: tuple[SliceStanding, ...]
    column: str
    votes: dict[str, float]  # by slice
    spread: float  # standard deviation of the deviations between slices, in points; 0 if they are alike
    level: float

    key, shown = "item", 30
    facts = ("column", "votes", "spread", "rows", "dependent_items", "small")

    @property
    def dependent_items(self) -> dict[Id, list[str]]:
        """Items whose place depends on the slice, with these slices."""
        dependent: dict[Id, list[str]] = {}
        for row in self.rows:
            if row.p <= 1 - self.level:
                dependent.setdefault(row.item, []).append(row.slice)
        return dependent

    @property
    def small(self) -> list[str]:
        """Slices with few votes."""
        return [name for name, votes in self.votes.items() if votes < FEW]

    @property
    def dependence(self) -> tuple[str, ...]:
        """What depends on the slice, in sentences."""
        lines = [
            f"{r.item} has {r.score - r.whole_score:+.3g} points in {r.slice}: place {r.rank}, "
            f"{'as' if r.rank == r.whole_rank else r.whole_rank} in all votes (p = {r.p:.2g})"
            for r in self.rows
            if r.p <= 1 - self.level
        ]
        if not lines:
            lines = [f"no item differs between the slices of {self.column} more than by chance"]
        lines += [
            f"{name} has {self.votes[name]:,.10g} votes, so its scores are close to those of all votes"
            for name in self.small
        ]
        return tuple(lines)

    def headline(self) -> str:
        """Number of slices, and the items that depend on them."""
        named = ", ".join(map(str, self.dependent_items)) or "none"
        return f"{len(self.votes)} slices of {self.column}, items that depend on them: {named}"

    def grid(self) -> Grid:
        """Rank of each item in all votes and in each slice; * marks deviations beyond chance."""
        cells: dict[Id, dict[str, str]] = {}
        order = {row.item: row.whole_rank for row in self.rows}
        for row in self.rows:
            mark = "*" if row.p <= 1 - self.level else ""
            cells.setdefault(row.item, {})[row.slice] = f"{row.rank}{mark}"
        lines = [
            (str(item), str(order[item]), *(cells[item][name] for name in self.votes))
            for item in sorted(cells, key=lambda i: (order[i], str(i)))
        ]
        return Grid(("item", "all", *self.votes), tuple(lines), 1)

    def blocks(self) -> tuple[ViewBlock, ...]:
        """The ranks by slice, and what depends on it."""
        return self.grid(), self.dependence


class WholeBoard(NamedTuple):
    """The fit to all votes: the rows that were counted, and the covariance of the gradient."""

    votes: ContextualVotes
    fit: ContextualFit
    meat: F8
    items: Ids
    origin: B1
    kept: I8  # rows of the vote table
    square: F8  # per vote, the factor of its squared residual in the covariance of the gradient
    cluster: I8 | None  # per vote, the sampling unit of the errors; None if each vote is one


class VoteSlice(NamedTuple):
    """The votes of a slice, the log odds that their covariates add, and their deviations from the whole board."""

    name: str
    votes: ContextualVotes
    offset: F8
    residuals: F8
    rows: I8  # among the votes of the whole board


def build_slice_boards(
    table: VoteTable, column: str, whole: WholeBoard, how: LeaderboardSettings
) -> SliceBoards:
    """The boards of all values of an attribute."""
    slices = _split_votes(table, column, whole)
    n = whole.votes.size
    fitted = shrink_slices(
        [SliceVotes(s.votes._replace(covariates=s.votes.covariates[:, :0]), s.offset) for s in slices],
        whole.fit.scores,
        how.l2,
    )
    spread = 0.0 if fitted is None else fitted.spread
    p = _test_deviations(slices, whole, spread)
    inverse = np.linalg.inv(whole.fit.hessian)
    half = inverse[:n] - inverse[:n][whole.origin].mean(axis=0)
    whole_covariance = half @ whole.meat @ half.T
    wide = u.critical_value(how.level)
    scores = whole.fit.scores - whole.fit.scores[whole.origin].mean()
    whole_ranks = 1 + (np.round(scores / u.NEAR)[:, None] < np.round(scores / u.NEAR)).sum(axis=1)
    if fitted is None:
        by_slice = [(scores, whole_covariance)] * len(slices)
    else:
        # correlated votes widen the errors of all slices as they widen those of the whole board
        model = u.center_covariance(np.asarray(inverse[:n, :n], np.float64), whole.origin)
        wider = max(1.0, float(np.median(whole_covariance.diagonal() / np.maximum(model.diagonal(), 1e-300))))
        by_slice = [
            (own - own[whole.origin].mean(), u.center_covariance(wider * covariance, whole.origin))
            for own, covariance in zip(fitted.scores, fitted.covariances, strict=True)
        ]
    rows = []
    for part, (own, covariance), p_values in zip(slices, by_slice, p, strict=True):
        points, whole_points = (x * how.factor + how.origin_score for x in (own, scores))
        error = how.factor * np.sqrt(np.maximum(covariance.diagonal(), 0.0))
        ranks = 1 + (np.round(own / u.NEAR)[:, None] < np.round(own / u.NEAR)).sum(axis=1)
        votes = np.bincount(part.votes.first, part.votes.weight, n)
        votes += np.bincount(part.votes.second, part.votes.weight, n)
        rows += [
            SliceStanding(
                part.name,
                whole.items[i],
                int(ranks[i]),
                int(whole_ranks[i]),
                float(points[i]),
                float(points[i] - wide * error[i]),
                float(points[i] + wide * error[i]),
                float(whole_points[i]),
                float(votes[i]),
                float(p_values[i]),
            )
            for i in np.argsort(-own, kind="stable").tolist()
        ]
    totals = {part.name: float(part.votes.weight.sum()) for part in slices}
    return SliceBoards(tuple(rows), column, totals, spread * how.factor, how.level)


def number_slices(table: VoteTable, column: str) -> tuple[list[str], I8]:
    """The names of the slices, and the number of the slice of every vote."""
    attribute = table.get_attribute(column)
    if isinstance(attribute, SideColumns):
        raise InputError(
            f"{column!r} has a value for each side of a vote",
            remedy="a slice needs one value per vote; name another column, or use it as a covariate (--control)",
        )
    if not isinstance(attribute, CodedColumn):
        numbers, codes = np.unique(attribute, return_inverse=True)
        attribute = CodedColumn(codes, Ids([f"{number:.15g}" for number in numbers]))
    if len(attribute.ids) > MOST_SLICES:
        raise InputError(
            f"the column {column!r} has {len(attribute.ids):,} values, more than {MOST_SLICES} slices",
            remedy="use a column with fewer values",
        )
    return [str(name) for name in attribute.ids], attribute.codes


def _split_votes(table: VoteTable, column: str, whole: WholeBoard) -> list[VoteSlice]:
    """The slices, those with the most votes first; numbers and dates in their order."""
    names, numbers = number_slices(table, column)
    is_ordered = not isinstance(table.get_attribute(column), CodedColumn)
    codes, votes = numbers[whole.kept], whole.votes
    offset = votes.covariates @ whole.fit.effects
    slices = []
    for code, name in enumerate(names):
        rows = np.flatnonzero(codes == code)
        if len(rows):
            slices.append(VoteSlice(name, votes.select(rows), offset[rows], whole.fit.residuals[rows], rows))
    if len(slices) < 2:
        raise InputError(
            f"all votes have the same {column!r}, {slices[0].name!r}",
            remedy="slices need at least two values",
        )
    if is_ordered:
        return slices
    if all(re.match(r"\d{4}(-\d\d)?(-\d\d)?", part.name) for part in slices):
        return sorted(slices, key=lambda part: part.name)
    return sorted(slices, key=lambda part: -float(part.votes.weight.sum()))


def _test_deviations(slices: list[VoteSlice], whole: WholeBoard, spread: float) -> F8:
    """Corrected p-values by slice and item: is the deviation beyond chance?"""
    n = whole.votes.size
    inverse = np.linalg.inv(whole.fit.hessian)
    clusters = 0 if whole.cluster is None else int(whole.cluster.max()) + 1
    tails = []
    for part in slices:
        votes = part.votes
        chance = votes.outcome - part.residuals
        gradient = add_up_gradients(votes, votes.weight * part.residuals)[:n]
        hessian = compute_products(votes, votes.weight * chance * (1 - chance))[:n]
        # the gradient of the slice less what the fit of the whole board takes from it
        covariance = _compute_gradient_covariance(part, whole, hessian @ inverse, clusters)
        shrink = np.linalg.inv(hessian[:, :n] + np.eye(n) / (spread or SMALL_SPREAD) ** 2)
        error = np.sqrt(np.maximum((shrink @ covariance @ shrink.T).diagonal(), 0.0))
        met = np.bincount(np.concatenate((votes.first, votes.second)), minlength=n)
        z = np.divide(np.abs(shrink @ gradient), error, out=np.zeros(n), where=(met > 0) & (error > 1e-12))
        # the variance is measured from the item's votes in the slice, or from the clusters
        degrees = np.maximum(np.full(n, clusters) if clusters else met, 2) - 1.0
        tails.append(np.where(z > 0, 2 * student_cdf(degrees, -z), 1.0))
    return np.asarray(holm(np.concatenate(tails)).reshape(len(slices), n), np.float64)


def _compute_gradient_covariance(part: VoteSlice, whole: WholeBoard, moved: F8, clusters: int) -> F8:
    """Covariance of the gradient of a slice, less `moved` times that of the whole board."""
    n, votes = whole.votes.size, part.votes
    if whole.cluster is None:
        meat = compute_products(votes, whole.square[part.rows] * part.residuals**2)[:n]
        shared = meat @ moved.T
        return np.asarray(meat[:, :n] - shared - shared.T + moved @ whole.meat @ moved.T, np.float64)
    own = votes.weight * part.residuals, whole.cluster[part.rows], clusters
    all_votes = whole.votes.weight * whole.fit.residuals, whole.cluster, clusters
    left = add_up_by_cluster(votes, *own)[:, :n] - add_up_by_cluster(whole.votes, *all_votes) @ moved.T
    return np.asarray(left.T @ left * (clusters / max(clusters - 1, 1)), np.float64)
