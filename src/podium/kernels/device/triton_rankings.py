"""Kernels on rankings: a visit of the CRF to a query, and leading singular vectors of lists."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def compute_visit_gradient(
    statement, flat, turn, table, much, count, gain, worth, allowed, fall, seats, partial, lost, batch, width, rankings,
    sums: tl.constexpr, N: tl.constexpr, M: tl.constexpr, P: tl.constexpr, W: tl.constexpr,
):  # fmt: skip
    """From the statements about a query's items to its part of the gradient.

    `table` holds the rows of each visit and their number.

    `fall` and `seats` are by (item, ranking): the weight of the item's place and the discount there.

    Metrics that are sums over places are computed here, others (not `sums`) are given in `worth`.
    """
    q, now = tl.program_id(0), tl.load(turn)
    if q < tl.load(count + now):
        at = now * batch + q
        k, c, p = tl.arange(0, M), tl.arange(0, W), tl.arange(0, P)
        n, live, known = tl.load(table + at * (N + 1) + N), tl.load(much + at), p < rankings
        r = tl.load(table + at * (N + 1) + k, k < n, 0)
        mine, cells = (k < n)[:, None] & (c < width)[None, :], (k < N)[:, None] & known[None, :]
        d = tl.load(statement + r[:, None] * width + c[None, :], mine, 0.0)
        f = tl.load(fall + k[:, None] * rankings + p[None, :], cells, 0.0)
        omega = tl.sum(d * tl.load(flat + c, c < width, 0.0)[None, :], 1)
        energy = tl.sum(f * omega[:, None], 0) + tl.load(allowed + n * rankings + p, known, float("-inf"))
        chance = tl.exp(energy - tl.max(energy, 0))
        whole = tl.sum(chance, 0)
        if sums:
            g = tl.load(gain + r, k < n, 0.0)
            got = tl.sum(tl.load(seats + k[:, None] * rankings + p[None, :], cells, 0.0) * g[:, None], 0)
            ideal = tl.sum(tl.load(seats + k * rankings, k < N, 0.0) * g, 0)  # the items in the given order
            got = tl.where(ideal > 0, got / ideal, 0.0)
        else:
            got = tl.load(worth + at * rankings + p, known, 0.0)
        average = tl.sum(chance * got, 0) / whole
        tl.store(lost + at, live * (1.0 - average))
        slope = tl.sum(f * (chance * (got - average) * (-live / whole))[None, :], 1)
        tl.store(partial + q * width + c, tl.sum(d * slope[:, None], 0), c < width)
    if q == 0:
        tl.store(turn + 1, now + 1)


@triton.jit
def _max_of_two(a, b):
    return tl.maximum(a, b)


@triton.jit
def _invert_length(length):
    """1 / length, and 0 for a zero vector."""
    return tl.where(length > 0, 1.0 / tl.where(length > 0, length, 1.0), 0.0)


@triton.jit
def _multiply_transposed(gap, won, binary: tl.constexpr):
    """Losses of each row."""
    earlier = tl.cumsum(won, 1)
    if binary:  # sums rise along the list, so the last one counted is the largest
        got = tl.associative_scan(tl.where(gap > 0, earlier, 0.0), 1, _max_of_two)
    else:
        got = tl.cumsum(gap * earlier, 1)
    return got


@triton.jit
def _multiply_list(gap, lost, binary: tl.constexpr):
    """Wins of each row, one row further down."""
    later = tl.cumsum(lost, 1, reverse=True)
    if binary:
        got = tl.associative_scan(tl.where(gap > 0, later, 0.0), 1, _max_of_two, reverse=True)
    else:
        got = tl.cumsum(gap * later, 1, reverse=True)
    return got


@triton.jit(do_not_specialize=["count"])
def compute_leading_vectors(
    table, value, item, u, v, ends, count, tolerance, slow, patience, binary: tl.constexpr, L: tl.constexpr,
    W: tl.constexpr,
):  # fmt: skip
    """Lists of up to W rows; `ends` gets each one's singular value and its steps, 0 if it converges slowly.

    `table` (5, count) describes each list: its first row, its rows, the number of items below, the first
    entry of its matrix in `u` and `v`, and the offset from an item to its entry.

    Wins are stored one row further down (`won[k]` belongs to row k - 1, `foot` to the last row), so that
    running sums include their own row and nothing has to be subtracted.
    """
    own, k = tl.program_id(0) * L + tl.arange(0, L), tl.arange(0, W)[None, :]
    here = own < count
    first, n = tl.load(table + own, here, 0), tl.load(table + count + own, here, 0)
    below, entry = tl.load(table + 2 * count + own, here, 0), tl.load(table + 3 * count + own, here, 0)
    shift = tl.load(table + 4 * count + own, here, 0)
    held = k < n[:, None]
    inner = held & (k > 0)
    at = first[:, None] + k
    gap = tl.load(value + at, inner, 0.0) - tl.load(value + at - 1, inner, 0.0)
    root = tl.sqrt(below.to(tl.float64))
    lost, rest = tl.zeros([L, W], tl.float64), tl.zeros([L], tl.float64)
    won, foot = tl.where(inner, 1.0, 0.0).to(tl.float64), tl.where(n > 0, 1.0, 0.0).to(tl.float64)
    running, steps = here.to(tl.int32), tl.zeros([L], tl.int32)
    before, step = tl.full([L], float("inf"), tl.float64), 0
    while tl.max(running, 0) > 0:
        new = tl.where(held, _multiply_transposed(gap, won, binary), 0.0)
        tail = root * (tl.sum(won, 1) + foot)
        length = tl.sqrt(tl.sum(new * new, 1) + tail * tail)
        factor = _invert_length(length)
        new, tail = new * factor[:, None], tail * factor
        d, e = new - lost, tail - rest
        change = tl.sqrt(tl.sum(d * d, 1) + e * e)
        lost = tl.where(running[:, None] > 0, new, lost)
        rest = tl.where(running > 0, tail, rest)
        foot = root * rest
        won = tl.where(inner, _multiply_list(gap, lost, binary) + foot[:, None], 0.0)
        done = change <= tolerance
        steps = tl.where((running > 0) & done, tl.maximum(step, 1), steps)
        goes = (change <= slow * before) | (step < patience)
        running = tl.where(done | (goes == 0), 0, running)
        before = change
        step += 1
    length = tl.sqrt(tl.sum(won * won, 1) + foot * foot)
    inverse = _invert_length(length)
    tl.store(ends + 2 * own, length, here)
    tl.store(ends + 2 * own + 1, steps.to(tl.float64), here)
    solved = (steps > 0)[:, None]
    many, share, j = tl.where(below > 0, n + below, 0), rest * _invert_length(root), 0
    while j < tl.max(many, 0):  # items below are all alike
        spread = share[:, None] + tl.zeros([L, W], tl.float64)
        tl.store(v + entry[:, None] + j + k, spread, j + k < many[:, None])
        j += W
    tl.debug_barrier()
    tl.store(v + shift[:, None] + tl.load(item + at, held, 0), lost, held & solved)
    tl.store(u + shift[:, None] + tl.load(item + at - 1, inner, 0), won * inverse[:, None], inner & solved)
    last = tl.load(item + first + n - 1, n > 0, 0)
    tl.store(u + shift + last, foot * inverse, (n > 0) & (steps > 0))
