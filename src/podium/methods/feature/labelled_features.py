"""Learning to rank from grades of features instead of grades of items."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

import numpy as np

from podium.core import params
from podium.core.errors import InputError, PodiumWarning
from podium.core.old_names import accept_old_names
from podium.core.progress import Progress, no_progress
from podium.data.consensus import Consensus, TieRule
from podium.data.features import Features
from podium.kernels.dispatch import F8
from podium.methods.costs import check_costs
from podium.methods.feature.belief_weights import BeliefLearner, check_grades, grades_for
from podium.methods.feature.feature_model import FeatureModel, normalize_by_query

__all__ = ["LabelledFeatures"]


@accept_old_names(normalise="normalize")
@dataclass(kw_only=True, eq=False, repr=False)
class LabelledFeatures(FeatureModel, BeliefLearner):
    """A linear scorer of all features, learned from beliefs about a few of them and from unlabeled items.

    `beliefs` grades features by name: 2 surely good, 1 probably good, -1 and -2 the same for bad; fractions
    are allowed and unnamed features have no grade. In each query a feature is centered and divided by its
    range (`normalize="deviation"`: its standard deviation); missing values count as the mean. The graded sum
    gives the probability that one item belongs above another. The weights of all features are then fitted to
    these preferences, pairs weighted by their effect on the top `cutoff` places, so that features correlated
    with the graded ones count.

    There are no labels to tune on, so the defaults matter: the published penalty 0.5, but on the distance
    from half of the beliefs (`kept`) rather than from 0. `kept=0` is the published rule; `kept=1` keeps the
    beliefs unchanged. The default was safer than either on three sets of real queries
    (`podium reproduce labelled-features`).

    >>> from podium import Features
    >>> x = [[3.0, 30.0, 1.0], [2.0, 21.0, 0.0], [1.0, 9.0, 1.0], [0.0, 2.0, 0.0]]
    >>> x = Features.from_rows(["q"] * 4, ["a", "b", "c", "d"], x, ["bm25", "tf", "noise"])
    >>> model = LabelledFeatures(beliefs={"bm25": 2}).fit(x)
    >>> model.rank(x).ranking("q")
    ['a', 'b', 'c', 'd']
    >>> weights = model.feature_weights()
    >>> weights["bm25"] > weights["tf"] > abs(weights["noise"])
    True
    """

    citation = "Diaz, ICTIR 2016"
    beliefs: Mapping[str, float] = field()  # type: ignore[assignment]

    def __post_init__(self) -> None:
        params.validate(self)
        check_grades(self.beliefs, self.name)  # type: ignore[arg-type]
        self.beliefs = {str(k): float(v) for k, v in self.beliefs.items()}

    def fit(self, features: Features, *, progress: Progress = no_progress) -> Self:
        """Learn from unlabeled items; only queries with two or more items contribute."""
        grades = grades_for(self.beliefs, features.names, self.name)
        index = features.index
        check_costs(self.name, index.queries, self._estimate_fit_costs(index.sizes))
        if not len(index):
            raise InputError("there are no items to learn from", remedy="give features of at least one query")
        values = normalize_by_query(index.starts, features.values, self.normalize)
        if not np.einsum("ij,j->i", values, grades).any():
            warnings.warn(
                "the graded features do not distinguish two items in any query, so the weights equal the beliefs",
                PodiumWarning,
                stacklevel=2,
            )
        solution = self._fit_beliefs(index, values, grades, progress)
        self.weights_: F8 = solution.weights
        self.history_ = solution.history
        self.converged_ = solution.converged
        self.names_: list[str] = list(features.names)
        return self

    def predict(self, features: Features) -> F8:
        """One score per slot of the features' index."""
        return self._compute_scores(features, self.weight_vector)

    def naive(self, features: Features) -> F8:
        """The graded sum itself, the baseline for the model: one score per slot."""
        return self._compute_scores(features, grades_for(self.beliefs, features.names, self.name))

    def rank(self, features: Features, *, ties: TieRule = "item") -> Consensus:
        """The items of every query by descending score."""
        return Consensus.from_scores(features.index, self.predict(features), ties=ties, method=repr(self))

    def feature_weights(self) -> dict[str, float]:
        """The weight of each normalized feature."""
        self._check_fitted("fit(features)")
        return dict(zip(self.names_, self.weight_vector.tolist(), strict=True))

    @property
    def weight_vector(self) -> F8:
        """The weights in the order of the columns."""
        self._check_fitted("fit(features)")
        return self.weights_

    @property
    def history(self) -> list[dict[str, float]]:
        """By pass: objective, loss, and the largest absolute gradient, which ends at 0."""
        self._check_fitted("fit(features)")
        return self.history_

    def _compute_scores(self, features: Features, weights: F8) -> F8:
        if hasattr(self, "names_"):
            Features.require(features, self.names_, self.name)
        values = normalize_by_query(features.index.starts, features.values, self.normalize)
        return np.asarray(np.einsum("ij,j->i", values, weights))

    def __repr__(self) -> str:
        return f"{self.name}(beliefs={dict(self.beliefs)!r})"
