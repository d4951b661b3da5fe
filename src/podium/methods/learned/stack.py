"""A combination of methods: a weight per member, learned from scores of queries that the members have not seen."""

from __future__ import annotations

import dataclasses
import warnings
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from podium.core.errors import NoGainWarning, ParameterError
from podium.core.params import Range
from podium.data.features import Features
from podium.data.labels import Labels
from podium.data.preferences import Form, Preferences
from podium.kernels.dispatch import F8, I8
from podium.learning.examples import LearningTask, Training
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
from podium.methods.base import ALL_FORMS, Aggregator, Tags, make
from podium.methods.learned.fused import standardize_by_query
from podium.methods.learned.provenance import forget_queries
from podium.methods.learned.supervised_method import PlanTrainedAggregator

__all__ = ["StackAggregator", "split_methods"]

# for `methods="auto"`: two rules that err on different queries, and a model
USUAL, FOR_VOTES = ("rrf", "rbc", "fused"), ("bradley_terry", "win_rate", "fused")
LEAST = 2  # members


def split_methods(text: str) -> list[str]:
    """The members in a text such as "rrf + svd(passes=3)".

    >>> split_methods("rrf + svd(l2=1e+2) + combsum")
    ['rrf', 'svd(l2=1e+2)', 'combsum']
    """
    members, depth = [""], 0
    for sign in text:
        depth += {"(": 1, ")": -1}.get(sign, 0)
        if sign == "+" and depth == 0:
            members.append("")
        else:
            members[-1] += sign
    return [member.strip() for member in members]


