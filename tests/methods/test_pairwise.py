"""Which methods compare each item with each, and that the others can take a query with very many."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from podium import Features, Labels, Preferences
from podium.core import registry
from podium.data.preferences import Form
from podium.methods.base import LIST_FORMS, make

LONG, SHORT = 6_000, 40
EVERY = sorted(registry.aggregators.all())


def tags(name):
    return registry.aggregators.get(name).tags


def lists(size):
    random = np.random.default_rng(size)
    rated = {
        f"e{e}": dict(enumerate((np.arange(size) + random.normal(0, size / 4, size)).tolist()))
        for e in range(3)
    }
    return Preferences.from_lists({"q": rated})


def votes(size):
    random = np.random.default_rng(size)
    one = random.integers(0, size, 4 * size)
    other = (one + random.integers(1, size, len(one))) % size
    judge = [f"e{k % 3}" for k in range(len(one))]
    return Preferences.from_comparisons(["q"] * len(one), judge, one.tolist(), other.tolist())


def peak(name, data):
    """Bytes that a method takes at most for a long query, when all that it loads is there."""
    # memory does not depend on the number of steps
    given = {"max_iterations": 20} if "max_iterations" in make(name).get_parameters() else {}
    method, given = make(name, **given), {}
    labels = Labels.from_dict({"q": {i: float(i < SHORT / 3) for i in range(SHORT)}})
    for size in (SHORT, LONG):
        p = data(size)
        if tags(name).uses_features:
            values = np.random.default_rng(size).normal(size=(len(p.index.items), 2))
            items = p.index.items.tolist()
            given = {"features": Features.from_rows(["q"] * len(items), items, values, ("a", "b"))}
        if size == SHORT:
            method.fit(p, labels if tags(name).supervised else None, **given)
        method.aggregate(p, **given)
    return max(watch(lambda: method.aggregate(p, **given)) for watch in (traced, resident))


def traced(work):
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def resident(work):
    """What compiled code takes is not traced; the system knows of it."""
    try:
        Path("/proc/self/clear_refs").write_text("5")  # the highest mark begins anew
        before = _highest()
    except (OSError, LookupError):
        return 0
    work()
    return _highest() - before


def _highest():
    found = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(found["VmHWM"].split()[0]) * 1024


@pytest.mark.parametrize(
    "name",
    [
        n
        for n in EVERY
        if tags(n).accepts & LIST_FORMS and (tags(n).pairwise == "none" or n == "bradley_terry")
    ],
)
def test_methods_that_do_not_compare_all_pairs_need_no_table_of_them(name):
    assert peak(name, lists) < LONG * LONG / 2


@pytest.mark.parametrize(
    "name", [n for n in EVERY if tags(n).pairwise != "items" and Form.COMPARISON in tags(n).accepts]
)
def test_nor_do_those_that_take_votes_one_by_one(name):
    assert peak(name, votes) < LONG * LONG / 2
