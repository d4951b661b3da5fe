"""Expected metrics over all rankings of a few items by sums over sets of items, and whole training passes."""

from libc.math cimport exp
from libc.stdint cimport int32_t, int64_t

import numpy as np

from podium._core.optimizer cimport Optimizer, update_weights

cdef enum:
    MOST = 24  # items per query: there is a sum for each of their sets


cdef struct Metric:
    int kind
    const double* discount
    int64_t limit
    const double* fall  # weight of each place


cdef class SetTables:
    """Room for sums over all sets of up to `size` items."""

    cdef double[:, ::1] chance, tables, pairs
    cdef double[::1] omega, gain, slope, fall

    def __cinit__(self, int64_t size):
        if size > MOST:
            raise ValueError(f"rankings of {size} items: at most {MOST} are supported")
        self.chance, self.tables = np.empty((max(size, 1), max(size, 1))), np.empty((5, 1 << size))
        self.omega, self.gain, self.slope = (np.empty(max(size, 1)) for _ in range(3))
        self.pairs = np.zeros((max(size, 1), max(size, 1)))  # how much item i counts above item j


def train_crf_pass(
    const int64_t[::1] starts, const int64_t[::1] group, const double[:, ::1] values, int kind,
    const double[::1] gain, const double[::1] discount, const int64_t[::1] limit, const double[::1] weight,
    const int64_t[::1] visit, const int64_t[:, ::1] rows, const double[::1] fall, int64_t batch,
    double[::1] weights, double[::1] mean, double[::1] square, int64_t[::1] steps, bint adam, double rate,
    double l2, bint positive, const double[::1] towards, const double[:, :, ::1] pairs,
):
    """Queries in the order of `visit`, each through its rows (-1 is padding); a step after every `batch`.

    `pairs` is (visits, items, items) if the kind is 4, and not read otherwise.
    """
    cdef int64_t at, q, n, r, e, g, k, c, size = rows.shape[1], width = values.shape[1]
    cdef SetTables room = SetTables(size)
    cdef double[::1] gradient = np.zeros(weights.shape[0])
    cdef double part, value, lost = 0.0, total = 0.0
    cdef Metric metric
    cdef Optimizer state
    if visit.shape[0] == 0 or weights.shape[0] == 0:
        return 0.0
    metric = Metric(kind, &discount[0], 0, &fall[0])
    state = Optimizer(
        &weights[0], &mean[0], &square[0], &steps[0], weights.shape[0], adam, rate, l2, positive, &towards[0]
    )
    with nogil:
        for at in range(visit.shape[0]):
            q = visit[at]
            n = 0
            while n < size and rows[at, n] >= 0:
                r = rows[at, n]
                room.omega[n] = 0.0
                room.gain[n] = gain[r]
                for e in range(starts[r], starts[r + 1]):
                    g = width * group[e]
                    part = 0.0
                    for c in range(width):
                        part += values[e, c] * weights[g + c]
                    room.omega[n] += part
                n += 1
            if kind == 4:
                for k in range(n):
                    for c in range(n):
                        room.pairs[k, c] = pairs[at, k, c]
            metric.limit = min(limit[q], n)
            value = expect_metric(n, &metric, room)
            total += weight[q]
            lost += weight[q] * (1.0 - value)
            for k in range(n):
                for e in range(starts[rows[at, k]], starts[rows[at, k] + 1]):
                    for c in range(width):
                        gradient[width * group[e] + c] -= weight[q] * room.slope[k] * values[e, c]
            if (at + 1) % batch == 0 or at + 1 == visit.shape[0]:
                update_weights(&state, &gradient[0], at % batch + 1)
    return lost / max(total, 1e-300)


