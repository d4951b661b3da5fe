"""Plackett-Luce by Newton-CG steps; a Hessian product takes two walks along the lists."""

from __future__ import annotations

import numpy as np
from numba import njit

from podium.kernels.compiled.conjugate_gradient import (
    FORCING,
    advance_solution,
    center_vector,
    dot,
    is_step_accepted,
    limit_step,
    start_direction,
)
from podium.kernels.compiled.markov_chains import LAST, build_ballots

__all__ = ["fit_plackett_luce"]


@njit(cache=True, nogil=True)
def fit_plackett_luce(first, last, votes, prior, tolerance, most_steps, score, gradient, steps, value):
    """Fit a range of queries."""
    for q in range(first, last):
        size = votes.slots[q + 1] - votes.slots[q]
        if size < 2:
            continue
        lists = add_prior_list(build_ballots(votes, q), size, prior)
        blocks, tops, count, wins = build_stages(lists, size)
        if wins.max() == 0.0:
            continue
        s = score[votes.slots[q] : votes.slots[q + 1]]
        maximize_posterior(
            q, lists[1], blocks, tops, count, wins, tolerance, most_steps, s, gradient, steps, value
        )


@njit(cache=True, nogil=True)
def add_prior_list(lists, size, prior):
    """The lists of a query and, with a prior, one that ties all items: each is chosen `prior` times."""
    starts, item, rank, weight = lists
    n = len(weight)
    more = size if prior > 0 else 0
    all_item, all_rank = np.empty(len(item) + more, np.int64), np.ones(len(item) + more, np.int64)
    all_starts, all_weight = np.empty(n + 2, np.int64), np.empty(n + 1)
    all_item[: len(item)], all_rank[: len(item)] = item, rank
    all_starts[: n + 1], all_weight[:n] = starts, weight
    for i in range(more):
        all_item[len(item) + i] = i
    all_starts[n + 1] = len(all_item)
    all_weight[n] = prior * size / (size - 1)
    return all_starts, all_item, all_rank, all_weight


@njit(cache=True, nogil=True)
def build_stages(lists, size):
    """The blocks of every list, the first row of each, its number of choices, and the wins of each item."""
    starts, item, rank, weight = lists
    blocks, tops = np.zeros(len(starts), np.int64), np.empty(len(item) + 1, np.int64)
    count, wins = np.empty(len(item)), np.zeros(size)
    n = 0
    for lst in range(len(weight)):
        row, stop = starts[lst], starts[lst + 1]
        while row < stop:
            end = row + 1
            while end < stop and rank[end] == rank[row]:
                end += 1
            tied = end - row
            choices = tied if end < stop else tied - 1
            count[n] = 0.0 if rank[row] == LAST else weight[lst] * choices
            for r in range(row, end):
                wins[item[r]] += count[n] / tied
            tops[n] = row
            n += 1
            row = end
        blocks[lst + 1] = n
    tops[n] = len(item)
    return blocks, tops[: n + 1], count[:n], wins


@njit(cache=True, nogil=True)
def maximize_posterior(q, item, blocks, tops, count, wins, tolerance, most_steps, s, gradient, steps, value):
    """Newton steps until the gradient is small relative to the wins of the most chosen item."""
    size, scale = len(wins), wins.max()
    total = np.empty(len(count))
    chosen, diagonal, odds, g = np.empty(size), np.empty(size), np.empty(size), np.empty(size)
    trial = np.empty(size)
    now = compute_log_posterior(item, blocks, tops, count, wins, s, odds, total)
    steps[q] = most_steps + 1
    for step in range(most_steps + 1):
        compute_expected_choices(item, blocks, tops, count, odds, total, chosen, diagonal)
        left = 0.0
        for i in range(size):
            g[i] = wins[i] - chosen[i]
            left = max(left, abs(g[i]))
        left /= scale
        gradient[q] = left
        if left <= tolerance:
            steps[q] = step
            break
        if step == most_steps:
            break
        move = solve_newton_system(
            item, blocks, tops, count, odds, total, chosen, diagonal, g, min(0.1, max(left, FORCING))
        )
        # a common shift of the scores has no effect: keep it from accumulating
        center_vector(move)
        share, promise = limit_step(move), dot(g, move)
        while True:
            for i in range(size):
                trial[i] = s[i] + share * move[i]
            found = compute_log_posterior(item, blocks, tops, count, wins, trial, odds, total)
            if is_step_accepted(now, found, share * promise):
                break
            share /= 2
        s[:] = trial
        center_vector(s)
        now = compute_log_posterior(item, blocks, tops, count, wins, s, odds, total)
    value[q] = now


@njit(cache=True, nogil=True)
def compute_log_posterior(item, blocks, tops, count, wins, s, odds, total):
    """The log-posterior; leaves the odds of the items, and their sums at or below each block."""
    found = 0.0
    for i in range(len(s)):
        odds[i] = np.exp(s[i])
        found += wins[i] * s[i]
    for lst in range(len(blocks) - 1):
        under = 0.0
        for b in range(blocks[lst + 1] - 1, blocks[lst] - 1, -1):
            for row in range(tops[b], tops[b + 1]):
                under += odds[item[row]]
            total[b] = under
            if count[b] > 0:
                found -= count[b] * np.log(under)
    return found


@njit(cache=True, nogil=True)
def compute_expected_choices(item, blocks, tops, count, odds, total, chosen, diagonal):
    """The expected number of choices of each item, and the diagonal of the negated Hessian."""
    chosen[:] = 0.0
    diagonal[:] = 0.0
    for lst in range(len(blocks) - 1):
        rate, square = 0.0, 0.0
        for b in range(blocks[lst], blocks[lst + 1]):
            rate += count[b] / total[b]
            square += count[b] / (total[b] * total[b])
            for row in range(tops[b], tops[b + 1]):
                own = odds[item[row]]
                chosen[item[row]] += own * rate
                diagonal[item[row]] += own * (rate - own * square)


@njit(cache=True, nogil=True)
def multiply_hessian(item, blocks, tops, count, odds, total, chosen, x, out):
    """The negated Hessian times x."""
    size = len(x)
    weighted = np.empty(size)
    for i in range(size):
        weighted[i] = odds[i] * x[i]
        out[i] = chosen[i] * x[i]
    pull = np.empty(len(count))
    for lst in range(len(blocks) - 1):
        under = 0.0
        for b in range(blocks[lst + 1] - 1, blocks[lst] - 1, -1):
            for row in range(tops[b], tops[b + 1]):
                under += weighted[item[row]]
            pull[b] = count[b] * under / (total[b] * total[b])
        gone = 0.0
        for b in range(blocks[lst], blocks[lst + 1]):
            gone += pull[b]
            for row in range(tops[b], tops[b + 1]):
                out[item[row]] -= odds[item[row]] * gone


@njit(cache=True, nogil=True)
def solve_newton_system(item, blocks, tops, count, odds, total, chosen, diagonal, g, share):
    """Conjugate gradients, until the residual is that fraction of the gradient."""
    size = len(g)
    x, r, p, image = np.zeros(size), g.copy(), np.empty(size), np.empty(size)
    center_vector(r)  # zero except for rounding, which would persist
    rho = start_direction(diagonal, r, p)
    limit = share * share * rho
    for _ in range(2 * size + 20):
        multiply_hessian(item, blocks, tops, count, odds, total, chosen, p, image)
        rho = advance_solution(diagonal, x, r, p, image, rho)
        if rho <= limit:
            break
    return x
