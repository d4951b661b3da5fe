"""Classical rules with expert weights learned from labels: the baselines that a learner has to beat."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np

from podium.core.params import Choice, Range, Tune
from podium.data.consensus import Consensus
from podium.data.features import Features
from podium.data.ids import Id
from podium.data.preferences import Preferences
from podium.kernels import segments
from podium.kernels.dispatch import F8, I8
from podium.kernels.pairwise_votes import count_items_above
from podium.learning.examples import Training
from podium.learning.feature_scorer import WeightPrior, fit_scorer
from podium.learning.plan import (
    ChooseBy,
    LearningRate,
    Passes,
    Penalty,
    ScorerSettings,
    Seed,
    TargetMetric,
)
from podium.methods.base import ALL_FORMS, LIST_FORMS, Aggregator, Outcome, Tags
from podium.methods.costs import Cost
from podium.methods.input_checks import match_experts
from podium.methods.kemeny import ExactLimit, Kemeny, NodeLimit, Solver
from podium.methods.learned.supervised_method import PlanTrainedAggregator, SupervisedAggregator
from podium.methods.majority import Copeland
from podium.methods.positional import Borda, ReciprocalRankFusion
from podium.metrics.base import measure, parse

__all__ = ["WeightedBorda", "WeightedKemeny", "WeightedRrf", "select_weights"]

TINY = 1e-300  # avoids division by 0 and keeps zero weights at 0


def select_weights(learned: Mapping[Id, float], codes: I8) -> F8:
    """The learned values of the experts with these numbers in training; 0 for unknown experts."""
    values = np.array([*learned.values(), 0.0])
    return values[codes]


@dataclass(kw_only=True, eq=False, repr=False)
class WeightedRule(PlanTrainedAggregator):
    """An additive rule with learned weights. They start equal, stay nonnegative, and end with mean 1."""

    metric: TargetMetric = "ndcg:exp"
    choose_by: ChooseBy = "ndcg@10:exp"
    rate: LearningRate = 0.01
    passes: Passes = 50
    l2: Penalty = 0.0
    seed: Seed = 0

    @abstractmethod
    def _make_rule(self) -> Aggregator:
        """The underlying rule, whose scores are sums over experts."""

    @abstractmethod
    def _first_place_points(self, preferences: Preferences) -> F8:
        """Points of a first place, by slot: in these units the weights do not depend on a query's size."""

    def _learn(self, training: Training) -> None:
        task = training.build_task(self._build_example_values)
        prior = WeightPrior(np.ones(len(self.experts_)), nonnegative=True)
        scorer = fit_scorer(ScorerSettings(), task, plan=self.plan, prior=prior)
        weights = scorer.linear_weights
        mean = float(weights.mean()) or 1.0
        self.weights_: dict[Id, float] = dict(zip(self.experts_, (weights / mean).tolist(), strict=True))
        self.passes_ = scorer.passes_

    def _build_example_values(self, training: Training) -> F8:
        given, rows = training.preferences, training.examples.rows
        codes, rule = match_experts(self, given), self._make_rule()
        points = np.zeros((len(rows), len(self.experts_)))
        for code in np.flatnonzero(codes >= 0).tolist():
            alone = np.zeros(len(codes))
            alone[code] = 1.0
            points[:, codes[code]] = rule._compute_raw_outcome(given, alone, None).scores[rows]
        return points / self._first_place_points(given)[rows, None]

    def _score(self, preferences: Preferences, features: Features | None) -> Outcome:
        weights = select_weights(self.weights_, match_experts(self, preferences))
        return replace(
            self._make_rule()._compute_raw_outcome(preferences, weights, None), expert_weights=weights
        )

    def _compute_contributions(self, one: Preferences, features: Features | None) -> dict[Id, F8]:
        weights, rule, parts = select_weights(self.weights_, match_experts(self, one)), self._make_rule(), {}
        for code, expert in enumerate(one.experts):
            if one.active_experts[code]:
                alone = np.zeros(len(weights))
                alone[code] = weights[code]
                parts[expert] = rule._compute_raw_outcome(one, alone, None).scores
        return parts


