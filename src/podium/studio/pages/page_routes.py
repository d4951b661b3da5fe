"""Routes that show pages: views of projects and their figures, the start page, folders on the server."""

from __future__ import annotations

import contextlib
import functools
import json
import re
from typing import Any
from urllib.parse import quote

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from markupsafe import Markup

from podium.core import registry, tables
from podium.core.errors import PodiumError
from podium.data.preferences import Preferences
from podium.evaluate import charts
from podium.reporting.blocks import Figure, ReportTable, render_block
from podium.studio import security
from podium.studio.database import RecordNotFound
from podium.studio.form_fields import FIELDS, spell_option
from podium.studio.limits import TooLarge
from podium.studio.loading import ProjectData
from podium.studio.pages import projects, render
from podium.studio.pages.data_tables import build_table_page
from podium.studio.pages.navigation import choose_first_view, list_goals
from podium.studio.pages.overview import describe_data
from podium.studio.pages.snippets import REPEATED
from podium.studio.pages.toasts import find_toast
from podium.studio.pages.view_context import StillComputing, View, ViewContext, views
from podium.studio.problems import PROBLEM, problem_document
from podium.studio.workspace import Workspace

SHORT = {"cache-control": "private, max-age=300"}
FRESH = {"cache-control": "no-store"}
ALONE = {"content-security-policy": "sandbox"}  # a figure opened directly must not act as a page
ANSWERED = ("Results", "Explain", "Improve", "Collect", "Share")  # goals whose pages show the answer
TITLES = {404: "Not found", 413: "Too large", 422: "This cannot be done"}  # of pages of errors
RECENT = 8  # projects in the switcher
TABLE_STATE = re.compile(r"t\d+\.")  # parameters of the tables of a page
CONTEXT = "podium.view_context"  # of the request, in its scope


class UnreadableProject(Exception):
    """The files of a project cannot be read as they are; the Data page says why."""

    def __init__(self, project: str, reason: PodiumError) -> None:
        super().__init__(str(reason))
        self.project, self.reason = project, reason


router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)


# -- answers -------------------------------------------------------------------------------------------------------


def _respond_page(request: Request, template: str, status: int = 200, **values: Any) -> Response:
    blank: dict[str, Any] = {
        "project": None,
        "texts": {},
        "answer": None,
        "goals": [],
        "menu": {},
        "view": "",
        "exports": {},
        "refresh": 0,
        "error": "",
        "is_kept": False,
    }
    blank["recent"] = request.app.state.store.projects()[:RECENT]
    user = blank["user"] = request.scope.get("podium.user", security.LOCAL)
    blank |= {"may_edit": user.may_act_as("editor"), "may_vote": user.may_act_as("judge")}
    blank["toast"] = find_toast(request.query_params)
    c: ViewContext | None = request.scope.get(CONTEXT)
    if c is not None:
        name = request.path_params["view"].partition(".")[0]
        name = views.get(name).within or name
        goals = list_goals(c.data if c.problem is None else None, name)
        menu = {n: title for goal in goals for n, title in goal.views.items()}
        if (
            c.problem is None
            and any(g.is_current and g.goal in ANSWERED for g in goals)
            and name != "overview"
        ):
            blank["answer"] = c.peek_answer()
        blank |= {"project": c.project, "texts": c.texts, "goals": goals, "menu": menu, "view": name}
    text = render.render_page(template, csrf=security.csrf_token(request), **(blank | values))
    return HTMLResponse(text, status, headers=FRESH)


