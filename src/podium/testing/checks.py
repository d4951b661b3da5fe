"""The checks every aggregator must pass; a plug-in author runs `check_all(MyAggregator)`.

A check is a function of an aggregator class that raises AssertionError. Which checks apply follows from the class's
tags; the exemptions are the class's own `exempt` mapping, each with a reason. Nothing is skipped silently:
`plan(cls)` says for every check whether it runs, does not apply, or is exempt.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from podium.aggregators.base import Aggregator, Tags
from podium.data.consensus import Consensus
from podium.data.labels import Labels
from podium.data.preferences import Preferences
from podium.testing.samples import Answers, samples

__all__ = ["CHECKS", "Check", "check", "check_all", "close", "fitted", "plan", "run"]


@dataclass(frozen=True)
class Check:
    """One property; `applies` says of which tags it may be asked."""

    name: str
    function: Callable[[type[Aggregator]], None]
    applies: Callable[[Tags], bool]

    @property
    def promise(self) -> str:
        """What the check promises, in one sentence."""
        return (self.function.__doc__ or "").strip().splitlines()[0]


CHECKS: dict[str, Check] = {}


def check(applies: Callable[[Tags], bool] = lambda _: True) -> Callable[[Any], Any]:
    """Register a check under the name of its function."""

    def register(function: Callable[[type[Aggregator]], None]) -> Callable[[type[Aggregator]], None]:
        CHECKS[function.__name__] = Check(function.__name__, function, applies)
        return function

    return register


def plan(cls: type[Aggregator]) -> dict[str, str]:
    """For every check: 'run', 'does not apply', or 'exempt: reason'."""
    _load()
    unknown = set(cls.exempt) - set(CHECKS)
    assert not unknown, f"{cls.name} is exempt from checks that do not exist: {unknown}"
    return {
        name: f"exempt: {cls.exempt[name]}"
        if name in cls.exempt
        else ("run" if c.applies(cls.tags) else "does not apply")
        for name, c in CHECKS.items()
    }


def run(cls: type[Aggregator], name: str) -> None:
    """Run one check; warnings on clean data are failures."""
    _load()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        CHECKS[name].function(cls)


def check_all(cls: type[Aggregator]) -> None:
    """Run every check that applies.

    >>> from podium import ReciprocalRankFusion
    >>> check_all(ReciprocalRankFusion)
    """
    for name, state in plan(cls).items():
        if state == "run":
            run(cls, name)


def _load() -> None:
    from podium.testing import check_algebra, check_contract  # noqa: F401 - defining them registers them


# -- helpers the checks share ----------------------------------------------------------------------------------


def fitted(aggregator: Aggregator, preferences: Preferences) -> Aggregator:
    """The aggregator, fitted where it needs to be, with labels made from the item ids."""
    if not aggregator.tags.supervised:
        return aggregator.fit(preferences)
    index = preferences.index
    grade = [float(len(str(item)) % 3) for item in index.items]
    return aggregator.fit(preferences, Labels(index, np.array(grade)))


def answer(aggregator: Aggregator, preferences: Preferences) -> Consensus:
    """Fit if needed, then aggregate."""
    return fitted(aggregator, preferences).aggregate(preferences)


def each(cls: type[Aggregator], seeds: int = 3) -> list[Answers]:
    """Sample answers of every form the class accepts."""
    return list(samples(cls.tags.accepts, seeds))


def close(a: Consensus, b: Consensus, *, scores: bool = True) -> None:
    """Assert the same order, tie groups and (to rounding) scores for the same queries and items."""
    assert set(a.queries) == set(b.queries)
    for query in a.queries:
        x, y = a[query], b[query]
        assert [r.item for r in x] == [r.item for r in y], (query, x, y)
        assert [r.tied for r in x] == [r.tied for r in y], (query, x, y)
        if scores:
            np.testing.assert_allclose([r.score for r in x], [r.score for r in y], rtol=1e-7, atol=1e-9)


def groups(consensus: Consensus, query: Any) -> list[set[Any]]:
    """Tie groups of a query, best first."""
    found: list[set[Any]] = []
    last = None
    for place in consensus[query]:
        if place.score != last:
            found.append(set())
        found[-1].add(place.item)
        last = place.score
    return found
