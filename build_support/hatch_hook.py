"""Compiles `podium._core` while hatchling builds: into the wheel, or beside the sources for an editable install.

PODIUM_WHEEL_PLATFORM, a platform tag in `wheel_targets.py`, builds the wheel of another platform.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

sys.path.insert(0, str(Path(__file__).resolve().parent))

import compile_core


class CoreBuildHook(BuildHookInterface[Any]):
    """Adds the compiled modules to a wheel, and names the platform and the stable interface in its tag."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile before hatchling collects the files."""
        if self.target_name != "wheel":
            return
        build_data["pure_python"] = False
        platform = os.environ.get("PODIUM_WHEEL_PLATFORM", "")
        tag = f"cp311-abi3-{platform}" if platform else _find_tag()
        build_data["tag"] = tag
        if version == "editable":
            compile_core.compile_core()
            return
        # the page that `podium mcp` serves
        semantics = Path(self.root) / "docs" / "semantics.md"
        build_data["force_include"][str(semantics)] = "podium/mcp_server/semantics.md"
        folder, target = Path(self.root) / "build" / "core" / tag, compile_core.HOST
        if platform:
            from wheel_targets import prepare_target

            target = prepare_target(platform, folder)
        for path in compile_core.compile_core(folder, target=target):
            build_data["force_include"][str(path)] = f"podium/_core/{path.relative_to(folder).as_posix()}"


def _find_tag() -> str:
    """The tag of the wheel: any Python from 3.11 on, this platform."""
    from packaging.tags import sys_tags

    own = next(t for t in sys_tags() if "manylinux" not in t.platform and "musllinux" not in t.platform)
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        return str(own)
    return f"cp311-abi3-{own.platform}"
