"""podium tune: Choose method, parameters and weights by judgements."""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING, Any

import click

from podium.cli._method import describe_failed_check, with_save_anyway
from podium.cli._options import add_option, add_options
from podium.cli._progress import progress_bar
from podium.cli.input import Input, with_input
from podium.cli.output import Output, echo_if_tty, print_json, print_table, trec_ties_option, with_output
from podium.core.errors import InputError, ParameterError
from podium.core.settings import TuneSettings

if TYPE_CHECKING:
    from podium.data.preferences import Preferences
    from podium.evaluate.tuning import Tuning


@click.command(name="tune")
@add_options(Input, "qrels")
@click.option(
    "-M", "--metric", "metrics", multiple=True, help="The metric to maximize; one only.  [default: ndcg@10]"
)
@click.option("-m", "--method", "methods", multiple=True, help="A method to search; parameters given stay fixed, as in "
              "'combsum(normalizer=zscore)'; may be repeated.  [default: all that are fast on this input]")  # fmt: skip
@add_options(TuneSettings, "engine", "supervised", "weights", "search", "trials", "folds", "baseline", "limit",
             "budget")  # fmt: skip
@trec_ties_option
@add_options(TuneSettings, "seed", "workers")
@add_option(TuneSettings, "resume", type=click.Path(file_okay=False))
@add_option(Output, "path", "The model file to write, such as best.podium.", type=click.Path())
@add_options(Output, "overwrite")
@with_save_anyway
@with_input
@with_output
def verb(
    source: Input,
    metrics: tuple[str, ...],
    methods: tuple[str, ...],
    budget: float,
    save_anyway: bool,
    output: Output,
    **settings: Any,
) -> None:
    """Choose method, parameters and weights by judgements, and estimate their quality on unseen queries.

    The estimate comes from nested cross-validation: the whole search is repeated in every fold. If the result
    is not significantly better than the baseline, the verdict says so. A model that is worse than the baseline or
    the best expert by more than one standard error is not saved unless --save-anyway is given.

    The search has a time budget of 300 seconds (--budget). If the budget runs out, a note says how many
    configurations were tried; running ones are finished, so the command may take a little longer.

    Folders are shards: files that each hold whole queries. Only the queries that --qrels judges are kept.

    \b
    podium tune *.run --qrels qrels.txt -M map -o best.podium
    podium tune *.run --qrels qrels.txt -m rrf -m combsum --search grid --trials 500 -o best.podium
    podium apply best.podium *.run -o fused.run
    podium tune shards/ --qrels qrels.txt -m rrf -o best.podium
    podium tune *.run --qrels qrels.txt --for qdrant -o best.podium
    """
    from podium import models
    from podium.data.dataset import Dataset
    from podium.evaluate.gain_check import check_tuning
    from podium.evaluate.tuning import tune

    if len(metrics) > 1:
        raise ParameterError(
            f"tune maximizes one metric, but {len(metrics)} are given: {', '.join(metrics)}; give one -M"
        )
    output.check()
    if source.names_folders:
        from podium import scale

        if source.qrels is None:
            raise ParameterError("shards are tuned by the labels of one file; give it with --qrels")
        data = scale.labelled(source.files, source.qrels, format=source.format, options=source.reading)
    else:
        data = Dataset(source.preferences, source.labels, source.content.features)
    with progress_bar() as progress:
        tuning = tune(
            data,
            metrics[0] if metrics else "ndcg@10",
            list(methods) or None,
            budget=budget or None,
            ties=output.ties,
            progress=progress,
            **settings,
        )
    command, problem = None, ""
    if output.path is not None and not save_anyway:
        problem = describe_failed_check(check_tuning(tuning), tuning.config)
    if output.path is not None and not problem:
        models.save(tuning.best, output.path, overwrite=output.overwrite)
        command = format_apply_command(source, output.path, data.preferences)
    if output.json:
        print_json({**tuning.to_dict(), "model": None if problem else output.path, "apply": command})
    else:
        _print_tuning(tuning, command)
    if problem:
        raise ParameterError(problem)


def format_apply_command(source: Input, path: str, preferences: Preferences) -> str:
    """The command that ranks the same input with the saved model."""
    from podium.formats.text_ids import format_plain_ids

    p, target = preferences, "fused.run"
    try:
        format_plain_ids(p.queries, "query", "trec")
        format_plain_ids(p.index.items, "item", "trec", p.index.query_of_slot)
    except InputError:
        target = "fused.csv"  # blanks separate the columns of a run file, so its ids must not contain any
    verb, target = ("batch", "fused/") if source.names_folders else ("apply", target)
    words = ["podium", verb, path, *source.files]
    words += ["-f", source.format] if source.format else []
    words += ["--unlisted", source.unlisted] if source.unlisted else []
    words += [word for option in source.options for word in ("-O", option)]
    return shlex.join([*words, "-o", target])


def _print_tuning(tuning: Tuning, command: str | None) -> None:
    """Print the verdict, the estimate, the best configurations, what was excluded, and the next step."""
    click.echo(tuning.conclusion())
    grid = tuning.grid()
    print_table(grid.head, grid.rows)
    # table titles are not printed to a pipe
    limit = "no time budget" if tuning.budget is None else f"time budget {tuning.budget:g} s"
    made = f"{tuning.search} search, {tuning.folds} folds, seed {tuning.seed}, {limit}"
    summary = f"{len(tuning.trials)} configurations, {made}"
    if not sys.stdout.isatty():
        click.echo(summary, err=True)
    best = tuning.trials_grid(queries=True)
    print_table(best.head, best.rows, title=summary)
    if tuning.weights:
        grid = tuning.weights_grid()
        print_table(grid.head, grid.rows)
    for note in tuning.notes:
        click.echo(f"note: {note}")
    if tuning.left_out:
        echo_if_tty("")
        print_table(["not tried", "why"], list(tuning.left_out.items()), left=2)
        names = " ".join(f"-m {name}" for name in sorted({t.method for t in tuning.trials}))
        echo_if_tty(
            f"Run times differ between machines; to repeat this search exactly, name its methods: {names}"
        )
    if command is not None:
        click.echo(f"apply it with: {command}")
