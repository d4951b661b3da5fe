"""Routes of voting: the pages of invited judges, and the forms of the Collect page."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast
from urllib.parse import parse_qs, quote

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException

from podium.core import tables
from podium.core.errors import InputError, ParameterError, PodiumError
from podium.data.ids import Id
from podium.studio import security
from podium.studio.database import RecordNotFound
from podium.studio.form_fields import spell_option
from podium.studio.item_texts import match_items, read_item_texts
from podium.studio.loading import ProjectData, unpack_upload
from podium.studio.pages.page_routes import respond_form_again, respond_home
from podium.studio.pages.render import render_page
from podium.studio.problems import PROBLEM, problem_document
from podium.studio.view_forwarding import run_in_process
from podium.studio.vote_records import CollectionItem, CollectionKind, InviteRole, JudgeInvite
from podium.studio.voting_service import VotingService, find_voting_service

FRESH = {"cache-control": "no-store"}
LONGEST = 1 << 16  # bytes of a judge's form
PART = 8 << 20  # bytes of a pasted or uploaded table of items
MOST_FIELDS = 30

router = APIRouter(include_in_schema=False)


# -- pages of judges ---------------------------------------------------------------------------------------------
# They need no token: the signature in the address is the permission, so another site cannot send these forms.


async def _answer_judge(
    request: Request, signed: str, act: Callable[[VotingService, JudgeInvite], dict[str, Any]]
) -> Response:
    """Answer a judge with JSON, or send a form back to the page; errors are shown there, without other projects."""
    service, is_form = (
        find_voting_service(request.app.state),
        "json" not in request.headers.get("content-type", "json"),
    )
    try:
        document = await run_in_threadpool(lambda: act(service, service.store.resolve_invite(signed)))
    except PodiumError as error:
        status, words = 404 if isinstance(error, RecordNotFound) else 422, error.format_message(spell_option)
        if is_form:
            return HTMLResponse(render_page("vote.html", error=words, signed="", page="error"), status)
        body = tables.format_json(problem_document(status, type(error).__name__, words))
        return Response(body, status, media_type=PROBLEM, headers=FRESH)
    if is_form:
        return RedirectResponse(f"/vote/{quote(document.get('signed', signed))}", 303)
    return Response(tables.format_json(document), media_type="application/json", headers=FRESH)


async def _read_fields(request: Request) -> dict[str, Any]:
    """The fields of a small form or JSON object."""
    body = b""
    try:
        async with asyncio.timeout(request.app.state.settings.limits.seconds):
            async for part in request.stream():
                body += part
                if len(body) > LONGEST:
                    raise security.RequestRefused(413, "the form is too long", "send less")
    except TimeoutError:
        raise security.RequestRefused(408, "the form did not arrive in time", "send it faster") from None
    if "json" not in request.headers.get("content-type", ""):
        try:
            fields = parse_qs(body.decode("utf-8", "replace"), max_num_fields=MOST_FIELDS)
        except ValueError:
            raise security.RequestRefused(400, "the form has too many fields", "use the page") from None
        return {name: values[-1] for name, values in fields.items()}
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        raise security.RequestRefused(400, "the body is not JSON", "send an object") from None
    if not isinstance(document, dict):
        raise security.RequestRefused(400, "the body is not an object", "send an object")
    return document


def _read_seconds(value: Any) -> float | None:
    """The time that an answer took; None where a form without scripts sends none."""
    if value in (None, ""):
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ParameterError(f"seconds is {str(value)[:50]!r}; accepted: a number")
    return float(value)


@router.get("/vote/{signed}")
def show_vote_page(request: Request, signed: str) -> Response:
    """The page of an invited judge or viewer."""
    service = find_voting_service(request.app.state)
    try:
        invite = service.store.resolve_invite(signed)
        values: dict[str, Any] = {"signed": signed, "collection": service.store.collection(invite.project)}
        if invite.role == "viewer":
            values |= {"page": "board", "live": service.compute_board(invite.project)}
        elif not invite.judge:
            values |= {"page": "join"}
        else:
            question = service.find_next_question(invite.project, invite.judge)
            values |= {"page": "question", "asked": question}
        return HTMLResponse(render_page("vote.html", error="", **values), headers=FRESH)
    except PodiumError as error:
        status, words = 404 if isinstance(error, RecordNotFound) else 422, error.format_message(spell_option)
        return HTMLResponse(render_page("vote.html", error=words, signed="", page="error"), status)


def _require_judge(invite: JudgeInvite) -> JudgeInvite:
    if invite.role != "judge":
        raise ParameterError("this link shows the board and cannot vote; ask for a judge's link")
    if not invite.judge:
        raise ParameterError(
            "nobody has given a name on this link yet; open it, give one, and vote with the new link"
        )
    return invite


@router.get("/vote/{signed}/next.json")
async def show_next_question(request: Request, signed: str) -> Response:
    """The question of a judge as JSON."""
    return await _answer_judge(
        request, signed, lambda s, i: s.find_next_question(_require_judge(i).project, i.judge)
    )


@router.get("/vote/{signed}/board.json")
async def show_invited_board(request: Request, signed: str) -> Response:
    """The live board for an invited viewer."""

    def build(service: VotingService, invite: JudgeInvite) -> dict[str, Any]:
        if invite.role != "viewer":
            raise ParameterError("this link votes; the board has a link of its own")
        votes = len(service.store.votes(invite.project))
        return {"live": service.compute_board(invite.project).to_dict(), "votes": votes, "judges": []}

    return await _answer_judge(request, signed, build)


@router.post("/vote/{signed}/answer")
async def submit_answer(request: Request, signed: str) -> Response:
    """Store a judge's answer, and return the next question."""
    fields = await _read_fields(request)

    def store_answer(service: VotingService, invite: JudgeInvite) -> dict[str, Any]:
        who = _require_judge(invite)
        key, answer = str(fields.get("key", ""))[:100], str(fields.get("answer", ""))[:100]
        seconds = _read_seconds(fields.get("seconds"))
        stored = service.answer_question(who.project, who.judge, key, answer, seconds)
        return service.find_next_question(who.project, who.judge) | {"stored": stored}

    return await _answer_judge(request, signed, store_answer)


