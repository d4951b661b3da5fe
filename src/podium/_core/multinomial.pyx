"""Scores of the multinomial preference model by Newton-CG steps, in time linear in the groups."""

from libc.math cimport exp, fabs, log
from libc.stdint cimport int64_t, uint8_t

import numpy as np

from podium._core.conjugate_gradient cimport (
    advance_solution,
    center_vector,
    dot_in_order,
    is_step_accepted,
    limit_step,
    start_direction,
)


cdef struct Model:
    # the groups of one query: net strengths (groups x items), totals and adherences
    const double* net
    const double* total
    const double* adherence
    double prior
    int64_t groups
    int64_t size


cdef class Room:
    """Room for the largest query: exp(t s) of every group and item, three sums of every group, vectors."""

    cdef double[::1] up, rise, fall, z, pull, trial, g, diagonal, move, r, p, image

    def __cinit__(self, int64_t cells, int64_t groups, int64_t size):
        self.up = np.empty(cells)
        self.rise, self.fall, self.z = (np.empty(groups) for _ in range(3))
        self.pull, self.trial, self.g, self.diagonal = (np.empty(size) for _ in range(4))
        self.move, self.r, self.p, self.image = (np.empty(size) for _ in range(4))


def fit_scores(
    int64_t first, int64_t last, groups, const double[::1] adherence, double prior, double tolerance,
    int64_t most_steps, const uint8_t[::1] active, double[::1] score, double[::1] gradient,
    int64_t[::1] steps, double[::1] value,
):
    """Fit the active queries of a range."""
    cdef const int64_t[::1] slots = groups.slots, starts = groups.starts, offsets = groups.offsets
    cdef const double[::1] net = groups.net, total = groups.total
    cdef int64_t q, a, b, k, cells = 0, most = 0, size = 0
    cdef double votes
    cdef Model model
    for q in range(first, last):
        a = starts[q]
        b = starts[q + 1]
        cells = max(cells, offsets[b] - offsets[a])
        most = max(most, b - a)
        size = max(size, slots[q + 1] - slots[q])
    cdef Room room = Room(cells, most, size)
    with nogil:
        for q in range(first, last):
            size = slots[q + 1] - slots[q]
            a = starts[q]
            b = starts[q + 1]
            votes = 0.0
            for k in range(a, b):
                votes += total[k]
            if not active[q] or size < 2 or votes == 0:
                continue
            model = Model(&net[offsets[a]], &total[a], &adherence[a], prior, b - a, size)
            maximize_posterior(
                &model, tolerance, most_steps, &score[slots[q]], room, &steps[q], &gradient[q], &value[q]
            )


def differentiate(
    const double[:, ::1] net, const double[::1] total, const double[::1] adherence, double prior,
    const double[::1] s, const double[::1] x,
):
    """Log-posterior of one query at s, its gradient, the diagonal of its negated Hessian, and that times x."""
    cdef Model model = Model(&net[0, 0], &total[0], &adherence[0], prior, net.shape[0], net.shape[1])
    cdef Room room = Room(net.size, net.shape[0], net.shape[1])
    cdef double[::1] out = np.empty(len(s))
    np.asarray(room.pull)[:] = np.asarray(adherence) @ np.asarray(net)
    value = compute_log_posterior(&model, &s[0], room)
    compute_derivatives(&model, &s[0], room)
    multiply_hessian(&model, &x[0], &out[0], room)
    return value, np.asarray(room.g), np.asarray(room.diagonal), np.asarray(out)


