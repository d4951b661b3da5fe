"""Which views of the experts' lists does `fused` need? Views are left out, and kept in small sets.

python benchmarks/fused_views.py --data FOLDER --set mq2008-agg [--seeds 3] [--only NAME] [--json FILE]

Five folds, means over seeds of NDCG@5, NDCG@10 and MAP on the test queries in points of 100, and for every set of
views the difference from all of them with its standard error and the p-value of a paired randomization test.
docs/project/auto-protocol.md says what is decided by them.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

from podium import make
from podium.data.dataset import Dataset
from podium.evaluate import cross_validate
from podium.evaluate.significance import assess_differences
from podium.methods.learned import fused
from podium_papers.paper_datasets import load_dataset

METRICS = ("ndcg@5", "ndcg@10", "map")
VIEWS = ("vectors", "absence", "sums", "steep", "log rank", "place")
OWN = {"vectors": (0, 1), "absence": (2,), "sums": (3, 4), "steep": (5,), "log rank": (6,), "place": (7,)}
SETS: dict[str, tuple[tuple[str, ...], bool]] = {
    "all views": (VIEWS, True),
    **{f"without {left}": (tuple(v for v in VIEWS if v != left), True) for left in VIEWS},
    "without consensus": (VIEWS, False),
    "log rank": (("log rank",), False),
    "log rank, absence": (("log rank", "absence"), False),
    "log rank, absence, consensus": (("log rank", "absence"), True),
    "log rank, consensus": (("log rank",), True),
    "log rank, steep, absence": (("log rank", "steep", "absence"), False),
    "steep, absence, consensus": (("steep", "absence"), True),
    "consensus": ((), True),
    "place": (("place",), False),
    "place, absence": (("place", "absence"), False),
    "place, absence, consensus": (("place", "absence"), True),
    "place, log rank, absence": (("place", "log rank", "absence"), False),
    "place, log rank, absence, consensus": (("place", "log rank", "absence"), True),
    "place, log rank, steep, absence": (("place", "log rank", "steep", "absence"), False),
    "vectors, place, absence": (("vectors", "place", "absence"), False),
    "vectors, place, absence, consensus": (("vectors", "place", "absence"), True),
}


def measure_views(data: Dataset, views: tuple[str, ...], consensus: bool, seeds: int) -> np.ndarray:
    """Metrics by query (columns: test queries of all folds), means over seeds."""
    kept = [table for view in views for table in OWN[view]]
    build = fused.build_expert_features

    def build_some(*arguments: Any) -> fused.ExpertFeatures:
        every = build(*arguments)
        return every._replace(
            own=[every.own[table] for table in kept] or [0.0 * every.own[0]],
            shared=every.shared if consensus else every.shared[:0] or [0.0 * every.own[0]],
        )

    fused.build_expert_features = build_some
    try:
        values = []
        for seed in range(seeds):
            run = cross_validate(data, {"fused": make("fused", views="all", seed=seed)}, METRICS)
            values.append([run.pool_folds("fused")[metric] for metric in METRICS])
        return 100 * np.mean(values, axis=0)
    finally:
        fused.build_expert_features = build


def main() -> None:
    """Read the options, measure, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--set", default="mq2008-agg", choices=("mq2008-agg", "mq2007-agg"))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", action="append", choices=SETS, help="a set of views; may be repeated")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    data = load_dataset(options.set, options.data)
    names = list(dict.fromkeys(("all views", *(options.only or SETS))))
    rows: list[dict[str, Any]] = []
    print(f"{'views':36}" + "".join(f"{m:>9}{'change':>9}{'se':>6}{'p':>7}" for m in METRICS) + "  seconds")
    for name in names:
        begin = time.perf_counter()
        values = measure_views(data, *SETS[name], options.seeds)
        if name == "all views":
            every = values
        row: dict[str, Any] = {"views": name}
        line = f"{name:36}"
        for metric, own, full in zip(METRICS, values, every, strict=True):
            d = own - full
            error = float(d.std(ddof=1) / np.sqrt(len(d)))
            p = float(assess_differences(d[None], test="randomization", level=0.95, seed=0).p[0])
            row[metric] = {"mean": float(own.mean()), "change": float(d.mean()), "error": error, "p": p}
            line += f"{own.mean():9.2f}{d.mean():+9.2f}{error:6.2f}{p:7.3f}"
        rows.append(row)
        print(f"{line}  {time.perf_counter() - begin:.0f}", flush=True)
    if options.json is not None:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
