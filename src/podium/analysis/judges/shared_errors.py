"""Errors that judges share: correlations of errors, the effective number of judges, and pairs of judges.

With gold every error is known. Two judges whose errors are independent are both wrong with the product of their
error rates; Fisher's exact test finds pairs that are both wrong more often. Without gold the
answers of all judges are explained by one common factor (the truth, or whatever else all of them follow), and
correlations are what this factor leaves unexplained: a bias that most judges share is part of the factor and
cannot be seen.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from podium.analysis.judges.panel import JudgePanel
from podium.data.ids import Id
from podium.evaluate.significance import holm
from podium.kernels.dispatch import B1, F8, I8
from podium.kernels.distributions import hypergeometric_cdf

__all__ = ["EffectiveNumber", "SharedErrors", "estimate_effective_number", "find_shared_errors"]

ENOUGH = 10  # common questions that a correlation needs
KNOWN_PAIRS = 0.5  # share of the pairs of judges that must have enough common questions
FACTOR_JUDGES = 4  # judges that a common factor needs: with fewer it explains any correlations
ROUNDS, BLOCKS = 400, 1000  # bootstrap rounds, and blocks of questions that are resampled
STEPS = 30  # of the fit of the common factor
SURE = 0.05  # largest adjusted p-value of a pair that is reported as sharing errors


class EffectiveNumber(NamedTuple):
    """Number of independent judges whose mean would vary as much as the mean of these (Kish)."""

    value: float
    low: float
    high: float
    judges: int  # judges with enough answers
    questions: int  # questions it rests on
    from_gold: bool


class SharedErrors(NamedTuple):
    """Two judges: how often both are wrong, and how often independent errors would coincide."""

    judge: Id
    other: Id
    questions: int  # with gold, answered by both
    both_wrong: int
    expected: float  # number of questions with two errors if errors were independent
    correlation: float
    p: float  # of independence, one-sided, adjusted for the number of pairs (Holm)

    @property
    def is_certain(self) -> bool:
        """Whether the pair is reported."""
        return self.p <= SURE


def estimate_effective_number(
    panel: JudgePanel, gold: F8 | None, *, level: float = 0.95, seed: int = 0
) -> EffectiveNumber | None:
    """The effective number with a bootstrap interval over questions; None if the answers do not determine it.

    With a mean correlation r of the errors of n judges it is n / (1 + (n - 1) r). Correlations follow from sums
    over questions, so that a resample needs only sums over blocks of questions.
    """
    sign = 2 * panel.answers - 1
    if gold is not None:
        known = ~np.isnan(gold)
        sign = sign[:, known] * (2 * gold[known] - 1)
    given = ~np.isnan(sign)
    enough = given.sum(axis=1) >= ENOUGH
    if enough.sum() < (2 if gold is not None else FACTOR_JUDGES):
        return None
    sign, given = sign[enough], given[enough]
    used = given.sum(axis=0) >= 2
    if used.sum() < ENOUGH:
        return None
    sign, given = np.nan_to_num(sign[:, used]), given[:, used].astype(np.float64)
    judges, questions = sign.shape
    # one term per judge (mean) and per pair of judges (mean product), in blocks of questions
    rng = np.random.default_rng(seed)
    block = rng.permutation(questions) % min(BLOCKS, questions)
    order = np.argsort(block, kind="stable")
    starts = np.searchsorted(block[order], np.arange(int(block.max(initial=0)) + 1))
    left, right = (side.astype(np.int64) for side in np.triu_indices(judges, 1))
    columns = [sign, sign**2, given, sign[left] * sign[right], given[left] * given[right]]
    sums = [np.add.reduceat(c[:, order], starts, axis=1) for c in columns]
    draws = rng.multinomial(len(starts), np.full(len(starts), 1 / len(starts)), ROUNDS).astype(np.float64)
    weights = np.concatenate((np.ones((1, len(starts))), draws)).T
    totals = [s @ weights for s in sums]
    if (totals[4][:, 0] >= ENOUGH).mean() < KNOWN_PAIRS:
        return None
    # the mean error correlation of the pairs with enough common questions, per resample (the first is the sample
    # itself); a judge without errors is uncorrelated with all others
    total, squares, count, products, common = totals
    with np.errstate(divide="ignore", invalid="ignore"):
        mean, square = np.nan_to_num(total / count), np.nan_to_num(squares / count)
        product = np.nan_to_num(products / common)
    if gold is None:
        mean = _fit_factor(product, common, (left, right), judges)
    spread = np.maximum(square - mean**2, 0.0)
    size = np.sqrt(spread[left] * spread[right])
    rest = product - mean[left] * mean[right]
    correlation = np.divide(rest, size, out=np.zeros_like(size), where=size > 1e-9)
    counted = common[:, 0] >= ENOUGH
    average = np.clip(correlation[counted], -1, 1).mean(axis=0)
    numbers = judges / (1 + (judges - 1) * np.maximum(average, 0.0))
    tail = (1 - level) / 2
    low, high = np.quantile(numbers[1:], (tail, 1 - tail))
    return EffectiveNumber(float(numbers[0]), float(low), float(high), judges, questions, gold is not None)


def _fit_factor(product: F8, common: F8, pairs: tuple[I8, I8], judges: int) -> F8:
    """Loadings of one common factor, by least squares over the pairs of judges, per resample."""
    left, right = pairs
    table = np.zeros((product.shape[1], judges, judges))
    weight = np.zeros_like(table)
    for rows, columns in ((left, right), (right, left)):
        table[:, rows, columns], weight[:, rows, columns] = product.T, common.T
    loading = np.full((len(table), judges), np.sqrt(max(float(product.mean()), 0.05)))
    for _ in range(STEPS):
        # one judge after the other: a common step for all of them may oscillate
        for j in range(judges):
            scale = (weight[:, j] * loading**2).sum(axis=1)
            value = (weight[:, j] * table[:, j] * loading).sum(axis=1)
            fitted = np.divide(value, scale, out=np.zeros_like(value), where=scale > 0)
            loading[:, j] = np.clip(fitted, -1, 1)
    return np.asarray(loading.T, np.float64)


def find_shared_errors(panel: JudgePanel, gold: F8) -> tuple[SharedErrors, ...]:
    """All pairs of judges with enough common gold questions, those that share most errors first.

    Split answers are neither right nor wrong and are left out.
    """
    known = ~np.isnan(gold)
    answers = panel.answers[:, known]
    wrong: B1 = np.abs(answers - gold[known]) > 0.5
    clear: B1 = ~np.isnan(answers) & (answers != 0.5)
    clear_number, wrong_number = clear.astype(np.float64), (wrong & clear).astype(np.float64)
    common = clear_number @ clear_number.T
    own = wrong_number @ clear_number.T  # errors of the row's judge on common questions
    both = wrong_number @ wrong_number.T
    rows = []
    for i, j in zip(*np.triu_indices(len(panel.judges), 1), strict=True):
        n = int(common[i, j])
        if n < ENOUGH:
            continue
        a, b, c = int(own[i, j]), int(own[j, i]), int(both[i, j])
        size = float(np.sqrt(a * (n - a) * b * (n - b)))
        correlation = (n * c - a * b) / size if size else 0.0
        # at least c common errors: at most a - c of the first judge's errors on questions the other has right
        p = hypergeometric_cdf(a - c, n, n - b, a)
        rows.append(SharedErrors(panel.judges[i], panel.judges[j], n, c, a * b / n, correlation, p))
    adjusted = holm([row.p for row in rows])
    rows = [row._replace(p=float(p)) for row, p in zip(rows, adjusted, strict=True)]
    return tuple(sorted(rows, key=lambda row: (row.p, -row.correlation)))
