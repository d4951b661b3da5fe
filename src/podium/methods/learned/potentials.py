"""Potentials of the CRF: numbers by expert and item, each with a learned weight.

The energy of a ranking is a sum over places of the score of the item there times the weight of the place, and a score
is a sum of potentials times learned weights. A potential may be computed from anything in the preferences (ranks,
scores, comparisons with all other items), but it describes one item: it cannot depend on the place that the item gets
or on the items above it. The weights of places decrease, so the most probable ranking is exactly the items sorted by
score. Terms of two places at once, as in Kemeny's problem, would need a search; the interface has no room for them.
"""

from __future__ import annotations

import functools
import hashlib
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Annotated, Any, ClassVar

import numpy as np
import numpy.typing as npt

from podium.core import params, registry
from podium.core.errors import InputError, ParameterError
from podium.core.params import Range
from podium.data.preferences import Preferences
from podium.kernels import preference_svd
from podium.kernels.dispatch import B1, F8, I8
from podium.methods.learned.expert_matrices import Transform, build_expert_matrices

__all__ = [
    "Absence",
    "ListEntries",
    "LogRank",
    "PairwiseSums",
    "Potential",
    "ReciprocalRank",
    "collect_entries",
    "compute_columns",
    "describe_definitions",
    "name_columns",
    "parse_potentials",
]


@dataclass(frozen=True, eq=False)
class ListEntries:
    """One entry for every item of a query and every expert with a list or a vote there."""

    preferences: Preferences
    expert: I8  # code in `preferences.experts`
    query: I8  # code in `preferences.queries`
    slot: I8  # of the item, in `preferences.index`
    listed: B1  # whether the expert lists the item, or votes on it
    above: F8  # sum over the other items of the strength with which the expert prefers this one
    below: F8  # sum over the other items of the strength with which the expert prefers them to this one

    @property
    def rank(self) -> F8:
        """The rank in the expert's list, from 1; NaN for items outside the list."""
        return self._fill_column(self.preferences.lists.rank)

    @property
    def score(self) -> F8:
        """The score that the expert gave; NaN without one."""
        scores = self.preferences.lists.score
        return np.full(len(self.slot), np.nan) if scores is None else self._fill_column(scores)

    @property
    def length(self) -> F8:
        """The number of items in the expert's list, 0 for experts with votes only."""
        rows, owner = self._rows_and_entries
        length = np.zeros(len(self.slot))
        length[owner] = self.preferences.lists.lengths[self.preferences.lists.list_of_row[rows]]
        key = self.query * len(self.preferences.experts) + self.expert
        _, pair = np.unique(key, return_inverse=True)
        longest = np.zeros(int(pair.max(initial=-1)) + 1)
        np.maximum.at(longest, pair, length)
        return longest[pair]

    @property
    def items(self) -> F8:
        """The number of items of the query."""
        return self.preferences.index.sizes[self.query].astype(np.float64)

    def _fill_column(self, by_row: npt.NDArray[Any]) -> F8:
        rows, owner = self._rows_and_entries
        column = np.full(len(self.slot), np.nan)
        column[owner] = by_row[rows]
        return column

    @functools.cached_property
    def _rows_and_entries(self) -> tuple[I8, I8]:
        """The rows of lists that have an entry, and that entry."""
        lists, experts = self.preferences.lists, len(self.preferences.experts)
        key = self.slot * experts + self.expert
        order = np.argsort(key, kind="stable")
        row_key = lists.item.astype(np.int64) * experts + lists.expert[lists.list_of_row]
        at = np.minimum(np.searchsorted(key, row_key, sorter=order), max(len(key) - 1, 0))
        rows = np.flatnonzero(key[order[at]] == row_key) if len(key) else np.zeros(0, np.int64)
        return rows, order[at[rows]]


def collect_entries(
    preferences: Preferences, transform: Transform, power: float, counts: B1, others: bool = False
) -> ListEntries:
    """Entries of the experts that count; sums are divided by (items of the query) ** power.

    With `others`, by (items less one) ** power, the number of terms of a sum.
    """
    codes = np.where(counts, np.arange(len(counts)), -1)
    grouped = build_expert_matrices(preferences, transform, codes)
    m, sizes = grouped.matrices, grouped.matrices.sizes
    above, below = preference_svd.sum_rows_and_columns(m)
    base = m.slots[m.query] - m.starts_out[:-1]  # slot less entry
    which = np.arange(len(m.query))
    by_list = np.repeat(np.repeat(which, np.diff(m.list_starts)), np.diff(m.starts))
    by_vote = np.repeat(which, np.diff(m.vote_starts))
    listed = np.zeros(len(above), np.bool_)
    for slot, owner in ((m.item, by_list), (m.winner, by_vote), (m.loser, by_vote)):
        listed[slot - base[owner]] = True
    terms = np.maximum(sizes - 1, 1) if others else sizes
    spread = np.repeat(terms.astype(np.float64) ** power, sizes)
    return ListEntries(
        preferences,
        np.repeat(grouped.group, sizes),
        np.repeat(m.query, sizes),
        np.arange(len(above)) + np.repeat(base, sizes),
        listed,
        above / spread,
        below / spread,
    )


