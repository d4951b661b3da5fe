"""Cross-validation: fit on training queries, select on validation queries, measure on test queries."""

from __future__ import annotations

import dataclasses
import math
import os
import time
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from podium.core.errors import InputError, NoGainWarning, ParameterError, check_type
from podium.core.params import suggest_names
from podium.core.progress import Progress, no_progress
from podium.core.version import __version__
from podium.data.consensus import Consensus, TieRule
from podium.data.dataset import Dataset, Fold
from podium.data.ids import Id
from podium.evaluate.crossvalidation_result import CrossValidation, FoldResult
from podium.evaluate.evaluation import Evaluation, evaluate
from podium.evaluate.result_rankings import aggregate_dataset, judged_only
from podium.methods.base import Aggregator, make
from podium.metrics.base import Metric, MetricSpec, parse, parse_all
from podium.storage.digests import digest_dataset, digest_values
from podium.storage.folder_cache import ResultCache

__all__ = ["Candidate", "CrossValidation", "FoldResult", "PrunedMethod", "cross_validate", "subtask_progress"]

STEPS = 1000  # progress steps per task


@dataclass(frozen=True)
class PrunedMethod:
    """A method that is fitted, then refitted by its `prune` without the experts it does not use."""

    method: str | Aggregator

    def __repr__(self) -> str:
        return f"pruned {make(self.method)!r}"

    def key_facts(self) -> list[Any]:
        """Plain values that identify it."""
        return ["pruned", *make(self.method).key_facts()]


Candidate = str | Aggregator | PrunedMethod
ReadyCandidate = Aggregator | PrunedMethod


def cross_validate(
    dataset: Dataset,
    aggregators: Mapping[str, Candidate | Sequence[Candidate]],
    metrics: MetricSpec | Iterable[MetricSpec],
    *,
    folds: Sequence[Fold] | None = None,
    seed: int = 0,
    baseline: str | None = None,
    choose_by: MetricSpec = "map",
    ties: TieRule = "item",
    labelled_only: bool = False,
    resume: str | os.PathLike[str] | None = None,
    progress: Progress = no_progress,
) -> CrossValidation:
    """Fit every method on each fold's training part and measure it on the test part.

    A name maps to a method or to several candidates; the one that is best by `choose_by` on the validation
    part is used. Methods that learn are created afresh for each fold; they also see the validation part, but
    never the test part. Methods that learn from all queries at once without labels (such as `crowdagg`) are
    applied once to all queries of `dataset`, as in `tune` and in practice. `folds` default to those of the
    data set (`seed` splits the queries if it has no parts). `labelled_only` removes items without a label
    from the measured rankings. With the folder `resume`, results are stored as soon as they are known and
    reused by a later call on the same data.

    >>> from podium.data.demo import demo
    >>> found = cross_validate(demo(20), {"rrf": ["rrf", "rrf(k=5)"], "borda": "borda"}, "ndcg@5")
    >>> [fold.chosen for fold in found["borda"]], len(found.pool_folds("rrf"))
    (['borda', 'borda', 'borda', 'borda', 'borda'], 20)
    """
    check_type(dataset, Dataset, "cross_validate", "give podium.Dataset(preferences, labels)")
    check_type(
        aggregators,
        Mapping,
        "cross_validate",
        "give methods by name, as in {'rrf': 'rrf', 'mine': make('borda')}",
    )
    chosen = parse_all(metrics)
    turns = dataset.folds(seed=seed) if folds is None else list(folds)
    named: dict[str, list[ReadyCandidate]] = {}
    for name, given in aggregators.items():
        several = [given] if isinstance(given, str | Aggregator | PrunedMethod) else list(given)
        if not several:
            raise ParameterError(f"{name!r} has no candidate; give at least one method")
        named[name] = [c if isinstance(c, PrunedMethod) else make(c) for c in several]
        for candidate in named[name]:
            repr(candidate)  # raises an error if the method cannot be made, before any work is done
    if not named or not turns:
        raise ParameterError("there is nothing to validate; give at least one method and one fold")
    base = next(iter(named)) if baseline is None else baseline
    if base not in named:
        raise ParameterError(f"there is no method {base!r} to compare with; {suggest_names(base, named)}")
    setting = _ValidationSettings(chosen, parse(choose_by), ties, labelled_only, dataset)
    folder = ResultCache.open(resume)
    results: dict[str, list[FoldResult]] = {name: [] for name in named}
    total, done = len(turns) * len(named), 0
    for number, fold in enumerate(turns):
        data = None if folder.path is None else [digest_dataset(part) for part in fold]
        for name, candidates in named.items():
            what = f"{name}, fold {number + 1} of {len(turns)}"
            task_progress = subtask_progress(progress, done, total, what)
            task_progress(0, 1, "")
            whole = data and any(map(_uses_all_queries, candidates)) and digest_dataset(dataset)
            facts = [data, whole, [c.key_facts() for c in candidates], *setting.key_facts()]
            kept = folder.get_or_make(
                partial(digest_values, facts), partial(_run_fold, fold, candidates, setting, task_progress)
            )
            results[name].append(FoldResult.from_plain(kept, chosen))
            done += 1
    progress(total * STEPS, total * STEPS, "done")
    return CrossValidation(chosen, {name: tuple(each) for name, each in results.items()}, base)


