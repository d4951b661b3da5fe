"""Old names of parameters and learned attributes of a class, which work for one more release with a warning."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from podium.core.errors import ParameterError

C = TypeVar("C", bound=type)


class RenamedAttribute:
    """An attribute under its old name: reading it warns and gives the new one."""

    def __init__(self, new: str, old: str = "") -> None:
        self.new, self.old = new, old

    def __set_name__(self, owner: type, name: str) -> None:
        self.old = name

    def __get__(self, instance: Any, owner: type) -> Any:
        if instance is None:
            return self
        value = getattr(instance, self.new)
        _warn_of_old_name(owner, self.old, self.new, level=3)
        return value


def accept_old_names(**renamed: str) -> Callable[[C], C]:
    """Class decorator, above `dataclass`: the constructor takes each old name for the new one, and it can be read.

    >>> from dataclasses import dataclass
    >>> @accept_old_names(colour="color")
    ... @dataclass(kw_only=True)
    ... class Pen:
    ...     color: str = "blue"
    >>> with warnings.catch_warnings(record=True) as issued:
    ...     warnings.simplefilter("always")
    ...     Pen(colour="red")
    Pen(color='red')
    >>> str(issued[0].message)
    'Pen: colour is now color'
    """

    def decorate(cls: C) -> C:
        cls.old_names = getattr(cls, "old_names", {}) | renamed  # type: ignore[attr-defined]
        build = cls.__init__  # type: ignore[misc]

        @functools.wraps(build)
        def init_with_old_names(self: Any, *args: Any, **given: Any) -> None:
            build(self, *args, **replace_old_names(type(self), given))

        cls.__init__ = init_with_old_names  # type: ignore[misc]
        for old, new in renamed.items():
            setattr(cls, old, RenamedAttribute(new, old))
        return cls

    return decorate


def replace_old_names(cls: type, given: Mapping[str, Any], *, warn: bool = True) -> dict[str, Any]:
    """The same values under the new names."""
    renamed: Mapping[str, str] = getattr(cls, "old_names", {})
    for old in renamed.keys() & given.keys():
        new = renamed[old]
        if new in given:
            raise ParameterError(f"{old} is an old name of {new}, and both are given; give {new} alone")
        if warn:
            _warn_of_old_name(cls, old, new, level=4)
    return {renamed.get(name, name): value for name, value in given.items()}


def _warn_of_old_name(cls: type, old: str, new: str, level: int) -> None:
    name = getattr(cls, "name", "") or cls.__name__
    warnings.warn(f"{name}: {old} is now {new}", DeprecationWarning, stacklevel=level)
