"""Renamed parameters and learned attributes work for one more release, with a warning that has the new name."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from podium import Labels, Preferences, load, make
from podium.core.errors import ParameterError
from podium.methods.learned.svd_features import SvdAggregator
from podium.models import model_files

LISTS = Preferences.from_lists({q: {"x": ["a", "b", "c"], "y": ["c", "a", "b"]} for q in range(4)})
LABELS = Labels.from_dict({q: {"a": 2, "b": 1, "c": 0} for q in range(4)})


@pytest.mark.parametrize(
    "build",
    [
        lambda: make("svd(features=hybrid)"),
        lambda: make("svd", features="hybrid"),
        lambda: SvdAggregator(features="hybrid"),
    ],
)
def test_an_old_parameter(build):
    with pytest.warns(DeprecationWarning, match="svd: features is now matrices") as issued:
        model = build()
    assert issued[0].filename == __file__
    assert model.matrices == "hybrid"
    assert repr(model) == "svd(matrices='hybrid')"
    with pytest.warns(DeprecationWarning, match="features is now matrices"):
        assert model.features == "hybrid"


def test_an_old_attribute():
    model = make("svd(passes=2)")
    assert not hasattr(model, "parameters_")
    model.fit(LISTS, LABELS)
    with pytest.warns(DeprecationWarning, match="parameters_ is now member_weights_"):
        assert model.parameters_ is model.member_weights_


def test_both_names_and_values_that_are_refused():
    with pytest.raises(ParameterError, match="both are given"):
        make("svd", features="hybrid", matrices="hybrid")
    with (
        pytest.warns(DeprecationWarning, match="is now"),
        pytest.raises(ParameterError, match="matrices is 'no'"),
    ):
        make("svd", features="no")


def test_files_of_earlier_versions_load_without_a_warning(tmp_path):
    """A file keeps the names of the first version, so that each version reads those of the other."""
    model = make("svd(matrices=hybrid, min_preferences=1, passes=2)").fit(LISTS, LABELS)
    path = tmp_path / "model.podium"
    model_files.save(model, path)
    name, parameters, learned = model_files.read_contents(path)
    assert parameters["features"] == "hybrid"
    assert "parameters_" in learned
    assert not {"matrices", "member_weights_"} & {*parameters, *learned}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = load(path)
    assert repr(again) == repr(model)
    assert np.array_equal(again.member_weights_, model.member_weights_)
    newer = tmp_path / "newer.podium"
    renamed = {"parameters_": "member_weights_", "features": "matrices"}
    model_files.write_contents(
        newer, name, *({renamed.get(k, k): v for k, v in part.items()} for part in (parameters, learned))
    )
    assert np.array_equal(load(newer).aggregate(LISTS).scores, model.aggregate(LISTS).scores)
