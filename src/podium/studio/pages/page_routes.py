"""Routes of the pages."""

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

from podium.core import registry, tables
from podium.core.errors import ParameterError, PodiumError
from podium.evaluate import charts
from podium.reporting.blocks import Figure
from podium.studio import security
from podium.studio.form_fields import FIELDS, FormField, spell_option
from podium.studio.job_worker import supervise_worker
from podium.studio.limits import TooLarge
from podium.studio.pages import (
    comparison_views,
    expert_views,
    explanation_views,
    fusion_views,
    job_views,
    overview,
    projects,
    query_views,
    render,
)
from podium.studio.pages.forms import SubmittedForm, read_form
from podium.studio.pages.view_context import PATIENCE, StillComputing, View, ViewContext
from podium.studio.store_records import Project, RecordNotFound
from podium.studio.workspace import Workspace

__all__ = ["VIEWS", "respond_error", "router"]

VIEWS: dict[str, Callable[[ViewContext], View]] = {
    "overview": overview.build_overview_view,
    "fuse": fusion_views.build_fuse_view,
    "methods": comparison_views.build_methods_view,
    "differences": comparison_views.build_differences_view,
    "queries": query_views.build_queries_view,
    "query": query_views.build_query_view,
    "why": explanation_views.build_why_view,
    "rank": explanation_views.build_rank_view,
    "experts": expert_views.build_experts_view,
    "leaderboard": expert_views.build_leaderboard_view,
    "annotators": expert_views.build_annotators_view,
    "jobs": job_views.build_jobs_view,
    "job": job_views.build_job_view,
}
MENU = {
    "overview": "Overview", "fuse": "Fuse", "methods": "Methods", "differences": "Differences", "queries": "Queries",
    "why": "Why", "experts": "Experts", "leaderboard": "Leaderboard", "annotators": "Annotators", "jobs": "Jobs",
}  # fmt: skip
WITHIN = {"query": "queries", "job": "jobs"}  # views reached from another view
SHORT = {"cache-control": "private, max-age=300"}
FRESH = {"cache-control": "no-store"}
ALONE = {"content-security-policy": "sandbox"}  # a figure opened directly must not act as a page


@contextlib.asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    app.state.workspace = Workspace(app.state.store, app.state.settings)
    app.state.uploads = asyncio.Semaphore(app.state.settings.limits.uploads)
    with supervise_worker(app.state.store, app.state.settings.roots) as keeper:
        app.state.keeper = keeper
        yield
    app.state.workspace.close()


router = APIRouter(lifespan=_lifespan, include_in_schema=False, default_response_class=HTMLResponse)


# -- answers -------------------------------------------------------------------------------------------------------


def _respond_page(request: Request, template: str, status: int = 200, **values: Any) -> Response:
    values = {"project": None, "menu": {}, "view": "", "exports": {}, "refresh": 0} | values
    values["view"] = WITHIN.get(values["view"], values["view"])
    text = render.render_page(template, csrf=security.csrf_token(request), **values)
    return HTMLResponse(text, status, headers=FRESH)


def respond_error(request: Request, error: PodiumError, **values: Any) -> Response:
    """An error page with the matching status."""
    if isinstance(error, security.RequestRefused):
        raise error
    status = 404 if isinstance(error, RecordNotFound) else 413 if isinstance(error, TooLarge) else 422
    if request.url.path.endswith(".json"):
        remedy = getattr(error, "remedy", None) or ""
        told = {
            "error": {
                "type": type(error).__name__,
                "message": error.format_message(spell_option),
                "remedy": remedy,
            }
        }
        return Response(tables.format_json(told), status, media_type="application/json")
    if request.url.path.endswith((".csv", ".svg")):
        return Response(f"{error.format_message(spell_option)}\n", status, media_type="text/plain")
    return _respond_page(
        request,
        "error.html",
        status,
        title="Error",
        error=error.format_message(spell_option),
        **values,
    )


def _respond_busy() -> Response:
    """For programs: the computation takes longer than a request may."""
    return Response(
        "still computing; try again later\n", 503, headers={"retry-after": "5"}, media_type="text/plain"
    )


def _build_context(request: Request, project: str, *, patient: bool) -> ViewContext:
    room: Workspace = request.app.state.workspace
    found = room.store.project(project)
    asked = [(k, v) for k, v in request.query_params.multi_items() if len(k) < 2_000 and len(v) < 20_000]
    try:
        data = room.data(found).result(room.settings.limits.seconds if patient else PATIENCE)
    except TimeoutError:
        raise StillComputing(found) from None
    return ViewContext(room, found, data, asked, patient)


def _build_menu(c: ViewContext) -> dict[str, str]:
    left_out = {"leaderboard", "annotators"} - c.data.kinds
    if c.data.labels is None:
        left_out.add("differences")
    return {view: word for view, word in MENU.items() if view not in left_out}


