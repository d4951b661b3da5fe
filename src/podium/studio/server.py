"""Uvicorn, told what we need: one process, bounded headers, no lines of its own."""

from __future__ import annotations

import gc
import socket
from typing import TYPE_CHECKING, Any

import uvicorn

from podium.core.errors import ParameterError
from podium.studio.middleware import HEAD
from podium.studio.settings import ServerSettings

if TYPE_CHECKING:
    from fastapi import FastAPI

__all__ = ["create_server", "format_address", "listen", "serve"]

IDLE = (
    20  # seconds that a connection may wait for its next request, and the end of the server for its last ones
)
CONNECTIONS = 1000
WAITING = 1024


def listen(settings: ServerSettings) -> socket.socket:
    """A socket on the address of the settings."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    found = socket.socket(family, socket.SOCK_STREAM)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((settings.host, settings.port))
        found.listen(WAITING)  # whoever reads the address can connect at once
    except OSError as error:
        found.close()
        raise ParameterError(
            f"cannot listen on {settings.host}:{settings.port} ({error.strerror or error}); choose another --port"
        ) from None
    return found


def format_address(found: socket.socket) -> str:
    """Where a browser finds it."""
    host, port = found.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def serve(app: FastAPI, found: socket.socket) -> None:
    """Until told to stop."""
    gc.collect()
    gc.freeze()  # what is loaded now stays: looking through it again and again costs answers tens of milliseconds
    create_server(app).run([found])


def create_server(app: FastAPI) -> uvicorn.Server:
    """The server."""
    config = uvicorn.Config(
        app,
        http=_select_protocol(),
        ws="none",
        access_log=False,
        log_level="error",
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=IDLE,
        timeout_graceful_shutdown=IDLE,
        limit_concurrency=CONNECTIONS,
        h11_max_incomplete_event_size=HEAD,
    )
    return uvicorn.Server(config)


def _select_protocol() -> Any:
    """The fast parser, which takes headers without end, with an end; the slow one has its own."""
    try:
        from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
    except ImportError:
        return "h11"

    class BoundedProtocol(HttpToolsProtocol):
        head, begun = 0, True

        def data_received(self, data: bytes) -> None:
            if self.begun:
                self.head += len(data)
            super().data_received(data)
            if self.begun and self.head > 2 * HEAD:
                self.transport.close()

        def on_message_begin(self) -> None:
            self.head, self.begun = 0, True
            super().on_message_begin()

        def on_headers_complete(self) -> None:
            self.begun = False
            super().on_headers_complete()

    return BoundedProtocol
