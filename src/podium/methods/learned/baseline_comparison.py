"""A trained model compared with an unsupervised baseline, on queries that the model was not trained on."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from podium.core.errors import NoGainWarning, PodiumError
from podium.data.dataset import Dataset
from podium.methods.base import Aggregator, make
from podium.metrics.base import measure, parse

__all__ = ["compare_with_baseline", "make_baseline"]

PLAIN, ANY_FORM = "rrf", "copeland"  # the second one reads votes too
USUAL = "ndcg@10"  # default where a model does not define `choose_by`


def make_baseline(data: Dataset) -> Aggregator:
    """An unsupervised method to compare a model with."""
    plain = make(PLAIN)
    return plain if data.preferences.forms <= plain.tags.accepts else make(ANY_FORM)


def compare_with_baseline(model: Aggregator, validation: Dataset) -> dict[str, Any]:
    """The mean of the model and of the baseline on the labeled queries of `validation`.

    Warns when the model is worse. Empty when the model cannot rank these queries.
    """
    assert validation.labels is not None
    metric = parse(getattr(model, "choose_by", USUAL))
    plain, labels, p = make_baseline(validation), validation.labels, validation.preferences
    which = np.flatnonzero(p.queries.codes_of(labels.queries) >= 0)
    features = validation.features if model.tags.uses_features else None
    try:
        before, after = (
            measure([metric], c, labels, which)[0] for c in (plain.aggregate(p), model.aggregate(p, features))
        )
    except PodiumError:  # for example an expert that is unknown to the model
        return {}
    known = ~np.isnan(before) & ~np.isnan(after)
    if not known.any():
        return {}
    before, after = before[known], after[known]
    wins, losses = int((after - before > 1e-12).sum()), int((before - after > 1e-12).sum())
    result: dict[str, Any] = {
        "metric": str(metric),
        "queries": len(before),
        "baseline": plain.name,
        "before": float(before.mean()),
        "after": float(after.mean()),
        "wins": wins,
        "losses": losses,
    }
    if result["after"] < result["before"] - 1e-12:
        warnings.warn(
            f"{model.name} is worse than {plain.name} on the {len(before):,} validation queries: {metric} "
            f"{result['after']:.4f} against {result['before']:.4f}, better on {wins:,} queries and worse on "
            f"{losses:,}; use {plain.name} instead, label more queries, or let `tune` choose a method",
            NoGainWarning,
            stacklevel=4,
        )
    return result
