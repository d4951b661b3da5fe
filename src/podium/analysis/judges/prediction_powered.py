"""Prediction-powered means: few human labels, and the judges' answers to all questions.

The mean of the human labels is corrected by the difference between the judges' mean on all other questions
and on the labeled ones, with the weight that minimizes the variance (Angelopoulos, Duchi & Zrnic, PPI++,
2023). The interval covers the human mean whatever the judges are worth; good judges make it narrower, and
useless ones get no weight. The labeled questions must be a random sample.
"""

from __future__ import annotations

import math
import warnings
from typing import NamedTuple

import numpy as np

from podium.analysis.judges.panel import JudgePanel
from podium.core.errors import InputError, PodiumWarning
from podium.core.text import join_names
from podium.data.ids import Id
from podium.kernels.dispatch import F8
from podium.kernels.distributions import student_quantile

__all__ = ["HumanMean", "PoweredEstimate", "estimate_human_mean", "estimate_win_rates"]

FEWEST = 10  # labels that an estimate needs


class HumanMean(NamedTuple):
    """The mean of human labels: from the labels alone, and with the judges' answers."""

    labels: int
    predictions: int  # questions with judges' answers alone
    judges: float  # mean of the judges' answers to all questions: biased as they are
    human: float  # mean of the labels alone
    human_low: float
    human_high: float
    mean: float  # prediction-powered
    low: float
    high: float
    weight: float  # of the judges' answers, from 0 to 1

    @property
    def worth(self) -> float:
        """How many times as many labels would be needed without the judges."""
        width, plain = self.high - self.low, self.human_high - self.human_low
        return (plain / width) ** 2 if width > 0 else math.inf


class PoweredEstimate(NamedTuple):
    """The share of questions that people decide for an item (or rate high), with both intervals."""

    item: Id
    estimate: HumanMean

    def to_dict(self) -> dict[str, object]:
        """As one flat record."""
        return {"item": self.item, **self.estimate._asdict(), "worth": self.estimate.worth}


def estimate_human_mean(
    labels: F8, predictions: F8, other_predictions: F8, *, level: float = 0.95
) -> HumanMean:
    """The mean human label of all questions, from labels and predictions of some, and predictions of others.

    >>> y, f = np.array([1.0, 0, 1, 0, 1, 1, 0, 1, 1, 0]), np.array([1.0, 0, 1, 0, 1, 1, 0, 1, 0, 0])
    >>> e = estimate_human_mean(y, f, np.tile([1.0, 0, 1, 0, 0], 100))
    >>> round(e.human, 2), round(e.mean, 2), e.high - e.low < e.human_high - e.human_low
    (0.6, 0.51, True)
    """
    labels, predictions, others = (
        np.asarray(c, np.float64) for c in (labels, predictions, other_predictions)
    )
    n, rest = len(labels), len(others)
    if n < 3 or len(predictions) != n:
        raise InputError(
            f"there are {n} labels and {len(predictions)} predictions for them",
            remedy="give at least three labels, and one prediction for each",
        )
    if not np.ptp(labels):
        raise InputError(
            f"all {n} labels are {labels[0]:g}, so the error of their mean is unknown",
            remedy="give more labels",
        )
    weight, spread = 0.0, float(np.concatenate((predictions, others)).var())
    if rest > 1 and spread > 0:
        shared = float(np.cov(labels, predictions)[0, 1])
        weight = min(max(shared / (spread * (1 + n / rest)), 0.0), 1.0)
    human, reach = float(labels.mean()), float(student_quantile(n - 1, (1 + level) / 2))
    error = math.sqrt(float(labels.var(ddof=1)) / n)
    if weight:
        mean = human + weight * float(others.mean() - predictions.mean())
        # the weight is estimated from the labels as well, which costs a degree of freedom
        left = labels - weight * predictions
        variance = float(left.var()) / (n - 2) + weight**2 * float(others.var(ddof=1)) / rest
        powered = float(student_quantile(n - 2, (1 + level) / 2)) * math.sqrt(variance)
    else:
        mean, powered = human, reach * error
    everything = float(np.concatenate((predictions, others)).mean())
    bounds = human - reach * error, human + reach * error, mean, mean - powered, mean + powered
    return HumanMean(n, rest, everything, human, *bounds, weight)


def estimate_win_rates(panel: JudgePanel, gold: F8, *, level: float = 0.95) -> tuple[PoweredEstimate, ...]:
    """Share of its questions that people decide for each item with enough gold, largest first.

    An item is the same in all queries. Of ratings there is one mean, over all items.
    """
    known, mean = ~np.isnan(gold), panel.mean_answer
    if panel.levels is not None:
        if known.sum() < FEWEST or not np.ptp(gold[known]):
            return ()
        estimate = estimate_human_mean(gold[known], mean[known], mean[~known], level=level)
        return (PoweredEstimate(f"rated {panel.levels[1]:g}", estimate),)
    ids = panel.index.items.tolist()
    names = {name: code for code, name in enumerate(dict.fromkeys(ids))}
    code = np.array([names[name] for name in ids])
    item = np.concatenate((code[panel.first], code[panel.second]))
    label, answer = np.concatenate((gold, 1 - gold)), np.concatenate((mean, 1 - mean))
    order = np.argsort(item, kind="stable")
    ends = np.searchsorted(item[order], np.arange(len(names) + 1))
    rows, unanimous = [], []
    for name, at in names.items():
        mine = order[ends[at] : ends[at + 1]]
        labeled = mine[~np.isnan(label[mine])]
        if len(labeled) >= FEWEST and not np.ptp(label[labeled]):
            unanimous.append(name)
        elif len(labeled) >= FEWEST:
            others = answer[mine[np.isnan(label[mine])]]
            estimate = estimate_human_mean(label[labeled], answer[labeled], others, level=level)
            rows.append(PoweredEstimate(name, estimate))
    if unanimous:
        warnings.warn(
            f"no win rate of {join_names(unanimous)}: all gold answers are equal, so their error is unknown",
            PodiumWarning,
            stacklevel=3,
        )
    return tuple(sorted(rows, key=lambda row: -row.estimate.mean))
