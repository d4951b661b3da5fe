"""Learning from beliefs about features, by number of unlabeled queries; with the graded sum and labels."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from podium.core.progress import Progress
from podium.data.consensus import Consensus
from podium.data.features import Features
from podium.data.labels import Labels
from podium.kernels import segments
from podium.kernels.dispatch import F8, I8
from podium.methods.feature.belief_weights import BeliefFit, grades_for, spread_beliefs
from podium.methods.feature.feature_model import normalize_by_query
from podium.methods.feature.labelled_features import LabelledFeatures
from podium.methods.learned.lambdarank import LambdaRank
from podium.metrics.base import measure, parse
from podium_papers import paper_datasets as data_sets
from podium_papers.letor_columns import COLUMNS

__all__ = [
    "BELIEFS",
    "DRAWS",
    "BeliefCurve",
    "BeliefCurvePoint",
    "BeliefProblem",
    "compute_curve",
    "load_problem",
    "measure_lambdarank",
    "sizes_for",
]

DRAWS = 25
SIZES = (10, 20, 50, 100, 200, 500, 1000)
NEARLY = 0.8  # of the largest sample: larger sizes are skipped
METRIC = "ndcg@10:exp"
TEXT, STATIC = 2.0, 1.0  # grades

BELIEFS: dict[str, dict[str, dict[str, float]]] = {
    "mslr-web10k-sample": {
        "one belief": {"BM25 title": TEXT},
        "five beliefs": {
            "BM25 title": TEXT, "BM25 anchor": TEXT, "BM25 body": TEXT, "PageRank": STATIC, "quality": STATIC,
        },
    },
    "mq2008": {
        "one belief": {"BM25 title": TEXT},
        "five beliefs": {
            "BM25 title": TEXT, "BM25 anchor": TEXT, "BM25 body": TEXT, "PageRank": STATIC, "inlinks": STATIC,
        },
    },
    "ohsumed": {
        "one belief": {"BM25 title": TEXT},
        "five beliefs": {
            "BM25 title": TEXT, "BM25 abstract": TEXT, "BM25 both": TEXT, "LMIR.ABS title": STATIC,
            "LMIR.ABS abstract": STATIC,
        },
    },
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class BeliefProblem:
    """Queries with two or more items and a relevant one, their features by name, and their labels."""

    name: str
    features: Features
    labels: Labels
    values: F8  # the normalized features
    lowest: float  # quality of a random order

    @property
    def starts(self) -> I8:
        """Row offsets: query q has rows starts[q] .. starts[q + 1]."""
        return self.features.index.starts

    def __len__(self) -> int:
        return len(self.features.index)

    def measure_quality(self, weights: F8) -> F8:
        """Metric of a linear scorer by query; ties in file order."""
        scores = np.asarray(np.einsum("ij,j->i", self.values, weights))
        ranked = Consensus.from_scores(self.features.index, scores, ties="input")
        found: F8 = measure([parse(METRIC)], ranked, self.labels, np.arange(len(self)))[0]
        return found

    def learn_weights(self, queries: I8, grades: F8, kept: float, l2: float | None = None) -> BeliefFit:
        """Weights learned from some of the queries, without their labels; `l2` replaces the default penalty."""
        starts, rows = segments.gather_segments(self.starts, queries)
        defaults = LabelledFeatures(beliefs={"any": 1.0})
        penalty = defaults.l2 if l2 is None else l2
        settings = {"l2": penalty, "cutoff": defaults.cutoff, "passes": defaults.passes}
        return spread_beliefs(self.values[rows], starts, grades, kept=kept, **settings)  # type: ignore[arg-type]


@dataclass(frozen=True)
class BeliefCurvePoint:
    """One sample size: learned from `queries` unlabeled queries, measured on others."""

    queries: int
    quality: float
    gain: float  # gain over the graded sum on the same test queries
    error: float  # standard error of the gain over the draws


@dataclass(frozen=True)
class BeliefCurve:
    """One set of beliefs on one data set."""

    beliefs: str
    naive: float
    points: tuple[BeliefCurvePoint, ...]
    published: BeliefCurvePoint  # published rule (kept=0), largest sample
    everything: float  # learned from all queries and measured on them
    naive_everything: float
    weights: dict[str, float]  # learned from all queries

    @property
    def sufficient_queries(self) -> int | None:
        """The smallest sample from which the gain stays above two standard errors, if there is one."""
        good = [p.gain > 2 * p.error for p in self.points]
        for k, point in enumerate(self.points):
            if all(good[k:]):
                return point.queries
        return None


def load_problem(name: str, folder: str | os.PathLike[str]) -> BeliefProblem:
    """A data set by name, with named columns."""
    data = data_sets.load_dataset(name, folder)
    assert data.features is not None
    assert data.labels is not None
    features = Features(data.features.index, data.features.values, COLUMNS[name])
    grades = data.labels.align(features.index)
    best = np.maximum.reduceat(grades, features.index.starts[:-1])
    features = features.select_codes(np.flatnonzero((features.index.sizes > 1) & (best > 0)))
    labels = Labels(features.index, data.labels.align(features.index))
    values = normalize_by_query(features.index.starts, features.values)
    return BeliefProblem(name, features, labels, values, _random_quality(labels))


def _random_quality(labels: Labels) -> float:
    """Mean NDCG@10 over all orders of the items."""
    found = []
    for a, b in zip(labels.index.starts[:-1], labels.index.starts[1:], strict=True):
        gain = 2.0 ** labels.grades[a:b] - 1
        discount = 1 / np.log2(np.arange(2, min(10, b - a) + 2))
        found.append(gain.mean() * discount.sum() / (np.sort(gain)[::-1][: len(discount)] @ discount))
    return float(np.mean(found))


def sizes_for(problem: BeliefProblem) -> list[int]:
    """Numbers of unlabeled queries: round numbers, then half of all."""
    half = len(problem) // 2
    return [*(n for n in SIZES if n <= NEARLY * half), half]


def compute_curve(
    problem: BeliefProblem,
    beliefs: str,
    *,
    seed: int = 0,
    draws: int | None = None,
    progress: Callable[[int, int], None],
) -> BeliefCurve:
    """Each draw learns from half of the queries, in nested samples, and measures on the other half."""
    grades = grades_for(BELIEFS[problem.name][beliefs], problem.features.names, problem.name)
    naive, sizes, draws = problem.measure_quality(grades), sizes_for(problem), draws or DRAWS
    kept = LabelledFeatures(beliefs={"any": 1.0}).kept
    found = np.zeros((draws, len(sizes) + 1, 2))  # the last column: the published rule
    random = np.random.default_rng(seed)
    for draw in range(draws):
        order = random.permutation(len(problem))
        test = order[len(problem) // 2 :]
        for k, size in enumerate([*sizes, sizes[-1]]):
            weights = problem.learn_weights(
                np.sort(order[:size]), grades, kept if k < len(sizes) else 0.0
            ).weights
            quality = problem.measure_quality(weights)[test]
            found[draw, k] = quality.mean(), (quality - naive[test]).mean()
        progress(draw + 1, draws)
    points = [_summarize_draws(n, found[:, k]) for k, n in enumerate([*sizes, sizes[-1]])]
    whole = problem.learn_weights(np.arange(len(problem)), grades, kept).weights
    return BeliefCurve(
        beliefs,
        float(np.mean(found[:, 0, 0] - found[:, 0, 1])),
        tuple(points[:-1]),
        points[-1],
        float(problem.measure_quality(whole).mean()),
        float(naive.mean()),
        dict(zip(problem.features.names, whole.tolist(), strict=True)),
    )


def _summarize_draws(size: int, found: F8) -> BeliefCurvePoint:
    error = float(found[:, 1].std(ddof=1) / np.sqrt(len(found))) if len(found) > 1 else float("nan")
    return BeliefCurvePoint(size, float(found[:, 0].mean()), float(found[:, 1].mean()), error)


def measure_lambdarank(
    problem: BeliefProblem, *, seed: int = 0, parts: int = 5, progress: Progress | None = None
) -> float:
    """LambdaRank from all labels, cross-validated: three parts train, one selects the pass, one measures."""
    part = np.random.default_rng(seed).permutation(np.arange(len(problem)) % parts)
    quality = np.zeros(len(problem))
    for fold in range(parts):
        test, choose = part == fold, part == (fold + 1) % parts
        train, held = (_some(problem, np.flatnonzero(which)) for which in (~(test | choose), choose))
        model = LambdaRank(normalize="range", seed=seed, choose_by=METRIC).fit(*train, validation=held)
        quality[test] = problem.measure_quality(np.array(list(model.feature_weights().values())))[test]
        if progress is not None:
            progress(fold + 1, parts, "labels")
    return float(quality.mean())


def _some(problem: BeliefProblem, codes: I8) -> tuple[Features, Labels]:
    return problem.features.select_codes(codes), problem.labels.select_codes(codes)
