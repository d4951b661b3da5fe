"""The platforms that Podium has wheels for, and what a compiler on another platform needs to know of them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from compile_core import LIMITED_API, Target

GLIBC = (2, 28)  # the oldest C library of Linux that the wheels run on
MACOS = (11, 0)
PYTHON = (int(LIMITED_API[2:4], 16), int(LIMITED_API[4:6], 16))

# What pyconfig.h of Python for 64-bit Windows says, as far as the limited API reads it. The first definition
# is the guard of the pyconfig.h of this machine, whose answers are wrong for Windows.
_WINDOWS_PYCONFIG = (
    "-DPy_PYCONFIG_H",
    "-DMS_WINDOWS",
    "-DMS_WIN64",
    "-DSIZEOF_VOID_P=8",
    "-DSIZEOF_SIZE_T=8",
    "-DSIZEOF_LONG=4",
    "-DSIZEOF_LONG_LONG=8",
    "-DSIZEOF_WCHAR_T=2",
    "-DSIZEOF_TIME_T=8",
    "-DHAVE_STDDEF_H",
    "-DHAVE_WCHAR_H",
    "-DHAVE_DECLSPEC_DLL",
    "-DPy_ENABLE_SHARED",  # symbols of python3.dll are imported, data included
)

_GLIBC = ".".join(map(str, GLIBC))
_MACOS = ".".join(map(str, MACOS))

TARGETS = {
    f"manylinux_{GLIBC[0]}_{GLIBC[1]}_x86_64": Target("linux", "x86_64", f"x86_64-linux-gnu.{_GLIBC}"),
    f"manylinux_{GLIBC[0]}_{GLIBC[1]}_aarch64": Target("linux", "aarch64", f"aarch64-linux-gnu.{_GLIBC}"),
    f"macosx_{MACOS[0]}_{MACOS[1]}_x86_64": Target("darwin", "x86_64", f"x86_64-macos.{_MACOS}"),
    f"macosx_{MACOS[0]}_{MACOS[1]}_arm64": Target("darwin", "aarch64", f"aarch64-macos.{_MACOS}"),
    "win_amd64": Target("win32", "x86_64", "x86_64-windows-gnu", _WINDOWS_PYCONFIG),
}


def prepare_target(platform: str, folder: Path) -> Target:
    """The target of a platform tag; `folder` receives the import library that Windows needs."""
    target = TARGETS[platform]
    if target.system != "win32":
        return target
    write_import_library(folder)
    return target._replace(flags=(*target.flags, f"-L{folder}", "-lpython3"))


def write_import_library(folder: Path) -> None:
    """Write libpython3.a: the names in python3.dll that belong to the stable interface of every version."""
    functions, data = list_stable_symbols()
    lines = ["LIBRARY python3.dll", "EXPORTS", *functions, *(f"{name} DATA" for name in data)]
    folder.mkdir(parents=True, exist_ok=True)
    definitions = folder / "python3.def"
    definitions.write_text("\n".join(lines) + "\n")
    command = [sys.executable, "-m", "ziglang", "dlltool", "-m", "i386:x86-64"]
    subprocess.run([*command, "-d", str(definitions), "-l", str(folder / "libpython3.a")], check=True)


def list_stable_symbols() -> tuple[list[str], list[str]]:
    """Names of the functions and of the variables in the stable interface of the oldest Python of the wheels."""
    from abi3info import DATAS, FUNCTIONS

    def select_names(entries: dict) -> list[str]:
        added = {symbol.name: (e.added.major, e.added.minor) for symbol, e in entries.items() if not e.ifdef}
        return sorted(name for name, version in added.items() if version <= PYTHON)

    return select_names(FUNCTIONS), select_names(DATAS)
