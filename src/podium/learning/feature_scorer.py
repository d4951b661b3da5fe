"""Scorers of features: a linear function or a network trained by LambdaRank, or boosted trees."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from podium.core.progress import Progress
from podium.kernels import segments
from podium.kernels.dispatch import F8, I8
from podium.kernels.lambdas import (
    MetricTarget,
    OptimizerState,
    compute_lambdas,
    train_linear_pass,
    update_weights,
)
from podium.learning.examples import LearningTask
from podium.learning.plan import Plan, ScorerSettings
from podium.learning.trainer import Block, BlockSource, Objective, train_members
from podium.metrics.base import MetricSpec

__all__ = ["FeatureBlock", "FeatureScorer", "Network", "WeightPrior", "fit_scorer", "train_network_pass"]


@dataclass(frozen=True)
class Network:
    """Layers of `tanh` units on top of the features, and an output without bias: only differences matter."""

    inputs: int
    hidden: int = 0
    layers: int = 1

    @property
    def widths(self) -> list[int]:
        """Widths of the features and of every hidden layer."""
        return [self.inputs] + [self.hidden] * (self.layers if self.hidden else 0)

    @property
    def size(self) -> int:
        """Number of parameters."""
        return sum((a + 1) * b for a, b in pairwise(self.widths)) + self.widths[-1]

    def init_weights(self, random: np.random.Generator) -> F8:
        """Zeros for a linear scorer; otherwise Glorot & Bengio's uniform weights, zero biases and output."""
        flat = np.zeros(self.size)
        for matrix, _ in self._split_parameters(flat)[0]:
            reach = np.sqrt(6.0 / sum(matrix.shape))
            matrix[:] = random.uniform(-reach, reach, matrix.shape)
        return flat

    def _split_parameters(self, flat: F8) -> tuple[list[tuple[F8, F8]], F8]:
        """Views of the flat vector: (matrix, bias) of every hidden layer, and the output weights."""
        layers, at = [], 0
        for a, b in pairwise(self.widths):
            matrix = flat[at : at + a * b].reshape(a, b)
            layers.append((matrix, flat[at + a * b : at + (a + 1) * b]))
            at += (a + 1) * b
        return layers, flat[at:]

    def compute_scores(self, flat: F8, values: F8) -> F8:
        """One score per row."""
        hidden, output = self._split_parameters(flat)
        for matrix, bias in hidden:
            values = np.tanh(values @ matrix + bias)
        # the same summation order for every row: equal rows get bit-identical scores wherever they lie
        return np.asarray(np.einsum("ij,j->i", values, output))

    def compute_gradient(self, flat: F8, values: F8, slope: F8) -> F8:
        """The gradient of sum(slope * scores) with respect to the parameters."""
        hidden, output = self._split_parameters(flat)
        seen = [values]
        for matrix, bias in hidden:
            seen.append(np.tanh(seen[-1] @ matrix + bias))
        out = np.zeros(len(flat))
        parts, last = self._split_parameters(out)
        last[:] = slope @ seen[-1]
        back = slope[:, None] * output
        for k in reversed(range(len(hidden))):
            back = back * (1.0 - seen[k + 1] ** 2)
            parts[k][0][:] = seen[k].T @ back
            parts[k][1][:] = back.sum(axis=0)
            back = back @ hidden[k][0].T
        return out


@dataclass(kw_only=True)
class FeatureBlock(Block):
    """Examples with their features, for a linear scorer or a network."""

    values: F8
    network: Network

    def compute_scores(self, weights: F8) -> F8:
        """Compute them on the device of the plan."""
        if self.plan.device == "cpu":
            return self.network.compute_scores(weights, self.values)
        return np.asarray(self._copy_to_device().scores(weights))

    def visit_queries(
        self, visit: I8, optimizer: OptimizerState, random: np.random.Generator
    ) -> tuple[float, float]:
        """LambdaRank steps after every batch of queries."""
        values, starts, batch = self.values, self.examples.starts, self.plan.batch
        if self.plan.device != "cpu":
            self._copy_to_device().learn(visit, batch, optimizer)
        elif self.network.hidden or self.target.pairs is not None:
            train_network_pass(self.network, values, starts, self.target, visit, batch, optimizer)
        else:
            train_linear_pass(values, starts, self.target, visit, batch, optimizer)
        return 0.0, 0.0

    def _copy_to_device(self) -> Any:
        if self.on_device is None:
            from podium.kernels.device.lambdarank_training import DeviceObjective, DeviceScorer
            from podium.kernels.device.torch_device import resolve_device

            where, values, widths = resolve_device(self.plan.device), self.values, self.network.widths
            self.on_device = (
                DeviceScorer(where, values, widths)
                if self.metric is None
                else DeviceObjective(where, values, self.examples.starts, self.target, widths)
            )
        return self.on_device


def train_network_pass(
    network: Network,
    values: F8,
    starts: I8,
    target: MetricTarget,
    visit: I8,
    batch: int,
    optimizer: OptimizerState,
) -> None:
    """Visit queries in this order, with a step after every `batch`, for hidden layers and for given pairs."""
    for first in range(0, len(visit), batch):
        chosen = visit[first : first + batch]
        offsets, rows = segments.gather_segments(starts, chosen)
        some = values[rows]
        slope = compute_lambdas(
            network.compute_scores(optimizer.weights, some), offsets, target.select_queries(rows, chosen)
        )
        update_weights(optimizer, network.compute_gradient(optimizer.weights, some, slope) / len(chosen))


