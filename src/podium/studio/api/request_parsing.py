"""Convert validated requests to library objects; enforce the limits on lists, items and ids."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
from pydantic import BaseModel, ValidationError

from podium.core.errors import InputError, ParameterError
from podium.data.ids import CodedColumn, code_ids
from podium.data.preferences import Preferences
from podium.studio.api import request_models
from podium.studio.limits import TooLarge, check_pairs
from podium.studio.security import RequestRefused
from podium.studio.settings import Limits

if TYPE_CHECKING:
    from podium.data.features import Features
    from podium.data.labels import Labels
    from podium.methods.base import Aggregator

M = TypeVar("M", bound=BaseModel)
TOLD = 10_000  # maximum number of validation errors examined individually
FORMS = ("rankings", "ratings", "lists", "votes")


# -- JSON ----------------------------------------------------------------------------------------------------------


def parse_request(model: type[M], body: bytes) -> M:
    """Parse the request, or refuse it and name the invalid field."""
    try:
        request = model.model_validate_json(body)
    except ValidationError as error:
        raise _build_refusal(error) from None
    twice = any(body.count(name) > 1 for name in request_models.quote_field_names(model))
    if twice or b"\\" in body or b"{" in body[1:]:
        check_repeated_keys(body)
    return request


def _build_refusal(error: ValidationError) -> RequestRefused:
    if error.error_count() > TOLD:  # each formatted error takes a kilobyte
        wrong = f"{error.error_count():,} values have invalid types"
        return RequestRefused(422, wrong, "see /docs for accepted values")
    # among the alternatives of a union, report the one that matched furthest
    first = max(error.errors(include_url=False, include_context=False), key=lambda e: len(e["loc"]))
    if first["type"] == "json_invalid":
        return RequestRefused(
            400, f"the body is not JSON: {first['msg'].partition(': ')[2]}", "send one JSON object"
        )
    where = ".".join(str(part) for part in first["loc"] if "[" not in str(part)) or "the body"
    given = first.get("input")
    shown = f" (it is {str(given)[:40]!r})" if isinstance(given, str | int | float | bool | None) else ""
    more = error.error_count() - 1
    others = f" ({more} more)" if more else ""
    return RequestRefused(422, f"{where}: {first['msg']}{shown}{others}", "see /docs for accepted values")


def check_repeated_keys(body: bytes) -> None:
    """Refuse duplicate names in an object: JSON parsers differ in which one they keep."""

    def refuse_repeats(given: list[tuple[str, Any]]) -> None:
        if len({name for name, _ in given}) < len(given):
            names = [name for name, _ in given]
            twice = next(name for name in names if names.count(name) > 1)
            raise RequestRefused(422, f"the name {twice[:40]!r} occurs twice in one object", "give it once")

    json.loads(body, object_pairs_hook=refuse_repeats)


# -- limits --------------------------------------------------------------------------------------------------------


def check_size(limits: Limits, lists: int, rows: int) -> None:
    """Refuse more lists or rows than the limits allow."""
    if lists > limits.lists:
        raise TooLarge(f"there are {lists:,} lists", remedy=f"send at most {limits.lists:,} per request")
    if rows > limits.items:
        raise TooLarge(f"there are {rows:,} items", remedy=f"send at most {limits.items:,} per request")


def check_ids(limits: Limits, ids: Iterable[Any]) -> None:
    """Refuse ids that are too long."""
    most, given = limits.id_length, list(ids)
    try:
        longest = max(map(len, given), default=0)
    except TypeError:  # some ids are integers
        longest = max(len(value) for value in (*given, "") if isinstance(value, str))
    if longest > most:
        raise InputError(f"an id has more than {most} characters", remedy="use shorter ids")


def check_work(limits: Limits, preferences: Preferences, method: Aggregator | None = None) -> None:
    """Refuse input that would need a table of all pairs of too many items or experts."""
    if len(preferences.experts) > limits.experts:
        raise TooLarge(
            f"there are {len(preferences.experts):,} experts",
            remedy=f"send at most {limits.experts:,} per request",
        )
    check_pairs(limits, preferences, method)


# -- preferences ---------------------------------------------------------------------------------------------------


def build_preferences(given: request_models.PreferenceRequest, limits: Limits) -> Preferences:
    """Build the preferences from the form that was sent."""
    forms = [name for name in FORMS if getattr(given, name) is not None]
    if len(forms) != 1:
        got = ", ".join(forms) or "none of them"
        raise InputError(f"the request has {got}", remedy=f"give exactly one of {', '.join(FORMS)}")
    if given.candidates is not None and forms != ["lists"]:
        raise ParameterError(f"candidates cannot be combined with {forms[0]}; send the lists as `lists`")
    if given.votes is not None:
        if given.unlisted == "below":
            raise ParameterError(
                "unlisted is 'below', which applies to lists, but these are votes; leave it out"
            )
        return build_votes(given.votes, limits)
    if given.lists is not None:
        return _build_lists(given, given.lists, limits)
    nested: Any = given.rankings if given.rankings is not None else given.ratings
    answers = [answer for by_expert in nested.values() for answer in by_expert.values()]
    check_size(limits, len(answers), sum(map(len, answers)))
    for ids in (nested, *nested.values(), *answers):
        check_ids(limits, ids)
    return Preferences.from_lists(nested, duplicates=given.duplicates, unlisted=given.unlisted)


def build_votes(votes: Sequence[request_models.Vote], limits: Limits) -> Preferences:
    """Comparisons."""
    check_size(limits, 1, len(votes))
    columns = [[getattr(v, n) for v in votes] for n in ("query", "expert", "winner", "loser")]
    for ids in columns:
        check_ids(limits, ids)
    side = [v.side for v in votes]
    return Preferences.from_comparisons(
        *columns,
        tie=[v.tie for v in votes],
        weight=[v.weight for v in votes],
        side=side if any(side) else None,
    )


def _build_lists(
    given: request_models.PreferenceRequest, rows: Sequence[request_models.ExpertList], limits: Limits
) -> Preferences:
    more = given.candidates or []
    named: list[request_models.ExpertList | request_models.Candidates] = [*rows, *more]
    check_size(limits, len(named), sum(len(r.items) for r in named))
    for r in named:
        check_ids(limits, (r.query, *r.items))
    check_ids(limits, (r.expert for r in rows))
    _check_rows(rows)
    lengths = [len(r.items) for r in rows]
    queries = code_ids([r.query for r in rows] + [c.query for c in more], "query")
    experts = code_ids([r.expert for r in rows], "expert")
    scored = any(r.scores is not None for r in rows)
    candidates = None
    if more:
        wide = np.repeat(queries.codes[len(rows) :], [len(c.items) for c in more])
        candidates = (CodedColumn(wide, queries.ids), [i for c in more for i in c.items])
    ranks: list[int] | None = None  # scores define the order if every list has them and no ranks
    if not rows or any(r.scores is None or r.ranks is not None for r in rows):
        for number, r in enumerate(rows):
            if r.ranks is None and r.scores is not None:
                raise InputError(
                    "this list has only scores, but other lists have ranks or neither",
                    source=f"list {number + 1}",
                    remedy="give only scores in all lists, or add ranks to this one",
                )
        sent = (range(1, len(r.items) + 1) if r.ranks is None else r.ranks for r in rows)
        ranks = [rank for one in sent for rank in one]
    return Preferences.from_rows(
        CodedColumn(np.repeat(queries.codes[: len(rows)], lengths), queries.ids),
        CodedColumn(np.repeat(experts.codes, lengths), experts.ids),
        [item for r in rows for item in r.items],
        rank=ranks,
        score=[v for r in rows for v in r.scores or [np.nan] * len(r.items)] if scored else None,
        candidates=candidates,
        duplicates=given.duplicates,
        unlisted=given.unlisted,
        blank_scores=scored,
    )


def _check_rows(rows: Sequence[request_models.ExpertList]) -> None:
    seen = set()
    for number, r in enumerate(rows):
        for name in ("ranks", "scores"):
            column = getattr(r, name)
            if column is not None and len(column) != len(r.items):
                raise InputError(
                    f"{len(column)} {name} for {len(r.items)} items",
                    source=f"list {number + 1}",
                    remedy="give one each",
                )
        key = (type(r.query), r.query, type(r.expert), r.expert)
        if key in seen:
            raise InputError(
                f"expert {r.expert!r} has two lists for query {r.query!r}",
                source=f"list {number + 1}",
                remedy="send one",
            )
        seen.add(key)


# -- labels, features, methods -------------------------------------------------------------------------------------


def build_labels(given: Sequence[request_models.Grade], limits: Limits) -> Labels:
    """Grades."""
    from podium.data.labels import Labels

    check_size(limits, 1, len(given))
    queries, items = [g.query for g in given], [g.item for g in given]
    check_ids(limits, (*queries, *items))
    return Labels.from_rows(queries, items, [g.grade for g in given])


def build_features(given: Sequence[request_models.ItemFeatures] | None, limits: Limits) -> Features | None:
    """Build the item features, if any."""
    from podium.data.features import Features

    if given is None:
        return None
    check_size(limits, 1, sum(len(d.values) for d in given) + len(given))
    if not given or len({len(d.values) for d in given}) > 1:
        raise InputError(
            "the items have different numbers of features, or none", remedy="give the same number for all"
        )
    check_ids(limits, chain.from_iterable((d.query, d.item) for d in given))
    return Features.from_rows([d.query for d in given], [d.item for d in given], [d.values for d in given])


def resolve_method(given: request_models.MethodRequest, store: Any) -> Aggregator:
    """Make the method by name, or load the saved model."""
    from podium.methods.base import make
    from podium.models.model_files import loads
    from podium.studio.database import RecordNotFound

    if given.model is None and given.project is None:
        weights = {} if given.weights is None else {"weights": given.weights}
        return make(given.method, **check_parameters(given.parameters), **weights)
    if given.model_fields_set & {"method", "parameters", "weights"}:
        raise ParameterError("a saved model includes its method, parameters and weights; leave them out")
    missing = RequestRefused(404, "no such model", "see the projects and models of this server in the studio")
    try:
        kept = store.models(given.project) if given.model is None else [store.model(given.model)]
        if not kept or given.project not in (None, kept[0].project):
            raise missing
        loaded: Any = loads(store.model_bytes(kept[0].id), "the saved model")
    except RecordNotFound:
        raise missing from None
    if not hasattr(loaded, "aggregate"):
        raise ParameterError(
            "the saved model learns from features alone and does not aggregate; choose another"
        )
    return cast("Aggregator", loaded)


def check_parameters(parameters: dict[str, Any]) -> dict[str, Any]:
    """The parameters; `weights` is refused, as it has its own field."""
    if "weights" in parameters:
        raise ParameterError("give weights in the field `weights`, not in the parameters")
    return parameters
