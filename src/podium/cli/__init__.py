"""The command line: one file per verb, discovered automatically; heavy imports wait until a verb runs.

The first line of a verb's file is its line in `podium --help`.

Exit codes: 0 success, 1 a check failed (`doctor` reports a fault), 2 bad usage or bad input, 70 internal
error, 130 interrupted.
"""

from __future__ import annotations

import importlib
import os
import sys
from typing import TYPE_CHECKING, Any

from podium.core.errors import MissingPackageError
from podium.core.optional import require_module

if TYPE_CHECKING:
    from podium.cli._program import program

__all__ = ["main", "program"]


def __getattr__(name: str) -> Any:
    """`program`, the click group; the entry point must be importable without click."""
    if name == "program":
        require_module("click")
        return importlib.import_module("podium.cli._program").program
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def main() -> None:
    """Entry point of the `podium` command."""
    try:
        require_module("click")
    except MissingPackageError as error:
        print(f"podium: {error}", file=sys.stderr)
        sys.exit(2)
    from podium.cli._program import program

    try:
        program()
    except BrokenPipeError:
        # the consumer closed the pipe (as in `podium ... | head`); that is not an error
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
