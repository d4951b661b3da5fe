"""Search for expert weights and method parameters over many shards.

Each round ranks the labeled queries of every shard with all neighbors of the best method so far and adds up
sums: only a few numbers per shard are transferred. Half of the labeled queries select the method; the
held-out half estimates its gain.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from podium.core.errors import InputError, ParameterError
from podium.core.params import suggest_names
from podium.data.ids import Id
from podium.methods.base import Aggregator, make
from podium.scale.apply import Paths
from podium.scale.shard_analysis import experts, score_candidates
from podium.scale.shard_counts import CandidateScore, TrialSums

__all__ = ["Tuned", "tune"]

WEIGHTS = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0)
SELECTION, HELD_OUT = 0, 1  # halves of the labeled queries


class Tuned(NamedTuple):
    """The selected method, the search steps, and its gain over the given method on held-out queries."""

    method: Aggregator
    steps: tuple[CandidateScore, ...]  # the best of each round, on the selection queries
    gain: float
    error: float  # standard error of the gain
    queries: int  # held-out queries behind the gain


def tune(
    method: Aggregator | str,
    inputs: Paths,
    labels: str | os.PathLike[str],
    folder: str | os.PathLike[str],
    *,
    values: Mapping[str, Sequence[Any]] | None = None,
    weights: Sequence[float] = WEIGHTS,
    metric: str = "ndcg@10",
    rounds: int = 10,
    least: float = 1e-3,
    **how: Any,
) -> Tuned:
    """Search the weights of all experts, and `values` of parameters such as `{"k": (10, 60, 100)}`.

    Each round reads the shards once (`how`: engine, address, workers) and tries each single change, plus all
    changes that helped in the previous round combined; it stops when the mean metric improves by less than
    `least`. `folder` caches the sums per round and shard.
    """
    given = make(method)
    for name in values or {}:
        if name not in given.get_parameters() or name == "weights":
            raise ParameterError(
                f"{given.name} has no parameter {name!r}; {suggest_names(name, given.get_parameters())}"
            )
    if not given.tags.weighted and not values:
        raise ParameterError(f"{given.name} takes no weights; give the parameter values to try")
    best = _weighted(given, inputs, folder, **how) if given.tags.weighted and weights else given
    together: list[Aggregator] = []
    steps: list[CandidateScore] = []
    for turn in range(max(rounds, 1)):
        near = list(_neighbors(best, values or {}, weights))
        # the given method comes first, because gains are measured against the first candidate
        candidates = [given, best, *(c for c in together if repr(c) != repr(best)), *(c for _, c in near)]
        tried = score_candidates(
            candidates, inputs, labels, os.path.join(folder, f"round-{turn}"), metric=metric, **how
        )
        if not tried.queries.all():
            raise InputError(
                f"{tried.queries.sum()} labeled queries are too few for a search",
                remedy="label more queries",
            )
        means = tried.sums[:, SELECTION] / tried.queries[SELECTION]
        chosen = 1 + int(np.argmax(means[1:]))  # the first of equal means: the current best stays
        together = [_combine_changes(best, near, means[-len(near) :] - means[1])] if near else []
        best = candidates[chosen]
        steps.append(CandidateScore(repr(best), float(means[chosen]), int(tried.queries[SELECTION])))
        if means[chosen] - means[1] < least:
            break
    return Tuned(best, tuple(steps), *_estimate_gain(tried, chosen))


def _weighted(given: Aggregator, inputs: Paths, folder: str | os.PathLike[str], **how: Any) -> Aggregator:
    """The method with one weight per expert, by name."""
    names = experts(inputs, os.path.join(folder, "experts"), **how).experts.tolist()
    old = given.weights if isinstance(given.weights, Mapping) else {}
    return replace(given, weights={name: float(old.get(name, 1.0)) for name in names})


Change = tuple[str, Any, Any]  # a parameter or "weights", the expert or None, the new value


def _neighbors(
    best: Aggregator, values: Mapping[str, Sequence[Any]], weights: Sequence[float]
) -> Iterator[tuple[Change, Aggregator]]:
    """All methods that differ in one value, with the change."""
    for name, tried in values.items():
        for value in tried:
            if value != best.get_parameters().get(name):
                yield (name, None, value), _apply_changes(best, [(name, None, value)])
    now: Mapping[Id, float] = best.weights if isinstance(best.weights, Mapping) else {}
    for expert in now:
        for weight in weights:
            # at least one expert must keep a positive weight
            if weight != now[expert] and (weight or any(w for e, w in now.items() if e != expert)):
                yield ("weights", expert, weight), _apply_changes(best, [("weights", expert, weight)])


def _apply_changes(best: Aggregator, changes: Sequence[Change]) -> Aggregator:
    own = {name: value for name, expert, value in changes if expert is None}
    weights = {expert: float(value) for _, expert, value in changes if expert is not None}
    if weights:
        assert isinstance(best.weights, Mapping)
        own["weights"] = {**best.weights, **weights}
    return replace(best, **own)


def _combine_changes(best: Aggregator, near: Sequence[tuple[Change, Aggregator]], gain: Any) -> Aggregator:
    """The best change of each value for which some change helped, combined."""
    chosen: dict[tuple[str, Any], tuple[float, Change]] = {}
    for (change, _), more in zip(near, gain, strict=True):
        if more > chosen.get(change[:2], (0.0, change))[0]:
            chosen[change[:2]] = (float(more), change)
    changes = [change for _, change in chosen.values()]
    now: Mapping[Id, float] = best.weights if isinstance(best.weights, Mapping) else {}
    after = {**now, **{expert: value for _, expert, value in changes if expert is not None}}
    return _apply_changes(best, changes) if any(after.values()) or not after else best


def _estimate_gain(tried: TrialSums, chosen: int) -> tuple[float, float, int]:
    """Mean gain over the given method, its standard error, and the number of held-out queries."""
    n = int(tried.queries[HELD_OUT])
    mean = float(tried.gains[chosen, HELD_OUT] / n)
    spread = max(float(tried.squares[chosen, HELD_OUT]) / n - mean * mean, 0.0)
    return mean, math.sqrt(spread / max(n - 1, 1)), n
