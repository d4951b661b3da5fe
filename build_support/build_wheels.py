"""Build the wheels of all platforms on this machine, check them, and run the one that runs here.

    python build_support/build_wheels.py [PLATFORM...]     into dist/; platforms are those in wheel_targets.py

Needs hatchling, cython, ziglang, lief and abi3info (`make wheels` installs them). A wheel of another kind of
machine is checked for its format, architecture, exports and imports, and is not run.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from check_wheel import find_wheel_problems
from compile_core import ROOT
from wheel_targets import TARGETS

DIST = ROOT / "dist"
FUSE = "import podium; print(podium.fuse([['a', 'b'], ['b', 'c']]).ranking)"


def build_wheel(tag: str) -> Path:
    """Build the wheel of a platform; returns its path."""
    name = f"*-cp311-abi3-{tag}.whl"
    for earlier in DIST.glob(name):
        earlier.unlink()
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(DIST)]
    environment = {**os.environ, "PODIUM_WHEEL_PLATFORM": tag}
    subprocess.run(command, cwd=ROOT, env=environment, check=True)
    (wheel,) = DIST.glob(name)
    return wheel


def can_run(tag: str) -> bool:
    """Whether this machine is of a platform."""
    target = TARGETS[tag]
    machine = {"amd64": "x86_64", "arm64": "aarch64"}.get(platform.machine().lower(), platform.machine())
    return (target.system, target.machine) == (sys.platform, machine)


def run_wheel(wheel: Path) -> None:
    """Install a wheel in an environment of its own, fuse two lists, and run the demo."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        programs = Path(folder) / ("Scripts" if sys.platform == "win32" else "bin")
        install = [str(programs / "python"), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        subprocess.run([*install, f"podium-rank[full] @ {wheel.as_uri()}"], check=True)
        # in the empty folder, so that nothing is imported from the checkout
        for command in ([str(programs / "python"), "-c", FUSE], [str(programs / "podium"), "demo"]):
            subprocess.run(command, cwd=folder, check=True, env={**os.environ, "PYTHONPATH": ""})


def main(tags: list[str]) -> int:
    """Build, check and run; returns 1 if a wheel has a problem."""
    unknown = [tag for tag in tags if tag not in TARGETS]
    if unknown:
        print(f"unknown platform {unknown[0]}; known: {', '.join(TARGETS)}", file=sys.stderr)
        return 2
    failed = False
    for tag in tags or TARGETS:
        wheel = build_wheel(tag)
        problems = find_wheel_problems(wheel)
        failed = failed or bool(problems)
        if problems:
            print("\n".join(problems), file=sys.stderr)
            continue
        if can_run(tag):
            run_wheel(wheel)
        size = wheel.stat().st_size / 2**20
        print(
            f"{wheel.name} ({size:.1f} MB): built and checked, {'run' if can_run(tag) else 'not run'}",
            flush=True,
        )
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
