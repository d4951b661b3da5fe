"""Subsets of an index, features and experts, against plain dictionaries."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium import Features, Preferences
from podium.core.errors import InputError
from podium.data.ids import CodedColumn, Ids, code_ids
from podium.kernels import segments
from podium.testing import strategies


@given(strategies.rankings(), st.randoms(use_true_random=False))
def test_kept_slots_keep_their_items_and_their_order_of_arrival(preferences, random):
    index = preferences.index
    kept = np.array([random.random() < 0.6 for _ in range(len(index.items))], bool)
    smaller = index.keep(kept)
    assert smaller.queries == index.queries
    for query in index.queries:
        old, new = index.slots(query), smaller.slots(query)
        left = [slot for slot in range(old.start, old.stop) if kept[slot]]
        assert smaller.items[new] == [index.items[slot] for slot in left]
        by_arrival = sorted(left, key=lambda slot: index.arrival[slot])
        assert smaller.arrival[new].tolist() == [by_arrival.index(slot) for slot in left]


@given(st.lists(st.integers(0, 5), min_size=1))
def test_offsets_are_where_segments_begin(lengths):
    rows = [s for s, n in enumerate(lengths) for _ in range(n)]
    first = segments.offsets(np.array(lengths))
    assert first[-1] == len(rows)
    for s, (a, b) in enumerate(pairwise(first)):
        assert rows[a:b] == [s] * lengths[s]


@given(st.lists(st.lists(strategies.ids(), max_size=6), min_size=1, max_size=4))
def test_concatenated_columns_hold_the_same_ids_in_the_same_rows(parts):
    whole = CodedColumn.concat([code_ids(part, "item") for part in parts], "item")
    flat = [value for part in parts for value in part]
    assert [whole.ids[int(c)] for c in whole.codes] == flat
    assert whole.ids.tolist() == list(dict.fromkeys(flat))


@given(st.lists(strategies.ids(), unique_by=lambda v: (type(v).__name__, v)))
def test_ids_are_ordered_with_integers_first(values):
    ordered = Ids(values).take(Ids(values).codes_by_id()).tolist()
    integers = sorted(v for v in values if isinstance(v, int))
    assert ordered == integers + sorted(v for v in values if isinstance(v, str))


def test_features_must_have_the_columns_of_the_fit():
    x = Features.from_rows(["q"], ["a"], [[1.0, 2.0]], ["bm25", "length"])
    Features.require(x, ["bm25", "length"], "toy")
    Features.require(None, [], "toy")
    for given_features, names, words in (
        (
            x,
            ["length", "bm25"],
            "toy was fitted with the item features .'length', 'bm25'., and got .'bm25', ",
        ),
        (None, ["bm25"], "toy was fitted with the item features .'bm25'., and got none"),
        (x, [], "toy was fitted without item features"),
    ):
        with pytest.raises(InputError, match=words):
            Features.require(given_features, names, "toy")


def test_experts_are_selected_by_id_and_type():
    p = Preferences.from_lists({"q": {1: ["a"], "1": ["b"], "x": ["c"]}})
    assert p.without_expert(1).experts.tolist() == ["1", "x"]
    assert p.with_experts(["x", 1]).experts.tolist() == [1, "x"]
    assert p.with_experts(iter(())).experts.tolist() == []
