"""Coset distances by listing all rankings, and stagewise rankings by asking them at every stage."""

from __future__ import annotations

import itertools
import math


def distance(order, places, kind):
    """Between a ranking (items from the top) and one expert's places by item; equal places count one half."""
    if kind == "kendall":
        pairs = itertools.combinations(order, 2)
        return sum(1.0 if places[x] > places[y] else 0.5 * (places[x] == places[y]) for x, y in pairs)
    power = 2 if kind == "spearman" else 1
    return sum(abs(places[x] - i) ** power for i, x in enumerate(order, 1))


def coset_distance(top, places, kind):
    """The mean distance over all rankings that begin with `top`."""
    rest = [x for x in range(len(places)) if x not in top]
    found = [distance([*top, *tail], places, kind) for tail in itertools.permutations(rest)]
    return math.fsum(found) / len(found)


def stage_costs(top, places, theta, kind):
    """Item left -> sum over experts of theta times the coset distance with that item next; places[item][expert]."""
    left = [x for x in range(len(places)) if x not in top]
    columns = list(zip(*places, strict=True))
    return {
        x: math.fsum(t * coset_distance([*top, x], c, kind) for t, c in zip(theta, columns, strict=True))
        for x in left
    }


def log_probability(order, places, theta, kind):
    """Of a whole ranking, stage by stage."""
    total = 0.0
    for i, x in enumerate(order):
        costs = stage_costs(order[:i], places, theta, kind)
        total += -costs[x] - math.log(math.fsum(math.exp(-c) for c in costs.values()))
    return total


def compute_stage_scores(places, theta, kind, near=1e-6):
    """Items below minus items above when the cheapest item is taken at each stage, equal ones together."""
    n, top, scores = len(places), [], [0.0] * len(places)
    while len(top) < n:
        costs = stage_costs(top, places, theta, kind)
        taken = [x for x in costs if costs[x] <= min(costs.values()) + near]
        while kind == "kendall" and len(taken) > 1:  # those that cost least among themselves
            inside = {
                x: math.fsum(
                    t * (1.0 if places[y][k] < places[x][k] else 0.5 * (places[y][k] == places[x][k]))
                    for y in taken
                    if y != x
                    for k, t in enumerate(theta)
                )
                for x in taken
            }
            best = [x for x in taken if inside[x] <= min(inside.values()) + near]
            if len(best) == len(taken):
                break
            taken = best
        for x in taken:
            scores[x] = float(n - 2 * len(top) - len(taken))
        top += taken
    return scores
