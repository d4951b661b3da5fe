"""Jobs and fitted models over HTTP: start and stop jobs, keep weights as a model, apply a method to new files."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from podium.core.errors import ParameterError
from podium.studio import job_kinds
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
from podium.studio.api.upload_forms import TEXT, describe_form, read_form
from podium.studio.job_queue import Job
from podium.studio.store import StoredModel
from podium.studio.view_forwarding import run_in_process

JOB, MODEL = name_parameter("job"), name_parameter("model")
USED = {"tune": ("metric", "methods", "trials", "weights", "seed"), "fit": ("method",)}  # settings of a job

router = APIRouter(route_class=PlainRoute)


def _build_job_document(job: Job) -> dict[str, Any]:
    names = ("id", "project", "kind", "state", "share", "settings", "user", "made", "ended")
    result = job.result if isinstance(job.result, dict) else {}
    document = {name: getattr(job, name) for name in names}
    more = {"model": result.get("model"), "result": result.get("document"), "data": job.fingerprint}
    return document | {"message": job.words, "seconds_left": job.estimate_seconds_left()} | more


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
            store.job(job_kinds.queue_job(store, project, given["kind"], settings, user))
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
    **describe_route(
        None,
        record_models.JobAnswer,
        "Stop a job",
        404,
        409,
        422,
        tag="jobs",
        parameters=(PROJECT, JOB, IDEMPOTENCY),
    ),
)
async def stop_job(request: Request) -> Response:
    """A queued job stops at once, a running one within seconds."""
    store, project = read_store(request)

    def stop() -> dict[str, Any]:
        job = find_record(store.job(request.path_params["job"]), project)
        store.cancel(job.id)
        return _build_job_document(store.job(job.id))

    return await answer_once(request, b"", stop, 200)


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


@router.post(
    "/v1/projects/{project}/models",
    **describe_route(
        record_models.WeightsRequest, record_models.ModelAnswer, "Keep a method with weights as a model", 409, 507,
        tag="models", parameters=(PROJECT, IDEMPOTENCY), done=201,
    ),
)  # fmt: skip
async def keep_weights(request: Request) -> Response:
    """Store a method whose experts have other weights than 1."""
    body, (store, project) = await read_body(request), read_store(request)

    async def keep() -> dict[str, Any]:
        from podium.studio.pages.explain_routes import store_weights
        from podium.studio.pages.explanation_views import MARK

        given = parse_request(record_models.WeightsRequest, body)
        weights = [(f"{MARK}{expert}", repr(weight)) for expert, weight in given.weights.items()]
        fields = [("m", given.method), ("name", given.name), *weights]
        model, _ = await run_in_process(request, store_weights, project, fields)
        return _build_model_document(store.model(model))

    return await answer_once(request, body, keep)


@router.post(
    "/v1/projects/{project}/apply",
    **describe_route(
        None, bytes, "Apply a method or model to new files", 404, 408, 413, 415, 422, 504, tag="models",
        parameters=(PROJECT,), more=describe_form(method=TEXT, format=TEXT),
    ),
)  # fmt: skip
async def apply_method(request: Request) -> Response:
    """Aggregate files with a method, such as `rrf`, or a model of the project, `model:ID`.

    Nothing is stored, so a request can be repeated without a key.

    `format` names how the result is written: trec (the default), csv, jsonl, parquet or another one.
    """
    from podium.studio.pages import apply_views

    fields, files, _ = await read_form(request)
    unknown = fields.keys() - {"method", "format"}
    if unknown:
        raise ParameterError(f"unknown field {min(unknown)[:50]!r}; accepted: files, method, format")
    method, wanted = fields.get("method") or "rrf", fields.get("format") or apply_views.FIRST
    project = request.path_params["project"]
    content = await run_in_process(request, apply_views.apply_method, project, method, wanted, files)
    return apply_views.respond_result(content, wanted)
