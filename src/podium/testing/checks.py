"""The checks that every aggregator must pass; plug-in authors run `check_all(MyAggregator)`.

A check is a function of an aggregator class that raises AssertionError. Which checks apply follows from the
class's tags; exemptions are listed in the class's `exempt` mapping, each with a reason. No check is skipped
silently: `plan(cls)` states for each check whether it runs, does not apply, or is exempt.
"""

from __future__ import annotations

import contextlib
import contextvars
import os
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from podium.data.consensus import Consensus
from podium.data.labels import Labels
from podium.data.preferences import Form, Preferences
from podium.kernels import dispatch
from podium.methods.base import Aggregator, Tags
from podium.testing.samples import PreferenceRows, iterate_samples, sample_crowd_rows

__all__ = [
    "CHECKS",
    "Check",
    "assert_close",
    "build_agreeing_labels",
    "build_agreeing_preferences",
    "build_sample_preferences",
    "build_samples",
    "catch_message",
    "check",
    "check_all",
    "fit_aggregator",
    "fit_and_aggregate",
    "more_cases",
    "plan",
    "reads_lists",
    "run",
    "set_environment",
    "tie_groups",
    "use_samples",
    "use_threads",
]


@dataclass(frozen=True)
class Check:
    """One property; `applies` decides from the tags whether it is checked."""

    name: str
    function: Callable[[type[Aggregator]], None]
    applies: Callable[[Tags], bool]

    @property
    def promise(self) -> str:
        """The checked property, in one sentence."""
        return (self.function.__doc__ or "").strip().splitlines()[0]


CHECKS: dict[str, Check] = {}
SAMPLES: contextvars.ContextVar[list[PreferenceRows] | None] = contextvars.ContextVar("SAMPLES", default=None)
CASES = contextvars.ContextVar("CASES", default=1)  # multiplier of the default number of samples


def check(applies: Callable[[Tags], bool] = lambda _: True) -> Callable[[Any], Any]:
    """Register a check under the name of its function."""

    def register(function: Callable[[type[Aggregator]], None]) -> Callable[[type[Aggregator]], None]:
        CHECKS[function.__name__] = Check(function.__name__, function, applies)
        return function

    return register


def plan(cls: type[Aggregator]) -> dict[str, str]:
    """For each check: 'run', 'does not apply', or 'exempt: reason'."""
    _import_checks()
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
    _import_checks()
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


def _import_checks() -> None:
    # importing them registers them
    from podium.testing import check_algebra, check_batches, check_contract  # noqa: F401


# -- helpers shared by the checks ----------------------------------------------------------------------------


def fit_aggregator(aggregator: Aggregator, preferences: Preferences) -> Aggregator:
    """The aggregator, fitted if needed, with labels that agree with the experts overall.

    If these labels have no signal, it is fitted on generated queries on which the same experts agree.
    """
    if not aggregator.tags.supervised:
        return aggregator.fit(preferences)
    labels = build_agreeing_labels(preferences)
    index = preferences.index
    spans = [np.ptp(labels.grades[index.slots(q)]) for q in preferences.queries]
    if max(spans, default=0.0) == 0.0:
        preferences = build_agreeing_preferences(preferences)
        labels = build_agreeing_labels(preferences)
    return aggregator.fit(preferences, labels)


def build_agreeing_labels(preferences: Preferences) -> Labels:
    """Grades 2, 1, 0 for the upper, middle and lower third by vote count; equal counts have equal grades."""
    index, lists, votes = preferences.index, preferences.lists, preferences.comparisons
    count = np.bincount(lists.item, weights=1.0 / (1.0 + lists.rank), minlength=len(index.items))
    count = np.round(
        count + np.bincount(votes.winner, weights=votes.weight * ~votes.tie, minlength=len(count)), 9
    )
    count = count - np.bincount(votes.loser, weights=votes.weight * ~votes.tie, minlength=len(count))
    grades = np.zeros(len(count))
    for query in preferences.queries:
        here = index.slots(query)
        better = (count[here][:, None] < count[here]).sum(axis=1)
        grades[here] = 2 - 3 * better // max(1, len(better))
    return Labels(index, grades)