def compute_expected_metric(
    const double[::1] omega, const double[::1] gain, int kind, const double[::1] discount, int64_t limit,
    const double[::1] fall, const double[:, ::1] pairs=None,
):
    """The expected metric of one query over its ideal value, and its derivative by omega; `pairs` for kind 4."""
    cdef int64_t i, j, n = omega.shape[0]
    cdef SetTables room = SetTables(n)
    cdef Metric metric = Metric(kind, &discount[0], limit, &fall[0])
    if kind == 4 and (pairs is None or pairs.shape[0] < n or pairs.shape[1] < n):
        raise ValueError("there are no pairs of these items")
    for i in range(n):
        room.omega[i] = omega[i]
        room.gain[i] = gain[i]
        for j in range(n if kind == 4 else 0):
            room.pairs[i, j] = pairs[i, j]
    value = expect_metric(n, &metric, room)
    return value, np.asarray(room.slope)[:n]


cdef double expect_metric(int64_t n, const Metric* metric, SetTables room) noexcept nogil:
    """The expected metric over its ideal value, and in room.slope its derivative by room.omega.

    Set by set, smallest first: `mass` is the weight of all ways to fill the first places with the set,
    `worth` that weight times the metric so far. The backward pass gives the derivatives of worth / mass of
    the full set.
    """
    cdef double* mass = &room.tables[0, 0]
    cdef double* worth = &room.tables[1, 0]
    cdef double* back_mass = &room.tables[2, 0]
    cdef double* back_worth = &room.tables[3, 0]
    cdef double* state = &room.tables[4, 0]
    cdef int64_t s, i, p, before, after, full = (<int64_t>1 << n) - 1
    cdef double m, v, adds, x, both, value, ideal
    for i in range(n):
        room.slope[i] = 0.0
    ideal = compute_states(n, metric, room, state)
    if ideal <= 0.0:
        return 0.0
    compute_chances(n, metric.fall, room)
    mass[0] = 1.0
    worth[0] = 0.0
    for s in range(1, full + 1):
        m = v = 0.0
        p = count_members(s) - 1
        for i in range(n):
            if s >> i & 1:
                before = s ^ (<int64_t>1 << i)
                adds = compute_added_gain(metric, room, i, before, state[before], p)
                m += room.chance[i, p] * mass[before]
                v += room.chance[i, p] * (worth[before] + adds * mass[before])
        mass[s] = m
        worth[s] = v
    value = worth[full] / mass[full]
    # reverse-mode differentiation: one backward sweep gives all derivatives
    back_worth[full] = 1.0 / mass[full]
    back_mass[full] = -value / mass[full]
    for s in range(full - 1, -1, -1):
        m = v = 0.0
        p = count_members(s)
        for i in range(n):
            if not s >> i & 1:
                after = s | (<int64_t>1 << i)
                adds = compute_added_gain(metric, room, i, s, state[s], p)
                x = room.chance[i, p]
                both = back_mass[after] + adds * back_worth[after]
                m += x * both
                v += x * back_worth[after]
                room.slope[i] += metric.fall[p] * x * (mass[s] * both + worth[s] * back_worth[after]) / ideal
        back_mass[s] = m
        back_worth[s] = v
    return value / ideal


cdef inline int64_t count_members(int64_t s) noexcept nogil:
    """The number of items in a set."""
    cdef int64_t members = 0
    while s:
        s &= s - 1
        members += 1
    return members


cdef inline double compute_added_gain(
    const Metric* metric, SetTables room, int64_t i, int64_t above, double state, int64_t p
) noexcept nogil:
    """The gain of item i at place p below a set of items."""
    cdef double gain = room.gain[i], total = 0.0
    cdef int64_t j = 0
    if metric.kind == 4:
        while above:
            if above & 1:
                total += room.pairs[j, i]
            above >>= 1
            j += 1
        return total
    if p >= metric.limit:
        return 0.0
    if metric.kind == 0:
        return gain * metric.discount[p]
    if metric.kind == 1:
        return gain * (state + gain) / metric.discount[p]
    return metric.discount[p] * gain * state


