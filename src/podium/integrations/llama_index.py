"""LlamaIndex: a retriever over named retrievers, and a postprocessor that fuses rerankers."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from podium.core.errors import ParameterError
from podium.core.optional import require_module
from podium.integrations.list_fusion import CONTRIBUTIONS, ListFusion, RankSource
from podium.methods.base import Aggregator

if TYPE_CHECKING:
    from llama_index.core.bridge.pydantic import PrivateAttr
    from llama_index.core.postprocessor.types import BaseNodePostprocessor
    from llama_index.core.retrievers import BaseRetriever
    from llama_index.core.schema import NodeWithScore, QueryBundle
else:
    PrivateAttr = require_module("llama_index.core.bridge.pydantic").PrivateAttr
    BaseNodePostprocessor = require_module("llama_index.core.postprocessor.types").BaseNodePostprocessor
    BaseRetriever = require_module("llama_index.core.retrievers").BaseRetriever
    NodeWithScore = require_module("llama_index.core.schema").NodeWithScore

__all__ = ["PodiumNodePostprocessor", "PodiumNodeRetriever"]


class PodiumNodeRetriever(BaseRetriever):
    """Asks all `retrievers` and fuses their nodes; `top_k` limits the result.

    `method` is a name such as `"rrf(k=20)"` or an aggregator, with `weights` by retriever; or `model` is the
    file of a tuned or fitted one. The nodes are copies: `score` is the fused score, and the metadata field
    `podium_contributions`, which is in no prompt and no embedding, has what each retriever contributed.
    """

    def __init__(
        self,
        retrievers: Mapping[str, BaseRetriever],
        method: str | Aggregator = "rrf",
        *,
        weights: Mapping[str, float] | None = None,
        model: str | os.PathLike[str] | None = None,
        ranks: RankSource = "given",
        top_k: int | None = None,
        **options: Any,
    ) -> None:
        self.retrievers, self.top_k = dict(retrievers), top_k
        self._fusion = ListFusion(method, weights, model, ranks, self.retrievers)
        super().__init__(**options)

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        lists = {name: retriever.retrieve(query_bundle) for name, retriever in self.retrievers.items()}
        return _fuse_nodes(self._fusion, lists, self.top_k)

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        answers = await asyncio.gather(*(r.aretrieve(query_bundle) for r in self.retrievers.values()))
        return _fuse_nodes(self._fusion, dict(zip(self.retrievers, answers, strict=True)), self.top_k)


class PodiumNodePostprocessor(BaseNodePostprocessor):
    """Lets each of the named `rankers` (postprocessors) order the nodes, and fuses these orders.

    The order in which the nodes arrive takes part under the name `input_name`, unless that is None; `weights`
    are by these names, and `top_n` limits the result. Rankers get copies, and the nodes are returned as
    copies.
    """

    rankers: dict[str, Any]
    method: Any = "rrf"
    weights: dict[str, float] | None = None
    model: str | Path | None = None
    ranks: RankSource = "given"
    top_n: int | None = None
    input_name: str | None = "input"
    _fusion: ListFusion = PrivateAttr()

    def model_post_init(self, context: Any) -> None:
        """Make the method, so that a wrong parameter is an error before the first query."""
        super().model_post_init(context)
        if self.input_name in self.rankers:
            raise ParameterError(
                f"a ranker is called {self.input_name!r}, as the input is; rename one of them"
            )
        names = [*([] if self.input_name is None else [self.input_name]), *self.rankers]
        self._fusion = ListFusion(self.method, self.weights, self.model, self.ranks, names)

    @classmethod
    def class_name(cls) -> str:
        """The name that LlamaIndex stores."""
        return "PodiumNodePostprocessor"

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        orders = [r.postprocess_nodes(_copy_nodes(nodes), query_bundle) for r in self.rankers.values()]
        return self._fuse(nodes, orders)

    async def _apostprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        rankers = self.rankers.values()
        orders = await asyncio.gather(
            *(r.apostprocess_nodes(_copy_nodes(nodes), query_bundle) for r in rankers)
        )
        return self._fuse(nodes, orders)

    def _fuse(self, nodes: list[NodeWithScore], orders: Sequence[list[NodeWithScore]]) -> list[NodeWithScore]:
        lists = {} if self.input_name is None else {self.input_name: nodes}
        lists |= dict(zip(self.rankers, orders, strict=True))
        return _fuse_nodes(self._fusion, lists, self.top_n)


def _copy_nodes(nodes: Sequence[NodeWithScore]) -> list[NodeWithScore]:
    """Nodes whose scores and metadata a ranker may change."""
    return [
        NodeWithScore(node=n.node.model_copy(update={"metadata": dict(n.node.metadata)}), score=n.score)
        for n in nodes
    ]


def _fuse_nodes(
    fusion: ListFusion, lists: Mapping[str, Sequence[NodeWithScore]], top: int | None
) -> list[NodeWithScore]:
    fused = fusion.fuse(lists, lambda node: str(node.node.node_id), lambda node: node.score, top=top)
    copies = []
    for first_copy, score, contributions in fused:
        node = first_copy.node
        changes = {
            "metadata": node.metadata | {CONTRIBUTIONS: contributions},
            # otherwise the text that a language model or an embedding gets would include them
            "excluded_llm_metadata_keys": [*node.excluded_llm_metadata_keys, CONTRIBUTIONS],
            "excluded_embed_metadata_keys": [*node.excluded_embed_metadata_keys, CONTRIBUTIONS],
        }
        copies.append(NodeWithScore(node=node.model_copy(update=changes), score=score))
    return copies
