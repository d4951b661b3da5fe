"""The LlamaIndex retriever and postprocessor."""

from __future__ import annotations

import asyncio

import pytest
from llama_index.core.llms import MockLLM
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.response_synthesizers import ResponseMode, get_response_synthesizer
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import MetadataMode, NodeWithScore, TextNode

from integrations.named_lists import sample_lists, sum_reciprocal_ranks
from podium.core.errors import ParameterError
from podium.integrations.llama_index import PodiumNodePostprocessor, PodiumNodeRetriever

pytestmark = pytest.mark.filterwarnings("ignore")  # what these packages warn of is theirs


class ListRetriever(BaseRetriever):
    """Returns its nodes, whatever the query is."""

    def __init__(self, hits):
        self.nodes = [NodeWithScore(node=TextNode(text=f"text of {i}", id_=i), score=s) for i, s in hits]
        super().__init__()

    def _retrieve(self, query_bundle):
        return self.nodes


class ReversingRanker(BaseNodePostprocessor):
    """Reverses the order, and changes what it is given, as rerankers do."""

    def _postprocess_nodes(self, nodes, query_bundle=None):
        for place, node in enumerate(nodes):
            node.score = float(place)
            node.node.metadata["seen"] = True
        return nodes[::-1]


def list_ids(nodes):
    return [node.node.node_id for node in nodes]


@pytest.mark.parametrize("seed", range(10))
def test_weights_change_the_scores_as_the_formula_says(seed):
    lists = sample_lists(seed)
    names = {name: [item for item, _ in hits] for name, hits in lists.items()}
    for weights in ({"bm25": 0.1, "dense": 0.9, "splade": 0.0}, {"bm25": 0.9, "dense": 0.1, "splade": 0.0}):
        retriever = PodiumNodeRetriever(
            {name: ListRetriever(hits) for name, hits in lists.items()}, weights=weights
        )
        expected = sum_reciprocal_ranks(names, weights)
        nodes = retriever.retrieve("q")
        for node in nodes:
            if expected[node.node.node_id]:
                assert node.score == pytest.approx(expected[node.node.node_id])
                assert sum(node.node.metadata["podium_contributions"].values()) == pytest.approx(node.score)
        assert [node.score for node in nodes] == sorted((node.score for node in nodes), reverse=True)
        assert list_ids(asyncio.run(retriever.aretrieve("q"))) == list_ids(nodes)


def test_nodes_are_copies_and_contributions_stay_out_of_prompts():
    retrievers = {"a": ListRetriever([("x", 0.5), ("y", 0.4)]), "b": ListRetriever([("y", 9.0)])}
    nodes = PodiumNodeRetriever(retrievers, top_k=2).retrieve("q")
    assert list_ids(nodes) == ["y", "x"]
    for node in nodes:
        for mode in (MetadataMode.LLM, MetadataMode.EMBED):
            assert "podium" not in node.node.get_content(mode)
    assert [(n.score, n.node.metadata) for r in retrievers.values() for n in r.nodes] == [
        (0.5, {}), (0.4, {}), (9.0, {}),
    ]  # fmt: skip


def test_a_query_engine_takes_the_retriever():
    retriever = PodiumNodeRetriever({"a": ListRetriever([("x", 0.5)]), "b": ListRetriever([("y", 9.0)])})
    engine = RetrieverQueryEngine.from_args(
        retriever,
        MockLLM(),
        response_synthesizer=get_response_synthesizer(MockLLM(), response_mode=ResponseMode.COMPACT),
        node_postprocessors=[
            PodiumNodePostprocessor(rankers={"reversed": ReversingRanker()}, input_name=None)
        ],
    )
    assert list_ids(engine.query("q").source_nodes) == ["y", "x"]


@pytest.mark.parametrize(("weight", "order"), [(0.5, ["a", "b", "c"]), (2.0, ["c", "b", "a"])])
def test_the_postprocessor_fuses_the_input_with_its_rankers(weight, order):
    nodes = ListRetriever([("a", 3.0), ("b", 2.0), ("c", 1.0)]).nodes
    post = PodiumNodePostprocessor(
        rankers={"reversed": ReversingRanker()}, weights={"input": 1.0, "reversed": weight}
    )
    assert list_ids(post.postprocess_nodes(nodes, query_str="q")) == order
    assert list_ids(asyncio.run(post.apostprocess_nodes(nodes, query_str="q"))) == order
    assert [(n.node.node_id, n.score, n.node.metadata) for n in nodes] == [
        ("a", 3.0, {}), ("b", 2.0, {}), ("c", 1.0, {}),
    ]  # fmt: skip
    short = PodiumNodePostprocessor(rankers={"reversed": ReversingRanker()}, top_n=1, input_name=None)
    assert list_ids(short.postprocess_nodes(nodes)) == ["c"]


def test_wrong_settings_are_errors_before_the_first_query():
    with pytest.raises(ParameterError, match="weight given for unknown expert 'b'"):
        PodiumNodeRetriever({"a": ListRetriever([])}, weights={"a": 1, "b": 1})
    with pytest.raises(ValueError, match="a ranker is called 'input', as the input is"):
        PodiumNodePostprocessor(rankers={"input": ReversingRanker()})
