"""What PyTorch would do in many small launches, as single kernels: gradients of queries, a layer back, a step.

Sums have a fixed order: the same input gives the same bits. `turn` holds two counters: kernels that work out gradients
read the first and set the second, `step` reads the second and sets the first, so neither waits for itself.
"""

from __future__ import annotations

import os

import triton
import triton.language as tl

J = tl.constexpr(32)


def products() -> str:
    """How to multiply in single precision on matrix units: three products of halves, where that is known."""
    from triton.backends.nvidia.compiler import CUDAOptions

    known = getattr(CUDAOptions, "allowed_dot_input_precisions", ())
    return "bf16x3" if "bf16x3" in known and os.environ.get("TRITON_INTERPRET") != "1" else "tf32x3"


@triton.jit
def lambdas(
    scores, starts, query, base, gain, level, weight, limit, scale, discount, run, value, odds, slope, out, near, steep,
    T: tl.constexpr,
):  # fmt: skip
    """LambdaRank's gradient of one query of a batch, for metrics that are sums over places.

    Rows of query number q of the batch are starts[q] .. starts[q + 1] of `scores` and `out`, and base[query[q]] on in
    what is known of all rows; `run`, `value`, `odds` and `slope` are room to work in.
    """
    q = tl.program_id(0)
    at = tl.load(starts + q)
    n = (tl.load(starts + q + 1) - at).to(tl.int32)
    own = tl.load(query + q)
    row = tl.load(base + own)
    much = tl.load(scale + own)
    _query(
        scores + at, gain + row, level + row, weight + row, tl.load(limit + own), much, discount, run + at, value + at,
        odds + at, slope + at, out + at, near, steep, n, T,
    )  # fmt: skip


@triton.jit
def _query(
    scores,
    gain,
    level,
    weight,
    counted,
    much,
    discount,
    run,
    value,
    odds,
    slope,
    out,
    near,
    steep,
    n,
    T: tl.constexpr,
):
    """Tables of pairs are (other row, row): a thread then owns a row, and sums need no exchange."""
    top = tl.max(tl.full([T], float("-inf"), scores.dtype.element_ty), 0)
    low = tl.max(tl.full([T], float("-inf"), scores.dtype.element_ty), 0)
    for i0 in range(0, n, T):
        i = i0 + tl.arange(0, T)
        top = tl.maximum(top, tl.max(tl.load(scores + i, i < n, float("-inf")), 0))
        low = tl.maximum(low, -tl.min(tl.load(scores + i, i < n, float("inf")), 0))
    gap = near * tl.maximum(tl.abs(top), tl.abs(low))
    ties = 0
    for i0 in range(0, n, T):  # places, if no two scores are near each other
        i = i0 + tl.arange(0, T)
        s = tl.load(scores + i, i < n, 0.0)
        above, close = tl.zeros([T], tl.int32), tl.zeros([T], tl.int32)
        for j0 in range(0, n, J):
            j = j0 + tl.arange(0, J)
            t = tl.load(scores + j, j < n, float("-inf"))
            above += tl.sum((t[:, None] > s[None, :]).to(tl.int32), 0)
            close += tl.sum((tl.abs(t[:, None] - s[None, :]) <= gap).to(tl.int32), 0)
        ties += tl.sum(tl.where(i < n, close - 1, 0), 0)
        d = tl.load(discount + above, (i < n) & (above < counted), 0.0)
        tl.store(value + i, d, i < n)
        tl.store(odds + i, tl.exp(tl.maximum(s - top, -steep)), i < n)
    tl.debug_barrier()
    to = out
    if ties > 0:
        _tied_places(scores, level, discount, counted, run, slope, value, gap, n, T)
        to = slope
    _slopes(gain, level, weight, value, odds, to, much, n, T)
    if ties > 0:
        tl.debug_barrier()
        _share(run, level, slope, out, n, T)


