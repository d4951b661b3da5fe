"""Verbs that take long say so in a pipe, all of them alike."""

from __future__ import annotations

import threading

import click
import pytest
from click.testing import CliRunner

from podium import formats
from podium.cli import program

RUNS = {
    "fuse": ["bm25.run", "dense.run"],
    "eval": ["bm25.run", "--qrels", "qrels.txt"],
    "compare": ["bm25.run", "dense.run", "--qrels", "qrels.txt"],
    "experts": ["bm25.run", "dense.run"],
    "tune": ["bm25.run", "dense.run", "--qrels", "qrels.txt", "-m", "rrf", "--trials", "3"],
    "report": ["bm25.run", "dense.run", "-o", "page.html"],
    "leaderboard": ["votes.csv"],
    "annotators": ["votes.csv"],
    "convert": ["bm25.run", "-o", "lists.csv"],
}


def run(*words):
    return CliRunner().invoke(program, [str(w) for w in words])


@pytest.fixture
def folder(files, monkeypatch):
    votes = [f"{who},{a},{b}" for who in "xyz" for a, b in ("ab", "bc", "ac", "ba")]
    (files / "votes.csv").write_text("\n".join(["expert,winner,loser", *votes]) + "\n")
    monkeypatch.chdir(files)
    return files


@pytest.fixture
def slow(monkeypatch):
    """Reading waits until a line was written, however fast the machine is."""
    written, echo, read = threading.Event(), click.echo, formats.read

    def note(message=None, *more, **named):
        echo(message, *more, **named)
        if "still running" in str(message):
            written.set()

    def wait(*words, **named):
        written.wait(20)
        return read(*words, **named)

    monkeypatch.setattr(click, "echo", note)
    monkeypatch.setattr(formats, "read", wait)
    monkeypatch.setenv("PODIUM_PROGRESS", "0.01")


@pytest.mark.parametrize("verb", RUNS)
def test_a_verb_that_takes_long_says_so_on_standard_error_alone(verb, folder, slow):
    found = run(verb, *RUNS[verb])
    assert found.exit_code == 0, found.output
    assert f"podium {verb}: still running after 0 s" in found.stderr
    assert "still running" not in found.stdout


def test_a_search_says_how_far_it_is(folder, slow, monkeypatch):
    from podium.cli import _progress

    lines = []
    monkeypatch.setattr(
        _progress.ProgressLines, "update", lambda self, done, total, what: lines.append((done / total, what))
    )
    assert run("tune", *RUNS["tune"]).exit_code == 0
    assert (1.0, "done") in lines
    assert any(what == "trying configurations" and 0 < share < 1 for share, what in lines)


def test_a_verb_that_is_quick_says_nothing(folder):
    assert "still running" not in run("fuse", *RUNS["fuse"]).stderr


@pytest.mark.parametrize("given", ["soon", "-1", "inf"])
def test_bad_intervals_are_refused(given, folder, monkeypatch):
    monkeypatch.setenv("PODIUM_PROGRESS", given)
    found = run("fuse", *RUNS["fuse"])
    assert found.exit_code == 2
    assert f"PODIUM_PROGRESS is '{given}'; give seconds" in found.stderr


def test_no_lines_when_there_is_to_be_none(monkeypatch):
    from podium.cli import _progress

    monkeypatch.setenv("PODIUM_PROGRESS", "0")
    with _progress.show_progress_lines(lambda: "fuse"):
        assert not [t for t in threading.enumerate() if t.name == "podium-progress"]
    monkeypatch.setenv("PODIUM_PROGRESS", "1000")
    with _progress.show_progress_lines(lambda: "fuse"):
        assert [t for t in threading.enumerate() if t.name == "podium-progress"]
    assert not [t for t in threading.enumerate() if t.name == "podium-progress"]


def test_a_server_is_meant_to_go_on(capsys):
    """The thread ends by itself, without a line."""
    from podium.cli._progress import ProgressLines

    lines = ProgressLines(lambda: "serve", 0.0, 0.0)
    lines.start()
    lines._thread.join(20)
    assert not lines._thread.is_alive()
    assert capsys.readouterr().err == ""
