"""Probabilistic fusions as their papers define them, for lists without ties and labels of every item."""

from __future__ import annotations

import math


def find_segment(rule, position, length, segments):
    """Number (from 0) and nominal size of the segment of a position (from 0), or None beyond the last one."""
    if rule == "probfuse":
        width = math.ceil(length / segments)
        number = position // width
        return number, min(width, length - number * width)
    ends = [5, 10, 15, 20, 30, 100, 200, 500, 1000]
    ends = ends if rule == "bayesfuse" else [10 * 2**k - 5 for k in range(10)]
    begin = 0
    for number, end in enumerate(ends):
        if position < end:
            return number, end - begin
        begin = end
    return None


def average_precision(ranked, relevant):
    hits, total = 0, 0.0
    for place, item in enumerate(ranked, 1):
        if item in relevant:
            hits += 1
            total += hits / place
    return total / len(relevant) if relevant else 0.0


def learn(rule, lists, relevant, segments):
    """From the lists of one expert by query: a function from position and length to what an item gets."""
    count = len(lists)
    if rule == "mapfuse":
        mean = sum(average_precision(lists[q], relevant[q]) for q in lists) / count
        return lambda position, length: mean / (position + 1)
    if rule in ("posfuse", "slidefuse"):

        def by_position(position):
            here = [lists[q][position] in relevant[q] for q in lists if position < len(lists[q])]
            return sum(here) / len(here) if here else 0.0

        return lambda position, length: by_position(position)

    def by_segment(number):
        total = 0.0
        for q, ranked in lists.items():
            for position, item in enumerate(ranked):
                at = find_segment(rule, position, len(ranked), segments)
                if at is not None and at[0] == number and item in relevant[q]:
                    total += 1 / at[1]
        return total / count

    def value(position, length):
        at = find_segment(rule, position, length, segments)
        if at is None:
            return math.log(0.001 / 0.999) if rule == "bayesfuse" else 0.0
        chance = by_segment(at[0])
        if rule == "bayesfuse":
            chance = 0.001 if abs(chance) < 1e-12 else chance
            return math.log(chance / (0.001 if chance > 1 - 1e-12 else 1 - chance))
        return chance / (at[0] + 1) if rule == "probfuse" else chance

    return value


def fuse(rule, training, relevant, test, *, window, segments):
    """Scores of the items of one query; `training` maps expert and query to a list, `test` expert to a list."""
    value = {e: learn(rule, lists, relevant, segments) for e, lists in training.items()}
    scores = {}
    for item in {i for ranked in test.values() for i in ranked}:
        total = 0.0
        for e, ranked in test.items():
            if item not in ranked:
                total += math.log(0.001 / 0.999) if rule == "bayesfuse" else 0.0
                continue
            p, n = ranked.index(item), len(ranked)
            if rule == "slidefuse":
                near = range(max(p - window, 0), min(p + window, n - 1) + 1)
                total += sum(value[e](k, n) for k in near) / len(near)
            elif rule == "segfuse":
                total += value[e](p, n) * (1 + (1 - p / (n - 1) if n > 1 else 1.0))
            else:
                total += value[e](p, n)
        scores[item] = total
    return scores
