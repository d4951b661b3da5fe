"""Views of the experts, the annotators, and the leaderboard of their votes."""

from __future__ import annotations

import contextlib
import dataclasses
from typing import Any

from podium.analysis.figures import weight_matrix, weight_table
from podium.core.errors import ParameterError
from podium.core.tables import Grid
from podium.reporting.blocks import Figure, ReportTable
from podium.reporting.findings import WORDS
from podium.reporting.sections import build_section
from podium.studio.limits import check_pairs
from podium.studio.pages.comparison_views import tabulate_rows
from podium.studio.pages.view_context import View, ViewContext, register_view


@register_view("experts", "Experts", 70, goal="Explain")
def build_experts_view(c: ViewContext) -> View:
    """Agreement of experts, leave-one-out effects, and their weights in fitted models."""
    inputs = c.collect_inputs()
    diagnosis = inputs.diagnosis
    blocks = list(build_section(inputs, "experts").blocks)
    weighted: dict[str, Any] = {}  # the newest models of this project that have expert weights
    for model in c.work.store.models(c.project.id)[:3]:
        made = c.work.method(f"model:{model.id}")
        with contextlib.suppress(ParameterError):
            weight_table(made)
            weighted[model.name[:30]] = made
    if diagnosis is None:
        names = c.data.preferences.experts.tolist()
        document: dict[str, Any] = {"experts": names}
        head, rows = ["expert"], [(n,) for n in names]
        if len(names) < 2:
            blocks = ["There is only one expert; agreement cannot be measured."]
        elif inputs.crowd is not None:
            blocks = ["See the annotators view."]
        else:
            blocks = ["There are too many experts for a diagnosis of each."]
    else:
        document = diagnosis.to_dict()
        head, rows = tabulate_rows(diagnosis.rows)
    if weighted:
        caption = f"Expert weights of {', '.join(weighted)}."
        blocks.append(Figure("weights", weight_matrix(weighted), caption))
    more = {"has_weights": bool(weighted)}
    return View("Experts", document, head, rows, blocks, "experts.html", more)


@register_view(
    "leaderboard",
    "Leaderboard",
    15,
    applies=lambda data: "leaderboard" in data.kinds,
    first_for="leaderboard",
)
def build_leaderboard_view(c: ViewContext) -> View:
    """Standings with intervals, and what to compare next."""
    board = c.collect_inputs().board
    if board is None:
        check_pairs(c.work.settings.limits, c.data.preferences)
        raise ParameterError("no leaderboard for these data; it needs repeated votes on the same items")
    top = c.get_whole_number("top", 0, 0, len(board.rows)) or None
    count = c.get_whole_number("count", 10, 1, 1000)
    proposals = board.next(count, top=top) if len(board.rows) > 1 else []
    stop, words = board.stopping(top=top)
    head, rows = tabulate_rows(board.rows)
    lines = tuple(
        (str(p.first), str(p.second), f"{p.gain:.4f}", f"{p.chance:.0%}", f"{p.votes:,.10g}")
        for p in proposals
    )
    names = ("first", "second", "information (nats)", "chance of first", "votes so far")
    next_ = ReportTable(Grid(names, lines, 2, "What to compare next"), 100)
    document = board.to_dict() | {"next": [dataclasses.asdict(p) for p in proposals]}
    document |= {"stop": stop, "stopping": words}
    blocks = [*build_section(c.collect_inputs(), "leaderboard").blocks[:2], next_]
    checks = [(WORDS[k.verdict], k.name, k.text) for k in board.checks]
    more = {"words": f"{words[:1].upper()}{words[1:]}.", "top": top or 0, "count": count,
            "size": len(board.rows), "checks": checks}  # fmt: skip
    return View("Leaderboard", document, head, rows, blocks, "leaderboard.html", more)


@register_view(
    "annotators", "Annotators", 90,
    applies=lambda data: "annotators" in data.kinds, goal="Collect", first_for="annotators",
)  # fmt: skip
def build_annotators_view(c: ViewContext) -> View:
    """The quality of every annotator, with reasons."""
    inputs = c.collect_inputs()
    if inputs.crowd is None:
        check_pairs(c.work.settings.limits, c.data.preferences)
        raise ParameterError(
            "no annotators in these data; this needs votes, or ratings on a short scale, of three or more people"
        )
    head, rows = tabulate_rows(inputs.crowd.rows)
    document = {"lines": list(inputs.crowd.lines), "rows": [dict(zip(head, r, strict=True)) for r in rows],
                "effective": inputs.crowd.effective}  # fmt: skip
    return View("Annotators", document, head, rows, build_section(inputs, "annotators").blocks)
