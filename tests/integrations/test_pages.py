"""The examples of the adapters' pages, in the frameworks."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from blocks import blocks, run_page

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "integrations"
PAGES = sorted(path for path in FOLDER.glob("*.md") if path.stem != "index")
pytestmark = [
    pytest.mark.filterwarnings("ignore"),  # what these packages warn of is theirs
    pytest.mark.skipif(not PAGES, reason="the documentation is not part of this distribution"),
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_an_adapter_has_an_example_that_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    needed = {block.needs for block in blocks(page.read_text(encoding="utf-8")) if block.kind == "python"}
    assert needed
    assert None not in needed, "an example names its framework"
    run_page(page)
    missing = sorted(name for name in needed if importlib.util.find_spec(name) is None)
    if missing:
        pytest.skip(f"{', '.join(missing)} is not installed here; `make test-integrations` has it")


def test_every_adapter_is_in_the_table_of_contents():
    modules = {path.stem for path in (Path(__file__).parents[2] / "src/podium/integrations").glob("*.py")}
    index = (FOLDER / "index.md").read_text(encoding="utf-8")
    for module in modules - {"__init__", "list_fusion", "frame_accessor", "pandas", "polars"}:
        assert f"]({module}.md)" in index, module