@triton.jit
def _tied_places(scores, level, discount, counted, run, scratch, value, gap, n, T: tl.constexpr):
    """Worst grade first where scores are nearly equal; `run` numbers the runs of such scores."""
    for i0 in range(0, n, T):  # does a gap follow this score?
        i = i0 + tl.arange(0, T)
        s = tl.load(scores + i, i < n, 0.0)
        below = tl.full([T], float("-inf"), scores.dtype.element_ty)
        for j0 in range(0, n, J):
            j = j0 + tl.arange(0, J)
            t = tl.load(scores + j, j < n, float("-inf"))[:, None]
            below = tl.maximum(below, tl.max(tl.where(t < s[None, :], t, float("-inf")), 0))
        tl.store(scratch + i, tl.where(s - below > gap, 1.0, 0.0).to(scores.dtype.element_ty), i < n)
    tl.debug_barrier()
    for i0 in range(0, n, T):
        i = i0 + tl.arange(0, T)
        s = tl.load(scores + i, i < n, 0.0)
        gaps = tl.zeros([T], tl.int32)
        for j0 in range(0, n, J):
            j = j0 + tl.arange(0, J)
            t, ends = tl.load(scores + j, j < n, float("-inf")), tl.load(scratch + j, j < n, 0.0)
            gaps += tl.sum(((t[:, None] > s[None, :]) & (ends[:, None] > 0)).to(tl.int32), 0)
        tl.store(run + i, gaps, i < n)
    tl.debug_barrier()
    for i0 in range(0, n, T):
        i = i0 + tl.arange(0, T)
        mine, grade = tl.load(run + i, i < n, 0)[None, :], tl.load(level + i, i < n, 0)[None, :]
        place = tl.zeros([T], tl.int32)
        for j0 in range(0, n, J):
            j = j0 + tl.arange(0, J)
            theirs, other = tl.load(run + j, j < n, 1 << 30)[:, None], tl.load(level + j, j < n, 0)[:, None]
            earlier = (other == grade) & (j[:, None] < i[None, :])
            before = (theirs < mine) | ((theirs == mine) & ((other < grade) | earlier))
            place += tl.sum(before.to(tl.int32), 0)
        tl.store(value + i, tl.load(discount + place, (i < n) & (place < counted), 0.0), i < n)
    tl.debug_barrier()


@triton.jit
def _slopes(gain, level, weight, value, odds, to, much, n, T: tl.constexpr):
    for i0 in range(0, n, T):
        i = i0 + tl.arange(0, T)
        g, w = tl.load(gain + i, i < n, 0.0), tl.load(weight + i, i < n, 0.0)
        d, e, grade = (
            tl.load(value + i, i < n, 0.0),
            tl.load(odds + i, i < n, 1.0),
            tl.load(level + i, i < n, 0),
        )
        total = tl.zeros([T], to.dtype.element_ty)
        for j0 in range(0, n, J):
            j = j0 + tl.arange(0, J)
            h, v = tl.load(gain + j, j < n, 0.0), tl.load(weight + j, j < n, 0.0)  # weight 0 beyond the end
            f, x, other = (
                tl.load(value + j, j < n, 0.0),
                tl.load(odds + j, j < n, 1.0),
                tl.load(level + j, j < n, 0),
            )
            change = tl.abs((g[None, :] - h[:, None]) * (d[None, :] - f[:, None])) * v[:, None]
            pulled = grade[None, :] > other[:, None]
            pull = change * (tl.where(pulled, -x[:, None], e[None, :]) / (e[None, :] + x[:, None]))
            total += tl.sum(tl.where(grade[None, :] == other[:, None], 0.0, pull), 0)
        tl.store(to + i, total * w * much, i < n)


@triton.jit
def _share(run, level, slope, out, n, T: tl.constexpr):
    """Rows of one grade in one run of near-equal scores get their mean gradient."""
    for i0 in range(0, n, T):
        i = i0 + tl.arange(0, T)
        mine, grade = tl.load(run + i, i < n, -1)[None, :], tl.load(level + i, i < n, 0)[None, :]
        total, count = tl.zeros([T], slope.dtype.element_ty), tl.zeros([T], slope.dtype.element_ty)
        for j0 in range(0, n, J):
            j = j0 + tl.arange(0, J)
            theirs, other = tl.load(run + j, j < n, -2)[:, None], tl.load(level + j, j < n, 0)[:, None]
            alike = ((theirs == mine) & (other == grade)).to(slope.dtype.element_ty)
            total += tl.sum(alike * tl.load(slope + j, j < n, 0.0)[:, None], 0)
            count += tl.sum(alike, 0)
        tl.store(out + i, total / tl.maximum(count, 1.0), i < n)


