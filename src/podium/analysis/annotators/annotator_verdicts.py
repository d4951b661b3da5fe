"""Verdicts on annotators. Each needs an interval of the quality that excludes the other verdicts.

Reliable: the interval is above one half. Malicious: below one half, measured against a larger group of others
who agree with each other on held-out judgements. Random: the interval lies around one half and excludes every
quality whose lead over guessing is at least LEAD times that of the reliable annotators (and HONEST in any
case), so that honest annotators of a difficult task are not called random. Otherwise there is no verdict, and
`missing` names the evidence required.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from podium.analysis.annotators.crowd_judgements import AgreementCounts, CrowdJudgements, SharedAnswers
from podium.analysis.annotators.reversal_check import Reversal, measure_reversal
from podium.kernels.dispatch import B1, F8
from podium.kernels.distributions import beta_quantile

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
    "compute_posterior",
    "judge_annotators",
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
    suspects = high < 0.5
    reversal = measure_reversal(crowd, suspects) if suspects.any() else None
    # Two camps that contradict each other look alike, so only the smaller one can be called malicious.
    confirmed = reversal is not None and suspects.sum() < (low > 0.5).sum() and _is_confirmed(reversal, level)
    line = _least_lead(counts, low > 0.5)
    equal = _find_constant_outliers(crowd, level)
    verdicts: list[str] = []
    missing: list[str | None] = []
    pairs = counts.same + counts.other
    for k in range(len(crowd)):
        if low[k] > 0.5 or (suspects[k] and confirmed):
            verdicts.append(RELIABLE if low[k] > 0.5 else MALICIOUS)
            missing.append(None)
        elif equal[k] or max(0.5 - low[k], high[k] - 0.5) < line:
            verdicts.append(RANDOM)
            missing.append(None)
        else:
            what, why = _describe_missing_evidence(crowd, k, float(pairs[k]), bool(suspects[k]))
            verdicts.append(what)
            missing.append(why)
    return AnnotatorVerdicts(quality, low, high, verdicts, missing, reversal)


def _is_confirmed(reversal: Reversal, level: float) -> bool:
    """Whether the others predict each other better than chance."""
    low = compute_posterior(np.array([reversal.same]), np.array([reversal.other]), level)[1]
    return bool(low[0] > 0.5)


def _least_lead(counts: AgreementCounts, reliable: B1) -> float:
    """The lead over guessing that the interval of a random annotator must exclude.

    The other annotators are not the truth, and the noisier they are, the less even the best agree with them.
    So the threshold is a share of the reliable annotators' lead and not a fixed quality.
    """
    same, other = counts.same_worth[reliable].sum(), counts.other_worth[reliable].sum()
    return float(min(LEAD * (same / (same + other) - 0.5), HONEST - 0.5)) if same + other > 0 else 0.0


def _find_constant_outliers(crowd: CrowdJudgements, level: float) -> B1:
    """Annotators whose answers are all equal although others answer differently on the same items.

    Their agreement with the others must be significantly below the usual agreement.
    """
    shared, equal = crowd.count_shared_answers(), crowd.find_constant_annotators()
    agreed = np.nan_to_num(shared.share) * shared.questions
    high = compute_posterior(agreed, shared.questions - agreed, level)[2]
    return np.asarray(equal & (high < _usual_agreement(shared, ~equal)), np.bool_)


def _usual_agreement(shared: SharedAnswers, whom: B1) -> float:
    total = shared.questions[whom].sum()
    return float((np.nan_to_num(shared.share) * shared.questions)[whom].sum() / total) if total else 0.0


def _describe_missing_evidence(
    crowd: CrowdJudgements, code: int, pairs: float, suspect: bool
) -> tuple[str, str]:
    """The verdict where the evidence is insufficient, and what is missing."""
    if suspect:
        return OVERLAP, "other annotators who judge the same items and agree with each other"
    shared, own = int(crowd.overlap[code]), int(crowd.judgements[code])
    if shared < SHARED * own:
        return OVERLAP, f"other annotators on the same items: {shared:,} of {own:,} judgements have them"
    return (
        FEW,
        f"judgements: {pairs:,.0f} pairs that others order too leave more than one verdict possible",
    )
