"""Documents that a client can read: the methods, one method, and the semantics."""

from __future__ import annotations

import inspect
from pathlib import Path

from podium.core import registry
from podium.core.tables import Grid, format_json, format_markdown
from podium.methods.describe import describe_method

__all__ = ["format_method_page", "format_methods_page", "read_semantics"]


def format_methods_page() -> str:
    """All methods in a table: name, what it does, what it reads, whether it takes weights, needs labels or features."""
    rows = []
    for name, cls in registry.aggregators.all().items():
        tags, facts = cls.tags, describe_method(cls)
        needs = ["labels"] * tags.supervised + ["features"] * tags.uses_features
        weights = "yes" if tags.weighted else ""
        rows.append((name, facts["summary"], ", ".join(facts["accepts"]), weights, ", ".join(needs)))
    table = format_markdown(Grid(("method", "what it does", "reads", "weights", "needs"), tuple(rows), 5))
    return f"# Methods\n\nParameters of one method: `podium://methods/NAME`.\n\n{table}"


def format_method_page(name: str) -> str:
    """The docstring of a method, and its properties and parameters as JSON."""
    cls = registry.aggregators.get(name)
    return f"# {cls.name}\n\n{inspect.getdoc(cls)}\n\n```json\n{format_json(describe_method(cls))}```\n"


def read_semantics() -> str:
    """The written semantics: in a wheel beside this module, in a checkout the page of the documentation."""
    beside = Path(__file__).with_name("semantics.md")
    page = beside if beside.is_file() else Path(__file__).parents[3] / "docs" / "semantics.md"
    return page.read_text(encoding="utf-8")
