"""Response models of the API, used by the documentation and the contract tests."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

Id = str | int


class AnswerModel(BaseModel):
    """All fields are required, no others are allowed."""

    model_config = ConfigDict(extra="forbid", title=None)


class Problem(AnswerModel):
    """The body of every error: problem details, as in RFC 9457."""

    type: str = Field(description="urn:podium:problem: and the kind of error")
    title: str
    status: int
    detail: str
    remedy: str = Field(description="how to fix it")


class Method(AnswerModel):
    """The method used: its name, all its parameters, and both as a specification for later requests."""

    name: str
    spec: str
    parameters: dict[str, Any]


class ComputedAnswer(AnswerModel):
    """Fields common to all computed responses."""

    fingerprint: str = Field(description="of the data: equal data have equal fingerprints")
    milliseconds: float
    warnings: list[str]


class FuseAnswer(ComputedAnswer):
    """Items best first, their scores, and whether each shares its score with another."""

    items: list[Id]
    scores: list[float]
    tied: list[bool]
    method: Method


class Ranking(AnswerModel):
    query: Id
    items: list[Id]
    scores: list[float]
    tied: list[bool]


class ExpertWeightRow(AnswerModel):
    expert: Id
    weight: float


class DiagnosticsAnswer(AnswerModel):
    converged: bool
    iterations: int | None
    objective: float | None
    notes: list[str]


class AggregateAnswer(ComputedAnswer):
    results: list[Ranking]
    weights: list[ExpertWeightRow]
    diagnostics: DiagnosticsAnswer
    method: Method


class QueryValues(AnswerModel):
    query: Id
    values: dict[str, float | None]


class EvaluationRow(AnswerModel):
    name: str
    kind: str = Field(description="expert or method")
    expert: Id | None
    method: Method | None
    mean: dict[str, float | None]
    queries: int
    missing: int
    unlabelled: int
    per_query: list[QueryValues] | None


class EvaluateAnswer(ComputedAnswer):
    results: list[EvaluationRow]


class ExplainAnswer(ComputedAnswer):
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


class LeaderboardAnswer(ComputedAnswer):
    """As `podium leaderboard --json`."""

    settings: dict[str, Any]
    votes: float
    rows: list[dict[str, Any]]
    groups: list[list[Id]]
    scheme: dict[str, Any]
    looks: str
    verdict: str
    checks: list[dict[str, Any]]
    stop: bool
    reason: str
    next: list[dict[str, Any]]


class AnnotatorsAnswer(ComputedAnswer):
    """As `podium annotators --json`."""

    level: float
    counts: dict[str, int]
    effective: float | None
    copies: list[list[Id]]
    reversal: dict[str, Any] | None
    coefficients: list[dict[str, Any]]
    lines: list[str]
    rows: list[dict[str, Any]]
    method: Method


class MethodsAnswer(AnswerModel):
    methods: list[dict[str, Any]]


class Health(AnswerModel):
    status: str
    version: str


class Readiness(AnswerModel):
    """Whether requests can be accepted, and each check: ok, or what is wrong."""

    status: str
    version: str
    checks: dict[str, str]
