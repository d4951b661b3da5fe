"""Votes over HTTP: judges, people or programs, ask for the next pair, post votes and undo the last one."""

from __future__ import annotations

import time
from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel, Field
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from podium.core.errors import ParameterError
from podium.studio.api.openapi_schema import describe_route
from podium.studio.api.request_parsing import parse_request
from podium.studio.api.route_helpers import (
    IDEMPOTENCY,
    MOST,
    PROJECT,
    answer_once,
    current_user,
    name_parameter,
    read_page,
)
from podium.studio.api.service_routes import PlainRoute, build_json_response, read_body
from podium.studio.security import RequestRefused
from podium.studio.vote_records import check_judge_name, hide_gold
from podium.studio.voting_service import find_voting_service

BATCH = 1000  # votes of one request

router = APIRouter(route_class=PlainRoute)


class VoteItem(BaseModel):
    """One vote: the key of a question of `next-pair`, or two items (one for a rating)."""

    model_config = {"extra": "forbid"}

    answer: str = Field(
        max_length=20, description="`first`, `second`, `tie` or `skip`; for a rating `1` to `5` or `skip`"
    )
    key: str | None = Field(
        None,
        min_length=1,
        max_length=100,
        description="of the question, or one of your own; a key is stored once",
    )
    first: str | int | None = Field(
        None, description="the item shown first; not needed with a key of `next-pair`"
    )
    second: str | int | None = None
    seconds: float | None = Field(None, ge=0, le=1e9, description="time that the answer took")


class VotesRequest(BaseModel):
    """Votes of one judge."""

    model_config = {
        "extra": "forbid",
        "json_schema_extra": {
            "examples": [
                {"judge": "gpt-x", "votes": [{"first": "a", "second": "b", "answer": "first", "key": "1"}]}
            ]
        },
    }

    judge: str = Field(min_length=1, max_length=100)
    votes: list[VoteItem] = Field(min_length=1, max_length=BATCH)


class UndoRequest(BaseModel):
    """The judge whose last vote is undone."""

    model_config = {"extra": "forbid", "json_schema_extra": {"examples": [{"judge": "gpt-x"}]}}

    judge: str = Field(min_length=1, max_length=100)


class ShownItem(BaseModel):
    """An item as a judge sees it."""

    item: str | int
    title: str
    body: str
    url: str


class QuestionAnswer(BaseModel):
    """The next question of a judge; `done` says why there is none."""

    project: str
    judge: str
    kind: str
    question: str
    answers: list[str]
    own_votes: int
    all_votes: int
    done: str
    key: str | None
    first: ShownItem | None
    second: ShownItem | None


class VotesAnswer(BaseModel):
    """How many votes were stored; the others had a key that was stored before."""

    stored: int
    known: int
    milliseconds: float


class UndoAnswer(QuestionAnswer):
    """Whether a vote was undone, and the question to answer again."""

    undone: bool


class StoredVoteAnswer(BaseModel):
    """One vote."""

    number: int
    key: str
    judge: str
    first: str | int
    second: str | int | None
    answer: str
    gold: str | None
    seconds: float | None
    made: float


class VoteListAnswer(BaseModel):
    """Votes that were not undone, oldest first; `next` is the value of `after` for the following page."""

    votes: list[StoredVoteAnswer]
    next: int | None


def check_speaker(request: Request, judge: str) -> str:
    """The name of the judge of a request; a user who is only a judge speaks under the own name."""
    if not judge.strip():
        raise ParameterError("no judge is named; add ?judge=NAME")
    name, user = check_judge_name(judge), current_user(request)
    if user.role == "judge" and user.name != name:
        raise RequestRefused(403, f"{user.name} cannot vote as {name}", f"give {user.name} as the judge")
    return name


JUDGE = name_parameter("judge", "query", minLength=1, maxLength=100) | {"required": True}
LIMIT = name_parameter("limit", "query", type="integer", minimum=1, maximum=MOST, default=MOST)
AFTER = name_parameter("after", "query", type="integer", minimum=0, maximum=10**12, default=0)


