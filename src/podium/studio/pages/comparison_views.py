"""Comparison of methods: means, curves, and differences per query."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from podium.core.errors import ParameterError
from podium.core.tables import Grid, format_decimal, format_percent
from podium.core.text import format_count
from podium.evaluate.comparison import compare_evaluations
from podium.evaluate.comparison_chart import draw_differences
from podium.metrics.base import parse
from podium.reporting.blocks import Block, Figure, ReportTable
from podium.reporting.inputs import ReportInputs
from podium.reporting.sections import build_section
from podium.studio.pages.view_context import METRICS, View, ViewContext, id_text, register_view

MOST = 20  # additional methods compared at once, besides the default ones
SHOWN = 200  # queries in a table


def _gather_comparison(c: ViewContext) -> tuple[tuple[str, ...], tuple[str, ...], ReportInputs]:
    chosen = tuple(c.get_values("m"))
    usual = tuple(c.work.choose_methods(c.data))
    further = [m for m in chosen if m not in usual]
    if len(further) > MOST:
        raise ParameterError(f"{len(further)} additional methods are selected; accepted: up to {MOST}")
    first = str(parse(c.get_value("metric", "ndcg@10")))
    metrics = tuple(dict.fromkeys((first, "ndcg@10", "map")))[:2]
    return chosen, metrics, c.collect_inputs(() if chosen == usual else chosen, metrics)


def _build_form(c: ViewContext, chosen: Sequence[str], metric: str) -> dict[str, Any]:
    """The options of the method form."""
    usual = list(c.work.choose_methods(c.data))
    models = c.models()
    every = list(dict.fromkeys([*usual, *chosen, *models]))
    return {
        "boxes": [(m, models.get(m, m), m in (chosen or usual)) for m in every],
        "others": [m for m in c.methods() if m not in every],
        "metric": metric,
        "metrics": METRICS,
        "labelled": c.data.labels is not None,
    }


@register_view("methods", "Methods", 30)
def build_methods_view(c: ViewContext) -> View:
    """Compare any methods, as in a report."""
    chosen, metrics, inputs = _gather_comparison(c)
    part = build_section(inputs, "methods")
    more = _build_form(c, chosen, metrics[0])
    names = list(inputs.results)
    if inputs.comparison is not None:  # the best one is compared with the next one first
        names.sort(key=lambda name: name != inputs.best_method)
    more |= {"names": names, "comparison": inputs.comparison is not None}
    if inputs.comparison is None:
        alike = inputs.compute_similarity()
        document = {"methods": list(inputs.results), "agreement": float(alike.mean())}
        rows = [(q, v) for q, v in zip(inputs.preferences.queries, alike.tolist(), strict=True)]
        head = ["query", "mean RBO of the methods"]
        return View(part.title, document, head, rows, part.blocks, "methods.html", more)
    document = inputs.comparison.to_dict() | {"curves": [dataclasses.asdict(line) for line in inputs.lines]}
    head, rows = tabulate_rows(inputs.comparison.rows)
    return View(part.title, document, head, rows, part.blocks, "methods.html", more)


@register_view("differences", "Differences", 40, applies=lambda data: data.labels is not None)
def build_differences_view(c: ViewContext) -> View:
    """Compare two methods per query; by default the best one and the baseline."""
    chosen, metrics, inputs = _gather_comparison(c)
    if inputs.comparison is None:
        raise ParameterError("there are no labels for these queries, so methods cannot be compared per query")
    metric, whole = metrics[0], inputs.comparison
    a, b = _select_two_methods(c, inputs)
    chosen_two = {b: whole.evaluations[b], a: whole.evaluations[a]}
    how: Any = {"test": whole.test, "level": whole.level, "rounds": whole.rounds, "seed": whole.seed}
    two = compare_evaluations(chosen_two, [metric], baseline=b, **how)
    rows = two.per_query(metric, name=a)
    up, down = sum(r.difference > 1e-12 for r in rows), sum(r.difference < -1e-12 for r in rows)
    counts = f"better on {format_count(up, 'query')}, worse on {down:,}, equal on {len(rows) - up - down:,}"
    queries = c.data.preferences.queries
    links = {
        str(r.query): c.build_link("query", ("q", id_text(r.query, queries)), ("m", a), ("m", b))
        for r in rows[:SHOWN]
        if queries.code_of(r.query) is not None
    }
    head = ("query", a, b, "difference", f"judged, {a}", f"judged, {b}")
    plain = [(r.query, r.values[a], r.values[b], r.difference, r.judged[a], r.judged[b]) for r in rows]
    document = {
        "metric": metric,
        "methods": [a, b],
        "pair": dataclasses.asdict(two.pairs(metric)[0]),
        "rows": [dict(zip(head, r, strict=True)) for r in plain],
    }
    more = _build_form(c, chosen, metric) | {"a": a, "b": b, "names": list(whole.evaluations)}
    blocks: list[Block] = [two.conclusion(metric) if two.queries > 1 else "There is only one query."]
    if len(rows) > 1 and any(r.difference for r in rows):
        chart = draw_differences(two, metric)
        chart.concat[0] = chart.concat[0].properties(width=700, height=170)
        caption = f"{a} minus {b} in {metric}, one bar per query: {counts}."
        blocks.append(Figure("differences", chart, caption))
    lines = tuple(
        (str(query), format_decimal(of_a), format_decimal(of_b), format_decimal(difference, sign=True),
         format_percent(judged_a), format_percent(judged_b))
        for query, of_a, of_b, difference, judged_a, judged_b in plain
    )  # fmt: skip
    blocks.append(ReportTable(Grid(head, lines, 1, f"{metric}: {counts}"), SHOWN))
    return View(f"{a} against {b}, per query", document, head, plain, blocks, "differences.html", more, links)


def _select_two_methods(c: ViewContext, inputs: ReportInputs) -> tuple[str, str]:
    assert inputs.comparison is not None
    names = list(inputs.comparison.evaluations)
    if len(names) < 2:
        raise ParameterError("there is only one method; choose two to compare")
    a = c.get_value("a", inputs.best_method)
    b = c.get_value("b") or next(n for n in [inputs.comparison.baseline, *names] if n != a)
    for name in (a, b):
        if name not in names:
            raise ParameterError(f"{name[:100]!r} is not among the methods; choose from {', '.join(names)}")
    if a == b:
        raise ParameterError("choose two different methods")
    return a, b


def tabulate_rows(rows: Sequence[Any]) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Dataclasses as a table."""
    head = [f.name for f in dataclasses.fields(rows[0])] if rows else ["empty"]
    return head, [tuple(getattr(r, name) for name in head) for r in rows]
