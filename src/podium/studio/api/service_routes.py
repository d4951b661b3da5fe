"""The routes of the API. Each calls a library function and adds the fields common to all responses.

Bodies are JSON, possibly compressed, with a timeout; the middleware limits their length.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any

from fastapi import APIRouter
from fastapi.routing import APIRoute
from msgspec.json import encode
from pydantic import BaseModel
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from podium.core.errors import InputError
from podium.core.version import __version__
from podium.studio.api import answer_models, compute_answers, fuse_answers, request_models
from podium.studio.api.openapi_schema import describe_methods, describe_route
from podium.studio.api.request_parsing import parse_request
from podium.studio.limits import TooLarge, bounded_decompress
from podium.studio.problems import PROBLEM, problem_document
from podium.studio.security import RequestRefused
from podium.studio.settings import Limits
from podium.studio.telemetry import CONTENT_TYPE
from podium.studio.view_forwarding import forward_computation

UNPACKED = 4  # decompressed size limit, as a multiple of the body size limit


async def read_body(request: Request) -> bytes:
    """The whole body, decompressed; refused if it does not arrive within the request timeout."""
    limits: Limits = request.app.state.settings.limits
    headers = dict(reversed(request.scope["headers"]))  # of a repeated header, the first one counts
    if headers.get(b"content-type", b"").partition(b";")[0].strip().lower() != b"application/json":
        raise RequestRefused(415, "the body is not application/json", "send JSON with that Content-Type")
    coding = headers.get(b"content-encoding", b"identity").strip().lower()
    if coding not in (b"identity", b"gzip"):
        raise RequestRefused(415, "unknown content encoding", "use Content-Encoding: gzip, or none")
    message = await request.receive()  # with a deadline for the whole body, by the middleware
    body: bytes = message.get("body", b"")
    if message.get("more_body", False) or message["type"] == "http.disconnect":
        parts = [body]
        while message.get("more_body", False):
            message = await request.receive()
            parts.append(message.get("body", b""))
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        body = b"".join(parts)
    if coding == b"identity":
        return body
    if body[:2] != b"\x1f\x8b":
        raise RequestRefused(400, "the body is not gzip data", "leave Content-Encoding out")
    most = min(UNPACKED * limits.body_bytes, limits.decompressed_bytes)
    try:
        return bounded_decompress(body, replace(limits, decompressed_bytes=most))
    except TooLarge:
        raise
    except InputError as error:
        raise RequestRefused(400, error.problem, error.remedy or "") from None


LONG = 1 << 17  # bytes of a body that is not parsed in the event loop


class PlainRoute(APIRoute):
    """A route whose function maps a request to a response; FastAPI does not inspect its signature."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The function itself."""
        return self.endpoint


router = APIRouter(route_class=PlainRoute)


def build_json_response(document: Any, status: int = 200) -> Response:
    """A JSON response; non-finite numbers become null."""
    return Response(encode(document), status, media_type="application/json")


def build_problem_response(status: int, kind: str, detail: str, remedy: str = "") -> Response:
    """An error as problem details."""
    return Response(encode(problem_document(status, kind, detail, remedy)), status, media_type=PROBLEM)


def _finish_answer(document: dict[str, Any], warned: list[str], begin: float) -> Response:
    document["warnings"] = warned
    document["milliseconds"] = (time.perf_counter() - begin) * 1000
    return build_json_response(document)


@router.post(
    "/v1/fuse",
    **describe_route(request_models.FuseRequest, answer_models.FuseAnswer, "Fuse a few lists for one query"),
)
async def fuse(request: Request) -> Response:
    """Fuse plain lists into one: `podium.fuse`. Small requests run in the event loop, others in a worker."""
    begin, body, state = time.perf_counter(), await read_body(request), request.app.state
    given = fuse_answers.parse_fuse_request(body) if len(body) <= LONG else None
    if given is not None and fuse_answers.is_quick(given):
        return _finish_answer(fuse_answers.answer_fuse(given, state), [], begin)
    if state.processes is not None:
        return await forward_computation(request, body)
    document, warned = await state.pool.run(
        lambda: fuse_answers.answer_fuse(given or fuse_answers.parse_fuse_request(body), state)
    )
    return _finish_answer(document, warned, begin)


def _add_computation(work: Callable[[Any, Any], dict[str, Any]], summary: str) -> None:
    """Add /v1/NAME for `answer_NAME`, which a worker applies to a `NameRequest`; its docstring describes it."""
    name = work.__name__.removeprefix("answer_")
    model: type[BaseModel] = getattr(request_models, f"{name.capitalize()}Request")
    answer: type[BaseModel] = getattr(answer_models, f"{name.capitalize()}Answer")

    async def compute_in_worker(request: Request) -> Response:
        begin, body, state = time.perf_counter(), await read_body(request), request.app.state
        if state.processes is not None:
            return await forward_computation(request, body)
        document, warned = await state.pool.run(lambda: work(parse_request(model, body), state))
        return _finish_answer(document, warned, begin)

    about = describe_route(model, answer, summary)
    router.post(f"/v1/{name}", name=name, description=work.__doc__, **about)(compute_in_worker)


_add_computation(compute_answers.answer_aggregate, "One consensus per query")
_add_computation(compute_answers.answer_evaluate, "Evaluate experts and methods against labels")
_add_computation(compute_answers.answer_explain, "Explain the rank of an item")
_add_computation(compute_answers.answer_leaderboard, "A leaderboard from votes")
_add_computation(compute_answers.answer_annotators, "The quality of annotators")


@router.get(
    "/v1/methods", **describe_route(None, answer_models.MethodsAnswer, "All methods with their parameters")
)
async def list_methods(_: Request) -> Response:
    """Every registered method: its input forms, its parameters and their accepted values."""
    return build_json_response({"methods": describe_methods()})


@router.get(
    "/healthz", **describe_route(None, answer_models.Health, "Whether the server is alive", tag="operation")
)
async def health(_: Request) -> Response:
    """Responds as long as the process runs."""
    return build_json_response({"status": "ok", "version": __version__})


@router.get(
    "/readyz",
    **describe_route(
        None, answer_models.Readiness, "Whether the server can accept requests", tag="operation"
    ),
)
async def ready(request: Request) -> Response:
    """200 if the store can be read and written, the processes run and the queue has room, else 503."""
    state = request.app.state
    if not getattr(state, "ready", False):
        raise RequestRefused(503, "the server is starting or stopping", "try again later")
    checks = await run_in_threadpool(state.store.check_disk, state.settings.limits.free_bytes)
    checks["worker"] = "ok" if state.keeper.is_healthy else "worker processes of jobs fail; see the log"
    if state.processes is not None:
        checks["queue"] = "ok" if state.processes.is_healthy else "no process, or no room in the queue"
    faults = [f"{name}: {words}" for name, words in checks.items() if words != "ok"]
    if faults:
        request.scope["podium.cause"] = "; ".join(faults)
        raise RequestRefused(503, "; ".join(faults), "see the server log")
    return build_json_response({"status": "ready", "version": __version__, "checks": checks})


@router.get("/metrics", include_in_schema=False)
async def serve_metrics(request: Request) -> Response:
    """Prometheus metrics."""
    return Response(request.app.state.meters.text(), headers={"content-type": CONTENT_TYPE})
