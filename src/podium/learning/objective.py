"""What training improves: passes over blocks of examples, in memory or shard by shard, and the validation metric."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from podium.kernels.dispatch import F8, I8
from podium.kernels.lambdas import OptimizerState
from podium.learning.examples import Examples
from podium.learning.plan import Plan
from podium.metrics.base import MetricSpec

__all__ = ["Block", "BlockSource", "InMemoryBlock", "Objective"]


@dataclass(kw_only=True)
class Block(ABC):
    """Examples in memory with all that their scores are computed from.

    A block is trained on if it has a `metric`, otherwise it serves for validation. With `shards` it is one of
    that many, and may lack a training signal.
    """

    examples: Examples
    plan: Plan
    metric: MetricSpec | None = None
    shards: int = 0

    def __post_init__(self) -> None:
        self.useful = np.zeros(0, np.int64)  # the queries with a training signal
        if self.metric is not None:
            self.target, self.useful = self.examples.learning_target(
                self.metric, require_signal=not self.shards
            )
        # number of kernel calls, which decides whether compiling pays off
        self.calls = self.plan.passes * max(self.shards, 1)
        self.on_device: Any = (
            None  # a copy on the device of the plan, made on first use by the thread that trains
        )

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

    def iterate_blocks(self, random: np.random.Generator | None = None) -> Generator[Block]:
        """The blocks one after another, in random order where a generator is given."""


@dataclass(frozen=True)
class InMemoryBlock:
    """All examples as one block."""

    block: Block

    def iterate_blocks(self, random: np.random.Generator | None = None) -> Generator[Block]:
        """The block."""
        yield self.block


@dataclass(frozen=True)
class Objective:
    """Weights, as training sees them: where they start, how a pass changes them, and how good they are."""

    training: BlockSource
    validation: BlockSource | None
    choose_by: MetricSpec
    init_weights: Callable[[np.random.Generator], F8]
    center: F8 | None = None  # the point towards which the penalty shrinks the weights; None for 0
    nonnegative: bool = False
    threads: bool = False  # whether several members may be trained at once

    def run_pass(self, optimizer: OptimizerState, random: np.random.Generator) -> tuple[float, float]:
        """Visit all useful queries in random order, and update the weights; no step crosses blocks.

        Returns the sum of the weighted losses and that of the weights, both 0 where no loss is computed.
        """
        lost, weight = 0.0, 0.0
        with closing(self.training.iterate_blocks(random)) as blocks:
            for block in blocks:
                if len(block.useful):
                    more = block.visit_queries(random.permutation(block.useful), optimizer, random)
                    lost, weight = lost + more[0], weight + more[1]
        return lost, weight

    def validate(self, weights: F8) -> float | None:
        """The mean of the metric over all validation queries, None without validation data."""
        if self.validation is None:
            return None
        total, mass = 0.0, 0.0
        with closing(self.validation.iterate_blocks()) as blocks:
            for block in blocks:
                more = block.examples.sum_metric(block.compute_scores(weights), self.choose_by)
                total, mass = total + more[0], mass + more[1]
        return total / max(mass, 1e-300)
