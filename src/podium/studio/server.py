"""Uvicorn configuration: one process, bounded headers, no access log."""

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

IDLE = 20  # seconds: keep-alive timeout, and grace period at shutdown
CONNECTIONS = 1000
WAITING = 1024


def listen(settings: ServerSettings) -> socket.socket:
    """Bind a socket to the address in the settings."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((settings.host, settings.port))
        listener.listen(WAITING)  # clients can connect as soon as the URL is printed
    except OSError as error:
        listener.close()
        raise ParameterError(
            f"cannot listen on {settings.host}:{settings.port} ({error.strerror or error}); choose another --port"
        ) from None
    return listener


def format_address(listener: socket.socket) -> str:
    """The URL of the server."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def serve(app: FastAPI, listener: socket.socket) -> None:
    """Serve until stopped."""
    gc.collect()
    gc.freeze()  # exclude loaded modules from garbage collection, which would add tens of ms to responses
    create_server(app).run([listener])


def create_server(app: FastAPI) -> uvicorn.Server:
    """Configure the server."""
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
    """Bound the header size of the fast parser, which has no limit; the slow parser has one."""
    try:
        from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
    except ImportError:
        return "h11"

    class BoundedProtocol(HttpToolsProtocol):
        head, in_head = 0, True

        def data_received(self, data: bytes) -> None:
            if self.in_head:
                self.head += len(data)
            super().data_received(data)
            if self.in_head and self.head > 2 * HEAD:
                self.transport.close()

        def on_message_begin(self) -> None:
            self.head, self.in_head = 0, True
            super().on_message_begin()

        def on_headers_complete(self) -> None:
            self.in_head = False
            super().on_headers_complete()

    return BoundedProtocol
