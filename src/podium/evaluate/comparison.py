"""Several results on the same labels: means, differences to a baseline, and whether those are luck."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from podium.data.consensus import Consensus
from podium.data.labels import Labels
from podium.errors import ParameterError
from podium.evaluate.evaluation import Evaluation, Queries, evaluate
from podium.evaluate.significance import TESTS, bootstrap_interval, holm
from podium.kernels.dispatch import F8
from podium.metrics.base import Metric, MetricSpec, parse_all
from podium.metrics.binary import Judged
from podium.params import suggest

__all__ = ["Comparison", "ComparisonRow", "compare", "compare_evaluations"]


@dataclass(frozen=True)
class ComparisonRow:
    """One result on one metric; the baseline's own rows have no difference."""

    name: str
    metric: str
    mean: float
    judged: float  # share of the places that the metric looks at which have a grade; NaN if not measured
    difference: float | None = None
    low: float | None = None  # interval of the difference
    high: float | None = None
    p: float | None = None
    p_holm: float | None = None  # corrected for all rows of the comparison
    wins: int | None = None  # queries better than the baseline
    ties: int | None = None
    losses: int | None = None


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """All rows, metric by metric, and the evaluations they were made from."""

    baseline: str
    rows: tuple[ComparisonRow, ...]
    evaluations: Mapping[str, Evaluation]
    test: str
    level: float
    queries: int

    def __repr__(self) -> str:
        what = f"{len(self.evaluations)} results on {self.queries:,} queries"
        return f"Comparison({what}, baseline {self.baseline!r}, {self.test} test)"

    def row(self, name: str, metric: MetricSpec) -> ComparisonRow:
        """One row."""
        wanted = str(parse_all([metric])[0])
        for row in self.rows:
            if (row.name, row.metric) == (name, wanted):
                return row
        raise ParameterError(f"there is no row for {name!r} and {wanted}; {suggest(name, self.evaluations)}")


def compare(
    results: Mapping[str, Consensus],
    labels: Labels,
    metrics: MetricSpec | Iterable[MetricSpec],
    *,
    baseline: str | None = None,
    test: str = "randomisation",
    level: float = 0.95,
    rounds: int = 10_000,
    seed: int = 0,
    queries: Queries = "all",
) -> Comparison:
    """Compare results by name with a baseline (default: the first).

    Differences are taken query by query. With `queries="all"` a query that a result lacks counts as 0 for it;
    with `"judged"` only queries that every result has are used. Holm's correction is over the whole table.

    >>> from podium import Preferences, make
    >>> p = Preferences.from_lists({q: {1: ["a", "b"], 2: ["b", "a"], 3: ["b"]} for q in range(4)})
    >>> both = {name: make(name).aggregate(p) for name in ("rrf", "isr")}
    >>> compare(both, Labels.from_dict({q: {"b": 1} for q in range(4)}), "mrr").row("isr", "mrr").ties
    4
    """
    if not results:
        raise ParameterError("there is nothing to compare; give at least one result by name")
    chosen = parse_all(metrics)
    asked = tuple(dict.fromkeys((*chosen, *(Judged(cutoff=m.cutoff) for m in chosen))))
    whole = {name: evaluate(c, labels, asked, queries=queries) for name, c in results.items()}
    return compare_evaluations(
        whole, chosen, baseline=baseline, test=test, level=level, rounds=rounds, seed=seed
    )


def compare_evaluations(
    evaluations: Mapping[str, Evaluation],
    metrics: MetricSpec | Iterable[MetricSpec],
    *,
    baseline: str | None = None,
    test: str = "randomisation",
    level: float = 0.95,
    rounds: int = 10_000,
    seed: int = 0,
) -> Comparison:
    """The same for results that are evaluated already, on the queries that all of them have."""
    base = next(iter(evaluations)) if baseline is None else baseline
    if base not in evaluations:
        raise ParameterError(f"there is no result {base!r} to compare with; {suggest(base, evaluations)}")
    if test not in TESTS:
        raise ParameterError(f"test is {test!r}; accepted: {', '.join(TESTS)}")
    aligned = _on_common_queries(evaluations)
    settings = {"test": test, "level": level, "rounds": rounds, "seed": seed}
    rows = [_row(name, m, aligned, base, settings) for m in parse_all(metrics) for name in evaluations]
    count = len(next(iter(aligned.values())))
    return Comparison(base, _corrected(rows), aligned, test, level, count)


def _on_common_queries(evaluations: Mapping[str, Evaluation]) -> dict[str, Evaluation]:
    """The evaluations on the queries that all of them have, in the order of the first."""
    first, *others = evaluations.values()
    known = [set(e.queries) for e in others]
    common = [q for q in first.queries if all(q in k for k in known)]
    out = {}
    for name, e in evaluations.items():
        at = np.array([e.queries.code_of(q) for q in common], np.int64)
        out[name] = replace(e, queries=e.queries.take(at), values=e.values[:, at])
    return out


def _row(
    name: str,
    metric: Metric,
    evaluations: Mapping[str, Evaluation],
    base: str,
    settings: Mapping[str, object],
) -> ComparisonRow:
    own = evaluations[name]
    means = own.mean()
    judged = means.get(str(Judged(cutoff=metric.cutoff)), math.nan)
    row = ComparisonRow(name, str(metric), means[str(metric)], judged)
    if name == base:
        return row
    d = own[metric] - evaluations[base][metric]
    d = d[~np.isnan(d)]
    p, low, high = _tested(d, **settings)  # type: ignore[arg-type]
    near = np.abs(d) <= 1e-12
    return replace(
        row,
        difference=math.fsum(d.tolist()) / len(d) if len(d) else math.nan,
        low=low,
        high=high,
        p=p,
        wins=int((d[~near] > 0).sum()),
        ties=int(near.sum()),
        losses=int((d[~near] < 0).sum()),
    )


def _tested(d: F8, test: str, level: float, rounds: int, seed: int) -> tuple[float, float, float]:
    if not len(d):
        return math.nan, math.nan, math.nan
    more = {"rounds": rounds, "seed": seed} if test == "randomisation" else {}
    return TESTS[test](d, **more), *bootstrap_interval(d, level=level, rounds=rounds, seed=seed)


def _corrected(rows: list[ComparisonRow]) -> tuple[ComparisonRow, ...]:
    tested = [i for i, r in enumerate(rows) if r.p is not None]
    adjusted = holm([rows[i].p or 0.0 for i in tested])
    out = list(rows)
    for i, p in zip(tested, adjusted.tolist(), strict=True):
        out[i] = replace(rows[i], p_holm=p)
    return tuple(out)
