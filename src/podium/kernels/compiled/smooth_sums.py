"""Sums over all pairs of a smooth function of their difference, by Chebyshev series on cells of one unit."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

HALF_TANH, LOGISTIC_SLOPE, LOG_COSH = 0, 1, 2
DIRECT = 10  # multiplications that take as long as one evaluation of the function


@njit(cache=True, nogil=True)
def of_difference(kind, d):
    """The function itself."""
    z = math.exp(-abs(d))
    if kind == HALF_TANH:
        return math.copysign((1.0 - z) / (1.0 + z), d) / 2.0
    if kind == LOGISTIC_SLOPE:
        return z / (1.0 + z) ** 2
    return abs(d) + 2.0 * math.log1p(z)


@njit(cache=True, nogil=True)
def sums(kind, near, source, mass, target, scale, out):
    """Add scale[i] * sum over j of mass[j] f(target[i] - source[j]) to out[i]."""
    if len(source) == 0 or len(target) == 0:
        return
    terms = near.shape[1]
    low, high = min(source.min(), target.min()), max(source.max(), target.max())
    cells = int(high - low) + 1
    by_cells = min(cells, len(source)) * min(cells, len(near)) * terms * terms
    by_cells += 2 * terms * (len(source) + len(target))
    # for few points the double loop is cheaper than the series
    if DIRECT * len(source) * len(target) <= by_cells:
        for i in range(len(target)):
            total = 0.0
            for j in range(len(source)):
                total += mass[j] * of_difference(kind, target[i] - source[j])
            out[i] += scale[i] * total
        return
    moment = np.zeros((cells, terms))
    for j in range(len(source)):
        cell, t = place(source[j] - low, cells)
        before, now = t, 1.0
        for m in range(terms):
            moment[cell, m] += mass[j] * now
            before, now = now, 2.0 * t * now - before
    local = series(kind, near, moment)
    for i in range(len(target)):
        cell, t = place(target[i] - low, cells)
        before, now, total = t, 1.0, 0.0
        for m in range(terms):
            total += local[cell, m] * now
            before, now = now, 2.0 * t * now - before
        out[i] += scale[i] * total


@njit(cache=True, nogil=True)
def place(x, cells):
    """The cell of a point, and its position in the cell, from -1 to 1."""
    cell = min(int(x), cells - 1)
    return cell, 2.0 * (x - cell) - 1.0


@njit(cache=True, nogil=True)
def series(kind, near, moment):
    """Chebyshev coefficients by cell of the targets, from the moments of the sources by cell."""
    cells, terms = moment.shape
    reach = len(near) // 2
    local = np.zeros((cells, terms))
    full = np.zeros(cells, np.bool_)
    for b in range(cells):
        for m in range(terms):
            full[b] |= moment[b, m] != 0.0
    for b in range(cells):
        if full[b]:
            for a in range(max(0, b - reach), min(cells, b + reach + 1)):
                table = near[a - b + reach]
                for k in range(terms):
                    total = 0.0
                    for m in range(terms):
                        total += table[k, m] * moment[b, m]
                    local[a, k] += total
    if kind != LOGISTIC_SLOPE and cells > reach:
        add_far(kind, reach, moment, local)
    return local


@njit(cache=True, nogil=True)
def add_far(kind, reach, moment, local):
    """Sources further away than `reach` cells: there f is 1/2 or -1/2, or the distance."""
    cells = len(moment)
    for sign in (1, -1):
        mass = first = 0.0
        for n in range(reach + 1, cells):
            b = n - reach - 1 if sign > 0 else cells - n + reach
            a = n if sign > 0 else cells - 1 - n
            mass += moment[b, 0]
            first += (b + 0.5) * moment[b, 0] + 0.5 * moment[b, 1]
            if kind == HALF_TANH:
                local[a, 0] += sign * mass / 2.0
            else:
                local[a, 0] += sign * ((a + 0.5) * mass - first)
                local[a, 1] += sign * 0.5 * mass


@njit(cache=True, nogil=True)
def within_sets(kind, near, starts, item, weight, x, mass, out):
    """For every set: add its weight times the sums over all pairs of its items (including i = j)."""
    for s in range(len(starts) - 1):
        members = item[starts[s] : starts[s + 1]]
        if len(members):
            here = x[members]
            total = np.zeros(len(members))
            sums(kind, near, here, mass[members], here, np.full(len(members), weight[s]), total)
            for k in range(len(members)):
                out[members[k]] += total[k]
