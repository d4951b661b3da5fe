"""podium eval: evaluate runs against judgements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from podium.cli import _common as common

if TYPE_CHECKING:
    from podium.data.consensus import Consensus
    from podium.data.labels import Labels
    from podium.evaluate import Evaluation


def read_labels(path: str | None, content: Any) -> Labels:
    """Labels from `--qrels` or from the input (LETOR files hold both)."""
    from podium import formats
    from podium.core.errors import ParameterError

    if path is None:
        if content.labels is None:
            raise ParameterError("no judgements; give --qrels FILE")
        found: Labels = content.labels
        return found
    labels = formats.read(path).labels
    if labels is None:
        raise ParameterError(
            f"{path} contains no judgements; give a qrels file, or a table with a grade column"
        )
    return labels


def apply_tie_rule(result: Consensus, ties: Any) -> Consensus:
    """Apply a tie rule; `trec` also compares scores as 32-bit floats, as trec_eval does."""
    return result.with_ties(ties, single=ties == "trec")


@click.command(name="eval", short_help="Evaluate runs against judgements.")
@click.argument("files", nargs=-1, type=common.FILES)
@common.qrels_option
@common.metrics_option("ndcg@10", "map", "p@10", "mrr")
@click.option("--queries", type=click.Choice(["judged", "all"]), default="all", show_default=True,
              help="all: a judged query missing from a run counts as 0.")  # fmt: skip
@click.option("--ties", type=click.Choice(["trec", "item", "input"]), default="trec", show_default=True)
@click.option("--per-query", is_flag=True, help="One row per run and query.")
@common.input_options
@common.json_option
def verb(
    files: tuple[str, ...],
    qrels: str | None,
    metrics: tuple[str, ...],
    queries: Any,
    ties: Any,
    per_query: bool,
    format_: str | None,
    unlisted: str | None,
    options: tuple[str, ...],
    json_: bool,
) -> None:
    """Evaluate runs against judgements as trec_eval -c does: a judged query missing from a run counts as 0.

    \b
    podium eval bm25.run dense.run --qrels qrels.txt
    podium eval A1.txt A2.txt -M ndcg@5:letor --ties input
    podium eval bm25.run -q qrels.txt -M 'map(relevant=2)' -M 'p(relevant=2)@10'
    """
    from podium.core.errors import ParameterError
    from podium.evaluate import evaluate, expert_rankings

    content = common.read_input(files, format_, options, unlisted)
    preferences = common.require_preferences(content, files)
    labels = read_labels(qrels, content)
    found = {}
    for expert in common.track_progress(preferences.experts.tolist(), "evaluating"):
        found[str(expert)] = evaluate(
            apply_tie_rule(expert_rankings(preferences, expert), ties), labels, metrics, queries=queries
        )
    if not any(len(e) > e.missing for e in found.values()):
        raise ParameterError("no query of the runs is judged; see `podium doctor`")
    if json_:
        common.print_json([_build_document(name, e, per_query) for name, e in found.items()])
    elif per_query:
        rows = [
            (name, str(q), *(common.format_number(v) for v in e.values[:, i]))
            for name, e in found.items()
            for i, q in enumerate(e.queries)
        ]
        common.print_table(["run", "query", *map(str, _first_evaluation(found).metrics)], rows, left=2)
    else:
        best_first = sorted(found.items(), key=lambda kv: -next(iter(kv[1].mean().values())))
        rows = [
            (name, *(common.format_number(v) for v in e.mean().values()), *_gaps(e)) for name, e in best_first
        ]
        common.print_table(
            ["run", *_first_evaluation(found).mean(), "queries", "missing", "unlabelled"], rows
        )


def _first_evaluation(found: dict[str, Evaluation]) -> Evaluation:
    return next(iter(found.values()))


def _gaps(e: Evaluation) -> tuple[str, str, str]:
    return str(len(e)), str(e.missing), str(e.unlabelled)


def _build_document(name: str, e: Evaluation, per_query: bool) -> dict[str, Any]:
    document: dict[str, Any] = {
        "run": name,
        "mean": e.mean(),
        "queries": len(e),
        "missing": e.missing,
        "unlabelled": e.unlabelled,
    }
    if per_query:
        document["per_query"] = {
            str(q): dict(zip(map(str, e.metrics), e.values[:, i].tolist(), strict=True))
            for i, q in enumerate(e.queries)
        }
    return document
