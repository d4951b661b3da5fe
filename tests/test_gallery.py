"""The notebooks of the gallery run, their assertions hold, and each has its page."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

from podium.core import registry

DOCS = Path(__file__).resolve().parent.parent / "docs"
NOTEBOOKS = sorted(DOCS.glob("gallery/*.py"))
pytestmark = pytest.mark.skipif(not NOTEBOOKS, reason="the documentation is not part of this distribution")


def load_runner():
    """The module that runs notebooks for the documentation."""
    spec = importlib.util.spec_from_file_location("notebook_cells", DOCS / "_ext" / "notebook_cells.py")
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_shows_something(path):
    methods = set(registry.aggregators.all())
    runner = load_runner()
    outputs = [output for cell, output in runner.run_cells(path) if cell.kind == "code"]
    assert any(output.printed or output.value is not None for output in outputs)
    assert set(registry.aggregators.all()) == methods


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_short_begins_with_its_title_and_has_a_page(path):
    cells = load_runner().read_cells(path)
    title = cells[0].text.splitlines()[0]
    assert cells[0].kind == "markdown"
    assert title.startswith("# ")
    assert len(path.read_text().splitlines()) <= 80
    assert path.with_suffix(".md").read_text() == f"{title}\n\n```{{podium-notebook}} {path.stem}\n```\n"
    assert f"({path.stem}.md)" in (DOCS / "gallery" / "index.md").read_text()


def test_cells_are_read_as_jupyter_does(tmp_path):
    runner = load_runner()
    path = tmp_path / "a.py"
    path.write_text("# %% [markdown]\n# # Title\n#\n# Text.\n\n# %%\nprint(1)\n2 + 3\n\n# %%\nx = 1\n")
    cells = list(runner.run_cells(path))
    assert [cell.kind for cell, _ in cells] == ["markdown", "code", "code"]
    assert cells[0][0].text == "# Title\n\nText."
    assert [tuple(output) for _, output in cells[1:]] == [("1\n", 5), ("", None)]
