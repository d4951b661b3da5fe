"""The result of a cross-validation: evaluations by method and fold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from podium.core.errors import ParameterError
from podium.core.old_names import RenamedAttribute
from podium.core.params import suggest_names
from podium.core.results import Result
from podium.core.tables import Grid, format_decimal
from podium.data.ids import Id, Ids
from podium.evaluate.comparison import Comparison, compare_evaluations
from podium.evaluate.evaluation import Evaluation, mean_of
from podium.metrics.base import Metric, MetricSpec

if TYPE_CHECKING:
    from podium.data.frames import FrameBackend

__all__ = ["CrossValidation", "FoldResult"]


class FoldResult(NamedTuple):
    """The result of one fold for one method."""

    evaluation: Evaluation  # of the test part
    chosen: str  # the selected candidate
    validation: dict[str, float]  # every candidate on the validation part, if there are several
    dropped: list[Id]  # experts removed by pruning
    fit_seconds: float
    aggregate_seconds: float

    def to_plain(self) -> dict[str, Any]:
        """As plain values, for a file."""
        e = self.evaluation
        names = ("method", "missing", "unlabelled")
        evaluation = {"queries": e.queries.tolist(), "values": e.values.tolist()}
        return {**self._asdict(), "evaluation": evaluation | {name: getattr(e, name) for name in names}}

    @classmethod
    def from_plain(cls, kept: dict[str, Any], metrics: tuple[Metric, ...]) -> FoldResult:
        """The result that `to_plain` describes."""
        about = dict(kept["evaluation"])
        queries, values = Ids(about.pop("queries")), np.array(about.pop("values"), np.float64)
        evaluation = Evaluation(metrics, queries, values.reshape(len(metrics), -1), **about)
        return cls(**(kept | {"evaluation": evaluation}))


@dataclass(frozen=True, eq=False, repr=False)
class CrossValidation(Result[str]):
    """Results by method and fold; `pooled` merges them by query."""

    metrics: tuple[Metric, ...]
    results: Mapping[str, tuple[FoldResult, ...]]
    baseline: str

    pooled = RenamedAttribute("pool_folds")
    facts = ("metrics", "baseline", "folds", "mean")

    @property
    def rows(self) -> tuple[str, ...]:
        """Names of the methods."""
        return tuple(self.results)

    @property
    def folds(self) -> int:
        """Number of folds."""
        return len(next(iter(self.results.values())))

    @property
    def title(self) -> str:
        """Number of folds."""
        return f"CrossValidation, means over {self.folds} folds"

    def headline(self) -> str:
        """Number of folds, and the means of each method."""
        means = {
            name: ", ".join(f"{m} {v:.4f}" for m, v in self.mean(name, digits=None).items())
            for name in self.results
        }
        return f"{self.folds} folds; {'; '.join(f'{name}: {text}' for name, text in means.items())}"

    def grid(self) -> Grid:
        """Means over the folds, one row per method."""
        means = {name: self.mean(name, digits=None) for name in self.results}
        rows = tuple((name, *map(format_decimal, values.values())) for name, values in means.items())
        return Grid(("method", *map(str, self.metrics)), rows)

    def _compute_facts(self) -> dict[str, Any]:
        means = {name: self.mean(name, digits=None) for name in self.results}
        return {"metrics": [str(m) for m in self.metrics], "mean": means}

    def __getitem__(self, name: str) -> tuple[FoldResult, ...]:
        if name not in self.results:
            raise ParameterError(f"there is no result {name!r}; {suggest_names(name, self.results)}")
        return self.results[name]

    def fold_means(self, name: str) -> list[dict[str, float]]:
        """The means of each fold's test part."""
        return [fold.evaluation.mean() for fold in self[name]]

    def mean(self, name: str, digits: int | None = 4) -> dict[str, float]:
        """Mean of the fold means, each first rounded to `digits`, as in LETOR's scripts."""
        means = self.fold_means(name)
        return {
            m: mean_of(np.array([mean[m] if digits is None else round(mean[m], digits) for mean in means]))
            for m in map(str, self.metrics)
        }

    def pool_folds(self, name: str) -> Evaluation:
        """One value per query: from the fold that tests it, or the mean over several such folds."""
        evaluations = [fold.evaluation for fold in self[name]]
        seen: dict[tuple[type, Id], list[Any]] = {}
        for e in evaluations:
            for query, values in zip(e.queries, e.values.T, strict=True):
                seen.setdefault((type(query), query), []).append(values)
        columns = [[mean_of(np.array(column)) for column in zip(*v, strict=True)] for v in seen.values()]
        return Evaluation(
            self.metrics,
            Ids([query for _, query in seen]),
            np.array(columns).T.reshape(len(self.metrics), len(seen)),
            name,
            sum(e.missing for e in evaluations),
            sum(e.unlabelled for e in evaluations),
        )

    def compare(
        self,
        baseline: str | None = None,
        metrics: MetricSpec | Iterable[MetricSpec] | None = None,
        **settings: Any,
    ) -> Comparison:
        """Paired tests of all methods against a baseline on the pooled values; see `podium.compare`."""
        base = self.baseline if baseline is None else baseline
        chosen = self.metrics if metrics is None else metrics
        pooled = {name: self.pool_folds(name) for name in self.results}
        return compare_evaluations(pooled, chosen, baseline=base, **settings)

    def to_frame(self, backend: FrameBackend = "pyarrow") -> Any:
        """A dataframe with one row per method, fold and query, and one column per metric."""
        from podium.data.frames import values_frame

        rows = [
            (query, name, number, *values)
            for name, folds in self.results.items()
            for number, fold in enumerate(folds)
            for query, values in zip(fold.evaluation.queries, fold.evaluation.values.T.tolist(), strict=True)
        ]
        names = ("method", "fold", *map(str, self.metrics))
        columns = {name: np.array([row[i + 1] for row in rows]) for i, name in enumerate(names)}
        return values_frame(Ids([row[0] for row in rows]), columns, backend)
