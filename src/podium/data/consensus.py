"""The result: one ranking per query, with its provenance."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from podium.core.errors import ParameterError
from podium.core.settings import TieRule
from podium.core.text import format_count
from podium.data.building.validate import check_choice
from podium.data.ids import Id, Ids
from podium.data.index import ItemIndex
from podium.kernels import ordering, segments
from podium.kernels.dispatch import B1, F8, I4

if TYPE_CHECKING:
    from podium.data.frames import FrameBackend
    from podium.data.preferences import Preferences

__all__ = ["Consensus", "Diagnostics", "RankedItem", "TieRule"]


class RankedItem(NamedTuple):
    """One position in a ranking; `tied` means that another item has the same score."""

    item: Id
    rank: int
    score: float
    tied: bool


@dataclass(frozen=True)
class Diagnostics:
    """How the method arrived at the result."""

    converged: bool = True
    iterations: int | None = None
    objective: float | None = None
    seconds: float = 0.0
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False, repr=False)
class Consensus:
    """Scores by slot and the resulting order; larger is always better.

    >>> from podium import Preferences, ReciprocalRankFusion
    >>> c = ReciprocalRankFusion().aggregate(Preferences.from_lists({"q": {1: ["a", "b"], 2: ["b", "c"]}}))
    >>> c.ranking("q"), c["q"][0].rank
    (['b', 'a', 'c'], 1)
    """

    index: ItemIndex
    scores: F8  # by slot
    order: I4  # slots, query by query, best first
    tied: B1  # by position in `order`
    method: str = ""
    ties: TieRule = "item"
    source: Preferences | None = None  # the input
    diagnostics: Diagnostics = field(default_factory=Diagnostics)
    experts: Ids | None = None
    expert_weights: F8 | None = None
    p_values: F8 | None = None  # by slot, of the methods that test each item

    @classmethod
    def from_scores(
        cls,
        index: ItemIndex,
        scores: F8,
        *,
        ties: TieRule = "item",
        tolerance: float = ordering.TOLERANCE,
        floor: float = ordering.FLOOR,
        magnitude: float | F8 = 0.0,
        overwrite: bool = False,
        **about: Any,
    ) -> Consensus:
        """Order the items of each query by descending score; ties by `ties`.

        `item` puts the smaller id first, `trec` the larger (as trec_eval does), `input` the first in the
        input. `overwrite` snaps tied scores in the given array. The other parameters define which scores are
        tied; see `podium.kernels.ordering`.
        """
        check_choice("ties", ties, ("item", "trec", "input"))
        key = index.arrival if ties == "input" else None
        if ties == "trec":
            key = np.arange(len(index.items), 0, -1, dtype=np.int32)
        snapped, order, tied = ordering.rank_order(
            scores, index.starts, key, tolerance, floor, magnitude, overwrite=overwrite
        )
        return cls(index, snapped, order, tied, ties=ties, **about)

    def with_ties(self, ties: TieRule, *, single: bool = False) -> Consensus:
        """The same scores with another tie rule.

        `single` compares them as 32-bit floats: `with_ties("trec", single=True)` is the order of trec_eval.
        """
        scores = self.scores
        if single:
            largest = np.finfo(np.float32).max
            scores = np.clip(scores, -largest, largest).astype(np.float32).astype(np.float64)
        new = Consensus.from_scores(self.index, scores, ties=ties, tolerance=0.0)
        return replace(self, scores=new.scores, order=new.order, tied=new.tied, ties=ties)

    @property
    def fingerprint(self) -> str:
        """Fingerprint of the input preferences, or an empty string."""
        return "" if self.source is None else self.source.fingerprint

    @property
    def queries(self) -> Ids:
        """Query ids in order of appearance."""
        return self.index.queries

    @property
    def ranks(self) -> I4:
        """Position 1..M of each slot, ties broken."""
        ranks = np.empty(len(self.order), np.int32)
        ranks[self.order] = np.arange(len(self.order)) - self.index.starts[self.index.query_of_slot] + 1
        return ranks

    def __len__(self) -> int:
        return len(self.index)

    def __iter__(self) -> Iterator[Id]:
        return iter(self.queries)

    def __getitem__(self, query: Id) -> list[RankedItem]:
        here = self.index.slots(query)
        items, scores, tied = self.index.items[here], self.scores[here].tolist(), self.tied[here].tolist()
        order = (self.order[here] - here.start).tolist()
        return [RankedItem(items[i], place + 1, scores[i], tied[place]) for place, i in enumerate(order)]

    def ranking(self, query: Id, k: int | None = None) -> list[Id]:
        """The items of one query, best first."""
        here = self.index.slots(query)
        items = self.index.items[here]
        return [items[slot - here.start] for slot in self.order[here][:k].tolist()]

    def top(self, k: int) -> Consensus:
        """The best k items of each query, as a new consensus; ranks and scores are unchanged."""
        if k < 1:
            raise ParameterError(f"k is {k}; accepted: whole numbers from 1")
        place = np.arange(len(self.order)) - self.index.starts[self.index.query_of_slot]
        top = place < k
        kept = np.zeros(len(self.order), np.bool_)
        kept[self.order[top]] = True
        order = segments.offsets(kept)[self.order[top]].astype(np.int32)
        index = self.index.keep(kept)
        p_values = None if self.p_values is None else self.p_values[kept]
        return replace(
            self,
            index=index,
            scores=self.scores[kept],
            order=order,
            tied=self.tied[top],
            p_values=p_values,
        )

    def to_dict(self) -> dict[Id, dict[Id, float]]:
        """query -> item -> score, best first."""
        return {q: {r.item: r.score for r in self[q]} for q in self.queries}

    def to_frame(self, backend: FrameBackend = "pyarrow", *, top: int | None = None) -> Any:
        """A dataframe of query, item, rank, score, tied; best first, at most `top` items per query.

        Methods that test each item add the column p_value.
        """
        from podium.data.frames import consensus_frame

        return consensus_frame(self, backend, top)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The rows of `to_frame` through the Arrow PyCapsule protocol: `pl.DataFrame(consensus)`, DuckDB, pyarrow."""
        return self.to_frame().__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        """The schema of these rows."""
        return self.to_frame(top=1).schema.__arrow_c_schema__()

    def _repr_html_(self) -> str:
        from podium.data.notebook_html import render_consensus

        return render_consensus(self)

    def __repr__(self) -> str:
        queries = format_count(len(self), "query")
        ties = f", {int(self.tied.sum()):,} tied" if self.tied.any() else ""
        state = "" if self.diagnostics.converged else ", NOT CONVERGED"
        return f"Consensus({self.method or 'scores'}: {queries}, {len(self.order):,} items{ties}{state})"
