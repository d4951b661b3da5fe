"""Vector databases: a vector of one number is the score of its list, so that a search returns the list itself.

All inputs of a batch are in one collection, and a filter that the configuration leaves to the user selects those
of one input. A database numbers items of equal scores in an order of its own: a tied list is searched alone, and
the emulator is given the order that came back.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from engines.framework_drivers import execute_snippet
from engines.random_inputs import Batch, Rankings, ScoredList
from podium.methods.dialects.dialect import RankDialect


class Document(NamedTuple):
    """An item of an input, with its score in each list that has it."""

    number: int
    query: str
    item: str
    scores: dict[str, float]


def list_documents(batch: Batch) -> list[Document]:
    """All items of all inputs."""
    documents: list[Document] = []
    for query, lists in batch.lists.items():
        scores: dict[str, dict[str, float]] = {}
        for expert, ranked in lists.items():
            for item, score in ranked:
                scores.setdefault(item, {})[expert] = score
        documents += [Document(len(documents) + n, query, i, s) for n, (i, s) in enumerate(scores.items())]
    return documents


def iterate_tied_lists(batch: Batch) -> Iterator[tuple[str, str]]:
    """Query and expert of each deployed list whose order of equal scores matters: by rank, or where it is cut."""
    deployment = batch.deployment
    experts = {s.expert for s in deployment.form.sources}
    by_rank = isinstance(deployment.form.method, RankDialect)
    for query, lists in batch.lists.items():
        for expert, ranked in lists.items():
            tied = len({score for _, score in ranked}) < len(ranked)
            if expert in experts and tied and (by_rank or len(ranked) > deployment.depth):
                yield query, expert


def reorder_list(ranked: ScoredList, returned: list[str]) -> ScoredList:
    """The list in the order that the database returned, which may be cut; the rest stays below."""
    scores = dict(ranked)
    values = [scores[item] for item in returned]
    assert values == sorted(values, reverse=True), f"the search itself is out of order: {ranked}, {returned}"
    first = [(item, scores[item]) for item in returned]
    return first + [pair for pair in ranked if pair[0] not in set(returned)]


def reorder_lists(batch: Batch, returned: dict[tuple[str, str], list[str]]) -> Batch:
    """The batch with its tied lists in the order of the database."""
    lists = {
        query: {
            expert: reorder_list(ranked, returned[query, expert]) if (query, expert) in returned else ranked
            for expert, ranked in by_expert.items()
        }
        for query, by_expert in batch.lists.items()
    }
    return replace(batch, lists=lists)


# -- Qdrant --------------------------------------------------------------------------------------------------------


def run_qdrant(batch: Batch, folder: Path) -> tuple[Batch, Rankings]:
    """The JSON body, run by the engine in this process."""
    import qdrant_edge as edge

    documents = list_documents(batch)
    sources = batch.deployment.form.sources
    vectors = {s.name: edge.EdgeVectorParams(size=1, distance=edge.Distance.Dot) for s in sources}
    shard = edge.EdgeShard.create(str(folder), edge.EdgeConfig(vectors=vectors))
    names = {s.expert: s.name for s in sources}
    points = [
        edge.Point(
            d.number,
            {names[e]: [v] for e, v in d.scores.items() if e in names},
            {"query": d.query, "item": d.item},
        )
        for d in documents
    ]
    shard.update(edge.UpdateOperation.upsert_points(points))
    shard.update(edge.UpdateOperation.create_field_index("query", edge.PayloadSchemaType.Keyword))
    body = json.loads(batch.deployment.body.partition("\n")[2])
    tied = list(iterate_tied_lists(batch))
    alone = [
        edge.QueryRequest(
            limit=batch.deployment.depth,
            query=edge.Query.Nearest([1.0], using=names[expert]),
            filter=select_query(edge, query),
        )
        for query, expert in tied
    ]
    fused = [build_qdrant_request(edge, body, query) for query in batch.lists]
    answers = shard.query_batch(edge.QueryBatchRequest([*alone, *fused]))
    ranked = [[(documents[point.id].item, point.score) for point in answer] for answer in answers]
    shard.close()
    returned = {key: [item for item, _ in hits] for key, hits in zip(tied, ranked, strict=False)}
    return reorder_lists(batch, returned), dict(zip(batch.lists, ranked[len(tied) :], strict=True))


def select_query(edge: Any, query: str) -> Any:
    """The items of one input."""
    return edge.Filter(must=[edge.FieldCondition(key="query", match=edge.MatchValue(value=query))])


def build_qdrant_request(edge: Any, body: dict[str, Any], query: str) -> Any:
    """The body as an object of the engine, which has no reader of JSON."""
    prefetches = [
        edge.Prefetch(
            limit=p.pop("limit"),
            query=edge.Query.Nearest([1.0], using=p.pop("using")),
            filter=select_query(edge, query),
        )
        for p in (dict(given) for given in body["prefetch"])
    ]
    assert set(body) == {"prefetch", "query", "limit"}
    assert all(set(p) == {"query", "using", "limit"} for p in body["prefetch"])
    return edge.QueryRequest(
        limit=body["limit"], query=build_fusion(edge, body["query"]), prefetches=prefetches
    )


def build_fusion(edge: Any, query: dict[str, Any]) -> Any:
    """The fusion of a body."""
    if "rrf" in query:
        return edge.Fusion.Rrf(**query["rrf"])
    if query == {"fusion": "dbsf"}:
        return edge.Fusion.Dbsf()
    assert set(query) == {"formula", "defaults"}
    return edge.Formula(build_expression(edge, query["formula"]), defaults=query["defaults"])


def build_expression(edge: Any, part: Any) -> Any:
    """A formula: numbers, scores, sums and products."""
    if isinstance(part, float):
        return edge.Expression.Constant(part)
    if isinstance(part, str):
        return edge.Expression.Variable(part)
    ((kind, parts),) = part.items()
    build = {"sum": edge.Expression.Sum, "mult": edge.Expression.Mult}[kind]
    return build([build_expression(edge, p) for p in parts])


# -- Milvus --------------------------------------------------------------------------------------------------------


class FilteringClient:
    """A client whose hybrid searches see one input, and in each request only the items that its list has."""

    def __init__(self, client: Any, query: str) -> None:
        self.client, self.query = client, query

    def hybrid_search(self, collection: str, requests: list[Any], ranker: Any, limit: int) -> Any:
        for request in requests:
            request._expr = select_list(self.query, request.anns_field)
        return self.client.hybrid_search(collection, requests, ranker, limit=limit)


def select_list(query: str, field: str) -> str:
    return f"query == '{query}' and has_{field} == true"


def run_milvus(batch: Batch, client: Any) -> tuple[Batch, Rankings]:
    """The Python snippet, against Milvus Lite."""
    documents = list_documents(batch)
    sources = batch.deployment.form.sources
    method: Any = batch.deployment.form.method
    default = getattr(method, "metric", "IP").replace("none", "IP")
    metrics = {s.name: (getattr(method, "metrics", None) or {}).get(s.expert, default) for s in sources}
    create_milvus_collection(client, metrics)
    client.insert("documents", [build_milvus_row(d, sources, metrics) for d in documents])
    search = execute_snippet(batch, "search")
    vectors = {s.expert: [1.0, 0.0] for s in sources}
    rankings = {}
    for query in batch.lists:
        (hits,) = search(FilteringClient(client, query), "documents", vectors)
        rankings[query] = [(documents[hit["number"]].item, hit["distance"]) for hit in hits]
    names = {s.expert: s.name for s in sources}
    returned = {}
    for query, expert in iterate_tied_lists(batch):
        field = names[expert]
        (hits,) = client.search(
            "documents", [[1.0, 0.0]], select_list(query, field), batch.deployment.depth,
            anns_field=field, search_params={"metric_type": metrics[field]},
        )  # fmt: skip
        returned[query, expert] = [documents[hit["number"]].item for hit in hits]
    return reorder_lists(batch, returned), rankings


def create_milvus_collection(client: Any, metrics: dict[str, str]) -> None:
    """A collection with a vector of two numbers and a mark of presence by list."""
    from pymilvus import DataType

    if client.has_collection("documents"):
        client.drop_collection("documents")
    schema, index = client.create_schema(), client.prepare_index_params()
    schema.add_field("number", DataType.INT64, is_primary=True)
    schema.add_field("query", DataType.VARCHAR, max_length=32)
    for name, metric in metrics.items():
        schema.add_field(name, DataType.FLOAT_VECTOR, dim=2)
        schema.add_field(f"has_{name}", DataType.BOOL)
        index.add_index(name, index_type="FLAT", metric_type=metric)
    client.create_collection("documents", schema=schema, index_params=index)


def build_milvus_row(document: Document, sources: Any, metrics: dict[str, str]) -> dict[str, Any]:
    """The inner product of the vector with [1, 0], or its cosine, is the score."""
    row: dict[str, Any] = {"number": document.number, "query": document.query}
    for source in sources:
        score = document.scores.get(source.expert, 0.0)
        cosine = metrics[source.name] == "COSINE"
        row[source.name] = [score, math.sqrt(max(0.0, 1 - score * score)) if cosine else 0.0]
        row[f"has_{source.name}"] = source.expert in document.scores
    return row


# -- LanceDB -------------------------------------------------------------------------------------------------------


class FilteringTable:
    """A table whose searches see one input, and of it only the items that the searched list has."""

    def __init__(self, table: Any, query: str) -> None:
        self.table, self.query = table, query

    def search(self, vector: list[float], vector_column_name: str) -> Any:
        found = self.table.search(vector, vector_column_name=vector_column_name)
        return found.where(f"query = '{self.query}' AND {vector_column_name} IS NOT NULL", prefilter=True)


def run_lancedb(batch: Batch, database: Any) -> tuple[Batch, Rankings]:
    """The Python snippet; distances grow as scores fall."""
    import pyarrow as pa

    documents = list_documents(batch)
    sources = batch.deployment.form.sources
    highest = max(s for d in documents for s in d.scores.values())
    table_columns: dict[str, Any] = {
        "item": [d.item for d in documents],
        "query": [d.query for d in documents],
    }
    for source in sources:
        values = [d.scores.get(source.expert) for d in documents]
        table_columns[source.name] = pa.array(
            [None if v is None else [highest - v] for v in values], pa.list_(pa.float32(), 1)
        )
    table = database.create_table("documents", pa.table(table_columns), mode="overwrite")
    search = execute_snippet(batch, "search")
    vectors = {s.expert: [0.0] for s in sources}
    rankings = {}
    for query in batch.lists:
        answer = search(FilteringTable(table, query), vectors)
        columns = (answer["item"].to_pylist(), answer["_relevance_score"].to_pylist())
        rankings[query] = list(zip(*columns, strict=True))
    names = {s.expert: s.name for s in sources}
    returned = {}
    for query, expert in iterate_tied_lists(batch):
        found = FilteringTable(table, query).search([0.0], vector_column_name=names[expert])
        answer = found.with_row_id(True).limit(batch.deployment.depth).to_arrow()
        returned[query, expert] = answer["item"].to_pylist()
    return reorder_lists(batch, returned), rankings
