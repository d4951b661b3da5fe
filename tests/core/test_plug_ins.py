"""Plug-ins are found through the metadata of installed packages, wherever these lie on the path."""

from __future__ import annotations

import subprocess
import sys

import pytest

MODULE = """
from podium.formats.base import Format

class Toy(Format):
    name = "toy"
    suffixes = (".toy",)
"""
LOOK = """
from podium.core.registry import formats
print("toy" in formats.all(), "importlib.metadata" in sys.modules)
"""


def look_for_toy(*folders):
    code = f"import sys; sys.path[:0] = {list(map(str, folders))!r}\n{LOOK}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.split()


@pytest.mark.parametrize("suffix", ["dist-info", "egg-info"])
def test_a_plug_in_is_loaded(tmp_path, suffix):
    (tmp_path / "toy_format.py").write_text(MODULE)
    about = tmp_path / f"toy_format-1.0.{suffix}"
    about.mkdir()
    (about / ("METADATA" if suffix == "dist-info" else "PKG-INFO")).write_text(
        "Name: toy-format\nVersion: 1.0\n"
    )
    (about / "entry_points.txt").write_text("[podium.plugins]\ntoy = toy_format\n")
    assert look_for_toy(tmp_path)[0] == "True"


def test_packages_without_plug_ins_cost_no_import_of_metadata(tmp_path):
    about = tmp_path / "other-1.0.dist-info"
    about.mkdir()
    (about / "entry_points.txt").write_text("[console_scripts]\nother = other:main\n")
    assert look_for_toy(tmp_path, tmp_path / "missing") == ["False", "False"]
