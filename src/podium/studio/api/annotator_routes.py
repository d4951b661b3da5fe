"""What is left out of a project and what stands beside its items, over HTTP: excluded annotators, item texts."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from podium.studio.api import record_models
from podium.studio.api.openapi_schema import describe_route
from podium.studio.api.project_routes import build_project_document, read_store
from podium.studio.api.request_parsing import parse_request
from podium.studio.api.route_helpers import (
    FIRST_PAGE,
    IDEMPOTENCY,
    PAGE,
    PROJECT,
    PageRange,
    answer_once,
    cut_page,
    digest_id,
    read_page,
)
from podium.studio.api.service_routes import PlainRoute, build_json_response, read_body
from podium.studio.api.upload_forms import describe_form, read_form
from podium.studio.view_forwarding import run_in_process

router = APIRouter(route_class=PlainRoute)


def _list_excluded(state: Any, project: str, page: PageRange = FIRST_PAGE) -> dict[str, Any]:
    state.store.project(project)
    part, further = cut_page(state.workspace.votes.excluded_annotators(project), page, digest_id)
    return {"excluded": part, "next": further}


@router.get(
    "/v1/projects/{project}/annotators",
    **describe_route(
        None, record_models.ExcludedAnswer, "The excluded annotators", 404, 422, tag="votes",
        parameters=(PROJECT, *PAGE),
    ),
)  # fmt: skip
async def list_excluded_annotators(request: Request) -> Response:
    """Annotators whose judgements are left out of all views; the view `annotators` has the quality of each."""
    state, project = request.app.state, request.path_params["project"]
    return build_json_response(await run_in_threadpool(_list_excluded, state, project, read_page(request)))


async def _apply_action(request: Request, action: str) -> Response:
    from podium.studio.pages.worker_routes import apply_exclusion

    body, project = await read_body(request), request.path_params["project"]

    async def change() -> dict[str, Any]:
        named = parse_request(record_models.ExclusionRequest, body).annotators
        await run_in_process(request, apply_exclusion, project, action, [str(name) for name in named])
        return await run_in_threadpool(_list_excluded, request.app.state, project)

    return await answer_once(request, body, change, 200)


def _describe_change(summary: str) -> dict[str, Any]:
    return describe_route(
        record_models.ExclusionRequest, record_models.ExcludedAnswer, summary, 409, 507, tag="votes",
        parameters=(PROJECT, IDEMPOTENCY),
    )  # fmt: skip


@router.post("/v1/projects/{project}/annotators/exclude", **_describe_change("Exclude annotators"))
async def exclude_annotators(request: Request) -> Response:
    """Leave out the judgements of annotators; every view is computed again without them."""
    return await _apply_action(request, "exclude")


@router.post("/v1/projects/{project}/annotators/restore", **_describe_change("Restore excluded annotators"))
async def restore_annotators(request: Request) -> Response:
    """Count the judgements of excluded annotators again."""
    return await _apply_action(request, "restore")


# -- texts ---------------------------------------------------------------------------------------------------------


@router.post(
    "/v1/projects/{project}/texts",
    **describe_route(
        None, record_models.ProjectAnswer, "Set the texts of the items", 404, 408, 409, 413, 415, 422, 507,
        tag="projects", parameters=(PROJECT, IDEMPOTENCY), done=201, more=describe_form(),
    ),
)  # fmt: skip
async def set_texts(request: Request) -> Response:
    """Upload tables of item ids with titles, texts or addresses, in place of those that the project has."""
    from podium.studio.pages.data_routes import add_texts

    (store, project), (_, files, digest) = read_store(request), await read_form(request)

    async def add() -> dict[str, Any]:
        await run_in_process(request, add_texts, project, files)
        return build_project_document(await run_in_threadpool(store.project, project))

    return await answer_once(request, digest, add)


@router.delete(
    "/v1/projects/{project}/texts",
    **describe_route(
        None, None, "Remove the added texts", 404, 422, tag="projects", parameters=(PROJECT,), done=204
    ),
)
async def remove_texts(request: Request) -> Response:
    """Remove all texts that were added."""
    store, project = read_store(request)
    await run_in_threadpool(store.add_texts, project, [])
    return Response(status_code=204)
