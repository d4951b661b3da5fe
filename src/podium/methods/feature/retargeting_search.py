"""From columns of lists and features to weights: starts, the best of them, and which side to use."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from podium.kernels.dispatch import F8, I8
from podium.kernels.isotonic import build_block_order
from podium.kernels.monotone_retargeting import (
    NOTHING,
    LinearPredictor,
    RetargetingSettings,
    RetargetingSolution,
    alternate_fits,
    center_by_query,
    compute_squared_misfit,
    root_mean_square,
    scale_to_unit,
)
from podium.methods.feature.expert_columns import find_equal_columns

__all__ = [
    "RetargetingOptions",
    "RetargetingResult",
    "compute_agreement_weights",
    "compute_reliability",
    "search_weights",
]

NEAR = 10.0  # factor on the smallest misfit up to which solutions fit about equally well
SLIGHT = 0.1  # fraction of the weights below which a list may be dropped
SETTLED = 1e-3  # misfit below which the features reproduce the order of the lists
FIRST = 3  # alternations from every start
LAST = 4  # starts that are run to the end
SINGLE = 16  # single lists to start from, at most: those that the features explain best
LEAST = 0.2  # reliability assumed at least
ROUNDS = 500  # of the power iteration
STILL = 1e-12  # change of the weights at which it stops


@dataclass(frozen=True)
class RetargetingOptions:
    """Parameters of the search."""

    l1: float = 0.02
    l2: float = 1e-6
    feature_l1: float = 0.0
    feature_l2: float = 1e-3
    trust: float = 0.5
    side: str = "auto"
    singles: bool = True
    settings: RetargetingSettings = field(default_factory=RetargetingSettings)
    traced: bool = False


class RetargetingResult(NamedTuple):
    """Weights by list and by feature, each for a predictor of size 1, and the balance of the predictors."""

    weights: F8
    coefficients: F8
    balance: F8  # of the lists and of the features
    mode: str  # "lists": features not trusted; "settled": both sides agree; "open": they differ slightly
    explained: float  # fraction of the lists' common order that the features explain
    reliability: float  # fraction of it that is not noise of the lists: the most that features can explain
    objective: float
    turns: int
    history: list[float]
    trace: list[tuple[F8, F8]]


def search_weights(table: F8, values: F8, starts: I8, options: RetargetingOptions) -> RetargetingResult:
    """Weights of the lists (columns of `table`) and of the features (columns of `values`)."""
    same = find_equal_columns(table)
    first, count = np.unique(same, return_counts=True)
    size = root_mean_square(table[:, first].reshape(-1)) or 1.0
    used = table[:, first] / size
    solution = _search_distinct(used, values, starts, options)
    weights = np.zeros(table.shape[1])
    weights[:] = (solution.weights / count / size)[np.searchsorted(first, same)]
    return solution._replace(weights=weights)


def _search_distinct(table: F8, values: F8, starts: I8, options: RetargetingOptions) -> RetargetingResult:
    settings = options.settings
    lists = LinearPredictor(table, starts, settings.loss, options.l1, options.l2, positive=True)
    features = LinearPredictor(values, starts, settings.loss, options.feature_l1, options.feature_l2)
    plain = compute_agreement_weights(table)
    agreed = scale_to_unit(table @ plain)
    straight = LinearPredictor(values, starts, "squared", 0.0, max(options.feature_l2, 1e-6))
    width, freedom, explained = int(values.any(axis=0).sum()), len(agreed) - (len(starts) - 1), 0.0
    reliability = compute_reliability(table * plain)
    if width and agreed.any() and freedom > width:
        # adjusted R squared
        left = float(np.mean((agreed - straight.predict(straight.fit(agreed))) ** 2))
        explained = 1.0 - left * max(freedom, 1) / max(freedom - width, 1)
    if not width or not agreed.any() or explained < options.trust * reliability:
        # the lists alone determine the ranking
        coefficients = straight.fit(agreed)
        predictor, balance = straight.predict(coefficients), np.array([1.0, 0.0])
        if options.side in ("features", "both") and predictor.any():
            balance = _fixed_balance(options.side)
        weights, coefficients = plain / _nonzero_size(table @ plain), coefficients / _nonzero_size(predictor)
        trace = [(agreed, predictor)]
        return RetargetingResult(
            weights, coefficients, balance, "lists", explained, reliability, 1.0, 0, [], trace
        )
    begins = _iterate_starts(table, plain, lists, straight, options.singles)
    runs = _run_starts(begins, lists, features, options)
    # the features fit a list and its reverse equally well: the lists' common order determines the sign
    runs = [run for run in runs if float(run.lists.predictor @ agreed) > 0] or runs
    settled = [run for run in runs if _compute_misfit(run) < SETTLED]
    if settled:
        pruned = _prune_lists(settled, lists, features, options)
        return _select_fewest_lists(pruned, table, (explained, reliability), options.side)
    best = min(runs, key=_compute_misfit)
    weights, auto = best.lists.coefficients, options.side == "auto"
    balance = _estimate_balance(table, weights, best, starts) if auto else _fixed_balance(options.side)
    return _build_result(best, weights, table, balance, "open", (explained, reliability))


def _run_starts(
    starts: Iterator[tuple[F8, bool]],
    lists: LinearPredictor,
    features: LinearPredictor,
    options: RetargetingOptions,
) -> list[RetargetingSolution]:
    """A few alternations from every start, and all alternations from the best of them."""
    settings = options.settings
    few = replace(settings, turns=min(FIRST, settings.turns))
    tried = [
        (begin, handover, alternate_fits(lists, features, begin, few, handover=handover))
        for begin, single in starts
        for handover in ((False,) if single or settings.loss != "squared" else (False, True))
    ]
    tried.sort(key=lambda t: _compute_misfit(t[2]))
    whole = [
        alternate_fits(lists, features, begin, settings, handover=handover, traced=options.traced)
        for begin, handover, _ in tried[:LAST]
    ]
    return whole + [run for *_, run in tried[LAST:]]


def compute_agreement_weights(table: F8) -> F8:
    """The leading nonnegative principal direction of the lists, started from equal weights; sums to 1.

    Lists that contradict the others get 0. Lists that cancel out keep equal weights.
    """
    n = table.shape[1]
    if not n:
        return np.zeros(0)
    gram = table.T @ table / max(len(table), 1)
    weights = np.full(n, 1.0 / n)
    noise = 1e-12 * float(np.abs(gram).max(initial=0.0))
    for _ in range(ROUNDS):
        new = gram @ weights
        new = np.where(new > noise, new, 0.0)
        if not new.any():
            return np.full(n, 1.0 / n)
        new /= new.sum()
        if np.abs(new - weights).max() < STILL:
            return new
        weights = new
    return weights


def compute_reliability(parts: F8) -> float:
    """The reliability of a sum of centered columns: Cronbach's alpha, the mean over all split halves.

    At least `LEAST`, so that lists without any agreement do not make chance look like an explanation; 1 for a
    single column, whose noise cannot be estimated.
    """
    parts = parts[:, parts.any(axis=0)]
    count, total = parts.shape[1], float(np.sum(parts.sum(axis=1) ** 2))
    if count < 2 or not total:
        return 1.0
    alpha = count / (count - 1) * (1.0 - float(np.sum(parts**2)) / total)
    return max(float(alpha), LEAST)


def _iterate_starts(
    table: F8, plain: F8, lists: LinearPredictor, features: LinearPredictor, singles: bool
) -> Iterator[tuple[F8, bool]]:
    """The lists' agreement, the first canonical pair, and (True) the single lists best explained."""
    yield plain, False
    weights = plain
    for _ in range(30):
        candidate = lists.fit(scale_to_unit(features.predict(features.fit(scale_to_unit(table @ weights)))))
        if not candidate.any():
            break
        weights = candidate
    else:
        yield weights, False
    if not singles:
        return
    sizes = np.sqrt(np.mean(table * table, axis=0))
    left = [
        float(np.mean((column - features.predict(features.fit(column))) ** 2))
        for column in (table / np.where(sizes > 0, sizes, 1.0)).T
    ]
    near = [k for k in np.argsort(np.round(left, 9), kind="stable").tolist() if sizes[k] > 0]
    for k in near[:SINGLE]:
        yield np.eye(table.shape[1])[k], True


