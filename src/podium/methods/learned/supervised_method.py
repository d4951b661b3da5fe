"""What supervised methods share: checks before and after fitting, and the experts of the training data."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Self

import numpy as np

from podium.core.errors import NotFittedError
from podium.core.params import Choice, Fixed
from podium.core.progress import Progress, no_progress
from podium.data.dataset import Dataset
from podium.data.features import Features
from podium.data.ids import Id
from podium.data.labels import Labels
from podium.data.preferences import Preferences
from podium.kernels.dispatch import F8
from podium.learning.examples import Examples, Training
from podium.learning.plan import Plan
from podium.methods.base import Aggregator, Outcome
from podium.methods.input_checks import check_features, check_forms
from podium.methods.learned.baseline_comparison import compare_with_baseline
from podium.methods.learned.provenance import forget_queries, note_queries

__all__ = ["PlanTrainedAggregator", "SupervisedAggregator"]


@dataclass(kw_only=True, eq=False, repr=False)
class SupervisedAggregator(Aggregator):
    """Base of the supervised methods. A subclass computes `_learn(training)` and `_scores`."""

    unseen: Annotated[
        str,
        Choice("error", "ignore"),
        Fixed(),
        "unknown experts (not in training): raise an error, or ignore them",
    ] = "error"

    def fit(
        self,
        preferences: Preferences,
        labels: Labels | None = None,
        features: Features | None = None,
        *,
        validation: Dataset | None = None,
        query_weights: Mapping[Id, float] | None = None,
        progress: Progress = no_progress,
    ) -> Self:
        """Learn from labeled queries; `validation`, if given, selects among the models of the passes.

        Queries weigh 1 unless `query_weights` defines otherwise. `progress(done, total, what)` is called
        during training. With `validation`, `validation_` compares the model with an unsupervised baseline on
        those queries, and a `NoGainWarning` is issued where the model is worse. `fitted_on_` holds digests of
        all queries that were used, so that they are not mistaken for held-out queries later.
        """
        check_forms(self, preferences)
        # an expert without preferences here is not trained on, even if a larger table named it
        active_codes = np.flatnonzero(preferences.active_experts)
        preferences = preferences.with_experts(preferences.experts.take(active_codes).tolist())
        held = held_examples = None
        if validation is not None:
            check_features(self, validation.features)
            held_index, held_labels = validation.preferences.index, validation.labels
            held_examples = Examples.from_labels(held_index, held_labels, require_signal=False)
            held = Training(validation.preferences, held_examples, validation.features)
        check_features(self, features)
        examples = Examples.from_labels(preferences.index, labels, dict(query_weights or {}))
        forget_queries(self)
        self.experts_: list[Id] = preferences.experts.tolist()
        try:
            self._learn(Training(preferences, examples, features, held, progress))
        except BaseException:
            del self.experts_  # a partial fit must not look fitted
            raise
        note_queries(self, [part.labels for part in (examples, held_examples) if part is not None])
        if validation is not None:
            self.validation_: dict[str, Any] = compare_with_baseline(self, validation)
        return self

    @abstractmethod
    def _learn(self, training: Training) -> None:
        """Set the learned state: attributes that end in `_`, arrays or plain values."""

    # -- for aggregation -------------------------------------------------------------------------------------

    @abstractmethod
    def _score(self, preferences: Preferences, features: Features | None) -> F8 | Outcome:
        """Scores by slot, larger is better."""

    def _compute_contributions(self, one: Preferences, features: Features | None) -> dict[Id, F8] | None:
        """Contributions of each expert to every slot, where the model is a sum over experts, or None."""
        return None

    def _scores(self, preferences: Preferences, weights: F8) -> F8 | Outcome:
        return self._score(preferences, None)

    def _compute_raw_outcome(
        self, preferences: Preferences, weights: F8, features: Features | None
    ) -> Outcome:
        self._check_fitted()
        result = self._score(preferences, features)
        return result if isinstance(result, Outcome) else Outcome(result)

    def _explain_slots(self, one: Preferences, features: Features | None) -> dict[Id, F8]:
        self._check_fitted()
        parts = self._compute_contributions(one, features)
        if parts is not None:
            return parts
        codes = np.flatnonzero(one.active_experts).tolist()
        whole = self._compute_raw_outcome(one, np.zeros(0), features).scores
        left = {one.experts[c]: one.without_expert(one.experts[c]) for c in codes}
        return {
            e: whole - self._compute_raw_outcome(rest, np.zeros(0), features).scores
            for e, rest in left.items()
        }

    def _check_fitted(self) -> None:
        if not hasattr(self, "experts_"):
            raise NotFittedError(
                f"{self.name} learns from labels and has not been fitted; call fit(preferences, labels) "
                "or load a fitted model"
            )


@dataclass(kw_only=True, eq=False, repr=False)
class PlanTrainedAggregator(SupervisedAggregator):
    """A supervised method whose own parameters are those of a training plan: metric, rate, passes, seed."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.plan.check_metrics()

    @property
    def plan(self) -> Plan:
        """How the weights are trained."""
        return Plan.from_parameters(self)
