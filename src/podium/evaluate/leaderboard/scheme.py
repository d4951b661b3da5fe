"""What the errors of a leaderboard are over: single votes, or all votes of an expert or on a query; and why.

Votes of one judge who has opinions of its own vary together, and so do votes on one query that suits an item. Errors
that take such votes as independent are too small. How much too small is measured (`gradients.dispersion`), and where
votes vary together more than independent ones would, errors are over what they have in common.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from podium.evaluate import uncertainty as u
from podium.evaluate.gradients import dispersion, effective_clusters
from podium.evaluate.leaderboard.tally import Meaning, Over, Tally
from podium.kernels.bootstrap import Clusters, Squares
from podium.kernels.dispatch import F8, I8

__all__ = ["OverAsked", "Sampling", "Scheme", "WeightsAsked", "choose_scheme"]

OverAsked = Literal["auto", "votes", "experts", "queries"]
WeightsAsked = Literal["auto", "frequency", "importance"]
SAME = 1e-9  # by which a dispersion must be above 1: rounding is no dispersion
ONE = {"experts": "of one expert", "queries": "on one query"}


@dataclass(frozen=True)
class Scheme:
    """What errors are over, in words too."""

    over: Over
    clusters: int | None  # how many; None where every vote stands by itself
    vote_weights: Meaning
    dispersion: dict[Over, float]  # of votes by experts and on queries; 1: as independent votes vary
    text: str


class Sampling(NamedTuple):
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
    over: OverAsked,
    vote_weights: WeightsAsked,
    sides: bool = False,
    groups: I8 | None = None,
    robust: bool = True,
) -> tuple[Scheme, Sampling]:
    """The scheme asked for or, where that is `auto`, the one that the votes call for.

    `groups` numbers the experts, those who go together alike. Errors that are not `robust` trust the model, so that
    there is nothing to choose.
    """
    implied: Meaning = "importance" if tally.fractional else "frequency"
    meaning: Meaning = implied if vote_weights == "auto" else vote_weights
    seen = _dispersions(tally, e, meaning, sides, groups)
    asked: list[Over] = ["votes"] if over == "auto" or not robust else [over]
    if over == "auto" and robust:
        asked = [name for name, ratio in seen.items() if ratio > 1 + SAME] or asked
    options: list[tuple[Over, Sampling]] = []
    for name in asked:
        clusters = tally.clusters(name, sides=sides, groups=groups) if robust else None
        options.append((name, _sampling(tally, e, clusters, meaning, sides)))
    chosen, sampling = options[0] if len(options) == 1 else max(options, key=lambda o: _width(e, o[1]))
    count = None if sampling.clusters is None else len(sampling.clusters.starts) - 1
    reason = "intervals trust the model, and take votes as independent"
    if robust:
        reason = _reason(chosen, over, count, seen, tally.listed)
    text = "; ".join(filter(None, (reason, _weights_reason(tally, meaning, vote_weights, count))))
    return Scheme(chosen, count, meaning, seen, text), sampling


def _dispersions(
    tally: Tally, e: u.Estimate, meaning: Meaning, sides: bool, groups: I8 | None
) -> dict[Over, float]:
    """Of the votes by experts and on queries, where there are several."""
    names: tuple[Over, Over] = ("experts", "queries")
    unit = tally.labels("votes")
    pair = tally.pair_of_row(sides)
    found = {}
    for name in names:
        label = tally.labels(name, groups)
        assert label is not None
        if (label != label[0]).any():
            found[name] = dispersion(e, pair, label, tally.sums, tally.squares(meaning), unit)
    return found


def _sampling(
    tally: Tally, e: u.Estimate, clusters: Clusters | None, meaning: Meaning, sides: bool
) -> Sampling:
    if clusters is not None:
        # scores that only the prior holds have its errors, which are known
        return Sampling(clusters, None, np.where(e.core, effective_clusters(e, clusters), np.inf))
    squares = tally.pair_squares(meaning, sides=sides) if meaning == "importance" else None
    return Sampling(None, squares, np.full(len(e), np.inf))


def _width(e: u.Estimate, sampling: Sampling) -> float:
    """Of the interval in the middle."""
    errors = np.sqrt(np.maximum(u.covariance(e, clusters=sampling.clusters).diagonal(), 0.0))
    return float(np.median(errors * u.student_values(u.critical_value(0.95), sampling.degrees)))


def _reason(chosen: Over, asked: OverAsked, count: int | None, seen: dict[Over, float], listed: bool) -> str:
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


def _weights_reason(tally: Tally, meaning: Meaning, asked: WeightsAsked, count: int | None) -> str:
    """What weights mean, where that makes a difference."""
    importance = tally.squares("importance")
    if count is not None or all(np.array_equal(a, b) for a, b in zip(tally.sums, importance, strict=True)):
        return ""
    if meaning == "frequency":
        why = "as asked" if asked == "frequency" else "all are whole numbers"
        return f"a vote of weight w counts as w votes ({why})"
    why = "as asked" if asked == "importance" else "some are not whole numbers"
    return f"a vote counts as one vote, whatever its weight ({why})"
