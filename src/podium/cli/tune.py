"""podium tune: which method, parameters and weights to use, by judgements, with an honest estimate of the gain."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

import click

from podium.cli import _common as common
from podium.cli.eval import read_labels

if TYPE_CHECKING:
    from podium.data.dataset import Dataset
    from podium.evaluate.tuning import Tuning

SHOWN = 5  # configurations in the table


@click.command(name="tune", short_help="Find method, parameters and weights by judgements.")
@click.argument("files", nargs=-1, type=common.FILES)
@click.option(
    "-q", "--qrels", type=common.FILES, help="Judgements; not needed when the input holds them (LETOR)."
)
@click.option("-M", "--metric", default="ndcg@10", show_default=True, help="The metric to raise.")
@click.option("-m", "--method", "methods", multiple=True, help="A method to search, perhaps with values that stay, as "
              "in 'combsum(normalizer=zscore)'; may be repeated.  [default: all that are quick here]")  # fmt: skip
@click.option(
    "--supervised", is_flag=True, help="Without -m: also the methods that learn from labels (slow)."
)
@click.option(
    "--weights/--no-weights", default=True, show_default=True, help="Search weights of the experts."
)
@click.option(
    "--search", type=click.Choice(["random", "grid", "halving"]), default="random", show_default=True
)
@click.option(
    "--trials", type=click.IntRange(1), default=200, show_default=True, help="Configurations to try."
)
@click.option("--folds", type=click.IntRange(2), help="Parts the queries are dealt into.  [default: 5]")
@click.option("--baseline", help="What the result is held against.  [default: rrf]")
@click.option("--limit", type=click.FloatRange(0, min_open=True), default=0.05, show_default=True,
              help="Without -m: processor seconds that a configuration may take.")  # fmt: skip
@click.option("--ties", type=click.Choice(["trec", "item", "input"]), default="trec", show_default=True)
@click.option("--seed", type=click.IntRange(0, 2**31 - 1), default=0, show_default=True)
@click.option("--workers", type=click.IntRange(1), help="Threads.  [default: one a core]")
@click.option("--resume", type=click.Path(file_okay=False),
              help="Folder in which results are kept, to go on after an interruption.")  # fmt: skip
@click.option("-o", "--output", type=click.Path(), help="The model file to write, such as best.podium.")
@click.option("--overwrite", is_flag=True, help="Replace the output if it exists.")
@common.reading
@common.as_json
def verb(
    files: tuple[str, ...],
    qrels: str | None,
    metric: str,
    methods: tuple[str, ...],
    output: str | None,
    overwrite: bool,
    format_: str | None,
    unlisted: str | None,
    options: tuple[str, ...],
    json_: bool,
    **settings: Any,
) -> None:
    """Find method, parameters and weights by judgements, and say what they are worth on queries not seen.

    The estimate comes from cross-validation in which the whole search is made again for every fold. If the result
    cannot be told from the baseline, the verdict says so; the model is written all the same.

    \b
    podium tune *.run --qrels qrels.txt -M map -o best.podium
    podium tune *.run --qrels qrels.txt -m rrf -m combsum --search grid --trials 500 -o best.podium
    podium apply best.podium *.run -o fused.run
    """
    from podium import models
    from podium.evaluate.tuning import tune

    if output is not None:
        common.check_new(output, overwrite)
    data = _data(files, qrels, (format_, options, unlisted))
    with common.telling() as progress:
        found = tune(data, metric, list(methods) or None, progress=progress, **settings)
    if output is not None:
        models.save(found.best, output, overwrite=overwrite)
    command = None if output is None else _command(output, files, format_, options, unlisted)
    if json_:
        common.emit({**found.to_dict(), "model": output, "apply": command})
    else:
        _show(found, command)


def _data(files: tuple[str, ...], qrels: str | None, reading: tuple[Any, Any, Any]) -> Dataset:
    from podium.data.dataset import Dataset

    content = common.read(files, *reading)
    preferences = common.preferences_of(content, files)
    return Dataset(preferences, read_labels(qrels, content), content.features)


def _command(
    output: str, files: tuple[str, ...], format_: str | None, options: tuple[str, ...], unlisted: str | None
) -> str:
    """What applies the model to this input, ready for a shell."""
    words = ["podium", "apply", output, *files]
    words += ["-f", format_] if format_ else []
    words += ["--unlisted", unlisted] if unlisted else []
    for option in options:
        words += ["-O", option]
    return shlex.join([*words, "-o", "fused.run"])


def _show(found: Tuning, command: str | None) -> None:
    """The verdict, the estimate, the best configurations, what was left out, how to go on."""
    click.echo(found.sentence())
    held = "on queries not seen" if found.folds > 1 else "on the query it was tuned on"
    columns = [f"{found.metric} {held}", "mean", "tuned is better by", f"{found.level:.0%} interval", "p"]
    common.table(columns, [("tuned", common.number(found.tuned), "", "", ""), *map(_row, found.rows)])
    best = [(t.config, common.number(t.mean), str(t.queries)) for t in found.trials[:SHOWN] if not t.failed]
    common.table(
        ["best configurations", f"{found.metric}, too high: chosen by it", "queries"],
        best,
        title=f"{len(found.trials)} configurations, {found.search} search, {found.folds} folds, seed {found.seed}",
    )
    for note in found.notes:
        click.echo(f"note: {note}")
    if found.left_out:
        common.say("")
        common.table(["not tried", "why"], list(found.left_out.items()), left=2)
    if command is not None:
        click.echo(f"apply it with: {command}")


def _row(row: Any) -> tuple[str, ...]:
    if row.low is None or row.high is None:
        return (row.name, common.number(row.mean), "", "", "")
    p = "<0.001" if (row.p or 0) < 0.001 else common.number(row.p, 3)
    return (
        row.name,
        common.number(row.mean),
        f"{row.difference:+.4f}",
        f"{row.low:+.4f} .. {row.high:+.4f}",
        p,
    )
