"""The API's description: its methods, and OpenAPI generated from the classes that validate requests."""

from __future__ import annotations

import functools
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from podium.studio.api import answer_models, request_models

__all__ = ["build_openapi", "describe_methods", "describe_route"]

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
MODELS: tuple[type[BaseModel], ...] = (
    request_models.FuseRequest,
    request_models.AggregateRequest,
    request_models.EvaluateRequest,
    request_models.ExplainRequest,
    request_models.LeaderboardRequest,
    request_models.AnnotatorsRequest,
)
ANSWERS: tuple[type[BaseModel], ...] = (
    answer_models.FuseAnswer,
    answer_models.AggregateAnswer,
    answer_models.EvaluateAnswer,
    answer_models.ExplainAnswer,
    answer_models.LeaderboardAnswer,
    answer_models.AnnotatorsAnswer,
    answer_models.MethodsAnswer,
    answer_models.Health,
    answer_models.ErrorAnswer,
)


def describe_route(
    request: type[BaseModel] | None, answer: type[BaseModel], summary: str, *statuses: int
) -> dict[str, Any]:
    """Route arguments for FastAPI; bodies are parsed from bytes elsewhere, so only schemas are named."""
    more = tuple(ERRORS) if request is not None else (*ALWAYS, *statuses)
    responses: dict[int, Any] = {
        code: _build_content(answer_models.ErrorAnswer, ERRORS[code]) for code in more
    }
    responses[200] = _build_content(answer, "Done")
    extra = {} if request is None else {"requestBody": _build_content(request, "") | {"required": True}}
    return {
        "summary": summary,
        "response_model": None,
        "responses": responses,
        "openapi_extra": extra,
    }


def _build_content(model: type[BaseModel], description: str) -> dict[str, Any]:
    schema = {"$ref": f"#/components/schemas/{model.__name__}"}
    return {"description": description, "content": {"application/json": {"schema": schema}}}


def build_openapi(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI document; built once."""
    if app.openapi_schema is None:
        found = get_openapi(
            title=app.title, version=app.version, summary=app.summary, description=ABOUT, routes=app.routes
        )
        template = "#/components/schemas/{model}"
        _, told = models_json_schema([(m, "validation") for m in MODELS], ref_template=template)
        _, told_back = models_json_schema([(m, "serialization") for m in ANSWERS], ref_template=template)
        components = found.setdefault("components", {})
        components["schemas"] = dict(sorted((told["$defs"] | told_back["$defs"]).items()))
        if app.state.settings.token_hash is not None:
            components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
            found["security"] = [{"token": []}]
        app.openapi_schema = found
    return app.openapi_schema


ABOUT = (
    "Preference and rank aggregation over HTTP. Validation is strict: true and NaN are not numbers, and an "
    "unknown field is an error. Every response contains the fingerprint of the data, the method with its "
    "parameters, and the duration. Every error has a type, a message and a remedy."
)


@functools.lru_cache(maxsize=1)
def _describe_all(changes: int) -> list[dict[str, Any]]:  # noqa: ARG001 - a new definition makes the old list stale
    from podium.core import registry
    from podium.methods.describe import describe_method

    return [describe_method(cls) for cls in registry.aggregators.all().values()]


def describe_methods() -> list[dict[str, Any]]:
    """Every registered method with its parameters."""
    from podium.core import registry

    registry.aggregators.all()
    return _describe_all(registry.aggregators.changes)
