"""Comparison of results on the same labels: means, differences from a baseline, and their significance."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from podium.core import registry
from podium.core.errors import InputError, ParameterError, check_type
from podium.core.params import suggest_names
from podium.core.settings import CompareSettings
from podium.data.consensus import Consensus
from podium.data.ids import id_order
from podium.data.labels import Labels
from podium.data.preferences import Form
from podium.evaluate.comparison_result import Comparison, ComparisonRow, Pair, QueryRow
from podium.evaluate.evaluation import Evaluation, QueryScope, evaluate_all, mean_of
from podium.evaluate.significance import assess_pairs, holm, resolve_test
from podium.metrics.base import Metric, MetricSpec, parse_all
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
    `randomization` come with their own intervals, `wilcoxon` with Student's. `rounds` and `seed` control the
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
    known = set(labels.queries)
    if not any(q in known for c in results.values() for q in c.queries):
        # all metrics would be a meaningless 0
        ours = next(iter(results.values())).queries[:3]
        raise InputError(
            f"no result shares a query with the labels: the results have {ours}, the labels have {labels.queries[:3]}",
            remedy="ids are compared exactly, case and type included",
        )
    all_metrics = tuple(dict.fromkeys((*chosen, *(Judged(cutoff=m.cutoff) for m in chosen))))
    whole = evaluate_all(results, labels, all_metrics, queries=queries)
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
    test = resolve_test(test)
    # the common queries, sorted by id: random signs must not depend on row order
    first, *others = evaluations.values()
    known = [set(e.queries) for e in others]
    common = sorted((q for q in first.queries if all(q in k for k in known)), key=id_order)
    if not common:
        raise InputError(
            "there is no judged query that all results have", remedy="compare results that share some"
        )
    aligned = {}
    for name, e in evaluations.items():
        at = np.array([e.queries.code_of(q) for q in common], np.int64)
        aligned[name] = replace(e, queries=e.queries.take(at), values=e.values[:, at])
    settings = {"test": test, "level": level, "rounds": rounds, "seed": seed}
    rows = [row for m in parse_all(metrics) for row in _build_metric_rows(m, aligned, base, settings)]
    tested = [i for i, row in enumerate(rows) if row.p is not None]
    adjusted = holm([math.nan if (p := rows[i].p) is None else p for i in tested])
    for i, p in zip(tested, adjusted.tolist(), strict=True):
        rows[i] = replace(rows[i], p_holm=p)
    return Comparison(base, tuple(rows), aligned, test, level, len(common), rounds, seed)


def _build_metric_rows(
    metric: Metric, evaluations: Mapping[str, Evaluation], base: str, settings: Mapping[str, Any]
) -> list[ComparisonRow]:
    """The rows of one metric, in result order."""
    judged = Judged(cutoff=metric.cutoff)
    rows = {
        name: ComparisonRow(
            name,
            str(metric),
            mean_of(own[metric]),
            mean_of(own[judged][own.has_result]) if judged in own.metrics else math.nan,
        )
        for name, own in evaluations.items()
    }
    others = [name for name in evaluations if name != base]
    width = len(evaluations[base])
    values = np.array([evaluations[name][metric] for name in others]).reshape(len(others), width)
    outcomes = assess_pairs(values - evaluations[base][metric], **settings)
    for name, outcome in zip(others, outcomes, strict=True):
        rows[name] = replace(rows[name], **outcome._asdict())
    return list(rows.values())
