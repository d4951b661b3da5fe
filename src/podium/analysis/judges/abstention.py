"""A rule that answers or abstains, with a bound on its error rate among the questions that it answers.

The gold is split at random: a third chooses and fits the rule, the rest calibrates it. For a few shares of
the questions (the most confident quarter, half, three quarters, all) the calibration questions above the
threshold are a random sample of all questions above it, so the number of their errors is hypergeometric,
which bounds the errors among the answered questions without gold (split conformal, with an exact test per
share). The risk is divided by the number of shares, so all bounds hold at once and any share may be taken
after seeing them: the largest one whose bound is at most the stated error rate. They hold with the stated
confidence over the draw of the gold, whatever the judges are like, provided that the gold is a random
sample of the questions. If all questions have gold, the bounds are those of the error rate on future
questions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from podium.analysis.judges.panel import JudgePanel
from podium.analysis.judges.panel_rules import (
    EVEN,
    apply_rule,
    choose_rule,
    measure_rules,
    name_rule,
    score_answers,
)
from podium.kernels.dispatch import F8
from podium.kernels.distributions import beta_quantile, hypergeometric_cdf

__all__ = ["AbstainingRule", "AnsweredShare", "calibrate_rule", "compute_error_bound"]

SHARES = (1.0, 0.75, 0.5, 0.25)  # of the questions answered
FITTING = 1 / 3  # share of the gold that chooses and fits the rule
FEWEST = 10  # gold questions that either part must have


class AnsweredShare(NamedTuple):
    """The error bound if only the most confident questions are answered."""

    share: float  # of the questions
    answered: int  # questions without gold
    calibration: int  # gold questions of the calibration part that would be answered
    errors: int  # wrong answers among them
    bound: float  # of the error rate of the answered questions


class AbstainingRule(NamedTuple):
    """Which questions without gold are answered, how, and the bound on the share of wrong answers."""

    rule: str
    error: float  # largest accepted error rate
    confidence: float  # that all bounds hold
    shares: tuple[AnsweredShare, ...]
    chosen: AnsweredShare | None  # None: no share has a bound that is small enough, and nothing is answered
    answers: F8  # shares x questions: 1 first item, 0 second item, NaN if it abstains or there is gold

    @property
    def answer(self) -> F8:
        """The answers of the chosen share, by question."""
        if self.chosen is None:
            return np.full(self.answers.shape[1], np.nan)
        return np.asarray(self.answers[self.shares.index(self.chosen)], np.float64)

    def to_dict(self) -> dict[str, object]:
        """Without the answers."""
        document = self._asdict() | {"shares": [row._asdict() for row in self.shares]}
        document["chosen"] = None if self.chosen is None else self.chosen._asdict()
        del document["answers"]
        return document


def compute_error_bound(errors: int, drawn: int, rest: int, risk: float) -> float:
    """Upper bound, with probability 1 - risk, of the error rate of `rest` questions, from `drawn` like them.

    With `rest` = 0, of the error rate of the population (Clopper & Pearson).

    >>> round(compute_error_bound(0, 29, 0, 0.05), 3), compute_error_bound(0, 29, 10, 0.05)
    (0.098, 0.2)
    """
    if not drawn or errors == drawn:
        return 1.0
    if not rest:
        return float(beta_quantile(errors + 1.0, float(drawn - errors), 1 - risk))
    # the smallest number of errors among the rest that the sample excludes
    low, high = 1, rest + 1
    while low < high:
        middle = (low + high) // 2
        if hypergeometric_cdf(errors, drawn + rest, errors + middle, drawn) > risk:
            low = middle + 1
        else:
            high = middle
    return (low - 1) / rest


def calibrate_rule(
    panel: JudgePanel,
    gold: F8,
    names: Sequence[str],
    *,
    error: float = 0.1,
    confidence: float = 0.95,
    seed: int = 0,
) -> AbstainingRule | None:
    """Choose and fit a rule on a part of the gold, calibrate it on the rest; None with too little gold."""
    known = ~np.isnan(gold)
    where = np.random.default_rng([seed, 1]).permutation(np.flatnonzero(known))
    first = round(FITTING * len(where))
    if min(first, len(where) - first) < FEWEST:
        return None
    fitting, calibrating = np.zeros(len(gold), np.bool_), np.zeros(len(gold), np.bool_)
    fitting[where[:first]] = True
    calibrating[where[first:]] = True
    name = names[choose_rule(measure_rules(panel, gold, fitting, names, seed=seed).right)]
    scores = apply_rule(name, panel, gold, fitting)
    sure = np.abs(scores - 0.5)
    # the rule saw the gold of neither, so these questions are exchangeable
    asked = calibrating | ~known
    wrong = score_answers(scores, gold) < 0.75
    rows, answers = [], []
    for share in SHARES:
        above = (sure >= np.quantile(sure[asked], 1 - share)) & (sure > EVEN)
        drawn, rest = above & calibrating, above & ~known
        counts = int(rest.sum()), int(drawn.sum()), int((wrong & drawn).sum())
        bound = compute_error_bound(counts[2], counts[1], counts[0], (1 - confidence) / len(SHARES))
        rows.append(AnsweredShare(share, *counts, bound))
        answers.append(np.where(rest, (scores > 0.5) * 1.0, np.nan))
    chosen = next((row for row in rows if row.bound <= error), None)
    label = name_rule(name, panel, gold, fitting)
    return AbstainingRule(label, error, confidence, tuple(rows), chosen, np.array(answers))
