"""Apply a method or a fitted model to files that are not part of the project, and take the result away."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response
from starlette.concurrency import run_in_threadpool

from podium.core import registry
from podium.core.errors import ParameterError, PodiumError
from podium.formats.base import to_content
from podium.studio.limits import check_pairs
from podium.studio.loading import open_input
from podium.studio.pages.form_routes import open_form
from podium.studio.pages.page_routes import respond_form_again
from podium.studio.pages.projects import unpack_files
from podium.studio.pages.view_context import View, ViewContext, register_view
from podium.studio.view_forwarding import run_in_process
from podium.studio.workspace import Workspace

TYPES = {
    "parquet": "application/octet-stream",
    "jsonl": "application/x-ndjson",
    "csv": "text/csv; charset=utf-8",
}
SUFFIXES = {"trec": "run", "letor": "txt", "preflib": "soi"}
FIRST = "trec"

router = APIRouter(include_in_schema=False)


def list_result_formats() -> list[str]:
    """The formats in which a ranking can be written, the usual one first."""
    tools = registry.recipes.all()
    able = [n for n, cls in registry.formats.all().items() if "lists" in cls.holds and n not in tools]
    return sorted(able, key=lambda n: (n != FIRST, n))


@register_view("apply", "Apply", 110, goal="Improve")
def build_apply_view(c: ViewContext) -> View:
    """The form: a method or model, new files, the format of the result."""
    models = c.models()
    card = c.peek_answer()
    best = card.spec if card is not None else ""
    chosen = c.get_value("m") or best or next(iter(models), "") or next(iter(c.work.choose_methods(c.data)))
    formats = list_result_formats()
    more = {
        "spec": chosen, "methods": c.methods(), "models": models, "formats": formats, "best": best,
        "wanted": c.get_value("format") or formats[0],
    }  # fmt: skip
    rows = [(spec, name) for spec, name in (*models.items(), *((m, m) for m in c.methods()))]
    document = {
        "methods": [dict(zip(("spec", "name"), row, strict=True)) for row in rows],
        "formats": formats,
    }
    return View("Apply to new files", document, ("spec", "name"), rows, (), "apply.html", more)


@router.post("/p/{project}/apply")
async def apply_to_files(request: Request, project: str) -> Response:
    """Aggregate uploaded files with a method or model of the project; the answer is the result as a file."""
    async with open_form(request, files=True) as form:
        wanted = form["format"]
        try:
            content = await run_in_process(request, apply_method, project, form["m"], wanted, form.files)
        except PodiumError as error:
            entered = [(name, form[name]) for name in ("m", "format")]
            return await run_in_threadpool(respond_form_again, request, "apply", entered, error)
    return respond_result(content, wanted)


def apply_method(state: Any, project: str, spec: str, wanted: str, files: list[tuple[str, bytes]]) -> bytes:
    """The result of a method or model of the project on files, in the wanted format."""
    room: Workspace = state.workspace
    state.store.project(project)
    if wanted not in list_result_formats():
        raise ParameterError(f"the format is {wanted[:50]!r}; accepted: {', '.join(list_result_formats())}")
    if spec.startswith("model:") and state.store.model(spec.removeprefix("model:")).project != project:
        raise ParameterError("the model belongs to another project; choose one from the list")
    method = room.method(spec)
    data = open_input(unpack_files(state.settings, files))
    check_pairs(state.settings.limits, data.preferences, method)
    result = method.aggregate(data.preferences, data.features if method.tags.uses_features else None)
    return b"".join(registry.formats.get(wanted)().write(to_content(result)))


def respond_result(content: bytes, wanted: str) -> Response:
    """A result as a file to save."""
    name = f"podium-result.{SUFFIXES.get(wanted, wanted)}"
    headers = {"cache-control": "no-store", "content-disposition": f'attachment; filename="{name}"'}
    return Response(content, media_type=TYPES.get(wanted, "text/plain; charset=utf-8"), headers=headers)
