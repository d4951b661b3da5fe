"""podium convert: Convert between file formats."""

from __future__ import annotations

import click

from podium.cli._options import add_option, add_options
from podium.cli.input import Input, parse_assignments, with_input
from podium.cli.output import Output, print_json, print_table, with_output
from podium.core import registry


@click.command(name="convert")
@add_options(Output, "path")
@add_option(Output, "to", "Format of the output.  [default: from the suffix]")
@click.option(
    "--write-option",
    "write_options",
    multiple=True,
    metavar="NAME=VALUE",
    help="An option of the output format.",
)
@click.option(
    "--preference-features",
    is_flag=True,
    help="Write the singular vectors of the experts' preferences as item features (letor).",
)
@add_options(Output, "overwrite")
@click.option("--formats", "list_", is_flag=True, help="List the formats and their options.")
@with_input
@with_output
def verb(
    source: Input, write_options: tuple[str, ...], preference_features: bool, list_: bool, output: Output
) -> None:
    """Convert between file formats; - is standard input or output, gzip input is decompressed.

    \b
    podium convert A1.txt A2.txt -o ranks.csv
    podium convert votes.csv -o votes.parquet
    podium convert run.txt --to jsonl -o -
    podium convert runs/*.run --preference-features --to letor -o features.txt
    """
    from podium import formats

    if list_:
        made = [cls() for cls in registry.formats.all().values()]
        if output.json:
            print_json([{"name": f.name, "summary": f.summary, "suffixes": f.suffixes, "read": f.options("read"),
                          "write": f.options("write")} for f in made])  # fmt: skip
        else:
            rows = [(f.name, f.summary, " ".join(f.suffixes), " ".join(f.options("read"))) for f in made]
            print_table(["format", "what it is", "suffixes", "options"], rows, left=4)
        return
    if output.path is None:
        raise click.UsageError("no output; give -o FILE, or -o - with --to FORMAT")
    options = parse_assignments(write_options, "option")
    content = source.content
    if preference_features:
        from podium.methods.learned.svd_features import build_preference_features

        features = build_preference_features(source.preferences)
        content = formats.Content(features=features, labels=content.labels)
        click.echo(f"columns: {', '.join(features.names)}", err=True)
    formats.write(content, output.path, output.to, overwrite=output.overwrite, **options)
    parts = {name: getattr(content, name) for name in ("preferences", "labels", "features")}
    holds = {name: repr(part) for name, part in parts.items() if part is not None}
    if output.json and output.path != "-":
        print_json({"output": output.path, "holds": holds})
    else:
        click.echo(f"{', '.join(holds.values())} written to {output.path}", err=True)
