"""Tables as they are uploaded: their cells, and a guess of what each column is."""

from __future__ import annotations

import codecs
import csv
import io
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from podium.core.errors import PodiumError
from podium.core.optional import require_module
from podium.data.column_roles import WORDS, normalize_name
from podium.storage.files import Source

ENCODINGS = ("", "latin-1", "cp1252", "utf-16")  # to choose from; the first is UTF-8
CONTROL = re.compile("[\x80-\x9f]")  # characters that are no text
DELIMITERS = {",": "comma", "\t": "tab", ";": "semicolon", "|": "bar", " ": "spaces"}
FEW = 3  # columns up to which cells are judged although the columns have names
SEARCHED = 20  # columns up to which votes are looked for by their cells
SAMPLE = 400  # rows from which a column is judged
# the roles of a column on the Data page, and the names under which the readers know them
ROLES = {
    "query": "query",
    "expert": "expert",
    "item": "item",
    "rank": "rank",
    "score": "score",
    "winner": "winner",
    "loser": "loser",
    "first item": "item_a",
    "second item": "item_b",
    "tie": "tie",
    "weight": "weight",
    "label": "grade",
    "label, 1 is best": "grade",
    "seconds": "seconds",
    "feature": "feature",
    "title": "title",
    "text": "text",
    "url": "url",
    "ignore": "",
}
REVERSED = "label, 1 is best"
SHOWN = {reader: role for role, reader in reversed(ROLES.items())}  # "grade" -> "label"
# words in the names of columns beyond those that the readers accept as whole names
HINTS = {
    "query": ("pair", "task", "question", "prompt", "topic", "query"),
    "expert": ("worker", "judge", "annotator", "rater", "assessor", "voter", "user"),
    "item": ("doc", "item", "document", "passage"),
    "label": ("gold", "truth", "grade", "relevance"),
    "winner": ("preferred", "winner", "chosen"),
    "score": ("score", "rating", "label"),
    "rank": ("rank", "position"),
}
NUMBERED = re.compile(r"(?:rank|place|position|choice|pref)[ _-]?(\d+)$", re.IGNORECASE)


