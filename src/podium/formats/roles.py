"""Which column of a table is what: users' words for queries, experts, items, votes and grades."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from podium.errors import InputError, Option, PodiumWarning
from podium.params import suggest

__all__ = ["ROLES", "WORDS", "assign", "plain_name", "warn_of_one_query"]

# role -> the words people use, compared without case, blanks and punctuation; the role's own name comes first
WORDS: dict[str, tuple[str, ...]] = {
    "query": ("query", "queryid", "qid", "topic", "topicid", "topicno", "instance"),
    "expert": (
        "expert", "worker", "workerid", "judge", "judgeid", "annotator", "annotatorid", "rater", "assessor",
        "run", "runid", "engine", "system", "tag", "ranker", "voter", "user", "userid",
    ),
    "item": (
        "item", "itemid", "doc", "docid", "docno", "document", "documentid", "candidate", "passage", "alternative",
    ),
    "rank": ("rank", "position", "place"),
    "score": ("score", "rating"),
    "grade": ("grade", "label", "relevance", "rel", "gold", "judgment", "judgement"),
    "winner": ("winner", "preferred", "chosen", "better", "answer", "preference", "choice"),
    "loser": ("loser", "rejected", "worse"),
    "item_a": ("itema", "doca", "modela", "a", "left", "item1", "doc1", "model1", "documenta", "passagea"),
    "item_b": ("itemb", "docb", "modelb", "b", "right", "item2", "doc2", "model2", "documentb", "passageb"),
    "tie": ("tie", "tied", "istie"),
    "weight": ("weight", "count"),
    "items": ("items", "docs", "documents", "ranking"),
    "ranks": ("ranks",),
    "scores": ("scores",),
    "seconds": ("seconds", "durationseconds", "worktimeinseconds"),
}  # fmt: skip
ROLES = tuple(WORDS)
# words for queries that also mean other things: not taken for the column unasked, but not passed over in silence
PERHAPS = ("task", "taskid", "question", "questionid", "prompt", "promptid", "search", "searchid")


def plain_name(name: str) -> str:
    """A column name without case, blanks and punctuation."""
    return re.sub(r"[\W_]+", "", name.lower())


def assign(names: Sequence[str], asked: Mapping[str, str | None], source: str) -> dict[str, str]:
    """Role -> column name: what was asked for, else by the words; a role asked for as '' is left out.

    >>> assign(["topicID", "workerID", "docID", "label"], {}, "f.csv")
    {'query': 'topicID', 'expert': 'workerID', 'item': 'docID', 'grade': 'label'}
    """
    found: dict[str, str] = {}
    taken = set()
    for role, name in asked.items():
        if name:
            if name not in names:
                raise InputError(f"there is no column {name!r}", source=source, remedy=suggest(name, names))
            found[role] = name
            taken.add(name)
    for role, words in WORDS.items():
        if asked.get(role) is not None:
            continue
        fits = [n for n in names if n not in taken and plain_name(n) in words]
        exact = [n for n in fits if n.lower() == role]
        if len(fits) > 1 and len(exact) != 1:
            raise InputError(
                f"the columns {' and '.join(map(repr, fits))} could both be the {role}",
                source=source,
                remedy=f"say {role}=",
            )
        if fits:
            found[role] = exact[0] if exact else fits[0]
    return {role: found[role] for role in ROLES if role in found}


def warn_of_one_query(columns: Mapping[str, Sequence[Any]], roles: Mapping[str, str], source: str) -> None:
    """Without a column of queries all rows are one query; a column that could be them is named."""
    if "query" in roles or "item" not in roles:
        return
    items = columns[roles["item"]]
    left = [name for name in columns if name not in roles.values()]
    found = [name for name in left if _like_queries(name, columns[name], items)]
    if found:
        told = PodiumWarning(
            f"{source}: no column of queries, all rows are query 'all'; not used: {', '.join(map(repr, found))}; give ",
            Option("query", found[0]),
            " if those are the queries, or ",
            Option("query", ""),
            " if there is one",
        )
        warnings.warn(told, stacklevel=4)


def _like_queries(name: str, cells: Sequence[Any], items: Sequence[Any]) -> bool:
    """Whether a column may well be queries: it has a word for them, or it parts the items.

    It has several values, all of them ids, each with two rows or more on average. A column parts the items if each
    item, judged twice or more on average, always has the same value, and a value has two items or more on average:
    remarks on the annotator or on the single judgement do not, and neither does a second name of the item.
    """
    if not set(map(type, cells)) <= {str, int}:
        return False
    values = set(cells)
    if not 1 < len(values) <= len(cells) / 2 or "" in values:
        return False
    if plain_name(name) in PERHAPS:
        return True
    if any(isinstance(v, str) and re.fullmatch(r"[+-]?\d*\.\d*(e[+-]?\d+)?", v.lower()) for v in values):
        return False  # measurements
    several = len(set(items))
    return (
        len(items) >= 2 * several >= 4 * len(values) and len(set(zip(items, cells, strict=True))) == several
    )
