"""Temporary files: what a killed run leaves is removed by the next one, what a live one writes is not."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import subprocess
import sys
from pathlib import Path

import pytest

from podium.core.errors import InputError, ParameterError
from podium.scale import regroup
from podium.storage.files import write_atomically
from podium.storage.temporary_files import TemporaryFile, hold_lock, is_locked

# writes half a file, says so, and waits for a line that may never come
WRITER = """
import sys
from podium.storage.files import write_atomically

def chunks():
    yield b"half"
    print("begun", flush=True)
    sys.stdin.readline()
    yield b" and half"

write_atomically(chunks(), sys.argv[1], overwrite=True)
"""


@contextlib.contextmanager
def writer(path):
    """Another process in the middle of writing a file."""
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout.readline() == "begun\n"
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("name", ["x.parquet", "x.csv.gz", "a [b] *.csv", "y" * 200])
def test_what_a_killed_run_leaves_is_removed_by_the_next(tmp_path, name):
    path = tmp_path / name
    for _ in range(2):
        with writer(path) as process:
            process.kill()
            process.wait()
    assert len(os.listdir(tmp_path)) == 1  # the second run has removed what the first one left
    assert not path.exists()
    write_atomically([b"whole"], path)
    assert os.listdir(tmp_path) == [name]


def test_what_a_live_process_writes_stays(tmp_path):
    path = tmp_path / "x.csv"
    with writer(path) as first, writer(path) as second:
        assert len(os.listdir(tmp_path)) == 2
        write_atomically([b"mine"], path)
        assert path.read_bytes() == b"mine"
        assert len(os.listdir(tmp_path)) == 3
        second.kill()
        second.wait()
        write_atomically([b"mine again"], path, overwrite=True)
        assert len(os.listdir(tmp_path)) == 2  # what the killed one left is gone
        first.communicate("\n")
        assert path.read_bytes() == b"half and half"
    assert os.listdir(tmp_path) == ["x.csv"]


def test_files_of_others_stay(tmp_path):
    names = [".x.csv.tmp", ".x.csv.podium-a.tmp", ".x.csv.0123456789ab.tmp", "x.csv.podium-0.tmp"]
    for name in names:
        (tmp_path / name).write_text("")
    elsewhere = tmp_path / "other"
    elsewhere.write_text("kept")
    (tmp_path / ".x.csv.podium-0.tmp").symlink_to(elsewhere)
    write_atomically([b"new"], tmp_path / "x.csv")
    left = sorted(os.listdir(tmp_path))
    assert left == sorted([*names, ".x.csv.podium-0.tmp", "other", "x.csv"])
    assert elsewhere.read_text() == "kept"


def test_without_locks_nothing_is_removed(tmp_path, monkeypatch):
    monkeypatch.setattr("podium.storage.temporary_files.fcntl", None)
    (tmp_path / ".x.csv.podium-0.tmp").write_text("whose?")
    write_atomically([b"new"], tmp_path / "x.csv")
    assert sorted(os.listdir(tmp_path)) == [".x.csv.podium-0.tmp", "x.csv"]


def write_often(folder, word, times):
    """Write one file again and again."""
    for _ in range(times):
        write_atomically([word * 1000, word * 1000], Path(folder, "x"), overwrite=True)


def test_many_writers_of_one_file(tmp_path):
    """Every one of them succeeds, and the file is always one of theirs."""
    spawn = multiprocessing.get_context("spawn")
    words = (b"a", b"b", b"c")
    processes = [spawn.Process(target=write_often, args=(str(tmp_path), w, 150)) for w in words]
    for process in processes:
        process.start()
    while any(p.is_alive() for p in processes):
        with contextlib.suppress(FileNotFoundError):
            assert (tmp_path / "x").read_bytes() in [w * 2000 for w in words]
    for process in processes:
        process.join()
    assert [p.exitcode for p in processes] == [0, 0, 0]
    assert os.listdir(tmp_path) == ["x"]


def test_a_file_that_is_given_up(tmp_path):
    file = TemporaryFile(tmp_path / "x")
    assert [p.name for p in tmp_path.iterdir()] == [".x.podium-0.tmp"]
    file.discard()
    file.discard()
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(InputError, match="cannot be written"):
        write_atomically([b""], tmp_path / "none" / "x")


def test_a_folder_that_is_being_regrouped_is_left_alone(tmp_path):
    (tmp_path / "a.csv").write_text("query,expert,item,rank\nq,e,a,1\n")
    done = regroup([tmp_path / "a.csv"], tmp_path / "g", shards=1)
    mark, begun = (tmp_path / "g" / "_podium" / f"{name}.json" for name in ("regrouped", "regrouping"))
    os.replace(mark, begun)  # as while it is at work
    with hold_lock(begun):
        assert is_locked(begun)
        with pytest.raises(ParameterError, match="another run is regrouping into"):
            regroup([tmp_path / "a.csv"], tmp_path / "g", shards=1)
        assert all(map(os.path.exists, done))
    assert regroup([tmp_path / "a.csv"], tmp_path / "g", shards=1) == done
