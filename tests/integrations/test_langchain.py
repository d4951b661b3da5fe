"""The LangChain retriever: LangChain's own tests of retrievers, then what it adds."""

from __future__ import annotations

import asyncio

import pytest
from langchain_classic.retrievers import EnsembleRetriever
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_tests.integration_tests import RetrieversIntegrationTests

import podium
from integrations.named_lists import sample_lists, sum_reciprocal_ranks
from podium.core.errors import InputError
from podium.integrations.langchain import PodiumRetriever

pytestmark = pytest.mark.filterwarnings("ignore")  # what these packages warn of is theirs
LISTS = {"bm25": ["a", "b", "c"], "dense": ["b", "d"]}


class ListRetriever(BaseRetriever):
    """Returns its documents, whatever the query is."""

    documents: list[Document]

    def _get_relevant_documents(self, query, *, run_manager):
        return self.documents

    async def _aget_relevant_documents(self, query, *, run_manager):
        await asyncio.sleep(0)
        return self.documents


def build_retrievers(lists):
    return {
        name: ListRetriever(documents=[Document(page_content=f"text of {i}", id=i) for i in items])
        for name, items in lists.items()
    }


def list_ids(documents):
    return [document.id for document in documents]


class TestConformance(RetrieversIntegrationTests):
    """The framework's suite."""

    @property
    def retriever_constructor(self):
        return PodiumRetriever

    @property
    def retriever_constructor_params(self):
        return {"retrievers": build_retrievers(LISTS)}

    @property
    def retriever_query_example(self):
        return "any question"


@pytest.mark.parametrize("seed", range(10))
def test_weights_scores_and_contributions_are_those_of_the_formula(seed):
    lists = {name: [item for item, _ in hits] for name, hits in sample_lists(seed).items()}
    weights = {"bm25": 1.0, "dense": 2.5, "splade": 0.5}
    retriever = PodiumRetriever(retrievers=build_retrievers(lists), method="rrf(k=20)", weights=weights)
    expected = sum_reciprocal_ranks(lists, weights, 20)
    answers = [retriever.invoke("q"), asyncio.run(retriever.ainvoke("q"))]
    assert answers[0] == answers[1]
    for document in answers[0]:
        assert document.metadata["podium_score"] == pytest.approx(expected[document.id])
        for name, part in document.metadata["podium_contributions"].items():
            alone = sum_reciprocal_ranks({name: lists[name]}, weights, 20)
            assert part == pytest.approx(alone.get(document.id, 0.0))
    scores = [document.metadata["podium_score"] for document in answers[0]]
    assert scores == sorted(scores, reverse=True)


def test_equal_weights_rank_as_the_ensemble_retriever():
    for seed in range(20):
        lists = {name: [item for item, _ in hits] for name, hits in sample_lists(seed).items()}
        retrievers = build_retrievers(lists)
        ensemble = EnsembleRetriever(retrievers=list(retrievers.values()), weights=[1.0] * 3)
        assert list_ids(PodiumRetriever(retrievers=retrievers).invoke("q")) == list_ids(ensemble.invoke("q"))


def test_copies_in_one_list_count_once():
    retriever = PodiumRetriever(retrievers=build_retrievers({"only": ["x", "y", "y", "y"]}))
    assert list_ids(retriever.invoke("q")) == ["x", "y"]


def test_documents_are_not_changed():
    retrievers = build_retrievers(LISTS)
    PodiumRetriever(retrievers=retrievers).invoke("q")
    assert all(d.metadata == {} for r in retrievers.values() for d in r.documents)


def test_documents_are_matched_by_metadata_or_text():
    by_key = {
        name: ListRetriever(
            documents=[Document(page_content=f"{name} {i}", metadata={"key": i}) for i in items]
        )
        for name, items in LISTS.items()
    }
    documents = PodiumRetriever(retrievers=by_key, id_key="key").invoke("q")
    assert [d.metadata["key"] for d in documents] == ["b", "a", "d", "c"]
    by_text = {
        name: ListRetriever(documents=[Document(page_content=i) for i in items])
        for name, items in LISTS.items()
    }
    assert [d.page_content for d in PodiumRetriever(retrievers=by_text).invoke("q")] == ["b", "a", "d", "c"]
    with pytest.raises(InputError, match="no metadata field 'key'; its fields are none"):
        PodiumRetriever(retrievers=by_text, id_key="key").invoke("q")
    mixed = {"text": by_text["bm25"], "id": build_retrievers(LISTS)["dense"]}
    with pytest.raises(InputError, match="some documents have an id and some have none"):
        PodiumRetriever(retrievers=mixed).invoke("q")


def test_scores_are_read_where_they_are_asked_for():
    hits = {"a": {"x": 0.9, "y": 0.1, "z": 0.1}, "b": {"z": 3.0, "y": 3.0}}
    retrievers = {
        name: ListRetriever(
            documents=[Document(page_content=i, metadata={"s": s}) for i, s in scores.items()]
        )
        for name, scores in hits.items()
    }
    by_score = PodiumRetriever(retrievers=retrievers, ranks="scores", score_key="s").invoke("q")
    scores = {d.page_content: d.metadata["podium_score"] for d in by_score}
    assert scores["y"] == scores["z"] == pytest.approx(1 / 62 + 1 / 61)
    with pytest.raises(ValueError, match="ranks='scores' needs score_key="):
        PodiumRetriever(retrievers=retrievers, ranks="scores")


def test_a_tuned_model_is_loaded_from_its_file(tmp_path):
    podium.save(podium.make("rrf", weights={"bm25": 1, "dense": 9}), tmp_path / "best.podium")
    retriever = PodiumRetriever(retrievers=build_retrievers(LISTS), model=tmp_path / "best.podium", k=2)
    assert list_ids(retriever.invoke("q")) == ["b", "d"]


def test_wrong_weights_are_an_error_before_the_first_query():
    with pytest.raises(ValueError, match="no weight for expert 'dense'"):
        PodiumRetriever(retrievers=build_retrievers(LISTS), weights={"bm25": 1})


def test_callbacks_reach_the_retrievers_under_their_names():
    recorded = []

    class Recorder(BaseCallbackHandler):
        def on_retriever_start(self, serialized, query, *, tags=None, **others):
            recorded.append(tags)

    PodiumRetriever(retrievers=build_retrievers(LISTS)).invoke("q", {"callbacks": [Recorder()]})
    assert recorded == [[], ["bm25"], ["dense"]]
