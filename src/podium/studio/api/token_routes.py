"""Users over HTTP: named tokens with roles, the audit log, and who sends the request."""

from __future__ import annotations

import secrets
from typing import Any

from fastapi import APIRouter
from msgspec.json import decode, encode
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from podium.core.errors import ParameterError
from podium.studio.api import record_models
from podium.studio.api.openapi_schema import describe_route
from podium.studio.api.request_parsing import parse_request
from podium.studio.api.route_helpers import (
    IDEMPOTENCY,
    PAGE,
    answer_once,
    current_user,
    cut_page,
    name_parameter,
    read_page,
)
from podium.studio.api.service_routes import PlainRoute, build_json_response, read_body

router = APIRouter(route_class=PlainRoute)


@router.get(
    "/v1/user", **describe_route(None, record_models.UserAnswer, "Who sends the request", tag="users")
)
async def get_user(request: Request) -> Response:
    """The name and the role of the token."""
    user = current_user(request)
    return build_json_response({"name": user.name, "role": user.role})


@router.get(
    "/v1/tokens",
    **describe_route(
        None,
        record_models.TokenListAnswer,
        "All named tokens, by name",
        403,
        422,
        tag="users",
        parameters=PAGE,
    ),
)
async def list_tokens(request: Request) -> Response:
    """Names and roles; secrets are not stored."""
    page, tokens = read_page(request), await run_in_threadpool(request.app.state.store.tokens)
    part, further = cut_page(tokens, page, lambda token: str(token.name))
    return build_json_response({"tokens": [vars(token) for token in part], "next": further})


@router.post(
    "/v1/tokens",
    **describe_route(
        record_models.TokenRequest,
        record_models.NewTokenAnswer,
        "Create a named token",
        409,
        507,
        tag="users",
        parameters=(IDEMPOTENCY,),
        done=201,
    ),
)
async def create_token(request: Request) -> Response:
    """The answer is the only place where the token is shown; what is kept for a repeated request is a nonce."""
    body, state = await read_body(request), request.app.state

    def create() -> dict[str, Any]:
        given, nonce = parse_request(record_models.TokenRequest, body), secrets.token_hex(16)
        state.store.add_token(given.name, given.role, state.guard.compute_new_token(nonce))
        return {"name": given.name, "role": given.role, "nonce": nonce}

    response = await answer_once(request, body, create)
    made = decode(response.body)
    made["token"] = state.guard.compute_new_token(made.pop("nonce"))
    response.body = encode(made)
    response.headers["content-length"] = str(len(response.body))
    return response


@router.delete(
    "/v1/tokens/{name}",
    **describe_route(
        None, None, "Remove a token", 403, 404, tag="users", parameters=(name_parameter("name"),), done=204
    ),
)
async def remove_token(request: Request) -> Response:
    """The token and its sessions are refused from then on, by all servers of the folder."""
    await run_in_threadpool(request.app.state.store.remove_token, request.path_params["name"])
    return Response(status_code=204)


@router.get(
    "/v1/audit",
    **describe_route(
        None, record_models.AuditAnswer, "The audit log, newest first", 403, 422, tag="users", parameters=PAGE
    ),
)
async def list_audit_entries(request: Request) -> Response:
    """Every change: who, when, which route and project, and its status."""
    page = read_page(request)
    if page.after and (not page.after.isdecimal() or not page.after.isascii() or len(page.after) > 15):
        raise ParameterError(f"after is {page.after[:50]!r}; accepted: `next` of the page before")
    before = int(page.after) if page.after else None

    def list_page() -> dict[str, Any]:
        entries = request.app.state.store.audit_entries(page.limit + 1, before)
        shown = entries[: page.limit]
        further = str(shown[-1].id) if len(entries) > page.limit else None
        return {"entries": [vars(entry) for entry in shown], "next": further}

    return build_json_response(await run_in_threadpool(list_page))
