"""Cases that broke other libraries, as tests of Podium (those not covered by the checks for every aggregator)."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from podium import Preferences, fuse, make
from podium.core import registry
from podium.data.preferences import Form

SCRIPT = """
import podium
from podium.core import registry
from podium.testing.samples import sample_rows
from podium.data.preferences import Form
p = sample_rows(Form.RANKING, 3).to_preferences()
for name, cls in registry.aggregators.all().items():
    if Form.RANKING in cls.tags.accepts and not cls.tags.supervised:
        c = cls().aggregate(p)
        print(name, [(q, [(r.item, r.tied) for r in c[q]]) for q in c.queries])
"""


def test_the_hash_seed_does_not_matter():
    def output(seed: str) -> str:
        done = subprocess.run(
            [sys.executable, "-c", "import podium.core.registry\n" + SCRIPT],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout

    first = output("0")
    assert first.count("\n") >= 20
    assert output("1") == first == output("12345")


def test_threads_share_nothing():
    lists = [[f"d{(i * 7 + e * 3) % 50}" for i in range(50)] for e in range(5)]
    p = Preferences.from_lists({q: dict(enumerate(lists)) for q in range(20)})
    alone = [make(m).aggregate(p).scores.tobytes() for m in ("rrf", "borda", "combmnz")]
    with ThreadPoolExecutor(4) as pool:
        found = list(
            pool.map(lambda m: make(m).aggregate(p).scores.tobytes(), ("rrf", "borda", "combmnz") * 8)
        )
    assert found == alone * 8


@pytest.mark.parametrize(
    "normalizer", ["minmax", "max", "sum", "zscore", "rank", "borda", "dbsf", "sigmoid", "none"]
)
@pytest.mark.parametrize(
    "answer",
    [
        {"only": 3.0},
        {"a": 2.0, "b": 2.0},
        {"a": 1e300, "b": 1.0, "c": 0.5},
        {"a": -1.0, "b": -5.0},
        {"a": 0.0, "b": 0.0},
    ],
    ids=["one item", "equal", "outlier", "negative", "zero"],
)
def test_normalisers_survive_odd_lists(normalizer, answer):
    with np.errstate(all="raise", under="ignore"):
        fused = fuse([answer], f"combsum(normalizer={normalizer!r})")
    assert np.isfinite(fused.scores).all()
    assert fused.ranking == sorted(answer, key=lambda i: (-answer[i], i)) or normalizer in (
        "zscore",
        "dbsf",
        "sigmoid",
    )


def test_long_short_and_odd_lists():
    p = Preferences.from_lists(
        {
            "long": {"a": [f"d{i}" for i in range(1500)], "b": [f"d{i}" for i in reversed(range(1500))]},
            "short": {"a": ["x"]},
            "other": {"once": ["x", "y"]},
        }
    )
    for name, cls in registry.aggregators.all().items():
        if (
            Form.RANKING in cls.tags.accepts
            and cls.tags.per_query
            and not cls.tags.supervised
            and name not in SLOW
        ):
            c = cls().aggregate(p)
            assert c.ranking("short") == ["x"], name
            assert c.ranking("other") == ["x", "y"], name
            assert len(c.ranking("long")) == 1500


SLOW: set[str] = set()


def test_ids_that_differ_in_type_or_case():
    assert fuse([[1, "1", "a", "A"], ["1", 1, "A", "a"]]).ranking == [1, "1", "A", "a"]


def test_an_expert_of_one_query_only_counts_there_only():
    both = Preferences.from_lists({"q": {"a": ["x", "y"], "rare": ["y", "x"]}, "r": {"a": ["x", "y"]}})
    assert make("rrf").aggregate(both).ranking("r") == ["x", "y"]


def test_huge_ranks_do_not_make_huge_tables():
    p = Preferences.from_rows(["q", "q"], ["e", "e"], ["a", "b"], rank=[2**31 - 1, 5])
    assert make("rrf").aggregate(p).ranking("q") == ["b", "a"]
    assert make("combsum").aggregate(p).ranking("q") == ["b", "a"]
