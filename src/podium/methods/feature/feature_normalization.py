"""Features made comparable inside each query."""

from __future__ import annotations

from typing import Annotated

from podium.core.params import Choice
from podium.kernels.dispatch import F8, I8
from podium.kernels.standardize_columns import standardize_by_group

__all__ = ["FeatureNormalizer", "normalize_by_query"]

FeatureNormalizer = Annotated[
    str,
    Choice("range", "deviation"),
    "what a feature is divided by in each query, after its mean is taken off",
]


def normalize_by_query(starts: I8, values: F8, how: str = "range") -> F8:
    """Every column less its mean in the query, over its range (or standard deviation) there.

    A missing value becomes 0, the mean: it speaks neither for nor against its item. So does a column that is constant
    in a query. Neither a positive factor nor a shift of a feature changes the result.

    >>> import numpy as np
    >>> normalize_by_query(np.array([0, 3]), np.array([[1.0, 5.0], [3.0, 5.0], [np.nan, 5.0]])).tolist()
    [[-0.5, 0.0], [0.5, 0.0], [0.0, 0.0]]
    """
    return standardize_by_group(starts, values, by_range=how == "range")
