"""What all adapters share: the method they were given, and the step from lists of documents to one list."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Generic, Literal, NamedTuple, TypeVar

import numpy as np

from podium.core.errors import InputError, Option, ParameterError, PodiumWarning
from podium.data.building.validate import Duplicates, check_choice
from podium.data.ids import CodedColumn, Id, Ids
from podium.data.preferences import Preferences
from podium.methods.base import Aggregator
from podium.methods.fuse import make_for_lists
from podium.models import load

__all__ = ["CONTRIBUTIONS", "FusedDocument", "ListFusion", "RankSource"]

# places as handed over, whatever the scores say; or competition ranks of the scores
RankSource = Literal["given", "scores"]
CONTRIBUTIONS = "podium_contributions"  # metadata key for the contributions by expert
DEFAULT_METHOD = "rrf"
Document = TypeVar("Document")


class FusedDocument(NamedTuple, Generic[Document]):
    """A document in the fused list: its first copy, its score, and what each expert contributed."""

    document: Document
    score: float
    contributions: dict[Id, float]


class ListFusion:
    """Fuses lists of documents by a method, with weights by expert, or by the method in a model file.

    `ranks="given"` uses the order in which documents were handed over, `ranks="scores"` their scores:
    documents of equal score then share a rank, as everywhere in Podium. Engines number equal scores
    consecutively, so the order they hand over is the default. Methods that combine scores use the scores in
    both cases.

    >>> fusion = ListFusion("rrf(k=1)", {"bm25": 2, "dense": 1})
    >>> lists = {"bm25": [("a", None), ("b", None)], "dense": [("b", None)]}
    >>> fused = fusion.fuse(lists, lambda pair: pair[0], lambda pair: pair[1])
    >>> [(document[0], round(score, 3)) for document, score, _ in fused], fused[0].contributions["dense"]
    ([('b', 1.167), ('a', 1.0)], 0.5)
    """

    def __init__(
        self,
        method: str | Aggregator = DEFAULT_METHOD,
        weights: Mapping[str, float] | None = None,
        model: str | os.PathLike[str] | None = None,
        ranks: RankSource = "given",
        experts: Iterable[str] | None = None,
    ) -> None:
        check_choice("ranks", ranks, ("given", "scores"))
        self.ranks = ranks
        # of two copies in a list, the one at the better place counts
        self.duplicates: Duplicates = "first" if ranks == "given" else "best"
        if model is None:
            if weights is not None and not isinstance(weights, Mapping):
                raise ParameterError(f"the weights are {weights!r}; give one per expert, by name")
            self.aggregator = make_for_lists(
                {}, method, None if weights is None else dict(weights.items()), {}
            )
        else:
            if method != DEFAULT_METHOD or weights is not None:
                raise ParameterError(
                    "a model file has a method and its weights; give ",
                    Option("model", of="setting"),
                    " alone",
                )
            loaded = load(model)
            if not isinstance(loaded, Aggregator):
                raise ParameterError(f"{model} holds a {type(loaded).__name__}, which does not fuse lists")
            self.aggregator = loaded
        if experts is not None:
            # names that do not match are an error now rather than at the first query
            self.aggregator.expert_weights_for(list(experts))

    def fuse(
        self,
        lists: Mapping[str, Sequence[Document]],
        find_id: Callable[[Document], Id],
        find_score: Callable[[Document], float | None],
        *,
        top: int | None = None,
        contributions: bool = True,
    ) -> list[FusedDocument[Document]]:
        """One list, best first, at most `top` documents; the lists are top-k lists, by expert.

        A document that occurs twice in a list counts once, at its better place. Ties are broken by the order
        in which documents were handed over.
        """
        if top is not None and top < 1:
            raise ParameterError(f"the number of documents is {top}; accepted: whole numbers from 1")
        items = [find_id(document) for documents in lists.values() for document in documents]
        if not items:
            return []
        lengths = [len(documents) for documents in lists.values()]
        scores = [self._read_scores(name, [*map(find_score, listed)]) for name, listed in lists.items()]
        score = np.concatenate(scores)
        given = self.ranks == "given"
        # coded columns keep experts whose lists are empty: weights are by expert
        preferences = Preferences.from_rows(
            CodedColumn(np.zeros(len(items), np.int64), Ids([0])),
            CodedColumn(np.repeat(np.arange(len(lists)), lengths), Ids(list(lists))),
            items,
            rank=[place for length in lengths for place in range(1, length + 1)] if given else None,
            score=None if np.isnan(score).all() else score,
            duplicates=self.duplicates,
            unlisted="below",
            blank_scores=True,
        )
        ranking = self.aggregator.aggregate(preferences, ties="input")[0][:top]
        parts = self.aggregator.explain_items(preferences, 0) if contributions else {}
        copies: dict[Id, Document] = {}
        for item, document in zip(items, (d for documents in lists.values() for d in documents), strict=True):
            copies.setdefault(item, document)
        return [FusedDocument(copies[r.item], r.score, parts.get(r.item, {})) for r in ranking]

    def _read_scores(self, expert: str, values: Sequence[float | None]) -> Any:
        """The scores of a list; NaN for a list without."""
        scores = np.array([math.nan if value is None else float(value) for value in values])
        missing = int(np.isnan(scores).sum())
        if missing and self.ranks == "scores":
            raise InputError(
                f"{missing} of {len(scores)} documents of {expert!r} have no score",
                remedy=("score all of them, or choose ", Option("ranks", "given", of="setting")),
            )
        if 0 < missing < len(scores):
            warnings.warn(
                f"{missing} of {len(scores)} documents of {expert!r} have no score; only its order is used",
                PodiumWarning,
                stacklevel=4,
            )
            scores[:] = math.nan
        return scores