class WeightPrior(NamedTuple):
    """What is known of the weights of a linear scorer before training."""

    start: F8 | None = None  # first weights, on unscaled features
    is_center: bool = False  # the penalty shrinks towards the first weights instead of 0
    nonnegative: bool = False


UNINFORMED = WeightPrior()


@dataclass(frozen=True)
class FeatureScorer:
    """A scorer with what it has learned: weights by member, on features minus `center_` over `scale_`, or trees.

    Names that end in _ are those of a model's learned attributes.
    """

    settings: ScorerSettings
    center_: F8
    scale_: F8
    member_weights_: F8 | None = None  # one row per member
    passes_: list[int] | None = None  # the pass that was kept, of each member
    quality_: list[float] | None = None  # by the validation metric, of each member
    trees_: str | None = None

    @classmethod
    def from_model(cls, model: Any) -> FeatureScorer:
        """The scorer that `store_in` wrote into a model."""
        names = (name for name in cls.__annotations__ if name.endswith("_"))
        learned: dict[str, Any] = {name: getattr(model, name, None) for name in names}
        return cls(model, **learned)

    def store_in(self, model: Any) -> None:
        """Set the learned attributes of a model."""
        for name, value in vars(self).items():
            if name.endswith("_") and value is not None:
                setattr(model, name, value)

    def with_scale(self, mean: F8, deviation: F8) -> FeatureScorer:
        """The same for features with this mean and standard deviation."""
        return replace(self, center_=mean, scale_=np.where(deviation > 1e-12, deviation, 1.0))

    def train(
        self,
        training: BlockSource,
        validation: BlockSource | None,
        choose_by: MetricSpec,
        plan: Plan,
        prior: WeightPrior,
        progress: Progress,
    ) -> FeatureScorer:
        """The same scorer with trained members."""
        start = None if prior.start is None else prior.start * self.scale_
        objective = Objective(
            training,
            validation,
            choose_by,
            self.network.init_weights if start is None else lambda _: start.copy(),
            center=start if prior.is_center else None,
            nonnegative=prior.nonnegative,
            # a device and the cache of shards serve one thread at a time
            threads=plan.device == "cpu" and isinstance(training, Block),
        )
        members = train_members(objective, plan, progress)
        return replace(
            self,
            member_weights_=np.stack([member.weights for member in members]),
            passes_=[member.pass_number for member in members],
            quality_=[member.quality for member in members],
        )

    def scale_values(self, values: F8) -> F8:
        """Features as the network takes them."""
        if not self.settings.standardize:
            return values
        scaled = values - self.center_
        scaled /= self.scale_  # in place: another array of this size would cost more than the division
        return scaled

    @property
    def network(self) -> Network:
        """The shape of each member."""
        return Network(len(self.scale_), self.settings.hidden, self.settings.layers)

    @property
    def linear_weights(self) -> F8:
        """The weights of a linear scorer on unscaled features, averaged over all members."""
        assert self.member_weights_ is not None
        return np.asarray(self.member_weights_.mean(axis=0) / self.scale_)

    def compute_scores(self, values: F8) -> F8:
        """One score per row."""
        if self.settings.scorer == "lambdamart":
            from podium.learning import trees

            return trees.predict_trees(str(self.trees_), values)
        network = self.network
        if not network.hidden:
            return network.compute_scores(self.linear_weights, values)
        assert self.member_weights_ is not None
        scaled = self.scale_values(values)
        return np.asarray(np.mean([network.compute_scores(w, scaled) for w in self.member_weights_], axis=0))


def fit_scorer(
    settings: ScorerSettings,
    task: LearningTask,
    *,
    plan: Plan | None = None,
    prior: WeightPrior = UNINFORMED,
) -> FeatureScorer:
    """Train a scorer on examples in memory; `plan` replaces that of the settings."""
    plan, values = plan or settings.plan, task.values
    width = values.shape[1]
    scorer = FeatureScorer(settings, np.zeros(width), np.ones(width))
    if settings.standardize and len(values):
        scorer = scorer.with_scale(values.mean(axis=0), values.std(axis=0))
    if settings.scorer == "lambdamart":
        from podium.learning import trees

        task.examples.learning_target(plan.metric)  # raises where there is no training signal
        text, rounds = trees.train_trees(
            task, plan.passes, plan.rate, patience=plan.patience, seed=plan.seed, choose_by=plan.choose_by
        )
        return replace(scorer, trees_=text, passes_=[rounds])

    def build_block(part: LearningTask, metric: str | None) -> FeatureBlock:
        scaled, network = np.ascontiguousarray(scorer.scale_values(part.values)), scorer.network
        return FeatureBlock(values=scaled, network=network, examples=part.examples, plan=plan, metric=metric)

    check = None if task.validation is None else build_block(task.validation, None)
    return scorer.train(build_block(task, plan.metric), check, plan.choose_by, plan, prior, task.progress)
