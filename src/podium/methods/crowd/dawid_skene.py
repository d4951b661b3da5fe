"""Dawid-Skene: latent truths, and annotators with individual error rates."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Annotated, ClassVar, Self

import numpy as np

from podium.core.errors import InputError
from podium.core.params import Choice, Range
from podium.data.features import Features
from podium.data.ids import Id
from podium.data.labels import Labels
from podium.data.preferences import Preferences
from podium.kernels import annotator_em
from podium.kernels.dispatch import B1, F8, I8
from podium.methods.base import Outcome
from podium.methods.costs import Cost
from podium.methods.crowd.crowd_model import TIE, CrowdModel, collect_crowd_votes
from podium.methods.majority import MajorityVote

__all__ = ["DawidSkene", "TrueLabelModel", "compute_expected_wins", "encode_levels", "has_only_ratings"]

MOST_LEVELS = 100  # the size of a confusion matrix is their square


@dataclass(kw_only=True, eq=False, repr=False)
class TrueLabelModel(CrowdModel):
    """Base of the models of true labels: levels of rated items, or the order of the two items of a pair."""

    exempt: ClassVar = {"doubling": "twice as many independent votes also make the truths more certain"}

    @abstractmethod
    def _score_ratings(self, preferences: Preferences, weights: F8) -> Outcome:
        """Scores of preferences that are ratings only."""

    @abstractmethod
    def _score_pairs(self, preferences: Preferences, weights: F8) -> Outcome:
        """Scores of all other preferences."""

    def _estimate_costs(self, preferences: Preferences) -> list[Cost]:
        counted = self.expert_weights_for(preferences.experts.tolist()) > 0
        return [] if has_only_ratings(preferences, counted) else super()._estimate_costs(preferences)

    def _scores(self, preferences: Preferences, weights: F8) -> Outcome:
        if has_only_ratings(preferences, weights > 0):
            score = self._score_ratings if self.quality else MajorityVote()._scores
            return score(preferences, weights)
        if self.quality:
            return self._score_pairs(preferences, weights)
        votes = collect_crowd_votes(self.name, preferences, weights, pooled=True, merged=True).votes
        return Outcome(compute_expected_wins(votes, votes.won / (votes.won + votes.lost)), tolerance=TIE)


@dataclass(kw_only=True, eq=False, repr=False)
class DawidSkene(TrueLabelModel):
    """Dawid-Skene: the truth about every item or pair, and every annotator's error rates, by EM.

    Ratings: an item has a true level among the observed ones, and an annotator a confusion matrix by true
    level, with a Dirichlet prior (`right` ratings on the level itself, `wrong` spread over the others); the
    score is the expected level. Other preferences: a pair has a true order, an annotator a probability of
    reporting it. With `coins="two"` and known sides the annotator has one probability per side on which the
    better item is shown, which corrects for a preference for one side. The score is then the expected number
    of items beaten; pairs that nobody compared count half. Without `quality` truths are vote fractions: mean
    ratings, or mean votes on pairs.

    >>> from podium import Preferences
    >>> p = Preferences.from_lists({"q": {1: dict(a=1, b=1, c=0, d=0), 2: dict(a=1, b=1, c=0, d=0), 3: dict(a=0, d=1)}})
    >>> found = DawidSkene(right=2).aggregate(p)
    >>> found.ranking("q"), found.expert_weights.round(2).tolist()
    (['b', 'a', 'd', 'c'], [0.76, 0.76, 0.52])
    """

    name = "dawid_skene"
    aliases = ("dawidskene",)
    citation = "Dawid & Skene, Applied Statistics 1979"

    coins: Annotated[str, Choice("one", "two"), "qualities per annotator of pairs: one, or one per side"] = (
        "one"
    )
    tolerance: Annotated[float, Range(1e-13, 1e-3), "largest change of a log probability in a step"] = 1e-10
    max_iterations: Annotated[int, Range(1, 100_000_000), "maximum number of EM steps"] = 100_000

    def _score_pairs(self, preferences: Preferences, weights: F8) -> Outcome:
        crowd = collect_crowd_votes(
            self.name, preferences, weights, pooled=self.pooled, sides=self.coins == "two"
        )
        coins, groups = self._build_accuracy_model(preferences, crowd, weights), len(crowd.expert)
        if self.coins == "two":
            # three coins per group: sides unknown, better item first, better item second
            group, side = crowd.votes.group, crowd.votes.side
            coins = annotator_em.AccuracyModel(
                group + groups * side,
                group + groups * np.array([0, 2, 1])[side],
                *(np.tile(c, 3) for c in coins[2:]),
            )
        truth, quality, fixed_point = annotator_em.estimate_pair_truths(
            crowd.votes, coins, self.tolerance, self.max_iterations
        )
        right, wrong = annotator_em.sum_agreement(crowd.votes, coins, truth)
        used = (right + wrong).reshape(3 if self.coins == "two" else 1, groups)
        total = used.sum(axis=0)
        mean = (used * quality.reshape(used.shape)).sum(axis=0) / np.where(total > 0, total, 1.0)
        by_expert = self._average_quality(crowd.expert, crowd.vote_counts, mean, len(weights))
        scores = compute_expected_wins(crowd.votes, truth)
        return self._build_em_outcome(scores, fixed_point, by_expert, floor=1.0)

    # -- ratings ---------------------------------------------------------------------------------------------

    def _score_ratings(self, preferences: Preferences, weights: F8) -> Outcome:
        lists = preferences.lists
        which = lists.list_of_row
        kept = weights[lists.expert][which] > 0
        values, level = encode_levels(self.name, np.asarray(lists.score, np.float64)[kept])
        group = lists.expert.astype(np.int64)
        expert = np.arange(len(weights))
        if not self.pooled:
            code, group = np.unique(lists.query_of_list * len(weights) + group, return_inverse=True)
            expert = code % max(len(weights), 1)
        # prior counts of ratings per level, by group; gold labels add to them
        levels = len(values)
        prior = np.full((levels, levels), self.wrong / max(levels - 1, 1))
        np.fill_diagonal(prior, self.right)
        tables = np.repeat(prior[None], len(expert), axis=0)
        place = {value: at for at, value in enumerate(values.tolist())}
        known = getattr(self, "gold_ratings_", {})
        for number, e in enumerate(expert.tolist() if known else ()):
            for truth, rating, count in known.get(preferences.experts[e], ()):
                if truth in place and rating in place:
                    tables[number, place[truth], place[rating]] += count
        given = annotator_em.Ratings(
            len(preferences.index.items),
            lists.item[kept].astype(np.int64),
            group[which][kept],
            level,
            weights[expert],
            tables,
        )
        truth, table, share, fixed_point = annotator_em.estimate_confusions(
            given, self.tolerance, self.max_iterations
        )
        quality = (np.diagonal(table, axis1=1, axis2=2) * share).sum(axis=1)
        votes = np.bincount(given.group, minlength=len(expert)).astype(np.float64)
        by_expert = self._average_quality(expert, votes, quality, len(weights))
        largest = float(np.abs(values).max(initial=0.0))
        return self._build_em_outcome(truth @ values, fixed_point, by_expert, magnitude=largest, floor=1.0)

    # -- gold labels -----------------------------------------------------------------------------------------

    def fit(
        self, preferences: Preferences, labels: Labels | None = None, features: Features | None = None
    ) -> Self:
        """Learn the annotators' error rates from gold labels, if given; nothing else is learned."""
        vars(self).pop("gold_ratings_", None)
        if labels is None or not has_only_ratings(preferences, np.ones(len(preferences.experts), np.bool_)):
            return super().fit(preferences, labels, features)
        super().fit(preferences)
        lists = preferences.lists
        values, level = encode_levels(self.name, np.asarray(lists.score, np.float64))
        truth = labels.align(preferences.index)[lists.item]
        kept = np.isin(truth, values)
        if not kept.any():
            raise InputError(
                f"no rated item has a label that is one of the ratings (such as {values[0]:g}), so {self.name} learns "
                "nothing from the labels",
                remedy="give labels on the scale of the ratings, or fit without labels",
            )
        expert = lists.expert[lists.list_of_row[kept]].astype(np.int64)
        rows = np.column_stack((expert, np.searchsorted(values, truth[kept]), level[kept]))
        cells, counts = np.unique(rows, axis=0, return_counts=True)
        # by annotator: true level, reported level, and count
        self.gold_ratings_: dict[Id, list[list[float]]] = {}
        for (e, true, rating), count in zip(cells.tolist(), counts.tolist(), strict=True):
            cell = [float(values[true]), float(values[rating]), float(count)]
            self.gold_ratings_.setdefault(preferences.experts[e], []).append(cell)
        return self


