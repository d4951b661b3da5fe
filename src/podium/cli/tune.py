"""podium tune: choose method, parameters and weights by judgements, with an unbiased estimate of the gain."""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING, Any

import click

from podium.cli import _common as common
from podium.cli.eval import read_labels

if TYPE_CHECKING:
    from podium.data.dataset import Dataset
    from podium.data.preferences import Preferences
    from podium.evaluate.tuning import Tuning


@click.command(name="tune", short_help="Find method, parameters and weights by judgements.")
@click.argument("files", nargs=-1, type=common.FILES)
@common.qrels_option
@click.option(
    "-M", "--metric", "metrics", multiple=True, help="The metric to maximize; one only.  [default: ndcg@10]"
)
@click.option("-m", "--method", "methods", multiple=True, help="A method to search; parameters given stay fixed, as in "
              "'combsum(normalizer=zscore)'; may be repeated.  [default: all that are fast on this input]")  # fmt: skip
@click.option("--supervised", is_flag=True, help="Without -m: include methods that learn from labels (slow).")
@click.option("--weights/--no-weights", default=True, show_default=True, help="Also search expert weights.")
@click.option(
    "--search", type=click.Choice(["random", "grid", "halving"]), default="random", show_default=True
)
@click.option(
    "--trials", type=click.IntRange(1), default=200, show_default=True, help="Configurations to try."
)
@click.option("--folds", type=click.IntRange(2), help="Cross-validation folds.  [default: 5]")
@click.option("--baseline", help="The method to compare the result with.  [default: rrf]")
@click.option("--limit", type=click.FloatRange(0, min_open=True), default=0.05, show_default=True,
              help="Without -m: maximum CPU seconds per configuration.")  # fmt: skip
@click.option("--budget", type=click.FloatRange(0), default=300, show_default=True, metavar="SECONDS",
              help="Seconds for the search; after that, no new configuration starts; 0: no limit.")  # fmt: skip
@click.option("--ties", type=click.Choice(["trec", "item", "input"]), default="trec", show_default=True)
@click.option("--seed", type=click.IntRange(0, 2**31 - 1), default=0, show_default=True)
@click.option("--workers", type=click.IntRange(1), help="Threads.  [default: one per core]")
@click.option("--resume", type=click.Path(file_okay=False),
              help="Folder for intermediate results, to resume after an interruption.")  # fmt: skip
@click.option("-o", "--output", type=click.Path(), help="The model file to write, such as best.podium.")
@click.option("--overwrite", is_flag=True, help="Replace the output if it exists.")
@common.input_options
@common.json_option
def verb(
    files: tuple[str, ...],
    qrels: str | None,
    metrics: tuple[str, ...],
    methods: tuple[str, ...],
    output: str | None,
    overwrite: bool,
    format_: str | None,
    unlisted: str | None,
    options: tuple[str, ...],
    json_: bool,
    budget: float,
    **settings: Any,
) -> None:
    """Find method, parameters and weights by judgements, and estimate their quality on unseen queries.

    The estimate comes from nested cross-validation: the whole search is repeated in every fold. If the result
    is not significantly better than the baseline, the verdict says so; the model is written anyway.

    The search has a time budget of 300 seconds (--budget). If the budget runs out, a note says how many
    configurations were tried; running ones are finished, so the command may take a little longer.

    \b
    podium tune *.run --qrels qrels.txt -M map -o best.podium
    podium tune *.run --qrels qrels.txt -m rrf -m combsum --search grid --trials 500 -o best.podium
    podium apply best.podium *.run -o fused.run
    """
    from podium import models
    from podium.evaluate.tuning import tune

    metric = _select_metric(metrics)
    if output is not None:
        common.refuse_overwrite(output, overwrite)
    data = _read_dataset(files, qrels, (format_, options, unlisted))
    with common.progress_bar() as progress:
        found = tune(
            data, metric, list(methods) or None, budget=budget or None, progress=progress, **settings
        )
    if output is not None:
        models.save(found.best, output, overwrite=overwrite)
    target = "fused.run" if _can_write_run(data.preferences) else "fused.csv"
    command = (
        None if output is None else _format_apply_command(output, files, format_, options, unlisted, target)
    )
    if json_:
        common.print_json({**found.to_dict(), "model": output, "apply": command})
    else:
        _print_tuning(found, command)


def _select_metric(metrics: tuple[str, ...]) -> str:
    from podium.core.errors import ParameterError

    if len(metrics) > 1:
        raise ParameterError(
            f"tune maximizes one metric, but {len(metrics)} are given: {', '.join(metrics)}; give one -M"
        )
    return metrics[0] if metrics else "ndcg@10"


def _read_dataset(files: tuple[str, ...], qrels: str | None, reading: tuple[Any, Any, Any]) -> Dataset:
    from podium.data.dataset import Dataset

    content = common.read_input(files, *reading)
    preferences = common.require_preferences(content, files)
    return Dataset(preferences, read_labels(qrels, content), content.features)


def _can_write_run(preferences: Preferences) -> bool:
    """Whether a run file can hold these ids; blanks separate its columns, so ids must not contain any."""
    from podium.core.errors import InputError
    from podium.formats.text_ids import format_plain_ids

    try:
        format_plain_ids(preferences.queries, "query", "trec")
        format_plain_ids(preferences.index.items, "item", "trec", preferences.index.query_of_slot)
    except InputError:
        return False
    return True


def _format_apply_command(
    output: str,
    files: tuple[str, ...],
    format_: str | None,
    options: tuple[str, ...],
    unlisted: str | None,
    target: str,
) -> str:
    """The shell command that applies the model to this input."""
    words = ["podium", "apply", output, *files]
    words += ["-f", format_] if format_ else []
    words += ["--unlisted", unlisted] if unlisted else []
    for option in options:
        words += ["-O", option]
    return shlex.join([*words, "-o", target])


def _print_tuning(found: Tuning, command: str | None) -> None:
    """Print the verdict, the estimate, the best configurations, what was excluded, and the next step."""
    click.echo(found.conclusion())
    grid = found.grid()
    common.print_table(grid.head, grid.rows)
    # table titles are not printed to a pipe
    limit = "no time budget" if found.budget is None else f"time budget {found.budget:g} s"
    made = f"{found.search} search, {found.folds} folds, seed {found.seed}, {limit}"
    summary = f"{len(found.trials)} configurations, {made}"
    if not sys.stdout.isatty():
        click.echo(summary, err=True)
    best = found.trials_grid(queries=True)
    common.print_table(best.head, best.rows, title=summary)
    if found.weights:
        grid = found.weights_grid()
        common.print_table(grid.head, grid.rows)
    for note in found.notes:
        click.echo(f"note: {note}")
    if found.left_out:
        common.echo_if_tty("")
        common.print_table(["not tried", "why"], list(found.left_out.items()), left=2)
        names = " ".join(f"-m {name}" for name in sorted({t.method for t in found.trials}))
        common.echo_if_tty(
            f"Run times differ between machines; to repeat this search exactly, name its methods: {names}"
        )
    if command is not None:
        click.echo(f"apply it with: {command}")
