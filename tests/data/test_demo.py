"""The embedded data set is what it says it is."""

from __future__ import annotations

import numpy as np

from podium.data.demo import ENGINES, demo


def test_it_is_the_same_every_time():
    assert demo(20).preferences.fingerprint == demo(20).preferences.fingerprint
    assert demo(20).preferences.fingerprint != demo(20, seed=8).preferences.fingerprint


def test_it_is_shaped_like_a_metasearch_collection():
    data = demo()
    p = data.preferences
    assert len(p) == 200
    assert len(p.experts) == len(ENGINES) == 25
    missing = 1 - p.lists.rows / (p.index.sizes.sum() * 25)
    assert 0.63 < missing < 0.67
    grades = np.bincount(data.labels.grades.astype(int)) / len(data.labels.grades)
    assert grades.shape == (3,)
    assert 0.7 < grades[0] < 0.85
    assert [len(fold.test) for fold in data.folds()] == [40] * 5
