"""The parts of a report on votes beyond the standings: tampering, slices of the votes, and the panel of judges."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from podium.analysis.judges import PanelAssessment, assess_panel
from podium.analysis.leaderboard import (
    ContextualLeaderboard,
    Leaderboard,
    TamperingAssessment,
    assess_tampering,
    contextual_leaderboard,
)
from podium.core.errors import PodiumError
from podium.core.text import join_names
from podium.data.ids import CodedColumn
from podium.data.labels import Labels
from podium.data.preferences import Preferences
from podium.data.vote_table import VoteTable
from podium.reporting.blocks import Block, Figure, FindingVerdict, ReportFinding, ReportTable, Section

__all__ = ["VoteParts", "VoteSources", "collect_vote_parts", "find_slice_columns", "list_vote_findings"]

PANEL = 50  # most judges that make a panel; more are a crowd
ROWS = 25  # rows per table
SUSPECTS = 20  # voters whose reasons are listed
MOST_SLICES = 12  # values up to which a column that was not asked for is used as slices
SLICE_WORDS = ("category", "language")  # columns that are used without being asked for
TIME_WORDS = ("tstamp", "timestamp", "time", "date", "created_at")
VERDICTS: dict[str, FindingVerdict] = {"ok": "ok", "warning": "check", "unknown": "unknown"}


@dataclass(frozen=True, eq=False)
class VoteSources:
    """What belongs to the votes beside the preferences: single votes with attributes, and gold for the judges."""

    table: VoteTable | None = None
    slices: Sequence[str] = ()  # attributes of the table
    time: str | None = None  # attribute of the table: seconds
    gold: Preferences | Labels | None = None


@dataclass(frozen=True, eq=False)
class VoteParts:
    """The parts about votes; None where a part does not apply, with the reasons in `notes`."""

    tampering: TamperingAssessment
    slices: tuple[ContextualLeaderboard, ...] = ()
    panel: PanelAssessment | None = None
    notes: tuple[str, ...] = ()

    def list_sections(self) -> tuple[Section, ...]:
        """The sections with content."""
        slices: list[Block] = []
        for board in self.slices:
            assert board.slices is not None
            title = f"Ranks by {board.slices.column}; * differs from the other votes beyond chance"
            slices.append(_make_table(board.slices.grid(), title))
            slices.append(tuple(_make_sentence(line) for line in board.slices.dependence))
        judges: list[Block] = []
        if self.panel is not None:
            judges.append(tuple(_make_sentence(line) for line in self.panel.lines))
            if self.panel.gold_questions:
                caption = "Agreement of judges and rules with the gold."
                judges.append(Figure("judges", self.panel.chart(), caption))
            judges.append(_make_table(self.panel.grid(), "Judges", 40))
            judges += [ReportTable(grid, ROWS) for grid in self.panel.tables()]
        every = (
            Section("tampering", "How few votes could change it?", self._build_tampering()),
            Section("slices", "Slices of the votes", slices),
            Section("judges", "Panel of judges", judges),
        )
        return tuple(section for section in every if section.blocks)

    def _build_tampering(self) -> list[Block]:
        parts = self.tampering
        blocks: list[Block] = [
            tuple(_make_sentence(line) for line in parts.lines),
            Figure(
                "margins",
                parts.margin.chart(),
                "Votes that take each of the first places away, checked by fits.",
            ),
            _make_table(parts.margin.grid(), "Votes that take a place away"),
        ]
        if parts.trust is not None and parts.trust.rows:
            named = parts.trust.rows[:SUSPECTS]
            blocks.append(
                tuple(f"{row.voter} ({row.votes:,} votes): {'; '.join(row.reasons)}." for row in named)
            )
            if len(named) < len(parts.trust.rows):
                blocks.append(f"{len(parts.trust.rows) - len(named):,} more voters with improbable votes.")
            blocks.append(Figure("voters", parts.trust.chart(), "The voters whose votes are least probable."))
        if parts.influence is not None and parts.influence.rows:
            title = "Most influential voters: the board without the votes of each"
            blocks.append(_make_table(parts.influence.grid(), title, 10))
        if parts.robust is not None:
            title = "Robust board: voters count as far as their votes are probable"
            blocks.append(_make_table(parts.robust.grid(digits=0), title))
        return blocks


def _make_table(grid: Any, title: str, most: int = ROWS) -> ReportTable:
    return ReportTable(dataclasses.replace(grid, title=title), most)


def _make_sentence(line: str) -> str:
    return f"{line[:1].upper()}{line[1:]}{'' if line.endswith('.') else '.'}"


def collect_vote_parts(
    board: Leaderboard, preferences: Preferences, sources: VoteSources | None = None
) -> VoteParts:
    """Compute the parts about votes that suit them; what cannot be computed is a note."""
    given, notes = sources or VoteSources(), []

    def try_part(name: str, work: Callable[[], Any]) -> Any:
        try:
            return work()
        except PodiumError as error:
            notes.append(f"{name}: {error}")
            return None

    tampering = assess_tampering(board, table=given.table, time=given.time, strict=False)
    boards = []
    for column in given.slices:
        assert given.table is not None
        table, how = given.table, board.settings
        made = try_part(
            f"slices by {column}",
            lambda: contextual_leaderboard(table, slices=column, settings=how),  # noqa: B023
        )
        boards += [made] if made is not None else []
    panel = None
    # judges answer the same questions; many voters, or voters who share no question, are no panel
    if given.gold is not None or (board.agreement is not None and 2 <= len(preferences.experts) <= PANEL):
        panel = try_part("panel of judges", lambda: assess_panel(preferences, given.gold))
    return VoteParts(tampering, tuple(boards), panel, tuple(notes))


def find_slice_columns(table: VoteTable) -> list[str]:
    """Attributes with usual names of slices and a few values."""
    columns = {name: table.attributes.get(name) for name in SLICE_WORDS}
    return [
        name
        for name, column in columns.items()
        if isinstance(column, CodedColumn) and 2 <= len(column.ids) <= MOST_SLICES
    ]


def list_vote_findings(parts: VoteParts) -> Iterator[ReportFinding]:
    """The checks of voters and of the leader, as checks of the report."""
    tampering = parts.tampering
    if tampering.trust is None:
        yield ReportFinding("voters", "unknown", tampering.missing)
    else:
        for check in tampering.trust.checks:
            yield ReportFinding(f"voters: {check.name}", VERDICTS[check.verdict], check.text)
    if tampering.influence is not None and tampering.influence.deciding_voters:
        names = join_names(tampering.influence.deciding_voters)
        yield ReportFinding(
            "one voter decides", "check", f"without any one of these, another item would lead: {names}"
        )
    if tampering.robust is not None:
        first, plain = tampering.robust.rows[0].item, tampering.board.rows[0].item
        text = f"{first} leads if improbable votes count little"
        yield ReportFinding("robust leader", "ok" if first == plain else "check", text)
    if parts.panel is not None and not parts.panel.gold_questions:
        text = "there is no gold, so a bias that all judges share cannot be seen"
        yield ReportFinding("panel of judges", "unknown", text)
    elif parts.panel is not None and parts.panel.shift is not None:
        fires = parts.panel.shift.fires
        text = f"questions with and without gold differ in {parts.panel.shift.what}, so its figures may not carry over"
        fine = "no difference between questions with and without gold"
        yield ReportFinding("panel of judges", "check" if fires else "ok", text if fires else fine)
    yield from (ReportFinding("left out", "check", note) for note in parts.notes)
