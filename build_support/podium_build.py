"""The build backend: hatchling, plus a C compiler from PyPI where the machine has none.

`hatch_hook.py` compiles the core; this module only adds the requirement, which hatchling cannot compute.
"""

from __future__ import annotations

from typing import Any

from compile_core import find_requirements
from hatchling import build as hatchling_build
from hatchling.build import (
    build_editable,
    build_sdist,
    build_wheel,
    get_requires_for_build_sdist,
)

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
]


def get_requires_for_build_wheel(config_settings: dict[str, Any] | None = None) -> list[str]:
    """What hatchling needs, and a compiler."""
    return [*hatchling_build.get_requires_for_build_wheel(config_settings), *find_requirements()]


def get_requires_for_build_editable(config_settings: dict[str, Any] | None = None) -> list[str]:
    """What hatchling needs, and a compiler."""
    return [*hatchling_build.get_requires_for_build_editable(config_settings), *find_requirements()]
