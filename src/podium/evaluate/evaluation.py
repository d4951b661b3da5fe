"""Metrics of a result on labels, by query."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from podium.core.errors import InputError, ParameterError, PodiumWarning, check_type
from podium.core.old_names import RenamedAttribute
from podium.core.results import Result, ViewBlock
from podium.core.settings import QueryScope
from podium.core.tables import Grid, format_decimal
from podium.core.text import format_count
from podium.data.consensus import Consensus
from podium.data.ids import Id, Ids
from podium.data.labels import Labels
from podium.kernels.dispatch import F8, I8
from podium.metrics.base import Metric, MetricSpec, measure, parse, parse_all
from podium.metrics.judgements import Judgements

if TYPE_CHECKING:
    from podium.data.frames import FrameBackend

__all__ = ["Evaluation", "QueryScope", "evaluate", "evaluate_all", "mean_of"]

NAMED = 3  # results named in a warning


class MetricMean(NamedTuple):
    """The mean of a metric, and the number of queries where it is defined."""

    metric: str
    mean: float
    queries: int


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation(Result[MetricMean]):
    """One number per metric and query, with the queries."""

    metrics: tuple[Metric, ...]
    queries: Ids  # evaluated queries: those of the result, then those it lacks
    values: F8  # one row per metric, one column per query; NaN if undefined
    method: str = ""
    # labeled queries that the result lacks: 0 in every metric for queries="all", else excluded
    missing: int = 0
    unlabelled: int = 0  # queries of the result without labels: always excluded
    result_queries: Ids | None = None

    answered = RenamedAttribute("has_result")
    undefined = RenamedAttribute("count_undefined")
    facts = ("method", "mean", "queries", "missing", "unlabelled")

    def __getitem__(self, metric: MetricSpec) -> F8:
        wanted = parse(metric)
        if wanted not in self.metrics:
            raise ParameterError(f"{wanted} was not evaluated; there are {', '.join(map(str, self.metrics))}")
        values: F8 = self.values[self.metrics.index(wanted)]
        return values

    def __len__(self) -> int:
        return len(self.queries)

    @property
    def has_result(self) -> npt.NDArray[np.bool_]:
        """Which of the queries the result has; the others count as 0."""
        if self.result_queries is None:
            return np.ones(len(self), bool)
        return self.result_queries.codes_of(self.queries) >= 0

    def mean(self) -> dict[str, float]:
        """Means by printed metric, over the queries where it is defined (NaN if none)."""
        return {str(m): mean_of(v) for m, v in zip(self.metrics, self.values, strict=True)}

    def count_undefined(self) -> dict[str, int]:
        """Queries excluded from each mean because the metric is undefined there (tau with one grade)."""
        return {str(m): int(np.isnan(v).sum()) for m, v in zip(self.metrics, self.values, strict=True)}

    def mean_over_parts(
        self, parts: Mapping[Id, int] | Sequence[int] | npt.NDArray[Any], digits: int | None = 4
    ) -> dict[str, float]:
        """Mean of the parts' means, each first rounded to `digits`, as in LETOR's scripts.

        `parts` maps queries to part numbers, or has one number per query of the result, like `Dataset.part`.
        """
        if not isinstance(parts, Mapping):
            known = self.result_queries if self.result_queries is not None else self.queries
            if len(parts) != len(known):
                raise InputError(
                    f"{len(parts)} part numbers for a result of {len(known)} queries", remedy="give one each"
                )
            parts = dict(zip(known, np.asarray(parts).tolist(), strict=True))
        for query in self.queries:
            if query not in parts:
                raise InputError(
                    f"query {query!r} has no part number", remedy="map every evaluated query to its part"
                )
        part = np.array([parts[q] for q in self.queries])
        out = {}
        for metric, values in zip(self.metrics, self.values, strict=True):
            means = [mean_of(values[part == number]) for number in np.unique(part)]
            out[str(metric)] = mean_of(
                np.array(means if digits is None else [round(m, digits) for m in means])
            )
        return out

    def to_frame(self, backend: FrameBackend = "pyarrow") -> Any:
        """A dataframe with one row per query and one column per metric."""
        from podium.data.frames import values_frame

        columns = {str(m): v for m, v in zip(self.metrics, self.values, strict=True)}
        return values_frame(self.queries, columns, backend)

    @property
    def rows(self) -> tuple[MetricMean, ...]:
        """One row per metric."""
        undefined = self.count_undefined()
        return tuple(MetricMean(m, mean, len(self) - undefined[m]) for m, mean in self.mean().items())

    @property
    def title(self) -> str:
        """Names the method, if it is known."""
        return f"Evaluation of {self.method}" if self.method else "Evaluation"

    def headline(self) -> str:
        """Number of queries, and the means."""
        gaps = {"missing": self.missing, "unlabelled": self.unlabelled}
        counts = [
            format_count(len(self), "query", "queries"),
            *(f"{n:,} {what}" for what, n in gaps.items() if n),
        ]
        return f"{', '.join(counts)}: {', '.join(f'{r.metric} {r.mean:.4f}' for r in self.rows)}"

    def grid(self) -> Grid:
        """One row per metric."""
        return Grid(MetricMean._fields, tuple((m, format_decimal(v), f"{n:,}") for m, v, n in self.rows))

    def blocks(self) -> Iterator[ViewBlock]:
        """The means, and the queries that were left out."""
        yield self.grid()
        gaps = {"without an answer": self.missing, "without labels": self.unlabelled}
        if any(gaps.values()):
            yield "; ".join(f"{n:,} queries {what}" for what, n in gaps.items() if n)

    def _compute_facts(self) -> dict[str, Any]:
        return {"mean": self.mean(), "queries": len(self)}


def evaluate(
    consensus: Consensus,
    labels: Labels | Mapping[Id, Mapping[Id, float]],
    metrics: MetricSpec | Iterable[MetricSpec],
    *,
    queries: QueryScope = "judged",
) -> Evaluation:
    """Compute every metric on every query that has labels.

    `queries="judged"` uses the queries of the result that have at least one label (as trec_eval does);
    `"all"` adds those that the result lacks, with 0 for every metric. Labels may be a dictionary, query ->
    item -> grade.

    >>> from podium import Preferences, make
    >>> c = make("rrf").aggregate(Preferences.from_lists({"q": {"bm25": ["a", "b"], "dense": ["b", "c"]}}))
    >>> evaluate(c, {"q": {"b": 1, "c": 2}}, ["ndcg@2", "mrr"])
    Evaluation(1 query: ndcg@2 0.3801, mrr 1.0000)
    """
    return evaluate_all({"the result": consensus}, labels, metrics, queries=queries)["the result"]


def evaluate_all(
    results: Mapping[str, Consensus],
    labels: Labels | Mapping[Id, Mapping[Id, float]],
    metrics: MetricSpec | Iterable[MetricSpec],
    *,
    queries: QueryScope = "judged",
) -> dict[str, Evaluation]:
    """The same for named results; a warning about several results is issued once and names them."""
    for consensus in results.values():
        check_type(consensus, Consensus, "evaluate", "give a consensus, as from a method's `aggregate`")
    if isinstance(labels, Mapping):
        labels = Labels.from_dict(labels)
    check_type(labels, Labels, "evaluate", "give labels, or a dictionary query -> item -> grade")
    if queries not in ("judged", "all"):
        raise ParameterError(f"queries is {queries!r}; accepted: judged, all")
    chosen = parse_all(metrics)
    doubts: list[_ResultWarning] = []
    evaluations = {
        name: _evaluate_one(name, c, labels, chosen, queries, doubts) for name, c in results.items()
    }
    for kind in dict.fromkeys(d.kind for d in doubts):
        group = [d for d in doubts if d.kind == kind]
        some = ", ".join(d.name for d in group[:NAMED]) + (", ..." if len(group) > NAMED else "")
        who = some if len(group) == 1 else f"{len(group)} results ({some})"
        warnings.warn(kind.format(who=who) + group[0].detail, PodiumWarning, stacklevel=3)
    return evaluations


class _ResultWarning(NamedTuple):
    """A warning that the figures of a result are meaningless; details are those of the first such result."""

    name: str
    kind: str
    detail: str


def _evaluate_one(
    name: str,
    consensus: Consensus,
    labels: Labels,
    metrics: tuple[Metric, ...],
    queries: QueryScope,
    doubts: list[_ResultWarning],
) -> Evaluation:
    judgements = Judgements.for_labels(labels)
    here = judgements.match_rankings(consensus).query
    judged = judgements.judged_counts > 0
    which = np.flatnonzero(judged & (here >= 0))
    which = which[np.argsort(here[which], kind="stable")]  # in the order of the result
    lacking = np.flatnonzero(judged & (here < 0))
    doubts += _find_unmatched_ids(name, consensus, judgements, which)
    index, order, scores = consensus.index, consensus.order, consensus.scores
    several = here[which][index.sizes[here[which]] > 1]
    first, last = index.starts[several], index.starts[several] + index.sizes[several] - 1
    if len(several) and (scores[order[first]] == scores[order[last]]).all():
        # only the tie rule orders constant scores, so their metrics are meaningless
        kind = "all items of every query have the same score in {who}: "
        detail = f"the order is that of the tie rule ({consensus.ties!r})"
        doubts.append(_ResultWarning(name, kind, detail))
    used = np.concatenate((which, lacking)) if queries == "all" else which
    return Evaluation(
        metrics,
        labels.queries.take(used),
        measure(metrics, consensus, labels, used),
        consensus.method,
        len(lacking),
        len(consensus) - len(which),
        consensus.queries,
    )


def mean_of(values: F8) -> float:
    """Exactly rounded mean, so that it does not depend on query order."""
    known = values[~np.isnan(values)]
    return math.fsum(known.tolist()) / len(known) if len(known) else math.nan


def _find_unmatched_ids(
    name: str, consensus: Consensus, judgements: Judgements, which: I8
) -> list[_ResultWarning]:
    """Warn if result and labels share nothing: their ids are nearly always written in two ways."""
    labels = judgements.labels
    if not len(consensus) or not len(labels):
        return []
    ours, theirs, what = consensus.queries, labels.queries, "query"
    if len(which):
        if (judgements.match_rankings(consensus).level < len(judgements.levels)).any():
            return []
        ours, theirs, what = consensus.index.items, labels.index.items, "item"
    detail = (
        f"{name} has {ours[:3]}, the labels have {theirs[:3]}; "
        "ids are compared exactly, case and type included"
    )
    return [_ResultWarning(name, f"{{who}} and the labels share no {what}: ", detail)]
