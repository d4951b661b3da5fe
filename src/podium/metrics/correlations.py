"""Agreement of a result with the labels, over the judged items it ranks; ties in its scores count as ties.

NaN where it is not defined: fewer than two judged items, or a side without two distinct values.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np

from podium.data.consensus import Consensus
from podium.kernels import segments
from podium.kernels.dispatch import F8, I8
from podium.metrics import agreement
from podium.metrics.base import Metric
from podium.metrics.judgements import Judgements

__all__ = ["Footrule", "KendallTauA", "KendallTauB", "PairAccuracy", "SpearmanRho", "TauAP"]


@dataclass(frozen=True, kw_only=True, repr=False)
class Correlation(Metric):
    """Scores against grades."""

    cutoff_rule = "none"
    # (starts, scores, grades) -> one number per segment
    compute_by_segment: ClassVar[Callable[..., F8]]

    def values(self, consensus: Consensus, judgements: Judgements, which: I8) -> F8:
        """0 for queries missing from the result."""
        rankings = judgements.match_rankings(consensus)
        query = rankings.query[which]
        positions = np.flatnonzero(query >= 0)
        sizes = consensus.index.sizes[query[positions]]
        first = np.cumsum(sizes) - sizes
        slot = np.repeat(rankings.starts[query[positions]] - first, sizes) + np.arange(sizes.sum())
        level = rankings.level[slot]
        judged = level < len(judgements.levels)
        starts = segments.offsets(judged)[np.append(first, len(slot))]
        out = np.zeros(len(which))
        out[positions] = type(self).compute_by_segment(
            starts, consensus.scores[slot[judged]], judgements.levels[level[judged]]
        )
        return out


@dataclass(frozen=True, kw_only=True, repr=False)
class KendallTauA(Correlation):
    """Kendall's tau a: concordant minus discordant pairs, over all pairs."""

    name = "tau_a"
    citation = "Kendall, Biometrika 1938"
    compute_by_segment = staticmethod(partial(agreement.compute_taus, variant="a"))


@dataclass(frozen=True, kw_only=True, repr=False)
class KendallTauB(Correlation):
    """Kendall's tau b, corrected for ties on both sides."""

    name = "tau_b"
    aliases = ("tau",)
    citation = "Kendall, Biometrika 1945"
    compute_by_segment = staticmethod(agreement.compute_taus)


@dataclass(frozen=True, kw_only=True, repr=False)
class PairAccuracy(Correlation):
    """Fraction of the pairs of different grades in the right order; ties in the scores count half."""

    name = "pairs"
    compute_by_segment = staticmethod(agreement.compute_pair_accuracies)


@dataclass(frozen=True, kw_only=True, repr=False)
class TauAP(Correlation):
    """Tau AP: like tau a, with mistakes near the top weighing more."""

    name = "tau_ap"
    citation = "Yilmaz, Aslam & Robertson, SIGIR 2008"
    compute_by_segment = staticmethod(agreement.compute_tau_aps)


@dataclass(frozen=True, kw_only=True, repr=False)
class SpearmanRho(Correlation):
    """Spearman's rank correlation, ties sharing their mean rank."""

    name = "rho"
    aliases = ("spearman",)
    citation = "Spearman, American Journal of Psychology 1904"
    compute_by_segment = staticmethod(agreement.compute_spearman_rhos)


@dataclass(frozen=True, kw_only=True, repr=False)
class Footrule(Correlation):
    """1 - normalized Spearman footrule distance: 1 for the same ranks, 0 for reversed ones."""

    name = "footrule"
    citation = "Diaconis & Graham, JRSS B 1977"
    compute_by_segment = staticmethod(agreement.compute_footrules)
