"""podium compare: Compare methods and single runs against judgements."""

from __future__ import annotations

import re
import shutil
import sys
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, NamedTuple, get_args, get_type_hints

import click

from podium.cli._method import make_method
from podium.cli._options import add_option, add_options, metrics_option
from podium.cli._progress import track_progress
from podium.cli.input import Input, with_input
from podium.cli.output import (
    Output,
    echo_if_tty,
    echo_note,
    echo_warning,
    print_json,
    print_table,
    trec_ties_option,
    with_output,
)
from podium.core import registry, tables
from podium.core.errors import ParameterError, capture_warnings
from podium.core.settings import CompareSettings
from podium.core.tables import Grid

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from podium.data.consensus import Consensus
    from podium.data.features import Features
    from podium.data.labels import Labels
    from podium.data.preferences import Preferences
    from podium.evaluate import Comparison
    from podium.evaluate.heldout_labels import HeldOutLabels
    from podium.evaluate.majority_errors import MajorityOutcome
    from podium.evaluate.metric_curves import Curve
    from podium.methods.base import Aggregator

ROOM = 100  # width of the tables in characters
SHORT = {
    "difference": "diff",
    "95 % interval": "95 %",
    "baseline": "base",
    "won/tied/lost": "w/t/l",
    "p (Holm)": "p",
}
BEST = 3  # single runs shown with the methods
WRITERS = {"md": "to_markdown", "tex": "to_latex", "csv": "to_csv", "json": "to_json", "html": "to_html"}
ENDINGS = {"markdown": "md", "latex": "tex", "htm": "html"}


