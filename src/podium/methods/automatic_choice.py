"""The method that `auto` stands for: chosen by the form of the input, where there are no labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from podium.core.text import format_count
from podium.data.preferences import Form, Preferences
from podium.methods.base import Aggregator, make

__all__ = ["MethodRecommendation", "choose_method"]

RATING_VALUES = (
    10  # ratings lie on a short scale of whole numbers, and repeat; scores of search engines do not
)
TIED = 0.25  # share of the rows of a list that are tied with the row before
GUESSING, CONTRARY = (
    0.5,
    0.2,
)  # quality of a judge who guesses; share of judges below it that calls for a check
UNMEASURED = (
    "It gives up a measured choice: with judgements for 20 queries, auto compares all methods on them."
)


@dataclass(frozen=True)
class MethodRecommendation:
    """A method, why it was chosen, and what the choice gives up; no reason where any rule would do."""

    method: Aggregator
    reason: str = ""
    loss: str = ""

    def describe(self) -> str:
        """The two sentences that `podium fuse` prints."""
        return f"auto chose {self.method.name}: {self.reason}. {self.loss}"


def choose_method(preferences: Preferences, **parameters: Any) -> MethodRecommendation:
    """The method for this input, without labels; `parameters` such as `weights` go to the method.

    Ranked lists and search scores: `quality_weighted`; a single expert: `rrf`, which keeps its order. Ratings
    on a scale: `dawid_skene`. Votes by several judges: `crowd_bt`; by one: `bradley_terry`. `crowdagg` replaces the
    two models of judges where they side with a minority that contradicts the others.
    docs/project/auto-protocol.md has the measurements behind this.

    >>> lists = Preferences.from_lists({"q": {"bm25": ["a", "b"], "dense": ["b", "a"]}})
    >>> choose_method(lists).method
    quality_weighted
    >>> votes = Preferences.from_comparisons(["q"] * 2, ["judge"] * 2, ["a", "b"], ["b", "c"])
    >>> choose_method(votes).method
    bradley_terry
    """
    experts = int(preferences.active_experts.sum())
    counted = format_count(experts, "expert")
    if Form.COMPARISON in preferences.forms:
        if experts == 1:
            reason = "all votes come from one judge, whose quality cannot be estimated"
            loss = (
                "It gives up the judges' differences: a column with the judge of each vote would show them."
            )
            return MethodRecommendation(make("bradley_terry", **parameters), reason, loss)
        reason = f"votes of {counted}, each weighted by its estimated quality"
        return _recommend_for_crowd(preferences, make("crowd_bt", **parameters), reason)
    if _holds_ratings(preferences) and experts > 1:
        reason = f"ratings by {counted}, each with its own estimated errors"
        return _recommend_for_crowd(preferences, make("dawid_skene", **parameters), reason)
    if experts <= 1:
        return MethodRecommendation(make("rrf", **parameters))
    reason = f"ranked lists of {counted}, each weighted by its agreement with the others"
    return MethodRecommendation(make("quality_weighted", **parameters), reason, UNMEASURED)


def _recommend_for_crowd(preferences: Preferences, method: Aggregator, reason: str) -> MethodRecommendation:
    """The method, or `crowdagg` where the method sides with judges who contradict most of the others.

    A model of quality fits as well with all qualities reversed. `crowdagg` checks that; where many judges seem to
    contradict the consensus, its order decides which of the two it is.
    """
    consensus = method.aggregate(preferences)
    quality = consensus.expert_weights
    if quality is None or (quality < GUESSING).mean() < CONTRARY:
        return MethodRecommendation(method, reason, UNMEASURED)
    cautious = make("crowdagg", weights=method.weights)
    centered = []
    for result in (consensus, cautious.aggregate(preferences)):
        index = result.index
        place = np.empty(len(result.order))
        place[result.order] = np.arange(len(result.order)) - index.starts[index.query_of_slot]
        centered.append(place - (index.sizes[index.query_of_slot] - 1) / 2)
    if float(centered[0] @ centered[1]) >= 0:
        return MethodRecommendation(method, reason, UNMEASURED)
    reason = f"{method.name} would side with judges who contradict most of the others"
    return MethodRecommendation(cautious, reason, UNMEASURED)


def _holds_ratings(preferences: Preferences) -> bool:
    """Whether the scores are grades on a scale, as people give them: few whole numbers, and many ties in a list."""
    lists = preferences.lists
    score = lists.score
    if score is None or np.isnan(score).any() or (score != np.rint(score)).any():
        return False
    if not len(score) or score.max() - score.min() >= RATING_VALUES:
        return False
    within = np.ones(len(score), np.bool_)
    within[lists.starts[:-1][lists.lengths > 0]] = False  # the first row of a list has none before it
    tied = lists.rank[1:] == lists.rank[:-1]
    return bool(tied[within[1:]].sum() >= TIED * within.sum())
