"""podium compare: several methods on the same input, with confidence intervals and tests."""

from __future__ import annotations

import re
import shutil
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from podium.cli import _common as common
from podium.cli.eval import apply_tie_rule, read_labels

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from podium.core.tables import Grid
    from podium.data.consensus import Consensus
    from podium.data.features import Features
    from podium.data.labels import Labels
    from podium.data.preferences import Preferences
    from podium.evaluate import Comparison
    from podium.evaluate.heldout_labels import HeldOutLabels
    from podium.evaluate.metric_curves import Curve
    from podium.formats import Content
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


@click.command(name="compare", short_help="Compare methods and single runs against judgements.")
@click.argument("files", nargs=-1, type=common.FILES)
@common.qrels_option
@click.option("-m", "--method", "methods", multiple=True, help="A method or model file; may be repeated; `all`: every "
              "method that needs no training (slow).  [default: those of rrf, borda, combmnz, condorcet, mc4 and, "
              "for votes, bradley_terry that can read the input]")  # fmt: skip
@click.option("--runs", type=click.Choice(["all", "best", "none"]), default="best", show_default=True,
              help="Which single runs to include; best: the best three and the baseline.")  # fmt: skip
@click.option("--no-runs", "runs", flag_value="none", help="Same as --runs none.")
@common.features_option
@click.option("--baseline", help="The method or run to compare the others with.  [default: the first method]")
@common.metrics_option("ndcg@10", "map")
@click.option("--test", type=click.Choice(["t", "randomisation", "wilcoxon"]), default="t", show_default=True,
              help="The paired test; the intervals of t and randomisation agree with the test.")  # fmt: skip
@click.option("--pairs", is_flag=True, help="Test all pairs, not only against the baseline.")
@click.option("--curve", is_flag=True, help="Show the first metric at depths 1 to 20.")
@click.option("--per-query", is_flag=True, help="Show the first metric per query, largest difference first.")
@click.option("--top", type=click.IntRange(1), metavar="N", help="With --per-query, show only N queries.")
@click.option("--plot", type=click.Path(), help="Draw curves and differences: a .svg, .png or .html file.")
@click.option(
    "-o", "--output", type=click.Path(), help="Write the tables: a .md, .tex, .csv, .json or .html file."
)
@click.option(
    "--as", "as_", type=click.Choice([*WRITERS, *ENDINGS]), help="Output format.  [default: from the suffix]"
)
@click.option("--overwrite", is_flag=True, help="Replace files that exist.")
@click.option("--ties", type=click.Choice(["trec", "item", "input"]), default="trec", show_default=True)
@common.input_options
@common.json_option
def verb(
    files: tuple[str, ...],
    qrels: str | None,
    methods: tuple[str, ...],
    runs: str,
    features: tuple[str, ...],
    baseline: str | None,
    metrics: tuple[str, ...],
    test: str,
    pairs: bool,
    curve: bool,
    per_query: bool,
    top: int | None,
    plot: str | None,
    output: str | None,
    as_: str | None,
    overwrite: bool,
    ties: Any,
    format_: str | None,
    unlisted: str | None,
    options: tuple[str, ...],
    json_: bool,
) -> None:
    """Compare methods and single runs against judgements.

    Each row: the mean, the judged share of the items that the metric reads, the difference from the baseline
    with a 95 % interval, the Holm-corrected p-value of a paired test, and queries won / tied / lost. The text
    below says what can and cannot be concluded. A method that fails on the input is excluded, with a note.

    \b
    podium compare *.run --qrels qrels.txt -m rrf -m 'combmnz(normalizer=zscore)' --baseline rrf
    podium compare *.run --qrels qrels.txt -m all --runs all -o table.tex
    podium compare *.run --qrels qrels.txt -m rrf -m mc4 --runs none --curve --per-query --plot curves.svg
    """
    from dataclasses import replace

    from podium.core.errors import capture_warnings
    from podium.data.unlisted_rule import describe_unlisted_rule
    from podium.evaluate import compare
    from podium.evaluate.heldout_labels import exclude_fitted_queries
    from podium.evaluate.metric_curves import curves
    from podium.evaluate.unlisted_reading import warn_of_other_reading
    from podium.metrics.base import parse_all

    kind = _check_targets(output, as_, plot, overwrite)
    content = common.read_input(files, format_, options, unlisted)
    preferences = common.require_preferences(content, files)
    labels = read_labels(qrels, content)
    asked = parse_all(metrics)
    made, described = _make_methods(methods, preferences, content, features)
    results, left_out = _aggregate_methods(made, preferences, described, ties)
    held = exclude_fitted_queries(made, labels)
    labels, results = held.labels, {n: c for n, c in results.items() if n not in held.left_out}
    left_out |= held.left_out
    _check_held_out(results, held)
    baseline = _resolve_baseline(baseline, preferences, results, left_out)
    results |= _rank_single_runs(preferences, labels, asked, runs, ties, baseline)
    found = compare(results, labels, asked, baseline=baseline, test=test)
    doubt = warn_of_other_reading(found, preferences, made, labels, features=described, ties=ties)
    remarks = tuple(filter(None, (describe_unlisted_rule(preferences), doubt)))
    found = replace(found, left_out=left_out, remarks=remarks)
    has_depth = asked[0].cutoff_rule != "none"
    with capture_warnings():  # the comparison already reports them
        lines = curves(results, labels, asked[0]) if curve or (plot and has_depth) else ()
    if plot is not None:
        from podium.evaluate.comparison_chart import plot_comparison as draw

        draw(found, lines, plot)
    asked_for = _ExtraTables(lines if curve else (), pairs, per_query, top)
    if output is not None or as_ is not None:
        for name in left_out.keys() - held.left_out.keys():
            click.echo(f"podium: {name} is left out: {left_out[name]}", err=True)
        if doubt:
            click.echo(f"podium: warning: {doubt}", err=True)
        _write_text(found, _format_file(found, asked_for, kind), output, overwrite)
    if json_:
        common.print_json(_build_document(found, asked_for))
    elif output is None and as_ is None:
        print_comparison(found, _build_extra_grids(found, asked_for, short=sys.stdout.isatty()))


