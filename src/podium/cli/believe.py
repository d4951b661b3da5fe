"""podium believe: Rank from beliefs about features, without judgements."""

from __future__ import annotations

import csv
from dataclasses import fields, replace
from typing import TYPE_CHECKING

import click

from podium.cli._method import MethodChoice, check_names, parse_parameters
from podium.cli._options import add_option, add_options
from podium.cli._progress import progress_bar
from podium.cli.input import Input, with_input
from podium.cli.output import (
    Output,
    consensus_options,
    echo_if_tty,
    echo_warning,
    print_json,
    print_table,
    with_output,
)
from podium.core.errors import InputError, ParameterError

if TYPE_CHECKING:
    from podium.analysis.feature_beliefs import BeliefReport


@click.command(name="believe")
@click.option("-b", "--believe", "believed", multiple=True, metavar="FEATURE=GRADE",
              help="A belief: a grade from -2 (certainly bad) to 2 (certainly good); may be repeated.")  # fmt: skip
@click.option("--beliefs", type=click.Path(dir_okay=False), help="A CSV or TSV file of features and grades.")
@add_option(MethodChoice, "parameters", "A parameter of the learner, such as kept=0 or l2=0.1.")
@add_options(Input, "names")
@click.option("--model", type=click.Path(dir_okay=False), help="Save the model, for `podium apply`.")
@add_option(Input, "qrels", "Judgements for evaluation only, not for training.")
@click.option("--most", type=click.IntRange(1, 10_000), default=10, show_default=True,
              help="How many of the highest and lowest weights and of the changed queries to show.")  # fmt: skip
@consensus_options
@with_input
@with_output
def verb(
    source: Input,
    believed: tuple[str, ...],
    beliefs: str | None,
    parameters: tuple[str, ...],
    model: str | None,
    most: int,
    output: Output,
) -> None:
    """Learn to rank from graded beliefs about features instead of judgements, and report the result.

    \b
    podium believe features.txt -b bm25_title=2 -b pagerank=1 --names names.txt -o ranking.run
    podium believe features.csv --beliefs beliefs.csv --model m.podium
    podium apply m.podium new.csv -o ranking.run
    """
    from podium import models
    from podium.analysis.feature_beliefs import belief_report
    from podium.methods.feature.labelled_features import LabelledFeatures

    if source.unlisted is not None:
        raise click.UsageError("--unlisted applies to lists, not to features; leave it out")
    if output.path == "-":
        raise click.UsageError("the report goes to standard output; give -o a file name")
    output.check(files=[model])
    grades = {} if beliefs is None else _read_beliefs(beliefs)
    for word in believed:
        name, equals, grade = word.rpartition("=")
        if not equals or not name:
            raise ParameterError(f"belief {word!r} cannot be read; write FEATURE=GRADE")
        if name.strip() in grades:
            raise ParameterError(f"{name.strip()!r} is graded twice; grade it once")
        grades[name.strip()] = _parse_grade(grade, name)
    if not grades:
        raise click.UsageError("no beliefs; give -b FEATURE=GRADE or --beliefs FILE")
    known = [f.name for f in fields(LabelledFeatures) if f.name != "beliefs"]
    given = check_names(parse_parameters(parameters), known, "the learner")
    learner = LabelledFeatures(beliefs=grades, **given)
    content, features = source.read_features()
    with progress_bar() as progress:
        learner.fit(features, progress=progress)
    labels = source.labels if source.qrels else content.labels
    if not source.qrels and labels is not None and not (labels.grades > 0).any():
        labels = None  # LETOR files without judgements hold zeros
    report = belief_report(learner, features, labels, most=most)
    if model:
        models.save(learner, model, overwrite=output.overwrite)
    if output.path:
        replace(output, json=False).write_consensus(learner.rank(features, ties=output.ties), repr(learner))
    if output.json:
        print_json({"model": model, "output": output.path, **learner.get_parameters(), **report.to_dict()})
    else:
        _print_report(report, most)


def _read_beliefs(path: str) -> dict[str, float]:
    """Read rows of feature and grade; a first row without a number is a header."""
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            text = file.read()
    except UnicodeDecodeError:
        raise InputError("the file is not UTF-8", source=path) from None
    mark = "\t" if "\t" in text.split("\n", 1)[0] else ","
    beliefs: dict[str, float] = {}
    for line, row in enumerate(csv.reader(text.splitlines(), delimiter=mark), 1):
        if not any(cell.strip() for cell in row):
            continue
        if len(row) != 2:
            raise InputError(
                f"{len(row)} columns", source=path, line=line, remedy="give a feature and its grade"
            )
        name, grade = (cell.strip() for cell in row)
        if line == 1 and _parse_number(grade) is None:
            continue
        if name in beliefs:
            raise InputError(f"{name!r} is graded twice", source=path, line=line, remedy="grade it once")
        beliefs[name] = _parse_grade(grade, name, path, line)
    return beliefs


def _parse_number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _parse_grade(text: str, name: str, source: str | None = None, line: int | None = None) -> float:
    grade = _parse_number(text)
    if grade is None:
        remedy = "give a number from -2 to 2"
        raise InputError(f"the grade of {name!r} is {text!r}", source=source, line=line, remedy=remedy)
    return grade


def _print_report(report: BeliefReport, most: int) -> None:
    state = "" if report.converged else ", NOT CONVERGED"
    echo_if_tty(
        f"trained on {report.items:,} items of {report.queries:,} queries in {report.passes} passes{state}"
    )
    grid = report.grid(most)
    print_table(grid.head, grid.rows, title=grid.title)
    facts = [("mean Kendall tau with the graded sum", f"{report.tau:.4f}")]
    if report.quality is not None:
        q = report.quality
        where = f"{q.metric} on {q.queries:,} judged queries"
        facts += [(f"{where}, graded sum", f"{q.naive:.4f}"), (f"{where}, learned", f"{q.learned:.4f}")]
    print_table(["fact", "value"], facts)
    changed = [(str(c.query), f"{c.tau:.4f}", str(c.naive_top), str(c.learned_top)) for c in report.changed]
    if changed:
        title = "queries that changed most"
        print_table(
            ["query", "tau", "top by the graded sum", "top by the model"], changed, title=title, left=4
        )
    for conflict in report.conflicts:
        echo_warning(conflict.text)
