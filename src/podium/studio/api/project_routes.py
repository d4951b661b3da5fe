"""Projects over HTTP: create them from files, list, rename and remove them, add labels, read their views."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from podium.core.errors import ParameterError
from podium.studio.api import record_models
from podium.studio.api.openapi_schema import describe_route
from podium.studio.api.request_parsing import parse_request
from podium.studio.api.route_helpers import (
    IDEMPOTENCY,
    PAGE,
    PROJECT,
    answer_once,
    current_user,
    cut_page,
    name_parameter,
    read_page,
)
from podium.studio.api.service_routes import PlainRoute, build_json_response, read_body
from podium.studio.api.upload_forms import TEXT, describe_form, read_form
from podium.studio.database import RecordNotFound
from podium.studio.form_fields import FIELDS
from podium.studio.store import Project, Store
from podium.studio.view_forwarding import run_in_process

router = APIRouter(route_class=PlainRoute)


def build_project_document(project: Project) -> dict[str, Any]:
    """A project as the API describes it."""
    files = [{"name": file.name, "uploaded": file.digest is not None} for file in project.files]
    names = ("id", "name", "kind", "made", "options")
    return {name: getattr(project, name) for name in names} | {"files": files}


@router.get(
    "/v1/projects",
    **describe_route(
        None,
        record_models.ProjectListAnswer,
        "All projects, newest first",
        422,
        tag="projects",
        parameters=PAGE,
    ),
)
async def list_projects(request: Request) -> Response:
    """Projects with the files they were opened from."""
    store, page = request.app.state.store, read_page(request)

    def list_page() -> dict[str, Any]:
        part, further = cut_page(store.projects(), page, lambda project: str(project.id))
        return {"projects": [build_project_document(store.project(p.id)) for p in part], "next": further}

    return build_json_response(await run_in_threadpool(list_page))


@router.post(
    "/v1/projects",
    **describe_route(
        None, record_models.ProjectAnswer, "Create a project from files", 408, 409, 413, 415, 422, 507,
        tag="projects", parameters=(IDEMPOTENCY,), done=201,
        more=describe_form(name=TEXT, **dict.fromkeys(FIELDS, TEXT)),
    ),
)  # fmt: skip
async def create_project(request: Request) -> Response:
    """Upload runs, qrels, votes, ratings or tables; fields set the reading options, as on the page."""
    fields, files, digest = await read_form(request)
    options = {name: fields[name].strip() for name in FIELDS if fields.get(name, "").strip()}
    unknown = fields.keys() - FIELDS.keys() - {"name"}
    if unknown:
        raise ParameterError(
            f"unknown field {min(unknown)[:50]!r}; accepted: files, name, {', '.join(FIELDS)}"
        )

    return await answer_once(
        request,
        digest,
        lambda: run_in_process(request, _create_project, files, options, fields.get("name", "")),
    )


def _create_project(
    state: Any, files: list[tuple[str, bytes]], options: dict[str, str], name: str
) -> dict[str, Any]:
    from podium.studio.pages import projects

    project = projects.open_upload(state.store, state.settings, files, options).id
    if name.strip():
        state.store.rename_project(project, name.strip()[:200])
    return build_project_document(state.store.project(project))


@router.get(
    "/v1/projects/{project}",
    **describe_route(
        None, record_models.ProjectAnswer, "One project", 404, tag="projects", parameters=(PROJECT,)
    ),
)
async def get_project(request: Request) -> Response:
    """A project with its files and reading options."""
    store, project = request.app.state.store, request.path_params["project"]
    return build_json_response(build_project_document(await run_in_threadpool(store.project, project)))


@router.patch(
    "/v1/projects/{project}",
    **describe_route(
        record_models.RenameRequest, record_models.ProjectAnswer, "Rename a project", tag="projects",
        parameters=(PROJECT,),
    ),
)  # fmt: skip
async def rename_project(request: Request) -> Response:
    """Give a project another name."""
    given = parse_request(record_models.RenameRequest, await read_body(request))
    store, project = request.app.state.store, request.path_params["project"]

    def rename() -> dict[str, Any]:
        store.rename_project(project, given.name)
        return build_project_document(store.project(project))

    return build_json_response(await run_in_threadpool(rename))


@router.delete(
    "/v1/projects/{project}",
    **describe_route(
        None, None, "Remove a project", 404, 422, tag="projects", parameters=(PROJECT,), done=204
    ),
)
async def remove_project(request: Request) -> Response:
    """Remove a project; for a day it can be restored with its jobs, models and files."""
    store, project = read_store(request)
    await run_in_threadpool(store.project, project)
    await run_in_threadpool(store.hide_project, project)
    return Response(status_code=204)


@router.post(
    "/v1/projects/{project}/restore",
    **describe_route(
        None, record_models.ProjectAnswer, "Restore a removed project", 404, 409, 422, tag="projects",
        parameters=(PROJECT, IDEMPOTENCY), done=200,
    ),
)  # fmt: skip
async def restore_project(request: Request) -> Response:
    """Undo the removal of a project, within a day."""
    store, project = read_store(request)

    def restore() -> dict[str, Any]:
        store.restore_project(project)
        return build_project_document(store.project(project))

    return await answer_once(request, b"", restore, 200)


@router.post(
    "/v1/projects/{project}/labels",
    **describe_route(
        None, record_models.ProjectAnswer, "Add labels to a project", 404, 408, 409, 413, 415, 422, 507,
        tag="projects", parameters=(PROJECT, IDEMPOTENCY), done=201, more=describe_form(encoding=TEXT),
    ),
)  # fmt: skip
async def add_labels(request: Request) -> Response:
    """Upload qrels, or a table of query, item and grade."""
    fields, files, digest = await read_form(request)
    given = (request.path_params["project"], files, fields.get("encoding", "").strip())
    return await answer_once(request, digest, lambda: run_in_process(request, _add_labels, *given))


def _add_labels(state: Any, project: str, files: list[tuple[str, bytes]], encoding: str) -> dict[str, Any]:
    from podium.studio.pages import projects

    projects.add_labels(state.store, state.settings, project, files, encoding)
    return build_project_document(state.store.project(project))


@router.delete(
    "/v1/projects/{project}/labels",
    **describe_route(
        None, None, "Remove the added labels", 404, 422, tag="projects", parameters=(PROJECT,), done=204
    ),
)
async def remove_labels(request: Request) -> Response:
    """Remove all labels that were added; those in the original files stay."""
    await run_in_threadpool(request.app.state.store.remove_labels, request.path_params["project"])
    return Response(status_code=204)


@router.get(
    "/v1/projects/{project}/views",
    **describe_route(
        None,
        record_models.ViewListAnswer,
        "The views of a project",
        404,
        tag="projects",
        parameters=(PROJECT,),
    ),
)
async def list_views(request: Request) -> Response:
    """Names of all views; which of them apply depends on the data."""
    from podium.studio.pages.view_context import views

    await run_in_threadpool(request.app.state.store.project, request.path_params["project"])
    return build_json_response({"views": sorted(views.all())})


@router.get(
    "/v1/projects/{project}/views/{view}",
    **describe_route(
        None, record_models.ViewAnswer, "One view as plain values", 404, 413, 422, 503, 504, tag="projects",
        parameters=(PROJECT, name_parameter("view")),
    ),
)  # fmt: skip
async def get_view(request: Request) -> Response:
    """The values of a page; the parameters are those of its address."""
    from podium.studio.pages.view_context import views

    scope, (project, view) = request.scope, (request.path_params[n] for n in ("project", "view"))
    if view not in views.all():
        raise RecordNotFound("no such view; see the list of views")
    inner = {**scope, "path": f"/p/{project}/{view}.json", "raw_path": b""}
    inner["path_params"], inner["podium.user"] = {}, current_user(request)

    class ForwardedResponse(Response):
        async def __call__(self, _scope: Any, receive: Any, send: Any) -> None:
            await request.app.router(inner, receive, send)

    return ForwardedResponse()


def find_record(record: Any, project: str) -> Any:
    """A job or model, if it belongs to the project."""
    if record.project != project:
        raise RecordNotFound("no such record in this project")
    return record


def read_store(request: Request) -> tuple[Store, str]:
    """The store, and the project in the address."""
    return request.app.state.store, request.path_params["project"]
