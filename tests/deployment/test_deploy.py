"""A deployment ranks as the method does, writes what the engine's clients accept, and refuses the rest in words."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

import podium
from podium import Preferences, deploy, make
from podium.core import registry
from podium.core.errors import ParameterError
from podium.data.demo import demo
from podium.deployment import compare_orders
from podium.deployment.engine_input import cut_lists
from podium.methods.dialects.fusion_engine import count_copies

ENGINES = registry.engines.all()
TWO = {"bm25": "title", "dense": "embedding"}


def random_lists(seed, queries=40, experts=("bm25", "dense"), items=12, ties=False):
    random = np.random.default_rng(seed)
    lists = {}
    for q in range(queries):
        lists[f"q{q}"] = {}
        for e in experts:
            chosen = random.permutation(items)[: random.integers(1, items + 1)]
            values = random.integers(0, 4, len(chosen)) / 4 if ties else random.random(len(chosen))
            lists[f"q{q}"][e] = {f"d{i}": float(v) for i, v in zip(chosen, values, strict=True)}
    return Preferences.from_lists(lists)


def weighted(spec, **weights):
    return make(spec, weights=weights)


# (method, engine) pairs for which the order must be the same in every query
EXACT = [
    ("rrf", {"bm25": 1, "dense": 3}, "qdrant", "qdrant_rrf(k=61)"),
    ("rrf(k=20)", {"bm25": 2, "dense": 1}, "milvus", "milvus_rrf(k=20)"),
    ("rrf", {"bm25": 0.3, "dense": 1.7}, "elasticsearch", "elasticsearch_rrf"),
    ("rrf", {"bm25": 0.3, "dense": 1.7}, "opensearch", "opensearch_rrf"),
    ("rrf(k=59)", {"bm25": 0.3, "dense": 1.7}, "weaviate", "weaviate_ranked"),
    ("rrf(k=10)", {"bm25": 1, "dense": 2}, "lancedb", "lancedb_rrf(k=10)"),
    ("rrf(k=10)", {"bm25": 1, "dense": 0.1}, "langchain", "langchain_rrf(k=10)"),
    ("rrf(k=59)", {"bm25": 1, "dense": 2}, "llamaindex", "llamaindex_rrf"),
    ("rrf", {"bm25": 1, "dense": 0.7}, "haystack", "haystack_rrf"),
    ("rrf", {"bm25": 1, "dense": 2}, "pyterrier", "pyterrier_rrf(k=61)"),
    ("rrf(k=1.5)", {"bm25": 1, "dense": 0.7}, "postgres", "rrf(k=1.5)"),
    ("combsum(normalizer=none)", {"bm25": 1, "dense": 0.7}, "qdrant", "qdrant_formula"),
    ("combsum(normalizer=none)", {"bm25": 1, "dense": 0.7}, "milvus", "milvus_weighted(metric='none')"),
    ("combsum", {"bm25": 1, "dense": 0.7}, "elasticsearch", "elasticsearch_linear"),
    ("combsum", {"bm25": 1, "dense": 0.7}, "weaviate", "weaviate_relative_score"),
    ("combsum", {"bm25": 1, "dense": 0.7}, "duckdb", "combsum"),
    ("rsf", {"bm25": 1, "dense": 0.7}, "weaviate", "weaviate_relative_score"),
    ("dbsf", {"bm25": 2, "dense": 1}, "qdrant", "qdrant_dbsf"),
]


@pytest.mark.parametrize(("spec", "weights", "to", "form"), EXACT)
def test_exact_forms_have_the_order_of_the_method(spec, weights, to, form):
    found = deploy(weighted(spec, **weights), to)
    assert found.exact
    assert repr(found.form.method) == form
    preferences = random_lists(3)
    check = found.check(preferences)
    assert (check.same, check.queries, check.first) == (40, 40, None)


@pytest.mark.parametrize("name", [n for n, c in registry.aggregators.all().items() if c.tags.dialect])
def test_a_dialect_deploys_to_its_engine(name):
    cls = registry.aggregators.get(name)
    weights = {"weights": {"bm25": 1.0, "dense": 0.25}} if cls.tags.weighted else {}
    found = deploy(cls(**weights), cls.dialect.engine, experts=TWO)
    assert found.exact
    for seed, ties in ((1, False), (2, True)):
        assert found.check(random_lists(seed, ties=ties)).first is None


@pytest.mark.parametrize("to", ENGINES)
def test_a_dialect_deploys_to_other_engines_with_the_same_rule(to):
    """rrf tuned for Elasticsearch has the same order wherever the engine has that rule exactly."""
    found = deploy(weighted("elasticsearch_rrf", bm25=1, dense=3), to, nearest=True)
    if found.exact:
        assert found.check(random_lists(5)).first is None
    assert found.exact == (to not in ("vespa", "weaviate", "llamaindex"))


def test_weights_that_are_no_ratio_of_few_whole_numbers_are_refused_in_words():
    with pytest.raises(ParameterError) as refused:
        deploy(weighted("rrf", bm25=1, dense=0.37), "qdrant")
    text = str(refused.value)
    assert text.startswith("Qdrant divides the rank by the weight")
    assert "nearest=True" in text
    assert "podium tune --for qdrant" in text
    assert "\n" not in text
    # the nearest form gives the first places of both lists the ratio of the weights
    form = deploy(weighted("rrf", bm25=1, dense=0.37), "qdrant", nearest=True).form
    points = [1 / (1 / w + 60) for w in form.weights]
    assert points[1] / points[0] == pytest.approx(0.37, rel=1e-5)


@pytest.mark.parametrize(
    ("spec", "to", "words"),
    [
        ("rrf(k=60.5)", "elasticsearch", "takes whole numbers from 1 as rank_constant, and k is 60.5"),
        ("rrf(k=0.5)", "opensearch", "whole numbers from 1 to 10000 as rank_constant, and k is 0.5"),
        ("rrf", "weaviate", "the k of Weaviate is 59, and k is 60"),
        ("rrf", "vespa", "Vespa ranks every hit by every feature"),
        ("rrf", "llamaindex", "the k of LlamaIndex is 59"),
        ("combsum", "opensearch", "turns a normalized score of 0 into 0.001"),
        (
            "combsum(normalizer=zscore)",
            "milvus",
            "Milvus has no form of sums of scores with the normalizer zscore",
        ),
        ("dbsf(deviation=population)", "haystack", "takes the largest of an item's scores"),
        ("borda", "qdrant", "Qdrant has no form of borda"),
        ("combsum(normalizer=zscore)", "sqlite", "has the normalizers minmax and none, not zscore"),
    ],
)
def test_what_an_engine_cannot_express_is_refused(spec, to, words):
    with pytest.raises(ParameterError, match=re.escape(words)) as refused:
        deploy(spec, to, experts=TWO)
    assert "the nearest form is " in str(refused.value)
    assert not deploy(spec, to, experts=TWO, nearest=True).exact


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: deploy("rrf", "qdrnt", experts=TWO), "no engine is called 'qdrnt'; did you mean qdrant?"),
        (lambda: deploy("rrf", "qdrant"), "rrf does not name its experts; name them with experts="),
        (lambda: deploy("rrf", "qdrant", experts=[]), "there are no experts to fuse"),
        (lambda: deploy("rrf", "qdrant", experts={"a": "x", "b": "x"}), "two experts are called 'x'"),
        (lambda: deploy("rrf", "qdrant", experts=TWO, depth=0), "depth is 0; accepted: whole numbers from 1"),
        (
            lambda: deploy(weighted("rrf", bm25=1, dense=2), "qdrant", experts={"bm25": "x", "colbert": "y"}),
            "the experts do not match the weights (no name for dense; unknown: colbert); name bm25, dense",
        ),
        (lambda: weighted("rrf", bm25=1, dense=-1), "a weight is -1; accepted: finite numbers from 0"),
        (lambda: weighted("rrf", bm25=0, dense=0), "all weights are 0"),
        (
            lambda: deploy("rrf", "opensearch", experts=list("abcdef")),
            "OpenSearch fuses at most 5 lists with opensearch_rrf, and 6 experts have a weight above 0",
        ),
        (
            lambda: deploy("rrf(k=59)", "weaviate", experts=["dense"]),
            "Weaviate fuses at least 2 lists with weaviate_ranked, and 1 expert has a weight above 0",
        ),
        (
            lambda: deploy("condorcet", "qdrant"),
            "Qdrant has no form of condorcet; the nearest form is qdrant_rrf: name the experts with experts=",
        ),
    ],
)
def test_bad_input_gets_one_clear_line(call, words):
    with pytest.raises(ParameterError, match=re.escape(words)) as refused:
        call()
    assert "\n" not in str(refused.value)


def test_an_expert_of_weight_zero_is_left_out():
    found = deploy(weighted("rrf", bm25=1, dense=2, old=0), "elasticsearch")
    assert [s.expert for s in found.form.sources] == ["bm25", "dense"]
    assert "old has weight 0 and is left out" in found.config
    preferences = random_lists(4, experts=("bm25", "dense", "old"))
    assert found.check(preferences).first is None


# -- what is written -----------------------------------------------------------------------------------------


def bodies(config):
    """The JSON bodies of the requests in a configuration."""
    plain = "\n".join(line for line in config.splitlines() if not line.startswith("#"))
    return [
        json.loads(part) for part in re.split(r"^(?:POST|PUT|GET) .*$", plain, flags=re.M) if part.strip()
    ]


def test_a_weight_of_three_is_a_repeated_prefetch():
    (body,) = bodies(deploy(weighted("rrf", bm25=1, dense=3), "qdrant", experts=TWO, depth=50).config)
    assert [p["using"] for p in body["prefetch"]] == ["title", "embedding", "embedding", "embedding"]
    assert {p["limit"] for p in body["prefetch"]} == {50}
    assert body["query"] == {"rrf": {"k": 61}}
    (body,) = bodies(deploy(weighted("qdrant_rrf(k=5)", bm25=1, dense=3), "qdrant").config)
    assert body["query"] == {"rrf": {"k": 5, "weights": [1.0, 3.0]}}


def test_opensearch_gets_weights_that_sum_to_one():
    pipeline, search = bodies(deploy(weighted("rrf", bm25=1, dense=2), "opensearch").config)
    processor = pipeline["phase_results_processors"][0]["score-ranker-processor"]["combination"]
    assert processor["rank_constant"] == 60
    assert sum(processor["parameters"]["weights"]) == pytest.approx(1, abs=0.01)
    assert len(search["query"]["hybrid"]["queries"]) == 2
    pipeline, _ = bodies(
        deploy("opensearch_normalization(lower=0, bounds=clip)", "opensearch", experts=TWO).config
    )
    normalization = pipeline["phase_results_processors"][0]["normalization-processor"]["normalization"]
    assert normalization["parameters"]["lower_bounds"] == [{"mode": "clip", "min_score": 0}] * 2


def test_elasticsearch_gets_a_tree_of_retrievers():
    names = {"bm25": "title", "dense": "knn:embedding"}
    (body,) = bodies(deploy(weighted("rrf", bm25=1, dense=2), "elasticsearch", experts=names).config)
    fusion = body["retriever"]["rrf"]
    assert (fusion["rank_constant"], fusion["rank_window_size"]) == (60, 100)
    assert [r["weight"] for r in fusion["retrievers"]] == [1.0, 2.0]
    assert fusion["retrievers"][1]["retriever"]["knn"]["field"] == "embedding"
    (body,) = bodies(deploy("combsum", "elasticsearch", experts=TWO).config)
    assert [r["normalizer"] for r in body["retriever"]["linear"]["retrievers"]] == ["minmax", "minmax"]


@pytest.mark.parametrize("to", [n for n, e in ENGINES.items() if e.syntax == "python"])
def test_python_configurations_compile(to):
    for name in ENGINES[to].list_methods():
        compile(deploy(name, to, experts=TWO).config, to, "exec")


@pytest.mark.parametrize("to", ENGINES)
def test_the_header_says_where_it_came_from(to):
    found = deploy(ENGINES[to].list_methods()[0], to, experts=TWO)
    header = found.config.removesuffix(found.body)
    assert "method: " in header
    assert "expert bm25: title" in header
    assert "every list is cut at 100 items" in header
    assert ("not run against the real engine" in header) == (not ENGINES[to].was_run)


def test_sqlite_runs_its_text():
    sqlite3 = pytest.importorskip("sqlite3")
    for seed, spec in enumerate(["rrf(k=20)", "combsum", "combsum(normalizer=none)"] * 4):
        method = weighted(spec, bm25=1, dense=0.7)
        depth = 3 if seed % 2 else 100
        preferences = random_lists(seed, queries=10, ties=seed % 3 == 0)
        found = deploy(method, "sqlite", depth=depth)
        rows = [(r["query"], r["expert"], r["item"], r["score"]) for r in preferences.to_frame().to_pylist()]
        database = sqlite3.connect(":memory:")
        database.execute("CREATE TABLE hits (query TEXT, expert TEXT, item TEXT, score REAL)")
        database.executemany("INSERT INTO hits VALUES (?, ?, ?, ?)", rows)
        emulated = found.emulate(preferences)
        ranked = {q: [] for q in preferences.queries}
        for query, item, _ in database.execute(found.body):
            ranked[query].append(item)
        for query, items in ranked.items():
            assert items == emulated.ranking(query)[: len(items)]


def test_the_tuning_behind_a_model_is_in_the_header(tmp_path):
    data = demo(30)
    tuned = podium.tune(data, "ndcg@10", engine="qdrant", trials=8)
    podium.save(tuned.best, tmp_path / "best.podium")
    found = deploy(podium.load(tmp_path / "best.podium"), "qdrant", experts=data.preferences.experts.tolist())
    assert f"data {data.preferences.fingerprint}" in found.config
    assert f"ndcg@10 {tuned.tuned:.4f} on held-out queries" in found.config
    assert f"{tuned.rows[0].low:+.4f} .. {tuned.rows[0].high:+.4f}" in found.config
    assert found.check(data.preferences).first is None


# -- emulation -----------------------------------------------------------------------------------------------


def test_lists_are_cut_before_they_are_fused():
    preferences = Preferences.from_lists({"q": {"bm25": ["a", "b", "c"], "dense": ["d", "c", "e"]}})
    assert cut_lists(preferences, 1).lists.lengths.tolist() == [1, 1]
    found = deploy("rrf", "elasticsearch", experts=TWO, depth=2)
    # c is third in bm25 and second in dense; cut at 2, only the second place counts
    assert found.emulate(preferences).to_dict()["q"]["c"] == pytest.approx(1 / 62)
    check = found.check(preferences)
    assert (check.same, check.first.query, check.first.place) == (0, "q", 1)
    assert (check.first.engine_item, check.first.method_item) == ("a", "c")
    assert "at place 1 the engine has a, the method c" in check.describe()


def test_orders_within_a_tie_are_free():
    one = Preferences.from_lists({"q": {"x": {"a": 1.0, "b": 1.0, "c": 0.0}}})
    other = Preferences.from_lists({"q": {"x": {"a": 0.5, "b": 0.9, "c": 0.0}}})
    third = Preferences.from_lists({"q": {"x": {"a": 0.5, "b": 0.9, "c": 2.0}}})
    ranked = [make("combsum(normalizer=none)").aggregate(p) for p in (one, other, third)]
    assert compare_orders(ranked[0], ranked[1], 1e-6).same == 1
    assert compare_orders(ranked[1], ranked[0], 1e-6).same == 1
    assert compare_orders(ranked[1], ranked[2], 1e-6).first.place == 1


def test_unknown_experts_in_the_runs_are_named():
    found = deploy("rrf", "qdrant", experts={"bm25": "x", "colbert": "y"})
    with pytest.raises(ParameterError, match="the lists have no expert 'colbert'; they have bm25, dense"):
        found.emulate(random_lists(0))


def test_copies_are_the_smallest_whole_numbers():
    assert count_copies([2, 2, 2]) == ([1, 1, 1], True)
    assert count_copies([0.5, 1.5]) == ([1, 3], True)
    assert count_copies([1, 2 / 3]) == ([3, 2], True)
    assert not count_copies([1, 0.01])[1]


# -- tuning for an engine ------------------------------------------------------------------------------------


def test_tuning_for_an_engine_searches_its_methods_and_gives_what_it_takes():
    data = demo(30)
    tuned = podium.tune(data, "ndcg@10", engine="milvus", trials=12)
    assert {t.method for t in tuned.trials} <= {"milvus_rrf", "milvus_weighted"}
    assert tuned.baseline == "milvus_rrf"
    assert "before rounding" in tuned.notes[0]
    weights = tuned.best.weights
    assert weights is None or max(weights.values()) <= 1
    with pytest.raises(ParameterError, match="Milvus does not compute rrf; "):
        podium.tune(data, "ndcg@10", ["rrf"], engine="milvus")
    with pytest.raises(ParameterError, match="fuses at most 2 lists"):
        podium.tune(data, "ndcg@10", engine="weaviate")


def test_weights_inside_the_rank_have_a_nearest_form_elsewhere():
    inside = weighted("qdrant_rrf(k=5)", bm25=1, dense=3)
    with pytest.raises(
        ParameterError, match="only Qdrant divides the rank by the weight; the nearest form is"
    ):
        deploy(inside, "elasticsearch")
    form = deploy(inside, "elasticsearch", nearest=True).form
    assert form.method.k == 4
    # first places: 1 / (1 + 4) and 1 / (1/3 + 4)
    assert form.weights[1] / form.weights[0] == pytest.approx((1 + 4) / (1 / 3 + 4), rel=1e-6)
    assert deploy(make("qdrant_rrf(k=5)"), "elasticsearch", experts=TWO).exact


def test_a_model_with_learned_weights_can_be_deployed():
    data = demo(30)
    few = data.preferences.with_experts(data.preferences.experts.tolist()[:4])
    model = make("weighted_rrf(passes=3)").fit(few, data.labels)
    found = deploy(model, "elasticsearch")
    assert found.exact
    assert found.check(few).first is None


def test_rules_by_expert_are_written_by_expert():
    (body,) = bodies(
        deploy(
            make("elasticsearch_linear", normalizers={"dense": "none"}), "elasticsearch", experts=TWO
        ).config
    )
    assert [r["normalizer"] for r in body["retriever"]["linear"]["retrievers"]] == ["minmax", "none"]
    text = deploy(make("milvus_weighted", metrics={"bm25": "BM25"}), "milvus", experts=TWO).config
    assert text.index("'BM25'") < text.index("'IP'")


def test_an_engine_sees_no_gap_where_an_item_was_left_out():
    whole = Preferences.from_lists({"q": {"a": ["w", "x", "y", "z"], "b": ["z", "y"]}})
    rows = [
        ("q", "a", "w", 1),
        ("q", "a", "x", 5),
        ("q", "a", "y", 6),
        ("q", "a", "z", 9),
        ("q", "b", "z", 2),
        ("q", "b", "y", 3),
    ]
    query, expert, item, rank = zip(*rows, strict=True)
    gapped = Preferences.from_rows(query, expert, item, rank=rank)
    deployment = deploy("rrf(k=1)", "sqlite", experts=["a", "b"])
    assert deployment.emulate(gapped).ranking("q") == deployment.emulate(whole).ranking("q")
    real = deployment.run(gapped, "sqlite:///:memory:")  # a table of hits has no gaps
    assert real.ranking("q") == deployment.emulate(gapped).ranking("q")
    assert "2 lists with gaps in the ranks" in deployment.check(gapped).describe()
    assert deployment.check(whole).gapped_lists == 0
    # with its ranks as they are, the method has another order
    assert deployment.method.aggregate(gapped).ranking("q") != real.ranking("q")


def test_a_run_leaves_the_database_as_it_was(tmp_path):
    import sqlite3
    from contextlib import closing

    file = tmp_path / "shop.db"
    with closing(sqlite3.connect(file)) as database:
        database.execute("CREATE TABLE hits (query TEXT, other TEXT)")
        database.execute("INSERT INTO hits VALUES ('mine', 'kept')")
        database.commit()
    before = file.read_bytes()
    lists = Preferences.from_lists({"q": {"a": ["w", "x"], "b": ["x"]}})
    assert deploy("rrf", "sqlite", experts=["a", "b"]).run(lists, f"sqlite:///{file}").ranking("q") == [
        "x",
        "w",
    ]
    assert file.read_bytes() == before


def test_equal_weights_inside_the_rank_are_written():
    lists = Preferences.from_lists({"q": {"a": ["w", "x", "y"], "b": ["x", "z", "y", "w"]}})
    method = make("qdrant_rrf", weights={"a": 0.5, "b": 0.5})
    deployment = deploy(method, "qdrant")
    assert '"weights": [\n        0.5,\n        0.5\n      ]' in deployment.body
    assert deployment.emulate(lists).scores.tolist() == method.aggregate(lists).scores.tolist()
    assert "weights" not in deploy(make("qdrant_rrf", weights={"a": 1, "b": 1}), "qdrant").body


def test_a_rule_of_an_expert_that_is_left_out_is_left_out_too():
    lists = Preferences.from_lists({"q": {"a": {"w": 0.5, "x": 0.1}, "b": {"x": 0.3}}})
    method = make("milvus_weighted", metrics={"a": "COSINE"}, weights={"a": 0.0, "b": 1.0})
    assert deploy(method, "milvus").check(lists).first is None
