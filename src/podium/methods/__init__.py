"""Methods that combine many rankings into one; one file per family. Classes are imported on first use."""

from typing import Any

from podium.core import registry


def __getattr__(name: str) -> Any:
    return registry.aggregators.get_class(name, __name__)
