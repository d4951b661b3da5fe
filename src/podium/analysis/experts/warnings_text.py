"""Warnings about experts as sentences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from podium.core.text import join_names
from podium.data.ids import Id, Ids
from podium.kernels.dispatch import F8

__all__ = ["describe_warnings", "merge_copies"]

NAMED = 5  # groups of copies


def describe_warnings(
    experts: Ids,
    columns: Any,
    copies: Sequence[Any],
    apart: F8,
    flags: Sequence[Sequence[str]],
    metric: str | None,
) -> list[str]:
    """Sentences for the flags, most serious first."""

    def find_flagged(word: str) -> list[Id]:
        return [e for e, marks in zip(experts, flags, strict=True) if word in marks]

    sentences = _describe_reversed(experts, find_flagged("reversed"), apart, columns.measure)
    tied, silent, hurting = find_flagged("all tied"), find_flagged("no answers"), find_flagged("hurts")
    if tied:
        sentences.append(
            f"{_quote_names(tied)} {_choose_verb(tied, 'ties', 'tie')} all items in every list: "
            "are ranks or scores missing?"
        )
    if silent:
        sentences.append(
            f"{_quote_names(silent)} {_choose_verb(silent, 'has', 'have')} no answers for any query"
        )
    groups = merge_copies(copies)
    for group in groups[:NAMED]:
        least = min(p.agreement for p in copies if p.first in group)
        same = f"{_quote_names(group)} are near-duplicates ({columns.measure} from {least:.2f})"
        sentences.append(f"{same}: one opinion counted {len(group)} times")
    if len(groups) > NAMED:
        sentences.append(f"{len(groups) - NAMED} more groups of experts are near-duplicates")
    if hurting:
        effect = dict(zip(hurting, columns.left.effect[_find_codes(experts, hurting)].tolist(), strict=True))
        alone = ", each removed alone" if len(hurting) > 1 else ""
        worst = _quote_names(sorted(hurting, key=lambda e: effect[e]))
        sentences.append(f"{metric} of the consensus is higher without {worst}{alone}")
    return sentences


def _find_codes(experts: Ids, names: Sequence[Id]) -> list[int]:
    return [code for e in names if (code := experts.code_of(e)) is not None]


def _choose_verb(names: Sequence[Id], one: str, many: str) -> str:
    return one if len(names) == 1 else many


def _describe_reversed(experts: Ids, who: Sequence[Id], apart: F8, measure: str) -> list[str]:
    if not who:
        return []
    medians = apart[_find_codes(experts, who)]
    if measure != "tau-b":
        medians = (medians + 1) / 2
    shown = (
        f"median {measure} {medians.max():.2f}" if len(who) == 1 else f"{measure} down to {medians.min():.2f}"
    )
    if len(who) == int((~np.isnan(apart)).sum()):
        return [
            f"{_quote_names(who)} order their shared items in opposite ways ({shown}): is one of them reversed?"
        ]
    verb = "orders" if len(who) == 1 else "order"
    question = "is the list reversed?" if len(who) == 1 else "are the lists reversed?"
    return [
        f"{_quote_names(who)} {verb} the items shared with the others mostly in reverse ({shown}): {question}"
    ]


def _quote_names(names: Sequence[Id]) -> str:
    return join_names([repr(name) for name in names], last="and")


def merge_copies(copies: Sequence[Any]) -> list[list[Id]]:
    """Merge pairs of copies into groups, in order of appearance."""
    groups: list[list[Id]] = []
    for pair in copies:
        touched = [g for g in groups if pair.first in g or pair.second in g]
        merged = list(dict.fromkeys([*(e for g in touched for e in g), pair.first, pair.second]))
        groups = [g for g in groups if g not in touched] + [merged]
    return groups
