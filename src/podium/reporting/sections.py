"""The sections of a report, in order; empty sections are omitted."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping
from typing import Any

from podium.analysis.explain import explain
from podium.analysis.figures import rank_heatmap, weight_matrix
from podium.core.errors import PodiumError
from podium.core.tables import Grid, format_decimal, format_percent
from podium.evaluate.comparison_chart import draw_curves, draw_differences
from podium.evaluate.comparison_tables import metric_grid
from podium.reporting.blocks import Block, Figure, ReportTable, Section
from podium.reporting.inputs import ReportInputs
from podium.reporting.query_selection import SelectedQuery, select_queries

__all__ = ["build_section", "build_sections", "tuning_blocks"]

COLUMNS = 4  # methods shown in a heatmap
ROWS = 25  # rows per table
STANDINGS = "Standings; ranks: the range consistent with the votes"
AGREEMENT = 60  # experts up to which an agreement matrix is legible
EXPLAINED = 20_000  # rows up to which ranks are explained, for methods that read all rows
MAX_EXPLAINED_EXPERTS = 200  # experts per query up to which ranks are explained


def build_section(inputs: ReportInputs, name: str) -> Section:
    """Build one section by name; it may be empty."""
    title, blocks = PARTS[name]
    if name == "methods" and not inputs.has_judged_items:
        title = "Agreement of the methods"
    return Section(name, title, blocks(inputs))


def build_sections(inputs: ReportInputs, tuning: Any = None) -> tuple[Section, ...]:
    """Build all non-empty sections."""
    first = ["methods", "leaderboard"] if inputs.has_judged_items else ["leaderboard", "methods"]
    every = [
        *(build_section(inputs, name) for name in first),
        Section("tuning", "Tuning results", tuning_blocks(tuning)),
        *(build_section(inputs, name) for name in PARTS if name not in first),
    ]
    return tuple(s for s in every if s.blocks)


# -- methods -----------------------------------------------------------------------------------------------------


def _build_methods(inputs: ReportInputs) -> list[Block]:
    c = inputs.comparison
    if c is None or not inputs.has_judged_items:
        return [] if len(inputs.results) < 2 else _build_agreement(inputs)
    blocks: list[Block] = []
    if inputs.lines:
        band = "; bands are 95 % confidence intervals of the mean" if c.queries > 1 else ""
        caption = f"{inputs.lines[0].metric} at every depth, mean over {c.queries:,} queries{band}."
        blocks.append(Figure("curves", draw_curves(inputs.lines), caption))
    for metric in c.metrics:
        grid = metric_grid(c, metric)
        title = f"{grid.title}; differences from {c.baseline}"
        blocks.append(ReportTable(dataclasses.replace(grid, title=title), ROWS))
    if inputs.run is not None:
        blocks.append(f"The {inputs.run} was chosen on these labels, so its score is optimistic.")
    notes = c.notes
    if inputs.held_out is not None:
        left_out = (f"{name} is left out: {reason}" for name, reason in inputs.held_out.left_out.items())
        notes = (*notes, *left_out, *inputs.held_out.notes)
    return [*blocks, notes] if notes else blocks


def _build_agreement(inputs: ReportInputs) -> list[Block]:
    """The agreement of the methods, for data without labels."""
    alike = inputs.compute_similarity()
    rows = [(str(name), f"{int(c.tied.sum()):,}") for name, c in inputs.results.items()]
    text = f"Mean RBO between the rankings of two methods: {alike.mean():.3f}"
    text += f"; on the query where they differ most, {alike.min():.3f}." if len(alike) > 1 else "."
    return [text, ReportTable(Grid(("method", "tied items"), tuple(rows), 1, "Methods"))]


def _build_differences(inputs: ReportInputs) -> list[Block]:
    c = inputs.comparison
    if c is None or not inputs.has_judged_items or c.queries < 2 or len(c.evaluations) < 2:
        return []
    metric, best = c.metrics[0], inputs.best_method
    other = c.baseline if c.baseline != best else next(n for n in c.evaluations if n != best)
    two = dataclasses.replace(
        c, baseline=other, evaluations={other: c.evaluations[other], best: c.evaluations[best]}
    )
    rows = two.per_query(metric, name=best)
    moved = [r for r in rows if abs(r.difference) > 1e-12]
    if not moved:
        return [f"{best} and {other} are equal on every query."]
    up, down = sum(r.difference > 0 for r in moved), sum(r.difference < 0 for r in moved)
    counts = f"better on {up:,}, worse on {down:,}, equal on {len(rows) - up - down:,}"
    caption = f"{best} minus {other} in {metric}, one bar per query: {counts}."
    lines = tuple(
        (str(r.query), format_decimal(r.values[best]), format_decimal(r.values[other]),
         format_decimal(r.difference, sign=True), format_percent(r.judged[best]))
        for r in moved[:ROWS]
    )  # fmt: skip
    head = ("query", best, other, "difference", "judged")
    chart = draw_differences(two, metric)
    chart.concat[0] = chart.concat[0].properties(width=700, height=170)
    title = f"The {len(lines)} largest differences of {len(moved):,}"
    return [Figure("differences", chart, caption), ReportTable(Grid(head, lines, 1, title))]


# -- queries -----------------------------------------------------------------------------------------------------


def _build_queries(inputs: ReportInputs) -> list[Block]:
    blocks: list[Block] = []
    for n, chosen in enumerate(select_queries(inputs), 1):
        blocks += _build_query(inputs, chosen, n)
    return blocks


def _build_query(inputs: ReportInputs, chosen: SelectedQuery, number: int) -> list[Block]:
    order = _choose_methods(inputs, chosen)
    results = {n: inputs.results[n] for n in order}
    chart = rank_heatmap(inputs.preferences, chosen.query, results, inputs.request.labels)
    name = re.sub(r"[^A-Za-z0-9]+", "-", str(chosen.query)).strip("-")[:40]
    caption = f"Query {chosen.query}: {chosen.why}. {_format_figures(inputs, chosen, order)}"
    figure = Figure(f"query-{number}-{name}".rstrip("-"), chart, caption.strip())
    return [figure, *_explain_first_place(inputs, chosen)]


def _choose_methods(inputs: ReportInputs, chosen: SelectedQuery) -> list[str]:
    """The best method and those that differ most from it on this query."""
    best, names = inputs.best_method, inputs.leading_methods or list(inputs.results)
    apart = dict.fromkeys(names, 0.0)
    if inputs.comparison is not None and inputs.has_judged_items:
        metric = inputs.comparison.metrics[0]
        code = inputs.comparison.evaluations[best].queries.code_of(chosen.query)
        if code is not None:
            value = {n: float(inputs.comparison.evaluations[n][metric][code]) for n in names}
            apart = {n: abs(v - value[best]) if v == v else 0.0 for n, v in value.items()}
    return [best, *sorted((n for n in names if n != best), key=lambda n: -round(apart[n], 9))][:COLUMNS]


def _format_figures(inputs: ReportInputs, chosen: SelectedQuery, order: list[str]) -> str:
    c = inputs.comparison
    if c is None or not inputs.has_judged_items:
        return ""
    metric = c.metrics[0]
    code = c.evaluations[order[0]].queries.code_of(chosen.query)
    if code is None:
        return "It has no labels."
    figures = ", ".join(f"{n} {format_decimal(float(c.evaluations[n][metric][code]))}" for n in order)
    return f"{metric}: {figures}."


def _explain_first_place(inputs: ReportInputs, chosen: SelectedQuery) -> list[Block]:
    """Explain why the first item is first and what would put the second item there."""
    method = inputs.request.methods[inputs.best_method]
    p = inputs.preferences
    places = inputs.results[inputs.best_method].ranking(chosen.query, 2)
    rows = p.lists.rows + len(p.comparisons)
    many = int(p.select([chosen.query]).active_experts.sum()) > MAX_EXPLAINED_EXPERTS
    if len(places) < 2 or many or (not method.tags.per_query and rows > EXPLAINED):
        return []
    features = inputs.request.features if method.tags.uses_features else None
    try:
        explanation = explain(method, p, chosen.query, places[0], over=places[1], features=features)
    except PodiumError:
        return []
    return [tuple(f"{line}." for line in explanation.lines[2:])]


# -- experts -----------------------------------------------------------------------------------------------------


def _build_weights(inputs: ReportInputs) -> list[Block]:
    if not inputs.weighers:
        return []
    caption = f"Expert weights of {', '.join(inputs.weighers)}."
    if inputs.shown_only:
        caption = (
            "Weights of a conditional random field (crf) trained for this figure only, once on each half of the "
            "labeled queries: patterns that appear in both halves are unlikely to be chance."
        )
    readings = [_describe_readings(name, model) for name, model in inputs.weighers.items()]
    return [Figure("weights", weight_matrix(inputs.weighers), caption), *filter(None, readings)]


def _describe_readings(name: str, model: Any) -> str:
    from podium.methods.learned.crf import CrfAggregator

    if not isinstance(model, CrfAggregator):
        return ""
    by_reading: dict[str, list[str]] = {}
    for row in sorted(model.expert_weights(), key=lambda r: -r.share):
        by_reading.setdefault(row.reading, []).append(str(row.expert))
    readings = "; ".join(
        f"{reading}: {', '.join(who[:12])}{' ...' * (len(who) > 12)}" for reading, who in by_reading.items()
    )
    return f"{name}: {readings}."


def _build_experts(inputs: ReportInputs) -> list[Block]:
    d = inputs.diagnosis
    if d is None:
        return []
    words = (
        "alone: share of its items that no other expert lists; moved: how far the consensus moves without it"
    )
    if d.metric:
        words += f"; effect: {d.metric} of {d.method} with all experts, minus without this one"
    blocks: list[Block] = [tuple(f"{w}." for w in d.warnings)] if d.warnings else []
    blocks.append(ReportTable(dataclasses.replace(d.grid(), title=f"{d.headline()} ({words})"), 60))
    if 2 < len(d) <= AGREEMENT:
        caption = f"Agreement of experts, similar ones adjacent: {d.measure} of the items that both list"
        caption += ", and RBO of the lists." if d.overlap is not None else "."
        blocks.append(Figure("agreement", d.chart(), caption))
    return blocks


# -- votes and judgements ----------------------------------------------------------------------------------------


def _build_leaderboard(inputs: ReportInputs) -> list[Block]:
    board = inputs.board
    if board is None:
        return []
    level = f"{100 * board.settings.level:g}%"
    caption = f"Scores with {level} intervals, {board.tally.votes:,.10g} votes; {board.scheme.text}."
    advice = f"To determine the whole order, {board.stopping()[1]}."
    if len(board.rows) > 1:
        pairs = ", ".join(f"{p.first} against {p.second}" for p in board.next(5))
        advice += f" Compare next: {pairs}." if pairs else ""
    return [
        Figure("leaderboard", board.chart(), caption),
        ReportTable(dataclasses.replace(board.grid(digits=0), title=STANDINGS), 60),
        advice,
    ]


def _build_annotators(inputs: ReportInputs) -> list[Block]:
    crowd = inputs.crowd
    if crowd is None:
        return []
    level = f"{100 * crowd.level:g}%"
    headings = {n: n for n in ("annotator", "verdict", "flags", "quality")}
    headings |= {"interval": f"{level} interval", "judgements": "judged", "agreement": "as consensus"}
    grid = crowd.grid(headings | {"accuracy": "as labels", "seconds": "seconds"})
    caption = (
        f"Quality (1: always agrees with the others, 0.5: random, 0: always disagrees), {level} intervals."
    )
    sentences = tuple(f"{line[:1].upper()}{line[1:]}." for line in crowd.lines)
    table = ReportTable(dataclasses.replace(grid, title="Annotators to check first"), 40)
    return [sentences, Figure("annotators", crowd.chart(), caption), table]


# -- tuning ------------------------------------------------------------------------------------------------------


def tuning_blocks(document: Any) -> list[Block]:
    """Render the document of a tuning run: sentences first, plain values as bullets, records as tables."""
    if not isinstance(document, Mapping):
        return []
    intros = {"sentence": "", "recommended": "Recommended: "}
    sentences = [f"{intro}{document[k]}" for k, intro in intros.items() if isinstance(document.get(k), str)]
    rest = {k: v for k, v in document.items() if k not in ("sentence", "recommended", "verdict")}
    points = [
        f"{k}: {_format_cell(v)}" for k, v in rest.items() if not isinstance(v, list) and v not in ({}, None)
    ]
    notes = [f"{k}: {v}" for k, vs in rest.items() if isinstance(vs, list) for v in vs if isinstance(v, str)]
    blocks: list[Block] = [
        *sentences,
        *([tuple(points)] if points else []),
        *([tuple(notes)] if notes else []),
    ]
    for name, rows in rest.items():
        records = [r for r in rows if isinstance(r, dict)] if isinstance(rows, list) else []
        if records:
            head = tuple(dict.fromkeys(k for r in records for k in r))
            lines = tuple(tuple(_format_cell(r.get(k)) for k in head) for r in records)
            blocks.append(ReportTable(Grid(tuple(map(str, head)), lines, 1, str(name)), ROWS))
    return blocks


def _format_cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, dict):
        return ", ".join(f"{k}={_format_cell(v)}" for k, v in value.items())
    return "" if value is None else str(value)


PARTS: dict[str, tuple[str, Callable[[ReportInputs], list[Block]]]] = {
    "methods": ("Quality of the methods", _build_methods),
    "leaderboard": ("Leaderboard", _build_leaderboard),
    "weights": ("Experts that a learned model trusts", _build_weights),
    "queries": ("Queries to inspect", _build_queries),
    "differences": ("Differences per query", _build_differences),
    "experts": ("Experts", _build_experts),
    "annotators": ("Annotators", _build_annotators),
}
