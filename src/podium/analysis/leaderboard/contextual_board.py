"""A leaderboard adjusted for covariates of the votes, beside the plain one, with the effects in words.

The log odds of a vote are the difference of two scores plus the effects of its covariates (contextual
Bradley-Terry, also known as style control). Scores then give the odds that an item wins if both sides have the
same length, markup and position. A tie is half a win for each side. Errors come from the sandwich estimator, over
the same units (votes, experts or queries) as those of the plain board.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from podium.analysis.leaderboard import inference as u
from podium.analysis.leaderboard.chart import draw_leaderboard
from podium.analysis.leaderboard.checks import LeaderboardCheck
from podium.analysis.leaderboard.covariates import (
    Covariate,
    Standardization,
    build_covariates,
    check_collinearity,
)
from podium.analysis.leaderboard.interval_scheme import IntervalScheme
from podium.analysis.leaderboard.next_comparisons import ComparisonAdvice
from podium.analysis.leaderboard.pair_weights import compute_pair_weights, weight_pairs
from podium.analysis.leaderboard.result import (
    Leaderboard,
    Standing,
    build_standings,
    leaderboard,
    resolve_settings,
)
from podium.analysis.leaderboard.slices import SliceBoards, WholeBoard, build_slice_boards
from podium.analysis.leaderboard.tally import Tally
from podium.core.errors import ParameterError, capture_warnings
from podium.core.results import Result, ViewBlock
from podium.core.settings import LeaderboardSettings
from podium.core.tables import Grid
from podium.data.frames import FrameBackend, records_frame
from podium.data.ids import Id
from podium.data.vote_table import VoteTable
from podium.kernels.contextual_contests import (
    ContextualFit,
    ContextualVotes,
    add_up_by_cluster,
    bootstrap_contextual,
    compute_products,
    fit_contextual,
)
from podium.kernels.dispatch import B1, F8, I8
from podium.kernels.distributions import normal_cdf, student_cdf

__all__ = ["ContextualLeaderboard", "CovariateEffect", "contextual_leaderboard"]

RIDGE = 1e-3  # weight of the prior of the effects, as small as that of the scores
HUGE = 8.0  # log odds of a standard deviation beyond which votes follow a covariate almost without exception
MOST_CELLS = 50_000_000  # clusters times unknowns


@dataclass(frozen=True)
class CovariateEffect:
    """What a change of a covariate is worth, in points of the board."""

    name: str
    change: str  # what changes: "twice the length"
    points: float
    low: float
    high: float
    error: float
    p: float  # of the hypothesis of no effect, not corrected for other covariates
    coefficient: float  # log odds per standard deviation of the covariate's column

    @property
    def sentence(self) -> str:
        """The effect in words."""
        return f"{self.change} = {self.points:+.3g} points ({self.low:+.3g} to {self.high:+.3g})"


@dataclass(frozen=True, eq=False, repr=False)
class ContextualLeaderboard(ComparisonAdvice, Result[Standing]):
    """Standings with the covariates held equal, best first; the plain board; the effects of the covariates."""

    rows: tuple[Standing, ...]
    settings: LeaderboardSettings
    control: tuple[str, ...]
    effects: tuple[CovariateEffect, ...]
    plain: Leaderboard
    groups: tuple[tuple[Id, ...], ...]
    checks: tuple[LeaderboardCheck, ...]
    scheme: IntervalScheme
    matrix: F8 = field(repr=False)  # covariance of the natural scores minus the reference
    p: F8 = field(repr=False)  # corrected p-values of all pairs
    estimate: u.Estimate = field(repr=False)  # with the adjusted scores
    draws: F8 = field(repr=False)
    degrees: F8 = field(repr=False)
    pair_floor: float | None = None
    slices: SliceBoards | None = None

    key, shown = "item", 15
    facts = (
        "settings", "votes", "scheme", "control", "pair_floor", "effects", "rows", "plain", "groups", "checks",
        "slices",
    )  # fmt: skip

    @property
    def votes(self) -> float:
        """Number of votes, or their total weight."""
        return self.plain.votes

    @property
    def tally(self) -> Tally:
        """The counted votes."""
        return self.plain.tally

    def headline(self) -> str:
        """Number of items and votes, the covariates, and the first item."""
        control = ", ".join(self.control) or "nothing"
        return (
            f"{len(self)} items, {self.votes:,.10g} votes, control: {control}, first: {self.rows[0].item!r}"
        )

    def grid(self, *, digits: int | None = None, between: str = " .. ", top: int | None = None) -> Grid:
        """The adjusted standings with the plain score and rank beside them."""
        if not self.control:
            return self.plain.grid(digits=digits, between=between, top=top)
        form = "{:.5g}" if digits is None else f"{{:z.{digits}f}}"
        interval = f"{100 * self.settings.level:.6g}% interval"
        head = ("rank", "item", "score", interval, "ranks", "plain rank", "plain score", "change", "votes")
        plain = {row.item: row for row in self.plain.rows}
        rows = []
        for r in self.rows[:top]:
            ends = (form.format(v) if math.isfinite(v) else "open" for v in (r.low, r.high))
            other = plain[r.item]
            rows.append((
                str(r.rank), str(r.item), form.format(r.score), between.join(ends),
                f"{r.rank_low}..{r.rank_high}", str(other.rank), form.format(other.score),
                form.replace("{:", "{:+").format(r.score - other.score), f"{r.votes:,.10g}",
            ))  # fmt: skip
        return Grid(head, tuple(rows), 2)

    def effects_grid(self) -> Grid:
        """The effects of the covariates, in points of the board."""
        interval = f"{100 * self.settings.level:.6g}% interval"
        rows = tuple(
            (e.name, e.change, f"{e.points:+.4g}", f"{e.low:+.4g} .. {e.high:+.4g}", f"{e.p:.2g}")
            for e in self.effects
        )
        return Grid(("covariate", "change", "points", interval, "p"), rows, 2)

    def chart(self, *, top: int | None = None) -> Any:
        """The adjusted board as an Altair chart."""
        return draw_leaderboard(self, top=top)

    def blocks(self) -> tuple[ViewBlock, ...]:
        """The standings, the effects, and the slices."""
        parts: tuple[ViewBlock, ...] = (self.grid(), tuple(e.sentence for e in self.effects))
        return parts if self.slices is None else (*parts, self.slices.grid(), self.slices.dependence)

    def _compute_facts(self) -> dict[str, Any]:
        effects = [{**vars(e), "sentence": e.sentence} for e in self.effects]
        return {"effects": effects, "plain": self.plain.to_dict()["rows"]}

    def to_frame(self, backend: FrameBackend = "pyarrow") -> Any:
        """A dataframe with one row per item, best first; columns as in `Standing`."""
        return records_frame(self.rows, Standing, "item", backend)


def contextual_leaderboard(
    votes: VoteTable,
    control: Sequence[str] = (),
    *,
    slices: str | None = None,
    pair_floor: float | None = None,
    ridge: float = RIDGE,
    standardize: Standardization = "scale",
    settings: LeaderboardSettings | None = None,
    **changes: Any,
) -> ContextualLeaderboard:
    """A leaderboard with the named covariates held equal, and a board per value of the attribute `slices`.

    See `covariates.py` for how attributes become covariates. `pair_floor` weighs a vote by 1 / max(votes of its
    pair, pair_floor). `ridge` / 2 times the sum of the squared effects (per standard deviation of the covariate)
    is added to the negative log likelihood. The other keywords are those of `LeaderboardSettings`.
    """
    how = resolve_settings(settings, changes)
    _check_settings(how, ridge)
    with capture_warnings():  # the checks report the same
        tally = Tally.from_preferences(votes.to_preferences())
        plain = leaderboard(tally if pair_floor is None else weight_pairs(tally, pair_floor), settings=how)
    columns = build_covariates(votes, control, standardize)
    weight = votes.weight.copy()
    if pair_floor is not None:
        weight *= compute_pair_weights(votes.first, votes.second, votes.weight, pair_floor)
    counted = weight > 0
    if how.ties == "ignore":
        counted &= votes.outcome != 0.5
    played = plain.tally.items
    code = played.codes_of(votes.items)
    kept = np.flatnonzero(counted)
    rows = ContextualVotes(
        len(played), code[votes.first[kept]], code[votes.second[kept]], votes.outcome[kept], weight[kept],
        columns.values[kept],
    )  # fmt: skip
    check_collinearity(rows, columns.covariates)
    fit = fit_contextual(rows, l2=how.l2, ridge=ridge, start=plain.estimate.solution.scores)
    over = plain.scheme.over
    cluster = {"experts": votes.expert.codes, "queries": votes.query.codes}.get(over)
    square = rows.weight if plain.scheme.vote_weights == "frequency" else rows.weight**2
    if cluster is not None:
        cluster = np.unique(cluster[kept], return_inverse=True)[1]
    meat, degrees = _compute_meat(rows, fit.residuals, square, cluster)
    inverse = np.asarray(np.linalg.inv(fit.hessian), np.float64)
    half, n = inverse.copy(), len(played)
    half[:n] -= inverse[:n][plain.estimate.origin].mean(axis=0)  # the level would swamp the rest
    covariance = half @ meat @ half.T
    if how.bootstrap:
        draws = bootstrap_contextual(
            rows, fit, how.bootstrap, l2=how.l2, ridge=ridge, seed=how.seed, cluster=cluster,
            as_counts=plain.scheme.vote_weights == "frequency",
        )  # fmt: skip
        covariance = _compute_bootstrap_covariance(draws, n, plain.estimate.origin, cluster)
    uncertainty = ContextualUncertainty(covariance, inverse, degrees)
    board = _build_board(plain, how, fit, columns.covariates, uncertainty, tuple(control), pair_floor)
    if slices is None:
        return board
    origin = plain.estimate.origin
    if how.reference is not None:
        origin = np.arange(n) == played.code_of(how.reference)
    whole = WholeBoard(rows, fit, meat, played, origin, kept, square, cluster)
    return replace(board, slices=build_slice_boards(votes, slices, whole, how))


def _check_settings(how: LeaderboardSettings, ridge: float) -> None:
    """Refuse the settings that have no meaning beside covariates."""
    if not (math.isfinite(ridge) and ridge > 0):
        raise ParameterError(f"ridge is {ridge}; accepted: finite numbers above 0")
    refused = {
        "model": (how.model != "bradley_terry", "covariates need bradley_terry"),
        "ties": (how.ties not in ("half", "ignore"), "covariates need half or ignore"),
        "errors": (how.errors != "sandwich", "covariates need the sandwich estimator"),
        "judges": (how.judges != "equal", "with covariates, leave it out"),
        "sides": (how.sides != "ignore", "control order instead"),
    }
    for name, (is_refused, reason) in refused.items():
        if is_refused:
            raise ParameterError(f"{name} is {getattr(how, name)}; {reason}")


def _compute_meat(rows: ContextualVotes, residuals: F8, square: F8, cluster: I8 | None) -> tuple[F8, F8]:
    """Covariance of the gradient, over votes or clusters of them, and the degrees of freedom of each unknown.

    The gradient of a cluster is divided by the root of one minus its share of the unknown's votes, like that of
    a plain board.
    """
    if cluster is None:
        return compute_products(rows, square * residuals**2), np.full(rows.unknowns, np.inf)
    count = int(cluster.max()) + 1
    if count * rows.unknowns > MOST_CELLS:
        raise ParameterError(
            f"{count:,} clusters and {rows.unknowns:,} unknowns are too many; use over votes instead"
        )
    gradient = add_up_by_cluster(rows, rows.weight * residuals, cluster, count)
    share = add_up_by_cluster(rows, rows.weight, cluster, count, squared=True)
    share /= np.maximum(share.sum(axis=0), 1e-300)
    left = 1 - share
    gradient /= np.sqrt(np.where(left > 0, left, 1.0))
    return gradient.T @ gradient, 1 / np.maximum((share**2).sum(axis=0), 1e-300) - 1


def _compute_bootstrap_covariance(draws: F8, size: int, origin: B1, cluster: I8 | None) -> F8:
    """Covariance of scores and effects between resamples, the scores measured from the mean of the origin."""
    draws = draws.copy()
    draws[:, :size] -= draws[:, :size][:, origin].mean(axis=1, keepdims=True)
    # n clusters drawn with replacement have (n - 1) / n of the true variance
    clusters = 0 if cluster is None else int(cluster.max()) + 1
    factor = clusters / (clusters - 1) if clusters > 1 else 1.0
    return np.asarray(np.atleast_2d(np.cov(draws, rowvar=False)) * factor, np.float64)


class ContextualUncertainty(NamedTuple):
    """Of scores and effects together: their covariance, the inverse Hessian, and degrees of freedom."""

    covariance: F8
    inverse: F8
    degrees: F8


def _build_board(
    plain: Leaderboard,
    how: LeaderboardSettings,
    fit: ContextualFit,
    covariates: tuple[Covariate, ...],
    uncertainty: ContextualUncertainty,
    control: tuple[str, ...],
    pair_floor: float | None,
) -> ContextualLeaderboard:
    covariance, inverse, degrees = uncertainty
    n, e = len(fit.scores), plain.estimate
    of = e.origin
    if how.reference is not None:
        of = np.arange(n) == plain.tally.items.code_of(how.reference)
    matrix = u.center_covariance(covariance[:n, :n], of)
    prior_only = ~e.core
    if prior_only.any():
        model = u.center_covariance(inverse[:n, :n], of)
        matrix[prior_only], matrix[:, prior_only] = model[prior_only], model[:, prior_only]
    styled = replace(e, scores=fit.scores - fit.scores[e.origin].mean())
    by_item = np.where(e.core, degrees[:n], np.inf)
    draws = u.sample_scores(styled.scores, matrix, seed=how.seed, degrees=by_item)
    p = u.pairwise_p(styled.scores, matrix, by_item)
    rows = build_standings(plain.tally, styled, matrix, draws, p, by_item, how)
    groups = [tuple(plain.tally.items[i] for i in g) for g in u.find_tied_groups(styled.order, p, how.level)]
    errors = np.sqrt(np.maximum(covariance.diagonal()[n:], 0.0))
    effects = _describe_effects(covariates, fit.effects, errors, degrees[n:], how)
    huge = [c.name for c, effect in zip(covariates, fit.effects, strict=True) if abs(effect) > HUGE]
    text = "every covariate has votes for and against it"
    if huge:
        text = (
            f"the votes follow {', '.join(huge)} almost without exception; only the ridge bounds its effect"
        )
    checks = [
        *plain.checks,
        LeaderboardCheck("covariates", "warning" if huge else "ok", text, {"unbounded": huge}),
    ]
    if not fit.converged:
        checks.append(LeaderboardCheck("adjusted fit", "warning", "the adjusted fit did not converge"))
    return ContextualLeaderboard(
        rows, how, control, effects, plain, tuple(groups), tuple(checks), plain.scheme, matrix, p, styled, draws,
        by_item, pair_floor,
    )  # fmt: skip


def _describe_effects(
    covariates: tuple[Covariate, ...], effects: F8, errors: F8, degrees: F8, how: LeaderboardSettings
) -> tuple[CovariateEffect, ...]:
    wide = u.student_critical_values(u.critical_value(how.level), degrees)
    described = []
    for k, covariate in enumerate(covariates):
        scale = covariate.step / covariate.divisor * how.factor
        value, error = float(effects[k]), float(errors[k])
        points, half = value * scale, float(wide[k]) * error * scale
        z = -abs(value / error) if error > 0 else -math.inf
        known = degrees[k] > u.LEAST
        tail = normal_cdf(z) if math.isinf(degrees[k]) else student_cdf(degrees[k], z) if known else 0.5
        described.append(
            CovariateEffect(
                covariate.name,
                covariate.change,
                points,
                points - half,
                points + half,
                error * scale,
                float(min(1.0, 2 * tail)),
                value,
            )
        )
    return tuple(described)
