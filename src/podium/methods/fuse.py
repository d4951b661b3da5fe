"""`fuse`: one query, plain Python in and out.

A call with three lists of fifty items must not pay for tables and indexes, so methods that use only positions
take a path over plain dictionaries; all other methods go through `Preferences`. Both return the same ranking.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from podium.core import registry
from podium.core.errors import ALLOW_REPEATS, InputError, ParameterError
from podium.data.building.validate import Duplicates
from podium.data.ids import Id, id_order
from podium.data.preferences import Preferences
from podium.kernels.ordering import TOLERANCE
from podium.kernels.plain_lists import add_points, rank_totals
from podium.methods.base import Aggregator, make
from podium.methods.input_checks import Weights, weights_for
from podium.methods.positional import Positional, RankBiasedCentroids, ReciprocalRankFusion

__all__ = [
    "Fused",
    "build_preferences",
    "fuse",
    "fuse_positions",
    "fuse_preferences",
    "make_for_lists",
    "sort_by_expert",
    "sort_ids",
]

SHOWN = 10  # items shown in a notebook
ExpertAnswer = Sequence[Id] | Mapping[Id, float]
# methods that are exactly "sum of weight x points(rank)", with their one parameter
_QUICK: dict[type, str] = {ReciprocalRankFusion: "k", RankBiasedCentroids: "persistence"}


@dataclass(frozen=True, slots=True)
class Fused:
    """One consensus: items best first, and their scores in the same order."""

    ranking: list[Id]
    scores: list[float]
    _by: Aggregator

    @property
    def method(self) -> str:
        """The method with its parameters, in the form `make` parses."""
        return repr(self._by)

    def _repr_html_(self) -> str:
        from podium.core.tables import render_block, render_table
        from podium.data.notebook_html import ranking_grid

        columns = (self.ranking[:SHOWN], range(1, SHOWN + 1), self.scores[:SHOWN], self.tied[:SHOWN])
        table = render_table(ranking_grid(zip(*columns, strict=False)), more=max(0, len(self) - SHOWN))
        return render_block(f"{self.method}: {len(self):,} items", table)

    def __iter__(self) -> Any:
        return iter(zip(self.ranking, self.scores, strict=True))

    def __len__(self) -> int:
        return len(self.ranking)

    @property
    def tied(self) -> list[bool]:
        """Whether the item at each place is tied with another."""
        s = self.scores
        same = [False, *map(operator.eq, s, s[1:]), False]
        return list(map(operator.or_, same, same[1:])) if s else []


def fuse(
    lists: Iterable[ExpertAnswer] | Mapping[Id, ExpertAnswer],
    method: str | type[Aggregator] | Aggregator = "rrf",
    *,
    weights: Weights | None = None,
    duplicates: Duplicates = "error",
    **parameters: Any,
) -> Fused:
    """Fuse a few result lists of one query: lists of ids, best first, or mappings from ids to scores.

    The lists may be named (`{"bm25": [...], "dense": [...]}`); then the weights may be named too. `method="auto"`
    chooses by what the lists hold (`podium.choose_method`).

    >>> fuse([["a", "b", "c"], ["c", "a"]]).ranking
    ['a', 'c', 'b']
    >>> fuse({"bm25": ["a", "b"], "dense": ["b", "a"]}, weights={"bm25": 1, "dense": 2}).ranking
    ['b', 'a']
    >>> fuse([["a", "b", "a"]])
    Traceback (most recent call last):
    podium.core.errors.InputError: list 1: item 'a' appears twice; choose duplicates='first', 'best' or 'sum' ...
    """
    # the exact types first: tests against abstract classes cost as much as adding ten items
    if type(lists) is not list and not isinstance(lists, Mapping | str | Sequence):
        lists = list(lists)  # an iterator can be read only once
    if method == "auto":
        from podium.methods.automatic_choice import choose_method

        preferences = build_preferences(lists, duplicates)
        return fuse_preferences(preferences, choose_method(preferences, weights=weights, **parameters).method)
    aggregator = make_for_lists(lists, method, weights, parameters)
    fused = fuse_positions(lists, aggregator) if duplicates == "error" else None
    return fuse_preferences(build_preferences(lists, duplicates), aggregator) if fused is None else fused


def make_for_lists(
    lists: Sequence[ExpertAnswer] | Mapping[Id, ExpertAnswer],
    method: str | type[Aggregator] | Aggregator,
    weights: Weights | None,
    parameters: Mapping[str, Any],
) -> Aggregator:
    """Make the method with these weights, which must be named exactly if the lists are."""
    if weights is None:
        if isinstance(method, str) and not parameters:
            return _make_cached(method, registry.aggregators.changes)
        return make(method, **parameters)
    if isinstance(lists, Mapping) != isinstance(weights, Mapping) and lists:
        raise ParameterError(
            "name the weights if the lists are named, and give them in order if they are not"
        )
    if isinstance(method, Aggregator):
        own = make(method, **parameters).get_parameters()
        return make(method.name, **(own | {"weights": weights}))
    return make(method, **parameters, weights=weights)


@functools.lru_cache(maxsize=64)
def _make_cached(method: str, changes: int) -> Aggregator:  # noqa: ARG001 - a new definition invalidates the cache
    return make(method)


_POINTS: dict[tuple[type, float, int], tuple[float, ...]] = {}  # kept between calls, up to 64 tables


def fuse_positions(
    lists: Sequence[ExpertAnswer] | Mapping[Id, ExpertAnswer], aggregator: Aggregator
) -> Fused | None:
    """Path over dictionaries; None when the method uses more than positions, or the input is not plain lists."""
    if type(aggregator) not in _QUICK:
        return None
    experts: Sequence[Id] = range(len(lists))
    if type(lists) is dict:
        # scores are sums in the order of the experts' ids, as everywhere
        sorted_lists = sort_by_expert(lists)
        if sorted_lists is None:
            return None
        experts, lists = list(sorted_lists), list(sorted_lists.values())
        if any(len(set(answer)) != len(answer) for answer in lists if isinstance(answer, list | tuple)):
            return None  # the error names the first such list in the given order
    elif type(lists) is not list and isinstance(lists, Mapping | str):
        return None
    assert isinstance(aggregator, Positional)
    parameter: float = getattr(aggregator, _QUICK[type(aggregator)])
    weights = aggregator.weights
    if weights is not None:
        shares = weights_for(weights, experts, aggregator.name).tolist()
    totals: dict[Id, float] = {}
    types = 0  # of the ids: bit 1 strings, bit 2 integers
    for number, answer in enumerate(lists):
        if not isinstance(answer, list | tuple):
            return None
        # points of the ranks 1 .. length
        length = 1 << max(len(answer) - 1, 63).bit_length()
        key = (type(aggregator), parameter, length)
        points = _POINTS.get(key)
        if points is None:
            if len(_POINTS) >= 64:
                _POINTS.clear()
            points = tuple(aggregator._points(np.arange(1, length + 1, dtype=np.float64)).tolist())
            _POINTS[key] = points
        if weights is not None:
            w = shares[number]
            points = tuple([w * p for p in points[: len(answer)]])
        added = add_points(totals, answer, points)
        if added < 0:
            return None
        if len(set(answer)) != len(answer):
            raise _build_duplicate_error(answer, number)
        types |= added
    ranking, scores = rank_totals(totals, TOLERANCE, id_order if types == 3 else None)
    return Fused(ranking, scores, aggregator)


def sort_by_expert(lists: Mapping[Id, ExpertAnswer]) -> dict[Id, ExpertAnswer] | None:
    """Named lists in the id order of their names; None if a name is not an id."""
    return {name: lists[name] for name in sort_ids(lists)} if set(map(type, lists)) <= {str, int} else None


def sort_ids(ids: Iterable[Id]) -> list[Id]:
    """Strings and integers in id order."""
    return sorted(ids, key=None if len(set(map(type, ids))) == 1 else id_order)


def _build_duplicate_error(answer: Sequence[Id], number: int) -> InputError:
    seen: set[Id] = set()
    again = next(i for i in answer if i in seen or seen.add(i))  # type: ignore[func-returns-value]
    return InputError(f"item {again!r} appears twice", source=f"list {number + 1}", remedy=ALLOW_REPEATS)


def build_preferences(
    lists: Sequence[ExpertAnswer] | Mapping[Id, ExpertAnswer], duplicates: Duplicates = "error"
) -> Preferences:
    """The preferences of one query, number 0; unnamed lists are numbered."""
    if isinstance(lists, str):
        raise InputError(f"the lists are the string {lists[:20]!r}", remedy="give a list of lists of ids")
    named: dict[Id, Any] = dict(lists) if isinstance(lists, Mapping) else dict(enumerate(lists))
    for number, (name, answer) in enumerate(named.items()):
        if isinstance(answer, str | bytes) or not isinstance(answer, Iterable):
            raise InputError(
                f"list {name!r} is {answer!r}", remedy="give lists of ids, or mappings of ids to scores"
            )
        if isinstance(answer, Mapping):
            continue
        named[name] = listed = list(answer)
        for item in listed:
            if not isinstance(item, str | int | np.integer):
                raise InputError(
                    f"an item is {item!r}",
                    source=f"list {number + 1}",
                    remedy="items are ids: strings or integers",
                )
        if duplicates == "error" and len(set(listed)) != len(listed):
            raise _build_duplicate_error(listed, number)
    return Preferences.from_lists({0: named}, duplicates=duplicates)


def fuse_preferences(preferences: Preferences, aggregator: Aggregator) -> Fused:
    """The consensus on the one query of preferences that were built from lists."""
    ranked = aggregator.aggregate(preferences)[0]
    return Fused([r.item for r in ranked], [r.score for r in ranked], aggregator)
