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


def test_a_machine_without_a_compiler_asks_for_ziglang(builder, monkeypatch):
    monkeypatch.setattr(builder.shutil, "which", lambda name: None)
    monkeypatch.setattr(builder.importlib.util, "find_spec", lambda name: None)
    assert builder.find_compiler() is None
    assert builder.find_requirements() == [builder.ZIG]
    with pytest.raises(builder.CompileError, match="Cython is missing: pip install"):
        builder.compile_core()


def test_the_environment_chooses_the_compiler(builder, monkeypatch):
    monkeypatch.setattr(builder.shutil, "which", lambda name: f"/bin/{name}")
    monkeypatch.setenv("CC", "my-cc --fast")
    assert builder.find_compiler() == ["my-cc", "--fast"]
    assert builder.find_requirements() == []


def test_flags_keep_the_bits_of_sums(builder):
    flags = builder.find_flags(["cc"], False)
    assert "-ffp-contract=off" in flags
    assert not any("fast-math" in flag or "associative" in flag for flag in flags)


def test_a_change_concerns_the_modules_that_read_it(builder, tmp_path):
    pytest.importorskip("Cython")
    before = builder.compute_digests(["cc"], False)
    (tmp_path / "sorting.pxd").write_text("# changed")
    after = builder.compute_digests(["cc"], False)
    changed = {name for name in before if before[name] != after[name]}
    assert changed == {"grouping"}
    assert builder.compute_digests(["other"], False) != after
    assert builder.compute_digests(["cc"], True) != after


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
    record = {"sources": {"segments.pyx": [stat.st_size, stat.st_mtime_ns]}, "files": [], "debug": False}
    (tmp_path / "compiled.json").write_text(json.dumps(record))
    monkeypatch.setattr(core, "_HERE", str(tmp_path))
    monkeypatch.delenv("PODIUM_CORE_DEBUG", raising=False)
    assert core._is_current()
    os.utime(tmp_path / "segments.pyx", ns=(0, 0))
    assert not core._is_current()