def _compute_misfit(run: RetargetingSolution) -> float:
    """The squared misfit of both sides to their common order.

    Runs with other losses are compared by it too: those emphasize the top, where two lists may agree by
    chance.
    """
    return round(
        sum(compute_squared_misfit(side.target, side.predictor) for side in (run.lists, run.features)), 9
    )


def _prune_lists(
    runs: list[RetargetingSolution],
    lists: LinearPredictor,
    features: LinearPredictor,
    options: RetargetingOptions,
) -> list[RetargetingSolution]:
    """The same runs without lists of small weight, where the features still reproduce the remaining order."""
    once = replace(options.settings, turns=1)
    sizes = np.sqrt(np.mean(lists.columns**2, axis=0))
    tried = []
    for run in runs:
        share = run.lists.coefficients * sizes
        kept = np.where(share >= SLIGHT * share.sum(), run.lists.coefficients, 0.0)
        less = (
            run
            if (kept == run.lists.coefficients).all()
            else alternate_fits(lists, features, kept, once, handover=False)
        )
        tried.append(less._replace(trace=run.trace) if _compute_misfit(less) < SETTLED else run)
    return tried


def _select_fewest_lists(
    runs: list[RetargetingSolution], table: F8, gate: tuple[float, float], side: str
) -> RetargetingResult:
    """The fewest lists whose order the features reproduce; averaged over choices that fit about equally well."""
    near = NEAR * min(map(_compute_misfit, runs))
    runs = [run for run in runs if _compute_misfit(run) <= near]
    fewest = min(int((run.lists.coefficients > 0).sum()) for run in runs)
    chosen = {
        (run.lists.coefficients > 0).tobytes(): run
        for run in sorted(runs, key=_compute_misfit, reverse=True)
        if int((run.lists.coefficients > 0).sum()) == fewest
    }
    best = min(chosen.values(), key=_compute_misfit)
    sums = [run.lists.coefficients / _nonzero_size(run.lists.predictor) for run in chosen.values()]
    balance = np.array([1.0, 0.0]) if side == "auto" else _fixed_balance(side)
    return _build_result(best, np.mean(sums, axis=0), table, balance, "settled", gate)


