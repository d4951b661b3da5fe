"""Jobs and fitted models over HTTP."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from podium.studio import job_worker
from podium.studio.api import record_models
from podium.studio.api.openapi_schema import describe_route
from podium.studio.api.project_routes import find_record, read_store
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
from podium.studio.job_queue import Job
from podium.studio.store import StoredModel

JOB, MODEL = name_parameter("job"), name_parameter("model")
USED = {"tune": ("metric", "methods", "trials", "weights", "seed"), "fit": ("method",)}  # settings of a job

router = APIRouter(route_class=PlainRoute)


def _build_job_document(job: Job) -> dict[str, Any]:
    names = ("id", "project", "kind", "state", "share", "settings", "user", "made", "ended")
    result = job.result if isinstance(job.result, dict) else {}
    document = {name: getattr(job, name) for name in names}
    return document | {"message": job.words, "model": result.get("model"), "result": result.get("document")}


def _build_model_document(model: StoredModel) -> dict[str, Any]:
    return {name: getattr(model, name) for name in ("id", "project", "name", "method", "job", "made")}


@router.get(
    "/v1/projects/{project}/jobs",
    **describe_route(
        None, record_models.JobListAnswer, "Jobs of a project, newest first", 404, 422, tag="jobs",
        parameters=(PROJECT, *PAGE),
    ),
)  # fmt: skip
async def list_jobs(request: Request) -> Response:
    """Jobs with their progress."""
    (store, project), page = read_store(request), read_page(request)

    def list_page() -> dict[str, Any]:
        store.project(project)
        part, further = cut_page(store.jobs(project), page, lambda job: str(job.id))
        return {"jobs": [_build_job_document(job) for job in part], "next": further}

    return build_json_response(await run_in_threadpool(list_page))


@router.post(
    "/v1/projects/{project}/jobs",
    **describe_route(
        record_models.JobRequest, record_models.JobAnswer, "Start a job", 409, 507, tag="jobs",
        parameters=(PROJECT, IDEMPOTENCY), done=201,
    ),
)  # fmt: skip
async def start_job(request: Request) -> Response:
    """Tune methods, or fit one, in the background."""
    body, (store, project) = await read_body(request), read_store(request)
    user = current_user(request).name

    def start() -> dict[str, Any]:
        given = parse_request(record_models.JobRequest, body).model_dump()
        settings = {name: given[name] for name in USED[given["kind"]]}
        return _build_job_document(
            store.job(job_worker.queue_job(store, project, given["kind"], settings, user))
        )

    response = await answer_once(request, body, start)
    request.app.state.keeper.wake()
    return response


@router.get(
    "/v1/projects/{project}/jobs/{job}",
    **describe_route(None, record_models.JobAnswer, "One job", 404, tag="jobs", parameters=(PROJECT, JOB)),
)
async def get_job(request: Request) -> Response:
    """A job with its progress and result."""
    store, project = read_store(request)
    job = find_record(await run_in_threadpool(store.job, request.path_params["job"]), project)
    return build_json_response(_build_job_document(job))


@router.post(
    "/v1/projects/{project}/jobs/{job}/stop",
    **describe_route(None, record_models.JobAnswer, "Stop a job", 404, tag="jobs", parameters=(PROJECT, JOB)),
)
async def stop_job(request: Request) -> Response:
    """A queued job stops at once, a running one within seconds."""
    store, project = read_store(request)

    def stop() -> dict[str, Any]:
        job = find_record(store.job(request.path_params["job"]), project)
        store.cancel(job.id)
        return _build_job_document(store.job(job.id))

    return build_json_response(await run_in_threadpool(stop))


@router.get(
    "/v1/projects/{project}/models",
    **describe_route(
        None, record_models.ModelListAnswer, "Fitted models of a project, newest first", 404, 422, tag="models",
        parameters=(PROJECT, *PAGE),
    ),
)  # fmt: skip
async def list_models(request: Request) -> Response:
    """Models that `/v1/aggregate` and `/v1/explain` apply."""
    (store, project), page = read_store(request), read_page(request)

    def list_page() -> dict[str, Any]:
        store.project(project)
        part, further = cut_page(store.models(project), page, lambda model: str(model.id))
        return {"models": [_build_model_document(model) for model in part], "next": further}

    return build_json_response(await run_in_threadpool(list_page))


@router.get(
    "/v1/projects/{project}/models/{model}",
    **describe_route(
        None, record_models.ModelAnswer, "One model", 404, tag="models", parameters=(PROJECT, MODEL)
    ),
)
async def get_model(request: Request) -> Response:
    """A model without its content."""
    store, project = read_store(request)
    model = find_record(await run_in_threadpool(store.model, request.path_params["model"]), project)
    return build_json_response(_build_model_document(model))


@router.get(
    "/v1/projects/{project}/models/{model}/file",
    **describe_route(None, bytes, "The file of a model", 404, tag="models", parameters=(PROJECT, MODEL)),
)
async def get_model_file(request: Request) -> Response:
    """The file for `podium apply`."""
    store, project = read_store(request)
    model = find_record(await run_in_threadpool(store.model, request.path_params["model"]), project)
    content = await run_in_threadpool(store.model_bytes, model.id)
    return Response(content, media_type="application/octet-stream")
