"""Search strategies: evaluate everything on all queries, or drop the worst early (successive halving)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from podium.core.progress import Progress, no_progress
from podium.evaluate.tuning import search_space
from podium.evaluate.tuning.score_table import ScoreTable
from podium.evaluate.tuning.search_space import MethodSpace, TuningConfig
from podium.kernels.dispatch import F8, I8

__all__ = ["build_configurations", "find_best", "find_finalists", "own_values"]

THIRD = 3  # one in THIRD configurations advances, to THIRD times the queries
FEWEST = 8  # queries in the first rung
LAST = 20  # finalists: the bootstrap must see the alternatives


def build_configurations(
    kind: str, families: Sequence[MethodSpace], trials: int, experts: int, seed: int, baseline: TuningConfig
) -> list[TuningConfig]:
    """The configurations to try; the baseline is always included and first."""
    if kind == "grid":
        configs = search_space.list_grid_configs(families, trials)
    else:
        configs = search_space.sample_configs(families, trials, experts, seed)
    return list(dict.fromkeys((baseline, *configs)))


def own_values(table: ScoreTable) -> F8:
    """Evaluate each query only with what was learned without its own fold."""
    columns = np.arange(len(table.problem))
    values: F8 = table.values[:, table.problem.fold, columns]
    return values


def find_finalists(
    table: ScoreTable, kind: str, fold: int | None, seed: int, workers: int, progress: Progress = no_progress
) -> I8:
    """Remaining configurations when `fold` (None: no fold) is held out; their values are complete."""
    everything = np.arange(len(table.problem))
    rows = list(range(table.config_limit))
    if kind == "halving":
        rows = _run_halving(table, fold, seed, workers, progress)
    table.compute_missing(rows, everything, workers, progress, optional=len(rows) == len(table.configs))
    return np.array([r for r in rows if r < table.config_limit and r not in table.failed], np.int64)


def _run_halving(
    table: ScoreTable, fold: int | None, seed: int, workers: int, progress: Progress
) -> list[int]:
    """Rungs are the same queries for every fold, minus the fold itself, so that values are shared."""
    problem, rows = table.problem, list(range(table.config_limit))
    dealt = np.random.default_rng(seed).permutation(len(problem))
    size = max(FEWEST, math.ceil(len(problem) / THIRD**2))
    while size < len(problem) and len(rows) > LAST:
        columns = np.sort(dealt[:size])
        # survivors of a rung must be computed to the end, so only the first rung may be cut short
        table.compute_missing(rows, columns, workers, progress, optional=len(rows) == len(table.configs))
        rows = [r for r in rows if r < table.config_limit and r not in table.failed]
        if fold is not None:
            columns = columns[problem.fold[columns] != fold]
        values = (own_values(table) if fold is None else table.values[:, fold])[rows][:, columns]
        order = np.argsort(-np.round(values.sum(axis=1), 12), kind="stable")
        kept = {rows[i] for i in order[: max(LAST, math.ceil(len(rows) / THIRD))].tolist()} | {
            0
        }  # the baseline stays
        rows, size = sorted(kept), size * THIRD
    return rows


def find_best(means: F8) -> I8:
    """The first best entry of every row; differences in the last bits, from summation order, are ignored."""
    positions: I8 = np.argmax(np.round(means, 12), axis=-1)
    return positions