@dataclass(frozen=True, kw_only=True, repr=False)
class Potential(params.ParameterDataclass, ABC):
    """Base of all potentials: a subclass with a `name` is registered, and can be named in `crf(potentials=...)`.

    `unlisted` is the value of items that the expert does not list. Training stores differences from it, which saves
    memory: a constant in a query changes no ranking.
    """

    columns: ClassVar[tuple[str, ...]] = ()  # names of the values; by default one, named like the potential
    unlisted: ClassVar[float] = 0.0

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if cls.__dict__.get("name"):
            registry.potentials.add(cls.name, cls)

    def __post_init__(self) -> None:
        params.validate(self)

    @abstractmethod
    def compute_values(self, entries: ListEntries) -> npt.NDArray[Any]:
        """One finite number per entry, or a row of one number per column."""


@dataclass(frozen=True, kw_only=True, repr=False)
class Absence(Potential):
    """1 for items that the expert does not list."""

    name = "absence"
    unlisted = 1.0

    def compute_values(self, entries: ListEntries) -> F8:
        """See the class."""
        return np.where(entries.listed, 0.0, 1.0)


@dataclass(frozen=True, kw_only=True, repr=False)
class PairwiseSums(Potential):
    """Sums of the expert's preferences for an item over others (preferred), and for others over it (beaten)."""

    name = "pairwise"
    columns = ("preferred", "beaten")

    def compute_values(self, entries: ListEntries) -> F8:
        """See the class."""
        return np.stack([entries.above, -entries.below], axis=1)


@dataclass(frozen=True, kw_only=True, repr=False)
class ReciprocalRank(Potential):
    """1 / (k + rank), 0 for items outside the list."""

    name = "reciprocal_rank"

    k: Annotated[float, Range(0, 1e6), "offset: the larger, the flatter the top"] = 5

    def compute_values(self, entries: ListEntries) -> F8:
        """See the class."""
        return np.asarray(np.nan_to_num(1.0 / (self.k + entries.rank)))


@dataclass(frozen=True, kw_only=True, repr=False)
class LogRank(Potential):
    """1 - log(rank) / log(depth + 1), at least 0; 0 for items outside the list."""

    name = "log_rank"

    depth: Annotated[float, Range(1, 1e9), "the rank from which all items count alike"] = 1000

    def compute_values(self, entries: ListEntries) -> F8:
        """See the class."""
        return np.asarray(
            np.nan_to_num(np.maximum(0.0, 1.0 - np.log(entries.rank) / np.log(self.depth + 1.0)))
        )


def parse_potentials(given: str | Sequence[str | Potential]) -> tuple[Potential, ...]:
    """Potentials from their names, as a sequence or joined by "+"; each may have its parameters.

    >>> parse_potentials("absence + reciprocal_rank(k=10)")
    (absence, reciprocal_rank(k=10))
    """
    # a plus sign inside parentheses belongs to a number
    specs = re.split(r"\+(?![^(]*\))", given) if isinstance(given, str) else given
    if not isinstance(specs, Sequence) or not specs:
        raise ParameterError(f"crf: potentials is {given!r}; give names such as 'absence + pairwise'")
    chosen: list[Potential] = []
    for spec in specs:
        if isinstance(spec, Potential):
            chosen.append(spec)
            continue
        if not isinstance(spec, str):
            raise ParameterError(f"crf: a potential is {spec!r}; give a name such as 'pairwise'")
        name, values = params.parse_spec(spec.strip())
        cls = registry.potentials.get(name)
        known = {f.name for f in fields(cls)}
        for key in values:
            if key not in known:
                raise ParameterError(
                    f"potential {name} has no parameter {key!r}; {params.suggest_names(key, known)}"
                )
        chosen.append(cls(**values))
    if len(set(chosen)) < len(chosen):
        raise ParameterError(f"crf: potentials is {given!r}; name each potential once")
    return tuple(chosen)


def name_columns(potentials: Sequence[Potential]) -> list[str]:
    """One name per value; that of a potential with changed parameters contains them."""
    names: list[str] = []
    for potential in potentials:
        own = repr(potential)
        columns = potential.columns or (own,)
        names += columns if own in (potential.name, *columns) else [f"{own} {column}" for column in columns]
    return names


def compute_columns(potentials: Sequence[Potential], entries: ListEntries) -> F8:
    """The values of all potentials, one row per entry; a potential that breaks the rules raises an error."""
    parts = []
    for potential in potentials:
        shape = (len(entries.slot), len(potential.columns or (potential.name,)))
        values = np.asarray(potential.compute_values(entries))
        if values.shape == shape[:1]:
            values = values[:, None]
        if values.shape != shape or values.dtype.kind not in "biuf":
            raise InputError(
                f"potential {potential!r} returned {values.dtype} values of shape {values.shape}",
                remedy=f"return numbers of shape {shape}, one row per entry",
            )
        if not np.isfinite(values).all():
            raise InputError(
                f"potential {potential!r} returned a value that is not finite",
                remedy="items outside a list have no rank (NaN): give them a value",
            )
        parts.append(values.astype(np.float64))
    return np.concatenate(parts, axis=1)


def describe_definitions(potentials: Sequence[Potential]) -> str:
    """A text that changes when a potential is defined otherwise: a key for stored values."""
    texts = []
    for potential in potentials:
        code = potential.compute_values.__func__.__code__  # type: ignore[attr-defined]
        # constants in the code of other modules' functions are not seen
        digest = hashlib.blake2b(code.co_code + repr((code.co_consts, code.co_names)).encode(), digest_size=8)
        texts.append(f"{potential!r}#{digest.hexdigest()}")
    return " + ".join(texts)
