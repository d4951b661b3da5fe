"""What methods and models over features share: constructor arguments by name, and a printed form of them."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

from podium.core.old_names import RenamedAttribute

__all__ = ["Parameterized"]


class Parameterized:
    """Base of dataclasses that print as `name(changed=parameters)`, the form that `make` parses."""

    name: ClassVar[str] = ""
    parameters = RenamedAttribute("get_parameters")

    def get_parameters(self) -> dict[str, Any]:
        """All constructor arguments by name."""
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.init}  # type: ignore[arg-type]

    def __repr__(self) -> str:
        default = {f.name: f.default for f in dataclasses.fields(self)}  # type: ignore[arg-type]
        changed = [
            f"{k}={v!r}"
            for k, v in self.get_parameters().items()
            if type(v) is not type(default[k]) or v != default[k]
        ]
        return f"{self.name}({', '.join(changed)})" if changed else self.name
