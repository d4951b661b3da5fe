"""Of two experts nobody can say whose order is right, so their orders count in full."""

from __future__ import annotations

import numpy as np
import pytest

from podium import Preferences, make
from podium.kernels.expert_agreement import compute_order_shares


def test_two_orders_count_in_full() -> None:
    assert (compute_order_shares(np.array([0.9, -0.9]), np.array([0.1, 0.1])) == 1).all()
    assert compute_order_shares(np.array([0.9, -0.9, 0.9]), np.full(3, 0.1))[1] == 0


@pytest.mark.parametrize("points", ["rrf", "rbc"])
def test_search_by_words_and_by_vectors_is_a_plain_sum(points: str) -> None:
    """Words find three items of ten, whatever their relevance: that says nothing about the order of the vectors."""
    rng, lists = np.random.default_rng(5), {}
    for query in range(30):
        true = rng.normal(size=200)
        words = np.where(rng.random(200) < 0.3, true + rng.normal(size=200) / 2, -np.inf)
        vectors = true + rng.normal(size=200) / 2
        lists[query] = {
            "words": [f"d{i}" for i in np.argsort(-words)[: np.isfinite(words).sum()]],
            "vectors": [f"d{i}" for i in np.argsort(-vectors)[:100]],
        }
    preferences = Preferences.from_lists(lists, unlisted="below")
    fused = make(f"quality_weighted(points={points})").aggregate(preferences)
    plain = make(points).aggregate(preferences)
    assert all(fused.ranking(q) == plain.ranking(q) for q in lists)
