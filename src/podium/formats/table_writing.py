"""Selection of the content that a table stores, and its rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal

import numpy as np

from podium.core.errors import InputError
from podium.data.building.validate import check_choice
from podium.data.ids import Id, Ids
from podium.data.preferences import Preferences
from podium.formats.base import Content, Format
from podium.formats.text_ids import refuse_surrogates
from podium.kernels.dispatch import I8

__all__ = ["WritableKind", "build_columns", "iterate_lists", "resolve_kind"]

WritableKind = Literal["lists", "votes", "labels"]
EncodeIds = Callable[[Ids, str, I8 | None], list[Any]]  # ids, their role, and the query of each item


def resolve_kind(content: Content, kind: str, format: Format) -> str:
    """The part of the content to write: lists, votes or labels."""
    p = content.preferences
    there = {name: name in content.parts for name in ("lists", "votes", "labels")}
    check_choice("kind", kind, ("auto", *there))
    if kind == "auto":
        kind = next((k for k, has in there.items() if has), "")
    if not kind or not there[kind]:
        raise InputError(f"there are no {kind or 'lists, votes or labels'} to write")
    held = content.labels if kind == "labels" else p
    assert held is not None
    for what, ids in (("query", held.queries), ("item", held.index.items)):
        refuse_surrogates(ids, what, format.name)
    if kind != "labels" and p is not None:
        refuse_surrogates(p.experts, "expert", format.name)
    unranked = 0
    if p is not None and kind == "lists":
        unranked = len(p.index.items) - len(np.unique(p.lists.item))
    others = {k: has for k, has in there.items() if k != kind}
    format.warn_of_omitted(**others, features=content.features, items_nobody_ranks=unranked)
    return kind


def build_columns(content: Content, kind: str, encode: EncodeIds) -> Mapping[str, list[Any]]:
    """The rows of the lists, votes or labels as named columns."""
    held = content.labels if kind == "labels" else content.preferences
    assert held is not None
    index, p, labels = held.index, content.preferences, content.labels
    codes: dict[str, Any] = {}  # of ids: queries, experts or items
    values: dict[str, Any] = {}
    if kind == "labels" and labels is not None:
        judged = np.flatnonzero(~np.isnan(labels.grades))
        codes = {"query": index.query_of_slot[judged], "item": judged}
        values = {"grade": labels.grades[judged]}
    elif kind == "votes" and p is not None:
        v = p.comparisons
        codes = {"query": v.query_of_row, "expert": v.expert, "winner": v.winner, "loser": v.loser}
        values = {"tie": v.tie, "weight": v.weight}
    elif p is not None:
        t = p.lists
        codes = {"query": t.query_of_list[t.list_of_row], "expert": t.expert[t.list_of_row], "item": t.item}
        values = {"rank": t.rank} if t.score is None else {"rank": t.rank, "score": t.score}
    ids = {"query": encode(index.queries, "query", None)}
    if p is not None and "expert" in codes:
        ids["expert"] = encode(p.experts, "expert", None)
    items = encode(index.items, "item", index.query_of_slot)
    return {role: [ids.get(role, items)[c] for c in column.tolist()] for role, column in codes.items()} | {
        name: column.tolist() for name, column in values.items()
    }


def iterate_lists(p: Preferences) -> Iterator[tuple[Id, Id, list[Id], list[int], list[float] | None]]:
    """Every list as (query, expert, items, ranks, scores or None)."""
    t = p.lists
    queries, experts = p.queries.tolist(), p.experts.tolist()
    for k in range(len(t)):
        a, b = int(t.starts[k]), int(t.starts[k + 1])
        items = p.index.items.take(t.item[a:b]).tolist()
        scores = None if t.score is None or np.isnan(t.score[a:b]).any() else t.score[a:b].tolist()
        yield queries[int(t.query_of_list[k])], experts[int(t.expert[k])], items, t.rank[a:b].tolist(), scores
