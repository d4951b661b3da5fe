"""What is said of an annotator, and when: a verdict needs an interval that excludes the other verdicts.

Reliable: the interval of the quality is above one half. Malicious: below one half, as measured against others who agree
with each other in judgements that were held out, and who are the larger number. Random: the interval lies around one
half and excludes every quality whose lead over guessing is LEAD times that of the reliable annotators or more (HONEST
at any rate), so that honest annotators of a difficult task are not called random. In all other cases there is no
verdict, and `missing` says what it would take.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from podium.analysis.annotators.crowd_judgements import AgreementCounts, CrowdJudgements, SharedAnswers
from podium.analysis.annotators.reversal_check import Reversal, measure_reversal
from podium.kernels.dispatch import B1, F8

__all__ = [
    "FEW",
    "LEAD",
    "MALICIOUS",
    "OVERLAP",
    "RANDOM",
    "RELIABLE",
    "TOLD",
    "VERDICTS",
    "AnnotatorVerdicts",
    "compute_posterior",
    "judge_annotators",
]

RELIABLE, RANDOM, MALICIOUS = "reliable", "random", "malicious"
FEW, OVERLAP = "too few judgements", "too little overlap"
# in the order of a table: what needs a look comes first
VERDICTS = (MALICIOUS, RANDOM, OVERLAP, FEW, RELIABLE)
TOLD = (RELIABLE, RANDOM, MALICIOUS, FEW, OVERLAP)  # in the order of a sentence
# Share of the reliable annotators' lead over guessing that must be excluded before somebody is called random. With one
# half, at most 1 % of honest annotators are in simulated crowds (benchmarks/verdicts.py); more would find those who
# guess sooner, but on TREC 2011 from 0.6 on it hits some whom gold labels show to be right.
LEAD = 0.5
HONEST = 0.65  # a quality that must be excluded too, however good the others are
SHARED = (
    0.5  # share of the judgements of which others must know the items; below, it is overlap that is missing
)


class AnnotatorVerdicts(NamedTuple):
    """By annotator: the interval of the quality, the verdict, and what a clear one lacks; and the held-out check."""

    quality: F8
    low: F8
    high: F8
    verdicts: list[str]
    missing: list[str | None]
    reversal: Reversal | None  # where somebody answers the other way round


def compute_posterior(same: F8, other: F8, level: float) -> tuple[F8, F8, F8]:
    """Mean and interval of the beta posterior from Jeffreys' prior; it ends at 0 or 1 where nothing differs."""
    from scipy.special import betaincinv

    a, b = same + 0.5, other + 0.5
    low, high = betaincinv(a, b, (1 - level) / 2), betaincinv(a, b, (1 + level) / 2)
    return a / (a + b), np.where(same <= 0, 0.0, low), np.where(other <= 0, 1.0, high)


def judge_annotators(crowd: CrowdJudgements, counts: AgreementCounts, level: float) -> AnnotatorVerdicts:
    """All verdicts."""
    quality, low, high = compute_posterior(counts.same_worth, counts.other_worth, level)
    suspects = high < 0.5
    reversal = measure_reversal(crowd, suspects) if suspects.any() else None
    # Two camps that contradict each other are alike from outside; only the larger one can tell on the smaller one.
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
    """Whether the others predict each other better than by guessing."""
    low = compute_posterior(np.array([reversal.same]), np.array([reversal.other]), level)[1]
    return bool(low[0] > 0.5)


def _least_lead(counts: AgreementCounts, reliable: B1) -> float:
    """The lead over guessing which nobody who is called random may have, as far as the interval tells.

    What the others say is not the truth, and the less it is, the less even the best agree with it; so this is not the
    lead of a fixed quality, but a share of that of the reliable annotators.
    """
    same, other = counts.same_worth[reliable].sum(), counts.other_worth[reliable].sum()
    return float(min(LEAD * (same / (same + other) - 0.5), HONEST - 0.5)) if same + other > 0 else 0.0


def _find_constant_outliers(crowd: CrowdJudgements, level: float) -> B1:
    """Annotators all of whose answers are equal though those of others on the same items are not.

    They agree with others surely less than annotators agree with each other.
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
    """The verdict where there is none yet, and what it takes."""
    if suspect:
        return OVERLAP, "others who judge the same items and agree with each other"
    shared, own = int(crowd.overlap[code]), int(crowd.judgements[code])
    if shared < SHARED * own:
        return OVERLAP, f"others who judge the same items: they did for {shared:,} of {own:,} judgements"
    return (
        FEW,
        f"judgements: after {pairs:,.0f} pairs that others order too, more than one verdict is possible",
    )
