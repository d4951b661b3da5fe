"""Fusing many queries in memory: Podium against its peers, each on its own prebuilt structure."""

from __future__ import annotations

import functools
import gc
import importlib.metadata
import traceback
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import peers
import tables
from check import Ranking, compare
from synthetic import Runs, rows, runs
from timing import Timing, measure, once, ratio

PEERS: tuple[type[peers.Peer], ...] = (
    *tables.ENGINES,  # first, so that memory or threads of other peers cannot slow them
    peers.Ranx,
    peers.Rankops,
    peers.Pyflagr,
    peers.Loop,
)
METHODS = ("rrf", "combmnz", "borda", "condorcet")
SIZES = {"rrf": (1000, 10_000), "combmnz": (1000, 10_000), "borda": (1000, 10_000), "condorcet": (100,)}
QUICK_SIZES = {"rrf": (1000,), "combmnz": (1000,), "borda": (100, 1000), "condorcet": (20,)}
QUICK_MOST = {("borda", "ranx"): 100}
SPOT = 20  # queries that are checked: all of a small problem before timing, and as many of the timed result
# (method, peer) -> how many times faster Podium must be, and on how many queries
TARGETS = {
    **{(m, "ranx"): (50.0, 10_000) for m in ("rrf", "combmnz", "borda")},
    **{(m, "best table"): (3.0, 10_000) for m in ("rrf", "combmnz", "borda")},
    ("condorcet", "ranx"): (500.0, 100),
    ("condorcet", "pyflagr"): (50.0, 100),
}


@dataclass
class Row:
    """One line of the table."""

    method: str
    peer: str
    queries: int
    rows: int = 0
    podium: Timing | None = None
    timing: Timing | None = None
    podium_build: float | None = None
    build: float | None = None
    answer: str = ""
    note: str = ""
    error: str = ""
    times: tuple[float, float, float] | None = field(default=None)  # faster by: median, least, most

    @property
    def verdict(self) -> str:
        """The target and whether it is met; a target is stated for one size."""
        target = TARGETS.get((self.method, self.peer))
        if target is None or self.times is None:
            return ""
        least, queries = target
        if self.queries < queries and self.queries < most_queries(self.peer, self.method):
            return f">= {least:g}x: stated for {queries:,} queries"
        at = (
            "" if self.queries == queries else f" (at {self.queries:,} queries, the most it does in a minute)"
        )
        return f">= {least:g}x: {'met' if self.times[0] >= least else 'NOT MET'}{at}"

    def to_dict(self) -> dict[str, Any]:
        """For the JSON file."""
        out = {k: v for k, v in vars(self).items() if k not in ("podium", "timing")}
        out["podium"] = self.podium and self.podium.to_dict()
        out["timing"] = self.timing and self.timing.to_dict()
        return out | {"verdict": self.verdict}


def most_queries(peer: str, method: str) -> int:
    """The largest size at which a peer is measured."""
    found = next((p for p in PEERS if p.name == peer), None)
    return found.most_queries.get(method, 10**9) if found else 10**9


class Podium:
    """Podium's side: one prebuilt `Preferences`."""

    def __init__(self, made: Runs, method: str) -> None:
        from podium import Preferences, make

        columns = rows(made)
        # majority methods of the peers let a listed item beat an unlisted one
        unlisted = "below" if method == "condorcet" else "unknown"
        given = (
            {"rank": columns["rank"]}
            if method == "condorcet"
            else {"rank": columns["rank"], "score": columns["score"]}
        )
        self.build, self.preferences = once(
            lambda: Preferences.from_rows(
                columns["query"], columns["expert"], columns["item"], unlisted=unlisted, **given
            )
        )
        self.make = make

    def run(self, method: str) -> Any:
        """Fuse and sort everything."""
        return self.make(method).aggregate(self.preferences)

    @staticmethod
    def answer(result: Any, query: int) -> Ranking:
        """The ranking of one query."""
        return [(r.item, r.score) for r in result[query]]


