"""Sentences that summarize a report on annotators."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from podium.analysis.annotators.annotator_verdicts import FEW, MALICIOUS, OVERLAP, RANDOM, SENTENCE_ORDER
from podium.core.tables import format_p_value
from podium.core.text import format_count, join_names

if TYPE_CHECKING:
    from podium.analysis.annotators.result import Annotators
    from podium.analysis.annotators.reversal_check import Reversal

__all__ = ["describe_annotators"]

SHOWN = 5  # groups of copies
COEFFICIENTS = {
    "alpha_nominal": "Krippendorff's alpha nominal",
    "alpha_ordinal": "ordinal",
    "alpha_interval": "interval",
    "fleiss_kappa": "Fleiss' kappa",
    "cohen_kappa": "Cohen's kappa",
}


def describe_annotators(annotators: Annotators, flags: Sequence[str]) -> list[str]:
    """Counts, verdicts that need attention, flags, copies, and the effective number of judges."""
    counts = annotators.counts
    named = [v for v in SENTENCE_ORDER if v != OVERLAP or counts[v]]
    kinds = ", ".join(f"{counts[v]:,} {'with ' if v in (FEW, OVERLAP) else ''}{v}" for v in named)
    lines = [f"{format_count(len(annotators), 'annotator')}: {kinds}"]
    total = sum(row.judgements for row in annotators.rows) or 1
    advice = {MALICIOUS: _describe_reversal(annotators.reversal), RANDOM: "exclude them, or weight by quality",
              OVERLAP: "ask other annotators about the same items"}  # fmt: skip
    for verdict, what in advice.items():
        rows = [row for row in annotators.rows if row.verdict == verdict]
        if rows:
            part = sum(row.judgements for row in rows) / total
            lines.append(
                f"{verdict}: {part:.1%} of the judgements, by {join_names([row.annotator for row in rows])}; {what}"
            )
    for flag in flags:
        rows = [row for row in annotators.rows if flag in row.flags]
        if rows:
            lines.append(f"{flag}: {join_names([row.annotator for row in rows])}")
    return [
        *lines,
        *_describe_copies(annotators),
        f"effective number of independent judges, by volume: {annotators.effective:.1f}",
        *_describe_coefficients(annotators),
    ]


def _describe_coefficients(annotators: Annotators) -> list[str]:
    """Agreement beyond chance, in one line."""
    figures = [
        f"{COEFFICIENTS[c.name]} {c.value:.2f} ({c.low:.2f}..{c.high:.2f})" for c in annotators.coefficients
    ]
    return [f"agreement beyond chance: {', '.join(figures)}"] if figures else []


def _describe_reversal(reversal: Reversal | None) -> str:
    """Advise reversing their answers where that helps on held-out pairs, otherwise excluding them."""
    if reversal is None or math.isnan(reversal.reversed):
        return "exclude them"
    shares = f"held-out pairs of the others predicted: {reversal.left_out:.1%} without them, "
    shares += f"{reversal.reversed:.1%} with their answers reversed"
    p = format_p_value(reversal.p)
    if reversal.helps:
        return f"reversing their answers helps: {shares} (p {p if p.startswith('<') else f'= {p}'})"
    return f"exclude them; reversing their answers shows no benefit: {shares}"


def _describe_copies(annotators: Annotators) -> list[str]:
    lines = []
    for group in annotators.copies[:SHOWN]:
        lines.append(f"near-identical answers, mistakes included: {join_names(group, SHOWN)}")
    if len(annotators.copies) > SHOWN:
        lines.append(f"{len(annotators.copies) - SHOWN} more groups with near-identical answers")
    return lines