def _describe(
    request: type[BaseModel] | None, answer: type[BaseModel], summary: str, *parameters: dict[str, Any]
) -> dict[str, Any]:
    return describe_route(
        request, answer, summary, 404, 422, 507, tag="votes", parameters=[PROJECT, *parameters]
    )


@router.get(
    "/v1/projects/{project}/next-pair",
    **_describe(None, QuestionAnswer, "The next question of a judge", JUDGE),
)
async def find_next_pair(request: Request) -> Response:
    """The comparison that tells most about the order; the same one until it is answered."""
    service, judge = (
        find_voting_service(request.app.state),
        check_speaker(request, request.query_params.get("judge", "")),
    )
    project = request.path_params["project"]
    return build_json_response(await run_in_threadpool(service.find_next_question, project, judge))


@router.get(
    "/v1/projects/{project}/votes",
    **_describe(None, VoteListAnswer, "The collected votes of a project", LIMIT, AFTER),
)
async def list_votes(request: Request) -> Response:
    """The votes of all judges, `limit` per answer; `after` is the number of the last one known.

    `gold`, the right answer of a gold question, is null for viewers and judges.
    """
    after = request.query_params.get("after", "0")
    if not after.isdecimal() or not after.isascii() or len(after) > 12:
        raise ParameterError(f"after is {after[:50]!r}; accepted: the number of a vote")
    limit = read_page(request, MOST).limit
    service, project = find_voting_service(request.app.state), request.path_params["project"]
    hidden = hide_gold(current_user(request))

    def build() -> dict[str, Any]:
        service.store.collection(project)
        votes = service.store.votes(project, after=int(after), most=limit + 1)
        further = votes[limit - 1].number if len(votes) > limit else None
        return {"votes": [vars(vote) | hidden for vote in votes[:limit]], "next": further}

    return build_json_response(await run_in_threadpool(build))


@router.post(
    "/v1/projects/{project}/votes",
    **_describe(VotesRequest, VotesAnswer, "Store votes of a judge", IDEMPOTENCY),
)
async def post_votes(request: Request) -> Response:
    """Store votes. A vote whose key was stored before is not stored again, so a request can be repeated."""
    begin, body = time.perf_counter(), await read_body(request)
    service, project = find_voting_service(request.app.state), request.path_params["project"]

    def store_votes() -> dict[str, Any]:
        given = parse_request(VotesRequest, body)
        judge = check_speaker(request, given.judge)
        stored = 0
        for number, vote in enumerate(given.votes, 1):
            if vote.first is None and vote.key is None:
                raise ParameterError(
                    f"vote {number} has no key and no items; give a key, or first and second"
                )
            if vote.first is None:
                stored += service.answer_question(project, judge, str(vote.key), vote.answer, vote.seconds)
                continue
            key = None if vote.key is None else f"{judge}:{vote.key}"
            stored += service.store.add_vote(
                project, judge, vote.first, vote.second, vote.answer, key=key, seconds=vote.seconds
            )
        return {
            "stored": stored,
            "known": len(given.votes) - stored,
            "milliseconds": (time.perf_counter() - begin) * 1000,
        }

    return await answer_once(request, body, store_votes, 200)


@router.post(
    "/v1/projects/{project}/votes/undo",
    **_describe(UndoRequest, UndoAnswer, "Undo the last vote of a judge", IDEMPOTENCY),
)
async def undo_vote(request: Request) -> Response:
    """Undo the newest vote of a judge; its question is asked again."""
    body = await read_body(request)
    service, project = find_voting_service(request.app.state), request.path_params["project"]

    def undo() -> dict[str, Any]:
        judge = check_speaker(request, parse_request(UndoRequest, body).judge)
        service.store.collection(project)
        return service.undo_last_vote(project, judge)

    return await answer_once(request, body, undo, 200)
