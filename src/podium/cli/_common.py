"""Shared by the verbs: options, reading input, tables for a terminal or a pipe, progress."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from podium.cli._progress import progress_bar, track_progress
from podium.core.errors import ParameterError
from podium.core.params import parse_spec
from podium.core.tables import replace_nonfinite

if TYPE_CHECKING:
    from podium.data.features import Features
    from podium.data.preferences import Preferences
    from podium.formats import Content
    from podium.methods.base import Aggregator

__all__ = [
    "FILES",
    "features_option",
    "format_number",
    "input_options",
    "json_option",
    "make_method",
    "metrics_option",
    "parse_reading_options",
    "print_json",
    "print_table",
    "progress_bar",
    "qrels_option",
    "read_feature_files",
    "read_input",
    "refuse_overwrite",
    "resolve_features",
    "track_progress",
]

METRICS_HELP = (
    "A metric; may be repeated. One of ndcg, map, p, mrr, recall, rprec, success, bpref, rbp, err, judged, most with a "
    "cutoff, as in p@10. Grades of 1 and above are relevant; map(relevant=2) or 'p(relevant=2)@10' set another "
    "threshold. ndcg@10:exp and ndcg@10:letor use other gains, rbp(p=0.95) sets the persistence, "
    "err(max_grade=4) the highest possible grade."
)
FILES = click.Path(allow_dash=True, dir_okay=True)
F = TypeVar("F", bound=Callable[..., Any])


def json_option(command: F) -> F:
    """Add `--json`, which every verb has."""
    return click.option("--json", "json_", is_flag=True, help="Print JSON instead of a table.")(command)


def input_options(command: F) -> F:
    """Add the options of verbs that read files."""
    command = click.option("-f", "--format", "format_", help="Format of the input; detected by default.")(
        command
    )
    command = click.option(
        "--unlisted",
        type=click.Choice(["below", "unknown"]),
        help="How to treat items that an expert does not list.  [default: set by the format]",
    )(command)
    return click.option(
        "-O",
        "--option",
        "options",
        multiple=True,
        metavar="NAME=VALUE",
        help="An option of the format, such as expert=file, columns=..., query=COLUMN or winner_codes=1=a,2=b,0=tie "
        "(see `podium convert --formats`).",
    )(command)


def qrels_option(command: F) -> F:
    """Add `--qrels`, for verbs that require judgements."""
    text = "Judgements; not needed when the input holds them (LETOR)."
    return click.option("-q", "--qrels", type=FILES, help=text)(command)


def features_option(command: F) -> F:
    """Add `--features`, for verbs that accept any method."""
    text = "Item features, for a method or model that uses them; may be repeated."
    return click.option("--features", type=FILES, multiple=True, help=text)(command)


def metrics_option(*default: str) -> Callable[[F], F]:
    """Add `--metric`: the metrics to report."""
    return click.option(
        "-M",
        "--metric",
        "metrics",
        multiple=True,
        default=default,
        show_default=True,
        help=METRICS_HELP,
    )


def parse_assignments(given: Iterable[str], what: str) -> dict[str, str]:
    """Parse NAME=VALUE arguments; a repeated name is an error."""
    found: dict[str, str] = {}
    for word in given:
        name, equals, value = word.strip().rpartition("=") if what == "weight" else word.partition("=")
        if not equals or not name:
            raise ParameterError(f"{what} {word!r} cannot be read; write NAME=VALUE")
        if name in found:
            raise ParameterError(f"{what} {name!r} is given twice; give it once")
        found[name] = value
    return found


def read_input(
    files: Sequence[str], format_: str | None, options: Sequence[str], unlisted: str | None = None
) -> Content:
    """Read the input files with the given options."""
    from podium import formats

    if not files:
        raise click.UsageError("no input file; give at least one, or - for standard input")
    return formats.read(list(files), format_, **parse_reading_options(options, unlisted))


def parse_reading_options(options: Sequence[str], unlisted: str | None) -> dict[str, Any]:
    """The values of `-O` and `--unlisted`, for `formats.read`."""
    given: dict[str, Any] = dict(parse_assignments(options, "option"))
    if "format" in given:
        raise ParameterError("set the format with -f, not with -O")
    return given if unlisted is None else given | {"unlisted": unlisted}


def require_preferences(content: Content, files: Sequence[str]) -> Preferences:
    """The preferences in the input, or an error that says what it holds instead."""
    if content.preferences is None:
        got = "labels" if content.labels is not None else "features"
        raise ParameterError(
            f"{', '.join(files)}: contains {got} but no lists or comparisons; give runs, ratings or votes"
        )
    return content.preferences


def resolve_features(method: Aggregator, content: Content, paths: Sequence[str] = ()) -> Features | None:
    """Item features from `--features` or from the input; None for a method that uses none."""
    found = read_feature_files(paths).features if paths else content.features
    if paths and not method.tags.uses_features:
        raise ParameterError(f"{method.name} does not use item features; leave --features out")
    return found if method.tags.uses_features else None


def read_feature_files(
    files: Sequence[str], format_: str | None = None, options: Sequence[str] = ()
) -> Content:
    """Read item features; tables need the role of their columns, other formats define it themselves."""
    from podium import formats
    from podium.core import registry

    names = [format_] if format_ else [formats.sniff(p) for p in files if p != "-"]
    able = all("kind" in registry.formats.get(name)().options("read") for name in names)
    told = not able or any(o.startswith("kind=") for o in options)
    content = read_input(files, format_, [*options, *([] if told else ["kind=features"])])
    if content.features is None:
        given = ", ".join(files)
        raise ParameterError(
            f"{given} contains no item features; give a LETOR file, or a table with feature columns"
        )
    return content


def refuse_overwrite(path: str, overwrite: bool) -> None:
    """Check before any work: do not overwrite unless asked, and the target folder must exist."""
    if os.path.exists(path) and not overwrite:
        raise ParameterError(f"{path} exists; choose another name, or give --overwrite to replace it")
    folder = os.path.dirname(path)
    if folder and not os.path.isdir(folder):
        raise ParameterError(f"{path}: folder {folder} does not exist; create it, or choose another name")


def make_method(spec: str, parameters: Sequence[str] = (), weights: str | None = None) -> Aggregator:
    """Make the method from `-m`, `-p` and `--weights`; a file path is a saved model."""
    from podium import models
    from podium.methods.base import make

    if spec.endswith(".podium") or os.path.isfile(spec):
        if parameters or weights:
            raise ParameterError(
                f"{spec} is a saved model with its own parameters and weights; leave -p and --weights out"
            )
        loaded: Aggregator = models.load(spec)
        return loaded
    given: dict[str, Any] = {}
    for name, value in parse_assignments(parameters, "parameter").items():
        given |= parse_spec(f"p({name}={value})")[1] if name.isidentifier() else {name: value}
    if weights is not None:
        given["weights"] = {
            k: _parse_weight(k, v) for k, v in parse_assignments(weights.split(","), "weight").items()
        }
    return make(spec, **given)


def _parse_weight(name: str, value: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise ParameterError(f"the weight of {name!r} is {value!r}; give a number") from None


def match_weights(method: Aggregator, preferences: Preferences) -> Aggregator:
    """Match the weights to expert ids: command-line names are text, but an expert id may be a number."""
    if not isinstance(method.weights, Mapping):
        return method
    numbers = {str(e): e for e in preferences.experts if not isinstance(e, str)}
    known = set(preferences.experts)
    named = {e if e in known else numbers.get(str(e), e): w for e, w in method.weights.items()}
    return dataclasses.replace(method, weights=named)


def format_number(value: float | None, digits: int = 4) -> str:
    """Format a number for a table."""
    return "" if value is None else f"{value:.{digits}f}"


def print_json(document: Any) -> None:
    """Print JSON."""
    click.echo(
        json.dumps(
            replace_nonfinite(document),
            ensure_ascii=False,
            indent=2 if sys.stdout.isatty() else None,
            default=str,
        )
    )


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
            click.echo("\t".join((*line[:left], *map(_strip_commas, line[left:]))))
        return
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


def _strip_commas(cell: str) -> str:
    return cell.replace(",", "") if re.fullmatch(r"[+-]?\d{1,3}(,\d{3})+(\.\d+)?", cell) else cell


def echo_if_tty(text: str) -> None:
    """Print a line on a terminal; print nothing to a pipe."""
    if sys.stdout.isatty():
        click.echo(text)
