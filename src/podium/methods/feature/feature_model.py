"""What models over item features share: the name they are saved under, parameters, and column checks."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

from podium.core import registry
from podium.core.errors import NotFittedError

__all__ = ["FeatureModel"]


class FeatureModel:
    """Base of the models that rank by item features alone. Subclasses are dataclasses, registered by name."""

    name: ClassVar[str] = ""
    names_: list[str]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.name = cls.__name__
        registry.learners.add(cls.name, cls)

    def parameters(self) -> dict[str, Any]:
        """All constructor arguments by name."""
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.init}  # type: ignore[arg-type]

    def __repr__(self) -> str:
        default = {f.name: f.default for f in dataclasses.fields(self)}  # type: ignore[arg-type]
        changed = [f"{k}={v!r}" for k, v in self.parameters().items() if v != default[k]]
        return f"{self.name}({', '.join(changed)})" if changed else self.name

    def _check_fitted(self, how: str) -> None:
        if not hasattr(self, "names_"):
            raise NotFittedError(f"{self.name} has not been fitted; call {how}")
