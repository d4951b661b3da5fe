"""Latent true labels, with one or two figures per annotator: one-coin Dawid-Skene, MACE and GLAD."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Annotated, Self

import numpy as np

from podium.core.errors import InputError
from podium.core.params import Range, Tune
from podium.data.features import Features
from podium.data.labels import Labels
from podium.data.preferences import Preferences
from podium.kernels import label_models
from podium.kernels.annotator_em import AnnotatorVotes
from podium.kernels.dispatch import F8, I8
from podium.kernels.label_models import LabelEstimate, LabelVotes
from podium.methods.base import Outcome
from podium.methods.crowd.crowd_model import collect_crowd_votes
from podium.methods.crowd.dawid_skene import (
    TrueLabelModel,
    compute_expected_wins,
    encode_levels,
    has_only_ratings,
)

__all__ = ["GladModel", "MaceModel", "OneCoinDawidSkene"]


@dataclass(kw_only=True, eq=False, repr=False)
class LabelModel(TrueLabelModel):
    """Base of the models of true labels: those of items among the rating levels, or of pairs, their order."""

    tolerance: Annotated[float, Range(1e-13, 1e-3), "largest change of a log odds in the last step"] = 1e-10
    max_iterations: Annotated[int, Range(1, 100_000_000), "maximum number of steps"] = 100_000

    @abstractmethod
    def _estimate(self, votes: LabelVotes) -> LabelEstimate:
        """Fit the model."""

    def _score_pairs(self, preferences: Preferences, weights: F8) -> Outcome:
        crowd = collect_crowd_votes(self.name, preferences, weights, pooled=self.pooled)
        votes = crowd.votes
        estimate = self._estimate(
            build_pair_labels(votes, weights[crowd.expert], *self._prior_votes(preferences, crowd.expert))
        )
        by_expert = self._average_quality(crowd.expert, crowd.vote_counts, estimate.quality, len(weights))
        scores = compute_expected_wins(votes, estimate.truth[:, 0])
        return self._build_em_outcome(scores, estimate.end, by_expert, floor=1.0)

    def _score_ratings(self, preferences: Preferences, weights: F8) -> Outcome:
        lists = preferences.lists
        which = lists.list_of_row
        kept = weights[lists.expert][which] > 0
        values, level = encode_levels(self.name, np.asarray(lists.score, np.float64)[kept])
        group, expert = lists.expert.astype(np.int64), np.arange(len(weights))
        if not self.pooled:
            code, group = np.unique(lists.query_of_list * len(weights) + group, return_inverse=True)
            expert = code % max(len(weights), 1)
        group = group[which][kept]
        estimate = self._estimate(
            LabelVotes(
                len(preferences.index.items),
                len(values),
                lists.item[kept].astype(np.int64),
                group,
                level,
                np.ones(len(group)),
                weights[expert],
                *self._prior_votes(preferences, expert),
                symmetric=False,
            )
        )
        votes = np.bincount(group, minlength=len(expert)).astype(np.float64)
        by_expert = self._average_quality(expert, votes, estimate.quality, len(weights))
        largest = float(np.abs(values).max(initial=0.0))
        scores = estimate.truth @ values
        return self._build_em_outcome(scores, estimate.end, by_expert, magnitude=largest, floor=1.0)

    def fit(
        self, preferences: Preferences, labels: Labels | None = None, features: Features | None = None
    ) -> Self:
        """Count right and wrong ratings per annotator, given gold labels; of other preferences, votes on pairs."""
        experts, lists = preferences.experts, preferences.lists
        if labels is None or not has_only_ratings(preferences, np.ones(len(experts), np.bool_)):
            return super().fit(preferences, labels, features)
        super().fit(preferences)
        truth = labels.align(preferences.index)[lists.item]
        known = ~np.isnan(truth)
        if not known.any():
            raise InputError(
                f"no rated item has a label, so {self.name} learns nothing from the labels",
                remedy="give labels of the rated items, or fit without labels",
            )
        expert = lists.expert[lists.list_of_row]
        right, wrong = (
            np.bincount(expert[known & (same == (lists.score == truth))], minlength=len(experts))
            for same in (True, False)
        )
        rows = zip(experts.tolist(), right.tolist(), wrong.tolist(), strict=True)
        self.gold_ = {e: [float(r), float(w)] for e, r, w in rows if r + w > 0}
        return self


def build_pair_labels(votes: AnnotatorVotes, weight: F8, right: F8, wrong: F8) -> LabelVotes:
    """Votes on pairs as labels: 0 the first item is better, 1 the second is."""
    row: I8 = np.concatenate((np.flatnonzero(votes.won > 0), np.flatnonzero(votes.lost > 0)))
    label: I8 = np.repeat(np.array([0, 1]), [(votes.won > 0).sum(), (votes.lost > 0).sum()])
    count = np.where(label == 0, votes.won[row], votes.lost[row])
    pair, group = votes.pair[row], votes.group[row]
    return LabelVotes(len(votes.first), 2, pair, group, label, count, weight, right, wrong, symmetric=True)


@dataclass(kw_only=True, eq=False, repr=False)
class OneCoinDawidSkene(LabelModel):
    """True labels and one probability of a right label per annotator, by EM.

    Ratings: an item has a true level; an annotator reports it with its own probability and any other level
    otherwise, all equally often; the score is the expected level. Other preferences: as `dawid_skene`.

    >>> from podium import Preferences
    >>> p = Preferences.from_lists({"q": {1: dict(a=1, b=1, c=0, d=0), 2: dict(a=1, b=1, c=0, d=0), 3: dict(a=0, d=1)}})
    >>> consensus = OneCoinDawidSkene(right=2).aggregate(p)
    >>> consensus.ranking("q"), consensus.expert_weights.round(2).tolist()
    (['a', 'b', 'c', 'd'], [0.84, 0.84, 0.41])
    """

    name = "one_coin_dawid_skene"
    aliases = ("one_coin_ds", "homogeneous_dawid_skene")
    citation = "Zhang, Chen, Zhou & Jordan, JMLR 2016"

    def _estimate(self, votes: LabelVotes) -> LabelEstimate:
        return label_models.fit_one_coin(votes, self.tolerance, self.max_iterations)


@dataclass(kw_only=True, eq=False, repr=False)
class MaceModel(LabelModel):
    """True labels, and annotators who either know the label or guess from labels of their own, by EM (MACE).

    Ratings: an annotator knows the true level of an item with its own probability, and otherwise draws a level
    from its own distribution, such as always the same; the score is the expected level. Other preferences: an
    annotator knows the order of a pair or guesses it evenly. The quality is the probability of knowing.

    >>> from podium import Preferences
    >>> p = Preferences.from_lists({"q": {1: dict(a=2, b=1, c=0), 2: dict(a=2, b=1, c=0), 3: dict(a=1, b=1, c=1)}})
    >>> consensus = MaceModel().aggregate(p)
    >>> consensus.ranking("q"), consensus.expert_weights[0] > consensus.expert_weights[2]
    (['a', 'b', 'c'], np.True_)
    """

    name = "mace"
    citation = "Hovy, Berg-Kirkpatrick, Vaswani & Hovy, NAACL 2013"

    right: Annotated[float, Range(1e-3, 1e6), Tune(0.1, 50, log=True), "prior number of known labels"] = 1.0
    wrong: Annotated[float, Range(1e-3, 1e6), Tune(0.1, 50, log=True), "prior number of guesses"] = 1.0
    spread: Annotated[
        float, Range(1e-3, 1e6), Tune(0.1, 20, log=True), "prior number of guesses of each rating level"
    ] = 10.0
    variational: Annotated[
        bool,
        "average over the annotators' probabilities (variational Bayes) instead of estimating their mode",
    ] = False

    def _estimate(self, votes: LabelVotes) -> LabelEstimate:
        limits = self.tolerance, self.max_iterations
        return label_models.fit_guessers(votes, self.spread, *limits, variational=self.variational)


@dataclass(kw_only=True, eq=False, repr=False)
class GladModel(LabelModel):
    """True labels, the ability of each annotator and the ease of each item or pair (GLAD).

    The log odds of a right label are ability times ease; an ability below 0 is that of an annotator who answers
    in reverse. The prior of abilities is normal around log(right / wrong), that of log eases around `ease`, with
    standard deviations 1. Ratings: the score is the expected level. Other preferences: the expected number of
    items beaten. The quality is the probability of a right label at ease 1.

    >>> from podium import Preferences
    >>> p = Preferences.from_lists({"q": {1: dict(a=1, b=1, c=0, d=0), 2: dict(a=1, b=1, c=0, d=0), 3: dict(a=0, d=1)}})
    >>> consensus = GladModel().aggregate(p)
    >>> consensus.ranking("q"), consensus.expert_weights.round(2).tolist()
    (['a', 'b', 'c', 'd'], [0.77, 0.77, 0.4])
    """

    name = "glad"
    citation = "Whitehill, Ruvolo, Wu, Bergsma & Movellan, NIPS 2009"

    right: Annotated[
        float, Range(1e-3, 1e6), Tune(0.5, 50, log=True), "prior odds of a right label, over wrong"
    ] = 2.718281828459045
    ease: Annotated[float, Range(-10, 10), Tune(-1, 2), "prior mean of the log ease of a task"] = 1.0

    def _estimate(self, votes: LabelVotes) -> LabelEstimate:
        return label_models.fit_abilities(votes, self.ease, self.tolerance, self.max_iterations)
