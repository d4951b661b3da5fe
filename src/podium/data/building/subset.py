"""The same preferences over fewer items."""

from __future__ import annotations

import dataclasses

import numpy as np

from podium.data.lists import Lists
from podium.data.preferences import Preferences
from podium.kernels import segments
from podium.kernels.dispatch import B1

__all__ = ["restrict_items"]


def restrict_items(preferences: Preferences, keep: B1) -> Preferences:
    """Preferences over the kept slots: new slot k is old slot `flatnonzero(keep)[k]`; ranks are unchanged."""
    new = segments.offsets(keep)[:-1]  # the new number of each kept slot
    lists = preferences.lists
    rows = np.flatnonzero(keep[lists.item])
    lengths = np.bincount(lists.list_of_row[rows], minlength=len(lists))
    left = lengths > 0  # lists without any kept item are dropped
    lists = Lists(
        segments.offsets(left)[lists.query_starts],
        lists.expert[left],
        segments.offsets(lengths[left]),
        new[lists.item[rows]].astype(np.int32),
        lists.rank[rows],
        None if lists.score is None else lists.score[rows],
    )
    votes = preferences.comparisons
    both = keep[votes.winner] & keep[votes.loser]
    votes = votes.keep(both, np.arange(len(preferences.experts)))
    winner, loser = (new[side].astype(np.int32) for side in (votes.winner, votes.loser))
    votes = dataclasses.replace(votes, winner=winner, loser=loser)
    return Preferences(preferences.index.keep(keep), preferences.experts, lists, votes, preferences.unlisted)
