"""Time to rank with many experts and many items: the CRF against SVD features."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from podium_papers.published_table import PublishedRow, PublishedTable

if TYPE_CHECKING:
    from podium.core.progress import Progress
    from podium.data.dataset import Fold
    from podium.data.preferences import Preferences
    from podium.kernels.dispatch import F8
    from podium.methods.learned.svd_features import SvdAggregator
    from podium_papers.reproduction import SetResult

__all__ = ["TABLE", "measure_times", "repeat_preferences", "results", "score_by_general_svd"]

DATA = "mq2008-agg"
GROWTH = {"experts": f"{DATA} + repeated experts", "items": f"{DATA} + repeated items"}
STEPS = (1, 2, 5, 10)
CALLS = 3  # the median of their times counts; a general decomposition is timed once
EVERY = {"experts": 1, "items": 8}  # a share of the queries: one in this many
CRF, SVD, GENERAL = "CRF", "SVD features", "SVD features by general SVD"
MODELS = {CRF: "crf(passes=1)", SVD: "svd(vectors=unit, passes=1)"}
RATIO, SVD_RATIO = f"{GENERAL} / {CRF}", f"{SVD} / {CRF}"
_NAN = float("nan")

TABLE = PublishedTable(
    name="figure2",
    title="Time to rank a query with experts and items repeated up to ten times",
    citation="Volkovs & Zemel, CRF framework for supervised preference aggregation, CIKM 2013, figure 2",
    sets=tuple(GROWTH.values()),
    metrics=("ndcg@5:letor",),  # not measured: the columns are times
    rows=(
        *(PublishedRow(name, MODELS.get(name)) for name in (CRF, SVD, GENERAL)),
        PublishedRow(RATIO, None),
        PublishedRow(SVD_RATIO, None),
    ),
    baseline=CRF,
    tested=(),
    study="inference_times",
    unit="milliseconds per query, and ratios",
    notes=(
        "The test queries of fold 1, with repeated items one in eight of them; columns are the numbers of "
        f"repetitions, times the processor time of this process, the median of {CALLS} calls, or one call of the "
        "general decomposition. PODIUM_THREADS=1 and OPENBLAS_NUM_THREADS=1 compare single threads.",
        "The paper's ratios, 80 for experts and 3.5 for items at ten repetitions, are of a general decomposition "
        "of every matrix against the CRF. Podium's SVD features come from a power iteration on the ranks, which "
        "builds no matrix. For items the published ratio is smaller because the paper needs only the first vectors, "
        "while a general decomposition computes all.",
    ),
)


def results(
    rows: Sequence[PublishedRow],
    sets: Sequence[str],
    folder: str | os.PathLike[str],
    seed: int,  # noqa: ARG001 - every study takes a seed
    progress: Progress,
) -> tuple[SetResult, ...]:
    """Times of the selected rows with repeated experts and with repeated items."""
    from podium_papers.paper_datasets import load_dataset
    from podium_papers.reproduction import RowResult, SetResult

    fold, done = load_dataset(DATA, folder).folds()[0], 0
    tables = []
    for growth, name in GROWTH.items():
        if name not in sets:
            continue
        by_step = []
        for step in STEPS:
            by_step.append(measure_times(fold, growth, step))
            done += 1
            progress(done, len(sets) * len(STEPS), name)
        last = {"experts": 80.0, "items": 3.5}[growth]
        published = {RATIO: (*[_NAN] * (len(STEPS) - 1), last)}
        lines = [
            RowResult(
                row.name,
                MODELS.get(row.name),
                published.get(row.name),
                tuple(_compute_figure(times, row.name) for times in by_step),
                comparable=False,
            )
            for row in rows
        ]
        columns = tuple(f"{step}x" for step in STEPS)
        tables.append(SetResult(name, "", -(-len(fold.test) // EVERY[growth]), tuple(lines), columns=columns))
    return tuple(tables)


def _compute_figure(times: dict[str, float], row: str) -> float:
    ratios = {RATIO: (GENERAL, CRF), SVD_RATIO: (SVD, CRF)}
    if row in ratios:
        above, below = ratios[row]
        return times[above] / times[below]
    return times[row]


def measure_times(fold: Fold, growth: str, times: int) -> dict[str, float]:
    """Milliseconds of processor time per query to score the test queries, by way; `growth` says what is repeated."""
    import numpy as np

    from podium.methods.base import make

    some = fold.test.select_codes(np.arange(0, len(fold.test), EVERY[growth])).preferences
    test = repeat_preferences(some, times, growth)
    train = repeat_preferences(fold.train.preferences, times if growth == "experts" else 1, growth)
    fitted: dict[str, Any] = {name: make(spec).fit(train, fold.train.labels) for name, spec in MODELS.items()}
    ways: dict[str, Callable[[], Any]] = {
        CRF: lambda: fitted[CRF].aggregate(test),
        SVD: lambda: fitted[SVD].aggregate(test),
        GENERAL: lambda: score_by_general_svd(fitted[SVD], test),
    }
    taken = {}
    for name, call in ways.items():
        samples = []
        for _ in range(1 if name == GENERAL else CALLS):
            begin = time.process_time()
            call()
            samples.append(time.process_time() - begin)
        taken[name] = 1e3 * statistics.median(samples) / len(test)
    return taken


def repeat_preferences(preferences: Preferences, times: int, growth: str) -> Preferences:
    """The same lists with copies of every expert, or of every item at the rank of the original."""
    import numpy as np

    from podium.data.preferences import Preferences

    lists, index = preferences.lists, preferences.index
    query = np.array(index.queries.tolist(), object)[lists.query_of_list][lists.list_of_row]
    expert = np.array(preferences.experts.tolist(), object)[lists.expert][lists.list_of_row]
    item = np.array(index.items.tolist(), object)[lists.item]
    columns: list[list[Any]] = [[], [], []]
    for copy in range(times):
        mark = f"#{copy}" if copy else ""
        columns[0] += query.tolist()
        columns[1] += [f"{e}{mark}" for e in expert] if growth == "experts" else expert.tolist()
        columns[2] += [f"{i}{mark}" for i in item] if growth == "items" else item.tolist()
    return Preferences.from_rows(*columns, rank=np.tile(lists.rank, times))


def score_by_general_svd(model: SvdAggregator, preferences: Preferences) -> F8:
    """Scores of a linear model of unit vectors, from a general decomposition of every matrix as in the paper."""
    import numpy as np

    from podium.kernels.preference_svd import build_dense_matrix
    from podium.learning.feature_scorer import FeatureScorer
    from podium.methods.input_checks import match_experts
    from podium.methods.learned.expert_matrices import (
        Transform,
        build_expert_matrices,
        find_unranked_cells,
    )

    groups, count = match_experts(model, preferences), len(model.experts_)
    left, right, missing = FeatureScorer.from_model(model).linear_weights.reshape(3, count)
    scores = find_unranked_cells(preferences, groups, count) @ missing
    transform: Transform = model.transform  # type: ignore[assignment]
    grouped = build_expert_matrices(preferences, transform, groups)
    matrices = grouped.matrices
    for number, expert in enumerate(grouped.group.tolist()):
        u, sizes, vt = np.linalg.svd(build_dense_matrix(matrices, number))
        if sizes[0] > 0:
            query = matrices.query[number]
            slots = slice(int(matrices.slots[query]), int(matrices.slots[query + 1]))
            # the matrix has no negative entry, so its leading vectors can be taken without negative entries
            scores[slots] += np.abs(u[:, 0]) * left[expert] + np.abs(vt[0]) * right[expert]
    return np.asarray(scores, np.float64)
