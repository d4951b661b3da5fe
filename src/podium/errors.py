"""The few error types. A message says what was got, what is accepted and what to do about it."""

from __future__ import annotations

import contextlib
import contextvars
import re
import threading
import warnings
from collections.abc import Iterator
from typing import Any

__all__ = [
    "InputError",
    "ModelFileError",
    "NoGainWarning",
    "NotFittedError",
    "ParameterError",
    "PodiumError",
    "PodiumWarning",
    "UnsupportedFormError",
    "expect",
    "hearing",
]


class PodiumError(Exception):
    """Base of everything Podium raises on purpose; the command line prints these without a traceback."""


class InputError(PodiumError, ValueError):
    """Data that cannot be read as it stands.

    >>> print(InputError("the rank is 0", source="a.run", line=3, remedy="ranks start at 1"))
    a.run:3: the rank is 0; ranks start at 1
    """

    def __init__(
        self, problem: str, *, source: str | None = None, line: int | None = None, remedy: str | None = None
    ) -> None:
        self.problem, self.source, self.line, self.remedy = problem, source, line, remedy
        place = "" if source is None else (f"{source}: " if line is None else f"{source}:{line}: ")
        super().__init__(place + problem + ("" if remedy is None else f"; {remedy}"))


class ParameterError(PodiumError, ValueError):
    """A parameter, method or metric name outside what is accepted."""


class UnsupportedFormError(PodiumError, TypeError):
    """A method was given a form of preference it cannot read (for example comparisons to RRF)."""


class NotFittedError(PodiumError):
    """A method that learns was asked for an answer before `fit`."""


class ModelFileError(PodiumError):
    """A model file that is damaged, foreign or of a newer version."""


class PodiumWarning(UserWarning):
    """Something that was done, but that a careful user wants to know of."""


class NoGainWarning(PodiumWarning):
    """A model was fitted, and on its validation queries it is worse than a method that learns nothing."""


def expect(value: Any, kind: type, who: str, remedy: str) -> None:
    """Refuse an argument of another type, such as a whole data set where only preferences are asked for."""
    if not isinstance(value, kind):
        raise InputError(f"{who} was given a {type(value).__name__}", remedy=remedy)


# -- warnings ------------------------------------------------------------------------------------------------------

_EVERY: Any = (
    "always",
    re.compile("(?s)", re.IGNORECASE),
    PodiumWarning,
    None,
    0,
)  # told apart from others' filters
_heard: contextvars.ContextVar[list[str] | None] = contextvars.ContextVar("podium_heard", default=None)
_lock, _hearers = threading.Lock(), 0
_usual: Any = warnings.showwarning


@contextlib.contextmanager
def hearing() -> Iterator[list[str]]:
    """Podium's warnings of this thread (or task), each once, instead of showing them.

    `warnings.catch_warnings` swaps state that all threads share: two at once hear one another's warnings, and the one
    that ends last leaves its filters to everybody. Here only the list is swapped, and each thread has its own.

    >>> with hearing() as said:
    ...     warnings.warn("the data are thin", PodiumWarning)
    >>> said
    ['the data are thin']
    """
    global _hearers
    with _lock:
        _hearers += 1
        _listen()
    heard: list[str] = []
    mark = _heard.set(heard)
    try:
        yield heard
    finally:
        _heard.reset(mark)
        with _lock:
            _hearers -= 1
            if not _hearers:
                _leave()


def _listen() -> None:
    """Let warnings come to us; looked at each time, as others may have put back what they found."""
    global _usual
    if warnings.showwarning is not _show:
        _usual, warnings.showwarning = warnings.showwarning, _show
    if not warnings.filters or warnings.filters[0] != _EVERY:
        warnings.filterwarnings("always", _EVERY[1].pattern, PodiumWarning)


def _leave() -> None:
    warnings.filters = [f for f in warnings.filters if f != _EVERY]
    if warnings.showwarning is _show:
        warnings.showwarning = _usual


def _show(message: Warning | str, category: type[Warning], *rest: Any, **named: Any) -> None:
    heard = _heard.get()
    if heard is None or not issubclass(category, PodiumWarning):
        _usual(message, category, *rest, **named)
    elif str(message) not in heard:
        heard.append(str(message))
