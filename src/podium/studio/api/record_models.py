"""Requests and responses about projects, jobs, models, tokens and the audit log."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from podium.studio.api.answer_models import AnswerModel
from podium.studio.api.request_models import Id, Many, Spec, StrictModel
from podium.studio.token_store import NAME

Name = Annotated[str, Field(min_length=1, max_length=200)]


class UserAnswer(AnswerModel):
    """Who sends the request."""

    name: str
    role: str


class FileAnswer(AnswerModel):
    name: str
    uploaded: bool = Field(description="false: a file on the server")


class ProjectAnswer(AnswerModel):
    """A project; times are seconds since 1970."""

    id: str
    name: str
    kind: str
    made: float
    files: list[FileAnswer]
    options: dict[str, Any] = Field(description="how its files are read")


class ProjectListAnswer(AnswerModel):
    projects: list[ProjectAnswer]
    next: str | None = Field(description="`after` of the next page")


class RenameRequest(StrictModel):
    """A new name."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"name": "autumn runs"}]})
    name: Name


class ViewListAnswer(AnswerModel):
    """The views that apply to the data of a project; each is at `/v1/projects/ID/views/NAME`."""

    views: list[str]


class ViewAnswer(AnswerModel):
    """The values of a view, which depend on it."""

    model_config = ConfigDict(extra="allow", title=None)


class FigureAnswer(AnswerModel):
    name: str
    caption: str


class FigureListAnswer(AnswerModel):
    """The figures of a view; each is at `.../figures/NAME.svg`, `.png` and `.json`."""

    figures: list[FigureAnswer]


class JobRequest(StrictModel):
    """A job: `tune` uses metric, methods, trials, weights and seed; `fit` uses method."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"kind": "tune", "trials": 50}]})
    kind: Literal["tune", "fit"]
    metric: Spec = "ndcg@10"
    methods: Annotated[Many[Spec], Field(max_length=50)] = Field(default_factory=list)
    trials: Annotated[int, Field(ge=1, le=5000)] = 200
    weights: bool = True
    seed: Annotated[int, Field(ge=0, lt=2**31)] = 0
    method: Spec = "crf"


class JobAnswer(AnswerModel):
    """A job: its settings, its progress from 0 to 1, and what it says of itself."""

    id: str
    project: str
    kind: str
    state: str = Field(description="queued, running, done, failed, cancelled or interrupted")
    share: float
    seconds_left: float | None = Field(description="an estimate, while the job is running")
    message: str
    settings: dict[str, Any]
    user: str
    model: str | None = Field(description="the fitted model, when it is done")
    result: dict[str, Any] | None
    data: str | None = Field(
        description="the fingerprint of the data that the result is for; `stale` of the view `jobs` compares it"
    )
    made: float
    ended: float | None


class JobListAnswer(AnswerModel):
    jobs: list[JobAnswer]
    next: str | None


class ModelAnswer(AnswerModel):
    """A fitted model; send its id as `model` to `/v1/aggregate`."""

    id: str
    project: str
    name: str
    method: str
    job: str | None
    made: float


class ModelListAnswer(AnswerModel):
    models: list[ModelAnswer]
    next: str | None


class WeightsRequest(StrictModel):
    """A method and the weights of its experts; those that are not named have the weight 1."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"method": "rrf", "weights": {"bm25": 0.5}}]})
    method: Spec
    weights: Annotated[dict[str, Annotated[float, Field(ge=0, le=100)]], Field(min_length=1, max_length=1000)]
    name: Annotated[str, Field(max_length=100)] = ""


class ExclusionRequest(StrictModel):
    """Annotators by their ids."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"annotators": ["worker-7"]}]})
    annotators: Annotated[Many[Id], Field(min_length=1, max_length=10_000)]


class ExcludedAnswer(AnswerModel):
    """The annotators whose judgements are left out."""

    excluded: list[str | int]
    next: str | None


class TextAnswer(AnswerModel):
    """What stands beside an item."""

    item: str
    title: str
    text: str
    url: str


class TextListAnswer(AnswerModel):
    texts: list[TextAnswer]
    next: str | None


class TokenRequest(StrictModel):
    """A name and a role."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"name": "ann", "role": "judge"}]})
    name: Annotated[str, Field(pattern=f"^{NAME.pattern}$")]
    role: Literal["viewer", "judge", "editor", "admin"]


class TokenAnswer(AnswerModel):
    name: str
    role: str
    made: float


class NewTokenAnswer(AnswerModel):
    """A token, which is shown only here."""

    name: str
    role: str
    token: str


class TokenListAnswer(AnswerModel):
    tokens: list[TokenAnswer]
    next: str | None


class AuditEntryAnswer(AnswerModel):
    """One change."""

    id: int
    at: float
    user: str
    role: str
    method: str
    route: str
    project: str | None
    status: int
    request: str = Field(description="the request id, as in the log")


class AuditAnswer(AnswerModel):
    entries: list[AuditEntryAnswer]
    next: str | None
