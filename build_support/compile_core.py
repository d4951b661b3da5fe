"""Compile the Cython modules of `podium._core`, with any C compiler or, where there is none, with ziglang.

    python build_support/compile_core.py             modules beside their sources, those that changed
    PODIUM_CORE_DEBUG=1 python build_support/...     the same with the indices of arrays checked, and unoptimized
    PODIUM_CORE_SANITIZE=1 python build_support/...  with AddressSanitizer, which checks raw pointers too (gcc)

Needs Cython. A module is compiled again when its source, a shared declaration (.pxd), the flags or the version
of Cython change; `compiled.json` beside the modules records what they were compiled from.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import json
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ROOT / "src" / "podium" / "_core"
PACKAGE = "podium._core"
SHARED = "_cyshared"  # Cython's own code for memoryviews: in one module instead of in each
RECORD = "compiled.json"
# Modules that are compiled a second time, for x86-64 processors with AVX2, into the folder of that name; only
# those that gain from it. `podium._core` imports them from there on such a processor.
WIDE = "x86_64_v3"
WIDE_MODULES = (
    "lambdas",
    "majority",
    "markov_chains",
    "ordering",
    "pairwise_votes",
    "poisson_binomial",
    "standardize_columns",
)
LIMITED_API = (
    "0x030b0000"  # the stable interface of Python 3.11, so that one binary serves all later versions
)
ZIG = "ziglang>=0.13"

# The same bits everywhere: no fused multiply-add, no reordered sums. The last three flags only remove tests
# of error states that no kernel reads.
OPTIMIZED = ["-O3", "-ffp-contract=off", "-fwrapv", "-fno-math-errno", "-fno-trapping-math", "-DNDEBUG"]
# A function that the stable interface lacks would be called undeclared, and its pointers cut to 32 bits.
UNDECLARED = "-Werror=implicit-function-declaration"
DEBUG = ["-O1", "-g", "-ffp-contract=off", "-fwrapv"]
SANITIZED = [*DEBUG, "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer"]
KINDS = {"optimized": OPTIMIZED, "debug": DEBUG, "sanitized": SANITIZED}
DIRECTIVES = {
    "language_level": "3",
    "cdivision": "True",
    "wraparound": "False",
    "embedsignature": "True",
    "freethreading_compatible": "True",
}


class CompileError(RuntimeError):
    """The core could not be compiled; the message says what is missing."""


class Target(NamedTuple):
    """The kind of machine that will import the modules."""

    system: str  # as `sys.platform` names it
    machine: str  # as `platform.machine()` names it, in lower case
    triple: str = ""  # as Zig names it; empty: this machine, and any compiler
    flags: tuple[str, ...] = ()  # in addition to those of every target


HOST = Target(sys.platform, platform.machine().lower())


def find_kind() -> str:
    """Which of the KINDS of builds the environment asks for."""
    asked = {"PODIUM_CORE_SANITIZE": "sanitized", "PODIUM_CORE_DEBUG": "debug"}
    return next(
        (kind for name, kind in asked.items() if os.environ.get(name, "") not in ("", "0")), "optimized"
    )


def find_compiler(target: Target = HOST) -> list[str] | None:
    """The command of a C compiler that works: $CC, the one that built Python, a usual name, or ziglang's clang.

    Other kinds of machines than this one need ziglang.
    """
    zig = [sys.executable, "-m", "ziglang", "cc"] if importlib.util.find_spec("ziglang") else None
    if target.triple:
        return zig and [*zig, "-target", target.triple]
    return next((command for command in list_compilers() if find_fault(command) is None), zig)


def list_compilers() -> list[list[str]]:
    """The compilers of this machine, each once, whether or not they work."""
    names = [os.environ.get("CC"), sysconfig.get_config_var("CC"), "cc", "gcc", "clang"]
    commands = [shlex.split(name) for name in dict.fromkeys(names) if name]
    return [command for command in commands if command and shutil.which(command[0])]


def find_fault(compiler: list[str]) -> str | None:
    """What a compiler says about a file that includes Python.h, with the flags of the modules; None: it works.

    An old one does not know the processor's level, and that of macOS may stand for one still to be installed.
    """
    with tempfile.TemporaryDirectory() as room:
        probe = Path(room) / "probe.c"
        probe.write_text("#include <Python.h>\nint main(void) { return 0; }\n")
        flags = find_flags(compiler, find_kind())
        command = [*compiler, str(probe), *flags, "-o", str(probe.with_suffix(".so"))]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return str(error)
    return (done.stderr or done.stdout).strip() or "it failed" if done.returncode else None


def find_requirements() -> list[str]:
    """What a build on this machine needs beside Cython: ziglang where no compiler works."""
    find_headers()  # their absence is reported before a compiler is downloaded
    return [] if find_compiler() else [ZIG]


def find_headers() -> Path:
    """The folder of Python.h."""
    include = Path(sysconfig.get_paths()["include"])
    if not (include / "Python.h").exists():
        version = f"{sys.version_info[0]}.{sys.version_info[1]}"
        raise CompileError(
            f"Python.h is not in {include}. It belongs to a package of your system: python{version}-dev (Debian, "
            "Ubuntu) or python3-devel (Fedora, openSUSE); PyPI has none. Or use Python from python.org, uv or conda."
        )
    return include


def find_flags(compiler: list[str], kind: str, target: Target = HOST, *, wide: bool = False) -> list[str]:
    """Flags of the compiler and the linker; `wide` for processors with AVX2."""
    flags = [*KINDS[kind], UNDECLARED, "-shared", "-fvisibility=hidden", f"-I{find_headers()}"]
    if target.system != "win32":
        flags.append("-fPIC")
    if kind == "optimized" and (target.triple or target.system != "darwin"):  # Apple's linker does not strip
        flags.append("-s")
    if is_x86(target):
        level = "x86-64-v3" if wide else "x86-64-v2"
        flags.append(f"-march={level.replace('-', '_') if 'ziglang' in compiler else level}")
    if not sysconfig.get_config_var("Py_GIL_DISABLED"):
        flags.append(f"-DPy_LIMITED_API={LIMITED_API}")
    if target.system == "darwin":
        flags += ["-undefined", "dynamic_lookup"]
    if target.system == "win32" and not target.triple:
        flags += [f"-L{Path(sys.base_prefix) / 'libs'}", "-lpython3"]
    return [*flags, *target.flags]


def find_suffix(target: Target = HOST) -> str:
    """How the file of an extension module ends."""
    if not target.triple and sysconfig.get_config_var("Py_GIL_DISABLED"):
        return str(sysconfig.get_config_var("EXT_SUFFIX"))
    return ".pyd" if target.system == "win32" else ".abi3.so"


def is_x86(target: Target) -> bool:
    """Whether a machine has a processor of 64 bits by Intel or AMD."""
    return target.machine in ("x86_64", "amd64")


def find_modules(target: Target = HOST, *, kind: str = "optimized") -> list[str]:
    """The names of all modules, the shared one first, which takes longest; wide ones with their folder."""
    names = sorted(path.stem for path in SOURCES.glob("*.pyx"))
    wide = [f"{WIDE}/{name}" for name in names if name in WIDE_MODULES]
    return [SHARED, *names, *(wide if is_x86(target) and kind == "optimized" else [])]


def find_name(module: str) -> str:
    """The name of a module without its folder."""
    return module.rpartition("/")[2]


def _run(command: list[str], module: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, cwd=SOURCES, check=False)
    if done.returncode:
        output = (done.stdout + done.stderr).strip()
        raise CompileError(f"{module} does not compile:\n{output}\nThe command was: {shlex.join(command)}")


def _translate(module: str, c_file: Path, kind: str) -> None:
    """Cython to C."""
    cython = [sys.executable, "-m", "cython"]
    if module == SHARED:
        _run([*cython, "--generate-shared", str(c_file)], module)
        return
    directives = DIRECTIVES | dict.fromkeys(("boundscheck", "initializedcheck"), str(kind == "debug"))
    options = [part for pair in directives.items() for part in ("-X", "=".join(pair))]
    names = ["--module-name", f"{PACKAGE}.{module}", "--shared", f"{PACKAGE}.{SHARED}"]
    _run([*cython, *options, *names, str(SOURCES / f"{module}.pyx"), "-o", str(c_file)], module)


def _compile(module: str, folder: Path, compiler: list[str], kind: str, target: Target) -> None:
    """One module, which appears in `folder` when it is complete."""
    name = find_name(module)
    flags = find_flags(compiler, kind, target, wide=name != module)
    with tempfile.TemporaryDirectory(prefix=".compile-", dir=folder) as room:
        # the name must be that of the module: it is the name of its initialization function
        c_file, binary = Path(room) / f"{name}.c", Path(room) / f"{name}{find_suffix(target)}"
        _translate(name, c_file, kind)
        _run([*compiler, str(c_file), *flags, "-o", str(binary)], module)
        finished = folder / f"{module}{find_suffix(target)}"
        finished.parent.mkdir(exist_ok=True)
        binary.replace(finished)


def compute_digests(compiler: list[str], kind: str, target: Target = HOST) -> dict[str, str]:
    """For every module, what its binary depends on."""
    from Cython import __version__ as cython

    digests = {}
    for module in find_modules(target, kind=kind):
        name = find_name(module)
        flags = find_flags(compiler, kind, target, wide=name != module)
        text = "" if module == SHARED else _read_with_declarations(name)
        parts = [cython, repr(compiler), repr(flags), repr(DIRECTIVES), repr(kind == "debug")]
        digests[module] = hashlib.sha256(("\0".join(parts) + text).encode()).hexdigest()
    return digests


def _read_with_declarations(module: str) -> str:
    """The source of a module and all declarations (.pxd) that it imports, directly or not."""
    texts: dict[str, str] = {}
    waiting = [f"{module}.pyx", f"{module}.pxd"]
    while waiting:
        name = waiting.pop()
        if name not in texts and (SOURCES / name).exists():
            texts[name] = (SOURCES / name).read_text()
            waiting += [f"{m}.pxd" for m in re.findall(r"from podium\._core\.(\w+) cimport", texts[name])]
    return "\0".join(texts[name] for name in sorted(texts))


@contextlib.contextmanager
def _lock(folder: Path) -> Iterator[None]:
    """One build at a time: processes that start together would compile the same modules."""
    try:
        import fcntl
    except ImportError:  # Windows: the last of several builds wins, and they are equal
        yield
        return
    with open(folder / ".lock", "w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def read_record(folder: Path) -> dict[str, object]:
    """What the modules in a folder were compiled from; empty where there is no record."""
    try:
        return dict(json.loads((folder / RECORD).read_text()))
    except (OSError, ValueError):
        return {}


def list_sources() -> dict[str, list[int]]:
    """Size and time of change of every source: the quick test of whether anything changed."""
    paths = sorted([*SOURCES.glob("*.pyx"), *SOURCES.glob("*.pxd")])
    return {path.name: [path.stat().st_size, path.stat().st_mtime_ns] for path in paths}


def _compile_all(
    modules: list[str], folder: Path, compiler: list[str], kind: str, target: Target
) -> dict[str, str]:
    """Compile modules, several at a time; returns the messages of those that do not compile."""

    def find_error(module: str) -> str | None:
        try:
            _compile(module, folder, compiler, kind, target)
        except CompileError as error:
            return str(error)
        return None

    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        errors = zip(modules, pool.map(find_error, modules), strict=True)
        return {module: error for module, error in errors if error is not None}


def compile_core(folder: Path = SOURCES, *, verbose: bool = False, target: Target = HOST) -> list[Path]:
    """Compile the modules that are missing or out of date in `folder`; returns the files of all modules."""
    if importlib.util.find_spec("Cython") is None:
        raise CompileError("Cython is missing: pip install 'cython>=3.1'")
    compiler, kind = find_compiler(target), find_kind()
    if compiler is None:
        other = "" if target.triple else "install gcc or clang, or "
        faults = (
            ""
            if target.triple
            else "".join(
                f"\n{shlex.join(command)} does not compile a module of Python: {find_fault(command)}"
                for command in list_compilers()
            )
        )
        raise CompileError(f"no C compiler: {other}pip install '{ZIG}'{faults}")
    folder.mkdir(parents=True, exist_ok=True)
    with _lock(folder):
        # listed before they are read: what is edited during the build is compiled again at the next import
        sources = list_sources()
        digests = compute_digests(compiler, kind, target)
        known = read_record(folder).get("digests")
        known = known if isinstance(known, dict) else {}
        files = {name: folder / f"{name}{find_suffix(target)}" for name in digests}
        stale = [name for name in files if known.get(name) != digests[name] or not files[name].exists()]
        errors = _compile_all(stale, folder, compiler, kind, target)
        built = {n: known.get(n, "") if n in errors else digests[n] for n in files}
        names = [path.relative_to(folder).as_posix() for path in files.values()]
        record = {"digests": built, "sources": {} if errors else sources, "files": names, "kind": kind}
        (folder / RECORD).write_text(json.dumps(record, indent=1))
    if errors:
        raise CompileError(next(iter(errors.values())))
    if stale and verbose:
        print(f"compiled {', '.join(stale)} with {shlex.join(compiler)}")
    return list(files.values())


if __name__ == "__main__":
    try:
        compile_core(verbose=True)
    except CompileError as error:
        sys.exit(str(error))