@dataclass(kw_only=True, eq=False, repr=False)
class StackAggregator(PlanTrainedAggregator):
    """Weighted sum of the scores of several methods; the weights are learned out of fold, and not negative.

    The training queries are divided into `parts`. A member that learns is fitted without each part in turn and
    scores it, so that the weights are learned from scores as they will be on new queries; then every member is
    fitted on all training queries. Scores are standardized in every query. The weights start equal, optimize a
    metric (LambdaRank) and are shrunk toward equal ones. With fewer useful queries than parts they stay equal.

    `methods` is a text such as "rrf + svd(passes=30) + fused"; each ranks every query by itself. With "auto"
    they are rrf, rbc and fused, for votes bradley_terry, win_rate and fused.

    >>> from podium import Labels, Preferences
    >>> lists = {q: {"good": ["a", "b", "c"], "bad": ["c", "b", "a"]} for q in range(12)}
    >>> labels = Labels.from_dict({q: {"a": 2, "b": 1, "c": 0} for q in range(12)})
    >>> model = StackAggregator(methods="rrf + weighted_rrf").fit(Preferences.from_lists(lists), labels)
    >>> model.aggregate(Preferences.from_lists({"new": {"good": ["x", "y"], "bad": ["y", "x"]}})).ranking("new")
    ['x', 'y']
    >>> model.get_member_weights()["weighted_rrf"] > model.get_member_weights()["rrf"]
    True
    """

    name = "stack"
    citation = "Wolpert, Neural Networks 1992; Breiman, Machine Learning 1996"
    tags = Tags(accepts=ALL_FORMS, supervised=True, weighted=False, uses_features=True)

    methods: Annotated[str, "the methods to combine, separated by +; auto: the usual ones"] = "auto"
    parts: Annotated[int, Range(2, 50), "parts of the training queries for the out-of-fold scores"] = 3
    metric: TargetMetric = "ndcg:exp"
    choose_by: ChooseBy = "ndcg@10:exp"
    rate: LearningRate = 0.03
    passes: Passes = 30
    l2: Penalty = 0.001
    seed: Seed = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.methods == "auto":
            return
        specs = split_methods(self.methods)
        if len(specs) < LEAST or len(set(specs)) < len(specs):
            raise ParameterError(
                f"stack: methods is {self.methods!r}; accepted: two or more different methods, as in 'rrf + svd'"
            )
        for spec in specs:
            tags = make(spec).tags
            if not tags.per_query or make(spec).name == self.name:
                raise ParameterError(
                    f"stack: {spec} cannot be a member; members rank every query by itself, and are no stacks"
                )

    def get_member_weights(self) -> dict[str, float]:
        """The learned weights by member; their mean is 1."""
        self._check_fitted()
        return dict(zip(self.members_, self.weights_.tolist(), strict=True))

    # -- members ---------------------------------------------------------------------------------------------

    def _store_members(self, members: list[Aggregator]) -> None:
        """Learned values of the members become those of this model: a model file holds one flat set of them."""
        for name in [n for n in vars(self) if n.startswith("member_")]:
            del self.__dict__[name]
        self.members_ = [repr(m) for m in members]
        for number, member in enumerate(members):
            forget_queries(member)
            learned = {k: v for k, v in vars(member).items() if k.endswith("_") and not k.startswith("_")}
            for name, value in learned.items():
                setattr(self, f"member_{number}_{name}", value)

    # -- learning --------------------------------------------------------------------------------------------

    def _learn(self, training: Training) -> None:
        specs: list[str] = split_methods(self.methods)
        if self.methods == "auto":
            specs = list(FOR_VOTES if Form.COMPARISON in training.preferences.forms else USUAL)
        made = [make(spec) for spec in specs]
        members = [
            dataclasses.replace(m, unseen=self.unseen) if m.tags.supervised else m  # type: ignore[call-arg]
            for m in made
        ]
        p, labels = training.preferences, training.examples.labels
        useful = training.examples.find_useful_queries()
        part = np.full(len(labels), -1)
        dice = np.random.default_rng(self.seed)
        part[useful] = dice.permutation(np.arange(len(useful)) % self.parts)
        enough = len(useful) >= self.parts
        steps, done = len(members) * (1 + self.parts * enough), 0
        columns = []
        for member in members:
            out_of_fold = np.zeros((len(p.index.items), 1))
            for number in range(self.parts if enough and member.tags.supervised else 0):
                training.progress(done := done + 1, steps, f"{member.name} out of fold")
                # rank the queries of the part by a member that was fitted on all others
                codes = p.queries.codes_of(labels.queries.take(np.flatnonzero(part == number)))
                others = np.setdiff1d(np.arange(len(p)), codes)
                fitted = self._fit_member(dataclasses.replace(member), training, others)
                values = _build_columns([fitted], p.select_codes(codes), training.features)
                out_of_fold[p.index.select(codes)[1]] = values
            fitted = self._fit_member(member, training)
            if not member.tags.supervised:
                out_of_fold = _build_columns([fitted], p, training.features)
            columns.append(out_of_fold)
            training.progress(done := done + 1, steps, f"{member.name}")
        self._store_members(members)
        self.weights_ = np.ones(len(members))
        if not enough:
            return
        check, held = None, training.validation
        if held is not None:
            values = _build_columns(members, held.preferences, held.features)
            check = LearningTask(values[held.examples.rows], held.examples)
        rows = training.examples.rows
        # queries without two grades have no out-of-fold scores, and nothing to teach
        task = LearningTask(np.hstack(columns)[rows], training.examples, check)
        prior = WeightPrior(np.ones(len(members)), is_center=True, nonnegative=True)
        scorer = fit_scorer(ScorerSettings(), task, plan=self.plan, prior=prior)
        self.weights_ = scorer.linear_weights / (float(scorer.linear_weights.mean()) or 1.0)
        self.passes_ = scorer.passes_

    def _fit_member(self, member: Any, training: Training, codes: I8 | None = None) -> Aggregator:
        """Fit a member that learns on the queries with these codes, or on all."""
        if not member.tags.supervised:
            return member  # type: ignore[no-any-return]
        p, examples = training.preferences, training.examples
        # the labels of examples are in the order of their grades; a method expects that of the slots
        grades = np.full(len(p.index.items), np.nan)
        grades[examples.rows] = examples.labels.grades
        labels = Labels(p.index, grades)
        if codes is not None:
            p, labels = p.select_codes(codes), labels.select_codes(codes)
        weights = dict(zip(examples.labels.queries.tolist(), examples.weight.tolist(), strict=True))
        features = training.features if member.tags.uses_features else None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NoGainWarning)
            member.fit(p, labels, features, query_weights=weights)
        return member  # type: ignore[no-any-return]

    # -- scoring ---------------------------------------------------------------------------------------------

    def _score(self, preferences: Preferences, features: Features | None) -> F8:
        members: list[Aggregator] = []
        for number, spec in enumerate(self.members_):
            member, start = make(spec), f"member_{number}_"
            for name, value in vars(self).items():
                if name.startswith(start):
                    setattr(member, name.removeprefix(start), value)
            members.append(member)
        columns = _build_columns(members, preferences, features)
        return np.asarray(np.einsum("ij,j->i", columns, self.weights_))


def _build_columns(members: list[Aggregator], preferences: Preferences, features: Features | None) -> F8:
    """Scores by slot and member, with mean 0 and standard deviation 1 in every query."""
    scores = [
        member.aggregate(preferences, features if member.tags.uses_features else None).scores
        for member in members
    ]
    return standardize_by_query(preferences.index, np.stack(scores, axis=1))[0]
