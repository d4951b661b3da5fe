"""Checks of what a method is given, before it computes anything."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from podium.core import registry
from podium.core.errors import InputError, ParameterError, UnsupportedFormError
from podium.data.preferences import Preferences

if TYPE_CHECKING:
    from podium.data.features import Features
    from podium.methods.base import Aggregator

__all__ = ["check_features", "check_forms"]


def check_forms(method: Aggregator, preferences: Preferences | Any) -> None:
    """Reject anything but preferences of the forms that the method accepts."""
    if not isinstance(preferences, Preferences):
        raise InputError(
            f"{method.name} was given a {type(preferences).__name__}",
            remedy="convert it to Preferences, or use podium.fuse",
        )
    refused = preferences.forms - method.tags.accepts
    if refused:
        classes = registry.aggregators.all().items()
        able = ", ".join(name for name, c in classes if preferences.forms <= c.tags.accepts)
        got = ", ".join(sorted(f.value for f in refused))
        raise UnsupportedFormError(
            f"{method.name} cannot read preferences of the form {got}; these methods can: {able}"
        )


def check_features(method: Aggregator, features: Features | None) -> None:
    """Reject item features for a method that does not use them."""
    if features is not None and not method.tags.uses_features:
        raise ParameterError(f"{method.name} does not use item features; omit them")
