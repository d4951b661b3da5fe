"""Singular value projection by whole decompositions, without shortcuts."""

from __future__ import annotations

import numpy as np


def rank_two(table):
    """The nearest matrix of rank two."""
    u, s, v = np.linalg.svd(table)
    return (u[:, :2] * s[:2]) @ v[:2]


def complete_matrix(table, known, shrink, steps):
    """Project so many times, from nothing."""
    x = np.zeros_like(table)
    for _ in range(steps):
        x = rank_two(np.where(known > 0, table, (1 - shrink) * x))
        x = (x - x.T) / 2  # skew but for rounding, which would grow
    return x


def build_differences(lists, size, strength):
    """Sums of strengths, and which pairs some list compares; a list is the rank of each item, 0 where it has none."""
    table, known = np.zeros((size, size)), np.zeros((size, size))
    for ranks, weight in lists:
        top = max(ranks)
        for i in range(size):
            for j in range(size):
                if i == j or not (ranks[i] and ranks[j]):
                    continue
                gap = ranks[j] - ranks[i]
                if strength == "binary":
                    gap = np.sign(gap)
                elif strength == "rank":
                    gap /= top
                elif strength == "log":
                    gap = (np.log(ranks[j]) - np.log(ranks[i])) / (np.log(top) if top > 1 else 1.0)
                table[i, j] += weight * gap
                known[i, j] = 1.0
    return table, known
