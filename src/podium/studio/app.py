"""Assemble the server: middleware, API, pages, and their shared state."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

from fastapi import FastAPI
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response

from podium.core.errors import PodiumError, capture_warnings
from podium.core.version import __version__
from podium.studio import api, login, pages
from podium.studio.database import DiskFull
from podium.studio.middleware import Endpoint, RequestMiddleware
from podium.studio.response_sender import SERVICE
from podium.studio.security import Guard
from podium.studio.settings import ServerSettings
from podium.studio.store import Store
from podium.studio.telemetry import RequestMetrics
from podium.studio.view_processes import ViewProcesses


def create_app(settings: ServerSettings) -> FastAPI:
    """Build the ASGI application; `app.state` has settings, store, guard, meters and pool."""
    store = Store(settings.folder)
    guard, meters = Guard(settings, store), RequestMetrics()
    endpoints: dict[tuple[str, str], Endpoint] = {}
    app = FastAPI(
        title="Podium",
        version=__version__,
        summary="Many rankings in, one consensus out.",
        docs_url=None,  # FastAPI's pages load scripts from a CDN; ours are rendered locally
        redoc_url=None,
        openapi_url=None,
        # the metrics are those of `RequestMetrics`; traces would name paths, in which there are ids
        telemetry={"tracing": False, "metrics": False, "logs": False},
        generate_unique_id_function=lambda route: route.name,  # stable, for generated clients
        lifespan=_lifespan,
        # the processes that compute get requests which the server has checked
        middleware=[]
        if settings.is_view_worker
        else [
            Middleware(RequestMiddleware, settings=settings, guard=guard, meters=meters, endpoints=endpoints)
        ],
    )
    app.state.settings, app.state.guard, app.state.meters = settings, guard, meters
    app.state.store, app.state.processes = store, None
    api.install_service(app)
    app.include_router(login.router)
    pages.install_pages(app)
    app.add_exception_handler(PodiumError, _answer_error)
    endpoints.update(api.build_endpoints(app))
    return app


def _answer_error(request: Request, error: Any) -> Response:
    """Errors of the library: documents for programs, pages for browsers."""
    if isinstance(error, DiskFull):
        raise error  # the middleware logs the cause
    respond = api.respond_error if request.url.path.startswith(SERVICE) else pages.respond_error
    return respond(request, error)


@contextlib.asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    settings, meters = app.state.settings, app.state.meters
    if settings.processes:
        app.state.processes = ViewProcesses(settings, meters)
        app.state.processes.start()
    meters.watch_states("podium_jobs", "Jobs by state", app.state.store.count_jobs)
    with capture_warnings():  # swap the warning filters once, not per request
        app.state.ready = True
        yield
    app.state.ready = False
    if app.state.processes is not None:
        await asyncio.to_thread(app.state.processes.stop)
    app.state.store.close()
