"""Sizes of installations: `python tools/measure_install.py` builds the wheel, installs it into fresh environments,
with and without extras, and prints the megabytes of each package. It fails where an installation exceeds its limit.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

LIMITS = {"": 100, "full": 360}  # megabytes by extra; "" is the base install
TOOLS = ("pip", "setuptools", "_distutils_hack", "distutils-precedence.pth", "pkg_resources", "wheel")
ROOT = Path(__file__).resolve().parent.parent
SHOWN = 1.0  # packages below this many megabytes are summed up


def build_wheel(folder: Path) -> Path:
    """The wheel of this tree."""
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", folder, ROOT], check=True
    )
    return next(folder.glob("podium_rank-*.whl"))


def measure_install(wheel: Path, extra: str, folder: Path) -> dict[str, float]:
    """Megabytes by top-level entry of site-packages in a fresh environment, without the installer itself."""
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    python = folder / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    what = f"podium-rank[{extra}] @ {wheel.as_uri()}" if extra else str(wheel)
    subprocess.run(
        [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", what], check=True
    )
    asked = [python, "-c", "import sysconfig; print(sysconfig.get_paths()['platlib'])"]
    packages = Path(subprocess.run(asked, check=True, capture_output=True, text=True).stdout.strip())
    entries = [e for e in packages.iterdir() if e.name != "__pycache__" and not e.name.startswith(TOOLS)]
    return {entry.name: measure_size(entry) for entry in entries}


def measure_size(entry: Path) -> float:
    """Megabytes on disk of a file or folder, compiled Python included, in blocks as `du` counts them."""
    files = [entry] if entry.is_file() else [f for f in entry.rglob("*") if not f.is_symlink()]
    return sum(f.lstat().st_blocks * 512 for f in files) / 2**20


def main() -> int:
    """Measure the installations named on the command line, or all that have a limit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("extras", nargs="*", help="extras to install, such as cli or cli,arrow; base: none")
    extras = ["" if e == "base" else e for e in parser.parse_args().extras] or list(LIMITS)
    exceeded = 0
    with tempfile.TemporaryDirectory() as folder:
        wheel = build_wheel(Path(folder))
        print(f"{wheel.name}: {wheel.stat().st_size / 2**20:.1f} MB")
        for number, extra in enumerate(extras):
            sizes = measure_install(wheel, extra, Path(folder, str(number)))
            total, limit = sum(sizes.values()), LIMITS.get(extra)
            parts = sorted(((mb, name) for name, mb in sizes.items() if mb >= SHOWN), reverse=True)
            rest = total - sum(mb for mb, _ in parts)
            words = [f"{name} {mb:.0f}" for mb, name in parts] + [f"others {rest:.0f}"]
            name = f"podium-rank[{extra}]" if extra else "podium-rank"
            print(f"{name}: {total:.0f} MB{'' if limit is None else f' (limit {limit})'}: {', '.join(words)}")
            exceeded += limit is not None and total > limit
    return int(exceeded > 0)


if __name__ == "__main__":
    sys.exit(main())
