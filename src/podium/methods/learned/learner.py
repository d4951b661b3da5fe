"""LambdaRank: the parameters of the learner, and the training that methods with features share."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

import numpy as np

from podium.core.errors import Option, ParameterError
from podium.core.params import Choice, Fixed, Range, Tune
from podium.kernels import dispatch
from podium.kernels.dispatch import F8
from podium.kernels.lambdas import OptimizerState
from podium.learning.examples import Examples, Progress, no_progress
from podium.learning.networks import Network
from podium.methods.learned.objectives import InMemoryObjective, Objective
from podium.metrics.base import parse
from podium.metrics.targets import parse_learnable

if TYPE_CHECKING:
    from podium.methods.learned.supervised_method import Training

__all__ = [
    "Average",
    "Batch",
    "Decay",
    "Device",
    "Learner",
    "LearningTask",
    "Members",
    "Optimizer",
    "Passes",
    "Penalty",
    "Rate",
]

# declared once, so that methods can have other defaults
Optimizer = Annotated[str, Choice("adam", "sgd"), "optimizer"]
Rate = Annotated[float, Range(0, 1000, open_low=True), Tune(0.001, 0.1, log=True), "learning rate"]
Decay = Annotated[float, Range(0, 1e6), "passes after which the learning rate is halved; 0 keeps it constant"]
Passes = Annotated[int, Range(1, 100_000), "maximum number of passes over the queries"]
Batch = Annotated[int, Range(1, 1_000_000), "queries per step"]
Penalty = Annotated[float, Range(0, 1e6), Tune(1e-5, 0.1, log=True), "penalty on the squared weights"]
Average = Annotated[bool, "use the mean of the weights after each pass"]
Members = Annotated[int, Range(1, 1000), "number of models with different seeds, whose scores are averaged"]
Device = Annotated[
    str,
    Choice("cpu", "cuda", "cuda64", "torch"),
    Fixed(),
    "where to train: with NumPy, on a CUDA device in single or double precision, or with PyTorch on the CPU "
    "(extra torch)",
]


@dataclass(frozen=True)
class LearningTask:
    """Features of the training examples and, if any, of the validation examples."""

    values: F8
    examples: Examples
    check_values: F8 | None = None
    check: Examples | None = None
    progress: Progress = no_progress

    @classmethod
    def from_training(cls, training: Training, values: Callable[[Training], F8]) -> LearningTask:
        """Features of the training and validation examples that a method was given."""
        check = training.validation
        task = cls(values(training), training.examples, progress=training.progress)
        return task if check is None else replace(task, check_values=values(check), check=check.examples)


class _TrainingStopped(Exception):
    """A member stops because another one failed."""


@dataclass(kw_only=True, eq=False, repr=False)
class Learner:
    """Training settings of a scorer of features; the constructor only stores them.

    `optimizer="sgd"` with `batch=1` steps after every query as in the paper; Adam on small batches needs
    fewer passes. With validation data the best pass by `choose_by` is kept, and training ends after
    `patience` passes without improvement; otherwise the last pass is used, or the mean of the passes with
    `average`.
    """

    scorer: Annotated[
        str,
        Choice("lambdarank", "lambdamart"),
        "built-in LambdaRank, or LightGBM's boosted trees (extra lightgbm)",
    ] = "lambdarank"
    metric: Annotated[
        str, "metric to optimize: ndcg (any dialect), err, map, rbp ..., with or without a cutoff"
    ] = "ndcg:exp"
    choose_by: Annotated[str, "validation metric that selects the pass"] = "ndcg@10:exp"
    hidden: Annotated[int, Range(0, 4096), "units of each hidden layer; 0 makes a linear scorer"] = 0
    layers: Annotated[int, Range(1, 8), "number of hidden layers, if hidden > 0"] = 1
    optimizer: Optimizer = "adam"
    rate: Rate = 0.01
    decay: Decay = 0.0
    passes: Passes = 100
    patience: Annotated[
        int, Range(0, 100_000), "passes without improvement before early stopping; 0 disables it"
    ] = 0
    batch: Batch = 8
    l2: Penalty = 0.0
    average: Average = False
    standardise: Annotated[bool, "divide features by their standard deviation in training"] = False
    members: Members = 1
    seed: Annotated[int, Range(0, 2**31 - 1), "random seed"] = 0
    device: Device = "cpu"

    def _check_learner(self) -> None:
        parse_learnable(self.metric)
        parse(self.choose_by).check_cutoff()
        if self.scorer == "lambdamart" and str(parse(self.metric)) != "ndcg:exp":
            raise ParameterError(
                f"lambdamart optimizes ndcg:exp only, not {self.metric}; use ",
                Option("scorer", "lambdarank", of="method"),
            )
        if self.scorer == "lambdamart" and self.device != "cpu":
            asked, other = (
                Option("device", self.device, of="method"),
                Option("scorer", "lambdarank", of="method"),
            )
            raise ParameterError(asked, " trains LambdaRank; use ", other)

    @property
    def _is_linear(self) -> bool:
        return not self.hidden and self.scorer == "lambdarank"

    # -- learning --------------------------------------------------------------------------------------------

    def _train_scorer(self, task: LearningTask) -> None:
        """Learn `parameters_` (one row per member), or `trees_`; `passes_` is the pass that was kept."""
        self._measure_scale(task.values)
        if self.scorer == "lambdamart":
            self._train_trees(task)
            return
        values = np.ascontiguousarray(self._scale_values(task.values))
        check = (
            None if task.check_values is None else np.ascontiguousarray(self._scale_values(task.check_values))
        )
        task = LearningTask(values, task.examples, check, task.check, task.progress)
        self._fit_members(InMemoryObjective(self, task, self.metric), task.progress)

    def _fit_members(self, course: Objective, progress: Progress) -> None:
        found = self._train_members(course, progress)
        self.parameters_ = np.stack([parameters for parameters, _, _ in found])
        self.passes_ = [kept for _, kept, _ in found]
        self.quality_ = [float(q) for _, _, q in found]

    def _measure_scale(self, values: F8) -> None:
        """Set the values that features are centered at and divided by."""
        self.center_, self.scale_ = np.zeros(values.shape[1]), np.ones(values.shape[1])
        if self.standardise and len(values):
            self.center_, spread = values.mean(axis=0), values.std(axis=0)
            self.scale_ = np.where(spread > 1e-12, spread, 1.0)

    def _set_scale(self, count: int, mean: F8, squares: F8) -> None:
        """The same from the mean and the centered sum of squares over `count` rows."""
        self.center_, self.scale_ = np.zeros(len(mean)), np.ones(len(mean))
        if self.standardise and count:
            self.center_, spread = mean, np.sqrt(squares / count)
            self.scale_ = np.where(spread > 1e-12, spread, 1.0)

    def _train_trees(self, task: LearningTask) -> None:
        from podium.methods.learned import trees

        task.examples.learning_target(self.metric)  # raises where there is no training signal
        settings = {"patience": self.patience, "seed": self.seed, "choose_by": self.choose_by}
        grown = trees.train_trees(task, self.passes, self.rate, **settings)  # type: ignore[arg-type]
        self.trees_, self.passes_ = grown.text, [grown.rounds]

    def _train_members(self, course: Objective, progress: Progress) -> list[tuple[F8, int, float]]:
        """Train all members, in threads if possible; when one fails or the user interrupts, all stop soon."""
        stopped = threading.Event()

        def report_progress(done: int, total: int, what: str) -> None:
            if stopped.is_set():
                raise _TrainingStopped
            progress(done, total, what)

        def run_member(number: int) -> tuple[F8, int, float]:
            try:
                return self._train_member(course, report_progress, number)
            except BaseException:
                stopped.set()
                raise

        with ThreadPoolExecutor(min(self.members, dispatch.count_threads()) if course.threads else 1) as pool:
            jobs = [pool.submit(run_member, number) for number in range(self.members)]
            try:
                wait(jobs)
            except BaseException:
                stopped.set()  # an interrupt reaches only this thread
                raise
        problems = [problem for job in jobs if (problem := job.exception()) is not None]
        if problems:  # report the cause rather than its effects
            raise next((p for p in problems if not isinstance(p, _TrainingStopped)), problems[0])
        return [job.result() for job in jobs]

    def _train_member(self, course: Objective, progress: Progress, number: int) -> tuple[F8, int, float]:
        random = np.random.default_rng((self.seed, number))
        weights = self._init_weights(self._build_network(course.width), random)
        state = (np.zeros_like(weights), np.zeros_like(weights), np.zeros(1, np.int64))
        total, best, kept, best_quality = np.zeros_like(weights), weights.copy(), 0, -np.inf
        for done in range(1, self.passes + 1):
            rate = self.rate / (1 + (done - 1) / self.decay) if self.decay else self.rate
            adam, positive, towards = (
                self.optimizer == "adam",
                self._has_nonnegative_weights(),
                self._penalty_center(),
            )
            course.run_pass(OptimizerState(weights, *state, adam, rate, self.l2, positive, towards), random)
            total += weights
            now = total / done if self.average else weights
            quality = course.validate(now)
            if quality is None or quality > best_quality:
                best, kept, best_quality = now.copy(), done, -np.inf if quality is None else quality
            progress(number * self.passes + done, self.members * self.passes, "learning")
            if quality is not None and self.patience and done - kept >= self.patience:
                break
        return best, kept, best_quality

    def _build_network(self, width: int) -> Network:
        return Network(width, self.hidden, self.layers)

    def _init_weights(self, network: Network, random: np.random.Generator) -> F8:
        return network.init_weights(random)

    def _has_nonnegative_weights(self) -> bool:
        return False

    def _penalty_center(self) -> F8 | None:
        """The point towards which the penalty shrinks the parameters, if not 0."""
        return None

    # -- scoring ---------------------------------------------------------------------------------------------

    def _scale_values(self, values: F8) -> F8:
        if not self.standardise:
            return values
        scaled = values - self.center_
        scaled /= self.scale_  # in place: another array of this size would cost more than the division
        return scaled

    def _predict_scores(self, values: F8) -> F8:
        """One score per row."""
        if self.scorer == "lambdamart":
            from podium.methods.learned import trees

            return trees.predict_trees(self.trees_, values)
        network = self._build_network(values.shape[1])
        if not self.hidden:
            return network.compute_scores(self._linear_weights(), values)
        scaled = self._scale_values(values)
        return np.asarray(np.mean([network.compute_scores(p, scaled) for p in self.parameters_], axis=0))

    def _linear_weights(self) -> F8:
        """The weights of a linear scorer on unscaled features, averaged over all members."""
        return np.asarray(self.parameters_.mean(axis=0) / self.scale_)
