"""Collections of votes over HTTP: start, close and reopen them, invite judges, set gold questions."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from fastapi import APIRouter
from pydantic import ConfigDict, Field
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from podium.studio.api.answer_models import AnswerModel
from podium.studio.api.openapi_schema import describe_route
from podium.studio.api.request_models import Id, Many, StrictModel
from podium.studio.api.request_parsing import parse_request
from podium.studio.api.route_helpers import (
    FIRST_PAGE,
    IDEMPOTENCY,
    PAGE,
    PROJECT,
    PageRange,
    answer_once,
    cut_page,
    digest_id,
    name_parameter,
    read_page,
)
from podium.studio.api.service_routes import PlainRoute, build_json_response, read_body
from podium.studio.database import RecordNotFound
from podium.studio.view_forwarding import run_in_process
from podium.studio.vote_records import JudgeInvite
from podium.studio.vote_store import VoteStore

router = APIRouter(route_class=PlainRoute)


class CollectionItemRequest(StrictModel):
    """An item as judges see it."""

    item: Annotated[Id, Field(description="its id")]
    title: Annotated[str, Field(max_length=1000)] = ""
    text: Annotated[str, Field(max_length=20_000)] = ""
    url: Annotated[str, Field(max_length=2000)] = ""


class CollectionRequest(StrictModel):
    """What judges are asked about the items of a project."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"question": "Which answer is better?"}]})
    kind: Literal["pairs", "ratings"] = "pairs"
    question: Annotated[str, Field(max_length=1000)] = ""
    query: Annotated[str, Field(max_length=1000)] = Field("", description="whose items; empty: the first one")
    gold_every: Annotated[int, Field(ge=0, le=1000)] = 0


class NewCollectionRequest(StrictModel):
    """Items, and what judges are asked about them."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"name": "Slogans", "items": [{"item": "a"}, {"item": "b"}]}]}
    )
    name: Annotated[str, Field(max_length=200)] = ""
    kind: Literal["pairs", "ratings"] = "pairs"
    question: Annotated[str, Field(max_length=1000)] = ""
    items: Annotated[Many[CollectionItemRequest], Field(min_length=2, max_length=2000)]


class CollectionChangeRequest(StrictModel):
    """What to change; a field that is not given stays as it is."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"closed": True}]})
    closed: bool | None = None
    gold_every: Annotated[int, Field(ge=0, le=1000)] | None = None


class CollectionAnswer(AnswerModel):
    """What the judges of a project are asked, and how many votes there are."""

    project: str
    kind: str
    question: str
    query: str | int
    gold_every: int = Field(description="one question in this many has a known answer; 0: none")
    closed: bool
    made: float
    items: int
    votes: int


class InviteRequest(StrictModel):
    """Whom to invite."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"judge": "ann", "role": "judge"}]})
    judge: Annotated[str, Field(max_length=100)] = Field(
        "", description="empty: who opens the link gives a name"
    )
    role: Literal["judge", "viewer"] = "judge"


class InviteAnswer(AnswerModel):
    """An invitation; whoever has its link can vote, or see the board, without a token."""

    id: str
    judge: str
    role: str
    revoked: bool
    made: float
    path: str = Field(description="the link below the address of the server")


class InviteListAnswer(AnswerModel):
    invites: list[InviteAnswer]
    next: str | None


class GoldRequest(StrictModel):
    """A pair of items whose answer is known."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"first": "a", "second": "b", "answer": "first"}]}
    )
    first: Id
    second: Id
    answer: Literal["first", "second", "tie"]


