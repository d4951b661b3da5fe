"""Middleware: checks, limits, counts and logs every request."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any

from msgspec.json import encode
from starlette.requests import ClientDisconnect

from podium.core.errors import InputError, capture_warnings
from podium.studio.limits import TooLarge
from podium.studio.security import HEADERS, Guard, RequestRefused
from podium.studio.settings import ServerSettings
from podium.studio.telemetry import RequestMetrics, log_failure, log_request

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Endpoint = Callable[[Message, Receive, Send], Awaitable[None]]
SERVICE = "/v1/"
WATCHED = frozenset({"/healthz", "/readyz", "/metrics"})  # exempt from the concurrency limit
HEAD = 1 << 16  # maximum bytes of URL and headers
ABORTED = 499  # status that is counted and logged when the client hung up before it sent its request
COOKIE = "Path=/; HttpOnly; SameSite=Strict"


def error_document(kind: str, message: str, remedy: str = "") -> dict[str, Any]:
    """The JSON document of every API error."""
    return {"error": {"type": kind, "message": message, "remedy": remedy}}


class RequestMiddleware:
    """ASGI middleware: applies `Guard`, enforces the limits, and sets the headers of every response.

    Requests for exactly a method and path of `endpoints` go to that application instead of the framework's
    stack of middleware and routes, which takes longer than the answer to a small request.
    """

    def __init__(
        self,
        app: Any,
        settings: ServerSettings,
        guard: Guard,
        meters: RequestMetrics,
        endpoints: Mapping[tuple[str, str], Endpoint],
    ) -> None:
        self._app, self._settings, self._guard, self._meters = app, settings, guard, meters
        self._endpoints = endpoints

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Process one request."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return  # web sockets are not supported
        begin, out = time.perf_counter(), _ResponseSender(scope, send)
        self._meters.running += 1
        try:
            await self._admit_request(scope, receive, out)
        except RequestRefused as no:
            is_page = scope["method"] == "GET" and not scope["path"].startswith(SERVICE)
            accepted = dict(scope["headers"]).get(b"accept", b"")
            if no.status == 401 and is_page and b"text/html" in accepted:
                await out.send_error(303, "log in first", "see /login", {"location": "/login"})
            else:
                await out.send_error(no.status, no.problem, no.remedy, no.headers)
        except TooLarge as no:
            await out.send_error(413, no.problem, no.remedy or "")
        except InputError as no:
            await out.send_error(400, no.problem, no.remedy or "")
        except ClientDisconnect:  # an aborted upload is no failure of the server, and nobody reads an answer
            out.status = ABORTED
        except Exception as error:
            log_failure(_route_pattern(scope), error)
            await out.send_error(500, "internal server error", "see the server log")
        finally:
            self._meters.running -= 1
            taken, route = time.perf_counter() - begin, _route_pattern(scope)
            self._meters.count_request(scope["method"], route, out.status, taken)
            log_request(scope["method"], route, out.status, taken, out.size)

    async def _admit_request(self, scope: Message, receive: Receive, out: _ResponseSender) -> None:
        headers = dict(scope["headers"])
        path: str = scope["path"]
        if sum(len(name) + len(value) for name, value in scope["headers"]) > HEAD or len(path) > HEAD:
            raise RequestRefused(431, "the headers are too long", "send shorter headers")
        if [name for name, _ in scope["headers"]].count(b"host") != 1:
            raise RequestRefused(400, "the request does not have exactly one Host header", "send one")
        self._guard.check_request(scope["method"], path, headers)
        limits = self._settings.limits
        if self._meters.running > limits.concurrent and path not in WATCHED:
            raise RequestRefused(
                429,
                f"{limits.concurrent} requests are already running",
                "try again later",
                {"retry-after": "1"},
            )
        most = limits.body_bytes if path.startswith(SERVICE) else limits.upload_bytes
        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or int(length[:20]) > most:
            raise _build_length_error(most)
        endpoint = self._endpoints.get((scope["method"], path))
        receive = _limit_length(receive, most)
        with capture_warnings():  # warnings may contain ids and must not reach the log
            if endpoint is not None:  # it limits the time of the whole body itself
                await endpoint(scope, receive, out)
            else:
                await self._app(scope, _limit_waiting(receive, limits.seconds), out)


def _limit_length(receive: Receive, most: int) -> Receive:
    """Receive the body; refuse it when it is too long."""
    size = 0

    async def receive_limited() -> Message:
        nonlocal size
        message = await receive()
        size += len(message.get("body", b""))
        if size > most:
            raise _build_length_error(most)
        return message

    return receive_limited


def _limit_waiting(receive: Receive, seconds: float) -> Receive:
    """Receive the body; refuse it when a part of it does not arrive in time."""
    more = True

    async def receive_in_time() -> Message:
        nonlocal more
        if not more:
            return await receive()  # further calls wait for the disconnect
        try:
            async with asyncio.timeout(seconds):
                message = await receive()
        except TimeoutError:
            raise RequestRefused(
                408, "the body did not arrive in time", "send it faster, or in parts"
            ) from None
        more = message.get("more_body", False)
        return message

    return receive_in_time


def _build_length_error(most: int) -> RequestRefused:
    return RequestRefused(
        413, f"the body is longer than {most:,} bytes", "send less per request", {"connection": "close"}
    )


def _route_pattern(scope: Message) -> str:
    """The route pattern, so that no id appears in a label or a log."""
    return getattr(scope.get("route"), "path", None) or "other"


class _ResponseSender:
    """Wrap `send`: add headers and record what was sent."""

    def __init__(self, scope: Message, send: Send) -> None:
        self._scope, self._send = scope, send
        self.status, self.size, self._has_started = 0, 0, False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._has_started = True
            self.status = message["status"]
            secure = "; Secure" if self._scope.get("scheme") == "https" else ""
            kept: dict[str, str] = self._scope.get("podium.cookies", {})
            cookies = [(b"set-cookie", f"{k}={v}; {COOKIE}{secure}".encode()) for k, v in kept.items()]
            message["headers"] = [*message.get("headers", ()), *HEADERS, *cookies]
        else:
            self.size += len(message.get("body", b""))
        await self._send(message)

    async def send_error(
        self, status: int, problem: str, remedy: str, headers: dict[str, str] | None = None
    ) -> None:
        """Send an error: JSON for the API, plain text for pages; nothing if the response has started."""
        if self._has_started:
            return
        if self._scope["path"].startswith(SERVICE):
            body, kind = (
                encode(error_document(KINDS.get(status, "Refused"), problem, remedy)),
                b"application/json",
            )
        else:
            body, kind = f"{problem}; {remedy}\n".encode(), b"text/plain; charset=utf-8"
        more = [(k.encode(), v.encode()) for k, v in (headers or {}).items()]
        about = [(b"content-type", kind), (b"content-length", str(len(body)).encode()), *more]
        await self({"type": "http.response.start", "status": status, "headers": about})
        await self({"type": "http.response.body", "body": b"" if self._scope["method"] == "HEAD" else body})


KINDS = {
    400: "NotJson",
    401: "NoToken",
    403: "Forbidden",
    404: "NotFound",
    408: "TooSlow",
    413: "TooLarge",
    415: "UnsupportedMediaType",
    421: "Misdirected",
    422: "InvalidRequest",
    429: "Busy",
    431: "TooLarge",
    500: "ServerFault",
    503: "Busy",
    504: "TooSlow",
}
