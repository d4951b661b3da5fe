"""Timing: the median of several calls, garbage collection off, with the spread kept."""

from __future__ import annotations

import contextlib
import gc
import statistics
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Timing:
    """Seconds of one call: median, fastest and slowest, and how many calls were timed."""

    median: float
    low: float
    high: float
    repeats: int
    samples: tuple[float, ...] = ()

    @classmethod
    def of(cls, taken: Iterable[float]) -> Timing:
        """The summary of single calls."""
        samples = tuple(taken)
        return cls(statistics.median(samples), min(samples), max(samples), len(samples), samples)

    def __str__(self) -> str:
        return f"{seconds(self.median)} [{seconds(self.low)} .. {seconds(self.high)}] x{self.repeats}"

    def to_dict(self) -> dict[str, Any]:
        """For the JSON file."""
        return asdict(self)


def seconds(value: float) -> str:
    """A duration in the unit that suits it."""
    for unit, scale in (("s", 1.0), ("ms", 1e3), ("us", 1e6)):
        if value * scale >= 1 or unit == "us":
            return f"{value * scale:.3g} {unit}"
    raise AssertionError


@contextlib.contextmanager
def no_collector() -> Iterator[None]:
    """Garbage collection off, after one last round."""
    was_on = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def once(call: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds and result of one call."""
    with no_collector():
        begin = time.perf_counter()
        result = call()
        return time.perf_counter() - begin, result


def measure(call: Callable[[], Any], *, repeats: int = 9, budget: float = 15.0) -> tuple[Timing, Any]:
    """Time `call` up to `repeats` times, fewer when the budget (seconds) is spent, but three times below it.

    A call that takes more than the budget by itself is timed once. Also returns the last result.
    """
    taken: list[float] = []
    result = None
    with no_collector():
        while len(taken) < repeats:
            result = None  # freed before the next one is made, as a user's loop would
            begin = time.perf_counter()
            result = call()
            taken.append(time.perf_counter() - begin)
            if taken[-1] > budget or (sum(taken) > budget and len(taken) >= 3):
                break
    return Timing.of(taken), result


def ratio(peer: Timing, own: Timing) -> tuple[float, float, float]:
    """How many times faster `own` is: by the medians, and by the extremes of both."""
    return peer.median / own.median, peer.low / own.high, peer.high / own.low
