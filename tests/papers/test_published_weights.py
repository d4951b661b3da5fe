"""Table 1 of the paper on labeled features: its names are columns, and its order is found again."""

from __future__ import annotations

import pytest

from podium_papers.belief_curves import BELIEFS, load_problem
from podium_papers.letor_columns import COLUMNS
from podium_papers.published_weights import PUBLISHED_ON, PUBLISHED_WEIGHTS, compare_weights


@pytest.mark.parametrize("beliefs", PUBLISHED_WEIGHTS)
def test_the_published_features_are_columns_and_begin_with_the_graded_ones(beliefs):
    weights = PUBLISHED_WEIGHTS[beliefs]
    assert len(weights) == 20
    assert list(weights.values()) == sorted(weights.values(), reverse=True)
    assert set(weights) <= set(COLUMNS[PUBLISHED_ON])
    graded = {name for name in BELIEFS[PUBLISHED_ON][beliefs] if name in weights}
    assert all(weights[name] > 0 for name in graded)
    assert "BM25 title" in graded


@pytest.mark.data
@pytest.mark.parametrize("beliefs", PUBLISHED_WEIGHTS)
def test_the_order_of_the_published_weights_is_found_again(data_dir, beliefs):
    """On a sample of the published set: ranks of 20 weights, of which chance would make .5 once in a hundred times."""
    _, lines = compare_weights(load_problem(PUBLISHED_ON, data_dir), beliefs)
    [correlation] = [float(line[2]) for line in lines if line[0] == "rank correlation"]
    assert correlation > 0.6
