"""The columns of weights of a CRF: the potentials, and their products with the features of queries."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from podium.data.features import Features
from podium.kernels.dispatch import F8, I8
from podium.methods.learned.crf_features import FeatureRoles
from podium.methods.learned.crf_potentials import ExpertStatements
from podium.methods.learned.potentials import ListEntries, Potential, compute_columns, name_columns

__all__ = ["PotentialColumns"]


class PotentialColumns(NamedTuple):
    """Potentials first, then for each query feature the products of all potentials with it."""

    potentials: tuple[Potential, ...]
    roles: FeatureRoles

    @property
    def names(self) -> list[str]:
        """One name per column."""
        names = name_columns(self.potentials)
        return [*names, *(f"{name} * {feature}" for feature in self.roles.query_names for name in names)]

    @property
    def unlisted(self) -> F8:
        """The value of each column for items that an expert does not list; products are of differences from it."""
        values = [p.unlisted for p in self.potentials for _ in p.columns or (p.name,)]
        return np.array([*values, *[0.0] * (len(self.roles.query_names) * len(values))])

    @property
    def owner(self) -> I8:
        """The number of the potential of each column, another one for its products with each query feature."""
        count = len(self.potentials)
        owner = np.repeat(np.arange(count), [max(1, len(p.columns)) for p in self.potentials])
        return np.concatenate([owner + n * count for n in range(1 + len(self.roles.query_names))])

    def build_statements(
        self, entries: ListEntries, features: Features | None, method: str
    ) -> ExpertStatements:
        """The values of all columns, by entry."""
        values = compute_columns(self.potentials, entries)
        by_query = self.roles.compute_query_values(entries.preferences.index, features, method)
        products = [
            (values - self.unlisted[: values.shape[1]]) * column[entries.query][:, None]
            for column in by_query.T
        ]
        return ExpertStatements(
            entries.expert,
            entries.query,
            entries.slot,
            entries.listed,
            entries.above - entries.below,
            np.concatenate([values, *products], axis=1),
        )
