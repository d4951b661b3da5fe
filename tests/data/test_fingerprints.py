"""Fingerprints of plain lists are those of the preferences that the lists stand for."""

from hypothesis import given, settings
from hypothesis import strategies as st

from podium import Preferences
from podium.data.fingerprints import fingerprint_ranked_lists
from podium.data.ids import id_order

IDS = st.integers(-5, 5) | st.sampled_from(["a", "b", "é", "a b", "'", "5"])


@settings(max_examples=200, deadline=None)
@given(st.lists(st.lists(IDS, min_size=1, max_size=8, unique=True), min_size=1, max_size=5))
def test_fingerprint_of_plain_lists(lists):
    items = sorted({item for items in lists for item in items}, key=id_order)
    expected = Preferences.from_lists({0: dict(enumerate(lists))}).fingerprint
    assert fingerprint_ranked_lists(lists, items) == expected


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(IDS, st.lists(IDS, min_size=1, max_size=8, unique=True), min_size=1, max_size=5))
def test_fingerprint_of_named_lists(lists):
    items = sorted({item for items in lists.values() for item in items}, key=id_order)
    experts = sorted(lists, key=id_order)
    ordered = [lists[expert] for expert in experts]
    assert fingerprint_ranked_lists(ordered, items, experts) == Preferences.from_lists({0: lists}).fingerprint
