"""A reproduced table as text, Markdown, CSV and JSON."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from podium.core import tables
from podium.evaluate.comparison import ComparisonRow
from podium.metrics.base import parse
from podium.storage.files import write_atomically
from podium_papers.published_table import PublishedTable
from podium_papers.reproduction import Reproduction, RowResult, SetResult

__all__ = [
    "as_csv",
    "as_json",
    "as_markdown",
    "figure_lines",
    "output_paths",
    "quality_lines",
    "test_lines",
    "to_document",
    "write",
]

_LINES = {"spread": "sd over seeds"}
_SHORT = {"ndcg": "N", "p": "P", "map": "MAP", "rbp": "RBP"}


def shorten_metric(metric: str) -> str:
    """N@5 for ndcg@5 of any variant, as printed in the papers."""
    m = parse(metric)
    return _SHORT.get(m.name, m.name) + ("" if m.cutoff is None else f"@{m.cutoff}")


def figure_lines(table: PublishedTable, found: SetResult) -> list[list[str]]:
    """A header, then up to four lines per row: published, ours, its standard deviation, difference."""
    lines = [["", "", *(found.columns or map(shorten_metric, table.metrics))]]
    for row in found.rows:
        for what in ("published", "ours", "spread", "difference"):
            figures = getattr(row, what)
            if figures is not None:
                cells = [tables.format_decimal(f, 2, sign=what == "difference") for f in figures]
                lines.append([row.name, _LINES.get(what, what), *cells])
    return lines


def test_lines(table: PublishedTable, tests: Iterable[ComparisonRow]) -> list[list[str]]:
    """A header, then one line per paired test; empty if nothing was tested."""
    tested = [t for t in tests if t.difference is not None]
    if not tested:
        return []
    lines = [
        [f"against {table.baseline}", "metric", "difference", "95 % interval", "p (Holm)", "won/tied/lost"]
    ]
    for t in tested:
        low, high, difference = (
            tables.format_decimal(None if v is None else 100 * v, 2, sign=True)
            for v in (t.low, t.high, t.difference)
        )
        lines.append(
            [
                t.name,
                shorten_metric(t.metric),
                difference,
                f"{low} .. {high}" if low and high else "",
                tables.format_p_value(t.p_holm),
                f"{t.wins}/{t.ties}/{t.losses}",
            ]
        )
    return lines


def quality_lines(found: SetResult) -> list[list[str]]:
    """A header, then one line per row whose method estimates annotator qualities."""
    if not found.annotators:
        return []
    shown = ("rank correlation", "mean error", "estimated", "true", "divergence", "annotators", "converged")
    lines = [["annotators", *shown]]
    for q in found.annotators:
        shares = (f"{v:.3f}" for v in (q.correlation, q.error, q.estimated, q.true, q.divergence))
        end = {True: "yes", False: "no", None: ""}[q.converged]
        lines.append([q.name, *shares, f"{q.annotators:,}", end])
    return lines


def as_markdown(found: Reproduction) -> str:
    """Headings, tables and notes."""
    out = [f"# {found.table.title}", "", f"{found.table.citation}.", ""]
    for one in found.sets:
        out += [f"## {one.name}", "", *_format_grid(figure_lines(found.table, one), left=2), ""]
        tests = test_lines(found.table, one.tests)
        out += [*_format_grid(tests, left=2), ""] if tests else []
        qualities = quality_lines(one)
        out += [*_format_grid(qualities, left=1), ""] if qualities else []
        for title, lines in one.more:
            out += [f"{title}:", "", *_format_grid(lines, left=1), ""]
    out += [f"- {note}" for note in found.notes]
    methods = {r.name: r.method for s in found.sets for r in s.rows if r.method is not None}
    out += ["", "Methods: " + "; ".join(f"{name} = `{method}`" for name, method in methods.items()) + "."]
    seeds = (
        f"seeds {found.seed} to {found.seed + found.seeds - 1}" if found.seeds > 1 else f"seed {found.seed}"
    )
    out += ["", f"Podium {found.version}, {seeds}, {found.seconds:.0f} s."]
    return "\n".join(out) + "\n"


def _format_grid(lines: Sequence[Sequence[str]], left: int) -> list[str]:
    head, *body = (tuple(line) for line in lines)
    return [tables.format_markdown(tables.Grid(head, tuple(body), left))]


def as_csv(found: Reproduction) -> str:
    """One line per data set, row and metric."""
    head = ["table", "data", "row", "method", "metric", "published", "ours", "spread", "difference"]
    lines = []
    for one in found.sets:
        for row in one.rows:
            for i, metric in enumerate(one.columns or found.table.metrics):
                four = (row.published, row.ours, row.spread, row.difference)
                cells = [_format_cell(figures, i) for figures in four]
                lines.append([found.table.name, one.name, row.name, row.method or "", metric, *cells])
    return tables.format_csv(head, lines)


def _format_cell(figures: Sequence[float] | None, at: int) -> str:
    return "" if figures is None else tables.format_decimal(figures[at], 2)


def to_document(found: Reproduction) -> dict[str, Any]:
    """Everything as plain values."""
    return {
        "table": found.table.name,
        "title": found.table.title,
        "citation": found.table.citation,
        "metrics": list(found.table.metrics),
        "ties": found.table.ties,
        "seed": found.seed,
        "seeds": found.seeds,
        "seconds": round(found.seconds, 3),
        "version": found.version,
        "notes": list(found.notes),
        "sets": [
            {
                "data": one.name,
                "fingerprint": one.fingerprint,
                "queries": one.queries,
                "baseline": found.table.baseline,
                "rows": [_row(row) for row in one.rows],
                "tests": [_test(t) for t in one.tests if t.difference is not None],
                "annotators": [q._asdict() for q in one.annotators],
                "columns": list(one.columns),
                "more": {
                    title: [dict(zip(head, line, strict=True)) for line in lines]
                    for title, (head, *lines) in one.more
                },
            }
            for one in found.sets
        ],
    }


def _row(row: RowResult) -> dict[str, Any]:
    return {**dataclasses.asdict(row), "difference": row.difference}


def _test(test: ComparisonRow) -> dict[str, Any]:
    return {k: v for k, v in dataclasses.asdict(test).items() if k != "judged"}


def as_json(found: Reproduction) -> str:
    """The document as JSON."""
    return tables.format_json(to_document(found))


WRITERS = {".md": as_markdown, ".csv": as_csv, ".json": as_json}


def write(found: Reproduction, name: str, *, overwrite: bool = False) -> list[str]:
    """Write NAME.md, NAME.csv and NAME.json, or one of them if the name has its suffix; returns the names."""
    names = output_paths(name)
    for path in names:
        write_atomically([WRITERS[Path(path).suffix](found).encode()], path, overwrite=overwrite)
    return names


def output_paths(name: str) -> list[str]:
    """The files that `write` creates for a name."""
    return [name] if Path(name).suffix in WRITERS else [f"{name}{suffix}" for suffix in WRITERS]
