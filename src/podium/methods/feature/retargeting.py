"""Monotone retargeting: a consensus on which the lists and the item features agree."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Self

import numpy as np

from podium.core.errors import NotFittedError, ParameterError, PodiumWarning
from podium.core.params import Choice, Range, Tune
from podium.data.features import Features
from podium.data.ids import Id
from podium.data.index import ItemIndex
from podium.data.labels import Labels
from podium.data.preferences import Preferences
from podium.kernels.dispatch import F8, I8
from podium.kernels.monotone_retargeting import LOSSES, RetargetingSettings, compute_largest_margin
from podium.methods.base import FEATURES, Aggregator, Outcome, Tags
from podium.methods.feature import expert_columns as listed
from podium.methods.feature.copied_features import find_copied_features
from podium.methods.feature.feature_model import normalize_by_query
from podium.methods.feature.retargeting_search import RetargetingOptions, RetargetingResult, search_weights
from podium.methods.input_checks import check_features, check_forms

__all__ = ["MonotoneRetargeting"]

NEAR = 1e-9  # scores closer than this are ties: they are sums over all items


@dataclass(kw_only=True, eq=False, repr=False)
class MonotoneRetargeting(Aggregator):
    """A weighted sum of the lists and a weighted sum of the features that order the items alike.

    Only orders matter: both sums are fitted to targets that may be any transformation with the same order,
    alternating regression and isotonic regression. Lists that do not fit get weight 0. The reliability of the
    features is measured first: where they explain less than `trust` of the lists' common order, or are
    absent, the lists alone determine the ranking, weighted by their agreement. Weights are shared by all
    queries unless `pooled` is off. Labels given to `fit` are a known order: both sums are fitted to it, and the
    labeled items are ranked in it.

    Needs item features related to quality. Missing values count as the query's mean. A feature that is itself
    one of the lists, exactly or with noise, is left out with a warning: it would always agree with that list.
    Noise in the lists limits what features can explain, so `trust` applies to the reliable part of the lists'
    common order.

    >>> from podium import Features, Preferences
    >>> p = Preferences.from_lists({"q": {1: "abcdef", 2: "abdcfe", 3: "fdbeac"}})
    >>> values = [[7, 3], [8, 1], [4, 2], [3, 2], [1, 3], [2, 1]]
    >>> x = Features.from_rows(["q"] * 6, list("abcdef"), values, ["clicks", "links"])
    >>> model = MonotoneRetargeting().fit(p, features=x)
    >>> model.aggregate(p, x).ranking("q"), model.expert_weights()
    (['a', 'b', 'c', 'd', 'e', 'f'], {1: 1.0, 2: 0.0, 3: 0.0})
    """

    name = "retargeting"
    citation = (
        "Acharyya & Ghosh, Monotone retargeting for unsupervised rank aggregation with object features, 2016"
    )
    tags = Tags(per_query=False, weighted=False, uses_features=True)

    loss: Annotated[str, Choice(*LOSSES), "loss between a side and its target"] = "squared"
    scale: Annotated[str, Choice(*listed.SCALES), "values of a list: ranks, normal quantiles, or scores"] = (
        "rank"
    )
    pooled: Annotated[bool, "share the weights across queries"] = True
    l1: Annotated[float, Range(0, 10), Tune(1e-3, 0.3, log=True), "penalty on the weights of the lists"] = (
        0.02
    )
    l2: Annotated[float, Range(0, 1e3), Tune(1e-6, 1, log=True), "penalty on their squares"] = 1e-6
    feature_l1: Annotated[float, Range(0, 10), "penalty on the weights of the features"] = 0.0
    feature_l2: Annotated[float, Range(0, 1e3), Tune(1e-5, 1, log=True), "penalty on their squares"] = 1e-3
    margin: Annotated[float, Range(0, 10), "smallest difference between consecutive targets"] = 0.0
    trust: Annotated[
        float,
        Range(0, 1),
        "fraction of the lists' common order that the features must explain, relative to its reliability",
    ] = 0.5
    missing: Annotated[
        str,
        Choice("auto", "below", "mean"),
        "unlisted items: below the listed ones, or at the list's mean; auto: below if the input says so, or if "
        "lists share more items than by chance",
    ] = "auto"
    side: Annotated[
        str,
        Choice("auto", "lists", "features", "both"),
        "which sum ranks the items; auto decides by the agreement of the lists",
    ] = "auto"
    starts: Annotated[
        str,
        Choice("all", "consensus"),
        "starting points: also single lists (if unlisted items are not below), or only the consensus",
    ] = "all"
    max_iterations: Annotated[int, Range(1, 10_000), "maximum number of alternations"] = 20

    # -- learning --------------------------------------------------------------------------------------------

    def fit(
        self, preferences: Preferences, labels: Labels | None = None, features: Features | None = None
    ) -> Self:
        """Learn the weights (when pooled), for use on any queries; labels are a known order of items."""
        check_forms(self, preferences)
        check_features(self, features)
        for name in [n for n in self.__dict__ if n.endswith("_")]:
            del self.__dict__[name]
        if not self.pooled:
            if labels is not None:
                raise ParameterError(f"{self.name}: labels need pooled=True; weights per query are not kept")
            return self
        preferences = self._read_unlisted_items(preferences)
        self.missing_ = "below" if preferences.unlisted == "below" else "mean"
        fit = self.search(preferences, features, labels)
        self.experts_: list[Id] = preferences.experts.tolist()
        self.features_ = [] if features is None else list(features.names)
        self.weights_, self.coefficients_, self.balance_ = fit.weights, fit.coefficients, fit.balance
        self.mode_, self.explained_, self.history_ = fit.mode, fit.explained, fit.history
        self.iterations_, self.objective_, self.reliability_ = fit.turns, fit.objective, fit.reliability
        # by query, the labeled items that are ranked, with their grades
        self.known_: dict[Id, dict[Id, float]] = {}
        if labels is not None:
            index, grades = preferences.index, labels.align(preferences.index)
            for slot in np.flatnonzero(~np.isnan(grades)).tolist():
                query = index.queries[int(index.query_of_slot[slot])]
                self.known_.setdefault(query, {})[index.items[slot]] = float(grades[slot])
        return self

    def search(
        self,
        preferences: Preferences,
        features: Features | None = None,
        labels: Labels | None = None,
        *,
        traced: bool = False,
    ) -> RetargetingResult:
        """Learn from these data; `traced` records every alternation of the best run."""
        preferences = self._read_unlisted_items(preferences)
        table = self._build_columns(preferences, preferences.experts.tolist())
        values = self._select_features(preferences, table, features)
        self._check_margin(preferences.index.sizes)
        grades = None if labels is None else labels.align(preferences.index)
        options = self._build_options(preferences, grades, traced)
        return search_weights(table, values, preferences.index.starts, options)

    def _build_options(
        self, preferences: Preferences, grades: F8 | None = None, traced: bool = False
    ) -> RetargetingOptions:
        settings = RetargetingSettings(self.loss, self.margin, self.max_iterations, grades=grades)
        penalties = (self.l1, self.l2, self.feature_l1, self.feature_l2)
        # the order below the end of a list is free, so the features fit any single short list best
        singles = self.starts == "all" and preferences.unlisted != "below"
        return RetargetingOptions(*penalties, self.trust, self.side, singles, settings, traced)

    def _check_margin(self, sizes: I8) -> None:
        most = compute_largest_margin(sizes)
        if self.margin > most:
            raise ParameterError(
                f"{self.name}: margin is {self.margin:g}, but targets of root mean square 1 can differ by at most "
                f"{most:.2g} here (the longest query has {sizes.max()} items); give a smaller margin"
            )

    def _read_unlisted_items(self, preferences: Preferences) -> Preferences:
        """The preferences with the reading of unlisted items that `missing` selects."""
        rule = getattr(self, "missing_", self.missing)
        if rule == "auto":
            return (
                preferences.with_unlisted("below")
                if listed.share_items_beyond_chance(preferences)
                else preferences
            )
        return preferences.with_unlisted("below" if rule == "below" else "unknown")

    def _select_features(self, preferences: Preferences, table: F8, features: Features | None) -> F8:
        """The normalized features, 0 for those that are a copy of a list."""
        values = self._normalize_features(preferences.index, features)
        copies = find_copied_features(preferences, table, values) if features is not None else {}
        for feature, expert in copies.items():
            assert features is not None
            warnings.warn(
                f"{self.name}: feature {features.names[feature]!r} orders the items as list "
                f"{preferences.experts[expert]!r} does, or nearly, so it is left out of the features: it would "
                "discard all other lists, and says nothing about them",
                PodiumWarning,
                stacklevel=4,
            )
            values[:, feature] = 0.0
        return values

    def _build_columns(self, preferences: Preferences, experts: list[Id]) -> F8:
        """A column for each of these experts; an unknown expert raises an error."""
        codes = listed.match_experts(preferences, experts, self.name)
        return listed.build_expert_columns(preferences, codes, len(experts), self.scale)

    def _normalize_features(self, index: ItemIndex, features: Features | None) -> F8:
        if features is None:
            return np.zeros((len(index.items), 0))
        return normalize_by_query(index.starts, features.align(index), "deviation")

    def expert_weights(self) -> dict[Id, float]:
        """The weight of each list; they sum to 1, and a list with weight 0 was discarded."""
        self._check_fitted()
        return dict(zip(self.experts_, _normalize_shares(np.asarray(self.weights_)).tolist(), strict=True))

    def feature_weights(self) -> dict[str, float]:
        """The weight of each feature, in standard deviations of the feature in a query."""
        self._check_fitted()
        return dict(zip(self.features_, np.asarray(self.coefficients_).tolist(), strict=True))

    def _check_fitted(self) -> None:
        if not hasattr(self, "experts_"):
            raise NotFittedError(f"{self.name} has no weights; call fit (with pooled=True)")

    # -- scoring ---------------------------------------------------------------------------------------------

    def _scores(self, preferences: Preferences, weights: F8) -> Outcome:
        return self._compute_raw_outcome(preferences, weights, None)

    def _compute_raw_outcome(
        self, preferences: Preferences, weights: F8, features: Features | None
    ) -> Outcome:
        if not self.pooled:
            return self._score_by_query(preferences, features)
        model = self._ensure_fitted(preferences, features)
        parts, rest = model._compute_contributions(preferences, features)
        shares = model.expert_weights()
        return Outcome(
            model._keep_known_order(preferences.index, parts.sum(axis=1) + rest),
            tolerance=NEAR,
            floor=1.0,
            iterations=model.iterations_,
            objective=model.objective_,
            notes=model._describe_fit(),
            expert_weights=np.array([shares.get(e, 0.0) for e in preferences.experts], np.float64),
        )

    def _ensure_fitted(self, preferences: Preferences, features: Features | None) -> MonotoneRetargeting:
        """Itself when fitted, otherwise a copy fitted to these queries."""
        if hasattr(self, "experts_"):
            return self
        return type(self)(**self.get_parameters()).fit(preferences, features=features)

    def _compute_contributions(self, preferences: Preferences, features: Features | None) -> tuple[F8, F8]:
        """Contributions of every list (columns) and of all features together to each slot."""
        Features.require(features, self.features_, self.name)
        preferences = self._read_unlisted_items(preferences)
        table = self._build_columns(preferences, self.experts_)
        lists, rest = np.asarray(self.balance_).tolist()
        values = self._normalize_features(preferences.index, features)
        return lists * table * np.asarray(self.weights_), rest * (values @ np.asarray(self.coefficients_))

    def _keep_known_order(self, index: ItemIndex, scores: F8) -> F8:
        """The same scores, those of labeled items exchanged among them so that they fall with the grades."""
        known = {query: grades for query, grades in self.known_.items() if query in index.queries}
        if not known:
            return scores
        grades = Labels.from_dict(known).align(index)
        scores = scores.copy()
        for query in np.unique(index.query_of_slot[~np.isnan(grades)]):
            slots = np.arange(*index.starts[query : query + 2])
            slots = slots[~np.isnan(grades[slots])]
            slots = slots[np.lexsort((-scores[slots], -grades[slots]))]
            values = np.sort(scores[slots])[::-1]
            gap = 4 * NEAR * max(1.0, float(np.abs(values).max()))
            for k in range(1, len(slots)):
                if grades[slots[k]] < grades[slots[k - 1]]:
                    # a tie would be broken by id
                    values[k] = min(values[k], values[k - 1] - gap)
            scores[slots] = values
        return scores

    def _score_by_query(self, preferences: Preferences, features: Features | None) -> Outcome:
        preferences = self._read_unlisted_items(preferences)
        table = self._build_columns(preferences, preferences.experts.tolist())
        values, starts = self._select_features(preferences, table, features), preferences.index.starts
        self._check_margin(np.array([preferences.index.sizes.max(initial=0)]))
        scores, solutions, options = np.zeros(len(table)), [], self._build_options(preferences)
        for a, b in pairwise(starts.tolist()):
            one = search_weights(table[a:b], values[a:b], np.array([0, b - a]), options)
            lists, rest = one.balance.tolist()
            scores[a:b] = lists * (table[a:b] @ one.weights) + rest * (values[a:b] @ one.coefficients)
            solutions.append(one)
        shares = [_normalize_shares(one.weights) for one in solutions]
        return Outcome(
            scores,
            tolerance=NEAR,
            floor=1.0,
            iterations=max((one.turns for one in solutions), default=0),
            objective=sum(one.objective for one in solutions),
            notes=(
                f"the lists alone determine the ranking in {sum(one.mode == 'lists' for one in solutions)} "
                f"of {len(solutions)} queries",
            ),
            expert_weights=np.mean(shares, axis=0) if shares else None,
        )

    def _describe_fit(self) -> tuple[str, ...]:
        notes = []
        if self.features_:
            notes.append(
                f"the features explain {max(self.explained_, 0.0):.0%} of the lists' common order, of which "
                f"{self.reliability_:.0%} is reliable"
            )
            if self.mode_ == "lists":
                notes.append(
                    f"that is below trust={self.trust:g} of the reliable part, so the lists alone determine the "
                    "ranking"
                )
            elif self.mode_ == "settled":
                notes.append("a weighting of the features reproduces the order of the kept lists")
        if self.known_:
            count = sum(map(len, self.known_.values()))
            effect = "have no effect on the weights" if self.mode_ == "lists" else "steer the weights"
            notes.append(
                f"the labels {effect}; the {count} labeled items are ranked in the order of their grades"
            )
        gone = [str(e) for e, w in self.expert_weights().items() if w == 0]
        if gone:
            few = ", ".join(gone[:8])
            notes.append(
                f"discarded {len(gone)} of {len(self.experts_)} lists: {few}{', ...' if len(gone) > 8 else ''}"
            )
        return tuple(notes)

    @property
    def explains_exactly(self) -> bool:
        """Whether the contributions that `explain` returns add up to the score: with pooled weights, no labels."""
        return self.pooled and not getattr(self, "known_", None)

    def _explain_query(self, preferences: Preferences, query: Id, features: Features | None) -> dict[Id, F8]:
        """Contributions of each list, and of all features together; pooled weights come from all queries."""
        if not self.pooled:
            return super()._explain_query(preferences, query, features)
        check_forms(self, preferences)
        check_features(self, features)
        model = self._ensure_fitted(preferences, features)
        here = preferences.index.slots(query)
        parts, rest = model._compute_contributions(preferences, features)
        contributions: dict[Id, F8] = dict(zip(model.experts_, parts[here].T, strict=True))
        return contributions | ({FEATURES: rest[here]} if model.features_ else {})

    def _explain_slots(self, one: Preferences, features: Features | None) -> dict[Id, F8]:
        """Without `pooled`, experts have no weight to set to 0, so they are removed from the query."""
        whole = self._score_by_query(one, features).scores
        contributions: dict[Id, F8] = {}
        for expert in one.experts.take(np.flatnonzero(one.active_experts)):
            alone = len(one.experts) < 2
            rest = 0.0 if alone else self._score_by_query(one.without_expert(expert), features).scores
            contributions[expert] = whole - rest
        return contributions


def _normalize_shares(weights: F8) -> F8:
    total = float(weights.sum())
    return weights / total if total > 0 else np.zeros_like(weights)
