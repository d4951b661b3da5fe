"""podium convert: convert between file formats."""

from __future__ import annotations

import click

from podium.cli import _common as common


@click.command(name="convert", short_help="Convert between file formats.")
@click.argument("files", nargs=-1, type=common.FILES)
@click.option(
    "-o", "--output", type=click.Path(allow_dash=True), help="The file to write; its suffix sets the format."
)
@click.option("--to", "to", help="Format of the output.  [default: from the suffix]")
@click.option(
    "--write-option",
    "write_options",
    multiple=True,
    metavar="NAME=VALUE",
    help="An option of the output format.",
)
@click.option("--overwrite", is_flag=True, help="Replace the output if it exists.")
@click.option("--formats", "list_", is_flag=True, help="List the formats and their options.")
@common.input_options
@common.json_option
def verb(
    files: tuple[str, ...],
    output: str | None,
    to: str | None,
    write_options: tuple[str, ...],
    overwrite: bool,
    list_: bool,
    format_: str | None,
    unlisted: str | None,
    options: tuple[str, ...],
    json_: bool,
) -> None:
    """Convert between file formats; - is standard input or output, gzip input is decompressed.

    \b
    podium convert A1.txt A2.txt -o ranks.csv
    podium convert votes.csv -o votes.parquet
    podium convert run.txt --to jsonl -o -
    """
    from podium import formats

    if list_:
        _print_formats(json_)
        return
    if output is None:
        raise click.UsageError("no output; give -o FILE, or -o - with --to FORMAT")
    content = common.read_input(files, format_, options, unlisted)
    formats.write(
        content, output, to, overwrite=overwrite, **common.parse_assignments(write_options, "option")
    )
    parts = {
        name: part
        for name in ("preferences", "labels", "features")
        if (part := getattr(content, name)) is not None
    }
    if json_ and output != "-":
        common.print_json({"output": output, "holds": {name: repr(part) for name, part in parts.items()}})
    else:
        click.echo(f"{', '.join(map(repr, parts.values()))} written to {output}", err=True)


def _print_formats(json_: bool) -> None:
    from podium.core import registry

    made = [cls() for cls in registry.formats.all().values()]
    if json_:
        common.print_json([{"name": f.name, "summary": f.summary, "suffixes": f.suffixes, "read": f.options("read"),
                      "write": f.options("write")} for f in made])  # fmt: skip
        return
    rows = [(f.name, f.summary, " ".join(f.suffixes), " ".join(f.options("read"))) for f in made]
    common.print_table(["format", "what it is", "suffixes", "options"], rows, left=4)
