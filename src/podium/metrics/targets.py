"""A metric as a learning target: its change when items swap places."""

from __future__ import annotations

import numpy as np

from podium.core.errors import ParameterError
from podium.data.labels import Labels
from podium.kernels.dispatch import F8
from podium.kernels.lambdas import MetricTarget
from podium.kernels.ranking_measures import BPREF
from podium.metrics.base import MeasuredQueries, MetricSpec, WalkMetric, parse
from podium.metrics.judgements import Judgements

__all__ = ["build_target", "parse_learnable"]


def parse_learnable(metric: MetricSpec) -> WalkMetric:
    """The metric, if learners can optimize it: any metric that walks down the ranking but bpref and judged.

    >>> parse_learnable("ndcg@10:exp")
    ndcg@10:exp
    >>> parse_learnable("tau_b")
    Traceback (most recent call last):
    podium.core.errors.ParameterError: tau_b cannot be learned directly; learn ndcg, err, map, rbp, mrr or p@k
    """
    chosen = parse(metric)
    chosen.check_cutoff()
    if not isinstance(chosen, WalkMetric) or chosen.name in ("bpref", "judged"):
        raise ParameterError(f"{chosen} cannot be learned directly; learn ndcg, err, map, rbp, mrr or p@k")
    return chosen


def build_target(metric: MetricSpec, labels: Labels, weight: F8 | None = None) -> MetricTarget:
    """The metric over the labels' own rows, best grade first in each query; queries weigh 1 or `weight`."""
    chosen, judgements = parse_learnable(metric), Judgements.for_labels(labels)
    sizes = labels.index.sizes
    walk = chosen.build_walk(judgements, int(sizes.max(initial=0)))
    assert walk.kind != BPREF
    best = chosen.compute_divisor(MeasuredQueries(judgements, np.arange(len(sizes)), sizes))
    scale = np.divide(1.0 if weight is None else weight, best, out=np.zeros(len(sizes)), where=best > 0)
    limit = np.minimum(walk.limit, sizes)
    return MetricTarget(walk.kind, walk.gain[judgements.level], judgements.level, walk.discount, limit, scale)
