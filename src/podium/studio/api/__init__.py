"""The API under /v1: requests, responses, and its documentation."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.middleware.exceptions import ExceptionMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from podium.core.errors import NotFittedError, PodiumError
from podium.studio.api import (
    annotator_routes,
    collection_routes,
    docs_page,
    download_routes,
    job_routes,
    openapi_schema,
    plan_routes,
    project_routes,
    token_routes,
    vote_routes,
)
from podium.studio.api.computation_pool import ComputationPool
from podium.studio.api.service_routes import PlainRoute, build_problem_response, router
from podium.studio.database import RecordNotFound
from podium.studio.limits import TooLarge
from podium.studio.middleware import Endpoint
from podium.studio.problems import KINDS
from podium.studio.response_sender import SERVICE
from podium.studio.security import RequestRefused

__all__ = ["build_endpoints", "install_service", "respond_error"]


def install_service(app: FastAPI) -> None:
    """Add the API, its documentation and its error handlers to an application."""
    app.state.pool = ComputationPool(app.state.settings.limits, app.state.meters)
    app.openapi = lambda: openapi_schema.build_openapi(app)  # type: ignore[method-assign]
    app.include_router(router)
    for module in (
        project_routes,
        plan_routes,
        download_routes,
        annotator_routes,
        job_routes,
        token_routes,
        vote_routes,
        collection_routes,
    ):
        app.include_router(module.router)
    app.include_router(docs_page.router)
    app.add_exception_handler(MemoryError, _answer_memory_error)
    for kind in (ArithmeticError, np.linalg.LinAlgError):
        app.add_exception_handler(kind, _answer_arithmetic_error)
    app.add_exception_handler(HTTPException, _answer_http_error)


def build_endpoints(app: FastAPI) -> dict[tuple[str, str], Endpoint]:
    """The computations by method and path, each with the error handlers of the application, for the middleware."""
    routes = [
        route for route in router.routes if isinstance(route, PlainRoute) and "POST" in (route.methods or ())
    ]
    return {("POST", route.path): _handle_errors(route, app) for route in routes}


def _handle_errors(route: PlainRoute, app: FastAPI) -> Endpoint:
    """Answers of a route; the error handlers are called for a failed request only, as they wrap every message."""

    async def answer(scope: Any, receive: Any, send: Any) -> None:
        scope["route"] = route
        try:
            response = await route.endpoint(Request(scope, receive))
        except Exception as problem:
            error = problem

            async def fail(*_: Any) -> None:
                raise error

            await ExceptionMiddleware(fail, app.exception_handlers)(scope, receive, send)
            return
        await response(scope, receive, send)

    return answer


def respond_error(_request: Request, error: PodiumError) -> Response:
    """422 for library errors; the middleware answers refused requests and those beyond a limit."""
    if isinstance(error, RequestRefused | TooLarge):
        raise error
    remedy = getattr(error, "remedy", None)
    if isinstance(error, NotFittedError):
        remedy = "fit the method with `podium fit` or in the studio, then name the saved model"
    status = 404 if isinstance(error, RecordNotFound) else getattr(error, "http_status", 422)
    return build_problem_response(status, type(error).__name__, str(error), remedy or "")


async def _answer_memory_error(_request: Request, _error: Any) -> Response:
    return build_problem_response(413, "TooLarge", "not enough memory for this request", "send less")


async def _answer_arithmetic_error(_request: Request, _error: Any) -> Response:
    """Handle numerical failures from values of extreme magnitude or range."""
    message = "the numbers in this request are too large, or their range is too wide, for this computation"
    return build_problem_response(422, "InputError", message, "rescale them")


async def _answer_http_error(request: Request, error: Any) -> Response:
    """Handle framework errors: unknown paths and methods."""
    words = {404: "not found", 405: "method not allowed for this path"}
    problem = words.get(error.status_code, str(error.detail))
    answer: Response = PlainTextResponse(f"{problem}\n", error.status_code)
    if request.url.path.startswith(SERVICE):
        kind = KINDS.get(error.status_code, "Refused")
        answer = build_problem_response(error.status_code, kind, problem, "see /docs")
    answer.headers.update(error.headers or {})
    if error.status_code == 405:  # the framework names the methods of the first route with this path alone
        for pattern, calls in request.app.openapi()["paths"].items():
            if re.fullmatch(re.sub(r"\\{\w+\\}", "[^/]+", re.escape(pattern)), request.url.path):
                answer.headers["allow"] = ", ".join(sorted(verb.upper() for verb in calls))
                break
    return answer
