"""One visit of the CRF to a query, from what is said of its items to its part of the gradient, as one program."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def visit(
    said, flat, turn, table, much, count, gain, worth, allowed, fall, seats, partial, lost, batch, width, rankings,
    sums: tl.constexpr, N: tl.constexpr, M: tl.constexpr, P: tl.constexpr, W: tl.constexpr,
):  # fmt: skip
    """`table` holds the rows of each visit and how many they are.

    `fall` and `seats` are by (item, ranking): the weight of the item's place and the discount there.

    Metrics that are sums over places are worked out here, others (not `sums`) are given in `worth`.
    """
    q, now = tl.program_id(0), tl.load(turn)
    if q < tl.load(count + now):
        at = now * batch + q
        k, c, p = tl.arange(0, M), tl.arange(0, W), tl.arange(0, P)
        n, live, known = tl.load(table + at * (N + 1) + N), tl.load(much + at), p < rankings
        r = tl.load(table + at * (N + 1) + k, k < n, 0)
        mine, cells = (k < n)[:, None] & (c < width)[None, :], (k < N)[:, None] & known[None, :]
        d = tl.load(said + r[:, None] * width + c[None, :], mine, 0.0)
        f = tl.load(fall + k[:, None] * rankings + p[None, :], cells, 0.0)
        omega = tl.sum(d * tl.load(flat + c, c < width, 0.0)[None, :], 1)
        energy = tl.sum(f * omega[:, None], 0) + tl.load(allowed + n * rankings + p, known, float("-inf"))
        chance = tl.exp(energy - tl.max(energy, 0))
        whole = tl.sum(chance, 0)
        if sums:
            g = tl.load(gain + r, k < n, 0.0)
            got = tl.sum(tl.load(seats + k[:, None] * rankings + p[None, :], cells, 0.0) * g[:, None], 0)
            ideal = tl.sum(tl.load(seats + k * rankings, k < N, 0.0) * g, 0)  # the items as they lie
            got = tl.where(ideal > 0, got / ideal, 0.0)
        else:
            got = tl.load(worth + at * rankings + p, known, 0.0)
        average = tl.sum(chance * got, 0) / whole
        tl.store(lost + at, live * (1.0 - average))
        slope = tl.sum(f * (chance * (got - average) * (-live / whole))[None, :], 1)
        tl.store(partial + q * width + c, tl.sum(d * slope[:, None], 0), c < width)
    if q == 0:
        tl.store(turn + 1, now + 1)
