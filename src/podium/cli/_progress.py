"""Progress on standard error: a bar on a terminal, periodic lines elsewhere."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import click

from podium.core.errors import ParameterError
from podium.core.optional import check_package

T = TypeVar("T")
FIRST, EVERY = 10.0, 30.0  # seconds before the first line, and between lines
VARIABLE = "PODIUM_PROGRESS"  # seconds between lines instead; 0 for none
ENDLESS = frozenset({"serve", "mcp"})  # verbs that run until stopped


class ProgressLines:
    """Progress lines, written by a separate thread while a verb runs.

    A verb that counts its steps calls `update`; otherwise the lines show only the elapsed time.
    """

    def __init__(self, name: Callable[[], str | None], first: float = FIRST, every: float = EVERY) -> None:
        self._name, self._first, self._every = name, first, every
        self._begin, self._share, self._what = time.monotonic(), 0.0, ""
        self._stop_event = threading.Event()
        self._thread = threading.Thread(target=self._write_lines, name="podium-progress", daemon=True)

    def start(self) -> None:
        """Start the thread; it writes the first line after the initial delay."""
        self._thread.start()

    def stop(self) -> None:
        """Write no more lines."""
        self._stop_event.set()
        self._thread.join()

    def update(self, done: int, total: int, what: str) -> None:
        """Record a step; thread-safe."""
        self._share, self._what = done / max(total, 1), what

    def format_line(self, seconds: float) -> str:
        """Format the progress after the given number of seconds.

        >>> lines = ProgressLines(lambda: "tune")
        >>> lines.format_line(40)
        'podium tune: still running after 40 s'
        >>> lines.update(345, 1000, "trying configurations")
        >>> lines.format_line(100)
        'podium tune: still running after 1 min 40 s, 34 % done (trying configurations)'
        """
        minutes, rest = divmod(round(seconds), 60)
        spent = f"{minutes} min {rest} s" if minutes else f"{rest} s"
        known = f", {int(100 * self._share)} % done ({self._what})" if self._what else ""
        return f"podium {self._name() or ''}: still running after {spent}{known}"

    def _write_lines(self) -> None:
        wait = self._first
        while not self._stop_event.wait(wait):
            if self._name() in ENDLESS:
                return
            click.echo(self.format_line(time.monotonic() - self._begin), err=True)
            wait = self._every


_lines: list[ProgressLines] = []  # of the running verb


@contextlib.contextmanager
def show_progress_lines(name: Callable[[], str | None]) -> Iterator[None]:
    """Write progress lines for the running verb, unless stderr is a terminal; `name` returns its name."""
    first, every = FIRST, EVERY
    if given := os.environ.get(VARIABLE, ""):
        try:
            first = every = float(given)
        except ValueError:
            every = -1.0
        if not 0 <= every < float("inf"):
            raise ParameterError(f"{VARIABLE} is {given!r}; give seconds between lines, or 0 for no lines")
    if sys.stderr.isatty() or not every:
        yield
        return
    lines = ProgressLines(name, first, every)
    _lines.append(lines)
    lines.start()
    try:
        yield
    finally:
        _lines.pop()
        lines.stop()


def track_progress(work: Sequence[T], label: str) -> Iterator[T]:
    """Iterate over the work and show progress."""
    with progress_bar(label) as update:
        for done, one in enumerate(work):
            update(done, len(work), label)
            yield one


@contextlib.contextmanager
def progress_bar(label: str = "") -> Iterator[Callable[[int, int, str], None]]:
    """A function `(done, total, what)` that updates a progress bar on a terminal, or the progress lines."""
    if not sys.stderr.isatty():
        from podium.core.progress import no_progress

        yield _lines[-1].update if _lines else no_progress
        return
    check_package("rich")
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(label)
        yield lambda done, total, what: bar.update(task, completed=done, total=total, description=what)


def show_status(text: str) -> contextlib.AbstractContextManager[Any]:
    """Show a spinner on a terminal; do nothing elsewhere."""
    if not sys.stderr.isatty():
        return contextlib.nullcontext()
    check_package("rich")
    from rich.console import Console

    return Console(stderr=True).status(text)
