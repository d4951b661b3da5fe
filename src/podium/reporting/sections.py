"""The sections of a report, in order; empty sections are omitted."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from podium.analysis.explain import explain
from podium.analysis.figures import rank_heatmap, weight_matrix
from podium.core.errors import ParameterError, PodiumError
from podium.core.params import suggest_names
from podium.core.tables import Grid, format_decimal, format_percent
from podium.core.text import format_count
from podium.data.ids import Id
from podium.evaluate.comparison_chart import draw_curves, draw_differences
from podium.evaluate.comparison_tables import metric_grid
from podium.kernels.dispatch import F8, I8
from podium.reporting.blocks import Block, Figure, ReportTable, Section
from podium.reporting.inputs import ReportInputs

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
    of_votes = () if inputs.vote_parts is None else inputs.vote_parts.list_sections()
    every = [build_section(inputs, name) for name in first]
    at = first.index("leaderboard") + 1
    every[at:at] = of_votes
    every += [
        Section("tuning", "Tuning results", tuning_blocks(tuning)),
        *(build_section(inputs, name) for name in PARTS if name not in first),
    ]
    return tuple(s for s in every if s.blocks)


# -- methods -----------------------------------------------------------------------------------------------------


def _build_methods(inputs: ReportInputs) -> list[Block]:
    c = inputs.comparison
    if c is None or not inputs.has_judged_items:
        if len(inputs.results) < 2:
            return []
        alike = inputs.compute_similarity()
        text = f"Mean RBO between the rankings of two methods: {alike.mean():.3f}"
        text += f"; on the query where they differ most, {alike.min():.3f}." if len(alike) > 1 else "."
        rows = tuple((str(name), f"{int(result.tied.sum()):,}") for name, result in inputs.results.items())
        return [text, ReportTable(Grid(("method", "tied items"), rows, 1, "Methods"))]
    blocks: list[Block] = []
    if inputs.lines:
        band = "; bands are 95 % confidence intervals of the mean" if c.queries > 1 else ""
        caption = (
            f"{inputs.lines[0].metric} at every depth, mean over {format_count(c.queries, 'query')}{band}."
        )
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


class SelectedQuery(NamedTuple):
    """A query and why it is shown."""

    query: Id
    why: str


def _select_queries(inputs: ReportInputs) -> list[SelectedQuery]:
    """The requested queries, or up to three informative ones; only queries with lists."""
    p = inputs.preferences
    listing = np.diff(p.lists.row_starts) > 0
    if inputs.request.queries:
        known = set(p.queries)
        for query in inputs.request.queries:
            if query not in known:
                raise ParameterError(
                    f"there is no query {query!r}; {suggest_names(str(query), map(str, p.queries))}"
                )
        return [
            SelectedQuery(q, "requested") for q in inputs.request.queries if listing[p.index.query_code(q)]
        ]
    listed = np.flatnonzero(listing)
    if len(listed) < 2:
        return [SelectedQuery(p.queries[int(q)], "the only query with lists") for q in listed]
    select = _select_by_labels if inputs.has_judged_items else _select_by_agreement
    picked = select(inputs, listed)
    return list({c.query: c for c in reversed(picked)}.values())[::-1]


def _select_by_labels(inputs: ReportInputs, listed: I8) -> list[SelectedQuery]:
    assert inputs.comparison is not None
    assert inputs.request.labels is not None
    comparison, p, labels = inputs.comparison, inputs.preferences, inputs.request.labels
    metric = comparison.metrics[0]
    queries = comparison.evaluations[inputs.best_method].queries
    codes = p.queries.codes_of(queries)
    value = {n: comparison.evaluations[n][metric] for n in inputs.leading_methods}
    table = np.array(list(value.values()))
    # without an item of a grade above 0, all rankings score the same
    good = p.index.query_of_slot[labels.align(p.index) > 0]
    relevant = (codes >= 0) & (np.bincount(good, minlength=len(p.index))[codes] > 0)
    usable = np.isin(codes, listed) & ~np.isnan(table).any(axis=0) & relevant
    if not usable.any():
        return _select_by_agreement(inputs, listed)
    best, own = inputs.best_method, value[inputs.best_method]
    spread = np.where(usable, np.ptp(table, axis=0), -1.0)
    lowest = int(np.where(usable, own, np.inf).argmin())
    middle = _find_middle(np.where(usable, own, np.nan), p.index.sizes[codes].astype(np.float64))
    picked = []
    if spread.max() > 1e-12:
        picked.append(SelectedQuery(queries[int(spread.argmax())], "the methods differ most here"))
    picked.append(SelectedQuery(queries[lowest], f"{best} scores lowest here"))
    return [*picked, SelectedQuery(queries[middle], f"a typical query: {best} is near its median")]


def _find_middle(values: F8, sizes: F8) -> int:
    """The index of the value nearest to the median; ties go to the query of the most typical size."""
    apart = np.abs(values - np.nanmedian(values))
    # sizes are compared by ratio: 5 against 10 items is as far as 50 against 100
    usual = np.abs(np.log(np.maximum(sizes, 1)) - np.log(max(float(np.median(sizes)), 1)))
    # rounding makes distances that differ only by float error tie, so the size decides
    return int(np.lexsort((usual, np.where(np.isnan(apart), np.inf, np.round(apart, 9))))[0])


def _select_by_agreement(inputs: ReportInputs, listed: I8) -> list[SelectedQuery]:
    queries, alike = inputs.preferences.queries, inputs.compute_similarity()[listed]
    sizes = inputs.preferences.index.sizes[listed].astype(np.float64)
    picked = []
    if len(inputs.results) > 1 and alike.min() < 1 - 1e-9:
        picked.append(SelectedQuery(queries[int(listed[alike.argmin()])], "the methods differ most here"))
    return [*picked, SelectedQuery(queries[int(listed[_find_middle(alike, sizes)])], "a typical query")]


def _build_queries(inputs: ReportInputs) -> list[Block]:
    blocks: list[Block] = []
    best, names = inputs.best_method, inputs.leading_methods or list(inputs.results)
    c = inputs.comparison if inputs.has_judged_items else None
    for number, chosen in enumerate(_select_queries(inputs), 1):
        values: dict[str, float] = {}
        code = None if c is None else c.evaluations[best].queries.code_of(chosen.query)
        if c is not None and code is not None:
            values = {n: float(c.evaluations[n][c.metrics[0]][code]) for n in names}
        # the best method and those that differ most from it on this query
        apart = {n: abs(v - values[best]) if v == v else 0.0 for n, v in values.items()}
        others = sorted((n for n in names if n != best), key=lambda n: -round(apart.get(n, 0.0), 9))
        order = [best, *others][:COLUMNS]
        results = {n: inputs.results[n] for n in order}
        chart = rank_heatmap(inputs.preferences, chosen.query, results, inputs.request.labels)
        caption = f"Query {chosen.query}: {chosen.why}."
        if c is not None and code is None:
            caption += " It has no labels."
        elif c is not None:
            caption += f" {c.metrics[0]}: {', '.join(f'{n} {format_decimal(values[n])}' for n in order)}."
        name = re.sub(r"[^A-Za-z0-9]+", "-", str(chosen.query)).strip("-")[:40]
        blocks.append(Figure(f"query-{number}-{name}".rstrip("-"), chart, caption))
        blocks += _explain_first_place(inputs, chosen)
    return blocks


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
    from podium.methods.learned.crf import CrfAggregator

    blocks: list[Block] = [Figure("weights", weight_matrix(inputs.weighers), caption)]
    for name, model in inputs.weighers.items():
        if isinstance(model, CrfAggregator):
            experts: dict[str, list[str]] = {}
            for row in sorted(model.expert_weights(), key=lambda r: -r.share):
                experts.setdefault(row.reading, []).append(str(row.expert))
            readings = (f"{word}: {', '.join(e[:12])}{' ...' * (len(e) > 12)}" for word, e in experts.items())
            blocks.append(f"{name}: {'; '.join(readings)}.")
    return blocks


def _build_experts(inputs: ReportInputs) -> list[Block]:
    d = inputs.diagnosis
    if d is None:
        return []
    words = (
        "Alone: share of its items that no other expert lists; moved: how far the consensus moves without it"
    )
    if d.metric:
        words += f"; effect: {d.metric} of {d.method} with all experts, minus without this one"
    headline = d.headline()
    blocks: list[Block] = [f"{headline[:1].upper()}{headline[1:]}. {words}."]
    blocks += [tuple(f"{w}." for w in d.warnings)] if d.warnings else []
    blocks.append(ReportTable(dataclasses.replace(d.grid(), title=f"{len(d):,} experts"), 60))
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
        f"{board.looks[:1].upper()}{board.looks[1:]}.",
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
        return f"{value:.4g}" if abs(value) < 1000 else f"{value:,.0f}"
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
