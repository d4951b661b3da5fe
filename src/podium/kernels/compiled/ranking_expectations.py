"""Expected metrics over all rankings of a few items by sums over sets of items, and whole training passes."""

from __future__ import annotations

import numpy as np
from numba import njit

from podium.kernels.compiled.lambdas import update_weights


@njit(cache=True, nogil=True)
def train_crf_pass(
    starts, group, values, kind, gain, discount, limit, weight, visit, rows, fall, batch, weights, mean, square, steps,
    adam, rate, l2, positive, towards,
):  # fmt: skip
    """Queries in the order of `visit`, each through its rows (-1 is padding); a step after every `batch`."""
    size = rows.shape[1]
    omega, gains, slope = np.empty(size), np.empty(size), np.empty(size)
    chance, tables = np.empty((size, size)), np.empty((5, 1 << size))
    gradient = np.zeros(len(weights))
    lost, total = 0.0, 0.0
    for at in range(len(visit)):
        q, n = visit[at], 0
        while n < size and rows[at, n] >= 0:
            r = rows[at, n]
            omega[n], gains[n] = 0.0, gain[r]
            for e in range(starts[r], starts[r + 1]):
                g = 3 * group[e]
                part = values[e, 0] * weights[g] + values[e, 1] * weights[g + 1]
                omega[n] += part + values[e, 2] * weights[g + 2]
            n += 1
        counted = min(limit[q], n)
        value = compute_expected_metric(n, omega, gains, kind, discount, counted, fall, chance, tables, slope)
        total += weight[q]
        lost += weight[q] * (1.0 - value)
        for k in range(n):
            for e in range(starts[rows[at, k]], starts[rows[at, k] + 1]):
                for c in range(3):
                    gradient[3 * group[e] + c] -= weight[q] * slope[k] * values[e, c]
        if (at + 1) % batch == 0 or at + 1 == len(visit):
            update_weights(
                gradient, at % batch + 1, weights, mean, square, steps, adam, rate, l2, positive, towards
            )
    return lost / max(total, 1e-300)


@njit(cache=True, nogil=True)
def compute_expected_metric(n, omega, gain, kind, discount, limit, fall, chance, tables, slope):
    """The expected metric over its ideal value, and in `slope` its derivative by omega.

    Set by set, smallest first: `mass` is the weight of all ways to fill the first places with the set,
    `worth` that weight times the metric so far. The backward pass gives the derivatives of worth / mass of
    the full set.
    """
    mass, worth, back_mass, back_worth, state = tables[0], tables[1], tables[2], tables[3], tables[4]
    full = (1 << n) - 1
    for i in range(n):
        slope[i] = 0.0
    ideal = _compute_states(n, gain, kind, discount, limit, state)
    if ideal <= 0.0:
        return 0.0
    _compute_chances(n, omega, fall, chance)
    mass[0], worth[0] = 1.0, 0.0
    for s in range(1, full + 1):
        m, v, p = 0.0, 0.0, _count_bits(s) - 1
        for i in range(n):
            if s >> i & 1:
                before = s ^ (1 << i)
                adds = _compute_added_gain(kind, gain[i], state[before], discount, p, limit)
                m += chance[i, p] * mass[before]
                v += chance[i, p] * (worth[before] + adds * mass[before])
        mass[s], worth[s] = m, v
    value = worth[full] / mass[full]
    # reverse-mode differentiation: one backward sweep gives all derivatives
    back_worth[full], back_mass[full] = 1.0 / mass[full], -value / mass[full]
    for s in range(full - 1, -1, -1):
        m, v, p = 0.0, 0.0, _count_bits(s)
        for i in range(n):
            if not s >> i & 1:
                after = s | (1 << i)
                adds = _compute_added_gain(kind, gain[i], state[s], discount, p, limit)
                x, both = chance[i, p], back_mass[after] + adds * back_worth[after]
                m += x * both
                v += x * back_worth[after]
                slope[i] += fall[p] * x * (mass[s] * both + worth[s] * back_worth[after]) / ideal
        back_mass[s], back_worth[s] = m, v
    return value / ideal


