"""What it costs to type tuned values into an engine whose formula differs, on queries that did not tune them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, cast

import numpy as np

from podium.core import registry
from podium.core.errors import InputError, ParameterError
from podium.core.params import Range, parameters
from podium.core.progress import Progress, no_progress
from podium.core.results import Column, Result, build_grid, show_field
from podium.core.tables import Grid, format_decimal, format_interval
from podium.data.consensus import Consensus
from podium.data.dataset import Dataset
from podium.data.ids import Ids
from podium.deployment.deploy_method import DEPTH, deploy
from podium.evaluate.comparison import compare_evaluations
from podium.evaluate.evaluation import Evaluation, evaluate_all
from podium.evaluate.splits import find_labeled_queries
from podium.evaluate.tuning import Tuning, tune
from podium.methods.base import make
from podium.methods.dialects.fusion_engine import FusionEngine
from podium.methods.dialects.textbook import read_textbook
from podium.metrics.base import Metric, MetricSpec, parse

__all__ = ["CopyingCost", "CopyingRow", "measure_copying_cost"]

TRIALS = 100  # configurations of each search
TUNED = "tuned"
ROUNDS = 100  # the estimates of the inner searches are not used


class CopyingRow(NamedTuple):
    """One way to use tuned values, measured on held-out queries."""

    name: str
    mean: float
    difference: float | None  # to the tuned method
    low: float | None
    high: float | None


@dataclass(frozen=True, eq=False, repr=False)
class CopyingCost(Result[CopyingRow]):
    """The metric of a tuned method on held-out queries, and of what an engine makes of the same values."""

    metric: Metric
    method: str
    engine: str
    rows: tuple[CopyingRow, ...]
    queries: int
    folds: int
    level: float
    notes: tuple[str, ...] = ()

    key = "name"
    facts = ("metric", "method", "engine", "rows", "queries", "folds", "level", "notes")

    def headline(self) -> str:
        """The loss of the values that were typed in."""
        typed = self.rows[2]
        return f"{self.method} typed into {self.engine}: {self.metric} {typed.mean:.4f}, tuned {self.rows[1].mean:.4f}"

    def grid(self) -> Grid:
        """The rows with their differences to the tuned method."""
        columns: list[Column] = [
            (f"{self.metric} on held-out queries", show_field("name")),
            ("mean", show_field("mean", format_decimal)),
            (
                "against tuned",
                lambda r: "" if r.difference is None else format_decimal(r.difference, sign=True),
            ),
            (f"{self.level:.0%} interval", lambda r: format_interval(r.low, r.high)),
        ]
        return build_grid(columns, self.rows)

    def _compute_facts(self) -> dict[str, Any]:
        return {"metric": str(self.metric)}


def measure_copying_cost(
    dataset: Dataset,
    to: str,
    method: str = "rrf",
    *,
    metric: MetricSpec = "ndcg@10",
    folds: int = 5,
    depth: int = DEPTH,
    trials: int = TRIALS,
    seed: int = 0,
    progress: Progress = no_progress,
) -> CopyingCost:
    """What an engine makes of values tuned for a textbook method: each fold is measured with those of the others.

    The rows are the method untuned, tuned, its values typed into the engine, the deployed form, the engine's
    default, and the engine tuned in its own formula.
    """
    engine: type[FusionEngine] = registry.engines.get(to)
    textbook, chosen = make(method), parse(metric)
    if read_textbook(textbook) is None or textbook.tags.dialect:
        raise ParameterError(
            f"{textbook.name} is not a textbook rule; the cost of copying is that of rrf, combsum or dbsf"
        )
    parts: dict[str, list[Evaluation]] = {}
    notes: dict[str, None] = {}
    if dataset.labels is None:
        raise InputError("the data have no labels to tune by", remedy="give labels (qrels)")
    by_id = dataset.queries_by_id()
    codes = by_id[find_labeled_queries(dataset)[by_id]]
    if len(codes) < 2 * folds:
        raise InputError(
            f"{len(codes)} labeled queries are too few for {folds} folds", remedy="label more queries"
        )
    fold = np.random.default_rng(seed).permutation(np.arange(len(codes)) % folds)
    for number in range(folds):
        train, test = dataset.select_codes(codes[fold != number]), dataset.select_codes(codes[fold == number])
        progress(number, folds, "tuning folds")
        search = partial(tune, train, chosen, trials=trials, seed=seed, rounds=ROUNDS)
        results, reason = _rank_held_out(search, test, engine, method, depth)
        notes |= dict.fromkeys([f"fold {number + 1}: {reason}"] if reason else [])
        assert test.labels is not None
        for name, evaluation in evaluate_all(results, test.labels, [chosen], queries="judged").items():
            parts.setdefault(name, []).append(evaluation)
    progress(folds, folds, "done")
    whole = {}
    for name, several in parts.items():
        queries = Ids([q for e in several for q in e.queries])
        values = np.concatenate([e.values for e in several], axis=1)
        whole[name] = Evaluation(several[0].metrics, queries, values, several[0].method)
    comparison = compare_evaluations(whole, chosen, baseline=TUNED)
    by_name = {row.name: row for row in comparison.rows}
    rows = (by_name[name] for name in whole)
    made = tuple(CopyingRow(r.name, r.mean, r.difference, r.low, r.high) for r in rows)
    return CopyingCost(
        chosen, repr(textbook), engine.title, made, comparison.queries, folds, comparison.level, tuple(notes)
    )


def _rank_held_out(
    search: Callable[..., Tuning], test: Dataset, engine: type[FusionEngine], method: str, depth: int
) -> tuple[dict[str, Consensus], str]:
    """The ways to use what was found on the training queries, and why the deployed form is not exact."""
    preferences = test.preferences
    experts = preferences.experts.tolist()
    textbook, tuned = make(method), search([method]).best
    own = engine.list_methods()
    deployed = deploy(tuned, engine.name, experts=experts, depth=depth, nearest=True)
    default = deploy(make(own[0]), engine.name, experts=experts, depth=depth, nearest=True)
    native = search(engine=engine.name).best
    found = deploy(native, engine.name, experts=experts, depth=depth, nearest=True)
    # the engine's method with k and weights as they were tuned for another formula
    cls: Any = type(deployed.form.method)
    values = deployed.form.method.get_parameters()
    for p in parameters(cls):
        if p.name == "k" and isinstance(p.accepts, Range):
            value = min(max(cast(Any, tuned).k, p.accepts.low), p.accepts.high)
            values["k"] = p.kind(round(value)) if p.kind is int else value
    if cls.tags.weighted:
        values["weights"] = tuned.weights
    results = {
        f"{textbook!r}, untuned": textbook.aggregate(preferences),
        TUNED: tuned.aggregate(preferences),
        f"the same values typed into {engine.title}": cls(**values).aggregate(preferences),
        f"deployed to {engine.title}": deployed.emulate(preferences),
        f"{engine.title} by default ({own[0]})": default.emulate(preferences),
        f"tuned for {engine.title}": found.emulate(preferences),
    }
    return results, deployed.form.reason
