"""A process that computes for the server: it runs the application on requests that the server sends, and functions.

The server can kill it at any time, which is how a computation is canceled. It ends by itself when the server has
ended, even during a computation.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection
from typing import Any

from podium.core.errors import InputError, PodiumError, capture_warnings
from podium.studio.limits import TooLarge
from podium.studio.security import RequestRefused
from podium.studio.settings import ServerSettings

CHECK = 1.0  # seconds between checks that the server is alive


@dataclass
class ViewOutcome:
    """What a process answers: a response, a refusal, or the cause of a failure."""

    status: int = 0
    headers: list[tuple[bytes, bytes]] = field(default_factory=list)
    body: bytes = b""
    cookies: dict[str, str] = field(default_factory=dict)
    refusal: tuple[int, str, str, dict[str, str]] | None = None
    failure: str | None = None
    error: PodiumError | None = None  # of a function that was called
    value: Any = None  # that the function returned
    cached_bytes: int = 0  # in the memory of the process


def run_view_worker(connection: Connection, settings: ServerSettings) -> None:
    """Answer requests until the connection ends."""
    from podium.studio.app import create_app

    os.environ.pop("PODIUM_TOKEN", None)
    with contextlib.suppress(OSError, AttributeError):
        os.nice(5)  # the server itself has priority
    threading.Thread(target=_end_with_parent, args=(os.getppid(),), daemon=True).start()
    limits = replace(settings.limits, seconds=settings.limits.view_seconds)
    own = replace(
        settings, limits=limits, processes=0, is_view_worker=True, patience=settings.limits.view_seconds
    )
    with contextlib.suppress(EOFError, KeyboardInterrupt, BrokenPipeError):
        asyncio.run(_answer_requests(connection, create_app(own)))
    os._exit(0)  # threads that still compute must not keep the process


def _end_with_parent(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(CHECK)
    os._exit(1)


async def _answer_requests(connection: Connection, app: Any) -> None:
    async with app.router.lifespan_context(app):
        app.state.workspace.warm_up()
        while True:
            request = connection.recv()  # nothing else runs in this loop meanwhile
            outcome = (
                call_function(app, *request["call"])
                if "call" in request
                else await answer_request(app, request)
            )
            outcome.cached_bytes = app.state.workspace.count_cached_bytes()
            connection.send(outcome)


def call_function(app: Any, function: Callable[..., Any], args: tuple[Any, ...]) -> ViewOutcome:
    """Call a function with the state of the application; its errors are raised by the server."""
    outcome = ViewOutcome()
    try:
        with capture_warnings():
            outcome.value = function(app.state, *args)
    except RequestRefused as no:
        outcome.refusal = (no.status, no.problem, no.remedy, no.headers)
    except PodiumError as error:
        outcome.error = error
    except MemoryError:
        outcome.refusal = (413, "not enough memory for this request", "send less", {})
    except Exception as error:
        from podium.studio.telemetry import describe_failure

        outcome.failure = describe_failure(error)
    return outcome


async def answer_request(app: Any, request: dict[str, Any]) -> ViewOutcome:
    """Run the application on one request."""
    outcome = ViewOutcome()
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "scheme": "http",
        "server": ("localhost", 80),
        "client": None,
        "root_path": "",
        **request["scope"],
    }
    body: bytes | None = request["body"]

    async def receive() -> dict[str, Any]:
        nonlocal body
        if body is None:
            await asyncio.Event().wait()  # the server has the client; there is no disconnect here
        part, body = body, None
        return {"type": "http.request", "body": part, "more_body": False}

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            outcome.status, outcome.headers = message["status"], list(message.get("headers", ()))
        else:
            outcome.body += message.get("body", b"")

    try:
        with capture_warnings():  # warnings may contain ids and must not reach the log
            await app(scope, receive, send)
    except RequestRefused as no:
        outcome.refusal = (no.status, no.problem, no.remedy, no.headers)
    except TooLarge as no:
        outcome.refusal = (413, no.problem, no.remedy or "", {})
    except InputError as no:
        outcome.refusal = (400, no.problem, no.remedy or "", {})
    except Exception as error:
        from podium.studio.telemetry import describe_failure

        outcome.failure = describe_failure(error)
    outcome.cookies = scope.get("podium.cookies", {})
    return outcome
