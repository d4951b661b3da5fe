"""Tuning from end to end: search space, values, selection, and the estimate for held-out queries."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np

from podium.core import registry
from podium.core.errors import ParameterError, check_type
from podium.core.params import check_settings
from podium.core.progress import Progress, no_progress
from podium.core.settings import TuneSettings
from podium.data.consensus import TieRule
from podium.data.dataset import Dataset
from podium.data.unlisted_rule import describe_unlisted_rule
from podium.evaluate.crossvalidation import STEPS
from podium.evaluate.evaluation import mean_of
from podium.evaluate.tuning.method_selection import (
    resolve_baseline,
    select_engine_methods,
    select_methods,
)
from podium.evaluate.tuning.nested_estimate import (
    ChoiceRule,
    NestedEstimate,
    TuningRow,
    choose_best,
    compute_tuning_row,
    estimate_nested,
)
from podium.evaluate.tuning.result import Tuning, TuningTrial
from podium.evaluate.tuning.score_table import (
    ScoreTable,
    TuningTask,
    find_best,
    find_finalists,
    fit_config,
    measure_method,
    own_values,
)
from podium.evaluate.tuning.search_space import MethodSpace, build_configurations
from podium.kernels import dispatch
from podium.kernels.dispatch import F8, I8
from podium.methods.base import Aggregator
from podium.methods.learned.provenance import note_queries
from podium.metrics.base import MetricSpec, parse
from podium.storage.folder_cache import ResultCache

__all__ = ["build_result", "note_tuning", "span_progress", "tune"]

TIMING = 0.3  # share of the budget after which no further method is timed
FIRST_RUNG = 1 / 3  # share for the first rung of halving; each later rung costs as much
FEW = 10  # fewer judged queries trigger a warning


def tune(
    dataset: Dataset,
    metric: MetricSpec = "ndcg@10",
    methods: Sequence[str | Aggregator] | None = None,
    *,
    supervised: bool = TuneSettings.supervised,
    weights: bool = TuneSettings.weights,
    search: str = TuneSettings.search,
    trials: int = TuneSettings.trials,
    folds: int | None = None,
    seed: int = TuneSettings.seed,
    baseline: str | Aggregator | None = None,
    engine: str | None = None,
    limit: float = TuneSettings.limit,
    budget: float | None = TuneSettings.budget,
    level: float = TuneSettings.level,
    rounds: int = TuneSettings.rounds,
    ties: TieRule = TuneSettings.ties,
    workers: int | None = None,
    resume: str | os.PathLike[str] | None = None,
    progress: Progress = no_progress,
) -> Tuning:
    """Search for the method, parameters and weights with the best metric, and estimate their held-out value.

    Without `methods`, all take part that can read the input and need at most `limit` CPU seconds per
    configuration (or four times the baseline's); those that learn from labels only if `supervised`. A method
    with values, such as `combsum(normalizer=zscore)`, keeps them; its other parameters are searched. Folds
    are the parts of the data set, else `folds` (5) random ones by query; below ten judged queries one is left
    out at a time. The baseline is `rrf` unless given. With an `engine`, such as "qdrant", only the methods
    that it computes are searched, in its formula; its default is the baseline, and the weights of the result
    are those that it takes. After `budget` seconds (300; None: no limit) no further
    configuration is started, and a note gives the number tried; a faster machine may try more and find
    another result. With the folder `resume`, values are stored there as soon as they are known and reused by
    a later call.

    >>> from podium.data.demo import demo
    >>> found = tune(demo(30), "ndcg@5", ["rrf", "borda"], trials=10)
    >>> found.outcome() in ("better", "no difference"), len(found.trials), len(found.chosen)
    (True, 10, 5)
    """
    check_type(dataset, Dataset, "tune", "give podium.Dataset(preferences, labels)")
    methods = [methods] if isinstance(methods, str) else methods
    numbers = {"trials": trials, "folds": folds, "level": level, "rounds": rounds, "workers": workers}
    check_settings(TuneSettings, {"search": search, **numbers})
    if budget is not None and not budget > 0:
        raise ParameterError(f"budget is {budget:g}; accepted: seconds above 0, or None for no limit")
    begin, seconds = time.monotonic(), math.inf if budget is None else budget
    problem = TuningTask.from_dataset(dataset, parse(metric), ties, folds, seed, ResultCache.open(resume))
    if engine is not None:
        methods = select_engine_methods(engine, methods, len(dataset.preferences.experts))
        baseline = registry.engines.get(engine).list_methods()[0] if baseline is None else baseline
    base = resolve_baseline(problem, baseline)
    learns = weights and len(problem) > 2 and len(dataset.preferences.experts) > 1
    chosen, left_out = select_methods(
        problem,
        methods,
        baseline=base,
        supervised=supervised,
        weights=learns,
        limit=limit,
        stop_at=begin + TIMING * seconds,
        progress=span_progress(progress, 0.0, 0.3),
    )
    first = MethodSpace.from_spec(base, False).build_config()
    experts = len(dataset.preferences.experts)
    table = ScoreTable(problem, build_configurations(search, chosen, trials, experts, seed, first))
    table.stop_at = begin + (FIRST_RUNG if search == "halving" else 1.0) * seconds
    # without halving, the rest is known by then
    cut = np.linspace(0.5 if search == "halving" else 0.95, 1.0, problem.fold_count + 1)
    threads = dispatch.count_threads() if workers is None else workers
    last = find_finalists(table, search, None, seed, threads, span_progress(progress, 0.3, cut[0]))
    if 0 in table.failed:
        raise ParameterError(f"the baseline {base!r} cannot be computed: {table.failed[0]}")
    within = [
        find_finalists(table, search, o, seed, threads, span_progress(progress, cut[o], cut[o + 1]))
        for o in range(problem.fold_count)
        if len(problem) > 1
    ]
    estimate = estimate_nested(table, within, repr(base), rounds, seed) if within else None
    left_out |= _find_untried(table, chosen)
    progress(STEPS, STEPS, "done")
    result = build_result(table, last, estimate, repr(base), left_out, search, seed, level, budget)
    if engine is not None:
        result = _round_for_engine(problem, result, engine, base)
    return note_tuning(problem, result)


def _round_for_engine(problem: TuningTask, result: Tuning, engine: str, baseline: Aggregator) -> Tuning:
    """The result with the weights that the engine takes, and a note on what rounding costs.

    Experts that the engine leaves out have weight 0.
    """
    rounded, cls = result.best, registry.engines.get(engine)
    if rounded.weights is not None:
        experts = problem.data.preferences.experts.tolist()
        form = cls().translate(rounded, {e: str(e) for e in experts})
        written = dict(zip((s.expert for s in form.sources), form.weights, strict=True))
        values = rounded.get_parameters() | {"weights": {e: written.get(e, 0.0) for e in experts}}
        rounded = type(rounded)(**values)
        vars(rounded).update({k: v for k, v in vars(result.best).items() if k.endswith("_")})
    columns = np.arange(len(problem))
    before, after, default = (
        mean_of(measure_method(problem, m, columns)) for m in (result.best, rounded, baseline)
    )
    note = (
        f"as {cls.title} takes it: {problem.metric} {before:.4f} before rounding, {after:.4f} after, "
        f"{default:.4f} with {baseline!r}, on the queries it was tuned on"
    )
    return replace(result, best=rounded, notes=(note, *result.notes))


def note_tuning(problem: TuningTask, result: Tuning) -> Tuning:
    """Record in the best configuration what it was tuned on and how good it is, for its configurations."""
    row, best = result.rows[0], cast(Any, result.best)
    best.tuning_ = {
        "metric": str(result.metric),
        "value": float(result.tuned),
        "baseline": result.baseline,
        "difference": row.difference,
        "low": row.low,
        "high": row.high,
        "level": result.level,
        "queries": len(result.queries),
        "fingerprint": problem.data.preferences.fingerprint,
    }
    return result


def span_progress(progress: Progress, low: float, high: float) -> Progress:
    """Progress of a task that is a share of the whole."""

    def report_step(done: int, total: int, what: str) -> None:
        progress(round(STEPS * (low + (high - low) * done / max(total, 1))), STEPS, what)

    return report_step


def _find_untried(table: ScoreTable, families: Sequence[MethodSpace]) -> dict[str, str]:
    """Methods without any computed configuration."""
    listed = {c.method for c in table.configs}
    tried = {c.method for c in table.configs[: table.config_limit]}
    well = {c.method for row, c in enumerate(table.configs[: table.config_limit]) if row not in table.failed}
    out = {f.method: "not reached; allow more trials" for f in families if f.method not in listed}
    out |= dict.fromkeys(listed - tried, "not reached within the time budget; allow more time")
    for row, reason in table.failed.items():
        name = table.configs[row].method
        if name not in well:
            out.setdefault(name, reason)
    return out


def build_result(
    table: ScoreTable,
    last: I8,
    estimate: NestedEstimate | None,
    baseline: str,
    left_out: dict[str, str],
    search: str,
    seed: int,
    level: float,
    budget: float | None,
    choose: ChoiceRule = choose_best,
) -> Tuning:
    """The result for the configuration that the rule chooses among the last ones, fitted on all judged queries."""
    problem, own = table.problem, own_values(table)
    winner = int(last[choose(own[last], np.ones((1, len(problem))))[0]])
    config = table.configs[winner]
    experts = problem.data.preferences.experts.tolist()
    best = (
        fit_config(problem, config, np.arange(len(problem)))
        if config.depends_on_labels
        else config.make_method(experts)
    )
    labels = problem.data.labels
    if labels is not None:  # they selected it, so they cannot measure it
        known = problem.data.preferences.queries.codes_of(labels.queries) >= 0
        note_queries(best, [labels.select_codes(np.flatnonzero(known))])
    if estimate is None:
        # a single query has only training values
        rows = [TuningRow(baseline, mean_of(own[0]))]
        if len(problem.expert_values):
            top = int(find_best(problem.expert_values.mean(axis=1)))
            rows.append(TuningRow(f"oracle expert ({experts[top]})", mean_of(problem.expert_values[top])))
        values = {"tuned": own[winner], baseline: own[0]}
    else:
        rows = [compute_tuning_row(estimate, name, level, seed) for name in estimate.others]
        values = {"tuned": estimate.tuned, **estimate.others}
    return Tuning(
        metric=problem.metric,
        best=best,
        config=config.describe(experts),
        baseline=baseline,
        tuned=mean_of(values["tuned"]),
        rows=tuple(rows),
        trials=_build_trials(table, own, set(last.tolist()), winner),
        chosen=()
        if estimate is None
        else tuple(table.configs[r].describe(experts) for r in estimate.chosen.tolist()),
        left_out=dict(sorted(left_out.items())),
        queries=problem.queries,
        values=values,
        notes=_collect_notes(table, budget),
        search=search,
        folds=problem.fold_count,
        seed=seed,
        level=level,
        budget=budget,
        same=bool((np.abs(own[last] - own[0]) <= 1e-12).all()),
    )


def _build_trials(table: ScoreTable, own: F8, last: set[int], winner: int) -> tuple[TuningTrial, ...]:
    """All configurations: the winner, then those tried on all queries by mean, then those dropped early."""
    known = (~np.isnan(own)).sum(axis=1)
    means = [mean_of(v) for v in own]
    rows = sorted(
        range(table.config_limit),
        key=lambda r: (
            r != winner,
            r in table.failed,
            r not in last,
            -int(known[r]),
            -round(np.nan_to_num(means[r]), 12),
            r,
        ),
    )
    experts, listed = table.problem.data.preferences.experts.tolist(), []
    for r in rows:
        config = table.configs[r]
        failed = table.failed.get(r, "")
        listed.append(TuningTrial(config.method, config.describe(experts), means[r], int(known[r]), failed))
    return tuple(listed)


def _collect_notes(table: ScoreTable, budget: float | None) -> tuple[str, ...]:
    problem, notes = table.problem, []
    if budget is not None and table.config_limit < len(table.configs):
        notes.append(
            f"the time budget of {budget:g} s ended the search after {table.config_limit:,} of {len(table.configs):,} "
            "configurations; a faster machine may try more and choose another: allow more time, or request "
            "fewer methods or trials"
        )
    n, labels = len(problem), problem.data.labels
    assert labels is not None
    if n < FEW:
        notes.append(f"only {n} judged quer{'y' if n == 1 else 'ies'}: expect high uncertainty")
    if n < 3:
        notes.append("weights by quality and methods that learn need three judged queries and were not tried")
    here = set(problem.queries.tolist())
    lacking = sum(q not in here for q in labels.queries)
    if lacking:
        notes.append(
            f"{lacking:,} labeled queries cannot be measured (no judged item in the input) and are left out"
        )
    unlabeled = len(problem.data) - n
    if unlabeled:
        notes.append(f"{unlabeled:,} queries of the input have no usable labels and are left out")
    failed = sum(row < table.config_limit for row in table.failed)
    if failed:
        notes.append(f"{failed:,} configurations could not be computed")
    reading = describe_unlisted_rule(problem.data.preferences)
    return tuple(notes) + ((reading[:1].lower() + reading[1:].rstrip("."),) if reading else ())
