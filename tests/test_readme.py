"""The code in the README runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from blocks import blocks, run_page
from podium import registry

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
    assert checked == 2


def test_every_method_is_in_the_readme():
    named = set(re.findall(r"`(\w+)`", README.split("| Family")[1].split("\n\n")[0]))
    assert named == set(registry.aggregators.all())
    assert f"any of {len(named)} methods" in README.replace("\n", " ")
