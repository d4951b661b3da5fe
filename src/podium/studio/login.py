"""Login page for browsers; programs send the token with every request instead."""

from __future__ import annotations

import asyncio
from urllib.parse import parse_qs

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from podium.studio.pages.render import render_page
from podium.studio.security import SESSION, RequestRefused, check_csrf, csrf_token

router = APIRouter(include_in_schema=False)
LONGEST = 8192  # maximum bytes of the form


@router.get("/login")
async def show_login(request: Request) -> Response:
    """Show the form."""
    return _render_login(request, "")


@router.post("/login")
async def submit_token(request: Request) -> Response:
    """Check the token; set a cookie that is valid until the server stops."""
    body = b""
    try:
        # the timeout covers the whole body: this route needs no token, and slow senders could fill all slots
        async with asyncio.timeout(request.app.state.settings.limits.seconds):
            async for part in request.stream():
                body += part
                if len(body) > LONGEST:
                    return _render_login(request, "The token is too long.", 413)
    except TimeoutError:
        raise RequestRefused(408, "the form did not arrive in time", "send it faster") from None
    fields = parse_qs(body.decode("latin-1"), max_num_fields=5)
    check_csrf(request, fields.get("csrf", [""])[0])
    guard = request.app.state.guard
    if not guard.is_valid_token(fields.get("token", [""])[0].strip()):
        return _render_login(request, "Wrong token.", 401)
    request.scope.setdefault("podium.cookies", {})[SESSION] = guard.session_cookie()
    return RedirectResponse("/", 303)


def _render_login(request: Request, problem: str, status: int = 200) -> Response:
    return HTMLResponse(render_page("login.html", problem=problem, csrf=csrf_token(request)), status)
