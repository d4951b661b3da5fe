"""Completion of skew matrices by projection onto rank two, one query after the other."""

from __future__ import annotations

import numpy as np
from numba import njit

from podium.kernels.compiled.conjugate_gradient import dot
from podium.kernels.matrix_completion import FINEST, INNER, MOST_TURNS, NOTHING

__all__ = ["build_differences", "complete_matrices"]


@njit(cache=True, nogil=True)
def complete_matrices(
    first, last, votes, value, bottom, binary, combine, unit, shrink, tolerance, most_steps,
    score, steps, change, error, norm,
):  # fmt: skip
    """Complete the matrices of a range of queries."""
    for q in range(first, last):
        size = votes.slots[q + 1] - votes.slots[q]
        if size < 2:
            continue
        parts = np.empty((6, size, size))
        table, known = parts[0], parts[1]
        build_differences(votes, q, value, bottom, binary, combine, unit, table, known)
        s = score[votes.slots[q] : votes.slots[q + 1]]
        steps[q], change[q] = solve_completion(parts, shrink, tolerance, most_steps, s)
        for i in range(size):
            norm[q] += dot(table[i], table[i])
        error[q] = norm[q] if steps[q] == 0 else compute_misfit(table, known, shrink, parts[2])


@njit(cache=True, nogil=True)
def build_differences(votes, q, value, bottom, binary, combine, unit, net, heard):
    """Y of one query in `net`, and 1 in `heard` where it is known."""
    base, size = votes.slots[q], len(net)
    net[:] = 0.0
    heard[:] = 0.0
    held = np.empty(size, np.bool_)
    for lst in range(votes.query_starts[q], votes.query_starts[q + 1]):
        start, stop, weight = votes.starts[lst], votes.starts[lst + 1], votes.list_weight[lst]
        held[:] = False
        for a in range(start, stop):
            i = votes.item[a] - base
            held[i] = True
            for b in range(a + 1, stop):
                gap = value[b] - value[a]
                if binary:
                    gap = np.sign(gap)
                add_preference(net, heard, i, votes.item[b] - base, weight * gap, weight)
        if votes.below:
            for a in range(start, stop):
                gap = 1.0 if np.isinf(bottom[lst]) else bottom[lst] - value[a]
                for j in range(size):
                    if not held[j]:
                        add_preference(net, heard, votes.item[a] - base, j, weight * gap, weight)
    for v in range(votes.vote_starts[q], votes.vote_starts[q + 1]):
        weight = votes.vote_weight[v]
        gain = 0.0 if votes.tie[v] else weight
        add_preference(net, heard, votes.winner[v] - base, votes.loser[v] - base, gain, weight)
    for i in range(size):
        for j in range(size):
            n, h = net[i, j] * unit, heard[i, j] * unit
            if combine == 1:
                n = n / h if h > 0 else 0.0
            elif combine == 2:
                n = np.log((h + n + 2) / (h - n + 2))
            net[i, j] = n
            heard[i, j] = 1.0 if h > 0 else 0.0


@njit(cache=True, nogil=True)
def add_preference(net, heard, i, j, gain, weight):
    """Add a preference for i over j with this weight and strength."""
    net[i, j] += gain
    net[j, i] -= gain
    heard[i, j] += weight
    heard[j, i] += weight


@njit(cache=True, nogil=True)
def solve_completion(parts, shrink, tolerance, most_steps, s):
    """Project and extrapolate until a projection changes little; leaves the row means in s, X in parts[2]."""
    table, x, y, z = parts[0], parts[2], parts[3], parts[4]
    plane = np.zeros((2, len(s)))
    if not find_start_plane(table, plane):
        return 0, 0.0
    project_rank_two(table, plane, FINEST, x)
    steps, change = 1, 1.0
    done = most_steps + 1
    while steps < most_steps:
        project_filled(parts, shrink, x, plane, change, y)
        change = compute_relative_change(x, y)
        steps += 1
        if change <= tolerance:
            x[:] = y
            done = steps
            break
        # two plain projections provide the direction of an extrapolation (SQUAREM)
        project_filled(parts, shrink, y, plane, change, z)
        steps += 1
        if extrapolate_matrices(x, y, z):  # leaves the extrapolation in x
            turned = plane.copy()
            project_filled(parts, shrink, x, turned, change, y)
            steps += 1
            if compute_misfit(table, parts[1], shrink, y) <= compute_misfit(table, parts[1], shrink, z):
                z[:] = y
                plane[:] = turned
        x[:] = z
    for i in range(len(s)):
        for j in range(len(s)):
            s[i] += x[i, j] / len(s)
    return done, change


