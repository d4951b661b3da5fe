"""The code in the README runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from blocks import blocks, run_page
from podium.cli import program
from podium.core import registry

PATH = Path(__file__).parent.parent / "README.md"
README = PATH.read_text()


@pytest.fixture
def runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("bm25.run").write_text("q1 Q0 doc7 1 9 bm25\nq1 Q0 b 2 5 bm25\n")
    Path("dense.run").write_text("q1 Q0 b 1 .9 dense\nq1 Q0 c 2 .5 dense\n")
    Path("qrels.txt").write_text("q1 0 b 1\n")


def test_python_blocks_run_and_give_what_their_comments_say(runs):
    scope = run_page(PATH)  # commands are read as far as their options
    checked = 0
    for block in blocks(README):
        for code, said in re.findall(r"^(podium\.fuse\(.*?)\s+# (\[.*?\])$", block.code, re.M | re.S):
            assert repr(eval(code, scope)) == said
            checked += 1
    assert checked == 1


def test_the_readme_names_methods_that_exist():
    """The complete list is `podium methods` and the page of the methods, which follow from the classes."""
    named = set(re.findall(r"`(\w+)`", README.split("| Family")[1].split("\n\n")[0]))
    assert named <= set(registry.aggregators.all())
    assert len(named) > 40


def test_what_the_demo_prints_is_what_the_readme_shows():
    """Words in a row, however the table is drawn."""
    printed = CliRunner().invoke(program, ["demo"]).stdout
    shown = README.split("What `make demo` prints:")[1].split("```")[1]
    rows = [line.split() for line in printed.splitlines() if "[" in line or line.startswith(("200", "Why"))]
    assert len(rows) == 10
    for row in rows:
        assert row in [line.split() for line in shown.splitlines()]