def encode_levels(name: str, ratings: F8) -> tuple[F8, I8]:
    """The distinct ratings, and the index of every rating among them."""
    values, level = np.unique(ratings, return_inverse=True)
    if len(values) > MOST_LEVELS:
        raise InputError(
            f"there are {len(values):,} distinct ratings, and {name} learns with what probability annotators "
            f"give each level, with at most {MOST_LEVELS} levels",
            remedy="round the ratings, or use crowd_bt, which reads them as pairs",
        )
    return values, level


def has_only_ratings(preferences: Preferences, counted: B1) -> bool:
    """Whether all preferences of the counted experts (by code) are ratings."""
    lists, votes = preferences.lists, preferences.comparisons
    if lists.score is None or counted[votes.expert].any():
        return False
    ratings = lists.score[counted[lists.expert][lists.list_of_row]]
    return len(ratings) > 0 and not np.isnan(ratings).any()


def compute_expected_wins(votes: annotator_em.AnnotatorVotes, truth: F8) -> F8:
    """Expected number of items beaten; pairs that nobody compared count half."""
    slots, more = int(votes.starts[-1]), truth - 0.5
    sizes = np.diff(votes.starts)
    net = np.bincount(votes.first, more, slots) - np.bincount(votes.second, more, slots)
    return np.asarray(net + np.repeat((sizes - 1) / 2, sizes), np.float64)
