"""Uvicorn configuration: one process, bounded connections and headers, no access log."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import socket
import threading
from typing import TYPE_CHECKING, Any, ClassVar

import uvicorn

from podium.core.errors import ParameterError
from podium.studio.middleware import HEAD
from podium.studio.settings import Limits, ServerSettings

if TYPE_CHECKING:
    from fastapi import FastAPI

IDLE = 20  # seconds: keep-alive timeout, and grace period at shutdown
DRAIN = 17.0  # seconds of that period in which computations may end by themselves
WAITING = 1024  # connections that the system accepts before the server does
SPARE = 256  # open files besides connections


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
    _raise_file_limit(app.state.settings.limits.connections + SPARE)
    gc.collect()
    gc.freeze()  # exclude loaded modules from garbage collection, which would add tens of ms to responses
    create_server(app).run([listener])


def create_server(app: FastAPI) -> uvicorn.Server:
    """Configure the server."""
    config = uvicorn.Config(
        app,
        http=_select_protocol(app.state.settings.limits),
        ws="none",
        access_log=False,
        log_level="error",
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=IDLE,
        timeout_graceful_shutdown=IDLE,
        h11_max_incomplete_event_size=HEAD,
    )
    return StudioServer(config)


class StudioServer(uvicorn.Server):
    """A server that cancels what is still computed near the end of its grace period, and so answers every request."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End the open requests, and the server."""
        app: Any = self.config.app
        processes, timer = app.state.processes, None
        if processes is not None:  # stopping them blocks
            stop = threading.Thread(target=processes.stop, daemon=True)
            timer = asyncio.get_running_loop().call_later(DRAIN, stop.start)
        await super().shutdown(sockets)
        if timer is not None:
            timer.cancel()


def _raise_file_limit(wanted: int) -> None:
    """Allow as many open files as connections need, as far as the system lets the server."""
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft < wanted:
            most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


class ConnectionBounds:
    """What the fast parser lacks: bounds on connections, and on the size and time of their headers."""

    limits: ClassVar[Limits]
    known: ClassVar[dict[Any, None]]  # all connections, the oldest first
    head, in_head = 0, True
    timer: asyncio.TimerHandle | None = None
    loop: asyncio.AbstractEventLoop
    transport: asyncio.Transport
    cycle: Any

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)  # type: ignore[misc]
        self.known[self] = None
        self.start_timer()
        if len(self.known) > self.limits.connections:  # rather an old idle connection than the new one
            next((old for old in self.known if old.is_idle()), self).hang_up()

    def connection_lost(self, exc: Exception | None) -> None:
        self.known.pop(self, None)
        self.stop_timer()
        super().connection_lost(exc)  # type: ignore[misc]

    def data_received(self, data: bytes) -> None:
        if self.in_head:
            self.head += len(data)
        super().data_received(data)  # type: ignore[misc]
        if self.in_head:
            if self.timer is None:
                self.start_timer()
            if self.head > 2 * HEAD:
                self.hang_up()

    def on_message_begin(self) -> None:
        self.head, self.in_head = 0, True
        super().on_message_begin()  # type: ignore[misc]

    def on_headers_complete(self) -> None:
        self.in_head = False
        self.stop_timer()
        super().on_headers_complete()  # type: ignore[misc]

    def is_idle(self) -> bool:
        return self.cycle is None or bool(self.cycle.response_complete)

    def start_timer(self) -> None:
        self.timer = self.loop.call_later(self.limits.header_seconds, self.hang_up)

    def stop_timer(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None

    def hang_up(self) -> None:
        self.known.pop(self, None)
        self.transport.abort()


def _select_protocol(limits: Limits) -> Any:
    """The fast parser with bounds; the slow one, where the fast one is missing, bounds headers itself."""
    try:
        from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
    except ImportError:
        return "h11"
    return type("BoundedProtocol", (ConnectionBounds, HttpToolsProtocol), {"limits": limits, "known": {}})
