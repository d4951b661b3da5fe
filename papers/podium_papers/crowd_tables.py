"""The tables of the crowdsourcing paper, and the accuracy of estimated annotator qualities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from podium.analysis.annotators.crowd_judgements import PRIOR, AgreementCounts, CrowdJudgements
from podium.data.dataset import Dataset
from podium.kernels.dispatch import B1, F8, I8
from podium.methods.base import make
from podium.metrics.agreement import spearman_rho
from podium_papers.published_table import Figures, PublishedRow, PublishedTable, parse_figures

__all__ = ["TABLES", "QualityComparison", "compare_qualities", "compute_divergence"]

TREC, MIREX, READING = "trec2011-crowd", "mirex2005", "reading-level"
PAPER = "Niu, Lan, Guo, Cheng, Yu & Long, Listwise approach for rank aggregation in crowdsourcing, CIKM 2015"
DEPTHS = (3, 5, 7, 9, 10)
METRICS = (*(f"p@{k}" for k in DEPTHS), "map", *(f"ndcg@{k}:exp" for k in DEPTHS), "rbp(p=0.95)")
ENOUGH = 10  # pairs of known order required to measure an annotator's true quality
CLASSES = 10  # of quality
FITTED = "podium annotators"  # name of the row that needs no method


def _figures_by_set(trec: str, mirex: str) -> dict[str, Figures]:
    return {TREC: parse_figures(trec), MIREX: parse_figures(mirex)}


CONDORCET = _figures_by_set(
    "59.7 60.4 62.1 62.6 62.1 56.0 59.1 59.7 60.9 61.3 61.1 56.4",
    "36.4 45.5 46.8 43.4 41.8 47.2 52.3 59.6 51.4 47.8 41.4 17.0",
)
GREEDY = _figures_by_set(
    "71.0 69.8 67.4 66.1 65.7 60.4 71.3 70.4 68.8 67.9 67.6 62.1",
    "27.3 41.8 45.5 42.4 40.9 45.9 44.4 52.5 49.0 46.2 39.9 17.1",
)
BRADLEY_TERRY = _figures_by_set(
    "37.3 37.0 38.6 37.8 37.7 32.6 37.7 37.5 38.4 37.9 37.9 34.5",
    "24.2 40.0 42.9 42.4 49.9 44.1 41.2 49.6 46.0 44.7 38.5 17.0",
)
MPM = _figures_by_set(
    "69.0 69.0 67.1 66.3 65.7 57.0 68.7 68.7 67.6 67.1 66.7 58.0",
    "48.5 50.9 49.4 47.5 44.6 51.6 69.5 69.3 61.2 57.6 50.1 17.9",
)
CROWD_BT = _figures_by_set(
    "40.3 41.6 41.6 42.2 41.7 53.4 40.4 41.2 41.3 41.7 41.4 47.3",
    "57.6 56.4 50.7 46.5 44.6 60.8 81.4 80.1 64.0 57.8 49.6 20.0",
)
EM_ELO = _figures_by_set(
    "69.0 66.6 67.3 65.4 64.9 58.8 69.1 67.6 67.9 66.7 66.3 60.2",
    "36.4 43.6 45.5 42.4 40.9 49.5 60.6 62.9 56.8 51.1 43.6 20.3",
)
CROWDAGG_NDCG = _figures_by_set(
    "71.3 69.4 68.0 67.3 67.3 63.5 71.5 70.2 69.2 68.7 68.6 65.7",
    "69.7 60.0 54.6 48.5 45.5 71.2 95.5 88.0 70.3 62.1 53.2 21.4",
)
CROWDAGG_RBP = _figures_by_set(
    "68.0 68.4 68.6 67.9 67.4 63.6 68.3 68.6 68.6 68.2 67.9 65.8",
    "69.7 60.0 54.6 48.5 45.5 71.3 95.5 87.9 70.2 62.0 53.1 21.5",
)

BASELINE = "Net votes"
_AS_PUBLISHED = (
    "pair=difference, unjudged=even, scale=all, quality=query, decided_by=all, steps=full, "
    "prior_agree=0, prior_disagree=0"
)
_ROWS = (
    PublishedRow(BASELINE, "net_votes"),
    PublishedRow("Copeland", "copeland"),
    PublishedRow("CondorcetFuse", "condorcet", CONDORCET),
    PublishedRow("GreedyOrder", "greedy", GREEDY),
    PublishedRow("Bradley-Terry", "bradley_terry", BRADLEY_TERRY),
    PublishedRow("MPM-eq", "mpm"),
    PublishedRow("MPM", "mpm(adherence=True, pooled=True)", MPM),
    PublishedRow("Crowd-BT-eq", "crowd_bt(quality=False)"),
    PublishedRow("Crowd-BT", "crowd_bt", CROWD_BT, quality=True),
    PublishedRow("EM-Elo-eq", "em_elo(quality=False)"),
    PublishedRow("EM-Elo", "em_elo", EM_ELO, quality=True),
    PublishedRow("Dawid-Skene-eq", "dawid_skene(quality=False)"),
    PublishedRow("Dawid-Skene", "dawid_skene", quality=True),
    PublishedRow("CrowdAgg-NDCG as published", f"crowdagg({_AS_PUBLISHED})", CROWDAGG_NDCG, quality=True),
    PublishedRow(
        "CrowdAgg-RBP as published", f"crowdagg(measure=rbp, {_AS_PUBLISHED})", CROWDAGG_RBP, quality=True
    ),
    PublishedRow("CrowdAgg-NDCG-eq", "crowdagg(quality=none)"),
    PublishedRow("CrowdAgg-NDCG", "crowdagg", CROWDAGG_NDCG, quality=True),
    PublishedRow("CrowdAgg-RBP-eq", "crowdagg(measure=rbp, quality=none)"),
    PublishedRow("CrowdAgg-RBP", "crowdagg(measure=rbp)", CROWDAGG_RBP, quality=True),
)


def _select_rows(data: str | None, *more: PublishedRow) -> tuple[PublishedRow, ...]:
    """The rows with the figures published for one data set, and others after the baseline."""
    own = [replace(r, published={k: v for k, v in r.published.items() if k == data}) for r in _ROWS]
    return (own[0], *more, *own[1:])


_NO_LEARNING = (
    "Nothing is learned from labels: every method sees all judgements and is measured on all queries at once."
)
_EQUAL = (
    "Rows in -eq treat all annotators as equally good. CrowdAgg as published estimates qualities per query; "
    "ours does so over all queries, with a prior."
)

TABLES = (
    PublishedTable(
        name="crowd-trec2011",
        title="Crowd judgements of TREC 2011, without supervision",
        citation=f"{PAPER}, table 2 (a)",
        sets=(TREC,),
        metrics=METRICS,
        rows=_select_rows(TREC, PublishedRow("Majority vote", "majority")),
        baseline=BASELINE,
        tested=("ndcg@10:exp", "rbp(p=0.95)"),
        ties="item",
        labelled_only=True,
        whole=True,
        annotators=True,
        notes=(
            _NO_LEARNING,
            "The order of the documents with a gold label is measured, 3,275 here; the published run's "
            "labels are unknown, so the order of the rows is comparable, the digits are not.",
            _EQUAL,
        ),
    ),
    PublishedTable(
        name="crowd-mirex2005",
        title="Votes on the similarity of melodies",
        citation=f"{PAPER}, table 2 (b)",
        sets=(MIREX,),
        metrics=METRICS,
        rows=_select_rows(MIREX),
        baseline=BASELINE,
        tested=("ndcg@10:exp", "rbp(p=0.95)"),
        ties="item",
        labelled_only=True,
        whole=True,
        annotators=True,
        comparable=False,
        notes=(
            _NO_LEARNING,
            "The collectors made these labels from the same votes, so the figures are agreement, not "
            "accuracy; the published ones use experts' labels, which are not available, and are not "
            "comparable.",
            "The published divergences between estimated and true qualities are 1.43 (CrowdAgg-NDCG), 2.14 (EM-Elo) "
            "and 2.86 (Crowd-BT), by experts' labels; the classes of quality are not stated.",
            "Groups 1 to 4 of the collectors are grades 4 to 1, later groups are grade 0.",
            _EQUAL,
        ),
    ),
    PublishedTable(
        name="crowd-reading",
        title="Votes on how hard texts are to read, against the school grades of the texts",
        citation="data: Chen, Bennett, Collins-Thompson & Horvitz, Pairwise ranking aggregation in a crowdsourced "
        "setting, WSDM 2013; methods as in the paper on CrowdAgg",
        sets=(READING,),
        metrics=("pairs", "tau_b"),
        rows=_select_rows(None),
        baseline=BASELINE,
        tested=(),  # one query allows no paired test
        ties="item",
        whole=True,
        annotators=True,
        notes=(
            _NO_LEARNING,
            "pairs: share of the pairs of texts of different grades in the right order; ties count half.",
            _EQUAL,
        ),
    ),
)


class QualityComparison(NamedTuple):
    """Estimated annotator qualities against the share of their pairs that the labels confirm.

    MPM is excluded: its adherence is not a probability. The divergence is that of Kullback and Leibler, in nats,
    from the distribution of the true qualities of a query's annotators to that of the estimated ones, in ten
    classes with half an annotator added to each; the paper does not define its classes.
    """

    name: str
    correlation: float  # of ranks
    error: float  # mean absolute difference
    estimated: float  # mean
    true: float
    divergence: float  # of the distributions of estimated and true qualities, the mean over queries
    annotators: int
    converged: bool | None = None  # whether the method's estimates did; None without a method


def compare_qualities(rows: Sequence[PublishedRow], data: Dataset) -> tuple[QualityComparison, ...]:
    """For every row whose method estimates qualities, and for `podium.analysis.annotators`."""
    if data.labels is None:
        return ()
    crowd = CrowdJudgements(data.preferences)
    gold = crowd.count_against_scores(data.labels.align(data.preferences.index))
    some = gold.same + gold.other >= ENOUGH
    # by query: the annotators with a pair of known order, and their true qualities there
    by_query = []
    for query in data.preferences.queries:
        one = CrowdJudgements(data.preferences.select([query]))
        counts = one.count_against_scores(data.labels.align(one.preferences.index))
        known = np.flatnonzero(counts.same + counts.other > 0)
        who = data.preferences.experts.codes_of(one.preferences.experts)[known]
        by_query.append((who, (counts.same / np.maximum(counts.same + counts.other, 1e-300))[known]))
    found = [_compare_quality(FITTED, _mean_quality(crowd.count_against_others()), gold, some, by_query)]
    for row in rows:
        if row.quality and isinstance(row.method, str):
            consensus = make(row.method).aggregate(data.preferences)
            assert consensus.expert_weights is not None
            compared = _compare_quality(row.name, consensus.expert_weights, gold, some, by_query)
            found.append(compared._replace(converged=consensus.diagnostics.converged))
    return tuple(found)


def _mean_quality(counts: AgreementCounts) -> F8:
    same, other = counts.same_worth, counts.other_worth
    return np.asarray((same + PRIOR) / (same + other + 2 * PRIOR), np.float64)


def compute_divergence(estimated: F8, true: F8) -> float:
    """From the distribution of true qualities to that of estimated ones: see `QualityComparison`."""
    share = [
        (np.histogram(q, CLASSES, (0.0, 1.0))[0] + 0.5) / (len(q) + CLASSES / 2) for q in (true, estimated)
    ]
    return float(np.sum(share[0] * np.log(share[0] / share[1])))


def _compare_quality(
    name: str, estimated: F8, gold: AgreementCounts, some: B1, by_query: Sequence[tuple[I8, F8]]
) -> QualityComparison:
    true = gold.same[some] / (gold.same[some] + gold.other[some])
    guess = estimated[some]
    return QualityComparison(
        name,
        spearman_rho(guess, true),
        float(np.abs(guess - true).mean()) if len(true) else np.nan,
        float(guess.mean()) if len(true) else np.nan,
        float(true.mean()) if len(true) else np.nan,
        float(np.mean([compute_divergence(estimated[who], exact) for who, exact in by_query if len(who)])),
        len(true),
    )
