"""What methods check before they compute: forms of preferences, item features, expert weights, known experts."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from podium.core import registry
from podium.core.errors import InputError, Option, ParameterError, PodiumWarning, UnsupportedFormError
from podium.data.features import Features
from podium.data.ids import Id, Ids
from podium.data.preferences import Preferences
from podium.kernels.dispatch import B1, F8, I8

if TYPE_CHECKING:
    from podium.methods.base import Aggregator
    from podium.methods.learned.supervised_method import SupervisedAggregator

__all__ = [
    "Weights",
    "check_features",
    "check_forms",
    "check_weights",
    "match_expert_ids",
    "match_experts",
    "weights_for",
]

Weights = Mapping[Id, float] | Sequence[float]


def check_forms(method: Aggregator, preferences: Preferences | Any) -> None:
    """Check that these are preferences in forms that the method accepts."""
    if not isinstance(preferences, Preferences):
        got = type(preferences).__name__
        raise InputError(
            f"{method.name} was given a {got}", remedy="convert it to Preferences, or use podium.fuse"
        )
    refused = preferences.forms - method.tags.accepts
    if refused:
        able = sorted(n for n, c in registry.aggregators.all().items() if preferences.forms <= c.tags.accepts)
        got = ", ".join(sorted(f.value for f in refused))
        raise UnsupportedFormError(
            f"{method.name} cannot read preferences of the form {got}; these methods can: {', '.join(able)}"
        )


def check_features(method: Aggregator, features: Features | None) -> None:
    """Check that a method that is given item features uses them."""
    if features is not None and not method.tags.uses_features:
        raise ParameterError(f"{method.name} does not use item features; omit them")


def check_weights(weights: Weights | Any, name: str) -> None:
    """Check that weights are finite, not negative, and not all 0."""
    if isinstance(weights, str) or not isinstance(weights, Mapping | Sequence):
        raise ParameterError(
            f"{name}: weights is {weights!r}; give one number per expert, by name or in order"
        )
    values = list(weights.values() if isinstance(weights, Mapping) else weights)
    for w in values:
        if isinstance(w, bool) or not isinstance(w, int | float | np.number) or not 0 <= w < np.inf:
            raise ParameterError(f"{name}: a weight is {w!r}; accepted: finite numbers from 0")
    if not any(values):
        raise ParameterError(f"{name}: all weights are 0; at least one expert must count")


def weights_for(weights: Weights, experts: Sequence[Id], name: str) -> F8:
    """One weight per expert, in their order."""
    known = list(experts)
    if not isinstance(weights, Mapping):
        if len(weights) != len(known):
            raise ParameterError(
                f"{name}: {len(weights)} weights for {len(known)} experts; give one each, in the order {known[:10]}"
            )
        return np.array(weights, np.float64)
    for expert in known:
        if expert not in weights:
            raise ParameterError(
                f"{name}: no weight for expert {expert!r}; give one for each of {known[:10]}"
            )
    for expert in weights:
        if expert not in known:
            raise ParameterError(
                f"{name}: weight given for unknown expert {expert!r}; known experts: {known[:10]}"
            )
    return np.array([weights[e] for e in known], np.float64)


def match_experts(model: SupervisedAggregator, preferences: Preferences) -> I8:
    """For every expert here its number in training, -1 for unknown experts."""
    return match_expert_ids(model, preferences.experts, preferences.active_experts)


def match_expert_ids(model: SupervisedAggregator, experts: Ids, active: B1) -> I8:
    """The same by id; only active experts can be unknown by mistake."""
    codes = Ids(model.experts_).codes_of(experts)
    unknown = codes < 0
    known = f"{', '.join(map(repr, model.experts_[:8]))}{', ...' if len(model.experts_) > 8 else ''}"
    if model.unseen == "error" and unknown.any():
        unknown_experts = experts.take(np.flatnonzero(unknown & active)).tolist()
        if unknown_experts:
            more = f" and {len(unknown_experts) - 1} more" if len(unknown_experts) > 1 else ""
            raise ParameterError(
                f"{model.name} was not trained on expert {unknown_experts[0]!r}{more}; trained on {known}; set ",
                Option("unseen", "ignore", of="method"),
                " to ignore unknown experts, or train with them",
            )
    elif len(codes) and unknown.all():
        warnings.warn(
            f"{model.name} was trained on none of these experts, so it ignores all of them; trained on {known}",
            PodiumWarning,
            stacklevel=3,
        )
    return codes
