"""Default methods for a data set: all that can read it and are fast on it.

Speed is estimated from a method's tags and the size of the data, not measured: the same data always get the
same methods.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from podium.core import registry
from podium.data.preferences import Preferences
from podium.methods.base import Aggregator, CostClass, Tags, make

__all__ = ["MethodScreen", "estimate_steps", "screen_methods"]

TIMES: dict[CostClass, int] = {
    "walk": 1,
    "iterate": 40,
    "search": 200,
}  # measured by `python benchmarks/screening.py`
QUICK = 4_000_000  # steps, of about a tenth of a microsecond each


@dataclass(frozen=True, eq=False)
class MethodScreen:
    """Methods to try, by name, and names of those that can read the data but are too slow for them."""

    methods: Mapping[str, Aggregator]
    slow: tuple[str, ...]


def estimate_steps(tags: Tags, preferences: Preferences) -> int:
    """Estimated number of steps of a method with these tags.

    >>> p = Preferences.from_lists({"q": {"x": ["a", "b", "c"], "y": ["b", "c"]}})
    >>> [estimate_steps(Tags(pairwise=what), p) for what in ("none", "lists", "items")]
    [5, 13, 9]
    """
    lists = preferences.lists
    if tags.pairwise == "items":
        units = int(np.square(preferences.index.sizes, dtype=np.int64).sum())
    else:
        lengths = lists.lengths.astype(np.int64)
        units = int(np.square(lengths).sum() if tags.pairwise == "lists" else lengths.sum())
        units += len(preferences.comparisons)
    return units * TIMES[tags.cost]


def screen_methods(preferences: Preferences, first: Mapping[str, Aggregator]) -> MethodScreen:
    """The methods `first`, whatever their cost, and all others that do not learn, with default parameters.

    The dialects of search engines take part only if they are among the first.

    >>> p = Preferences.from_lists({"q": {"x": ["a", "b", "c"], "y": ["b", "c"]}})
    >>> found = screen_methods(p, {"rrf": make("rrf")})
    >>> list(found.methods)[:3], found.slow
    (['rrf', 'agreement_weighted', 'borda'], ())
    """
    methods, slow = dict(first), []
    for name, cls in sorted(registry.aggregators.all().items()):
        left_out = cls.tags.supervised or cls.tags.dialect
        if name in methods or left_out or not preferences.forms <= cls.tags.accepts:
            continue
        if estimate_steps(cls.tags, preferences) <= QUICK:
            methods[name] = make(name)
        else:
            slow.append(name)
    return MethodScreen(methods, tuple(slow))
