"""podium reproduce: published tables, computed again."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from podium.cli import _common as common

if TYPE_CHECKING:
    from podium.evaluate.reproduce import Reproduction


@click.command(name="reproduce", short_help="Compute a published table again.")
@click.argument("table", required=False)
@click.option("--data", envvar="PODIUM_DATA", type=click.Path(),
              help="Folder with the data sets.  [default: the variable PODIUM_DATA]")  # fmt: skip
@click.option("--only", multiple=True, metavar="ROW", help="Only this row; may be repeated.")
@click.option("--sets", "sets", multiple=True, metavar="SET", help="Only this data set; may be repeated.")
@click.option(
    "-o", "--output", metavar="NAME", help="Write NAME.md, NAME.csv and NAME.json, or the one NAME ends in."
)
@click.option("--overwrite", is_flag=True, help="Replace the output if it exists.")
@click.option("--resume", type=click.Path(file_okay=False),
              help="Folder in which results are kept, to go on after an interruption.")  # fmt: skip
@click.option("--seed", type=click.IntRange(0, 2**31 - 1), default=0, show_default=True,
              help="Seed of random splits, and of methods that have one.")  # fmt: skip
@common.json_option
def verb(
    table: str | None,
    data: str | None,
    only: tuple[str, ...],
    sets: tuple[str, ...],
    output: str | None,
    overwrite: bool,
    resume: str | None,
    seed: int,
    json_: bool,
) -> None:
    """Compute a published table again, beside the published figures; without TABLE, list the tables.

    \b
    podium reproduce
    podium reproduce table3 --data data --sets mq2008-agg --only RRF --only LR-logR
    podium reproduce table3 --data data --resume work -o table3
    """
    from podium.errors import ParameterError
    from podium.evaluate import reproduce as package

    if table is None:
        _print_tables(json_)
        return
    what = package.find_table(table)
    if data is None and not what.generated:
        raise ParameterError(
            "the data sets are not given; name their folder with --data, or in the variable PODIUM_DATA"
        )
    for path in package.output_paths(output) if output else []:
        common.refuse_overwrite(path, overwrite)
    with common.progress_bar() as progress:
        found = package.reproduce(
            what, data, only=only, sets=sets, seed=seed, resume=resume, progress=progress
        )
    written = package.write(found, output, overwrite=overwrite) if output else []
    if json_:
        common.print_json(package.to_document(found))
    else:
        _print_reproduction(found)
    if written:
        click.echo(f"written to {', '.join(written)}", err=True)


def _print_tables(json_: bool) -> None:
    from podium.evaluate.reproduce import TABLES

    if json_:
        common.print_json(
            [
                {"name": t.name, "title": t.title, "citation": t.citation, "sets": t.sets,
                 "rows": {row.name: row.method for row in t.rows}}
                for t in TABLES.values()
            ]
        )  # fmt: skip
        return
    rows = [(t.name, t.title, ", ".join(t.sets), t.citation) for t in TABLES.values()]
    common.print_table(["table", "what it shows", "data sets", "published in"], rows, left=4)
    common.echo_if_tty("podium reproduce TABLE --data FOLDER computes one.")


def _print_reproduction(found: Reproduction) -> None:
    from podium.evaluate.reproduce import figure_lines, quality_lines, test_lines

    for one in found.sets:
        head, *body = figure_lines(found.table, one)
        _print_titled_table(one.name, head, body, f"{one.name}, {one.queries} queries, percent")
        tests = test_lines(found.table, one.tests)
        if tests:
            _print_titled_table(one.name, tests[0], tests[1:], f"{one.name}: paired randomisation tests")
        qualities = quality_lines(one)
        if qualities:
            title = f"{one.name}: qualities of annotators, estimated against true"
            _print_titled_table(one.name, qualities[0], qualities[1:], title)
        for title, (first, *lines) in one.more:
            _print_titled_table(one.name, first, lines, f"{one.name}: {title}")
    for note in found.notes:
        common.echo_if_tty(note)


def _print_titled_table(name: str, head: Sequence[str], body: Sequence[Sequence[str]], title: str) -> None:
    """A table under its title; a pipe gets no titles, so there the data set is a column."""
    if sys.stdout.isatty():
        common.print_table(head, body, title=title, left=2)
    else:
        common.print_table(["set", *head], [[name, *line] for line in body])
