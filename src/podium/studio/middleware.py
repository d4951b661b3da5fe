"""Middleware: checks, limits, counts and logs every request."""

from __future__ import annotations

import asyncio
import itertools
import re
import secrets
import sqlite3
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from starlette.requests import ClientDisconnect

from podium.core.errors import InputError, PodiumError, capture_warnings
from podium.studio.database import DiskFull, explain_full_disk
from podium.studio.limits import TooLarge
from podium.studio.request_slots import BodyReceiver, Message, Receive, RequestSlots, build_length_error
from podium.studio.response_sender import SERVICE, ResponseSender, Send
from podium.studio.security import COMPUTATIONS, LOCAL, SAFE, VOTING, Guard, RequestRefused
from podium.studio.settings import ServerSettings
from podium.studio.telemetry import RequestMetrics, describe_failure, log_failure, log_request
from podium.studio.view_forwarding import FailedInProcess, forward_view, is_computed_view

Endpoint = Callable[[Message, Receive, Send], Awaitable[None]]
WATCHED = frozenset({"/healthz", "/readyz", "/metrics"})  # exempt from the concurrency limit
UPLOADS = re.compile(r"/v1/projects(/[^/]+/(labels|texts|apply))?")  # routes of the API that take files
HEAD = 1 << 16  # maximum bytes of URL and headers
ABORTED = 499  # status that is counted and logged when the client hung up before it sent its request
REQUEST_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")


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
        self._endpoints, self._slots = endpoints, RequestSlots(settings.limits, meters)
        self._prefix, self._numbers = secrets.token_hex(4), itertools.count()

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Process one request."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return  # web sockets are not supported
        begin, method = time.perf_counter(), scope["method"]
        root = self._settings.root_path
        if root and f"{scope['path']}/".startswith(f"{root}/"):  # a proxy may or may not remove the sub-path
            scope["path"] = scope["path"][len(root) :] or "/"
            scope["raw_path"] = scope["path"].encode()
        if method == "HEAD":  # the server below leaves the body out by its own scope
            scope = {**scope, "method": "GET"}
        headers = dict(scope["headers"])
        given = headers.get(b"x-request-id", b"")
        scope["podium.request_id"] = (
            given.decode() if REQUEST_ID.fullmatch(given) else f"{self._prefix}{next(self._numbers):x}"
        )
        out, cause = ResponseSender(scope, send, self._settings, method), None
        try:
            await self._admit_request(scope, headers, receive, out)
        except Exception as error:
            cause = await self._answer_error(scope, headers, error, out)
        taken, route = time.perf_counter() - begin, _route_pattern(scope)
        self._meters.count_request(method, route, out.status, taken)
        log_request(method, route, out.status, taken, out.size, request=scope["podium.request_id"],
                    view=scope.get("podium.view"), cause=scope.get("podium.cause") or cause)  # fmt: skip
        await self._audit(scope, method, route, out.status)

    async def _answer_error(
        self, scope: Message, headers: Mapping[bytes, bytes], error: Exception, out: ResponseSender
    ) -> str:
        """Answer a request that was refused or failed; the cause for the log, which names no user data."""
        if isinstance(error, RequestRefused):
            is_page = scope["method"] == "GET" and not scope["path"].startswith(SERVICE)
            if error.status == 401 and is_page and b"text/html" in headers.get(b"accept", b""):
                await out.send_error(303, "log in first", "see /login", {"location": "/login"})
            else:
                await out.send_error(error.status, error.problem, error.remedy, error.headers)
            return f"refused {error.status}"
        if isinstance(error, ClientDisconnect):  # nobody reads an answer
            out.status = ABORTED
            return "the client hung up"
        if isinstance(error, FailedInProcess):
            await out.send_error(500, "internal server error", "see the server log")
            return ""
        try:
            with explain_full_disk(self._settings.folder):
                raise error
        except InputError as no:
            status = 507 if isinstance(no, DiskFull) else 413 if isinstance(no, TooLarge) else 400
            if status == 507:
                log_failure(_route_pattern(scope), no.problem, scope["podium.request_id"])
            await out.send_error(status, no.problem, no.remedy or "")
            return type(no).__name__
        except Exception:
            cause = describe_failure(error)
            log_failure(_route_pattern(scope), cause, scope["podium.request_id"])
            await out.send_error(500, "internal server error", "see the server log")
            return cause

    async def _admit_request(
        self, scope: Message, headers: Mapping[bytes, bytes], receive: Receive, out: ResponseSender
    ) -> None:
        path: str = scope["path"]
        if sum(len(name) + len(value) for name, value in scope["headers"]) > HEAD or len(path) > HEAD:
            raise RequestRefused(431, "the headers are too long", "send shorter headers")
        if [name for name, _ in scope["headers"]].count(b"host") != 1:
            raise RequestRefused(400, "the request does not have exactly one Host header", "send one")
        user = self._guard.check_request(scope["method"], path, headers)
        scope["podium.user"] = user
        limits, has_files = self._settings.limits, not path.startswith(SERVICE) or UPLOADS.fullmatch(path)
        most = limits.upload_bytes if has_files else limits.body_bytes
        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or int(length[:20]) > most:
            raise build_length_error(most)
        if path in WATCHED:
            await self._app(scope, receive, out)
            return
        seconds = limits.upload_seconds if has_files and path != "/login" else limits.seconds
        name = (
            user.name
            if user is not LOCAL and user.name != "anonymous"
            else self._client_address(scope, headers)
        )
        body = BodyReceiver(receive, self._slots, name, most, seconds)
        has_body = scope["method"] not in SAFE or length.strip(b"0") != b"" or b"transfer-encoding" in headers
        body.begin(has_body)
        try:
            endpoint = self._endpoints.get((scope["method"], path))
            with capture_warnings():  # warnings may contain ids and must not reach the log
                if endpoint is not None:
                    await endpoint(scope, body, out)
                elif is_computed_view(scope):
                    await forward_view(scope, body, out)
                else:
                    await self._app(scope, body, out)
        finally:
            body.end()
            self._meters.received_bytes += body.size

    def _client_address(self, scope: Message, headers: Mapping[bytes, bytes]) -> str:
        """The address of the client; behind a proxy, the last one that it reports."""
        if self._settings.public_url:
            return headers.get(b"x-forwarded-for", b"").decode("latin-1").rpartition(",")[2].strip()
        return str((scope.get("client") or ("",))[0])

    async def _audit(self, scope: Message, method: str, route: str, status: int) -> None:
        """Record a change in the audit log; votes are their own record."""
        path, user = scope["path"], scope.get("podium.user")
        if method in SAFE or user is None or (COMPUTATIONS.fullmatch(path) and path != "/logout"):
            return
        if VOTING.fullmatch(path) or user.name == "anonymous" or status == ABORTED:
            return
        parts = path.removeprefix("/v1/projects").removeprefix("/p").split("/")
        project = parts[1] if len(parts) > 1 and path.startswith(("/p/", "/v1/projects/")) else None
        entry = (user, method, route, project, status, scope["podium.request_id"])
        try:
            await asyncio.to_thread(scope["app"].state.store.add_audit_entry, *entry)
        except (sqlite3.Error, OSError, PodiumError) as error:
            log_failure(route, f"no audit entry: {describe_failure(error)}", scope["podium.request_id"])


def _route_pattern(scope: Message) -> str:
    """The route pattern, so that no id appears in a label or a log."""
    return scope.get("podium.route") or getattr(scope.get("route"), "path", None) or "other"
