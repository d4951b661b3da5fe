"""LangChain: a retriever over named retrievers, with scores and contributions by expert."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from podium.core.errors import InputError, Option, ParameterError
from podium.core.optional import require_module
from podium.data.ids import Id
from podium.integrations.list_fusion import CONTRIBUTIONS, ListFusion, RankSource

if TYPE_CHECKING:
    from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever
    from pydantic import PrivateAttr
else:
    BaseRetriever = require_module("langchain_core.retrievers").BaseRetriever
    PrivateAttr = require_module("pydantic").PrivateAttr

__all__ = ["SCORE", "PodiumRetriever"]

SCORE = "podium_score"  # metadata key for the fused score


class PodiumRetriever(BaseRetriever):
    """Asks all `retrievers` and fuses their documents; `k` limits the result.

    `method` is a name such as `"rrf(k=20)"` or an aggregator, with `weights` by retriever; or `model` is the
    file of a tuned or fitted one. A document is identified by the metadata field `id_key`, or by its `id`,
    or, where no document has one, by its text. `score_key` names the metadata field with a retriever's score;
    `ranks="scores"` and methods that combine scores use it.
    """

    retrievers: dict[str, Any]
    method: Any = "rrf"
    weights: dict[str, float] | None = None
    model: str | Path | None = None
    ranks: RankSource = "given"
    k: int | None = None
    id_key: str | None = None
    score_key: str | None = None
    _fusion: ListFusion = PrivateAttr()

    def model_post_init(self, context: Any) -> None:
        """Make the method, so that a wrong parameter is an error before the first query."""
        super().model_post_init(context)
        if self.ranks == "scores" and self.score_key is None:
            raise ParameterError(
                Option("ranks", "scores", of="setting"), " needs ", Option("score_key", of="setting"),
                ", the metadata field that holds a document's score",
            )  # fmt: skip
        self._fusion = ListFusion(self.method, self.weights, self.model, self.ranks, self.retrievers)

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        lists = {
            name: retriever.invoke(query, {"callbacks": run_manager.get_child(name)})
            for name, retriever in self.retrievers.items()
        }
        return self._fuse(lists, k)

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        answers = await asyncio.gather(
            *(
                retriever.ainvoke(query, {"callbacks": run_manager.get_child(name)})
                for name, retriever in self.retrievers.items()
            )
        )
        return self._fuse(dict(zip(self.retrievers, answers, strict=True)), k)

    def _fuse(self, lists: Mapping[str, Sequence[Document]], k: int | None) -> list[Document]:
        if self.id_key is None and len({d.id is None for answer in lists.values() for d in answer}) == 2:
            raise InputError(
                "some documents have an id and some have none, so copies cannot be matched",
                remedy=("give all an id, or name a metadata field: ", Option("id_key", of="setting")),
            )
        fused = self._fusion.fuse(
            lists,
            self._find_id,
            lambda document: None if self.score_key is None else document.metadata.get(self.score_key),
            top=self.k if k is None else k,
        )
        return [
            document.model_copy(
                update={"metadata": document.metadata | {SCORE: score, CONTRIBUTIONS: contributions}}
            )
            for document, score, contributions in fused
        ]

    def _find_id(self, document: Document) -> Id:
        item: Id = document.page_content if document.id is None else document.id
        if self.id_key is not None:
            if self.id_key not in document.metadata:
                raise InputError(
                    f"the document {document.page_content[:40]!r} has no metadata field {self.id_key!r}",
                    remedy=f"its fields are {', '.join(map(repr, document.metadata)) or 'none'}",
                )
            item = document.metadata[self.id_key]
        return item
