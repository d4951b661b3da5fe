"""Preferences: the lists and votes of experts per query. Immutable, validated once, grouped by query."""

from __future__ import annotations

import enum
import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from podium.core.errors import InputError, ParameterError
from podium.core.params import suggest_names
from podium.core.settings import Unlisted
from podium.core.text import format_count
from podium.data.building.validate import (
    Duplicates,
    Origin,
    build_comparisons,
    build_lists,
    check_choice,
    row_origin,
)
from podium.data.fingerprints import compute_fingerprint, iterate_columns
from podium.data.ids import CodedColumn, Column, Id, Ids, code_ids
from podium.data.index import ItemIndex
from podium.data.lists import Comparisons, Lists
from podium.kernels import segments
from podium.kernels.dispatch import B1, I4, I8

if TYPE_CHECKING:
    from podium.data.frames import FrameBackend

__all__ = ["Form", "Preferences", "Unlisted"]


class Form(enum.Enum):
    """The forms of preference."""

    RANKING = "ranking"
    TOP_K = "top-k"
    RATING = "rating"
    COMPARISON = "comparison"


@dataclass(frozen=True, eq=False, repr=False)
class Preferences:
    """Lists and comparisons by experts over the items of queries.

    >>> p = Preferences.from_lists({"q1": {"bm25": ["a", "b"], "dense": ["b", "c"]}})
    >>> p
    Preferences(1 query, 3 items, 2 experts, 2 lists of 4 rows)
    >>> p.lists.rank.tolist(), p.index.items.tolist()
    ([1, 2, 1, 2], ['a', 'b', 'c'])
    """

    index: ItemIndex
    experts: Ids  # distinct, in id order
    lists: Lists
    comparisons: Comparisons
    unlisted: Unlisted = "unknown"  # "below": unlisted items rank below all listed ones

    # -- constructors ----------------------------------------------------------------------------------------

    @classmethod
    def from_rows(
        cls,
        query: Column,
        expert: Column,
        item: Column,
        *,
        rank: Sequence[float] | npt.NDArray[Any] | None = None,
        score: Sequence[float] | npt.NDArray[Any] | None = None,
        candidates: tuple[Column, Column] | None = None,
        duplicates: Duplicates = "error",
        unlisted: Unlisted = "unknown",
        blank_scores: bool = False,
        origin: Origin = row_origin,
    ) -> Preferences:
        """Lists from columns, one row per (query, expert, item) with a rank, a score, or both.

        `candidates` (query column, item column) names items to rank even if no expert lists them; their order
        defines the input order. A NaN score is an error, unless `blank_scores` allows it for lists without
        scores.

        >>> Preferences.from_rows([1, 1], ["e", "e"], ["a", "b"], score=[0.1, 0.9]).lists.rank.tolist()
        [1, 2]
        """
        check_choice("duplicates", duplicates, ("error", "first", "best", "sum"))
        check_choice("unlisted", unlisted, ("unknown", "below"))
        q, e, i = (
            code_ids(query, "query"),
            code_ids(expert, "expert").with_sorted_ids(),
            code_ids(item, "item"),
        )
        _check_lengths(query=q.codes, expert=e.codes, item=i.codes, rank=rank, score=score)
        all_q, all_i = q, i
        if candidates is not None:
            candidate_q, candidate_i = code_ids(candidates[0], "query"), code_ids(candidates[1], "item")
            _check_lengths(candidate_query=candidate_q.codes, candidate_item=candidate_i.codes)
            all_q = CodedColumn.concat((candidate_q, q), "query")
            all_i = CodedColumn.concat((candidate_i, i), "item")
        index, slot = ItemIndex.build(all_q, all_i)
        first = len(slot) - len(q.codes)  # candidates precede the rows
        lists = build_lists(
            all_q.codes[first:],
            e.codes,
            slot[first:],
            rank,
            score,
            sizes=index.sizes,
            experts=len(e.ids),
            duplicates=duplicates,
            blank_scores=blank_scores,
            origin=origin,
            name=lambda row: (
                f"item {i.ids[int(i.codes[row])]!r} in the list of expert {e.ids[int(e.codes[row])]!r} "
                f"for query {q.ids[int(q.codes[row])]!r}"
            ),
        )
        return cls(index, e.ids, lists, Comparisons.empty(len(index)), unlisted)

    @classmethod
    def from_lists(
        cls,
        lists: Mapping[Id, Mapping[Id, Iterable[Id] | Mapping[Id, float]]],
        *,
        duplicates: Duplicates = "error",
        unlisted: Unlisted = "unknown",
    ) -> Preferences:
        """Lists from nested mappings: query -> expert -> items, best first, or items with scores.

        >>> Preferences.from_lists({"q": {"judge": {"a": 3, "b": 5}}}).forms
        frozenset({<Form.RATING: 'rating'>})
        """
        given: Mapping[Id, Any] = lists
        rows: list[tuple[Id, Id, Any]] = []
        for query, by_expert in given.items():
            if not isinstance(by_expert, Mapping):
                raise InputError(
                    f"the lists for query {query!r} are {str(by_expert)[:60]!r}",
                    remedy="map experts to lists",
                )
            for expert, answer in by_expert.items():
                if not isinstance(answer, Iterable):
                    remedy = "give a list of items, or a mapping of items to scores"
                    raise InputError(
                        f"the list of {expert!r} for query {query!r} is {answer!r}", remedy=remedy
                    )
                rows.append((query, expert, answer))
        scored = {isinstance(answer, Mapping) for _, _, answer in rows}
        if len(scored) == 2:
            raise InputError(
                "some answers are lists and some map items to scores", remedy="use one form for all"
            )
        listed = [list(answer) for _, _, answer in rows]
        lengths = [len(items) for items in listed]
        # queries and experts with empty lists are kept too
        q = code_ids([q for q, _, _ in rows], "query")
        queries = code_ids(list(lists), "query").ids
        e = code_ids([e for _, e, _ in rows], "expert")
        ranks = [r for n in lengths for r in range(1, n + 1)]
        scores = [v for _, _, answer in rows if isinstance(answer, Mapping) for v in answer.values()]
        return cls.from_rows(
            CodedColumn(np.repeat(queries.codes_of(q.ids)[q.codes], lengths), queries),
            CodedColumn(np.repeat(e.codes, lengths), e.ids),
            [item for items in listed for item in items],
            rank=None if scored == {True} else ranks,
            score=scores if scored == {True} else None,
            duplicates=duplicates,
            unlisted=unlisted,
        )

    @classmethod
    def from_comparisons(
        cls,
        query: Column,
        expert: Column,
        winner: Column,
        loser: Column,
        *,
        tie: Sequence[bool] | npt.NDArray[Any] | None = None,
        weight: Sequence[float] | npt.NDArray[Any] | None = None,
        side: Sequence[int] | npt.NDArray[Any] | None = None,
        origin: Origin = row_origin,
    ) -> Preferences:
        """Votes from columns; in a row marked as `tie`, winner and loser are the two sides in any order.

        `side` is the order in which they were shown: 1 winner first, -1 loser first, 0 unknown.

        >>> Preferences.from_comparisons([0, 0], ["j", "j"], ["a", "b"], ["b", "c"])
        Preferences(1 query, 3 items, 1 expert, 2 comparisons)
        """
        q, e = code_ids(query, "query"), code_ids(expert, "expert").with_sorted_ids()
        w, o = code_ids(winner, "item"), code_ids(loser, "item")
        columns = {"winner": w.codes, "loser": o.codes, "tie": tie, "weight": weight, "side": side}
        _check_lengths(query=q.codes, expert=e.codes, **columns)
        shown = None if side is None else np.asarray(side)
        if shown is not None and not np.isin(shown, (-1, 0, 1)).all():
            raise InputError(
                "a side is not 1, -1 or 0", remedy="give 1 where the winner was shown first, else -1"
            )
        both = CodedColumn.concat((w, o), "item")
        # winner, loser, winner, loser ...
        sides = CodedColumn(both.codes.reshape(2, -1).T.reshape(-1), both.ids)
        index, slot = ItemIndex.build(CodedColumn(np.repeat(q.codes, 2), q.ids), sides)
        table = build_comparisons(
            q.codes, e.codes, slot[::2], slot[1::2], tie, weight, shown, queries=len(index), origin=origin
        )
        return cls(index, e.ids, Lists.empty(len(index)), table)

    @classmethod
    def from_frame(cls, frame: Any, **columns: Any) -> Preferences:
        """Lists or comparisons from any dataframe, or any object with `__arrow_c_stream__`: query, expert, item
        with rank or score; winner and loser, or item_a, item_b and winner; complete lists in a column of items; or
        a wide table with a column per expert. Columns are matched by name, or given explicitly; see
        `podium.data.frames.read_preferences`.
        """
        from podium.data.frames import read_preferences

        return read_preferences(frame, **columns)

    @classmethod
    def concat(cls, parts: Sequence[Preferences]) -> Preferences:
        """Combine several preferences; a duplicate item in a list is an error."""
        from podium.data.building.concat import concat_preferences

        return concat_preferences(parts)

    # -- facts -----------------------------------------------------------------------------------------------

    @property
    def queries(self) -> Ids:
        """Query ids in order of appearance."""
        return self.index.queries

    @functools.cached_property
    def forms(self) -> frozenset[Form]:
        """The forms of preference that occur."""
        forms = set()
        if len(self.comparisons):
            forms.add(Form.COMPARISON)
        if self.lists.rows and self.lists.score is not None:
            forms.add(Form.RATING)
        elif self.lists.rows:
            forms.add(Form.TOP_K if self.unlisted == "below" else Form.RANKING)
        return frozenset(forms)

    @functools.cached_property
    def fingerprint(self) -> str:
        """Sixteen hex digits of a hash of the content; equal data give equal fingerprints."""
        ids = [part.tolist() for part in (self.queries, self.experts, self.index.items)]
        columns = (self.index.starts.tobytes(), *iterate_columns(self.comparisons, self.lists))
        return compute_fingerprint(ids, columns, self.unlisted)

    def __len__(self) -> int:
        return len(self.index)

    def __eq__(self, other: object) -> bool:
        """Equal content, ignoring the input order of items."""
        if not isinstance(other, Preferences):
            return NotImplemented
        return self.fingerprint == other.fingerprint

    __hash__ = None  # type: ignore[assignment]

    def _repr_html_(self) -> str:
        from podium.data.notebook_html import render_preferences

        return render_preferences(self)

    def __repr__(self) -> str:
        counts = {"query": len(self), "item": len(self.index.items), "expert": len(self.experts)}
        if self.lists.rows:
            counts |= {"list": len(self.lists), "row": self.lists.rows}
        if len(self.comparisons):
            counts["comparison"] = len(self.comparisons)
        parts = [format_count(n, noun) for noun, n in counts.items()]
        if self.lists.rows:
            parts[3:5] = [f"{parts[3]} of {parts[4]}"]
        return f"Preferences({', '.join(parts)})"

    # -- parts -----------------------------------------------------------------------------------------------

    def select(self, queries: Iterable[Id]) -> Preferences:
        """Only these queries, in the given order."""
        return self.select_codes(np.array([self.index.query_code(q) for q in queries], np.int64))

    def select_codes(self, codes: I8) -> Preferences:
        """Only the queries with these codes."""
        index, old = self.index.select(codes)
        slot_map = np.full(len(self.index.items), -1, np.int64)
        slot_map[old] = np.arange(len(old))
        lists, votes = self.lists.select(codes, slot_map), self.comparisons.select(codes, slot_map)
        return Preferences(index, self.experts, lists, votes, self.unlisted)

    def with_experts(self, experts: Iterable[Id]) -> Preferences:
        """Only the preferences of these experts; the items to rank stay the same."""
        kept = np.zeros(len(self.experts), np.bool_)
        kept[[self.expert_code(expert) for expert in experts]] = True
        return self._keep_experts(kept)

    def without_expert(self, expert: Id) -> Preferences:
        """The preferences of all other experts."""
        return self._keep_experts(np.arange(len(self.experts)) != self.expert_code(expert))

    def expert_code(self, expert: Id) -> int:
        """Code of an expert id, or an error that suggests known ones."""
        code = self.experts.code_of(expert)
        if code is None:
            known = suggest_names(str(expert), map(str, self.experts))
            raise ParameterError(f"there is no expert {expert!r}; {known}")
        return code

    def _keep_experts(self, kept: B1) -> Preferences:
        new = segments.offsets(kept)[:-1]  # the new code of each kept expert
        lists = self.lists.keep(kept[self.lists.expert], new)
        votes = self.comparisons.keep(kept[self.comparisons.expert], new)
        return Preferences(self.index, self.experts.take(np.flatnonzero(kept)), lists, votes, self.unlisted)

    @functools.cached_property
    def active_experts(self) -> B1:
        """Which experts (by code) have a list or a vote here; a subset keeps the names of all experts."""
        active = np.zeros(len(self.experts), np.bool_)
        active[self.lists.expert] = active[self.comparisons.expert] = True
        return active

    def unranked_slots(self, counted: B1) -> B1 | None:
        """Which slots none of the given experts (by code) ranks, or None if there are none."""
        if counted.all():
            return self._unranked_slots
        lists, votes = self.lists, self.comparisons
        voted = counted[votes.expert]
        rows = counted[lists.expert][lists.list_of_row]
        return self._find_unranked(lists.item[rows], votes.winner[voted], votes.loser[voted])

    @functools.cached_property
    def _unranked_slots(self) -> B1 | None:
        return self._find_unranked(self.lists.item, self.comparisons.winner, self.comparisons.loser)

    def _find_unranked(self, *ranked: I4) -> B1 | None:
        unranked = np.ones(len(self.index.items), np.bool_)
        for slots in ranked:
            unranked[slots] = False
        return unranked if unranked.any() else None

    def with_unlisted(self, unlisted: Unlisted) -> Preferences:
        """The same preferences with another interpretation of unlisted items."""
        check_choice("unlisted", unlisted, ("unknown", "below"))
        return Preferences(self.index, self.experts, self.lists, self.comparisons, unlisted)

    def to_frame(self, backend: FrameBackend = "pyarrow") -> Any:
        """A dataframe of list rows (query, expert, item, rank, score); for votes: `comparisons_frame`."""
        from podium.data.frames import lists_frame

        return lists_frame(self, backend)

    def comparisons_frame(self, backend: FrameBackend = "pyarrow") -> Any:
        """A dataframe of the votes (query, expert, winner, loser, tie, weight)."""
        from podium.data.frames import comparisons_frame

        return comparisons_frame(self, backend)


def _check_lengths(**columns: Any) -> None:
    lengths = {name: len(column) for name, column in columns.items() if column is not None}
    if len(set(lengths.values())) > 1:
        raise InputError(f"the columns differ in length: {lengths}", remedy="give one value per row in each")
