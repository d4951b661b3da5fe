"""Callbacks that report the progress of a long computation."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[int, int, str], None]  # done, total, what


def no_progress(done: int, total: int, what: str) -> None:
    """Ignore progress."""
