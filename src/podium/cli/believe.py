"""podium believe: learn to rank from beliefs about features, without judgements."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from podium.cli import _common as common
from podium.cli._features import names_option, read_features
from podium.cli._results import OutputOptions, output_options, write_consensus
from podium.cli.eval import read_labels
from podium.core.errors import InputError, ParameterError

if TYPE_CHECKING:
    from podium.analysis.feature_beliefs import BeliefReport
    from podium.data.labels import Labels
    from podium.methods.feature.labelled_features import LabelledFeatures


@click.command(name="believe", short_help="Rank from beliefs about features, without judgements.")
@click.argument("files", nargs=-1, type=common.FILES)
@click.option("-b", "--believe", "believed", multiple=True, metavar="FEATURE=GRADE",
              help="A belief: a grade from -2 (certainly bad) to 2 (certainly good); may be repeated.")  # fmt: skip
@click.option("--beliefs", type=click.Path(dir_okay=False), help="A CSV or TSV file of features and grades.")
@click.option("-p", "--parameter", "parameters", multiple=True, metavar="NAME=VALUE",
              help="A parameter of the learner, such as kept=0 or l2=0.1.")  # fmt: skip
@names_option
@click.option("--model", type=click.Path(dir_okay=False), help="Save the model, for `podium apply`.")
@click.option("-q", "--qrels", type=common.FILES, help="Judgements for evaluation only, not for training.")
@click.option("--most", type=click.IntRange(1, 10_000), default=10, show_default=True,
              help="How many of the highest and lowest weights and of the changed queries to show.")  # fmt: skip
@output_options
@common.input_options
@common.json_option
def verb(
    files: tuple[str, ...],
    believed: tuple[str, ...],
    beliefs: str | None,
    parameters: tuple[str, ...],
    names: str | None,
    model: str | None,
    qrels: str | None,
    most: int,
    output: str | None,
    to: str | None,
    top: int | None,
    tag: str,
    ties: Any,
    overwrite: bool,
    format_: str | None,
    unlisted: str | None,
    options: tuple[str, ...],
    json_: bool,
) -> None:
    """Learn to rank from graded beliefs about features instead of judgements, and report the result.

    \b
    podium believe features.txt -b bm25_title=2 -b pagerank=1 --names names.txt -o ranking.run
    podium believe features.csv --beliefs beliefs.csv --model m.podium
    podium apply m.podium new.csv -o ranking.run
    """
    from podium import models
    from podium.analysis.feature_beliefs import belief_report

    if unlisted is not None:
        raise click.UsageError("--unlisted applies to lists, not to features; leave it out")
    if output == "-":
        raise click.UsageError("the report goes to standard output; give -o a file name")
    for path in filter(None, (output, model)):
        common.refuse_overwrite(path, overwrite)
    learner = _build_learner(believed, beliefs, parameters)
    content, features = read_features(files, format_, options, names)
    with common.progress_bar() as progress:
        learner.fit(features, progress=progress)
    labels = read_labels(qrels, content) if qrels else _useful(content.labels)
    report = belief_report(learner, features, labels, most=most)
    if model:
        models.save(learner, model, overwrite=overwrite)
    if output:
        write_consensus(
            learner.rank(features, ties=ties),
            repr(learner),
            OutputOptions(output, to, top, tag, overwrite, False),
        )
    if json_:
        common.print_json({"model": model, "output": output, **learner.get_parameters(), **report.to_dict()})
    else:
        _print_report(report, most)


def _useful(labels: Labels | None) -> Labels | None:
    """Labels in the feature files; LETOR files without judgements hold zeros."""
    return labels if labels is not None and (labels.grades > 0).any() else None


def _build_learner(believed: Sequence[str], path: str | None, parameters: Sequence[str]) -> LabelledFeatures:
    import dataclasses

    from podium.core.params import parse_spec, suggest_names
    from podium.methods.feature.labelled_features import LabelledFeatures

    typed = [word.rpartition("=") for word in believed]
    grades = {} if path is None else _read_beliefs(path)
    for (name, equals, grade), word in zip(typed, believed, strict=True):
        if not equals or not name:
            raise ParameterError(f"belief {word!r} cannot be read; write FEATURE=GRADE")
        if name.strip() in grades:
            raise ParameterError(f"{name.strip()!r} is graded twice; grade it once")
        grades[name.strip()] = _parse_grade(grade, name)
    if not grades:
        raise click.UsageError("no beliefs; give -b FEATURE=GRADE or --beliefs FILE")
    given: dict[str, Any] = {}
    known = [f.name for f in dataclasses.fields(LabelledFeatures) if f.name != "beliefs"]
    for name, value in common.parse_assignments(parameters, "parameter").items():
        if name not in known:
            raise ParameterError(f"the learner has no parameter {name!r}; {suggest_names(name, known)}")
        given |= parse_spec(f"p({name}={value})")[1]
    return LabelledFeatures(beliefs=grades, **given)


def _read_beliefs(path: str) -> dict[str, float]:
    """Read rows of feature and grade; a first row without a number is a header."""
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            text = file.read()
    except UnicodeDecodeError:
        raise InputError("the file is not UTF-8", source=path) from None
    mark = "\t" if "\t" in text.split("\n", 1)[0] else ","
    found: dict[str, float] = {}
    for line, row in enumerate(csv.reader(text.splitlines(), delimiter=mark), 1):
        if not any(cell.strip() for cell in row):
            continue
        if len(row) != 2:
            raise InputError(
                f"{len(row)} columns", source=path, line=line, remedy="give a feature and its grade"
            )
        name, grade = (cell.strip() for cell in row)
        if line == 1 and not _is_number(grade):
            continue
        if name in found:
            raise InputError(f"{name!r} is graded twice", source=path, line=line, remedy="grade it once")
        found[name] = _parse_grade(grade, name, path, line)
    return found


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _parse_grade(text: str, name: str, source: str | None = None, line: int | None = None) -> float:
    if not _is_number(text):
        remedy = "give a number from -2 to 2"
        raise InputError(f"the grade of {name!r} is {text!r}", source=source, line=line, remedy=remedy)
    return float(text)


def _print_report(report: BeliefReport, most: int) -> None:
    state = "" if report.converged else ", NOT CONVERGED"
    common.echo_if_tty(
        f"trained on {report.items:,} items of {report.queries:,} queries in {report.passes} passes{state}"
    )
    shown = report.weights
    if len(shown) > 2 * most:
        graded = [w for w in shown[most:-most] if w.grade]
        shown = (*shown[:most], *graded, *shown[-most:])
    rows = [(w.feature, f"{w.grade:+g}" if w.grade else "", f"{w.weight:+.4f}") for w in shown]
    common.print_table(["feature", "grade", "weight"], rows, title="weights, largest first")
    facts = [("mean Kendall tau with the graded sum", f"{report.tau:.4f}")]
    if report.quality is not None:
        q = report.quality
        where = f"{q.metric} on {q.queries:,} judged queries"
        facts += [(f"{where}, graded sum", f"{q.naive:.4f}"), (f"{where}, learned", f"{q.learned:.4f}")]
    common.print_table(["fact", "value"], facts)
    changed = [(str(c.query), f"{c.tau:.4f}", str(c.naive_top), str(c.learned_top)) for c in report.changed]
    if changed:
        title = "queries that changed most"
        common.print_table(
            ["query", "tau", "top by the graded sum", "top by the model"], changed, title=title, left=4
        )
    for conflict in report.conflicts:
        click.echo(f"podium: warning: {conflict.text}", err=True)
