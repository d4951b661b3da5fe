"""Assemble the server: middleware, API, pages, and their shared state."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

from fastapi import FastAPI
from starlette.middleware import Middleware

from podium.core.errors import capture_warnings
from podium.core.version import __version__
from podium.studio import api, login, pages
from podium.studio.middleware import RequestMiddleware
from podium.studio.security import Guard
from podium.studio.settings import ServerSettings
from podium.studio.store import Store
from podium.studio.telemetry import RequestMetrics

__all__ = ["create_app"]


def create_app(settings: ServerSettings) -> FastAPI:
    """Build the ASGI application; `app.state` has settings, store, guard, meters and pool."""
    guard, meters = Guard(settings), RequestMetrics()
    app = FastAPI(
        title="Podium",
        version=__version__,
        summary="Many rankings in, one consensus out.",
        docs_url=None,  # FastAPI's pages load scripts from a CDN; ours are rendered locally
        redoc_url=None,
        openapi_url=None,
        lifespan=_lifespan,
        middleware=[Middleware(RequestMiddleware, settings=settings, guard=guard, meters=meters)],
    )
    app.state.settings, app.state.guard, app.state.meters = settings, guard, meters
    app.state.store = Store(settings.folder)
    api.install_service(app)
    app.include_router(login.router)
    app.include_router(pages.router)
    return app


@contextlib.asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    with capture_warnings():  # swap the warning filters once, not per request
        app.state.ready = True
        yield
    app.state.ready = False
    app.state.store.close()
