"""How items that an expert does not list were read.

Formats differ in what they take it to mean that an expert leaves an item out: in a TREC run it is below everything that
is listed, in a table nothing is known about it. The same lists may thus have two winners.
"""

from __future__ import annotations

from podium.data.preferences import Preferences

__all__ = ["describe_unlisted_rule"]


def describe_unlisted_rule(preferences: Preferences) -> str:
    """How unlisted items were read, in one sentence; empty where every list names all candidates of its query.

    >>> p = Preferences.from_lists({"q": {"bm25": ["a", "b"], "dense": ["b"]}})
    >>> describe_unlisted_rule(p)
    'Items that an expert does not list count as unknown to it (unlisted: unknown).'
    >>> describe_unlisted_rule(Preferences.from_lists({"q": {"bm25": ["a", "b"], "dense": ["b", "a"]}}))
    ''
    """
    lists = preferences.lists
    named = lists.lengths[lists.lengths > 0]
    there = preferences.index.sizes[lists.query_of_list][lists.lengths > 0]
    if not (named < there).any():
        return ""
    meaning = {"below": "below those it lists", "unknown": "unknown to it"}[preferences.unlisted]
    return f"Items that an expert does not list count as {meaning} (unlisted: {preferences.unlisted})."
