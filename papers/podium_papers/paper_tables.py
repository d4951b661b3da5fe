"""Published tables as data: reported figures by data set, and the Podium method for each row.

Figures are percentages, in the order of the table's metrics. Rows without a method are shown as published.
"""

from __future__ import annotations

from podium.core.errors import ParameterError
from podium.core.params import suggest_names
from podium_papers import beliefs_table, crowd_tables, inference_times, retargeting, retargeting_synthetic
from podium_papers.published_table import Figures, PublishedRow, PublishedTable, parse_figures

__all__ = ["TABLES", "find_table"]

LETOR = tuple(f"ndcg@{k}:letor" for k in range(1, 6)) + tuple(f"p@{k}" for k in range(1, 6)) + ("map",)
MQ2008, MQ2007, CROWD = "mq2008-agg", "mq2007-agg", "trec2011-crowd"
PAPER_1 = "Volkovs, Larochelle & Zemel, Learning to rank by aggregating expert preferences, CIKM 2012"
PAPER_2 = "Volkovs & Zemel, CRF framework for supervised preference aggregation, CIKM 2013"

# methods of the rows that learn, each defined once
_AS_PUBLISHED = "vectors=unit, optimizer=sgd, batch=1, rate=0.01, passes=200"
LR_I = f"svd(transform=binary, {_AS_PUBLISHED})"
LR_R = f"svd(transform=rank, {_AS_PUBLISHED})"
LR_LOG_R = f"svd(transform=log, {_AS_PUBLISHED})"
_FOR_CROWDS = "transform=binary, vectors=scaled, standardize=True, l2=0.5, rate=0.01, passes=50"
LR_CONSENSUS = f"svd(matrices=combined, {_FOR_CROWDS})"
LR_CONSENSUS_AS_PUBLISHED = f"svd(matrices=combined, transform=binary, {_AS_PUBLISHED})"
LR_HYBRID = f"svd(matrices=hybrid, min_preferences=1000, {_FOR_CROWDS})"
LR_LABELLED = f"svd(matrices=hybrid, min_preferences=1000, items=labelled, {_FOR_CROWDS})"
_HYBRID_AS_PUBLISHED = f"svd(matrices=hybrid, min_preferences=500, transform=binary, {_AS_PUBLISHED}"
CRF = "crf"
_AS_IN_CODE = "optimizer=sgd, batch=1, rate=2, decay=0, l2=0, average=1, passes=300, kept_pass=last"
CRF_AS_IN_CODE = f"crf(length_power=1, divisor=others, scaling=none, metric='ndcg@10:exp', {_AS_IN_CODE})"
FUSED = "fused"
FUSED_TREES = "fused(trees=100)"


def _figures_by_set(mq2008: str, mq2007: str) -> dict[str, Figures]:
    return {MQ2008: parse_figures(mq2008), MQ2007: parse_figures(mq2007)}


BORDA = _figures_by_set(
    "23.68 28.06 30.80 34.32 37.13 29.72 30.42 29.38 29.75 29.03 39.45",
    "19.02 20.14 20.81 21.28 21.88 24.88 25.24 25.69 25.80 25.97 32.52",
)
CPS = _figures_by_set(
    "26.52 31.38 34.59 37.63 40.04 31.63 32.27 32.27 31.66 30.64 41.02",
    "31.96 33.18 33.86 34.09 34.76 38.65 38.65 38.14 37.19 37.02 40.69",
)
SVP = _figures_by_set(
    "32.49 36.20 38.62 40.17 41.85 38.52 36.42 34.65 32.01 30.23 43.61",
    "35.82 35.91 36.53 37.16 37.50 41.61 40.28 39.50 38.88 38.10 42.73",
)
BRADLEY_TERRY = _figures_by_set(
    "38.05 39.24 40.77 41.79 42.62 44.77 39.73 36.26 33.19 30.28 44.35",
    "39.88 39.86 40.40 40.60 40.91 46.34 44.65 43.48 41.98 40.95 43.98",
)
PLACKETT_LUCE = _figures_by_set(
    "35.20 38.49 39.70 40.49 41.55 41.32 38.96 35.33 32.02 29.62 42.20",
    "40.63 40.39 40.26 40.71 40.96 46.93 45.10 43.09 42.32 41.09 43.64",
)
CONDORCET = _figures_by_set(
    "35.67 37.39 39.11 40.50 41.59 40.94 37.43 34.73 32.08 29.59 42.63",
    "37.31 37.63 38.03 38.37 38.66 43.26 42.14 40.94 39.85 38.75 42.56",
)
RRF = _figures_by_set(
    "38.77 40.73 43.48 45.70 47.17 44.89 41.32 38.82 36.51 34.13 47.71",
    "41.93 42.66 42.42 42.73 43.13 48.70 47.20 44.84 43.52 42.52 46.72",
)
PUBLISHED_LR_I = _figures_by_set(
    "40.22 43.94 46.33 48.30 50.16 46.94 44.00 41.45 38.52 36.28 49.54",
    "46.13 46.76 46.71 46.87 47.28 52.90 51.39 49.33 47.80 46.66 50.05",
)
PUBLISHED_LR_R = _figures_by_set(
    "40.90 42.75 45.83 47.93 49.68 47.45 42.92 41.20 38.77 36.22 49.26",
    "45.02 45.40 45.68 45.87 46.12 51.83 50.36 48.88 47.25 45.98 49.55",
)
PUBLISHED_LR_LOG_R = _figures_by_set(
    "42.81 44.53 47.02 49.00 50.69 48.85 44.13 41.84 39.09 36.50 50.32",
    "46.30 46.18 46.46 46.56 47.02 53.19 51.04 49.26 47.48 46.29 50.39",
)

