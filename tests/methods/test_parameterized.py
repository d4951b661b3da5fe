"""Former names of parameters and functions work, and the warning names the present ones."""

from __future__ import annotations

import json

import pytest

from podium import Features, LabelledFeatures, LambdaRank, make, models
from podium.models import model_files


def test_former_parameter_names_are_accepted_with_a_warning():
    for cls, given in (
        (LabelledFeatures, {"beliefs": {"a": 1}, "normalise": "deviation"}),
        (LambdaRank, {"normalise": "deviation"}),
    ):
        with pytest.warns(DeprecationWarning, match=f"normalise of {cls.__name__} is now normalize"):
            assert cls(**given).normalize == "deviation"
    with pytest.warns(DeprecationWarning, match="normalise of LabelledFeaturesAggregator is now normalize"):
        assert (
            repr(make("labelled_features(normalise='deviation')"))
            == "labelled_features(normalize='deviation')"
        )
    with pytest.warns(DeprecationWarning, match="normalise of WeightedCps is now normalize"):
        assert make("weighted_cps", normalise=False).normalize is False


def test_present_names_do_not_warn_and_unknown_ones_are_refused():
    assert LambdaRank(normalize="range").normalize == "range"
    with pytest.raises(TypeError, match="normalize_it"):
        LambdaRank(normalize_it="range")
    assert LambdaRank.translate_parameters({"normalise": "no", "l2": 1}) == {"normalize": "no", "l2": 1}


def test_model_files_of_earlier_versions_load_without_a_warning(monkeypatch):
    encode = model_files._encode_model

    def encode_with_former_names(model, without=()):
        document, tensors = encode(model, without)
        about = json.loads(document)
        about["parameters"]["normalise"] = about["parameters"].pop("normalize")
        return json.dumps(about, sort_keys=True), tensors

    monkeypatch.setattr(model_files, "_encode_model", encode_with_former_names)
    for model in (make("weighted_cps(normalize=False)"), LambdaRank(normalize="range")):
        assert models.model_files.loads(model_files.dumps(model)).get_parameters() == model.get_parameters()


def test_former_method_names_work_with_a_warning():
    with pytest.warns(DeprecationWarning, match=r"parameters\(\) is now get_parameters\(\)"):
        assert make("rrf(k=7)").parameters() == {"weights": None, "k": 7}
    x = Features.from_rows(["q"] * 2, ["a", "b"], [[1.0], [0.0]], ["good"])
    model = LabelledFeatures(beliefs={"good": 1}).fit(x)
    with pytest.warns(DeprecationWarning, match=r"weights\(\) is now feature_weights\(\)"):
        assert model.weights() == model.feature_weights()