@dataclass(frozen=True)
class _ValidationSettings:
    metrics: tuple[Metric, ...]
    choose_by: Metric
    ties: TieRule
    labelled_only: bool
    data: Dataset  # all queries, for methods that learn without labels
    pooled: dict[str, Consensus] = dataclasses.field(
        default_factory=dict
    )  # each is applied once for all folds

    def key_facts(self) -> list[Any]:
        """Everything a result depends on besides data and method."""
        named = [list(map(str, self.metrics)), str(self.choose_by)]
        return [*named, self.ties, self.labelled_only, __version__]

    def rank_part(self, model: Aggregator, part: Dataset) -> Consensus:
        """Apply a fitted model to the queries of a part."""
        codes = self.data.preferences.queries.codes_of(part.preferences.queries)
        # a part with other queries is aggregated on its own
        if not _uses_all_queries(model) or (codes < 0).any():
            return aggregate_dataset(model, part, self.ties)
        if repr(model) not in self.pooled:
            self.pooled[repr(model)] = aggregate_dataset(model, self.data, self.ties)
        whole = self.pooled[repr(model)]
        index, old = whole.index.select(codes)
        scores = whole.scores[old]
        return Consensus.from_scores(index, scores, ties=self.ties, tolerance=0.0, method=whole.method)

    def evaluate_part(self, consensus: Consensus, data: Dataset, metrics: tuple[Metric, ...]) -> Evaluation:
        if data.labels is None:
            raise InputError("the data have no labels to measure against", remedy="give labels (qrels)")
        shown = judged_only(consensus, data.labels) if self.labelled_only else consensus
        return evaluate(shown, data.labels, metrics)


def subtask_progress(progress: Progress, number: int, of: int, what: str | None = None) -> Progress:
    """Progress of one task among several; `what` replaces the task's own text."""

    def report_step(step: int, steps: int, text: str) -> None:
        progress(number * STEPS + step * STEPS // max(steps, 1), of * STEPS, text if what is None else what)

    return report_step


def _run_fold(
    fold: Fold, candidates: list[ReadyCandidate], setting: _ValidationSettings, task_progress: Progress
) -> dict[str, Any]:
    """The result of one fold as plain values."""
    begin = time.perf_counter()
    fitted = [
        _fit_candidate(c, fold, subtask_progress(task_progress, number, len(candidates)))
        for number, c in enumerate(candidates)
    ]
    # the best candidate on the validation part, the first of equals; a single one is not measured
    best, validation, data = 0, {}, fold.validation
    if len(candidates) > 1:
        by = (setting.choose_by,)
        seen = [setting.evaluate_part(setting.rank_part(model, data), data, by) for model, _ in fitted]
        values = [next(iter(e.mean().values())) for e in seen]
        if all(math.isnan(v) for v in values):
            raise InputError(
                "candidates cannot be chosen: no validation query has labels",
                remedy="use folds with labeled validation queries, or one candidate",
            )
        best, validation = int(np.nanargmax(values)), dict(zip(map(repr, candidates), values, strict=True))
    model, dropped = fitted[best]
    middle = time.perf_counter()
    consensus = setting.rank_part(model, fold.test)
    spent = time.perf_counter() - middle
    evaluation = setting.evaluate_part(consensus, fold.test, setting.metrics)
    result = FoldResult(evaluation, repr(candidates[best]), validation, dropped, middle - begin, spent)
    return result.to_plain()


def _uses_all_queries(candidate: ReadyCandidate) -> bool:
    """Whether a method learns from many queries without labels."""
    tags = make(candidate.method if isinstance(candidate, PrunedMethod) else candidate).tags
    return not tags.per_query and not tags.supervised


def _fit_candidate(candidate: Candidate, fold: Fold, task_progress: Progress) -> tuple[Aggregator, list[Id]]:
    """A new model, fitted if it learns, and the experts that pruning removed; the test part is not used."""
    pruned = isinstance(candidate, PrunedMethod)
    # parameters only, nothing learned
    model: Any = dataclasses.replace(
        make(candidate.method if isinstance(candidate, PrunedMethod) else candidate)
    )
    dropped: list[Id] = []
    train, validation = fold.train, fold.validation
    if not model.tags.uses_features:
        train, validation = (dataclasses.replace(part, features=None) for part in (train, validation))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NoGainWarning)  # the test part shows the gain better
        given = {"validation": validation, "progress": task_progress}
        if model.tags.supervised:
            model.fit(train.preferences, train.labels, train.features, **given)
        if pruned and not hasattr(model, "prune"):
            raise ParameterError(f"{model.name} does not report unused experts; it cannot be pruned")
        if pruned:
            model = model.prune(train.preferences, train.labels, **given)
            dropped = list(model.dropped_)
    return model, dropped