@router.post("/vote/{signed}/undo")
async def undo_answer(request: Request, signed: str) -> Response:
    """Undo a judge's last vote, and ask it again."""
    await _read_fields(request)
    return await _answer_judge(
        request, signed, lambda s, i: s.undo_last_vote(_require_judge(i).project, i.judge)
    )


@router.post("/vote/{signed}/join")
async def join_voting(request: Request, signed: str) -> Response:
    """Give a name on a shared link, and get a link of one's own."""
    fields = await _read_fields(request)

    def join(service: VotingService, invite: JudgeInvite) -> dict[str, Any]:
        name = str(fields.get("name", ""))
        if invite.role != "judge" or invite.judge:
            raise ParameterError("this link needs no name")
        if not name.strip():
            raise ParameterError("the name is empty; give one")
        if name.strip() in {i.judge for i in service.store.invites(invite.project)}:
            raise ParameterError("somebody votes under this name; choose another one")
        return {"signed": service.store.sign_invite(service.store.add_invite(invite.project, name))}

    return await _answer_judge(request, signed, join)


# -- forms of the Collect page -----------------------------------------------------------------------------------


async def _read_form(request: Request) -> tuple[dict[str, str], list[tuple[str, bytes]]]:
    """The fields and small files of a form of this server."""
    try:
        form = await request.form(max_files=2, max_fields=MOST_FIELDS, max_part_size=PART)
    except HTTPException as error:
        raise InputError(f"the form cannot be read: {error.detail}", remedy="reload the page") from None
    try:
        fields = {k: v.strip() for k, v in form.multi_items() if isinstance(v, str)}
        security.check_csrf(request, fields.get("csrf"))
        uploads = [f for f in form.getlist("files") if isinstance(f, UploadFile) and f.filename]
        limits = replace(request.app.state.settings.limits, decompressed_bytes=PART)
        files = [(f.filename or "items", unpack_upload("items", await f.read(), limits)) for f in uploads]
    finally:
        await form.close()
    return fields, files


def _read_items(fields: dict[str, str], files: list[tuple[str, bytes]]) -> list[CollectionItem]:
    given = files or ([("pasted items", fields["items"].encode())] if fields.get("items") else [])
    return [item for name, content in given for item in read_item_texts(name, content)]


def _show_collect_page(project: str, done: str = "") -> Response:
    return RedirectResponse(f"/p/{quote(project, safe='')}/collect{f'?done={done}' if done else ''}", 303)


def _read_count(text: str) -> int:
    if text and (not text.isdecimal() or len(text) > 4):
        raise ParameterError(f"the number is {text[:50]!r}; accepted: 0 to 1000")
    return int(text or 0)


@router.post("/collect")
async def start_new_collection(request: Request) -> Response:
    """Open a project of items to vote on."""
    fields, files = await _read_form(request)
    try:
        return _show_collect_page(await run_in_process(request, open_collection, fields, files))
    except security.RequestRefused:
        raise
    except PodiumError as error:
        words = error.format_message(spell_option)
        return await run_in_threadpool(
            respond_home, request, 422, error=words, is_kept=bool(files), collecting=fields
        )