@triton.jit
def learn(
    values, flat, turn, visits, count, base, gain, level, weight, limit, scale, discount, run, room, seen, partial,
    near, steep, batch, longest, width, units, size, T: tl.constexpr, K: tl.constexpr, H: tl.constexpr,
    G: tl.constexpr, how: tl.constexpr,
):  # fmt: skip
    """One query of a batch from its features to its part of the gradient, with one hidden layer or (H = 1) none.

    Everything but the features stays in the cache: `room` and `seen` are small and used again by every batch, and
    every query writes its own row of `partial`, so that sums have a fixed order.
    """
    q, now = tl.program_id(0), tl.load(turn)
    if q < tl.load(count + now):
        own = tl.load(visits + now * batch + q)
        row = tl.load(base + own)
        n = (tl.load(base + own + 1) - row).to(tl.int32)
        mine = q.to(tl.int64) * longest
        scores, value, odds = room + 5 * mine, room + 5 * mine + longest, room + 5 * mine + 2 * longest
        slope, out = room + 5 * mine + 3 * longest, room + 5 * mine + 4 * longest
        values += row * width
        seen += mine * units
        _forward(values, flat, scores, seen, n, width, units, T, K, H, how)
        tl.debug_barrier()
        _query(
            scores, gain + row, level + row, weight + row, tl.load(limit + own), tl.load(scale + own), discount,
            run + mine, value, odds, slope, out, near, steep, n, T,
        )  # fmt: skip
        tl.debug_barrier()
        _backward(values, flat, out, seen, partial + q.to(tl.int64) * size, n, width, units, T, K, H, G, how)
    if q == 0:
        tl.store(turn + 1, now + 1)


@triton.jit
def _forward(
    values,
    flat,
    scores,
    seen,
    n,
    width,
    units,
    T: tl.constexpr,
    K: tl.constexpr,
    H: tl.constexpr,
    how: tl.constexpr,
):
    h = tl.arange(0, H)
    for i0 in range(0, n, T):
        i = i0 + tl.arange(0, T)
        held = (i < n)[:, None]
        if H == 1:
            total = tl.zeros([T, K], tl.float32)
            for k0 in range(0, width, K):
                k = k0 + tl.arange(0, K)
                x = tl.load(values + i[:, None] * width + k[None, :], held & (k < width)[None, :], 0.0)
                total += x * tl.load(flat + k, k < width, 0.0)[None, :]
            tl.store(scores + i, tl.sum(total, 1), i < n)
        else:
            total = tl.zeros([T, H], tl.float32)
            for k0 in range(0, width, K):
                k = k0 + tl.arange(0, K)
                x = tl.load(values + i[:, None] * width + k[None, :], held & (k < width)[None, :], 0.0)
                w = tl.load(
                    flat + k[:, None] * units + h[None, :], (k < width)[:, None] & (h < units)[None, :], 0.0
                )
                total = tl.dot(x, w, total, input_precision=how)
            total += tl.load(flat + width * units + h, h < units, 0.0)[None, :]
            total = 2.0 * tl.sigmoid(2.0 * total) - 1.0  # tanh
            tl.store(seen + i[:, None] * units + h[None, :], total, held & (h < units)[None, :])
            output = tl.load(flat + (width + 1) * units + h, h < units, 0.0)
            tl.store(scores + i, tl.sum(total * output[None, :], 1), i < n)