PUBLISHED_LR_CONSENSUS = {CROWD: parse_figures("70.00 72.00 70.80 69.56 69.85 69.47 68.86 68.79 68.83 66.79")}
PUBLISHED_LR_LABELLED = {CROWD: parse_figures("80.00 79.50 77.46 75.63 74.10 73.80 73.29 73.18 72.78 71.13")}
PUBLISHED_LR_UNLABELLED = {
    CROWD: parse_figures("83.00 82.00 80.80 78.76 77.94 76.77 75.93 75.34 75.36 73.37")
}
# comment in public copies of the authors' code
CRF_IN_CODE = {MQ2008: parse_figures("42.29 44.99 47.54 49.05 51.03 48.67 44.58 42.08 38.75 36.55 50.41")}

_METASEARCH = PublishedTable(
    name="table3",
    title="Meta-search on the LETOR 4.0 rank aggregation sets",
    citation=f"{PAPER_1}, table 3",
    sets=(MQ2008, MQ2007),
    metrics=LETOR,
    rows=(
        PublishedRow("Borda, lists reversed", "borda(reversed_lists=True)", BORDA),
        PublishedRow("Borda", "borda"),
        PublishedRow(
            "CPS-best", tuple(f"weighted_cps(distance={d})" for d in ("kendall", "spearman", "footrule")), CPS
        ),
        PublishedRow("SVP", "svp", SVP),
        PublishedRow("Bradley-Terry", "bradley_terry", BRADLEY_TERRY, unlisted="below"),
        PublishedRow("Plackett-Luce", "plackett_luce", PLACKETT_LUCE, unlisted="below"),
        PublishedRow("Condorcet", "copeland", CONDORCET, unlisted="unknown"),
        PublishedRow("Condorcet, unlisted below", "copeland", CONDORCET, unlisted="below"),
        PublishedRow("Condorcet fusion", "condorcet", CONDORCET, unlisted="unknown"),
        PublishedRow("RRF", "rrf", RRF),
        PublishedRow("LR-I", LR_I, PUBLISHED_LR_I),
        PublishedRow("LR-R", LR_R, PUBLISHED_LR_R),
        PublishedRow("LR-logR", LR_LOG_R, PUBLISHED_LR_LOG_R),
    ),
    baseline="RRF",
    tested=("ndcg@5:letor", "map"),
    notes=(
        "The published BordaCount row is reproduced only with reversed lists (the largest rank on top).",
        "Bradley-Terry and Plackett-Luce read unlisted items as below the listed ones; if read as unknown, they "
        "need a strong prior to come close (bradley_terry(l2=200), plackett_luce(shape=31)).",
        "The published Condorcet is a count of pairwise wins (copeland) with unlisted items unknown: on MQ2007-agg "
        "its NDCG is within 0.13 points. With unlisted items below the listed ones, and as a sort by majorities "
        "(Condorcet fusion), the figures are others.",
        "NDCG as in LETOR's script; P and MAP count grades from 1 as relevant, as in the published figures.",
    ),
)

