"""The sampling unit of a leaderboard's errors: single votes, or all votes of an expert or on a query.

Votes of one judge with opinions of its own are correlated, and so are votes on one query that suits an item.
Errors that treat such votes as independent are too small. The overdispersion is measured
(`compute_dispersion`), and where it exceeds that of independent votes, errors are computed over experts or
queries.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from podium.analysis.leaderboard import inference as u
from podium.analysis.leaderboard.tally import SamplingUnit, Tally, WeightMeaning
from podium.kernels.bootstrap import Clusters, Squares
from podium.kernels.dispatch import F8, I8

__all__ = ["IntervalScheme", "SamplingUnitOption", "VoteSampling", "VoteWeightsOption", "choose_scheme"]

SamplingUnitOption = Literal["auto", "votes", "experts", "queries"]
VoteWeightsOption = Literal["auto", "frequency", "importance"]
SAME = 1e-9  # tolerance above 1: rounding is not overdispersion
ONE = {"experts": "of one expert", "queries": "on one query"}


@dataclass(frozen=True)
class IntervalScheme:
    """The sampling unit of the errors, and its description."""

    over: SamplingUnit
    clusters: int | None  # number of clusters; None for single votes
    vote_weights: WeightMeaning
    dispersion: dict[SamplingUnit, float]  # of votes by expert and by query; 1: as independent votes
    text: str


class VoteSampling(NamedTuple):
    """Resampling units: clusters, or single votes with sums of squared weights; degrees of freedom."""

    clusters: Clusters | None
    squares: Squares | None
    effective: F8  # effective number of clusters per item; infinite for single votes

    @property
    def degrees(self) -> F8:
        """Degrees of freedom of each item's error."""
        return np.asarray(self.effective - 1, np.float64)


def choose_scheme(
    tally: Tally,
    e: u.Estimate,
    *,
    over: SamplingUnitOption,
    vote_weights: VoteWeightsOption,
    sides: bool = False,
    groups: I8 | None = None,
    robust: bool = True,
) -> tuple[IntervalScheme, VoteSampling]:
    """The requested scheme or, for `auto`, the one that the votes require.

    `groups` numbers the experts; correlated experts share a number. Errors that are not `robust` trust the
    model, so there is nothing to choose.
    """
    implied: WeightMeaning = "importance" if tally.fractional else "frequency"
    meaning: WeightMeaning = implied if vote_weights == "auto" else vote_weights
    seen = _measure_dispersions(tally, e, meaning, sides, groups)
    units: list[SamplingUnit] = ["votes"] if over == "auto" or not robust else [over]
    if over == "auto" and robust:
        units = [name for name, ratio in seen.items() if ratio > 1 + SAME] or units
    options: list[tuple[SamplingUnit, VoteSampling]] = []
    for name in units:
        clusters = tally.build_clusters(name, sides=sides, groups=groups) if robust else None
        by_pair, effective = None, np.full(len(e), np.inf)
        if clusters is not None:
            # scores bounded only by the prior have known errors
            effective = np.where(e.core, u.count_effective_clusters(e, clusters), np.inf)
        elif meaning == "importance":
            by_pair = tally.pair_squares(meaning, sides=sides)
        options.append((name, VoteSampling(clusters, by_pair, effective)))

    def median_width(option: tuple[SamplingUnit, VoteSampling]) -> float:
        """Median half-width of the 95 % intervals."""
        sampling = option[1]
        errors = np.sqrt(np.maximum(u.compute_covariance(e, clusters=sampling.clusters).diagonal(), 0.0))
        return float(np.median(errors * u.student_critical_values(u.critical_value(0.95), sampling.degrees)))

    chosen, sampling = options[0] if len(options) == 1 else max(options, key=median_width)
    count = None if sampling.clusters is None else len(sampling.clusters.starts) - 1
    text = "intervals trust the model and treat votes as independent"
    if robust:
        text = _describe_scheme(chosen, over, count, seen, tally.listed)
    # the meaning of the weights, where it matters
    importance = tally.weight_squares("importance")
    if count is None and not all(np.array_equal(a, b) for a, b in zip(tally.sums, importance, strict=True)):
        if meaning == "frequency":
            why = "all are whole numbers" if vote_weights == "auto" else "as requested"
            text += f"; a vote of weight w counts as w votes ({why})"
        else:
            why = "some are not whole numbers" if vote_weights == "auto" else "as requested"
            text += f"; a vote counts as one vote, whatever its weight ({why})"
    return IntervalScheme(chosen, count, meaning, seen, text), sampling


def _measure_dispersions(
    tally: Tally, e: u.Estimate, meaning: WeightMeaning, sides: bool, groups: I8 | None
) -> dict[SamplingUnit, float]:
    """Dispersion of the votes by expert and by query, where there are several."""
    names: tuple[SamplingUnit, SamplingUnit] = ("experts", "queries")
    unit, pair, squares = (
        tally.cluster_labels("votes"),
        tally.pair_of_row(sides),
        tally.weight_squares(meaning),
    )
    dispersions = {}
    for name in names:
        label = tally.cluster_labels(name, groups)
        assert label is not None
        if (label != label[0]).any():
            dispersions[name] = u.compute_dispersion(e, pair, label, tally.sums, squares, unit)
    return dispersions


def _describe_scheme(
    chosen: SamplingUnit,
    over: SamplingUnitOption,
    count: int | None,
    seen: dict[SamplingUnit, float],
    listed: bool,
) -> str:
    ratios = ", ".join(
        f"votes {ONE[n]} vary {r:.4g} times as much as independent votes" for n, r in seen.items()
    )
    measured = f" ({ratios})" if ratios else ""
    if chosen != "votes":
        why = "" if over == "auto" else ", as requested"
        return f"intervals are over {count:,} {chosen}{why}{measured}"
    what = "single votes" if count is None else f"{count:,} {'lists' if listed else 'soft votes'}"
    why = ", as requested" if over == "votes" else "" if ratios else ": there is one expert and one query"
    return f"intervals are over {what}{why}{measured}"