@njit(cache=True, nogil=True, inline="always")
def _count_bits(s):
    found = 0
    while s:
        s &= s - 1
        found += 1
    return found


@njit(cache=True, nogil=True, inline="always")
def _compute_added_gain(kind, gain, state, discount, p, limit):
    """The gain of an item at place p below a set of items."""
    if p >= limit:
        return 0.0
    if kind == 0:
        return gain * discount[p]
    if kind == 1:
        return gain * (state + gain) / discount[p]
    return discount[p] * gain * state


@njit(cache=True, nogil=True)
def _compute_states(n, gain, kind, discount, limit, state):
    """The state of each set for the items below it: sum of gains, or probability of reading on; the ideal."""
    state[0] = 0.0 if kind == 1 else 1.0
    for s in range(1, 1 << n):
        i = 0
        while not s >> i & 1:
            i += 1
        rest = state[s & (s - 1)]
        state[s] = rest + gain[i] if kind == 1 else rest * (1.0 - gain[i])
    ideal = 0.0
    for p in range(n):
        ideal += _compute_added_gain(kind, gain[p], state[(1 << p) - 1], discount, p, limit)
    return ideal


@njit(cache=True, nogil=True)
def _compute_chances(n, omega, fall, chance):
    """exp(omega[i] * fall[p]), divided by a factor for each item and each place.

    Such factors change all rankings alike. They are chosen so that the best ranking weighs 1 and no entry
    exceeds 1: whatever omega is, nothing overflows and the sum is at least 1.
    """
    order = np.empty(n, np.int64)
    for k in range(n):
        m = k
        while m > 0 and omega[order[m - 1]] < omega[k]:
            order[m] = order[m - 1]
            m -= 1
        order[m] = k
    shift = np.zeros(n)
    for p in range(n - 1):
        shift[p + 1] = shift[p] - 0.5 * (omega[order[p]] + omega[order[p + 1]]) * (fall[p] - fall[p + 1])
    for k in range(n):
        i = order[k]
        own = omega[i] * fall[k] - shift[k]
        for p in range(n):
            chance[i, p] = np.exp(omega[i] * fall[p] - shift[p] - own)


@njit(cache=True, nogil=True)
def sample_subsets(starts, level, visit, uniform, out):
    """Rows for every visit: one of each level, then random ones; in their original order."""
    size, longest = out.shape[1], 1
    for q in visit:
        longest = max(longest, starts[q + 1] - starts[q])
    rest, begin = np.empty(longest, np.int64), np.empty(longest + 1, np.int64)
    end = np.empty(longest, np.int64)
    for at in range(len(visit)):
        a, n = starts[visit[at]], starts[visit[at] + 1] - starts[visit[at]]
        if n <= size:
            for k in range(n):
                out[at, k] = a + k
            continue
        runs = 0
        for i in range(n):
            if i == 0 or level[a + i] != level[a + i - 1]:
                begin[runs] = i
                runs += 1
            end[runs - 1] = i + 1
        if runs > size:
            for k in range(size):
                other = k + int(uniform[at, size + k] * (runs - k))
                begin[k], begin[other] = begin[other], begin[k]
                end[k], end[other] = end[other], end[k]
            runs = size
        _fill_subset(a, n, runs, begin, end, rest, uniform[at], out[at])


@njit(cache=True, nogil=True)
def _fill_subset(a, n, runs, begin, end, rest, uniform, out):
    size = len(out)
    for i in range(n):
        rest[i] = 0
    for k in range(runs):
        out[k] = begin[k] + int(uniform[k] * (end[k] - begin[k]))
        rest[out[k]] = 1
    left = 0
    for i in range(n):
        if rest[i] == 0:
            rest[left] = i
            left += 1
    for k in range(runs, size):
        other = k - runs + int(uniform[k] * (left - (k - runs)))
        rest[k - runs], rest[other] = rest[other], rest[k - runs]
        out[k] = rest[k - runs]
    for k in range(size):
        x, m = out[k], k
        while m > 0 and out[m - 1] > x + a:
            out[m] = out[m - 1]
            m -= 1
        out[m] = x + a
