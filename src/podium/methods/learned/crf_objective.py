"""Training objectives of the CRF: steps on a few items per query, in memory or shard by shard."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from podium.kernels import ranking_expectations
from podium.kernels.dispatch import F8
from podium.kernels.lambdas import OptimizerState
from podium.kernels.ranking_expectations import Potentials
from podium.learning.examples import Examples
from podium.metrics.base import MetricSpec

if TYPE_CHECKING:
    from podium.methods.learned.crf import CrfAggregator

__all__ = ["CrfObjective", "CrfValidation", "InMemoryCrfObjective"]


class CrfObjective(Protocol):
    """Training passes and validation for the CRF."""

    def run_pass(self, optimiser: OptimizerState, random: np.random.Generator) -> tuple[float, float]:
        """One pass: the sum of the weighted losses, and of the weights."""

    def validate(self, weights: F8) -> float | None:
        """The validation metric for weights (groups, 3), None without validation data."""


class CrfValidation:
    """Validation data: potentials of their items, and the metric of their scores."""

    def __init__(self, mine: Potentials, examples: Examples, choose_by: MetricSpec) -> None:
        self.mine, self.examples, self.choose_by = mine, examples, choose_by

    def sum_metric(self, weights: F8) -> tuple[float, float]:
        """The weighted sum of the metric, and the sum of the weights."""
        return self.examples.sum_metric(
            ranking_expectations.compute_row_scores(self.mine, weights), self.choose_by
        )


class InMemoryCrfObjective:
    """Examples in memory, with their potentials; with `shards` this one may lack a training signal."""

    def __init__(
        self,
        model: CrfAggregator,
        mine: Potentials,
        examples: Examples,
        metric: MetricSpec,
        check: CrfValidation | None = None,
        *,
        shards: int = 0,
    ) -> None:
        self.model, self.mine, self.examples, self.check = model, mine, examples, check
        self.target, self.visit = examples.learning_target(metric, teaches=not shards)
        # number of kernel calls, which decides whether compiling pays off
        self.calls = model.passes * max(shards, 1)
        self.there: Any = None

    def run_pass(self, optimiser: OptimizerState, random: np.random.Generator) -> tuple[float, float]:
        """Run one pass in random order."""
        model, examples, target = self.model, self.examples, self.target
        turn = random.permutation(self.visit)
        draws = random.random((len(turn), 2 * model.subset))
        if not len(turn):
            return 0.0, 0.0
        rows = ranking_expectations.sample_subsets(
            examples.starts, target.level, turn, model.subset, draws, self.calls
        )
        if model.device == "cpu":
            plan = (target, examples.weight, turn, rows, model.batch, optimiser, self.calls)
            loss = ranking_expectations.train_crf_pass(self.mine, *plan)
        else:
            loss = self._load_device_crf(len(optimiser.weights) // 3).learn(
                turn, rows, model.batch, optimiser
            )
        weight = float(examples.weight[turn].sum())
        return loss * weight, weight

    def _load_device_crf(self, groups: int) -> Any:
        if self.there is None:
            from podium.kernels.device.ranking_expectations import DeviceCrf
            from podium.kernels.device.torch_device import resolve_device

            told = (self.target, self.examples.weight, self.examples.starts, groups, self.model.subset)
            self.there = DeviceCrf(resolve_device(self.model.device), self.mine, *told)
        return self.there

    def validate(self, weights: F8) -> float | None:
        """Evaluate on the validation data."""
        if self.check is None:
            return None
        total, weight = self.check.sum_metric(weights)
        return total / max(weight, 1e-300)
