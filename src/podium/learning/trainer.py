"""Training: blocks of examples in memory or in shards, the objective, the loop of passes and the choice of the best."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from podium.core.progress import Progress, no_progress
from podium.kernels import dispatch
from podium.kernels.dispatch import F8, I8
from podium.kernels.lambdas import OptimizerState
from podium.learning.examples import Examples
from podium.learning.plan import ALL_PASSES, Plan
from podium.metrics.base import MetricSpec

__all__ = ["Block", "BlockSource", "Objective", "TrainedWeights", "train", "train_members"]


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
        # a copy on the device of the plan, made on first use by the thread that trains
        self.on_device: Any = None

    def iterate_blocks(self, random: np.random.Generator | None = None) -> Generator[Block]:
        """Itself: all examples as one block."""
        yield self

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


class TrainedWeights(NamedTuple):
    """The weights of the best pass by the validation metric, or of the last pass.

    The last one without validation data, and with `Plan.kept_pass` "last".
    """

    weights: F8
    pass_number: int
    quality: float  # by the validation metric; -inf without validation data
    losses: F8  # mean loss of each pass, 0 where the objective does not compute it


def train(
    objective: Objective, plan: Plan, seed: int | tuple[int, ...], progress: Progress = no_progress
) -> TrainedWeights:
    """Improve the weights of an objective pass by pass.

    Weights that are averaged over a number of passes are compared only once there are that many: an average
    over fewer passes would be selected by chance.
    """
    random = np.random.default_rng(seed)
    weights = objective.init_weights(random)
    adam = np.zeros_like(weights), np.zeros_like(weights), np.zeros(1, np.int64)
    total, mean, losses = np.zeros_like(weights), np.zeros_like(weights), np.zeros(plan.passes)
    best, kept, best_quality = weights.copy(), 0, -np.inf
    for done in range(1, plan.passes + 1):
        rate = plan.rate / (1 + (done - 1) / plan.decay) if plan.decay else plan.rate
        lost, weight = objective.run_pass(
            OptimizerState(
                weights,
                *adam,
                plan.optimizer == "adam",
                rate,
                plan.l2,
                objective.nonnegative,
                objective.center,
            ),
            random,
        )
        losses[done - 1] = lost / max(weight, 1e-300)
        current, quality = weights, None
        if plan.average == ALL_PASSES:
            total += weights
            current = total / done
        elif plan.average is not None:
            mean += (weights - mean) / min(done, plan.average)
            current = mean
        if done >= min(plan.average or 1, plan.passes):
            quality = objective.validate(current)
            if quality is None or quality > best_quality or plan.kept_pass == "last":
                best, kept = current.copy(), done
                best_quality = -np.inf if quality is None else quality
        progress(done, plan.passes, "learning")
        if quality is not None and plan.patience and done - kept >= plan.patience:
            break
    return TrainedWeights(best, kept, float(best_quality), losses)


class _StopTraining(Exception):
    """A member stops because another one failed."""


def train_members(objective: Objective, plan: Plan, progress: Progress) -> list[TrainedWeights]:
    """Train all members, in threads if possible; when one fails or the user interrupts, all stop soon."""
    stopped = threading.Event()

    def run_member(number: int) -> TrainedWeights:
        def report_progress(done: int, total: int, what: str) -> None:
            if stopped.is_set():
                raise _StopTraining
            progress(number * total + done, plan.members * total, what)

        try:
            return train(objective, plan, (plan.seed, number), report_progress)
        except BaseException:
            stopped.set()
            raise

    with ThreadPoolExecutor(min(plan.members, dispatch.count_threads()) if objective.threads else 1) as pool:
        jobs = [pool.submit(run_member, number) for number in range(plan.members)]
        try:
            wait(jobs)
        except BaseException:
            stopped.set()  # an interrupt reaches only this thread
            raise
    problems = [problem for job in jobs if (problem := job.exception()) is not None]
    if problems:  # report the cause rather than its effects
        raise next((p for p in problems if not isinstance(p, _StopTraining)), problems[0])
    return [job.result() for job in jobs]
