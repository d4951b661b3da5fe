"""Comparison of results on the same labels: means, differences to a baseline, and their significance."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from podium.core import registry
from podium.core.errors import InputError, ParameterError, check_type
from podium.core.params import suggest_names
from podium.core.settings import CompareSettings
from podium.core.tables import Grid
from podium.data.consensus import Consensus
from podium.data.ids import Id, id_order
from podium.data.labels import Labels
from podium.data.preferences import Form
from podium.evaluate.evaluation import Evaluation, QueryScope, evaluate_all, mean_of
from podium.evaluate.significance import TESTS, assess_differences, holm
from podium.kernels.dispatch import F8
from podium.metrics.base import Metric, MetricSpec, parse, parse_all
from podium.metrics.binary import Judged

__all__ = [
    "Comparison",
    "ComparisonRow",
    "Pair",
    "QueryRow",
    "compare",
    "compare_evaluations",
    "usual_methods",
]

USUAL = ("rrf", "borda", "combmnz", "condorcet", "mc4")
NEAR = 1e-12  # values of a query closer than this are tied


@dataclass(frozen=True)
class ComparisonRow:
    """One result on one metric; the baseline's own rows have no difference."""

    name: str
    metric: str
    mean: float
    judged: float  # share of the evaluated places that have a grade; NaN if not measured
    difference: float | None = None
    low: float | None = None  # interval of the difference
    high: float | None = None
    p: float | None = None
    p_holm: float | None = None  # corrected for all rows of the comparison
    wins: int | None = None  # queries where it beats the baseline
    ties: int | None = None
    losses: int | None = None


@dataclass(frozen=True)
class Pair:
    """Two results on one metric, higher mean first; p is corrected over all pairs of the metric."""

    better: str
    worse: str
    metric: str
    difference: float
    low: float
    high: float
    p: float
    p_holm: float
    wins: int  # queries where `better` is better
    ties: int
    losses: int


