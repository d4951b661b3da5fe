"""Consensus from beliefs: experts' lists and item features are columns, some of which are graded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from podium.core.errors import ParameterError
from podium.core.old_names import accept_old_names
from podium.data.features import Features
from podium.data.ids import Id
from podium.data.labels import Labels
from podium.data.preferences import Preferences
from podium.kernels import segments
from podium.kernels.dispatch import F8
from podium.methods.base import LIST_FORMS, Aggregator, Outcome, Tags
from podium.methods.costs import Cost, check_costs, check_table_size
from podium.methods.feature.belief_weights import BeliefLearner, check_grades, grades_for
from podium.methods.feature.expert_columns import match_experts
from podium.methods.feature.feature_model import normalize_by_query
from podium.methods.input_checks import check_forms

__all__ = ["LabelledFeaturesAggregator"]


@accept_old_names(normalise="normalize")
@dataclass(kw_only=True, eq=False, repr=False)
class LabelledFeaturesAggregator(BeliefLearner, Aggregator):
    """Experts' lists and item features as columns of one linear scorer, learned from grades of some of them.

    The column of an expert is 1 for its top item, falls evenly down its list, and is 0 for unlisted items.
    `beliefs` grades experts and features by name in [-2, 2], as in `LabelledFeatures`; by default every
    expert is graded 1. No labels are used: `fit` learns the weights from the queries it is given; without
    `fit`, `aggregate` learns them from the queries being aggregated. Items that no expert lists rank last,
    whatever their features.

    >>> from podium import Preferences
    >>> p = Preferences.from_lists({"q": {"good": ["a", "b", "c"], "also good": ["b", "a", "c"], "bad": ["c", "b"]}})
    >>> LabelledFeaturesAggregator(beliefs={"good": 2, "bad": -1}).aggregate(p).ranking("q")
    ['a', 'b', 'c']
    """

    name = "labelled_features"
    citation = "Diaz, ICTIR 2016"
    tags = Tags(
        accepts=LIST_FORMS,
        per_query=False,
        additive=True,
        weighted=False,
        uses_features=True,
        pairwise="items",
        cost="iterate",
    )

    exempt: ClassVar[Mapping[str, str]] = {
        "doubling": "a copy of an expert adds a belief, which steepens the preferences, and copies share the penalty"
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.beliefs is not None:
            check_grades(self.beliefs, self.name)

    def fit(
        self, preferences: Preferences, labels: Labels | None = None, features: Features | None = None
    ) -> Self:
        """Learn the weights from these queries; labels are ignored."""
        check_forms(self, preferences)
        check_costs(self.name, preferences.queries, self._estimate_fit_costs(preferences.index.sizes))
        self.__dict__.pop("weights_", None)
        self.experts_: list[Id] = preferences.experts.tolist()
        self.features_: list[str] = [] if features is None else list(features.names)
        both = {str(e) for e in self.experts_} & set(self.features_)
        if both:
            raise ParameterError(
                f"{self.name}: {min(both)!r} is an expert and a feature, so a belief in it could mean either; "
                "rename one of them"
            )
        values = self._build_columns(preferences, features)
        if self.beliefs is None:
            grades = np.array([1.0] * len(self.experts_) + [0.0] * len(self.features_))
        else:
            grades = grades_for(self.beliefs, [*self.experts_, *self.features_], self.name)
        solution = self._fit_beliefs(preferences.index, values, grades)
        self.converged_, self.history_, self.weights_ = solution.converged, solution.history, solution.weights
        return self

    def _estimate_costs(self, preferences: Preferences) -> list[Cost]:
        fitted = hasattr(self, "weights_")
        return [] if fitted else self._estimate_fit_costs(preferences.index.sizes)

    def _build_columns(self, preferences: Preferences, features: Features | None) -> F8:
        """A normalized column for every expert, then for every feature, of the fit."""
        index, lists = preferences.index, preferences.lists
        codes = match_experts(preferences, self.experts_, self.name)
        width = len(self.experts_) + len(self.features_)
        check_table_size(preferences, width, "drop experts or features, or aggregate in parts")
        table = np.zeros((len(index.items), width))
        place = segments.fractional_ranks(lists.starts, lists.rank)
        high = 1.0 - (place - 1.0) / np.maximum(lists.lengths, 1)[lists.list_of_row]
        expert = codes[lists.expert][lists.list_of_row]
        table[lists.item, expert] = high
        Features.require(features, self.features_, self.name)
        if features is not None:
            table[:, len(self.experts_) :] = features.align(index)
        return normalize_by_query(index.starts, table, self.normalize)

    def _ensure_fitted(
        self, preferences: Preferences, features: Features | None
    ) -> LabelledFeaturesAggregator:
        """Itself when fitted, otherwise a copy fitted to these queries."""
        if hasattr(self, "weights_"):
            return self
        return type(self)(**self.get_parameters()).fit(preferences, None, features)

    def _scores(self, preferences: Preferences, weights: F8) -> Outcome:
        return self._compute_raw_outcome(preferences, weights, None)

    def _compute_raw_outcome(
        self, preferences: Preferences, weights: F8, features: Features | None
    ) -> Outcome:
        model = self._ensure_fitted(preferences, features)
        columns, index = model._build_columns(preferences, features), preferences.index
        scores = np.einsum("ij,j->i", columns, model.weights_)
        magnitude = np.zeros(len(index))
        terms = np.einsum("ij,j->i", np.abs(columns), np.abs(model.weights_))
        np.maximum.at(magnitude, index.query_of_slot, terms)
        codes = match_experts(preferences, model.experts_, self.name)
        notes = () if model.converged_ else (f"the weights did not converge within {self.passes} passes",)
        return Outcome(
            np.asarray(scores),
            tolerance=1e-9,
            magnitude=magnitude,
            converged=model.converged_,
            iterations=len(model.history_),
            objective=model.history_[-1]["objective"],
            notes=notes,
            expert_weights=np.where(codes >= 0, np.append(model.weights_, 0.0)[codes], 0.0),
        )

    def _explain_query(self, preferences: Preferences, query: Id, features: Features | None) -> dict[Id, F8]:
        """Contributions of each expert and each feature to an item's score; they sum to it."""
        check_forms(self, preferences)
        # learned from all queries, not only from the explained one
        model = self._ensure_fitted(preferences, features)
        terms = model._build_columns(preferences.select([query]), features) * model.weights_
        return dict(zip([*model.experts_, *model.features_], terms.T, strict=True))