def _build_result(
    run: RetargetingSolution, weights: F8, table: F8, balance: F8, mode: str, gate: tuple[float, float]
) -> RetargetingResult:
    weights = weights / _nonzero_size(table @ weights)
    coefficients = run.features.coefficients / _nonzero_size(run.features.predictor)
    explained, reliability = gate
    progress = run.objective, run.turns, run.history, run.trace
    return RetargetingResult(weights, coefficients, balance, mode, explained, reliability, *progress)


def _estimate_balance(table: F8, weights: F8, run: RetargetingSolution, starts: I8) -> F8:
    """How closely each list follows the other lists and the features overall: a regression of it on both."""
    features, balance = scale_to_unit(_compute_places(run.features.predictor, starts)), np.zeros(2)
    for k in np.flatnonzero(weights > 0):
        others = table @ np.where(np.arange(len(weights)) == k, 0.0, weights)
        if root_mean_square(others) <= NOTHING:  # no other list to weigh the features against
            continue
        both = np.stack((scale_to_unit(_compute_places(others, starts)), features), axis=1)
        gram = both.T @ both + 1e-3 * len(both) * np.eye(2)
        balance += weights[k] * np.maximum(np.linalg.solve(gram, both.T @ table[:, k]), 0.0)
    return balance / balance.sum() if balance.any() else np.array([0.5, 0.5])


def _compute_places(values: F8, starts: I8) -> F8:
    """Minus the place of each item, ties sharing the best, over the number of items; mean 0 per query."""
    order = build_block_order(values, starts)
    first = np.flatnonzero(np.diff(order.block, prepend=-1))
    sizes = np.diff(starts)
    query = np.repeat(np.arange(len(sizes)), sizes)
    place = first[order.block] - starts[:-1][query]
    out = np.empty(len(values))
    out[order.rows] = -place / np.maximum(sizes, 1)[query]
    return center_by_query(out, starts)


def _fixed_balance(side: str) -> F8:
    return np.array({"lists": [1.0, 0.0], "features": [0.0, 1.0]}.get(side, [0.5, 0.5]))


def _nonzero_size(values: F8) -> float:
    """The size of a predictor, or 1 where it is constant."""
    size = root_mean_square(values)
    return size if size > NOTHING else 1.0
