"""What every method checks before it computes: the form of the preferences, item features, expert weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from podium.core import registry
from podium.core.errors import InputError, ParameterError, UnsupportedFormError
from podium.data.features import Features
from podium.data.ids import Id
from podium.data.preferences import Preferences
from podium.kernels.dispatch import F8

if TYPE_CHECKING:
    from podium.methods.base import Aggregator

__all__ = ["Weights", "check_features", "check_forms", "check_weights", "weights_for"]

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
