"""An alarm for questions at hand that are unlike the gold: then nothing learned from the gold is certain.

What is known about a question without gold is compared: how much the judges agree on it, each judge's
agreement with the others, which judges answered, and the features of its items. The largest standardized
difference of means is compared with that under random choices of the gold (a permutation test), so a false
alarm has the stated probability whatever the distributions. Gold that differs only in what people think of
the same answers cannot be detected without labels.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from podium.analysis.judges.panel import JudgePanel
from podium.kernels.dispatch import B1, F8

__all__ = ["GoldShift", "detect_gold_shift"]

ROUNDS = 999
FEWEST = 10  # questions with and without gold that a comparison needs
FALSE_ALARMS = 0.05
CHUNK = 1 << 22  # numbers in memory at a time


class GoldShift(NamedTuple):
    """The largest difference between questions with gold and without, and the probability of it by chance."""

    p: float
    what: str  # the quantity that differs most
    gold_mean: float
    other_mean: float

    @property
    def fires(self) -> bool:
        """Whether the questions at hand are unlike the gold."""
        return self.p <= FALSE_ALARMS


def detect_gold_shift(
    panel: JudgePanel, gold: F8, values: F8 | None = None, names: tuple[str, ...] = (), *, seed: int = 0
) -> GoldShift | None:
    """Compare questions with and without gold; None if either are too few.

    `values` are further quantities by question, called `names`; NaN where they are unknown.
    """
    known = ~np.isnan(gold)
    if min(known.sum(), (~known).sum()) < FEWEST:
        return None
    table, labels = _describe_questions(panel, values, names)
    varies = table.std(axis=0) > 1e-12
    if not varies.any():
        return GoldShift(1.0, "nothing", 0.0, 0.0)
    table, labels = table[:, varies], [name for name, kept in zip(labels, varies, strict=True) if kept]
    scaled = (table - table.mean(axis=0)) / table.std(axis=0)
    observed = np.abs(scaled[known].sum(axis=0))
    # the sums of both groups are opposite, so the smaller group serves for the larger
    drawn = min(int(known.sum()), int((~known).sum()))
    rng, largest, block = np.random.default_rng([seed, 2]), np.empty(ROUNDS), max(1, CHUNK // len(scaled))
    for done in range(0, ROUNDS, block):
        picked = np.zeros((min(block, ROUNDS - done), len(scaled)))
        for row in picked:
            row[rng.choice(len(scaled), drawn, replace=False)] = 1.0
        largest[done : done + len(picked)] = np.abs(picked @ scaled).max(axis=1)
    p = (1 + int((largest >= observed.max() - 1e-9).sum())) / (1 + ROUNDS)
    at = int(observed.argmax())
    return GoldShift(p, labels[at], float(table[known, at].mean()), float(table[~known, at].mean()))


def _describe_questions(panel: JudgePanel, values: F8 | None, names: tuple[str, ...]) -> tuple[F8, list[str]]:
    """Questions x quantities that do not depend on which item is called the first."""
    answers = panel.answers
    given: B1 = ~np.isnan(answers)
    count, total = given.sum(axis=0), np.nansum(answers, axis=0)
    others = np.divide(
        total - np.nan_to_num(answers), count - given, out=np.full(answers.shape, np.nan), where=count > given
    )
    agreement = 1 - np.abs(answers - others)
    columns = [2 * np.abs(panel.mean_answer - 0.5)]
    labels = ["the margin of the panel"]
    for k, judge in enumerate(panel.judges):
        usual = np.nanmean(agreement[k]) if (~np.isnan(agreement[k])).any() else 0.0
        columns += [np.where(np.isnan(agreement[k]), usual, agreement[k]), given[k].astype(np.float64)]
        labels += [f"agreement of {judge} with the other judges", f"the share of questions {judge} answered"]
    if values is not None:
        for k, name in enumerate(names):
            blank = np.isnan(values[:, k])
            usual = 0.0 if blank.all() else np.nanmean(values[:, k])
            columns += [np.where(blank, usual, values[:, k]), blank.astype(np.float64)]
            labels += [name, f"the share of questions without {name}"]
    return np.stack(columns, axis=1), labels