@dataclass(frozen=True)
class QueryRow:
    """All results on one query: `difference` is the value of `other` minus that of the baseline."""

    query: Id
    values: Mapping[str, float]  # by result; NaN if undefined
    judged: Mapping[str, float]  # by result: share of the evaluated places that have a grade
    other: str  # the requested result, or the one farthest from the baseline
    difference: float
    winner: str | None  # the best result; None if several are tied


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """All rows, metric by metric, and the evaluations behind them."""

    baseline: str
    rows: tuple[ComparisonRow, ...]
    evaluations: Mapping[str, Evaluation]
    test: str
    level: float
    queries: int
    rounds: int = 10_000
    seed: int = 0
    left_out: Mapping[str, str] = field(default_factory=dict)  # method -> why it has no result
    remarks: tuple[str, ...] = ()  # remarks on the input, added to the notes

    def __repr__(self) -> str:
        what = f"{len(self.evaluations)} results on {self.queries:,} queries"
        return f"Comparison({what}, baseline {self.baseline!r}, {self.test} test)"

    def row(self, name: str, metric: MetricSpec) -> ComparisonRow:
        """One row."""
        wanted = str(parse_all([metric])[0])
        for row in self.rows:
            if (row.name, row.metric) == (name, wanted):
                return row
        raise ParameterError(
            f"there is no row for {name!r} and {wanted}; {suggest_names(name, self.evaluations)}"
        )

    @property
    def metrics(self) -> tuple[str, ...]:
        """Printed forms of the metrics, in row order."""
        return tuple(dict.fromkeys(row.metric for row in self.rows))

    def pairs(self, metric: MetricSpec | None = None) -> tuple[Pair, ...]:
        """All pairs of results on one metric (default: the first), best first, Holm-corrected."""
        return _compare_all_pairs(self, self._resolve_metric(metric))

    def per_query(self, metric: MetricSpec | None = None, *, name: str | None = None) -> tuple[QueryRow, ...]:
        """One row per query, largest difference to the baseline first.

        The difference is that of result `name`, or of the result farthest from the baseline on that query.
        """
        return _compare_per_query(self, self._resolve_metric(metric), name)

    def verdict(self, metric: MetricSpec | None = None) -> str:
        """The conclusion about all results against the baseline, in one or two sentences."""
        from podium.evaluate.comparison_tables import describe_verdict

        return describe_verdict(self, self._resolve_metric(metric))

    @property
    def notes(self) -> tuple[str, ...]:
        """Caveats: too few queries, too few judged items, methods that failed."""
        from podium.evaluate.comparison_tables import list_notes

        return list_notes(self)

    def grids(self) -> list[Grid]:
        """One text table per metric, best first, with the judged share next to every figure."""
        from podium.evaluate.comparison_tables import metric_grid

        return [metric_grid(self, metric) for metric in self.metrics]

    def to_dict(self) -> dict[str, Any]:
        """Everything except the values by query, as plain values; None where a figure is undefined."""
        from podium.evaluate.comparison_tables import to_document

        return to_document(self)

    def to_markdown(self, further: Sequence[Grid] = ()) -> str:
        """Markdown: tables, verdicts and notes, followed by further tables."""
        from podium.evaluate.comparison_tables import as_markdown

        return as_markdown(self, further)

    def to_latex(self, further: Sequence[Grid] = ()) -> str:
        """LaTeX tables with booktabs rules; verdicts and notes as comments."""
        from podium.evaluate.comparison_tables import as_latex

        return as_latex(self, further)

    def to_csv(self) -> str:
        """One line per result and metric with all digits."""
        from podium.evaluate.comparison_tables import as_csv

        return as_csv(self)

    def to_json(self) -> str:
        """The document of `to_dict` as JSON text."""
        from podium.core.tables import format_json

        return format_json(self.to_dict())

    def to_html(self, further: Sequence[Grid] = (), *, page: bool = True) -> str:
        """An HTML page that needs no network, or only its body."""
        from podium.evaluate.comparison_tables import as_html

        return as_html(self, further, page=page)

    def _repr_html_(self) -> str:
        return self.to_html(page=False)

    def _resolve_metric(self, metric: MetricSpec | None) -> Metric:
        wanted = parse(self.metrics[0] if metric is None else metric)
        if str(wanted) not in self.metrics:
            raise ParameterError(f"{wanted} was not compared; there are {', '.join(self.metrics)}")
        return wanted


def usual_methods(forms: frozenset[Form]) -> list[str]:
    """A few well-known methods of different kinds that read these forms, used if none is named."""
    wanted = (*USUAL, "bradley_terry") if Form.COMPARISON in forms else USUAL
    return [n for n in wanted if forms <= registry.aggregators.get(n).tags.accepts] or ["copeland"]


def compare(
    results: Mapping[str, Consensus],
    labels: Labels,
    metrics: MetricSpec | Iterable[MetricSpec],
    *,
    baseline: str | None = None,
    test: str = CompareSettings.test,
    level: float = CompareSettings.level,
    rounds: int = CompareSettings.rounds,
    seed: int = CompareSettings.seed,
    queries: QueryScope = "all",
) -> Comparison:
    """Compare named results with a baseline (default: the first).

    Differences are paired by query. With `queries="all"` a query that a result lacks counts as 0 for it; with
    `"judged"` only queries that every result has are used. `test` is the paired test: `t` (Student's) and
    `randomisation` come with their own intervals, `wilcoxon` with Student's. `rounds` and `seed` control the
    random signs. Holm's correction covers the whole table.

    >>> from podium import Preferences, make
    >>> p = Preferences.from_lists({q: {1: ["a", "b"], 2: ["b", "a"], 3: ["b"]} for q in range(4)})
    >>> both = {name: make(name).aggregate(p) for name in ("rrf", "isr")}
    >>> compare(both, Labels.from_dict({q: {"b": 1} for q in range(4)}), "mrr").row("isr", "mrr").ties
    4
    """
    check_type(results, Mapping, "compare", "give results by name, as in {'rrf': ...}")
    check_type(labels, Labels, "compare", "give labels to compare with")
    if not results:
        raise ParameterError("there is nothing to compare; give at least one result by name")
    chosen = parse_all(metrics)
    _check_common(results, labels)
    asked = tuple(dict.fromkeys((*chosen, *(Judged(cutoff=m.cutoff) for m in chosen))))
    whole = evaluate_all(results, labels, asked, queries=queries)
    return compare_evaluations(
        whole, chosen, baseline=baseline, test=test, level=level, rounds=rounds, seed=seed
    )


