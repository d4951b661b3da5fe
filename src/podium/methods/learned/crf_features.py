"""Features of items and queries in a CRF: terms of their own, and factors on the terms of the experts."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from podium.data.features import Features
from podium.data.index import ItemIndex
from podium.kernels.dispatch import B1, F8
from podium.methods.feature.feature_model import average_by_query, compute_item_columns

__all__ = ["NO_FEATURES", "FeatureRoles", "find_feature_roles"]

FAR = 5.0  # standard deviations beyond which a query feature is cut off


class FeatureRoles(NamedTuple):
    """Which features differ between the items of a query, and the scale of those that describe the query."""

    names: list[str]
    varies: B1  # by feature; the others describe the query
    center: F8  # by query feature
    scale: F8

    @property
    def item_names(self) -> list[str]:
        """The features of items."""
        return [name for name, varies in zip(self.names, self.varies.tolist(), strict=True) if varies]

    @property
    def query_names(self) -> list[str]:
        """The features of queries."""
        return [name for name, varies in zip(self.names, self.varies.tolist(), strict=True) if not varies]

    def compute_item_values(self, index: ItemIndex, features: Features | None, method: str) -> F8:
        """The features of items by slot, each with mean 0 and standard deviation 1 in the query; 0 if unknown."""
        return compute_item_columns(index, features, self.names, method)[:, self.varies]

    def compute_query_values(self, index: ItemIndex, features: Features | None, method: str) -> F8:
        """The features of queries by query, in standard deviations from their mean in training; 0 if unknown."""
        Features.require(features, self.names, method)
        values = average_by_query(index, features, len(self.names))[:, ~self.varies]
        return np.clip(np.nan_to_num((values - self.center) / self.scale), -FAR, FAR)


NO_FEATURES = FeatureRoles([], np.zeros(0, np.bool_), np.zeros(0), np.zeros(0))


def find_feature_roles(index: ItemIndex, features: Features | None) -> FeatureRoles:
    """Features that are constant in every query of the training data describe the query, the others the item."""
    if features is None:
        return NO_FEATURES
    values = features.align(index)
    low, high = (np.full((len(index), len(features.names)), bound) for bound in (np.inf, -np.inf))
    np.fmin.at(low, index.query_of_slot, values)
    np.fmax.at(high, index.query_of_slot, values)
    varies = np.asarray((high > low).any(axis=0), np.bool_)
    of_queries = average_by_query(index, features, len(features.names))[:, ~varies]
    known = np.maximum((~np.isnan(of_queries)).sum(axis=0), 1)
    center = np.nansum(of_queries, axis=0) / known
    deviation = np.sqrt(np.nansum((of_queries - center) ** 2, axis=0) / known)
    # a constant feature has no deviation but rounding error, and counts for nothing
    scale = np.where(deviation > 1e-9 * np.maximum(np.abs(center), 1.0), deviation, np.inf)
    return FeatureRoles(list(features.names), varies, center, scale)
