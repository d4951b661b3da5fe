"""podium compare: several methods on the same input, with honest differences."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import click

from podium.cli import _common as common
from podium.cli.eval import ranked, read_labels

if TYPE_CHECKING:
    from podium.data.consensus import Consensus
    from podium.evaluate import Comparison


@click.command(name="compare", short_help="Compare methods, and the runs themselves, on judgements.")
@click.argument("files", nargs=-1, type=common.FILES)
@click.option(
    "-q", "--qrels", type=common.FILES, help="Judgements; not needed when the input holds them (LETOR)."
)
@click.option("-m", "--method", "methods", multiple=True, help="A method or model file; may be repeated.  "
              "[default: rrf, borda, combmnz, condorcet, mc4]")  # fmt: skip
@click.option("--runs/--no-runs", default=True, show_default=True, help="Show the best single runs too.")
@click.option("--baseline", help="Name of the row the others are compared with.  [default: the first method]")
@common.metrics_option("ndcg@10", "map")
@click.option("--ties", type=click.Choice(["trec", "item", "input"]), default="trec", show_default=True)
@common.reading
@common.as_json
def verb(
    files: tuple[str, ...],
    qrels: str | None,
    methods: tuple[str, ...],
    runs: bool,
    baseline: str | None,
    metrics: tuple[str, ...],
    ties: Any,
    format_: str | None,
    unlisted: str | None,
    options: tuple[str, ...],
    json_: bool,
) -> None:
    """Compare methods, and the runs themselves, on judgements.

    Each row: the mean, its difference to the baseline with a 95 % interval, the Holm-corrected p-value of a paired
    randomisation test, queries won / tied / lost, and how much of what the metric looks at was judged at all.

    \b
    podium compare *.run --qrels qrels.txt -m rrf -m 'combmnz(normalizer=zscore)' --baseline rrf
    """
    from podium.evaluate import compare, evaluate, expert_rankings

    content = common.read(files, format_, options, unlisted)
    preferences = common.preferences_of(content, files)
    labels = read_labels(qrels, content)
    results: dict[str, Consensus] = {}
    for spec in common.progress(methods or default_methods(preferences.forms), "aggregating"):
        results[spec] = ranked(common.make_method(spec).aggregate(preferences), ties)
    if runs and preferences.lists.rows:
        alone = {str(e): ranked(expert_rankings(preferences, e), ties) for e in preferences.experts}
        score = {
            n: next(iter(evaluate(c, labels, metrics, queries="all").mean().values()))
            for n, c in alone.items()
        }
        for name in sorted(alone, key=lambda n: -score[n])[:3]:
            results[f"run {name}"] = alone[name]
    found = compare(results, labels, metrics, baseline=baseline)
    if json_:
        common.emit({"baseline": found.baseline, "test": found.test, "level": found.level, "queries": found.queries,
                     "rows": [dataclasses.asdict(r) for r in found.rows]})  # fmt: skip
    else:
        show(found)


def default_methods(forms: frozenset[Any]) -> list[str]:
    """A few well-known methods of different kinds that can read these forms."""
    from podium import registry

    wanted = ["rrf", "borda", "combmnz", "condorcet", "mc4"]
    able = [n for n in wanted if forms <= registry.aggregators.get(n).tags.accepts]
    return able or ["copeland"]


def show(found: Comparison) -> None:
    """The table, metric by metric, best first."""
    columns = ["", "mean", "difference", "95 % interval", "p (Holm)", "won/tied/lost", "judged"]
    for metric in dict.fromkeys(r.metric for r in found.rows):
        rows = []
        for r in sorted((r for r in found.rows if r.metric == metric), key=lambda r: -r.mean):
            if r.difference is None or r.low is None or r.high is None:
                rows.append((f"{r.name}", common.number(r.mean), "baseline", "", "", "", f"{r.judged:.0%}"))
                continue
            span = f"{r.low:+.4f} .. {r.high:+.4f}"
            count = f"{r.wins}/{r.ties}/{r.losses}"
            p = "<0.001" if (r.p_holm or 0) < 0.001 else common.number(r.p_holm, 3)
            rows.append(
                (r.name, common.number(r.mean), f"{r.difference:+.4f}", span, p, count, f"{r.judged:.0%}")
            )
        common.table([metric, *columns[1:]], rows, title=f"{metric}, {found.queries} queries")
