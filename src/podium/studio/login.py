"""Login page for browsers; programs send the token with every request instead."""

from __future__ import annotations

from urllib.parse import parse_qs

from fastapi import APIRouter
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from podium.studio.pages.render import render_page
from podium.studio.security import SESSION, check_csrf, csrf_token
from podium.studio.token_store import User

router = APIRouter(include_in_schema=False)
LONGEST = 8192  # maximum bytes of the form


@router.get("/login")
async def show_login(request: Request) -> Response:
    """Show the form."""
    return _render_login(request, "")


@router.post("/login")
async def submit_token(request: Request) -> Response:
    """Check the token; set a signed cookie that outlives restarts and ends with the logout."""
    body = await _read_form(request)
    if body is None:
        return _render_login(request, "The token is too long.", 413)
    fields = parse_qs(body.decode("latin-1"), max_num_fields=5)
    check_csrf(request, fields.get("csrf", [""])[0])
    user = request.app.state.guard.find_user(fields.get("token", [""])[0].strip())
    if user is None:
        return _render_login(request, "Wrong token.", 401)
    return _start_session(request, user)


@router.post("/logout")
async def end_session(request: Request) -> Response:
    """End the session on all servers of the folder, and remove its cookie."""
    body = await _read_form(request)
    check_csrf(request, parse_qs((body or b"").decode("latin-1")).get("csrf", [""])[0])
    session = request.app.state.guard.read_session(dict(request.scope["headers"]))
    if session is not None:
        await run_in_threadpool(request.app.state.store.end_session, session.id, session.until)
    request.scope.setdefault("podium.cookies", {})[SESSION] = ""
    return RedirectResponse("/login", 303)


@router.get("/join/{token}")
async def join_by_link(request: Request, token: str) -> Response:
    """Log a judge or viewer in by an invitation; tokens of other roles are not accepted in addresses."""
    user = request.app.state.guard.find_user(token)
    if user is None or user.may_act_as("editor"):
        return _render_login(request, "This invitation is not valid.", 401)
    return _start_session(request, user)


async def _read_form(request: Request) -> bytes | None:
    """The body of a short form; None if it is too long."""
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > LONGEST:
            return None
    return body


def _start_session(request: Request, user: User) -> Response:
    request.scope["podium.user"] = user
    cookies = request.scope.setdefault("podium.cookies", {})
    cookies[SESSION] = request.app.state.guard.session_cookie(user)
    return RedirectResponse("/", 303)


def _render_login(request: Request, problem: str, status: int = 200) -> Response:
    return HTMLResponse(render_page("login.html", problem=problem, csrf=csrf_token(request)), status)