def respond_error(request: Request, error: PodiumError) -> Response:
    """An error page with the matching status; for plain values, the error as JSON or text."""
    if isinstance(error, security.RequestRefused):
        raise error
    usual = 404 if isinstance(error, RecordNotFound) else 413 if isinstance(error, TooLarge) else 422
    status = getattr(error, "http_status", usual)
    words, path = error.format_message(spell_option), request.url.path
    if path.endswith(".json"):
        remedy = getattr(error, "remedy", None) or ""
        document = problem_document(status, type(error).__name__, words, remedy)
        return Response(tables.format_json(document), status, media_type=PROBLEM)
    if path.endswith((".csv", ".svg")):
        return Response(f"{words}\n", status, media_type="text/plain")
    here: dict[str, Any] = {}
    if CONTEXT not in request.scope and (project := request.path_params.get("project")):
        with contextlib.suppress(PodiumError):  # the way back is to the project, if there is one
            here = {"project": request.app.state.store.project(project)}
    # the words stay as they are: they may begin with the name of a file
    title = TITLES.get(status, "Error")
    return _respond_page(
        request, "error.html", status, title=title, error=words, start=_link_start(request), **here
    )


def _link_start(request: Request) -> tuple[str, str] | None:
    """The page without the values that it was given, with its title: a way on where one of them is wrong."""
    view = views.all().get(request.path_params.get("view", ""))
    return (
        None
        if view is None or not view.title or not request.url.query
        else (request.scope["path"], view.title)
    )


def redirect_to_data(request: Request, error: UnreadableProject) -> Response:
    """Lead a reader to the page where unreadable files are repaired; programs get the error."""
    if request.url.path.endswith((".json", ".csv", ".svg", ".rows")):
        return respond_error(request, error.reason)
    return RedirectResponse(f"/p/{error.project}/data", 303)


def respond_waiting(request: Request, wait: StillComputing) -> Response:
    """Show what is known so far, on a page that refreshes itself; programs are asked to try again."""
    is_file = "." in request.url.path.rpartition("/")[2]
    if is_file and "text/html" not in request.headers.get("accept", ""):
        again = {"retry-after": "5"}
        return Response("still computing; try again later\n", 503, again, media_type="text/plain")
    c: ViewContext | None = request.scope.get(CONTEXT)
    known: dict[str, Any] = (
        {"facts": request.scope.get("podium.progress", {}), "project": wait.args[0]}
        if c is None
        else {"facts": describe_data(c.data)}
    )
    title = (wait.args[0] if c is None else c.project).name
    return _respond_page(request, "wait.html", title=title, refresh=1, **known)


def _respond_download(content: bytes, kind: str, name: str) -> Response:
    headers = FRESH | {"content-disposition": f'attachment; filename="{name}"'}
    return Response(content, media_type=kind, headers=headers)


# -- views ---------------------------------------------------------------------------------------------------------


def _build_context(
    request: Request, project: str, *, patient: bool, entered: list[tuple[str, str]] | None = None
) -> ViewContext:
    room: Workspace = request.app.state.workspace
    project_record = room.store.project(project)
    sent = request.query_params.multi_items() if entered is None else entered
    parameters = [(k, v) for k, v in sent if len(k) < 2_000 and len(v) < 20_000]
    problem = None
    try:
        data = room.data(project_record).result(
            room.settings.limits.seconds if patient else room.settings.patience
        )
    except TimeoutError:
        raise StillComputing(project_record) from None
    except PodiumError as error:
        name = request.path_params.get("view", "").partition(".")[0]
        if name not in views or views.get(name).needs_data:
            raise UnreadableProject(project_record.id, error) from error
        problem, data = error, ProjectData(Preferences.from_rows([], [], [], rank=[]))
    c = request.scope[CONTEXT] = ViewContext(room, project_record, data, parameters, patient, problem)
    return c


def find_first_view(room: Workspace, project: str) -> str:
    """The view with which a project opens; the overview while its data are still being read."""
    try:
        return choose_first_view(room.data(room.store.project(project)).result(room.settings.patience))
    except TimeoutError:
        return "overview"
    except RecordNotFound:
        raise
    except PodiumError:
        return "data"


