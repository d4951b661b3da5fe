"""What the service reads. Types are strict: true is no number, "3" is no number, NaN is no number, and a field that
is not known is an error."""

from __future__ import annotations

import functools
from typing import Annotated, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field

__all__ = [
    "AggregateRequest",
    "AnnotatorsRequest",
    "EvaluateRequest",
    "ExplainRequest",
    "FuseRequest",
    "LeaderboardRequest",
    "PreferenceRequest",
]

WHOLE = 2**63  # integers as ids
SPEC = 1000  # characters of a method or metric

T = TypeVar("T")
Many = Annotated[
    list[T], Field(fail_fast=True)
]  # the first wrong one ends it: an error takes a hundred times its input
Text = Annotated[str, Field(min_length=1)]
Id = Annotated[str | Annotated[int, Field(ge=-WHOLE, lt=WHOLE)], Field(description="a string or an integer")]
Number = float
Spec = Annotated[str, Field(min_length=1, max_length=SPEC)]
Weights = dict[str, Number] | Many[Number]
Ties = Literal["item", "trec", "input"]
Value = bool | int | float | str


class StrictModel(BaseModel):
    """Nothing is converted, nothing unknown is passed over."""

    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False, title=None)


class FuseRequest(StrictModel):
    """A few answers to one query: lists of ids from the top, or mappings of ids to scores; named or not."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"lists": [["a", "b", "c"], ["c", "a"]], "method": "rrf(k=20)"}]}
    )
    lists: Many[Many[Id]] | Many[dict[str, Number]] | dict[str, Many[Id]] | dict[str, dict[str, Number]] = (
        Field(
            description="lists of ids from the top, or objects of ids and scores; an object of them if they have names"
        )
    )
    method: Spec = Field("rrf", description="a name, or a name with values such as rrf(k=20)")
    parameters: dict[str, Value] = Field(default_factory=dict, description="parameters of the method")
    weights: Weights | None = Field(
        None, description="one per list: by name if the lists are named, else in order"
    )
    duplicates: Literal["error", "first", "best", "sum"] = "error"
    top: Annotated[int, Field(ge=1, lt=WHOLE)] | None = Field(None, description="the best so many items only")


class ExpertList(StrictModel):
    """One list of one expert for one query, from the top; with ranks (from 1) or scores where there are any."""

    query: Id = 0
    expert: Id
    items: Many[Id]
    ranks: Many[int] | None = None
    scores: Many[Number] | None = None


class Vote(StrictModel):
    """One comparison. In a tie, winner and loser are the two sides; `side` is 1 where the winner was shown first."""

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
    """Items of a query that are ranked even if nobody lists them."""

    query: Id = 0
    items: Many[Id]


class PreferenceRequest(StrictModel):
    """Preferences in exactly one of four forms."""

    rankings: dict[str, dict[str, Many[Id]]] | None = Field(
        None, description="query -> expert -> items from the top"
    )
    ratings: dict[str, dict[str, dict[str, Number]]] | None = Field(
        None, description="query -> expert -> item -> score"
    )
    lists: Many[ExpertList] | None = Field(
        None, description="lists with ids of any type, own ranks or scores"
    )
    votes: Many[Vote] | None = None
    candidates: Many[Candidates] | None = Field(
        None, description="for `lists`: items to rank though nobody lists them"
    )
    unlisted: Literal["unknown", "below"] = Field(
        "unknown", description="below: an expert puts what it does not list below what it lists"
    )
    duplicates: Literal["error", "first", "best", "sum"] = "error"


class MethodRequest(PreferenceRequest):
    """Preferences and one method: by name, or a model that was saved in a project of this server."""

    method: Spec = Field("rrf", description="a name, or a name with values such as rrf(k=20)")
    parameters: dict[str, Value] = Field(default_factory=dict)
    weights: Weights | None = Field(None, description="of the experts, by name, or in id order")
    project: Spec | None = Field(None, description="id of a project, for a saved model")
    model: Spec | None = Field(
        None, description="id of the saved model; leave method, parameters and weights out"
    )
    features: Many[ItemFeatures] | None = Field(None, description="for methods that use item features")


class AggregateRequest(MethodRequest):
    """One consensus ranking for every query."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"rankings": {"q1": {"bm25": ["a", "b"], "dense": ["b", "c"]}}, "method": "borda"}]
        }
    )
    ties: Ties = "item"
    top: Annotated[int, Field(ge=1, lt=WHOLE)] | None = None


