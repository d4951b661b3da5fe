"""In a checkout, importing a kernel compiles what changed: in one process, in several, and where it cannot."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = [
    pytest.mark.skipif(not (ROOT / "build_support").exists(), reason="only a checkout compiles"),
    pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler"),
]
IMPORT = "from podium._core import tiny; print(tiny.answer())"


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """A checkout with one small kernel, and a compiler that lists the files it compiles."""
    pytest.importorskip("Cython")
    root = tmp_path_factory.mktemp("checkout")
    core = root / "src" / "podium" / "_core"
    core.mkdir(parents=True)
    (core.parent / "__init__.py").touch()
    shutil.copy(ROOT / "src" / "podium" / "_core" / "__init__.py", core)
    (root / "build_support").mkdir()
    shutil.copy(ROOT / "build_support" / "compile_core.py", root / "build_support")
    (root / "cc").write_text(f'#!/bin/sh\necho "$1" >> {root}/compiled.txt\nexec cc "$@"\n')
    (root / "cc").chmod(0o755)
    return root


def count_compilations(checkout: Path) -> int:
    return (checkout / "compiled.txt").read_text().count("tiny.c\n")


def change_kernel(checkout: Path, body: str) -> None:
    (checkout / "src" / "podium" / "_core" / "tiny.pyx").write_text(f"def answer():\n    return {body}\n")


def start(checkout: Path, code: str = IMPORT, **environment: str) -> subprocess.Popen[str]:
    paths = {"PYTHONPATH": str(checkout / "src"), "CC": str(checkout / "cc")}
    paths["PODIUM_CORE_DEBUG"] = "1"  # debug builds compile fastest
    return subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **paths, **environment},
    )


def run(checkout: Path, code: str = IMPORT, **environment: str) -> tuple[str, str]:
    out, err = start(checkout, code, **environment).communicate()
    return out.strip(), err.strip()


def test_a_changed_kernel_is_compiled_at_import(checkout):
    change_kernel(checkout, "1")
    assert run(checkout) == ("1", "")
    change_kernel(checkout, "2 + 20")
    assert run(checkout) == ("22", "")
    assert run(checkout) == ("22", "")
    assert count_compilations(checkout) == 2


def test_processes_that_start_together_compile_once_and_agree(checkout):
    change_kernel(checkout, "333")
    before = count_compilations(checkout)
    together = [start(checkout) for _ in range(5)]
    assert [process.communicate() for process in together] == [("333\n", "")] * 5
    assert count_compilations(checkout) == before + 1
    left = [
        p.name for p in (checkout / "src" / "podium" / "_core").iterdir() if p.name.startswith(".compile")
    ]
    assert left == []


def test_a_kernel_that_does_not_compile_is_named_with_its_line(checkout):
    change_kernel(checkout, "1 +")
    out, err = run(checkout)
    assert out == ""
    assert re.search(r"ImportError: the kernels of Podium .* must be compiled: tiny does not compile:", err)
    assert "tiny.pyx:2:" in err
    assert "During handling" not in err
    change_kernel(checkout, "4444")
    assert run(checkout) == ("4444", "")


def test_without_cython_one_line_names_the_remedy(checkout):
    change_kernel(checkout, "5")
    out, err = run(checkout, f"import sys; sys.modules['Cython'] = None; {IMPORT}")
    assert out == ""
    assert err.splitlines()[-1].startswith("ImportError: ")
    assert err.endswith("must be compiled: Cython is missing: pip install 'cython>=3.1'")


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() == 0, reason="the superuser may write anywhere"
)
def test_a_folder_that_cannot_be_written_to_is_named(checkout):
    core = checkout / "src" / "podium" / "_core"
    change_kernel(checkout, "66666")
    (core / ".lock").unlink(missing_ok=True)
    core.chmod(0o555)
    try:
        _, err = run(checkout)
    finally:
        core.chmod(0o755)
    assert "must be compiled: [Errno 13] Permission denied" in err.splitlines()[-1]
