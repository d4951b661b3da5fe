"""The skill for coding agents is true: its blocks run, and its commands have the options they use."""

from __future__ import annotations

from pathlib import Path

import pytest

from blocks import blocks, check_commands, run_page

PATH = Path(__file__).resolve().parent.parent / "skills" / "podium" / "SKILL.md"
pytestmark = pytest.mark.skipif(not PATH.is_file(), reason="the skill is not part of this distribution")


def test_its_blocks_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    kinds = [block.kind for block in blocks(PATH.read_text())]
    assert kinds == ["console", "python"]
    run_page(PATH)


def test_its_commands_exist():
    commands = [line.split("`")[1] for line in PATH.read_text().splitlines() if "| `podium " in line]
    assert len(commands) == 10
    check_commands("\n".join(commands), PATH.name)


def test_it_begins_with_what_agents_select_it_by():
    head = PATH.read_text().split("---\n")[1]
    fields = dict(line.split(": ", 1) for line in head.splitlines())
    assert fields["name"] == PATH.parent.name
    assert len(fields["description"]) <= 1024
