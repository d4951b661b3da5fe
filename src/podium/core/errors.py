"""Error types. A message states what was given, what is accepted and how to fix it."""

from __future__ import annotations

import contextlib
import contextvars
import re
import threading
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from podium.core.text import join_words

# what an option belongs to: file I/O, the parameters of a method, or the settings of an analysis
OptionOwner = Literal["reading", "writing", "method", "setting"]


@dataclass(frozen=True)
class Option:
    """An option named in a message, stored as data so that each interface formats it in its own syntax:
    Python as below, the command line as `-O duplicates=first`, the studio by field name.

    >>> print(Option("duplicates", "first", "best", "sum"), Option("format"), Option("missing", ()))
    duplicates='first', 'best' or 'sum' format= missing=()
    """

    name: str
    values: tuple[Any, ...]  # accepted values; empty: only the user knows the value
    of: OptionOwner

    def __init__(self, name: str, *values: Any, of: OptionOwner = "reading") -> None:
        for field, value in (("name", name), ("values", values), ("of", of)):
            object.__setattr__(self, field, value)

    def __str__(self) -> str:
        return f"{self.name}={join_words([repr(v) for v in self.values], 'or')}"


MessageText = str | Option | tuple[str | Option, ...]  # text with options in it
OptionFormatter = Callable[[Option], str]
ALLOW_REPEATS: MessageText = ("choose ", Option("duplicates", "first", "best", "sum"), " to allow this")


class _Message(Exception):
    """A message with options in it: `str` formats them for Python, `format_message` for other interfaces."""

    def __init__(self, *parts: str | Option) -> None:
        self.parts = parts
        super().__init__("".join(map(str, parts)))

    def format_message(self, spell: OptionFormatter) -> str:
        """The text for another interface."""
        return "".join(spell(part) if isinstance(part, Option) else str(part) for part in self.parts)


class PodiumError(_Message):
    """Base class of all errors that Podium raises; the command line prints these without a traceback.

    >>> error = ParameterError("a.run exists; choose another name, or give ", Option("overwrite", True, of="writing"))
    >>> print(error, error.format_message(lambda option: f"--{option.name}"), sep="\\n")
    a.run exists; choose another name, or give overwrite=True
    a.run exists; choose another name, or give --overwrite
    """


class InputError(PodiumError, ValueError):
    """Invalid input data.

    >>> print(InputError("the rank is 0", source="a.run", line=3, remedy="ranks start at 1"))
    a.run:3: the rank is 0; ranks start at 1
    """

    def __init__(
        self,
        problem: str,
        *,
        source: str | None = None,
        line: int | None = None,
        remedy: MessageText | None = None,
    ) -> None:
        self.problem, self.source, self.line = problem, source, line
        self.remedies: tuple[str | Option, ...] = (
            () if remedy is None else remedy if isinstance(remedy, tuple) else (remedy,)
        )
        self.remedy = "".join(map(str, self.remedies)) or None
        place = "" if source is None else (f"{source}: " if line is None else f"{source}:{line}: ")
        super().__init__(place + problem, *(("; ", *self.remedies) if self.remedies else ()))


class ParameterError(PodiumError, ValueError):
    """A parameter value, method name or metric name that is not accepted."""


class UnsupportedFormError(PodiumError, TypeError):
    """A method was given a form of preference that it does not support (for example comparisons for RRF)."""


class NotFittedError(PodiumError):
    """A method that must be trained was applied before `fit`."""


class MissingPackageError(PodiumError, ImportError):
    """An optional package is needed and not installed; the message names the extra that installs it."""

    def __init__(self, *parts: str | Option, package: str = "", extra: str = "") -> None:
        super().__init__(*parts)
        self.name, self.extra = package, extra


class ModelFileError(PodiumError):
    """A model file that is damaged, is not a Podium model, or has a newer version."""


class PodiumWarning(_Message, UserWarning):
    """A condition that does not stop the operation but that the user should know about.

    Construct it explicitly to include options: `warnings.warn(PodiumWarning("use ", Option(...)))`.
    """


class NoGainWarning(PodiumWarning):
    """The fitted model scores lower on its validation queries than a method without training."""


def check_type(value: Any, kind: type, who: str, remedy: str) -> None:
    """Reject an argument of the wrong type, such as a data set where preferences are expected."""
    if not isinstance(value, kind):
        raise InputError(f"{who} was given a {type(value).__name__}", remedy=remedy)


# -- warnings ----------------------------------------------------------------------------------------------

# distinguishable from filters set by other code
_CAPTURE_FILTER: Any = ("always", re.compile("(?s)", re.IGNORECASE), PodiumWarning, None, 0)
_captured: contextvars.ContextVar[tuple[list[str], OptionFormatter] | None] = contextvars.ContextVar(
    "podium_captured_warnings", default=None
)
_lock, _capture_count = threading.Lock(), 0
_original_showwarning: Any = warnings.showwarning


@contextlib.contextmanager
def capture_warnings(spell: OptionFormatter = str) -> Iterator[list[str]]:
    """Collect Podium's warnings of this thread or task, each once, unshown; `spell` formats their options.

    `warnings.catch_warnings` swaps state shared by threads: concurrent uses receive each other's warnings,
    and the last one to exit leaves its filters behind. Here only the list is swapped, one per thread.

    >>> with capture_warnings() as messages:
    ...     warnings.warn("the data are thin", PodiumWarning)
    >>> messages
    ['the data are thin']
    """
    global _capture_count, _original_showwarning
    with _lock:
        _capture_count += 1
        # other code may have removed the hook and the filter since the last capture
        if warnings.showwarning is not _capture_or_show:
            _original_showwarning, warnings.showwarning = warnings.showwarning, _capture_or_show
        if not warnings.filters or warnings.filters[0] != _CAPTURE_FILTER:
            warnings.filterwarnings("always", _CAPTURE_FILTER[1].pattern, PodiumWarning)
    messages: list[str] = []
    mark = _captured.set((messages, spell))
    try:
        yield messages
    finally:
        _captured.reset(mark)
        with _lock:
            _capture_count -= 1
            if not _capture_count:
                warnings.filters = [f for f in warnings.filters if f != _CAPTURE_FILTER]
                if warnings.showwarning is _capture_or_show:
                    warnings.showwarning = _original_showwarning


def _capture_or_show(message: Warning | str, category: type[Warning], *rest: Any, **named: Any) -> None:
    listener = _captured.get()
    if listener is None or not issubclass(category, PodiumWarning):
        _original_showwarning(message, category, *rest, **named)
        return
    messages, spell = listener
    text = message.format_message(spell) if isinstance(message, PodiumWarning) else str(message)
    if text not in messages:
        messages.append(text)
