"""The peers that take lists: ranx, rankops, pyflagr and a plain Python loop."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from check import Ranking
from synthetic import Runs, rows


class Peer:
    """Another way to the same answer: build its own structure once, then run a method on it."""

    name: ClassVar[str]
    methods: ClassVar[tuple[str, ...]]
    package: ClassVar[str] = ""  # the distribution whose version is reported
    most_queries: ClassVar[dict[str, int]] = {}  # method -> beyond this it takes minutes
    notes: ClassVar[dict[str, str]] = {}  # method -> how its definition differs from Podium's
    tolerance: ClassVar[float] = 1e-9  # of its scores, relative to their spread

    def build(self, made: Runs) -> None:
        """Make the peer's own structure from the arrays."""
        raise NotImplementedError

    def run(self, method: str) -> Any:
        """Fuse and sort everything."""
        raise NotImplementedError

    def answer(self, result: Any, query: int) -> Ranking:
        """The ranking of one query out of what `run` returned."""
        raise NotImplementedError

    def close(self) -> None:
        """Let go of the structure."""
        self.__dict__.clear()


def names(made: Runs) -> list[str]:
    """A string id for every document of a pool."""
    return [f"d{i}" for i in range(made.pool)]


def number(name: str) -> int:
    """The document of a string id."""
    return int(name[1:])


class Ranx(Peer):
    name, package = "ranx", "ranx"
    methods = ("rrf", "combmnz", "borda", "condorcet")
    most_queries: ClassVar = {"borda": 1000, "condorcet": 100}
    notes: ClassVar = {
        "condorcet": "counts a pair that an expert does not list as a vote against the first, and sorts by "
        "that from the order of a Python set, so its answer changes with the hash seed",
    }
    calls: ClassVar = {
        "rrf": {"norm": None, "method": "rrf", "params": {"k": 60}},
        "combmnz": {"norm": "min-max", "method": "mnz"},
        "borda": {"norm": None, "method": "bordafuse"},
        "condorcet": {"norm": None, "method": "condorcet"},
    }

    def build(self, made: Runs) -> None:
        from ranx import Run

        name = names(made)
        self.runs = []
        for e in range(made.experts):
            items, scores = made.item[:, e].tolist(), made.score[:, e].tolist()
            by_query = {
                f"q{q}": dict(zip([name[i] for i in items[q]], scores[q], strict=True))
                for q in range(made.queries)
            }
            self.runs.append(Run(by_query, name=f"e{e}"))

    def run(self, method: str) -> Any:
        from ranx import fuse

        return fuse(self.runs, **self.calls[method])

    def answer(self, result: Any, query: int) -> Ranking:
        return [(number(d), float(s)) for d, s in result.run[f"q{query}"].items()]


class Rankops(Peer):
    name, package = "rankops", "rankops"
    methods = ("rrf", "combmnz", "borda")
    tolerance = 1e-5  # 32-bit floats
    notes: ClassVar = {
        "rrf": "counts ranks from 0, so it is given k = 61",
        "borda": "gives items that an expert does not list nothing, not the mean of the points left over",
    }

    def build(self, made: Runs) -> None:
        name = names(made)
        items, scores = made.item.tolist(), made.score.tolist()
        self.lists = [
            [
                list(zip([name[i] for i in one], s, strict=True))
                for one, s in zip(items[q], scores[q], strict=True)
            ]
            for q in range(made.queries)
        ]

    def run(self, method: str) -> Any:
        import rankops

        if method == "rrf":
            return [rankops.rrf_multi(lists, k=61) for lists in self.lists]
        call = {"combmnz": rankops.combmnz_multi, "borda": rankops.borda_multi}[method]
        return [call(lists) for lists in self.lists]

    def answer(self, result: Any, query: int) -> Ranking:
        return [(number(d), float(s)) for d, s in result[query]]


class Pyflagr(Peer):
    name, package = "pyflagr", "pyflagr"
    methods = ("combmnz", "borda", "condorcet")
    most_queries: ClassVar = {"combmnz": 1000, "borda": 1000, "condorcet": 100}
    tolerance = 1e-3  # six printed digits
    notes: ClassVar = {
        "combmnz": "its min-max gives the best item 0; time includes reading and writing its CSV files",
        "borda": "time includes reading and writing its CSV files",
        "condorcet": "counts the items beaten by majority instead of sorting by majority; time includes "
        "reading and writing its CSV files",
    }

    def build(self, made: Runs) -> None:
        import pandas as pd

        columns, name = rows(made), np.array(names(made))
        frame = pd.DataFrame({
            "query": columns["query"], "expert": columns["expert"], "item": name[columns["item"]],
            "rank": columns["rank"], "score": columns["score"], "data": "x",
        })  # fmt: skip
        self.folder = tempfile.TemporaryDirectory(prefix="podium-bench-")
        self.file = str(Path(self.folder.name) / "lists.csv")
        frame.to_csv(self.file, index=False, header=False)

    def run(self, method: str) -> Any:
        from pyflagr.Linear import BordaCount, CombMNZ
        from pyflagr.Majoritarian import CondorcetWinners

        made = {"combmnz": lambda: CombMNZ("score"), "borda": BordaCount, "condorcet": CondorcetWinners}[
            method
        ]()
        with _quiet():
            return made.aggregate(self.file)[0]

    def answer(self, result: Any, query: int) -> Ranking:
        here = result[result["Query"] == query]
        return [(number(d), float(s)) for d, s in zip(here["ItemID"], here["Score"], strict=True)]


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Drop what a C library prints."""
    kept, null = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    try:
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)
        os.close(null)


class Loop(Peer):
    name = "Python loop"
    methods = ("rrf", "combmnz", "borda")

    def build(self, made: Runs) -> None:
        name = names(made)
        items, self.scores = made.item.tolist(), made.score.tolist()
        self.items = [[[name[i] for i in one] for one in lists] for lists in items]

    def run(self, method: str) -> Any:
        one: Callable[..., dict[str, float]] = {"rrf": _rrf, "combmnz": _combmnz, "borda": _borda}[method]
        return [
            sorted(one(items, scores).items(), key=lambda pair: pair[1], reverse=True)
            for items, scores in zip(self.items, self.scores, strict=True)
        ]

    def answer(self, result: Any, query: int) -> Ranking:
        return [(number(d), s) for d, s in result[query]]


def _rrf(items: list[list[str]], scores: list[list[float]]) -> dict[str, float]:  # noqa: ARG001
    total: dict[str, float] = {}
    for one in items:
        for rank, item in enumerate(one, 61):
            total[item] = total.get(item, 0.0) + 1.0 / rank
    return total


def _combmnz(items: list[list[str]], scores: list[list[float]]) -> dict[str, float]:
    total: dict[str, float] = {}
    count: dict[str, int] = {}
    for one, values in zip(items, scores, strict=True):
        low = min(values)
        scale = 1.0 / (max(values) - low)
        for item, value in zip(one, values, strict=True):
            total[item] = total.get(item, 0.0) + (value - low) * scale
            count[item] = count.get(item, 0) + 1
    return {item: value * count[item] for item, value in total.items()}


def _borda(items: list[list[str]], scores: list[list[float]]) -> dict[str, float]:  # noqa: ARG001
    size = len({item for one in items for item in one})
    total: dict[str, float] = {}
    everyone = 0.0
    for one in items:
        shared = (size - len(one) - 1) / 2
        everyone += shared
        for place, item in enumerate(one, 1):
            total[item] = total.get(item, 0.0) + size - place - shared
    return {item: value + everyone for item, value in total.items()}