cdef void maximize_posterior(
    const Model* m, double tolerance, int64_t most_steps, double* s, Room room, int64_t* steps,
    double* gradient, double* value,
) noexcept nogil:
    """Newton steps from s until the gradient is small relative to the largest net strength."""
    cdef int64_t i, k, step, size = m.size
    cdef double most, left = 0.0, share, promise, after, now, scale = m.prior
    for i in range(size):
        most = 0.0
        room.pull[i] = 0.0
        for k in range(m.groups):
            room.pull[i] += m.adherence[k] * m.net[k * size + i]
            most += fabs(m.net[k * size + i])
        scale = max(scale, most)
    now = compute_log_posterior(m, s, room)
    steps[0] = most_steps + 1
    for step in range(most_steps + 1):
        left = compute_derivatives(m, s, room) / scale
        if left <= tolerance:
            steps[0] = step
            break
        if step == most_steps:
            break
        # no system is solved more accurately than 1e-5: the next step corrects the rest
        solve_newton_system(m, room, min(0.1, max(left, 1e-5)))
        center_vector(&room.move[0], size)
        share = limit_step(&room.move[0], size)
        promise = dot_in_order(&room.g[0], &room.move[0], size)
        while True:
            for i in range(size):
                room.trial[i] = s[i] + share * room.move[i]
            after = compute_log_posterior(m, &room.trial[0], room)
            if is_step_accepted(now, after, share * promise):
                break
            share /= 2
        for i in range(size):
            s[i] = room.trial[i]
        center_vector(s, size)
        now = compute_log_posterior(m, s, room)
    gradient[0] = left
    value[0] = now


cdef double compute_log_posterior(const Model* m, const double* s, Room room) noexcept nogil:
    """The log-posterior; leaves exp(t s), and sum, sum of inverses and Z of every group."""
    cdef int64_t i, k
    cdef double rise, fall, u
    cdef double value = dot_in_order(&room.pull[0], s, m.size) - m.prior / 2 * dot_in_order(s, s, m.size)
    for k in range(m.groups):
        rise = fall = 0.0
        for i in range(m.size):
            u = exp(m.adherence[k] * s[i])
            room.up[k * m.size + i] = u
            rise += u
            fall += 1 / u
        room.rise[k] = rise
        room.fall[k] = fall
        room.z[k] = rise * fall - m.size
        if m.total[k] > 0:
            value -= m.total[k] * log(room.z[k])
    return value


cdef double compute_derivatives(const Model* m, const double* s, Room room) noexcept nogil:
    """The gradient and the diagonal of the negated Hessian; returns the largest component of the gradient."""
    cdef int64_t i, k
    cdef double t, u, z, win, lose, most = 0.0
    for i in range(m.size):
        room.g[i] = room.pull[i] - m.prior * s[i]
        room.diagonal[i] = m.prior
    for k in range(m.groups):
        t = m.adherence[k]
        z = room.z[k]
        for i in range(m.size):
            u = room.up[k * m.size + i]
            win = u * room.fall[k] / z
            lose = room.rise[k] / u / z
            room.g[i] -= m.total[k] * t * (win - lose)
            room.diagonal[i] += m.total[k] * t * t * (win + lose - 2 / z - (win - lose) * (win - lose))
    for i in range(m.size):
        most = max(most, fabs(room.g[i]))
    return most


cdef void multiply_hessian(const Model* m, const double* x, double* out, Room room) noexcept nogil:
    """The negated Hessian times x."""
    cdef int64_t i, k
    cdef double rise, fall, high, low, mean, weight, u, v
    for i in range(m.size):
        out[i] = m.prior * x[i]
    for k in range(m.groups):
        rise = room.rise[k]
        fall = room.fall[k]
        high = low = 0.0
        for i in range(m.size):
            high += room.up[k * m.size + i] * x[i]
            low += x[i] / room.up[k * m.size + i]
        mean = (high * fall - low * rise) / room.z[k]
        weight = m.total[k] * m.adherence[k] * m.adherence[k] / room.z[k]
        for i in range(m.size):
            u = room.up[k * m.size + i]
            v = 1 / u
            out[i] += weight * (
                (u * fall + v * rise) * x[i] - u * low - v * high - (u * fall - v * rise) * mean
            )


cdef void solve_newton_system(const Model* m, Room room, double share) noexcept nogil:
    """Conjugate gradients for the step in room.move, until the residual is that fraction of the gradient."""
    cdef int64_t i, turn, n = m.size
    cdef double rho, limit
    for i in range(n):
        room.move[i] = 0.0
        room.r[i] = room.g[i]
    center_vector(&room.r[0], n)  # zero except for rounding, which would persist
    rho = start_direction(&room.diagonal[0], &room.r[0], &room.p[0], n)
    limit = share * share * rho
    for turn in range(2 * n + 20):
        multiply_hessian(m, &room.p[0], &room.image[0], room)
        rho = advance_solution(&room.diagonal[0], &room.move[0], &room.r[0], &room.p[0], &room.image[0], rho, n)
        if rho <= limit:
            break
