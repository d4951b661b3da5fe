"""The Haystack joiner: in a pipeline, and through YAML."""

from __future__ import annotations

import pytest
from haystack import Document, Pipeline
from haystack.components.retrievers.in_memory import InMemoryBM25Retriever, InMemoryEmbeddingRetriever
from haystack.core.errors import PipelineConnectError
from haystack.document_stores.in_memory import InMemoryDocumentStore

import podium
from haystack_integrations.components.joiners.podium import PodiumJoiner
from integrations.named_lists import sample_lists, sum_reciprocal_ranks
from podium.core.errors import ParameterError

pytestmark = pytest.mark.filterwarnings("ignore")  # what these packages warn of is theirs
TEXTS = {"fig": "a fig is sweet", "lime": "a lime is sour", "plum": "sweet or sour, a plum is a plum"}


def build_pipeline(**settings):
    store = InMemoryDocumentStore()
    store.write_documents(
        [Document(id=i, content=text, embedding=[1.0, n]) for n, (i, text) in enumerate(TEXTS.items())]
    )
    pipeline = Pipeline()
    pipeline.add_component("bm25", InMemoryBM25Retriever(store))
    pipeline.add_component("dense", InMemoryEmbeddingRetriever(store))
    pipeline.add_component("joiner", PodiumJoiner(["bm25", "dense"], **settings))
    for name in ("bm25", "dense"):
        pipeline.connect(name, f"joiner.{name}")
    return pipeline


def run_pipeline(pipeline):
    answer = pipeline.run({"bm25": {"query": "sweet plum"}, "dense": {"query_embedding": [0.0, 1.0]}})
    return answer["joiner"]["documents"]


@pytest.mark.parametrize("seed", range(10))
def test_documents_have_the_scores_of_the_formula(seed):
    lists = sample_lists(seed)
    weights = {"bm25": 1.0, "dense": 2.5, "splade": 0.5}
    joiner = PodiumJoiner(list(lists), "rrf(k=20)", weights)
    given = {name: [Document(id=i, content=i, score=s) for i, s in hits] for name, hits in lists.items()}
    before = {name: [(d.score, d.meta) for d in documents] for name, documents in given.items()}
    documents = joiner.run(**given)["documents"]
    expected = sum_reciprocal_ranks({n: [i for i, _ in hits] for n, hits in lists.items()}, weights, 20)
    assert {d.id: d.score for d in documents} == pytest.approx(expected)
    for document in documents:
        assert sum(document.meta["podium_contributions"].values()) == pytest.approx(document.score)
    assert {name: [(d.score, d.meta) for d in documents] for name, documents in given.items()} == before


def test_a_pipeline_survives_yaml():
    pipeline = build_pipeline(method="rrf(k=5)", weights={"bm25": 1.0, "dense": 3.0}, top_k=2)
    documents = run_pipeline(pipeline)
    # BM25 finds plum and fig, the vectors plum, lime and fig: fig has 1/7 + 3/8, lime 3/7
    assert [d.id for d in documents] == ["plum", "fig"]
    assert documents[1].score == pytest.approx(1 / 7 + 3 / 8)
    text = pipeline.dumps()
    assert "haystack_integrations.components.joiners.podium.PodiumJoiner" in text
    again = Pipeline.loads(text)
    assert again.to_dict() == pipeline.to_dict()
    joiner = again.get_component("joiner")
    assert joiner.to_dict() == pipeline.get_component("joiner").to_dict()
    lists = {"bm25": [Document(id="x", content="x")], "dense": [Document(id="y", content="y")]}
    assert [d.id for d in joiner.run(**lists)["documents"]] == ["y", "x"]


def test_every_method_joins_and_a_model_is_named_by_its_file(tmp_path):
    assert run_pipeline(build_pipeline(method="condorcet"))[0].id == "plum"
    podium.save(podium.make("rrf", weights={"bm25": 1, "dense": 2}), tmp_path / "best.podium")
    pipeline = build_pipeline(model=tmp_path / "best.podium", top_k=1)
    again = Pipeline.loads(pipeline.dumps())
    assert again.get_component("joiner").to_dict()["init_parameters"]["model"] == str(
        tmp_path / "best.podium"
    )


def test_inputs_have_the_names_of_the_experts():
    with pytest.raises(PipelineConnectError, match=r"joiner.splade does not exist.*: bm25 .*, dense"):
        build_pipeline().connect("bm25", "joiner.splade")
    with pytest.raises(ParameterError, match="no weight for expert 'dense'"):
        PodiumJoiner(["bm25", "dense"], weights={"bm25": 1})
