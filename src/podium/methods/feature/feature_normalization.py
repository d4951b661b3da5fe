"""Normalization of features within each query."""

from __future__ import annotations

from typing import Annotated

from podium.core.params import Choice
from podium.kernels.dispatch import F8, I8
from podium.kernels.standardize_columns import standardize_by_group

__all__ = ["FeatureNormalizer", "normalize_by_query"]

FeatureNormalizer = Annotated[
    str, Choice("range", "deviation"), "divisor of a feature in each query, after subtracting its mean"
]


def normalize_by_query(starts: I8, values: F8, divisor: str = "range") -> F8:
    """Every column minus its mean in the query, divided by its range (or standard deviation) there.

    Missing values become 0, the mean, and so do columns that are constant in a query: they are neutral.
    The result does not change when a feature is shifted or multiplied by a positive factor.

    >>> import numpy as np
    >>> normalize_by_query(np.array([0, 3]), np.array([[1.0, 5.0], [3.0, 5.0], [np.nan, 5.0]])).tolist()
    [[-0.5, 0.0], [0.5, 0.0], [0.0, 0.0]]
    """
    return standardize_by_group(starts, values, by_range=divisor == "range")
