"""Inference with many experts and many items: the CRF against SVD features (Volkovs & Zemel, CIKM 2013, figure 2).

The test queries of fold 1 of MQ2008-agg, with all experts repeated 1 to 10 times, and with all items repeated 1 to 10
times. Three ways to score them: the CRF (sums), SVD features by our structured iteration, and SVD features as the paper
computes them, one general decomposition of every matrix. Times are of scoring alone, divided by the queries.

python benchmarks/inference.py [-o figure.svg]       needs the data: PODIUM_DATA or ../shared/data

One thread for everybody; the linear algebra library is told so before it is loaded.
"""

from __future__ import annotations

import argparse
import os

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from timing import measure, once

from podium import Aggregator, Preferences, formats, make
from podium.kernels.preference_svd import build_dense_matrix
from podium.methods.learned import expert_matrices

STEPS = range(1, 11)


def fold() -> Any:
    """The first fold of MQ2008-agg, or an explanation."""
    folder = Path(os.environ.get("PODIUM_DATA", Path(__file__).parents[2] / "shared" / "data")) / "mq2008-agg"
    files = [folder / f"A{i}.txt.gz" for i in range(1, 6)]
    if not all(f.exists() for f in files):
        raise SystemExit(
            f"the figure needs {folder}/A1.txt.gz .. A5.txt.gz; set PODIUM_DATA to the folder above"
        )
    return formats.read(files).dataset().folds()[0]


def repeated(p: Preferences, times: int, what: str) -> Preferences:
    """The same lists with every expert, or every item, there so many times."""
    lists, index = p.lists, p.index
    query = np.array(index.queries.tolist())[lists.query_of_list][lists.list_of_row]
    expert = np.array([str(e) for e in p.experts])[lists.expert][lists.list_of_row]
    item = np.array(index.items.tolist())[lists.item]
    columns: list[list[str]] = [[], [], []]
    for copy in range(times):
        mark = f"#{copy}" if copy else ""
        columns[0] += query.tolist()
        columns[1] += [e + mark for e in expert] if what == "experts" else expert.tolist()
        columns[2] += [i + mark for i in item] if what == "items" else item.tolist()
    return Preferences.from_rows(*columns, rank=np.tile(lists.rank, times))


def general_svd(p: Preferences, weights: np.ndarray) -> np.ndarray:
    """Scores from the rank-1 part of a general SVD of every (query, expert) matrix, as in the paper."""
    experts = len(p.experts)
    w = weights.reshape(3, -1)  # u, v, missing, each by expert; copies of an expert count as the expert
    known = w.shape[1]
    grouped = expert_matrices.build_expert_matrices(p, "log")
    scores = expert_matrices.find_unranked_cells(p, None, experts) @ w[2][np.arange(experts) % known]
    m = grouped.matrices
    for g in range(len(m.query)):
        u, _, vt = np.linalg.svd(build_dense_matrix(m, g))
        k = grouped.group[g] % known
        rows = slice(*m.slots[m.query[g] : m.query[g] + 2].tolist())
        scores[rows] += np.abs(u[:, 0]) * w[0, k] + np.abs(vt[0]) * w[1, k]
    return np.asarray(scores)


def fitted(spec: str, p: Preferences, labels: Any) -> Aggregator:
    """A model for these experts; what it learned does not change its speed."""
    return make(spec).fit(p, labels)


def run(quick: bool = False) -> list[dict[str, Any]]:
    """A row per step and kind of growth."""
    os.environ["PODIUM_THREADS"] = "1"
    here = fold()
    rows = []
    for what in ("experts", "items"):
        for times in (1, 10) if quick else STEPS:
            p = repeated(here.test.preferences, times, what)
            train = repeated(here.train.preferences, times if what == "experts" else 1, what)
            ways: dict[str, Callable[[], Any]] = {}
            models = {"crf": "crf(passes=1)", "svd": "svd(vectors=unit, passes=1)"}
            made = {name: fitted(spec, train, here.train.labels) for name, spec in models.items()}
            for name, model in made.items():
                ways[name] = lambda model=model, p=p: model.aggregate(p)
            weights = made["svd"]._linear()  # type: ignore[attr-defined]
            ways["general svd"] = lambda p=p, weights=weights: general_svd(p, weights)
            for name in made:
                ways[name]()  # modules are imported before anything is timed
            taken = {name: measure(call, repeats=3)[0].median if name != "general svd" else once(call)[0]
                     for name, call in ways.items()}  # fmt: skip
            n = len(p)
            rows.append(
                {
                    "repeated": what,
                    "times": times,
                    **{f"{name}, ms a query": 1e3 * s / n for name, s in taken.items()},
                    "crf faster than general svd by": taken["general svd"] / taken["crf"],
                    "crf faster than svd by": taken["svd"] / taken["crf"],
                }
            )
    return rows


def draw(rows: list[dict[str, Any]], path: str) -> None:
    """Both panels, times on a log scale."""
    import altair

    long = [
        {"repeated": r["repeated"], "times": r["times"], "way": key.split(",")[0], "ms": value}
        for r in rows
        for key, value in r.items()
        if key.endswith("ms a query")
    ]
    chart = (
        altair.Chart(altair.Data(values=long))
        .mark_line(point=True)
        .encode(
            x=altair.X("times:Q", title="times repeated"),
            y=altair.Y("ms:Q", title="milliseconds a query", scale=altair.Scale(type="log")),
            color=altair.Color("way:N", title=None),
        )
        .properties(width=300, height=220)
        .facet(column=altair.Column("repeated:N", title=None))
    )
    chart.save(path)


def main() -> None:
    """Print the table and draw the figure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("-o", "--output", help="where to draw the figure (.svg or .png)")
    parser.add_argument("--quick", action="store_true", help="the first and the tenth step only")
    options = parser.parse_args()
    rows = run(options.quick)
    for row in rows:
        print("  ".join(f"{k}: {v:.3g}" if isinstance(v, float) else f"{k}: {v}" for k, v in row.items()))
    if options.output:
        draw(rows, options.output)


if __name__ == "__main__":
    main()
