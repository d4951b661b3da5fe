"""The linear ordering problem: the order that maximizes the sum of margins of upper over lower items.

`margin` is skew-symmetric with integer entries. Among equally good orders of a few items the
lexicographically first by position in the matrix is returned, so the caller controls tie-breaking by
arranging the items.
"""

from __future__ import annotations

import heapq
from typing import Literal, NamedTuple

import numpy as np

from podium._core import linear_ordering as core
from podium.core.errors import Option
from podium.core.optional import is_installed, require_module
from podium.kernels import graphs
from podium.kernels.dispatch import F8, I8

__all__ = [
    "compute_order_value",
    "find_ordered_components",
    "has_solver",
    "improve_order",
    "label_equal_items",
    "order_few",
    "order_many",
]

FEW = 14  # items up to which all subsets are enumerated
CUTS_A_ROUND = 4_000


def compute_order_value(margin: F8, order: I8) -> float:
    """Sum of the margins of upper over lower items."""
    return float(np.triu(margin[np.ix_(order, order)], 1).sum())


def label_equal_items(margin: F8) -> I8:
    """A class 0, 1, ... for every item; items with equal margins against all others share one.

    Some optimal order has them adjacent, in any order: they do not oppose each other, so each gains by moving
    next to the better placed of them.
    """
    _, label = np.unique(margin, axis=0, return_inverse=True)
    return np.asarray(label.ravel(), np.int64)


def find_ordered_components(margin: F8) -> list[I8]:
    """The strongly connected components of the majority graph, none with a majority against an earlier one.

    An optimal order concatenates optimal orders of the components. Of several components that may come next,
    the one with the smallest position is taken.
    """
    beats = margin > 0
    upper, lower = np.nonzero(beats)
    label = graphs.label_strong_components(upper, lower, len(margin))
    count = int(label.max(initial=-1)) + 1
    parts = np.split(np.argsort(label, kind="stable"), np.cumsum(np.bincount(label))[:-1])
    links = np.zeros((count, count), np.bool_)
    links[label[upper], label[lower]] = True
    np.fill_diagonal(links, False)
    waiting, key = links.sum(axis=0), [int(p[0]) for p in parts]
    ready = [(key[c], int(c)) for c in np.flatnonzero(waiting == 0)]
    heapq.heapify(ready)
    order = []
    while ready:
        _, c = heapq.heappop(ready)
        order.append(parts[c])
        waiting -= links[c]
        for d in np.flatnonzero(links[c] & (waiting == 0)).tolist():
            heapq.heappush(ready, (key[d], d))
    return order


def order_few(margin: F8) -> I8:
    """The first of the optimal orders, by dynamic programming over subsets (up to `FEW` items)."""
    n = len(margin)
    gain = np.zeros((n, 1))  # gain[i, s]: margins of item i over the members of subset s
    for j in range(n):
        # subsets with item j follow those without it, so column s sums over the bits of s
        gain = np.concatenate((gain, gain + margin[:, j, None]), axis=1)
    subsets = np.arange(2**n)
    size = np.bitwise_count(subsets)
    best = np.zeros(2**n)
    for k in range(1, n + 1):
        here = subsets[size == k]
        top = np.full(len(here), -np.inf)
        for i in range(n):
            inside = (here >> i) & 1 == 1
            s = here[inside]
            top[inside] = np.maximum(top[inside], best[s ^ (1 << i)] + gain[i, s])
        best[here] = top
    order, s = [], 2**n - 1
    while s:
        # the smallest index among equal values makes the result unique
        i = next(i for i in range(n) if (s >> i) & 1 and best[s] == best[s ^ (1 << i)] + gain[i, s])
        order.append(i)
        s ^= 1 << i
    return np.array(order, np.int64)


def improve_order(margin: F8, order: I8) -> I8:
    """Move single items to their best places until no move helps."""
    order = order.copy()
    core.improve_order(np.ascontiguousarray(margin), order)
    return order


def order_many(margin: F8, start: I8, most_nodes: int) -> tuple[I8, bool]:
    """An optimal order by linear programming with triangle cuts, then branch and bound; and if it is proved.

    `start` is a good order: its value lets most problems end without branching. With no nodes to branch on,
    the result is the best order found; without the solver HiGHS, that is `start`, improved.
    """
    if most_nodes == 0 and not has_solver():
        return improve_order(margin, start), False
    i, j = np.triu_indices(len(margin), 1)
    weight = margin[i, j]
    step = float(np.gcd.reduce(np.abs(weight).astype(np.int64)))
    best = improve_order(margin, start)
    cuts = _TriangleCuts(len(margin))
    every = np.zeros(len(weight)), np.ones(len(weight))
    while True:
        relaxed = _solve_program(weight, cuts, every)
        above = _expand_triangle(relaxed.values, len(margin))
        rounded = improve_order(margin, np.argsort(-above.sum(axis=1), kind="stable"))
        best = max((best, rounded), key=lambda o: compute_order_value(margin, o))
        place = np.empty(len(margin), np.int64)
        place[best] = np.arange(len(margin))
        held = float(weight @ (place[i] < place[j]).astype(np.float64))
        # values of orders are multiples of `step`, so a smaller gap proves optimality
        if relaxed.objective < held + step * (1 - 1e-6):
            return best, True
        if not cuts.add_violated(above):
            break
    if most_nodes == 0:
        return best, False
    # reduced-cost fixing: flipping any other variable would lose more than the remaining gap
    free = np.abs(relaxed.reduced_costs) < relaxed.objective - held - step * (1 - 1e-6) + 1e-6
    bounds = np.where(free, 0.0, np.rint(relaxed.values)), np.where(free, 1.0, np.rint(relaxed.values))
    # integer solutions, adding triangle cuts until one is an order
    while True:
        solution = _solve_program(weight, cuts, bounds, most_nodes)
        if solution.status == "infeasible":  # nothing better than the value that fixed the variables
            return best, True
        if solution.status == "none":
            return best, False
        above = _expand_triangle(np.rint(solution.values), len(margin))
        if not cuts.add_violated(above):
            order = np.argsort(-above.sum(axis=1), kind="stable")
            better = compute_order_value(margin, order) > compute_order_value(margin, best)
            return (order if better else best), solution.status == "optimal"


