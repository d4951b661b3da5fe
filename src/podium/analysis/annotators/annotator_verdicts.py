"""Verdicts on annotators. Each needs an interval of the quality that excludes the other verdicts.

Reliable: the interval is above one half. Malicious: below one half, measured against a larger group of others
who agree with each other on held-out judgements. Random: the interval lies around one half and excludes every
quality whose lead over guessing is at least LEAD times that of the reliable annotators (and HONEST in any
case), so that honest annotators of a difficult task are not called random. Otherwise there is no verdict, and
`missing` names the evidence required.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from podium.analysis.annotators.crowd_judgements import AgreementCounts, CrowdJudgements
from podium.kernels.dispatch import B1, F8
from podium.kernels.distributions import beta_quantile, normal_cdf

__all__ = [
    "FEW",
    "LEAD",
    "MALICIOUS",
    "OVERLAP",
    "RANDOM",
    "RELIABLE",
    "SENTENCE_ORDER",
    "VERDICTS",
    "AnnotatorVerdicts",
    "Reversal",
    "compute_posterior",
    "judge_annotators",
    "measure_reversal",
]

RELIABLE, RANDOM, MALICIOUS = "reliable", "random", "malicious"
FEW, OVERLAP = "too few judgements", "too little overlap"
# table order: verdicts that need attention come first
VERDICTS = (MALICIOUS, RANDOM, OVERLAP, FEW, RELIABLE)
SENTENCE_ORDER = (RELIABLE, RANDOM, MALICIOUS, FEW, OVERLAP)  # sentence order
# Share of the reliable annotators' lead over guessing that the interval must exclude for the verdict random.
# At one half, at most 1 % of honest annotators get it in simulated crowds (benchmarks/verdicts.py). Larger
# values detect guessers sooner, but from 0.6 on they misjudge some TREC 2011 workers (by gold labels).
LEAD = 0.5
HONEST = 0.65  # this quality must be excluded too, however good the others are
SHARED = 0.5  # share of the judgements on items that others judge too; below this, the overlap is too small
FOLDS = 3  # of the held-out check of annotators whose answers look reversed (suspects)
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


class AnnotatorVerdicts(NamedTuple):
    """Per annotator: interval of the quality, verdict, missing evidence; and the held-out check."""

    quality: F8
    low: F8
    high: F8
    verdicts: list[str]
    missing: list[str | None]
    reversal: Reversal | None  # None if nobody's answers are reversed


def compute_posterior(same: F8, other: F8, level: float) -> tuple[F8, F8, F8]:
    """Mean and interval of the beta posterior with Jeffreys' prior; it ends at 0 or 1 if all answers agree."""
    a, b = same + 0.5, other + 0.5
    low, high = beta_quantile(a, b, (1 - level) / 2), beta_quantile(a, b, (1 + level) / 2)
    return a / (a + b), np.where(same <= 0, 0.0, low), np.where(other <= 0, 1.0, high)


def judge_annotators(crowd: CrowdJudgements, counts: AgreementCounts, level: float) -> AnnotatorVerdicts:
    """Compute all verdicts."""
    quality, low, high = compute_posterior(counts.same_worth, counts.other_worth, level)
    suspects, reliable = high < 0.5, low > 0.5
    reversal = measure_reversal(crowd, suspects) if suspects.any() else None
    # Two camps that contradict each other look alike, so only the smaller one can be called malicious.
    confirmed = False
    if reversal is not None and suspects.sum() < reliable.sum():
        # the others must predict each other better than chance
        others_low = compute_posterior(np.array([reversal.same]), np.array([reversal.other]), level)[1]
        confirmed = bool(others_low[0] > 0.5)
    # The interval of a random annotator must exclude this lead over guessing. The other annotators are not the
    # truth, and the noisier they are, the less even the best agree with them. So the threshold is a share of
    # the reliable annotators' lead and not a fixed quality.
    same, other = counts.same_worth[reliable].sum(), counts.other_worth[reliable].sum()
    line = float(min(LEAD * (same / (same + other) - 0.5), HONEST - 0.5)) if same + other > 0 else 0.0
    # annotators whose answers are all equal although others answer differently on the same items; their agreement
    # must be significantly below the usual one
    answers, constant = crowd.count_shared_answers(), crowd.find_constant_annotators()
    agreed = np.nan_to_num(answers.share) * answers.questions
    most = compute_posterior(agreed, answers.questions - agreed, level)[2]
    total = answers.questions[~constant].sum()
    usual = float(agreed[~constant].sum() / total) if total else 0.0
    equal = constant & (most < usual)
    verdicts: list[str] = []
    missing: list[str | None] = []
    pairs = counts.same + counts.other
    for k in range(len(crowd)):
        shared, own = int(crowd.overlap[k]), int(crowd.judgements[k])
        what: str = FEW
        why: str | None = (
            f"judgements: {pairs[k]:,.0f} pairs that others order too leave more than one verdict possible"
        )
        if reliable[k] or (suspects[k] and confirmed):
            what, why = RELIABLE if reliable[k] else MALICIOUS, None
        elif equal[k] or max(0.5 - low[k], high[k] - 0.5) < line:
            what, why = RANDOM, None
        elif suspects[k]:
            what, why = OVERLAP, "other annotators who judge the same items and agree with each other"
        elif shared < SHARED * own:
            what = OVERLAP
            why = f"other annotators on the same items: {shared:,} of {own:,} judgements have them"
        verdicts.append(what)
        missing.append(why)
    return AnnotatorVerdicts(quality, low, high, verdicts, missing, reversal)


def measure_reversal(crowd: CrowdJudgements, suspects: B1) -> Reversal:
    """Predict the judgements of all annotators but the suspects, fold by fold.

    The others are split into folds; the judgements of each fold are predicted from the remaining folds, and
    reversals are chosen without the fold.
    """
    n = len(crowd)
    right, wrong = np.zeros((2, n)), np.zeros((2, n))  # rows: suspects excluded, suspects reversed
    order = np.lexsort((np.arange(n), -crowd.judgements))
    order = order[~suspects[order]]
    for first in range(min(FOLDS, len(order))):
        # each fold has busy and less busy annotators
        fold = np.zeros(n, np.bool_)
        fold[order[first::FOLDS]] = True
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
    hits, misses = right.sum(axis=1), wrong.sum(axis=1)
    total = hits + misses
    shares = np.divide(hits, total, out=np.full(2, np.nan), where=total > 0)
    return Reversal(float(hits[0]), float(misses[0]), float(shares[0]), float(shares[1]), p)
