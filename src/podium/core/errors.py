"""The few error types. A message says what was got, what is accepted and what to do about it."""

from __future__ import annotations

import contextlib
import contextvars
import re
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

__all__ = [
    "ALLOW_REPEATS",
    "InputError",
    "MessageText",
    "ModelFileError",
    "NoGainWarning",
    "NotFittedError",
    "Option",
    "OptionFormatter",
    "ParameterError",
    "PodiumError",
    "PodiumWarning",
    "UnsupportedFormError",
    "capture_warnings",
    "check_type",
    "join_words",
]


@dataclass(frozen=True)
class Option:
    """An option that a message asks for. It is kept as data, and every surface spells it as it is given there:
    Python as below, the command line as `-O duplicates=first`, the studio by the name of the field.

    >>> print(Option("duplicates", "first", "best", "sum"), Option("format"), Option("missing", ()))
    duplicates='first', 'best' or 'sum' format= missing=()
    """

    name: str
    values: tuple[Any, ...]  # that would do; none: whatever the reader knows and we do not
    of: Literal["reading", "writing", "method"]  # reading or writing a file, or a parameter of a method

    def __init__(
        self, name: str, *values: Any, of: Literal["reading", "writing", "method"] = "reading"
    ) -> None:
        for field, value in (("name", name), ("values", values), ("of", of)):
            object.__setattr__(self, field, value)

    def __str__(self) -> str:
        return f"{self.name}={join_words([repr(v) for v in self.values], 'or')}"


MessageText = str | Option | tuple[str | Option, ...]  # text with options in it
OptionFormatter = Callable[[Option], str]
ALLOW_REPEATS: MessageText = ("choose ", Option("duplicates", "first", "best", "sum"), " to allow this")


def join_words(words: Sequence[str], last: str) -> str:
    """Words as a sentence has them.

    >>> join_words(["a", "b", "c"], "or"), join_words([], "or")
    ('a, b or c', '')
    """
    return f" {last} ".join(filter(None, (", ".join(words[:-1]), "".join(words[-1:]))))


class _Message(Exception):
    """Text with options in it: `str` spells them as Python does, `format_message` in another way."""

    def __init__(self, *parts: str | Option) -> None:
        self.parts = parts
        super().__init__("".join(map(str, parts)))

    def format_message(self, spell: OptionFormatter) -> str:
        """The text for another surface."""
        return "".join(spell(part) if isinstance(part, Option) else str(part) for part in self.parts)


class PodiumError(_Message):
    """Base of everything Podium raises on purpose; the command line prints these without a traceback.

    >>> error = ParameterError("a.run exists; choose another name, or give ", Option("overwrite", True, of="writing"))
    >>> print(error, error.format_message(lambda option: f"--{option.name}"), sep="\\n")
    a.run exists; choose another name, or give overwrite=True
    a.run exists; choose another name, or give --overwrite
    """


class InputError(PodiumError, ValueError):
    """Data that cannot be read as it stands.

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
    """A parameter, method or metric name outside what is accepted."""


class UnsupportedFormError(PodiumError, TypeError):
    """A method was given a form of preference it cannot read (for example comparisons to RRF)."""


class NotFittedError(PodiumError):
    """A method that learns was asked for an answer before `fit`."""


class ModelFileError(PodiumError):
    """A model file that is damaged, foreign or of a newer version."""


class PodiumWarning(_Message, UserWarning):
    """Something that was done, but that a careful user wants to know of.

    With options in it, it is made first and then given: `warnings.warn(PodiumWarning("use ", Option(...)))`.
    """


class NoGainWarning(PodiumWarning):
    """A model was fitted, and on its validation queries it is worse than a method that learns nothing."""


def check_type(value: Any, kind: type, who: str, remedy: str) -> None:
    """Refuse an argument of another type, such as a whole data set where only preferences are asked for."""
    if not isinstance(value, kind):
        raise InputError(f"{who} was given a {type(value).__name__}", remedy=remedy)


# -- warnings ------------------------------------------------------------------------------------------------------

_CAPTURE_FILTER: Any = (
    "always",
    re.compile("(?s)", re.IGNORECASE),
    PodiumWarning,
    None,
    0,
)  # told apart from others' filters
_captured: contextvars.ContextVar[tuple[list[str], OptionFormatter] | None] = contextvars.ContextVar(
    "podium_captured_warnings", default=None
)
_lock, _capture_count = threading.Lock(), 0
_original_showwarning: Any = warnings.showwarning


@contextlib.contextmanager
def capture_warnings(spell: OptionFormatter = str) -> Iterator[list[str]]:
    """Podium's warnings of this thread (or task), each once, instead of showing them; options in them as `spell` says.

    `warnings.catch_warnings` swaps state that all threads share: two at once hear one another's warnings, and the one
    that ends last leaves its filters to everybody. Here only the list is swapped, and each thread has its own.

    >>> with capture_warnings() as said:
    ...     warnings.warn("the data are thin", PodiumWarning)
    >>> said
    ['the data are thin']
    """
    global _capture_count
    with _lock:
        _capture_count += 1
        _install_capture()
    heard: list[str] = []
    mark = _captured.set((heard, spell))
    try:
        yield heard
    finally:
        _captured.reset(mark)
        with _lock:
            _capture_count -= 1
            if not _capture_count:
                _remove_capture()


def _install_capture() -> None:
    """Let warnings come to us; looked at each time, as others may have put back what they found."""
    global _original_showwarning
    if warnings.showwarning is not _capture_or_show:
        _original_showwarning, warnings.showwarning = warnings.showwarning, _capture_or_show
    if not warnings.filters or warnings.filters[0] != _CAPTURE_FILTER:
        warnings.filterwarnings("always", _CAPTURE_FILTER[1].pattern, PodiumWarning)


def _remove_capture() -> None:
    warnings.filters = [f for f in warnings.filters if f != _CAPTURE_FILTER]
    if warnings.showwarning is _capture_or_show:
        warnings.showwarning = _original_showwarning


def _capture_or_show(message: Warning | str, category: type[Warning], *rest: Any, **named: Any) -> None:
    listener = _captured.get()
    if listener is None or not issubclass(category, PodiumWarning):
        _original_showwarning(message, category, *rest, **named)
        return
    heard, spell = listener
    text = message.format_message(spell) if isinstance(message, PodiumWarning) else str(message)
    if text not in heard:
        heard.append(text)
