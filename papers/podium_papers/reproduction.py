"""Reproducing a published table."""

from __future__ import annotations

import dataclasses
import importlib
import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

import podium
from podium.core import registry
from podium.core.errors import ParameterError
from podium.core.params import parse_spec, suggest_names
from podium.core.progress import Progress, no_progress
from podium.data.dataset import Dataset, Fold
from podium.data.ids import Id, Ids
from podium.evaluate.comparison import ComparisonRow
from podium.evaluate.crossvalidation import (
    Candidate,
    CrossValidation,
    FoldResult,
    PrunedMethod,
    cross_validate,
    subtask_progress,
)
from podium.evaluate.majority_errors import select_by_majority
from podium.evaluate.splits import random_splits
from podium.methods.base import make
from podium_papers import paper_datasets as data_sets
from podium_papers.crowd_tables import QualityComparison, compare_qualities
from podium_papers.paper_tables import find_table
from podium_papers.published_table import Figures, PublishedRow, PublishedTable

__all__ = ["Reproduction", "RowResult", "SetResult", "reproduce"]


@dataclass(frozen=True)
class RowResult:
    """One row on one data set, in percent; `ours` is None for rows that only show published figures.

    With several seeds, `ours` is the mean over them, and the folds are those of all seeds.
    """

    name: str
    method: str | None
    published: Figures | None
    ours: Figures | None = None
    folds: tuple[Figures, ...] = ()
    chosen: tuple[str, ...] = ()  # the selected method, by fold
    dropped: tuple[tuple[Id, ...], ...] = ()  # experts removed by pruning, by fold
    fit_seconds: float = 0.0
    aggregate_seconds: float = 0.0
    comparable: bool = True  # with the published figures
    spread: Figures | None = None  # standard deviation over the seeds, where there are several

    @property
    def difference(self) -> Figures | None:
        """Ours minus the published figures, both as printed."""
        if self.ours is None or self.published is None or not self.comparable:
            return None
        return tuple(round(o, 2) - p for o, p in zip(self.ours, self.published, strict=True))


@dataclass(frozen=True)
class SetResult:
    """All rows on one data set, and the paired tests against the baseline, if both were computed.

    `annotators` compares estimated annotator qualities with the true ones, if the table requests it.
    """

    name: str
    fingerprint: str
    queries: int
    rows: tuple[RowResult, ...]
    tests: tuple[ComparisonRow, ...] = ()
    annotators: tuple[QualityComparison, ...] = ()
    columns: tuple[str, ...] = ()  # column names, if they are not the table's metrics
    more: tuple[tuple[str, tuple[tuple[str, ...], ...]], ...] = ()  # further tables: title, header and lines


