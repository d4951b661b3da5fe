"""LETOR and SVMlight: `label qid:Q 1:v 2:v ... #docid = D`, with NULL for missing values."""

from __future__ import annotations

import re
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from podium.core.errors import InputError, PodiumWarning
from podium.data.building.validate import check_choice
from podium.data.features import Features
from podium.data.ids import CodedColumn, Ids, code_ids
from podium.data.labels import Labels
from podium.data.preferences import Preferences, Unlisted
from podium.formats.base import Content, Format
from podium.formats.letor_cells import BLOCK, LAST_COLUMN, LetorCells, parse_cells
from podium.formats.text_ids import format_plain_ids
from podium.formats.text_lines import ParsedLines, parse_field, quote_bytes
from podium.kernels.dispatch import F8, I8
from podium.storage.files import Source

__all__ = ["Letor"]

LetorKind = Literal["auto", "ranks", "scores", "features"]
_DOCID = re.compile(rb"docid\s*=\s*(\S+)", re.IGNORECASE)
_LINE = re.compile(rb"\S+\s+qid:\S+(\s+\d+:\S+)*\s*(#.*)?$")


class Letor(Format):
    """LETOR files; ids are strings; an item without a docid is named by its position in its query.

    `kind` states what the values are: `ranks` (1 = top, column numbers are the experts), `scores` (large =
    top), `features`, or `auto`: ranks when all values are whole numbers from 1 or NULL and at least one is
    NULL. `reversed_lists` reads ranks with the largest on top; `unlisted` defines what NULL means. Several
    files become the parts of one data set.
    """

    name = "letor"
    holds = frozenset({"lists", "features"})
    suffixes = (".letor", ".svm", ".svmlight", ".libsvm")
    summary = "LETOR / SVMlight: label qid:Q 1:v ... #docid = D"

    def sniff(self, head: bytes) -> float:
        lines = [
            line.strip() for line in head.split(b"\n")[:20] if line.strip() and not line.startswith(b"#")
        ]
        return 1.0 if lines and all(_LINE.match(line) for line in lines) else 0.0

    def read(
        self,
        sources: Sequence[Source],
        *,
        kind: LetorKind = "auto",
        reversed_lists: bool = False,
        unlisted: Unlisted = "unknown",
    ) -> Content:
        check_choice("kind", kind, ("auto", "ranks", "scores", "features"))
        rows = _parse_rows(sources)
        if kind == "auto":
            kind = "ranks" if rows.looks_like_ranks() else "features"
        query, item = code_ids(rows.query, "query"), code_ids(rows.item, "item")
        part = None
        if len(sources) > 1:
            file, first = np.array(rows.file, np.int32), np.unique(query.codes, return_index=True)[1]
            part = np.full(len(query.ids), -1, np.int32)
            part[query.codes[first]] = file[first]
            clash = np.flatnonzero(part[query.codes] != file)
            if len(clash):
                row = int(clash[0])
                one, two = sources[int(part[query.codes[row]])].name, sources[rows.file[row]].name
                raise InputError(
                    f"query {rows.query[row]!r} is in two files, {one} and {two}",
                    remedy="parts of a data set must not share queries; read the files separately",
                )
        labels = Labels.from_rows(query, item, rows.score, origin=rows.origin)
        if kind == "features":
            columns = rows.column_numbers()
            names = [str(c) for c in columns.tolist()]
            features = Features.from_rows(query, item, rows.build_matrix(columns), names, origin=rows.origin)
            return Content(labels=labels, features=features, part=part)
        lists = _build_preferences(rows, query, item, kind, reversed_lists).with_unlisted(unlisted)
        return Content(preferences=lists, labels=labels, part=part)

    def write(self, content: Content) -> Iterator[bytes]:
        p, x, labels = content.preferences, content.features, content.labels
        holder = x if x is not None else p
        if holder is None:
            raise InputError("there is nothing to write", remedy="LETOR files store features or lists")
        if x is None and p is not None:
            self.warn_of_omitted(comparisons=len(p.comparisons), scores=p.lists.score is not None)
        else:
            self.warn_of_omitted(preferences=p)
        index = holder.index
        queries = format_plain_ids(index.queries, "query", self.name)
        if hashed := [q for q in queries if "#" in q]:
            remedy = "in LETOR, # starts a comment; rename the query"
            raise InputError(f"the query id {hashed[0][:80]!r} cannot be written as letor", remedy=remedy)
        items = format_plain_ids(index.items, "item", self.name, index.query_of_slot)
        if labels is None:
            warnings.warn(
                "LETOR lines begin with a label, but there are no labels: 0 is written",
                PodiumWarning,
                stacklevel=3,
            )
        grades = np.zeros(len(items)) if labels is None else labels.align(index)
        if np.isnan(grades).any():
            raise InputError("some items have no label", remedy="LETOR files need one for every item")
        cells = _build_feature_formatter(x) if x is not None else _build_rank_formatter(holder)  # type: ignore[arg-type]
        order = np.lexsort((index.arrival, index.query_of_slot)).tolist()
        query_of, values = index.query_of_slot.tolist(), grades.tolist()
        for begin in range(0, len(order), 1000):
            yield "".join(
                f"{values[s]:.17g} qid:{queries[query_of[s]]} {cells(s)} #docid = {items[s]}\n"
                for s in order[begin : begin + 1000]
            ).encode()


def _build_feature_formatter(x: Features) -> Callable[[int], str]:
    columns = x.names if all(map(_is_column_number, x.names)) else range(1, len(x.names) + 1)

    def format_cells(slot: int) -> str:
        pairs = zip(columns, x.values[slot].tolist(), strict=True)
        return " ".join(f"{c}:{'NULL' if v != v else repr(v)}" for c, v in pairs)

    return format_cells


