"""Random lists and deployments for real engines: ties, missing items, flat and single-item lists, weights."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pytest

from podium import Preferences, deploy, make
from podium.core.errors import ParameterError
from podium.deployment import Deployment

INPUTS = int(os.environ.get("PODIUM_ENGINE_INPUTS", "2000"))  # per engine
QUERIES = 50  # inputs per deployment
EXPERTS = ("bm25", "dense", "title", "clicks", "graph")
# names whose order differs between code points, locales and ASCII case; and one that must be quoted
ITEMS = (
    "a",
    "B",
    "b",
    "C",
    "Zebra",
    "zebra",
    "Äpfel",
    "apfel",
    "é",
    "'",
    "d10",
    "d9",
    "日本",
    "_",
    "10",
    "9",
)
ScoreRange = Literal["any", "cosine"]
ScoredList = list[tuple[str, float]]  # items with their scores, best first; equal scores in a random order
Rankings = dict[str, list[tuple[str, float | None]]]  # what an engine returned: items with scores by query
ENGINE_LIMIT = 10  # of the configurations that `podium deploy` writes


@dataclass(frozen=True)
class Batch:
    """A deployment with the lists that it must fuse, by query and expert."""

    deployment: Deployment
    lists: dict[str, dict[str, ScoredList]]

    def to_preferences(self) -> Preferences:
        """The lists with their scores; ranks are those of the scores."""
        rows = [
            (q, e, i, s)
            for q, by_expert in self.lists.items()
            for e, ranked in by_expert.items()
            for i, s in ranked
        ]
        query, expert, item, score = zip(*rows, strict=True)
        return Preferences.from_rows(query, expert, item, score=score)

    def to_numbered_preferences(self) -> Preferences:
        """The lists with their scores; ranks are places, so that equal scores have the order of the list."""
        rows = [
            (q, e, i, place, s)
            for q, by_expert in self.lists.items()
            for e, ranked in by_expert.items()
            for place, (i, s) in enumerate(ranked, 1)
        ]
        query, expert, item, rank, score = zip(*rows, strict=True)
        return Preferences.from_rows(query, expert, item, rank=rank, score=score)


def sample_batches(
    engine: str, methods: Sequence[str], *, seed: int = 0, scores: ScoreRange = "any", inputs: int = INPUTS
) -> Iterator[Batch]:
    """Deployments of the methods in turn, each with `QUERIES` random inputs; the nearest form where there is no exact.

    `{k}` in a method becomes a random whole number.
    """
    rng = np.random.default_rng(seed)
    for number in range(-(-inputs // QUERIES)):
        experts = EXPERTS[: rng.choice([1, 2, 2, 3, 3, 4, 5])]
        spec = methods[number % len(methods)].replace("{k}", str(sample_k(rng)))
        method = make(spec)
        if method.tags.weighted:
            method = make(spec, weights=sample_weights(rng, experts))
        depth = int(rng.choice([3, 5, 100]))
        deployment = deploy_or_accept_nearest(method, engine, experts, depth)
        size = min(QUERIES, inputs - number * QUERIES)
        lists = {f"q{n}": sample_lists(rng, experts, scores) for n in range(size)}
        yield Batch(deployment, lists)


def deploy_or_accept_nearest(method, engine, experts, depth) -> Deployment:
    """The deployment; one that is not exact must be refused unless the nearest form is accepted."""
    found = deploy(method, engine, experts=experts, depth=depth, nearest=True)
    if not found.exact:
        with pytest.raises(ParameterError, match=re.escape(found.form.reason)):
            deploy(method, engine, experts=experts, depth=depth)
    return found


def sample_k(rng: np.random.Generator) -> int:
    """Small, usual and large k."""
    return int(rng.choice([1, 2, 10, 60, 61, 200, int(rng.integers(1, 1000))]))


def sample_weights(rng: np.random.Generator, experts: Sequence[str]) -> dict[str, float]:
    """Equal weights, ratios of small whole numbers, or any; now and then a zero."""
    kind = rng.integers(4)
    size = len(experts)
    if kind == 0:
        values = np.full(size, rng.choice([1.0, 0.5, 3.0]))
    elif kind == 1:
        values = rng.integers(1, 4, size).astype(float)
    else:
        values = np.round(rng.gamma(1.0, 1.0, size) + 0.01, int(rng.integers(1, 9)) + 1)
    if size > 1 and rng.random() < 0.15:
        values[rng.integers(size)] = 0.0
    return dict(zip(experts, values.tolist(), strict=True))


def sample_lists(
    rng: np.random.Generator, experts: Sequence[str], scores: ScoreRange
) -> dict[str, ScoredList]:
    """The lists of a query: every expert lists some of its items, or has no list; the first always has one."""
    pool = rng.permutation(np.array(ITEMS))[: rng.integers(1, len(ITEMS) + 1)]
    lists = {}
    for number, expert in enumerate(experts):
        if number and rng.random() < 0.1:
            continue
        length = 1 if rng.random() < 0.1 else int(rng.integers(1, len(pool) + 1))
        items = rng.permutation(pool)[:length].tolist()
        values = sample_scores(rng, length, scores).tolist()
        lists[expert] = sorted(zip(items, values, strict=True), key=lambda pair: -pair[1])
    return lists


def sample_scores(rng: np.random.Generator, size: int, scores: ScoreRange) -> np.ndarray:
    """Distinct, tied, flat, shifted or negative scores, in single precision as vector engines keep them."""
    kind = rng.integers(5)
    if scores == "cosine":
        values = np.round(rng.uniform(-1, 1, size), 3 if kind else 1)
    elif kind == 0:
        values = rng.integers(0, 4, size) / 2.0
    elif kind == 1:
        values = np.full(size, rng.choice([0.0, 0.3, 0.7, 1.0, -2.5, 17.0]))
    elif kind == 2:
        values = rng.normal(0.0, 1.0, size)
    elif kind == 3:
        values = 10.0 + rng.gamma(2.0, 4.0, size)
    else:
        values = rng.random(size)
    return values.astype(np.float32).astype(np.float64)
