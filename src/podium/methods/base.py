"""What every method shares: parameters, weights, accepted forms, and the step from scores to a consensus."""

from __future__ import annotations

import dataclasses
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np

from podium.core import params, registry
from podium.core.errors import InputError, ParameterError
from podium.core.old_names import replace_old_names
from podium.data.consensus import Consensus, Diagnostics, TieRule
from podium.data.ids import Id
from podium.data.preferences import Form, Preferences
from podium.kernels import segments
from podium.kernels.dispatch import B1, F8
from podium.kernels.ordering import FLOOR, TOLERANCE
from podium.methods.costs import Cost, check_costs
from podium.methods.input_checks import (
    Weights,
    check_features,
    check_forms,
    check_weights,
    weights_for,
)

if TYPE_CHECKING:
    from podium.data.building.grouped import GroupedColumns
    from podium.data.features import Features
    from podium.data.labels import Labels
    from podium.kernels.positional_rank import RankedItems

    ColumnRanker = Callable[[GroupedColumns, int | None], RankedItems | None]  # None: use `aggregate`

__all__ = [
    "ALL_FORMS",
    "FEATURES",
    "LIST_FORMS",
    "Aggregator",
    "CostClass",
    "Outcome",
    "Tags",
    "Weights",
    "make",
]

# no pairs; the items of each list (or single votes); all items of a query
Pairwise = Literal["none", "lists", "items"]
CostClass = Literal["walk", "iterate", "search"]
LIST_FORMS = frozenset({Form.RANKING, Form.TOP_K, Form.RATING})
ALL_FORMS = frozenset(Form)
FEATURES = "(item features)"  # in explanations: the share that comes from no expert


@dataclass(frozen=True)
class Tags:
    """Properties of a method; the checks, the command line and the documentation read them."""

    accepts: frozenset[Form] = LIST_FORMS
    per_query: bool = True  # the answer to a query does not depend on the other queries
    additive: bool = False  # the score of an item is a sum of one term per expert
    weighted: bool = True  # experts can have weights
    condorcet: bool = False  # an item that beats every other by majority comes first
    supervised: bool = False  # learns from labels
    uses_features: bool = False
    dialect: bool = False  # computes what one search engine computes; searched only if named or asked for
    pairwise: Pairwise = "none"  # what is compared pairwise: time or memory grows with its square
    cost: CostClass = "walk"  # passes over that: a few, until convergence, or one per candidate order


@dataclass(frozen=True)
class Outcome:
    """Scores by slot, and how they were computed. Scores closer than `tolerance` (relative) are ties."""

    scores: F8
    absent: B1 | None = None  # slots without any evidence; they rank below all others of their query
    tolerance: float = TOLERANCE
    floor: float = FLOOR  # see `podium.kernels.ordering`
    # size of the terms of a score, where they can cancel: one number, or one per query
    magnitude: float | F8 = 0.0
    converged: bool = True
    iterations: int | None = None
    objective: float | None = None
    notes: tuple[str, ...] = ()
    expert_weights: F8 | None = None
    p_values: F8 | None = None  # by slot
    overwrite: bool = False  # whether nothing else refers to `scores`, so that ties can be snapped in place