# -- views ---------------------------------------------------------------------------------------------------------


@router.get("/p/{project}")
def redirect_to_overview(project: str) -> Response:
    """Redirect a project to its overview."""
    return RedirectResponse(f"/p/{quote(project, safe='')}/overview", 303)


@router.get("/p/{project}/models/{model}.podium")
def download_model(request: Request, project: str, model: str) -> Response:
    """Download a fitted model as a file for `podium apply`."""
    store = request.app.state.store
    try:
        found = store.model(model)
        if found.project != project:
            raise RecordNotFound("no such model in this project")
        content = store.model_bytes(model)
    except PodiumError as error:
        return respond_error(request, error)
    return _respond_download(content, "application/octet-stream", f"{found.id}.podium")


@router.get("/p/{project}/{view}")
def show_view(request: Request, project: str, view: str) -> Response:
    """A view as a page, or with .json or .csv as plain values."""
    name, _, kind = view.partition(".")
    if name not in VIEWS or kind not in ("", "json", "csv") or (name == "rank" and not kind):
        return respond_error(request, RecordNotFound("page not found; use the links of the studio"))
    try:
        c = _build_context(request, project, patient=bool(kind))
        try:
            found = VIEWS[name](c)
        except PodiumError as error:
            return respond_error(request, error, project=c.project, menu=_build_menu(c), view=name)
        except StillComputing:
            raise StillComputing(c.project, c) from None
    except StillComputing as wait:
        return _respond_busy() if kind else _respond_waiting(request, name, wait)
    except PodiumError as error:
        return respond_error(request, error)
    if kind == "json":
        return Response(tables.format_json(found.document), media_type="application/json", headers=FRESH)
    if kind == "csv":
        text = render.format_csv(found.head, found.rows)
        return _respond_download(text.encode(), "text/csv; charset=utf-8", f"podium-{name}.csv")
    return _respond_view(request, c, name, found)


def _respond_waiting(request: Request, name: str, wait: StillComputing) -> Response:
    """Show what is known so far, on a page that refreshes itself."""
    c: ViewContext | None = wait.args[1] if len(wait.args) > 1 else None
    project: Project = wait.args[0]
    known: dict[str, Any] = (
        {"facts": {}} if c is None else {"menu": _build_menu(c), "facts": overview.describe_data(c.data)}
    )
    return _respond_page(
        request, "wait.html", title=project.name, project=project, view=name, refresh=1, **known
    )


def _respond_view(request: Request, c: ViewContext, name: str, found: View) -> Response:
    state = f"?{request.url.query}" if request.url.query else ""
    base = f"/p/{c.project.id}/{name}"
    picture = f"{base}/{{}}.svg{(state or '?').replace('{', '%7B').replace('}', '%7D')}"
    links = found.more.get("links")
    return _respond_page(
        request,
        found.template,
        title=found.title,
        project=c.project,
        menu=_build_menu(c),
        view=name,
        exports={k: f"{base}.{k}{state}" for k in ("json", "csv")},
        blocks=[render.render_block(b, picture, links) for b in found.blocks],
        block=lambda b, links=links: render.render_block(b, picture, links),
        **{k: v for k, v in found.more.items() if k != "links"},
    )


@router.get("/p/{project}/{view}/{figure}.svg")
def show_picture(request: Request, project: str, view: str, figure: str, plot: int = 0) -> Response:
    """A figure of a view, or with `plot=1` its chart specification."""
    if view not in VIEWS:
        return respond_error(request, RecordNotFound("page not found"))
    try:
        c = _build_context(request, project, patient=True)
        state = tuple((k, v) for k, v in c.asked if k != "plot")
        key = ("figure", c.data.fingerprint, project, view, figure, plot, state, len(c.models()))
        text = c.work.picture(key, lambda: _draw_figure(VIEWS[view](c), figure, plot))
    except StillComputing:
        return _respond_busy()
    except PodiumError as error:
        return respond_error(request, error)
    return Response(text, media_type="application/json" if plot else "image/svg+xml", headers=FRESH | ALONE)


def _draw_figure(found: View, name: str, plot: int) -> str:
    for block in found.blocks:
        if isinstance(block, Figure) and block.name == name:
            chart = block.chart() if isinstance(block.chart, functools.partial) else block.chart
            return json.dumps(charts.to_vega_lite(chart)) if plot else render.render_svg(chart)
    raise RecordNotFound("no such figure on this page")


def _respond_download(content: bytes, kind: str, name: str) -> Response:
    headers = FRESH | {"content-disposition": f'attachment; filename="{name}"'}
    return Response(content, media_type=kind, headers=headers)