@triton.jit
def _backward(
    values, flat, slope, seen, partial, n, width, units, T: tl.constexpr, K: tl.constexpr, H: tl.constexpr,
    G: tl.constexpr, how: tl.constexpr,
):  # fmt: skip
    h = tl.arange(0, H)
    for i0 in range(0, n, T):
        i = i0 + tl.arange(0, T)
        s = tl.load(slope + i, i < n, 0.0)
        if H == 1:
            for k0 in range(0, width, K):
                k = k0 + tl.arange(0, K)
                x = tl.load(
                    values + i[:, None] * width + k[None, :], (i < n)[:, None] & (k < width)[None, :], 0.0
                )
                part = tl.sum(x * s[:, None], 0)
                if i0 > 0:
                    part += tl.load(partial + k, k < width, 0.0)
                tl.store(partial + k, part, k < width)
        else:
            held = (i < n)[:, None] & (h < units)[None, :]
            unit = tl.load(seen + i[:, None] * units + h[None, :], held, 0.0)
            output = tl.load(flat + (width + 1) * units + h, h < units, 0.0)
            back = s[:, None] * output[None, :] * (1.0 - unit * unit)
            bias, last = tl.sum(back, 0), tl.sum(unit * s[:, None], 0)
            to = partial + width * units + h
            if i0 > 0:
                bias += tl.load(to, h < units, 0.0)
                last += tl.load(to + units, h < units, 0.0)
            tl.store(to, bias, h < units)
            tl.store(to + units, last, h < units)
            for k0 in range(0, width, G):
                k = k0 + tl.arange(0, G)
                x = tl.load(
                    values + i[:, None] * width + k[None, :], (i < n)[:, None] & (k < width)[None, :], 0.0
                )
                part = tl.trans(tl.dot(tl.trans(back), x, input_precision=how))
                at, here = k[:, None] * units + h[None, :], (k < width)[:, None] & (h < units)[None, :]
                if i0 > 0:
                    part += tl.load(partial + at, here, 0.0)
                tl.store(partial + at, part, here)


@triton.jit
def back(slope, output, seen, out, rows, width, T: tl.constexpr, K: tl.constexpr):
    """slope[i] * output[k] * (1 - seen[i, k] ** 2)."""
    i = tl.program_id(0) * T + tl.arange(0, T)
    for k0 in range(0, width, K):
        k = k0 + tl.arange(0, K)
        held = (i < rows)[:, None] & (k < width)[None, :]
        at = i.to(tl.int64)[:, None] * width + k[None, :]
        h = tl.load(seen + at, held, 0.0)
        s, o = tl.load(slope + i, i < rows, 0.0), tl.load(output + k, k < width, 0.0)
        tl.store(out + at, s[:, None] * o[None, :] * (1.0 - h * h), held)


@triton.jit
def step(
    gradient, count, turn, weights, mean, square, towards, steps, rate, l2, copy, size, single: tl.constexpr,
    adam: tl.constexpr, positive: tl.constexpr, T: tl.constexpr, R: tl.constexpr,
):  # fmt: skip
    """A step of the optimiser, and the new weights in the precision of the features.

    The gradient is that of a whole batch, or (not `single`) the sum of count[turn] rows; over count[turn].
    """
    i = tl.program_id(0) * T + tl.arange(0, T)
    held = i < size
    now = tl.load(turn + 1) - 1
    much = tl.load(count + now)
    if single:
        g = tl.load(gradient + i, held, 0.0)
    else:
        g = tl.zeros([T], gradient.dtype.element_ty)
        for r0 in range(0, much, R):
            r = r0 + tl.arange(0, R)
            at = r.to(tl.int64)[:, None] * size + i[None, :]
            g += tl.sum(tl.load(gradient + at, (r < much)[:, None] & held[None, :], 0.0), 0)
    w = tl.load(weights + i, held, 0.0)
    g = g.to(tl.float64) / much.to(tl.float64) + tl.load(l2) * (w - tl.load(towards + i, held, 0.0))
    if adam:
        done = tl.load(steps) + now + 1
        m, v = tl.load(mean + i, held, 0.0), tl.load(square + i, held, 0.0)
        m += 0.1 * (g - m)
        v += 0.001 * (g * g - v)
        tl.store(mean + i, m, held)
        tl.store(square + i, v, held)
        first = 1.0 - tl.exp(done * -0.10536051565782628)  # log 0.9
        second = 1.0 - tl.exp(done * -0.0010005003335835335)  # log 0.999
        w -= tl.load(rate) * (m / first) / (tl.sqrt(v / second) + 1e-8)
    else:
        w -= tl.load(rate) * g
    if positive:
        w = tl.maximum(w, 0.0)
    tl.store(weights + i, w, held)
    tl.store(copy + i, w.to(copy.dtype.element_ty), held)
    if tl.program_id(0) == 0:
        tl.store(turn, now + 1)
