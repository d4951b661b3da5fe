"""The interpretation of items that an expert does not list.

Formats differ in what an omitted item means: in a TREC run it ranks below all listed items, in a table its
position is unknown. The same lists may therefore have different winners.
"""

from __future__ import annotations

from podium.data.preferences import Preferences

__all__ = ["describe_unlisted_rule"]


def describe_unlisted_rule(preferences: Preferences) -> str:
    """How unlisted items are interpreted, in one sentence; empty if all lists are complete.

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