def has_solver() -> bool:
    """Whether the solver HiGHS is installed, which `order_many` needs for a proof."""
    return is_installed("highspy")


class _Solution(NamedTuple):
    status: Literal["optimal", "feasible", "infeasible", "none"]  # none: stopped before the first solution
    values: F8
    objective: float
    reduced_costs: F8


def _solve_program(weight: F8, cuts: _TriangleCuts, bounds: tuple[F8, F8], most_nodes: int = 0) -> _Solution:
    """Maximize the weight under the cuts: a linear program, or an integer one if there are nodes to branch on."""
    highs = require_module(
        "highspy",
        f"method='exact' for groups of more than {FEW} items needs",
        ("use ", Option("method", "auto", of="method")),
    )
    variable, sign, limit = cuts.build_rows()
    program = highs.HighsLp()
    program.num_col_, program.num_row_ = len(weight), len(limit)
    program.col_cost_, program.col_lower_, program.col_upper_ = -weight, *bounds
    program.row_lower_, program.row_upper_ = np.full(len(limit), -np.inf), limit
    program.a_matrix_.format_ = highs.MatrixFormat.kRowwise
    program.a_matrix_.start_ = np.arange(0, variable.size + 1, 3)
    program.a_matrix_.index_, program.a_matrix_.value_ = variable.ravel(), sign.ravel()
    solver = highs.Highs()
    solver.setOptionValue("output_flag", False)
    if most_nodes:
        program.integrality_ = [highs.HighsVarType.kInteger] * len(weight)
        solver.setOptionValue("mip_max_nodes", most_nodes)
        # the default gap would accept an order that is not the best
        solver.setOptionValue("mip_rel_gap", 0.0)
    solver.passModel(program)
    solver.run()
    kinds, status = highs.HighsModelStatus, solver.getModelStatus()
    info, solution = solver.getInfo(), solver.getSolution()
    if status in (kinds.kInfeasible, kinds.kUnboundedOrInfeasible):
        name: Literal["optimal", "feasible", "infeasible", "none"] = "infeasible"
    elif status == kinds.kOptimal:
        name = "optimal"
    else:
        name = (
            "feasible"
            if info.primal_solution_status == highs.SolutionStatus.kSolutionStatusFeasible
            else "none"
        )
    reduced = np.array(solution.col_dual, np.float64)
    return _Solution(name, np.array(solution.col_value), -float(info.objective_function_value), reduced)


def _expand_triangle(x: F8, size: int) -> F8:
    """The full matrix 'i above j' from its upper triangle."""
    above = np.zeros((size, size))
    above[np.triu_indices(size, 1)] = x
    return above + np.tril(1 - above.T, -1)


class _TriangleCuts:
    """Triangle inequalities in use: not all of i above j, j above k and k above i."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.known: list[I8] = []
        i, j, k = np.ogrid[:size, :size, :size]
        self.cycles = np.argwhere((i < j) & (i < k) & (j != k))  # each cycle once, from its smallest item
        number = np.zeros((size, size), np.int64)
        number[np.triu_indices(size, 1)] = np.arange(size * (size - 1) // 2)
        self.variable = number + number.T

    def add_violated(self, above: F8) -> bool:
        """Add the most violated inequalities; returns whether there were any."""
        i, j, k = self.cycles.T
        excess = above[i, j] + above[j, k] + above[k, i] - 2
        worst = np.argsort(-excess, kind="stable")[:CUTS_A_ROUND]
        worst = worst[excess[worst] > 1e-6]
        self.known.append(self.cycles[worst])
        return len(worst) > 0

    def build_rows(self) -> tuple[I8, F8, F8]:
        """The three variables 'i above j', i < j, of every inequality, their signs, and the right-hand sides."""
        cycles = np.concatenate([np.zeros((0, 3), np.int64), *self.known])
        ends = np.roll(cycles, -1, axis=1)
        forward = cycles < ends  # a backward side is one minus its variable
        return self.variable[cycles, ends], np.where(forward, 1.0, -1.0), 2.0 - (~forward).sum(axis=1)
