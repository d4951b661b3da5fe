"""Isotonic regression query by query, by scipy."""

from __future__ import annotations

from itertools import pairwise

import numpy as np


def fit_falling(values, starts):
    out = np.empty(len(values))
    from scipy.optimize import isotonic_regression

    for a, b in pairwise(starts.tolist()):
        if b - a == 1:
            out[a] = values[a]
        elif b > a:
            out[a:b] = isotonic_regression(values[a:b], increasing=False).x
    return out