@router.get("/static/{name}")
def serve_static(request: Request, name: str) -> Response:
    """Style sheet, script and plotting library."""
    found = render.load_asset(name)
    if found is None:
        return respond_error(request, RecordNotFound("file not found"))
    return Response(found[0], media_type=found[1], headers=SHORT)


# -- opening -------------------------------------------------------------------------------------------------------


@router.get("/")
def show_home(request: Request) -> Response:
    """The start page: inputs to open, and recent projects."""
    request.app.state.workspace.warm_up()
    return _respond_home(request)


def _respond_home(request: Request, status: int = 200, **more: Any) -> Response:
    settings, store = request.app.state.settings, request.app.state.store
    return _respond_page(request, "home.html", status, title="Studio", projects=store.projects(),
                         fields=_list_form_fields(),
                 roots=projects.list_roots(settings), most=settings.limits.upload_bytes >> 20, **more)  # fmt: skip


def _list_form_fields() -> dict[str, FormField]:
    """The fields of the open-files form."""
    formats = tuple((name, name) for name in registry.formats.all())
    return FIELDS | {"format": FIELDS["format"]._replace(choices=formats)}


def _respond_form_again(
    request: Request, error: PodiumError, form: SubmittedForm | None, root: int | None = None
) -> Response:
    """The form again, with the error and the entered values."""
    if form is None or isinstance(error, security.RequestRefused):
        return respond_error(request, error)
    status = 413 if isinstance(error, TooLarge) else 422
    kept = {
        "error": error.format_message(spell_option),
        "entered": {k: v for k, v in form.options.items() if v},
    }
    if root is None:
        return _respond_home(request, status, **kept)
    try:
        found = projects.browse_folder(request.app.state.settings, root, "")
    except PodiumError:
        return respond_error(request, error)
    return _respond_page(request, "files.html", status, fields=_list_form_fields(), **found, **kept)


@router.get("/files/{root}")
def show_files(request: Request, root: int, at: str = "") -> Response:
    """List a folder on the server."""
    try:
        found: dict[str, Any] = projects.browse_folder(request.app.state.settings, root, at)
    except PodiumError as error:
        return respond_error(request, error)
    return _respond_page(request, "files.html", fields=_list_form_fields(), **found)


@router.post("/open/upload")
async def upload_files(request: Request) -> Response:
    """Open uploaded files."""
    state, form = request.app.state, None
    try:
        async with contextlib.AsyncExitStack() as held:
            form = await read_form(request, held)
            given = (state.store, state.settings, form.files, form.options)
            project = await run_in_threadpool(projects.open_upload, *given)
    except PodiumError as error:
        return await run_in_threadpool(_respond_form_again, request, error, form)
    return RedirectResponse(f"/p/{project}/overview", 303)


@router.post("/p/{project}/labels")
async def upload_labels(request: Request, project: str) -> Response:
    """Add uploaded labels to an existing project."""
    state = request.app.state
    try:
        async with contextlib.AsyncExitStack() as held:
            form = await read_form(request, held)
            given = (state.store, state.settings, project, form.files, form["encoding"])
            await run_in_threadpool(projects.add_labels, *given)
    except PodiumError as error:
        return await run_in_threadpool(respond_error, request, error)
    return RedirectResponse(f"/p/{quote(project, safe='')}/overview", 303)


@router.post("/p/{project}/labels/remove")
async def remove_labels(request: Request, project: str) -> Response:
    """Remove the added labels."""
    try:
        await read_form(request)
        await run_in_threadpool(request.app.state.store.remove_labels, project)
    except PodiumError as error:
        return await run_in_threadpool(respond_error, request, error)
    return RedirectResponse(f"/p/{quote(project, safe='')}/overview", 303)


@router.post("/open/path")
async def open_server_path(request: Request) -> Response:
    """Open a file or folder on the server."""
    state, form, number = request.app.state, None, ""
    try:
        form = await read_form(request)
        number = form["root"]
        if not number.isdecimal() or len(number) > 6:
            number = ""
            raise ParameterError("root is not a number; use the form")
        given = (state.store, state.settings, int(number), form["at"], form.options)
        project = await run_in_threadpool(projects.open_path, *given)
    except PodiumError as error:
        return await run_in_threadpool(
            _respond_form_again, request, error, form if number else None, int(number or 0)
        )
    return RedirectResponse(f"/p/{project}/overview", 303)


@router.post("/p/{project}/remove")
async def remove_project(request: Request, project: str) -> Response:
    """Remove a project."""
    try:
        await read_form(request)
        await run_in_threadpool(request.app.state.store.remove_project, project)
    except PodiumError as error:
        return await run_in_threadpool(respond_error, request, error)
    return RedirectResponse("/", 303)
