"""Addresses of the pages."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
from collections.abc import AsyncIterator, Callable
from typing import Any
from urllib.parse import quote

from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from starlette.concurrency import run_in_threadpool

from podium import registry
from podium.data import markup
from podium.errors import ParameterError, PodiumError
from podium.evaluate import pictures
from podium.evaluate.report.blocks import Figure
from podium.studio import security
from podium.studio.fields import FIELDS, Field, spell
from podium.studio.jobs import keeping
from podium.studio.limits import TooLarge
from podium.studio.pages import (
    comparing,
    explaining,
    exploring,
    fusing,
    landing,
    overview,
    people,
    render,
    running,
)
from podium.studio.pages.context import PATIENCE, Context, View, Wait
from podium.studio.pages.forms import Sent, sent
from podium.studio.records import Missing, Project
from podium.studio.workspace import Workspace

__all__ = ["VIEWS", "failed", "router"]

VIEWS: dict[str, Callable[[Context], View]] = {
    "overview": overview.overview,
    "fuse": fusing.fuse,
    "methods": comparing.methods,
    "differences": comparing.differences,
    "queries": exploring.queries,
    "query": exploring.query,
    "why": explaining.why,
    "rank": explaining.rank,
    "experts": people.experts,
    "leaderboard": people.leaderboard,
    "annotators": people.annotators,
    "jobs": running.jobs,
    "job": running.job,
}
MENU = {
    "overview": "Overview", "fuse": "Fuse", "methods": "Methods", "differences": "Differences", "queries": "Queries",
    "why": "Why", "experts": "Experts", "leaderboard": "Leaderboard", "annotators": "Annotators", "jobs": "Jobs",
}  # fmt: skip
WITHIN = {"query": "queries", "job": "jobs"}  # views that are reached from another one
SHORT = {"cache-control": "private, max-age=300"}
FRESH = {"cache-control": "no-store"}
ALONE = {"content-security-policy": "sandbox"}  # a picture opened by itself is no page of ours


@contextlib.asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    app.state.workspace = Workspace(app.state.store, app.state.settings)
    app.state.uploads = asyncio.Semaphore(app.state.settings.limits.uploads)
    with keeping(app.state.store, app.state.settings.roots) as keeper:
        app.state.keeper = keeper
        yield
    app.state.workspace.close()


router = APIRouter(lifespan=_lifespan, include_in_schema=False, default_response_class=HTMLResponse)


# -- answers -------------------------------------------------------------------------------------------------------


def _page(request: Request, template: str, status: int = 200, **values: Any) -> Response:
    values = {"project": None, "menu": {}, "view": "", "exports": {}, "refresh": 0} | values
    values["view"] = WITHIN.get(values["view"], values["view"])
    text = render.page(template, csrf=security.csrf_token(request), **values)
    return HTMLResponse(text, status, headers=FRESH)


def failed(request: Request, error: PodiumError, **values: Any) -> Response:
    """What went wrong, in words, with the status that fits."""
    if isinstance(error, security.Refused):
        raise error
    status = 404 if isinstance(error, Missing) else 413 if isinstance(error, TooLarge) else 422
    if request.url.path.endswith(".json"):
        remedy = getattr(error, "remedy", None) or ""
        told = {
            "error": {"type": type(error).__name__, "message": error.format_message(spell), "remedy": remedy}
        }
        return Response(markup.format_json(told), status, media_type="application/json")
    if request.url.path.endswith((".csv", ".svg")):
        return Response(f"{error.format_message(spell)}\n", status, media_type="text/plain")
    return _page(
        request, "error.html", status, title="This did not work", error=error.format_message(spell), **values
    )


def _later() -> Response:
    """For programs: it takes longer than a request may."""
    return Response(
        "still computing; ask again\n", 503, headers={"retry-after": "5"}, media_type="text/plain"
    )


def _context(request: Request, project: str, *, patient: bool) -> Context:
    room: Workspace = request.app.state.workspace
    found = room.store.project(project)
    asked = [(k, v) for k, v in request.query_params.multi_items() if len(k) < 2_000 and len(v) < 20_000]
    try:
        data = room.data(found).result(room.settings.limits.seconds if patient else PATIENCE)
    except TimeoutError:
        raise Wait(found) from None
    return Context(room, found, data, asked, patient)


def _menu(c: Context) -> dict[str, str]:
    left_out = {"leaderboard", "annotators"} - c.data.kinds
    if c.data.labels is None:
        left_out.add("differences")
    return {view: word for view, word in MENU.items() if view not in left_out}


# -- views ---------------------------------------------------------------------------------------------------------


@router.get("/p/{project}")
def opened(project: str) -> Response:
    """A project begins with its overview."""
    return RedirectResponse(f"/p/{quote(project, safe='')}/overview", 303)


@router.get("/p/{project}/models/{model}.podium")
def model_file(request: Request, project: str, model: str) -> Response:
    """A fitted model as a file that `podium apply` takes."""
    store = request.app.state.store
    try:
        found = store.model(model)
        if found.project != project:
            raise Missing("there is no such model in this project")
        content = store.model_bytes(model)
    except PodiumError as error:
        return failed(request, error)
    return _download(content, "application/octet-stream", f"{found.id}.podium")


@router.get("/p/{project}/{view}")
def view(request: Request, project: str, view: str) -> Response:
    """A view as a page, or with .json or .csv as plain values."""
    name, _, kind = view.partition(".")
    if name not in VIEWS or kind not in ("", "json", "csv") or (name == "rank" and not kind):
        return failed(request, Missing("there is no such page; use the links of the studio"))
    try:
        c = _context(request, project, patient=bool(kind))
        try:
            found = VIEWS[name](c)
        except PodiumError as error:
            return failed(request, error, project=c.project, menu=_menu(c), view=name)
        except Wait:
            raise Wait(c.project, c) from None
    except Wait as wait:
        return _later() if kind else _waiting(request, name, wait)
    except PodiumError as error:
        return failed(request, error)
    if kind == "json":
        return Response(markup.format_json(found.document), media_type="application/json", headers=FRESH)
    if kind == "csv":
        text = render.csv_document(found.head, found.rows)
        return _download(text.encode(), "text/csv; charset=utf-8", f"podium-{name}.csv")
    return _shown(request, c, name, found)


def _waiting(request: Request, name: str, wait: Wait) -> Response:
    """What is known already, on a page that looks again by itself."""
    c: Context | None = wait.args[1] if len(wait.args) > 1 else None
    project: Project = wait.args[0]
    known: dict[str, Any] = (
        {"facts": {}} if c is None else {"menu": _menu(c), "facts": overview.facts(c.data)}
    )
    return _page(request, "wait.html", title=project.name, project=project, view=name, refresh=1, **known)


def _shown(request: Request, c: Context, name: str, found: View) -> Response:
    state = f"?{request.url.query}" if request.url.query else ""
    base = f"/p/{c.project.id}/{name}"
    picture = f"{base}/{{}}.svg{(state or '?').replace('{', '%7B').replace('}', '%7D')}"
    links = found.more.get("links")
    return _page(
        request,
        found.template,
        title=found.title,
        project=c.project,
        menu=_menu(c),
        view=name,
        exports={k: f"{base}.{k}{state}" for k in ("json", "csv")},
        blocks=[render.html(b, picture, links) for b in found.blocks],
        block=lambda b, links=links: render.html(b, picture, links),
        **{k: v for k, v in found.more.items() if k != "links"},
    )


@router.get("/p/{project}/{view}/{figure}.svg")
def picture(request: Request, project: str, view: str, figure: str, plot: int = 0) -> Response:
    """A picture of a view, or with `plot=1` the document that a browser draws it from."""
    if view not in VIEWS:
        return failed(request, Missing("there is no such page"))
    try:
        c = _context(request, project, patient=True)
        state = tuple((k, v) for k, v in c.asked if k != "plot")
        key = ("figure", c.data.fingerprint, project, view, figure, plot, state, len(c.models()))
        text = c.work.picture(key, lambda: _drawn(VIEWS[view](c), figure, plot))
    except Wait:
        return _later()
    except PodiumError as error:
        return failed(request, error)
    return Response(text, media_type="application/json" if plot else "image/svg+xml", headers=FRESH | ALONE)


def _drawn(found: View, name: str, plot: int) -> str:
    for block in found.blocks:
        if isinstance(block, Figure) and block.name == name:
            chart = block.chart() if isinstance(block.chart, functools.partial) else block.chart
            return json.dumps(pictures.to_vega_lite(chart)) if plot else render.svg(chart)
    raise Missing("there is no such picture on this page")


def _download(content: bytes, kind: str, name: str) -> Response:
    headers = FRESH | {"content-disposition": f'attachment; filename="{name}"'}
    return Response(content, media_type=kind, headers=headers)


@router.get("/static/{name}")
def static(request: Request, name: str) -> Response:
    """Style, script and the plotting library's own code."""
    found = render.asset(name)
    if found is None:
        return failed(request, Missing("there is no such file"))
    return Response(found[0], media_type=found[1], headers=SHORT)


