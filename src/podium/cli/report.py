"""podium report: an analysis of the input as one HTML file."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from typing import TYPE_CHECKING, Any

import click

from podium.cli import _common as common
from podium.core.errors import ParameterError

if TYPE_CHECKING:
    from podium.methods.base import Aggregator
    from podium.reporting import Report


@click.command(name="report", short_help="One HTML file: verdict, checks, curves, heatmaps, experts.")
@click.argument("files", nargs=-1, type=common.FILES)
@click.option(
    "-o", "--output", type=click.Path(allow_dash=True), help="The HTML file to write; - for standard output."
)
@common.qrels_option
@click.option("-m", "--method", "methods", multiple=True, help="A method or model file; may be repeated.  "
              "[default: with judgements all that are fast on the input, else a few]")  # fmt: skip
@click.option("--model", "models", multiple=True, type=click.Path(exists=True, dir_okay=False),
              help="A saved model to compare with the methods; may be repeated.")  # fmt: skip
@common.metrics_option("ndcg@10", "map")
@click.option(
    "--query", "queries", multiple=True, help="A query to show in full; may be repeated.  [default: three]"
)
@common.features_option
@click.option(
    "--tuning", type=click.Path(exists=True, dir_okay=False), help="The output of `podium tune --json`."
)
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
@click.option("--overwrite", is_flag=True, help="Replace files that exist.")
@common.input_options
@common.json_option
def verb(
    files: tuple[str, ...],
    output: str | None,
    methods: tuple[str, ...],
    models: tuple[str, ...],
    figures: str | None,
    interactive: bool,
    overwrite: bool,
    json_: bool,
    **asked: Any,
) -> None:
    """Write one HTML file about the input: the verdict, checks of its reliability, and the figures behind it.

    The file is self-contained, needs no network and can be printed. The input is rankings, ratings or
    votes, with or without judgements; the sections depend on the data.

    \b
    podium report *.run --qrels qrels.txt -o report.html
    podium report A*.txt -m rrf -m condorcet --model model.podium -o report.html --figures pictures
    podium report votes.csv -o votes.html
    podium report --demo -o report.html
    """
    if output is None and figures is None and not json_:
        raise click.UsageError("no output; give -o report.html, --figures FOLDER or --json")
    if output not in (None, "-"):
        common.refuse_overwrite(output, overwrite)
    if asked["demo"] == bool(files):
        raise click.UsageError("give input files, or --demo for the embedded data")
    with _show_status():
        found = _build_report(files, _make_methods(methods, models), asked)
        if figures is not None:
            found.save_figures(figures, overwrite=overwrite)
        if output is not None and not (
            json_ and output == "-"
        ):  # standard output can hold only one of the two
            found.save(output, interactive=interactive, overwrite=overwrite)
    if json_:
        common.print_json(found.to_dict())
    elif output != "-":
        _print_summary(found, output, figures)


def _show_status() -> contextlib.AbstractContextManager[Any]:
    """Show a spinner on a terminal; do nothing elsewhere."""
    if not sys.stderr.isatty():
        return contextlib.nullcontext()
    from rich.console import Console

    return Console(stderr=True).status("writing the report")


def _make_methods(methods: tuple[str, ...], models: tuple[str, ...]) -> dict[str, Aggregator]:
    """The methods by specification; a model by the name of its file."""
    named: dict[str, Aggregator] = {}
    for spec in (*methods, *models):
        name = os.path.basename(spec).removesuffix(".podium") if os.path.isfile(spec) else spec
        if name in named:
            raise ParameterError(f"method {name!r} is given twice; give it once, or rename the file")
        named[name] = common.make_method(spec)
    return named


def _build_report(files: tuple[str, ...], named: dict[str, Aggregator], asked: dict[str, Any]) -> Report:
    from podium.cli.explain import resolve_id
    from podium.reporting import report
    from podium.reporting.inputs import choose_methods

    content = _read_content(files, asked)
    preferences = common.require_preferences(content, files)
    labels = _read_optional_labels(asked["qrels"], content)
    if named and all(m.tags.supervised for m in named.values()):
        named = {
            **choose_methods(preferences, labels).methods,
            **named,
        }  # a model needs methods to compare with
    user = next((m for m in named.values() if m.tags.uses_features), None)
    if asked["features"] and user is None:
        raise ParameterError(
            "no method here uses item features; give a --model that does, or leave --features out"
        )
    features = None if user is None else common.resolve_features(user, content, asked["features"])
    queries = [resolve_id(q, preferences.queries.tolist(), "query") for q in asked["queries"]]
    title = (
        asked["title"] or f"Report on {'the embedded data' if asked['demo'] else _format_file_names(files)}"
    )
    return report(
        preferences,
        labels,
        methods=named,
        metrics=asked["metrics"],
        queries=queries,
        features=features,
        times=content.seconds,
        tuning=_read_tuning(asked["tuning"]),
        learn=asked["learn"],
        title=title,
        made={"files": "the embedded data" if asked["demo"] else ", ".join(map(os.path.basename, files))},
    )


def _format_file_names(files: tuple[str, ...]) -> str:
    names = [os.path.basename(f) for f in files]
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more files" if len(names) > 3 else "")


def _read_content(files: tuple[str, ...], asked: dict[str, Any]) -> Any:
    if not asked["demo"]:
        return common.read_input(files, asked["format_"], asked["options"], asked["unlisted"])
    from podium.data.demo import demo
    from podium.formats.base import to_content

    return to_content(demo())


def _read_optional_labels(qrels: str | None, content: Any) -> Any:
    from podium.cli.eval import read_labels

    return None if qrels is None and content.labels is None else read_labels(qrels, content)


def _read_tuning(path: str | None) -> Any:
    if path is None:
        return None
    from podium.evaluate.tuning import check_document

    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
    except (ValueError, RecursionError) as error:
        raise ParameterError(
            f"{path} is not JSON: {error}; give the output of `podium tune --json`"
        ) from None
    return check_document(found, path)


def _print_summary(found: Report, output: str | None, figures: str | None) -> None:
    for line in found.verdict:
        click.echo(line)
    marks = {"wrong": "WRONG", "check": "CHECK"}
    for finding in found.findings:
        if finding.verdict in marks:
            click.echo(f"{marks[finding.verdict]:>6}  {finding.name}: {finding.text}")
    for what in filter(None, (output, figures)):
        click.echo(f"written to {what}", err=True)
