"""Dialects give the figures of their engines.

Every golden value is derived by hand from the engine's source; the derivation stands beside it. Elasticsearch,
OpenSearch, Weaviate and Vespa cannot be started here, so these derivations are all that holds them.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from podium import Preferences, fuse, make
from podium.core import params, registry
from podium.core.errors import ParameterError
from podium.methods.dialects.dialect import Dialect

DIALECTS = {n: c for n, c in registry.aggregators.all().items() if c.tags.dialect}
RANKS = {"bm25": ["a", "b", "c"], "dense": ["b", "d"]}
SCORES = {"bm25": {"a": 9.0, "b": 5.0, "c": 1.0}, "dense": {"b": 0.9, "d": 0.1}}
WEIGHTS = {"bm25": 1.0, "dense": 3.0}


def scores_of(method, lists, **parameters):
    found = fuse(lists, method=method, **parameters)
    return dict(zip(found.ranking, found.scores, strict=True))


def assert_scores(method, lists, expected, rel=1e-9, **parameters):
    found = scores_of(method, lists, **parameters)
    assert found == pytest.approx(expected, rel=rel, abs=1e-12)


# -- points by rank ------------------------------------------------------------------------------------------

# sum of w / (c + r) for a: r 1 in bm25; b: r 2 in bm25, r 1 in dense; c: r 3 in bm25; d: r 2 in dense
PLAIN = {  # method -> c, the constant beside ranks from 1
    "elasticsearch_rrf": 60,  # weights[i] * (1.0f / (rankConstant + rank)), rank from 1
    "opensearch_rrf": 60,  # 1 / (rank_constant + position + 1), position from 0
    "weaviate_ranked": 59,  # weight / (i + 60), i from 0
    "milvus_rrf": 60,  # 1 / (k + rank + 1), rank from 0
    "lancedb_rrf": 60,  # 1 / (i + K), i from 1
    "langchain_rrf": 60,  # weight / (rank + c), rank from 1
    "llamaindex_rrf": 59,  # 1 / (rank + 60), rank from 0
    "pyterrier_rrf": 59,  # 1 / (rank + k), rank from 0
    "qdrant_rrf": 1,  # 1 / ((pos + 1) / w + k - 1), k = 2
}


@pytest.mark.parametrize(("name", "c"), PLAIN.items())
def test_points_without_weights(name, c):
    expected = {"a": 1 / (c + 1), "b": 1 / (c + 2) + 1 / (c + 1), "c": 1 / (c + 3), "d": 1 / (c + 2)}
    assert_scores(name, RANKS, expected)


@pytest.mark.parametrize("name", ["elasticsearch_rrf", "opensearch_rrf", "weaviate_ranked", "langchain_rrf"])
def test_a_weight_is_a_factor(name):
    c = PLAIN[name]
    expected = {"a": 1 / (c + 1), "b": 1 / (c + 2) + 3 / (c + 1), "c": 1 / (c + 3), "d": 3 / (c + 2)}
    assert_scores(name, RANKS, expected, weights=WEIGHTS)


def test_in_qdrant_the_weight_divides_the_rank():
    # k = 61: a 1/(1 + 60); b 1/(2 + 60) + 1/(1/3 + 60); c 1/(3 + 60); d 1/(2/3 + 60)
    expected = {"a": 1 / 61, "b": 1 / 62 + 1 / (1 / 3 + 60), "c": 1 / 63, "d": 1 / (2 / 3 + 60)}
    assert_scores("qdrant_rrf", RANKS, expected, k=61, weights=WEIGHTS)


def test_haystack_scales_weights_and_result():
    # weights 1/4 and 3/4, times 2 lists, over 61 + rank from 0; then divided by 2 / 61
    points = {"a": 0.25 / 61, "b": 0.25 / 62 + 0.75 / 61, "c": 0.25 / 63, "d": 0.75 / 62}
    assert_scores("haystack_rrf", RANKS, {item: 61 * p for item, p in points.items()}, weights=WEIGHTS)


def test_vespa_ranks_absent_hits_too():
    # four hits; bm25 ranks a, b, c and then d (place 4); dense ranks b, d and then a and c, which share 3.5
    k = 60.0
    expected = {
        "a": 1 / (k + 1) + 3 / (k + 3.5),
        "b": 1 / (k + 2) + 3 / (k + 1),
        "c": 1 / (k + 3) + 3 / (k + 3.5),
        "d": 1 / (k + 4) + 3 / (k + 2),
    }
    assert_scores("vespa_rrf", RANKS, expected, weights=WEIGHTS)


# -- scores --------------------------------------------------------------------------------------------------


def test_min_max_of_elasticsearch_and_weaviate():
    # bm25: 1, 1/2, 0; dense: 1, 0; a list without the item adds nothing
    expected = {"a": 1.0, "b": 0.5 + 3.0, "c": 0.0, "d": 0.0}
    for name in ("elasticsearch_linear", "weaviate_relative_score"):
        assert_scores(name, SCORES, expected, weights=WEIGHTS, rel=1e-6)
        # one score, or equal ones: 1.0f, and the weight alone
        flat = {"bm25": {"a": 5.0}, "dense": {"b": 2.0, "c": 2.0}}
        assert_scores(name, flat, {"a": 1.0, "b": 3.0, "c": 3.0}, weights=WEIGHTS)


def test_elasticsearch_divides_by_the_length():
    # bm25: sqrt(81 + 25 + 1), dense: sqrt(0.81 + 0.01)
    first, second = math.sqrt(107), math.sqrt(0.82)
    expected = {"a": 9 / first, "b": 5 / first + 0.9 / second, "c": 1 / first, "d": 0.1 / second}
    assert_scores("elasticsearch_linear(normalizer=l2_norm)", SCORES, expected, rel=1e-6)
    assert_scores(
        "elasticsearch_linear(normalizer=none)", SCORES, {"a": 9, "b": 5.9, "c": 1, "d": 0.1}, rel=1e-6
    )


def test_elasticsearch_treats_nearly_equal_scores_as_equal():
    # Math.abs(min - max) < 1e-6f
    near = {"bm25": {"a": 0.5, "b": 0.4999995}}
    assert_scores("elasticsearch_linear", near, {"a": 1.0, "b": 1.0})


def test_means_of_opensearch():
    # min_max: a 1, b 1/2, c 0 -> 0.001; dense: b 1, d 0 -> 0.001; weights 1/4 and 3/4
    weights = {"bm25": 0.25, "dense": 0.75}
    arithmetic = {"a": 0.25, "b": 0.125 + 0.75, "c": 0.00025, "d": 0.00075}
    assert_scores("opensearch_normalization", SCORES, arithmetic, weights=weights, rel=1e-6)
    # the other means leave out lists without the item: exp(sum w ln s / sum w), sum w / sum (w / s)
    geometric = {"a": 1.0, "b": math.exp(0.25 * math.log(0.5)), "c": 0.001, "d": 0.001}
    harmonic = {"a": 1.0, "b": 1 / (0.25 / 0.5 + 0.75 / 1), "c": 0.001, "d": 0.001}
    for mean, expected in (("geometric_mean", geometric), ("harmonic_mean", harmonic)):
        spec = f"opensearch_normalization(combination={mean})"
        assert_scores(spec, SCORES, expected, weights=weights, rel=1e-6)


def test_opensearch_raises_only_an_exact_zero():
    # (0.5 - 0) / 1000 = 0.0005 stays below the 0.001 of the last item
    found = scores_of("opensearch_normalization", {"bm25": {"a": 1000.0, "b": 0.5, "c": 0.0}})
    assert found["b"] == pytest.approx(0.0005)
    assert found["c"] == 0.001


def test_bounds_of_opensearch():
    lists = {"bm25": {"a": 9.0, "b": 5.0, "c": 1.0}}
    # lower bound 3, clip: the range is 3..9; c lies below it
    clip = "opensearch_normalization(lower=3, bounds=clip)"
    assert_scores(clip, lists, {"a": 1.0, "b": 2 / 6, "c": 0.001})
    # apply: c keeps the range of its list, 1..9, in which it is 0
    assert_scores("opensearch_normalization(lower=3)", lists, {"a": 1.0, "b": 2 / 6, "c": 0.001})
    # upper bound 5, clip: a lies above, b on it: (5 - 1) / (5 - 1)
    assert_scores("opensearch_normalization(upper=5, bounds=clip)", lists, {"a": 1.0, "b": 1.0, "c": 0.001})
    # upper bound 7, apply: b and c are below it, 4/6 and 0; a keeps its range
    assert_scores("opensearch_normalization(upper=7)", lists, {"a": 1.0, "b": 4 / 6, "c": 0.001})


def test_z_scores_of_opensearch():
    # bm25: mean 5, sample deviation 4: a 1, b equals the mean and gets the largest score 9, c -1 -> 0.001
    lists = {"bm25": {"a": 9.0, "b": 5.0, "c": 1.0}}
    assert_scores("opensearch_normalization(normalizer=z_score)", lists, {"a": 1.0, "b": 9.0, "c": 0.001})
    with pytest.raises(ParameterError, match="z_score has the arithmetic_mean only"):
        make("opensearch_normalization(normalizer=z_score, combination=harmonic_mean)")
    with pytest.raises(ParameterError, match="bounds belong to min_max"):
        make("opensearch_normalization(normalizer=l2, lower=0)")


def test_milvus_normalizes_by_metric():
    lists = {"x": {"a": 1.0, "b": 0.0}, "y": {"b": 1.0}}
    # IP: 1/2 + atan(x) / pi, so 0.75 for 1 and 0.5 for 0; COSINE: (1 + x) / 2; BM25: 2 atan(x) / pi
    assert_scores("milvus_weighted", lists, {"a": 0.75, "b": 0.5 + 3 * 0.75}, weights={"x": 1, "y": 3})
    assert_scores("milvus_weighted(metric=COSINE)", lists, {"a": 1.0, "b": 1.5})
    assert_scores("milvus_weighted(metric=BM25)", lists, {"a": 0.5, "b": 0.5})
    assert_scores("milvus_weighted(metric=none)", SCORES, {"a": 9, "b": 5.9, "c": 1, "d": 0.1}, rel=1e-6)


def test_deviations():
    # bm25: mean 5, sample sd 4, population sd sqrt(32/3); dense: mean 0.5, sample sd 0.4 sqrt 2, population sd 0.4
    sample, wide = {"a": 0.5 + 4 / 24, "c": 0.5 - 4 / 24}, 0.4 / (6 * 0.4 * math.sqrt(2))
    assert_scores("qdrant_dbsf", SCORES, sample | {"b": 1.0 + wide, "d": 0.5 - wide}, rel=1e-5)
    narrow = 4 / (6 * math.sqrt(32 / 3))
    dense = {"b": 0.5 + 0.4 / 2.4, "d": 0.5 - 0.4 / 2.4}
    mean = {
        "a": (0.5 + narrow) / 4,
        "b": 0.5 / 4 + dense["b"] * 3 / 4,
        "c": (0.5 - narrow) / 4,
        "d": dense["d"] * 3 / 4,
    }
    assert_scores("llamaindex_dist_based", SCORES, mean, weights=WEIGHTS)
    largest = {"a": 0.5 + narrow, "b": max(0.5, dense["b"]), "c": 0.5 - narrow, "d": dense["d"]}
    assert_scores("haystack_dbsf", SCORES, largest)


def test_flat_lists():
    flat = {"x": {"a": 0.25, "b": 0.25}, "y": {"c": 0.0}}
    assert_scores("qdrant_dbsf", flat, {"a": 0.5, "b": 0.5, "c": 0.5})
    assert_scores("haystack_dbsf", flat, {"a": 0.25, "b": 0.25, "c": 0.0})
    assert_scores(
        "llamaindex_dist_based", flat, {"a": 0.5, "b": 0.5, "c": 0.0}
    )  # weights 1/2; 1 above 0, else 0


def test_vespa_counts_absent_hits_as_zero():
    # four hits. bm25 lacks d, so its range is 0..9; dense lacks a and c: 0..0.9. Absent hits get (0 - 0) / range
    expected = {"a": 1.0, "b": 5 / 9 + 1.0, "c": 1 / 9, "d": 1 / 9}
    assert_scores("vespa_linear", SCORES, expected)
    # negative scores: the absent hit c has the largest, 0; a: -1 -> 1/2, b: -2 -> 0, c: 1. All hits in y: equal, 1/2
    lists = {"x": {"a": -1.0, "b": -2.0}, "y": {"a": 7.0, "b": 7.0, "c": 7.0}}
    assert_scores("vespa_linear", lists, {"a": 0.5 + 0.5, "b": 0.0 + 0.5, "c": 1.0 + 0.5})


def test_qdrant_adds_raw_scores():
    assert_scores(
        "qdrant_formula", SCORES, {"a": 9, "b": 5 + 2.7, "c": 1, "d": 0.3}, weights=WEIGHTS, rel=1e-6
    )


def test_single_precision_shows_where_scores_are_close():
    # Welford's recurrence in 32 bits, as in Qdrant's source, row by row
    random = np.random.default_rng(0)
    for _ in range(50):
        values = np.sort(0.8 + 1e-4 * random.random(12))[::-1]
        mean, squares = np.float32(0), np.float32(0)
        for number, value in enumerate(values.astype(np.float32), 1):
            before = value - mean
            mean += before / np.float32(number)
            squares += before * (value - mean)
        deviation = np.sqrt(squares / np.float32(len(values) - 1))
        low, high = mean - np.float32(3) * deviation, mean + np.float32(3) * deviation
        expected = (values.astype(np.float32) - low) / (high - low)
        found = fuse({"x": {i: float(v) for i, v in enumerate(values)}}, method="qdrant_dbsf")
        assert found.scores == pytest.approx(expected.tolist(), rel=2e-6)


# -- what dialects state -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", DIALECTS)
def test_a_dialect_states_everything(name):
    cls = DIALECTS[name]
    stated: Dialect = cls.dialect
    assert stated.engine in registry.engines.all()
    assert stated.call
    assert stated.formula
    assert stated.depth
    assert stated.verified
    assert (stated.weights != "none") == cls.tags.weighted
    reads_scores = "x" in stated.formula.replace("max", "")
    assert bool(stated.flat) == reads_scores


@pytest.mark.parametrize("name", DIALECTS)
def test_equal_textbook_rules_have_equal_orders(name):
    """What a dialect claims as its textbook rule has the same order on random lists."""
    random = np.random.default_rng(1)
    for _ in range(20):
        items = [f"d{i}" for i in range(8)]
        lists = {
            e: {
                i: float(v)
                for i, v in zip(random.permutation(items)[:5], np.sort(random.random(5))[::-1], strict=True)
            }
            for e in "xyz"
        }
        preferences = Preferences.from_lists({"q": lists})
        method = make(name)
        rule = method.get_textbook()
        if rule is None:
            continue
        if rule.kind == "ranks":
            plain = make("rrf", k=rule.k)
        elif rule.normalizer.startswith("dbsf"):
            plain = make("dbsf")
        else:
            plain = make("combsum", normalizer=rule.normalizer)
        assert plain.aggregate(preferences).ranking("q") == method.aggregate(preferences).ranking("q")


def test_k_out_of_range_is_refused():
    for spec in (
        "qdrant_rrf(k=0)",
        "opensearch_rrf(k=10001)",
        "milvus_rrf(k=16384)",
        "elasticsearch_rrf(k=1.5)",
    ):
        with pytest.raises(ParameterError, match=r"k is .*; accepted: "):
            make(spec)


def test_dialects_take_part_only_when_named():
    from podium.data.demo import demo
    from podium.evaluate.method_screening import screen_methods

    data = demo(5)
    assert not set(screen_methods(data.preferences, {}).methods) & set(DIALECTS)


def test_parameters_that_are_searched_are_in_what_engines_take():
    for cls in DIALECTS.values():
        for p in params.parameters(cls):
            if p.tune is not None:
                assert p.tune.low in p.accepts
                assert p.tune.high in p.accepts


def test_each_list_can_have_its_own_rule():
    # bm25 by BM25: 2 atan(x) / pi, 1/2 for 1; dense by COSINE: (1 + x) / 2
    lists = {"bm25": {"a": 1.0, "b": 0.0}, "dense": {"b": 0.5}}
    mixed = {"bm25": "BM25", "dense": "COSINE"}
    assert_scores("milvus_weighted", lists, {"a": 0.5, "b": 0.75}, metrics=mixed)
    # bm25 by min-max: 1, 1/2, 0; dense raw
    expected = {"a": 1.0, "b": 0.5 + 0.9, "c": 0.0, "d": 0.1}
    assert_scores("elasticsearch_linear", SCORES, expected, normalizers={"dense": "none"}, rel=1e-6)
    made = make("milvus_weighted(metrics={'bm25': 'BM25'})")
    assert make(repr(made)).metrics == {"bm25": "BM25"}
    with pytest.raises(ParameterError, match="the metric of 'bm25' is 'L2'; accepted: IP, COSINE, BM25"):
        make("milvus_weighted", metrics={"bm25": "L2"})
    with pytest.raises(ParameterError, match="there is no expert 'colbert'"):
        scores_of("elasticsearch_linear", SCORES, normalizers={"colbert": "none"})