def agreement(peer: peers.Peer, found: Any, podium: Podium, own: Any, queries: Iterable[int]) -> str:
    """Whether two results agree on some queries."""
    return compare(((podium.answer(own, q), peer.answer(found, q)) for q in queries), peer.tolerance)


def compare_peer(
    kind: type[peers.Peer], made: Runs, podium: dict[str, Podium], methods: list[str], repeats: int
) -> Iterator[Row]:
    """All methods of one peer on one data set; what fails is reported as a row."""
    peer = kind()
    try:
        before = {m: checked(kind, m) for m in methods}
        build, _ = once(lambda: peer.build(made))
        for method in methods:
            yield timed(peer, method, made, podium[method], build, before[method], repeats)
    except Exception as problem:  # a peer may fail in any way; the table says so
        traceback.print_exc()
        reason = (
            "not installed" if isinstance(problem, ImportError) else f"{type(problem).__name__}: {problem}"
        )
        for method in methods:
            yield Row(method, kind.name, made.queries, error=reason)
    finally:
        peer.close()
        gc.collect()


@functools.cache
def checked(kind: type[peers.Peer], method: str) -> str:
    """Agreement on every query of a small problem; it also warms up peers that compile at run time."""
    small = runs(SPOT, seed=1)
    peer, own = kind(), Podium(small, method)
    peer.build(small)
    try:
        return agreement(peer, peer.run(method), own, own.run(method), range(SPOT))
    finally:
        peer.close()


def timed(
    peer: peers.Peer, method: str, made: Runs, podium: Podium, build: float, before: str, repeats: int
) -> Row:
    """Time one method on both sides, one right after the other."""
    podium.run(method)
    own, mine = measure(lambda: podium.run(method), repeats=repeats + 2)
    theirs, found = measure(lambda: peer.run(method), repeats=repeats, budget=15.0 if repeats > 3 else 1.5)
    again, _ = measure(lambda: podium.run(method), repeats=repeats + 2)
    own = Timing.of(own.samples + again.samples)
    step = max(made.queries // SPOT, 1)
    spot = agreement(peer, found, podium, mine, range(0, made.queries, step))
    answer = before if before == spot or before != "same" else f"small problem: same; this one: {spot}"
    return Row(
        method, peer.name, made.queries, made.item.size, own, theirs, podium.build, build, answer,
        peer.notes.get(method, ""), times=ratio(theirs, own),
    )  # fmt: skip


def best_table(found: list[Row]) -> Iterator[Row]:
    """For each method and size, the fastest of the table engines."""
    names = {engine.name for engine in tables.ENGINES}
    engines = [r for r in found if r.peer in names and r.timing]
    for key in dict.fromkeys((r.method, r.queries) for r in engines):
        here = [r for r in engines if (r.method, r.queries) == key]
        best = min(here, key=lambda r: r.timing.median if r.timing else 0.0)
        fields = {k: v for k, v in vars(best).items() if k not in ("peer", "note")}
        yield Row(
            peer="best table",
            note=f"the best of {', '.join(r.peer for r in here)}: {best.peer}",
            **fields,
        )


def run(only: tuple[str, ...], quick: bool) -> Iterator[Row]:
    """Every peer on every size, method by method within a peer."""
    sizes = QUICK_SIZES if quick else SIZES
    for queries in sorted({q for m in only for q in sizes.get(m, ())}):
        made = runs(queries)
        wanted = [m for m in only if queries in sizes.get(m, ())]
        podium = {m: Podium(made, m) for m in wanted}
        found: list[Row] = []
        for kind in PEERS:
            most = kind.most_queries | {
                m: n for (m, name), n in QUICK_MOST.items() if quick and name == kind.name
            }
            methods = [m for m in wanted if m in kind.methods and queries <= most.get(m, queries)]
            for row in compare_peer(kind, made, podium, methods, 3 if quick else 7) if methods else ():
                found.append(row)
                yield row
        yield from best_table(found)


def versions() -> dict[str, str]:
    """The versions that were compared."""
    found = {}
    for package in ("podium-rank", "numpy", *(p.package for p in PEERS if p.package)):
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[package] = "not installed"
    return found
