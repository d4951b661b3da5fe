"""The plan of a project over HTTP: how each of its files is read, the first rows, what is wrong, and changes."""

from __future__ import annotations

import functools
from typing import Annotated, Any, Literal

from fastapi import APIRouter
from pydantic import ConfigDict, Field
from starlette.requests import Request
from starlette.responses import Response

from podium.core import registry
from podium.core.errors import ParameterError, PodiumError
from podium.storage.files import Source
from podium.studio.api.answer_models import AnswerModel
from podium.studio.api.openapi_schema import describe_route
from podium.studio.api.request_models import Many, StrictModel
from podium.studio.api.request_parsing import parse_request
from podium.studio.api.route_helpers import IDEMPOTENCY, PROJECT, answer_once, name_parameter
from podium.studio.api.service_routes import PlainRoute, build_json_response, read_body
from podium.studio.database import RecordNotFound
from podium.studio.import_plan import FilePlan, FileUse
from podium.studio.import_problems import apply_change
from podium.studio.import_tables import ROLES, load_table
from podium.studio.loading import list_inputs, parse_plans
from podium.studio.view_forwarding import run_in_process

router = APIRouter(route_class=PlainRoute)
FILE = name_parameter("file", type="integer", minimum=0, maximum=10_000)
Choice = Annotated[str, Field(max_length=200)]


class ReadingChoices(StrictModel):
    """What to do with cells that are not as expected; an empty text is the default of the reader."""

    duplicates: Literal["", "first", "best", "sum"] | None = None
    self_votes: Literal["", "skip"] | None = None
    unlisted: Choice | None = None
    encoding: Choice | None = None
    missing: Annotated[Many[Choice], Field(max_length=100)] | None = Field(
        None, description="cells that mean that there is no value"
    )
    values: Choice | None = None
    kind: Choice | None = None


class PlanRequest(StrictModel):
    """What to change in the reading of a file; a field that is not given stays as it is."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"roles": {"doc": "item", "stars": "score"}, "choices": {"duplicates": "best"}}]
        }
    )
    use: FileUse | None = None
    format: Choice | None = Field(None, description="a name of `podium formats`; empty: detected")
    roles: Annotated[dict[str, str], Field(max_length=1000)] | None = Field(
        None, description=f"roles of columns: {', '.join(ROLES)}; columns that are not named are ignored"
    )
    header: bool | None = Field(None, description="whether the first line names the columns; null: detected")
    delimiter: Annotated[str, Field(max_length=1)] | None = None
    choices: ReadingChoices | None = None


class RemedyRequest(StrictModel):
    """A remedy of a problem of the plan, for one file or for all of them."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"change": "option.self_votes=skip", "file": 0}]}
    )
    change: Annotated[str, Field(min_length=1, max_length=1000)]
    file: Annotated[int, Field(ge=0, le=10_000)] | None = None


class ColumnAnswer(AnswerModel):
    name: str
    role: str = Field(description="empty where the format decides")


class PlannedFileAnswer(AnswerModel):
    """How a file is read, and its first rows."""

    number: int
    name: str
    size: int
    use: str
    format: str
    has_roles: bool = Field(description="whether the roles of its columns can be chosen")
    columns: list[ColumnAnswer]
    rows: list[list[str]]
    header: bool | None
    delimiter: str
    choices: dict[str, Any]
    counts: dict[str, int] = Field(description="duplicates, missing values and self-votes")


class RemedyAnswer(AnswerModel):
    label: str
    change: str
    file: int | None


class ImportProblemAnswer(AnswerModel):
    text: str
    blocks: bool = Field(description="whether the files cannot be read because of it")
    remedies: list[RemedyAnswer]


class PlanAnswer(AnswerModel):
    """How the files of a project are read; previews are of the first twelve."""

    ready: bool = Field(description="whether the files can be read")
    guessed: bool = Field(description="whether the roles were guessed and not yet confirmed")
    files: list[PlannedFileAnswer]
    further: list[str]
    problems: list[ImportProblemAnswer]


def _describe_plan(state: Any, project: str) -> dict[str, Any]:
    from podium.studio.pages.data_views import FILES, examine_files

    record, problem = state.store.project(project), None
    files = [] if record.kind == "demo" else list_inputs(state.store, record, state.settings.roots)
    plans = parse_plans(record.options) or [FilePlan() for _ in files]
    try:
        state.workspace.data(record).result()
    except PodiumError as error:
        problem = error
    previews, problems = examine_files(files, plans, problem, is_planned="plan" in record.options)
    shown = [
        {
            name: getattr(file, name)
            for name in ("number", "name", "size", "format", "has_roles", "rows", "counts")
        }
        | {"columns": [{"name": name, "role": role} for _, name, role in file.columns], "use": file.plan.use}
        | {"header": file.plan.header, "delimiter": file.plan.delimiter, "choices": file.plan.options}
        for file in previews
    ]
    named = [
        {"text": p.text, "blocks": p.blocks, "remedies": [vars(remedy) for remedy in p.remedies]}
        for p in problems
    ]
    return {
        "ready": problem is None,
        "guessed": bool(record.options.get("guessed")),
        "files": shown,
        "further": [name for name, _ in files[FILES:]],
        "problems": named,
    }


