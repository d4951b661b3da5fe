"""`fuse`: one query, plain Python in and out.

A call with three lists of fifty items must not pay for tables and indexes, so methods that use only positions
take a path over plain dictionaries; all other methods go through `Preferences`. Both return the same ranking.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from podium.core import registry
from podium.core.errors import ALLOW_REPEATS, InputError, ParameterError
from podium.data.building.validate import Duplicates
from podium.data.ids import Id, id_order
from podium.data.preferences import Preferences
from podium.kernels.ordering import TOLERANCE
from podium.methods.base import Aggregator, make
from podium.methods.input_checks import Weights, check_weights, weights_for
from podium.methods.positional import Positional, RankBiasedCentroids, ReciprocalRankFusion

__all__ = ["Fused", "fuse"]

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
    _weights: Weights | None = None  # weights given beside the method

    @property
    def method(self) -> str:
        """The method with its parameters, in the form `make` parses."""
        if self._weights is None:
            return repr(self._by)
        return repr(make(self._by.name, **(self._by.parameters() | {"weights": self._weights})))

    def _repr_html_(self) -> str:
        from podium.core.tables import Grid, render_block, render_table

        marks = self.tied[:SHOWN]
        rows = tuple(
            (str(i + 1), str(item), f"{score:.6g}", "tied" if marks[i] else "")
            for i, (item, score) in enumerate([*self][:SHOWN])
        )
        grid = Grid(("rank", "item", "score", ""), rows, 2)
        return render_block(
            f"{self.method}: {len(self):,} items", render_table(grid, more=len(self) - len(rows))
        )

    def __iter__(self) -> Any:
        return iter(zip(self.ranking, self.scores, strict=True))

    def __len__(self) -> int:
        return len(self.ranking)

    @property
    def tied(self) -> list[bool]:
        """Whether the item at each place is tied with another."""
        s = self.scores
        same = [False, *map(operator.eq, s, s[1:]), False] if s else []
        return [above or below for above, below in pairwise(same)]


def fuse(
    lists: Iterable[ExpertAnswer] | Mapping[Id, ExpertAnswer],
    method: str | type[Aggregator] | Aggregator = "rrf",
    *,
    weights: Weights | None = None,
    duplicates: Duplicates = "error",
    **parameters: Any,
) -> Fused:
    """Fuse a few result lists of one query: lists of ids, best first, or mappings from ids to scores.

    The lists may be named (`{"bm25": [...], "dense": [...]}`); then the weights may be named too.

    >>> fuse([["a", "b", "c"], ["c", "a"]]).ranking
    ['a', 'c', 'b']
    >>> fuse({"bm25": ["a", "b"], "dense": ["b", "a"]}, weights={"bm25": 1, "dense": 2}).ranking
    ['b', 'a']
    >>> fuse([["a", "b", "a"]])
    Traceback (most recent call last):
    podium.core.errors.InputError: list 1: item 'a' appears twice; choose duplicates='first', 'best' or 'sum' ...
    """
    if not isinstance(lists, Mapping | str | Sequence):
        lists = list(lists)  # an iterator can be read only once
    if weights is not None and isinstance(lists, Mapping) != isinstance(weights, Mapping) and lists:
        raise ParameterError(
            "name the weights if the lists are named, and give them in order if they are not"
        )
    if isinstance(method, str) and not parameters:
        aggregator = _make_cached(method, registry.aggregators.changes)
    else:
        aggregator = make(method, **parameters)
    if duplicates == "error" and type(aggregator) in _QUICK and not isinstance(lists, Mapping | str):
        found = _fuse_positions(lists, aggregator, aggregator.weights if weights is None else weights)
        if found is not None:
            return found
    if weights is not None:
        aggregator = make(aggregator.name, **(aggregator.parameters() | {"weights": weights}))
    return _fuse_preferences(lists, aggregator, duplicates)


@functools.lru_cache(maxsize=64)
def _make_cached(method: str, changes: int) -> Aggregator:  # noqa: ARG001 - a new definition invalidates the cache
    return make(method)


@functools.lru_cache(maxsize=64)
def _compute_points(method: type[Positional], parameter: float, length: int) -> tuple[float, ...]:
    """Points of the ranks 1..length."""
    made: Positional = method(**{_QUICK[method]: parameter})  # type: ignore[arg-type]
    return tuple(made._points(np.arange(1, length + 1, dtype=np.float64)).tolist())


def _fuse_positions(
    lists: Sequence[ExpertAnswer], aggregator: Aggregator, weights: Weights | None
) -> Fused | None:
    """Path over dictionaries; None when the input is not plain lists of ids."""
    assert isinstance(aggregator, Positional)
    parameter: float = getattr(aggregator, _QUICK[type(aggregator)])
    if weights is not None:
        check_weights(weights, aggregator.name)
        shares = weights_for(weights, range(len(lists)), aggregator.name).tolist()
    totals: dict[Id, float] = {}
    kinds: set[type] = set()
    get = totals.get
    for number, answer in enumerate(lists):
        if not isinstance(answer, list | tuple):
            return None
        kinds.update(map(type, answer))
        if not kinds <= {str, int}:
            return None
        if len(set(answer)) != len(answer):
            raise _build_duplicate_error(answer, number)
        points = _compute_points(type(aggregator), parameter, 1 << max(len(answer) - 1, 63).bit_length())
        if weights is None:
            for item, p in zip(answer, points, strict=False):
                totals[item] = get(item, 0.0) + p
        else:
            w = shares[number]
            for item, p in zip(answer, points, strict=False):
                totals[item] = get(item, 0.0) + w * p
    return _rank_totals(totals, aggregator, weights, len(kinds) == 1)


def _rank_totals(totals: dict[Id, float], by: Aggregator, weights: Weights | None, one_type: bool) -> Fused:
    ranking: list[Id] = sorted(totals) if one_type else sorted(totals, key=id_order)
    ranking.sort(key=totals.__getitem__, reverse=True)  # stable, so equal scores stay in id order
    scores = [totals[item] for item in ranking]
    above = scores[0] if scores else 0.0
    for here in scores:
        if above != here and above - here <= TOLERANCE * above:
            _snap_ties(ranking, scores)
            break
        above = here
    return Fused(ranking, scores, by, weights)


def _snap_ties(ranking: list[Id], scores: list[float]) -> None:
    """Give one value to scores that differ only by rounding, and order their items by id."""
    begin = 0
    for place in range(1, len(scores) + 1):
        above = scores[place - 1]
        if place < len(scores) and above - scores[place] <= TOLERANCE * above:
            continue
        ranking[begin:place] = sorted(ranking[begin:place], key=id_order)
        scores[begin:place] = [scores[begin]] * (place - begin)
        begin = place


def _build_duplicate_error(answer: Sequence[Id], number: int) -> InputError:
    seen: set[Id] = set()
    again = next(i for i in answer if i in seen or seen.add(i))  # type: ignore[func-returns-value]
    return InputError(
        f"item {again!r} appears twice",
        source=f"list {number + 1}",
        remedy=ALLOW_REPEATS,
    )


def _fuse_preferences(
    lists: Sequence[ExpertAnswer] | Mapping[Id, ExpertAnswer], aggregator: Aggregator, duplicates: Duplicates
) -> Fused:
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
    preferences = Preferences.from_lists({0: named}, duplicates=duplicates)
    ranked = aggregator.aggregate(preferences)[0]
    return Fused([r.item for r in ranked], [r.score for r in ranked], aggregator)
