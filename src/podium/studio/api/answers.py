"""What the service answers; the documentation and the contract tests read these."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

__all__ = [
    "AggregateAnswer",
    "AnnotatorsAnswer",
    "Error",
    "EvaluateAnswer",
    "ExplainAnswer",
    "FuseAnswer",
    "Health",
    "LeaderboardAnswer",
    "MethodsAnswer",
]

Id = str | int


class Answer(BaseModel):
    """No field is left out, none is added."""

    model_config = ConfigDict(extra="forbid", title=None)


class Problem(Answer):
    type: str
    message: str
    remedy: str = Field(description="what to do about it")


class Error(Answer):
    """Every error."""

    error: Problem


class Method(Answer):
    """The method that answered: its name, all its parameters, and both as text that can be sent again."""

    name: str
    spec: str
    parameters: dict[str, Any]


class Made(Answer):
    """What every computed answer says of itself."""

    fingerprint: str = Field(description="of the data: equal data have equal fingerprints")
    milliseconds: float
    warnings: list[str]


class FuseAnswer(Made):
    """Items best first, their scores, and whether each shares its score with another."""

    items: list[Id]
    scores: list[float]
    tied: list[bool]
    method: Method


class Ranking(Answer):
    query: Id
    items: list[Id]
    scores: list[float]
    tied: list[bool]


class Weight(Answer):
    expert: Id
    weight: float


class Diagnostics(Answer):
    converged: bool
    iterations: int | None
    objective: float | None
    notes: list[str]


class AggregateAnswer(Made):
    results: list[Ranking]
    weights: list[Weight]
    diagnostics: Diagnostics
    method: Method


class QueryValues(Answer):
    query: Id
    values: dict[str, float | None]


class Evaluated(Answer):
    name: str
    kind: str = Field(description="expert or method")
    expert: Id | None
    method: Method | None
    mean: dict[str, float | None]
    queries: int
    missing: int
    unlabelled: int
    per_query: list[QueryValues] | None


class EvaluateAnswer(Made):
    results: list[Evaluated]


class ExplainAnswer(Made):
    """As `podium explain --json`."""

    query: Id
    items: list[dict[str, Any]]
    exact: bool
    above: dict[str, Any] | None
    below: dict[str, Any] | None
    experts: list[dict[str, Any]]
    changes: list[dict[str, Any]]
    complete: bool
    text: list[str]
    method: Method


class LeaderboardAnswer(Made):
    """As `podium leaderboard --json`."""

    settings: dict[str, Any]
    votes: float
    rows: list[dict[str, Any]]
    groups: list[list[Id]]
    verdict: str
    checks: list[dict[str, Any]]
    stop: bool
    reason: str
    next: list[dict[str, Any]]


class AnnotatorsAnswer(Made):
    """As `podium annotators --json`."""

    level: float
    counts: dict[str, int]
    effective: float | None
    copies: list[list[Id]]
    lines: list[str]
    rows: list[dict[str, Any]]
    method: Method


class MethodsAnswer(Answer):
    methods: list[dict[str, Any]]


class Health(Answer):
    status: str
    version: str