@router.get("/p/{project}")
def redirect_to_first_view(request: Request, project: str) -> Response:
    """Redirect a project to the view that suits its data."""
    name = find_first_view(request.app.state.workspace, project)
    state = f"?{request.url.query}" if request.url.query else ""
    return RedirectResponse(f"/p/{quote(project, safe='')}/{name}{state}", 303)


@router.get("/p/{project}/models/{model}.podium")
def download_model(request: Request, project: str, model: str) -> Response:
    """Download a fitted model as a file for `podium apply`."""
    store = request.app.state.store
    if store.model(model).project != project:
        raise RecordNotFound("no such model in this project")
    return _respond_download(store.model_bytes(model), "application/octet-stream", f"{model}.podium")


@router.get("/p/{project}/{view}")
def show_view(request: Request, project: str, view: str) -> Response:
    """A view as a page, or with .json or .csv as plain values."""
    name, _, kind = view.partition(".")
    build = views.all().get(name)
    if build is None or kind not in ("", "json", "csv") or not (kind or build.page):
        raise RecordNotFound("page not found; use the links of the studio")
    c = _build_context(request, project, patient=bool(kind))
    content = build(c)
    if kind == "json":
        return Response(tables.format_json(content.document), media_type="application/json", headers=FRESH)
    if kind == "csv":
        text = render.format_csv(content.head, content.rows)
        return _respond_download(text.encode(), "text/csv; charset=utf-8", f"podium-{name}.csv")
    return _respond_view(request, c, name, content)


def _respond_view(
    request: Request, c: ViewContext, name: str, content: View, status: int = 200, **more: Any
) -> Response:
    base, state = f"/p/{c.project.id}/{name}", f"?{request.url.query}" if request.url.query else ""
    pictures = f"{base}/{{}}.svg{(state or '?').replace('{', '%7B').replace('}', '%7D')}"
    blocks = [
        render.render_table(build_table_page(b, f"t{n}", c.parameters, content.links, c.texts))
        if isinstance(b, ReportTable)
        else Markup(render_block(b, pictures=pictures))
        for n, b in enumerate(content.blocks)
    ]
    exports = {k: f"{base}.{k}{state}" for k in ("json", "csv")} | _link_code(c, name)
    values = {"title": content.title, "exports": exports, "blocks": blocks} | content.more | more
    return _respond_page(request, content.template, status, **values)


def _link_code(c: ViewContext, name: str) -> dict[str, str]:
    """The address of the code that repeats a view in its present state, if there is code for it."""
    if name not in REPEATED:
        return {}
    state = [(k, v) for k, v in c.parameters if k != "view" and not TABLE_STATE.match(k)]
    return {"code": f"{c.build_link('share', ('view', name), *state)}#code"}


def respond_form_again(
    request: Request, view: str, entered: list[tuple[str, str]], error: PodiumError
) -> Response:
    """The view of a form again, with what was entered and the error; other errors than of the form have a page."""
    if isinstance(error, RecordNotFound | security.RequestRefused):
        raise error
    request.scope["path_params"]["view"] = view
    c = _build_context(request, request.path_params["project"], patient=True, entered=entered)
    status = 413 if isinstance(error, TooLarge) else 422
    words = error.format_message(spell_option)
    return _respond_view(request, c, view, views.get(view)(c), status, error=words, is_kept=True)


@router.get("/p/{project}/{view}/{figure}.svg")
def show_picture(
    request: Request,
    project: str,
    view: str,
    figure: str,
    plot: int = 0,
    theme: str = "light",
    width: int = 0,
) -> Response:
    """A figure of a view in a theme and width, or with `plot=1` its chart specification."""
    build = views.all().get(view)
    if build is None:
        raise RecordNotFound("page not found")
    c = _build_context(request, project, patient=True)
    state = tuple((k, v) for k, v in c.parameters if k not in ("plot", "theme", "width"))
    look = ("dark" if theme == "dark" else "light", render.PHONE if 0 < width <= 500 else render.WIDE)
    key = (
        "figure",
        c.data.fingerprint,
        project,
        view,
        figure,
        plot,
        look,
        state,
        len(c.models()),
        c.default_method,
    )
    text = c.work.picture(key, lambda: _draw_figure(build(c), figure, plot, *look))
    return Response(text, media_type="application/json" if plot else "image/svg+xml", headers=FRESH | ALONE)


