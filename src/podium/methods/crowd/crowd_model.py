"""What the crowd models share: judgements by annotator, quality priors, and evidence from gold labels.

Ratings and rankings count as the pairs they imply; equal ratings carry no information about a pair.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, NamedTuple, Self

import numpy as np

from podium.core.errors import InputError
from podium.core.params import Range, Tune
from podium.data.features import Features
from podium.data.ids import Id
from podium.data.labels import Labels
from podium.data.preferences import Preferences
from podium.kernels.annotator_em import AccuracyModel, AnnotatorVotes, FixedPoint, build_annotator_votes
from podium.kernels.dispatch import F8, I8
from podium.kernels.ordering import FLOOR
from podium.methods.base import ALL_FORMS, Aggregator, Outcome, Tags
from podium.methods.choice import TIE
from podium.methods.costs import Cost, check_costs
from podium.methods.input_checks import check_forms
from podium.methods.majority import collect_votes

__all__ = ["TIE", "CrowdModel", "CrowdVotes", "collect_crowd_votes"]

PAIR_BYTES = 220  # peak memory per pair of items of one list (measured)
NO_JUDGEMENTS = (
    "keep the top of the lists, or use mpm with adherence=True, which does not expand lists into pairs"
)


class CrowdVotes(NamedTuple):
    """Votes on pairs, and the expert of each group."""

    votes: AnnotatorVotes
    expert: I8  # by group
    vote_counts: F8  # by group


@dataclass(kw_only=True, eq=False, repr=False)
class CrowdModel(Aggregator):
    """Base of the models that estimate an annotator's quality: the probability of a right judgement.

    `fit` with gold labels counts, for every annotator, its right and wrong judgements among the labeled
    items; these counts are added to the prior of its quality when other judgements are aggregated.
    """

    tags = Tags(accepts=ALL_FORMS, per_query=False, pairwise="lists", cost="search")

    quality: Annotated[bool, "estimate the annotators' quality; otherwise all are equal"] = True
    pooled: Annotated[bool, "share an annotator's quality across queries"] = True
    right: Annotated[float, Range(1e-3, 1e6), Tune(0.5, 50, log=True), "prior number of right votes"] = 4.0
    wrong: Annotated[float, Range(1e-3, 1e6), Tune(0.5, 50, log=True), "prior number of wrong votes"] = 1.0

    def fit(
        self, preferences: Preferences, labels: Labels | None = None, features: Features | None = None
    ) -> Self:
        """Learn the annotators' quality from gold labels, if given; nothing else is learned."""
        check_forms(self, preferences)
        vars(self).pop("gold_", None)
        if labels is None:
            return self
        # right and wrong votes of every annotator on pairs with different labels
        grades, experts = labels.align(preferences.index), preferences.experts
        crowd = collect_crowd_votes(self.name, preferences, np.ones(len(experts)), pooled=True)
        votes, groups = crowd.votes, len(crowd.expert)
        gap = (grades[votes.first] - grades[votes.second])[votes.pair]
        right, wrong = (
            np.bincount(votes.group, np.where(gap > 0, a, np.where(gap < 0, b, 0.0)), groups)
            for a, b in ((votes.won, votes.lost), (votes.lost, votes.won))
        )
        if not (right + wrong).any():
            raise InputError(
                f"no annotator compared two items with different labels, so {self.name} cannot learn from them",
                remedy="label more of the items, or fit without labels",
            )
        rows = zip(crowd.expert.tolist(), right.tolist(), wrong.tolist(), strict=True)
        self.gold_: dict[Id, list[float]] = {experts[e]: [r, w] for e, r, w in rows if r + w > 0}
        return self

    def _estimate_costs(self, preferences: Preferences) -> list[Cost]:
        return judgement_costs(preferences)

    def _prior_votes(self, preferences: Preferences, expert: I8) -> tuple[F8, F8]:
        """Prior numbers of right and wrong votes, by group."""
        right, wrong = np.full(len(expert), float(self.right)), np.full(len(expert), float(self.wrong))
        gold = getattr(self, "gold_", {})
        if gold:
            known = np.array([gold.get(e, (0.0, 0.0)) for e in preferences.experts.tolist()])
            right, wrong = right + known[expert, 0], wrong + known[expert, 1]
        return right, wrong

    def _build_accuracy_model(
        self, preferences: Preferences, crowd: CrowdVotes, weights: F8
    ) -> AccuracyModel:
        """One coin (probability of a right vote) per group."""
        group = crowd.votes.group
        return AccuracyModel(
            group, group, weights[crowd.expert], *self._prior_votes(preferences, crowd.expert)
        )

    def _average_quality(self, expert: I8, volume: F8, quality: F8, experts: int) -> F8:
        """The mean quality of every expert, weighted by its votes; the prior mean without votes."""
        votes = np.bincount(expert, volume, experts)
        mean = np.bincount(expert, volume * quality, experts) / np.where(votes > 0, votes, 1.0)
        return np.asarray(np.where(votes > 0, mean, self.right / (self.right + self.wrong)), np.float64)

    def _build_em_outcome(
        self, scores: F8, end: FixedPoint, quality: F8, *, magnitude: float = 0.0, floor: float = FLOOR
    ) -> Outcome:
        return Outcome(
            scores,
            tolerance=TIE,
            floor=floor,
            magnitude=magnitude,
            converged=end.converged,
            iterations=end.steps,
            objective=end.objective,
            notes=() if end.converged else (f"stopped after {end.steps} EM steps",),
            expert_weights=quality,
        )


def judgement_costs(preferences: Preferences) -> list[Cost]:
    """Cost of `collect_crowd_votes`: all pairs of every list, because each annotator has its own quality."""
    lists = preferences.lists
    lengths = lists.lengths.astype(np.float64)
    met = lengths * (lengths - 1) / 2
    if preferences.unlisted == "below":
        met = met + lengths * (preferences.index.sizes[lists.query_of_list] - lengths)
    pairs = float(met.sum())
    return [Cost(pairs, "pairs of items in lists", PAIR_BYTES * pairs, remedy=NO_JUDGEMENTS)]


def collect_crowd_votes(
    name: str,
    preferences: Preferences,
    weights: F8,
    *,
    pooled: bool,
    sides: bool = False,
    merged: bool = False,
) -> CrowdVotes:
    """The judgements of experts with positive weight, by expert (`pooled`), by query and expert, or `merged`.

    With `merged` all experts form one group, and their weights multiply their votes.
    """
    check_costs(name, preferences.queries, judgement_costs(preferences))
    votes, unit = collect_votes(preferences, weights if merged else (weights > 0).astype(np.float64))
    lists, pairs = preferences.lists, preferences.comparisons
    experts = len(preferences.experts)
    every = np.concatenate((lists.expert, pairs.expert)).astype(np.int64)
    if merged:
        every, expert = np.zeros_like(every), np.zeros(1, np.int64)
    elif pooled:
        expert = np.arange(experts)
    else:
        query = np.concatenate((lists.query_of_list, pairs.query_of_row))
        code, every = np.unique(query * experts + every, return_inverse=True)
        expert = code % max(experts, 1)
    side = pairs.side.astype(np.int64) if sides and pairs.side is not None else None
    answers = build_annotator_votes(votes, every[: len(lists)], every[len(lists) :], unit, side)
    counts = np.bincount(answers.group, answers.won + answers.lost, len(expert))
    return CrowdVotes(answers, expert, counts.astype(np.float64))