class _TestName(click.Choice[str]):
    """The name of a paired test; the spelling of earlier versions works for one more release."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value == "randomisation":
            echo_warning("--test randomisation is now --test randomization")
            value = "randomization"
        return super().convert(value, param, ctx)


@click.command(name="compare")
@add_options(Input, "qrels")
@click.option("-m", "--method", "methods", multiple=True, help="A method or model file; may be repeated; `all`: every "
              "method that needs no training (slow); auto: the one for the form of the input, without judgements.  "
              "[default: those of rrf, borda, combmnz, condorcet, mc4 and, for votes, bradley_terry that can read the "
              "input]")  # fmt: skip
@click.option("--runs", type=click.Choice(["all", "best", "none"]), default="best", show_default=True,
              help="Which single runs to include; best: the best three and the baseline.")  # fmt: skip
@click.option("--no-runs", "runs", flag_value="none", help="Same as --runs none.")
@add_options(Input, "features")
@add_options(CompareSettings, "baseline")
@metrics_option("ndcg@10", "map")
@add_options(CompareSettings, "test", type=_TestName(get_args(get_type_hints(CompareSettings)["test"])))
@click.option("--where", type=click.Choice(["majority-wrong", "majority-right"]),
              help="Only queries where most experts order more pairs of differently graded items wrongly than "
              "rightly, or the reverse.")  # fmt: skip
@click.option("--pairs", is_flag=True, help="Test all pairs, not only against the baseline.")
@click.option("--curve", is_flag=True, help="Show the first metric at depths 1 to 20.")
@click.option("--per-query", is_flag=True, help="Show the first metric per query, largest difference first.")
@add_option(Output, "top", "With --per-query, show only N queries.", type=click.IntRange(1), metavar="N")
@add_option(Output, "plot", "Draw curves and differences: a .svg, .png or .html file.")
@add_option(Output, "path", "Write the tables: a .md, .tex, .csv, .json or .html file.", type=click.Path())
@click.option(
    "--as", "to", type=click.Choice([*WRITERS, *ENDINGS]), help="Output format.  [default: from the suffix]"
)
@add_option(Output, "overwrite", "Replace files that exist.")
@trec_ties_option
@with_input
@with_output
def verb(
    source: Input,
    methods: tuple[str, ...],
    runs: str,
    baseline: str | None,
    metrics: tuple[str, ...],
    test: str,
    where: MajorityOutcome | None,
    pairs: bool,
    curve: bool,
    per_query: bool,
    output: Output,
) -> None:
    """Compare methods and single runs against judgements.

    Each row: the mean, the judged share of the items that the metric reads, the difference from the baseline
    with a 95 % interval, the Holm-corrected p-value of a paired test, and queries won / tied / lost. The text
    below says what can and cannot be concluded. A method that fails on the input is excluded, with a note.

    \b
    podium compare *.run --qrels qrels.txt -m rrf -m 'combmnz(normalizer=zscore)' --baseline rrf
    podium compare *.run --qrels qrels.txt -m all --runs all -o table.tex
    podium compare *.run --qrels qrels.txt -m rrf -m mc4 --runs none --curve --per-query --plot curves.svg
    podium compare *.run --qrels qrels.txt -m rrf -m model.podium --where majority-wrong
    """
    from podium.data.unlisted_rule import describe_unlisted_rule
    from podium.evaluate import compare
    from podium.evaluate.heldout_labels import exclude_fitted_queries
    from podium.evaluate.metric_curves import curves
    from podium.evaluate.result_rankings import aggregate_methods
    from podium.evaluate.unlisted_reading import warn_of_other_reading
    from podium.metrics.base import parse_all

    kind = _check_targets(output)
    preferences, labels = source.preferences, source.labels
    parsed_metrics = parse_all(metrics)
    made, features = _make_methods(methods, source)
    work = track_progress(list(made.items()), "aggregating")
    results, left_out = aggregate_methods(work, preferences, features)
    held = exclude_fitted_queries(made, labels)
    labels, selection = _select_labels(where, preferences, held.labels)
    results = {n: output.apply_tie_rule(c) for n, c in results.items() if n not in held.left_out}
    left_out |= held.left_out
    _check_held_out(results, held)
    if baseline in left_out:
        raise ParameterError(f"the baseline {baseline} gave no result: {left_out[baseline]}")
    # a run may be given without its prefix
    runs_named = {str(e) for e in preferences.experts} if preferences.lists.rows else set()
    if baseline in runs_named - results.keys():
        baseline = f"run {baseline}"
    results |= _rank_single_runs(preferences, labels, parsed_metrics, runs, output, baseline)
    comparison = compare(results, labels, parsed_metrics, baseline=baseline, test=test)
    doubt = warn_of_other_reading(comparison, preferences, made, labels, features=features, ties=output.ties)
    remarks = tuple(filter(None, (describe_unlisted_rule(preferences), selection, doubt)))
    comparison = replace(comparison, left_out=left_out, remarks=remarks)
    with capture_warnings():  # the comparison already reports them
        wanted = curve or (output.plot and parsed_metrics[0].cutoff_rule != "none")
        lines = curves(results, labels, parsed_metrics[0]) if wanted else ()
    if output.plot is not None:
        from podium.evaluate.comparison_chart import plot_comparison

        plot_comparison(comparison, lines, output.plot)
    extra = _ExtraTables(lines if curve else (), pairs, per_query, output.top)
    to_file = output.path is not None or output.to is not None
    if to_file:
        for name in left_out.keys() - held.left_out.keys():
            click.echo(f"podium: {name} is left out: {left_out[name]}", err=True)
        if doubt:
            echo_warning(doubt)
        _write_tables(comparison, extra, kind, output)
    if output.json:
        print_json(_build_document(comparison, extra))
    elif not to_file:
        _print_comparison(comparison, _build_extra_grids(comparison, extra, short=sys.stdout.isatty()))


def _check_targets(output: Output) -> str:
    """Refuse what cannot be written before any work is done; return the output format."""
    ending = output.to or (output.path or ".md").rpartition(".")[2].lower()
    kind = ENDINGS.get(ending, ending)
    replace(output, path=None).check()
    if kind not in WRITERS:
        wanted = ", ".join(f".{w}" for w in WRITERS)
        raise ParameterError(
            f"cannot detect the output format from {output.path!r}; use a suffix of {wanted}, or give --as"
        )
    output.check()
    return kind


def _select_labels(
    where: MajorityOutcome | None, preferences: Preferences, labels: Labels
) -> tuple[Labels, str]:
    """The labels of the selected queries, and a sentence about the selection."""
    if where is None:
        return labels, ""
    from podium.evaluate.majority_errors import select_by_majority

    selected, word = select_by_majority(preferences, labels, where), where.partition("-")[2]
    return selected, (
        f"Only the {len(selected):,} of {len(labels):,} judged queries where the majority of the experts is {word}: "
        f"it orders more pairs of differently graded items {'wrongly' if word == 'wrong' else 'rightly'} than not. "
        "The labels choose these queries, so figures of consensus methods follow from the choice."
    )


def _check_held_out(results: dict[str, Consensus], held: HeldOutLabels) -> None:
    """Report which queries are held out; refuse to compare models only on their training queries."""
    absent = [f"{name} is left out: {reason}" for name, reason in held.left_out.items()]
    for note in (*(absent if results else ()), *held.notes):
        echo_warning(note)
    if not results:
        name, reason = next(iter(held.left_out.items()))
        raise ParameterError(f"{name} cannot be evaluated on this input: {reason}")


def _make_methods(methods: Sequence[str], source: Input) -> tuple[dict[str, Aggregator], Features | None]:
    """The methods by specification, and the item features if any method uses them."""
    from podium.evaluate.comparison import USUAL, usual_methods

    forms = source.preferences.forms
    names = list(methods) or list(dict.fromkeys((*USUAL, *usual_methods(forms))))
    known = registry.aggregators.all() if "all" in names else {}
    plain = [
        name
        for name, cls in known.items()
        if forms <= cls.tags.accepts
        and not (cls.tags.supervised or cls.tags.uses_features or cls.tags.dialect)
    ]
    specs = dict.fromkeys(name for spec in names for name in (plain if spec == "all" else [spec]))
    made = {spec: make_method(spec, source) for spec in specs}
    user = next((m for m in made.values() if m.tags.uses_features), None)
    if source.features and user is None:
        raise ParameterError(f"none of {', '.join(made)} uses item features; leave --features out")
    return made, None if user is None else source.features_of(user)


def _rank_single_runs(
    preferences: Preferences,
    labels: Labels,
    metrics: Sequence[Any],
    runs: str,
    output: Output,
    baseline: str | None,
) -> dict[str, Consensus]:
    """Single runs as results: all, the best by the first metric, or none; always the baseline."""
    from podium.evaluate import expert_rankings
    from podium.evaluate.evaluation import mean_of
    from podium.metrics.base import measure
    from podium.metrics.judgements import Judgements

    named = {f"run {e}": e for e in preferences.experts.tolist()} if preferences.lists.rows else {}
    if runs == "none":
        named = {n: e for n, e in named.items() if n == baseline}
    alone = {
        n: output.apply_tie_rule(expert_rankings(preferences, named[n]))
        for n in track_progress(list(named), "single runs")
    }
    if runs == "best" and len(alone) > BEST:
        which = (Judgements.for_labels(labels).judged_counts > 0).nonzero()[0]
        score = {n: mean_of(measure(metrics[:1], c, labels, which)[0]) for n, c in alone.items()}
        best = sorted(alone, key=lambda n: -score[n])
        alone = {n: alone[n] for k, n in enumerate(best) if k < BEST or n == baseline}
    return alone


class _ExtraTables(NamedTuple):
    """Tables that are shown on request."""

    lines: Sequence[Curve]
    pairs: bool
    per_query: bool
    top: int | None


def _write_tables(comparison: Comparison, extra: _ExtraTables, kind: str, output: Output) -> None:
    """Write the tables to a file or to standard output; a .csv file holds exactly one table."""
    further = [] if kind == "json" else _build_extra_grids(comparison, extra)
    writer: Callable[..., str] = getattr(comparison, WRITERS[kind])
    if kind == "csv" and len(further) > 1:
        raise ParameterError("a .csv file holds one table; ask for one of --curve, --per-query and --pairs")
    if kind == "json":
        text = tables.format_json(_build_document(comparison, extra))
    elif kind == "csv":
        text = tables.format_csv(further[0].head, further[0].rows) if further else writer()
    else:
        text = writer(further)
    if output.path is None or output.path == "-":
        click.echo(text, nl=False)
        return
    from podium.storage.files import write_atomically

    write_atomically([text.encode()], output.path, overwrite=output.overwrite)
    size = f"{len(comparison.evaluations)} results on {comparison.queries:,} queries"
    click.echo(f"{size} written to {output.path}", err=True)
    for remark in comparison.remarks[:1]:
        click.echo(remark, err=True)


def _build_document(comparison: Comparison, extra: _ExtraTables) -> dict[str, Any]:
    document = comparison.to_dict()
    if extra.pairs:
        document["pairs"] = [asdict(p) for m in comparison.metrics for p in comparison.pairs(m)]
    if extra.per_query:
        document["per_query"] = [asdict(r) for r in comparison.per_query()[: extra.top]]
    if extra.lines:
        document["curves"] = [asdict(c) for c in extra.lines]
    return document


def _build_extra_grids(comparison: Comparison, extra: _ExtraTables, *, short: bool = False) -> list[Grid]:
    """The requested tables; a terminal gets a few depths side by side, a pipe or file gets all depths."""
    from podium.evaluate import comparison_tables as text

    grids = [(text.curve_summary if short else text.curve_grid)(extra.lines)] if extra.lines else []
    if extra.pairs:
        grids += [text.pairs_grid(comparison, m) for m in comparison.metrics]
    if extra.per_query:
        whole = text.query_grid(comparison, comparison.metrics[0])
        grids.append(Grid(whole.head, whole.rows[: extra.top], whole.left, whole.title))
    return grids


def _print_comparison(comparison: Comparison, further: Sequence[Grid]) -> None:
    """Print one table per metric, best first, with its verdict; for a pipe, text goes to standard error."""
    for metric, grid in zip(comparison.metrics, comparison.grids(), strict=True):
        _print_grid(grid)
        echo_note(comparison.conclusion(metric))
        echo_if_tty("")
    for grid in further:
        _print_grid(grid)
    for note in comparison.notes:
        echo_note(f"Note: {note}")


def _print_grid(grid: Grid) -> None:
    """Print a table; on a narrow terminal, shorten headings and drop zeros before the decimal point."""
    head, rows = list(grid.head), [list(row) for row in grid.rows]
    if sys.stdout.isatty() and shutil.get_terminal_size().columns < ROOM:
        head = [SHORT.get(name, name) for name in head]
        for row in rows:
            row[grid.left :] = [SHORT.get(c) or re.sub(r"(?<!\d)0\.", ".", c) for c in row[grid.left :]]
    print_table(head, rows, title=grid.title, left=grid.left)
