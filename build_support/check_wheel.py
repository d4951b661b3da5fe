"""Check a wheel without running it: its tag, its files, and what every compiled module exports and imports.

    python build_support/check_wheel.py WHEEL...

Needs lief (file formats) and abi3info (the stable interface of Python).
"""

from __future__ import annotations

import sys
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent))

from compile_core import PACKAGE, SOURCES, Target, find_modules, find_name, find_suffix
from wheel_targets import GLIBC, MACOS, PYTHON, TARGETS, list_stable_symbols

# libraries that every system of a kind has
LIBRARIES = {
    "linux": {"libc.so.6", "libm.so.6", "libpthread.so.0"},
    "darwin": {"/usr/lib/libSystem.B.dylib"},
    "win32": {"python3.dll", "kernel32.dll"},
}
WINDOWS_C = "api-ms-win-crt-"  # the C library that is part of Windows 10, in parts
UNDEFINED = 0  # the section of an imported symbol of an ELF file
OLDEST = {"linux": GLIBC, "darwin": MACOS, "win32": (0, 0)}


class ModuleFacts(NamedTuple):
    """What the file of a compiled module says about itself."""

    system: str  # as `sys.platform` names it
    machine: str  # x86_64 or aarch64
    exports: frozenset[str]
    python_symbols: frozenset[str]  # imported from Python
    homeless_symbols: frozenset[str]  # imported, but neither from Python nor from a named library
    libraries: frozenset[str]
    version: tuple[int, int]  # the oldest C library (Linux) or system (macOS) that can load it
    signed: bool = True


def find_module_problems(module: str, facts: ModuleFacts, target: Target, stable: Iterable[str]) -> list[str]:
    """What would keep a module from being imported on its platform by every supported Python."""
    problems = []
    if (facts.system, facts.machine) != (target.system, target.machine):
        problems.append(f"is for {facts.system} on {facts.machine}")
    start = f"PyInit_{find_name(module)}"
    if facts.exports != {start}:
        problems.append(f"exports {', '.join(sorted(facts.exports)) or 'nothing'} instead of {start}")
    if unstable := sorted(facts.python_symbols - set(stable)):
        problems.append(
            f"uses {', '.join(unstable)}, not in the stable interface of Python {PYTHON[0]}.{PYTHON[1]}"
        )
    if facts.homeless_symbols:
        problems.append(f"imports {', '.join(sorted(facts.homeless_symbols))} from no library")
    if others := sorted(name for name in facts.libraries if not _is_everywhere(name, target.system)):
        problems.append(f"needs {', '.join(others)}")
    if facts.version > OLDEST[target.system]:
        needs, allowed = (".".join(map(str, v)) for v in (facts.version, OLDEST[target.system]))
        problems.append(f"needs version {needs} of the system's library; the tag says {allowed}")
    if not facts.signed and target.system == "darwin" and target.machine == "aarch64":
        problems.append("is not signed, so macOS on arm64 does not load it")
    return [f"{module}{find_suffix(target)} {problem}" for problem in problems]


def _is_everywhere(library: str, system: str) -> bool:
    if system == "win32":
        return library.lower() in LIBRARIES[system] or library.lower().startswith(WINDOWS_C)
    return library in LIBRARIES[system] or library.startswith("ld-linux")


def read_module(raw: bytes) -> ModuleFacts:
    """Read the headers and symbol tables of an ELF, Mach-O or PE file."""
    import lief

    lief.logging.disable()
    binary: Any = lief.parse(list(raw))
    if isinstance(binary, lief.MachO.FatBinary):
        binary = binary.at(0)
    if isinstance(binary, lief.ELF.Binary):
        return _read_elf(binary)
    return _read_macho(binary) if isinstance(binary, lief.MachO.Binary) else _read_pe(binary)


def _name_machine(machine: str) -> str:
    """The name of a processor, from its names in the three formats."""
    return {"X86_64": "x86_64", "AMD64": "x86_64", "AARCH64": "aarch64", "ARM64": "aarch64"}.get(
        machine, machine
    )


def _is_of_python(symbol: str) -> bool:
    return symbol.startswith(("Py", "_Py"))


