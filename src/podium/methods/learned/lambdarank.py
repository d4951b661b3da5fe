"""LambdaRank over item features, for data that already have them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Self

import numpy as np

from podium.core import params
from podium.core.errors import InputError, Option, ParameterError
from podium.core.old_names import accept_old_names
from podium.core.params import Choice, suggest_names
from podium.core.progress import Progress, no_progress
from podium.data.consensus import Consensus, TieRule
from podium.data.features import Features
from podium.data.ids import Id
from podium.data.labels import Labels
from podium.kernels.dispatch import F8
from podium.learning.examples import Examples, LearningTask
from podium.learning.feature_scorer import FeatureScorer, WeightPrior, fit_scorer
from podium.learning.plan import ScorerSettings
from podium.learning.shard_cache import open_prepared_shards
from podium.learning.training_shards import TrainingShard
from podium.methods.feature.feature_model import FeatureModel, normalize_by_query
from podium.methods.feature.labelled_features import LabelledFeatures
from podium.storage.folder_cache import CacheOption

__all__ = ["LambdaRank"]

LINEAR = (Option("hidden", 0, of="method"), ", ", Option("scorer", "lambdarank", of="method"))


@accept_old_names(normalise="normalize")
@dataclass(kw_only=True, eq=False, repr=False)
class LambdaRank(FeatureModel, ScorerSettings):
    """A linear or feed-forward scorer of (query, item) features that optimizes a ranking metric.

    `normalize` first makes features comparable within each query, as in `LabelledFeatures`. `prior` gives
    weights of features that are known or believed before any label is seen (0 for the others), or is a fitted
    `LabelledFeatures`: training starts there, and `l2` shrinks towards it instead of 0. It needs a linear
    scorer.

    >>> from podium import Features, Labels
    >>> x = Features.from_rows(["q"] * 3, ["a", "b", "c"], [[1.0, 0.0], [0.0, 1.0], [0.5, 0.2]], ["good", "bad"])
    >>> model = LambdaRank(passes=20).fit(x, Labels.from_dict({"q": {"a": 2, "b": 0, "c": 1}}))
    >>> model.rank(x).ranking("q")
    ['a', 'c', 'b']
    >>> {name: weight > 0 for name, weight in model.feature_weights().items()}
    {'good': True, 'bad': False}
    """

    normalize: Annotated[
        str, Choice("no", "range", "deviation"), "normalization of features within each query"
    ] = "no"
    prior: Mapping[str, float] | LabelledFeatures | None = None

    def __post_init__(self) -> None:
        params.validate(self)
        ScorerSettings.__post_init__(self)
        if self.prior is None:
            return
        if not self.is_linear:
            raise ParameterError(
                "LambdaRank: a prior gives weights of features, which only a linear scorer has; use ",
                *LINEAR,
                ", or omit the prior",
            )
        if isinstance(self.prior, LabelledFeatures):
            if self.prior.normalize != self.normalize:
                raise ParameterError(
                    f"LambdaRank: the prior's weights are for features with normalize={self.prior.normalize!r}, not "
                    f"{self.normalize!r}; set ",
                    Option("normalize", self.prior.normalize, of="method"),
                )
            self.prior = self.prior.feature_weights()
        if not isinstance(self.prior, Mapping):
            raise ParameterError(
                f"LambdaRank: the prior is {self.prior!r}; give weights by feature, or a fitted LabelledFeatures"
            )
        for name, weight in self.prior.items():
            number = isinstance(weight, int | float | np.number) and not isinstance(weight, bool)
            if not number or not np.isfinite(weight):
                raise ParameterError(
                    f"LambdaRank: the prior weight of {name!r} is {weight!r}; give a finite number"
                )

    def fit(
        self,
        features: Features,
        labels: Labels,
        *,
        validation: tuple[Features, Labels] | None = None,
        query_weights: Mapping[Id, float] | None = None,
        sample_weights: Mapping[Id, Mapping[Id, float]] | None = None,
        progress: Progress = no_progress,
    ) -> Self:
        """Learn from labeled items; missing values count as 0. `ScorerSettings` describes the use of validation data.

        Queries and items weigh 1 unless `query_weights` (by query) or `sample_weights` (by query and item)
        define otherwise; the weight of a pair of items is the product of the two.
        """
        examples = Examples.from_labels(features.index, labels, dict(query_weights or {})).with_item_weights(
            sample_weights
        )
        check = None
        if validation is not None:
            Features.require(validation[0], features.names, self.name)
            held = Examples.from_labels(validation[0].index, validation[1], require_signal=False)
            check = LearningTask(self._prepare_values(validation[0])[held.rows], held)
        task = LearningTask(self._prepare_values(features)[examples.rows], examples, check, progress)
        prior = self._align_prior(features.names)
        self.__dict__.pop("names_", None)  # a partial fit must not look fitted
        fit_scorer(self, task, prior=prior).store_in(self)
        self.names_ = list(features.names)
        return self

    def fit_stream(
        self,
        shards: Sequence[TrainingShard],
        *,
        validation: Sequence[TrainingShard] = (),
        query_weights: Mapping[Id, float] | None = None,
        progress: Progress = no_progress,
        cache: CacheOption = True,
    ) -> Self:
        """Learn from shards, preparing the next one while one is in use.

        A shard is a file (or several that belong together), a pair of features and labels, a Dataset, or a
        function that returns one of these; a query lies in exactly one shard. Every pass visits the shards in
        random order, and a step never crosses a shard boundary. With one shard the result equals that of
        `fit`.

        Shards are read once and cached as arrays in a temporary folder (`cache=True`) or in a given folder,
        where the next run reuses those of unchanged files. `cache=False` reads them again in every pass.

        >>> from podium import Features, Labels
        >>> def part(q):
        ...     return Features.from_rows([q] * 2, "ab", [[1.0], [0.0]]), Labels.from_dict({q: {"a": 1, "b": 0}})
        >>> LambdaRank(passes=5).fit_stream([lambda: part("q1"), lambda: part("q2")]).feature_weights()["f1"] > 0
        True
        """
        from podium.methods.learned.lambdarank_shards import FeatureShards

        if self.scorer == "lambdamart":
            raise ParameterError("lambdamart needs all data in memory; use ", LINEAR[-1], ", or fit")
        with open_prepared_shards(shards, validation, cache, kind="features") as (train, check):
            given = FeatureShards(self, train, check, query_weights or {}, progress)
            self.__dict__.pop("names_", None)  # a partial fit must not look fitted
            prior, scorer = self._align_prior(given.names), given.build_scorer()
            blocks = given.build_blocks(scorer, train)
            check_blocks = given.build_blocks(scorer, check) if len(check) else None
            scorer.train(blocks, check_blocks, given.scan.choose_by, self.plan, prior, progress).store_in(
                self
            )
        self.names_, self.shard_counts = list(given.names), given.scan.counts
        return self

    def predict(self, features: Features) -> F8:
        """One score per slot of the features' index."""
        self._check_fitted("fit(features, labels)")
        Features.require(features, self.names_, self.name)
        return FeatureScorer.from_model(self).compute_scores(self._prepare_values(features))

    def rank(self, features: Features, *, ties: TieRule = "item") -> Consensus:
        """The items of every query by descending score."""
        return Consensus.from_scores(features.index, self.predict(features), ties=ties, method="lambdarank")

    def feature_weights(self) -> dict[str, float]:
        """The weight of each feature in a linear scorer."""
        self._check_fitted("fit(features, labels)")
        if not self.is_linear:
            raise InputError("only a linear scorer has weights by feature", remedy=("use ", *LINEAR))
        return dict(zip(self.names_, FeatureScorer.from_model(self).linear_weights.tolist(), strict=True))

    def _prepare_values(self, features: Features) -> F8:
        if self.normalize == "no":
            return np.where(np.isnan(features.values), 0.0, features.values)
        return normalize_by_query(features.index.starts, features.values, self.normalize)

    def _align_prior(self, names: tuple[str, ...]) -> WeightPrior:
        if self.prior is None:
            return WeightPrior()
        assert isinstance(self.prior, Mapping)
        for name in self.prior:
            if name not in names:
                raise ParameterError(
                    f"LambdaRank: the prior names the unknown feature {name!r}; {suggest_names(name, names)}"
                )
        start = np.array([float(self.prior.get(name, 0.0)) for name in names])
        return WeightPrior(start, is_center=True)
