"""The API's description: its methods, and OpenAPI generated from the classes that validate requests."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any, cast

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel
from pydantic.json_schema import JsonSchemaMode, models_json_schema

from podium.core import registry
from podium.methods.describe import describe_method
from podium.studio.api import answer_models
from podium.studio.problems import PROBLEM
from podium.studio.security import OPEN, SESSION

ERRORS = {
    400: "The body is not JSON",
    401: "The token is missing or wrong",
    403: "The request comes from another site, or the user lacks the role",
    404: "Not found",
    408: "The body did not arrive in time",
    409: "A request with the same idempotency key is running",
    413: "The request exceeds a limit of the server",
    415: "Not JSON, or an unknown content encoding",
    421: "The Host header names another server",
    422: "The request is invalid",
    429: "Too many requests at once",
    503: "All processes are busy, or the server is not ready",
    504: "The computation timed out",
    507: "The disk of the server is full",
}
ALWAYS = (401, 403, 421, 429, 503)
COMPUTED = (400, 404, 408, 413, 415, 422, 504)  # further ones of requests with a JSON body
TAGS = {
    "computations": "Fuse, evaluate and explain what the request contains; nothing is stored",
    "projects": "Stored data, and the views of them",
    "jobs": "Tuning and fitting in the background",
    "models": "Fitted models",
    "votes": "Questions for judges, and their votes",
    "users": "Tokens, roles, and the audit log",
    "operation": "Whether the server works",
}
MODELS: list[type[BaseModel]] = []  # of the requests of all routes
ANSWERS: list[type[BaseModel]] = [answer_models.Problem]


def describe_route(
    request: type[BaseModel] | None,
    answer: type[BaseModel] | type[bytes] | None,
    summary: str,
    *statuses: int,
    tag: str = "computations",
    parameters: Sequence[dict[str, Any]] = (),
    done: int = 200,
    more: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Route arguments for FastAPI; bodies are parsed from bytes elsewhere, so only schemas are named.

    `answer` is None where there is no body, and `bytes` for a file; `statuses` are those of further errors.
    """
    codes = {*ALWAYS, *statuses, *(COMPUTED if request is not None else ())}
    if {"limit", "after"} & {parameter["name"] for parameter in parameters}:
        codes.add(422)
    responses: dict[int | str, Any] = {
        code: {"description": ERRORS[code], "content": {PROBLEM: {"schema": _refer(answer_models.Problem)}}}
        for code in sorted(codes)
    }
    responses[done] = {"description": "Done"}
    if answer is bytes:
        schema = {"type": "string", "format": "binary"}
        responses[done]["content"] = {"application/octet-stream": {"schema": schema}}
    elif answer is not None:
        ANSWERS.append(cast("type[BaseModel]", answer))
        responses[done]["content"] = {"application/json": {"schema": _refer(ANSWERS[-1])}}
    extra = dict(more or {}) | ({"parameters": list(parameters)} if parameters else {})
    if request is not None:
        MODELS.append(request)
        content = {"application/json": {"schema": _refer(request)}}
        extra["requestBody"] = {"content": content, "required": True}
    return {
        "summary": summary,
        "response_model": None,
        "status_code": done,
        "responses": responses,
        "openapi_extra": extra,
        "tags": [tag],
    }


def _refer(model: type[BaseModel]) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{model.__name__}"}


def build_openapi(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI document; built once."""
    if app.openapi_schema is None:
        document = get_openapi(
            title=app.title, version=app.version, summary=app.summary, description=ABOUT, routes=app.routes
        )
        template = "#/components/schemas/{model}"
        modes = ((MODELS, "validation"), (ANSWERS, "serialization"))
        every = [(m, cast("JsonSchemaMode", mode)) for models, mode in modes for m in models]
        _, schemas = models_json_schema(every, ref_template=template)
        components = document.setdefault("components", {})
        components["schemas"] = dict(sorted(schemas["$defs"].items()))
        document["tags"] = [{"name": name, "description": words} for name, words in TAGS.items()]
        settings = app.state.settings
        if settings.token_hash is not None or settings.has_tokens:
            components["securitySchemes"] = {
                "token": {"type": "http", "scheme": "bearer"},
                "session": {"type": "apiKey", "in": "cookie", "name": SESSION},
            }
            document["security"] = [{"token": []}, {"session": []}]
            for path in OPEN & document["paths"].keys():
                for call in document["paths"][path].values():
                    call["security"] = []
        if settings.public_url:
            document["servers"] = [{"url": settings.public_url.rstrip("/")}]
        app.openapi_schema = document
    return app.openapi_schema


ABOUT = (
    "Preference and rank aggregation over HTTP. Validation is strict: true and NaN are not numbers, and an "
    "unknown field is an error. Every response contains the fingerprint of the data, the method with its "
    "parameters, and the duration. Every error is a problem document (RFC 9457) with a "
    "remedy, and every response has an X-Request-ID."
)


def describe_methods() -> list[dict[str, Any]]:
    """Every registered method with its parameters."""
    registry.aggregators.all()
    return _describe_all(registry.aggregators.changes)


@functools.lru_cache(maxsize=1)
def _describe_all(changes: int) -> list[dict[str, Any]]:  # noqa: ARG001 - a new definition makes the old list stale
    return [describe_method(cls) for cls in registry.aggregators.all().values()]
