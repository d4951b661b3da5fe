"""Expert weights as part of a search: by quality on the training queries, or random."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from podium.core.params import Range, Tune
from podium.kernels.dispatch import F8

__all__ = ["FEW", "QualityWeights", "round_significant", "sample_weights"]

FEW = 6  # random weights cover their space for up to this many experts; beyond, only `QualityWeights` do


@dataclass(frozen=True, kw_only=True)
class QualityWeights:
    """Each expert weighs (its mean / the best mean) ** power; experts outside the best share `keep` weigh 0.

    The means are over the training queries, so weights differ between folds.

    >>> QualityWeights(power=2, keep=0.6).compute_weights(np.array([0.4, 0.2, 0.1]))
    [1.0, 0.25, 0.0]
    """

    power: Annotated[float, Range(0, 100), Tune(0.5, 16, log=True), "how much better experts count more"] = (
        4.0
    )
    keep: Annotated[float, Range(0, 1, open_low=True), Tune(0.2, 1), "share of the experts that count"] = 1.0

    def compute_weights(self, means: F8) -> list[float]:
        """One weight per expert; equal weights if all means are 0."""
        best = float(means.max(initial=0.0))
        if not best > 0:
            return [1.0] * len(means)
        kept = max(1, math.ceil(round(self.keep * len(means), 9)))
        least = np.sort(means)[::-1][kept - 1]  # ties with the last expert kept stay too
        powers = np.where(means >= least, np.clip(means / best, 0.0, 1.0) ** self.power, 0.0)
        return [round_significant(w) for w in powers.tolist()]

    def __str__(self) -> str:
        kept = "" if self.keep == 1 else f", best {self.keep:.0%} of the experts"
        return f"weights by quality^{self.power:g}{kept}"


def sample_weights(random: np.random.Generator, experts: int) -> tuple[float, ...]:
    """Weights from a uniform distribution on the simplex, scaled so that the largest is 1."""
    raw = random.dirichlet(np.ones(experts))
    return tuple(round_significant(w) for w in (raw / raw.max()).tolist())


def round_significant(value: float, digits: int = 3) -> float:
    """Round to significant digits, so that what is tried is what is printed and saved.

    >>> round_significant(12.3456), round_significant(0.00123456), round_significant(0)
    (12.3, 0.00123, 0.0)
    """
    return float(f"{value:.{digits}g}")