def open_collection(state: Any, fields: dict[str, str], files: list[tuple[str, bytes]]) -> str:
    """Create a project that collects votes on the given items."""
    service, store, items = find_voting_service(state), state.store, _read_items(fields, files)
    if len(items) < 2:
        raise InputError(
            f"there is {len(items)} item" if items else "there are no items",
            remedy="paste or upload two or more: lines of text, or a table with a column id",
        )
    name = fields.get("name") or (files[0][0] if files else fields.get("question") or "Votes")
    project = str(store.add_upload(name[:200], []))
    kind = cast("CollectionKind", fields.get("kind", "pairs"))
    try:
        service.store.start_collection(project, items, kind=kind, question=fields.get("question", ""))
    except PodiumError:
        store.remove_project(project)
        raise
    return project


@router.post("/p/{project}/collect/start")
async def start_collection(request: Request, project: str) -> Response:
    """Collect votes on the items of a project."""
    fields, files = await _read_form(request)
    try:
        await run_in_process(request, begin_collection, project, fields, files)
    except PodiumError as error:
        return await run_in_threadpool(respond_form_again, request, "collect", list(fields.items()), error)
    return _show_collect_page(project)


def begin_collection(
    state: Any, project: str, fields: dict[str, str], files: list[tuple[str, bytes]]
) -> None:
    """Begin to collect votes on the items of a project, with their texts."""
    service = find_voting_service(state)
    data: ProjectData = service.work.data(service.work.store.project(project)).result()
    query, items = choose_items(data, fields.get("query", ""))
    given = [CollectionItem(item, t.title, t.text, t.url) for item, t in data.texts.items()]
    known = match_items([*given, *_read_items(fields, files)], data.preferences.index.items)
    texts = {item.item: item for item in known}
    if files and not texts:
        raise InputError(
            "no text belongs to an item of this project",
            source=files[0][0],
            remedy="ids are compared exactly",
        )
    shown = [texts.get(item, CollectionItem(item)) for item in items]
    kind = cast("CollectionKind", fields.get("kind", "pairs"))
    every = _read_count(fields.get("gold_every", ""))
    service.store.start_collection(
        project, shown, kind=kind, question=fields.get("question", ""), query=query, gold_every=every
    )


def choose_items(data: ProjectData, chosen: str) -> tuple[Id, list[Id]]:
    """The items to vote on and their query: those of one query, or all where votes of all queries are pooled."""
    index = data.preferences.index
    if "leaderboard" in data.kinds and len(index) > 1:
        return "collected", list(dict.fromkeys(index.items.tolist()))
    queries = {str(q): q for q in index.queries}
    query = queries.get(chosen, index.queries[0]) if chosen else index.queries[0]
    return query, list(index.items[index.slots(query)])


def _act_on_collection(service: VotingService, project: str, action: str, fields: dict[str, str]) -> str:
    """Carry out one action of the Collect page; returns the address to go to, or nothing."""
    store = service.store
    if action == "invite":
        store.add_invite(project, fields.get("judge", ""), cast("InviteRole", fields.get("role", "judge")))
    elif action == "vote":
        return f"/vote/{store.sign_invite(store.add_invite(project, fields['voter']))}"
    elif action == "revoke":
        store.revoke_invite(project, fields.get("invite", ""))
    elif action in ("close", "open"):
        store.update_collection(project, closed=action == "close")
    elif action == "gold":
        by_text = {str(item): item for item in store.item_texts(project)}
        items = [by_text.get(fields.get(side, "")) for side in ("first", "second")]
        if items[0] is None or items[1] is None:
            raise ParameterError("choose two items of the collection")
        store.add_gold_pair(project, items[0], items[1], fields.get("answer", ""))
        if not store.collection(project).gold_every:
            store.update_collection(project, gold_every=8)
    elif action == "gold-remove":
        number, pairs = _read_count(fields.get("number", "")), store.gold_pairs(project)
        if number < len(pairs):
            store.remove_gold_pair(project, *pairs[number][:2])
    elif action == "gold-every":
        store.update_collection(project, gold_every=_read_count(fields.get("gold_every", "")))
    else:
        raise RecordNotFound("page not found; use the buttons of the studio")
    return ""


@router.post("/p/{project}/collect/{action}")
async def change_collection(request: Request, project: str, action: str) -> Response:
    """Invite and revoke, vote oneself, close and reopen, gold questions."""
    fields, _ = await _read_form(request)
    service, user = find_voting_service(request.app.state), request.scope["podium.user"]
    # without users there is one person, who may vote under any name; a user votes under the own name
    fields["voter"] = (fields.get("judge") or "me") if user.name == "local" else user.name
    target = await run_in_threadpool(_act_on_collection, service, project, action, fields)
    return RedirectResponse(target, 303) if target else _show_collect_page(project)