_CRF = PublishedTable(
    name="crf",
    title="The conditional random field on the LETOR 4.0 rank aggregation sets",
    citation=f"{PAPER_2}, tables 2 and 3",
    sets=(MQ2008, MQ2007),
    metrics=LETOR,
    rows=(
        PublishedRow("RRF", "rrf", RRF),
        PublishedRow("SVDsup", LR_LOG_R, PUBLISHED_LR_LOG_R),
        PublishedRow("CRF", CRF),
        PublishedRow("CRF as in the authors' code", CRF_AS_IN_CODE, CRF_IN_CODE),
        PublishedRow("CRF*", CRF, without={MQ2008: ("13", "20", "24", "25")}),
        PublishedRow("CRF pruned", CRF, pruned=True),
    ),
    baseline="SVDsup",
    tested=("ndcg@5:letor", "map"),
    notes=(
        "The paper finds CRF and SVDsup comparable; its figures for CRF are not available. Those beside `CRF as in "
        "the authors' code` are a comment in public copies of that code: steps by query at rate 2, no penalty, "
        "sums divided by the number of other items, NDCG@10, the last pass; weights start at 0 here and near 0 there.",
        "CRF* learns without experts 13, 20, 24 and 25 of MQ2008-agg, unused according to the paper; CRF "
        "pruned is refitted without those that its own weights do not use.",
    ),
)

_CROWD = PublishedTable(
    name="table2",
    title="Crowd judgements of TREC 2011",
    citation=f"{PAPER_1}, table 2",
    sets=(CROWD,),
    metrics=tuple(f"ndcg@{k}:letor" for k in range(1, 11)),
    rows=(
        PublishedRow("Condorcet", "condorcet",
            {CROWD: parse_figures("42.00 50.00 49.28 49.87 49.04 49.53 49.35 50.34 52.16 51.41")}),
        PublishedRow("Majority vote", "majority",
            {CROWD: parse_figures("59.00 64.00 62.80 63.95 63.96 64.45 64.93 66.34 66.46 64.83")}),
        PublishedRow("LR-consensus", LR_CONSENSUS, PUBLISHED_LR_CONSENSUS),
        PublishedRow("LR-labelled", LR_LABELLED, PUBLISHED_LR_LABELLED, labelled=True),
        PublishedRow("LR-unlabelled", LR_HYBRID, PUBLISHED_LR_UNLABELLED),
        PublishedRow("LR-consensus as published", LR_CONSENSUS_AS_PUBLISHED, PUBLISHED_LR_CONSENSUS),
        PublishedRow("LR-labelled as published", f"{_HYBRID_AS_PUBLISHED}, items=labelled)", PUBLISHED_LR_LABELLED,
            labelled=True),
        PublishedRow("LR-unlabelled as published", f"{_HYBRID_AS_PUBLISHED})", PUBLISHED_LR_UNLABELLED),
        PublishedRow("Net votes", "net_votes"),
        PublishedRow("CrowdAgg", "crowdagg"),
        PublishedRow("Dawid-Skene", "dawid_skene"),
    ),
    baseline="Majority vote",
    tested=("ndcg@10:letor",),
    ties="item",
    splits=5,
    labelled_only=True,
    choose_by="ndcg@10:letor",
    notes=(
        "Five random splits of the 100 topics into 60/20/20; only documents with a gold label are measured.",
        "The published run had 2,275 gold labels, these data have 3,275: the order of the rows and the size "
        "of the gaps are comparable, the digits are not. The published Condorcet is reached by no reading.",
        "LR-labelled computes features from judgements of labeled documents, in training and in the test topics; "
        "workers are counted on all judgements of the training topics.",
        "The settings of the LR rows differ from the published ones (scaled vectors, standardized features, a "
        "penalty, 1,000 judgements for own features), which the rows `as published` use.",
        "Net votes, CrowdAgg and Dawid-Skene see the judgements of all topics, but no label.",
        "LETOR's NDCG: the published N@2 are multiples of 0.50, which implies equal weights of places 1 and "
        "2.",
        "A topic that several splits test counts once in the paired tests, with the mean of its values.",
    ),
)  # fmt: skip

