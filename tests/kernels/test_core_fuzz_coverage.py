"""Every function of the compiled modules is called by the fuzz tests."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import count_core_calls

HERE = Path(__file__).parent


def test_every_compiled_function_has_a_fuzz_case(tmp_path):
    pytest.importorskip("scipy", reason="the plain bodies of some kernels need scipy")
    calls = tmp_path / "calls.json"
    files = sorted(str(p) for p in HERE.glob("test_core_fuzz*.py") if p.name != Path(__file__).name)
    plugins = ("-p", count_core_calls.__name__, "-p", "no:cacheprovider", "-p", "no:xdist")
    path = os.pathsep.join((str(Path(count_core_calls.__file__).parent), *sys.path))
    given = {"PODIUM_FUZZ_CASES": "6", "PODIUM_CORE_CALLS": str(calls), "PYTHONPATH": path}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *plugins, *files],
        env=os.environ | given,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    counts = json.loads(calls.read_text())
    assert {(module, name) for module, name, _ in counts} == set(count_core_calls.list_compiled_functions())
    assert [f"{module}.{name}" for module, name, count in counts if count == 0] == []
