"""The method that `auto` stands for: chosen by the form of the input, where there are no labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from podium.core.errors import check_type
from podium.core.text import format_count
from podium.data.preferences import Form, Preferences
from podium.data.rating_scale import count_rating_levels
from podium.methods.base import Aggregator, make
from podium.methods.quality_fusion import QualityWeightedFusion

__all__ = ["MethodRecommendation", "choose_method", "fix_weights"]

MOST_LEVELS = 11  # up to which an annotator's errors can be estimated level by level
RATINGS_PER_CHANCE = 5  # of an annotator, for each of the levels x levels chances that are estimated
RATINGS_PER_ITEM = 15  # at most: with more, every item has its level for certain, and a level is one tie
RATINGS_PER_RATER = 6  # at least: with fewer, nothing can be learned about a rater
GUESSING, CONTRARY = (
    0.5,
    0.2,
)  # quality of a judge who guesses; share of judges below it that calls for a check
WANTED, NEEDED = 20, 10  # judged queries that make a choice, and without which labels choose nothing


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
    on a scale (`count_rating_levels`): `dawid_skene` where raters give enough of them; `crowdagg` where they do
    not, above eleven levels, and above 15 ratings per item; `majority` below six ratings per rater. Votes by
    several judges, however few: `crowd_bt`, or `dawid_skene` where every query has two items only; by one judge:
    `bradley_terry`.
    `crowdagg` replaces the two models of judges where they side with a minority that contradicts the others.
    docs/project/auto-protocol.md has the measurements behind this.

    >>> lists = Preferences.from_lists({"q": {"bm25": ["a", "b"], "dense": ["b", "a"]}})
    >>> choose_method(lists).method
    quality_weighted
    >>> votes = Preferences.from_comparisons(["q"] * 2, ["judge"] * 2, ["a", "b"], ["b", "c"])
    >>> choose_method(votes).method
    bradley_terry
    """
    check_type(
        preferences,
        Preferences,
        "choose_method",
        "give podium.Preferences, such as Preferences.from_lists(...)",
    )
    experts = int(preferences.active_experts.sum())
    counted = format_count(experts, "expert")
    unmeasured = _describe_missing_labels(len(preferences))
    if Form.COMPARISON in preferences.forms:
        if experts == 1:
            reason = "all votes come from one judge, whose quality cannot be estimated"
            loss = (
                "It gives up the judges' differences: a column with the judge of each vote would show them."
            )
            return MethodRecommendation(make("bradley_terry", **parameters), reason, loss)
        # in a query of two items there is nothing to rank: its votes are labels with two values; elsewhere few votes
        # per judge are no reason for bradley_terry, since the prior of crowd_bt keeps unknown judges alike
        name = "crowd_bt" if preferences.index.sizes.max(initial=0) > 2 else "dawid_skene"
        reason = f"votes of {counted}, each weighted by its estimated quality"
        return _recommend_for_crowd(preferences, make(name, **parameters), reason, unmeasured)
    levels = count_rating_levels(preferences) if experts > 1 else 0
    if levels:
        return _recommend_for_ratings(preferences, levels, experts, unmeasured, **parameters)
    if experts <= 1:
        return MethodRecommendation(make("rrf", **parameters))
    # the weights may come out equal where many lists are too short or do not agree; of two experts they always do
    weighted = "weighted by their agreement as far as it tells them apart"
    if parameters.get("weights") is not None:
        weighted = "weighted as you ask" if experts == 2 else f"weighted as you ask and {weighted[9:]}"
    elif experts == 2:
        weighted = "equally weighted, since of two nobody can say which one is right"
    reason = f"ranked lists of {counted}, {weighted}"
    return MethodRecommendation(make("quality_weighted", **parameters), reason, unmeasured)


def _describe_missing_labels(queries: int) -> str:
    """What a choice without labels gives up, and how many of these queries need judgements for a measured one."""
    gives_up = "It gives up a measured choice"
    if queries < NEEDED:
        there = "have one" if queries == 1 else f"have {queries}"
        return f"{gives_up}, which needs judgements for {NEEDED} queries or more; these data {there}."
    which = f"{WANTED} queries" if queries >= WANTED else f"the {queries} queries"
    return f"{gives_up}: with judgements for {which}, auto compares all methods on them."


def fix_weights(method: Aggregator, preferences: Preferences) -> Aggregator:
    """The method to save or deploy for other queries: `quality_weighted` as a rule with the weights of these lists."""
    return method.choose_rule(preferences) if isinstance(method, QualityWeightedFusion) else method


def _recommend_for_ratings(
    preferences: Preferences, levels: int, experts: int, loss: str, **parameters: Any
) -> MethodRecommendation:
    """By how many ratings there are for what a method estimates about a rater."""
    ratings = preferences.lists.rows
    by = f"ratings by {format_count(experts, 'expert')}"
    if ratings < RATINGS_PER_RATER * experts:
        reason = f"{by}, too few of each to estimate a quality: the mean rating"
        return MethodRecommendation(make("majority", **parameters), reason, loss)
    too_few = levels > MOST_LEVELS or ratings < RATINGS_PER_CHANCE * levels**2 * experts
    if too_few or ratings > RATINGS_PER_ITEM * len(np.unique(preferences.lists.item)):
        reason = f"{by} on {levels} levels, each weighted by its estimated quality"
        return MethodRecommendation(make("crowdagg", **parameters), reason, loss)
    return _recommend_for_crowd(
        preferences, make("dawid_skene", **parameters), f"{by}, each with its own estimated errors", loss
    )


def _recommend_for_crowd(
    preferences: Preferences, method: Aggregator, reason: str, loss: str
) -> MethodRecommendation:
    """The method, or `crowdagg` where the method sides with judges who contradict most of the others.

    A model of quality fits as well with all qualities reversed. `crowdagg` checks that; where many judges seem to
    contradict the consensus, its order decides which of the two it is.
    """
    consensus = method.aggregate(preferences)
    quality = consensus.expert_weights
    if quality is None or (quality < GUESSING).mean() < CONTRARY:
        return MethodRecommendation(method, reason, loss)
    cautious = make("crowdagg", weights=method.weights)
    centered = []
    for result in (consensus, cautious.aggregate(preferences)):
        index = result.index
        place = np.empty(len(result.order))
        place[result.order] = np.arange(len(result.order)) - index.starts[index.query_of_slot]
        centered.append(place - (index.sizes[index.query_of_slot] - 1) / 2)
    if float(centered[0] @ centered[1]) >= 0:
        return MethodRecommendation(method, reason, loss)
    reason = f"{method.name} would side with judges who contradict most of the others"
    return MethodRecommendation(cautious, reason, loss)
