"""Features that are one of the lists, exactly or with noise, are left out; others are not."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from podium import Features, Preferences, make
from podium.core.errors import PodiumWarning
from podium_papers.retargeting_synthetic import SyntheticProblem, as_preferences


def features_of(item: list[str], values) -> Features:
    return Features.from_rows(["q"] * len(item), item, values)


def test_a_list_that_is_a_feature_does_not_displace_the_others():
    random = np.random.default_rng(4)
    x = random.normal(size=(100, 8))
    truth = x @ random.normal(size=8)
    lists = truth[:, None] + truth.std() * random.normal(size=(100, 6))
    p, item = as_preferences(SyntheticProblem(x, truth, lists))
    near = [lists[:, 2] + noise * lists[:, 2].std() * random.normal(size=100) for noise in (0.03, 0.2, 0.5)]
    for copy in (np.arctan(lists[:, 2]), -lists[:, 2], lists[:, 2].argsort().argsort() // 2, *near):
        wide = features_of(item, np.column_stack((copy, x)))
        with pytest.warns(PodiumWarning, match="feature 'f1' orders the items as list 'list 2' does"):
            model = make("retargeting").fit(p, features=wide)
        plain = make("retargeting").fit(p, features=features_of(item, x))
        assert np.allclose(model.aggregate(p, wide).scores, plain.aggregate(p, features_of(item, x)).scores)
        assert model.feature_weights()["f1"] == 0


@pytest.mark.parametrize(("ranked", "is_left_out"), [(50, True), (20, True), (8, True), (4, False)])
def test_a_feature_that_is_a_list_which_ends_early_with_unlisted_items_at_its_mean(ranked, is_left_out):
    """The order of the listed items decides, wherever the feature puts them among all; four may agree by chance."""
    random = np.random.default_rng(1)
    lists = random.normal(size=(100, 1)) + random.normal(size=(100, 6))
    items = [f"d{i}" for i in range(100)]
    orders = {f"list {j}": [items[i] for i in np.argsort(-lists[:, j])[:ranked]] for j in range(6)}
    p = Preferences.from_lists({"q": orders})
    x = features_of(items, np.column_stack((np.exp(lists[:, 0]), random.normal(size=100))))
    with warnings.catch_warnings(record=True) as issued:
        warnings.simplefilter("always", PodiumWarning)
        make("retargeting(missing=mean)").fit(p, features=x)
    assert any("'f1' orders the items as list 'list 0' does" in str(w.message) for w in issued) == is_left_out


@pytest.mark.parametrize("unlisted", ["below", "unknown"])
def test_the_scores_of_a_run_as_a_feature_of_the_items_that_it_lists(unlisted):
    """Values are missing for the others, and missing ones count as the mean, in the middle of the listed items."""
    random = np.random.default_rng(1)
    x = random.normal(size=(100, 5))
    truth = x @ random.normal(size=5)
    lists = truth[:, None] + truth.std() * random.normal(size=(100, 6))
    items, order = [f"d{i}" for i in range(100)], np.argsort(-lists, axis=0)[:30]
    runs = {f"list {j}": [items[i] for i in order[:, j]] for j in range(6)}
    p = Preferences.from_lists({"q": runs}).with_unlisted(unlisted)
    scores = np.full(100, np.nan)
    scores[order[:, 0]] = lists[order[:, 0], 0]
    with pytest.warns(PodiumWarning, match="feature 'f1' orders the items as list 'list 0' does"):
        model = make("retargeting").fit(p, features=features_of(items, np.column_stack((scores, x))))
    assert model.feature_weights()["f1"] == 0


def test_a_good_feature_of_few_items_is_not_taken_for_a_copy():
    """A few ranks cannot tell a feature as good as the best list from a copy of that list with noise."""
    random = np.random.default_rng(0)
    items = [f"d{i}" for i in range(32)]
    for _ in range(20):
        truth = random.normal(size=32)
        lists = truth[:, None] + random.normal(size=(32, 3)) * (0.2, 3.0, 3.0)
        x = np.column_stack((truth + 0.3 * random.normal(size=32), random.normal(size=32)))
        orders = {f"list {j}": [items[i] for i in np.argsort(-lists[:, j])] for j in range(3)}
        with warnings.catch_warnings():
            warnings.simplefilter("error", PodiumWarning)
            make("retargeting").fit(Preferences.from_lists({"q": orders}), features=features_of(items, x))


def test_a_feature_near_every_list_is_no_copy_of_one():
    random = np.random.default_rng(3)
    x = random.normal(size=(100, 4))
    truth = x @ np.array([1.0, 0.15, 0.15, 0.15])
    lists = truth[:, None] + 0.3 * random.normal(size=(100, 6))
    p, item = as_preferences(SyntheticProblem(x, truth, lists))
    with warnings.catch_warnings():
        warnings.simplefilter("error", PodiumWarning)
        model = make("retargeting").fit(p, features=features_of(item, x))
    assert model.mode_ != "lists"
