"""The source tree keeps the rules of CONTRIBUTING on sizes and names, as `tools/measure_tree.py` measures them."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
TOOL = ROOT / "tools" / "measure_tree.py"
pytestmark = pytest.mark.skipif(not TOOL.is_file(), reason="the tools are not part of this distribution")


@pytest.fixture(scope="module")
def measured():
    tool = runpy.run_path(str(TOOL))
    tree = tool["read_tree"](ROOT / "src" / "podium")
    return tree, {kind: tool["list_names"](tree, kind) for kind in ("one-word", "participles", "classes")}


def test_files_have_at_most_400_lines_and_functions_50(measured):
    tree, _ = measured
    assert {str(path): lines for path, lines in tree.lines.items() if lines > 400} == {}
    assert [f"{f.path}:{f.line} {f.name}" for f in tree.functions if f.body_lines > 50] == []


def test_no_class_name_stands_in_two_modules(measured):
    assert measured[1]["classes"] == []


def test_functions_are_named_by_a_verb_and_its_object(measured):
    tree, names = measured
    assert len(names["one-word"]) <= 0.4 * len(tree.functions)
    assert len(names["participles"]) < 0.01 * len(tree.functions)
