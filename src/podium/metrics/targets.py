"""A metric as something to learn: what a change of places does to it."""

from __future__ import annotations

import numpy as np

from podium.data.labels import Labels
from podium.errors import ParameterError
from podium.kernels.dispatch import F8
from podium.kernels.lambdas import Target
from podium.kernels.measures import BPREF
from podium.metrics.base import MetricSpec, Seen, WalkMetric, parse
from podium.metrics.judgements import Judgements

__all__ = ["learnable", "target"]


def learnable(metric: MetricSpec) -> WalkMetric:
    """The metric, if learners can raise it: any that is a walk down the ranking, bpref and judged aside.

    >>> learnable("ndcg@10:exp")
    ndcg@10:exp
    >>> learnable("tau_b")
    Traceback (most recent call last):
    podium.errors.ParameterError: tau_b cannot be learned directly; learn ndcg, err, map, rbp, mrr or p@k
    """
    chosen = parse(metric)
    chosen.check()
    if not isinstance(chosen, WalkMetric) or chosen.name in ("bpref", "judged"):
        raise ParameterError(f"{chosen} cannot be learned directly; learn ndcg, err, map, rbp, mrr or p@k")
    return chosen


def target(metric: MetricSpec, labels: Labels, weight: F8 | None = None) -> Target:
    """The metric over the labels' own rows, which lie best grade first in each query; queries weigh 1 or `weight`."""
    chosen, judgements = learnable(metric), Judgements.of(labels)
    sizes = labels.index.sizes
    walk = chosen.walk(judgements, int(sizes.max(initial=0)))
    assert walk.kind != BPREF
    best = chosen.divisor(Seen(judgements, np.arange(len(sizes)), sizes))
    scale = np.divide(1.0 if weight is None else weight, best, out=np.zeros(len(sizes)), where=best > 0)
    limit = np.minimum(walk.limit, sizes)
    return Target(walk.kind, walk.gain[judgements.level], judgements.level, walk.discount, limit, scale)
