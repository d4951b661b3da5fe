"""The build of the compiled core: which compiler it takes, and what makes it compile a module again."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
from pathlib import Path

import pytest

BUILDER = Path(__file__).parents[2] / "build_support" / "compile_core.py"
pytestmark = pytest.mark.skipif(not BUILDER.exists(), reason="only a checkout has the build")
needs_posix = pytest.mark.skipif(os.name != "posix", reason="the stand-ins for compilers are shell scripts")


@pytest.fixture
def builder(tmp_path, monkeypatch):
    """The build with copies of two modules as its sources: segments needs no declarations, grouping does."""
    spec = importlib.util.spec_from_file_location("compile_core_under_test", BUILDER)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for name in ("segments.pyx", "grouping.pyx", "sorting.pxd"):
        shutil.copy(module.SOURCES / name, tmp_path / name)
    monkeypatch.setattr(module, "SOURCES", tmp_path)
    return module


def write_compiler(path: Path, body: str) -> None:
    """A program that stands for a compiler."""
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)


OLD_GCC = """for flag; do case $flag in
-march=x86-64-v*) echo "error: bad value ('x86-64-v2') for '-march=' switch" >&2; exit 1;;
esac; done"""
MACOS_STUB = "echo 'xcode-select: error: No developer tools were found' >&2; exit 1"


@pytest.fixture
def programs(builder, tmp_path, monkeypatch):
    """The only folder of programs on this machine, empty; Cython is installed, ziglang is not."""
    folder = tmp_path / "programs"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setattr(builder, "is_x86", lambda target: True)
    monkeypatch.setattr(builder.importlib.util, "find_spec", lambda name: name == "Cython" or None)
    return folder


def test_a_machine_without_a_compiler_asks_for_ziglang(builder, programs):
    assert builder.find_compiler() is None
    assert builder.find_requirements() == [builder.ZIG]
    with pytest.raises(
        builder.CompileError, match=r"no C compiler: install gcc or clang, or pip install 'zig.*$"
    ):
        builder.compile_core()


def test_without_cython_the_build_names_it(builder, monkeypatch):
    monkeypatch.setattr(builder.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(builder.CompileError, match="Cython is missing: pip install"):
        builder.compile_core()


@needs_posix
@pytest.mark.parametrize(("body", "says"), [(OLD_GCC, "bad value"), (MACOS_STUB, "No developer tools")])
def test_a_compiler_that_does_not_work_is_passed_over(builder, programs, monkeypatch, body, says):
    write_compiler(programs / "cc", body)
    assert builder.find_requirements() == [builder.ZIG]
    with pytest.raises(builder.CompileError, match=rf"(?s)no C compiler.*cc does not compile .*{says}"):
        builder.compile_core()
    monkeypatch.setattr(builder.importlib.util, "find_spec", lambda name: name)
    assert builder.find_compiler()[1:] == ["-m", "ziglang", "cc"]
    assert builder.find_requirements() == []
    write_compiler(programs / "clang", "exit 0")
    assert builder.find_compiler() == ["clang"]


@needs_posix
def test_the_environment_chooses_the_compiler(builder, programs, monkeypatch):
    write_compiler(programs / "cc", "exit 0")
    write_compiler(programs / "my-cc", '[ "$1" = --fast ]')
    monkeypatch.setenv("CC", "my-cc --fast")
    assert builder.find_compiler() == ["my-cc", "--fast"]
    assert builder.find_requirements() == []


def test_missing_headers_are_reported_before_ziglang_is_asked_for(builder, programs, tmp_path, monkeypatch):
    monkeypatch.setattr(builder.sysconfig, "get_paths", lambda: {"include": str(tmp_path)})
    with pytest.raises(builder.CompileError, match=r"Python\.h is not in .*-dev .*python3-devel"):
        builder.find_requirements()


def test_flags_keep_the_bits_of_sums(builder):
    flags = builder.find_flags(["cc"], "optimized")
    assert "-ffp-contract=off" in flags
    assert not any("fast-math" in flag or "associative" in flag for flag in flags)


def test_a_change_concerns_the_modules_that_read_it(builder, tmp_path):
    pytest.importorskip("Cython")
    before = builder.compute_digests(["cc"], "optimized")
    (tmp_path / "sorting.pxd").write_text("# changed")
    after = builder.compute_digests(["cc"], "optimized")
    changed = {name for name in before if before[name] != after[name]}
    assert changed == {"grouping"}
    assert builder.compute_digests(["other"], "optimized") != after
    assert builder.compute_digests(["cc"], "debug") != after


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_compile_and_compile_again(builder, tmp_path, capsys):
    pytest.importorskip("Cython")
    (tmp_path / "grouping.pyx").unlink()
    files = builder.compile_core(tmp_path, verbose=True)
    assert [f.name.split(".")[0] for f in files] == [builder.SHARED, "segments"]
    assert "segments" in capsys.readouterr().out
    times = [f.stat().st_mtime_ns for f in files]
    builder.compile_core(tmp_path, verbose=True)
    assert [f.stat().st_mtime_ns for f in files] == times
    assert capsys.readouterr().out == ""
    record = json.loads((tmp_path / builder.RECORD).read_text())
    assert set(record["sources"]) == {"segments.pyx", "sorting.pxd"}


def test_import_sees_a_changed_source(tmp_path, monkeypatch):
    import podium._core as core

    shutil.copy(os.path.join(core.__path__[-1], "segments.pyx"), tmp_path)
    stat = (tmp_path / "segments.pyx").stat()
    record = {"sources": {"segments.pyx": [stat.st_size, stat.st_mtime_ns]}, "files": [], "kind": "optimized"}
    (tmp_path / "compiled.json").write_text(json.dumps(record))
    monkeypatch.setattr(core, "_HERE", str(tmp_path))
    for name in ("PODIUM_CORE_DEBUG", "PODIUM_CORE_SANITIZE"):
        monkeypatch.delenv(name, raising=False)
    assert core._is_current()
    monkeypatch.setenv("PODIUM_CORE_SANITIZE", "1")
    assert not core._is_current()
    monkeypatch.setenv("PODIUM_CORE_SANITIZE", "0")
    assert core._is_current()
    os.utime(tmp_path / "segments.pyx", ns=(0, 0))
    assert not core._is_current()