@dataclass(kw_only=True, eq=False, repr=False)
class Aggregator(params.ParameterDataclass, ABC):
    """Base of all methods. A subclass declares a `name`, `tags` and parameters, and computes `_scores`.

    The constructor only stores its arguments and validates their ranges; learned attributes end in `_`.
    """

    citation: ClassVar[str] = ""
    tags: ClassVar[Tags] = Tags()
    exempt: ClassVar[Mapping[str, str]] = {}  # check name -> why this method need not pass it

    weights: Weights | None = field(default=None)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if cls.__dict__.get("name"):
            registry.aggregators.add(cls.name, cls)

    def __post_init__(self) -> None:
        for name, value in self.get_parameters().items():
            setattr(self, name, _to_plain_value(value))
        params.validate(self)
        if self.weights is not None:
            if not self.tags.weighted:
                raise ParameterError(f"{self.name} takes no weights")
            check_weights(self.weights, self.name)

    # -- public methods --------------------------------------------------------------------------------------

    def fit(
        self, preferences: Preferences, labels: Labels | None = None, features: Features | None = None
    ) -> Self:
        """Learn what the method learns from the data; most unsupervised methods learn nothing."""
        check_forms(self, preferences)
        return self

    def aggregate(
        self, preferences: Preferences, features: Features | None = None, *, ties: TieRule = "item"
    ) -> Consensus:
        """Rank all items of every query; `features` is for the methods that use item features."""
        check_forms(self, preferences)
        check_features(self, features)
        self._check_costs(preferences)
        begin = time.perf_counter()
        weights = self.expert_weights_for(preferences.experts)
        outcome = self._compute_outcome(preferences, weights, features)
        seconds = time.perf_counter() - begin
        diagnostics = Diagnostics(
            outcome.converged, outcome.iterations, outcome.objective, seconds, outcome.notes
        )
        return Consensus.from_scores(
            preferences.index,
            outcome.scores,
            ties=ties,
            tolerance=outcome.tolerance,
            floor=outcome.floor,
            magnitude=outcome.magnitude,
            overwrite=outcome.overwrite,
            method=repr(self),
            source=preferences,
            diagnostics=diagnostics,
            experts=preferences.experts,
            expert_weights=outcome.expert_weights if outcome.expert_weights is not None else weights,
            p_values=outcome.p_values,
        )

    def explain(
        self, preferences: Preferences, query: Id, item: Id, features: Features | None = None
    ) -> dict[Id, float]:
        """Contribution of each expert to an item's score: exact for additive methods, otherwise the score
        minus the score without that expert.

        >>> from podium import Preferences, ReciprocalRankFusion
        >>> p = Preferences.from_lists({"q": {"bm25": ["a", "b"], "dense": ["b"]}})
        >>> {e: round(v, 4) for e, v in ReciprocalRankFusion(k=1).explain(p, "q", "b").items()}
        {'bm25': 0.3333, 'dense': 0.5}
        """
        parts = self._explain_query(preferences, query, features)
        at = preferences.index.slot(query, item) - preferences.index.slots(query).start
        return {expert: float(values[at]) for expert, values in parts.items()}

    def explain_items(
        self, preferences: Preferences, query: Id, features: Features | None = None
    ) -> dict[Id, dict[Id, float]]:
        """What `explain` returns, for all items of a query at once.

        >>> from podium import Preferences, ReciprocalRankFusion
        >>> p = Preferences.from_lists({"q": {"bm25": ["a", "b"], "dense": ["b"]}})
        >>> ReciprocalRankFusion(k=1).explain_items(p, "q")["a"]
        {'bm25': 0.5, 'dense': 0.0}
        """
        parts = self._explain_query(preferences, query, features)
        items = preferences.index.items[preferences.index.slots(query)]
        columns = [values.tolist() for values in parts.values()]
        return {
            item: {e: c[at] for e, c in zip(parts, columns, strict=True)} for at, item in enumerate(items)
        }

    def explain_order(
        self, preferences: Preferences, query: Id, above: Id, below: Id, features: Features | None = None
    ) -> dict[Id, float]:
        """How much each expert supports `above` over `below`, largest first; exact where `explain` is.

        >>> from podium import Preferences, ReciprocalRankFusion
        >>> p = Preferences.from_lists({"q": {"bm25": ["a", "b"], "dense": ["b"]}})
        >>> {e: round(v, 4) for e, v in ReciprocalRankFusion(k=1).explain_order(p, "q", "b", "a").items()}
        {'dense': 0.5, 'bm25': -0.1667}
        """
        up, down = (self.explain(preferences, query, item, features) for item in (above, below))
        gap = {e: up.get(e, 0.0) - down.get(e, 0.0) for e in dict.fromkeys((*up, *down))}
        return dict(sorted(gap.items(), key=lambda pair: -abs(pair[1])))

    @property
    def explains_exactly(self) -> bool:
        """Whether the contributions that `explain` returns add up to the score."""
        return self.tags.additive

    def _explain_query(self, preferences: Preferences, query: Id, features: Features | None) -> dict[Id, F8]:
        """Contributions of each expert to the items of a query, in the order of their slots."""
        check_forms(self, preferences)
        check_features(self, features)
        one = preferences.select([query])
        self._check_costs(one)
        return self._explain_slots(one, features)

    def _explain_slots(self, one: Preferences, features: Features | None) -> dict[Id, F8]:
        """Contributions of each expert to every slot of preferences that hold one query."""
        weights = self.expert_weights_for(one.experts)
        codes = {e: c for c, e in enumerate(one.experts) if one.active_experts[c]}
        alone = np.eye(len(one.experts))
        if self.tags.additive:
            return {
                e: self._compute_raw_outcome(one, weights * alone[c], features).scores
                for e, c in codes.items()
            }
        whole = self._compute_outcome(one, weights, features).scores
        return {
            e: whole - self._compute_outcome(one, weights * (1 - alone[c]), features).scores
            for e, c in codes.items()
        }

    def _compute_raw_outcome(
        self, preferences: Preferences, weights: F8, features: Features | None
    ) -> Outcome:
        with np.errstate(over="ignore", invalid="ignore"):  # values that are not finite raise an error below
            result = self._scores(preferences, weights)
        return result if isinstance(result, Outcome) else Outcome(result)

    def _compute_outcome(self, preferences: Preferences, weights: F8, features: Features | None) -> Outcome:
        """Scores with items that no expert ranks placed last; scores that overflow raise an error."""
        outcome, index = self._compute_raw_outcome(preferences, weights, features), preferences.index
        if not np.isfinite(outcome.scores).all():
            query = index.queries[int(index.query_of_slot[np.flatnonzero(~np.isfinite(outcome.scores))[0]])]
            raise InputError(
                f"the scores of query {query!r} are too large for {self.name}", remedy="rescale them"
            )
        scores = outcome.scores
        if outcome.absent is not None:
            scores = segments.put_last(scores, outcome.absent, index.starts)
        # a supervised method learns from the labels how to score items that no expert ranks
        unranked = None if self.tags.supervised else preferences.unranked_slots(weights > 0)
        if unranked is not None:
            scores = segments.put_last(scores, unranked, index.starts, if_needed=True)
        return outcome if scores is outcome.scores else dataclasses.replace(outcome, scores=scores)

    # -- for subclasses --------------------------------------------------------------------------------------

    @abstractmethod
    def _scores(self, preferences: Preferences, weights: F8) -> F8 | Outcome:
        """Scores by slot, larger is better; `weights` has one value per expert code."""

    def _estimate_costs(self, preferences: Preferences) -> Sequence[Cost]:
        """Resources beyond what grows linearly with the rows, estimated from the shape of the input alone.

        Methods with the tag `pairwise` report them here; see `podium.methods.costs`.
        """
        return ()

    def column_ranker(self) -> ColumnRanker | None:
        """A function from columns of lists directly to the first `top` results, if the method offers one.

        Batches use it. It gives the same bits as `aggregate`, or None for rows that it leaves to that.
        """
        return None

    def _check_costs(self, preferences: Preferences) -> None:
        """Reject an input that exceeds the limits before the computation starts."""
        check_costs(self.name, preferences.queries, self._estimate_costs(preferences))

    def expert_weights_for(self, experts: Sequence[Id]) -> F8:
        """One weight per expert, in order: the given weights, or 1."""
        return (
            np.ones(len(experts)) if self.weights is None else weights_for(self.weights, experts, self.name)
        )

    def _repr_html_(self) -> str:
        from podium.methods.method_html import render_method

        return render_method(self)


