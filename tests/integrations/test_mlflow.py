"""The MLflow flavor: logged with a run, loaded as an aggregator and as a pyfunc model."""

from __future__ import annotations

import mlflow
import pandas as pd
import pytest
from mlflow.models import Model, infer_signature

import podium
from podium.core.errors import ModelFileError
from podium.integrations import mlflow as flavor

pytestmark = pytest.mark.filterwarnings("ignore")  # what these packages warn of is theirs
TABLE = pd.DataFrame(
    {
        "query": ["q"] * 4 + ["r"] * 2,
        "expert": ["a", "a", "b", "b", "a", "b"],
        "item": ["x", "y", "y", "z", "x", "y"],
        "rank": [1, 2, 1, 2, 1, 1],
    }
)


@pytest.fixture(autouse=True)
def tracking(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    pytest.importorskip("alembic", reason="alembic is not installed here; `make test-integrations` has it")
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path}/runs.db")
    yield
    mlflow.set_tracking_uri(None)


def test_a_logged_model_ranks_as_the_aggregator():
    aggregator = podium.make("rrf(k=20)", weights={"a": 1.0, "b": 2.0})
    expected = aggregator.aggregate(podium.Preferences.from_frame(TABLE)).to_frame("pandas")
    with mlflow.start_run():
        info = flavor.log_model(aggregator, name="fusion", signature=infer_signature(TABLE, expected))
    assert set(info.flavors) == {"podium", "python_function"}
    assert repr(flavor.load_model(info.model_uri)) == repr(aggregator)
    served = mlflow.pyfunc.load_model(info.model_uri)
    pd.testing.assert_frame_equal(served.predict(TABLE), expected)


def test_a_fitted_model_keeps_what_it_learned(tmp_path):
    lists = {q: {"good": ["a", "b", "c"], "bad": ["c", "b", "a"]} for q in range(20)}
    labels = podium.Labels.from_dict({q: {"a": 2, "b": 1, "c": 0} for q in range(20)})
    fitted = podium.make("weighted_rrf").fit(podium.Preferences.from_lists(lists), labels)
    flavor.save_model(fitted, tmp_path / "stored")
    assert Model.load(tmp_path / "stored").flavors["podium"]["method"] == repr(fitted)
    table = pd.DataFrame(
        {"query": 1, "expert": ["good"] * 2 + ["bad"] * 2, "item": list("xyyx"), "rank": [1, 2] * 2}
    )
    ranked = mlflow.pyfunc.load_model(str(tmp_path / "stored")).predict(table)
    assert ranked["item"].tolist() == ["x", "y"]


def test_a_stored_model_states_its_environment_and_is_not_overwritten(tmp_path):
    flavor.save_model("rrf", tmp_path / "stored")
    requirements = (tmp_path / "stored" / "requirements.txt").read_text()
    assert requirements == f"podium-rank[mlflow]=={podium.__version__}\n"
    assert mlflow.pyfunc.get_model_dependencies(str(tmp_path / "stored")).endswith("requirements.txt")
    with pytest.raises(ModelFileError, match="exists"):
        flavor.save_model("borda", tmp_path / "stored")


def test_predictions_take_parameters(tmp_path):
    flavor.save_model("rrf", tmp_path / "stored")
    model = mlflow.pyfunc.load_model(str(tmp_path / "stored")).get_raw_model()
    assert repr(model) == "rrf"
    served = flavor.PyfuncModel(model)
    assert served.predict(TABLE, {"top": 1})["item"].tolist() == ["y", "x"]
