"""The textbook rules that engines have forms of: sums of 1 / (k + rank), and sums of normalized scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from podium.methods.base import Aggregator
from podium.methods.input_checks import Weights

__all__ = ["Rewriting", "Textbook", "read_textbook"]


@dataclass(frozen=True)
class Textbook:
    """A rule as published, with its weights as factors."""

    kind: Literal["ranks", "scores"]
    k: float = 60.0
    normalizer: str = "minmax"  # of `combsum`, or dbsf_population
    weights: Weights | None = None
    reason: str = ""  # why a method is only near to the rule; empty: it computes the rule

    def describe(self) -> str:
        """The rule in words, without weights."""
        if self.kind == "ranks":
            return f"1 / ({self.k:g} + rank)"
        return f"sums of scores with the normalizer {self.normalizer}"


@dataclass(frozen=True)
class Rewriting:
    """The method of an engine that stands for a rule; `reason` says why it is not the same, empty if it is."""

    method: Aggregator
    reason: str = ""
    notes: tuple[str, ...] = ()
    from_textbook: bool = False


def read_textbook(method: Any) -> Textbook | None:
    """The textbook rule that a method computes, or None.

    >>> from podium import make
    >>> read_textbook(make("rrf(k=20)")), read_textbook(make("borda"))
    (Textbook(kind='ranks', k=20, normalizer='minmax', weights=None, reason=''), None)
    """
    weights = method.weights
    if method.name == "rrf":
        return Textbook("ranks", k=method.k, weights=weights)
    if method.name == "weighted_rrf" and hasattr(method, "weights_"):
        return Textbook("ranks", k=method.k, weights=method.weights_)
    if method.name == "combsum":
        return Textbook("scores", normalizer=method.normalizer, weights=weights)
    if method.name == "rsf":
        return Textbook("scores", normalizer="minmax", weights=weights)
    if method.name == "dbsf":
        rule = "dbsf" if method.deviation == "sample" else "dbsf_population"
        return Textbook("scores", normalizer=rule, weights=weights)
    return method.get_textbook() if method.tags.dialect else None
