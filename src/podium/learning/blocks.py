"""Blocks of examples, which a model is trained on: all of them in memory, or one block per shard."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from podium.kernels.dispatch import F8, I8
from podium.kernels.lambdas import OptimizerState
from podium.learning.examples import Examples
from podium.learning.plan import Plan
from podium.metrics.base import MetricSpec

__all__ = ["Block", "BlockSource", "InMemoryBlock"]


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

    def iterate_blocks(self, random: np.random.Generator | None = None) -> Generator[Block]:
        """The blocks one after another, in random order where a generator is given."""


@dataclass(frozen=True)
class InMemoryBlock:
    """All examples as one block."""

    block: Block

    def iterate_blocks(self, random: np.random.Generator | None = None) -> Generator[Block]:
        """The block."""
        yield self.block
