"""The search space, read from the methods' declared parameters, so that new methods need no entry."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from podium.core import params, registry
from podium.core.errors import ParameterError
from podium.core.params import Choice, Parameter, Range, Tune
from podium.data.ids import Id
from podium.kernels.dispatch import F8
from podium.methods.base import Aggregator, make

__all__ = [
    "MethodSpace",
    "QualityWeights",
    "TuningConfig",
    "build_configurations",
    "find_axes",
    "grid_values",
    "list_grid_configs",
    "round_significant",
    "sample_configs",
    "sample_value",
]

POINTS = 5  # grid points per interval
WEIGHTED = 2 / 3  # share of a method's random configurations that have weights
FEW = 6  # random weights cover their space for up to this many experts; beyond, only `QualityWeights` do
POWERS, SHARES = (1.0, 2.0, 4.0, 8.0), (1.0, 0.5)  # grid of weights


@dataclass(frozen=True, kw_only=True)
class QualityWeights:
    """Each expert weighs (its mean / the best mean) ** power; experts outside the best share `keep` weigh 0.

    The means are over the training queries, so weights differ between folds.

    >>> QualityWeights(power=2, keep=0.6).compute_weights(np.array([0.4, 0.2, 0.1]))
    [1.0, 0.25, 0.0]
    """

    power: Annotated[float, Range(0, 100), Tune(0.5, 16, log=True), "how much better experts count more"] = (
        4.0
    )
    keep: Annotated[float, Range(0, 1, open_low=True), Tune(0.2, 1), "share of the experts that count"] = 1.0

    def compute_weights(self, means: F8) -> list[float]:
        """One weight per expert; equal weights if all means are 0."""
        best = float(means.max(initial=0.0))
        if not best > 0:
            return [1.0] * len(means)
        kept = max(1, math.ceil(round(self.keep * len(means), 9)))
        least = np.sort(means)[::-1][kept - 1]  # ties with the last expert kept stay too
        powers = np.where(means >= least, np.clip(means / best, 0.0, 1.0) ** self.power, 0.0)
        return [round_significant(w) for w in powers.tolist()]

    def __str__(self) -> str:
        kept = "" if self.keep == 1 else f", best {self.keep:.0%} of the experts"
        return f"weights by quality^{self.power:g}{kept}"


def sample_weights(random: np.random.Generator, experts: int) -> tuple[float, ...]:
    """Weights from a uniform distribution on the simplex, scaled so that the largest is 1."""
    raw = random.dirichlet(np.ones(experts))
    return tuple(round_significant(w) for w in (raw / raw.max()).tolist())


def round_significant(value: float, digits: int = 3) -> float:
    """Round to significant digits, so that what is tried is what is printed and saved.

    >>> round_significant(12.3456), round_significant(0.00123456), round_significant(0)
    (12.3, 0.00123, 0.0)
    """
    return float(f"{value:.{digits}g}")


@dataclass(frozen=True)
class TuningConfig:
    """One configuration: a method, its parameter values, and the expert weights."""

    method: str
    parameters: tuple[tuple[str, Any], ...] = ()
    weights: QualityWeights | tuple[float, ...] | None = None

    def __hash__(self) -> int:
        # beliefs are an unhashable mapping, so they are left to the equality test
        plain = tuple(pair for pair in self.parameters if isinstance(pair[1], Hashable))
        return hash((self.method, plain, self.weights))

    @property
    def depends_on_labels(self) -> bool:
        """Whether it depends on labels, and so must be created anew for every fold."""
        return isinstance(self.weights, QualityWeights) or bool(
            registry.aggregators.get(self.method).tags.supervised
        )

    @property
    def is_valid(self) -> bool:
        """Whether the method accepts these values together; each alone is in its range."""
        try:
            make(self.method, **dict(self.parameters))
        except ParameterError:
            return False
        return True

    def make_method(self, experts: Sequence[Id], weights: Sequence[float] | None = None) -> Aggregator:
        """The aggregator, with the given weights or its own fixed ones."""
        values = self.weights if isinstance(self.weights, tuple) else weights
        named = {} if values is None else {"weights": dict(zip(experts, values, strict=True))}
        return make(self.method, **dict(self.parameters), **named)

    def describe(self, experts: Sequence[Id]) -> str:
        """The configuration as text, with the weights by expert.

        >>> TuningConfig("rrf", (("k", 5),), (1.0, 0.25)).describe(["bm25", "dense"])
        'rrf(k=5), weights bm25=1, dense=0.25'
        """
        plain = repr(make(self.method, **dict(self.parameters)))
        if isinstance(self.weights, tuple):
            named = (f"{e}={w:g}" for e, w in zip(experts, self.weights, strict=True))
            return f"{plain}, weights {', '.join(named)}"
        return plain if self.weights is None else f"{plain}, {self.weights}"

    def key_facts(self) -> list[Any]:
        """Plain values that identify it."""
        trust = self.weights
        own = dataclasses.asdict(trust) if isinstance(trust, QualityWeights) else trust
        return [*make(self.method, **dict(self.parameters)).key_facts(), own]


@dataclass(frozen=True)
class MethodSpace:
    """A method as requested: given values stay fixed, the others are searched."""

    method: str
    given: tuple[tuple[str, Any], ...] = ()
    weighted: bool = True  # whether weights are searched

    @classmethod
    def from_spec(cls, spec: str | Aggregator, weighted: bool) -> MethodSpace:
        """Create from a name, a name with values or an aggregator."""
        made = make(spec)
        default = {f.name: f.default for f in dataclasses.fields(made)}
        named = set(params.parse_spec(spec)[1]) if isinstance(spec, str) else set()
        values = made.get_parameters()
        given = {k: v for k, v in values.items() if k in named or not _is_same(v, default[k])}
        if given.pop("weights", None) is not None:
            raise ParameterError(f"{made.name}: the search sets the weights; omit them from the method")
        return cls(made.name, tuple(given.items()), weighted and made.tags.weighted)

    @property
    def axes(self) -> tuple[Parameter, ...]:
        """The parameters to search."""
        fixed = dict(self.given)
        return tuple(p for p in find_axes(registry.aggregators.get(self.method)) if p.name not in fixed)

    def build_config(self, values: Mapping[str, Any] = {}, weights: Any = None) -> TuningConfig:
        """A configuration; default values are dropped, so that equal configurations compare equal."""
        default = {p.name: p.default for p in self.axes}
        changed = {k: v for k, v in values.items() if not _is_same(v, default[k])}
        return TuningConfig(self.method, (*self.given, *sorted(changed.items())), weights)

    @property
    def is_single(self) -> bool:
        """Whether there is nothing to search."""
        return not self.axes and not self.weighted


def _is_same(a: object, b: object) -> bool:
    return isinstance(a, bool) == isinstance(b, bool) and bool(a == b)


def find_axes(cls: type) -> tuple[Parameter, ...]:
    """The declared parameters that can be searched: intervals, choices, booleans.

    >>> [p.name for p in find_axes(registry.aggregators.get("svp"))]
    ['strength', 'combine', 'shrink']
    """
    return tuple(p for p in params.parameters(cls) if p.is_tunable)


def sample_value(axis: Parameter, random: np.random.Generator) -> Any:
    """A random value on the annotated scale."""
    if axis.tune is None:
        values = _list_choices(axis)
        return values[int(random.integers(len(values)))]
    low, high = axis.tune.low, axis.tune.high
    u = float(random.uniform())
    raw = math.exp(math.log(low) + u * math.log(high / low)) if axis.tune.log else low + u * (high - low)
    return _round_value(axis, raw)


def grid_values(axis: Parameter, count: int = POINTS) -> list[Any]:
    """The values of a grid: every choice, or points of the interval; the default is included and first."""
    if axis.tune is None:
        several = _list_choices(axis)
    else:
        low, high = axis.tune.low, axis.tune.high
        spaced = np.geomspace(low, high, count) if axis.tune.log else np.linspace(low, high, count)
        several = [_round_value(axis, v) for v in spaced.tolist()]
    known = [axis.default] if axis.default is not None else []
    return known + [v for v in dict.fromkeys(several) if v not in known]


def _list_choices(axis: Parameter) -> list[Any]:
    return list(axis.accepts.values) if isinstance(axis.accepts, Choice) else [False, True]


def _round_value(axis: Parameter, raw: float) -> float | int:
    value = round(raw) if axis.kind is int else round_significant(raw)
    if isinstance(axis.accepts, Range):  # rounding may leave the interval
        value = min(max(value, axis.accepts.low), axis.accepts.high)
    return int(value) if axis.kind is int else float(value)


def sample_configs(
    families: Sequence[MethodSpace], trials: int, experts: int, seed: int
) -> list[TuningConfig]:
    """The defaults of every method, then the defaults with weights, then random draws from all in turn.

    Every method has its own random generator, so its draws do not depend on the other methods.
    """
    configs = dict.fromkeys(f.build_config() for f in families)
    configs |= dict.fromkeys(f.build_config(weights=QualityWeights()) for f in families if f.weighted)
    rich = [(f, np.random.default_rng([seed, *f.method.encode()])) for f in families if not f.is_single]
    for family, dice in itertools.islice(
        itertools.cycle(rich), 20 * trials
    ):  # small spaces repeat themselves
        if len(configs) >= trials:
            break
        values = {axis.name: sample_value(axis, dice) for axis in family.axes}
        config = family.build_config(values, _sample_weights(family, experts, dice))
        if config.is_valid:
            configs[config] = None
    return list(configs)[:trials]


def _sample_weights(
    family: MethodSpace, experts: int, dice: np.random.Generator
) -> QualityWeights | tuple[float, ...] | None:
    if not family.weighted or dice.uniform() >= WEIGHTED:
        return None
    if experts <= FEW and dice.uniform() < 0.5:
        return sample_weights(dice, experts)
    values = {axis.name: sample_value(axis, dice) for axis in find_axes(QualityWeights)}
    if dice.uniform() < 0.5:
        del values["keep"]  # all experts count
    return QualityWeights(**values)


def list_grid_configs(families: Sequence[MethodSpace], trials: int) -> list[TuningConfig]:
    """Every combination; an error if there are more than `trials`."""
    configs = dict.fromkeys(
        c for family in families for c in itertools.islice(_iterate_grid(family), trials + 1)
    )
    if len(configs) > trials:
        size = 0
        for family in families:
            trusts = 1 + len(POWERS) * len(SHARES) * family.weighted
            size += trusts * math.prod(len(grid_values(axis)) for axis in family.axes)
        raise ParameterError(
            f"the grid has up to {size:,} configurations and trials is {trials:,}; allow more trials, "
            "name fewer methods, fix some parameters, or search at random"
        )
    return list(configs)


def _iterate_grid(family: MethodSpace) -> Iterator[TuningConfig]:
    trusts = [QualityWeights(power=p, keep=k) for k in SHARES for p in POWERS] if family.weighted else []
    names = [axis.name for axis in family.axes]
    for values in itertools.product(*(grid_values(axis) for axis in family.axes)):
        plain = family.build_config(dict(zip(names, values, strict=True)))
        if plain.is_valid:
            yield from (dataclasses.replace(plain, weights=weights) for weights in (None, *trusts))


def build_configurations(
    kind: str, families: Sequence[MethodSpace], trials: int, experts: int, seed: int, baseline: TuningConfig
) -> list[TuningConfig]:
    """The configurations to try; the baseline is always included and first."""
    if kind == "grid":
        configs = list_grid_configs(families, trials)
    else:
        configs = sample_configs(families, trials, experts, seed)
    return list(dict.fromkeys((baseline, *configs)))
