"""MLflow: Podium's model files as a flavor of their own, and as pyfunc models that rank dataframes."""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path
from typing import Any

from podium.core.optional import require_module
from podium.core.version import __version__
from podium.integrations.frame_accessor import fuse_frame
from podium.methods.base import Aggregator, make
from podium.models import load, save

_models = require_module("mlflow.models")

__all__ = ["FLAVOR_NAME", "get_default_pip_requirements", "load_model", "log_model", "save_model"]

FLAVOR_NAME = "podium"
MODEL_FILE = "model.podium"


def get_default_pip_requirements() -> list[str]:
    """What the environment of a stored model installs."""
    return [f"podium-rank[mlflow]=={__version__}"]


def save_model(
    podium_model: Aggregator | str,
    path: str | os.PathLike[str],
    mlflow_model: Any = None,
    *,
    signature: Any = None,
    pip_requirements: list[str] | None = None,
    metadata: dict[str, Any] | None = None,
) -> None:
    """Write an aggregator, fitted or not, as an MLflow model: a folder with a model file and no pickle."""
    target, aggregator = Path(path), make(podium_model)
    target.mkdir(parents=True, exist_ok=True)
    save(aggregator, target / MODEL_FILE)
    model = _models.Model() if mlflow_model is None else mlflow_model
    if signature is not None:
        model.signature = signature
    if metadata is not None:
        model.metadata = metadata
    require_module("mlflow.pyfunc").add_to_model(
        model, __name__, data=MODEL_FILE, python_env="python_env.yaml"
    )
    model.add_flavor(FLAVOR_NAME, podium_version=__version__, method=repr(aggregator), data=MODEL_FILE)
    model.save(str(target / "MLmodel"))
    requirements = get_default_pip_requirements() if pip_requirements is None else pip_requirements
    (target / "requirements.txt").write_text("\n".join(requirements) + "\n", encoding="utf-8")
    lines = [
        f"python: {platform.python_version()}",
        "build_dependencies: [pip]",
        "dependencies: [-r requirements.txt]",
    ]
    (target / "python_env.yaml").write_text("\n".join(lines) + "\n", encoding="utf-8")


def log_model(podium_model: Aggregator | str, name: str | None = None, **options: Any) -> Any:
    """Store an aggregator with the active run; `options` are those of `Model.log` and `save_model`."""
    return _models.Model.log(
        artifact_path=None, name=name, flavor=sys.modules[__name__], podium_model=podium_model, **options
    )


def load_model(model_uri: str | os.PathLike[str]) -> Aggregator:
    """The aggregator of a stored model."""
    folder = Path(require_module("mlflow.artifacts").download_artifacts(artifact_uri=str(model_uri)))
    aggregator: Aggregator = load(folder / _models.Model.load(folder).flavors[FLAVOR_NAME]["data"])
    return aggregator


class PyfuncModel:
    """What a pyfunc model calls: a dataframe of lists or votes in, a dataframe of rankings out."""

    def __init__(self, aggregator: Aggregator) -> None:
        self._aggregator = aggregator

    def predict(self, data: Any, params: dict[str, Any] | None = None) -> Any:
        """Query, item, rank, score, tied, best first; `params` may have `top`, `ranks`, names of columns."""
        options = dict(params or {})
        top = options.pop("top", None)
        return fuse_frame(data, self._aggregator, **options).to_frame("pandas", top=top)

    def get_raw_model(self) -> Aggregator:
        """The aggregator."""
        return self._aggregator


def _load_pyfunc(path: str) -> PyfuncModel:
    """Called by MLflow with the path of the model file."""
    return PyfuncModel(load(path))
