"""Description of a method as plain values, for `podium methods --json` and the service."""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any

from podium.core import params

__all__ = ["describe_learner", "describe_method"]


def describe_method(cls: Any) -> dict[str, Any]:
    """Name, summary, citation, accepted forms, properties, and each parameter with its accepted values."""
    return {
        "name": cls.name,
        "class": cls.__name__,
        "summary": (inspect.getdoc(cls) or "").split("\n\n")[0].replace("\n", " "),
        "citation": cls.citation,
        "accepts": sorted(f.value for f in cls.tags.accepts),
        **{k: v for k, v in dataclasses.asdict(cls.tags).items() if isinstance(v, bool)},
        "parameters": _describe_parameters(cls),
        **({"in_engine": dataclasses.asdict(cls.dialect)} if cls.tags.dialect else {}),
    }


def describe_learner(cls: Any) -> dict[str, Any]:
    """Description of a model over item features; it has no experts, and its CLI name is in lower case."""
    return {
        "name": cls.__name__.lower(),
        "class": cls.__name__,
        "summary": (inspect.getdoc(cls) or "").split("\n\n")[0].replace("\n", " "),
        "citation": "",
        "accepts": ["item features (podium fit --shards)"],
        "weighted": False,
        "parameters": _describe_parameters(cls),
    }


def _describe_parameters(cls: Any) -> list[dict[str, Any]]:
    return [
        {
            "name": p.name,
            "default": p.default,
            "accepts": p.describe(),
            "help": p.help,
            "tune": None if p.tune is None else dataclasses.asdict(p.tune),
        }
        for p in params.parameters(cls)
    ]
