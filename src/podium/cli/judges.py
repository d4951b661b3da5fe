"""podium judges: Assess a panel of judges, with human gold if there is some."""

from __future__ import annotations

import click

from podium.cli._options import add_option
from podium.cli.input import Input, with_input
from podium.cli.output import Output, echo_note, print_grid, print_json, with_output


@click.command(name="judges")
@click.option(
    "--gold",
    type=click.Path(allow_dash=False, dir_okay=False),
    help="Human answers to some of the questions: votes as in the input, or grades of items. A random sample.",
)
@add_option(Input, "features", "Item features to check for biases, such as length; may be repeated.")
@click.option(
    "-r",
    "--rule",
    "rules",
    multiple=True,
    help="A rule to choose from; may be repeated. The best judge is always one.  "
    "[default: majority, dawid_skene, crowd_bt, crf, fused]",
)
@click.option("--error", type=float, default=0.1, show_default=True, help="Largest accepted error rate.")
@click.option("--level", type=float, default=0.95, show_default=True, help="Confidence level.")
@click.option(
    "--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of folds and resamples."
)
@add_option(Output, "path", "Write the panel's answer to each question: a .csv file.")
@add_option(Output, "plot", "Draw judges and rules: a .svg, .png or .html file.")
@add_option(Output, "overwrite", "Replace files that exist.")
@with_input
@with_output
def verb(
    source: Input,
    gold: str | None,
    rules: tuple[str, ...],
    error: float,
    level: float,
    seed: int,
    output: Output,
) -> None:
    """Assess a panel of judges: how many independent judges it is worth, and what its answers prove.

    Judgements are tables of votes on pairs, or of ratings with two levels, with a column for the judge. With
    gold, each judge's agreement and biases, errors that judges share, the rule to take the panel's answers by,
    an error bound for the questions it answers, and means corrected by the judges' answers are reported.

    \b
    podium judges votes.csv --gold gold.csv
    podium judges votes.csv --gold gold.csv --features lengths.csv --error 0.05 -o answers.csv
    podium judges votes.csv --json
    """
    from podium import formats
    from podium.analysis.judges import assess_panel
    from podium.core.errors import ParameterError
    from podium.core.tables import format_csv
    from podium.storage.files import write_atomically

    output.check()
    truth = None
    if gold is not None:
        content = formats.read(gold)
        truth = content.labels if content.preferences is None else content.preferences
        if truth is None:
            raise ParameterError(f"{gold} contains no judgements; give votes, or a table with a grade column")
    features = Input(source.features).read_features()[1] if source.features else None
    panel = assess_panel(
        source.preferences, truth, features=features, rules=rules or None, error=error, level=level, seed=seed
    )
    if output.plot is not None:
        from podium.analysis.judges.chart import plot_panel

        plot_panel(panel, output.plot)
    if output.path is not None:
        rows = panel.list_answers()
        text = format_csv(list(rows[0]), [["" if v is None else v for v in row.values()] for row in rows])
        write_atomically([text.encode()], output.path, overwrite=output.overwrite)
        if output.path == "-":
            return
    if output.json:
        print_json(panel.to_dict())
        return
    for line in panel.lines:
        echo_note(line)
    print_grid(panel.grid())
    for table in panel.tables():
        click.echo()
        print_grid(table)
