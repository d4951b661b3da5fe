"""Check whether the ids of experts and labels match. Ids that never match are usually written in two ways."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

import numpy as np

from podium.analysis.experts.agreement_matrices import ExpertListRows
from podium.data.ids import Id
from podium.data.labels import Labels
from podium.data.preferences import Preferences
from podium.kernels.dispatch import B1, F8, I8
from podium.kernels.grouping import number_rows

__all__ = ["find_unmatched_experts", "list_expert_items", "match_labels", "suggest_id_repair"]

REPAIRS: dict[str, Callable[[Id], str]] = {
    "if numbers and text were treated alike": str,
    "without surrounding blanks": lambda i: str(i).strip(),
    "ignoring case": lambda i: str(i).strip().lower(),
    "without leading zeros": lambda i: str(i).strip().lower().lstrip("0"),
    "without folders and extensions": lambda i: re.sub(
        r"\.\w+$", "", re.split(r"[/\\]", str(i).strip().lower())[-1]
    ),
    "without the part before the last colon or #": lambda i: re.split(r"[:#]", str(i).strip().lower())[-1],
}


def suggest_id_repair(mine: Iterable[Id], theirs: Iterable[Id]) -> str:
    """The usual id repair that would make the ids match, as a clause; empty if none does.

    >>> suggest_id_repair(["D1", "D2"], ["d1", "d7"]), suggest_id_repair(["a"], ["b"])
    ('; they would match ignoring case', '')
    """
    ours, others = list(dict.fromkeys(mine)), list(dict.fromkeys(theirs))
    for words, repair in REPAIRS.items():
        known = set(map(repair, others)) - {""}
        if any(repair(i) in known for i in ours):
            return f"; they would match {words}"
    return ""


def list_expert_items(preferences: Preferences, rows: ExpertListRows) -> tuple[I8, I8]:
    """Distinct (expert, slot) pairs of all list entries and votes."""
    votes = preferences.comparisons
    who = np.concatenate((rows.expert[rows.list], votes.expert, votes.expert))
    (expert, slot), _ = number_rows(who, np.concatenate((rows.slot, votes.winner, votes.loser)))
    return expert, slot


def find_unmatched_experts(preferences: Preferences, expert: I8, slot: I8) -> tuple[F8, B1, list[str]]:
    """Share of each expert's items that no other expert has, experts that share nothing, and warnings."""
    experts, index = len(preferences.experts), preferences.index
    listings = np.bincount(slot, minlength=len(index.items))
    count = np.bincount(expert, minlength=experts)
    lonely = np.bincount(expert[listings[slot] == 1], minlength=experts)
    share = np.divide(lonely, count, out=np.full(experts, np.nan), where=count > 0)
    answered = np.zeros((experts, len(index)), np.bool_)
    answered[expert, index.query_of_slot[slot]] = True
    company = answered.sum(axis=0)
    active = count > 0
    if active.sum() < 2:
        return np.full(experts, np.nan), np.zeros(experts, np.bool_), []
    no_query = active & ~(answered & (company > 1)).any(axis=1)
    no_item = active & ~no_query & (share == 1)
    sentences = _describe_unmatched(preferences, no_query, answered, expert, slot, "query")
    sentences += _describe_unmatched(preferences, no_item, answered, expert, slot, "item")
    return share, no_query | no_item, sentences


def _describe_unmatched(
    preferences: Preferences, which: B1, answered: B1, expert: I8, slot: I8, what: str
) -> list[str]:
    codes = np.flatnonzero(which)
    if not len(codes):
        return []
    index, names = preferences.index, preferences.experts
    if len(codes) > 2 and which.sum() == (np.bincount(expert, minlength=len(which)) > 0).sum():
        plural = "queries" if what == "query" else "items"
        return [
            f"no two experts share a {what}: either the {plural} differ, or their ids are written differently"
        ]

    def collect_ids(mask: B1) -> list[Id]:
        if what == "query":
            return index.queries.take(np.flatnonzero(answered[mask].any(axis=0))).tolist()
        return index.items.take(np.unique(slot[mask[expert]])).tolist()

    sentences = []
    for code in codes[:5]:
        own = np.arange(len(which)) == code
        mine, theirs = collect_ids(own), collect_ids(~own)
        verb = (
            "answers no query that any other expert answers"
            if what == "query"
            else "lists no item that any other expert lists"
        )
        sentences.append(
            f"{names[int(code)]!r} {verb}: it has {mine[:3]}, the others have {theirs[:3]}"
            f"{suggest_id_repair(mine, theirs)}"
        )
    if len(codes) > 5:
        sentences.append(f"{len(codes) - 5} more experts share no {what} with any other expert")
    return sentences


def match_labels(preferences: Preferences, labels: Labels, expert: I8, slot: I8) -> tuple[int, B1, list[str]]:
    """Number of queries with labels, experts without any judged item there, and warnings."""
    index, n = preferences.index, len(preferences.experts)
    known = labels.queries.codes_of(index.queries) >= 0
    if not known.any():
        ours, theirs = index.queries.tolist(), labels.queries.tolist()
        text = f"the labels share no query with the input: it has {ours[:3]}, they have {theirs[:3]}"
        return 0, np.zeros(n, np.bool_), [text + suggest_id_repair(ours, theirs)]
    graded = ~np.isnan(labels.align(index))
    here = known[index.query_of_slot[slot]]
    tried, met = (np.bincount(expert[m], minlength=n) > 0 for m in (here, here & graded[slot]))
    missed = tried & ~met
    if not missed.any():
        return int(known.sum()), missed, []
    judged = labels.index.items.tolist()
    if (missed == tried).all():
        ours = index.items.take(np.unique(slot[here])).tolist()
        text = f"the labels share no item with the input: it has {ours[:3]}, they have {judged[:3]}"
        return int(known.sum()), missed, [text + suggest_id_repair(ours, judged)]
    words = []
    for code in np.flatnonzero(missed)[:5]:
        mine = index.items.take(slot[(expert == code) & here]).tolist()
        who = f"no item of {preferences.experts[int(code)]!r} is judged"
        words.append(
            f"{who}: it has {mine[:3]}, the labels have {judged[:3]}{suggest_id_repair(mine, judged)}"
        )
    return int(known.sum()), missed, words
