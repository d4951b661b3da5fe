"""Scores from contests: Bradley-Terry, its forms with ties, and Thurstone's model, solved to convergence.

All are convex problems. Newton's method with a line search on the directional derivative solves each query:
with the dense Hessian where the query is small, by conjugate gradients over the pairs where it is large. It
stops when a full step moves no score by more than `tolerance`; the remaining error is far smaller (quadratic
convergence).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from podium._core import contest_counts as core_counts
from podium._core import contest_solvers as core_solvers
from podium.kernels import segments
from podium.kernels.contest_counts import (
    Components,
    Contests,
    count_contests,
    find_components,
    find_weak_components,
)
from podium.kernels.contest_models import (
    DAVIDSON,
    EXTRA,
    LOGIT,
    PROBIT,
    ContestModel,
    ContestProblem,
    compute_derivatives,
    compute_prior_value,
    compute_start_width,
    resolve_contest_model,
)
from podium.kernels.contest_solvers import (
    FLAT,
    FLAT_STALL,
    LONGEST,
    SMOOTH,
    STALL,
    SparseNewton,
    iterate_newton,
)
from podium.kernels.dispatch import B1, F8, I8, run_in_threads
from podium.kernels.list_contests import Listwise, list_tallies, sets_of
from podium.kernels.sparse_rows import SparseRows

__all__ = [
    "Components",
    "ContestSolution",
    "Contests",
    "compute_hessian",
    "count_contests",
    "count_wins_and_losses",
    "find_components",
    "find_weak_components",
    "fit_contests",
    "join_solutions",
]

FURTHEST = 30.0  # a start further away costs more steps than it saves
SMALL_QUERY = 128  # items up to which a query is solved with its dense Hessian


class ContestSolution(NamedTuple):
    """Scores by slot (mean 0 in every component), and by query how they were computed."""

    scores: F8
    gradient: F8  # largest absolute gradient
    objective: F8  # negative log likelihood, with the prior
    iterations: I8
    converged: B1
    # "width" of ties (log nu, log theta), "advantage" of the side shown first; NaN: none
    extra: Mapping[str, F8]
    model: ContestModel
    component: I8  # by slot, the smallest slot connected to it by contests; see `find_components`


def fit_contests(
    contests: Contests,
    *,
    model: str = "bradley_terry",
    ties: str = "half",
    l2: float = 0.001,
    shape: float = 1.0,
    start: F8 | None = None,
    tolerance: float = 1e-8,
    max_iterations: int = 100,
) -> ContestSolution:
    """The maximum-likelihood scores of all items of all queries.

    `model` is bradley_terry or thurstone; `ties` is half, ignore, davidson or rao_kupper. `l2` is the weight
    of the ridge (l2 / 2 times the sum of squared scores); `shape` above 1 replaces it by a gamma prior of the
    strengths exp(score), whose rate only shifts all scores and is shape - 1. `start` (scores by slot) saves
    steps.
    """
    choice_model = resolve_contest_model(model, ties, l2, shape)
    queries, label = len(contests.starts) - 1, find_weak_components(contests)
    if start is None:
        # log odds of winning, as if all opponents were equal: saves two or three of seven steps
        wins, losses = count_wins_and_losses(contests)
        # a unit of the probit scale is about 1 / 0.6 units of the logit scale
        start = np.log((wins + 0.5) / (losses + 0.5)) * (0.6 if choice_model.kind == PROBIT else 1.0)
    else:
        start = np.clip(start, -FURTHEST, FURTHEST)
    found = ContestSolution(
        start,
        np.zeros(queries),
        np.zeros(queries),
        np.zeros(queries, np.int64),
        np.ones(queries, np.bool_),
        {name: np.full(queries, np.nan) for name in ("width", "advantage")},
        choice_model,
        label,
    )
    if contests.lists is not None:
        votes, unit = contests.lists
        problem = build_query_problem(contests, 0, choice_model, label)
        listwise = Listwise(problem, tolerance, sets_of(votes, unit, ties=choice_model.half))
        answer = iterate_newton(listwise, _build_start(problem, found.scores), tolerance, max_iterations)
        _store_answer(found, 0, problem, listwise, *answer)
        return found
    sizes, pairs = np.diff(contests.starts), np.diff(contests.pair_starts)
    _solve_small_queries(contests, label, choice_model, found, pairs + sizes**3, (tolerance, max_iterations))
    for q in np.flatnonzero(sizes > SMALL_QUERY).tolist():
        problem = build_query_problem(contests, q, choice_model, label)
        engine = SparseNewton(problem, tolerance)
        answer = iterate_newton(engine, _build_start(problem, found.scores), tolerance, max_iterations)
        _store_answer(found, q, problem, engine, *answer)
    return found


def count_wins_and_losses(contests: Contests) -> tuple[F8, F8]:
    """Wins and losses of every slot, ties half."""
    first, second, won, lost, tied = contests[2:7]
    slots = int(contests.starts[-1])
    if contests.lists is not None:
        votes, unit = contests.lists
        sides = zip(list_tallies(votes), count_wins_and_losses(contests._replace(lists=None)), strict=True)
        wins, losses = (listed * unit + single for listed, single in sides)
        return wins, losses
    wins, losses = np.zeros(slots), np.zeros(slots)
    core_counts.count_wins_and_losses(first, second, won, lost, tied, wins, losses)
    return wins, losses


def _solve_small_queries(
    contests: Contests,
    label: I8,
    model: ContestModel,
    found: ContestSolution,
    work: Any,
    stop: tuple[float, int],
) -> None:
    """Solve all small queries, in parallel."""
    side = np.zeros(0) if contests.side is None else contests.side
    shared = segments.offsets(np.where(np.diff(contests.starts) <= SMALL_QUERY, work, 0) + 1)
    law = (model.kind, model.half, float(model.l2), float(model.shape), EXTRA)
    columns = (found.scores, *found.extra.values(), *found[1:5])
    limits = (*stop, LONGEST, SMOOTH, STALL, FLAT_STALL, FLAT)
    run_in_threads(
        core_solvers.solve_small_queries,
        shared,
        (*contests[:7], side),
        label,
        law,
        limits,
        SMALL_QUERY,
        columns,
    )


def compute_hessian(
    contests: Contests, solution: ContestSolution, query: int, *, prior: bool = True
) -> SparseRows:
    """The Hessian of the negative log likelihood of a query at its solution, as a sparse matrix.

    Rows are the items of the query, then the width of ties and the advantage where estimated. Without the
    `prior` it is the observed information of the votes alone, which is singular (scores can be shifted).
    """
    problem = build_query_problem(contests, query, solution.model, solution.component)
    scores = solution.scores[problem.base : problem.base + problem.size]
    names = ["width"] * problem.widths + ["advantage"] * (problem.side is not None)
    x = np.concatenate((scores, [solution.extra[name][query] for name in names]))
    if not prior:
        problem = problem._replace(model=problem.model._replace(l2=0.0, shape=1.0))
    at = compute_derivatives(problem, x)
    first, second = problem.first - problem.base, problem.second - problem.base
    items, more = np.arange(problem.size), np.arange(problem.size, problem.unknowns)
    blocks = [
        (np.arange(problem.unknowns), np.arange(problem.unknowns), at.diagonal),
        *((a, b, -at.bend) for a, b in ((first, second), (second, first))),
        *((items, np.full_like(items, k), row) for k, row in zip(more, at.border, strict=True)),
        *((np.full_like(items, k), items, row) for k, row in zip(more, at.border, strict=True)),
        *((a, b, at.corner[[i, 1 - i], [1 - i, i]]) for i, a, b in [(0, more, more[::-1])] if len(more) == 2),
    ]
    rows, columns, values = map(np.concatenate, zip(*blocks, strict=True))
    return SparseRows.from_entries(values, rows, columns, (problem.unknowns,) * 2)


def build_query_problem(contests: Contests, query: int, model: ContestModel, label: I8) -> ContestProblem:
    """The contests of one query; a model of ties without any tie becomes the plain one."""
    base, end = contests.starts[query : query + 2].tolist()
    pairs = slice(*contests.pair_starts[query : query + 2].tolist())
    tied = contests.tied[pairs]
    if model.kind >= DAVIDSON and not tied.any():
        model = model._replace(kind=LOGIT)
    side = None if contests.side is None else contests.side[pairs]
    component = np.unique(label[base:end], return_inverse=True)[1]
    return ContestProblem(
        base,
        end - base,
        contests.first[pairs],
        contests.second[pairs],
        contests.won[pairs],
        contests.lost[pairs],
        tied,
        side,
        component,
        model,
    )


def _build_start(problem: ContestProblem, scores: F8) -> F8:
    x = np.zeros(problem.unknowns)
    x[: problem.size] = scores[problem.base : problem.base + problem.size]
    if problem.widths:
        total = problem.won.sum() + problem.lost.sum() + problem.tied.sum()
        x[problem.size] = compute_start_width(problem.model.kind, float(problem.tied.sum() / total))
    return x


def _store_answer(
    found: ContestSolution,
    q: int,
    problem: ContestProblem,
    engine: SparseNewton,
    x: F8,
    gradient: F8,
    steps: int,
    converged: bool,
) -> None:
    """Store the solution of one query."""
    found.scores[problem.base : problem.base + problem.size] = x[: problem.size]
    if problem.widths:
        found.extra["width"][q] = x[problem.size]
    if problem.side is not None:
        found.extra["advantage"][q] = x[-1]
    found.gradient[q] = np.abs(gradient).max(initial=0.0)
    found.objective[q] = engine.compute_value(x) + compute_prior_value(problem, x)
    found.iterations[q], found.converged[q] = steps, converged


def join_solutions(parts: Sequence[tuple[int, ContestSolution]]) -> ContestSolution:
    """One solution for all queries, from parts with their first slots."""
    if len(parts) == 1:
        return parts[0][1]
    solutions = [s for _, s in parts]
    columns: list[Any] = [np.concatenate([s[k] for s in solutions]) for k in range(5)]
    extra = {name: np.concatenate([s.extra[name] for s in solutions]) for name in solutions[0].extra}
    component: I8 = np.concatenate([s.component + base for base, s in parts])
    return ContestSolution._make([*columns, extra, solutions[0].model, component])
