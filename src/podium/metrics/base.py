"""A metric is a value: it compares, hashes, prints and parses.

>>> from podium.metrics import NDCG, RBP, parse
>>> NDCG @ 10, parse("ndcg@10") == NDCG @ 10, NDCG(dialect="letor") @ 5, RBP(p=0.95) @ 20
(ndcg@10, True, ndcg@5:letor, rbp(p=0.95)@20)
"""

from __future__ import annotations

import dataclasses
import operator
import re
from abc import ABC, ABCMeta, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Self

import numpy as np

from podium.core import params, registry
from podium.core.errors import InputError, ParameterError
from podium.core.params import Range
from podium.data.consensus import Consensus
from podium.data.labels import LabelKind, Labels
from podium.kernels import ranking_measures
from podium.kernels.dispatch import F8, I8
from podium.metrics.judgements import Judgements

__all__ = [
    "DEEP",
    "MeasuredQueries",
    "Metric",
    "MetricSpec",
    "Relevant",
    "WalkMetric",
    "measure",
    "parse",
    "parse_all",
]

DEEP = 2**31 - 1  # no cutoff
Relevant = Annotated[float, Range(0, 1e9, open_low=True), "smallest grade that counts as relevant"]


class _MetricType(ABCMeta):
    """Makes `NDCG @ 10` equal to `NDCG(cutoff=10)`."""

    def __matmul__(cls, cutoff: int) -> Metric:
        made: Metric = cls()
        return made @ cutoff


@dataclass(frozen=True, kw_only=True, repr=False)
class Metric(ABC, metaclass=_MetricType):
    """Base of all metrics: one number per query from a ranking and labels, larger is better."""

    name: ClassVar[str] = ""
    aliases: ClassVar[tuple[str, ...]] = ()
    citation: ClassVar[str] = ""
    cutoff_rule: ClassVar[Literal["optional", "required", "none"]] = "optional"
    accepts: ClassVar[frozenset[LabelKind]] = frozenset({"grades"})

    cutoff: Annotated[int | None, Range(1, DEEP), "number of places that count; default: all"] = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if cls.__dict__.get("name"):
            registry.metrics.add(cls.name, cls)

    def __post_init__(self) -> None:
        params.validate(self)
        if self.cutoff is not None and self.cutoff_rule == "none":
            raise ParameterError(
                f"{self.name} takes no cutoff; write {self.name}, not {self.name}@{self.cutoff}"
            )

    def __matmul__(self, cutoff: int) -> Self:
        return dataclasses.replace(self, cutoff=operator.index(cutoff))

    @abstractmethod
    def values(self, consensus: Consensus, judgements: Judgements, which: I8) -> F8:
        """One number per query of the labels in `which`; NaN where the metric is not defined."""

    def check_labels(self, labels: Labels) -> None:
        """Reject labels of a kind that the metric is not defined for."""
        if labels.kind not in self.accepts:
            able = sorted(name for name, cls in registry.metrics.all().items() if labels.kind in cls.accepts)
            raise InputError(
                f"{self} needs {' or '.join(sorted(self.accepts))}, and the labels are {labels.kind}",
                remedy=f"use one of {', '.join(able)}",
            )

    def check_cutoff(self) -> None:
        """Reject a metric that cannot be computed as specified."""
        if self.cutoff is None and self.cutoff_rule == "required":
            raise ParameterError(f"{self.name} needs a cutoff; write for example {self.name}@10")

    def __str__(self) -> str:
        fields = {f.name: f.default for f in dataclasses.fields(self)}
        changed = {k: getattr(self, k) for k, default in fields.items() if getattr(self, k) != default}
        cutoff, dialect = changed.pop("cutoff", None), changed.pop("dialect", None)
        whole = {k: int(v) for k, v in changed.items() if isinstance(v, float) and v.is_integer()}
        inside = ", ".join(f"{k}={v!r}" for k, v in (changed | whole).items())
        text = self.name + (f"({inside})" if inside else "")
        return text + ("" if cutoff is None else f"@{cutoff}") + ("" if dialect is None else f":{dialect}")

    __repr__ = __str__


