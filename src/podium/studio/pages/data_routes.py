"""Routes of the Data page: the plan of a file, the remedies, the name, the texts, removal and its undoing."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response
from starlette.concurrency import run_in_threadpool

from podium.core.errors import ParameterError, PodiumError
from podium.storage.files import Source
from podium.studio.import_plan import FilePlan, read_texts
from podium.studio.import_problems import apply_change
from podium.studio.import_tables import load_table
from podium.studio.loading import list_inputs, parse_plans
from podium.studio.pages.data_views import COLUMNS, FILES, digest_columns, read_form_plan
from podium.studio.pages.form_routes import open_form, show_project
from podium.studio.pages.page_routes import respond_form_again
from podium.studio.pages.projects import NAME, unpack_files
from podium.studio.view_forwarding import run_in_process

router = APIRouter(include_in_schema=False)

PlanChange = Callable[[int, FilePlan, tuple[str, bytes]], FilePlan]


def change_plans(state: Any, project: str, change: PlanChange) -> None:
    """Change the plans of the files of a project."""
    store, record = state.store, state.store.project(project)
    if record.kind == "demo":
        raise ParameterError("the embedded data cannot be changed; upload your own files")
    files = list_inputs(store, record, state.settings.roots)
    plans = parse_plans(record.options) or [_build_first_plan(record.options) for _ in files]
    changed = [change(n, plan, file) for n, (plan, file) in enumerate(zip(plans, files, strict=True))]
    store.change_project(project, plan=[plan.to_dict() for plan in changed], guessed=None)


def _build_first_plan(options: dict[str, Any]) -> FilePlan:
    """The plan that reads a file as the options of a project without plans do."""
    return FilePlan.from_dict({"format": options.get("format", ""), "options": options})


def change_by_remedy(number: str, change: str, n: int, plan: FilePlan, file: tuple[str, bytes]) -> FilePlan:
    """The plan of the file `n` after a remedy for the file `number`, or for all of them."""
    return apply_change(plan, change, load_table(Source(*file))) if number in ("", str(n)) else plan


def _apply_form(
    number: int, fields: dict[str, str], n: int, plan: FilePlan, file: tuple[str, bytes]
) -> FilePlan:
    """The plan of the file `n` after a form about the file `number`, and about files with the same columns."""
    if n != number:
        is_alike = fields.get("alike") == "1" and plan.use == fields.get("use")
        if not is_alike or digest_columns(*file, plan) != fields.get("columns"):
            return plan
    table = load_table(Source(*file), plan.delimiter, plan.header)
    new = read_form_plan(plan, fields, () if table is None else table.names)
    if new.use == plan.use:
        return new
    return apply_change(FilePlan.from_dict(new.to_dict() | {"use": plan.use}), f"use={new.use}", table)


def add_texts(state: Any, project: str, files: list[tuple[str, bytes]]) -> None:
    """Add tables of texts to a project, in place of those that it has."""
    state.store.project(project)
    plain = unpack_files(state.settings, files)
    for file in plain:
        read_texts(Source(*file), FilePlan(use="texts"))
    state.store.add_texts(project, plain)


@router.post("/p/{project}/data/change")
async def apply_remedy(request: Request, project: str) -> Response:
    """Apply a remedy to one file, or to all of them."""
    async with open_form(request) as form:
        change = functools.partial(change_by_remedy, form["file"], form.raw("change"))
        await run_in_process(request, change_plans, project, change)
    return show_project(project, "data")


@router.post("/p/{project}/data/{number}")
async def change_file(request: Request, project: str, number: int) -> Response:
    """Set the use, roles and choices of one file."""
    async with open_form(request, most=COLUMNS + 20) as form:
        change = functools.partial(_apply_form, number, form.fields)
        await run_in_process(request, change_plans, project, change)
    page = number // FILES + 1
    return show_project(project, f"data?page={page}" if page > 1 else "data", "read-again")


@router.post("/p/{project}/rename")
async def rename_project(request: Request, project: str) -> Response:
    """Give a project a name."""
    async with open_form(request) as form:
        name = "".join(ch for ch in form["name"] if ch.isprintable())[:NAME].strip()
        if not name:
            raise ParameterError("the name is empty; give one")
        request.app.state.store.project(project)
        await run_in_threadpool(request.app.state.store.change_project, project, name=name)
    return show_project(project, "data", "renamed")


@router.post("/p/{project}/texts")
async def upload_texts(request: Request, project: str) -> Response:
    """Add a table of titles, texts and addresses of the items."""
    async with open_form(request, files=True) as form:
        try:
            await run_in_process(request, add_texts, project, form.files)
        except PodiumError as error:
            return await run_in_threadpool(respond_form_again, request, "data", form.pairs, error)
    return show_project(project, "data", "texts-added")


@router.post("/p/{project}/texts/remove")
async def remove_texts(request: Request, project: str) -> Response:
    """Remove the added texts."""
    async with open_form(request):
        await run_in_threadpool(request.app.state.store.add_texts, project, [])
    return show_project(project, "data", "texts-removed")


@router.post("/p/{project}/remove")
async def remove_project(request: Request, project: str) -> Response:
    """Remove a project; for a day it can be restored."""
    async with open_form(request):
        await run_in_threadpool(request.app.state.store.hide_project, project)
    return RedirectResponse(f"/?removed={project}", 303)


@router.post("/p/{project}/restore")
async def restore_project(request: Request, project: str) -> Response:
    """Restore a removed project."""
    async with open_form(request):
        await run_in_threadpool(request.app.state.store.restore_project, project)
    return RedirectResponse(f"/p/{project}/data?done=restored", 303)
