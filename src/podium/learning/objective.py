"""What is trained on: examples in memory, as one block or one block per shard, and their validation metric."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from podium.kernels.dispatch import F8, I8
from podium.kernels.lambdas import OptimizerState
from podium.learning.examples import Examples
from podium.learning.plan import Plan
from podium.metrics.base import MetricSpec

__all__ = ["Block", "BlockObjective", "BlockSource", "InMemoryBlock", "Objective"]


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


class Block(ABC):
    """Examples in memory with all that their scores are computed from.

    A block is trained on if it has a `metric`, otherwise it serves for validation. With `shards` it is one of
    that many, and may lack a training signal.
    """

    def __init__(
        self, examples: Examples, plan: Plan, metric: MetricSpec | None = None, *, shards: int = 0
    ) -> None:
        self.examples, self.plan = examples, plan
        self.useful = np.zeros(0, np.int64)
        if metric is not None:
            self.target, self.useful = examples.learning_target(metric, require_signal=not shards)
        # number of kernel calls, which decides whether compiling pays off
        self.calls = plan.passes * max(shards, 1)

    @abstractmethod
    def compute_scores(self, weights: F8) -> F8:
        """One score per example."""

    @abstractmethod
    def visit_queries(
        self, visit: I8, optimizer: OptimizerState, random: np.random.Generator
    ) -> tuple[float, float]:
        """Steps over the queries in this order; returns what `Objective.run_pass` does."""


class BlockSource(Protocol):
    """Where the blocks of a pass come from."""

    @property
    def threads(self) -> bool:
        """Whether several threads may iterate over the blocks at once."""

    def iterate_blocks(self, random: np.random.Generator | None = None) -> Generator[Block]:
        """The blocks one after another, in random order where a generator is given."""


@dataclass(frozen=True)
class InMemoryBlock:
    """All examples as one block."""

    block: Block

    @property
    def threads(self) -> bool:
        """A device serves one thread at a time."""
        return self.block.plan.device == "cpu"

    def iterate_blocks(self, random: np.random.Generator | None = None) -> Generator[Block]:
        """The block."""
        yield self.block


@dataclass(frozen=True)
class BlockObjective:
    """The objective of every method that is trained on blocks; a step never crosses their boundaries."""

    training: BlockSource
    validation: BlockSource | None
    choose_by: MetricSpec
    init_weights: Callable[[np.random.Generator], F8]
    center: F8 | None = None
    nonnegative: bool = False

    @property
    def threads(self) -> bool:
        """Whether the training blocks can be shared."""
        return self.training.threads

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