def _is_column_number(name: str) -> bool:
    """Whether a name is a valid column number."""
    return re.fullmatch("[1-9][0-9]{0,9}", name) is not None and int(name) <= LAST_COLUMN


def _build_rank_formatter(p: Preferences) -> Callable[[int], str]:
    names = [str(e) for e in p.experts]
    bad = next((n for n in names if not _is_column_number(n)), None)
    if bad is not None:
        raise InputError(
            f"the expert id {bad!r} cannot be written as letor",
            remedy="in LETOR, experts are column numbers: 1, 2, ...",
        )
    by_slot: dict[int, dict[int, int]] = defaultdict(dict)
    experts = p.lists.expert[p.lists.list_of_row].tolist()
    for slot, expert, rank in zip(p.lists.item.tolist(), experts, p.lists.rank.tolist(), strict=True):
        by_slot[slot][expert] = rank
    columns = sorted((int(n), k) for k, n in enumerate(names))
    return lambda slot: " ".join(f"{c}:{by_slot[slot].get(k, 'NULL')}" for c, k in columns)


@dataclass
class _LetorRows(ParsedLines):
    """Lines in file order (the score is the label), and their cells in blocks."""

    blocks: list[LetorCells] = field(default_factory=list)

    def looks_like_ranks(self) -> bool:
        missing = False
        for block in self.blocks:
            given = block.value[~np.isnan(block.value)]
            if not ((given >= 1) & (given == np.floor(given))).all():
                return False
            missing |= len(given) < len(block.value)
        return missing

    def column_numbers(self) -> I8:
        """Column numbers that occur, ascending; all from 1 on when few are absent."""
        numbers = np.unique(np.concatenate([np.unique(block.column) for block in self.blocks])).astype(
            np.int64
        )
        last = int(numbers[-1]) if len(numbers) else 0
        return np.arange(1, last + 1) if last <= 2 * len(numbers) + 16 else numbers

    def build_matrix(self, columns: I8) -> F8:
        """One row per line; a column that a line omits is 0, as in SVMlight."""
        if len(self.query) * len(columns) > 2**31:
            raise InputError(
                f"{len(self.query)} rows of {len(columns)} features do not fit in memory",
                source=self.sources[0].name,
                remedy="keep fewer features or read fewer files",
            )
        values = np.zeros((len(self.query), len(columns)))
        first = 0
        for block in self.blocks:
            values[first + block.row, np.searchsorted(columns, block.column)] = block.value
            first += len(block.widths)
        return values


def _parse_rows(sources: Sequence[Source]) -> _LetorRows:
    rows = _LetorRows(sources)
    for index, source in enumerate(sources):
        seen: dict[str, int] = defaultdict(int)
        waiting: list[bytes] = []
        for line, text in source.iterate_lines():
            body, _, comment = text.partition(b"#")
            fields = body.split(None, 2)
            if not fields:
                continue  # a comment line
            if len(fields) < 2 or not fields[1].startswith(b"qid:") or len(fields[1]) == 4:
                remedy = "the line format is: label qid:Q 1:value 2:value ... #docid = D"
                raise source.error(f"no qid: in {quote_bytes(text)}", line, remedy)
            query = fields[1][4:].decode()
            seen[query] += 1
            match = _DOCID.search(comment)
            item = match[1].decode() if match else str(seen[query])
            label = parse_field(fields[0].decode(), "label", source, line, "a label is a finite number")
            rows.add(index, line, query, item, label)
            waiting.append(fields[2] if len(fields) > 2 else b"")
            if len(waiting) == BLOCK:
                _add_block(rows, waiting)
                waiting = []
        _add_block(rows, waiting)
    if not rows.query:
        raise sources[0].error("there are no rows, only comments")
    return rows


def _add_block(rows: _LetorRows, lines: list[bytes]) -> None:
    first = len(rows.line) - len(lines)

    def cell_error(k: int, problem: str, remedy: str) -> InputError:
        source, line = rows.origin(first + k)
        return InputError(problem, source=source, line=line, remedy=remedy)

    rows.blocks.append(parse_cells(lines, cell_error))


def _build_preferences(
    rows: _LetorRows, query: CodedColumn, item: CodedColumn, kind: str, reversed_lists: bool
) -> Preferences:
    widths = np.concatenate([block.widths for block in rows.blocks])
    value = np.concatenate([block.value for block in rows.blocks])
    given = np.flatnonzero(~np.isnan(value))
    row, value = np.repeat(np.arange(len(widths)), widths)[given], value[given]
    columns = rows.column_numbers()
    column = np.concatenate([block.column for block in rows.blocks])[given]
    expert = CodedColumn(np.searchsorted(columns, column), Ids([str(c) for c in columns.tolist()]))
    q, i = CodedColumn(query.codes[row], query.ids), CodedColumn(item.codes[row], item.ids)

    def origin(k: int) -> tuple[str, int]:
        return rows.origin(int(row[k]))

    if kind == "scores":
        return Preferences.from_rows(q, expert, i, score=value, candidates=(query, item), origin=origin)
    if reversed_lists:
        key = q.codes * len(columns) + expert.codes
        top = np.full(int(key.max(initial=0)) + 1, -np.inf)
        np.maximum.at(top, key, value)
        value = top[key] - value + 1
    return Preferences.from_rows(q, expert, i, rank=value, candidates=(query, item), origin=origin)
