"""The addresses of the service. Each calls the library's own function and adds what every answer says of itself."""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from fastapi import APIRouter
from fastapi.routing import APIRoute
from pydantic import BaseModel
from pydantic_core import to_json
from starlette.requests import Request
from starlette.responses import Response

import podium
from podium.studio.api import answers, computing, fusing, requests
from podium.studio.api.bodies import body_of
from podium.studio.api.described import methods, of
from podium.studio.api.reading import parsed
from podium.studio.metrics import CONTENT_TYPE
from podium.studio.security import Refused

__all__ = ["router"]

M = TypeVar("M", bound=BaseModel)


class Plain(APIRoute):
    """A route whose function takes the request and gives the answer; there is nothing to look for in its signature."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The function itself."""
        return self.endpoint


router = APIRouter(route_class=Plain)


def reply(document: Any, status: int = 200) -> Response:
    """JSON; numbers that JSON does not have become null."""
    return Response(to_json(document, inf_nan_mode="null"), status, media_type="application/json")


async def _computed(request: Request, model: type[M], work: Callable[[M, Any], dict[str, Any]]) -> Response:
    """Read the request and compute its answer in a worker."""
    begin, body, state = time.perf_counter(), await body_of(request), request.app.state
    document, warned = await state.pool.run(lambda: work(parsed(model, body), state))
    return _finished(document, warned, begin)


def _finished(document: dict[str, Any], warned: list[str], begin: float) -> Response:
    document["warnings"] = warned
    document["milliseconds"] = (time.perf_counter() - begin) * 1000
    return reply(document)


@router.post("/v1/fuse", **of(requests.Fuse, answers.FuseAnswer, "Fuse a few lists for one query"))
async def fuse(request: Request) -> Response:
    """Plain lists in, one list out: `podium.fuse`. Small requests are answered at once, others by a worker."""
    begin, body, limits = time.perf_counter(), await body_of(request), request.app.state.settings.limits
    given = fusing.read(body) if len(body) <= LONG else None
    if given is not None and fusing.is_quick(given):
        return _finished(fusing.answer(given, limits), [], begin)
    document, warned = await request.app.state.pool.run(
        lambda: fusing.answer(given or fusing.read(body), limits)
    )
    return _finished(document, warned, begin)


LONG = 1 << 17  # bytes of a body that is not looked at between two other requests


@router.post(
    "/v1/aggregate", **of(requests.Aggregate, answers.AggregateAnswer, "One consensus for every query")
)
async def aggregate(request: Request) -> Response:
    """Any method, or a saved model, over many queries: `podium.make(method).aggregate(preferences)`."""
    return await _computed(request, requests.Aggregate, computing.aggregate)


@router.post(
    "/v1/evaluate", **of(requests.Evaluate, answers.EvaluateAnswer, "Experts and methods against labels")
)
async def evaluate(request: Request) -> Response:
    """The metrics of every expert and of every method that is named: `podium.evaluate.evaluate`."""
    return await _computed(request, requests.Evaluate, computing.evaluate)


@router.post("/v1/explain", **of(requests.Explain, answers.ExplainAnswer, "Why an item is where it is"))
async def explain(request: Request) -> Response:
    """What each expert adds, and with `over` what would swap two items: `podium.explain`."""
    return await _computed(request, requests.Explain, computing.explain)


@router.post(
    "/v1/leaderboard", **of(requests.Leaderboard, answers.LeaderboardAnswer, "A leaderboard from votes")
)
async def leaderboard(request: Request) -> Response:
    """Scores with intervals, ranks, checks and what to ask next: `podium.evaluate.leaderboard`."""
    return await _computed(request, requests.Leaderboard, computing.leaderboard)


@router.post("/v1/annotators", **of(requests.Annotators, answers.AnnotatorsAnswer, "How good annotators are"))
async def annotators(request: Request) -> Response:
    """Quality with intervals, verdicts and flags: `podium.evaluate.annotators`."""
    return await _computed(request, requests.Annotators, computing.annotators)


@router.get("/v1/methods", **of(None, answers.MethodsAnswer, "All methods with their parameters"))
async def list_methods(_: Request) -> Response:
    """Every registered method: what it reads, its parameters and what they accept."""
    return reply({"methods": methods()})


@router.get("/healthz", **of(None, answers.Health, "Whether the server lives"))
async def health(_: Request) -> Response:
    """Answers as long as the process does."""
    return reply({"status": "ok", "version": podium.__version__})


@router.get("/readyz", **of(None, answers.Health, "Whether the server can take requests", 503))
async def ready(request: Request) -> Response:
    """200 once everything is loaded and the store can be read, else 503."""
    state = request.app.state
    if not getattr(state, "ready", False):
        raise Refused(503, "the server is starting or ending", "ask again")
    return reply({"status": "ready", "version": podium.__version__})


@router.get("/metrics", include_in_schema=False)
async def meters(request: Request) -> Response:
    """Counters for Prometheus."""
    return Response(request.app.state.meters.text(), headers={"content-type": CONTENT_TYPE})
