"""How models are trained: every training parameter is annotated here once, for all methods that learn."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Annotated, Any

from podium.core.errors import Option, ParameterError
from podium.core.old_names import accept_old_names
from podium.core.params import Choice, Fixed, Range, Tune
from podium.learning.examples import parse_learnable
from podium.metrics.base import parse
from podium.metrics.correlations import PairAgreement

__all__ = [
    "ALL_PASSES",
    "AverageAll",
    "Batch",
    "ChooseBy",
    "Decay",
    "Device",
    "KeptPass",
    "LearningRate",
    "Members",
    "Optimizer",
    "Passes",
    "Penalty",
    "Plan",
    "ScorerSettings",
    "Seed",
    "TargetMetric",
]

ALL_PASSES = -1  # as `Plan.average`

TargetMetric = Annotated[
    str,
    "metric to optimize: ndcg (any dialect), err, map, rbp ..., with or without a cutoff; tau_a: Kendall's tau, every "
    "pair counts alike",
]
ChooseBy = Annotated[str, "validation metric that selects the pass"]
Optimizer = Annotated[str, Choice("adam", "sgd"), "optimizer"]
LearningRate = Annotated[float, Range(0, 1000, open_low=True), Tune(0.001, 0.1, log=True), "learning rate"]
Decay = Annotated[float, Range(0, 1e6), "passes after which the learning rate is halved; 0 keeps it constant"]
Passes = Annotated[int, Range(1, 100_000), "maximum number of passes over the queries"]
KeptPass = Annotated[
    str,
    Choice("best", "last"),
    "pass whose weights are kept: the best on validation data by `choose_by`, or the last",
]
Patience = Annotated[
    int, Range(0, 100_000), "passes without improvement before early stopping; 0 disables it"
]
Batch = Annotated[int, Range(1, 1_000_000), "queries per step"]
Penalty = Annotated[float, Range(0, 1e6), Tune(1e-5, 0.1, log=True), "penalty on the squared weights"]
AverageAll = Annotated[bool, "use the mean of the weights after each pass"]
Members = Annotated[int, Range(1, 1000), "number of models with different seeds, whose scores are averaged"]
Seed = Annotated[int, Range(0, 2**31 - 1), "random seed"]
Device = Annotated[
    str,
    Choice("cpu", "cuda", "cuda64", "torch"),
    Fixed(),
    "where to train: with NumPy, on a CUDA device in single or double precision, or with PyTorch on the CPU "
    "(extra torch)",
]


@dataclass(frozen=True)
class Plan:
    """Everything that `train` and the objectives need to know about training; made from a method's parameters."""

    metric: TargetMetric
    choose_by: ChooseBy
    optimizer: Optimizer = "adam"
    rate: LearningRate = 0.01
    decay: Decay = 0.0
    passes: Passes = 100
    patience: Patience = 0
    kept_pass: KeptPass = "best"
    batch: Batch = 8
    l2: Penalty = 0.0
    average: int | None = None  # the weights of this many passes are averaged; ALL_PASSES, or None
    members: Members = 1
    seed: Seed = 0
    device: Device = "cpu"

    @classmethod
    def from_parameters(cls, method: Any) -> Plan:
        """The plan of a method; a field that is not a parameter of the method has its default."""
        given = {f.name: getattr(method, f.name) for f in fields(cls) if hasattr(method, f.name)}
        if isinstance(given.get("average"), bool):
            given["average"] = ALL_PASSES if given["average"] else None
        return cls(**given)

    def check_metrics(self) -> None:
        """Reject a metric that cannot be learned, or that cannot select a pass."""
        chosen = parse_learnable(self.metric)
        if self.device != "cpu" and isinstance(chosen, PairAgreement):
            raise ParameterError(
                f"{chosen} is learned on the CPU; set ", Option("device", "cpu", of="method")
            )
        parse(self.choose_by).check_cutoff()


@accept_old_names(parameters_="member_weights_", standardise="standardize")
@dataclass(kw_only=True, eq=False, repr=False)
class ScorerSettings:
    """Parameters of the methods that train a scorer of features; see `learning.feature_scorer`.

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
    metric: TargetMetric = "ndcg:exp"
    choose_by: ChooseBy = "ndcg@10:exp"
    hidden: Annotated[int, Range(0, 4096), "units of each hidden layer; 0 makes a linear scorer"] = 0
    layers: Annotated[int, Range(1, 8), "number of hidden layers, if hidden > 0"] = 1
    optimizer: Optimizer = Plan.optimizer
    rate: LearningRate = Plan.rate
    decay: Decay = Plan.decay
    passes: Passes = Plan.passes
    patience: Patience = Plan.patience
    batch: Batch = Plan.batch
    l2: Penalty = Plan.l2
    average: AverageAll = False
    standardize: Annotated[bool, "divide features by their standard deviation in training"] = False
    members: Members = Plan.members
    seed: Seed = Plan.seed
    device: Device = Plan.device

    def __post_init__(self) -> None:
        self.plan.check_metrics()
        if self.scorer == "lambdarank":
            return
        lambdarank = Option("scorer", "lambdarank", of="method")
        if str(parse(self.metric)) != "ndcg:exp":
            raise ParameterError(f"lambdamart optimizes ndcg:exp only, not {self.metric}; use ", lambdarank)
        if self.device != "cpu":
            raise ParameterError(
                Option("device", self.device, of="method"), " trains LambdaRank; use ", lambdarank
            )

    @property
    def plan(self) -> Plan:
        """How the scorer is trained."""
        return Plan.from_parameters(self)

    @property
    def is_linear(self) -> bool:
        """Whether scores are sums of features times weights."""
        return not self.hidden and self.scorer == "lambdarank"
