"""Monotone retargeting on real data: ranking columns as lists, other columns as features, no labels."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from podium.methods.base import make
from podium_papers.published_table import PublishedRow, PublishedTable

if TYPE_CHECKING:
    from podium.core.progress import Progress
    from podium.data.consensus import Consensus
    from podium.data.dataset import Dataset
    from podium.data.preferences import Preferences
    from podium.kernels.dispatch import F8
    from podium_papers.reproduction import SetResult

__all__ = ["BASELINES", "CITATION", "TABLE", "as_lists", "learned_list", "results"]

CITATION = (
    "Acharyya & Ghosh, Monotone retargeting for unsupervised rank aggregation with object features, 2016"
)
BASELINES = {
    "Borda": "borda",
    "CombMNZ": "combmnz",
    "CombMIN": "combmin",
    "CombMAX": "combmax",
    **{f"MC{k}": f"mc{k}" for k in range(1, 5)},
}
OURS = "Retargeting"
FEATURES, EVERYTHING = " + list learned from features", " + list learned from everything"  # one more list
SYSTEMS = "mq2008-agg"  # rankings of the same documents by 25 systems
WITH_SYSTEMS = f"mq2008 + lists of {SYSTEMS}"

# columns that rank, by prefix of their names
RANKING = ("BM25", "log BM25", "LMIR", "TF.IDF", "PageRank")
NOT_RANKING = {"ohsumed": ("TF.IDF",)}  # the lists there are BM25 and language models

TABLE = PublishedTable(
    name="retargeting",
    title="Monotone retargeting on LETOR sets, without labels",
    citation=f"{CITATION}, figure 2",
    sets=(
        *(f"{name}{more}" for name in ("ohsumed", "mq2008") for more in ("", FEATURES, EVERYTHING)),
        WITH_SYSTEMS,
    ),
    metrics=tuple(f"ndcg@{k}:exp" for k in range(1, 11)),
    rows=(
        PublishedRow(OURS, "retargeting"),
        *(PublishedRow(name, method) for name, method in BASELINES.items()),
        PublishedRow("RRF", "rrf"),
        PublishedRow("Learned list", None),
    ),
    baseline=OURS,
    tested=("ndcg@10:exp",),
    study="retargeting",
    notes=(
        "Lists are the columns of BM25, language models, TF.IDF and PageRank (OHSUMED: BM25 and language "
        "models), features are all others. The published figures are curves without numbers.",
        "A learned list is LambdaRank on the features, or on all columns: each part is scored by a model "
        "that did not see it. With it, retargeting runs on each part separately, since every part has its "
        "own model.",
        f"{WITH_SYSTEMS} adds the rankings of 25 systems, which list 35 % of the documents; documents that they "
        "do not list count as below those they do.",
        "On MQ2008 the features explain too little of the lists' agreement (below trust=0.5), so only the "
        "lists count, weighted by agreement: even LambdaRank on those features is far below the lists' "
        "consensus there.",
        "A learned list is detected (weight 1 in most parts of OHSUMED) if learned from the features; "
        "learned from everything, it is one list among others without a clear gain. It depends on the seed: several "
        "seeds give means and deviations.",
        "Scale, penalties and trust were chosen using the labels of both sets, one setting for all.",
    ),
)


def results(
    rows: Sequence[PublishedRow],
    sets: Sequence[str],
    folder: str | os.PathLike[str],
    seed: int,
    progress: Progress,
) -> tuple[SetResult, ...]:
    """All selected rows on all selected data sets."""
    from podium.evaluate.crossvalidation import subtask_progress
    from podium_papers.paper_datasets import load_dataset

    data = {name: load_dataset(name, folder) for name in dict.fromkeys(s.split()[0] for s in sets)}
    systems = load_dataset(SYSTEMS, folder).preferences if WITH_SYSTEMS in sets else None
    return tuple(
        _run_set(
            name,
            data[name.split()[0]],
            rows,
            seed,
            subtask_progress(progress, number, len(sets), name),
            systems if name == WITH_SYSTEMS else None,
        )
        for number, name in enumerate(sets)
    )


def as_lists(data: Dataset, more: Mapping[str, F8] | None = None) -> Dataset:
    """Ranking columns as ratings of one expert each, the others as features; `more` adds lists by part."""
    import numpy as np

    from podium.data.dataset import Dataset
    from podium.data.features import Features
    from podium.data.preferences import Preferences
    from podium_papers.letor_columns import COLUMNS

    assert data.features is not None
    x, names = data.features, COLUMNS[data.name]
    words = [w for w in RANKING if w not in NOT_RANKING.get(data.name, ())]
    rank = [k for k, name in enumerate(names) if name.startswith(tuple(words))]
    rest = [k for k in range(len(names)) if k not in rank]
    lists = {names[k]: x.values[:, k] for k in rank} | dict(more or {})
    query = np.array(x.index.queries.tolist(), object)[x.index.query_of_slot]
    item, n = np.array(x.index.items.tolist(), object), len(lists)
    preferences = Preferences.from_rows(
        np.repeat(query, n), np.tile(list(lists), len(item)), np.repeat(item, n),
        score=np.stack(list(lists.values()), axis=1).ravel(),
    )  # fmt: skip
    features = Features(x.index, x.values[:, rest], tuple(names[k] for k in rest))
    return Dataset(preferences, data.labels, features, data.part if more else None)


def learned_list(data: Dataset, seed: int = 0) -> F8:
    """LambdaRank on the features: each part is scored by a model that was fitted without it."""
    import numpy as np

    from podium.methods.learned.lambdarank import LambdaRank

    assert data.features is not None
    scores = np.zeros(len(data.features.values))
    for fold in data.folds():
        train, held, test = ((part.features, part.labels) for part in fold)
        model = LambdaRank(normalize="deviation", seed=seed, choose_by="ndcg@10:exp")
        model.fit(*train, validation=held)  # type: ignore[arg-type]
        assert test[0] is not None
        scores[data.features.index.locate(test[0].index) >= 0] = model.predict(test[0])
    return scores


def _run_set(
    name: str,
    data: Dataset,
    rows: Sequence[PublishedRow],
    seed: int,
    progress: Progress,
    systems: Preferences | None = None,
) -> SetResult:
    from podium.data.preferences import Preferences
    from podium.evaluate.comparison import compare_evaluations
    from podium.evaluate.evaluation import evaluate
    from podium_papers.reproduction import RowResult, SetResult

    assert data.labels is not None
    extra = None
    if name.endswith((FEATURES, EVERYTHING)):
        taught = data if name.endswith(EVERYTHING) else replace(data, features=as_lists(data).features)
        extra = learned_list(taught, seed)
    seen = as_lists(data, None if extra is None else {"learned": extra})
    if systems is not None:
        seen = replace(seen, preferences=Preferences.concat([seen.preferences, systems]))
    facts: list[Any] = []
    found = _rank_rows(seen, extra, rows, facts, progress)
    measured = {n: evaluate(c, data.labels, TABLE.metrics, queries="all") for n, c in found.items()}
    base = OURS if OURS in found else next(iter(found))
    tests = compare_evaluations(measured, TABLE.tested, baseline=base, test="randomization").rows
    shown = [
        RowResult(r.name, _spec(r), None, tuple(100 * v for v in measured[r.name].mean().values()))
        for r in rows
        if r.name in found
    ]
    tested = tuple(row for row in tests if row.difference is not None)
    count = len(measured[base])
    return SetResult(
        name, seen.preferences.fingerprint, count, tuple(shown), tested, more=_describe_models(facts)
    )


def _spec(row: PublishedRow) -> str | None:
    assert not isinstance(row.method, tuple)  # there are no labels to select candidates with
    return row.method


def _rank_rows(
    seen: Dataset, extra: F8 | None, rows: Sequence[PublishedRow], facts: list[Any], progress: Progress
) -> dict[str, Consensus]:
    """The consensus of every row."""
    from podium.data.consensus import Consensus

    assert seen.features is not None
    found: dict[str, Consensus] = {}
    for number, row in enumerate(rows):
        progress(number, len(rows), row.name)
        if row.name == OURS:
            found[OURS] = _retarget_parts(seen, facts)
        elif isinstance(row.method, str):
            found[row.name] = make(row.method).aggregate(seen.preferences, ties="input")
        elif extra is not None:
            found[row.name] = Consensus.from_scores(seen.features.index, extra, ties="input")
    return found


def _retarget_parts(seen: Dataset, facts: list[Any]) -> Consensus:
    """Retarget all queries, or part by part if the data have parts; `facts` collects what was learned."""
    import numpy as np

    from podium.data.consensus import Consensus

    index = seen.preferences.index
    scores = np.zeros(len(index.items))
    part = np.zeros(len(index), np.int64) if seen.part is None else seen.part
    for number in np.unique(part):
        codes = np.flatnonzero(part == number)
        some, (_, slots) = seen.select_codes(codes), index.select(codes)
        model = make("retargeting").fit(some.preferences, features=some.features)
        scores[slots] = model.aggregate(some.preferences, some.features).scores
        facts.append(model)
    return Consensus.from_scores(index, scores, ties="input")


def _describe_models(models: list[Any]) -> tuple[tuple[str, tuple[tuple[str, ...], ...]], ...]:
    """Learned values by part: list weights, and the largest feature weights."""
    if not models:
        return ()
    head = [f"part {k + 1}" for k in range(len(models))] if len(models) > 1 else ["value"]
    facts = (
        ("fact", *head),
        ("share of the lists' agreement that features explain", *(f"{m.explained_:.3f}" for m in models)),
        ("reliability of the lists' agreement", *(f"{m.reliability_:.3f}" for m in models)),
        ("outcome", *(m.mode_ for m in models)),
        ("turns", *(str(m.iterations_) for m in models)),
        ("objective", *(f"{m.objective_:.2g}" for m in models)),
    )
    lists = _format_weights([m.expert_weights() for m in models], len(models[0].experts_))
    features = _format_weights([m.feature_weights() for m in models], 10)
    return (
        ("how it went", facts),
        ("weights of the lists", (("list", *head), *lists)),
        ("largest weights of features", (("feature", *head), *features)),
    )


def _format_weights(found: list[dict[Any, float]], top: int) -> tuple[tuple[str, ...], ...]:
    size = {name: sum(abs(one[name]) for one in found) for name in found[0]}
    names = sorted(size, key=lambda name: -size[name])[:top]
    return tuple((str(name), *(f"{one[name]:.3f}" for one in found)) for name in names)