@dataclass(frozen=True)
class RawTable:
    """The cells of a file, unread: column names, rows, and the line of each row."""

    names: tuple[str, ...]
    rows: list[list[str]]
    lines: Sequence[int]
    delimiter: str = ""
    has_header: bool = True

    @property
    def sample(self) -> list[list[str]]:
        """Some rows from the whole file."""
        return self.rows[:: max(1, len(self.rows) // SAMPLE)][:SAMPLE]

    def column(self, name: str) -> list[str]:
        """The cells of a column."""
        at = self.names.index(name)
        return [row[at] for row in self.rows]


def load_table(source: Source, delimiter: str = "", header: bool | None = None) -> RawTable | None:
    """A file as a table of text cells; None if it is none."""
    head = source.head().lstrip()
    try:
        if head.startswith(b"PAR1"):
            table = require_module("pyarrow.parquet").read_table(
                require_module("pyarrow").BufferReader(source.raw)
            )
            columns = [[_format_cell(v) for v in column.to_pylist()] for column in table.columns]
            rows = [list(cells) for cells in zip(*columns, strict=True)]
            return RawTable(tuple(table.column_names), rows, range(1, len(rows) + 1))
        if head[:1] in (b"{", b"["):
            return _load_records(source)
        return _load_delimited(source.data.decode(), delimiter, header)
    except (PodiumError, ValueError, RecursionError, csv.Error, OSError):
        return None


def _format_cell(value: Any) -> str:
    if value is None or value != value:
        return ""
    return value if isinstance(value, str) else json.dumps(value, default=str)


def _load_records(source: Source) -> RawTable | None:
    text = source.data.decode().strip()
    records = (
        json.loads(text) if text.startswith("[") else [json.loads(line) for line in text.splitlines() if line]
    )
    if not records or not all(isinstance(r, dict) for r in records):
        return None
    names = tuple(dict.fromkeys(name for record in records for name in record))
    rows = [[_format_cell(record.get(name)) for name in names] for record in records]
    return RawTable(names, rows, range(1, len(rows) + 1))


def _load_delimited(text: str, delimiter: str, header: bool | None) -> RawTable | None:
    first = [line for line in text[:200_000].splitlines() if line.strip()][:50]
    if not first:
        return None
    mark = delimiter or _choose_delimiter(first)
    if not mark:
        return None
    if mark == " ":
        numbered = [(n, line.split()) for n, line in enumerate(text.split("\n"), 1) if line.strip()]
    else:
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=mark)
        numbered = [(reader.line_num, row) for row in reader if row and any(cell.strip() for cell in row)]
    width = Counter(len(row) for _, row in numbered[:SAMPLE]).most_common(1)[0][0]
    rows = [(n, [*row, *[""] * (width - len(row))][:width]) for n, row in numbered]
    cells = [row for _, row in rows]
    named = looks_like_header(cells) if header is None else header
    if named:
        names, rows = tuple(cell.strip() or f"column {k}" for k, cell in enumerate(cells[0], 1)), rows[1:]
    else:
        names = tuple(f"column {k}" for k in range(1, width + 1))
    if len(set(names)) < len(names):
        names = tuple(f"{name} ({k})" for k, name in enumerate(names, 1))
    return RawTable(names, [row for _, row in rows], [n for n, _ in rows], mark, named)


def _choose_delimiter(lines: Sequence[str]) -> str:
    """The delimiter that gives most lines the same number of two or more cells."""
    best, most = "", 0.0
    for mark in DELIMITERS:
        widths = Counter(len(line.split() if mark == " " else line.split(mark)) for line in lines)
        width, count = widths.most_common(1)[0]
        # a line of prose has spaces too, but never the same number of them
        share = count / len(lines)
        if width > 1 and share > max(most, 0.9 if mark == " " else 0.5) + 1e-9:
            best, most = mark, share
    return best


def is_number(text: str) -> bool:
    """Whether a cell is a number."""
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text


def looks_like_header(rows: Sequence[Sequence[str]]) -> bool:
    """Whether the first row names the columns: distinct words that do not occur again below them.

    >>> looks_like_header([["topic", "doc"], ["1", "d1"]]), looks_like_header([["1", "d1"], ["1", "d2"]])
    (True, False)
    """
    if len(rows) < 2:
        return False
    first = [cell.strip() for cell in rows[0]]
    if any(is_number(cell) for cell in first[:1]) or len(set(first)) < len(first) or not all(first):
        return False
    if any(normalize_name(cell) in words for cell in first for words in WORDS.values()):
        return True
    below = [{row[k].strip() for row in rows[1:SAMPLE]} for k in range(len(first))]
    return not any(cell in seen for cell, seen in zip(first, below, strict=True))


# -- roles -------------------------------------------------------------------------------------------------------


def guess_roles(table: RawTable) -> dict[str, str]:
    """The likely role of each column, by its name, then by its cells; columns without one are left out."""
    numbered = [name for name in table.names if NUMBERED.match(name)]
    if len(numbered) > 2:  # the columns are places, their cells the items
        rest = [name for name in table.names if name not in numbered]
        return dict.fromkeys(numbered, "item") | ({rest[0]: "expert"} if rest else {})
    sample = table.sample
    wide = [name for k, name in enumerate(table.names) if all(is_number(row[k]) for row in sample)]
    wanted = [float(k) for k in range(1, len(wide) + 1)]
    places = [table.names.index(name) for name in wide]
    if (
        table.has_header
        and 2 < len(wide) == len(table.names) - 1
        and all(sorted(float(row[k]) for k in places) == wanted for row in table.sample)
    ):
        rest = [name for name in table.names if name not in wide]
        return dict.fromkeys(wide, "rank") | {rest[0]: "expert"}
    named = _guess_by_name(table.names) if table.has_header else {}
    return named or (_guess_by_cells(table) if len(table.names) <= FEW or not table.has_header else {})


def _guess_by_name(names: Sequence[str]) -> dict[str, str]:
    roles: dict[str, str] = {}
    for reader, words in WORDS.items():
        for name in names:
            if (
                name not in roles
                and normalize_name(name) in words
                and SHOWN.get(reader) not in roles.values()
            ):
                roles[name] = SHOWN.get(reader, "ignore")
                break
    for role, words in HINTS.items():
        if role in roles.values():
            continue
        for name in names:
            if name not in roles and any(word in re.split(r"[\W_]+", name.lower()) for word in words):
                roles[name] = role
                break
    if "expert" in roles.values() and "score" not in roles.values() and "rank" not in roles.values():
        # with experts, a second column of grades is what they gave
        labels = [name for name, role in roles.items() if role == "label"]
        others = [n for n in names if n not in roles and "label" in n.lower()]
        if labels and others and "winner" not in roles.values():
            roles[others[0]] = "score"
    return roles


def _guess_by_cells(table: RawTable) -> dict[str, str]:
    """The roles of columns without names: votes repeat their items, labels are numbers after an item."""
    sample, names = table.sample, list(table.names)
    columns = {name: [row[k] for row in sample] for k, name in enumerate(table.names)}
    constant = [n for n in names if len(set(columns[n])) == 1 and len(sample) > 3]
    # tables of features without a header have hundreds of columns, and the search grows with their cube
    for winner in reversed(names) if len(names) <= SEARCHED else ():
        for a in names:
            for b in names[names.index(a) + 1 :]:
                if winner not in (a, b) and _is_one_of(columns[winner], columns[a], columns[b]):
                    rest = [n for n in names if n not in (a, b, winner)]
                    more = dict(zip(rest, ("query", "expert"), strict=False))
                    return {a: "first item", b: "second item", winner: "winner"} | more
    names = [n for n in names if n not in constant]
    if any(columns[a] == columns[b] for a in names for b in names if a < b):
        return {}
    if (
        len(names) == 3
        and all(is_number(v) for v in columns[names[-1]])
        and not _share_ids(columns, names[1:])
    ):
        return dict(zip(names, ("query", "item", "label"), strict=True))
    if len(names) == 3 and columns[names[1]] != columns[names[2]] and _share_ids(columns, names[1:]):
        return dict(zip(names, ("expert", "winner", "loser"), strict=True))
    if len(names) == 2 and all(is_number(v) for v in columns[names[1]]):
        return dict(zip(names, ("item", "label"), strict=True))
    return {}


def _is_one_of(answers: Sequence[str], first: Sequence[str], second: Sequence[str]) -> bool:
    """Whether every answer repeats one of the two cells beside it, and both occur."""
    sides = {w == a for w, a, b in zip(answers, first, second, strict=True) if a != b}
    return len(sides) == 2 and all(w in (a, b) for w, a, b in zip(answers, first, second, strict=True))


def _share_ids(columns: Mapping[str, Sequence[str]], names: Sequence[str]) -> bool:
    one, two = (set(columns[name]) for name in names)
    return len(one & two) > 0.3 * len(one | two) and len(one | two) > 2


def count_unreadable(content: bytes) -> dict[str, int]:
    """The characters that each encoding cannot read; in Latin-1 the control characters that no text has.

    >>> count_unreadable("Zoë".encode()), count_unreadable("Zoë “quoted”".encode("cp1252"))
    ({'': 0, 'latin-1': 0, 'cp1252': 0}, {'': 3, 'latin-1': 2, 'cp1252': 0})
    """
    counts = {}
    for encoding in ENCODINGS:
        if encoding == "utf-16" and b"\0" not in content[:4000]:
            continue  # any bytes are letters of some script in it
        text = content.decode(encoding or "utf-8", "replace")
        counts[encoding] = text.count("\ufffd") + len(CONTROL.findall(text))
    return counts


def guess_encoding(content: bytes) -> str:
    """The first encoding that can read all characters; empty where that is UTF-8, or none can.

    >>> guess_encoding("Zoë".encode()), guess_encoding("Zoë".encode("latin-1")), guess_encoding(b"\\0\\1\\2")
    ('', 'latin-1', '')
    """
    if b"\0" in content and content[:2] not in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        return ""
    return next((encoding for encoding, count in count_unreadable(content).items() if not count), "")
