"""Keep the weights of the Explain page as a model of the project."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote, urlencode

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response

from podium import models
from podium.core.errors import ParameterError
from podium.studio import security
from podium.studio.pages.explanation_views import resolve_weights
from podium.studio.pages.view_context import ViewContext
from podium.studio.view_forwarding import run_in_process

MOST_FIELDS = 200
LONGEST_NAME = 100

router = APIRouter(include_in_schema=False)


def store_weights(state: Any, project: str, fields: list[tuple[str, str]]) -> tuple[str, str]:
    """Store a method with weights as a model of the project; its id, and the query in view."""
    work = state.workspace
    record = work.store.project(project)
    c = ViewContext(work, record, work.data(record).result(), fields)
    spec, method, factors = resolve_weights(c)
    if not factors:
        raise ParameterError("all weights are 1; move a slider first")
    name = c.get_value("name", f"{spec} with own weights")[:LONGEST_NAME]
    model = work.store.add_model(project, name, repr(method), models.model_files.dumps(method))
    return model, c.get_value("q")


@router.post("/p/{project}/weights")
async def keep_weights(request: Request, project: str) -> Response:
    """Store the method with these weights as a model, and show it."""
    form = await request.form(max_files=0, max_fields=MOST_FIELDS, max_part_size=1 << 16)
    fields = [(name, value) for name, value in form.multi_items() if isinstance(value, str)]
    security.check_csrf(request, dict(fields).get("csrf"))
    model, query = await run_in_process(request, store_weights, project, fields)
    state = urlencode([("m", f"model:{model}"), *([("q", query)] if query else []), ("done", "weights-kept")])
    return RedirectResponse(f"/p/{quote(project, safe='')}/explain?{state}", 303)
