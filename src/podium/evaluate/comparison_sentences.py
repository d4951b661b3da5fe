"""A comparison in sentences: what the figures show, and what they do not."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from podium.core.tables import format_decimal, format_interval, format_p_value, format_percent
from podium.core.text import join_names
from podium.metrics.base import Metric, parse

if TYPE_CHECKING:
    from podium.evaluate.comparison_result import Comparison, ComparisonRow

__all__ = ["INTERVALS", "describe_conclusion", "describe_tests", "list_notes"]

UNEVEN = 0.1  # a larger difference of judged shares makes a comparison unreliable
FEW = 10  # with fewer queries, few differences are significant
INTERVALS = {
    "t": "from Student's t, per difference",
    "randomization": "from the randomization test, per difference",
    "wilcoxon": "of the mean from Student's t (the test concerns the median), per difference",
}
NAMED = 4  # results named per sentence; the others are counted


def describe_conclusion(comparison: Comparison, metric: Metric) -> str:
    """Better, worse or statistically tied, by the corrected p-value."""
    rows = [r for r in comparison.rows if r.metric == str(metric) and r.difference is not None]
    if not rows:
        return f"{comparison.baseline} is the only result; there is nothing to compare it with."
    if comparison.queries < 2:
        return "There is only one query; no conclusion about others is possible."
    alpha = 1 - comparison.level
    shown = [r for r in rows if r.p_holm is not None and r.p_holm < alpha]
    sentences = []
    for word, wanted in (("better", 1), ("worse", -1)):
        group = [r for r in shown if (r.difference or 0.0) * wanted > 0]
        group.sort(key=lambda r: -abs(r.difference or 0.0))
        if group:
            some = join_names([f"{r.name} ({_format_gain(r)})" for r in group], NAMED, between="; ")
            sentences.append(f"{word.capitalize()} than {comparison.baseline} in {metric}: {some}.")
    same = [r for r in rows if r.wins == r.losses == 0]
    open_ = [r for r in rows if r not in shown and r not in same]
    if open_:
        names = join_names([r.name for r in open_], NAMED)
        sentences.append(f"Statistically tied with {comparison.baseline}: {names}.")
    if same:
        names = join_names([r.name for r in same], NAMED)
        verb = "equals" if len(same) == 1 else "equal"
        sentences.append(f"{names} {verb} {comparison.baseline} on every query.")
    return " ".join(sentences)


def _format_gain(row: ComparisonRow) -> str:
    span, p = format_interval(row.low, row.high), format_p_value(row.p_holm)
    shown = p.replace("<", "< ") if p.startswith("<") else f"= {p}"
    return f"{format_decimal(row.difference, sign=True)}{f' [{span}]' if span else ''}, p {shown}"


def list_notes(comparison: Comparison) -> tuple[str, ...]:
    """Sentences on failed methods, number of queries, judged shares and missing queries."""
    sentences = [f"{name} is left out: {reason}." for name, reason in comparison.left_out.items()]
    if comparison.queries == 1:
        sentences.append("Only one query: differences have neither interval nor test.")
    elif comparison.queries < FEW:
        sentences.append(f"Only {comparison.queries} queries: few differences can be significant.")
    for metric in comparison.metrics:
        sentences += _describe_judged_shares(comparison, metric)
    sentences += _describe_unanswered(comparison)
    for m in comparison.metrics:
        n = max(e.count_undefined().get(m, 0) for e in comparison.evaluations.values())
        if n:
            sentences.append(
                f"{m} is not defined on up to {n} of {comparison.queries} queries; these are excluded."
            )
    sentences += comparison.remarks
    return tuple(dict.fromkeys(sentences))


def _describe_unanswered(comparison: Comparison) -> list[str]:
    """One sentence per number of missing judged queries."""
    lacking: dict[int, list[str]] = {}
    for name, e in comparison.evaluations.items():
        lacking.setdefault(int((~e.has_result).sum()), []).append(name)
    sentences = []
    for zero, names in lacking.items():
        if zero:
            who = f"{join_names(names, NAMED)} {'does' if len(names) == 1 else 'do'}"
            what = "query, which counts" if zero == 1 else "queries, which count"
            sentences.append(f"{who} not answer {zero:,} judged {what} as 0.")
    return sentences


def _describe_judged_shares(comparison: Comparison, metric: str) -> list[str]:
    """Unjudged items count as not relevant, a disadvantage for results that were not judged."""
    cutoff = parse(metric).cutoff
    where = "in the ranking" if cutoff is None else f"in the top {cutoff}"
    shares = {r.name: r.judged for r in comparison.rows if r.metric == metric and math.isfinite(r.judged)}
    nothing = [name for name, share in shares.items() if share == 0]
    if nothing and len(nothing) == len(shares):
        return [f"No item {where} of any result is judged: the figures are meaningless."]
    sentences = [f"No item {where} of {name} is judged: its {metric} is meaningless." for name in nothing]
    left = {name: share for name, share in shares.items() if share > 0}
    if left and max(left.values()) - min(left.values()) > UNEVEN:
        low, high = min(left, key=lambda n: left[n]), max(left, key=lambda n: left[n])
        sentences.append(
            f"Judged {where}: {format_percent(left[low])} of {low}, "
            f"{format_percent(left[high])} of {high}; "
            f"unjudged items count as not relevant, so {low} may be underrated."
        )
    return sentences


def describe_tests(comparison: Comparison) -> str:
    """What was tested, and how."""
    count = sum(r.p is not None for r in comparison.rows)
    return (
        f"Differences from {comparison.baseline} by query; "
        f"{100 * comparison.level:.6g} % intervals {INTERVALS[comparison.test]}; "
        f"paired {comparison.test} test, Holm-corrected over {count} test{'s' * (count != 1)}; "
        "judged: share of the evaluated places that have a grade."
    )
