"""Six metrics on every query, against pytrec_eval and ranx, values compared.

What is timed: evaluating one result against labels, both already in memory in each library's own form (Podium: a
Consensus and Labels; pytrec_eval: a RelevanceEvaluator and a dict of dicts; ranx: Qrels and Run). Building those is
not timed. `first` is Podium's first evaluation of fresh Labels (ids matched, ideals worked out), `again` one of
another result on the same items and labels. The others have no such distinction.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from podium.data.consensus import Consensus
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


def timed(call: Callable[[], Any], repeats: int = 3) -> tuple[float, Any]:
    """The best of a few, and the last answer."""
    best, answer = float("inf"), None
    for _ in range(repeats):
        begin = time.perf_counter()
        answer = call()
        best = min(best, time.perf_counter() - begin)
    return best, answer


def problem(queries: int, ranked: int, judged: int) -> tuple[dict[str, dict[str, float]], dict[str, dict[str, int]]]:
    """Rankings of `ranked` items and `judged` labels a query, half of them on ranked items."""
    rng = np.random.default_rng(0)
    run, qrels = {}, {}
    for q in range(queries):
        items = [f"doc{d}" for d in rng.permutation(ranked + judged)]
        run[f"q{q}"] = dict(zip(items[:ranked], rng.normal(size=ranked).tolist(), strict=True))
        labelled = items[ranked - judged // 2 : ranked - judged // 2 + judged]
        qrels[f"q{q}"] = dict(zip(labelled, rng.choice([0, 0, 1, 2], judged).tolist(), strict=True))
    return run, qrels


def result_of(run: dict[str, dict[str, float]]) -> Consensus:
    """A run as a consensus in the order of trec_eval."""
    preferences = Preferences.from_lists({q: {"run": scores} for q, scores in run.items()})
    assert preferences.lists.score is not None
    scores = np.empty(len(preferences.index.items))
    scores[preferences.lists.item] = preferences.lists.score
    return Consensus.from_scores(preferences.index, scores).with_ties("trec", single=True)


def run(quick: bool = False) -> list[dict[str, Any]]:
    """One row per library."""
    queries = 2_000 if quick else 10_000
    scores, qrels = problem(queries, 100, 50)
    consensus = result_of(scores)
    evaluate(consensus, Labels.from_dict(qrels), list(METRICS))  # load the compiled kernels
    fresh = Labels.from_dict(qrels)
    first, ours = timed(lambda: evaluate(consensus, fresh, list(METRICS)), 1)
    again, ours = timed(lambda: evaluate(consensus, fresh, list(METRICS)), 7)
    size = f"{queries:,} queries x 100 items, 50 labels each, {len(METRICS)} metrics"
    rows = [
        {"work": size, "library": "podium, again", "seconds": again, "ratio": 1.0},
        {"work": size, "library": "podium, first", "seconds": first, "ratio": first / again},
    ]
    for name, peer in (("pytrec_eval", with_pytrec_eval), ("ranx", with_ranx)):
        try:
            seconds, values = peer(scores, qrels)
        except ImportError:
            rows.append({"work": size, "library": name, "seconds": None, "ratio": None})
            continue
        for metric, theirs in values.items():
            assert abs(ours.mean()[metric] - theirs) < 1e-9, (name, metric, ours.mean()[metric], theirs)
        rows.append({"work": size, "library": name, "seconds": seconds, "ratio": seconds / again})
    return rows


def with_pytrec_eval(scores: Any, qrels: Any) -> tuple[float, dict[str, float]]:
    """Seconds and means by our names."""
    import pytrec_eval

    evaluator = pytrec_eval.RelevanceEvaluator(qrels, MEASURES)
    seconds, found = timed(lambda: evaluator.evaluate(scores))
    return seconds, {m: float(np.mean([v[theirs] for v in found.values()])) for m, (theirs, _) in METRICS.items()}


def with_ranx(scores: Any, qrels: Any) -> tuple[float, dict[str, float]]:
    """Seconds and means by our names; the first call, which compiles, is not timed."""
    import ranx

    truth, result, names = ranx.Qrels(qrels), ranx.Run(scores), [theirs for _, theirs in METRICS.values()]
    seconds, found = timed(lambda: ranx.evaluate(truth, result, names))
    return seconds, {m: float(found[theirs]) for m, (_, theirs) in METRICS.items()}


if __name__ == "__main__":
    import sys

    for row in run("--quick" in sys.argv):
        shown = "not installed" if row["seconds"] is None else f"{row['seconds']:.4f} s  x{row['ratio']:.1f}"
        print(f"{row['library']:16} {shown}")
    print(row["work"])
