"""Routes that start and stop jobs."""

from __future__ import annotations

from urllib.parse import quote

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from starlette.concurrency import run_in_threadpool

from podium.core.errors import PodiumError
from podium.studio import job_worker as work
from podium.studio.pages.forms import read_form
from podium.studio.pages.page_routes import respond_error
from podium.studio.store import Store
from podium.studio.store_records import RecordNotFound

__all__ = ["router"]

router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)


@router.post("/p/{project}/jobs")
async def start_job(request: Request, project: str) -> Response:
    """Queue a job."""
    try:
        form = await read_form(request)
        kind = form["kind"]
        settings = {
            "metric": form["metric"],
            "methods": [m for m in form["methods"].split() if m],
            "trials": form["trials"],
            "weights": form["weights"] != "no",
            "seed": form["seed"],
            "method": form["method"],
        }
        await run_in_threadpool(work.queue_job, request.app.state.store, project, kind, settings)
    except PodiumError as error:
        return await run_in_threadpool(respond_error, request, error)
    request.app.state.keeper.wake()
    return RedirectResponse(f"/p/{quote(project, safe='')}/jobs", 303)


@router.post("/p/{project}/jobs/{job}/stop")
async def stop_job(request: Request, project: str, job: str) -> Response:
    """Stop a job."""
    try:
        await read_form(request)
        await run_in_threadpool(_cancel_job, request.app.state.store, project, job)
    except PodiumError as error:
        return await run_in_threadpool(respond_error, request, error)
    return RedirectResponse(f"/p/{quote(project, safe='')}/jobs", 303)


def _cancel_job(store: Store, project: str, job: str) -> None:
    if store.job(job).project != project:
        raise RecordNotFound("no such job in this project")
    store.cancel(job)
