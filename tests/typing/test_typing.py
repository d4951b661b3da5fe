"""Type checkers see every public name: a user's file passes mypy and pyright in their strict modes."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import podium
from podium.core import registry

SAMPLE = Path(__file__).with_name("user_sample.py")
SOURCE = Path(podium.__file__).parents[1]
PACKAGES = [
    "podium",
    "podium.methods",
    "podium.metrics",
    "podium.formats",
    "podium.evaluate",
    "podium.models",
    "podium.reporting",
    "podium.scale",
    "podium.analysis.annotators",
    "podium.analysis.experts",
    "podium.analysis.explain",
    "podium.analysis.figures",
    "podium.analysis.leaderboard",
    "podium.testing.checks",
    "podium.testing.samples",
]


def test_names_and_their_modules_are_the_same():
    assert sorted(podium.__all__) == sorted(["__version__", *podium._NAMES])


def test_methods_and_formats_are_those_of_the_registry():
    """A new class is added to the imports and to `__all__` of its package."""
    for package, kind in (("podium.methods", registry.aggregators), ("podium.formats", registry.formats)):
        names = {c.__name__ for c in kind.all().values() if c.__module__.startswith(f"{package}.")}
        module = importlib.import_module(package)
        assert names <= set(module.__all__), package
        assert all(getattr(module, name) is not None for name in module.__all__)


@pytest.fixture
def user_file(tmp_path):
    """The sample, followed by every public name of the packages."""
    names = [f"{p}.{name}" for p in PACKAGES for name in importlib.import_module(p).__all__]
    names += [f"podium.{name}" for name in importlib.import_module("podium.methods").__all__]
    path = tmp_path / "user_file.py"
    lines = [f"    {name}," for name in names]
    path.write_text("\n".join([SAMPLE.read_text(), "public: tuple[object, ...] = (", *lines, ")", ""]))
    return path


def test_mypy_accepts_every_public_name(user_file):
    pytest.importorskip("mypy", reason="needs mypy: pip install 'podium-rank[test]'")
    root = SOURCE.parent if (SOURCE.parent / "pyproject.toml").exists() else SAMPLE.parent
    environment = {**os.environ, "MYPYPATH": str(SOURCE)}
    command = [sys.executable, "-m", "mypy", "--strict", str(user_file)]  # in the checkout: with its cache
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=root, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr


def test_pyright_accepts_every_public_name(tmp_path, user_file):
    pytest.importorskip("pyright", reason="needs pyright: pip install 'podium-rank[test]'")
    if shutil.which("node") is None:
        pytest.skip("pyright needs Node.js, which is not installed; with it, nothing is downloaded")
    settings = {
        "extraPaths": [str(SOURCE)],
        "typeCheckingMode": "strict",
        "reportUnnecessaryTypeIgnoreComment": True,
        "enableTypeIgnoreComments": False,
    }
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    command = [
        sys.executable,
        "-m",
        "pyright",
        "--pythonpath",
        sys.executable,
        "--outputjson",
        "-p",
        str(tmp_path),
    ]
    environment = {**os.environ, "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    report = json.loads(done.stdout)
    assert report["summary"]["filesAnalyzed"] == 1
    assert [(d["range"]["start"]["line"] + 1, d["message"]) for d in report["generalDiagnostics"]] == []
