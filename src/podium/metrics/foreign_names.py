"""Metric names of trec_eval, ir_measures and ranx, rewritten as Podium writes them.

Names that differ in nothing but the word (`recip_rank`, `AP`, `hit_rate`) are aliases of their classes; this
module handles those that carry a cutoff or a parameter in the name.
"""

from __future__ import annotations

import re
from typing import Any

__all__ = ["rename_parameters", "rewrite_name"]

_FORMS = [
    # trec_eval: ndcg_cut_10, P_5, recall_1000, and ndcg_cut.10 as its option -m takes it
    (re.compile(r"(map|ndcg|p|recall|success|rprec)(?:_cut)?[._](\d+)", re.IGNORECASE), r"\1@\2"),
    # ranx: rbp.95; ndcg_burges@10, whose gain is 2^grade - 1
    (re.compile(r"(rbp)\.(\d+)(@\d+)?", re.IGNORECASE), r"\1(p=0.\2)\3"),
    (re.compile(r"(n?dcg)_burges(@\d+)?", re.IGNORECASE), r"\1\2:exp"),
]
_LEVEL = re.compile(r"(?P<name>\w+)(?P<cutoff>@\d+)?-l(?P<level>\d+)")  # ranx: map@100-l2

# ir_measures: AP(rel=2), nDCG(dcg='exp-log2')@10
_PARAMETERS = {"rel": "relevant", "dcg": "dialect"}
_DIALECTS = {"log2": "trec", "exp-log2": "exp"}


def rewrite_name(text: str) -> str:
    """The metric as Podium writes it; text in no other tool's form is returned as it is.

    >>> rewrite_name("ndcg_cut_10"), rewrite_name("rbp.95"), rewrite_name("map@100-l2"), rewrite_name("map")
    ('ndcg@10', 'rbp(p=0.95)', 'map(relevant=2)@100', 'map')
    """
    text = text.strip()
    if level := _LEVEL.fullmatch(text):
        return f"{level['name']}(relevant={level['level']}){level['cutoff'] or ''}"
    for form, ours in _FORMS:
        if form.fullmatch(text):
            return form.sub(ours, text)
    return text


def rename_parameters(given: dict[str, Any], known: set[str]) -> dict[str, Any]:
    """Parameters under Podium's names, where the metric has a parameter of that name."""
    renamed = {
        k if k in known or _PARAMETERS.get(k) not in known else _PARAMETERS[k]: v for k, v in given.items()
    }
    if "dialect" in renamed:
        renamed["dialect"] = _DIALECTS.get(str(renamed["dialect"]), renamed["dialect"])
    return renamed
