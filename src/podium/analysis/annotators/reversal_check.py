"""Check on held-out judgements whether the other annotators agree, and whether reversing the suspects helps.

Suspects are annotators whose answers look reversed. The others are split into folds; the judgements of each
fold are predicted from the remaining folds, and reversals are chosen without the fold.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from podium.analysis.annotators.crowd_judgements import CrowdJudgements
from podium.kernels.dispatch import B1
from podium.kernels.distributions import normal_cdf

__all__ = ["Reversal", "measure_reversal"]

FOLDS = 3
SURE, MATTERS = 0.05, 0.001  # largest p-value and smallest gain in the share of pairs for reversal to help


class Reversal(NamedTuple):
    """Prediction of the others' judgements with the suspects excluded, and with their answers reversed."""

    same: float  # held-out pairs predicted correctly without the suspects, as independent votes
    other: float  # ... incorrectly
    left_out: float  # share predicted correctly without the suspects; NaN if nothing is predicted
    reversed: float  # ... with their answers reversed
    p: float  # p-value of no gain from reversing, by random signs of the annotators' gains

    @property
    def helps(self) -> bool:
        """Whether reversing beats excluding, significantly and by a margin that matters."""
        return self.p < SURE and self.reversed - self.left_out >= MATTERS

    def to_dict(self) -> dict[str, float | bool | None]:
        """As plain values; None if unknown."""
        shares = {name: None if math.isnan(v) else v for name, v in self._asdict().items()}
        return {**shares, "helps": self.helps}


def measure_reversal(crowd: CrowdJudgements, suspects: B1) -> Reversal:
    """Predict the judgements of all annotators but the suspects, fold by fold."""
    n = len(crowd)
    right, wrong = np.zeros((2, n)), np.zeros((2, n))  # rows: suspects excluded, suspects reversed
    for fold in _split_folds(crowd, suspects):
        weights = crowd.estimate_weights_without(fold | suspects)
        if not weights.any():  # a single remaining annotator has no reference
            weights = np.where(fold | suspects, 0.0, 1.0)
        counts = crowd.count_against_weighted(weights)
        turned = np.where(suspects, np.minimum(crowd.compute_quality_weights(counts), 0.0), weights)
        for k, tally in enumerate((counts, crowd.count_against_weighted(turned))):
            right[k, fold], wrong[k, fold] = tally.same_worth[fold], tally.other_worth[fold]
    gain = (right - wrong)[1] - (right - wrong)[0]
    size = float(np.sqrt((gain**2).sum()))
    p = float(normal_cdf(-gain.sum() / size)) if size > 0 else 1.0
    left_out, turned_round = (_compute_share(right[k].sum(), wrong[k].sum()) for k in (0, 1))
    return Reversal(float(right[0].sum()), float(wrong[0].sum()), left_out, turned_round, p)


def _compute_share(right: float, wrong: float) -> float:
    return float(right / (right + wrong)) if right + wrong > 0 else float("nan")


def _split_folds(crowd: CrowdJudgements, suspects: B1) -> list[B1]:
    """The other annotators in folds, each with busy and less busy ones."""
    order = np.lexsort((np.arange(len(crowd)), -crowd.judgements))
    order = order[~suspects[order]]
    folds = []
    for k in range(min(FOLDS, len(order))):
        fold = np.zeros(len(crowd), np.bool_)
        fold[order[k::FOLDS]] = True
        folds.append(fold)
    return folds
