"""Metrics as values: `NDCG @ 10`, parsed from "ndcg@10"; and measures of agreement between two rankings."""

from podium.metrics.base import Metric, MetricSpec, measure, parse, parse_all
from podium.metrics.binary import MAP, MRR, RBP, Bpref, Judged, Precision, Recall, RPrecision, Success
from podium.metrics.correlations import Footrule, KendallTauA, KendallTauB, SpearmanRho, TauAP
from podium.metrics.gains import ERR, NDCG

__all__ = [
    "ERR",
    "MAP",
    "MRR",
    "NDCG",
    "RBP",
    "Bpref",
    "Footrule",
    "Judged",
    "KendallTauA",
    "KendallTauB",
    "Metric",
    "MetricSpec",
    "Precision",
    "RPrecision",
    "Recall",
    "SpearmanRho",
    "Success",
    "TauAP",
    "measure",
    "parse",
    "parse_all",
]
