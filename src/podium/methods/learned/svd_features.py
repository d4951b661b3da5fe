"""Aggregation as learning to rank: every expert's pairwise matrix becomes a few features per item."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, NamedTuple, cast

import numpy as np

from podium.core.errors import InputError, Option, ParameterError
from podium.core.old_names import accept_old_names
from podium.core.params import Choice, Range, Tune
from podium.data.building.subset import restrict_items
from podium.data.features import Features
from podium.data.ids import Id, Ids
from podium.data.preferences import Preferences
from podium.kernels.dispatch import F8, I8
from podium.kernels.preference_svd import compute_leading_vectors, compute_singular_vectors
from podium.learning.examples import Training
from podium.learning.feature_scorer import FeatureScorer, fit_scorer
from podium.learning.plan import ScorerSettings
from podium.methods.base import ALL_FORMS, Outcome, Tags
from podium.methods.costs import check_table_size
from podium.methods.input_checks import match_experts
from podium.methods.learned import expert_matrices
from podium.methods.learned.supervised_method import SupervisedAggregator

__all__ = ["POOLED", "SvdAggregator", "SvdColumns", "build_preference_features", "build_svd_columns"]

POOLED = "(other experts)"  # in explanations: the experts that share one matrix
MOST_COMPONENTS = 20

Transform = Annotated[
    str,
    Choice("log", "rank", "binary"),
    "strength of a preference: difference of log ranks, of ranks, or 1",
]


class SvdColumns(NamedTuple):
    """A table of features by slot, and the group of experts of each column."""

    values: F8
    group: I8


def build_svd_columns(
    preferences: Preferences,
    transform: str,
    groups: I8,
    n_groups: int,
    components: int = 1,
    *,
    scaled: bool = False,
    sizes: bool = False,
    device: str = "cpu",
) -> SvdColumns:
    """U and V of every group's matrix and an indicator for unlisted items; singular values if `sizes`.

    The first component can be computed on a device (see `learning.plan.Device`). `scaled` multiplies U and V by the
    root of their singular value, so that Y is about U V'.
    """
    width = components * (3 if sizes else 2) + 1
    hybrid = ("use ", Option("matrices", "hybrid", of="method"), " with a larger min_preferences")
    check_table_size(preferences, n_groups * width, hybrid)
    grouped = expert_matrices.build_expert_matrices(
        preferences, cast(expert_matrices.Transform, transform), groups
    )
    m, out = grouped.matrices, []
    if components == 1:
        if device == "cpu":
            vectors = compute_leading_vectors(m)
        else:
            from podium.kernels.device import preference_svd as device_svd
            from podium.kernels.device.torch_device import resolve_device

            vectors = device_svd.compute_leading_vectors(resolve_device(device), m)
        u, v, sigma = vectors.u[:, None], vectors.v[:, None], vectors.sigma[:, None]
    else:
        u, v, sigma = compute_singular_vectors(m, components)
    if scaled:
        root = np.repeat(np.sqrt(sigma), m.sizes, axis=0)
        u, v = u * root, v * root
    for c in range(components):
        out += [expert_matrices.build_group_table(grouped, part[:, c], n_groups) for part in (u, v)]
        if sizes:
            out.append(expert_matrices.build_group_table(grouped, np.repeat(sigma[:, c], m.sizes), n_groups))
    out.append(expert_matrices.find_unranked_cells(preferences, groups, n_groups).astype(np.float64))
    return SvdColumns(np.concatenate(out, axis=1), np.tile(np.arange(n_groups), len(out)))


def build_preference_features(
    preferences: Preferences,
    *,
    transform: str = "log",
    components: int = 1,
    vectors: str = "scaled",
    combined: bool = False,
    sizes: bool = False,
    experts: Sequence[Id] | None = None,
) -> Features:
    """The features of `svd` for use with any learner: singular vectors of every expert's pairwise matrix.

    Three columns per expert: "for" (how far it prefers the item to others), "against", and "unlisted" (1 where it
    does not list the item); more with `components`, and singular values with `sizes`. `combined` builds one matrix
    from all experts. `experts` fixes the columns: for new queries, give the experts of the training data. Their
    order is that of `preferences.experts` by default, and other experts are left out.

    >>> p = Preferences.from_lists({"q": {"x": ["a", "b", "c"], "y": ["c", "a"]}})
    >>> x = build_preference_features(p)
    >>> x.names
    ('x: for', 'y: for', 'x: against', 'y: against', 'x: unlisted', 'y: unlisted')
    >>> x.values[:, -1].tolist()
    [0.0, 1.0, 0.0]
    """
    for name, value, accepted in (("transform", transform, ("log", "rank", "binary")),
                                  ("vectors", vectors, ("unit", "scaled"))):  # fmt: skip
        if value not in accepted:
            raise ParameterError(f"{name} is {value!r}; accepted: {', '.join(accepted)}")
    if not isinstance(components, int) or not 1 <= components <= MOST_COMPONENTS:
        raise ParameterError(
            f"components is {components!r}; accepted: whole number in [1, {MOST_COMPONENTS}]"
        )
    known = Ids(list(preferences.experts if experts is None else experts))
    codes, names = known.codes_of(preferences.experts), [str(expert) for expert in known]
    if combined:
        codes, names = np.where(codes >= 0, 0, -1), ["all"]
    if len(set(names)) < len(names):
        raise InputError("two experts have the same name as text", remedy="rename one of them")
    columns = build_svd_columns(
        preferences,
        transform,
        codes,
        len(names),
        components,
        scaled=vectors == "scaled",
        sizes=sizes,
    )
    kinds = ["for", "against", *(["size"] if sizes else [])]
    numbers = [""] if components == 1 else [f" {number}" for number in range(1, components + 1)]
    views = [f"{kind}{number}" for number in numbers for kind in kinds]
    labels = tuple(f"{name}: {view}" for view in [*views, "unlisted"] for name in names)
    return Features(preferences.index, columns.values, labels)


@accept_old_names(features="matrices")
@dataclass(kw_only=True, eq=False, repr=False)
class SvdAggregator(SupervisedAggregator, ScorerSettings):
    """LambdaRank on the leading singular vectors of every expert's pairwise matrix ("LR").

    `matrices="individual"` gives each expert its own features, `"combined"` builds one matrix from all
    (unknown experts are then accepted), `"hybrid"` gives own features to experts with at least
    `min_preferences` rows in training and one pooled matrix to all others.

    >>> from podium import Labels, Preferences
    >>> lists = {q: {"good": ["a", "b", "c"], "bad": ["c", "b", "a"]} for q in range(4)}
    >>> labels = Labels.from_dict({q: {"a": 2, "b": 1, "c": 0} for q in range(4)})
    >>> model = SvdAggregator(passes=20).fit(Preferences.from_lists(lists), labels)
    >>> model.aggregate(Preferences.from_lists({"new": {"good": ["x", "y"], "bad": ["y", "x"]}})).ranking("new")
    ['x', 'y']
    """

    name = "svd"
    citation = "Volkovs, Larochelle & Zemel, CIKM 2012"
    tags = Tags(accepts=ALL_FORMS, supervised=True, weighted=False, additive=True)

    transform: Transform = "log"
    components: Annotated[
        int, Range(1, MOST_COMPONENTS), "number of singular vectors per matrix used as features"
    ] = 1
    vectors: Annotated[
        str,
        Choice("unit", "scaled"),
        "unit singular vectors, or multiplied by the root of the singular value",
    ] = "scaled"
    matrices: Annotated[
        str,
        Choice("individual", "combined", "hybrid"),
        "one matrix per expert, one for all, or per expert with enough data",
    ] = "individual"
    min_preferences: Annotated[
        int,
        Range(1, 10**9),
        Tune(20, 2000, log=True),
        "training rows an expert needs for its own features (hybrid)",
    ] = 500
    items: Annotated[
        str,
        Choice("all", "labelled"),
        "items whose preferences define the features in training; after labelled, score such items alone",
    ] = "all"

    def __post_init__(self) -> None:
        super().__post_init__()
        ScorerSettings.__post_init__(self)

    @property
    def explains_exactly(self) -> bool:
        """True for a linear scorer."""
        return self.is_linear

    # -- features --------------------------------------------------------------------------------------------

    def _group_names(self) -> list[Id]:
        """Names of the groups, for explanations."""
        if self.matrices == "individual":
            return self.experts_
        return [POOLED] if self.matrices == "combined" else [*self.own_, POOLED]

    def _build_columns(self, preferences: Preferences, device: str = "cpu") -> SvdColumns:
        if self.matrices == "combined":
            groups = np.zeros(len(preferences.experts), np.int64)
        elif self.matrices == "individual":
            groups = match_experts(self, preferences)
        else:
            codes = Ids(self.own_).codes_of(preferences.experts)
            groups = np.where(codes >= 0, codes, len(self.own_))
        # singular values are the same for all items of a query, so a linear scorer cannot use them
        return build_svd_columns(
            preferences,
            self.transform,
            groups,
            len(self._group_names()),
            self.components,
            scaled=self.vectors == "scaled",
            sizes=not self.is_linear,
            device=device,
        )

    # -- learning --------------------------------------------------------------------------------------------

    def _learn(self, training: Training) -> None:
        lists, votes = training.preferences.lists, training.preferences.comparisons
        rows = np.bincount(lists.expert, weights=lists.lengths, minlength=len(self.experts_))
        rows = rows + np.bincount(votes.expert, minlength=len(self.experts_))
        self.own_ = [
            e for e, n in zip(self.experts_, rows.tolist(), strict=True) if n >= self.min_preferences
        ]
        fit_scorer(self, training.build_task(self._build_example_values)).store_in(self)

    def _build_example_values(self, training: Training) -> F8:
        """Features of the examples, from the preferences over all items or over the labeled ones alone."""
        preferences, rows = training.preferences, training.examples.rows
        if self.items == "all":
            return np.asarray(self._build_columns(preferences, self.device).values[rows])
        keep = np.zeros(len(preferences.index.items), np.bool_)
        keep[rows] = True
        place = np.cumsum(keep) - 1
        columns = self._build_columns(restrict_items(preferences, keep), self.device)
        return np.asarray(columns.values[place[rows]])

    # -- scoring ---------------------------------------------------------------------------------------------

    def _score(self, preferences: Preferences, features: Features | None) -> F8 | Outcome:
        return FeatureScorer.from_model(self).compute_scores(self._build_columns(preferences).values)

    def _compute_contributions(self, one: Preferences, features: Features | None) -> dict[Id, F8] | None:
        if not self.is_linear:
            return None
        columns, weights = self._build_columns(one), FeatureScorer.from_model(self).linear_weights
        own = {name: columns.group == g for g, name in enumerate(self._group_names())}
        return {name: (columns.values[:, mine] * weights[mine]).sum(axis=1) for name, mine in own.items()}
