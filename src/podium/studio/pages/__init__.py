"""The studio's pages: server-rendered, one permanent link per view, also as JSON and CSV.

A view is a function with `@register_view` in a module of this package or of a plug-in.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

from fastapi import APIRouter, FastAPI

from podium.studio.job_worker import supervise_worker
from podium.studio.pages import (
    apply_views,
    collect_routes,
    data_routes,
    explain_routes,
    form_routes,
    page_routes,
    share_routes,
    worker_routes,
)
from podium.studio.pages.page_routes import respond_error
from podium.studio.pages.view_context import StillComputing
from podium.studio.request_slots import UploadSlots
from podium.studio.workspace import Workspace

__all__ = ["install_pages", "respond_error"]


def install_pages(app: FastAPI) -> None:
    """Add the pages to an application."""
    router = APIRouter(lifespan=_lifespan)
    router.include_router(collect_routes.router)
    router.include_router(share_routes.router)
    router.include_router(worker_routes.router)
    router.include_router(explain_routes.router)
    router.include_router(page_routes.router)
    router.include_router(form_routes.router)
    router.include_router(data_routes.router)
    router.include_router(apply_views.router)
    app.include_router(router)
    app.add_exception_handler(page_routes.UnreadableProject, page_routes.redirect_to_data)  # type: ignore[arg-type]
    app.add_exception_handler(StillComputing, page_routes.respond_waiting)  # type: ignore[arg-type]


@contextlib.asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    app.state.workspace = Workspace(app.state.store, app.state.settings)
    app.state.uploads = UploadSlots(app.state.settings.limits.uploads, app.state.meters)
    settings = app.state.settings
    with supervise_worker(app.state.store, settings.roots, settings) as keeper:
        app.state.keeper = keeper
        yield
    app.state.workspace.close()
