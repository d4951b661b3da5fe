"""Of few experts nobody can say whose order is right, so their orders count in full."""

from __future__ import annotations

import numpy as np
import pytest

from podium import Preferences, make
from podium.kernels.expert_agreement import compute_order_shares


@pytest.mark.parametrize("experts", [2, 3, 4])
def test_few_orders_count_in_full(experts: int) -> None:
    agreement = np.where(np.arange(experts) == 1, -0.9, 0.9)
    assert (compute_order_shares(agreement, np.full(experts, 0.1)) == 1).all()
    assert compute_order_shares(np.array([0.9, -0.9, 0.9, 0.9, 0.9]), np.full(5, 0.1))[1] == 0


@pytest.mark.parametrize("complete", [1, 2])
def test_sources_that_find_a_part_of_the_items_do_not_lower_the_others(complete: int) -> None:
    """Two sources find three items of ten, whatever their relevance; one or two find all."""
    rng, shares, lists, true = np.random.default_rng(7), (0.3, 0.3, 1, 1)[: 2 + complete], {}, {}
    for query in range(30):
        true[query] = rng.normal(size=200)
        lists[query] = {}
        for k, share in enumerate(shares):
            scores = np.where(rng.random(200) < share, true[query] + rng.normal(size=200) / 2, -np.inf)
            lists[query][f"e{k}"] = [
                f"d{i}" for i in np.argsort(-scores)[: min(np.isfinite(scores).sum(), 100)]
            ]
    preferences = Preferences.from_lists(lists, unlisted="below")

    def rate(method: str) -> float:
        """The mean true value of the first ten."""
        fused = make(method).aggregate(preferences)
        return float(np.mean([true[q][[int(d[1:]) for d in fused.ranking(q)[:10]]].mean() for q in lists]))

    assert rate("quality_weighted(points=rbc)") > rate("rbc") - 0.02


def test_a_majority_of_one_opinion_wins_a_single_election() -> None:
    """Sixty of a hundred voters have the same ballot: that is no proof of copies."""
    rng = np.random.default_rng(4)
    items = [f"c{k}" for k in range(8)]
    ballots = {f"v{k}": items if k < 60 else rng.permutation(items).tolist() for k in range(100)}
    assert (
        make("quality_weighted").aggregate(Preferences.from_lists({"vote": ballots})).ranking("vote") == items
    )


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
