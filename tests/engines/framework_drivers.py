"""Python frameworks: the deployed snippet is executed, with retrievers that return the lists as they are."""

from __future__ import annotations

from typing import Any

from engines.random_inputs import Batch, Rankings, ScoredList


def execute_snippet(batch: Batch, name: str) -> Any:
    """The function of this name that the deployed snippet defines."""
    scope: dict[str, Any] = {}
    exec(compile(batch.deployment.config, f"{batch.deployment.engine.name}.py", "exec"), scope)
    return scope[name]


def get_lists(batch: Batch, query: str) -> dict[str, ScoredList]:
    """What each retriever returns: its list, cut at the depth that the configuration asks for."""
    lists = batch.lists[query]
    sources = batch.deployment.form.sources
    return {s.name: lists.get(s.expert, [])[: batch.deployment.depth] for s in sources}


def run_langchain(batch: Batch) -> Rankings:
    """EnsembleRetriever, which keeps its scores to itself."""
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever

    class ListRetriever(BaseRetriever):
        name: str

        def _get_relevant_documents(self, query, *, run_manager):
            ranked = get_lists(batch, query)[self.name]
            return [Document(page_content=item, metadata={"id": item}) for item, _ in ranked]

    names = [s.name for s in batch.deployment.form.sources]
    retriever = execute_snippet(batch, "build_retriever")({n: ListRetriever(name=n) for n in names})
    return {q: [(d.metadata["id"], None) for d in retriever.invoke(q)] for q in batch.lists}


def run_llamaindex(batch: Batch) -> Rankings:
    """QueryFusionRetriever."""
    from llama_index.core.retrievers import BaseRetriever
    from llama_index.core.schema import NodeWithScore, TextNode

    class ListRetriever(BaseRetriever):
        def __init__(self, name):
            self.name = name
            super().__init__()

        def _retrieve(self, query_bundle):
            ranked = get_lists(batch, query_bundle.query_str)[self.name]
            return [NodeWithScore(node=TextNode(text=item, id_=item), score=score) for item, score in ranked]

    names = [s.name for s in batch.deployment.form.sources]
    retriever = execute_snippet(batch, "build_retriever")({n: ListRetriever(n) for n in names})
    return {q: [(n.node.node_id, n.score) for n in retriever.retrieve(q)] for q in batch.lists}


def run_haystack(batch: Batch) -> Rankings:
    """DocumentJoiner."""
    from haystack import Document

    joiner = execute_snippet(batch, "build_joiner")()
    rankings = {}
    for query in batch.lists:
        lists = [
            [Document(id=item, content=item, score=score) for item, score in ranked]
            for ranked in get_lists(batch, query).values()
        ]
        rankings[query] = [(d.id, d.score) for d in joiner.run(documents=lists)["documents"]]
    return rankings


def run_pyterrier(batch: Batch) -> Rankings:
    """RRFusion, all queries at once."""
    import pandas as pd
    import pyterrier as pt

    def build_transformer(expert):
        rows = [
            (query, query, item, score, rank)
            for query, lists in batch.lists.items()
            for rank, (item, score) in enumerate(lists.get(expert, []))
        ]
        return pt.Transformer.from_df(
            pd.DataFrame(rows, columns=["qid", "query", "docno", "score", "rank"]), uniform=True
        )

    sources = batch.deployment.form.sources
    pipeline = execute_snippet(batch, "build_pipeline")(
        {s.name: build_transformer(s.expert) for s in sources}
    )
    topics = pd.DataFrame({"qid": list(batch.lists), "query": list(batch.lists)})
    answer = pipeline(topics).sort_values(["qid", "rank"])
    rankings: Rankings = {q: [] for q in batch.lists}
    for query, item, score in zip(answer.qid, answer.docno, answer.score, strict=True):
        rankings[query].append((item, score))
    return rankings
