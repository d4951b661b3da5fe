"""Queries on which the majority of the experts is wrong."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from podium.core.errors import InputError
from podium.data.labels import Labels
from podium.data.preferences import Preferences
from podium.kernels.dispatch import I8
from podium.kernels.pairwise_votes import compute_vote_matrix
from podium.methods.majority import collect_votes

__all__ = ["MajorityErrors", "MajorityOutcome", "count_majority_errors", "select_by_majority"]

MajorityOutcome = Literal["majority-wrong", "majority-right"]


class MajorityErrors(NamedTuple):
    """Pairs of items with different grades, by query of the labels and by the order that most experts give them.

    An expert is counted for a pair if it prefers one of the two; pairs on which as many experts prefer the one
    as the other, or none does, are in neither number.
    """

    right: I8  # most of these experts prefer the item with the higher grade
    wrong: I8  # most of them prefer the other one


def count_majority_errors(preferences: Preferences, labels: Labels) -> MajorityErrors:
    """For every query of the labels, the pairs that the majority of the experts orders rightly and wrongly.

    >>> from podium import Labels, Preferences
    >>> p = Preferences.from_lists({"q": {1: ["a", "b", "c"], 2: ["a", "b", "c"], 3: ["c", "b", "a"]}})
    >>> right, wrong = count_majority_errors(p, Labels.from_dict({"q": {"a": 0, "b": 1, "c": 0}}))
    >>> right.tolist(), wrong.tolist()
    ([1], [1])
    """
    votes, _ = collect_votes(preferences, np.ones(len(preferences.experts)))
    index, grades = preferences.index, labels.align(preferences.index)
    counts = np.zeros((2, len(labels)), np.int64)
    codes = index.queries.codes_of(labels.index.queries)
    for number, code in enumerate(codes.tolist()):
        if code < 0:
            continue
        slots = slice(int(index.starts[code]), int(index.starts[code + 1]))
        table = compute_vote_matrix(votes, code)
        # an unjudged item has no grade: both comparisons with it are false
        better = grades[slots, None] > grades[None, slots]
        margin = table - table.T
        counts[:, number] = (better & (margin > 0)).sum(), (better & (margin < 0)).sum()
    return MajorityErrors(counts[0], counts[1])


def select_by_majority(
    preferences: Preferences, labels: Labels, outcome: MajorityOutcome = "majority-wrong"
) -> Labels:
    """The labels of the queries where the majority orders more pairs wrongly than rightly, or the reverse.

    Queries with as many of the one as of the other are in neither selection. The labels select the queries and
    then measure on them: that consensus methods are bad where the majority is wrong is no finding, how much of
    it a method trained on other queries recovers is one.

    >>> from podium import Labels, Preferences
    >>> p = Preferences.from_lists({q: {1: ["a", "b"], 2: ["a", "b"], 3: ["b", "a"]} for q in ("easy", "hard")})
    >>> labels = Labels.from_dict({"easy": {"a": 1, "b": 0}, "hard": {"a": 0, "b": 1}})
    >>> select_by_majority(p, labels).index.queries.tolist()
    ['hard']
    """
    right, wrong = count_majority_errors(preferences, labels)
    chosen = np.flatnonzero(wrong > right if outcome == "majority-wrong" else right > wrong)
    if not len(chosen):
        word = outcome.partition("-")[2]
        raise InputError(
            f"the majority of the experts is {word} on none of the {len(labels):,} judged queries",
            remedy="measure on all queries",
        )
    return labels.select_codes(chosen)
