"""Former names of parameters and functions work, and the warning names the present ones."""

from __future__ import annotations

import pytest

from podium import Features, LabelledFeatures, LambdaRank, make
from podium.models import model_files


def test_former_parameter_names_are_accepted_with_a_warning():
    for cls, given in (
        (LabelledFeatures, {"beliefs": {"a": 1}, "normalise": "deviation"}),
        (LambdaRank, {"normalise": "deviation"}),
    ):
        with pytest.warns(DeprecationWarning, match=f"{cls.__name__}: normalise is now normalize"):
            assert cls(**given).normalize == "deviation"
    with pytest.warns(DeprecationWarning, match="labelled_features: normalise is now normalize"):
        assert (
            repr(make("labelled_features(normalise='deviation')"))
            == "labelled_features(normalize='deviation')"
        )
    with pytest.warns(DeprecationWarning, match="svd: standardise is now standardize"):
        assert make("svd(standardise=True)").standardize is True
    with pytest.warns(DeprecationWarning, match="weighted_cps: normalise is now normalize"):
        assert make("weighted_cps", normalise=False).normalize is False


def test_present_names_do_not_warn_and_unknown_ones_are_refused():
    assert LambdaRank(normalize="range").normalize == "range"
    with pytest.raises(TypeError, match="normalize_it"):
        LambdaRank(normalize_it="range")


def test_model_files_keep_the_former_names_and_load_without_a_warning():
    for model in (make("weighted_cps(normalize=False)"), LambdaRank(normalize="range")):
        written = model_files.dumps(model)
        assert b"normalise" in written
        assert b"normalize" not in written
        assert model_files.loads(written).get_parameters() == model.get_parameters()


def test_the_spelling_in_model_files_does_not_change():
    written = model_files.dumps(make("svd(standardize=True)"))
    assert b"standardise" in written
    assert b"standardize" not in written
    assert model_files.loads(written).standardize is True


def test_former_method_names_work_with_a_warning():
    with pytest.warns(DeprecationWarning, match="rrf: parameters is now get_parameters"):
        assert make("rrf(k=7)").parameters() == {"weights": None, "k": 7}
    x = Features.from_rows(["q"] * 2, ["a", "b"], [[1.0], [0.0]], ["good"])
    model = LabelledFeatures(beliefs={"good": 1}).fit(x)
    with pytest.warns(DeprecationWarning, match="LabelledFeatures: weights is now feature_weights"):
        assert model.weights() == model.feature_weights()
