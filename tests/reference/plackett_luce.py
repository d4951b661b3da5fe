"""Plackett-Luce and Mallows from their definitions, in plain Python. A ranking is a list of blocks of tied items."""

from __future__ import annotations

import itertools
import math


def log_likelihood(rankings, scores, size):
    """Sum over (blocks, weight, unlisted are below) of the log-probability, with Breslow's treatment of ties."""
    total = 0.0
    for blocks, weight, below in rankings:
        held = {i for block in blocks for i in block}
        rest = [i for i in range(size) if i not in held] if below else []
        for n, block in enumerate(blocks):
            left = [i for later in blocks[n:] for i in later] + rest
            choices = len(block) - (len(left) == len(block))
            odds = math.log(sum(math.exp(scores[i]) for i in left))
            total += weight * choices * sum(scores[i] - odds for i in block) / len(block)
    return total


def gamma_prior(scores, shape, rate):
    """Log-density of independent gamma laws at the odds exp(score), up to a constant."""
    return sum((shape - 1) * s - rate * math.exp(s) for s in scores)


def words(blocks):
    """All ways to fill blocks of these sizes with the items 0 .. n - 1, as the block of each item."""
    letters = [b for b, size in enumerate(blocks) for _ in range(size)]
    return set(itertools.permutations(letters))


def inversions(word):
    """Pairs of items that are in blocks against their order."""
    return sum(a > b for a, b in itertools.combinations(word, 2))


def mallows_log_likelihood(lists, phi):
    """Sum over (block of each item in the center's order, weight) of the log-probability."""
    total = 0.0
    for word, weight in lists:
        sizes = [word.count(b) for b in range(max(word) + 1)]
        z = sum(phi ** inversions(w) for w in words(sizes))
        total += weight * (inversions(word) * math.log(phi) - math.log(z))
    return total
