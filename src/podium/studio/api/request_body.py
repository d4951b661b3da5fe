"""Read request bodies: JSON, possibly compressed, with a timeout. The middleware limits their length."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from starlette.requests import ClientDisconnect, Request

from podium.core.errors import InputError
from podium.studio.limits import TooLarge, bounded_decompress
from podium.studio.security import RequestRefused
from podium.studio.settings import Limits

__all__ = ["read_body"]

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
    try:
        async with asyncio.timeout(limits.seconds):
            body = await _receive_all(request)
    except TimeoutError:
        raise RequestRefused(408, "the body did not arrive in time", "send it faster, or in parts") from None
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


async def _receive_all(request: Request) -> bytes:
    parts, more = [], True
    while more:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        parts.append(message.get("body", b""))
        more = message.get("more_body", False)
    return b"".join(parts)
