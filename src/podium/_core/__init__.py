"""Compiled kernels: loops over arrays, one Cython module per family, without state and without the GIL.

Only `podium.kernels` imports them. In a checkout (an editable install, or `src` on the path) modules whose
source changed are compiled again at import; an installed wheel holds the binaries alone, and nothing is checked.

Some modules are compiled twice. On an x86-64 processor with AVX2 the second ones are imported, with the same
results bit by bit; PODIUM_CORE_PORTABLE=1 imports those that every processor runs.
"""

import os

TYPE_CHECKING = False  # type checkers take it as true
if TYPE_CHECKING:
    from typing import Any

    def __getattr__(name: str) -> Any:
        """The modules are compiled; their signatures are in the .pyx files."""


_HERE = os.path.dirname(os.path.abspath(__file__))
_BUILDER = os.path.join(_HERE, os.pardir, os.pardir, os.pardir, "build_support", "compile_core.py")


def _is_set(name: str) -> bool:
    return os.environ.get(name, "") not in ("", "0")


def _is_current() -> bool:
    """Whether size and time of change of every source are those that the last build recorded."""
    import json

    try:
        with open(os.path.join(_HERE, "compiled.json"), encoding="utf-8") as file:
            record = json.load(file)
    except (OSError, ValueError):
        return False
    with os.scandir(_HERE) as entries:
        stats = {e.name: e.stat() for e in entries}
    sources = {n: [s.st_size, s.st_mtime_ns] for n, s in stats.items() if n.endswith((".pyx", ".pxd"))}
    asked = {"PODIUM_CORE_SANITIZE": "sanitized", "PODIUM_CORE_DEBUG": "debug"}
    kind = next((kind for name, kind in asked.items() if _is_set(name)), "optimized")
    return (record["sources"], record.get("kind")) == (sources, kind) and all(
        os.path.exists(os.path.join(_HERE, file)) for file in record["files"]
    )


def _compile_changed_sources() -> None:
    """Run `build_support/compile_core.py`, which is not part of the package."""
    import importlib.util

    spec = importlib.util.spec_from_file_location("podium_compile_core", _BUILDER)
    assert spec is not None
    assert spec.loader is not None
    builder = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(builder)
    try:
        builder.compile_core()
    except (builder.CompileError, OSError) as error:
        raise ImportError(
            f"the kernels of Podium have changed, or were never compiled, and must be compiled: {error}"
        ) from None


def _put_wide_modules_first() -> None:
    """Import modules for this processor, where there are such, instead of those beside this file."""
    wide = os.path.join(_HERE, "x86_64_v3")
    switches = ("PODIUM_CORE_PORTABLE", "PODIUM_CORE_DEBUG", "PODIUM_CORE_SANITIZE")
    if any(map(_is_set, switches)) or not os.path.isdir(wide):
        return
    from podium._core import instruction_sets

    if instruction_sets.HAS_X86_64_V3:
        __path__.insert(0, wide)


if os.path.isfile(_BUILDER) and not _is_current():
    _compile_changed_sources()
_put_wide_modules_first()
