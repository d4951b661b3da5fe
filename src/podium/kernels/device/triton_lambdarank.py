"""LambdaRank kernels: scores of queries, gradients of scores, gradients of weights, and a step.

Sums have a fixed order: the same input gives the same bits. `turn` holds two counters: gradient kernels
read the first and set the second, `step` reads the second and sets the first, so neither waits for itself.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def lambdas(
    scores, starts, query, base, gain, level, weight, limit, scale, discount, run, room, out, near, steep, longest,
    T: tl.constexpr, J: tl.constexpr,
):  # fmt: skip
    """The LambdaRank gradient of one query of a batch, for metrics that are sums over places.

    Rows of query number q of the batch are starts[q] .. starts[q + 1] of `scores` and `out`, and
    base[query[q]] on in the arrays over all rows; `run` (longest) and `room` (5, longest) are scratch memory
    per query.
    """
    q = tl.program_id(0)
    at = tl.load(starts + q)
    n = (tl.load(starts + q + 1) - at).to(tl.int32)
    own, mine = tl.load(query + q), q.to(tl.int64) * longest
    row, counted, much = tl.load(base + own), tl.load(limit + own), tl.load(scale + own)
    _compute_query_lambdas(
        scores + at, gain + row, level + row, weight + row, counted, much, discount, run + mine, room + 5 * mine,
        out + at, near, steep, n, longest, T, J,
    )  # fmt: skip


@triton.jit
def pairs(
    scores, turn, visits, count, base, gain, level, weight, limit, scale, discount, run, room, out, near, steep, batch,
    longest, T: tl.constexpr, J: tl.constexpr,
):  # fmt: skip
    """The same for query number q of the current batch; its rows of `scores` and `out` are q * longest on."""
    q, now = tl.program_id(0), tl.load(turn)
    if q < tl.load(count + now):
        own, mine = tl.load(visits + now * batch + q), q.to(tl.int64) * longest
        row, counted, much = tl.load(base + own), tl.load(limit + own), tl.load(scale + own)
        n = (tl.load(base + own + 1) - row).to(tl.int32)
        _compute_query_lambdas(
            scores + mine, gain + row, level + row, weight + row, counted, much, discount, run + mine, room + 5 * mine,
            out + mine, near, steep, n, longest, T, J,
        )  # fmt: skip


@triton.jit
def _compute_query_lambdas(
    scores, gain, level, weight, counted, much, discount, run, room, out, near, steep, n, longest, T: tl.constexpr,
    J: tl.constexpr,
):  # fmt: skip
    """Tables of pairs are (other row, row): a thread then owns a row, and sums need no exchange.

    The values of other rows are laid out in `room`, where several can be read at once: scores, discounts,
    odds, gains and weights, up to the next multiple of J.
    """
    real = scores.dtype.element_ty
    top, low = tl.max(tl.full([T], float("-inf"), real), 0), tl.min(tl.full([T], float("inf"), real), 0)
    for i0 in range(0, n, T):
        i = i0 + tl.arange(0, T)
        s = tl.load(scores + i, i < n, float("-inf"))
        tl.store(room + i, s, i < longest)
        top, low = tl.maximum(top, tl.max(s, 0)), tl.minimum(low, tl.min(tl.where(i < n, s, float("inf")), 0))
    tl.debug_barrier()
    gap = near * tl.maximum(tl.abs(top), tl.abs(low))
    ties = 0
    for i0 in range(0, n, T):  # places, if no two scores are near each other
        i = i0 + tl.arange(0, T)
        s = tl.load(scores + i, i < n, top)
        above, close = tl.zeros([T], tl.int32), tl.zeros([T], tl.int32)
        for j0 in range(0, n, J):
            t = tl.load(room + j0 + tl.arange(0, J))[:, None]
            above += tl.sum((t > s[None, :]).to(tl.int32), 0)
            close += tl.sum((t >= (s - gap)[None, :]).to(tl.int32), 0)
        ties += tl.sum(tl.where(i < n, close - above - 1, 0), 0)
        d = tl.load(discount + above, (i < n) & (above < counted), 0.0)
        tl.store(room + longest + i, d, i < longest)
        # sigmoid(s_i - s_j) = e_i / (e_i + e_j): one exponential per row instead of one per pair
        tl.store(room + 2 * longest + i, tl.exp(tl.maximum(s - top, -steep)), i < longest)
        tl.store(room + 3 * longest + i, tl.load(gain + i, i < n, 0.0), i < longest)
        tl.store(room + 4 * longest + i, tl.load(weight + i, i < n, 0.0), i < longest)
    tl.debug_barrier()
    to = out
    if ties > 0:
        to = room
        _place_tied_rows(scores, level, discount, counted, run, to, room + longest, gap, n, T, J)
    _sum_pair_lambdas(room + longest, to, much, n, longest, T, J)
    if ties > 0:
        tl.debug_barrier()
        _average_ties(run, level, to, out, n, T, J)


@triton.jit
def _place_tied_rows(
    scores, level, discount, counted, run, scratch, value, gap, n, T: tl.constexpr, J: tl.constexpr
):
    """Worst grade first where scores are nearly equal; `run` numbers the runs of such scores."""
    for i0 in range(0, n, T):  # whether a gap follows this score
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
def _sum_pair_lambdas(room, to, much, n, longest, T: tl.constexpr, J: tl.constexpr):
    """Rows are sorted best grade first and rows of one grade gain alike: the earlier of two is better."""
    for i0 in range(0, n, T):
        i = i0 + tl.arange(0, T)
        d, e = tl.load(room + i, i < n, 0.0), tl.load(room + longest + i, i < n, 1.0)
        g, w = tl.load(room + 2 * longest + i, i < n, 0.0), tl.load(room + 3 * longest + i, i < n, 0.0)
        total = tl.zeros([T], to.dtype.element_ty)
        for j0 in range(0, n, J):
            j = j0 + tl.arange(0, J)
            f, x = tl.load(room + j)[:, None], tl.load(room + longest + j)[:, None]
            h, v = tl.load(room + 2 * longest + j)[:, None], tl.load(room + 3 * longest + j)[:, None]
            change = tl.abs((g[None, :] - h) * (d[None, :] - f)) * v
            total += tl.sum(
                change * (tl.where(i[None, :] < j[:, None], -x, e[None, :]) / (e[None, :] + x)), 0
            )
        tl.store(to + i, total * w * much, i < n)


@triton.jit
def _average_ties(run, level, slope, out, n, T: tl.constexpr, J: tl.constexpr):
    """Average the gradient over rows of one grade in one run of near-equal scores."""
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
def forward(
    high, low, flat, upper, lower, turn, visits, count, base, scores, seen, batch, longest, width: tl.constexpr,
    wide: tl.constexpr, units: tl.constexpr, T: tl.constexpr, K: tl.constexpr, H: tl.constexpr,
):  # fmt: skip
    """Scores of the queries of a batch, T rows per program, and the output of their hidden units.

    With hidden units, features and weights (`upper`, `lower`) are sums of two halves, which matrix units
    multiply exactly; rows are `wide`, and the `width` features are followed by a one, for the bias, and
    zeros. Without (H = 1) they are stored whole in `high` and `flat`.
    """
    q, now = tl.program_id(0), tl.load(turn)
    if q < tl.load(count + now):
        own = tl.load(visits + now * batch + q)
        row, mine = tl.load(base + own), q.to(tl.int64) * longest
        n = (tl.load(base + own + 1) - row).to(tl.int32)
        i = tl.program_id(1) * T + tl.arange(0, T)
        if tl.program_id(1) * T < n:
            high += row * wide
            low += row * wide
            if H == 1:
                total = tl.zeros([T, K], tl.float32)
                for k0 in range(0, width, K):
                    k = k0 + tl.arange(0, K)
                    x = tl.load(
                        high + i[:, None] * wide + k[None, :], (i < n)[:, None] & (k < width)[None, :], 0.0
                    )
                    total += x * tl.load(flat + k, k < width, 0.0)[None, :]
                tl.store(scores + mine + i, tl.sum(total, 1), i < n)
            else:
                h, total = tl.arange(0, H), tl.zeros([T, H], tl.float32)
                for k0 in range(0, wide, K):
                    k = k0 + tl.arange(0, K)
                    at, here = i[:, None] * wide + k[None, :], (i < n)[:, None] & (k < wide)[None, :]
                    x, y = tl.load(high + at, here, 0.0), tl.load(low + at, here, 0.0)
                    of, known = k[:, None] * units + h[None, :], (k <= width)[:, None] & (h < units)[None, :]
                    v, w = tl.load(upper + of, known, 0.0), tl.load(lower + of, known, 0.0)
                    # smallest products first; that of the two lower halves is below rounding
                    total = tl.dot(y, v, total)
                    total = tl.dot(x, w, total)
                    total = tl.dot(x, v, total)
                total = 2.0 * tl.sigmoid(2.0 * total) - 1.0  # tanh
                tl.store(seen + (mine + i)[:, None] * H + h[None, :], total, (i < n)[:, None])
                output = tl.load(flat + (width + 1) * units + h, h < units, 0.0)
                tl.store(scores + mine + i, tl.sum(total * output[None, :], 1), i < n)


@triton.jit
def backward(
    high, low, flat, turn, visits, count, base, slope, seen, partial, batch, longest, parts, size, width: tl.constexpr,
    wide: tl.constexpr, units: tl.constexpr, T: tl.constexpr, G: tl.constexpr, H: tl.constexpr,
):  # fmt: skip
    """From the gradients of scores to those of weights: a program sums G columns over every `parts`th query.

    With hidden units there is one more program, for the output weights.
    """
    p, now, k0 = tl.program_id(1), tl.load(turn), tl.program_id(0) * G
    much, partial = tl.load(count + now), partial + p.to(tl.int64) * size
    visits += now * batch
    if H == 1:
        _sum_products(
            high, slope, visits, much, base, partial, longest, p, parts, k0, width, wide, False, T, G
        )
    elif k0 > width:
        to = partial + (width + 1) * units
        _sum_products(seen, slope, visits, much, base, to, longest, p, parts, 0, units, H, True, T, H)
    else:
        k, h = k0 + tl.arange(0, G), tl.arange(0, H)
        output, total = tl.load(flat + (width + 1) * units + h, h < units, 0.0), tl.zeros([H, G], tl.float32)
        for r in range(p, much, parts):
            q = much - 1 - r  # what `forward` read last may still be in the cache
            own, mine = tl.load(visits + q), q * longest
            row = tl.load(base + own)
            n = (tl.load(base + own + 1) - row).to(tl.int32)
            for i0 in range(0, n, T):
                i = i0 + tl.arange(0, T)
                at, here = (row + i)[:, None] * wide + k[None, :], (i < n)[:, None] & (k < wide)[None, :]
                x, y = tl.load(high + at, here, 0.0), tl.load(low + at, here, 0.0)
                unit = tl.load(seen + (mine + i)[:, None] * H + h[None, :], (i < n)[:, None], 0.0)
                s = tl.load(slope + mine + i, i < n, 0.0)
                back = s[:, None] * output[None, :] * (1.0 - unit * unit)
                b = back.to(x.dtype)
                # as in `forward`, smallest products first
                total = tl.dot(tl.trans(b), y, total)
                total = tl.dot(tl.trans((back - b.to(tl.float32)).to(x.dtype)), x, total)
                total = tl.dot(tl.trans(b), x, total)
        known = (k <= width)[:, None] & (h < units)[None, :]  # the bias follows the features
        tl.store(partial + k[:, None] * units + h[None, :], tl.trans(total), known)
    if (p == 0) & (k0 == 0):
        tl.store(turn + 1, now + 1)


@triton.jit
def _sum_products(
    values, slope, visits, much, base, to, longest, p, parts, k0, width: tl.constexpr, wide: tl.constexpr,
    padded: tl.constexpr, T: tl.constexpr, G: tl.constexpr,
):  # fmt: skip
    """Sums of slope * value over rows, which are stored query by query or (padded) as in `slope`."""
    k, total = k0 + tl.arange(0, G), tl.zeros([T, G], tl.float32)
    for r in range(p, much, parts):
        q = much - 1 - r
        own, mine = tl.load(visits + q), q * longest
        row = tl.load(base + own)
        n = (tl.load(base + own + 1) - row).to(tl.int32)
        first = mine if padded else row
        for i0 in range(0, n, T):
            i = i0 + tl.arange(0, T)
            here = (i < n)[:, None] & (k < width)[None, :]
            x = tl.load(values + (first + i)[:, None] * wide + k[None, :], here, 0.0)
            total += x * tl.load(slope + mine + i, i < n, 0.0)[:, None]
    tl.store(to + k, tl.sum(total, 0), k < width)


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
    gradient, count, turn, weights, mean, square, towards, steps, rate, l2, copy, upper, lower, size, parts,
    single: tl.constexpr, adam: tl.constexpr, positive: tl.constexpr, split: tl.constexpr, T: tl.constexpr,
    R: tl.constexpr,
):  # fmt: skip
    """A step of the optimizer; new weights are also written in the features' precision, or (`split`) in halves.

    The gradient is that of a whole batch, or (not `single`) the sum of `parts` rows, or of count[turn] if
    that is less; divided by count[turn].
    """
    i = tl.program_id(0) * T + tl.arange(0, T)
    held = i < size
    now = tl.load(turn + 1) - 1
    much = tl.load(count + now)
    if single:
        g = tl.load(gradient + i, held, 0.0)
    else:
        g = tl.zeros([T], gradient.dtype.element_ty)
        rows = tl.minimum(much, parts)
        for r0 in range(0, rows, R):
            r = r0 + tl.arange(0, R)
            at = r.to(tl.int64)[:, None] * size + i[None, :]
            g += tl.sum(tl.load(gradient + at, (r < rows)[:, None] & held[None, :], 0.0), 0)
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
    copied = w.to(copy.dtype.element_ty)
    tl.store(copy + i, copied, held)
    if split:
        half = copied.to(upper.dtype.element_ty)
        tl.store(upper + i, half, held)
        tl.store(lower + i, (copied - half.to(copied.dtype)).to(half.dtype), held)
    if tl.program_id(0) == 0:
        tl.store(turn, now + 1)
