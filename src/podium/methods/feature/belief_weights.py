"""Beliefs about features: grades by name, and the weights that extend them to all features."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np

from podium.core.errors import ParameterError
from podium.core.params import Range, Tune, suggest_names
from podium.core.progress import Progress, no_progress
from podium.data.ids import Id
from podium.data.index import ItemIndex
from podium.kernels import segments
from podium.kernels.belief_lambdas import compute_belief_lambdas
from podium.kernels.dispatch import F8, I8
from podium.methods.costs import Cost, table_cost
from podium.methods.feature.feature_model import FeatureNormalizer

__all__ = ["BeliefFit", "BeliefLearner", "check_grades", "grades_for", "spread_beliefs"]

LARGEST = 2.0  # grade
STILL = 1e-13  # a gradient below this is rounding error
CLOSE = 1e-5  # a gradient below this counts as converged
LEAST = 1 / 64  # smallest step, as a fraction of a full one
MANY = 12  # names listed in one message
TYPICAL_PASSES = 40
PAIR = 4  # operations per pair of items in one pass (measured)
FEWER = (
    "learn from fewer items per query (fit on a sample of them, then rank all), or use a method such as rrf"
)


class BeliefFit(NamedTuple):
    """The weights, and how they were computed."""

    weights: F8
    history: list[dict[str, float]]  # by pass: objective, loss, largest absolute gradient
    converged: bool


@dataclass(kw_only=True, eq=False, repr=False)
class BeliefLearner:
    """The parameters of learning from beliefs, shared by the model over features and the aggregator."""

    beliefs: Annotated[
        Mapping[Id, float] | None, "grades of experts and features, by name; default: 1 for every expert"
    ] = None
    normalize: FeatureNormalizer = "range"
    l2: Annotated[
        float,
        Range(1e-6, 1e6),
        Tune(0.01, 10, log=True),
        "penalty on the squared distance from kept * beliefs",
    ] = 0.5
    kept: Annotated[
        float,
        Range(0, 1),
        Tune(0, 1),
        "fraction of the beliefs that the penalty does not shrink; 0 is the published rule",
    ] = 0.5
    cutoff: Annotated[int, Range(1, 1_000_000_000), "top places whose pairs count"] = 10
    passes: Annotated[int, Range(1, 100_000), "maximum number of passes over the queries"] = 200

    def _estimate_fit_costs(self, sizes: I8) -> list[Cost]:
        """Cost of learning, from the items per query."""
        return table_cost(sizes, square=PAIR * min(self.passes, TYPICAL_PASSES), remedy=FEWER)

    def _fit_beliefs(
        self, index: ItemIndex, values: F8, grades: F8, progress: Progress = no_progress
    ) -> BeliefFit:
        """Weights of normalized columns, one row per slot."""
        # queries by id, so that learning does not depend on the order of the rows
        starts, rows = segments.gather_segments(index.starts, index.queries.codes_by_id())
        settings = {name: getattr(self, name) for name in ("l2", "kept", "cutoff", "passes")}
        return spread_beliefs(values[rows], starts, grades, **settings, progress=progress)


def check_grades(beliefs: Mapping[Id, float], what: str) -> None:
    """Check that grades are numbers in [-2, 2] and not all 0."""
    if not isinstance(beliefs, Mapping):
        raise ParameterError(
            f"{what}: the beliefs are {beliefs!r}; give grades by name, such as {{'bm25': 2}}"
        )
    for name, grade in beliefs.items():
        number = isinstance(grade, int | float | np.number) and not isinstance(grade, bool)
        if not number or not math.isfinite(grade) or abs(grade) > LARGEST:
            raise ParameterError(
                f"{what}: the grade of {name!r} is {grade!r}; accepted: numbers from -2 (surely bad) to 2 (surely good)"
            )
    if not any(beliefs.values()):
        raise ParameterError(f"{what}: no feature has a nonzero grade; grade at least one")


def grades_for(beliefs: Mapping[Id, float] | Mapping[str, float], names: Sequence[object], what: str) -> F8:
    """One grade per column, 0 without a belief; an unknown name raises an error."""
    place: dict[object, int] = {str(name): k for k, name in enumerate(names)}
    # an exact name takes precedence over one that only prints the same
    place |= {name: k for k, name in enumerate(names)}
    grades = np.zeros(len(names))
    for name, grade in beliefs.items():
        if name not in place:
            known = [str(n) for n in names]
            hint = suggest_names(str(name), known)
            if len(known) > MANY and hint.startswith("known"):  # none is similar
                hint = f"there are {len(known)}: {', '.join(known[:MANY])}, ..."
            raise ParameterError(f"{what}: there is no feature {name!r}; {hint}")
        grades[place[name]] = grade
    return grades


def spread_beliefs(
    values: F8,
    starts: I8,
    grades: F8,
    *,
    l2: float,
    kept: float,
    cutoff: int,
    passes: int,
    progress: Progress = no_progress,
) -> BeliefFit:
    """Weights that balance the believed preferences against the penalty.

    With the pair weights of the current order fixed, the objective is the mean over queries of the loss of
    `kernels.belief_lambdas` (pair weights of a query sum to 1) plus l2 / 2 |w - kept * grades|^2. It is
    convex. A step descends along its gradient, preconditioned by the features' covariance; then the pair
    weights are recomputed. Deterministic; the step is halved whenever the gradient grew.
    """
    anchor, weights, step = kept * grades, grades.copy(), 1.0
    belief, sizes = np.einsum("ij,j->i", values, grades), np.diff(starts)
    # the covariance within queries approximates the Hessian, so that correlated features do not slow the descent
    share = np.repeat(1.0 / np.maximum(sizes, 1) / max(len(sizes), 1), sizes)
    metric = np.linalg.inv(l2 * np.eye(len(grades)) + (values * share[:, None]).T @ values)
    history: list[dict[str, float]] = []
    best, steepest = weights, np.inf
    for done in range(1, passes + 1):
        scores = np.einsum("ij,j->i", values, weights)
        lambdas = compute_belief_lambdas(scores, belief, starts, cutoff)
        # queries with a pair to learn from weigh the same
        useful = lambdas.mass > 0
        share = np.where(useful, 1.0 / np.where(useful, lambdas.mass, 1.0), 0.0) / max(int(useful.sum()), 1)
        loss, off = float(lambdas.loss @ share), weights - anchor
        slope = np.einsum("ij,i->j", values, lambdas.slope * np.repeat(share, sizes)) - l2 * off
        size = float(np.abs(slope).max(initial=0.0))
        history.append({"objective": loss + l2 / 2 * float(off @ off), "loss": loss, "slope": size})
        progress(done, passes, "learning")
        grew = len(history) > 1 and size > history[-2]["slope"]
        # new pair weights change the objective, so the gradient can grow: damp until it falls again
        step = max(step / 2, LEAST) if grew else min(1.2 * step, 1.0)
        if size < steepest:
            best, steepest = weights, size
        if size <= STILL:
            break
        weights = weights + step * np.einsum("ij,j->i", metric, slope)
    return BeliefFit(best, history, steepest <= CLOSE)
