"""What every route of the API that reads or changes records uses; also for routes that are added elsewhere.

- Permissions: the middleware refuses a request whose user lacks the role that `security.required_role` asks for;
  `current_user(request)` is the user. Routes under `/v1/projects/ID/votes` need a judge, other changes an editor.
- Errors: raise a `PodiumError` (422), `RecordNotFound` (404) or `RequestRefused` (any status); all of them are answered
  as problem details.
- Repeated requests: `return await answer_once(request, body, work)` for a POST; a request with the same
  `Idempotency-Key` gets the kept answer, and `work` is not run again. `work` runs in a thread, or is awaited.
- Pages of a list: `read_page(request)` gives `limit` and `after`; `cut_page(records, page, id)` the records and `next`.
- Descriptions: `describe_route(..., tag=..., parameters=[PROJECT, *PAGE])` in `openapi_schema`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple, TypeVar

from msgspec.json import encode
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from podium.core.errors import ParameterError
from podium.studio.security import RequestRefused
from podium.studio.token_store import User

T = TypeVar("T")
# a function that is called in a thread, and returns a document or what is awaited for one
Work = Callable[[], "dict[str, Any] | Awaitable[dict[str, Any]]"]
MOST, USUAL = 1000, 100  # records on a page
KEY = re.compile(r"[\x21-\x7e]{1,200}")


def name_parameter(name: str, where: str = "path", **schema: Any) -> dict[str, Any]:
    """A parameter in the description of a route."""
    about = {"type": "string"} | schema
    return {"name": name, "in": where, "required": where == "path", "schema": about}


PROJECT = name_parameter("project")
PAGE = (
    name_parameter("limit", "query", type="integer", minimum=1, maximum=MOST, default=USUAL),
    name_parameter("after", "query", maxLength=100)
    | {"description": "`next` of the page before; the first page without it"},
)
IDEMPOTENCY = name_parameter("Idempotency-Key", "header", pattern=r"^[!-~]{1,200}$") | {
    "description": "a request with the same key and content is answered once, and then again from memory for a day"
}


class PageRange(NamedTuple):
    """Which part of a list a request asks for."""

    limit: int
    after: str


FIRST_PAGE = PageRange(USUAL, "")


def current_user(request: Request) -> User:
    """Who sends the request."""
    user: User = request.scope["podium.user"]
    return user


def read_page(request: Request, usual: int = USUAL) -> PageRange:
    """The part of a list that the address asks for; `usual` records if it names no limit."""
    text = request.query_params.get("limit", str(usual))
    if not text.isdecimal() or not text.isascii() or len(text) > 6 or not 1 <= int(text) <= MOST:
        raise ParameterError(f"limit is {text[:50]!r}; accepted: whole numbers from 1 to {MOST:,}")
    return PageRange(int(text), request.query_params.get("after", ""))


def cut_page(
    records: Sequence[T], page: PageRange, read_id: Callable[[T], str]
) -> tuple[list[T], str | None]:
    """The records of a page, and the `after` of the next one, if there is one.

    >>> cut_page(["a", "b", "c"], PageRange(1, "a"), str)
    (['b'], 'b')
    """
    begin = 0
    if page.after:
        ids = [read_id(record) for record in records]
        if page.after not in ids:
            raise ParameterError(
                f"after is {page.after[:50]!r}, which is not in the list; start again without it"
            )
        begin = ids.index(page.after) + 1
    part = list(records[begin : begin + page.limit])
    return part, read_id(part[-1]) if begin + page.limit < len(records) else None


def digest_id(record: object) -> str:
    """An id for a record that has none, for `cut_page`: short, whatever is in the record."""
    return hashlib.sha256(repr(record).encode()).hexdigest()[:32]


async def answer_once(request: Request, body: bytes, work: Work, status: int = 201) -> Response:
    """Run `work` and answer with its document; once per `Idempotency-Key`, if there is one."""
    key = request.headers.get("idempotency-key")
    if key is None:
        return _build_response(encode(await _do_work(work)), status)
    if not KEY.fullmatch(key):
        raise ParameterError(
            "Idempotency-Key is empty, longer than 200 characters, or has others than visible ASCII"
        )
    store, user = request.app.state.store, current_user(request).name
    digest = hashlib.sha256(request.url.path.encode() + b"\0" + body).hexdigest()
    state, kept = await run_in_threadpool(store.reserve_answer, user, key, digest)
    if state == "other":
        raise RequestRefused(422, "this Idempotency-Key was used for another request", "use a new key")
    if state == "running":
        raise RequestRefused(409, "a request with this Idempotency-Key is running", "try again later")
    if state == "kept":
        return _build_response(kept[1], kept[0], {"idempotent-replayed": "true"})
    try:
        answer = encode(await _do_work(work))
        await run_in_threadpool(store.keep_answer, user, key, status, answer)
    except BaseException:
        await run_in_threadpool(store.release_answer, user, key)
        raise
    return _build_response(answer, status)


async def _do_work(work: Work) -> dict[str, Any]:
    """The document of work that is computed in a thread, or that is awaited."""
    document = await run_in_threadpool(work)
    return document if isinstance(document, dict) else await document


def _build_response(answer: bytes, status: int, headers: dict[str, str] | None = None) -> Response:
    return Response(answer, status, media_type="application/json", headers=headers)
