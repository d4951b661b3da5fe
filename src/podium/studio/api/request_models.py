"""Request models of the API. Validation is strict: true, "3" and NaN are not numbers, and unknown fields
are errors."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, create_model

from podium.core.params import Range, parameters
from podium.core.settings import Duplicates, LeaderboardSettings, QueryScope, TieRule, Unlisted

WHOLE = 2**63  # bound of integer ids
SPEC = 1000  # maximum characters of a method or metric

T = TypeVar("T")
# stop at the first error: errors take a hundred times the memory of their input
Many = Annotated[list[T], Field(fail_fast=True)]
Text = Annotated[str, Field(min_length=1)]
Id = Annotated[str | Annotated[int, Field(ge=-WHOLE, lt=WHOLE)], Field(description="a string or an integer")]
Number = float
Spec = Annotated[str, Field(min_length=1, max_length=SPEC)]
Weights = dict[str, Number] | Many[Number]
Value = bool | int | float | str


class StrictModel(BaseModel):
    """Values are not converted; unknown fields are refused."""

    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False, title=None)


def _show_example(**fields: Any) -> ConfigDict:
    return ConfigDict(json_schema_extra={"examples": [fields]})


class FuseRequest(StrictModel):
    """Lists for one query, of ids best first, or ratings, of ids with scores; optionally named."""

    model_config = _show_example(lists=[["a", "b", "c"], ["c", "a"]], method="rrf(k=20)")
    # two fields, because generated clients cannot tell lists of ids from mappings in one union and drop the scores
    lists: Many[Many[Id]] | dict[str, Many[Id]] | None = Field(
        None, description="lists of ids, best first; an object of them if they are named"
    )
    ratings: Many[dict[str, Number]] | dict[str, dict[str, Number]] | None = Field(
        None,
        description="in place of `lists`: objects of ids and scores; an object of them if they are named",
    )
    method: Spec = Field("rrf", description="a name, or a name with parameters such as rrf(k=20)")
    parameters: dict[str, Value] = Field(default_factory=dict, description="parameters of the method")
    weights: Weights | None = Field(
        None, description="one per list: by name if the lists are named, else in order"
    )
    duplicates: Duplicates = "error"
    top: Annotated[int, Field(ge=1, lt=WHOLE)] | None = Field(None, description="number of items to return")


class ExpertList(StrictModel):
    """One expert's list for one query, best first; optionally with ranks (from 1) or scores."""

    query: Id = 0
    expert: Id
    items: Many[Id]
    ranks: Many[int] | None = None
    scores: Many[Number] | None = None


class Vote(StrictModel):
    """One comparison. In a tie, winner and loser are the two sides; `side` is 1 if the winner was shown first."""

    query: Id = 0
    expert: Id = "votes"
    winner: Id
    loser: Id
    tie: bool = False
    weight: Annotated[float, Field(gt=0, le=1e9)] = 1.0
    side: Literal[-1, 0, 1] = 0


class Grade(StrictModel):
    """The label of one item of a query."""

    query: Id = 0
    item: Id
    grade: Number


class ItemFeatures(StrictModel):
    """The features of one item of a query."""

    query: Id = 0
    item: Id
    values: Many[Number]


class Candidates(StrictModel):
    """Items of a query that are ranked even if no expert lists them."""

    query: Id = 0
    items: Many[Id]


class PreferenceRequest(StrictModel):
    """Preferences in exactly one of four forms."""

    rankings: dict[str, dict[str, Many[Id]]] | None = Field(
        None, description="query -> expert -> items, best first"
    )
    ratings: dict[str, dict[str, dict[str, Number]]] | None = Field(
        None, description="query -> expert -> item -> score"
    )
    lists: Many[ExpertList] | None = Field(
        None, description="lists with ids of any type and optional ranks or scores"
    )
    votes: Many[Vote] | None = None
    candidates: Many[Candidates] | None = Field(
        None, description="for `lists`: items to rank even if no expert lists them"
    )
    unlisted: Unlisted = Field(
        "unknown", description="below: an expert ranks unlisted items below the listed ones"
    )
    duplicates: Duplicates = "error"


