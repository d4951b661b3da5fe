"""What methods and models over features share: constructor arguments by name, and a printed form of them."""

from __future__ import annotations

import dataclasses
import warnings
from abc import ABCMeta
from collections.abc import Mapping
from typing import Any, ClassVar

__all__ = ["Parameterized", "warn_of_old_name"]


def warn_of_old_name(old: str, new: str) -> None:
    """Warn the caller's caller of a former name, which works for one more release."""
    warnings.warn(f"{old} is now {new}", DeprecationWarning, stacklevel=3)


class _ParameterizedType(ABCMeta):
    """Lets constructors accept former parameter names."""

    def __call__(cls, *args: Any, **given: Any) -> Any:
        for old, new in cls.renamed_parameters.items():  # type: ignore[attr-defined]
            if old in given:
                warn_of_old_name(f"the parameter {old} of {cls.__name__}", new)
                given[new] = given.pop(old)
        return super().__call__(*args, **given)


class Parameterized(metaclass=_ParameterizedType):
    """Base of dataclasses that print as `name(changed=parameters)`, the form that `make` parses."""

    name: ClassVar[str] = ""
    renamed_parameters: ClassVar[Mapping[str, str]] = {}  # former name -> present name

    @classmethod
    def translate_parameters(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        """Constructor arguments under their present names, without a warning: for files of earlier versions."""
        return {cls.renamed_parameters.get(name, name): value for name, value in given.items()}

    def get_parameters(self) -> dict[str, Any]:
        """All constructor arguments by name."""
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.init}  # type: ignore[arg-type]

    def parameters(self) -> dict[str, Any]:
        """Former name of `get_parameters`."""
        warn_of_old_name("parameters()", "get_parameters()")
        return self.get_parameters()

    def __repr__(self) -> str:
        default = {f.name: f.default for f in dataclasses.fields(self)}  # type: ignore[arg-type]
        changed = [
            f"{k}={v!r}"
            for k, v in self.get_parameters().items()
            if type(v) is not type(default[k]) or v != default[k]
        ]
        return f"{self.name}({', '.join(changed)})" if changed else self.name
