"""Whitespace-separated lines read in plain Python: error messages, and input that the kernels refuse."""

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
    "parse_field",
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

    def add(
        self, file: int, line: int, query: str, item: str, score: float, expert: str = "", rank: int = 0
    ) -> None:
        """Append a row."""
        self.query.append(query)
        self.expert.append(expert)
        self.item.append(item)
        self.rank.append(rank)
        self.score.append(score)
        self.file.append(file)
        self.line.append(line)

    def origin(self, row: int) -> tuple[str, int]:
        """File and line of a row."""
        return self.sources[self.file[row]].name, self.line[row]


def quote_bytes(raw: bytes) -> str:
    """The start of a token or line, quoted for a message."""
    return repr(raw[:60].decode(errors="replace"))


def parse_number_or_nan(token: str) -> float:
    """The number, or NaN where `parse_number` raises an error."""
    try:
        return parse_number(token)
    except ValueError:
        return float("nan")


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
            rows.add(index, line, query, item, score, expert, rank)
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
    rank = 0.0
    if shape.rank >= 0 and ranks:
        token = fields[shape.rank].decode()
        rank = parse_field(token, "rank", source, line, "ranks are whole numbers from 1")
        if rank != int(rank) or not lowest_rank <= rank <= 2**31 - 1:
            raise source.error(
                f"the rank is {token[:80]}", line, "ranks are whole numbers, 1 for the top, below 2147483648"
            )
    remedy = f"a {layout.value} is a finite number; omit the row if it is unknown"
    score = parse_field(fields[shape.score].decode(), layout.value, source, line, remedy)
    expert = fields[shape.expert].decode() if shape.expert >= 0 else ""
    return fields[shape.query].decode(), expert, fields[shape.item].decode(), int(rank), score


def parse_field(token: str, what: str, source: Source, line: int, remedy: str) -> float:
    """A finite number, or an error that names the field and its line."""
    try:
        return parse_number(token)
    except ValueError:
        raise source.error(f"the {what} is {token[:80]!r}", line, remedy) from None


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