class MethodRequest(PreferenceRequest):
    """Preferences and one method: by name, or a model saved in a project on this server."""

    method: Spec = Field("rrf", description="a name, or a name with parameters such as rrf(k=20)")
    parameters: dict[str, Value] = Field(default_factory=dict)
    weights: Weights | None = Field(None, description="of the experts, by name, or in id order")
    project: Spec | None = Field(None, description="id of a project, for a saved model")
    model: Spec | None = Field(
        None, description="id of the saved model; leave method, parameters and weights out"
    )
    features: Many[ItemFeatures] | None = Field(None, description="for methods that use item features")


class AggregateRequest(MethodRequest):
    """One consensus ranking per query."""

    model_config = _show_example(rankings={"q1": {"bm25": ["a", "b"], "dense": ["b", "c"]}}, method="borda")
    ties: TieRule = "item"
    top: Annotated[int, Field(ge=1, lt=WHOLE)] | None = None


class ExplainRequest(MethodRequest):
    """Explain an item's rank; with `over`, why it is above or below that item, and what would swap them."""

    model_config = _show_example(rankings={"q1": {"bm25": ["a", "b"], "dense": ["b"]}}, item="b", over="a")
    query: Id | None = Field(None, description="optional if there is only one")
    item: Id | None = Field(None, description="default: the first item of the ranking")
    over: Id | None = None


class EvaluateRequest(PreferenceRequest):
    """Evaluate experts and methods against labels."""

    model_config = _show_example(
        rankings={"q1": {"bm25": ["a", "b"], "dense": ["b", "a"]}},
        labels=[{"query": "q1", "item": "b", "grade": 1}],
        methods=["rrf"],
    )
    labels: Many[Grade]
    metrics: Annotated[Many[Spec], Field(min_length=1, max_length=20)] = ["ndcg@10", "map", "p@10", "mrr"]
    methods: Annotated[Many[Spec], Field(max_length=50)] = []
    experts: bool = Field(True, description="whether to evaluate the experts too")
    queries: QueryScope = Field("judged", description="all: a judged query without a result counts as 0")
    ties: TieRule = "item"
    per_query: bool = False
    features: Many[ItemFeatures] | None = None


def _make_settings_model(
    cls: type, limits: Mapping[str, Mapping[str, Any]], types: Mapping[str, tuple[Any, Any]]
) -> Any:
    """A model with a field for each setting; `limits` are the server's own, `types` replace types and defaults."""
    fields: dict[str, Any] = {}
    for p in parameters(cls):
        kind, default = types.get(p.name, (p.hint, p.default))
        bounds: dict[str, Any] = {}
        if isinstance(p.accepts, Range) and p.flags.shows_range:
            bounds["gt" if p.accepts.open_low else "ge"] = p.accepts.low
        text = p.help.partition("[default")[0].strip() or None
        fields[p.name] = (kind, Field(default, description=text, **bounds, **limits.get(p.name, {})))
    return create_model(f"{cls.__name__}Fields", __base__=StrictModel, **fields)


_LeaderboardFields = _make_settings_model(
    LeaderboardSettings,
    {"bootstrap": {"le": 2000}, "seed": {"lt": 2**32}, "top": {"lt": WHOLE}},
    {"l2": (Number | None, None), "reference": (Id | None, None)},
)


class LeaderboardRequest(_LeaderboardFields):  # type: ignore[misc, valid-type]
    """A leaderboard from votes, with intervals and checks."""

    model_config = _show_example(votes=[{"winner": w, "loser": lo} for w, lo in ("ab", "ba", "ab")])
    votes: Many[Vote]
    next: Annotated[int, Field(ge=0, le=1000)] = Field(0, description="number of next comparisons to propose")


class AnnotatorsRequest(PreferenceRequest):
    """The quality of annotators, with reasons."""

    model_config = _show_example(
        ratings={"q1": {"ann": {"a": 3, "b": 1}, "bob": {"a": 2, "b": 1}}}, level=0.9
    )
    method: Spec = Field("crowdagg", description="consensus method to compare annotators with")
    labels: Many[Grade] | None = Field(None, description="gold labels")
    level: Number = 0.95


@functools.cache
def quote_field_names(model: type[BaseModel]) -> tuple[bytes, ...]:
    """The quoted field names, as in JSON."""
    return tuple(f'"{name}"'.encode() for name in model.model_fields)
