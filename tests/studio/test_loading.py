"""Reading of uploads and of files below the roots."""

from __future__ import annotations

from pathlib import Path

import pytest

from podium import formats
from podium.core.errors import InputError, ParameterError
from podium.studio.loading import (
    find_readable_files,
    list_folder,
    open_input,
    recheck_allowed_path,
    resolve_allowed_path,
)

RUN = b"q1 Q0 d1 1 2.5 bm25\nq1 Q0 d2 2 1.5 bm25\n"


def test_names_of_uploads_name_experts_and_nothing_else():
    found = open_input([("one.run", RUN), ("qrels.txt", b"q1 0 d1 1\nq1 0 d2 0\n")])
    assert found.preferences.experts.tolist() == ["bm25"]
    assert found.labels is not None
    assert found.fingerprint != open_input([("one.run", RUN)]).fingerprint
    assert (
        found.fingerprint == open_input([("two.run", RUN), ("q.txt", b"q1 0 d1 1\nq1 0 d2 0\n")]).fingerprint
    )


def test_warnings_become_notes():
    reversed_ranks = b"query,expert,item,rank,score\n" + b"".join(
        b"q,e,i%d,%d,%d\n" % (n, n, n) for n in range(1, 9)
    )
    assert open_input([("x.csv", reversed_ranks)]).notes != ()


def test_nothing_given_is_said():
    with pytest.raises(ParameterError):
        open_input([])


@pytest.fixture
def root(tmp_path):
    made = tmp_path / "root"
    (made / "runs").mkdir(parents=True)
    (made / "runs" / "a.run").write_bytes(RUN)
    (made / "runs" / ".hidden").write_bytes(RUN)
    (made / "runs" / "notes.md").write_text("words only")
    (tmp_path / "outside.run").write_bytes(RUN)
    (tmp_path / "root-2").mkdir()
    (tmp_path / "root-2" / "b.run").write_bytes(RUN)
    return made


def test_below_a_root(root):
    assert resolve_allowed_path([root], 0, "runs/a.run") == root / "runs" / "a.run"
    assert resolve_allowed_path([root / "runs" / "a.run"], 0, "") == root / "runs" / "a.run"
    kept, left_out = find_readable_files([root], root / "runs")
    assert [p.name for p in kept] == ["a.run"]
    assert left_out[0].startswith("notes.md was skipped: ")
    assert recheck_allowed_path([root], str(root / "runs" / "a.run")) == root / "runs" / "a.run"


@pytest.mark.parametrize(
    "inside",
    ["../outside.run", "../root-2/b.run", "/etc/hostname", "runs/nothing", "out", "\0", "runs/a.run/x"],
)
def test_not_below_a_root(root, inside):
    (root / "out").symlink_to(root.parent / "outside.run")
    with pytest.raises(InputError):
        resolve_allowed_path([root], 0, inside)
    with pytest.raises(InputError):
        resolve_allowed_path([root / "runs" / "a.run"], 0, inside)


def test_a_link_out_of_a_folder_is_not_opened(root, monkeypatch):
    """Not even to look what it is: no byte, no size and no kind of a file outside the roots comes back."""
    secret = root.parent / "secret.txt"
    secret.write_text("first line of a file outside\n")
    (root / "runs" / "link.run").symlink_to(secret)
    (root / "runs" / "far").symlink_to(root.parent / "root-2")
    (root / "runs" / "loop").symlink_to(root / "runs" / "loop")
    (root / "runs" / "inside.run").symlink_to(root / "runs" / "a.run")
    real, looked_at = formats.sniff, []
    monkeypatch.setattr(formats, "sniff", lambda path, *how: (looked_at.append(path), real(path, *how))[1])
    kept, left_out = find_readable_files([root], root / "runs")
    shown = list_folder([root], root / "runs")
    assert [p.name for p in kept] == ["a.run"]
    words = " ".join(left_out)
    assert "of a file outside" not in words
    assert "inside.run was skipped: it links to a.run" in words
    assert all(f"{name} was skipped: it links to" in words for name in ("far", "link.run", "loop"))
    assert [name for name, _ in shown] == ["a.run", "inside.run", "notes.md"]
    assert set(looked_at) == {root / "runs" / "a.run", root / "runs" / "notes.md"}


def test_roots_of_another_server(root):
    with pytest.raises(InputError, match="podium serve"):
        recheck_allowed_path([root], str(root.parent / "root-2" / "b.run"))
    with pytest.raises(InputError):
        recheck_allowed_path([], str(root / "runs" / "a.run"))
    with pytest.raises(InputError):
        resolve_allowed_path([Path("/nonexistent")], 0, "x")


def test_an_empty_folder(tmp_path):
    with pytest.raises(InputError, match="no file in this folder"):
        find_readable_files([tmp_path], tmp_path)