def list_figures(request: Request, project: str, view: str) -> list[Figure]:
    """The figures of a view."""
    build = views.all().get(view)
    if build is None:
        raise RecordNotFound("no such view; see the list of views")
    content = build(_build_context(request, project, patient=True))
    return [block for block in content.blocks if isinstance(block, Figure)]


def _draw_figure(content: View, name: str, plot: int, theme: str, width: int) -> str:
    for block in content.blocks:
        if isinstance(block, Figure) and block.name == name:
            chart = block.chart() if isinstance(block.chart, functools.partial) else block.chart
            chart = render.style_chart(chart, theme, width)
            return json.dumps(charts.to_vega_lite(chart)) if plot else render.render_svg(chart)
    raise RecordNotFound("no such figure on this page")


@router.get("/p/{project}/{view}/{table}.rows")
def list_table_rows(request: Request, project: str, view: str, table: str) -> Response:
    """All rows of a table that match its search, in its order, for a page that scrolls through them."""
    build = views.all().get(view)
    number = table.removeprefix("t")
    if build is None or not number.isdecimal() or len(number) > 3:
        raise RecordNotFound("page not found")
    c = _build_context(request, project, patient=True)
    content = build(c)
    block = content.blocks[int(number)] if int(number) < len(content.blocks) else None
    if not isinstance(block, ReportTable):
        raise RecordNotFound("no such table on this page")
    whole = build_table_page(block, table, c.parameters, content.links, c.texts, whole=True)
    document = {
        "rows": whole.rows,
        "notes": whole.notes,
        "links": whole.links,
        "sides": [column.side for column in whole.columns],
    }
    return Response(tables.format_json(document), media_type="application/json", headers=FRESH)


@router.get("/static/{name}")
def serve_static(name: str) -> Response:
    """Style sheet, script and plotting library."""
    asset = render.load_asset(name)
    if asset is None:
        raise RecordNotFound("file not found")
    return Response(asset[0], media_type=asset[1], headers=SHORT)


# -- opening -------------------------------------------------------------------------------------------------------


@router.get("/")
def show_home(request: Request) -> Response:
    """The start page: inputs to open, and recent projects."""
    request.app.state.workspace.warm_up()
    return respond_home(request)


@router.get("/files/{root}")
def show_files(request: Request, root: int, at: str = "") -> Response:
    """List a folder on the server."""
    return respond_files(request, root, at)


def respond_home(request: Request, status: int = 200, **more: Any) -> Response:
    """The start page; `more` is an error and what was entered."""
    more = {"entered": {}, "collecting": {}} | more
    settings, known = request.app.state.settings, request.app.state.store.projects()
    more |= {"roots": projects.list_roots(settings), "most": settings.limits.upload_bytes >> 20}
    table, links = projects.tabulate_projects(known)
    more |= {"projects": build_table_page(table, "projects", request.query_params.multi_items(), links)}
    return _respond_page(request, "home.html", status, title="Open data", fields=_list_fields(), **more)


def respond_files(request: Request, root: int, at: str, status: int = 200, **more: Any) -> Response:
    """The page of a folder on the server; `more` is an error and the options as entered."""
    folder = projects.browse_folder(request.app.state.settings, root, at)
    more = {"entered": {}} | more
    return _respond_page(request, "files.html", status, fields=_list_fields(), **folder, **more)


def _list_fields() -> dict[str, Any]:
    """The fields of the open-files form."""
    formats = tuple((name, name) for name in registry.formats.all())
    return FIELDS | {"format": FIELDS["format"]._replace(choices=formats)}
