"""Loops over the pairs of one large query, in chunks that write to separate sums.

The number of chunks depends on the number of pairs alone, so the result does not depend on the number of
threads. Inputs and sums of an item are adjacent in memory (`room`: chunk, item, column), so that a pair
touches only two locations. Column 0 is the input: scores, strengths, or the vector to be multiplied.
"""

from __future__ import annotations

from numba import njit

from podium.kernels.compiled.contest_solvers import (
    DAVIDSON,
    compute_pair_derivatives,
    split_ties,
    sum_pair_values,
)


@njit(cache=True, nogil=True)
def reset_chunk(here, given):
    """Initialize the memory of a chunk."""
    for i in range(len(here)):
        here[i, 0] = given[i]
        for k in range(1, here.shape[1]):
            here[i, k] = 0.0


@njit(cache=True, nogil=True)
def compute_derivatives(first_chunk, last_chunk, cuts, pairs, base, kind, half, x, size, bend, room, corner):
    """By pair the second derivative; by chunk and item gradient, diagonal, borders; by chunk other sums."""
    first, second, won, lost, tied, side = pairs
    e = x[size] if kind >= DAVIDSON else 0.0
    a = x[-1] if len(side) else 0.0
    for chunk in range(first_chunk, last_chunk):
        here = room[chunk]
        reset_chunk(here, x)
        corner[chunk] = 0.0
        for p in range(cuts[chunk], cuts[chunk + 1]):
            i, j = first[p] - base, second[p] - base
            s = side[p] if len(side) else 0.0
            w, b = split_ties(half, won[p], lost[p], tied[p])
            g, h, ge, de, ee = compute_pair_derivatives(kind, x[i] - x[j] + s * a, e, w, b, tied[p])
            bend[p] = h
            add_to_items(here, i, j, 1, g, -g)
            add_to_items(here, i, j, 2, h, h)
            at = 3
            if kind >= DAVIDSON:
                add_to_items(here, i, j, at, de, -de)
                corner[chunk, 0] += ge
                corner[chunk, 1] += ee
                at += 1
            if len(side):
                add_to_items(here, i, j, at, s * h, -s * h)
                corner[chunk, 2] += s * g
                corner[chunk, 3] += s * s * h
                corner[chunk, 4] += s * de


@njit(cache=True, nogil=True)
def add_to_items(here, i, j, column, up, down):
    """Add to the cells of two items."""
    here[i, column] += up
    here[j, column] += down


@njit(cache=True, nogil=True)
def compute_logit_derivatives(first_chunk, last_chunk, cuts, pairs, base, half, strength, bend, room):
    """The same for the plain model from strengths exp(score): no exponentials in the loop."""
    first, second, won, lost, tied, _ = pairs
    for chunk in range(first_chunk, last_chunk):
        here = room[chunk]
        reset_chunk(here, strength)
        p, end = cuts[chunk], cuts[chunk + 1]
        while p < end:
            i = first[p]
            mine = here[i - base, 0]
            g_sum = h_sum = 0.0
            while p < end and first[p] == i:  # all pairs of one item, its sums in registers
                j = second[p] - base
                w, b = split_ties(half, won[p], lost[p], tied[p] if half else 0.0)
                other = here[j, 0]
                part = 1.0 / (mine + other)
                up, down = mine * part, other * part
                g, h = b * up - w * down, (w + b) * up * down
                bend[p] = h
                g_sum += g
                h_sum += h
                here[j, 1] -= g
                here[j, 2] += h
                p += 1
            here[i - base, 1] += g_sum
            here[i - base, 2] += h_sum


@njit(cache=True, nogil=True)
def multiply_hessian(first_chunk, last_chunk, cuts, first, second, base, bend, v, room):
    """The Hessian (pairs only) times v, by chunk."""
    for chunk in range(first_chunk, last_chunk):
        here = room[chunk]
        reset_chunk(here, v)
        p, end = cuts[chunk], cuts[chunk + 1]
        while p < end:
            i = first[p]
            mine, total = here[i - base, 0], 0.0
            while p < end and first[p] == i:
                j = second[p] - base
                t = bend[p] * (mine - here[j, 0])
                total += t
                here[j, 1] -= t
                p += 1
            here[i - base, 1] += total


@njit(cache=True, nogil=True)
def compute_values(first_chunk, last_chunk, cuts, pairs, base, kind, half, x, width, advantage, out):
    """The negative log likelihood, by chunk."""
    for chunk in range(first_chunk, last_chunk):
        out[chunk] = sum_pair_values(
            pairs, cuts[chunk], cuts[chunk + 1], base, kind, half, x, width, advantage
        )


@njit(cache=True, nogil=True)
def count_wins_and_losses(first, second, won, lost, tied, wins, losses):
    """Wins and losses of every item, ties half."""
    for p in range(len(first)):
        i, j = first[p], second[p]
        half = 0.5 * tied[p]
        wins[i] += won[p] + half
        wins[j] += lost[p] + half
        losses[i] += lost[p] + half
        losses[j] += won[p] + half