class GoldRemovalRequest(StrictModel):
    """The pair of items to remove from the gold questions."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"first": "a", "second": "b"}]})
    first: Id
    second: Id


class GoldAnswer(AnswerModel):
    first: str | int
    second: str | int
    answer: str


class GoldListAnswer(AnswerModel):
    gold: list[GoldAnswer]
    next: str | None


def _find_votes(request: Request) -> tuple[VoteStore, str]:
    return request.app.state.workspace.votes, request.path_params["project"]


def _build_collection_document(votes: VoteStore, project: str) -> dict[str, Any]:
    counts = {"items": len(votes.item_texts(project)), "votes": len(votes.votes(project))}
    return vars(votes.collection(project)) | counts


def _describe(request: Any, answer: Any, summary: str, *parameters: Any, done: int = 200) -> dict[str, Any]:
    return describe_route(
        request,
        answer,
        summary,
        404,
        409,
        422,
        507,
        tag="votes",
        parameters=[PROJECT, *parameters],
        done=done,
    )


@router.post(
    "/v1/collections",
    **describe_route(
        NewCollectionRequest, CollectionAnswer, "Create a project that collects votes on new items", 409, 507,
        tag="votes", parameters=(IDEMPOTENCY,), done=201,
    ),
)  # fmt: skip
async def create_collection(request: Request) -> Response:
    """Create a project of items that judges compare or rate."""
    from podium.studio.pages.collect_routes import open_collection

    body, votes = await read_body(request), request.app.state.workspace.votes

    async def create() -> dict[str, Any]:
        given = parse_request(NewCollectionRequest, body)
        fields = {name: getattr(given, name).strip() for name in ("name", "kind", "question")}
        fields["items"] = json.dumps([item.model_dump() for item in given.items])
        project = await run_in_process(request, open_collection, fields, [])
        return await run_in_threadpool(_build_collection_document, votes, project)

    return await answer_once(request, body, create)


@router.post(
    "/v1/projects/{project}/collection",
    **_describe(CollectionRequest, CollectionAnswer, "Collect votes on the items of a project", IDEMPOTENCY, done=201),
)  # fmt: skip
async def start_collection(request: Request) -> Response:
    """Begin to collect votes on the items of a project, with the texts that it has."""
    from podium.studio.pages.collect_routes import begin_collection

    body, (votes, project) = await read_body(request), _find_votes(request)

    async def start() -> dict[str, Any]:
        given = parse_request(CollectionRequest, body)
        fields = {name: str(value).strip() for name, value in given.model_dump().items()}
        await run_in_process(request, begin_collection, project, fields, [])
        return await run_in_threadpool(_build_collection_document, votes, project)

    return await answer_once(request, body, start)


@router.get(
    "/v1/projects/{project}/collection", **_describe(None, CollectionAnswer, "The collection of a project")
)
async def get_collection(request: Request) -> Response:
    """What judges are asked; the view `collect` has the live board."""
    return build_json_response(await run_in_threadpool(_build_collection_document, *_find_votes(request)))


@router.patch(
    "/v1/projects/{project}/collection",
    **_describe(CollectionChangeRequest, CollectionAnswer, "Close or reopen a collection"),
)
async def change_collection(request: Request) -> Response:
    """Close or reopen a collection, or change how many questions are gold questions."""
    given, (votes, project) = (
        parse_request(CollectionChangeRequest, await read_body(request)),
        _find_votes(request),
    )

    def change() -> dict[str, Any]:
        votes.update_collection(project, closed=given.closed, gold_every=given.gold_every)
        return _build_collection_document(votes, project)

    return build_json_response(await run_in_threadpool(change))


# -- invitations ---------------------------------------------------------------------------------------------------


def _build_invite_document(votes: VoteStore, invite: JudgeInvite) -> dict[str, Any]:
    names = ("id", "judge", "role", "revoked", "made")
    return {name: getattr(invite, name) for name in names} | {"path": f"/vote/{votes.sign_invite(invite)}"}


@router.get(
    "/v1/projects/{project}/invites",
    **_describe(None, InviteListAnswer, "The invitations of a project", *PAGE),
)
async def list_invites(request: Request) -> Response:
    """Invitations with their links, oldest first; for editors, since a link is a permission."""
    (votes, project), page = _find_votes(request), read_page(request)

    def list_page() -> dict[str, Any]:
        votes.collection(project)
        part, further = cut_page(votes.invites(project), page, lambda invite: str(invite.id))
        return {"invites": [_build_invite_document(votes, invite) for invite in part], "next": further}

    return build_json_response(await run_in_threadpool(list_page))


@router.post(
    "/v1/projects/{project}/invites",
    **_describe(InviteRequest, InviteAnswer, "Invite a judge or viewer", IDEMPOTENCY, done=201),
)
async def add_invite(request: Request) -> Response:
    """Make a link; the same name and role give the same link."""
    body, (votes, project) = await read_body(request), _find_votes(request)

    def invite() -> dict[str, Any]:
        given = parse_request(InviteRequest, body)
        return _build_invite_document(votes, votes.add_invite(project, given.judge, given.role))

    return await answer_once(request, body, invite)


@router.delete(
    "/v1/projects/{project}/invites/{invite}",
    **_describe(None, None, "Revoke an invitation", name_parameter("invite"), done=204),
)
async def revoke_invite(request: Request) -> Response:
    """Make a link useless; the votes given through it stay."""
    (votes, project), invite = _find_votes(request), request.path_params["invite"]

    def revoke() -> None:
        if invite not in {known.id for known in votes.invites(project)}:
            raise RecordNotFound("no such invitation in this project")
        votes.revoke_invite(project, invite)

    await run_in_threadpool(revoke)
    return Response(status_code=204)


# -- gold questions ------------------------------------------------------------------------------------------------


def _build_gold_document(votes: VoteStore, project: str, page: PageRange = FIRST_PAGE) -> dict[str, Any]:
    votes.collection(project)
    part, further = cut_page(votes.gold_pairs(project), page, digest_id)
    names = ("first", "second", "answer")
    return {"gold": [dict(zip(names, pair, strict=True)) for pair in part], "next": further}


@router.get(
    "/v1/projects/{project}/gold", **_describe(None, GoldListAnswer, "The gold questions of a project", *PAGE)
)
async def list_gold(request: Request) -> Response:
    """Pairs whose answer is known; for editors, since judges must not know them."""
    (votes, project), page = _find_votes(request), read_page(request)
    return build_json_response(await run_in_threadpool(_build_gold_document, votes, project, page))


@router.post(
    "/v1/projects/{project}/gold",
    **_describe(GoldRequest, GoldListAnswer, "Add a gold question", IDEMPOTENCY, done=201),
)
async def add_gold(request: Request) -> Response:
    """Add a pair whose answer is known; `gold_every` of the collection says how often one is asked."""
    body, (votes, project) = await read_body(request), _find_votes(request)

    def add() -> dict[str, Any]:
        given = parse_request(GoldRequest, body)
        votes.add_gold_pair(project, given.first, given.second, given.answer)
        return _build_gold_document(votes, project)

    return await answer_once(request, body, add)


@router.post(
    "/v1/projects/{project}/gold/remove",
    **_describe(GoldRemovalRequest, GoldListAnswer, "Remove a gold question", IDEMPOTENCY),
)
async def remove_gold(request: Request) -> Response:
    """Remove a pair from the gold questions; votes on it stay marked."""
    body, (votes, project) = await read_body(request), _find_votes(request)

    def remove() -> dict[str, Any]:
        given = parse_request(GoldRemovalRequest, body)
        votes.collection(project)
        votes.remove_gold_pair(project, given.first, given.second)
        return _build_gold_document(votes, project)

    return await answer_once(request, body, remove, 200)
