"""A leaderboard from votes: scores with intervals, ranks, and checks."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from podium.analysis.leaderboard import inference as u
from podium.analysis.leaderboard.chart import draw_leaderboard
from podium.analysis.leaderboard.checks import LeaderboardCheck, run_checks
from podium.analysis.leaderboard.interval_scheme import IntervalScheme, VoteSampling, choose_scheme
from podium.analysis.leaderboard.judges import Agreement, compute_agreement
from podium.analysis.leaderboard.next_comparisons import ComparisonAdvice, Proposal
from podium.analysis.leaderboard.tally import Tally, check_items
from podium.core.errors import InputError, ParameterError, PodiumError, PodiumWarning
from podium.core.old_names import RenamedAttribute
from podium.core.params import suggest_names
from podium.core.results import Result, ViewBlock
from podium.core.settings import LeaderboardSettings
from podium.core.tables import Grid
from podium.core.text import join_names
from podium.data.frames import FrameBackend, records_frame
from podium.data.ids import Id
from podium.data.preferences import Preferences
from podium.kernels.dispatch import F8

__all__ = [
    "Leaderboard",
    "LeaderboardSettings",
    "Proposal",
    "Standing",
    "leaderboard",
    "leaderboards_by_query",
]

ONE_LOOK = (
    "intervals and ranks hold for one look at the votes; whoever looks again after every batch and stops at the first "
    "clear order errs more often (--anytime holds at every look)"
)
SHOWN = 3  # queries named in a warning


@dataclass(frozen=True)
class Standing:
    """One item. `low` or `high` is infinite if no vote bounds the score on that side."""

    item: Id
    rank: int  # equal scores share a rank
    rank_low: int  # best rank consistent with the tests
    rank_high: int
    score: float
    low: float
    high: float
    error: float  # standard error
    top: float  # probability of being among the best k
    votes: float
    wins: float
    losses: float
    ties: float


@dataclass(frozen=True, eq=False, repr=False)
class Leaderboard(ComparisonAdvice, Result[Standing]):
    """Standings, best first, with the checks and the data behind them.

    >>> votes = Preferences.from_comparisons(
    ...     [0] * 60, ["j"] * 60, ["a", "a", "b", "b", "c", "c"] * 10, ["b", "b", "a", "c", "b", "a"] * 10)
    >>> board = leaderboard(votes)
    >>> [(s.item, s.rank, s.rank_low, s.rank_high, round(s.score)) for s in board.rows]
    [('c', 1, 1, 3, 1077), ('a', 2, 1, 3, 978), ('b', 3, 1, 3, 945)]
    """

    rows: tuple[Standing, ...]
    settings: LeaderboardSettings
    groups: tuple[tuple[Id, ...], ...]  # longest runs of adjacent items that are statistically tied
    checks: tuple[LeaderboardCheck, ...]
    tally: Tally
    estimate: u.Estimate = field(repr=False)
    matrix: F8 = field(repr=False)  # covariance of the natural scores minus the reference
    draws: F8 = field(repr=False)  # natural scores by round, or from the normal or Student's t distribution
    # corrected p-values of all pairs: the tests behind ranks, groups and advice
    p: F8 = field(repr=False)
    scheme: IntervalScheme  # sampling unit of the errors, and why
    degrees: F8 = field(repr=False)  # degrees of freedom by item; infinite for errors over single votes
    agreement: Agreement | None = field(default=None, repr=False)

    key, shown = "item", 15
    facts = ("settings", "votes", "scheme", "looks", "rows", "groups", "verdict", "checks")
    chart = draw_leaderboard
    verdict = RenamedAttribute("checks_summary")
    warned = RenamedAttribute("warning_names")

    @property
    def votes(self) -> float:
        """Number of votes, or their total weight."""
        return self.tally.votes

    @property
    def looks(self) -> str:
        """What repeated looks do to the intervals."""
        return ONE_LOOK

    @property
    def checks_summary(self) -> str:
        """The checks in one phrase."""
        return f"check: {', '.join(self.warning_names)}" if self.warning_names else "all checks passed"

    @property
    def warning_names(self) -> list[str]:
        """Names of the checks that found a problem."""
        return [c.name for c in self.checks if c.verdict == "warning"]

    def headline(self) -> str:
        """Number of items and votes, the first item, and the checks that found a problem."""
        doubts = f", warnings: {', '.join(self.warning_names)}" if self.warning_names else ""
        return f"{len(self)} items, {self.votes:,.10g} votes, first: {self.rows[0].item!r}{doubts}"

    def grid(self, *, digits: int | None = None, between: str = " .. ", top: int | None = None) -> Grid:
        """The standings: a short table, or one with `digits` decimals that also counts wins and ties.

        `between` separates the ends of an interval. With `top`, there are only the best `top` items, and their
        probability of being among the best `settings.top`.
        """
        short = digits is None
        form, dash = ("{:.5g}", "-") if short else (f"{{:z.{digits}f}}", "..")
        interval = "interval" if short else f"{100 * self.settings.level:.6g}% interval"
        head = ["rank", "item", "score", interval, "ranks", "votes", *([] if short else ["wins", "ties"])]
        rows = []
        for r in self.rows[:top]:
            ends = (form.format(v) if math.isfinite(v) else "open" for v in (r.low, r.high))
            cells = [str(r.rank), str(r.item), form.format(r.score), between.join(ends)]
            cells += [f"{r.rank_low}{dash}{r.rank_high}", f"{r.votes:,.10g}"]
            cells += [] if short else [f"{r.wins:,.10g}", f"{r.ties:,.10g}"]
            rows.append((*cells, *([] if top is None else [f"{r.top:.3f}"])))
        return Grid((*head, *([] if top is None else [f"top {top}"])), tuple(rows), 2)

    def blocks(self) -> tuple[ViewBlock, ...]:
        """The standings, the checks, and the sampling unit of the errors."""
        verdict = f"Verdict: {self.checks_summary}; {self.scheme.text}."
        return self.grid(), verdict, f"{ONE_LOOK[:1].upper()}{ONE_LOOK[1:]}."

    def _compute_facts(self) -> dict[str, Any]:
        return {"verdict": self.checks_summary}

    def p_value(self, first: Id, second: Id) -> float:
        """p-value of the two items being equal, corrected for all pairs of the leaderboard."""
        return float(self.p[_find_item_code(self.tally, first), _find_item_code(self.tally, second)])

    def compute_difference(self, first: Id, second: Id) -> tuple[float, float, float]:
        """The points by which the first item is above the second, with the interval of this one difference."""
        e, (i, j) = self.estimate, (_find_item_code(self.tally, item) for item in (first, second))
        spread = math.sqrt(max(self.matrix[i, i] + self.matrix[j, j] - 2 * self.matrix[i, j], 0.0))
        fewer = np.minimum(self.degrees[i], self.degrees[j])
        critical = u.student_critical_values(u.critical_value(self.settings.level), np.array([fewer]))[0]
        gap, half = float(e.scores[i] - e.scores[j]), float(critical) * spread if spread else 0.0
        low = -math.inf if e.below[i] or e.above[j] else (gap - half) * self.settings.factor
        high = math.inf if e.above[i] or e.below[j] else (gap + half) * self.settings.factor
        return gap * self.settings.factor, low, high

    def with_votes(self, more: Preferences | Tally) -> Leaderboard:
        """The leaderboard of these votes and more; the fit starts from the old scores."""
        other = more if isinstance(more, Tally) else Tally.from_preferences(more)
        old = dict(zip(self.tally.items.tolist(), self.estimate.solution.scores.tolist(), strict=True))
        return leaderboard(self.tally + other, settings=self.settings, start=old)

    def to_frame(self, backend: FrameBackend = "pyarrow", *, top: int | None = None) -> Any:
        """A dataframe with one row per item, best first, at most `top` of them; columns as in `Standing`."""
        return records_frame(self.rows[:top], Standing, "item", backend)


def leaderboard(
    votes: Preferences | Tally,
    *,
    settings: LeaderboardSettings | None = None,
    start: dict[Id, float] | None = None,
    **changes: Any,
) -> Leaderboard:
    """A leaderboard of all compared items; see `LeaderboardSettings` for the keywords.

    Queries are pooled: an item is the same in all of them. A warning is issued if groups of items were never
    compared; `leaderboards_by_query` builds one per query. `start` maps items to approximate natural scores.
    """
    how = resolve_settings(settings, changes)
    if isinstance(votes, Preferences):
        check_items(votes)
    tally, silent = (
        votes if isinstance(votes, Tally) else Tally.from_preferences(votes)
    ).drop_unplayed_items()
    if tally.votes < 2 or len(tally.items) < 2:
        raise InputError(
            f"there is {tally.votes:,.10g} vote on {len(tally.items)} items",
            remedy="a leaderboard needs at least two",
        )
    first = None if start is None else np.array([start.get(i, 0.0) for i in tally.items])
    e = _fit_scores(tally, how, first)
    judges = compute_agreement(tally, e)
    counted, groups = tally, None
    if how.judges == "discounted" and judges is not None:
        groups = judges.group_experts(len(tally.experts))
        counted = tally.scale_by_expert(judges.compute_weights(len(tally.experts)))
        e = _fit_scores(counted, how, e.solution.scores)
    scheme, sampling = choose_scheme(
        counted, e, over=how.over, vote_weights=how.vote_weights, sides=how.sides == "fit", groups=groups,
        robust=how.errors == "sandwich" or how.bootstrap > 0,
    )  # fmt: skip
    matrix, draws = _estimate_uncertainty(tally, e, sampling, how)
    p = u.pairwise_p(e.scores, matrix, sampling.degrees)
    rows = build_standings(tally, e, matrix, draws, p, sampling.degrees, how)
    tied_groups = [tuple(tally.items[i] for i in g) for g in u.find_tied_groups(e.order, p, how.level)]
    checks = run_checks(tally, e, judges, silent)
    if e.solution.component.any():
        warnings.warn(checks[0].text, PodiumWarning, stacklevel=2)
    return Leaderboard(
        rows, how, tuple(tied_groups), checks, tally, e, matrix, draws, p, scheme, sampling.degrees, judges
    )


def leaderboards_by_query(
    votes: Preferences | Tally, *, settings: LeaderboardSettings | None = None, **changes: Any
) -> dict[Id, Leaderboard]:
    """A leaderboard of each query's items, by query; see `LeaderboardSettings` for the keywords.

    Queries with too few votes (fewer than two) have none, and a warning names them with the reason.

    >>> votes = Preferences.from_comparisons([1, 1, 2, 2], ["j"] * 4, ["a", "b", "x", "y"], ["b", "a", "y", "x"])
    >>> {query: len(board) for query, board in leaderboards_by_query(votes).items()}
    {1: 2, 2: 2}
    """
    over = changes.get("over", settings.over if settings is not None else None)
    if over == "queries":
        raise ParameterError(
            "over is queries, and each leaderboard has one query; accepted here: votes, experts"
        )
    boards: dict[Id, Leaderboard] = {}
    left_out: dict[Id, PodiumError] = {}
    if isinstance(votes, Tally):
        tallies = votes.split_by_query()
    else:
        # one query at a time, so that the pairs of all lists are never in memory at once
        parts = (votes.select([query]) for query in votes.queries)
        tallies = (
            (part.queries[0], Tally.from_preferences(part))
            for part in parts
            if len(part.comparisons) or bool((part.lists.lengths > 1).any())
        )
    for query, tally in tallies:
        try:
            boards[query] = leaderboard(tally, settings=settings, **changes)
        except PodiumError as error:
            left_out[query] = error
    if not boards:
        raise next(
            iter(left_out.values()), InputError("there are no votes", remedy="give lists or comparisons")
        )
    if left_out:
        names = join_names([f"{query} ({error})" for query, error in left_out.items()], SHOWN)
        text = f"no leaderboard for {len(left_out):,} of {len(boards) + len(left_out):,} queries: {names}"
        warnings.warn(text, PodiumWarning, stacklevel=2)
    return boards


def resolve_settings(settings: LeaderboardSettings | None, changes: dict[str, Any]) -> LeaderboardSettings:
    known = [f.name for f in fields(LeaderboardSettings)]
    for name in changes:
        if name not in known:
            raise ParameterError(f"there is no leaderboard setting {name!r}; {suggest_names(name, known)}")
    return replace(settings or LeaderboardSettings(), **changes)


def _fit_scores(tally: Tally, how: LeaderboardSettings, start: F8 | None) -> u.Estimate:
    if how.sides == "fit" and not tally.side.any():
        raise InputError(
            "sides is fit, but the data do not record which item was shown first",
            remedy="give votes with the columns model_a, model_b and winner, or omit sides",
        )
    met = tally.to_contests(sides=how.sides == "fit")
    return u.estimate_scores(met, model=how.model, ties=how.ties, l2=how.l2, start=start)


def _estimate_uncertainty(
    tally: Tally, e: u.Estimate, drawn: VoteSampling, how: LeaderboardSettings
) -> tuple[F8, F8]:
    """Covariance of the scores minus the reference, and draws of the scores."""
    of = e.origin if how.reference is None else np.arange(len(e)) == _find_item_code(tally, how.reference)
    if how.bootstrap:
        draws = u.bootstrap_scores(
            e, how.bootstrap, clusters=drawn.clusters, squares=drawn.squares, seed=how.seed
        )
        # n clusters drawn with replacement have (n - 1) / n of the true variance
        few = np.isfinite(drawn.degrees) & (drawn.degrees > u.LEAST)
        short = np.divide(drawn.effective, drawn.degrees, out=np.ones(len(e)), where=few)
        draws = e.scores + (draws - e.scores) * np.sqrt(short)
        matrix = np.atleast_2d(np.cov(draws, rowvar=False))
        return u.center_covariance(matrix, of), draws
    matrix = u.center_covariance(u.compute_covariance(e, how.errors, drawn.clusters, drawn.squares), of)
    return matrix, u.sample_scores(e.scores, matrix, seed=how.seed, degrees=drawn.degrees)


def _find_item_code(tally: Tally, item: Id) -> int:
    code = tally.items.code_of(item)
    if code is None:
        raise ParameterError(
            f"there is no item {item!r} to measure from; {suggest_names(str(item), map(str, tally.items))}"
        )
    return code


def build_standings(
    tally: Tally, e: u.Estimate, matrix: F8, draws: F8, p: F8, degrees: F8, how: LeaderboardSettings
) -> tuple[Standing, ...]:
    errors = np.sqrt(np.maximum(matrix.diagonal(), 0.0))
    wide = u.critical_value(how.level, matrix if how.simultaneous else None, seed=how.seed)
    zero = 0.0
    if how.reference is not None:
        at = _find_item_code(tally, how.reference)
        zero, degrees = float(e.scores[at]), np.minimum(degrees, degrees[at])
    scores = (e.scores - zero) * how.factor + how.origin_score
    # the error of the reference is 0, and 0 times infinity must be 0
    half = np.multiply(
        u.student_critical_values(wide, degrees), errors, out=np.zeros(len(e)), where=errors > 0
    )
    half *= how.factor
    low, high = np.where(e.below, -np.inf, scores - half), np.where(e.above, np.inf, scores + half)
    best, worst = u.rank_bounds(e.scores, p, how.level)
    top = u.top_share(draws, how.top)
    wins, losses, ties = tally.count_by_item()
    snapped = np.round(e.scores / u.NEAR)
    ranks = 1 + (snapped[:, None] < snapped).sum(axis=1)
    columns = (
        ranks, best, worst, scores, low, high, errors * how.factor, top, wins + losses + ties, wins, losses, ties
    )  # fmt: skip
    values = [c.tolist() for c in columns]
    return tuple(Standing(tally.items[i], *(c[i] for c in values)) for i in e.order.tolist())