_ITEM_FEATURES = {MQ2008: "mq2008"}
_FUSED = PublishedTable(
    name="fused",
    title="The fused model against the best published one",
    citation=f"published figures: {PAPER_1}, table 3",
    sets=(MQ2008, MQ2007),
    metrics=LETOR,
    rows=(
        PublishedRow("RRF", "rrf", RRF),
        PublishedRow("LR-logR", LR_LOG_R, PUBLISHED_LR_LOG_R),
        PublishedRow("Fused", FUSED, PUBLISHED_LR_LOG_R),
        PublishedRow("Fused, all views", "fused(views=all)", PUBLISHED_LR_LOG_R),
        PublishedRow("Fused + trees", FUSED_TREES, PUBLISHED_LR_LOG_R),
        PublishedRow("Fused, all views + trees", "fused(trees=100, views=all)", PUBLISHED_LR_LOG_R),
        PublishedRow("Fused + item features", FUSED, PUBLISHED_LR_LOG_R, features=_ITEM_FEATURES),
        PublishedRow(
            "Fused + trees + item features", FUSED_TREES, PUBLISHED_LR_LOG_R, features=_ITEM_FEATURES
        ),
        PublishedRow("Stack", "stack", PUBLISHED_LR_LOG_R),
        PublishedRow("Stack + item features", "stack", PUBLISHED_LR_LOG_R, features=_ITEM_FEATURES),
    ),
    baseline="LR-logR",
    tested=("ndcg@5:letor", "map"),
    notes=(
        "The published figures next to Fused and Stack are those of LR-logR, the best published model.",
        "Paired tests use Podium's run of LR-logR: figures by query were not published.",
        "Fused has its defaults (for lists: log rank, place, absence and 6 / (5 + R)), with and without trees; "
        "`all views` adds singular vectors, sums of preferences and the consensus.",
        "Stack learns the weights of rrf, rbc and fused from scores out of fold of the training queries, so its "
        "figures are those of a nested estimate.",
        "The item features are the 46 of LETOR's MQ2008 on the same documents; LR-logR did not use them.",
    ),
)

_INDIVIDUAL = PublishedTable(
    name="figure3",
    title="SVD features of each expert against those of the combined matrix",
    citation=f"{PAPER_1}, figure 3",
    sets=(MQ2008, MQ2007),
    metrics=LETOR,
    rows=(
        PublishedRow("RRF", "rrf", RRF),
        PublishedRow("individual", LR_LOG_R, PUBLISHED_LR_LOG_R),
        PublishedRow("combined", f"svd(transform=log, matrices=combined, {_AS_PUBLISHED})"),
    ),
    baseline="individual",
    tested=("ndcg@5:letor", "map"),
    notes=(
        "The figure is a chart without numbers; those beside `individual` are LR-logR of table 3. According to the "
        "paper, the combined model is comparable to RRF and significantly below the individual one.",
    ),
)

_RANKS = PublishedTable(
    name="rank-sweep",
    title="SVD features of rank p",
    citation=f"{PAPER_1}, section 6.1",
    sets=(MQ2008, MQ2007),
    metrics=LETOR,
    rows=tuple(
        PublishedRow(
            f"p = {p}",
            f"svd(transform=log, components={p}, {_AS_PUBLISHED})",
            PUBLISHED_LR_LOG_R if p == 1 else {},
        )
        for p in (1, 2, 3, 5)
    ),
    baseline="p = 1",
    tested=("ndcg@5:letor", "map"),
    notes=("The paper reports that p = 1 was best, without figures for other ranks.",),
)

_MAJORITY_WRONG = PublishedTable(
    name="majority-wrong",
    title="Queries where the majority of the experts is wrong",
    citation=f"{PAPER_1}, section 6.1 and figure 4",
    sets=(MQ2008, MQ2007),
    metrics=LETOR,
    rows=(
        PublishedRow("RRF", "rrf"),
        PublishedRow("Borda", "borda"),
        PublishedRow("Condorcet", "copeland"),
        PublishedRow("LR-logR", LR_LOG_R),
        PublishedRow("CRF", CRF),
        PublishedRow("Fused", FUSED),
    ),
    baseline="RRF",
    tested=("ndcg@5:letor", "map"),
    where="majority-wrong",
    notes=(
        "Measured on the test queries in which, over all pairs of items with different grades, the majority of the "
        "experts that prefer one of the two is wrong more often than right; the paper describes such queries "
        "without a definition, and gives no figures.",
        "The labels choose the queries, so the figures of RRF, Borda and Condorcet are low by construction.",
    ),
)

_STUDIES = (inference_times.TABLE, beliefs_table.TABLE, retargeting.TABLE, retargeting_synthetic.TABLE)
TABLES = {
    t.name: t
    for t in (
        _METASEARCH,
        _CRF,
        _CROWD,
        _FUSED,
        _INDIVIDUAL,
        _RANKS,
        _MAJORITY_WRONG,
        *crowd_tables.TABLES,
        *_STUDIES,
    )
}


def find_table(name: str) -> PublishedTable:
    """The table of that name, or an error that lists the known names."""
    if name not in TABLES:
        raise ParameterError(f"there is no table {name!r}; {suggest_names(name, TABLES)}")
    return TABLES[name]
