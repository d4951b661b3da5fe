"""Shared by `fuse` and `apply`: writing or showing a consensus."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from podium.cli import _common as common

if TYPE_CHECKING:
    from podium.data.consensus import Consensus

__all__ = ["OutputOptions", "output_options", "write_consensus"]

F = TypeVar("F", bound=Callable[..., Any])


class OutputOptions(NamedTuple):
    """Where to write the result, and how much of it."""

    output: str | None
    to: str | None
    top: int | None
    tag: str
    overwrite: bool
    json: bool


def output_options(command: F) -> F:
    """Add the options of verbs that write a consensus."""
    options = (
        click.option(
            "-o",
            "--output",
            type=click.Path(allow_dash=True),
            help="The file to write; its suffix sets the format.",
        ),
        click.option("--to", "to", help="Format of the output.  [default: from the suffix, else trec]"),
        click.option("--top", type=click.IntRange(1, 2**31), help="Keep this many items per query."),
        click.option("--tag", default="podium", show_default=True, help="Name of the fused run."),
        click.option(
            "--ties", type=click.Choice(["item", "trec", "input"]), default="item", show_default=True
        ),
        click.option("--overwrite", is_flag=True, help="Replace the output if it exists."),
    )
    for option in reversed(options):
        command = option(command)
    return command


def write_consensus(consensus: Consensus, method: str, wanted: OutputOptions, reading: str = "") -> None:
    """Write the consensus to a file, print it as JSON, show it on a terminal, or write a run into a pipe.

    `reading` describes how unlisted items were treated.
    """
    if not consensus.diagnostics.converged:
        click.echo(
            f"podium: warning: {method} did not converge: {'; '.join(consensus.diagnostics.notes)}", err=True
        )
    output = wanted.output
    if output is not None and not (wanted.json and output == "-"):
        _write_file(consensus, output, wanted, reading)
    if wanted.json:
        common.print_json(_build_document(consensus, wanted.top) | {"reading": reading})
    elif output is None and sys.stdout.isatty():
        _print_consensus(consensus, reading, items=wanted.top or 10)
    elif output is None:
        _write_file(consensus, "-", wanted, reading)


def _format_count(n: int, one: str, many: str) -> str:
    return f"{n:,} {one if n == 1 else many}"


def _write_file(consensus: Consensus, output: str, wanted: OutputOptions, reading: str) -> None:
    from podium import formats

    shortened = consensus if wanted.top is None else consensus.top(wanted.top)
    to = wanted.to or ("trec" if output == "-" else None)
    formats.write(shortened, output, to, overwrite=wanted.overwrite, tag=wanted.tag)
    if output != "-":
        click.echo(
            f"{_format_count(len(shortened), 'query', 'queries')}, "
            f"{_format_count(len(shortened.order), 'item', 'items')} written to {output}",
            err=True,
        )
        if reading:
            click.echo(reading, err=True)


def _build_document(consensus: Consensus, top: int | None) -> dict[str, Any]:
    lists = [
        {
            "query": q,
            "items": [{"item": r.item, "score": r.score, "tied": r.tied} for r in consensus[q][:top]],
        }
        for q in consensus.queries
    ]
    return {
        "method": consensus.method,
        "fingerprint": consensus.fingerprint,
        "milliseconds": round(consensus.diagnostics.seconds * 1e3, 3),
        "converged": consensus.diagnostics.converged,
        "notes": list(consensus.diagnostics.notes),
        "ties": consensus.ties,
        "results": lists,
    }


def _print_consensus(consensus: Consensus, reading: str, queries: int = 3, items: int = 10) -> None:
    for query in consensus.queries[:queries]:
        rows = [
            (str(r.rank), str(r.item), f"{r.score:.6g}", "tied" if r.tied else "")
            for r in consensus[query][:items]
        ]
        common.print_table(["rank", "item", "score", ""], rows, title=f"query {query}", left=2)
    for note in consensus.diagnostics.notes:
        click.echo(f"{note[:1].upper()}{note[1:]}{'' if note.endswith('.') else '.'}")
    if reading:
        click.echo(reading)
    click.echo(
        f"{consensus.method}: {len(consensus):,} queries; use -o FILE to write all of it, --json for JSON."
    )