@dataclass(kw_only=True, eq=False, repr=False)
class WeightedBorda(WeightedRule):
    """Borda points weighted by expert; the weights optimize a metric on labeled queries (LambdaRank).

    Items that an expert does not list share its remaining points. See `Borda`.

    >>> from podium import Labels, Preferences
    >>> p = Preferences.from_lists({"q": {"good": ["a", "b", "c"], "bad": ["c", "b", "a"]}})
    >>> model = WeightedBorda().fit(p, Labels.from_dict({"q": {"a": 2, "b": 1, "c": 0}}))
    >>> model.weights_["good"] > model.weights_["bad"], model.aggregate(p).ranking("q")
    (True, ['a', 'b', 'c'])
    """

    name = "weighted_borda"
    citation = "Aslam & Montague, SIGIR 2001; Burges, Ragno & Le, NIPS 2006"
    tags = Tags(accepts=LIST_FORMS, additive=True, weighted=False, supervised=True)

    def _make_rule(self) -> Aggregator:
        return Borda()

    def _first_place_points(self, preferences: Preferences) -> F8:
        index = preferences.index
        return np.asarray(np.maximum(index.sizes[index.query_of_slot] - 1, 1), np.float64)


@dataclass(kw_only=True, eq=False, repr=False)
class WeightedRrf(WeightedRule):
    """Sum of weight / (k + rank) over experts; the weights optimize a metric on labeled queries (LambdaRank).

    >>> from podium import Labels, Preferences
    >>> p = Preferences.from_lists({"q": {"good": ["a", "b", "c"], "bad": ["c", "b", "a"]}})
    >>> model = WeightedRrf().fit(p, Labels.from_dict({"q": {"a": 2, "b": 1, "c": 0}}))
    >>> model.weights_["good"] > model.weights_["bad"], model.aggregate(p).ranking("q")
    (True, ['a', 'b', 'c'])
    """

    name = "weighted_rrf"
    citation = "Cormack, Clarke & Buettcher, SIGIR 2009; Burges, Ragno & Le, NIPS 2006"
    tags = Tags(accepts=LIST_FORMS, additive=True, weighted=False, supervised=True)

    k: Annotated[float, Range(0, 10_000), Tune(1, 200, log=True), "larger values flatten the top"] = 60

    def _make_rule(self) -> Aggregator:
        return ReciprocalRankFusion(k=self.k)

    def _first_place_points(self, preferences: Preferences) -> F8:
        return np.full(len(preferences.index.items), 1.0 / (self.k + 1.0))


@dataclass(kw_only=True, eq=False, repr=False)
class WeightedKemeny(SupervisedAggregator):
    """Kemeny's rule with every expert weighted by its agreement with the training labels.

    `agreement="tau"`: the number of pairs of labeled items in the order of the grades minus those against it,
    over their sum, from all queries; `"ndcg"`: the mean NDCG of the expert's own order over the queries it
    answered, unlisted items last and ties in their worst order. An expert that agrees no more than it
    disagrees, or without evidence, has weight 0. Otherwise as `Kemeny`.

    >>> from podium import Labels, Preferences
    >>> p = Preferences.from_lists({"q": {1: ["a", "b", "c"], 2: ["c", "b", "a"], 3: ["b", "a", "c"]}})
    >>> model = WeightedKemeny().fit(p, Labels.from_dict({"q": {"a": 2, "b": 1, "c": 0}}))
    >>> model.weights_ == {1: 1.0, 2: 0.0, 3: 1 / 3}, model.aggregate(p).ranking("q")
    (True, ['a', 'b', 'c'])
    """

    name = "weighted_kemeny"
    citation = "Subbian & Melville, SocialCom 2011"
    tags = Tags(accepts=ALL_FORMS, weighted=False, supervised=True, pairwise="items")
    exempt = Kemeny.exempt

    method: Solver = "auto"
    exact_limit: ExactLimit = 50
    most_nodes: NodeLimit = 10_000
    agreement: Annotated[str, Choice("tau", "ndcg"), "agreement measure that defines the weights"] = "tau"

    def _learn(self, training: Training) -> None:
        tau = self.agreement == "tau"
        agreement = _compute_pair_agreement(training) if tau else _compute_mean_ndcg(training)
        training.progress(1, 1, "weighing experts")
        self.weights_: dict[Id, float] = dict(zip(self.experts_, agreement.tolist(), strict=True))

    def _make_rule(self) -> Kemeny:
        return Kemeny(method=self.method, exact_limit=self.exact_limit, most_nodes=self.most_nodes)

    def _estimate_costs(self, preferences: Preferences) -> Sequence[Cost]:
        return self._make_rule()._estimate_costs(preferences)

    def _score(self, preferences: Preferences, features: Features | None) -> Outcome:
        weights = select_weights(self.weights_, match_experts(self, preferences))
        return replace(self._make_rule()._scores(preferences, weights), expert_weights=weights)