def _check_targets(output: str | None, as_: str | None, plot: str | None, overwrite: bool) -> str:
    """Refuse what cannot be written before any work is done; return the output format."""
    from podium.core.errors import ParameterError

    if plot is not None:
        from podium.evaluate.charts import check_suffix

        common.refuse_overwrite(plot, overwrite)
        check_suffix(plot)
    ending = as_ or (output or ".md").rpartition(".")[2].lower()
    kind = ENDINGS.get(ending, ending)
    if kind not in WRITERS:
        wanted = ", ".join(f".{w}" for w in WRITERS)
        raise ParameterError(
            f"cannot detect the output format from {output!r}; use a suffix of {wanted}, or give --as"
        )
    if output is not None and output != "-":
        common.refuse_overwrite(output, overwrite)
    return kind


def _check_held_out(results: dict[str, Consensus], held: HeldOutLabels) -> None:
    """Report which queries are held out; refuse to compare models only on their training queries."""
    from podium.core.errors import ParameterError

    absent = [f"{name} is left out: {reason}" for name, reason in held.left_out.items()]
    for note in (*(absent if results else ()), *held.notes):
        click.echo(f"podium: warning: {note}", err=True)
    if not results:
        name, reason = next(iter(held.left_out.items()))
        raise ParameterError(f"{name} cannot be evaluated on this input: {reason}")


def _make_methods(
    methods: Sequence[str], preferences: Preferences, content: Content, features: Sequence[str]
) -> tuple[dict[str, Aggregator], Features | None]:
    """The methods by specification, and the item features if any method uses them."""
    from podium.core.errors import ParameterError
    from podium.evaluate.comparison import USUAL, usual_methods

    asked = list(methods) or list(dict.fromkeys((*USUAL, *usual_methods(preferences.forms))))
    every = list_unsupervised_methods(preferences.forms) if "all" in asked else []
    specs = list(dict.fromkeys(name for spec in asked for name in (every if spec == "all" else [spec])))
    made = {spec: common.make_method(spec) for spec in specs}
    user = next((m for m in made.values() if m.tags.uses_features), None)
    if features and user is None:
        raise ParameterError(f"none of {', '.join(made)} uses item features; leave --features out")
    return made, None if user is None else common.resolve_features(user, content, features)


def _aggregate_methods(
    made: dict[str, Aggregator], preferences: Preferences, described: Features | None, ties: Any
) -> tuple[dict[str, Consensus], dict[str, str]]:
    """The results of the methods, and for each failed method the reason."""
    from podium.evaluate.result_rankings import aggregate_methods

    work = common.track_progress(list(made.items()), "aggregating")
    results, left_out = aggregate_methods(work, preferences, described)
    return {spec: apply_tie_rule(found, ties) for spec, found in results.items()}, left_out


def _resolve_baseline(
    given: str | None, preferences: Preferences, results: dict[str, Consensus], left_out: dict[str, str]
) -> str | None:
    """The name of the baseline row; a run may be given without its `run` prefix."""
    from podium.core.errors import ParameterError

    if given in left_out:
        raise ParameterError(f"the baseline {given} gave no result: {left_out[given]}")
    runs = {str(e) for e in preferences.experts} if preferences.lists.rows else set()
    return f"run {given}" if given in runs - results.keys() else given


