"""What the weights of a CRF mean for each expert."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Literal, NamedTuple

import numpy as np

from podium.data.features import Features
from podium.data.ids import Id
from podium.data.preferences import Preferences
from podium.kernels.dispatch import B1, F8, I8
from podium.kernels.ranking_expectations import sum_by_index
from podium.methods.learned.crf_columns import PotentialColumns
from podium.methods.learned.crf_potentials import ExpertStatements
from podium.methods.learned.supervised_method import SupervisedAggregator

__all__ = ["IGNORED", "ExpertWeights", "ReadableWeights", "WeightReading", "compute_effects"]

WeightReading = Literal["important", "used", "used in reverse", "ignored", "dropped"]
IGNORED = 0.1  # experts whose effect on scores is below this fraction of the strongest one's count as ignored
IMPORTANT = 0.5


class ExpertWeights(NamedTuple):
    """Learned weights of one expert; `share` is its effect on scores relative to the strongest expert."""

    expert: Id
    missing: float  # a: for unlisted items; strongly negative where the expert's lists matter
    preferred: float  # bP: for items it puts above others
    beaten: float  # bN: against items it puts below others
    share: float
    reading: WeightReading
    weights: Mapping[str, float]  # of every potential, by name; 0 above for potentials that are not used


class ReadableWeights(SupervisedAggregator):
    """The weights of a CRF by expert and potential, and what they add to a score."""

    weights_: F8
    feature_weights_: F8
    group_: I8
    spread_: F8
    along_: F8

    @property
    @abstractmethod
    def _columns(self) -> PotentialColumns: ...

    @abstractmethod
    def _collect_statements(
        self, preferences: Preferences, features: Features | None, counts: B1 | None = None
    ) -> ExpertStatements: ...

    @abstractmethod
    def _find_groups(self, preferences: Preferences) -> I8: ...

    def expert_weights(self) -> list[ExpertWeights]:
        """The learned weights with their interpretation, in expert order; the class has an example."""
        self._check_fitted()
        groups, blank = self.group_.tolist(), np.zeros((1, self.weights_.shape[1]))
        weights = np.concatenate([self.weights_, blank])  # the last row is for dropped experts
        own = [dict(zip(self._columns.names, weights[g].tolist(), strict=True)) for g in groups]
        # the effect of each expert relative to the strongest one, and what it means in words
        readings: list[tuple[float, WeightReading]] = []
        shares = self.spread_ / max(float(self.spread_.max(initial=0.0)), 1e-300)
        for share, sign, is_dropped in zip(
            shares.tolist(), self.along_.tolist(), (self.group_ < 0).tolist(), strict=True
        ):
            reading: WeightReading = "important" if share >= IMPORTANT else "used"
            if is_dropped:
                reading = "dropped"
            elif share < IGNORED:
                reading = "ignored"
            elif sign < 0:
                reading = "used in reverse"
            readings.append((share, reading))
        table = []
        for expert, w, (share, reading) in zip(self.experts_, own, readings, strict=True):
            a, p, n = (w.get(name, 0.0) for name in ("absence", "preferred", "beaten"))
            table.append(ExpertWeights(expert, a, p, n, share, reading, w))
        return table

    def feature_weights(self) -> dict[str, float]:
        """The weights of the item features, each in standard deviations within a query; empty without features."""
        self._check_fitted()
        names = self._columns.roles.item_names
        return dict(zip(names, self.feature_weights_.tolist(), strict=True)) if names else {}

    def explain_potentials(
        self, preferences: Preferences, query: Id, item: Id, features: Features | None = None
    ) -> dict[Id, dict[str, float]]:
        """What each potential of each expert adds to an item's score; `explain` returns the sums by expert.

        >>> from podium import CrfAggregator, Labels, Preferences
        >>> p = Preferences.from_lists({"q": {"x": ["a", "b"]}})
        >>> model = CrfAggregator(potentials="reciprocal_rank").fit(p, Labels.from_dict({"q": {"a": 1, "b": 0}}))
        >>> {expert: list(parts) for expert, parts in model.explain_potentials(p, "q", "a").items()}
        {'x': ['reciprocal_rank']}
        """
        self._check_fitted()
        one = preferences.select([query])
        statements, names = self._collect_statements(one, features), self._columns.names
        mine = statements.select_entries(np.flatnonzero(statements.slot == one.index.slot(query, item)))
        terms = mine.values * self.weights_[self._find_groups(one)[mine.expert]]
        return {
            one.experts[code]: dict(zip(names, row, strict=True))
            for code, row in zip(mine.expert.tolist(), terms.tolist(), strict=True)
        }


def compute_effects(statements: ExpertStatements, terms: F8, experts: int) -> tuple[F8, F8]:
    """By expert: the squared effect of its terms on scores within queries, and how far they follow its preferences."""
    _, pair = np.unique(statements.query * experts + statements.expert, return_inverse=True)
    who = np.zeros(int(pair.max(initial=-1)) + 1, np.int64)
    who[pair] = statements.expert
    listed = np.flatnonzero(statements.listed)
    along = _sum_products_within(statements.standing[listed], terms[listed], pair[listed], who, experts)
    return _sum_products_within(terms, terms, pair, who, experts), along


def _sum_products_within(a: F8, b: F8, pair: I8, who: I8, count: int) -> F8:
    """For every expert the sum of products of deviations from the means of its queries."""
    size = np.maximum(np.bincount(pair, minlength=len(who)), 1)
    mean_a, mean_b = (sum_by_index(pair, x, len(who)) / size for x in (a, b))
    return sum_by_index(who[pair], (a - mean_a[pair]) * (b - mean_b[pair]), count)
