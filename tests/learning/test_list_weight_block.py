"""The gradient of weights by list, against finite differences."""

from __future__ import annotations

import numpy as np
import pytest

from podium.data.demo import demo
from podium.kernels.lambdas import compute_lambdas
from podium.learning.examples import Examples, Training
from podium.methods.learned.query_weighted_fusion import QueryWeightedFusion


def build_block(slopes, points, seed=3):
    data = demo(12, seed)
    model = QueryWeightedFusion(slopes=slopes, points=points, passes=2).fit(data.preferences, data.labels)
    training = Training(data.preferences, Examples.from_labels(data.preferences.index, data.labels))
    return model, model._build_block(training, model._select_lists(training), 1.5, trained=True)


@pytest.mark.parametrize("slopes", ["shared", "expert"])
@pytest.mark.parametrize("points", ["rrf", "minmax"])
def test_gradient_by_finite_differences(slopes, points):
    """Lambdas are the slope of the loss by score; the rest of the chain is checked by differences."""
    _, block = build_block(slopes, points)
    random = np.random.default_rng(0)
    at = np.where(block.free.ravel(), random.normal(0, 0.3, block.free.size), 0.0)
    chosen = block.useful[[4, 0, 2]]
    gradient = block.compute_gradient(chosen, at)
    starts, target = block.examples.starts, block.target
    lambdas = compute_lambdas(block.compute_scores(at), starts, target)
    mine = np.repeat(np.isin(np.arange(len(starts) - 1), chosen), np.diff(starts))
    step = 1e-6
    for one in np.flatnonzero(block.free.ravel())[:: 7 if slopes == "expert" else 1]:
        up, down = at.copy(), at.copy()
        up[one] += step
        down[one] -= step
        change = (block.compute_scores(up) - block.compute_scores(down)) / (2 * step)
        assert gradient[one] == pytest.approx(float(lambdas[mine] @ change[mine]), abs=1e-8, rel=1e-5)
    assert (gradient[~block.free.ravel()] == 0).all()
    assert np.abs(gradient).max() > 1e-4


def test_training_scores_are_those_of_the_model():
    model, block = build_block("expert", "rrf")
    data = demo(12, 3)
    scores = model.aggregate(data.preferences).scores[block.examples.rows]
    assert block.compute_scores(model.slopes_.ravel()) == pytest.approx(1.5 * 61 * scores, rel=1e-9)
