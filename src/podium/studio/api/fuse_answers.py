"""`/v1/fuse`: a fast path for thousands of requests per second, without building tables and indexes."""

from __future__ import annotations

import contextlib
import functools
from itertools import chain
from typing import Annotated, Any, ClassVar, cast

import msgspec

from podium.core import registry
from podium.core.errors import InputError
from podium.core.settings import Duplicates
from podium.data.fingerprints import fingerprint_ranked_lists
from podium.methods.base import Aggregator, make
from podium.methods.fuse import (
    build_preferences,
    fuse_positions,
    fuse_preferences,
    make_for_lists,
    sort_by_expert,
    sort_ids,
)
from podium.studio.api import request_models
from podium.studio.api.request_models import SPEC, WHOLE
from podium.studio.api.request_parsing import (
    check_ids,
    check_parameters,
    check_size,
    check_work,
    parse_request,
)

_MOST_NAMES = 32  # of lists and weights that are counted one by one
QUICK = 5000  # ids up to which requests are fused in the event loop, without a thread


PlainIds = list[str | Annotated[int, msgspec.Meta(ge=-WHOLE, le=WHOLE - 1)]]


class PlainFuseRequest(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """The most frequent `FuseRequest`: lists of ids, perhaps named, with a method and weights."""

    lists: list[PlainIds] | dict[str, PlainIds]
    method: Annotated[str, msgspec.Meta(min_length=1, max_length=SPEC)] = "rrf"
    top: Annotated[int, msgspec.Meta(ge=1, le=WHOLE - 1)] | None = None
    weights: dict[str, float] | list[float] | None = None
    parameters: ClassVar[dict[str, Any]] = {}
    duplicates: ClassVar[Duplicates] = "error"
    ratings: ClassVar[None] = None


_decode_plain = msgspec.json.Decoder(PlainFuseRequest).decode
_PLAIN_NAMES = tuple(f'"{name}"'.encode() for name in PlainFuseRequest.__struct_fields__)


def parse_fuse_request(body: bytes) -> request_models.FuseRequest | PlainFuseRequest:
    """Parse the request; all but the most frequent form, and every invalid one, by the model with its messages."""
    # a name that is escaped or repeated is left to the model, too
    if b"\\" not in body and all(body.count(name) <= 1 for name in _PLAIN_NAMES):
        with contextlib.suppress(msgspec.DecodeError, UnicodeDecodeError):
            given = _decode_plain(body)
            # no name of a list or a weight can occur twice in its object, of which the decoder keeps the last;
            # where there are many names, the model looks for repeated ones in one pass
            named = [part for part in (given.lists, given.weights) if isinstance(part, dict)]
            if sum(map(len, named)) <= _MOST_NAMES and all(
                body.count(f'"{name}"'.encode()) == sum(name in part for part in named)
                for name in {name for part in named for name in part}
            ):
                return given
    request = parse_request(request_models.FuseRequest, body)
    if (request.lists is None) == (request.ratings is None):
        got = "neither" if request.lists is None else "both of them"
        raise InputError(f"the request has {got}", remedy="give exactly one of lists, ratings")
    return request


def is_quick(given: request_models.FuseRequest | PlainFuseRequest) -> bool:
    """Whether the response takes about a millisecond at most: plain lists and a positional method."""
    answers = _list_answers(given)
    return (
        given.duplicates == "error"
        and given.method.partition("(")[0].strip() in ("rrf", "rbc")
        and all(type(answer) is list for answer in answers)
        and sum(map(len, answers)) <= QUICK
    )


def _list_answers(given: request_models.FuseRequest | PlainFuseRequest) -> list[Any]:
    lists: Any = given.lists if given.ratings is None else given.ratings
    return list(lists.values()) if isinstance(lists, dict) else lists


def answer_fuse(given: request_models.FuseRequest | PlainFuseRequest, state: Any) -> dict[str, Any]:
    """The response without its duration and warnings."""
    limits, lists = (
        state.settings.limits,
        cast("Any", given.lists if given.ratings is None else given.ratings),
    )
    answers = _list_answers(given)
    check_size(limits, len(answers), sum(map(len, answers)))
    check_ids(limits, chain(lists if isinstance(lists, dict) else (), *answers))
    weights = cast("Any", given.weights)
    is_shared = not given.parameters
    if is_shared and weights is not None and isinstance(lists, dict) == isinstance(weights, dict):
        names = tuple(weights) if isinstance(weights, dict) else None
        shares = tuple(weights.values()) if isinstance(weights, dict) else tuple(weights)
        method = _make_weighted(given.method, names, shares, registry.aggregators.changes)
    else:
        method = make_for_lists(lists, given.method, weights, check_parameters(given.parameters))
        is_shared = is_shared and weights is None
    fused = fuse_positions(lists, method) if given.duplicates == "error" else None
    if fused is not None and fused.ranking and all(answers) and len(answers) <= limits.experts:
        named: Any = sort_by_expert(lists) if isinstance(lists, dict) else None
        ids = sort_ids(fused.ranking)
        if named is not None:
            fingerprint = fingerprint_ranked_lists(list(named.values()), ids, list(named))
        else:
            fingerprint = fingerprint_ranked_lists(lists, ids)
    else:
        preferences = build_preferences(lists, given.duplicates)
        check_work(limits, preferences, method)
        fingerprint = preferences.fingerprint
        fused = fuse_preferences(preferences, method) if fused is None else fused
    top = given.top
    return {
        "items": fused.ranking[:top],
        "scores": fused.scores[:top],
        "tied": fused.tied[:top],
        "method": _describe_shared(method) if is_shared else method_document(method),
        "fingerprint": fingerprint,
    }


def method_document(method: Aggregator) -> dict[str, Any]:
    """Name, parameters, and both as `make` reads them."""
    return {"name": method.name, "spec": repr(method), "parameters": method.get_parameters()}


@functools.lru_cache(maxsize=256)
def _make_weighted(
    spec: str,
    names: tuple[str, ...] | None,
    shares: tuple[float, ...],
    changes: int,  # noqa: ARG001 - a new definition makes the old method stale
) -> Aggregator:
    """A method with weights, which clients send again and again; making it takes as long as fusing three lists."""
    return make(spec, weights=list(shares) if names is None else dict(zip(names, shares, strict=True)))


# the documents of methods that requests share
_describe_shared = functools.lru_cache(maxsize=256)(method_document)
