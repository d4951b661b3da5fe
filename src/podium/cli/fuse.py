"""podium fuse: many lists in, one out."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from podium.cli import _common as common

if TYPE_CHECKING:
    from podium.data.consensus import Consensus


@click.command(name="fuse", short_help="Fuse runs, ratings or votes into one ranking per query.")
@click.argument("files", nargs=-1, type=common.FILES)
@click.option(
    "-m", "--method", default="rrf", show_default=True, help="A method, such as 'rrf(k=20)', or a model file."
)
@click.option(
    "-p", "--parameter", "parameters", multiple=True, metavar="NAME=VALUE", help="A parameter of the method."
)
@click.option("--weights", metavar="NAME=W,...", help="Weights of the experts, such as bm25=1,dense=2.")
@click.option(
    "-o", "--output", type=click.Path(allow_dash=True), help="Where to write; the suffix says the format."
)
@click.option("--to", "to", help="Format of the output  [default: from the suffix, else trec]")
@click.option("--top", type=click.IntRange(1, 2**31), help="Keep so many items of each query.")
@click.option("--tag", default="podium", show_default=True, help="Name of the fused run.")
@click.option("--ties", type=click.Choice(["item", "trec", "input"]), default="item", show_default=True)
@click.option("--overwrite", is_flag=True, help="Replace the output if it exists.")
@common.reading
@common.as_json
def verb(
    files: tuple[str, ...],
    method: str,
    parameters: tuple[str, ...],
    weights: str | None,
    output: str | None,
    to: str | None,
    top: int | None,
    tag: str,
    ties: Any,
    overwrite: bool,
    format_: str | None,
    unlisted: str | None,
    options: tuple[str, ...],
    json_: bool,
) -> None:
    """Fuse runs, ratings or votes into one ranking per query.

    \b
    podium fuse bm25.run dense.run                         a look at the first queries
    podium fuse *.run -m 'rrf(k=20)' -o fused.run          a TREC run
    podium fuse *.run --weights bm25=1,dense=2 -o fused.csv
    zcat votes.csv.gz | podium fuse - -m copeland --json
    """
    aggregator = common.make_method(method, parameters, weights)
    preferences = common.preferences_of(common.read(files, format_, options, unlisted), files)
    consensus = common.weighted(aggregator, preferences).aggregate(preferences, ties=ties)
    if not consensus.diagnostics.converged:
        click.echo(
            f"podium: warning: {method} did not converge: {'; '.join(consensus.diagnostics.notes)}", err=True
        )
    if output is not None and not (json_ and output == "-"):
        _write(consensus, output, to, top, tag, overwrite)
    if json_:
        common.emit(_document(consensus, top))
    elif output is None and sys.stdout.isatty():
        _show(consensus, items=top or 10)
    elif output is None:
        _write(consensus, "-", to, top, tag, overwrite)


def _write(
    consensus: Consensus, output: str, to: str | None, top: int | None, tag: str, overwrite: bool
) -> None:
    from podium import formats

    shortened = consensus if top is None else consensus.top(top)
    formats.write(shortened, output, to or ("trec" if output == "-" else None), overwrite=overwrite, tag=tag)
    if output != "-":
        click.echo(
            f"{len(shortened):,} queries, {len(shortened.order):,} items written to {output}", err=True
        )


def _document(consensus: Consensus, top: int | None) -> dict[str, Any]:
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
        "ties": consensus.ties,
        "results": lists,
    }


def _show(consensus: Consensus, queries: int = 3, items: int = 10) -> None:
    for query in consensus.queries[:queries]:
        rows = [
            (str(r.rank), str(r.item), f"{r.score:.6g}", "tied" if r.tied else "")
            for r in consensus[query][:items]
        ]
        common.table(["rank", "item", "score", ""], rows, title=f"query {query}", left=2)
    click.echo(
        f"{consensus.method}: {len(consensus):,} queries; use -o FILE to write all of it, --json for JSON."
    )
