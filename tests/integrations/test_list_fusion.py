"""The step that all adapters share: where ranks come from, copies, ties, missing scores, models."""

from __future__ import annotations

import pytest

import podium
from integrations.named_lists import number_by_score, sample_lists, sum_reciprocal_ranks
from podium.core import registry
from podium.core.errors import InputError, ParameterError, PodiumWarning
from podium.integrations.list_fusion import ListFusion
from podium.methods.base import LIST_FORMS

WEIGHTS = {"bm25": 1.0, "dense": 2.5, "splade": 0.5}


def fuse(lists, *settings, top=None, **named):
    return ListFusion(*settings, **named).fuse(lists, lambda pair: pair[0], lambda pair: pair[1], top=top)


def fuse_names(lists, *settings, **named):
    """The same with lists of names."""
    hits = {expert: [(item, None) for item in items] for expert, items in lists.items()}
    return [document[0] for document, *_ in fuse(hits, *settings, **named)]


@pytest.mark.parametrize("seed", range(30))
def test_the_given_order_counts_although_scores_are_equal(seed):
    lists = sample_lists(seed)
    expected = sum_reciprocal_ranks({e: [i for i, _ in hits] for e, hits in lists.items()}, WEIGHTS, 20)
    fused = fuse(lists, "rrf(k=20)", WEIGHTS)
    assert {d[0]: s for d, s, _ in fused} == pytest.approx(expected)
    assert [s for _, s, _ in fused] == pytest.approx(sorted(expected.values(), reverse=True))


@pytest.mark.parametrize("seed", range(30))
def test_equal_scores_share_a_rank_when_scores_are_asked_for(seed):
    lists = sample_lists(seed)
    expected: dict[str, float] = {}
    for expert, hits in lists.items():
        for item, rank in number_by_score(hits).items():
            expected[item] = expected.get(item, 0) + WEIGHTS[expert] / (20 + rank)
    fused = fuse(lists, "rrf(k=20)", WEIGHTS, ranks="scores")
    assert {d[0]: s for d, s, _ in fused} == pytest.approx(expected)


@pytest.mark.parametrize("method", ["rrf", "borda", "combsum(normalizer='minmax')", "rbc"])
def test_contributions_add_up_to_the_score(method):
    for document, score, parts in fuse(sample_lists(5), method, WEIGHTS):
        assert set(parts) == set(WEIGHTS)
        assert sum(parts.values()) == pytest.approx(score), document


def test_methods_that_combine_scores_use_them_in_both_readings():
    lists = {"a": [("x", 10.0), ("y", 9.0), ("z", 0.0)], "b": [("z", 3.0), ("x", 0.0)]}
    for ranks in ("given", "scores"):
        scores = {d[0]: s for d, s, _ in fuse(lists, "combsum(normalizer='minmax')", ranks=ranks)}
        assert scores == pytest.approx({"x": 1.0, "y": 0.9, "z": 1.0})


def test_lists_are_top_k_lists_as_runs_are(tmp_path):
    lists = sample_lists(3)
    rows = [f"q Q0 {i} {n} {-n} {e}" for e, hits in lists.items() for n, (i, _) in enumerate(hits, 1)]
    (tmp_path / "a.run").write_text("\n".join(rows) + "\n")
    preferences = podium.read(tmp_path / "a.run").preferences
    for method in ("condorcet", "mc4", "borda"):
        expected = podium.make(method).aggregate(preferences).to_dict()["q"]
        assert {d[0]: s for d, s, _ in fuse(lists, method)} == pytest.approx(expected)


def test_a_copy_in_the_same_list_does_not_count_again():
    # points of all places added up, as in LangChain's EnsembleRetriever, would put y first
    assert fuse_names({"a": ["x", "y", "y", "y"]}) == ["x", "y"]
    assert fuse_names({"a": ["x", "y", "x", "z"]}) == fuse_names({"a": ["x", "y", "z"]})


def test_ties_keep_the_order_in_which_documents_were_handed_over():
    assert fuse_names({"b": ["z", "y"], "a": ["a", "b"]}) == ["z", "a", "y", "b"]


def test_empty_lists_keep_their_weights():
    assert fuse_names({"a": [], "b": ["x"]}, "rrf", {"a": 1, "b": 2}) == ["x"]
    assert fuse_names({"a": [], "b": []}) == []


def test_top_limits_the_result():
    assert fuse_names({"a": ["x", "y", "z"]}, top=2) == ["x", "y"]
    with pytest.raises(ParameterError, match="the number of documents is 0"):
        fuse_names({"a": ["x"]}, top=0)


def test_missing_scores_are_reported():
    partly = {"a": [("x", 1.0), ("y", None)], "b": [("y", 0.5)]}
    with pytest.warns(PodiumWarning, match="1 of 2 documents of 'a' have no score; only its order is used"):
        assert [d[0] for d, *_ in fuse(partly)] == ["y", "x"]
    with pytest.raises(InputError, match=r"1 of 2 documents of 'a' have no score; score all.*ranks='given'"):
        fuse(partly, ranks="scores")


def test_a_model_file_stands_for_method_and_weights(tmp_path):
    path = tmp_path / "best.podium"
    podium.save(podium.make("rrf(k=3)", weights={"a": 1, "b": 4}), path)
    lists = {"a": ["x", "y"], "b": ["y", "x"]}
    assert fuse_names(lists, model=path) == fuse_names(lists, "rrf(k=3)", {"a": 1, "b": 4}) == ["y", "x"]
    for other in ({"method": "borda"}, {"weights": {"a": 1, "b": 1}}):
        with pytest.raises(ParameterError, match="a model file has a method and its weights"):
            ListFusion(model=path, **other)


def test_a_fitted_model_ranks_as_in_podium(tmp_path):
    data = podium.Preferences.from_lists(
        {q: {"good": ["a", "b", "c"], "bad": ["c", "b", "a"]} for q in range(20)}
    )
    labels = podium.Labels.from_dict({q: {"a": 2, "b": 1, "c": 0} for q in range(20)})
    podium.save(podium.make("weighted_rrf").fit(data, labels), tmp_path / "fitted.podium")
    lists = {"good": ["x", "y"], "bad": ["y", "x"]}
    assert fuse_names(lists, model=tmp_path / "fitted.podium") == ["x", "y"]


def test_wrong_settings_are_errors_before_the_first_query():
    with pytest.raises(ParameterError, match="no weight for expert 'b'"):
        ListFusion("rrf", {"a": 1}, experts=["a", "b"])
    with pytest.raises(ParameterError, match="give one per expert, by name"):
        ListFusion("rrf", [1, 2])
    with pytest.raises(ParameterError, match="ranks is 'score'; accepted: given, scores"):
        ListFusion(ranks="score")


@pytest.mark.parametrize(
    "lists",
    [
        {"a": [("x", 2.0), ("y", 1.0)]},
        {"a": [("x", 2.0), ("y", 1.0)], "b": []},
        {"a": [("x", 2.0), ("y", 1.0)], "b": [("y", None), ("z", None)]},
    ],
    ids=["one list", "an empty list", "a list without scores"],
)
def test_every_method_without_training_fuses_lists(lists):
    items = {item for hits in lists.values() for item, _ in hits}
    for name, cls in registry.aggregators.all().items():
        if cls.tags.accepts >= LIST_FORMS and not (cls.tags.supervised or cls.tags.uses_features):
            fused = fuse(lists, name)
            assert {document[0] for document, *_ in fused} == items, name
            # an expert without a list contributes nothing
            assert all(set(parts) <= set(lists) for *_, parts in fused), name
