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
from podium.data.pair_labels import PairLabels
from podium.kernels import segments
from podium.kernels.dispatch import F8, I8
from podium.metrics import agreement
from podium.metrics.base import Metric
from podium.metrics.judgements import Judgements

__all__ = ["Footrule", "KendallTauA", "KendallTauB", "PairAccuracy", "PairAgreement", "SpearmanRho", "TauAP"]


@dataclass(frozen=True, kw_only=True, repr=False)
class Correlation(Metric):
    """Scores against grades."""

    cutoff_rule = "none"
    accepts = frozenset({"grades", "rankings"})
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
class PairAgreement(Correlation):
    """Counts of pairs in the right and in the wrong order; for labels that are pairs, of these, by weight."""

    accepts = frozenset({"grades", "rankings", "pairs"})

    def values(self, consensus: Consensus, judgements: Judgements, which: I8) -> F8:
        """0 for queries missing from the result; NaN without a pair."""
        labels = judgements.labels
        if not isinstance(labels, PairLabels):
            return super().values(consensus, judgements, which)
        query = consensus.index.queries.codes_of(labels.queries)[which]
        table, scores = labels.align_pairs(consensus.index), consensus.scores
        ahead, total = np.sign(scores[table.better] - scores[table.worse]), table.sum_weights()
        net = np.bincount(table.query, table.weight * ahead, len(total))
        with np.errstate(invalid="ignore"):
            value = self.scale_net_share(net / np.where(total > 0, total, np.nan))
        return np.where(query >= 0, value[query], 0.0)

    @staticmethod
    def scale_net_share(share: F8) -> F8:
        """The metric from (right minus wrong) over all pairs."""
        return share


@dataclass(frozen=True, kw_only=True, repr=False)
class KendallTauA(PairAgreement):
    """Kendall's tau a: concordant minus discordant pairs, over all pairs (for labels in pairs: over these)."""

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
class PairAccuracy(PairAgreement):
    """Fraction of the pairs of different grades in the right order; ties in the scores count half."""

    name = "pairs"
    compute_by_segment = staticmethod(agreement.compute_pair_accuracies)

    @staticmethod
    def scale_net_share(share: F8) -> F8:
        """The share in the right order, ties counting half."""
        return (1.0 + share) / 2.0


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