# -- ways in -------------------------------------------------------------------------------------------------------


@router.get("/")
def home(request: Request) -> Response:
    """What can be opened, and what was."""
    request.app.state.workspace.warm()
    return _home(request)


def _home(request: Request, status: int = 200, **more: Any) -> Response:
    settings, store = request.app.state.settings, request.app.state.store
    return _page(request, "home.html", status, title="Studio", projects=store.projects(), fields=_fields(),
                 roots=landing.roots_of(settings), most=settings.limits.upload_bytes >> 20, **more)  # fmt: skip


def _fields() -> dict[str, Field]:
    """The fields of the form by which files are opened."""
    formats = tuple((name, name) for name in registry.formats.all())
    return FIELDS | {"format": FIELDS["format"]._replace(choices=formats)}


def _again(request: Request, error: PodiumError, form: Sent | None, root: int | None = None) -> Response:
    """The form once more, with what went wrong and what was entered."""
    if form is None or isinstance(error, security.Refused):
        return failed(request, error)
    status = 413 if isinstance(error, TooLarge) else 422
    kept = {"error": error.format_message(spell), "entered": {k: v for k, v in form.options.items() if v}}
    if root is None:
        return _home(request, status, **kept)
    try:
        found = landing.browse(request.app.state.settings, root, "")
    except PodiumError:
        return failed(request, error)
    return _page(request, "files.html", status, fields=_fields(), **found, **kept)


