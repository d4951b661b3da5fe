"""Isotonic regression as the min-max formula says it, for orders of a few items."""

from __future__ import annotations

import numpy as np


def fit_falling(values):
    """The nearest values that do not rise: out[i] = min over a <= i of max over b >= i of the mean of a..b."""
    n = len(values)
    return np.array(
        [
            min(max(float(np.mean(values[a : b + 1])) for b in range(i, n)) for a in range(i + 1))
            for i in range(n)
        ]
    )
