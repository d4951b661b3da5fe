"""The multinomial preference model from its definition, with a sum over all pairs."""

from __future__ import annotations

import math


def log_posterior(matrices, scores, adherence, prior, steady=0.0):
    """Sum over experts of Y(i, j) log P(i over j), plus normal priors on the scores and the adherences."""
    pairs = [(i, j) for i in range(len(scores)) for j in range(len(scores)) if i != j]
    total = -prior / 2 * sum(s * s for s in scores) - steady / 2 * sum((t - 1) ** 2 for t in adherence)
    for y, t in zip(matrices, adherence, strict=True):
        z = sum(math.exp(t * (scores[i] - scores[j])) for i, j in pairs)
        total += sum(y[i][j] * (t * (scores[i] - scores[j]) - math.log(z)) for i, j in pairs)
    return total
