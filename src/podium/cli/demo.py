"""podium demo: See what Podium does, on generated data."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from podium.cli._options import add_option
from podium.cli._progress import track_progress
from podium.cli.output import Output, format_number, print_json, print_table, refuse_overwrite, with_output
from podium.core.tables import format_p_value

if TYPE_CHECKING:
    from podium.data.consensus import Consensus
    from podium.data.dataset import Dataset
    from podium.evaluate import Comparison

FILES = ("engines.run", "qrels.txt", "fused.run")
METHODS = ("rrf", "borda", "combmnz", "rbc", "condorcet", "copeland", "mc4")


@click.command(name="demo")
@add_option(
    Output,
    "path",
    "Also write the runs, judgements and the fused run here.",
    type=click.Path(file_okay=False),
)
@add_option(Output, "overwrite", "Replace those files if they exist.")
@with_output
def verb(output: Output) -> None:
    """Fuse 25 synthetic engines over 200 queries, evaluate the result, and explain one first place."""
    folder = None if output.path is None else Path(output.path)
    if folder is not None and folder.is_dir():  # before any work is done
        for name in FILES:
            refuse_overwrite(str(folder / name), output.overwrite)
    begin = time.perf_counter()
    from podium import formats
    from podium.data.demo import demo
    from podium.evaluate import compare, evaluate, expert_rankings
    from podium.methods.base import make

    data = demo()
    preferences, labels = data.preferences, data.labels
    assert labels is not None
    alone = {str(e): expert_rankings(preferences, e) for e in preferences.experts}
    quality = {n: evaluate(c, labels, "ndcg@10", queries="all").mean()["ndcg@10"] for n, c in alone.items()}
    ranked = sorted(quality, key=lambda n: -quality[n])
    results: dict[str, Consensus] = {f"best engine ({ranked[0]})": alone[ranked[0]]}
    for name in track_progress(METHODS, "fusing"):
        results[name] = make(name).aggregate(preferences)
    results[f"worst engine ({ranked[-1]})"] = alone[ranked[-1]]
    comparison = compare(results, labels, ["ndcg@10", "map"])
    seconds = time.perf_counter() - begin
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        runs, judgements, fused = (folder / name for name in FILES)
        formats.write(preferences, runs, "trec", overwrite=output.overwrite)
        formats.write(labels, judgements, "qrels", overwrite=output.overwrite)
        formats.write(results["rrf"], fused, "trec", tag="rrf", overwrite=output.overwrite)
    if output.json:
        means = {n: e.mean() for n, e in comparison.evaluations.items()}
        facts = {"data": repr(data), "fingerprint": preferences.fingerprint, "mean": means}
        print_json(facts | {"seconds": round(seconds, 3)})
    else:
        _print_results(data, comparison, results, seconds, output.path)


def _print_results(
    data: Dataset, comparison: Comparison, results: dict[str, Consensus], seconds: float, output: str | None
) -> None:
    from podium.methods.base import make

    p = data.preferences
    missing = 1 - p.lists.rows / (p.index.sizes.sum() * len(p.experts))
    size = f"{len(p)} queries, {len(p.index.items):,} documents, {len(p.experts)} engines"
    click.echo(f"{size}; {missing:.0%} of the ranks are missing.\n")
    columns = ["", "ndcg@10", "map", "ndcg@10 against the best engine", "p (Holm)"]
    rows = []
    for name in results:
        ndcg, ap = comparison.row(name, "ndcg@10"), comparison.row(name, "map")
        change = (
            "" if ndcg.difference is None else f"{ndcg.difference:+.4f}  [{ndcg.low:+.4f}, {ndcg.high:+.4f}]"
        )
        means = format_number(ndcg.mean), format_number(ap.mean)
        rows.append((name, *means, change, format_p_value(ndcg.p_holm)))
    print_table(columns, rows)
    query = p.queries[0]
    first = results["rrf"][query][0]
    shares = make("rrf").explain(p, query, first.item)
    top = sorted(shares.items(), key=lambda kv: -kv[1])[:3]
    listing = ", ".join(f"{e} {100 * v / first.score:.0f} %" for e, v in top)
    listed = f"{sum(v > 0 for v in shares.values())} engines list it; largest shares: {listing}"
    click.echo(f"\nWhy {first.item} is first for {query} (rrf): {listed}.")
    click.echo(f"Done in {seconds:.1f} s.")
    if output is None:
        click.echo(
            "Next: podium demo -o demo-out && podium compare demo-out/engines.run --qrels demo-out/qrels.txt"
        )
    else:
        click.echo(f"Written to {output}: {', '.join(FILES)}")
