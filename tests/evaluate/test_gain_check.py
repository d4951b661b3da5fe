"""Whether a model is as good as rrf and the best expert: against values computed by hand."""

from __future__ import annotations

import numpy as np
import pytest

from podium import Dataset, Labels, Preferences, make
from podium.data.demo import demo
from podium.evaluate import evaluate
from podium.evaluate.gain_check import GainCheck, cross_validate_gain, measure_gain
from podium.evaluate.result_rankings import expert_rankings
from podium.metrics.base import parse


def test_values_on_validation_queries_and_the_expert_that_training_chooses() -> None:
    data = demo(60)
    names = data.preferences.queries.tolist()
    train, held = (
        Dataset(data.preferences.select(part), data.labels.select(part)) for part in (names[:40], names[40:])
    )
    model = make("weighted_rrf").fit(train.preferences, train.labels)
    check = measure_gain(model, train, held)
    assert check is not None
    metric = model.choose_by

    def measure(consensus, part):
        return evaluate(consensus, part.labels, metric)[metric]

    alone = {
        e: measure(expert_rankings(train.preferences, e), train).mean() for e in data.preferences.experts
    }
    best = max(alone, key=lambda e: alone[e])
    own = measure(model.aggregate(held.preferences), held)
    rrf = measure(make("rrf").aggregate(held.preferences), held)
    expert = measure(expert_rankings(held.preferences, best), held)
    assert check.queries == 20
    assert check.value == pytest.approx(own.mean())
    for row, name, values in zip(check.rows, ("rrf", f"the best expert, {best}"), (rrf, expert), strict=True):
        assert row.name == name
        assert row.difference == pytest.approx((own - values).mean())
        assert row.error == pytest.approx((own - values).std(ddof=1) / np.sqrt(20))


def test_more_than_one_standard_error_below_fails() -> None:
    own = np.array([0.5, 0.6, 0.7, 0.4])
    near, far = own + np.array([0.1, -0.1, 0.1, 0.0]), own + 0.2
    check = GainCheck.from_values(parse("map"), own, {"near": near, "far": far}, "validation")
    assert [row.name for row in check.find_failures()] == ["far"]
    assert "below far (0.7500) by 0.2000" in check.describe_failure("x")
    single = GainCheck.from_values(parse("map"), own[:1], {"near": near[:1]}, "validation")
    assert single.find_failures()[0].error == 0


def test_cross_validation_never_measures_training_queries() -> None:
    """Labels that are noise: a model that saw them would be far above rrf."""
    dice = np.random.default_rng(0)
    lists = {q: {e: [f"d{i}" for i in dice.permutation(10)] for e in "abc"} for q in range(30)}
    labels = Labels.from_dict({q: {f"d{i}": int(dice.integers(0, 3)) for i in range(10)} for q in range(30)})
    check = cross_validate_gain(
        make("fused(passes=200, l2=0)"), Dataset(Preferences.from_lists(lists), labels)
    )
    assert check is not None
    assert all(abs(row.difference) < 0.1 for row in check.rows)


def test_too_few_queries_cannot_be_compared() -> None:
    data = demo(2)
    assert cross_validate_gain(make("weighted_rrf"), data) is None
    model = make("weighted_rrf").fit(data.preferences, data.labels)
    other = Preferences.from_lists({"q": {"unknown": ["a", "b"]}})
    held = Dataset(other, Labels.from_dict({"q": {"a": 1, "b": 0}}))
    assert measure_gain(model, data, held) is None
