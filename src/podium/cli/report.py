"""podium report: Write one HTML file: verdict, checks, curves, heatmaps, experts."""

from __future__ import annotations

import dataclasses
import json
import os
from typing import TYPE_CHECKING, Any

import click

from podium.cli._method import make_method
from podium.cli._options import add_option, add_options, metrics_option
from podium.cli._progress import show_status
from podium.cli._vote_trust import read_vote_sources
from podium.cli.input import Input, resolve_id, with_input
from podium.cli.output import Output, print_json, with_output
from podium.core.errors import ParameterError

if TYPE_CHECKING:
    from podium.methods.base import Aggregator
    from podium.reporting import Report


@click.command(name="report")
@add_option(Output, "path", "The HTML file to write; - for standard output.")
@add_options(Input, "qrels")
@click.option("-m", "--method", "methods", multiple=True, help="A method or model file; may be repeated.  "
              "[default: with judgements all that are fast on the input, else a few]")  # fmt: skip
@click.option("--model", "models", multiple=True, type=click.Path(exists=True, dir_okay=False),
              help="A saved model to compare with the methods; may be repeated.")  # fmt: skip
@metrics_option("ndcg@10", "map")
@click.option(
    "--query", "queries", multiple=True, help="A query to show in full; may be repeated.  [default: three]"
)
@add_options(Input, "features")
@click.option(
    "--tuning", type=click.Path(exists=True, dir_okay=False), help="The output of `podium tune --json`."
)
@click.option("--slice", "slices", multiple=True, metavar="COLUMN",
              help="Of votes: ranks for each value of a column; may be repeated.  "
              "[default: category and language, if there are such columns]")  # fmt: skip
@click.option("--time", metavar="COLUMN",
              help="Of votes: when they were cast.  "
              "[default: tstamp, timestamp, time, date or created_at]")  # fmt: skip
@click.option("--gold", type=click.Path(allow_dash=False, dir_okay=False),
              help="Of votes: human answers to some of the questions, to assess the judges with.")  # fmt: skip
@click.option("--learn/--no-learn", default=True, show_default=True,
              help="Fit a model to show expert weights, if there are enough labels and no --model.")  # fmt: skip
@click.option(
    "--figures",
    type=click.Path(file_okay=False),
    help="Also write each figure to this folder as .svg and .png.",
)
@click.option("--interactive", is_flag=True, help="Figures with tooltips; adds about 1 MB to the page.")
@click.option("--title", default="", help="Title of the report.")
@click.option("--demo", is_flag=True, help="Use the embedded data instead of files.")
@add_option(Output, "overwrite", "Replace files that exist.")
@with_input
@with_output
def verb(
    source: Input,
    output: Output,
    methods: tuple[str, ...],
    models: tuple[str, ...],
    figures: str | None,
    interactive: bool,
    demo: bool,
    **settings: Any,
) -> None:
    """Write one HTML file about the input: the verdict, checks of its reliability, and the figures behind it.

    The file is self-contained, needs no network and can be printed. The input is rankings, ratings or
    votes, with or without judgements; the sections depend on the data.

    \b
    podium report *.run --qrels qrels.txt -o report.html
    podium report A*.txt -m rrf -m condorcet --model model.podium -o report.html --figures pictures
    podium report votes.csv -o votes.html                  board, voters, slices, panel of judges
    podium report --demo -o report.html
    """
    if output.path is None and figures is None and not output.json:
        raise click.UsageError("no output; give -o report.html, --figures FOLDER or --json")
    output.check()
    if demo == bool(source.files):
        raise click.UsageError("give input files, or --demo for the embedded data")
    if demo:
        from podium.data.demo import demo as load_demo
        from podium.formats.base import to_content

        source = dataclasses.replace(source, preset_content=to_content(load_demo()))
    with show_status("writing the report"):
        report = _build_report(source, (*methods, *models), settings)
        if figures is not None:
            report.save_figures(figures, overwrite=output.overwrite)
        # standard output can hold only one of JSON and page
        if output.path is not None and not (output.json and output.path == "-"):
            report.save(output.path, interactive=interactive, overwrite=output.overwrite)
    if output.json:
        print_json(report.to_dict())
    elif output.path != "-":
        for line in report.verdict:
            click.echo(line)
        marks = {"wrong": "WRONG", "check": "CHECK"}
        for finding in report.findings:
            if finding.verdict in marks:
                click.echo(f"{marks[finding.verdict]:>6}  {finding.name}: {finding.text}")
        for path in filter(None, (output.path, figures)):
            click.echo(f"written to {path}", err=True)


def _build_report(source: Input, specs: tuple[str, ...], settings: dict[str, Any]) -> Report:
    from podium.reporting import report
    from podium.reporting.inputs import choose_methods

    named: dict[str, Aggregator] = {}
    for spec in specs:
        # a model goes by the name of its file
        name = os.path.basename(spec).removesuffix(".podium") if os.path.isfile(spec) else spec
        if name in named:
            raise ParameterError(f"method {name!r} is given twice; give it once, or rename the file")
        named[name] = make_method(spec, source)
    preferences, labels = source.preferences, source.optional_labels
    if named and all(m.tags.supervised for m in named.values()):
        # a model needs methods to compare with
        named = {**choose_methods(preferences, labels).methods, **named}
    user = next((m for m in named.values() if m.tags.uses_features), None)
    if source.features and user is None:
        raise ParameterError(
            "no method here uses item features; give a --model that does, or leave --features out"
        )
    names = [os.path.basename(f) for f in source.files]
    more = f" and {len(names) - 3} more files" if len(names) > 3 else ""
    shown = ", ".join(names[:3]) + more if names else "the embedded data"
    return report(
        preferences,
        labels,
        methods=named,
        metrics=settings["metrics"],
        queries=[resolve_id(q, preferences.queries.tolist(), "query") for q in settings["queries"]],
        features=None if user is None else source.features_of(user),
        times=source.content.seconds,
        tuning=_read_tuning(settings["tuning"]),
        vote_sources=read_vote_sources(source, settings["slices"], settings["time"], settings["gold"]),
        learn=settings["learn"],
        title=settings["title"] or f"Report on {shown}",
        made={"files": ", ".join(names) or "the embedded data"},
    )


def _read_tuning(path: str | None) -> Any:
    if path is None:
        return None
    from podium.evaluate.tuning import check_document

    try:
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
    except (ValueError, RecursionError) as error:
        raise ParameterError(
            f"{path} is not JSON: {error}; give the output of `podium tune --json`"
        ) from None
    return check_document(document, path)