@dataclass(frozen=True)
class Reproduction:
    """A reproduced table."""

    table: PublishedTable
    sets: tuple[SetResult, ...]
    seed: int
    seconds: float
    version: str = podium.__version__
    seeds: int = 1  # `seed` and the following ones

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes of the table, and rows that could not be computed."""
        left_out = [row.name for row in self.table.rows if not _is_available(row)]
        notes = self.table.notes
        if self.seeds > 1:
            last = self.seed + self.seeds - 1
            rest = (
                f"tests and further tables are those of seed {self.seed}."
                if self.table.study
                else "the paired tests use each query's mean over them."
            )
            notes += (
                f"Means and standard deviations over the {self.seeds} seeds {self.seed} to {last}; {rest}",
            )
        if left_out:
            notes += (f"Not available in this version, so left out: {', '.join(left_out)}.",)
        return notes


def reproduce(
    name: str | PublishedTable,
    folder: str | os.PathLike[str] | None = None,
    *,
    only: Sequence[str] = (),
    sets: Sequence[str] = (),
    seed: int = 0,
    seeds: int = 1,
    resume: str | os.PathLike[str] | None = None,
    progress: Progress = no_progress,
) -> Reproduction:
    """Reproduce a published table from the data sets in a folder.

    `only` names rows and `sets` data sets if not all are wanted; `seed` controls random splits and the
    methods that have a seed; `seeds` of them, from this one on, give means and standard deviations. `resume`
    is a folder for intermediate results, see `cross_validate`.
    """
    begin = time.perf_counter()
    what = find_table(name) if isinstance(name, str) else name
    names = _select_names("row", only, [row.name for row in what.rows])
    rows = [row for row in what.rows if row.name in names]
    wanted = _select_names("data set", sets, what.sets)
    if seeds < 1:
        raise ParameterError(f"seeds is {seeds}; accepted: integer from 1 on")
    if folder is None and not what.generated:
        raise ParameterError(f"the data sets of {what.name} are missing; name their folder")
    chosen_seeds = range(seed, seed + seeds)
    if what.study:
        study = importlib.import_module(f"podium_papers.{what.study}")
        by_seed = [
            study.results(rows, wanted, folder, one, subtask_progress(progress, number, seeds))
            for number, one in enumerate(chosen_seeds)
        ]
        merged = tuple(_merge_seeds(each) for each in zip(*by_seed, strict=True))
        return Reproduction(what, merged, seed, time.perf_counter() - begin, seeds=seeds)
    assert folder is not None
    data = [
        data_sets.load_dataset(n, folder) for n in wanted
    ]  # all of them, so that a missing one is reported first
    found = [
        _run_set(what, rows, one, folder, chosen_seeds, resume, subtask_progress(progress, number, len(data)))
        for number, one in enumerate(data)
    ]
    return Reproduction(what, tuple(found), seed, time.perf_counter() - begin, seeds=seeds)


def _merge_seeds(by_seed: Sequence[SetResult]) -> SetResult:
    """The means of a study's rows over seeds; the rest is that of the first seed."""
    rows = []
    for each in zip(*(one.rows for one in by_seed), strict=True):
        values = np.array([row.ours for row in each if row.ours is not None], np.float64)
        row = each[0]
        if len(values) > 1 and not np.array_equal(values.min(axis=0), values.max(axis=0), equal_nan=True):
            spread = tuple(values.std(axis=0, ddof=1).tolist())
            row = dataclasses.replace(row, ours=tuple(values.mean(axis=0).tolist()), spread=spread)
        rows.append(row)
    return dataclasses.replace(by_seed[0], rows=tuple(rows))


def _select_names(what: str, asked: Sequence[str], known: Sequence[str]) -> list[str]:
    """The requested names in table order, or all of them; case is ignored."""
    plain = {name.lower() for name in known}
    for name in asked:
        if name.lower() not in plain:
            raise ParameterError(f"the table has no {what} {name!r}; {suggest_names(name, known)}")
    wanted = {name.lower() for name in asked} or plain
    return [name for name in known if name.lower() in wanted]


def _run_set(
    what: PublishedTable,
    rows: Sequence[PublishedRow],
    data: Dataset,
    folder: str | os.PathLike[str],
    seeds: Sequence[int],
    resume: str | os.PathLike[str] | None,
    progress: Progress,
) -> SetResult:
    computed = [
        row for row in rows if row.method is not None and _applies_to(row, data.name) and _is_available(row)
    ]
    results: dict[str, list[CrossValidation]] = {}
    for number, row in enumerate(computed):
        seen, task = _prepare_data(row, data, folder), subtask_progress(progress, number, len(computed))
        used = seeds if _depends_on_seed(what, row) else seeds[:1]
        results[row.name] = [
            cross_validate(
                seen,
                {row.name: _build_candidates(row, seed)},
                what.metrics,
                folds=_choose_folds(what, row, seen, seed),
                choose_by=what.choose_by,
                ties=what.ties,
                labelled_only=what.labelled_only,
                resume=resume,
                progress=subtask_progress(task, done, len(used), f"{data.name}: {row.name}"),
            )
            for done, seed in enumerate(used)
        ]
    count = len(data)
    if what.where is not None:
        assert data.labels is not None
        measured = select_by_majority(data.preferences, data.labels, what.where).index.queries
        results = {name: [_restrict_queries(one, measured) for one in each] for name, each in results.items()}
        count = len(measured)
    shown = [
        row for row in rows if row.name in results or (row.method is None and data.name in row.published)
    ]
    return SetResult(
        data.name,
        data.preferences.fingerprint,
        count,
        tuple(_row_result(what, row, data.name, results.get(row.name, [])) for row in shown),
        _run_tests(what, results),
        compare_qualities(computed, data) if what.annotators else (),
    )


def _depends_on_seed(what: PublishedTable, row: PublishedRow) -> bool:
    """Whether the splits are random, or a method of the row is."""
    specs = (row.method,) if isinstance(row.method, str) else row.method or ()
    return what.splits is not None or any(hasattr(make(spec), "seed") for spec in specs)


