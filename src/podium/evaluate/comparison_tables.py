"""A comparison as sentences and tables: what the figures show, and what they do not."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from podium.core import tables
from podium.evaluate.comparison import Comparison, ComparisonRow
from podium.evaluate.metric_curves import Curve
from podium.metrics.base import Metric, parse

__all__ = [
    "as_csv",
    "as_html",
    "as_latex",
    "as_markdown",
    "curve_grid",
    "curve_summary",
    "describe_verdict",
    "list_notes",
    "metric_grid",
    "pairs_grid",
    "query_grid",
    "to_document",
]

COLUMNS = (
    "name",
    "metric",
    "mean",
    "judged",
    "difference",
    "low",
    "high",
    "p",
    "p_holm",
    "wins",
    "ties",
    "losses",
)
UNEVEN = 0.1  # a larger difference of judged shares makes a comparison unreliable
FEW = 10  # with fewer queries, few differences are significant
SHOWN_DEPTHS = (1, 3, 5, 10, 20)
INTERVALS = {
    "t": "from Student's t, per difference",
    "randomisation": "from the randomisation test, per difference",
    "wilcoxon": "of the mean from Student's t (the test concerns the median), per difference",
}
NAMED = 4  # results named per sentence; the others are counted


# -- sentences -----------------------------------------------------------------------------------------------


def describe_verdict(found: Comparison, metric: Metric) -> str:
    """Better, worse or statistically tied, by the corrected p-value."""
    rows = [r for r in found.rows if r.metric == str(metric) and r.difference is not None]
    if not rows:
        return f"{found.baseline} is the only result; there is nothing to compare it with."
    if found.queries < 2:
        return "There is only one query; no conclusion about others is possible."
    alpha = 1 - found.level
    shown = [r for r in rows if r.p_holm is not None and r.p_holm < alpha]
    sentences = []
    for word, wanted in (("better", 1), ("worse", -1)):
        group = [r for r in shown if (r.difference or 0.0) * wanted > 0]
        group.sort(key=lambda r: -abs(r.difference or 0.0))
        if group:
            some = "; ".join(f"{r.name} ({_format_gain(r)})" for r in group[:NAMED])
            rest = _format_remainder(group)
            sentences.append(f"{word.capitalize()} than {found.baseline} in {metric}: {some}{rest}.")
    same = [r for r in rows if r.wins == r.losses == 0]
    open_ = [r for r in rows if r not in shown and r not in same]
    if open_:
        names = ", ".join(r.name for r in open_[:NAMED]) + _format_remainder(open_)
        sentences.append(f"Statistically tied with {found.baseline}: {names}.")
    if same:
        names = ", ".join(r.name for r in same[:NAMED]) + _format_remainder(same)
        verb = "equals" if len(same) == 1 else "equal"
        sentences.append(f"{names} {verb} {found.baseline} on every query.")
    return " ".join(sentences)


def _format_gain(row: ComparisonRow) -> str:
    span, p = tables.format_interval(row.low, row.high), tables.format_p_value(row.p_holm)
    shown = p.replace("<", "< ") if p.startswith("<") else f"= {p}"
    return f"{tables.format_decimal(row.difference, sign=True)}{f' [{span}]' if span else ''}, p {shown}"


def _format_remainder(rows: list[Any]) -> str:
    return f" and {len(rows) - NAMED} more" if len(rows) > NAMED else ""


def list_notes(found: Comparison) -> tuple[str, ...]:
    """Sentences on failed methods, number of queries, judged shares and missing queries."""
    sentences = [f"{name} is left out: {reason}." for name, reason in found.left_out.items()]
    if found.queries == 1:
        sentences.append("Only one query: differences have neither interval nor test.")
    elif found.queries < FEW:
        sentences.append(f"Only {found.queries} queries: few differences can be significant.")
    for metric in found.metrics:
        sentences += _describe_judged_shares(found, metric)
    sentences += _describe_unanswered(found)
    undefined = {m: max(e.undefined().get(m, 0) for e in found.evaluations.values()) for m in found.metrics}
    for m, n in undefined.items():
        if n:
            sentences.append(
                f"{m} is not defined on up to {n} of {found.queries} queries; these are excluded."
            )
    sentences += found.remarks
    return tuple(dict.fromkeys(sentences))


def _describe_unanswered(found: Comparison) -> list[str]:
    """One sentence per number of missing judged queries."""
    lacking: dict[int, list[str]] = {}
    for name, e in found.evaluations.items():
        lacking.setdefault(int((~e.answered).sum()), []).append(name)
    sentences = []
    for zero, names in lacking.items():
        if zero:
            who = (
                f"{', '.join(names[:NAMED])}{_format_remainder(names)} {'does' if len(names) == 1 else 'do'}"
            )
            what = "query, which counts" if zero == 1 else "queries, which count"
            sentences.append(f"{who} not answer {zero:,} judged {what} as 0.")
    return sentences


def _describe_judged_shares(found: Comparison, metric: str) -> list[str]:
    """Unjudged items count as not relevant, a disadvantage for results that were not judged."""
    where = _describe_depth(metric)
    shares = {r.name: r.judged for r in found.rows if r.metric == metric and math.isfinite(r.judged)}
    nothing = [name for name, share in shares.items() if share == 0]
    if nothing and len(nothing) == len(shares):
        return [f"No item {where} of any result is judged: the figures are meaningless."]
    sentences = [f"No item {where} of {name} is judged: its {metric} is meaningless." for name in nothing]
    left = {name: share for name, share in shares.items() if share > 0}
    if left and max(left.values()) - min(left.values()) > UNEVEN:
        low, high = min(left, key=lambda n: left[n]), max(left, key=lambda n: left[n])
        sentences.append(
            f"Judged {where}: {tables.format_percent(left[low])} of {low}, "
            f"{tables.format_percent(left[high])} of {high}; "
            f"unjudged items count as not relevant, so {low} may be underrated."
        )
    return sentences


def _describe_depth(metric: str) -> str:
    cutoff = parse(metric).cutoff
    return "in the ranking" if cutoff is None else f"in the top {cutoff}"


# -- tables --------------------------------------------------------------------------------------------------


def metric_grid(found: Comparison, metric: str) -> tables.Grid:
    """All results on one metric, best first."""
    rows = [r for r in found.rows if r.metric == metric]
    rows.sort(key=lambda r: -r.mean if math.isfinite(r.mean) else math.inf)
    head = (metric, "mean", "judged", "difference", f"{100 * found.level:.6g} % interval",
            "p (Holm)", "won/tied/lost")  # fmt: skip
    count = f"{found.queries:,} quer{'y' if found.queries == 1 else 'ies'}"
    return tables.Grid(head, tuple(_format_row(found, r) for r in rows), 1, f"{metric}, {count}")


def _format_row(found: Comparison, r: ComparisonRow) -> tuple[str, ...]:
    first = (r.name, tables.format_decimal(r.mean), tables.format_percent(r.judged))
    if r.difference is None:
        return (*first, "baseline" if r.name == found.baseline else "", "", "", "")
    count = f"{r.wins}/{r.ties}/{r.losses}"
    difference = tables.format_decimal(r.difference, sign=True)
    return (*first, difference, tables.format_interval(r.low, r.high), tables.format_p_value(r.p_holm), count)


def query_grid(found: Comparison, metric: str, name: str | None = None) -> tables.Grid:
    """All queries on one metric, largest difference first, with the judged share next to every value."""
    base = found.baseline
    head = ("query", base, "judged", "other", "value", "judged", "difference", "best")
    rows = []
    for r in found.per_query(metric, name=name):
        mine, theirs = (
            (tables.format_decimal(r.values[n]), tables.format_percent(r.judged[n])) for n in (base, r.other)
        )
        best = "tied" if r.winner is None else r.winner
        rows.append(
            (str(r.query), *mine, r.other, *theirs, tables.format_decimal(r.difference, sign=True), best)
        )
    title = f"{metric} by query: {base} and " + (name or "the result farthest from it")
    return tables.Grid(head, tuple(rows), 1, title)


def pairs_grid(found: Comparison, metric: str) -> tables.Grid:
    """All pairs on one metric."""
    head = ("better", "worse", "difference", "interval", "p (Holm)", "won/tied/lost")
    rows = []
    for p in found.pairs(metric):
        figures = (
            tables.format_decimal(p.difference, sign=True),
            tables.format_interval(p.low, p.high),
            tables.format_p_value(p.p_holm),
        )
        rows.append((p.better, p.worse, *figures, f"{p.wins}/{p.ties}/{p.losses}"))
    return tables.Grid(head, tuple(rows), 2, f"{metric}, all pairs")


def curve_grid(lines: Sequence[Curve]) -> tables.Grid:
    """One row per result and depth, with the band and the judged share."""
    head = ("result", "depth", f"{lines[0].metric}@depth", "low", "high", "judged")
    rows = tuple(
        (
            c.name,
            str(k),
            *map(tables.format_decimal, (c.mean[i], c.low[i], c.high[i])),
            tables.format_percent(c.judged[i]),
        )
        for c in lines
        for i, k in enumerate(c.depths)
    )
    return tables.Grid(head, rows, 1, f"{lines[0].metric} by depth")


def curve_summary(lines: Sequence[Curve]) -> tables.Grid:
    """A few depths side by side, each with its judged share in parentheses."""
    depths = lines[0].depths
    few = [k for k in SHOWN_DEPTHS if k in depths] or list(depths[:5])
    at = [depths.index(k) for k in few]

    def format_cell(c: Curve, i: int) -> str:
        share = tables.format_percent(c.judged[i])
        return tables.format_decimal(c.mean[i], 3) + (f" ({share})" if share else "")

    rows = tuple((c.name, *(format_cell(c, i) for i in at)) for c in lines)
    title = f"{lines[0].metric} by depth (judged share)"
    return tables.Grid((lines[0].metric, *(f"@{k}" for k in few)), rows, 1, title)


# -- documents -----------------------------------------------------------------------------------------------


def to_document(found: Comparison) -> dict[str, Any]:
    """Everything except the values by query."""
    facts = ("baseline", "test", "level", "queries", "rounds", "seed")
    plain: dict[str, Any] = tables.replace_nonfinite(
        {
            **{name: getattr(found, name) for name in facts},
            "rows": [asdict(row) for row in found.rows],
            "verdicts": {m: found.verdict(m) for m in found.metrics},
            "notes": list(found.notes),
            "left_out": dict(found.left_out),
        }
    )
    return plain


def _describe_tests(found: Comparison) -> str:
    tests = sum(r.p is not None for r in found.rows)
    return (
        f"Differences to {found.baseline} by query; {100 * found.level:.6g} % intervals {INTERVALS[found.test]}; "
        f"paired {found.test} test, Holm-corrected over {tests} test{'' if tests == 1 else 's'}; "
        "judged: share of the evaluated places that have a grade."
    )


def as_markdown(found: Comparison, further: Sequence[tables.Grid] = ()) -> str:
    """Tables, verdicts, notes."""
    out = []
    for metric, grid in zip(found.metrics, found.grids(), strict=True):
        out += [f"### {grid.title}", "", tables.format_markdown(grid), "", found.verdict(metric), ""]
    out += [f"- {note}" for note in found.notes] + ([""] if found.notes else [])
    for grid in further:
        out += [f"### {grid.title}", "", tables.format_markdown(grid), ""]
    return "\n".join([*out, _describe_tests(found)]) + "\n"


def as_latex(found: Comparison, further: Sequence[tables.Grid] = ()) -> str:
    """One table per metric; sentences as comments."""
    out = ["% needs \\usepackage{booktabs}"]
    for metric, grid in zip(found.metrics, found.grids(), strict=True):
        out += [
            _format_comment(found.verdict(metric)),
            tables.format_latex(grid, caption=f"{grid.title}. {_describe_tests(found)}"),
        ]
    out += [tables.format_latex(grid, caption=grid.title) for grid in further]
    out += [_format_comment(note) for note in found.notes]
    return "\n".join(out) + "\n"


def _format_comment(text: str) -> str:
    return "% " + " ".join(text.split())


def as_csv(found: Comparison) -> str:
    """One line per row."""
    return tables.format_csv(COLUMNS, ([getattr(r, c) for c in COLUMNS] for r in found.rows))


def as_html(found: Comparison, further: Sequence[tables.Grid] = (), *, page: bool) -> str:
    """Tables, verdicts and notes."""
    parts = []
    for metric, grid in zip(found.metrics, found.grids(), strict=True):
        parts += [tables.render_table(grid), tables.render_paragraph(found.verdict(metric))]
    parts += [tables.render_table(grid) for grid in further]
    parts += [tables.render_paragraph(note) for note in found.notes] + [
        tables.render_paragraph(_describe_tests(found))
    ]
    title = (
        f"{len(found.evaluations)} results on {found.queries:,} quer{'y' if found.queries == 1 else 'ies'}"
    )
    return tables.render_page(title, *parts) if page else tables.render_block(title, *parts)
