"""Routes that change something: forms with their CSRF token and files, read completely and within limits."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import quote

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException

from podium.core.errors import InputError, ParameterError, PodiumError
from podium.studio import job_kinds, security
from podium.studio.database import RecordNotFound
from podium.studio.form_fields import FIELDS, spell_option
from podium.studio.limits import TooLarge
from podium.studio.pages import projects
from podium.studio.pages.page_routes import respond_files, respond_form_again, respond_home
from podium.studio.store import Store
from podium.studio.view_forwarding import run_in_process

MOST_FIELDS, PART = 100, 1 << 20  # maximum per form

router = APIRouter(include_in_schema=False)


class SubmittedForm:
    """The fields and files of a form, read completely."""

    def __init__(self, pairs: list[tuple[str, str]], files: list[tuple[str, bytes]]) -> None:
        self.files, self.pairs, self.fields = files, pairs, dict(pairs)

    def __getitem__(self, name: str) -> str:
        return self.raw(name).strip()

    def raw(self, name: str) -> str:
        """A field as it was sent, with its spaces."""
        return self.fields.get(name, "")

    @property
    def options(self) -> dict[str, str]:
        """The reading options as entered."""
        return {name: self[name] for name in FIELDS}


@contextlib.asynccontextmanager
async def _reserve_upload(request: Request) -> AsyncIterator[None]:
    """Hold one of the slots for uploads in memory; other uploads wait on disk."""
    limits, places = request.app.state.settings.limits, request.app.state.uploads
    try:
        async with asyncio.timeout(limits.seconds):
            await places.acquire()
    except TimeoutError:
        many = "1 upload was" if limits.uploads == 1 else f"{limits.uploads} uploads were"
        busy = f"{many} being read for {limits.seconds:g} seconds"
        raise security.RequestRefused(503, busy, "try again later", {"retry-after": "5"}) from None
    try:
        yield
    finally:
        places.release()


@contextlib.asynccontextmanager
async def open_form(
    request: Request, *, files: bool = False, most: int = MOST_FIELDS
) -> AsyncIterator[SubmittedForm]:
    """Read a form of up to `most` fields; with `files`, its files too, which hold a slot while it is open."""
    try:
        form = await request.form(max_files=projects.FILES + 1, max_fields=most, max_part_size=PART)
    except HTTPException as error:
        raise InputError(f"the form cannot be read: {error.detail}", remedy="reload the page") from None
    async with contextlib.AsyncExitStack() as held:
        try:
            pairs = [(k, v) for k, v in form.multi_items() if isinstance(v, str)]
            security.check_csrf(request, dict(pairs).get("csrf"))
            chosen = [
                f for f in form.getlist("files") if isinstance(f, UploadFile) and (f.filename or f.size)
            ]
            if files and chosen:
                await held.enter_async_context(_reserve_upload(request))
            contents = [(f.filename or "", await f.read()) for f in chosen] if files else []
        finally:
            await form.close()
        yield SubmittedForm(pairs, contents)


def show_project(project: str, view: str, done: str = "") -> Response:
    """Redirect to a view of a project, with a message."""
    address = f"/p/{quote(project, safe='')}/{view}"
    return RedirectResponse(address + (f"{'&' if '?' in view else '?'}done={done}" if done else ""), 303)


def _show_opened(opened: projects.OpenedProject) -> Response:
    """Redirect to the view that suits the data."""
    return show_project(opened.id, opened.view, "" if opened.view == "data" else "opened")


def _open_upload(
    state: Any, files: list[tuple[str, bytes]], options: dict[str, str]
) -> projects.OpenedProject:
    return projects.open_upload(state.store, state.settings, files, options)


def _open_path(state: Any, root: int, inside: str, options: dict[str, str]) -> projects.OpenedProject:
    return projects.open_path(state.store, state.settings, root, inside, options)


def _add_labels(state: Any, project: str, files: list[tuple[str, bytes]], encoding: str) -> None:
    projects.add_labels(state.store, state.settings, project, files, encoding)


def _respond_form_again(
    request: Request, error: PodiumError, form: SubmittedForm, root: int | None = None
) -> Response:
    """The form again, with the error and the entered values."""
    status, words = 413 if isinstance(error, TooLarge) else 422, error.format_message(spell_option)
    entered = {k: v for k, v in form.options.items() if v}
    if root is None:
        return respond_home(request, status, error=words, is_kept=True, entered=entered)
    try:
        return respond_files(request, root, "", status, error=words, entered=entered)
    except PodiumError:  # there is no such folder
        raise error from None


@router.post("/open/upload")
async def upload_files(request: Request) -> Response:
    """Open uploaded files."""
    form = None
    try:
        async with open_form(request, files=True) as form:
            return _show_opened(await run_in_process(request, _open_upload, form.files, form.options))
    except PodiumError as error:
        if form is None or isinstance(error, security.RequestRefused):
            raise
        return await run_in_threadpool(_respond_form_again, request, error, form)


@router.post("/open/path")
async def open_server_path(request: Request) -> Response:
    """Open a file or folder on the server."""
    async with open_form(request) as form:
        if not form["root"].isdecimal() or len(form["root"]) > 6:
            raise ParameterError("root is not a number; use the form")
        root = int(form["root"])
        try:
            return _show_opened(await run_in_process(request, _open_path, root, form["at"], form.options))
        except security.RequestRefused:
            raise
        except PodiumError as error:
            return await run_in_threadpool(_respond_form_again, request, error, form, root)


@router.post("/p/{project}/labels")
async def upload_labels(request: Request, project: str) -> Response:
    """Add uploaded labels to an existing project."""
    async with open_form(request, files=True) as form:
        view = "jobs" if form["view"] == "jobs" else "data"
        try:
            await run_in_process(request, _add_labels, project, form.files, form["encoding"])
        except PodiumError as error:
            return await run_in_threadpool(respond_form_again, request, view, form.pairs, error)
    return show_project(project, view, "labels-added")


@router.post("/p/{project}/labels/remove")
async def remove_labels(request: Request, project: str) -> Response:
    """Remove the added labels."""
    async with open_form(request):
        await run_in_threadpool(request.app.state.store.remove_labels, project)
    return show_project(project, "data", "labels-removed")


@router.post("/p/{project}/jobs")
async def start_job(request: Request, project: str) -> Response:
    """Queue a job."""
    async with open_form(request) as form:
        settings = {
            "metric": form["metric"],
            "methods": [m for name, text in form.pairs if name == "methods" for m in text.split()],
            "trials": form["trials"],
            "weights": form["weights"] != "no",
            "seed": form["seed"],
            "method": form["method"],
        }
        store = request.app.state.store
        user = request.scope["podium.user"].name
        await run_in_threadpool(job_kinds.queue_job, store, project, form["kind"], settings, user)
    request.app.state.keeper.wake()
    return show_project(project, "jobs", "job-started")


@router.post("/p/{project}/jobs/{job}/stop")
async def stop_job(request: Request, project: str, job: str) -> Response:
    """Stop a job."""

    def cancel_job(store: Store) -> None:
        if store.job(job).project != project:
            raise RecordNotFound("no such job in this project")
        store.cancel(job)

    async with open_form(request):
        await run_in_threadpool(cancel_job, request.app.state.store)
    return show_project(project, "jobs")
