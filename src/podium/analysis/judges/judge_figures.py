"""What each judge is like: agreement with gold, and biases toward a position or a feature such as length.

A bias is the share of a judge's votes for the item shown first (or with the larger feature) in excess of what
a reference without the bias gives. For positions the reference is the gold, or one half where the judge was
asked in both orders; for features it is the gold, or without gold the other judges, whose own bias it shares.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from podium.analysis.annotators.annotator_verdicts import compute_posterior
from podium.analysis.judges.panel import JudgePanel
from podium.evaluate.significance import assess_differences, holm
from podium.kernels.dispatch import F8
from podium.kernels.grouping import sum_by_group

__all__ = [
    "GoldAgreement",
    "JudgeBias",
    "adjust_biases",
    "compute_gold_agreement",
    "measure_feature_bias",
    "measure_position_bias",
]

ENOUGH = 10  # questions that a bias needs
SURE, MATTERS = 0.05, 0.02  # largest p-value and smallest excess of a bias that is reported
POSITION = "shown first"


class GoldAgreement(NamedTuple):
    """Per judge: share of the gold questions answered as the gold does; split answers count half."""

    questions: F8
    share: F8  # NaN without gold questions
    low: F8
    high: F8


class JudgeBias(NamedTuple):
    """Excess share of the votes for the item shown first, or with the larger feature, of one judge."""

    toward: str  # "shown first", or "larger " and the name of a feature
    questions: int
    excess: float | None  # None with too few questions
    low: float | None
    high: float | None
    p: float | None  # of no bias, adjusted for the number of judges and features (Holm)
    reference: str  # "both orders", "gold", "other judges"

    @property
    def is_certain(self) -> bool:
        """Whether the bias is significant and large enough to matter."""
        return self.p is not None and self.p <= SURE and abs(self.excess or 0.0) >= MATTERS


def compute_gold_agreement(answers: F8, gold: F8, level: float = 0.95) -> GoldAgreement:
    """Agreement of each row of answers with the gold, with Jeffreys' intervals."""
    known = ~np.isnan(gold)
    match = 1 - np.abs(answers[:, known] - gold[known])
    count = (~np.isnan(match)).sum(axis=1).astype(np.float64)
    right = np.nansum(match, axis=1)
    low, high = compute_posterior(right, count - right, level)[1:]
    share = np.divide(right, count, out=np.full(len(count), np.nan), where=count > 0)
    return GoldAgreement(count, share, low, high)


def measure_position_bias(panel: JudgePanel, gold: F8 | None, level: float = 0.95) -> list[JudgeBias]:
    """One bias per judge; without a reference or known sides it has no value."""
    judges, size = len(panel.judges), len(panel.judges) * len(panel)
    some = panel.side != 0
    total = panel.won + panel.lost
    chose_first = np.where(panel.side > 0, panel.won, panel.lost)
    cell = panel.judge * len(panel) + panel.question
    columns = (chose_first, total, np.where(panel.side > 0, total, 0.0))
    chosen, votes, forward = (
        sum_by_group(cell[some], c[some], size).reshape(judges, len(panel)) for c in columns
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        share, shown = chosen / votes, forward / votes  # NaN where the judge has no vote with a known side
    balanced = shown == 0.5
    right = np.full(len(panel), np.nan) if gold is None else gold
    expected = np.where(balanced, 0.5, shown * right + (1 - shown) * (1 - right))
    rows = share - expected
    both = balanced & ~np.isnan(rows)
    reference = "both orders" if both.sum() >= (~np.isnan(rows)).sum() / 2 else "gold"
    return _assess_biases(rows, POSITION, reference, level)


def measure_feature_bias(
    panel: JudgePanel, gaps: F8, name: str, gold: F8 | None, level: float = 0.95
) -> list[JudgeBias]:
    """One bias per judge toward the item with the larger value; `gaps` is first minus second, by question."""
    answers = panel.answers
    toward = np.where(gaps > 0, answers, np.where(gaps < 0, 1 - answers, np.nan))
    if gold is not None:
        wanted = np.where(gaps > 0, gold, np.where(gaps < 0, 1 - gold, np.nan))
        return _assess_biases(toward - wanted, f"larger {name}", "gold", level)
    given = ~np.isnan(toward)
    count = given.sum(axis=0) - given
    others = np.nansum(toward, axis=0) - np.nan_to_num(toward)
    peers = np.divide(others, count, out=np.full(toward.shape, np.nan), where=count > 0)
    return _assess_biases(toward - peers, f"larger {name}", "other judges", level)


def _assess_biases(rows: F8, toward: str, reference: str, level: float) -> list[JudgeBias]:
    count = (~np.isnan(rows)).sum(axis=1)
    enough = count >= ENOUGH
    assessed = assess_differences(np.where(enough[:, None], rows, np.nan), level=level)
    biases = []
    for k, n in enumerate(count.tolist()):
        excess = float(np.nanmean(rows[k])) if enough[k] else math.nan
        values = (excess, assessed.low[k], assessed.high[k], assessed.p[k])
        known = [None if math.isnan(v) else float(v) for v in values]
        biases.append(JudgeBias(toward, n, known[0], known[1], known[2], known[3], reference))
    return biases


def adjust_biases(biases: list[JudgeBias]) -> list[JudgeBias]:
    """The same with p-values adjusted for their number."""
    p = holm([math.nan if bias.p is None else bias.p for bias in biases])
    return [b if b.p is None else b._replace(p=float(v)) for b, v in zip(biases, p, strict=True)]
