"""Poisson-binomial distributions by convolution, and expectations under them, row by row."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

FEW = 8  # equal factors up to here are multiplied; beyond, a logarithm is cheaper
PENDING = 256  # factors between 0 and 2 whose product can neither overflow nor underflow

__all__ = ["compute_excess_discount", "compute_power_excess", "convolve_directly"]


@njit(cache=True, nogil=True)
def convolve_directly(first, last, win, law):
    """Distributions of a range of rows."""
    for row in range(first, last):
        out = law[row]
        for t in range(win.shape[1]):
            w = win[row, t]
            lose = 1 - w
            for r in range(t + 1, 0, -1):
                out[r] = out[r] * w + out[r - 1] * lose
            out[0] *= w


@njit(cache=True, nogil=True)
def compute_excess_discount(first, last, contests, tilt, starts, drop, found):
    """Expected discounts minus even ones, for a range of rows."""
    most = 0
    for row in range(first, last):
        most = max(most, contests.uneven[row])
    s, even = np.zeros(most + 1), np.zeros(most + 1)
    for row in range(first, last):
        if contests.uneven[row] == 0:
            continue
        build_polynomial(contests, row, tilt[contests.group[row]], s, even)
        at, total = starts[contests.size[row] - contests.uneven[row]], 0.0
        for r in range(contests.uneven[row]):
            total += s[r] * drop[at + r]
        found[row] = total


@njit(cache=True, nogil=True)
def compute_edge(contests, row, opponent, tilt):
    """Edge over one of the opponents; the index after the last stands for the unjudged items."""
    if opponent == contests.last[row]:
        return tilt * contests.stranger[row]
    d = contests.own[row] - contests.value[opponent]
    slope = contests.slope[contests.group[row]]
    return tilt * (slope * d + contests.step * ((1.0 if d > 0 else 0.0) - (1.0 if d < 0 else 0.0)))


@njit(cache=True, nogil=True)
def count_edge_contests(contests, row, opponent):
    """Number of contests with an edge."""
    if opponent == contests.last[row]:
        return contests.strangers[row] if contests.stranger[row] != 0 else 0
    return contests.many[opponent] if contests.own[row] != contests.value[opponent] else 0


@njit(cache=True, nogil=True)
def build_polynomial(contests, row, tilt, s, even):
    """The polynomial s of a row; `even` is scratch."""
    s[0], even[0], t = 0.0, 1.0, 0
    for opponent in range(contests.first[row], contests.last[row] + 1):
        e = compute_edge(contests, row, opponent, tilt)
        p = 0.5 + e
        q = 1 - p
        for _ in range(count_edge_contests(contests, row, opponent)):
            s[t], even[t + 1] = 0.0, 0.0
            for r in range(t, 0, -1):
                s[r] = s[r] * p + s[r - 1] * q + e * even[r]
            s[0] = s[0] * p + e * even[0]
            for r in range(t + 1, 0, -1):
                even[r] = (even[r] + even[r - 1]) / 2
            even[0] /= 2
            t += 1


@njit(cache=True, nogil=True)
def compute_power_excess(first, last, contests, tilt, tanh, log_half, weight, found):
    """The same for sums of powers."""
    nodes = len(weight)
    # product minus one, of factors whose logarithm is not yet taken
    product, logs = (np.empty(nodes), np.empty(nodes))
    for row in range(first, last):
        product[:], logs[:] = 0.0, 0.0
        pending = 0
        for opponent in range(contests.first[row], contests.last[row] + 1):
            count = count_edge_contests(contests, row, opponent)
            if count == 0:
                continue
            e = compute_edge(contests, row, opponent, tilt[contests.group[row]])
            if count > FEW:
                for m in range(nodes):
                    logs[m] += count * math.log1p(max(e * tanh[m], -1.0))
                continue
            for _ in range(count):
                for m in range(nodes):
                    product[m] += (1 + product[m]) * (e * tanh[m])
            pending += count
            if pending > PENDING:
                take_logs(product, logs)
                pending = 0
        take_logs(product, logs)
        total = 0.0
        for m in range(nodes):
            even = contests.size[row] * log_half[m]
            if logs[m] < 1:
                total += weight[m] * math.exp(even) * math.expm1(logs[m])
            else:
                total += weight[m] * (math.exp(even + logs[m]) - math.exp(even))
        found[row] = total


@njit(cache=True, nogil=True)
def take_logs(product, logs):
    """Add the logarithms of the products, which are reset."""
    for m in range(len(logs)):
        logs[m] += math.log1p(max(product[m], -1.0))
        product[m] = 0.0