class MeasuredQueries(NamedTuple):
    """The queries being measured: their codes in the labels, and the number of ranked items of each."""

    judgements: Judgements
    which: I8
    sizes: I8


class WalkMetric(Metric):
    """A metric computed by walking down the ranking, then normalized; all such metrics share one pass."""

    kind: ClassVar[int] = ranking_measures.SUM  # what is summed over the places
    divides_by_ideal: ClassVar[bool] = False

    @abstractmethod
    def compute_gains(self, judgements: Judgements) -> F8:
        """The gain of each level, and of items without a grade."""

    def compute_discounts(self, width: int) -> F8:
        """The factor of each of `width` places: 1."""
        return np.ones(width)

    def compute_divisor(self, seen: MeasuredQueries) -> F8:
        """The divisor of the walk's sums; the metric is 0 where it is 0."""
        if not self.divides_by_ideal:
            return np.ones(len(seen.which))
        judgements = seen.judgements
        if self not in judgements.by_query:
            width = min(int(judgements.labels.index.sizes.max(initial=0)), self.cutoff or DEEP)
            walk = self.build_walk(judgements, width)
            judgements.by_query[self] = ranking_measures.walk_rankings(judgements.ideal, [walk])[0]
        return judgements.by_query[self][seen.which]

    def compute_limits(self, judgements: Judgements) -> I8:
        """Number of places that count, for every query of the labels."""
        return np.full(len(judgements), self.cutoff or DEEP, np.int64)

    def build_walk(self, judgements: Judgements, width: int) -> ranking_measures.RankingWalk:
        """Gains by level, `width` discounts, and a limit for every query of the labels."""
        gains, discounts = self.compute_gains(judgements), self.compute_discounts(width)
        return ranking_measures.RankingWalk(self.kind, gains, discounts, self.compute_limits(judgements))

    def values(self, consensus: Consensus, judgements: Judgements, which: I8) -> F8:
        """Compute this metric alone; `measure` computes several at once."""
        return _walk_all([self], consensus, judgements, which)[0]


def _walk_all(
    metrics: Sequence[WalkMetric], consensus: Consensus, judgements: Judgements, which: I8
) -> list[F8]:
    rankings = judgements.match_rankings(consensus)
    query = rankings.query[which]
    seen = MeasuredQueries(
        judgements, which, np.where(query >= 0, np.append(consensus.index.sizes, 0)[query], 0)
    )
    longest = int(seen.sizes.max(initial=0))
    walks = []
    for metric in metrics:
        w = metric.build_walk(judgements, min(longest, metric.cutoff or DEEP))
        walks.append(w._replace(limit=w.limit[which]))
    sums = ranking_measures.walk_rankings(rankings._replace(query=query), walks)
    divisors = [m.compute_divisor(seen) for m in metrics]
    return [np.divide(s, d, out=np.zeros(len(s)), where=d > 0) for s, d in zip(sums, divisors, strict=True)]


def measure(metrics: Sequence[Metric], consensus: Consensus, labels: Labels, which: I8) -> F8:
    """All metrics on the label queries in `which`: one row per metric, one column per query."""
    for metric in metrics:
        metric.check_cutoff()
        metric.check_labels(labels)
    judgements = Judgements.for_labels(labels)
    out = np.zeros((len(metrics), len(which)))
    walking = [i for i, m in enumerate(metrics) if isinstance(m, WalkMetric)]
    walked = _walk_all([metrics[i] for i in walking], consensus, judgements, which)  # type: ignore[misc]
    for i, values in zip(walking, walked, strict=True):
        out[i] = values
    for i, metric in enumerate(metrics):
        if not isinstance(metric, WalkMetric):
            out[i] = metric.values(consensus, judgements, which)
    return out


# -- text -> metric ----------------------------------------------------------------------------------------

MetricSpec = str | Metric | type[Metric]
_FORM = re.compile(
    r"\s*(?P<name>\w+)\s*(?P<inside>\(.*\))?\s*(?:@\s*(?P<cutoff>[0-9]{1,10}))?\s*(?::\s*(?P<dialect>\w+))?\s*"
)