def _choose_folds(what: PublishedTable, row: PublishedRow, data: Dataset, seed: int) -> list[Fold] | None:
    """Random splits, or None for the folds of the data set."""
    if what.whole:
        nothing = data.select_codes(np.zeros(0, np.int64))
        return [Fold(nothing, nothing, data)]
    if what.splits is None:
        return None
    folds = random_splits(data, what.splits, seed=seed)
    if row.labelled:
        folds = [fold._replace(test=data_sets.labeled_items(fold.test)) for fold in folds]
    return folds


def _restrict_queries(result: CrossValidation, queries: Ids) -> CrossValidation:
    """The same with the figures of these queries alone."""
    folds: dict[str, tuple[FoldResult, ...]] = {}
    for name, each in result.results.items():
        kept = [np.flatnonzero(queries.codes_of(fold.evaluation.queries) >= 0) for fold in each]
        folds[name] = tuple(
            fold._replace(
                evaluation=dataclasses.replace(
                    fold.evaluation,
                    queries=fold.evaluation.queries.take(codes),
                    values=fold.evaluation.values[:, codes],
                )
            )
            for fold, codes in zip(each, kept, strict=True)
        )
    return dataclasses.replace(result, results=folds)


def _is_available(row: PublishedRow) -> bool:
    """Whether the methods of a row are available in this version."""
    specs = (row.method,) if isinstance(row.method, str) else row.method or ()
    return all(parse_spec(spec)[0] in registry.aggregators.all() for spec in specs)


def _applies_to(row: PublishedRow, data: str) -> bool:
    """The data for a row, which may exclude experts or add features on some data sets."""
    return all(not only or data in only for only in (row.without, row.features))


def _prepare_data(row: PublishedRow, data: Dataset, folder: str | os.PathLike[str]) -> Dataset:
    if row.unlisted is not None:
        data = dataclasses.replace(data, preferences=data.preferences.with_unlisted(row.unlisted))
    if row.features:
        data = data_sets.with_features(data, row.features[data.name], folder)
    if row.without:
        data = data_sets.without_experts(data, row.without[data.name])
    return data


def _build_candidates(row: PublishedRow, seed: int) -> list[Candidate]:
    """The row's methods, with the seed unless they set their own."""
    given = (row.method,) if isinstance(row.method, str) else row.method or ()
    found: list[Candidate] = []
    for spec in given:
        made = make(spec)
        if seed and getattr(made, "seed", seed) == 0:
            made = dataclasses.replace(made, seed=seed)  # type: ignore[call-arg]
        found.append(PrunedMethod(made) if row.pruned else made)
    return found


def _row_result(
    what: PublishedTable, row: PublishedRow, data: str, by_seed: Sequence[CrossValidation]
) -> RowResult:
    method = (
        None if row.method is None else "; ".join([row.method] if isinstance(row.method, str) else row.method)
    )
    published = row.published.get(data)
    if not by_seed:
        return RowResult(row.name, None, published)
    folds = [fold for one in by_seed for fold in one[row.name]]
    means = np.array([_to_percent(one.mean(row.name).values()) for one in by_seed])
    return RowResult(
        row.name,
        method,
        published,
        tuple(means.mean(axis=0).tolist()),
        tuple(_to_percent(mean.values()) for one in by_seed for mean in one.fold_means(row.name)),
        tuple(fold.chosen for fold in folds),
        tuple(tuple(fold.dropped) for fold in folds),
        sum(fold.fit_seconds for fold in folds),
        sum(fold.aggregate_seconds for fold in folds),
        what.comparable,
        tuple(means.std(axis=0, ddof=1).tolist()) if len(means) > 1 else None,
    )


def _to_percent(values: Iterable[float]) -> Figures:
    return tuple(100 * v for v in values)


def _run_tests(what: PublishedTable, results: dict[str, list[CrossValidation]]) -> tuple[ComparisonRow, ...]:
    """Paired tests against the baseline; a query that several folds test counts once, with its mean."""
    if what.baseline not in results or len(results) < 2 or not what.tested:
        return ()
    metrics = results[what.baseline][0].metrics
    folds = {name: tuple(fold for one in by_seed for fold in one[name]) for name, by_seed in results.items()}
    whole = CrossValidation(metrics, folds, what.baseline)
    return whole.compare(metrics=what.tested, test="randomization").rows
