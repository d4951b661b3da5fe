"""What models over item features share: normalization, the name they are saved under, and the weights of features."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np

from podium.core import registry
from podium.core.errors import NotFittedError, PodiumWarning
from podium.core.old_names import RenamedAttribute
from podium.core.params import Choice, ParameterDataclass
from podium.data.features import Features
from podium.data.index import ItemIndex
from podium.kernels.dispatch import F8, I8
from podium.kernels.standardize_columns import standardize_by_group

__all__ = [
    "FeatureModel",
    "FeatureNormalizer",
    "average_by_query",
    "compute_item_columns",
    "normalize_by_query",
]

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


def compute_item_columns(
    index: ItemIndex, features: Features | None, names: Sequence[str], method: str
) -> F8:
    """The features of items by slot, each with mean 0 and standard deviation 1 in the query; 0 if unknown.

    `names` are the columns that the method was fitted with.
    """
    Features.require(features, names, method)
    if features is None:
        return np.zeros((len(index.items), 0))
    values = features.align(index)
    if len(values) and np.isnan(values).all():
        warnings.warn(
            "none of these items has item features, so all of them count as 0; query and item ids are compared "
            "exactly, case and type included",
            PodiumWarning,
            stacklevel=3,
        )
    return normalize_by_query(index.starts, values, "deviation")


def average_by_query(index: ItemIndex, features: Features | None, width: int) -> F8:
    """The mean of every item feature in every query, NaN where no item has it."""
    if features is None:
        return np.full((len(index), width), np.nan)
    values = features.align(index)
    known = ~np.isnan(values)
    columns = [
        np.bincount(index.query_of_slot, column, len(index))
        / np.where((n := np.bincount(index.query_of_slot, some, len(index))) > 0, n, np.nan)
        for column, some in zip(np.nan_to_num(values).T, known.T, strict=True)
    ]
    return np.stack(columns, axis=1) if columns else np.zeros((len(index), 0))


class FeatureModel(ParameterDataclass):
    """Base of the models that rank by item features alone. Subclasses are dataclasses, registered by name."""

    names_: list[str]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.name = cls.__name__
        registry.learners.add(cls.name, cls)

    def feature_weights(self) -> dict[str, float]:
        """The weight of each feature."""
        raise NotImplementedError

    weights = RenamedAttribute("feature_weights")

    def _check_fitted(self, call: str) -> None:
        if not hasattr(self, "names_"):
            raise NotFittedError(f"{self.name} has not been fitted; call {call}")