def _compute_pair_agreement(training: Training) -> F8:
    """max(0, (agreed - disagreed) / (agreed + disagreed)) by expert, over pairs of labeled items."""
    preferences, examples = training.preferences, training.examples
    index, own = preferences.index, examples.labels.index
    grades, query = examples.labels.grades, own.query_of_slot
    # the grade of every slot as 0, 1, ... in its query (-1: unlabeled), and the weight of every query
    rank = np.cumsum(np.concatenate(([False], (np.diff(query) == 0) & (np.diff(grades) != 0))))
    filled, last = np.flatnonzero(own.sizes), np.zeros(len(own), np.int64)
    last[filled] = rank[own.starts[filled + 1] - 1]
    level = np.full(len(index.items), -1, np.int64)
    level[examples.rows] = last[query] - rank  # rows are sorted by falling grade
    weight = np.zeros(len(index))
    weight[index.query_of_slot[examples.rows]] = examples.weight[query]
    votes, experts = preferences.comparisons, len(preferences.experts)
    both = (level[votes.winner] >= 0) & (level[votes.loser] >= 0) & ~votes.tie
    counted = votes.weight * both * weight[votes.query_of_row]
    up = level[votes.winner] > level[votes.loser]
    down = level[votes.winner] < level[votes.loser]
    lists = preferences.lists
    right, wrong = (
        np.bincount(votes.expert, counted * side, experts)
        + np.bincount(lists.expert, pairs * weight[lists.query_of_list], experts)
        for side, pairs in zip((up, down), _pairs_in_lists(preferences, level), strict=True)
    )
    agreement = (right - wrong) / np.maximum(right + wrong, TINY)
    return np.asarray(np.maximum(agreement, 0.0), np.float64)


def _pairs_in_lists(preferences: Preferences, level: I8) -> tuple[F8, F8]:
    """For every list: pairs of labeled items in the order of their grades, and pairs against it."""
    lists, index, count = preferences.lists, preferences.index, len(preferences.lists)
    of_row, row_level = lists.list_of_row, level[lists.item]
    base, end = lists.starts[of_row], lists.starts[of_row + 1]
    above, upto = (base + places_ for places_ in count_items_above(lists.starts, lists.rank))
    right, wrong = np.zeros(count), np.zeros(count)
    listed_worse, unlisted_worse = np.zeros(count), np.zeros(count)
    for grade in range(int(level.max(initial=0)) + 1):
        here = np.flatnonzero(row_level == grade)
        worse = segments.offsets((row_level >= 0) & (row_level < grade))
        right += np.bincount(of_row[here], (worse[end] - worse[upto])[here], count)
        wrong += np.bincount(of_row[here], (worse[above] - worse[base])[here], count)
        if preferences.unlisted == "below":
            listed = np.bincount(of_row[here], minlength=count)
            known = np.bincount(index.query_of_slot[level == grade], minlength=len(index))
            unlisted = known[lists.query_of_list] - listed
            right += listed * unlisted_worse
            wrong += unlisted * listed_worse
            listed_worse += listed
            unlisted_worse += unlisted
    return right, wrong


def _compute_mean_ndcg(training: Training) -> F8:
    """The mean NDCG of each expert's own order, over the answered queries with a training signal."""
    given, examples = training.preferences, training.examples
    labels, rows = examples.labels, examples.rows
    useful = np.zeros(len(labels.index), np.bool_)
    useful[examples.find_useful_queries()] = True
    means = np.zeros(len(given.experts))
    for code, expert in enumerate(given.experts):
        one = given.with_experts([expert])
        scores = Copeland().aggregate(one).scores[rows]
        # places that count, equal scores worst grade first: the labels' rows are sorted best grade first
        order = np.lexsort((-np.arange(len(rows)), -scores, labels.index.query_of_slot))
        place = np.empty(len(rows))
        place[order] = np.arange(len(rows))
        unranked = one.unranked_slots(np.ones(1, np.bool_))
        has_rank = np.ones(len(rows), np.bool_) if unranked is None else ~unranked[rows]
        is_covered = np.zeros(len(labels.index), np.bool_)
        is_covered[labels.index.query_of_slot[has_rank]] = True
        which = np.flatnonzero(useful & is_covered)
        values = measure([parse("ndcg:exp")], Consensus.from_scores(labels.index, -place), labels, which)[0]
        weight = examples.weight[which]
        means[code] = float(values @ weight) / max(float(weight.sum()), TINY)
    return means
