"""Addresses for long work: ask for it, and stop it."""

from __future__ import annotations

from urllib.parse import quote

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from starlette.concurrency import run_in_threadpool

from podium.errors import PodiumError
from podium.studio import jobs as work
from podium.studio.pages.forms import sent
from podium.studio.pages.routes import failed
from podium.studio.records import Missing
from podium.studio.store import Store

__all__ = ["router"]

router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)


@router.post("/p/{project}/jobs")
async def start(request: Request, project: str) -> Response:
    """Ask for long work."""
    try:
        form = await sent(request)
        kind = form["kind"]
        settings = {
            "metric": form["metric"],
            "methods": [m for m in form["methods"].split() if m],
            "trials": form["trials"],
            "weights": form["weights"] != "no",
            "seed": form["seed"],
            "method": form["method"],
        }
        await run_in_threadpool(work.ask, request.app.state.store, project, kind, settings)
    except PodiumError as error:
        return await run_in_threadpool(failed, request, error)
    request.app.state.keeper.wake()
    return RedirectResponse(f"/p/{quote(project, safe='')}/jobs", 303)


@router.post("/p/{project}/jobs/{job}/stop")
async def stop(request: Request, project: str, job: str) -> Response:
    """Stop a job."""
    try:
        await sent(request)
        await run_in_threadpool(_stop, request.app.state.store, project, job)
    except PodiumError as error:
        return await run_in_threadpool(failed, request, error)
    return RedirectResponse(f"/p/{quote(project, safe='')}/jobs", 303)


def _stop(store: Store, project: str, job: str) -> None:
    if store.job(job).project != project:
        raise Missing("there is no such job in this project")
    store.cancel(job)
