"""What a verb writes: files, JSON, and tables for a terminal or a pipe."""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import click

from podium.cli._options import F, add_options, collect
from podium.core.errors import ParameterError
from podium.core.optional import check_package
from podium.core.params import Flags, Range
from podium.core.settings import TIES_HELP, TieRule
from podium.core.tables import Grid, replace_nonfinite
from podium.core.text import format_count

if TYPE_CHECKING:
    from podium.data.consensus import Consensus

GROUPED_NUMBER = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d+)?")  # such as 14,514
trec_ties_option = click.option(
    "--ties",
    type=click.Choice(["trec", "item", "input"]),
    default="trec",
    show_default=True,
    help=TIES_HELP,
)


@dataclass(frozen=True)
class Output:
    """Where a verb writes its result, in which form, and how much of it."""

    path: Annotated[
        str | None,
        click.Path(allow_dash=True),
        Flags("-o", "--output"),
        "The file to write; its suffix sets the format.",
    ] = None
    to: Annotated[str | None, "Format of the output.  [default: from the suffix, else trec]"] = None
    top: Annotated[int | None, Range(1, 2**31), "Keep this many items per query."] = None
    tag: Annotated[str, "Name of the fused run."] = "podium"
    ties: Annotated[TieRule, TIES_HELP] = "item"
    plot: Annotated[str | None, click.Path(), "Draw the result: a .svg, .png or .html file."] = None
    overwrite: Annotated[bool, "Replace the output if it exists."] = False
    json: Annotated[bool, "Print JSON instead of a table."] = False

    def check(self, *charts: str | None, files: Sequence[str | None] = ()) -> None:
        """Refuse before any work what cannot be written: existing files, unknown types of charts."""
        for path in filter(None, (self.plot, *charts)):
            from podium.evaluate.charts import check_suffix

            refuse_overwrite(path, self.overwrite)
            check_suffix(path)
        for path in filter(None, (self.path, *files)):
            if path != "-":
                refuse_overwrite(path, self.overwrite)

    def apply_tie_rule(self, consensus: Consensus) -> Consensus:
        """Order ties by the rule; `trec` also compares scores as 32-bit floats, as trec_eval does."""
        return consensus.with_ties(self.ties, single=self.ties == "trec")

    def write_consensus(self, consensus: Consensus, method: str, reading: str = "") -> None:
        """Write the consensus to a file, print it as JSON, show it on a terminal, or write a run into a pipe.

        `reading` describes how unlisted items were treated.
        """
        if not consensus.diagnostics.converged:
            notes = "; ".join(consensus.diagnostics.notes)
            echo_warning(f"{method} did not converge: {notes}")
        if self.path is not None and not (self.json and self.path == "-"):
            self._write_file(consensus, self.path, reading)
        if self.json:
            lists = [
                {
                    "query": q,
                    "items": [
                        {"item": r.item, "score": r.score, "tied": r.tied} for r in consensus[q][: self.top]
                    ],
                }
                for q in consensus.queries
            ]
            document = {
                "method": consensus.method,
                "fingerprint": consensus.fingerprint,
                "milliseconds": round(consensus.diagnostics.seconds * 1e3, 3),
                "converged": consensus.diagnostics.converged,
                "notes": list(consensus.diagnostics.notes),
                "ties": consensus.ties,
                "results": lists,
                "reading": reading,
            }
            print_json(document)
        elif self.path is None and sys.stdout.isatty():
            _print_consensus(consensus, reading, items=self.top or 10)
        elif self.path is None:
            self._write_file(consensus, "-", reading)

    def _write_file(self, consensus: Consensus, path: str, reading: str) -> None:
        from podium import formats

        shortened = consensus if self.top is None else consensus.top(self.top)
        to = self.to or ("trec" if path == "-" else None)
        formats.write(shortened, path, to, overwrite=self.overwrite, tag=self.tag)
        if path == "-":
            return
        size = f"{format_count(len(shortened), 'query')}, {format_count(len(shortened.order), 'item')}"
        click.echo(f"{size} written to {path}", err=True)
        for line in (*consensus.diagnostics.notes, reading):
            if line:
                click.echo(line, err=True)


