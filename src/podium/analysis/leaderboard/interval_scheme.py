"""What the errors of a leaderboard are over: single votes, or all votes of an expert or on a query; and why.

Votes of one judge who has opinions of its own vary together, and so do votes on one query that suits an item. Errors
that take such votes as independent are too small. How much too small is measured (`gradients.dispersion`), and where
votes vary together more than independent ones would, errors are over what they have in common.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from podium.analysis.leaderboard import inference as u
from podium.analysis.leaderboard.tally import SamplingUnit, Tally, WeightMeaning
from podium.analysis.leaderboard.vote_gradients import compute_dispersion, count_effective_clusters
from podium.kernels.bootstrap import Clusters, Squares
from podium.kernels.dispatch import F8, I8

__all__ = ["IntervalScheme", "SamplingUnitOption", "VoteSampling", "VoteWeightsOption", "choose_scheme"]

SamplingUnitOption = Literal["auto", "votes", "experts", "queries"]
VoteWeightsOption = Literal["auto", "frequency", "importance"]
SAME = 1e-9  # by which a dispersion must be above 1: rounding is no dispersion
ONE = {"experts": "of one expert", "queries": "on one query"}


@dataclass(frozen=True)
class IntervalScheme:
    """What errors are over, in words too."""

    over: SamplingUnit
    clusters: int | None  # how many; None where every vote stands by itself
    vote_weights: WeightMeaning
    dispersion: dict[SamplingUnit, float]  # of votes by experts and on queries; 1: as independent votes vary
    text: str


class VoteSampling(NamedTuple):
    """What is drawn: clusters, or single votes with the sums of their squared weights; degrees of freedom by item."""

    clusters: Clusters | None
    squares: Squares | None
    effective: F8  # clusters that voted on each item, as many of equal size; infinite for single votes

    @property
    def degrees(self) -> F8:
        """Degrees of freedom of the error of each item."""
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
    """The scheme asked for or, where that is `auto`, the one that the votes call for.

    `groups` numbers the experts, those who go together alike. Errors that are not `robust` trust the model, so that
    there is nothing to choose.
    """
    implied: WeightMeaning = "importance" if tally.fractional else "frequency"
    meaning: WeightMeaning = implied if vote_weights == "auto" else vote_weights
    seen = _measure_dispersions(tally, e, meaning, sides, groups)
    asked: list[SamplingUnit] = ["votes"] if over == "auto" or not robust else [over]
    if over == "auto" and robust:
        asked = [name for name, ratio in seen.items() if ratio > 1 + SAME] or asked
    options: list[tuple[SamplingUnit, VoteSampling]] = []
    for name in asked:
        clusters = tally.build_clusters(name, sides=sides, groups=groups) if robust else None
        options.append((name, _build_sampling(tally, e, clusters, meaning, sides)))
    chosen, sampling = options[0] if len(options) == 1 else max(options, key=lambda o: _median_width(e, o[1]))
    count = None if sampling.clusters is None else len(sampling.clusters.starts) - 1
    reason = "intervals trust the model, and take votes as independent"
    if robust:
        reason = _describe_scheme(chosen, over, count, seen, tally.listed)
    text = "; ".join(filter(None, (reason, _describe_weights(tally, meaning, vote_weights, count))))
    return IntervalScheme(chosen, count, meaning, seen, text), sampling


def _measure_dispersions(
    tally: Tally, e: u.Estimate, meaning: WeightMeaning, sides: bool, groups: I8 | None
) -> dict[SamplingUnit, float]:
    """Of the votes by experts and on queries, where there are several."""
    names: tuple[SamplingUnit, SamplingUnit] = ("experts", "queries")
    unit = tally.cluster_labels("votes")
    pair = tally.pair_of_row(sides)
    found = {}
    for name in names:
        label = tally.cluster_labels(name, groups)
        assert label is not None
        if (label != label[0]).any():
            found[name] = compute_dispersion(e, pair, label, tally.sums, tally.weight_squares(meaning), unit)
    return found


def _build_sampling(
    tally: Tally, e: u.Estimate, clusters: Clusters | None, meaning: WeightMeaning, sides: bool
) -> VoteSampling:
    if clusters is not None:
        # scores that only the prior holds have its errors, which are known
        return VoteSampling(clusters, None, np.where(e.core, count_effective_clusters(e, clusters), np.inf))
    squares = tally.pair_squares(meaning, sides=sides) if meaning == "importance" else None
    return VoteSampling(None, squares, np.full(len(e), np.inf))


def _median_width(e: u.Estimate, sampling: VoteSampling) -> float:
    """Of the interval in the middle."""
    errors = np.sqrt(np.maximum(u.compute_covariance(e, clusters=sampling.clusters).diagonal(), 0.0))
    return float(np.median(errors * u.student_critical_values(u.critical_value(0.95), sampling.degrees)))


def _describe_scheme(
    chosen: SamplingUnit,
    asked: SamplingUnitOption,
    count: int | None,
    seen: dict[SamplingUnit, float],
    listed: bool,
) -> str:
    ratios = ", ".join(
        f"votes {ONE[n]} vary {r:.4g} times as much as independent votes" for n, r in seen.items()
    )
    measured = f" ({ratios})" if ratios else ""
    if chosen != "votes":
        why = "" if asked == "auto" else ", as asked"
        return f"intervals are over {count:,} {chosen}{why}{measured}"
    what = "single votes" if count is None else f"{count:,} {'lists' if listed else 'soft votes'}"
    why = ", as asked" if asked == "votes" else "" if ratios else ": all are of one expert, on one query"
    return f"intervals are over {what}{why}{measured}"


def _describe_weights(
    tally: Tally, meaning: WeightMeaning, asked: VoteWeightsOption, count: int | None
) -> str:
    """What weights mean, where that makes a difference."""
    importance = tally.weight_squares("importance")
    if count is not None or all(np.array_equal(a, b) for a, b in zip(tally.sums, importance, strict=True)):
        return ""
    if meaning == "frequency":
        why = "as asked" if asked == "frequency" else "all are whole numbers"
        return f"a vote of weight w counts as w votes ({why})"
    why = "as asked" if asked == "importance" else "some are not whole numbers"
    return f"a vote counts as one vote, whatever its weight ({why})"
