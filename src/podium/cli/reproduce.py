"""podium reproduce: Recompute a published table."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from podium.cli._options import add_option, add_options
from podium.cli._progress import progress_bar
from podium.cli.output import Output, echo_if_tty, print_json, print_table, refuse_overwrite, with_output
from podium.core.errors import ParameterError

if TYPE_CHECKING:
    from podium_papers import Reproduction


@click.command(name="reproduce")
@click.argument("table", required=False)
@click.option("--data", envvar="PODIUM_DATA", type=click.Path(),
              help="Folder with the data sets.  [default: $PODIUM_DATA]")  # fmt: skip
@click.option("--only", multiple=True, metavar="ROW", help="Only this row; may be repeated.")
@click.option("--sets", "sets", multiple=True, metavar="SET", help="Only this data set; may be repeated.")
@add_option(
    Output,
    "path",
    "Write NAME.md, NAME.csv and NAME.json, or only the one that NAME ends in.",
    metavar="NAME",
    type=str,
)
@add_options(Output, "overwrite")
@click.option("--resume", type=click.Path(file_okay=False),
              help="Folder for intermediate results, to resume after an interruption.")  # fmt: skip
@click.option("--seed", type=click.IntRange(0, 2**31 - 1), default=0, show_default=True,
              help="Seed of random splits and of randomized methods.")  # fmt: skip
@click.option("--seeds", type=click.IntRange(1, 10_000), default=1, show_default=True,
              help="Number of seeds, from --seed on: means and standard deviations over them.")  # fmt: skip
@with_output
def verb(
    table: str | None,
    data: str | None,
    only: tuple[str, ...],
    sets: tuple[str, ...],
    resume: str | None,
    seed: int,
    seeds: int,
    output: Output,
) -> None:
    """Recompute a published table and show the published numbers beside it; without TABLE, list the tables.

    \b
    podium reproduce
    podium reproduce table3 --data data --sets mq2008-agg --only RRF --only LR-logR
    podium reproduce table3 --data data --resume work -o table3
    podium reproduce table2 --data data --seeds 6
    """
    papers = load_papers()
    if table is None:
        tables = papers.TABLES.values()
        if output.json:
            print_json(
                [
                    {"name": t.name, "title": t.title, "citation": t.citation, "sets": t.sets,
                     "rows": {row.name: row.method for row in t.rows}}
                    for t in tables
                ]
            )  # fmt: skip
            return
        rows = [(t.name, t.title, ", ".join(t.sets), t.citation) for t in tables]
        print_table(["table", "what it shows", "data sets", "published in"], rows, left=4)
        echo_if_tty("podium reproduce TABLE --data FOLDER computes one.")
        return
    what = papers.find_table(table)
    if data is None and not what.generated:
        raise ParameterError(
            "no folder of data sets; give it with --data or the environment variable PODIUM_DATA"
        )
    for path in papers.output_paths(output.path) if output.path else []:
        refuse_overwrite(path, output.overwrite)
    with progress_bar() as progress:
        reproduction = papers.reproduce(
            what, data, only=only, sets=sets, seed=seed, seeds=seeds, resume=resume, progress=progress
        )
    written = papers.write(reproduction, output.path, overwrite=output.overwrite) if output.path else []
    if output.json:
        print_json(papers.to_document(reproduction))
    else:
        _print_reproduction(papers, reproduction)
    if written:
        click.echo(f"written to {', '.join(written)}", err=True)


def load_papers() -> Any:
    """The published tables: an installed plug-in, or the folder `papers` of the checkout in use."""
    from importlib.metadata import entry_points

    for entry in entry_points(group="podium.papers"):
        return entry.load()
    folder = Path(__file__).resolve().parents[3] / "papers"
    if not (folder / "podium_papers").is_dir():
        raise ParameterError(
            "the published tables are not installed; pip install podium-rank-papers, or run podium from a checkout"
        )
    sys.path.append(str(folder))
    return importlib.import_module("podium_papers")


def _print_reproduction(papers: Any, reproduction: Reproduction) -> None:
    unit = reproduction.table.unit
    for one in reproduction.sets:
        tables = [
            (f"{one.name}, {one.queries} queries, {unit}", papers.figure_lines(reproduction.table, one)),
            (f"{one.name}: paired randomization tests", papers.test_lines(reproduction.table, one.tests)),
            (f"{one.name}: qualities of annotators, estimated against true", papers.quality_lines(one)),
            *((f"{one.name}: {title}", lines) for title, lines in one.more),
        ]
        for title, lines in tables:
            if lines and sys.stdout.isatty():
                print_table(lines[0], lines[1:], title=title, left=2)
            elif lines:  # a pipe gets no titles, so the data set becomes a column
                print_table(["set", *lines[0]], [[one.name, *line] for line in lines[1:]])
    for note in reproduction.notes:
        echo_if_tty(note)
