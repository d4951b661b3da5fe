"""Training objectives: a pass over the queries and an evaluation on validation data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from podium.kernels import segments
from podium.kernels.dispatch import F8, I8
from podium.kernels.lambdas import (
    MetricTarget,
    OptimizerState,
    compute_lambdas,
    train_linear_pass,
    update_weights,
)
from podium.metrics.base import MetricSpec

if TYPE_CHECKING:
    from podium.learning.networks import Network
    from podium.methods.learned.learner import Learner, LearningTask

__all__ = ["InMemoryObjective", "Objective"]


class Objective(Protocol):
    """Training passes and validation over examples with a fixed number of features."""

    width: int
    threads: bool  # whether several members may be trained at once

    def run_pass(self, optimiser: OptimizerState, random: np.random.Generator) -> None:
        """Run one pass in random order; the optimizer's weights are updated in place."""

    def validate(self, weights: F8) -> float | None:
        """The validation metric of the weights, None without validation data."""


class InMemoryObjective:
    """Examples in memory, copied to a device once; with `shards` this one may lack a training signal."""

    def __init__(self, learner: Learner, task: LearningTask, metric: MetricSpec, *, shards: int = 0) -> None:
        self.learner, self.task, self.width = learner, task, task.values.shape[1]
        self.network = learner._build_network(self.width)
        self.target, self.useful = task.examples.learning_target(metric, teaches=not shards)
        # number of kernel calls, which decides whether compiling pays off
        self.calls = learner.passes * max(shards, 1)
        self.threads = learner.device == "cpu"
        self.there: Any = None
        self.check: Any = None

    def _move_to_device(self) -> None:
        """Copy everything to the device, if any; deferred until needed, as this may wait for the device."""
        if self.threads or self.there is not None:
            return
        from podium.kernels.device.lambdarank_training import DeviceObjective, DeviceScorer
        from podium.kernels.device.torch_device import resolve_device

        task, where, widths = self.task, resolve_device(self.learner.device), self.network.widths
        self.there = DeviceObjective(where, task.values, task.examples.starts, self.target, widths)
        if task.check_values is not None:
            self.check = DeviceScorer(where, task.check_values, widths)

    def run_pass(self, optimiser: OptimizerState, random: np.random.Generator) -> None:
        if not len(self.useful):
            return
        visit, batch = random.permutation(self.useful), self.learner.batch
        self._move_to_device()
        if self.there is not None:
            self.there.learn(visit, batch, optimiser)
            return
        starts, values = self.task.examples.starts, self.task.values
        if not self.network.hidden:
            train_linear_pass(values, starts, self.target, visit, batch, optimiser, self.calls)
        else:
            train_network_pass(self.network, values, starts, self.target, visit, batch, optimiser)

    def validate(self, weights: F8) -> float | None:
        check, values = self.task.check, self.task.check_values
        if check is None or values is None:
            return None
        found = (
            self.network.compute_scores(weights, values) if self.check is None else self.check.scores(weights)
        )
        return check.compute_mean_metric(found, self.learner.choose_by)


def train_network_pass(
    network: Network,
    values: F8,
    starts: I8,
    target: MetricTarget,
    visit: I8,
    batch: int,
    optimiser: OptimizerState,
) -> None:
    """Visit queries in this order, with a step after every `batch`, for hidden layers."""
    for first in range(0, len(visit), batch):
        chosen = visit[first : first + batch]
        offsets, rows = segments.gather_segments(starts, chosen)
        some = values[rows]
        slope = compute_lambdas(
            network.compute_scores(optimiser.weights, some), offsets, target.select_queries(rows, chosen)
        )
        update_weights(optimiser, network.compute_gradient(optimiser.weights, some, slope) / len(chosen))
