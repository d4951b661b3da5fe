"""Starting is quick because nothing heavy is imported before it is needed."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

import podium

HEAVY = (
    "numpy",
    "scipy",
    "pyarrow",
    "pandas",
    "polars",
    "narwhals",
    "rich",
    "xxhash",
    "hypothesis",
    "msgspec",
    "numpy.ma",
)


def imported_by(code: str) -> set[str]:
    probe = f"{code}\nimport sys\nprint(*[m for m in {HEAVY!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split())


@pytest.mark.parametrize(
    ("code", "allowed"),
    [
        ("import podium", set()),
        ("import podium.cli as c\ntry: c.program(['--help'])\nexcept SystemExit: pass", set()),
        ("import podium; podium.fuse([['a'], ['b']])", {"numpy"}),
        ("import podium; podium.fuse([['a'], ['b']], 'borda')", {"numpy"}),
        (
            "import podium; podium.make('rrf').aggregate(podium.Preferences.from_lists({1: {1: ['a']}}))",
            {"numpy"},
        ),
    ],
)
def test_only_what_is_needed_is_imported(code, allowed):
    if "podium.cli" in code:
        pytest.importorskip("click")
    assert imported_by(code) <= allowed


@pytest.mark.parametrize(
    ("words", "budget"),
    [(["-c", "import podium"], 0.15), (["-m", "podium", "--help"], 0.25)],
    ids=["import", "help"],
)
def test_start_up_is_within_ten_times_its_budget(words, budget):
    if "--help" in words:
        pytest.importorskip("click")
    begin = time.perf_counter()
    subprocess.run([sys.executable, *words], capture_output=True, check=True)
    assert time.perf_counter() - begin < 10 * budget


def test_fusing_a_run_imports_no_other_library(tmp_path):
    pytest.importorskip("click")
    rows = [f"{q} Q0 d{i} {i} {9 - i} run\n" for q in range(3) for i in range(1, 4)]
    (tmp_path / "a.run").write_text("".join(rows))
    words = ["fuse", str(tmp_path / "a.run"), "-o", str(tmp_path / "out.run")]
    code = f"import podium.cli as c\ntry: c.program({words})\nexcept SystemExit: pass"
    assert imported_by(code) <= {"numpy"}
    assert (tmp_path / "out.run").exists()


def test_all_public_names_are_there():
    for name in podium.__all__:
        assert getattr(podium, name) is not None
    assert set(podium.__all__) <= set(dir(podium))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = podium.nothing