@router.get("/files/{root}")
def files(request: Request, root: int, at: str = "") -> Response:
    """A folder of the server."""
    try:
        found: dict[str, Any] = landing.browse(request.app.state.settings, root, at)
    except PodiumError as error:
        return failed(request, error)
    return _page(request, "files.html", fields=_fields(), **found)


@router.post("/open/upload")
async def upload(request: Request) -> Response:
    """Files from a browser."""
    state, form = request.app.state, None
    try:
        async with contextlib.AsyncExitStack() as held:
            form = await sent(request, held)
            given = (state.store, state.settings, form.files, form.options)
            project = await run_in_threadpool(landing.open_upload, *given)
    except PodiumError as error:
        return await run_in_threadpool(_again, request, error, form)
    return RedirectResponse(f"/p/{project}/overview", 303)


@router.post("/p/{project}/labels")
async def labels(request: Request, project: str) -> Response:
    """Labels from a browser, for a project that is there."""
    state = request.app.state
    try:
        async with contextlib.AsyncExitStack() as held:
            form = await sent(request, held)
            given = (state.store, state.settings, project, form.files, form["encoding"])
            await run_in_threadpool(landing.add_labels, *given)
    except PodiumError as error:
        return await run_in_threadpool(failed, request, error)
    return RedirectResponse(f"/p/{quote(project, safe='')}/overview", 303)


@router.post("/p/{project}/labels/remove")
async def remove_labels(request: Request, project: str) -> Response:
    """Take back the labels that were added."""
    try:
        await sent(request)
        await run_in_threadpool(request.app.state.store.remove_labels, project)
    except PodiumError as error:
        return await run_in_threadpool(failed, request, error)
    return RedirectResponse(f"/p/{quote(project, safe='')}/overview", 303)


@router.post("/open/path")
async def path(request: Request) -> Response:
    """A file or a folder of the server."""
    state, form, number = request.app.state, None, ""
    try:
        form = await sent(request)
        number = form["root"]
        if not number.isdecimal() or len(number) > 6:
            number = ""
            raise ParameterError("root is not a number; use the form")
        given = (state.store, state.settings, int(number), form["at"], form.options)
        project = await run_in_threadpool(landing.open_path, *given)
    except PodiumError as error:
        return await run_in_threadpool(_again, request, error, form if number else None, int(number or 0))
    return RedirectResponse(f"/p/{project}/overview", 303)


@router.post("/p/{project}/remove")
async def remove(request: Request, project: str) -> Response:
    """Forget a project."""
    try:
        await sent(request)
        await run_in_threadpool(request.app.state.store.remove, project)
    except PodiumError as error:
        return await run_in_threadpool(failed, request, error)
    return RedirectResponse("/", 303)
