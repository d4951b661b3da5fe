"""Column roles: common column names for queries, experts, items, votes and grades."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from podium.core.errors import InputError
from podium.core.params import suggest_names

__all__ = ["LIST_ROLES", "ROLES", "VOTE_ROLES", "WORDS", "assign_roles", "normalize_name"]

# role -> common names, compared without case, whitespace and punctuation; the role's own name comes first
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
LIST_ROLES = ("query", "expert", "item", "rank", "score")
VOTE_ROLES = ("query", "expert", "winner", "loser", "item_a", "item_b", "tie", "weight")


def normalize_name(name: str) -> str:
    """A column name without case, whitespace and punctuation."""
    return re.sub(r"[\W_]+", "", name.lower())


def assign_roles(
    names: Sequence[str], role_columns: Mapping[str, str | None], source: str, among: Collection[str] = ROLES
) -> dict[str, str]:
    """Role -> column name: as requested, else matched by common names; '' means that the role has no column.

    Roles that are not in `among` are assigned only on request.

    >>> assign_roles(["topicID", "workerID", "docID", "label"], {}, "f.csv")
    {'query': 'topicID', 'expert': 'workerID', 'item': 'docID', 'grade': 'label'}
    """
    assignment: dict[str, str] = {}
    taken = set()
    for role, name in role_columns.items():
        if name:
            if name not in names:
                raise InputError(
                    f"there is no column {name!r}", source=source, remedy=suggest_names(name, names)
                )
            assignment[role] = name
            taken.add(name)
    for role, words in WORDS.items():
        if role_columns.get(role) is not None or role not in among:
            continue
        fits = [n for n in names if n not in taken and normalize_name(n) in words]
        exact = [n for n in fits if n.lower() == role]
        if len(fits) > 1 and len(exact) != 1:
            raise InputError(
                f"the columns {' and '.join(map(repr, fits))} could both be the {role}",
                source=source,
                remedy=f"give {role}=",
            )
        if fits:
            assignment[role] = exact[0] if exact else fits[0]
    return {role: assignment[role] for role in ROLES if role in assignment}
