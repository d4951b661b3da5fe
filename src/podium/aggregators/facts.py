"""What there is to say of a method, as plain values: for `podium methods --json` and the service."""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any

from podium import params

__all__ = ["facts"]


def facts(cls: Any) -> dict[str, Any]:
    """Name, summary, citation, what it reads and is, and each parameter with what it accepts."""
    return {
        "name": cls.name,
        "class": cls.__name__,
        "summary": (inspect.getdoc(cls) or "").split("\n\n")[0].replace("\n", " "),
        "citation": cls.citation,
        "accepts": sorted(f.value for f in cls.tags.accepts),
        **{k: v for k, v in dataclasses.asdict(cls.tags).items() if isinstance(v, bool)},
        "parameters": [
            {
                "name": p.name,
                "default": p.default,
                "accepts": p.describe(),
                "help": p.help,
                "tune": None if p.tune is None else dataclasses.asdict(p.tune),
            }
            for p in params.parameters(cls)
        ],
    }
