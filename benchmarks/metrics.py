"""Six metrics on every query, against pytrec_eval and ranx; all must give the same means.

What is timed is one evaluation from objects in memory in each library's own form: a Consensus and Labels; a
RelevanceEvaluator and a dict of dicts; Qrels and a Run. Building them is not timed. Podium appears four
times: `same items` evaluates a result on items that were evaluated before (another method on the same
preferences, the usual case in comparing and tuning), `new items` a result whose ids, held as the file
readers hold them, must be matched with labels seen before (pytrec_eval matches ids in every call), `new
objects` the same with ids as Python strings, and `all new` also matches and prepares labels never seen
before.
"""

from __future__ import annotations

import statistics
from dataclasses import replace
from typing import Any

import numpy as np
from timing import measure, once

from podium.data.consensus import Consensus
from podium.data.ids import Ids
from podium.data.index import ItemIndex
from podium.data.labels import Labels
from podium.data.preferences import Preferences
from podium.evaluate import evaluate

METRICS = {  # ours: (pytrec_eval, ranx)
    "ndcg@10": ("ndcg_cut_10", "ndcg@10"),
    "map": ("map", "map"),
    "p@10": ("P_10", "precision@10"),
    "recall@100": ("recall_100", "recall@100"),
    "mrr": ("recip_rank", "mrr"),
    "rprec": ("Rprec", "r-precision"),
}
MEASURES = {"ndcg_cut.10", "map", "P.10", "recall.100", "recip_rank", "Rprec"}

Run = dict[str, dict[str, float]]
Qrels = dict[str, dict[str, int]]


def problem(queries: int, ranked: int, judged: int) -> tuple[Run, Qrels]:
    """Rankings of `ranked` items and `judged` labels a query, half of them on ranked items."""
    rng = np.random.default_rng(0)
    run: Run = {}
    qrels: Qrels = {}
    for q in range(queries):
        items = [f"doc{d}" for d in rng.permutation(ranked + judged)]
        run[f"q{q}"] = dict(zip(items[:ranked], rng.normal(size=ranked).tolist(), strict=True))
        labelled = items[ranked - judged // 2 :][:judged]
        qrels[f"q{q}"] = dict(zip(labelled, rng.choice([0, 0, 1, 2], judged).tolist(), strict=True))
    return run, qrels


def result_of(scores: Run) -> Consensus:
    """A run as a consensus in the order of trec_eval."""
    preferences = Preferences.from_lists({q: {"run": by_item} for q, by_item in scores.items()})
    assert preferences.lists.score is not None
    by_slot = np.empty(len(preferences.index.items))
    by_slot[preferences.lists.item] = preferences.lists.score
    return Consensus.from_scores(preferences.index, by_slot).with_ties("trec", single=True)


def renewed(index: ItemIndex, text: bool = False) -> ItemIndex:
    """The same index as another object, so that nothing remembered about the first applies."""
    items = Ids(index.items.tolist())
    if text and (whole := items.as_text) is not None:
        items = whole
    return ItemIndex(Ids(index.queries.tolist()), index.starts, items, index.arrival)


def own_times(consensus: Consensus, labels: Labels) -> tuple[dict[str, float], dict[str, float]]:
    """Median seconds of the cases, and the means."""
    names = list(METRICS)
    evaluate(consensus, labels, names)  # modules are imported before anything is timed
    same, found = measure(lambda: evaluate(consensus, labels, names))

    def median(text: bool, known: bool) -> float:
        times = []
        for _ in range(5):
            other = replace(consensus, index=renewed(consensus.index, text))
            truth = labels if known else Labels(renewed(labels.index), labels.grades)
            times.append(once(lambda c=other, t=truth: evaluate(c, t, names))[0])
        return statistics.median(times)

    cases = {"new items": (True, True), "new objects": (False, True), "all new": (False, False)}
    return {"same items": same.median} | {case: median(*how) for case, how in cases.items()}, found.mean()


def run(quick: bool = False) -> list[dict[str, Any]]:
    """One row per library and case; a peer's time over each of Podium's."""
    queries = 4_000 if quick else 10_000
    scores, qrels = problem(queries, 100, 50)
    times, means = own_times(result_of(scores), Labels.from_dict(qrels))
    size = f"{queries:,} x 100"
    rows: list[dict[str, Any]] = [
        {"queries x items": size, "library": f"podium, {case}", "seconds": round(s, 4)}
        for case, s in times.items()
    ]
    for name, peer in (("pytrec_eval", with_pytrec_eval), ("ranx", with_ranx)):
        try:
            seconds, theirs = peer(scores, qrels)
        except ImportError:
            rows.append({"queries x items": size, "library": f"{name}, not installed"})
            continue
        for metric, value in theirs.items():
            assert abs(means[metric] - value) < 1e-9, (name, metric, means[metric], value)
        ratios = {f"over {case}": round(seconds / s, 1) for case, s in times.items()}
        rows.append({"queries x items": size, "library": name, "seconds": round(seconds, 4), **ratios})
    columns = {key: "" for row in rows for key in row}
    return [columns | row for row in rows]


def with_pytrec_eval(scores: Run, qrels: Qrels) -> tuple[float, dict[str, float]]:
    """Seconds and means by our names."""
    import pytrec_eval

    evaluator = pytrec_eval.RelevanceEvaluator(qrels, MEASURES)
    timing, found = measure(lambda: evaluator.evaluate(scores), repeats=5)
    means = {m: float(np.mean([v[theirs] for v in found.values()])) for m, (theirs, _) in METRICS.items()}
    return timing.median, means


def with_ranx(scores: Run, qrels: Qrels) -> tuple[float, dict[str, float]]:
    """Seconds and means by our names; the first call, which compiles, is not timed."""
    import ranx

    truth, result, names = ranx.Qrels(qrels), ranx.Run(scores), [theirs for _, theirs in METRICS.values()]
    ranx.evaluate(truth, result, names)
    timing, found = measure(lambda: ranx.evaluate(truth, result, names), repeats=5)
    return timing.median, {m: float(found[theirs]) for m, (_, theirs) in METRICS.items()}


if __name__ == "__main__":
    import sys

    for row in run("--quick" in sys.argv):
        print("  ".join(f"{key}: {value}" for key, value in row.items() if value != ""))