cdef double compute_states(int64_t n, const Metric* metric, SetTables room, double* state) noexcept nogil:
    """The state of each set for the items below it: sum of gains, or probability of reading on; the ideal.

    The ideal of pairs is the weight of all of them, which contradicting pairs cannot reach.
    """
    cdef int64_t s, i, p
    cdef double rest, ideal = 0.0
    state[0] = 0.0 if metric.kind == 1 else 1.0
    for s in range(1, <int64_t>1 << n):
        i = 0
        while not s >> i & 1:
            i += 1
        rest = state[s & (s - 1)]
        state[s] = rest + room.gain[i] if metric.kind == 1 else rest * (1.0 - room.gain[i])
    if metric.kind == 4:
        for i in range(n):
            for p in range(n):
                ideal += room.pairs[i, p]
        return ideal
    for p in range(n):
        ideal += compute_added_gain(metric, room, p, (<int64_t>1 << p) - 1, state[(<int64_t>1 << p) - 1], p)
    return ideal


cdef void compute_chances(int64_t n, const double* fall, SetTables room) noexcept nogil:
    """exp(omega[i] * fall[p]), divided by a factor for each item and each place.

    Such factors change all rankings alike. They are chosen so that the best ranking weighs 1 and no entry
    exceeds 1: whatever omega is, nothing overflows and the sum is at least 1.
    """
    cdef int64_t[MOST] order
    cdef double[MOST] shift
    cdef int64_t k, m, i, p
    cdef double own
    for k in range(n):
        m = k
        while m > 0 and room.omega[order[m - 1]] < room.omega[k]:
            order[m] = order[m - 1]
            m -= 1
        order[m] = k
    shift[0] = 0.0
    for p in range(n - 1):
        shift[p + 1] = shift[p] - 0.5 * (room.omega[order[p]] + room.omega[order[p + 1]]) * (fall[p] - fall[p + 1])
    for k in range(n):
        i = order[k]
        own = room.omega[i] * fall[k] - shift[k]
        for p in range(n):
            room.chance[i, p] = exp(room.omega[i] * fall[p] - shift[p] - own)


def sample_subsets(
    const int64_t[::1] starts, const int32_t[::1] level, const int64_t[::1] visit, const double[:, ::1] uniform,
    int64_t[:, ::1] out,
):
    """Rows for every visit: one of each level, then random ones; in their original order."""
    cdef int64_t at, a, n, i, k, other, runs, size = out.shape[1], longest = 1
    for at in range(visit.shape[0]):
        longest = max(longest, starts[visit[at] + 1] - starts[visit[at]])
    cdef int64_t[::1] rest = np.empty(longest, np.int64), begin = np.empty(longest + 1, np.int64)
    cdef int64_t[::1] end = np.empty(longest, np.int64)
    with nogil:
        for at in range(visit.shape[0]):
            a = starts[visit[at]]
            n = starts[visit[at] + 1] - a
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
                    other = k + <int64_t>(uniform[at, size + k] * (runs - k))
                    begin[k], begin[other] = begin[other], begin[k]
                    end[k], end[other] = end[other], end[k]
                runs = size
            fill_subset(a, n, runs, begin, end, rest, &uniform[at, 0], &out[at, 0], size)


cdef void fill_subset(
    int64_t a, int64_t n, int64_t runs, const int64_t[::1] begin, const int64_t[::1] end, int64_t[::1] rest,
    const double* uniform, int64_t* out, int64_t size,
) noexcept nogil:
    """A random row of each run, then others at random, sorted."""
    cdef int64_t i, k, m, x, other, left = 0
    for i in range(n):
        rest[i] = 0
    for k in range(runs):
        out[k] = begin[k] + <int64_t>(uniform[k] * (end[k] - begin[k]))
        rest[out[k]] = 1
    for i in range(n):
        if rest[i] == 0:
            rest[left] = i
            left += 1
    for k in range(runs, size):
        other = k - runs + <int64_t>(uniform[k] * (left - (k - runs)))
        rest[k - runs], rest[other] = rest[other], rest[k - runs]
        out[k] = rest[k - runs]
    for k in range(size):
        x = out[k]
        m = k
        while m > 0 and out[m - 1] > x + a:
            out[m] = out[m - 1]
            m -= 1
        out[m] = x + a
