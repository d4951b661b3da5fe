"""The LanceDB reranker, in real hybrid searches."""

from __future__ import annotations

import lancedb
import numpy as np
import pytest
from lancedb.index import FTS
from lancedb.rerankers import RRFReranker

from podium.core.errors import InputError, ParameterError
from podium.integrations.lancedb import PodiumReranker

pytestmark = pytest.mark.filterwarnings("ignore")  # what these packages warn of is theirs
WORDS = ["apple", "pear", "plum", "fig", "lime", "kiwi"]


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    rng = np.random.default_rng(7)
    rows = [
        {"id": n, "text": " ".join(rng.choice(WORDS, 4)), "vector": rng.normal(size=4).astype("f4").tolist()}
        for n in range(60)
    ]
    made = lancedb.connect(tmp_path_factory.mktemp("lance")).create_table("fruit", rows)
    made.create_index("text", config=FTS())
    return made


def search(table, text, vector, reranker, limit=60):
    query = table.search(query_type="hybrid").vector(vector).text(text)
    return query.rerank(reranker).limit(limit).to_arrow()


def pair_up(results):
    return dict(zip(results["id"].to_pylist(), results["_relevance_score"].to_pylist(), strict=True))


@pytest.mark.parametrize("return_score", ["relevance", "all"])
@pytest.mark.parametrize("text", ["apple pear", "kiwi", "fig lime plum"])
def test_rrf_returns_what_the_reranker_of_lancedb_returns(table, text, return_score):
    for seed in range(10):
        vector = np.random.default_rng(seed).normal(size=4).astype("f4")
        theirs = search(table, text, vector, RRFReranker(return_score=return_score))
        ours = search(table, text, vector, PodiumReranker("rrf(k=60)", return_score=return_score))
        assert ours.schema.equals(theirs.schema)
        assert pair_up(ours) == pytest.approx(pair_up(theirs))
        scores = ours["_relevance_score"].to_pylist()
        assert scores == sorted(scores, reverse=True)
        if return_score == "all":
            by_id = [
                dict(zip(t["id"].to_pylist(), t["_distance"].to_pylist(), strict=True))
                for t in (ours, theirs)
            ]
            assert by_id[0] == by_id[1]


def test_weights_decide_between_the_two_searches(table):
    vector = np.ones(4, "f4")
    for heavy, first in (("vector", 0), ("fts", 1)):
        weights = {"vector": 1.0, "fts": 1.0, heavy: 1000.0}
        best = search(table, "kiwi", vector, PodiumReranker(weights=weights), 1)["id"].to_pylist()
        alone = [table.search(vector).limit(1), table.search("kiwi", query_type="fts").limit(1)][first]
        assert best == alone.to_arrow()["id"].to_pylist()


def test_every_row_is_there_once_and_columns_keep_their_types(table):
    results = search(table, "apple pear", np.ones(4, "f4"), PodiumReranker("condorcet"), 60)
    ids = results["id"].to_pylist()
    assert len(ids) == len(set(ids)) > 10
    assert results.schema.field("vector").type == table.schema.field("vector").type


def test_a_search_without_text_hits_returns_the_vector_hits(table):
    weights = {"vector": 1, "fts": 2}
    results = search(table, "nothing", np.ones(4, "f4"), PodiumReranker(weights=weights), 5)
    assert results["id"].to_pylist() == table.search(np.ones(4, "f4")).limit(5).to_arrow()["id"].to_pylist()


def test_scores_are_used_where_they_are_asked_for(table):
    vector, text = np.ones(4, "f4"), "kiwi"
    by_order = search(table, text, vector, PodiumReranker(), 60)
    by_score = search(table, text, vector, PodiumReranker(ranks="scores"), 60)
    fts = table.search(text, query_type="fts").limit(60).to_arrow()["_score"].to_pylist()
    assert len(set(fts)) < len(fts), "the text search has ties"
    assert pair_up(by_order) != pytest.approx(pair_up(by_score))


def test_several_vector_searches_are_fused(table):
    rng = np.random.default_rng(3)
    searches = [table.search(rng.normal(size=4).astype("f4")).limit(8).with_row_id(True) for _ in range(3)]
    tables = [s.to_arrow() for s in searches]
    theirs = RRFReranker().rerank_multivector(tables, "q")
    assert pair_up(PodiumReranker().rerank_multivector(tables, "q")) == pytest.approx(pair_up(theirs))
    assert pair_up(PodiumReranker().rerank_multivector(searches)) == pytest.approx(pair_up(theirs))
    with pytest.raises(InputError, match=r"'vector1' have no column '_rowid'; search with `.with_row_id"):
        PodiumReranker().rerank_multivector([t.drop_columns(["_rowid"]) for t in tables])


def test_a_weight_for_an_unknown_search_is_an_error(table):
    with pytest.raises(ParameterError, match="no weight for expert 'fts'"):
        search(table, "kiwi", np.ones(4, "f4"), PodiumReranker(weights={"vector": 1, "text": 1}))