def _to_plain_value(value: Any) -> Any:
    """Convert to plain values that can be printed and saved; mappings are copied."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    if isinstance(value, Mapping):
        return {_to_plain_value(k): _to_plain_value(v) for k, v in value.items()}
    return value


def make(spec: str | type[Aggregator] | Aggregator, **parameters: Any) -> Aggregator:
    """An aggregator from its name, its printed form or its class.

    >>> make("rrf(k=20)")
    rrf(k=20)
    """
    if isinstance(spec, Aggregator):
        if parameters:
            raise ParameterError(f"{spec!r} already has its parameters; pass a name to create another method")
        return spec
    if isinstance(spec, type) and issubclass(spec, Aggregator):
        spec = spec.name
    if not isinstance(spec, str):
        raise ParameterError(f"the method is {spec!r}; give a name such as 'rrf', or an aggregator")
    name, given = params.parse_spec(spec)
    if name == "auto":
        raise ParameterError(
            "auto is not a method: it chooses one for given data; use podium.choose_method(preferences), or, on the "
            "command line, podium fuse FILES, and podium fit FILES -m auto -o MODEL to save what it chooses"
        )
    cls = registry.aggregators.get(name)
    values = replace_old_names(cls, given | parameters)
    known = {f.name for f in dataclasses.fields(cls) if f.init}
    for key in values:
        if key not in known:
            raise ParameterError(f"{name} has no parameter {key!r}; {params.suggest_names(key, known)}")
    made: Aggregator = cls(**values)
    return made
