"""The check of wheels that cannot be run: every reason to refuse a module, and what a real module says."""

from __future__ import annotations

import importlib
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

SUPPORT = Path(__file__).parents[2] / "build_support"
pytestmark = pytest.mark.skipif(not SUPPORT.exists(), reason="only a checkout has the build")
STABLE = ["PyLong_AsLong", "PyExc_ValueError"]


@pytest.fixture
def checker(monkeypatch):
    monkeypatch.syspath_prepend(str(SUPPORT))
    names = ("check_wheel", "wheel_targets", "compile_core")
    yield importlib.import_module("check_wheel")
    for name in names:
        sys.modules.pop(name, None)


def describe(checker, tag: str, **changes: object):
    """A target, and the facts of a module that is right for it."""
    target = checker.TARGETS[tag]
    facts = checker.ModuleFacts(
        target.system,
        target.machine,
        frozenset({"PyInit_segments"}),
        frozenset({"PyLong_AsLong"}),
        frozenset(),
        frozenset(sorted(checker.LIBRARIES[target.system])[:1]),
        (0, 0),
    )
    return target, facts._replace(**changes)


@pytest.mark.parametrize(
    "tag",
    [
        "manylinux_2_28_x86_64",
        "manylinux_2_28_aarch64",
        "macosx_11_0_x86_64",
        "macosx_11_0_arm64",
        "win_amd64",
    ],
)
def test_every_platform_of_the_task_has_a_target_and_a_sound_module_passes(checker, tag):
    target, facts = describe(checker, tag)
    assert checker.find_module_problems("segments", facts, target, STABLE) == []


@pytest.mark.parametrize(
    ("tag", "changes", "words"),
    [
        ("win_amd64", {"system": "linux"}, "segments.pyd is for linux on x86_64"),
        ("macosx_11_0_arm64", {"machine": "x86_64"}, "is for darwin on x86_64"),
        ("win_amd64", {"exports": frozenset()}, "exports nothing instead of PyInit_segments"),
        ("manylinux_2_28_x86_64", {"exports": frozenset({"PyInit_x"})}, "exports PyInit_x instead"),
        (
            "win_amd64",
            {"python_symbols": frozenset({"_PyList_Extend"})},
            r"uses _PyList_Extend, not .* 3\.11",
        ),
        ("macosx_11_0_x86_64", {"homeless_symbols": frozenset({"fast_exp"})}, "fast_exp from no library"),
        ("manylinux_2_28_aarch64", {"libraries": frozenset({"libgomp.so.1"})}, r"needs libgomp\.so\.1"),
        ("win_amd64", {"libraries": frozenset({"python311.dll"})}, r"needs python311\.dll"),
        ("manylinux_2_28_x86_64", {"version": (2, 29)}, r"needs version 2\.29 .* the tag says 2\.28"),
        ("macosx_11_0_arm64", {"version": (13, 0)}, r"needs version 13\.0"),
        ("macosx_11_0_arm64", {"signed": False}, "is not signed"),
    ],
)
def test_what_is_refused(checker, tag, changes, words):
    target, facts = describe(checker, tag, **changes)
    (problem,) = checker.find_module_problems("segments", facts, target, STABLE)
    assert re.search(words, problem), problem


def test_a_wheel_of_missing_and_stray_files(checker, tmp_path, monkeypatch):
    monkeypatch.setattr(checker, "list_stable_symbols", lambda: ([], []))
    wheel = tmp_path / "podium_rank-1-cp311-abi3-win_amd64.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("podium_rank-1.dist-info/WHEEL", "Root-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr("podium/_core/segments.pyx", "")
    problems = "\n".join(checker.find_wheel_problems(wheel))
    assert "podium/_core/segments.pyd is missing" in problems
    assert "podium/methods/base.py is missing" in problems
    assert "podium/_core/segments.pyx does not belong in a wheel" in problems
    assert "the file WHEEL has another tag" in problems
    (problem,) = checker.find_wheel_problems(tmp_path / "podium_rank-1-cp312-cp312-win_amd64.whl")
    assert "cp312-cp312-win_amd64 is none of a platform" in problem


@pytest.mark.skipif(sys.platform != "linux" or not shutil.which("nm"), reason="compares with nm")
def test_a_module_is_read_as_nm_reads_it(checker):
    pytest.importorskip("lief")
    path = next(checker.SOURCES.glob("segments.*.so"))
    listing = subprocess.run(["nm", "-D", str(path)], capture_output=True, text=True, check=True).stdout
    rows = [line.split()[-2:] for line in listing.splitlines()]
    facts = checker.read_module(path.read_bytes())
    assert facts.exports == {name for kind, name in rows if kind == "T"} == {"PyInit_segments"}
    assert facts.python_symbols == {name for kind, name in rows if kind == "U" and "Py" in name[:3]}
    assert facts.homeless_symbols == set()
    versions = [name.partition("@GLIBC_")[2].split(".") for _, name in rows if "@GLIBC_" in name]
    assert facts.version == max(tuple(map(int, version[:2])) for version in versions)
