"""Exclude annotators and restore them; download the data without them."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response

from podium.core.errors import ParameterError
from podium.studio import security
from podium.studio.pages.share_routes import build_file_context, respond_download, write_content
from podium.studio.pages.view_context import resolve_id
from podium.studio.view_forwarding import run_in_process
from podium.studio.workspace import Workspace

MOST = 10_000  # annotators in one form

router = APIRouter(include_in_schema=False)


@router.post("/p/{project}/annotators/{action}")
async def change_annotators(request: Request, project: str, action: str) -> Response:
    """Exclude or restore the named annotators; everything is computed again."""
    form = await request.form(max_files=0, max_fields=MOST, max_part_size=1 << 20)
    security.check_csrf(request, form.get("csrf"))
    named = [value.strip() for value in form.getlist("who") if isinstance(value, str) and value.strip()]
    await run_in_process(request, apply_exclusion, project, action, named)
    back = form.get("back")
    target = (
        f"worker?who={quote(named[0])}"
        if back == "worker" and action == "restore" and named
        else "annotators"
    )
    return RedirectResponse(f"/p/{quote(project, safe='')}/{target}", 303)


def apply_exclusion(state: Any, project: str, action: str, named: list[str]) -> None:
    """Exclude annotators from a project, or restore them."""
    work: Workspace = state.workspace
    record = work.store.project(project)
    if not named:
        raise ParameterError("no annotator is chosen; choose at least one")
    if action == "restore":
        known = {str(who): who for who in work.votes.excluded_annotators(project)}
        work.votes.restore_annotators(project, [known[name] for name in named if name in known])
        return
    if action != "exclude":
        raise ParameterError(f"the action is {action[:50]!r}; accepted: exclude, restore")
    experts = work.data(record).result().preferences.experts
    chosen = [resolve_id(name, experts, "annotator") for name in named]
    if len(set(chosen)) >= len(experts):
        raise ParameterError("this would exclude everybody; keep at least one annotator")
    work.votes.exclude_annotators(project, chosen)


@router.get("/p/{project}/cleaned.{suffix}")
def download_cleaned(request: Request, project: str, suffix: str) -> Response:
    """The judgements of a project without those of excluded annotators."""
    content, kind = write_content(build_file_context(request, project).data.preferences, suffix)
    return respond_download(content, kind, f"podium-cleaned.{suffix}")
