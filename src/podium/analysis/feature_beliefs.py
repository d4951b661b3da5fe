"""The effect of beliefs about features: learned weights, changed rankings, and conflicts."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from podium.core.results import Column, Result, ViewBlock, build_grid, show_field
from podium.core.tables import Grid
from podium.data.consensus import Consensus
from podium.data.features import Features
from podium.data.ids import Id
from podium.data.labels import Labels
from podium.evaluate.evaluation import evaluate
from podium.methods.feature.feature_model import normalize_by_query
from podium.methods.feature.labelled_features import LabelledFeatures
from podium.metrics.agreement import compute_taus

__all__ = [
    "BeliefConflict",
    "BeliefQuality",
    "BeliefReport",
    "FeatureWeight",
    "RankingChange",
    "belief_report",
]

AGAINST = -0.2  # two beliefs conflict at or below this correlation
CHANCE = 3.0  # standard errors of an uncorrelated pair that a conflict must exceed


@dataclass(frozen=True)
class FeatureWeight:
    """A feature, its grade (0: no belief) and its learned weight."""

    feature: str
    grade: float
    weight: float


@dataclass(frozen=True)
class RankingChange:
    """A query, the similarity of its two rankings, and their top items."""

    query: Id
    tau: float
    naive_top: Id
    learned_top: Id


@dataclass(frozen=True)
class BeliefConflict:
    """Evidence in the data against a belief."""

    kind: Literal["opposed", "reversed", "silent"]
    features: tuple[str, ...]
    value: float
    text: str


@dataclass(frozen=True)
class BeliefQuality:
    """Quality of the graded sum and of the model, on labels that neither has seen."""

    metric: str
    queries: int
    naive: float
    learned: float


@dataclass(frozen=True)
class BeliefReport(Result[FeatureWeight]):
    """What was learned from beliefs, compared with the graded sum (the naive score)."""

    queries: int
    items: int
    passes: int
    converged: bool
    weights: tuple[FeatureWeight, ...]  # largest first
    tau: float  # mean over queries where both rankings are defined
    changed: tuple[RankingChange, ...]  # least similar first
    conflicts: tuple[BeliefConflict, ...]
    quality: BeliefQuality | None = None

    key, title = "feature", "Weights of features"

    @property
    def rows(self) -> tuple[FeatureWeight, ...]:
        """The weights."""
        return self.weights

    def grid(self, most: int | None = None) -> Grid:
        """The weights, largest first; with `most`, those at both ends and those of graded features."""
        rows = self.weights
        if most is not None and len(rows) > 2 * most:
            rows = (*rows[:most], *(w for w in rows[most:-most] if w.grade), *rows[-most:])
        columns: list[Column] = [
            ("feature", show_field("feature")),
            ("grade", show_field("grade", lambda grade: f"{grade:+g}" if grade else "")),
            ("weight", show_field("weight", "{:+.4f}".format)),
        ]
        return build_grid(columns, rows, title="weights, largest first")

    def blocks(self) -> tuple[ViewBlock, ...]:
        """The weights, then the conflicts."""
        return self.grid(), *(conflict.text for conflict in self.conflicts)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values."""
        return dataclasses.asdict(self)


def belief_report(
    model: LabelledFeatures,
    features: Features,
    labels: Labels | None = None,
    *,
    metric: str = "ndcg@10:exp",
    most: int = 5,
) -> BeliefReport:
    """Inspect a fitted model on some queries; `labels` are used for measurement only.

    `most` limits the queries named, those whose rankings changed most. Two graded features conflict if,
    signed by their grades, they correlate at -0.2 or below over the items of the queries, beyond chance. A
    belief is reversed if the learned weight has the opposite sign, and silent if its feature is constant
    within every query.
    """
    weights = model.feature_weights()
    naive = Consensus.from_scores(features.index, model.naive(features))
    learned = Consensus.from_scores(features.index, model.predict(features))
    alike = compute_taus(features.index.starts, naive.scores, learned.scores)
    shown = [q for q in np.argsort(alike, kind="stable").tolist() if alike[q] < 1][:most]
    changed = []
    for code in shown:
        query = naive.queries[code]
        first, now = naive.ranking(query, 1)[0], learned.ranking(query, 1)[0]
        changed.append(RankingChange(query, float(alike[code]), first, now))
    quality = None
    if labels is not None:
        before, after = evaluate(naive, labels, metric), evaluate(learned, labels, metric)
        name = next(iter(before.mean()))
        quality = BeliefQuality(name, len(before), before.mean()[name], after.mean()[name])
    return BeliefReport(
        queries=len(features.index),
        items=len(features.values),
        passes=len(model.history),
        converged=model.converged_,
        weights=tuple(
            FeatureWeight(name, model.beliefs.get(name, 0.0), weight)
            for name, weight in sorted(weights.items(), key=lambda pair: (-pair[1], pair[0]))
        ),
        tau=float(np.nanmean(alike)) if not np.isnan(alike).all() else float("nan"),
        changed=tuple(changed),
        conflicts=_find_conflicts(model, features, weights),
        quality=quality,
    )


def _find_conflicts(
    model: LabelledFeatures, features: Features, weights: dict[str, float]
) -> tuple[BeliefConflict, ...]:
    graded = [name for name, grade in model.beliefs.items() if grade]
    columns = [features.names.index(name) for name in graded]
    signs = np.sign([model.beliefs[name] for name in graded])
    values = normalize_by_query(features.index.starts, features.values[:, columns], model.normalize) * signs
    size = np.sqrt((values * values).sum(axis=0))
    limit = min(AGAINST, -CHANCE / np.sqrt(max(len(values), 1)))
    conflicts: list[BeliefConflict] = []
    for k, name in enumerate(graded):
        if size[k] == 0:
            text = f"{name} is constant within every query, so the belief in it has no effect"
            conflicts.append(BeliefConflict("silent", (name,), 0.0, text))
        elif weights[name] * signs[k] < 0:
            text = (
                f"{name} was graded {model.beliefs[name]:+g}, but its learned weight is {weights[name]:+.3f}"
            )
            conflicts.append(BeliefConflict("reversed", (name,), weights[name], text))
        for j in range(k):
            if not size[k] or not size[j]:
                continue
            correlation = float(values[:, j] @ values[:, k] / (size[j] * size[k]))
            if correlation <= limit:
                text = f"the beliefs in {graded[j]} and {name} conflict (correlation {correlation:+.2f})"
                conflicts.append(BeliefConflict("opposed", (graded[j], name), correlation, text))
    return tuple(conflicts)
