"""Keep the weights of the Explain page as a model of the project."""

from __future__ import annotations

from urllib.parse import quote, urlencode

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response
from starlette.concurrency import run_in_threadpool

from podium import models
from podium.core.errors import ParameterError
from podium.studio import security
from podium.studio.pages.explanation_views import resolve_weights
from podium.studio.pages.view_context import ViewContext

MOST_FIELDS = 200
LONGEST_NAME = 100

router = APIRouter(include_in_schema=False)


@router.post("/p/{project}/weights")
async def keep_weights(request: Request, project: str) -> Response:
    """Store the method with these weights as a model, and show it."""
    form = await request.form(max_files=0, max_fields=MOST_FIELDS, max_part_size=1 << 16)
    fields = [(name, value) for name, value in form.multi_items() if isinstance(value, str)]
    security.check_csrf(request, dict(fields).get("csrf"))
    work = request.app.state.workspace

    def keep() -> tuple[str, str]:
        record = work.store.project(project)
        c = ViewContext(work, record, work.data(record).result(), fields)
        spec, method, factors = resolve_weights(c)
        if not factors:
            raise ParameterError("all weights are 1; move a slider first")
        name = c.get_value("name", f"{spec} with own weights")[:LONGEST_NAME]
        return work.store.add_model(
            project, name, repr(method), models.model_files.dumps(method)
        ), c.get_value("q")

    model, query = await run_in_threadpool(keep)
    state = urlencode([("m", f"model:{model}"), *([("q", query)] if query else []), ("done", "weights-kept")])
    return RedirectResponse(f"/p/{quote(project, safe='')}/explain?{state}", 303)
