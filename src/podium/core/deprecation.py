"""Public names of earlier versions, which work for one more release with a `DeprecationWarning`.

`podium._renamed` does the same for module paths.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

__all__ = ["accept_old_parameters", "translate_parameters", "warn_of_old_name"]

T = TypeVar("T", bound=type)


def warn_of_old_name(old: str, new: str) -> None:
    """Warn the caller's caller that it uses a former name."""
    warnings.warn(f"{old} is now {new}", DeprecationWarning, stacklevel=3)


def translate_parameters(cls: type, given: Mapping[str, Any]) -> dict[str, Any]:
    """Constructor arguments under their present names, without a warning: for files of earlier versions."""
    renamed = getattr(cls, "renamed_parameters", {})
    return {renamed.get(name, name): value for name, value in given.items()}


def accept_old_parameters(**renamed: str) -> Callable[[T], T]:
    """Let the constructor of a dataclass accept former parameter names, given as old="new".

    >>> from dataclasses import dataclass
    >>> @accept_old_parameters(colour="color")
    ... @dataclass(kw_only=True)
    ... class Toy:
    ...     color: str = "red"
    >>> with warnings.catch_warnings(record=True):
    ...     Toy(colour="blue")
    Toy(color='blue')
    """

    def decorate(cls: T) -> T:
        construct: Callable[..., None] = cls.__init__  # type: ignore[misc]

        @functools.wraps(construct)
        def construct_renamed(self: Any, *args: Any, **given: Any) -> None:
            for old in renamed.keys() & given.keys():
                warn_of_old_name(f"the parameter {old} of {cls.__name__}", renamed[old])
            construct(self, *args, **translate_parameters(cls, given))

        cls.__init__ = construct_renamed  # type: ignore[misc]
        cls.renamed_parameters = renamed  # type: ignore[attr-defined]
        return cls

    return decorate