def compare_evaluations(
    evaluations: Mapping[str, Evaluation],
    metrics: MetricSpec | Iterable[MetricSpec],
    *,
    baseline: str | None = None,
    test: str = CompareSettings.test,
    level: float = CompareSettings.level,
    rounds: int = CompareSettings.rounds,
    seed: int = CompareSettings.seed,
) -> Comparison:
    """The same for existing evaluations, on the queries that all of them share."""
    base = next(iter(evaluations)) if baseline is None else baseline
    if base not in evaluations:
        raise ParameterError(
            f"there is no result {base!r} to compare with; {suggest_names(base, evaluations)}"
        )
    if test not in TESTS:
        raise ParameterError(f"test is {test!r}; accepted: {', '.join(TESTS)}")
    aligned = _restrict_to_common_queries(evaluations)
    how = _TestSettings(test, level, rounds, seed)
    rows = [row for m in parse_all(metrics) for row in _build_metric_rows(m, aligned, base, how)]
    count = len(next(iter(aligned.values())))
    return Comparison(base, _correct_p_values(rows), aligned, test, level, count, rounds, seed)


def _check_common(results: Mapping[str, Consensus], labels: Labels) -> None:
    """Reject results without any labelled query: their metrics would all be a meaningless 0."""
    known = set(labels.queries)
    if any(q in known for c in results.values() for q in c.queries):
        return
    ours = next(iter(results.values())).queries[:3]
    raise InputError(
        f"no result shares a query with the labels: the results have {ours}, the labels have {labels.queries[:3]}",
        remedy="ids are compared exactly, case and type included",
    )


def _restrict_to_common_queries(evaluations: Mapping[str, Evaluation]) -> dict[str, Evaluation]:
    """The evaluations on their common queries, sorted by id: random signs must not depend on row order."""
    first, *others = evaluations.values()
    known = [set(e.queries) for e in others]
    common = sorted((q for q in first.queries if all(q in k for k in known)), key=id_order)
    if not common:
        raise InputError(
            "there is no judged query that all results have", remedy="compare results that share some"
        )
    out = {}
    for name, e in evaluations.items():
        at = np.array([e.queries.code_of(q) for q in common], np.int64)
        out[name] = replace(e, queries=e.queries.take(at), values=e.values[:, at])
    return out


class _TestSettings(NamedTuple):
    """Settings of the significance test."""

    test: str
    level: float
    rounds: int
    seed: int


class _PairedOutcome(NamedTuple):
    """Summary of two results' differences by query."""

    difference: float
    low: float
    high: float
    p: float
    wins: int
    ties: int
    losses: int


def _assess_rows(differences: F8, how: _TestSettings) -> list[_PairedOutcome]:
    """One outcome per row of differences by query; NaN marks queries where the metric is undefined."""
    assessed = assess_differences(differences, **how._asdict())
    found = []
    for row, p, low, high in zip(differences, *(column.tolist() for column in assessed), strict=True):
        d = row[~np.isnan(row)]
        near = np.abs(d) <= NEAR
        counts = int((d[~near] > 0).sum()), int(near.sum()), int((d[~near] < 0).sum())
        found.append(_PairedOutcome(mean_of(d), low, high, p, *counts))
    return found


