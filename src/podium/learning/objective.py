"""What training improves: passes over blocks of examples, and the validation metric."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from podium.kernels.dispatch import F8
from podium.kernels.lambdas import OptimizerState
from podium.learning.blocks import BlockSource
from podium.metrics.base import MetricSpec

__all__ = ["BlockObjective", "Objective"]


class Objective(Protocol):
    """Training passes over weights, and their evaluation on validation data."""

    @property
    def center(self) -> F8 | None:
        """The point towards which the penalty shrinks the weights; None for 0."""

    @property
    def nonnegative(self) -> bool:
        """Whether weights stay at 0 or above."""

    @property
    def threads(self) -> bool:
        """Whether several members may be trained at once."""

    def init_weights(self, random: np.random.Generator) -> F8:
        """The weights before the first pass."""

    def run_pass(self, optimizer: OptimizerState, random: np.random.Generator) -> tuple[float, float]:
        """One pass in random order, which updates the weights in place.

        Returns the sum of the weighted losses and that of the weights, both 0 where no loss is computed.
        """

    def validate(self, weights: F8) -> float | None:
        """The validation metric of the weights, None without validation data."""


@dataclass(frozen=True)
class BlockObjective:
    """The objective of every method that is trained on blocks; a step never crosses their boundaries."""

    training: BlockSource
    validation: BlockSource | None
    choose_by: MetricSpec
    init_weights: Callable[[np.random.Generator], F8]
    center: F8 | None = None
    nonnegative: bool = False
    threads: bool = False

    def run_pass(self, optimizer: OptimizerState, random: np.random.Generator) -> tuple[float, float]:
        """Visit the useful queries of all blocks once."""
        lost, weight = 0.0, 0.0
        with closing(self.training.iterate_blocks(random)) as blocks:
            for block in blocks:
                if len(block.useful):
                    more = block.visit_queries(random.permutation(block.useful), optimizer, random)
                    lost, weight = lost + more[0], weight + more[1]
        return lost, weight

    def validate(self, weights: F8) -> float | None:
        """The mean of the metric over the queries of all validation blocks."""
        if self.validation is None:
            return None
        total, mass = 0.0, 0.0
        with closing(self.validation.iterate_blocks()) as blocks:
            for block in blocks:
                more = block.examples.sum_metric(block.compute_scores(weights), self.choose_by)
                total, mass = total + more[0], mass + more[1]
        return total / max(mass, 1e-300)
