"""Whether a fitted model is at least as good as the methods that need no fitting, on queries it has not seen.

The rivals are `rrf` (`copeland` for votes) and the expert that is best on the training queries. A model fails if
its mean is below that of a rival by more than one standard error of the paired difference: one lower mean on few
queries proves nothing, and a model that is as good as its rival fails in about one case of six.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from podium.core.errors import PodiumError, capture_warnings
from podium.core.tables import format_decimal
from podium.core.text import format_count
from podium.data.dataset import Dataset
from podium.evaluate.tuning.nested_estimate import BEST_EXPERT
from podium.evaluate.tuning.result import Tuning
from podium.evaluate.tuning.score_table import TuningTask, find_best, fit_config, measure_method
from podium.evaluate.tuning.search_space import MethodSpace
from podium.kernels.dispatch import F8
from podium.methods.base import Aggregator
from podium.methods.learned.baseline_comparison import make_baseline
from podium.metrics.base import Metric, parse

__all__ = ["GainCheck", "GainRow", "check_tuning", "cross_validate_gain", "measure_gain"]

USUAL = "ndcg@10"  # for a model that does not define `choose_by`
LEAST = 3  # judged queries for a cross-validation


@dataclass(frozen=True)
class GainRow:
    """A rival, and how much better the model is."""

    name: str
    mean: float
    difference: float  # model minus rival
    error: float  # standard error of the difference; 0 for a single query


@dataclass(frozen=True)
class GainCheck:
    """The mean of a model and of its rivals on queries that the model was not fitted on."""

    metric: str
    value: float
    queries: int
    where: str  # validation, or cross-validation
    rows: tuple[GainRow, ...]

    @classmethod
    def from_values(cls, metric: Metric, own: F8, rivals: Mapping[str, F8], where: str) -> GainCheck:
        """From values by query.

        >>> rivals = {"rrf": np.array([0.6, 0.7, 0.8])}
        >>> check = GainCheck.from_values(parse("ndcg@10"), np.array([0.5, 0.5, 0.7]), rivals, "validation")
        >>> [round(row.error, 4) for row in check.find_failures()]
        [0.0333]
        """
        rows = []
        for name, values in rivals.items():
            d = own - values
            error = float(d.std(ddof=1)) / math.sqrt(len(d)) if len(d) > 1 else 0.0
            rows.append(GainRow(name, float(values.mean()), float(d.mean()), error))
        return cls(str(metric), float(own.mean()), len(own), where, tuple(rows))

    def find_failures(self) -> tuple[GainRow, ...]:
        """The rivals that the model is worse than by more than one standard error, the worst first."""
        failed = [r for r in self.rows if r.difference < -r.error - 1e-12]
        return tuple(sorted(failed, key=lambda r: r.difference))

    def describe_failure(self, name: str) -> str:
        """Why the model of this name fails, with figures; empty if it does not."""
        failed = self.find_failures()
        if not failed:
            return ""
        worst = failed[0]
        queries = format_count(self.queries, "query", "queries")
        return (
            f"on {queries} of {self.where} {name} has {self.metric} {format_decimal(self.value)}, which is below "
            f"{worst.name} ({format_decimal(worst.mean)}) by {format_decimal(-worst.difference)}, more than one "
            f"standard error ({format_decimal(worst.error)})"
        )


def check_tuning(tuning: Tuning) -> GainCheck | None:
    """The check of a search by its nested estimate; None without held-out queries."""
    if tuning.folds < 2:
        return None
    rivals = {tuning.baseline: tuning.values[tuning.rows[0].name]}
    if BEST_EXPERT in tuning.values:
        rivals["the best expert"] = tuning.values[BEST_EXPERT]
    return GainCheck.from_values(tuning.metric, tuning.values["tuned"], rivals, "nested cross-validation")


def measure_gain(model: Aggregator, train: Dataset, held: Dataset) -> GainCheck | None:
    """Compare a fitted model on the judged queries of `held`; None if it cannot rank them, or none is judged."""
    metric = parse(getattr(model, "choose_by", USUAL))
    try:
        with capture_warnings():
            task, columns = _build_task(held, metric)
            own = measure_method(task, model, columns)
            rivals = {(base := make_baseline(held)).name: measure_method(task, base, columns)}
            known = _build_task(train, metric)[0].expert_values
            if len(known):
                best = train.preferences.experts[int(find_best(known.mean(axis=1)))]
                # an expert that answers none of these queries has 0 everywhere
                unknown = held.preferences.experts.code_of(best) is None
                rivals[f"the best expert, {best}"] = (
                    np.zeros(len(own)) if unknown else task.measure_expert(best)
                )
    except PodiumError:
        return None
    return GainCheck.from_values(metric, own, rivals, "validation")


def cross_validate_gain(model: Aggregator, data: Dataset, seed: int = 0) -> GainCheck | None:
    """Compare the method of a model with its rivals by cross-validation; None below three judged queries."""
    metric = parse(getattr(model, "choose_by", USUAL))
    config = MethodSpace.from_spec(model, False).build_config()
    try:
        with capture_warnings():
            task, columns = _build_task(data, metric, seed)
            if len(task) < LEAST:
                return None
            experts = task.expert_values
            own, best = np.empty(len(task)), np.empty(len(task))
            for fold in range(task.fold_count):
                inside, outside = np.flatnonzero(task.fold == fold), np.flatnonzero(task.fold != fold)
                own[inside] = measure_method(task, fit_config(task, config, outside), inside)
                if len(experts):
                    best[inside] = experts[find_best(experts[:, outside].mean(axis=1))][inside]
            base = make_baseline(data)
            rivals: dict[str, Any] = {base.name: measure_method(task, base, columns)}
    except PodiumError:
        return None
    if len(experts):
        rivals["the best expert"] = best
    return GainCheck.from_values(metric, own, rivals, "cross-validation")


def _build_task(data: Dataset, metric: Metric, seed: int = 0) -> tuple[TuningTask, Any]:
    task = TuningTask.from_dataset(data, metric, "item", None, seed)
    return task, np.arange(len(task))
