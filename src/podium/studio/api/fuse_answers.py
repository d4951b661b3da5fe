"""`/v1/fuse`: a fast path for thousands of requests per second, without building tables and indexes."""

from __future__ import annotations

import functools
from itertools import chain
from typing import Any, cast

import numpy as np
from pydantic_core import from_json

from podium.data.ids import Ids, id_order
from podium.data.index import ItemIndex
from podium.data.lists import Comparisons, Lists
from podium.data.preferences import Preferences
from podium.methods.base import Aggregator
from podium.methods.fuse import build_preferences, fuse_positions, fuse_preferences, make_for_lists
from podium.studio.api import request_models
from podium.studio.api.request_parsing import (
    check_ids,
    check_parameters,
    check_size,
    check_work,
    parse_request,
)

__all__ = ["QUICK", "answer_fuse", "is_quick", "method_document", "parse_fuse_request"]

QUICK = 5000  # ids up to which requests are fused in the event loop, without a thread


def parse_fuse_request(body: bytes) -> request_models.FuseRequest:
    """Parse the request. Plain lists of strings, by far the most frequent case, are checked directly."""
    if b"\\" not in body and body.count(b'"lists"') == 1:
        try:
            document = from_json(body, allow_inf_nan=False)
        except ValueError:
            document = None  # the error is reported below
        if type(document) is dict and document.keys() == _LISTS:
            lists = document["lists"]
            if (
                type(lists) is list
                and set(map(type, lists)) == {list}
                and set(map(type, chain.from_iterable(lists))) == {str}
            ):
                return request_models.FuseRequest.model_construct(lists=lists)
    return parse_request(request_models.FuseRequest, body)


_LISTS = {"lists"}


def is_quick(given: request_models.FuseRequest) -> bool:
    """Whether the response takes about a millisecond at most: plain lists and a positional method."""
    return (
        given.duplicates == "error"
        and given.method.partition("(")[0].strip() in ("rrf", "rbc")
        and type(given.lists) is list
        and all(type(answer) is list for answer in given.lists)
        and sum(map(len, given.lists)) <= QUICK
    )


def answer_fuse(given: request_models.FuseRequest, state: Any) -> dict[str, Any]:
    """The response without its duration and warnings."""
    limits, lists = state.settings.limits, cast("Any", given.lists)
    answers = list(lists.values()) if isinstance(lists, dict) else lists
    check_size(limits, len(answers), sum(map(len, answers)))
    check_ids(limits, chain(lists if isinstance(lists, dict) else (), *answers))
    weights = cast("Any", given.weights)
    method = make_for_lists(lists, given.method, weights, check_parameters(given.parameters))
    fused = fuse_positions(lists, method) if given.duplicates == "error" else None
    # positions alone need no preferences, but every response has their fingerprint
    plain = fused is not None and lists and all(lists)
    preferences = _build_plain_preferences(lists) if plain else build_preferences(lists, given.duplicates)
    if fused is None or len(answers) > limits.experts:
        check_work(limits, preferences, method)
    if fused is None:
        fused = fuse_preferences(preferences, method)
    top = given.top
    return {
        "items": fused.ranking[:top],
        "scores": fused.scores[:top],
        "tied": fused.tied[:top],
        "method": method_document(method),
        "fingerprint": preferences.fingerprint,
    }


def method_document(method: Aggregator) -> dict[str, Any]:
    """Name, parameters, and both as `make` reads them."""
    return {"name": method.name, "spec": repr(method), "parameters": method.get_parameters()}


def _build_plain_preferences(lists: list[list[Any]]) -> Preferences:
    """`Preferences.from_lists({0: {0: ..., 1: ...}})` for lists without repeats, none of them empty."""
    rows = list(chain.from_iterable(lists))
    one_type = len(set(map(type, rows))) == 1
    items = sorted(set(rows)) if one_type else sorted(set(rows), key=id_order)
    slot = dict(zip(items, range(len(items)), strict=True))
    experts, expert, query_starts, starts, rank = _build_list_arrays(tuple(map(len, lists)))
    item = np.fromiter(map(slot.__getitem__, rows), np.int32, len(rows))
    index = ItemIndex(_ZERO, np.array((0, len(items)), np.int64), Ids(items), _NOTHING)
    return Preferences(
        index, experts, Lists(query_starts, expert, starts, item, rank, None), Comparisons.empty(1)
    )


@functools.lru_cache(maxsize=64)
def _build_list_arrays(lengths: tuple[int, ...]) -> tuple[Ids, Any, Any, Any, Any]:
    """Everything that depends only on the lengths of the lists."""
    count = len(lengths)
    starts = np.zeros(count + 1, np.int64)
    np.cumsum(lengths, out=starts[1:])
    rank = np.concatenate([np.arange(1, n + 1, dtype=np.int32) for n in lengths])
    span = np.array((0, count), np.int64)
    return Ids(list(range(count))), np.arange(count, dtype=np.int32), span, starts, rank


_ZERO = Ids([0])
_NOTHING = np.zeros(0, np.int32)  # input order, which fingerprints ignore
