"""Whitespace-separated lines read in plain Python: small files, and the error messages for large ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from podium.core.errors import InputError, MessageText, Option
from podium.kernels.dispatch import I8
from podium.kernels.text_columns import LineShape
from podium.storage.files import Source

__all__ = [
    "QRELS",
    "RUN",
    "LineLayout",
    "ParsedLines",
    "parse_line",
    "parse_lines",
    "parse_number",
    "quote_bytes",
]


@dataclass(frozen=True)
class LineLayout:
    """A line format: its fields, and its name in messages."""

    shape: LineShape
    words: str
    value: str  # the name of the last number


RUN = LineLayout(
    LineShape(6, query=0, item=2, rank=3, score=4, expert=5),
    "a TREC run has 6: query Q0 item rank score tag",
    "score",
)
QRELS = LineLayout(
    LineShape(4, query=0, item=2, rank=-1, score=3, expert=-1), "qrels have 4: query 0 item grade", "grade"
)


@dataclass
class ParsedLines:
    """Rows of several files."""

    sources: Sequence[Source]
    query: list[str] = field(default_factory=list)
    expert: list[str] = field(default_factory=list)
    item: list[str] = field(default_factory=list)
    rank: list[int] = field(default_factory=list)
    score: list[float] = field(default_factory=list)
    file: list[int] = field(default_factory=list)
    line: list[int] = field(default_factory=list)

    def origin(self, row: int) -> tuple[str, int]:
        """File and line of a row."""
        return self.sources[self.file[row]].name, self.line[row]


def quote_bytes(raw: bytes) -> str:
    """The start of a token or line, quoted for a message."""
    return repr(raw[:60].decode(errors="replace"))


def parse_number(token: str) -> float:
    """The finite number that an ASCII token represents, or a ValueError."""
    if not token.isascii() or "_" in token:
        raise ValueError(token)
    value = float(token)
    if not np.isfinite(value):
        raise ValueError(token)
    return value


def parse_lines(
    sources: Sequence[Source], layout: LineLayout, *, ranks: bool = True, lowest_rank: int = 0
) -> ParsedLines:
    """All lines of all files, or an InputError that names file, line and remedy."""
    rows = ParsedLines(sources)
    for index, source in enumerate(sources):
        for line, text in source.iterate_lines():
            query, expert, item, rank, score = parse_line(text, layout, source, line, ranks, lowest_rank)
            rows.query.append(query)
            rows.expert.append(expert)
            rows.item.append(item)
            rows.rank.append(rank)
            rows.score.append(score)
            rows.file.append(index)
            rows.line.append(line)
    return rows


def parse_line(
    text: bytes, layout: LineLayout, source: Source, line: int, ranks: bool, lowest_rank: int
) -> tuple[str, str, str, int, float]:
    """Query, expert, item, rank and score of one line."""
    shape, fields = layout.shape, text.split()
    if len(fields) != shape.fields:
        raise source.error(
            f"{len(fields)} column{'s' if len(fields) != 1 else ''} here, {layout.words}",
            line,
            ("ids have no whitespace; for a table with a header give ", Option("format", "csv")),
        )
    rank = (
        _parse_rank(fields[shape.rank].decode(), source, line, lowest_rank)
        if shape.rank >= 0 and ranks
        else 0
    )
    token = fields[shape.score].decode()
    try:
        score = parse_number(token)
    except ValueError:
        remedy = f"a {layout.value} is a finite number; omit the row if it is unknown"
        raise source.error(f"the {layout.value} is {token[:80]!r}", line, remedy) from None
    expert = fields[shape.expert].decode() if shape.expert >= 0 else ""
    return fields[shape.query].decode(), expert, fields[shape.item].decode(), rank, score


def _parse_rank(token: str, source: Source, line: int, lowest: int) -> int:
    try:
        value = parse_number(token)
    except ValueError:
        raise source.error(f"the rank is {token[:80]!r}", line, "ranks are whole numbers from 1") from None
    if value != int(value) or not lowest <= value <= 2**31 - 1:
        raise source.error(
            f"the rank is {token[:80]}", line, "ranks are whole numbers, 1 for the top, below 2147483648"
        )
    return int(value)


def locate_line(sources: Sequence[Source], bounds: I8, at: int) -> tuple[Source, int, bytes]:
    """The file, line number and line at an offset in the concatenated files."""
    index = int(np.searchsorted(bounds, at, side="right")) - 1
    source, inside = sources[index], at - int(bounds[index])
    end = source.data.find(b"\n", inside)
    begin = source.data.rfind(b"\n", 0, inside) + 1
    return source, source.data.count(b"\n", 0, inside) + 1, source.data[begin : end if end >= 0 else None]


def build_line_error(
    problem: str, sources: Sequence[Source], bounds: I8, at: int, remedy: MessageText
) -> InputError:
    """An error at an offset in the concatenated files."""
    source, line, _ = locate_line(sources, bounds, at)
    return source.error(problem, line, remedy)
