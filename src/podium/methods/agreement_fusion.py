"""Expert weights by query without labels: an expert counts more where the others agree with it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np

from podium.core.params import Range, Tune
from podium.data.features import Features
from podium.data.ids import Id
from podium.data.preferences import Preferences
from podium.kernels.dispatch import F8
from podium.kernels.list_agreement import compute_consensus_correlations, tilt_weights
from podium.methods.base import LIST_FORMS, Aggregator, Outcome, Tags
from podium.methods.input_checks import check_forms
from podium.methods.list_weights import (
    PointsRule,
    RankOffset,
    build_outcome,
    build_weight_table,
    compute_points,
)
from podium.methods.positional import sum_listing_weights

__all__ = ["AgreementWeightedFusion"]


@dataclass(kw_only=True, eq=False, repr=False)
class AgreementWeightedFusion(Aggregator):
    """Weighted sum of points; an expert's weight in a query grows with its agreement with the other experts.

    The agreement of a list is the correlation of its values 1 / (depth + rank), 0 for items it does not list,
    with the sum of those of the other experts. The expert's weight is multiplied by exp(sharpness *
    agreement), and the weights of a query are rescaled to their sum before; `sharpness` 0 gives fixed weights.

    >>> from podium import Preferences
    >>> p = Preferences.from_lists({"q": {1: ["a", "b", "c"], 2: ["a", "c", "b"], 3: ["x", "y", "z"]}})
    >>> weights = AgreementWeightedFusion().compute_expert_weights(p)["q"]
    >>> weights[1] > weights[3], round(sum(weights.values()), 6)
    (True, 3.0)
    """

    name = "agreement_weighted"
    citation = "Diaz, SIGIR 2007; Wu & Crestani, SAC 2003"
    tags = Tags(accepts=LIST_FORMS)
    exempt = {  # noqa: RUF012 - read-only by convention, like all class attributes here
        "doubling": "a copy of an expert agrees with it, so that copies of all experts raise all agreements",
    }

    points: PointsRule = "rrf"
    k: RankOffset = 60
    sharpness: Annotated[
        float, Range(0, 1000), Tune(0.5, 20, log=True), "how strongly weights depend on the agreement"
    ] = 6.0
    depth: Annotated[
        float, Range(0, 10_000), Tune(0.1, 100, log=True), "larger values compare deeper parts of the lists"
    ] = 0.0

    def compute_expert_weights(self, preferences: Preferences) -> dict[Id, dict[Id, float]]:
        """The weights as query -> expert -> weight, for experts that have a list in the query."""
        check_forms(self, preferences)
        weights = self.expert_weights_for(preferences.experts)
        return build_weight_table(preferences, self._compute_list_weights(preferences, weights))

    @property
    def explains_exactly(self) -> bool:
        """True: scores are sums over experts, whose weights are those of the query."""
        return True

    def _compute_list_weights(self, preferences: Preferences, weights: F8) -> F8:
        lists, index = preferences.lists, preferences.index
        weight = weights[lists.expert]
        # of an expert with weight 2, which counts as two experts, one is left out
        agreement = compute_consensus_correlations(
            lists.list_of_row,
            lists.item,
            compute_points(preferences, "rrf", self.depth),
            lists.query_of_list,
            index.query_of_slot,
            weight,
            np.minimum(weight, 1.0),
        )
        return tilt_weights(weight, self.sharpness * agreement, lists.query_of_list, len(index))

    def _scores(self, preferences: Preferences, weights: F8) -> Outcome:
        list_weight = self._compute_list_weights(preferences, weights)
        outcome = build_outcome(preferences, self.points, self.k, list_weight)
        if self.points == "rrf":
            return outcome  # points by rank are positive: an item nobody lists has 0 and is last
        listing = sum_listing_weights(preferences, (weights > 0).astype(np.float64))
        return replace(outcome, absent=listing == 0)

    def _explain_slots(self, one: Preferences, features: Features | None) -> dict[Id, F8]:
        lists, experts = one.lists, one.experts
        list_weight = self._compute_list_weights(one, self.expert_weights_for(experts))
        terms = compute_points(one, self.points, self.k) * list_weight[lists.list_of_row]
        parts = np.zeros((len(experts), len(one.index.items)))
        np.add.at(parts, (lists.expert[lists.list_of_row], lists.item), terms)
        return {experts[code]: parts[code] for code in np.flatnonzero(one.active_experts).tolist()}
