"""Monotone retargeting: a data set of the shape of OHSUMED, growth with the items, and its pictures.

python benchmarks/retargeting.py [--quick] [--turns turns.svg] [--curves ndcg.svg --data FOLDER]

--turns draws Kendall's tau, Spearman's rho and NDCG@10 to a known order by turn, the mean over the seeds of
`podium reproduce retargeting-synthetic`; --curves draws NDCG@1..10 of `podium reproduce retargeting`.
"""

from __future__ import annotations

import argparse
from itertools import pairwise
from typing import Any

import numpy as np
from timing import measure

from podium import Features, Preferences, make
from podium.kernels.isotonic import build_block_order, project_isotonic
from podium.kernels.monotone_retargeting import (
    LinearPredictor,
    RetargetingSettings,
    alternate_fits,
    center_by_query,
)

TARGET = 10.0  # seconds for a data set of the shape of OHSUMED
LISTS, FEATURES = 15, 27


def columns(items: int, starts: Any, seed: int = 0) -> tuple[Any, Any]:
    """Lists and features that share a hidden order."""
    random = np.random.default_rng(seed)
    x = random.normal(size=(items, FEATURES))
    truth = x @ random.normal(size=FEATURES)
    noise = np.linspace(0.3, 3, LISTS) * truth.std()
    lists = truth[:, None] + noise * random.normal(size=(items, LISTS))
    return (np.stack([center_by_query(c, starts) for c in table.T], axis=1) for table in (lists, x))


def whole() -> list[dict[str, Any]]:
    """106 queries of 152 items, 15 lists, 27 features: everything that `fit` does."""
    queries, size = 106, 152
    starts = np.arange(queries + 1) * size
    lists, x = columns(queries * size, starts)
    query = np.repeat(np.arange(queries), size)
    item = np.tile(np.arange(size), queries)
    p = Preferences.from_rows(
        np.repeat(query, LISTS),
        np.tile(np.arange(LISTS), len(query)),
        np.repeat(item, LISTS),
        score=lists.ravel(),
    )
    f = Features.from_rows(query, item, x)
    model: Any = make("retargeting")
    model.fit(p, features=f)
    timing, _ = measure(lambda: model.fit(p, features=f), repeats=3)
    row = {"what": "OHSUMED's shape, fit", "items": queries * size, "seconds": timing.median}
    print(row | {"met": timing.median < TARGET}, flush=True)
    return [row | {"met": timing.median < TARGET}]


def growth(sizes: tuple[int, ...]) -> list[dict[str, Any]]:
    """One turn of both sides, in queries of 100 items; and a step of isotonic regression, ours and scipy's calls."""
    rows = []
    for items in sizes:
        starts = np.arange(0, items + 1, 100)
        lists, x = columns(items, starts)
        one, two = (
            LinearPredictor(lists, starts, "squared", 0.02, 1e-6, positive=True),
            LinearPredictor(x, starts, "squared", 0, 1e-3),
        )
        begin = np.full(LISTS, 1 / LISTS)
        settings = RetargetingSettings(turns=2, steps=5, tolerance=0.0)
        turn, _ = measure(
            lambda a=one, b=two, w=begin, s=settings: alternate_fits(a, b, w, s, handover=True), repeats=3
        )
        order, values = build_block_order(lists[:, 0], starts), x[:, 0].copy()
        own, _ = measure(lambda v=values, o=order: project_isotonic(v, o), repeats=3)
        along = values[order.rows]
        peer, _ = measure(lambda v=along, s=starts: fit_with_scipy(v, s), repeats=3)
        rows.append(
            {"items": items, "turn": turn.median / 2, "per item": turn.median / 2 / items,
             "isotonic": own.median, "scipy": peer.median, "ratio": peer.median / own.median}
        )  # fmt: skip
        print(rows[-1], flush=True)
    for a, b in pairwise(rows):
        print(f"{b['items'] / a['items']:.0f}x the items: {b['turn'] / a['turn']:.1f}x the time")
    return rows


