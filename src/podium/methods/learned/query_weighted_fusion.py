"""Expert weights by query, learned from labels: global weights, adjusted by features of the lists."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np

from podium.core.params import Choice, Range, Tune
from podium.data.features import Features
from podium.data.ids import Id
from podium.data.preferences import Preferences
from podium.kernels.dispatch import F8, I8
from podium.kernels.list_agreement import tilt_weights
from podium.learning.examples import LearningTask, Training
from podium.learning.feature_scorer import WeightPrior, fit_scorer
from podium.learning.list_weight_block import ExampleLists, ListWeightBlock, compute_exponents
from podium.learning.plan import (
    Batch,
    ChooseBy,
    LearningRate,
    Passes,
    ScorerSettings,
    Seed,
    TargetMetric,
)
from podium.learning.trainer import Objective, train
from podium.methods.base import LIST_FORMS, Outcome, Tags
from podium.methods.feature.feature_model import average_by_query
from podium.methods.input_checks import check_forms, match_experts
from podium.methods.learned.supervised_method import PlanTrainedAggregator
from podium.methods.learned.weighted_rules import select_weights
from podium.methods.list_features import LIST_FEATURES, build_list_features
from podium.methods.list_weights import (
    PointsRule,
    RankOffset,
    build_outcome,
    build_weight_table,
    compute_points,
    sum_list_points,
)

__all__ = ["QueryWeightedFusion"]

DECAY = 10.0  # passes after which the learning rate of the slopes is halved: Adam's last steps shrink to the optimum
FEW = 50  # training queries below which the penalty grows faster: means of features are uncertain then, too
FAR = 3.0  # standard deviations beyond which a feature counts no more


@dataclass(kw_only=True, eq=False, repr=False)
class QueryWeightedFusion(PlanTrainedAggregator):
    """Weighted sum of points; each query has its own expert weights, predicted from its lists.

    First one weight per expert is learned (as in `weighted_rrf`), then slopes on features of the list: its
    agreement with the other lists at several depths, length, and score gaps. The weight in a query is the
    global weight times exp(slopes . features), rescaled so that the weights of a query keep their sum. Features
    are relative to the expert's mean, so that an ordinary list has the global weight. The penalty on the
    slopes is `shrinkage` over the number of training queries, and below 50 queries grows faster than that: with
    few of them the weights stay global.

    Item features, where given, are averaged by query, and have slopes by expert: they describe the query.

    >>> from podium import Labels, Preferences
    >>> p = Preferences.from_lists({"q": {"good": ["a", "b", "c"], "bad": ["c", "b", "a"]}})
    >>> model = QueryWeightedFusion().fit(p, Labels.from_dict({"q": {"a": 2, "b": 1, "c": 0}}))
    >>> weights = model.compute_expert_weights(p)["q"]
    >>> weights["good"] > weights["bad"], model.aggregate(p).ranking("q")
    (True, ['a', 'b', 'c'])
    """

    name = "query_weighted"
    citation = "Diaz, SIGIR 2007; Burges, Ragno & Le, NIPS 2006"
    tags = Tags(accepts=LIST_FORMS, additive=True, weighted=False, supervised=True, uses_features=True)

    points: PointsRule = "rrf"
    k: RankOffset = 60
    slopes: Annotated[
        str,
        Choice("none", "shared", "expert"),
        "slopes on the features of lists: none (global weights), the same for all experts, or by expert",
    ] = "shared"
    shrinkage: Annotated[
        float,
        Range(0, 1e6),
        Tune(0.1, 100, log=True),
        "penalty on the squared slopes, divided by the number of training queries",
    ] = 1.0
    metric: TargetMetric = "ndcg:exp"
    choose_by: ChooseBy = "ndcg@10:exp"
    rate: LearningRate = 0.03
    passes: Passes = 50
    batch: Batch = 8
    seed: Seed = 0

    def compute_expert_weights(
        self, preferences: Preferences, features: Features | None = None
    ) -> dict[Id, dict[Id, float]]:
        """The weights as query -> expert -> weight, for experts that have a list in the query."""
        check_forms(self, preferences)
        self._check_fitted()
        return build_weight_table(preferences, self._compute_list_weights(preferences, features))

    # -- learning --------------------------------------------------------------------------------------------

    def _learn(self, training: Training) -> None:
        held = training.validation
        parts = [self._select_lists(part) for part in (training, held) if part is not None]
        # the global weights, whose mean is 1; their mean before is the unit of scores
        tables = []
        for given, lists in zip((training, held), parts, strict=False):
            assert given is not None
            expert = self._number_experts(given.preferences)[lists.which]
            tables.append(lists.build_table(expert, len(given.examples), len(self.experts_)))
        held_task = None if held is None else LearningTask(tables[1], held.examples)
        task = LearningTask(tables[0], training.examples, held_task, training.progress)
        prior = WeightPrior(np.ones(len(self.experts_)), nonnegative=True)
        scorer = fit_scorer(ScorerSettings(), task, plan=self.plan, prior=prior)
        unit = float(scorer.linear_weights.mean()) or 1.0
        learned = (scorer.linear_weights / unit).tolist()
        self.weights_: dict[Id, float] = dict(zip(self.experts_, learned, strict=True))
        self.passes_ = passes = list(scorer.passes_ or ())
        self.features_ = [] if training.features is None else list(training.features.names)
        self._measure_features(training)
        width = self.scale_.shape[0]
        self.slopes_ = np.zeros((1 + len(self.experts_), width))
        if self.slopes == "none" and not self.features_:
            return
        made = [
            self._build_block(part, lists, unit, trained=part is training)
            for part, lists in zip((training, held), parts, strict=False)
            if part is not None
        ]
        queries = len(made[0].useful)
        plan = replace(self.plan, decay=DECAY, l2=self.shrinkage / queries * max(1.0, FEW / queries) ** 2)
        check = made[1] if len(made) > 1 else None
        objective = Objective(made[0], check, self.choose_by, lambda _: np.zeros(self.slopes_.size))
        trained = train(objective, plan, (self.seed, 1), training.progress)
        self.slopes_ = trained.weights.reshape(self.slopes_.shape)
        self.passes_ = [*passes, trained.pass_number]

    def _select_lists(self, part: Training) -> ExampleLists:
        given, examples = part.preferences, part.examples
        # over the points of a first place: in these units learning rates suit all rules
        unit = self.k + 1.0 if self.points == "rrf" else 1.0
        points = compute_points(given, self.points, self.k) * unit
        codes = given.index.queries.codes_of(examples.labels.queries)
        return ExampleLists.from_lists(given.lists, examples, codes, points, len(given.index.items))

    def _number_experts(self, preferences: Preferences) -> I8:
        """For every list the number of its expert in training, -1 for unknown experts."""
        return match_experts(self, preferences)[preferences.lists.expert]

    def _measure_features(self, training: Training) -> None:
        """Mean by expert and deviation of every feature of the lists, of query features by query."""
        given = training.preferences
        values, expert = self._build_raw_features(given), self._number_experts(given)
        lists = np.maximum(np.bincount(expert, minlength=len(self.experts_)), 1)[:, None]
        sums = np.zeros((len(self.experts_), values.shape[1]))
        np.add.at(sums, expert, values)
        queries = average_by_query(given.index, training.features, len(self.features_))
        with np.errstate(invalid="ignore"):
            known = np.maximum((~np.isnan(queries)).sum(axis=0), 1)
            mean = np.nansum(queries, axis=0) / known
            square = np.nansum((queries - mean) ** 2, axis=0) / known
        self.means_ = np.hstack([sums / lists, np.tile(mean, (len(self.experts_), 1))])
        off = values - (sums / lists)[expert]
        deviation = np.sqrt(np.concatenate([(off * off).mean(axis=0), square]))
        # a constant feature has no deviation but rounding error, and counts for nothing
        largest = np.maximum(np.abs(self.means_).max(axis=0, initial=0.0), 1.0)
        self.scale_ = np.where(deviation > 1e-9 * largest, deviation, np.inf)

    def _build_block(
        self, part: Training, lists: ExampleLists, unit: float, *, trained: bool
    ) -> ListWeightBlock:
        given = part.preferences
        values, expert = self._standardize_features(given, part.features), self._number_experts(given)
        base = select_weights(self.weights_, match_experts(self, given))[given.lists.expert]
        # query features have slopes by expert only, as weights are relative
        free = np.zeros(self.slopes_.shape, np.bool_)
        free[0, : len(LIST_FEATURES)] = self.slopes != "none"
        free[1:, : len(LIST_FEATURES)] = self.slopes == "expert"
        free[1:, len(LIST_FEATURES) :] = True
        return ListWeightBlock(
            examples=part.examples,
            plan=self.plan,
            metric=self.metric if trained else None,
            lists=lists._replace(points=lists.points * unit),
            base=base[lists.which],
            expert=expert[lists.which],
            values=values[lists.which],
            free=free,
        )

    # -- scoring ---------------------------------------------------------------------------------------------

    def _build_raw_features(self, preferences: Preferences) -> F8:
        trust = select_weights(self.weights_, match_experts(self, preferences))
        return build_list_features(preferences, trust)

    def _standardize_features(self, preferences: Preferences, features: Features | None) -> F8:
        """Features by list, relative to the mean of the expert, in standard deviations; 0 where unknown."""
        Features.require(features, self.features_, self.name)
        expert = self._number_experts(preferences)
        queries = average_by_query(preferences.index, features, len(self.features_))
        values = np.hstack([self._build_raw_features(preferences), queries[preferences.lists.query_of_list]])
        off = (values - self.means_[expert]) / self.scale_
        return np.where((expert >= 0)[:, None], np.clip(np.nan_to_num(off), -FAR, FAR), 0.0)

    def _compute_list_weights(self, preferences: Preferences, features: Features | None) -> F8:
        lists = preferences.lists
        base = select_weights(self.weights_, match_experts(self, preferences))[lists.expert]
        values = self._standardize_features(preferences, features)
        exponent = compute_exponents(values, self._number_experts(preferences), self.slopes_)
        return tilt_weights(base, exponent, lists.query_of_list, len(preferences))

    def _score(self, preferences: Preferences, features: Features | None) -> Outcome:
        weight = self._compute_list_weights(preferences, features)
        return build_outcome(preferences, self.points, self.k, weight)

    def _compute_contributions(self, one: Preferences, features: Features | None) -> dict[Id, F8]:
        weight = self._compute_list_weights(one, features)
        points = compute_points(one, self.points, self.k)
        parts = {}
        for code in np.flatnonzero(one.active_experts).tolist():
            alone = np.where(one.lists.expert == code, weight, 0.0)
            parts[one.experts[code]] = sum_list_points(one, points, alone)
        return parts
