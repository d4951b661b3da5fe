"""The linear ordering problem: the order that maximizes the sum of margins of upper over lower items.

`margin` is skew-symmetric with integer entries. Among equally good orders of a few items the
lexicographically first by position in the matrix is returned, so the caller controls tie-breaking by
arranging the items.
"""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np

from podium.kernels.dispatch import B1, F8, I8

__all__ = [
    "compute_order_value",
    "find_ordered_components",
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
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    beats = margin > 0
    count, label = connected_components(csr_array(beats), directed=True, connection="strong")
    parts = np.split(np.argsort(label, kind="stable"), np.cumsum(np.bincount(label))[:-1])
    links = np.zeros((count, count), np.bool_)
    upper, lower = np.nonzero(beats)
    links[label[upper], label[lower]] = True
    np.fill_diagonal(links, False)
    return [parts[c] for c in _sort_topologically(links, [int(p[0]) for p in parts])]


def _sort_topologically(links: B1, key: list[int]) -> list[int]:
    waiting = links.sum(axis=0)
    ready = [(key[c], int(c)) for c in np.flatnonzero(waiting == 0)]
    heapq.heapify(ready)
    order = []
    while ready:
        _, c = heapq.heappop(ready)
        order.append(c)
        waiting -= links[c]
        for d in np.flatnonzero(links[c] & (waiting == 0)).tolist():
            heapq.heappush(ready, (key[d], d))
    return order


def order_few(margin: F8) -> I8:
    """The first of the optimal orders, by dynamic programming over subsets (up to `FEW` items)."""
    n = len(margin)
    gain = np.zeros((n, 1))  # gain[i, s]: margins of item i over the members of subset s
    for j in range(n):
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


def improve_order(margin: F8, order: I8, *, compiled: bool = False) -> I8:
    """Move single items to their best places until no move helps."""
    order = order.copy()
    if compiled:
        from podium.kernels.compiled.linear_ordering import improve_order as kernel

        kernel(margin, order)
        return order
    moved = True
    while moved:
        moved = False
        for item in order.copy().tolist():
            moved |= _reinsert_item(margin, order, item)
    return order


def _reinsert_item(margin: F8, order: I8, item: int) -> bool:
    at = int(np.flatnonzero(order == item)[0])
    row = margin[item, order]
    gain = np.zeros(len(order))
    gain[:at] = np.cumsum(row[:at][::-1])[::-1]
    gain[at + 1 :] = -np.cumsum(row[at + 1 :])
    to = int(gain.argmax())
    if gain[to] <= 0:
        return False
    low, high = min(at, to), max(at, to)
    order[low : high + 1] = np.roll(order[low : high + 1], -1 if to > at else 1)
    return True


def order_many(margin: F8, start: I8, most_nodes: int) -> tuple[I8, bool]:
    """An optimal order by linear programming with triangle cuts, then branch and bound; and if it is proved.

    `start` is a good order: its value lets most problems end without branching. With no nodes to branch on,
    the result is the best order found.
    """
    i, j = np.triu_indices(len(margin), 1)
    weight = margin[i, j]
    step = float(np.gcd.reduce(np.abs(weight).astype(np.int64)))
    best = improve_order(margin, start)
    cuts = _TriangleCuts(len(margin))
    while True:
        found = _solve_relaxation(weight, cuts)
        above = _expand_triangle(found.x, len(margin))
        rounded = improve_order(margin, np.argsort(-above.sum(axis=1), kind="stable"))
        best = max((best, rounded), key=lambda o: compute_order_value(margin, o))
        held = float(weight @ _build_above_matrix(best)[i, j])
        # values of orders are multiples of `step`, so a smaller gap proves optimality
        if -found.fun < held + step * (1 - 1e-6):
            return best, True
        if not cuts.add_violated(above):
            break
    if most_nodes == 0:
        return best, False
    # reduced-cost fixing: flipping any other variable would lose more than the remaining gap
    free = (
        np.abs(found.lower.marginals + found.upper.marginals) < -found.fun - held - step * (1 - 1e-6) + 1e-6
    )
    bounds = np.where(free, 0.0, np.rint(found.x)), np.where(free, 1.0, np.rint(found.x))
    return _branch_and_bound(margin, weight, cuts, bounds, best, most_nodes)


def _branch_and_bound(
    margin: F8, weight: F8, cuts: _TriangleCuts, bounds: tuple[F8, F8], best: I8, most_nodes: int
) -> tuple[I8, bool]:
    """Integer solutions, adding triangle cuts until one is an order. Fixed variables cannot improve."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    while True:
        table, limit = cuts.build_constraints()
        found = milp(
            -weight,
            integrality=np.ones(len(weight)),
            bounds=Bounds(*bounds),
            constraints=LinearConstraint(table, -np.inf, limit),
            options={"node_limit": most_nodes, "mip_rel_gap": 0.0},
        )
        if found.status == 2:  # nothing better than the value that fixed the variables
            return best, True
        if found.x is None:
            return best, False
        above = _expand_triangle(np.rint(found.x), len(margin))
        if not cuts.add_violated(above):
            order = np.argsort(-above.sum(axis=1), kind="stable")
            better = compute_order_value(margin, order) > compute_order_value(margin, best)
            return (order if better else best), found.status == 0


def _solve_relaxation(weight: F8, cuts: _TriangleCuts) -> Any:
    from scipy.optimize import linprog

    table, limit = cuts.build_constraints()
    return linprog(-weight, A_ub=table, b_ub=limit, bounds=(0, 1), method="highs")


def _build_above_matrix(order: I8) -> F8:
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    return (place[:, None] < place).astype(np.float64)


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

    def build_constraints(self) -> tuple[Any, F8]:
        """Sparse rows and right-hand sides over the variables 'i above j', i < j."""
        from scipy.sparse import csr_array

        cycles = np.concatenate([np.zeros((0, 3), np.int64), *self.known])
        ends = np.roll(cycles, -1, axis=1)
        forward = cycles < ends  # a backward side is one minus its variable
        rows = np.repeat(np.arange(len(cycles)), 3)
        shape = (len(cycles), self.size * (self.size - 1) // 2)
        sign = np.where(forward, 1.0, -1.0)
        table = csr_array((sign.ravel(), (rows, self.variable[cycles, ends].ravel())), shape=shape)
        return table, 2.0 - (~forward).sum(axis=1)
