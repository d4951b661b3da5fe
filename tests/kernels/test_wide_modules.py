"""Modules that are compiled a second time for processors with AVX2 compute the same bits as the portable ones."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import podium._core
import record_core_results
from podium.kernels import dispatch

HERE = Path(__file__).parent
WIDE = dispatch.list_wide_modules()
needs_wide = pytest.mark.skipif(not WIDE, reason="this processor, or this build, has portable modules only")


def record_results(path: Path, **environment: str) -> dict[str, list[str]]:
    """Run the fuzz tests that call wide modules; returns, for each of their functions, digests of its results."""
    files = [str(HERE / f"test_core_fuzz{name}.py") for name in ("", "_learning", "_models")]
    plugins = ("-p", record_core_results.__name__, "-p", "no:cacheprovider", "-p", "no:xdist")
    python_path = os.pathsep.join((str(Path(record_core_results.__file__).parent), *sys.path))
    names = ",".join((*WIDE, str(path)))
    given = {
        "PODIUM_FUZZ_CASES": "25",
        "PODIUM_CORE_RESULTS": names,
        "PYTHONPATH": python_path,
        **environment,
    }
    subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *plugins, *files],
        env=os.environ | given,
        capture_output=True,
        check=True,
    )
    return json.loads(path.read_text())


@needs_wide
def test_both_paths_compute_the_same_bits(tmp_path):
    wide = record_results(tmp_path / "wide.json")
    portable = record_results(tmp_path / "portable.json", PODIUM_CORE_PORTABLE="1")
    for name in WIDE:
        folder, other = wide.pop(f"{name} is from"), portable.pop(f"{name} is from")
        assert folder == [podium._core.__path__[0]]
        assert other == [podium._core.__path__[-1]]
    assert all(wide.values()), "a function is never called"
    assert wide == portable


@needs_wide
def test_the_wide_modules_are_those_of_the_build():
    sys.path.insert(0, str(HERE.parents[1] / "build_support"))
    try:
        compile_core = pytest.importorskip("compile_core")
    finally:
        sys.path.pop(0)
    assert sorted(WIDE) == sorted(compile_core.WIDE_MODULES)
    assert not any("/" in name for name in compile_core.find_modules(compile_core.Target("linux", "aarch64")))


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc/cpuinfo")
def test_the_processor_is_recognized_as_linux_does():
    from podium._core import instruction_sets

    flags = next(
        (x for x in Path("/proc/cpuinfo").read_text().splitlines() if x.startswith("flags")), ""
    ).split()
    needed = {"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe"}
    assert instruction_sets.HAS_X86_64_V3 is needed.issubset(flags)