@njit(cache=True, nogil=True)
def find_start_plane(table, plane):
    """A plane through the row sums; false when they are all zero."""
    top, most = 0.0, 0.0
    for i in range(len(table)):
        size = 0.0
        for j in range(len(table)):
            plane[0, i] += table[i, j]
            size += abs(table[i, j])
        top, most = max(top, abs(plane[0, i])), max(most, size)
    if top <= NOTHING * most:
        return False
    for i in range(len(table)):
        plane[1, i] = dot(table[i], plane[0])
    orthonormalize(plane)
    return True


@njit(cache=True, nogil=True)
def orthonormalize(plane):
    """Make the two vectors orthonormal."""
    u, v = plane[0], plane[1]
    scale_vector(u, 1 / np.sqrt(dot(u, u)))
    for _ in range(2):
        share = dot(u, v)
        for i in range(len(u)):
            v[i] -= share * u[i]
    scale_vector(v, 1 / np.sqrt(dot(v, v)))


@njit(cache=True, nogil=True)
def scale_vector(x, factor):
    """Multiply in place."""
    for i in range(len(x)):
        x[i] *= factor


@njit(cache=True, nogil=True)
def project_filled(parts, shrink, x, plane, change, out):
    """Fill in the unknown cells from x, and project; `out` may not be x."""
    table, known, filled = parts[0], parts[1], parts[5]
    for i in range(len(x)):
        for j in range(len(x)):
            filled[i, j] = table[i, j] + (1 - shrink) * (1 - known[i, j]) * x[i, j]
    project_rank_two(filled, plane, (INNER * change) ** 2, out)


@njit(cache=True, nogil=True)
def project_rank_two(table, plane, tolerance, out):
    """The nearest skew-symmetric matrix of rank two, by power iteration from a nearby plane."""
    size = len(table)
    new = np.empty((2, size))
    for _ in range(MOST_TURNS):
        for i in range(size):
            new[0, i], new[1, i] = dot(table[i], plane[0]), dot(table[i], plane[1])
        orthonormalize(new)
        off = 0.0
        for n in range(2):
            a, b = dot(new[n], plane[0]), dot(new[n], plane[1])
            for i in range(size):
                off += (new[n, i] - a * plane[0, i] - b * plane[1, i]) ** 2
        plane[:] = new
        if off <= max(tolerance, FINEST):
            break
    u, v = plane[0], plane[1]
    height = 0.0
    for i in range(size):
        height += u[i] * dot(table[i], v)
    for i in range(size):
        for j in range(size):
            out[i, j] = height * (u[i] * v[j] - v[i] * u[j])


@njit(cache=True, nogil=True)
def compute_relative_change(x, y):
    """The distance of y from x, relative to y."""
    gap, size = 0.0, 0.0
    for i in range(len(x)):
        for j in range(len(x)):
            gap += (y[i, j] - x[i, j]) ** 2
            size += y[i, j] ** 2
    return np.sqrt(gap / size)


@njit(cache=True, nogil=True)
def extrapolate_matrices(x, y, z):
    """Replace x by the extrapolation of x, y, z; false, and x unchanged, where it leads no further than z."""
    first, bend = 0.0, 0.0
    for i in range(len(x)):
        for j in range(len(x)):
            first += (y[i, j] - x[i, j]) ** 2
            bend += (z[i, j] - 2 * y[i, j] + x[i, j]) ** 2
    if bend == 0.0 or first <= bend:
        return False
    stride = np.sqrt(first / bend)
    for i in range(len(x)):
        for j in range(len(x)):
            a, b, c = x[i, j], y[i, j], z[i, j]
            x[i, j] = a + 2 * stride * (b - a) + stride * stride * (c - 2 * b + a)
    return True


@njit(cache=True, nogil=True)
def compute_misfit(table, known, shrink, x):
    """The squared distance to the known cells, plus the shrunk squares of the rest."""
    total = 0.0
    for i in range(len(x)):
        for j in range(len(x)):
            total += (known[i, j] + shrink * (1 - known[i, j])) * (x[i, j] - table[i, j]) ** 2
    return total
