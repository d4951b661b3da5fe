"""The leaderboard: plain, at every look, with covariates held equal, by slice; planted votes; next pairs."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from podium.analysis.leaderboard import (
    AnytimeLeaderboard,
    ContextualLeaderboard,
    Leaderboard,
    Proposal,
    TamperingAssessment,
    anytime_leaderboard,
    assess_tampering,
    contextual_leaderboard,
)
from podium.analysis.leaderboard.anytime_board import collect_evidence
from podium.core.errors import ParameterError, PodiumError
from podium.core.tables import Grid
from podium.reporting.blocks import Block, Figure, ReportTable
from podium.reporting.findings import WORDS
from podium.studio.item_texts import rename_items
from podium.studio.limits import check_pairs
from podium.studio.pages.comparison_views import tabulate_rows
from podium.studio.pages.view_context import View, ViewContext, register_view
from podium.studio.vote_columns import find_vote_columns, read_vote_table

FACED = (12, 2, 200)  # items in the table of direct votes: default, least and most
DRAWN = 200  # items in the chart


@register_view(
    "leaderboard",
    "Leaderboard",
    15,
    applies=lambda data: "leaderboard" in data.kinds,
    first_for="leaderboard",
)
def build_leaderboard_view(c: ViewContext) -> View:
    """Standings with intervals, what they hold for, and what to compare next."""
    board = c.collect_inputs().board
    if board is None:
        check_pairs(c.work.settings.limits, c.data.preferences)
        raise ParameterError("no leaderboard for these data; it needs repeated votes on the same items")
    if c.data.labels is None:  # the answer of votes is their board, and costs nothing more
        c.find_answer()
    top = c.get_whole_number("top", 0, 0, len(board.rows)) or None
    count, faced = c.get_whole_number("count", 10, 1, 1000), c.get_whole_number("faced", *FACED)
    columns = find_vote_columns(c.work.store, c.project, c.work.settings.roots)
    control, slice_ = c.get_values("control"), c.get_value("slice")
    every_look = c.get_value("anytime") == "1"
    proposals = board.next(count, top=top) if len(board.rows) > 1 else []
    named = rename_items(board, c.texts)
    stop, words = named.stopping(top=top)
    document = board.to_dict() | {"stop": stop, "stopping": words}
    document |= {"next": [dataclasses.asdict(p) for p in proposals]}
    standings, leader = _build_plain_blocks(board, named), _describe_leader(named)
    notes = [board.looks.replace("--anytime", "“valid at every look” below")] if not every_look else []
    anytime = adjusted = None
    if every_look:
        anytime = anytime_leaderboard(board)
        standings = _build_anytime_blocks(anytime)
        leader["sure"] = (anytime if named is board else anytime_leaderboard(named)).conclusion
        document |= {"anytime": anytime.to_dict()}
    if control or slice_:
        adjusted = _compute_contextual_board(c, control, slice_)
        standings = [*_build_contextual_blocks(adjusted), *(standings if every_look else [])]
        document |= {"contextual": adjusted.to_dict()}
        if c.work.votes.find_collection(c.project.id) is not None:
            notes.append("votes collected here have no such columns and are not part of this board")
    if c.get_value("trust") == "1":
        assessment = _assess_tampering(c, board)
        document |= {"trust": assessment.to_dict()}
        standings += [_table_of_items(b) if isinstance(b, Grid) else b for b in assessment.blocks()]
    more = {
        "words": f"{words[:1].upper()}{words[1:]}.", "top": top or 0, "count": count, "faced": faced,
        "checks": [(WORDS[k.verdict], k.name, k.text) for k in board.checks],
        "notes": [f"{note[:1].upper()}{note[1:]}." for note in notes],
        "columns": columns, "control": control, "slice": slice_, "every_look": every_look,
        "trust": c.get_value("trust") == "1", "size": len(board.rows), "winner": leader,
    }  # fmt: skip
    blocks: list[Block] = [*standings, _build_direct_table(named, faced), tabulate_proposals(proposals)]
    head, rows = tabulate_rows((anytime or adjusted or board).rows)
    return View("Leaderboard", document, head, rows, blocks, "board.html", more)


def tabulate_proposals(proposals: Sequence[Proposal]) -> ReportTable:
    """The pairs to compare next, with what each is expected to tell."""
    head = ("first", "second", "information (nats)", "chance of first", "votes so far")
    lines = tuple(
        (str(p.first), str(p.second), f"{p.gain:.4f}", f"{p.chance:.0%}", f"{p.votes:,.10g}")
        for p in proposals
    )
    return ReportTable(Grid(head, lines, 2, "Pairs with the largest expected gain"), 100, (0, 1))


def _describe_leader(board: Leaderboard) -> dict[str, str]:
    """The first item, and what the tests at one look say of it."""
    first = board.rows[0]
    tied = [str(row.item) for row in board.rows[1:] if row.rank_low <= 1]
    sure = "ahead of all others"
    if tied:
        sure = (
            f"not clearly ahead of {tied[0] if len(tied) == 1 else f'{len(tied)} others, such as {tied[0]}'}"
        )
    return {
        "item": str(first.item),
        "score": f"{first.score:,.0f}",
        "sure": sure,
        "votes": f"{board.votes:,.10g}",
    }


def _table_of_items(grid: Grid, title: str = "") -> ReportTable:
    """A table whose column "item" has ids of items."""
    items = tuple(n for n, word in enumerate(grid.head) if word == "item")
    return ReportTable(dataclasses.replace(grid, title=title or grid.title), items=items)


def _build_plain_blocks(board: Leaderboard, named: Leaderboard) -> list[Block]:
    caption = f"Scores with {100 * board.settings.level:g} % intervals, {board.scheme.text}."
    chart = named.chart(top=DRAWN) if len(board.rows) > DRAWN else named.chart()
    table = _table_of_items(board.grid(digits=0, between=" to "), f"All {len(board.rows):,} items")
    return [Figure("leaderboard", chart, caption), table]


def _build_anytime_blocks(board: AnytimeLeaderboard) -> list[Block]:
    table = _table_of_items(board.grid(), "Valid at every look, however the pairs are chosen")
    return [*([f"Warning: {board.warning}."] if board.warning else []), table]


def _compute_contextual_board(c: ViewContext, control: list[str], slice_: str) -> ContextualLeaderboard:
    """The board with covariates held equal, computed once per choice."""
    names = tuple(dict.fromkeys((*control, *([slice_] if slice_ else []))))

    def compute() -> ContextualLeaderboard:
        excluded = c.work.votes.excluded_annotators(c.project.id)
        votes = read_vote_table(c.work.store, c.project, c.work.settings.roots, names, excluded)
        return contextual_leaderboard(votes, control, slices=slice_ or None)

    board: ContextualLeaderboard = c.wait(
        c.work.result((c.data.fingerprint, "contextual", tuple(control), slice_), compute)
    )
    return board


def _assess_tampering(c: ViewContext, board: Leaderboard) -> TamperingAssessment:
    """Voters, influence and margins, computed once."""
    key = (c.data.fingerprint, "tampering")
    assessment: TamperingAssessment = c.wait(
        c.work.result(key, lambda: assess_tampering(board, strict=False))
    )
    return assessment


def _build_contextual_blocks(board: ContextualLeaderboard) -> list[Block]:
    blocks: list[Block] = []
    if board.control:
        title = f"With {', '.join(board.control)} held equal, beside the plain board"
        chart = board.chart(top=DRAWN)
        blocks.append(Figure("adjusted", chart, f"Scores with {', '.join(board.control)} held equal."))
        blocks.append(_table_of_items(board.grid(digits=0, between=" to "), title))
        blocks.append(
            ReportTable(dataclasses.replace(board.effects_grid(), title="What each covariate is worth"))
        )
        blocks.append(tuple(effect.sentence for effect in board.effects))
    if board.slices is not None:
        title = f"Places by {board.slices.column} (* differs from the other votes beyond chance)"
        blocks.append(_table_of_items(board.slices.grid(), title))
        blocks.append(tuple(board.slices.dependence))
    doubts = tuple(
        f"{k.name}: {k.text}" for k in board.checks if k.verdict == "warning" and k not in board.plain.checks
    )
    return [*blocks, *([doubts] if doubts else [])]


def _build_direct_table(board: Leaderboard, faced: int) -> ReportTable:
    """Share of direct votes that the item of the row won against that of the column, for the best items."""
    order = board.estimate.order[:faced].tolist()
    try:
        evidence = collect_evidence(board.tally)
        won, tied = evidence.won, evidence.tied
    except PodiumError:  # weights, or lists: shares need counts of single votes
        won = tied = np.zeros((len(board.tally.items),) * 2)
    cells: list[tuple[Any, ...]] = []
    for place, i in enumerate(order, 1):
        row = [f"{place} {board.tally.items[i]}"]
        for j in order:
            total = won[i, j] + won[j, i] + tied[i, j]
            row.append(f"{(won[i, j] + tied[i, j] / 2) / total:.0%} ({total:g})" if total and i != j else "·")
        cells.append(tuple(row))
    places = tuple(f"against {place}" if place == 1 else str(place) for place in range(1, len(order) + 1))
    title = f"Head to head, the best {len(order)}: share of the direct votes won (votes); columns by place"
    return ReportTable(Grid(("won by", *places), tuple(cells), 1, title))
