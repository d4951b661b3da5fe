"""podium eval: Evaluate runs against judgements."""

from __future__ import annotations

from typing import Any

import click

from podium.cli._options import add_options, metrics_option
from podium.cli._progress import track_progress
from podium.cli.input import Input, with_input
from podium.cli.output import Output, format_number, print_json, print_table, trec_ties_option, with_output
from podium.core.errors import ParameterError


@click.command(name="eval")
@add_options(Input, "qrels")
@metrics_option("ndcg@10", "map", "p@10", "mrr")
@click.option("--queries", type=click.Choice(["judged", "all"]), default="all", show_default=True,
              help="all: a judged query missing from a run counts as 0.")  # fmt: skip
@trec_ties_option
@click.option("--per-query", is_flag=True, help="One row per run and query.")
@with_input
@with_output
def verb(source: Input, metrics: tuple[str, ...], queries: Any, per_query: bool, output: Output) -> None:
    """Evaluate runs against judgements as trec_eval -c does: a judged query missing from a run counts as 0.

    \b
    podium eval bm25.run dense.run --qrels qrels.txt
    podium eval A1.txt A2.txt -M ndcg@5:letor --ties input
    podium eval bm25.run -q qrels.txt -M 'map(relevant=2)' -M 'p(relevant=2)@10'
    """
    from podium.evaluate import evaluate, expert_rankings

    preferences, labels = source.preferences, source.labels
    evaluations = {}
    for expert in track_progress(preferences.experts.tolist(), "evaluating"):
        ranking = output.apply_tie_rule(expert_rankings(preferences, expert))
        evaluations[str(expert)] = evaluate(ranking, labels, metrics, queries=queries)
    if not any(len(e) > e.missing for e in evaluations.values()):
        raise ParameterError("no query of the runs is judged; see `podium doctor`")
    if output.json:
        documents: list[dict[str, Any]] = []
        for name, e in evaluations.items():
            counts = {"queries": len(e), "missing": e.missing, "unlabelled": e.unlabelled}
            documents.append({"run": name, "mean": e.mean(), **counts})
            if per_query:
                documents[-1]["per_query"] = {
                    str(q): dict(zip(map(str, e.metrics), e.values[:, i].tolist(), strict=True))
                    for i, q in enumerate(e.queries)
                }
        print_json(documents)
        return
    first = next(iter(evaluations.values()))
    if per_query:
        rows = [
            (name, str(q), *(format_number(v) for v in e.values[:, i]))
            for name, e in evaluations.items()
            for i, q in enumerate(e.queries)
        ]
        print_table(["run", "query", *map(str, first.metrics)], rows, left=2)
    else:
        best_first = sorted(evaluations.items(), key=lambda kv: -next(iter(kv[1].mean().values())))
        rows = [
            (name, *map(format_number, e.mean().values()), str(len(e)), str(e.missing), str(e.unlabelled))
            for name, e in best_first
        ]
        print_table(["run", *first.mean(), "queries", "missing", "unlabelled"], rows)
