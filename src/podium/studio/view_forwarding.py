"""Requests that the processes answer: views of projects, their figures, and the computations of the API."""

from __future__ import annotations

import asyncio
import contextlib
import re
import time
from collections.abc import Callable, MutableMapping
from typing import Any, TypeVar

from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from podium.core.errors import PodiumError
from podium.studio.database import RecordNotFound
from podium.studio.response_sender import SERVICE
from podium.studio.security import FORMS, RequestRefused, parse_cookies
from podium.studio.telemetry import log_failure
from podium.studio.view_processes import TaskCanceled, ViewProcesses
from podium.studio.view_queue import ViewTask

T = TypeVar("T")
FILES = "(ranking|cleaned|votes|report)\\.[^/]+"
VIEW_ROUTE, SERVICE_VIEW_ROUTE = "/p/{project}/{view}", "/v1/projects/{project}/views/{view}"
# what processes answer, by the route in logs and metrics; the group is the name of a view or download
COMPUTED = {
    VIEW_ROUTE: re.compile(r"/p/[^/]+/([^/.]+)(?:\.(?:json|csv))?(?:/[^/]+\.(?:svg|rows|png))?"),
    SERVICE_VIEW_ROUTE: re.compile(r"/v1/projects/[^/]+/views/([^/]+)(?:/figures(?:/[^/]+)?)?"),
    "/p/{project}": re.compile(r"/p/[^/.]+()"),  # redirects to the view that suits the data
    "/p/{project}/{download}": re.compile(rf"/p/[^/]+/{FILES}"),
    "/v1/projects/{project}/{download}": re.compile(rf"/v1/projects/[^/]+/{FILES}"),
    "/v1/projects/{project}/texts": re.compile(r"/v1/projects/[^/]+/(texts)"),
}
GRACE = (
    1.0  # seconds in which a process that exceeds its time is killed: what it stores just then is not denied
)
ASK = 5.0  # seconds between signs that a request still waits
SENT = frozenset({b"cookie", b"accept", b"content-type", b"host"})  # headers that a process needs


class ViewCanceled(PodiumError):
    """A page whose computation was canceled."""

    http_status = 504


class FailedInProcess(Exception):
    """A failure in a process, which has been logged."""


def is_computed_view(scope: MutableMapping[str, Any]) -> bool:
    """Whether a process answers this request."""
    if scope["app"].state.processes is None or scope["method"] != "GET":
        return False
    return _find_computed_route(scope["path"]) is not None


def _find_computed_route(path: str) -> tuple[str, str] | None:
    """The route of a path that processes answer, and the name of its view or download."""
    from podium.studio.pages.view_context import views

    for route, pattern in COMPUTED.items():
        if (match := pattern.fullmatch(path)) is None:
            continue
        if route not in (VIEW_ROUTE, SERVICE_VIEW_ROUTE):
            return route, match[1]
        view = views.all().get(match[1])
        if view is not None and (not view.quick or path.endswith(".png")):
            return route, match[1]
    return None


async def forward_view(scope: Any, receive: Any, send: Any) -> None:
    """Answer with a view or download that a process computes; a page shows progress until it has been computed."""
    state, path = scope["app"].state, scope["path"]
    limits, headers = state.settings.limits, dict(scope["headers"])
    user, query = scope["podium.user"], scope["query_string"]
    scope["podium.route"], scope["podium.view"] = _find_computed_route(path) or ("other", "")
    key = (path, query, parse_cookies(headers).get(FORMS), user)
    task = state.processes.submit(
        key, lambda: ViewTask(key, user.name, _pack_request(scope, b""), limits.view_seconds)
    )
    request, is_page = Request(scope, receive), path.startswith("/p/") and "." not in path.rpartition("/")[2]
    try:
        # programs and pictures wait, and so do downloads
        outcome = await _await_outcome(task, state.settings.patience if is_page else limits.seconds, receive)
        state.processes.forget(task)
        response = _unpack_outcome(scope, outcome)
    except TimeoutError:
        response = _respond_waiting(request, task)
    except TaskCanceled as error:
        state.processes.forget(task)
        scope["podium.cause"] = str(error)
        response = _respond_canceled(request, str(error))
    await response(scope, receive, send)


def _respond_waiting(request: Request, task: ViewTask) -> Response:
    from podium.studio.pages import page_routes
    from podium.studio.pages.view_context import StillComputing

    state, path = request.app.state, request.scope["path"]
    if path.startswith(SERVICE):
        again = {"retry-after": "5"}
        raise RequestRefused(503, "the result is still being computed", "try again later", again)
    try:
        project = state.store.project(path.split("/")[2])
    except RecordNotFound as error:
        return page_routes.respond_error(request, error)
    request.scope["podium.progress"] = _describe_progress(task, state.processes)
    return page_routes.respond_waiting(request, StillComputing(project))


