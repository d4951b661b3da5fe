"""What models over item features share: the name they are saved under, and the weights of features."""

from __future__ import annotations

from typing import Any

from podium.core import registry
from podium.core.errors import NotFittedError
from podium.core.old_names import RenamedAttribute
from podium.core.params import ParameterDataclass

__all__ = ["FeatureModel"]


class FeatureModel(ParameterDataclass):
    """Base of the models that rank by item features alone. Subclasses are dataclasses, registered by name."""

    names_: list[str]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.name = cls.__name__
        registry.learners.add(cls.name, cls)

    def feature_weights(self) -> dict[str, float]:
        """The weight of each feature."""
        raise NotImplementedError

    weights = RenamedAttribute("feature_weights")

    def _check_fitted(self, call: str) -> None:
        if not hasattr(self, "names_"):
            raise NotFittedError(f"{self.name} has not been fitted; call {call}")
