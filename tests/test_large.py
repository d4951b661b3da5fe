"""Inputs of unusual size: a right answer or a clear refusal, never a hang."""

from __future__ import annotations

import numpy as np
import pytest

from podium import Preferences, make
from podium.core.errors import InputError


@pytest.fixture(scope="module")
def ten_million():
    items = np.arange(10_000_000)
    return Preferences.from_rows(
        np.zeros_like(items), np.zeros_like(items), items, rank=(items[::-1] + 1).astype(np.int32)
    )


def test_one_query_of_ten_million_items(ten_million):
    consensus = make("rrf").aggregate(ten_million)
    assert consensus.index.items.take(consensus.order[:3]).tolist() == [9_999_999, 9_999_998, 9_999_997]
    assert not consensus.tied.any()


@pytest.mark.parametrize(
    "name", ["condorcet", "copeland", "kemeny", "mc4", "schulze", "ranked_pairs", "greedy"]
)
def test_methods_of_all_pairs_refuse_it(ten_million, name):
    with pytest.raises(
        InputError,
        match=r"needs about [\d,.]+ GB of memory for 49,999,995,000,000 pairs of items of query 0, .* limit is 2 GB",
    ):
        make(name).aggregate(ten_million)


def test_a_hundred_thousand_tiny_queries():
    query = np.repeat(np.arange(100_000), 20)
    expert = np.tile(np.repeat([0, 1], 10), 100_000)
    item = np.tile(np.concatenate((np.arange(10), np.arange(10)[::-1])), 100_000)
    p = Preferences.from_rows(query, expert, item, rank=np.tile(np.arange(1, 11, dtype=np.int32), 200_000))
    for name in ("rrf", "borda", "condorcet"):
        consensus = make(name, weights=[2.0, 1.0]).aggregate(p)
        assert (consensus.order.reshape(-1, 10) % 10 == consensus.order[:10]).all()
