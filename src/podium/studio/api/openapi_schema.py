"""The API's description: its methods, and OpenAPI generated from the classes that validate requests."""

from __future__ import annotations

import functools
from typing import Any, cast

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel
from pydantic.json_schema import JsonSchemaMode, models_json_schema

from podium.core import registry
from podium.methods.describe import describe_method
from podium.studio.api import answer_models

ERRORS = {
    400: "The body is not JSON",
    401: "The token is missing or wrong",
    403: "The request comes from another site",
    404: "Model not found",
    408: "The body did not arrive in time",
    413: "The request exceeds a limit of the server",
    415: "Not JSON, or an unknown content encoding",
    421: "The Host header names another server",
    422: "The request is invalid",
    429: "Too many concurrent requests",
    503: "All workers are busy",
    504: "The computation timed out",
}
ALWAYS = (401, 421, 429)
MODELS: list[type[BaseModel]] = []  # of the requests of all routes
ANSWERS: list[type[BaseModel]] = [answer_models.ErrorAnswer]


def describe_route(
    request: type[BaseModel] | None, answer: type[BaseModel], summary: str, *statuses: int
) -> dict[str, Any]:
    """Route arguments for FastAPI; bodies are parsed from bytes elsewhere, so only schemas are named."""
    ANSWERS.append(answer)
    more = tuple(ERRORS) if request is not None else (*ALWAYS, *statuses)
    responses = {code: _build_content(answer_models.ErrorAnswer, ERRORS[code]) for code in more}
    extra = {}
    if request is not None:
        MODELS.append(request)
        extra = {"requestBody": _build_content(request, "") | {"required": True}}
    responses[200] = _build_content(answer, "Done")
    return {"summary": summary, "response_model": None, "responses": responses, "openapi_extra": extra}


def _build_content(model: type[BaseModel], description: str) -> dict[str, Any]:
    schema = {"$ref": f"#/components/schemas/{model.__name__}"}
    return {"description": description, "content": {"application/json": {"schema": schema}}}


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
        if app.state.settings.token_hash is not None:
            components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
            document["security"] = [{"token": []}]
        app.openapi_schema = document
    return app.openapi_schema


ABOUT = (
    "Preference and rank aggregation over HTTP. Validation is strict: true and NaN are not numbers, and an "
    "unknown field is an error. Every response contains the fingerprint of the data, the method with its "
    "parameters, and the duration. Every error has a type, a message and a remedy."
)


def describe_methods() -> list[dict[str, Any]]:
    """Every registered method with its parameters."""
    registry.aggregators.all()
    return _describe_all(registry.aggregators.changes)


@functools.lru_cache(maxsize=1)
def _describe_all(changes: int) -> list[dict[str, Any]]:  # noqa: ARG001 - a new definition makes the old list stale
    return [describe_method(cls) for cls in registry.aggregators.all().values()]