def build_agreeing_preferences(preferences: Preferences) -> Preferences:
    """Six queries on which the same experts agree, in the same form."""
    experts = preferences.experts.tolist()
    random = np.random.default_rng(0)
    orders = {f"lesson {q}": [f"item {i}" for i in random.permutation(5)] for q in range(6)}
    if not preferences.lists.rows:
        rows = [(q, e, o[i], o[i + 1]) for q, o in orders.items() for e in experts for i in range(4)]
        return Preferences.from_comparisons(*zip(*rows, strict=True))
    if preferences.lists.score is None:
        given: Any = {q: dict.fromkeys(experts, o) for q, o in orders.items()}
        return Preferences.from_lists(given, unlisted=preferences.unlisted)
    given = {q: {e: {i: -float(r) for r, i in enumerate(o)} for e in experts} for q, o in orders.items()}
    return Preferences.from_lists(given)


def fit_and_aggregate(aggregator: Aggregator, preferences: Preferences) -> Consensus:
    """Fit if needed, then aggregate."""
    return fit_aggregator(aggregator, preferences).aggregate(preferences)


def build_sample_preferences(cls: type[Aggregator], seeds: int = 3) -> list[Preferences]:
    """`build_samples` as preferences."""
    return [answers.to_preferences() for answers in build_samples(cls, seeds)]


def build_samples(cls: type[Aggregator], seeds: int = 3) -> list[PreferenceRows]:
    """Samples of each form that the class accepts: `seeds` by experts, and half as many by annotators."""
    chosen = SAMPLES.get()
    if chosen is not None:
        return chosen
    seeds *= CASES.get()
    crowds = [
        sample_crowd_rows(form, seed)
        for form in Form
        if form in cls.tags.accepts
        for seed in range((seeds + 1) // 2)
    ]
    return [*iterate_samples(cls.tags.accepts, seeds), *crowds]


@contextlib.contextmanager
def use_samples(*samples: PreferenceRows) -> Iterator[None]:
    """In this context, checks use these samples only, for example to reproduce a failure."""
    before = SAMPLES.set(list(samples))
    try:
        yield
    finally:
        SAMPLES.reset(before)


@contextlib.contextmanager
def more_cases(factor: int) -> Iterator[None]:
    """In this context, checks use the given multiple of the default number of samples."""
    before = CASES.set(factor)
    try:
        yield
    finally:
        CASES.reset(before)


@contextlib.contextmanager
def use_threads(count: int) -> Iterator[None]:
    """In this context, kernels divide even the smallest work among this many threads."""
    work, dispatch.THREAD_WORK = dispatch.THREAD_WORK, 0
    try:
        with set_environment(PODIUM_THREADS=str(count)):
            yield
    finally:
        dispatch.THREAD_WORK = work


@contextlib.contextmanager
def set_environment(**values: str) -> Iterator[None]:
    """Set environment variables within the context."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value


def catch_message(kind: type[Exception], call: Callable[[], Any]) -> str:
    """The message of the error that a call raises; a call without that error is a failure."""
    try:
        call()
    except kind as error:
        return str(error)
    raise AssertionError(f"no {kind.__name__}")


def reads_lists(tags: Tags) -> bool:
    """Whether a method reads rankings."""
    return Form.RANKING in tags.accepts


def assert_close(a: Consensus, b: Consensus, *, scores: bool = True) -> None:
    """Assert the same order, tie groups and (to rounding) scores for the same queries and items."""
    assert set(a.queries) == set(b.queries)
    for query in a.queries:
        x, y = a[query], b[query]
        assert [r.item for r in x] == [r.item for r in y], (query, x, y)
        assert [r.tied for r in x] == [r.tied for r in y], (query, x, y)
        if scores:
            np.testing.assert_allclose([r.score for r in x], [r.score for r in y], rtol=1e-7, atol=1e-9)


def tie_groups(consensus: Consensus, query: Any) -> list[set[Any]]:
    """Tie groups of a query, best first."""
    groups: list[set[Any]] = []
    last = None
    for place in consensus[query]:
        if place.score != last:
            groups.append(set())
        groups[-1].add(place.item)
        last = place.score
    return groups
