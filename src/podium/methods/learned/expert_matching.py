"""The experts of a fitted model in other preferences."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np

from podium.core.errors import Option, ParameterError, PodiumWarning
from podium.data.ids import Ids
from podium.data.preferences import Preferences
from podium.kernels.dispatch import B1, I8

if TYPE_CHECKING:
    from podium.methods.learned.supervised_method import SupervisedAggregator

__all__ = ["match_expert_ids", "match_experts"]


def match_experts(model: SupervisedAggregator, preferences: Preferences) -> I8:
    """For every expert here its number in training, -1 for unknown experts."""
    return match_expert_ids(model, preferences.experts, preferences.active_experts)


def match_expert_ids(model: SupervisedAggregator, experts: Ids, active: B1) -> I8:
    """The same by id; only active experts can be unknown by mistake."""
    codes = Ids(model.experts_).codes_of(experts)
    unknown = codes < 0
    known = f"{', '.join(map(repr, model.experts_[:8]))}{', ...' if len(model.experts_) > 8 else ''}"
    if model.unseen == "error" and unknown.any():
        strangers = experts.take(np.flatnonzero(unknown & active)).tolist()
        if strangers:
            more = f" and {len(strangers) - 1} more" if len(strangers) > 1 else ""
            raise ParameterError(
                f"{model.name} was not trained on expert {strangers[0]!r}{more}; trained on {known}; set ",
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