class ExplainRequest(MethodRequest):
    """Why an item has its place; with `over`, why it is above or below that item, and what would swap them."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"rankings": {"q1": {"bm25": ["a", "b"], "dense": ["b"]}}, "item": "b", "over": "a"}]
        }
    )
    query: Id | None = Field(None, description="may be left out if there is one only")
    item: Id | None = Field(None, description="the first of the ranking if left out")
    over: Id | None = None


class EvaluateRequest(PreferenceRequest):
    """How good the experts and some methods are, by labels."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "rankings": {"q1": {"bm25": ["a", "b"], "dense": ["b", "a"]}},
                    "labels": [{"query": "q1", "item": "b", "grade": 1}],
                    "methods": ["rrf"],
                }
            ]
        }
    )
    labels: Many[Grade]
    metrics: Annotated[Many[Spec], Field(min_length=1, max_length=20)] = ["ndcg@10", "map", "p@10", "mrr"]
    methods: Annotated[Many[Spec], Field(max_length=50)] = []
    experts: bool = Field(True, description="whether the experts themselves are evaluated too")
    queries: Literal["judged", "all"] = Field(
        "judged", description="all: a judged query without result counts as 0"
    )
    ties: Ties = "item"
    per_query: bool = False
    features: Many[ItemFeatures] | None = None


class LeaderboardRequest(StrictModel):
    """Who is best, from votes, with intervals and checks."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "votes": [
                        {"winner": "a", "loser": "b"},
                        {"winner": "b", "loser": "a"},
                        {"winner": "a", "loser": "b"},
                    ]
                }
            ]
        }
    )
    votes: Many[Vote]
    model: Literal["bradley_terry", "thurstone"] = "bradley_terry"
    ties: Literal["half", "davidson", "rao_kupper", "ignore"] = "half"
    l2: Number | None = Field(None, description="weight of the ridge prior")
    errors: Literal["sandwich", "fisher"] = "sandwich"
    bootstrap: Annotated[int, Field(ge=0, le=2000)] = Field(0, description="rounds of votes drawn again")
    over: Literal["auto", "votes", "experts", "queries"] = Field(
        "auto", description="what errors are over; auto: what the votes call for"
    )
    vote_weights: Literal["auto", "frequency", "importance"] = Field(
        "auto",
        description="whether a vote of weight w is w votes or one; auto: one where a weight is not whole",
    )
    seed: Annotated[int, Field(ge=0, lt=2**32)] = 0
    level: Number = 0.95
    simultaneous: bool = False
    scale: Literal["elo", "natural"] = "elo"
    anchor: Number | None = None
    reference: Id | None = None
    judges: Literal["equal", "discounted"] = "equal"
    sides: Literal["ignore", "fit"] = "ignore"
    top: Annotated[int, Field(ge=1, lt=WHOLE)] = 1
    next: Annotated[int, Field(ge=0, le=1000)] = Field(0, description="so many comparisons to ask for next")


class AnnotatorsRequest(PreferenceRequest):
    """How good annotators are, with reasons."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"ratings": {"q1": {"ann": {"a": 3, "b": 1}, "bob": {"a": 2, "b": 1}}}, "level": 0.9}
            ]
        }
    )
    method: Spec = Field("crowdagg", description="method of the consensus they are compared with")
    labels: Many[Grade] | None = Field(None, description="gold labels")
    level: Number = 0.95


@functools.cache
def quote_field_names(model: type[BaseModel]) -> tuple[bytes, ...]:
    """The names of the fields in quotes, as they stand in JSON."""
    return tuple(f'"{name}"'.encode() for name in model.model_fields)