def _rank_single_runs(
    preferences: Preferences,
    labels: Labels,
    metrics: Sequence[Any],
    runs: str,
    ties: Any,
    baseline: str | None = None,
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
        n: apply_tie_rule(expert_rankings(preferences, named[n]), ties)
        for n in common.track_progress(list(named), "single runs")
    }
    if runs == "best" and len(alone) > BEST:
        which = (Judgements.for_labels(labels).judged_counts > 0).nonzero()[0]
        score = {n: mean_of(measure(metrics[:1], c, labels, which)[0]) for n, c in alone.items()}
        best = sorted(alone, key=lambda n: -score[n])
        alone = {n: alone[n] for k, n in enumerate(best) if k < BEST or n == baseline}
    return alone


def list_unsupervised_methods(forms: frozenset[Any]) -> list[str]:
    """Every method that can read these forms and needs neither labels nor item features."""
    from podium.core import registry

    return [
        name
        for name, cls in registry.aggregators.all().items()
        if forms <= cls.tags.accepts and not cls.tags.supervised and not cls.tags.uses_features
    ]


class _ExtraTables(NamedTuple):
    """Tables that are shown on request."""

    lines: Sequence[Curve]
    pairs: bool
    per_query: bool
    top: int | None


def _format_file(found: Comparison, extra: _ExtraTables, kind: str) -> str:
    """The content of the output file; a .csv file holds exactly one table."""
    from podium.core import tables
    from podium.core.errors import ParameterError

    if kind == "json":
        return tables.format_json(_build_document(found, extra))
    further = _build_extra_grids(found, extra)
    if kind == "csv" and further:
        if len(further) > 1:
            raise ParameterError(
                "a .csv file holds one table; ask for one of --curve, --per-query and --pairs"
            )
        return tables.format_csv(further[0].head, further[0].rows)
    writer: Callable[..., str] = getattr(found, WRITERS[kind])
    return writer() if kind == "csv" else writer(further)


def _write_text(found: Comparison, text: str, output: str | None, overwrite: bool) -> None:
    if output is None or output == "-":
        click.echo(text, nl=False)
        return
    from podium.storage.files import write_atomically

    write_atomically([text.encode()], output, overwrite=overwrite)
    click.echo(f"{len(found.evaluations)} results on {found.queries:,} queries written to {output}", err=True)
    for remark in found.remarks[:1]:
        click.echo(remark, err=True)


def _build_document(found: Comparison, extra: _ExtraTables) -> dict[str, Any]:
    import dataclasses

    document = found.to_dict()
    if extra.pairs:
        document["pairs"] = [dataclasses.asdict(p) for m in found.metrics for p in found.pairs(m)]
    if extra.per_query:
        document["per_query"] = [dataclasses.asdict(r) for r in found.per_query()[: extra.top]]
    if extra.lines:
        document["curves"] = [dataclasses.asdict(c) for c in extra.lines]
    return document


def _build_extra_grids(found: Comparison, extra: _ExtraTables, *, short: bool = False) -> list[Grid]:
    """The requested tables; a terminal gets a few depths side by side, a pipe or file gets all depths."""
    from podium.core.tables import Grid
    from podium.evaluate import comparison_tables as text

    grids = [(text.curve_summary if short else text.curve_grid)(extra.lines)] if extra.lines else []
    if extra.pairs:
        grids += [text.pairs_grid(found, m) for m in found.metrics]
    if extra.per_query:
        whole = text.query_grid(found, found.metrics[0])
        grids.append(Grid(whole.head, whole.rows[: extra.top], whole.left, whole.title))
    return grids


def print_comparison(found: Comparison, further: Sequence[Grid] = ()) -> None:
    """Print one table per metric, best first, with its verdict; for a pipe, text goes to standard error."""
    for metric, grid in zip(found.metrics, found.grids(), strict=True):
        _print_grid(grid)
        click.echo(found.conclusion(metric), err=not sys.stdout.isatty())
        common.echo_if_tty("")
    for grid in further:
        _print_grid(grid)
    for note in found.notes:
        click.echo(f"Note: {note}", err=not sys.stdout.isatty())


def _print_grid(grid: Grid) -> None:
    """Print a table; on a narrow terminal, shorten headings and drop zeros before the decimal point."""
    head, rows = list(grid.head), [list(row) for row in grid.rows]
    if sys.stdout.isatty() and shutil.get_terminal_size().columns < ROOM:
        head = [SHORT.get(name, name) for name in head]
        rows = [[*row[: grid.left], *(_shorten_cell(c) for c in row[grid.left :])] for row in rows]
    common.print_table(head, rows, title=grid.title, left=grid.left)


def _shorten_cell(cell: str) -> str:
    return SHORT.get(cell) or re.sub(r"(?<!\d)0\.", ".", cell)
