"""What a dialect states about itself, and the two templates of dialects: points by rank, and scores of lists."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal

import numpy as np

from podium.core.errors import ParameterError
from podium.core.params import Range, Tune
from podium.data.ids import Id
from podium.data.lists import Lists
from podium.data.preferences import Preferences
from podium.kernels.dispatch import F8
from podium.kernels.list_normalizers import round_to_single, sum_by_item
from podium.kernels.ordering import TOLERANCE
from podium.methods.base import LIST_FORMS, Aggregator, Outcome, Tags
from podium.methods.dialects.textbook import Textbook

__all__ = [
    "DIALECT_TAGS",
    "Dialect",
    "DialectMethod",
    "RankDialect",
    "ReciprocalRankDialect",
    "ScoreDialect",
    "WeightRule",
    "apply_rules",
    "check_rules",
    "sum_weights_by_query",
]

# any number from 0; in [0, 1]; in [0, 1] and sum to 1; one number alpha for two lists; inside the rank; none
WeightRule = Literal["free", "unit", "simplex", "alpha", "inside", "none"]
Precision = Literal["single", "double"]
TOLERANCES: dict[Precision, float] = {"single": 1e-6, "double": TOLERANCE}
DIALECT_TAGS = Tags(accepts=LIST_FORMS, additive=True, dialect=True)


@dataclass(frozen=True)
class Dialect:
    """How an engine fuses lists, as data for the documentation and for `podium deploy`."""

    engine: str  # its name in `podium deploy --to`
    call: str  # what the engine calls it
    formula: str  # the term of rank r or score x with weight w
    weights: WeightRule
    absent: str = "nothing"  # what an item gets from a list without it
    flat: str = ""  # what a list of one score, or of equal scores, gives; empty: scores do not matter
    ties: str = "in the engine's internal order"  # items with equal results
    precision: Precision = "single"
    depth: str = ""  # the setting that cuts each list before it is fused
    fewest_lists: int = 1
    most_lists: int | None = None
    verified: str = ""  # the component that the formula was compared with

    @property
    def tolerance(self) -> float:
        """Relative difference below which two scores are equal in the engine's precision."""
        return TOLERANCES[self.precision]

    def describe_list_limit(self, count: int) -> str:
        """The limit that `count` lists break, such as "at most 5 lists"; empty if they break none."""
        if count < self.fewest_lists:
            return f"at least {self.fewest_lists} lists"
        return f"at most {self.most_lists} lists" if self.most_lists and count > self.most_lists else ""


@dataclass(kw_only=True, eq=False, repr=False)
class DialectMethod(Aggregator):
    """A method that computes what an engine computes; `dialect` says in which respects it differs from others.

    Ranks are used as they are given: an engine numbers the items of a list consecutively, in an internal
    order where scores are equal, so lists whose ranks come from tied scores share a rank here.
    """

    tags: ClassVar[Tags] = DIALECT_TAGS
    dialect: ClassVar[Dialect]

    def get_textbook(self) -> Textbook | None:
        """The textbook rule that has the same order, or is near to it; None if there is none."""
        return None

    def _scores(self, preferences: Preferences, weights: F8) -> Outcome:
        lists = preferences.lists
        term = self._compute_terms(preferences, weights[lists.expert][lists.list_of_row])
        largest = np.zeros(len(preferences.index))
        np.maximum.at(largest, lists.query_of_list[lists.list_of_row], np.abs(term))
        scores = self._combine_terms(preferences, term, weights)
        return Outcome(scores, tolerance=self.dialect.tolerance, magnitude=largest)

    @abstractmethod
    def _compute_terms(self, preferences: Preferences, weight: F8) -> F8:
        """The weighted term of every row; `weight` is that of its expert."""

    def _read_scores(self, preferences: Preferences) -> F8:
        """Scores of all rows in the engine's precision."""
        scores = preferences.lists.fill_scores(preferences.index.sizes)
        return round_to_single(scores) if self.dialect.precision == "single" else scores

    def _combine_terms(self, preferences: Preferences, term: F8, weights: F8) -> F8:
        return sum_by_item(preferences.lists.item, term, len(preferences.index.items))


@dataclass(kw_only=True, eq=False, repr=False)
class RankDialect(DialectMethod):
    """Terms that depend on the rank alone."""

    @abstractmethod
    def _points(self, rank: F8) -> F8:
        """Points for being at these ranks (1 = top)."""

    def _scores(self, preferences: Preferences, weights: F8) -> Outcome:
        # sums of positive points have a small relative error, however small they are
        return replace(super()._scores(preferences, weights), floor=0.0, magnitude=0.0)

    def _compute_terms(self, preferences: Preferences, weight: F8) -> F8:
        return weight * self._points(preferences.lists.rank.astype(np.float64))


@dataclass(kw_only=True, eq=False, repr=False)
class ReciprocalRankDialect(RankDialect):
    """The textbook points 1 / (k + rank); engines differ in the values of k, in weights and precision."""

    k: Annotated[float, Range(0, 10_000), Tune(1, 200, log=True), "larger values flatten the top"] = 60

    def _points(self, rank: F8) -> F8:
        return 1.0 / (self.k + rank)

    def get_textbook(self) -> Textbook | None:
        return Textbook("ranks", k=self.k, weights=self.weights)


@dataclass(kw_only=True, eq=False, repr=False)
class ScoreDialect(DialectMethod):
    """Terms that depend on the scores of a list; lists without scores use their ranks."""

    @abstractmethod
    def _normalize(self, lists: Lists, score: F8) -> F8:
        """The normalized score of every row."""

    def _compute_terms(self, preferences: Preferences, weight: F8) -> F8:
        return weight * self._normalize(preferences.lists, self._read_scores(preferences))


def check_rules(owner: str, name: str, given: Mapping[Id, str] | None, accepted: Sequence[str]) -> None:
    """Check a rule by expert: a mapping to accepted names."""
    if given is None:
        return
    if not isinstance(given, Mapping):
        raise ParameterError(
            f"{owner}: {name} is {given!r}; give a rule by expert, such as {{'dense': {accepted[0]!r}}}"
        )
    for expert, rule in given.items():
        if rule not in accepted:
            raise ParameterError(
                f"{owner}: {name} of {expert!r} is {rule!r}; accepted: {', '.join(accepted)}"
            )


def apply_rules(
    preferences: Preferences,
    default: str,
    given: Mapping[Id, str] | None,
    normalize: Callable[[str], F8],
) -> F8:
    """The rows of each expert under its own rule; `normalize` gives all rows under one."""
    if not given:
        return normalize(default)
    for expert in given:
        preferences.expert_code(expert)  # an unknown expert is an error
    lists, experts = preferences.lists, preferences.experts
    rules = np.array([given.get(e, default) for e in experts])[lists.expert][lists.list_of_row]
    scaled = np.zeros(lists.rows)
    for rule in np.unique(rules).tolist():
        scaled = np.where(rules == rule, normalize(rule), scaled)
    return scaled


def sum_weights_by_query(preferences: Preferences, weights: F8) -> F8:
    """Total weight of the experts with a list in the query of each slot; 1 where there is none."""
    lists, sizes = preferences.lists, preferences.index.sizes
    total = np.bincount(lists.query_of_list, weights=weights[lists.expert], minlength=len(sizes))
    shares: F8 = np.repeat(np.where(total > 0, total, 1.0), sizes)
    return shares
