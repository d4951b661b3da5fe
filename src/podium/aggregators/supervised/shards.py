"""Training data in shards, read one after another: never more than two of them are in memory."""

from __future__ import annotations

import dataclasses
import gc
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from podium import formats
from podium.data.dataset import Dataset
from podium.data.features import Features
from podium.data.labels import Labels
from podium.data.vocabulary import Id
from podium.errors import InputError, ParameterError
from podium.formats import Content
from podium.metrics.base import Metric, MetricSpec, parse

__all__ = ["Shard", "Survey", "ahead", "checked", "scale_known"]

Path = str | os.PathLike[str]
Shard = Path | Sequence[Path] | tuple[Features, Labels] | Dataset | Content | Callable[[], Any]
T = TypeVar("T")


def checked(shards: Sequence[Shard], what: str = "shards") -> list[Shard]:
    """The shards as a list; every pass reads them all again, so something that is used up by one will not do."""
    if isinstance(shards, str | os.PathLike) or not isinstance(shards, Sequence):
        raise ParameterError(
            f"{what} is a {type(shards).__name__}; give a list of files, data sets, or functions that return one"
        )
    if not shards:
        raise ParameterError(f"{what} is empty; give at least one")
    return list(shards)


def opened(shard: Shard) -> Content:
    """What a shard holds."""
    found: Any = shard() if callable(shard) else shard
    if isinstance(found, Content):
        return found
    if isinstance(found, Dataset):
        return Content(found.preferences, found.labels, found.features)
    if isinstance(found, str | os.PathLike):
        return formats.read(found)
    if isinstance(found, Sequence) and all(isinstance(f, str | os.PathLike) for f in found):
        return formats.read(list(found))
    if isinstance(found, tuple) and list(map(type, found)) == [Features, Labels]:
        return Content(features=found[0], labels=found[1])
    raise ParameterError(
        f"a shard is a {type(found).__name__}; accepted: a file, several files, (features, labels), a Dataset, or a "
        "function that returns one of these"
    )


def ahead(shards: Sequence[Shard], order: Iterable[int], prepare: Callable[[Content], T]) -> Iterator[T]:
    """The prepared shards in this order; while one is used the next is read."""

    def read(number: int) -> T:
        gc.collect()  # labels and what metrics know of them hold each other: without this, old shards stay for long
        try:
            return prepare(opened(shards[number]))
        except InputError as error:
            raise InputError(f"shard {number + 1}: {error}") from None

    with ThreadPoolExecutor(1) as pool:
        waiting = None
        for number in order:
            coming = pool.submit(read, number)
            if waiting is not None:
                yield waiting.result()
            waiting = coming
        if waiting is not None:
            yield waiting.result()


class Survey:
    """What a first look at all shards finds out; a query must lie whole in one shard."""

    def __init__(self) -> None:
        self.queries: dict[tuple[type, Id], int] = {}
        self.shards = 0
        self.top = 0.0  # the highest grade

    def see(self, content: Content) -> Labels:
        """Note a shard; its labels."""
        labels = content.labels
        holder = content.preferences if content.features is None else content.features
        if holder is None:
            raise InputError(
                "there are no preferences and no features in it", remedy="give data to learn from"
            )
        if labels is None or not len(labels.grades):
            raise InputError("there are no labels in it", remedy="a shard holds the labels of its queries")
        self.shards += 1
        for query in holder.index.queries:
            before = self.queries.setdefault((type(query), query), self.shards)
            if before != self.shards:
                raise InputError(
                    f"query {query!r} is also in shard {before}", remedy="put all of a query into one shard"
                )
        self.top = max(self.top, float(labels.grades.max()))
        return labels


def scale_known(metric: MetricSpec, top: float) -> Metric:
    """The metric with the top of the grading scale, where it would otherwise be read off the labels at hand."""
    found = parse(metric)
    if getattr(found, "max_grade", top) is None:
        found = dataclasses.replace(found, max_grade=top)  # type: ignore[call-arg]
    return found