def _change_plan(state: Any, project: str, number: int, given: dict[str, Any]) -> dict[str, Any]:
    from podium.studio.pages.data_routes import change_plans

    changed = []

    def change(n: int, plan: FilePlan, file: tuple[str, bytes]) -> FilePlan:
        if n != number:
            return plan
        changed.append(n)
        return _apply_request(plan, given, file)

    change_plans(state, project, change)
    if not changed:
        raise RecordNotFound("no such file in this project")
    return _describe_plan(state, project)


def _apply_request(plan: FilePlan, given: dict[str, Any], file: tuple[str, bytes]) -> FilePlan:
    """The plan of a file after a request; what it does not name stays."""
    own = given | {
        "header": given.get("header", plan.header),
        "delimiter": given.get("delimiter", plan.delimiter),
    }
    table = load_table(Source(*file), own["delimiter"], own["header"])
    roles = given.get("roles")
    if roles is not None:
        _check_roles(roles, () if table is None else table.names)
        own["roles"] = {name: role for name, role in roles.items() if role != "ignore"}
        own.setdefault("format", "")
    if own.get("format") and own["format"] not in registry.formats.all():
        raise ParameterError(f"there is no format {own['format'][:50]!r}; see `podium formats`")
    options = plan.options | own.pop("choices", {})
    own["options"] = {name: value for name, value in options.items() if value not in ("", None)}
    new = FilePlan.from_dict(plan.to_dict() | own | {"use": plan.use})
    use = given.get("use", plan.use)
    return new if use == plan.use else apply_change(new, f"use={use}", table)


def _check_roles(roles: dict[str, str], names: tuple[str, ...]) -> None:
    for name, role in roles.items():
        if role not in ROLES:
            raise ParameterError(f"the role of {name[:50]!r} is {role[:50]!r}; accepted: {', '.join(ROLES)}")
        if name not in names:
            columns = ", ".join(names[:20]) or "none"
            raise ParameterError(f"there is no column {name[:50]!r}; the file has {columns}")


def _apply_remedy(state: Any, project: str, change: str, number: int | None) -> dict[str, Any]:
    from podium.studio.pages import data_routes

    file = "" if number is None else str(number)
    data_routes.change_plans(state, project, functools.partial(data_routes.change_by_remedy, file, change))
    return _describe_plan(state, project)


@router.get(
    "/v1/projects/{project}/plan",
    **describe_route(
        None,
        PlanAnswer,
        "How the files of a project are read",
        404,
        422,
        504,
        tag="projects",
        parameters=(PROJECT,),
    ),
)
async def get_plan(request: Request) -> Response:
    """The use, roles and choices of every file with its first twenty rows, and the problems with their remedies."""
    return build_json_response(await run_in_process(request, _describe_plan, request.path_params["project"]))


@router.patch(
    "/v1/projects/{project}/plan/{file}",
    **describe_route(
        PlanRequest, PlanAnswer, "Change how a file is read", 507, tag="projects", parameters=(PROJECT, FILE)
    ),
)
async def change_plan(request: Request) -> Response:
    """Set the use, the roles of the columns and the choices of one file; everything is read again."""
    sent = parse_request(PlanRequest, await read_body(request)).model_dump(exclude_unset=True)
    given = {name: value for name, value in sent.items() if value is not None or name == "header"}
    project, file = request.path_params["project"], request.path_params["file"]
    if not file.isdecimal() or not file.isascii() or len(file) > 6:
        raise RecordNotFound("no such file in this project")
    return build_json_response(await run_in_process(request, _change_plan, project, int(file), given))


@router.post(
    "/v1/projects/{project}/remedies",
    **describe_route(
        RemedyRequest, PlanAnswer, "Apply a remedy to the files of a project", 409, 507, tag="projects",
        parameters=(PROJECT, IDEMPOTENCY),
    ),
)  # fmt: skip
async def apply_remedy(request: Request) -> Response:
    """Apply the `change` of a remedy, as a click on the Data page does."""
    body, project = await read_body(request), request.path_params["project"]

    async def apply() -> dict[str, Any]:
        given = parse_request(RemedyRequest, body)
        return await run_in_process(request, _apply_remedy, project, given.change, given.file)

    return await answer_once(request, body, apply, 200)
