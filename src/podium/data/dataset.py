"""Preferences, labels and features of the same queries, with folds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from podium.core.errors import InputError, ParameterError
from podium.data.features import Features
from podium.data.ids import Ids
from podium.data.labels import Labels
from podium.data.preferences import Preferences
from podium.kernels.dispatch import I4, I8

__all__ = ["Dataset", "Fold"]


class Fold(NamedTuple):
    """One split: training, validation and test queries."""

    train: Dataset
    validation: Dataset
    test: Dataset


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Preferences, labels and features of the same queries, aligned to the index of the preferences.

    `part` is the part number (0, 1, ...) of each query, if the data come in parts.
    """

    preferences: Preferences
    labels: Labels | None = None
    features: Features | None = None
    part: I4 | None = None
    name: str = ""

    def __post_init__(self) -> None:
        if self.part is not None and len(self.part) != len(self.preferences):
            raise InputError(f"{len(self.part)} part numbers for {len(self.preferences)} queries")

    def __len__(self) -> int:
        return len(self.preferences)

    def _repr_html_(self) -> str:
        from podium.data.notebook_html import render_dataset

        return render_dataset(self)

    def __repr__(self) -> str:
        extras = [repr(x) for x in (self.labels, self.features) if x is not None]
        parts = [] if self.part is None else [f"{len(np.unique(self.part))} parts"]
        return (
            f"Dataset({', '.join([self.name] * bool(self.name) + [repr(self.preferences), *extras, *parts])})"
        )

    def select_codes(self, codes: I8) -> Dataset:
        """Only the queries with these codes (of the preferences)."""
        wanted = self.preferences.queries.take(codes)

        def find_codes(queries: Ids) -> I8:
            known = queries.codes_of(wanted)
            return known[known >= 0]

        x, y = self.features, self.labels
        labels = None if y is None else y.select_codes(find_codes(y.queries))
        features = None if x is None else x.select_codes(find_codes(x.index.queries))
        part = None if self.part is None else self.part[codes]
        return Dataset(self.preferences.select_codes(codes), labels, features, part, self.name)

    def queries_by_id(self) -> I8:
        """The codes of all queries, ordered by id."""
        return self.preferences.queries.codes_by_id()

    def select_parts(self, parts: Sequence[int]) -> Dataset:
        """Only the queries of these parts."""
        if self.part is None:
            raise ParameterError("this data set has no parts; use folds(k, seed=...) for random ones")
        return self.select_codes(np.flatnonzero(np.isin(self.part, parts)))

    def folds(self, k: int | None = None, *, seed: int = 0) -> list[Fold]:
        """LETOR's rotation: with n parts fold f trains on f .. f+n-3, validates on f+n-2 and tests on f+n-1.

        Without parts, or when `k` is given, queries are assigned to `k` random parts (default 5).
        """
        source = self
        if self.part is None or k is not None:
            n = 5 if k is None else k
            if not 3 <= n <= len(self):
                if k is not None:
                    raise ParameterError(f"k is {k}; accepted: 3 to the number of queries ({len(self)})")
                fewer = f"give fewer folds, as folds=dataset.folds({len(self)})"
                remedy = fewer if len(self) >= 3 else "folds need 3 or more"
                raise ParameterError(f"{len(self)} queries are too few for 5 folds; {remedy}")
            part = np.empty(len(self), np.int32)  # by id, so that row order does not matter
            part[self.queries_by_id()] = np.random.default_rng(seed).permutation(np.arange(len(self)) % n)
            source = Dataset(self.preferences, self.labels, self.features, part, self.name)
        assert source.part is not None
        n = int(source.part.max(initial=-1)) + 1
        if n < 3:
            raise ParameterError(f"the data have {n} parts, and folds need 3: use folds(k) for random ones")
        turns = [[(f + s) % n for s in range(n)] for f in range(n)]
        return [
            Fold(source.select_parts(t[:-2]), source.select_parts(t[-2:-1]), source.select_parts(t[-1:]))
            for t in turns
        ]
