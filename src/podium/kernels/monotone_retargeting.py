"""Monotone retargeting: two linear predictors of the same items that should agree on one order.

One side predicts from the experts' lists, the other from item features. Each has a target in every query, and
the targets of both sides must be ordered alike. With the order fixed by the other side, a side is fitted by
alternating: its target becomes the nearest one to its predictor in that order (`kernels.isotonic`), and its
coefficients a regression on the target (Acharyya & Ghosh, 2016). Three losses define the distance:

    squared   |z - u|^2                                         of centered targets z and predictors u
    poisson   sum z log(z / m) - z + m,  m = exp(c + u)         one level c for all items
    kl        the same with a level for every query             that is, sum z log(z / m) of shares per query

For the last two the nearest target is computed on the log scale, where the divergence is minimal at the mean
of a pool. A constant target would fit at once, so targets are centered in each query and have a fixed scale.
The misfit of a side is its loss over that of a constant predictor: 0 when the predictor has the order itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from podium.kernels.bounded_minimum import minimize_smooth, solve_nonnegative
from podium.kernels.dispatch import F8, I8
from podium.kernels.isotonic import BlockOrder, build_block_order, project_isotonic

__all__ = [
    "LOSSES",
    "NOTHING",
    "LinearPredictor",
    "PredictorFit",
    "RetargetingSettings",
    "RetargetingSolution",
    "alternate_fits",
    "center_by_query",
    "compute_largest_margin",
    "compute_squared_misfit",
    "root_mean_square",
    "scale_to_unit",
]

LOSSES = ("squared", "poisson", "kl")
NOTHING = 1e-10  # root mean square below which a predictor counts as constant
NEARLY = 8  # quasi-Newton steps per regression: its target changes with every step
HALVINGS = 50  # of the interval that holds the factor of a predictor under a margin
PATIENCE = 3  # alternations without a better objective before stopping


def center_by_query(values: F8, starts: I8) -> F8:
    """Values minus their mean in each query."""
    sizes = np.diff(starts)
    query = np.repeat(np.arange(len(sizes)), sizes)
    mean = np.bincount(query, weights=values, minlength=len(sizes)) / np.maximum(sizes, 1)
    return np.asarray(values - mean[query])


def scale_to_unit(values: F8) -> F8:
    """Values scaled to root mean square 1; nearly zero values become 0."""
    size = root_mean_square(values)
    return values / size if size > NOTHING else np.zeros_like(values)


def root_mean_square(values: F8) -> float:
    """The root mean square; 0 for no values."""
    return float(np.sqrt(np.mean(values * values))) if len(values) else 0.0


@dataclass(frozen=True)
class RetargetingSettings:
    """Settings of the alternation."""

    loss: str = "squared"
    margin: float = 0.0  # smallest difference between targets of consecutive blocks
    turns: int = 20
    steps: int = 20  # alternations of target and coefficients for one side
    tolerance: float = 1e-6
    grades: F8 | None = None  # known grades by slot, else NaN: an order that both sides keep


class LinearPredictor:
    """One linear predictor: columns centered in each query, and penalties on their coefficients."""

    def __init__(
        self, columns: F8, starts: I8, loss: str, l1: float, l2: float, *, positive: bool = False
    ) -> None:
        self.columns, self.starts, self.loss = columns, starts, loss
        rows = max(len(columns), 1)
        self._rows = rows
        # signed coefficients under l1 are the difference of two nonnegative ones
        self._split = l1 > 0 and not positive
        self._bounded = positive or self._split
        self._used = np.concatenate((columns, -columns), axis=1) if self._split else columns
        # times the rows, so that a penalty means the same for any number of items
        self._l1, self._l2 = l1 * rows, l2 * rows
        gram = self._used.T @ self._used
        # the small ridge keeps the matrix invertible where columns are constant or collinear
        self._gram = gram + (self._l2 + 1e-9 * rows) * np.eye(len(gram))

    def predict(self, coefficients: F8) -> F8:
        """The predictor by slot."""
        return _multiply_columns(self.columns, coefficients)

    def fit(self, target: F8, start: F8 | None = None) -> F8:
        """The coefficients that fit a target (for the losses with exp: its logarithm).

        The penalized loss of the result is at most that of the coefficients `start`.
        """
        if not self._used.shape[1]:
            return np.zeros(0)
        # half the gradient of |target - predictor|^2 + l1 sum |coefficient| at 0
        towards = _multiply_transposed(self._used, target) - self._l1 / 2
        if self._bounded:
            found = solve_nonnegative(self._gram, towards)
        else:
            found = np.asarray(np.linalg.solve(self._gram, towards))
        if self.loss != "squared":
            if start is not None and self._split:
                start = np.concatenate((np.maximum(start, 0.0), np.maximum(-start, 0.0)))
            found = self._fit_exponential(target, found, start)
        if not self._split:
            return found
        half = self.columns.shape[1]
        return found[:half] - found[half:]

    def _fit_exponential(self, target: F8, begin: F8, other: F8 | None = None) -> F8:
        """The generalized linear model, by a quasi-Newton method within bounds, from the better of two starts."""
        wanted = _compute_target_means(target, self.starts, self.loss)

        def objective(coefficients: F8) -> tuple[float, F8]:
            predictor = _multiply_columns(self._used, coefficients)
            found = _fit_level(predictor, wanted, self.starts, self.loss)
            # under l1 no coefficient is negative, so the penalty is a plain sum
            value = _compute_divergence(wanted, found) + self._l1 * float(coefficients.sum())
            slope = _multiply_transposed(self._used, found - wanted) + self._l1
            return (
                value + self._l2 / 2 * float(coefficients @ coefficients),
                slope + self._l2 * coefficients,
            )

        # few steps from the least-squares fit may end above the coefficients of the step before
        if other is not None and objective(other)[0] < objective(begin)[0]:
            begin = other
        return minimize_smooth(objective, begin, nonnegative=self._bounded, steps=NEARLY).x

    def compute_misfit(self, target: F8, predictor: F8) -> float:
        """The loss over that of a constant predictor; for squares at the best scale of the predictor."""
        if self.loss == "squared":
            return compute_squared_misfit(target, predictor)
        wanted = _compute_target_means(target, self.starts, self.loss)
        null = _compute_divergence(
            wanted, _fit_level(np.zeros_like(predictor), wanted, self.starts, self.loss)
        )
        found = _compute_divergence(wanted, _fit_level(predictor, wanted, self.starts, self.loss))
        return max(found / null, 0.0) if null > 0 else 1.0


# einsum rather than BLAS, whose threads cost more than they gain on products this small


def _multiply_columns(columns: F8, coefficients: F8) -> F8:
    return np.asarray(np.einsum("ij,j->i", columns, coefficients))


def _multiply_transposed(columns: F8, values: F8) -> F8:
    return np.asarray(np.einsum("ij,i->j", columns, values))


def compute_squared_misfit(target: F8, predictor: F8) -> float:
    """The fraction of the target that the predictor leaves unexplained at its best scale."""
    both = float(np.sum(target * predictor)) ** 2
    size = float(np.sum(target * target)) * float(np.sum(predictor * predictor))
    return max(1.0 - both / size, 0.0) if size > 0 else 1.0


def _compute_target_means(target: F8, starts: I8, loss: str) -> F8:
    """Targets on the scale of the means; under kl they sum to the size of their query."""
    return _fit_level(target, np.ones_like(target), starts, loss)


def _fit_level(predictor: F8, wanted: F8, starts: I8, loss: str) -> F8:
    """exp of the predictor at the best level: its sums, overall or by query, equal those of `wanted`."""
    # the level absorbs any shift, so the shift is chosen to prevent overflow
    top = np.exp(np.minimum(predictor - predictor.max(initial=0.0), 0.0))
    if loss == "poisson":
        return np.asarray(top * (wanted.sum() / max(top.sum(), 1e-300)))
    sizes = np.diff(starts)
    query = np.repeat(np.arange(len(sizes)), sizes)
    # shifted by query, so that none underflows as a whole
    highest = np.full(len(sizes), -np.inf)
    np.maximum.at(highest, query, predictor)
    top = np.exp(predictor - highest[query])
    have = np.bincount(query, weights=top, minlength=len(sizes))
    want = np.bincount(query, weights=wanted, minlength=len(sizes))
    return np.asarray(top * (want / np.maximum(have, 1e-300))[query])


def _compute_divergence(wanted: F8, found: F8) -> float:
    safe = np.maximum(found, 1e-300)
    return float(np.sum(wanted * np.log(np.maximum(wanted, 1e-300) / safe) - wanted + found))


class PredictorFit(NamedTuple):
    """The fit of one side in one order."""

    coefficients: F8
    predictor: F8
    target: F8
    misfit: float


class RetargetingSolution(NamedTuple):
    """The best state of a run of alternations."""

    lists: PredictorFit
    features: PredictorFit
    objective: float
    turns: int
    history: list[float]  # the objective after each alternation
    trace: list[tuple[F8, F8]]  # both predictors after each alternation, if requested


def compute_largest_margin(sizes: I8) -> float:
    """The largest margin that targets of root mean square 1 can keep in queries of these sizes."""
    # the places 1 .. n of a query, centered, have the squares n (n^2 - 1) / 12
    places = float(np.sum(sizes * (sizes.astype(np.float64) ** 2 - 1))) / 12
    return float(np.sqrt(sizes.sum() / places)) if places > 0 else np.inf


def compute_target(predictor: F8, order: BlockOrder, margin: float = 0.0) -> F8:
    """The target nearest to a predictor in a fixed order, with mean 0 per query and root mean square 1.

    Without a fixed scale, target and predictor could both shrink to 0 and fit trivially. A margin holds at
    that scale: where blocks a margin apart leave too little room for the predictor, it counts less.
    """

    unit = scale_to_unit(predictor)

    def project(factor: float) -> F8:
        return center_by_query(project_isotonic(factor * unit, order, margin), order.starts)

    target = project(1.0)
    if margin and root_mean_square(target) > 1:
        low, high = 0.0, 1.0
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            low, high = (low, middle) if root_mean_square(project(middle)) > 1 else (middle, high)
        target = project(low)
    # enlarging keeps the margin
    return scale_to_unit(target)


def retarget_predictor(
    side: LinearPredictor, order: BlockOrder, coefficients: F8, settings: RetargetingSettings
) -> PredictorFit:
    """Fit a side in a fixed order, starting from its coefficients, until the misfit stops falling."""
    best: PredictorFit | None = None
    predictor = side.predict(coefficients)
    for _ in range(settings.steps):
        target = compute_target(predictor, order, settings.margin)
        coefficients = side.fit(target, coefficients)
        predictor = side.predict(coefficients)
        if root_mean_square(predictor) <= NOTHING:
            break
        misfit = side.compute_misfit(target, predictor)
        if best is not None and misfit >= best.misfit - settings.tolerance:
            break
        best = PredictorFit(coefficients, predictor, target, misfit)
    if best is None:
        width = side.columns.shape[1]
        best = PredictorFit(np.zeros(width), np.zeros(len(order.rows)), np.zeros(len(order.rows)), 1.0)
    return best


def alternate_fits(
    lists: LinearPredictor,
    features: LinearPredictor,
    weights: F8,
    settings: RetargetingSettings,
    *,
    handover: bool,
    traced: bool = False,
) -> RetargetingSolution:
    """Alternate from the order of the weighted lists until the objective, the sum of misfits, stops falling.

    A side starts from its own predictor, which finds states where both sides agree; with `handover` from a
    regression on the other side's target, which moves further.
    """
    starts, grades = lists.starts, settings.grades
    predictor = lists.predict(weights)
    one = PredictorFit(weights, predictor, scale_to_unit(predictor), 0.0)
    begin = features.fit(one.target)
    two = PredictorFit(begin, features.predict(begin), one.target, 1.0)
    best: RetargetingSolution | None = None
    history: list[float] = []
    trace: list[tuple[F8, F8]] = []
    for turn in range(1, settings.turns + 1):
        begin = features.fit(one.target) if handover else two.coefficients
        order = build_block_order(one.target, starts, features.predict(begin), grades)
        two = retarget_predictor(features, order, begin, settings)
        objective = one.misfit + two.misfit
        history.append(objective)
        if traced:
            trace.append((one.predictor, two.predictor))
        if best is None or objective < best.objective - settings.tolerance:
            best = RetargetingSolution(one, two, objective, turn, history, trace)
        elif turn - best.turns >= PATIENCE:
            break
        begin = lists.fit(two.target) if handover else one.coefficients
        order = build_block_order(two.target, starts, lists.predict(begin), grades)
        found = retarget_predictor(lists, order, begin, settings)
        if root_mean_square(found.predictor) <= NOTHING:
            break
        one = found
    assert best is not None
    return best
