"""LambdaRank over item features, for data that already have them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np

from podium import params
from podium.aggregators.supervised.examples import Examples, Progress, silence
from podium.aggregators.supervised.learner import Learner, Task
from podium.data.consensus import Consensus, TieRule
from podium.data.features import Features
from podium.data.labels import Labels
from podium.data.vocabulary import Id
from podium.errors import InputError, NotFittedError
from podium.kernels.dispatch import F8

__all__ = ["LambdaRank"]


@dataclass(kw_only=True, eq=False, repr=False)
class LambdaRank(Learner):
    """A linear or feed-forward scorer of (query, item) features that raises a ranking metric.

    >>> from podium import Features, Labels
    >>> x = Features.from_rows(["q"] * 3, ["a", "b", "c"], [[1.0, 0.0], [0.0, 1.0], [0.5, 0.2]], ["good", "bad"])
    >>> model = LambdaRank(passes=20).fit(x, Labels.from_dict({"q": {"a": 2, "b": 0, "c": 1}}))
    >>> model.rank(x).ranking("q")
    ['a', 'c', 'b']
    >>> {name: weight > 0 for name, weight in model.weights().items()}
    {'good': True, 'bad': False}
    """

    def __post_init__(self) -> None:
        params.validate(self)
        self._check_learner()

    def fit(
        self,
        features: Features,
        labels: Labels,
        *,
        validation: tuple[Features, Labels] | None = None,
        query_weights: Mapping[Id, float] | None = None,
        sample_weights: Mapping[Id, Mapping[Id, float]] | None = None,
        progress: Progress = silence,
    ) -> Self:
        """Learn from labelled items; missing values count as 0. See `Learner` for what validation does.

        Queries and items weigh 1 unless `query_weights` (by query) or `sample_weights` (by query and item) say
        otherwise; a pair of items weighs the product of the two.
        """
        examples = Examples.of(features.index, labels, dict(query_weights or {})).weighed(sample_weights)
        task = Task(_filled(features.values)[examples.rows], examples, progress=progress)
        if validation is not None:
            self._known(validation[0], features.names)
            check = Examples.of(validation[0].index, validation[1], teaches=False)
            task = Task(task.values, examples, _filled(validation[0].values)[check.rows], check, progress)
        self.__dict__.pop("names_", None)  # what is begun is not fitted
        self._train(task)
        self.names_ = list(features.names)
        return self

    def predict(self, features: Features) -> F8:
        """One score per slot of the features' index."""
        self._check_fitted()
        self._known(features, tuple(self.names_))
        return self._predict(_filled(features.values))

    def rank(self, features: Features, *, ties: TieRule = "item") -> Consensus:
        """The items of every query by falling score."""
        return Consensus.from_scores(features.index, self.predict(features), ties=ties, method="lambdarank")

    def weights(self) -> dict[str, float]:
        """What each feature counts in a linear scorer."""
        self._check_fitted()
        if not self._is_linear:
            raise InputError(
                "only a linear scorer has weights by feature", remedy="use hidden=0, scorer='lambdarank'"
            )
        return dict(zip(self.names_, self._linear().tolist(), strict=True))

    def _check_fitted(self) -> None:
        if not hasattr(self, "names_"):
            raise NotFittedError("LambdaRank has not been fitted; call fit(features, labels)")

    def _known(self, features: Features, names: tuple[str, ...]) -> None:
        if tuple(features.names) != tuple(names):
            raise InputError(
                f"the features are {list(features.names)[:6]}, training had {list(names)[:6]}",
                remedy="give the same columns in the same order",
            )


def _filled(values: F8) -> F8:
    return np.nan_to_num(values, nan=0.0)