def _build_metric_rows(
    metric: Metric, evaluations: Mapping[str, Evaluation], base: str, how: _TestSettings
) -> list[ComparisonRow]:
    """The rows of one metric, in result order."""
    judged = Judged(cutoff=metric.cutoff)
    rows = {
        name: ComparisonRow(
            name,
            str(metric),
            mean_of(own[metric]),
            mean_of(own[judged][own.answered]) if judged in own.metrics else math.nan,
        )
        for name, own in evaluations.items()
    }
    others = [name for name in evaluations if name != base]
    width = len(evaluations[base])
    values = np.array([evaluations[name][metric] for name in others]).reshape(len(others), width)
    for name, found in zip(others, _assess_rows(values - evaluations[base][metric], how), strict=True):
        rows[name] = replace(rows[name], **found._asdict())
    return list(rows.values())


def _correct_p_values(rows: list[ComparisonRow]) -> tuple[ComparisonRow, ...]:
    tested = [i for i, r in enumerate(rows) if r.p is not None]
    adjusted = holm([math.nan if (p := rows[i].p) is None else p for i in tested])
    out = list(rows)
    for i, p in zip(tested, adjusted.tolist(), strict=True):
        out[i] = replace(rows[i], p_holm=p)
    return tuple(out)


def _compare_all_pairs(found: Comparison, metric: Metric) -> tuple[Pair, ...]:
    means = {name: mean_of(e[metric]) for name, e in found.evaluations.items()}
    best_first = sorted(means, key=lambda name: -means[name] if means[name] == means[name] else math.inf)
    named = [(a, b) for i, a in enumerate(best_first) for b in best_first[i + 1 :]]
    value = {name: e[metric] for name, e in found.evaluations.items()}
    differences = np.array([value[a] - value[b] for a, b in named]).reshape(len(named), found.queries)
    outcomes = _assess_rows(differences, _TestSettings(found.test, found.level, found.rounds, found.seed))
    adjusted = holm([o.p for o in outcomes]).tolist()
    return tuple(
        Pair(a, b, str(metric), *o[:4], p_holm, *o[4:])
        for (a, b), o, p_holm in zip(named, outcomes, adjusted, strict=True)
    )


def _compare_per_query(found: Comparison, metric: Metric, name: str | None) -> tuple[QueryRow, ...]:
    names = list(found.evaluations)
    others = [n for n in names if n != found.baseline] if name is None else [name]
    if name is not None and name not in found.evaluations:
        raise ParameterError(f"there is no result {name!r}; {suggest_names(name, names)}")
    if not others:
        raise ParameterError("there is only one result; give another to compare it with")
    first = found.evaluations[names[0]]
    judged = Judged(cutoff=metric.cutoff)
    value = {n: e[metric].tolist() for n, e in found.evaluations.items()}
    unknown = [math.nan] * found.queries
    shares = {n: e[judged].tolist() if judged in e.metrics else unknown for n, e in found.evaluations.items()}
    rows = []
    for i, query in enumerate(first.queries):
        mine = {n: value[n][i] for n in names}
        gaps = {n: mine[n] - mine[found.baseline] for n in others}
        other = max(others, key=lambda n: abs(gaps[n]) if gaps[n] == gaps[n] else -1.0)
        rows.append(
            QueryRow(query, mine, {n: shares[n][i] for n in names}, other, gaps[other], _find_winner(mine))
        )
    return tuple(sorted(rows, key=lambda r: -abs(r.difference) if r.difference == r.difference else 1.0))


def _find_winner(values: Mapping[str, float]) -> str | None:
    known = {n: v for n, v in values.items() if v == v}
    best = max(known.values(), default=math.nan)
    top = [n for n, v in known.items() if best - v <= NEAR]
    return top[0] if len(top) == 1 else None
