"""Monotone retargeting on synthetic data: recover a true order that only the features and one list share."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from podium_papers.published_table import PublishedRow, PublishedTable
from podium_papers.retargeting import BASELINES, CITATION

if TYPE_CHECKING:
    from podium.core.progress import Progress
    from podium_papers.reproduction import SetResult

__all__ = ["TABLE", "SyntheticProblem", "results", "sample_problem"]

ITEMS, FEATURES, SEEDS = 100, 10, 50
ADDITIVE, MULTIPLICATIVE, SPURIOUS = 4, 2, 3  # lists
NOISE = {
    "gaussian": 0.5,
    "poisson": 0.2,
}  # in standard deviations of the true scores; simple methods then reach .8
OURS = {"Retargeting, scores": "score", "Retargeting, ranks": "rank"}
COLUMNS = ("tau", "exact", "rho", "N@10", "spurious out", "turns/100")

TABLE = PublishedTable(
    name="retargeting-synthetic",
    title="Monotone retargeting on synthetic data with a known order",
    citation=f"{CITATION}, figure 1",
    sets=tuple(f"{kind}{clean}" for kind in NOISE for clean in ("", " without a clean list")),
    metrics=("tau",),
    rows=tuple(PublishedRow(name, "retargeting") for name in OURS)
    + tuple(PublishedRow(name, method) for name, method in BASELINES.items()),
    baseline="Borda",
    tested=(),
    study="retargeting_synthetic",
    generated=True,
    notes=(
        f"{SEEDS} seeds of {ITEMS} items with {FEATURES} normal features. True scores are linear in the features "
        "(gaussian) or their exp (poisson). Lists: the true scores under a shift or another monotone transform (the "
        f"clean list), {ADDITIVE} with additive and {MULTIPLICATIVE} with multiplicative noise, {SPURIOUS} spurious "
        "ones. Lists are read by rank, whether given as ranks or as scores.",
        "Means over the seeds, percent: Kendall's tau to the true order, share of seeds with tau = 1, Spearman's rho, "
        "NDCG@10 (the ten best items have grades 10 to 1), share of spurious lists with weight 0, turns.",
    ),
)


@dataclass(frozen=True, eq=False)
class SyntheticProblem:
    """One draw: features, true scores, and lists as columns, the clean one first, the spurious ones last."""

    features: Any
    truth: Any
    lists: Any


def sample_problem(kind: str, clean: bool, seed: int) -> SyntheticProblem:
    """A draw from a Gaussian or Poisson model."""
    import numpy as np

    random = np.random.default_rng((seed, kind == "poisson"))
    x = random.normal(size=(ITEMS, FEATURES))
    beta = random.normal(size=FEATURES)
    linear = x @ (beta / np.linalg.norm(beta))
    truth = np.exp(linear) if kind == "poisson" else linear
    noise, size = NOISE[kind], truth.std()
    changed = (truth + 3.0, np.exp(truth / size), np.cbrt(truth), np.arctan(truth))[seed % 4]
    lists = [
        *([changed] if clean else []),
        *(truth + noise * size * random.normal(size=ITEMS) for _ in range(ADDITIVE)),
        *(truth * (1 + noise * random.normal(size=ITEMS)) for _ in range(MULTIPLICATIVE)),
        *(size * random.normal(size=ITEMS) for _ in range(SPURIOUS)),
    ]
    return SyntheticProblem(x, truth, np.stack(lists, axis=1))


def results(
    rows: Sequence[PublishedRow],
    sets: Sequence[str],
    folder: str | os.PathLike[str] | None,  # noqa: ARG001 - every study takes a folder
    seed: int,
    progress: Progress,
) -> tuple[SetResult, ...]:
    """All selected rows on all kinds of data."""
    from podium.evaluate.crossvalidation import subtask_progress

    return tuple(
        _run_set(name, rows, seed, subtask_progress(progress, number, len(sets), name))
        for number, name in enumerate(sets)
    )


def _run_set(name: str, rows: Sequence[PublishedRow], seed: int, progress: Progress) -> SetResult:
    import numpy as np

    from podium_papers.reproduction import RowResult, SetResult

    kind, clean = name.split()[0], "without" not in name
    found: dict[str, list[tuple[float, ...]]] = {row.name: [] for row in rows}
    for number in range(SEEDS):
        one = sample_problem(kind, clean, seed * SEEDS + number)
        for row in rows:
            found[row.name].append(_measure_row(one, row))
        progress(number + 1, SEEDS, name)
    means = {n: tuple(100 * np.mean(values, axis=0)) for n, values in found.items()}
    shown = [RowResult(row.name, str(row.method), None, tuple(map(float, means[row.name]))) for row in rows]
    return SetResult(name, "", SEEDS, tuple(shown), columns=COLUMNS)


def _measure_row(one: SyntheticProblem, row: PublishedRow) -> tuple[float, ...]:
    import numpy as np
    from scipy.stats import kendalltau, spearmanr

    from podium.data.features import Features
    from podium.methods.base import make

    preferences, item = as_preferences(one, OURS.get(row.name, "score"))
    assert isinstance(row.method, str)
    method: Any = make(row.method)
    own = method.tags.uses_features
    features = Features.from_rows(["q"] * ITEMS, item, one.features) if own else None
    if own:
        method.fit(preferences, features=features)
    scores = method.aggregate(preferences, features).scores
    tau, rho = float(kendalltau(scores, one.truth)[0]), float(spearmanr(scores, one.truth)[0])
    weights = list(method.expert_weights().values())[-SPURIOUS:] if own else []
    return (
        tau,
        float(tau > 1 - 1e-12),
        rho,
        top_quality(scores, one.truth),
        float(np.mean(np.array(weights) == 0)) if own else float("nan"),
        method.iterations_ / 100 if own else float("nan"),
    )


def as_preferences(one: SyntheticProblem, form: str = "score") -> tuple[Any, list[str]]:
    """The lists as ratings or as rankings, and the item names in order."""
    import numpy as np

    from podium.data.preferences import Preferences

    n = one.lists.shape[1]
    item = [f"item {k:03d}" for k in range(ITEMS)]
    place = np.argsort(np.argsort(-one.lists, axis=0, kind="stable"), axis=0) + 1
    values: Any = {"score": one.lists.ravel()} if form == "score" else {"rank": place.ravel()}
    experts = [f"list {k}" for k in range(n)]
    return Preferences.from_rows(["q"] * (ITEMS * n), experts * ITEMS, np.repeat(item, n), **values), item


def top_quality(scores: Any, truth: Any, depth: int = 10) -> float:
    """NDCG at `depth` where the best items have grades from `depth` down to 1."""
    import numpy as np

    grade = np.maximum(depth - np.argsort(np.argsort(-truth)), 0)
    discount = 1 / np.log2(np.arange(2, depth + 2))
    best = np.argsort(-scores, kind="stable")[:depth]
    return float((2.0 ** grade[best] - 1) @ discount / ((2.0 ** np.arange(depth, 0, -1) - 1) @ discount))