def _respond_canceled(request: Request, cause: str) -> Response:
    from podium.studio.pages import page_routes

    words, remedy = (
        f"the view was not computed: {cause}",
        "choose less data or a faster method, or try again later",
    )
    if request.scope["path"].startswith(SERVICE):
        raise RequestRefused(504, words, remedy)
    return page_routes.respond_error(request, ViewCanceled(f"{words}; {remedy}"))


async def forward_computation(request: Request, body: bytes) -> Response:
    """Answer an API request by a process; after the timeout of requests, it is killed."""
    scope, state = request.scope, request.app.state
    seconds, user = state.settings.limits.seconds, scope["podium.user"]
    task = ViewTask(object(), user.name, _pack_request(scope, body), seconds)
    remedy = "send less, choose a faster method, or start the server with a larger --seconds"
    return _unpack_outcome(scope, await _run_task(request, task, remedy))


async def run_in_process(request: Request, function: Callable[..., T], *args: Any) -> T:
    """Call `function(state, *args)` in a process, which is killed after the time of a view.

    The function is one of a module, and its arguments and value can be pickled. Without processes, it runs in a
    thread.
    """
    state = request.app.state
    if state.processes is None:
        return await run_in_threadpool(function, state, *args)
    user, call = request.scope["podium.user"].name, {"call": (function, args)}
    task = ViewTask(object(), user, call, state.settings.limits.view_seconds)
    outcome = await _run_task(
        request, task, "send less at a time, or open the files from a folder on the server"
    )
    if outcome.error is not None:
        raise outcome.error
    _raise_failure(request.scope, outcome)
    value: T = outcome.value
    return value


async def _run_task(request: Request, task: ViewTask, remedy: str) -> Any:
    """The outcome of a task of one request; nothing goes on after the timeout, or when the client has hung up."""
    processes, seconds = request.app.state.processes, task.seconds
    try:
        processes.submit(task.key, lambda: task)
        return await _await_outcome(task, seconds + GRACE, request.receive)
    except (TimeoutError, TaskCanceled) as error:
        request.scope["podium.cause"] = str(error) or "timeout"
        if task.started is None:
            words = f"all processes were busy for {seconds:g} seconds"
            raise RequestRefused(503, words, "try again later", {"retry-after": "5"}) from None
        is_slow = isinstance(error, TimeoutError) or "longer" in str(error)
        words = f"takes longer than {seconds:g} seconds" if is_slow else f"was canceled: {error}"
        raise RequestRefused(504, f"the computation {words}", remedy) from None
    finally:
        task.wanted = float("-inf")
        processes.forget(task)


async def _await_outcome(task: ViewTask, seconds: float, receive: Any) -> Any:
    """The outcome of a task, or `TimeoutError`; `ClientDisconnect` as soon as the client hangs up."""
    end = time.monotonic() + seconds
    coming = asyncio.wrap_future(task.outcome)
    # a late failure that nobody waits for needs no report
    coming.add_done_callback(lambda future: None if future.cancelled() else future.exception())
    gone = asyncio.ensure_future(_await_disconnect(receive))
    try:
        while (left := end - time.monotonic()) > 0:
            task.wanted = time.monotonic()
            await asyncio.wait({coming, gone}, timeout=min(left, ASK), return_when=asyncio.FIRST_COMPLETED)
            if coming.done():
                return coming.result()
            if gone.done():
                raise ClientDisconnect
        raise TimeoutError
    finally:
        gone.cancel()
        with contextlib.suppress(asyncio.CancelledError, Exception):
            await gone


async def _await_disconnect(receive: Any) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _pack_request(scope: Any, body: bytes) -> dict[str, Any]:
    headers = [(name, value) for name, value in scope["headers"] if name in SENT]
    names = ("method", "path", "query_string", "podium.user", "podium.request_id")
    kept = {name: scope[name] for name in names} | {"headers": headers}
    return {"scope": kept | {"raw_path": scope["path"].encode()}, "body": body}


def _raise_failure(scope: Any, outcome: Any) -> None:
    if outcome.refusal is not None:
        raise RequestRefused(*outcome.refusal)
    if outcome.failure is not None:
        route = getattr(scope.get("route"), "path", None)
        log_failure(
            scope.get("podium.route") or route or scope["path"], outcome.failure, scope["podium.request_id"]
        )
        scope["podium.cause"] = outcome.failure
        raise FailedInProcess


def _unpack_outcome(scope: Any, outcome: Any) -> Response:
    _raise_failure(scope, outcome)
    scope.setdefault("podium.cookies", {}).update(outcome.cookies)
    response = Response(outcome.body, outcome.status)
    response.raw_headers = outcome.headers
    return response


def _describe_progress(task: ViewTask, processes: ViewProcesses) -> dict[str, str]:
    if task.started is None:
        before = processes.queue.count_before(task)
        return {"waiting": "for a free process" + (f", after {before} of your pages" if before else "")}
    return {"computing for": f"{time.monotonic() - task.started:.0f} s of at most {task.seconds:g} s"}