def _read_elf(binary: Any) -> ModuleFacts:
    exports, imports, homeless, version = set(), set(), set(), (0, 0)
    for symbol in binary.dynamic_symbols:
        if symbol.shndx != UNDEFINED:
            exports |= {symbol.name} if symbol.exported else set()
        elif _is_of_python(symbol.name):
            imports.add(symbol.name)
        elif symbol.has_version and symbol.symbol_version.has_auxiliary_version:
            origin, _, number = symbol.symbol_version.symbol_version_auxiliary.name.partition("_")
            if origin == "GLIBC":
                version = max(version, tuple(int(part) for part in number.split(".")[:2]))
        elif symbol.name and symbol.binding.name != "WEAK":
            homeless.add(symbol.name)
    machine = _name_machine(binary.header.machine_type.name)
    libraries = frozenset(binary.libraries)
    return ModuleFacts(
        "linux", machine, frozenset(exports), frozenset(imports), frozenset(homeless), libraries, version
    )


def _read_macho(binary: Any) -> ModuleFacts:
    linker = {"__mh_dylib_header", "___dso_handle"}  # defined by the linker in every library
    exports = {s.name.removeprefix("_") for s in binary.exported_symbols if s.name not in linker}
    # a symbol that is looked up when the module is loaded has no library: it must be Python's
    free = {s.name.removeprefix("_") for s in binary.imported_symbols if not _has_library(s)}
    bound = {s.name.removeprefix("_") for s in binary.imported_symbols if _has_library(s)}
    python = {name for name in free | bound if _is_of_python(name)}
    own = {library.name for library in binary.libraries if library.command.name == "ID_DYLIB"}
    return ModuleFacts(
        "darwin",
        _name_machine(binary.header.cpu_type.name),
        frozenset(exports),
        frozenset(python),
        frozenset((free - python) | (python & bound)),
        frozenset(library.name for library in binary.libraries) - own,
        tuple(binary.build_version.minos[:2]),
        binary.has_code_signature,
    )


def _has_library(symbol: Any) -> bool:
    return bool(symbol.has_binding_info and symbol.binding_info.has_library)


def _read_pe(binary: Any) -> ModuleFacts:
    entries = {table.name: {entry.name for entry in table.entries} for table in binary.imports}
    python = set().union(
        *(names for library, names in entries.items() if library.lower().startswith("python"))
    )
    return ModuleFacts(
        "win32",
        _name_machine(binary.header.machine.name),
        frozenset(function.name for function in binary.exported_functions),
        frozenset(python),
        frozenset(),
        frozenset(entries),
        (0, 0),
    )


def find_wheel_problems(wheel: Path) -> list[str]:
    """What is wrong with a wheel; empty if it can be published."""
    tag = wheel.stem.split("-", 2)[2]
    target = TARGETS.get(tag.removeprefix("cp311-abi3-"))
    if target is None or not tag.startswith("cp311-abi3-"):
        return [f"{wheel.name}: the tag {tag} is none of a platform in wheel_targets.py"]
    functions, data = list_stable_symbols()
    folder = PACKAGE.replace(".", "/")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        problems = _find_file_problems(names, f"{folder}/", target)
        metadata = archive.read(next(name for name in names if name.endswith(".dist-info/WHEEL"))).decode()
        if f"Tag: {tag}\n" not in metadata or "Root-Is-Purelib: false" not in metadata:
            problems.append("the file WHEEL has another tag, or says that the wheel is pure Python")
        for module in find_modules(target):
            path = f"{folder}/{module}{find_suffix(target)}"
            if path in names:
                facts = read_module(archive.read(path))
                problems += find_module_problems(module, facts, target, [*functions, *data])
    return [f"{wheel.name}: {problem}" for problem in problems]


def _find_file_problems(names: set[str], folder: str, target: Target) -> list[str]:
    root = SOURCES.parent.parent
    sources = {path.relative_to(root).as_posix() for path in SOURCES.parent.rglob("*.py")}
    modules = {f"{folder}{module}{find_suffix(target)}" for module in find_modules(target)}
    missing = sorted((sources | modules) - names)
    strange = sorted(n for n in names if n.startswith(folder) and n not in modules and not n.endswith(".py"))
    problems = [f"{name} is missing" for name in missing]
    return problems + [f"{name} does not belong in a wheel" for name in strange]


if __name__ == "__main__":
    found = [problem for name in sys.argv[1:] for problem in find_wheel_problems(Path(name))]
    print("\n".join(found) or f"{len(sys.argv) - 1} wheels checked")
    sys.exit(bool(found))
