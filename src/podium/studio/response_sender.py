"""How every response leaves the server: security headers, cookies, request id, entity tags, gzip, sub-path."""

from __future__ import annotations

import asyncio
import functools
import hashlib
import re
import zlib
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from msgspec.json import encode

from podium.studio.problems import KINDS, PROBLEM, problem_document
from podium.studio.security import HEADERS
from podium.studio.settings import ServerSettings

Message = MutableMapping[str, Any]
Send = Callable[[Message], Awaitable[None]]
SERVICE = "/v1/"
SMALL, LARGE = 1 << 10, 1 << 19  # bytes: smaller bodies are not compressed, larger ones not in the event loop
TEXTS = (b"text/", b"application/json", b"application/problem+json", b"image/svg+xml")
COOKIE = "HttpOnly; SameSite=Strict"


class ResponseSender:
    """Wraps `send`: adds headers, and records what was sent."""

    def __init__(self, scope: Message, send: Send, settings: ServerSettings, method: str) -> None:
        self._scope, self._send, self._settings = scope, send, settings
        self._method = method  # as the client sent it
        self._start: Message | None = None
        self.status, self.size, self._has_started = 0, 0, False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self._start = message
            return
        if self._start is not None:
            start, self._start, self._has_started = self._start, None, True
            if not message.get("more_body", False):
                message["body"] = await self._finish_body(start, message.get("body", b""))
            start["headers"] = [*start.get("headers", ()), *HEADERS, *self._list_own_headers()]
            self.status = start["status"]
            await self._send(start)
        self.size += len(message.get("body", b""))
        if self._method == "HEAD":
            message = {**message, "body": b""}
        await self._send(message)

    def _list_own_headers(self) -> list[tuple[bytes, bytes]]:
        scope, settings = self._scope, self._settings
        headers = [(b"x-request-id", scope["podium.request_id"].encode())]
        kept: dict[str, str] = scope.get("podium.cookies", {})
        if kept:
            secure = "; Secure" if settings.is_https or scope.get("scheme") == "https" else ""
            where = f"Path={settings.root_path or '/'}"
            for name, value in kept.items():
                ends = "; Max-Age=0" if not value else ""  # an empty value removes the cookie
                headers.append((b"set-cookie", f"{name}={value}; {where}; {COOKIE}{secure}{ends}".encode()))
        return headers

    async def _finish_body(self, start: Message, body: bytes) -> bytes:
        """The body as it is sent: with links below the sub-path, left out if unchanged, compressed."""
        headers = {name.lower(): value for name, value in start.get("headers", ())}
        kind, root = headers.get(b"content-type", b""), self._settings.root_path.encode()
        before = len(body)
        if root:
            if kind.startswith(b"text/html"):
                body = _compile_links(root).sub(rb"\1" + root + b"/", body)
            place = headers.get(b"location", b"")
            if place.startswith(b"/") and not place.startswith((b"//", root + b"/")):
                headers[b"location"] = root + place
        sent = None
        if self._method in ("GET", "HEAD") and start["status"] == 200:
            sent = dict(self._scope["headers"])
            tag = b'W/"' + hashlib.blake2b(body, digest_size=12).hexdigest().encode() + b'"'
            headers[b"etag"] = tag
            if tag in [part.strip() for part in sent.get(b"if-none-match", b"").split(b",")]:
                start["status"], body = 304, b""
                headers.pop(b"content-length", None)
        if len(body) >= SMALL and kind.startswith(TEXTS):
            sent = dict(self._scope["headers"]) if sent is None else sent
            headers[b"vary"] = b"accept-encoding"
            if b"gzip" in sent.get(b"accept-encoding", b"") and b"content-encoding" not in headers:
                body = await asyncio.to_thread(_compress, body) if len(body) > LARGE else _compress(body)
                headers[b"content-encoding"] = b"gzip"
        if len(body) != before and b"content-length" in headers:
            headers[b"content-length"] = str(len(body)).encode()
        cookies = [pair for pair in start.get("headers", ()) if pair[0].lower() == b"set-cookie"]
        headers.pop(b"set-cookie", None)
        start["headers"] = [*headers.items(), *cookies]
        return body

    async def send_error(
        self, status: int, problem: str, remedy: str, headers: dict[str, str] | None = None
    ) -> None:
        """Send an error: problem details for the API, plain text for pages; nothing if the response has started."""
        if self._has_started:
            return
        self._start = None
        if self._scope["path"].startswith(SERVICE):
            document = problem_document(status, KINDS.get(status, "Refused"), problem, remedy)
            body, kind = encode(document), PROBLEM.encode()
        else:
            body, kind = f"{problem}; {remedy}\n".encode(), b"text/plain; charset=utf-8"
        more = [(k.encode(), v.encode()) for k, v in (headers or {}).items()]
        about = [(b"content-type", kind), (b"content-length", str(len(body)).encode()), *more]
        await self({"type": "http.response.start", "status": status, "headers": about})
        await self({"type": "http.response.body", "body": body})


@functools.cache
def _compile_links(root: bytes) -> re.Pattern[bytes]:
    """Links to places of this server that do not begin with its sub-path yet."""
    attributes = rb'((?:href|src|action|formaction|data-[\w-]+)="|;\s*url=)'
    return re.compile(attributes + b"/(?!/|" + re.escape(root[1:]) + b"/)")


def _compress(body: bytes) -> bytes:
    machine = zlib.compressobj(5, zlib.DEFLATED, 31)
    return machine.compress(body) + machine.flush()