def fit_with_scipy(values: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Falling values of every query, one call each."""
    from scipy.optimize import isotonic_regression

    return np.concatenate(
        [isotonic_regression(values[a:b], increasing=False).x for a, b in pairwise(starts.tolist())]
    )


def by_turn(seeds: int) -> list[dict[str, Any]]:
    """Agreement with the known order after each turn of the best run from the lists' consensus."""
    from scipy.stats import kendalltau, spearmanr

    from podium_papers.retargeting_synthetic import NOISE, as_preferences, sample_problem, top_quality

    measures = {
        "tau": lambda s, t: kendalltau(s, t)[0],
        "rho": lambda s, t: spearmanr(s, t)[0],
        "NDCG@10": top_quality,
    }
    found: dict[tuple[str, str, str, int], list[float]] = {}
    for kind in NOISE:
        for clean in (True, False):
            for seed in range(seeds):
                one = sample_problem(kind, clean, seed)
                p, item = as_preferences(one)
                f = Features.from_rows(["q"] * len(item), item, one.features)
                for starts in ("all", "consensus"):
                    trace = make(f"retargeting(starts={starts})").search(p, f, traced=True).trace  # type: ignore[attr-defined]
                    trace += [trace[-1]] * (12 - len(trace))
                    side = int(not clean)  # the lists lead where one of them is clean, else the features
                    for turn, both in enumerate(trace[:12], 1):
                        for name, of in measures.items():
                            key = (f"{kind}, {'a' if clean else 'no'} clean list", starts, name, turn)
                            found.setdefault(key, []).append(float(of(both[side], one.truth)))
    return [
        {"data": data, "starts": starts, "measure": name, "turn": turn, "value": float(np.mean(v))}
        for (data, starts, name, turn), v in found.items()
    ]


def draw_turns(path: str, seeds: int) -> None:
    """Small multiples: data by measure, a line for each way to begin."""
    from podium.evaluate import charts

    alt = charts.import_altair()
    chart = alt.Chart(alt.Data(values=by_turn(seeds))).mark_line(point=True).encode(
        x=alt.X("turn:O", axis=alt.Axis(labelAngle=0)),
        y=alt.Y("value:Q", scale=alt.Scale(zero=False), title=None),
        color=alt.Color("measure:N", title=None),
        strokeDash=alt.StrokeDash("starts:N", title="begun from", legend=alt.Legend(symbolType="stroke")),
    )  # fmt: skip
    charts.save_chart(chart.properties(width=300, height=180).facet("data:N", columns=2), path)


def draw_curves(path: str, folder: str) -> None:
    """NDCG@1..10 of all rows on all sets."""
    from podium.evaluate import charts
    from podium_papers import reproduce

    values = [
        {"set": one.name, "method": row.name, "k": k, "NDCG": value}
        for one in reproduce("retargeting", folder).sets
        for row in one.rows
        for k, value in enumerate(row.ours or (), 1)
    ]
    alt = charts.import_altair()
    width = alt.condition("datum.method == 'Retargeting'", alt.value(4), alt.value(1.5))
    chart = alt.Chart(alt.Data(values=values)).mark_line().encode(
        x=alt.X("k:O", axis=alt.Axis(labelAngle=0)),
        y=alt.Y("NDCG:Q", scale=alt.Scale(zero=False), title="NDCG@k, percent"),
        color=alt.Color("method:N", title=None, sort=None, scale=alt.Scale(scheme="tableau20")),
        strokeWidth=width,
    )  # fmt: skip
    charts.save_chart(
        chart.properties(width=260, height=240)
        .facet(alt.Facet("set:N", sort=None), columns=3)
        .resolve_scale(y="independent"),
        path,
    )


def run(quick: bool = False) -> list[dict[str, Any]]:
    """Rows of `make bench`."""
    return [*whole(), *growth((10_000, 100_000) if quick else (10_000, 100_000, 1_000_000))]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--turns")
    parser.add_argument("--curves")
    parser.add_argument("--data")
    asked = parser.parse_args()
    if asked.turns:
        draw_turns(asked.turns, 10 if asked.quick else 50)
    if asked.curves:
        draw_curves(asked.curves, asked.data)
    if not (asked.turns or asked.curves):
        run(asked.quick)
