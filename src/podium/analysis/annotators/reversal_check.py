"""Do the others agree without those who answer the other way round, and do the reversed answers of these help?

Both are asked of judgements that were held out: annotators are dealt into folds, the judgements of each fold are
predicted from those of all others, and whose answers are reversed is decided without the fold.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from podium.analysis.annotators.crowd_judgements import CrowdJudgements
from podium.kernels.dispatch import B1

__all__ = ["Reversal", "measure_reversal"]

FOLDS = 3
SURE, MATTERS = 0.05, 0.001  # p-value below which, and gain in the share of pairs from which, reversing helps


class Reversal(NamedTuple):
    """How well the others' judgements are predicted with the suspects left out, and with their answers reversed."""

    same: float  # held-out pairs predicted rightly without the suspects, as independent votes
    other: float  # ... wrongly
    left_out: float  # share predicted rightly without the suspects; NaN where nothing is
    reversed: float  # ... with their answers reversed
    p: float  # of reversing being no help, by random signs of the annotators' gains

    @property
    def helps(self) -> bool:
        """Whether reversing is better than leaving out, beyond chance, and by as much as matters."""
        return self.p < SURE and self.reversed - self.left_out >= MATTERS

    def to_dict(self) -> dict[str, float | bool | None]:
        """As plain values; None for what is not known."""
        shares = {name: None if math.isnan(v) else v for name, v in self._asdict().items()}
        return {**shares, "helps": self.helps}


def measure_reversal(crowd: CrowdJudgements, suspects: B1) -> Reversal:
    """Predict the judgements of all but the suspects, fold by fold."""
    from scipy.special import ndtr

    n = len(crowd)
    right, wrong = np.zeros((2, n)), np.zeros((2, n))  # without the suspects, and with their answers reversed
    for fold in _split_folds(crowd, suspects):
        weights = crowd.estimate_weights_without(fold | suspects)
        if not weights.any():  # the one who is left has nobody to be measured against
            weights = np.where(fold | suspects, 0.0, 1.0)
        counts = crowd.count_against_weighted(weights)
        turned = np.where(suspects, np.minimum(crowd.compute_quality_weights(counts), 0.0), weights)
        for k, found in enumerate((counts, crowd.count_against_weighted(turned))):
            right[k, fold], wrong[k, fold] = found.same_worth[fold], found.other_worth[fold]
    gain = (right - wrong)[1] - (right - wrong)[0]
    size = float(np.sqrt((gain**2).sum()))
    p = float(ndtr(-gain.sum() / size)) if size > 0 else 1.0
    left_out, turned_round = (_compute_share(right[k].sum(), wrong[k].sum()) for k in (0, 1))
    return Reversal(float(right[0].sum()), float(wrong[0].sum()), left_out, turned_round, p)


def _compute_share(right: float, wrong: float) -> float:
    return float(right / (right + wrong)) if right + wrong > 0 else float("nan")


def _split_folds(crowd: CrowdJudgements, suspects: B1) -> list[B1]:
    """The others, busy and less busy ones in every fold."""
    order = np.lexsort((np.arange(len(crowd)), -crowd.judgements))
    order = order[~suspects[order]]
    found = []
    for k in range(min(FOLDS, len(order))):
        fold = np.zeros(len(crowd), np.bool_)
        fold[order[k::FOLDS]] = True
        found.append(fold)
    return found