# names of other tools that carry a cutoff or a parameter; those that differ in nothing but the word (`recip_rank`,
# `AP`, `hit_rate`) are aliases of their classes
_FOREIGN_FORMS = [
    # trec_eval: ndcg_cut_10, P_5, recall_1000, and ndcg_cut.10 as its option -m takes it
    (re.compile(r"(map|ndcg|p|recall|success|rprec)(?:_cut)?[._](\d+)", re.IGNORECASE), r"\1@\2"),
    # ranx: rbp.95; ndcg_burges@10, whose gain is 2^grade - 1; map@100-l2
    (re.compile(r"(rbp)\.(\d+)(@\d+)?", re.IGNORECASE), r"\1(p=0.\2)\3"),
    (re.compile(r"(n?dcg)_burges(@\d+)?", re.IGNORECASE), r"\1\2:exp"),
    (re.compile(r"(\w+?)(@\d+)?-l(\d+)"), r"\1(relevant=\3)\2"),
]
# ir_measures: AP(rel=2), nDCG(dcg='exp-log2')@10
_FOREIGN_PARAMETERS = {"rel": "relevant", "dcg": "dialect"}
_FOREIGN_DIALECTS = {"log2": "trec", "exp-log2": "exp"}


def parse(spec: MetricSpec) -> Metric:
    """A metric from its printed form, or as trec_eval, ir_measures or ranx name it; case does not matter.

    >>> parse("rbp(p=0.5)@10"), parse("MAP"), parse("nDCG@5:letor")
    (rbp(p=0.5)@10, map, ndcg@5:letor)
    >>> parse("ndcg_cut_10"), parse("AP(rel=2)@100"), parse("hit_rate@5")
    (ndcg@10, map(relevant=2)@100, success@5)
    """
    if isinstance(spec, Metric):
        return spec
    if isinstance(spec, type) and issubclass(spec, Metric):
        return spec()
    form = None
    if isinstance(spec, str):
        text = spec.strip()
        rewritten = (theirs.sub(ours, text) for theirs, ours in _FOREIGN_FORMS if theirs.fullmatch(text))
        form = _FORM.fullmatch(next(rewritten, text))
    if form is None:
        raise ParameterError(f"cannot parse the metric {spec!r}; write for example ndcg@10 or rbp(p=0.8)@10")
    cls = registry.metrics.get(form["name"].lower())
    given = params.parse_spec(cls.name + (form["inside"] or ""))[1]
    if form["cutoff"] is not None:
        given["cutoff"] = int(form["cutoff"])
    if form["dialect"] is not None:
        given["dialect"] = form["dialect"].lower()
    known = {f.name for f in dataclasses.fields(cls)}
    renamed = {key: ours for key, ours in _FOREIGN_PARAMETERS.items() if key not in known and ours in known}
    given = {renamed.get(key, key): value for key, value in given.items()}
    if "dialect" in given:
        given["dialect"] = _FOREIGN_DIALECTS.get(str(given["dialect"]), given["dialect"])
    for key in given:
        if key not in known:
            what = (
                "dialects" if key == "dialect" else f"parameter {key!r}; {params.suggest_names(key, known)}"
            )
            raise ParameterError(f"{cls.name} has no {what}")
    metric: Metric = cls(**given)
    return metric


def parse_all(specs: MetricSpec | Iterable[MetricSpec]) -> tuple[Metric, ...]:
    """Several metrics; a string may hold many, separated by commas or spaces. Repeats are dropped.

    >>> parse_all("ndcg@10, rbp(p=0.5) map")
    (ndcg@10, rbp(p=0.5), map)
    """
    several = [specs] if isinstance(specs, str | Metric | type) else list(specs)
    flat: list[MetricSpec] = []
    for spec in several:
        flat.extend(re.findall(r"[^\s,(]+(?:\([^)]*\)[^\s,]*)?", spec) if isinstance(spec, str) else [spec])
    if not flat:
        raise ParameterError("no metric was given; for example ndcg@10 or map")
    return tuple(dict.fromkeys(map(parse, flat)))
