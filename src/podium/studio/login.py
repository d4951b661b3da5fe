"""Login page for browsers; programs send the token with every request instead."""

from __future__ import annotations

import asyncio
from html import escape
from urllib.parse import parse_qs

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from podium.studio.security import SESSION, RequestRefused, check_csrf, csrf_token

__all__ = ["router"]

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
    said = f'<p role="alert">{escape(problem)}</p>' if problem else ""
    return HTMLResponse(
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Podium: token</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<link rel="stylesheet" href="/docs/style.css"></head><body><main><h1>Podium</h1>'
        f'{said}<form method="post" action="/login"><input type="hidden" name="csrf" value="{csrf_token(request)}">'
        '<p><label for="token">Server token</label><br>'
        '<input id="token" name="token" type="password" autocomplete="current-password" required autofocus></p>'
        '<p><button type="submit">Log in</button></p></form></main></body></html>',
        status,
    )
