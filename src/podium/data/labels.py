"""Ground truth: grades of (query, item) pairs, rankings, or pairs of a better and a worse item."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from podium.core.errors import InputError, check_type
from podium.core.text import format_count
from podium.data.building.validate import Origin, check_numbers, row_origin
from podium.data.ids import Column, Id, Ids, code_ids
from podium.data.index import ItemIndex
from podium.kernels import segments
from podium.kernels.dispatch import F8, I8

if TYPE_CHECKING:
    from podium.data.frames import FrameBackend
    from podium.data.pair_labels import PairLabels
    from podium.data.preferences import Preferences

__all__ = ["LabelKind", "Labels"]

LabelKind = Literal["grades", "rankings", "pairs"]


@dataclass(frozen=True, eq=False, repr=False)
class Labels:
    """Grades; NaN marks candidate items without a judgement. Larger is better; 0 or less is not relevant.

    >>> labels = Labels.from_dict({"q": {"a": 2, "b": 0}})
    >>> labels, labels.grade("q", "a")
    (Labels(1 query, 2 judged items, grades 0..2), 2.0)
    """

    index: ItemIndex
    grades: F8
    # rankings: grades are positions from the bottom, of which the order counts and nothing else
    kind: LabelKind = "grades"
    # values computed from these labels, by index and by caller; never passed on to a copy with other grades
    _aligned: weakref.WeakKeyDictionary[ItemIndex, F8] = field(
        default_factory=weakref.WeakKeyDictionary, init=False
    )
    memo: dict[Any, Any] = field(default_factory=dict, init=False)

    @classmethod
    def from_rows(
        cls,
        query: Column,
        item: Column,
        grade: Sequence[float] | npt.NDArray[Any],
        *,
        origin: Origin = row_origin,
    ) -> Labels:
        """Grades from columns; two grades for the same item and query are an error."""
        q, i = code_ids(query, "query"), code_ids(item, "item")
        value = check_numbers(grade, "grade", origin)
        if not len(q.codes) == len(i.codes) == len(value):
            raise InputError(
                "the columns of the labels differ in length", remedy="give one value per row in each"
            )
        index, slot = ItemIndex.build(q, i)
        if len(index.items) < len(slot):
            order = np.argsort(slot, kind="stable")
            row = int(order[1:][slot[order][1:] == slot[order][:-1]].min())
            source, line = origin(row)
            raise InputError(
                f"item {i.ids[int(i.codes[row])]!r} is labeled twice for query {q.ids[int(q.codes[row])]!r}",
                source=source,
                line=line,
                remedy="keep one label per item",
            )
        grades = np.empty(len(slot))
        grades[slot] = value
        return cls(index, grades)

    @classmethod
    def from_dict(cls, grades: Mapping[Id, Mapping[Id, float]]) -> Labels:
        """Grades from a nested mapping: query -> item -> grade."""
        for given in (grades, *(grades.values() if isinstance(grades, Mapping) else ())):
            check_type(
                given, Mapping, "Labels.from_dict", "give query -> item -> grade, as in {'q1': {'d1': 2}}"
            )
        rows = [(q, i, g) for q, by_item in grades.items() for i, g in by_item.items()]
        columns = list(zip(*rows, strict=True)) or [(), (), ()]
        return cls.from_rows(*columns)

    @classmethod
    def from_rankings(cls, rankings: Mapping[Id, Sequence[Id | Sequence[Id]]]) -> Labels:
        """The true order of some or all items of each query, best first; a nested sequence holds tied items.

        Only the order is known, so metrics of agreement accept them (tau_a, tau_b, tau_ap, rho, footrule, pairs), and
        learners with one of the metrics tau_a and pairs. Metrics that need grades refuse them.

        >>> labels = Labels.from_rankings({"q": ["a", ["b", "c"], "d"]})
        >>> labels, [labels.grade("q", item) for item in "abcd"]
        (Labels(1 query, rankings of 4 items), [2.0, 1.0, 1.0, 0.0])
        """
        remedy = "give query -> items from the best, as in {'q1': ['d2', 'd1']}"
        check_type(rankings, Mapping, "Labels.from_rankings", remedy)
        rows: list[tuple[Id, Id, float]] = []
        for query, ranking in rankings.items():
            if isinstance(ranking, str) or not isinstance(ranking, Sequence):
                raise InputError(f"the ranking of query {query!r} is {ranking!r}", remedy=remedy)
            for below, place in enumerate(reversed(ranking)):
                tied: Sequence[Any] = place if isinstance(place, list | tuple) else [place]
                rows += [(query, item, float(below)) for item in tied]
        columns = list(zip(*rows, strict=True)) or [(), (), ()]
        made = cls.from_rows(*columns)
        return cls(made.index, made.grades, "rankings")

    @classmethod
    def from_pairs(cls, pairs: Mapping[Id, Iterable[Sequence[Any]]]) -> PairLabels:
        """Pairs (better, worse) or (better, worse, weight) of each query; see `PairLabels`.

        Pairs may contradict each other. The metrics tau_a and pairs accept them, and learners with one of these.

        >>> Labels.from_pairs({"q": [("a", "b"), ("b", "c"), ("c", "a", 0.5)]})
        Labels(1 query, 3 pairs)
        """
        remedy = "give query -> pairs (better, worse) or (better, worse, weight)"
        check_type(pairs, Mapping, "Labels.from_pairs", remedy)
        rows: list[tuple[Id, Id, Id, float]] = []
        for query, some in pairs.items():
            for pair in some:
                if isinstance(pair, str) or not isinstance(pair, Sequence) or not 2 <= len(pair) <= 3:
                    raise InputError(f"a pair of query {query!r} is {pair!r}", remedy=remedy)
                if pair[0] == pair[1]:
                    raise InputError(
                        f"query {query!r} compares item {pair[0]!r} with itself", remedy="leave the pair out"
                    )
                rows.append((query, pair[0], pair[1], pair[2] if len(pair) == 3 else 1.0))
        return cls._build_pairs(*(list(zip(*rows, strict=True)) or [(), (), (), ()]))

    @classmethod
    def _build_pairs(cls, query: Column, better: Column, worse: Column, weight: Any) -> PairLabels:
        from podium.data.pair_labels import PairLabels, PairTable

        weights = check_numbers(weight, "weight of a pair", row_origin)
        if (weights <= 0).any():
            raise InputError(
                f"the weight of a pair is {weights.min():g}", remedy="give weights above 0, or leave it out"
            )
        index, slot = ItemIndex.build(
            code_ids([*query, *query], "query"), code_ids([*better, *worse], "item")
        )
        up, down = slot[: len(weights)].astype(np.int64), slot[len(weights) :].astype(np.int64)
        # the same pair twice is one pair of twice the weight
        keys, at = np.unique(up * max(1, len(index.items)) + down, return_inverse=True)
        up, down = keys // max(1, len(index.items)), keys % max(1, len(index.items))
        of_query = index.query_of_slot[up]
        order = np.argsort(of_query, kind="stable")
        starts = segments.offsets(np.bincount(of_query, minlength=len(index)))
        sums = np.bincount(at, weights, len(keys)).astype(np.float64, copy=False)
        return PairLabels(index, PairTable(starts, up[order], down[order], sums[order]))

    @classmethod
    def from_preferences(cls, preferences: Preferences) -> Labels:
        """Rankings or votes as ground truth, in any form that Podium reads.

        One list per query and no votes give rankings. Otherwise every list and every vote gives pairs, whose weights
        add up over the experts; tied items give none.

        >>> from podium import Preferences
        >>> Labels.from_preferences(Preferences.from_lists({"q": {"truth": ["a", "b"]}}))
        Labels(1 query, rankings of 2 items)
        """
        lists, votes, index = preferences.lists, preferences.comparisons, preferences.index
        if not len(votes) and (np.diff(lists.query_starts) <= 1).all():
            grades = np.full(len(index.items), np.nan)
            # groups of equal ranks, counted from the bottom of each list
            new = np.diff(lists.rank, prepend=0) != 0
            new[lists.starts[:-1][lists.lengths > 0]] = True
            group = np.cumsum(new)
            last = np.zeros(len(lists), np.int64)
            np.maximum.at(last, lists.list_of_row, group)
            grades[lists.item] = last[lists.list_of_row] - group
            return cls(index, grades, "rankings")
        better, worse, weight = (
            [votes.winner[~votes.tie]],
            [votes.loser[~votes.tie]],
            [votes.weight[~votes.tie]],
        )
        for a, b in itertools.pairwise(lists.starts.tolist()):
            up, down = np.nonzero(lists.rank[a:b, None] < lists.rank[a:b])
            better.append(lists.item[a:b][up])
            worse.append(lists.item[a:b][down])
            weight.append(np.ones(len(up)))
        up, down = np.concatenate(better), np.concatenate(worse)
        query = index.queries.take(index.query_of_slot[up]).tolist()
        names = [index.items.take(slots.astype(np.int64)).tolist() for slots in (up, down)]
        return cls._build_pairs(query, names[0], names[1], np.concatenate(weight))

    @classmethod
    def from_frame(cls, frame: Any, **columns: Any) -> Labels:
        """Grades from any dataframe; see `podium.data.frames.read_labels`."""
        from podium.data.frames import check_parameters, read_labels

        check_parameters(columns, ("query", "item", "grade"), "Labels.from_frame")
        return read_labels(frame, **columns)

    @property
    def queries(self) -> Ids:
        """Query ids in order of appearance."""
        return self.index.queries

    def grade(self, query: Id, item: Id) -> float:
        """One grade."""
        return float(self.grades[self.index.slot(query, item)])

    def align(self, index: ItemIndex) -> F8:
        """The grade of each slot of another index, NaN where there is none. Cached per index."""
        if index is self.index:
            return self.grades
        grades = self._aligned.get(index)
        if grades is None:
            at = index.locate(self.index)
            grades = np.where(at >= 0, self.grades[at] if len(self.grades) else np.nan, np.nan)
            self._aligned[index] = grades
        return grades

    def select_codes(self, codes: I8) -> Labels:
        """Only the queries with these codes."""
        index, old = self.index.select(codes)
        return Labels(index, self.grades[old], self.kind)

    def __reduce__(self) -> tuple[Any, ...]:
        return Labels, (self.index, self.grades, self.kind)

    def select(self, queries: Sequence[Id]) -> Labels:
        """Only these queries."""
        return self.select_codes(np.array([self.index.query_code(q) for q in queries], np.int64))

    def to_frame(self, backend: FrameBackend = "pyarrow") -> Any:
        """A dataframe of query, item, grade; unjudged items are left out."""
        from podium.data.frames import labels_frame

        return labels_frame(self, backend)

    def __len__(self) -> int:
        return len(self.index)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Labels):
            return NotImplemented
        same_ids = self.index.queries == other.index.queries and self.index.items == other.index.items
        same_kind = self.kind == other.kind
        return same_ids and same_kind and np.array_equal(self.grades, other.grades, equal_nan=True)

    __hash__ = None  # type: ignore[assignment]

    def _repr_html_(self) -> str:
        from podium.data.notebook_html import render_labels

        return render_labels(self)

    def __repr__(self) -> str:
        judged = self.grades[~np.isnan(self.grades)]
        if self.kind == "rankings":
            items = format_count(len(judged), "item")
            return f"Labels({format_count(len(self), 'query')}, rankings of {items})"
        span = f", grades {judged.min():g}..{judged.max():g}" if len(judged) else ""
        counts = f"{format_count(len(self), 'query')}, {format_count(len(judged), 'judged item')}"
        return f"Labels({counts}{span})"