def with_output(command: F) -> F:
    """Add `--json`, which every verb has, and hand over `output`, an `Output` with all options of that kind."""
    return add_options(Output, "json")(collect(Output, "output")(command))


def consensus_options(command: F) -> F:
    """Add the options of verbs that write a consensus."""
    return add_options(Output, "path", "to", "top", "tag", "ties", "overwrite")(command)


def refuse_overwrite(path: str, overwrite: bool) -> None:
    """Do not overwrite unless asked; the target folder must exist."""
    if os.path.exists(path) and not overwrite:
        raise ParameterError(f"{path} exists; choose another name, or give --overwrite to replace it")
    folder = os.path.dirname(path)
    if folder and not os.path.isdir(folder):
        raise ParameterError(f"{path}: folder {folder} does not exist; create it, or choose another name")


def _print_consensus(consensus: Consensus, reading: str, queries: int = 3, items: int = 10) -> None:
    for query in consensus.queries[:queries]:
        rows = [
            (str(r.rank), str(r.item), f"{r.score:.6g}", "tied" if r.tied else "")
            for r in consensus[query][:items]
        ]
        print_table(["rank", "item", "score", ""], rows, title=f"query {query}", left=2)
    for note in consensus.diagnostics.notes:
        click.echo(f"{note[:1].upper()}{note[1:]}{'' if note.endswith('.') else '.'}")
    if reading:
        click.echo(reading)
    click.echo(
        f"{consensus.method}: {len(consensus):,} queries; use -o FILE to write all of it, --json for JSON."
    )


# -- tables and lines --------------------------------------------------------------------------------------


def format_number(value: float | None, digits: int = 4) -> str:
    """Format a number for a table."""
    return "" if value is None else f"{value:.{digits}f}"


def print_json(document: Any) -> None:
    """Print JSON."""
    indent = 2 if sys.stdout.isatty() else None
    click.echo(json.dumps(replace_nonfinite(document), ensure_ascii=False, indent=indent, default=str))


def print_grid(grid: Grid, wide: Sequence[str] = (), room: float = math.inf) -> None:
    """Print a table of a result; a terminal narrower than `room` does not get the columns named in `wide`."""
    head, rows = grid.head, grid.rows
    if wide and sys.stdout.isatty() and shutil.get_terminal_size().columns < room:
        kept = [i for i, name in enumerate(head) if name not in wide]
        head, rows = (tuple(head[i] for i in kept), tuple(tuple(row[i] for i in kept) for row in rows))
    print_table(head, rows, title=grid.title, left=grid.left)


def print_table(
    columns: Sequence[str], rows: Iterable[Sequence[str]], *, title: str = "", left: int = 1
) -> None:
    """Print a drawn table on a terminal, tab-separated values to a pipe; the first `left` columns are text.

    In a pipe, counts such as 14,514 lose their commas so that programs can parse them.
    """
    lines = list(rows)
    if not sys.stdout.isatty():
        click.echo("\t".join(columns))
        for line in lines:
            cells = [c.replace(",", "") if GROUPED_NUMBER.fullmatch(c) else c for c in line[left:]]
            click.echo("\t".join((*line[:left], *cells)))
        return
    check_package("rich")
    from rich import box
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table
    from rich.text import Text

    drawn = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for i, name in enumerate(columns):
        drawn.add_column(escape(name), justify="left" if i < left else "right", overflow="fold")
    for line in lines:
        drawn.add_row(*(Text(cell) for cell in line))
    console = Console()
    if title:  # printed separately: rich wraps a table's own title to the table's width
        console.print(Text(title, style="bold"))
    console.print(drawn)


def echo_if_tty(text: str) -> None:
    """Print a line on a terminal; print nothing to a pipe."""
    if sys.stdout.isatty():
        click.echo(text)


def echo_warning(text: str) -> None:
    """Print a warning on standard error."""
    click.echo(f"podium: warning: {text}", err=True)


def echo_note(text: str) -> None:
    """Print a line beside a table; for a pipe, on standard error, which keeps the table clean."""
    click.echo(text, err=not sys.stdout.isatty())
