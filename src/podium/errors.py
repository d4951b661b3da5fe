"""The few error types. A message says what was got, what is accepted and what to do about it."""

from __future__ import annotations

from typing import Any

__all__ = [
    "InputError",
    "ModelFileError",
    "NotFittedError",
    "ParameterError",
    "PodiumError",
    "PodiumWarning",
    "UnsupportedFormError",
    "expect",
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


def expect(value: Any, kind: type, who: str, remedy: str) -> None:
    """Refuse an argument of another type, such as a whole data set where only preferences are asked for."""
    if not isinstance(value, kind):
        raise InputError(f"{who} was given a {type(value).__name__}", remedy=remedy)
