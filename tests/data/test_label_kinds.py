"""Rankings and pairs as ground truth: what they hold, what each metric does with them, and what refuses them."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import podium
from podium import Dataset, Labels, Preferences
from podium.core.errors import InputError, PodiumWarning
from podium.evaluate import cross_validate, evaluate
from podium.storage.digests import digest_dataset

CYCLE = {"q": [("a", "b"), ("b", "c"), ("c", "a", 0.5), ("a", "b")], "r": [("x", "y"), ("y", "x", 3)]}


def consensus(lists):
    return podium.make("borda").aggregate(Preferences.from_lists({q: {"e": v} for q, v in lists.items()}))


# -- rankings -------------------------------------------------------------------------------------------------------


def test_rankings_hold_an_order() -> None:
    labels = Labels.from_rankings({"q": ["a", ["b", "c"], "d"], 7: ["x"]})
    assert [labels.grade("q", i) for i in "abcd"] == [2, 1, 1, 0]
    assert labels.grade(7, "x") == 0
    assert repr(labels) == "Labels(2 queries, rankings of 5 items)"
    assert labels != Labels(labels.index, labels.grades)
    for copy in (pickle.loads(pickle.dumps(labels)), labels.select(["q", 7])):
        assert copy == labels
        assert copy.kind == "rankings"


def test_files_hold_grades(tmp_path) -> None:
    with pytest.warns(PodiumWarning, match="rankings are written as grades"):
        podium.write(Labels.from_rankings({"q": ["a", "b"]}), tmp_path / "x.qrels", "qrels")
    assert podium.read(tmp_path / "x.qrels").labels == Labels.from_dict({"q": {"a": 1, "b": 0}})
    with pytest.raises(InputError, match="the labels are pairs, which have no grades"):
        podium.write(Labels.from_pairs(CYCLE), tmp_path / "y.qrels", "qrels")


def test_agreement_with_rankings_is_that_of_scipy() -> None:
    stats = pytest.importorskip("scipy.stats", reason="needs scipy")
    random = np.random.default_rng(0)
    for _ in range(5):
        items = [f"i{k}" for k in range(8)]
        truth, other = random.permutation(items).tolist(), random.permutation(items).tolist()
        result = evaluate(consensus({"q": other}), Labels.from_rankings({"q": truth}), "tau_a tau_b rho")
        x, y = ([order.index(i) for i in items] for order in (truth, other))
        expected = stats.kendalltau(x, y).statistic
        assert [result[m][0] for m in ("tau_a", "tau_b")] == pytest.approx([expected, expected])
        assert result["rho"][0] == pytest.approx(stats.spearmanr(x, y).statistic)


@pytest.mark.parametrize("metric", ["ndcg@10", "map", "err", "p@5", "bpref", "recall@5", "mrr", "rbp"])
@pytest.mark.parametrize("kind", ["rankings", "pairs"])
def test_metrics_that_need_grades_refuse_in_one_line(metric, kind) -> None:
    labels = Labels.from_rankings({"q": ["a", "b"]}) if kind == "rankings" else Labels.from_pairs(CYCLE)
    with pytest.raises(
        InputError, match=f"needs grades, and the labels are {kind}; use one of .*tau_a"
    ) as error:
        evaluate(consensus({"q": ["a", "b"]}), labels, metric)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("rankings", "message"),
    [
        ([["a"]], "Labels.from_rankings"),
        ({"q": "ab"}, "the ranking of query 'q' is 'ab'"),
        ({"q": ["a", "b", "a"]}, "item 'a' is labeled twice"),
    ],
)
def test_broken_rankings(rankings, message) -> None:
    with pytest.raises(InputError, match=message):
        Labels.from_rankings(rankings)


# -- pairs ----------------------------------------------------------------------------------------------------------


def test_pairs_are_kept_as_they_are() -> None:
    labels = Labels.from_pairs(CYCLE)
    assert repr(labels) == "Labels(2 queries, 5 pairs)"
    table, items = labels.pairs, labels.index.items
    rows = {(items[b], items[w]): x for b, w, x in zip(*(c.tolist() for c in table[1:]), strict=True)}
    assert rows == {("a", "b"): 2, ("b", "c"): 1, ("c", "a"): 0.5, ("x", "y"): 1, ("y", "x"): 3}
    assert table.starts.tolist() == [0, 3, 5]
    assert pickle.loads(pickle.dumps(labels)) == labels
    assert labels.select(["r"]).pairs.weight.tolist() == [1, 3]
    assert labels.select(["q", "r"]) == labels != labels.select(["r", "q"])
    assert "pairs" in labels._repr_html_()


def test_metrics_of_pairs_by_counting() -> None:
    random = np.random.default_rng(1)
    items = list("abcdef")
    truth = {
        q: [
            (*random.choice(items, 2, replace=False).tolist(), float(random.integers(1, 4))) for _ in range(9)
        ]
        for q in ("q", "r")
    }
    lists = {q: random.permutation(items)[:5].tolist() for q in truth}
    result = evaluate(consensus(lists), Labels.from_pairs(truth), ["tau_a", "pairs"])
    for at, (query, some) in enumerate(truth.items()):
        ranked = [(a, b, w) for a, b, w in some if a in lists[query] and b in lists[query]]
        right = sum(w for a, b, w in ranked if lists[query].index(a) < lists[query].index(b))
        total = sum(w for *_, w in ranked)
        assert result["pairs"][at] == pytest.approx(right / total)
        assert result["tau_a"][at] == pytest.approx((2 * right - total) / total)


def test_pairs_agree_with_grades_where_both_say_the_same() -> None:
    grades = {"q": {"a": 2, "b": 1, "c": 1, "d": 0}}
    pairs = {"q": [(a, b) for a in "abcd" for b in "abcd" if grades["q"][a] > grades["q"][b]]}
    for order in (["d", "b", "a", "c"], ["a", "c", "d", "b"]):
        one, two = (
            evaluate(consensus({"q": order}), labels, "pairs")["pairs"][0]
            for labels in (Labels.from_dict(grades), Labels.from_pairs(pairs))
        )
        assert one == pytest.approx(two)


def test_a_query_without_a_result_counts_0_and_one_without_a_pair_nothing() -> None:
    labels = Labels.from_pairs({"q": [("a", "b")], "r": [("a", "b")], "s": [("a", "b")]})
    result = evaluate(consensus({"q": ["a", "b"], "s": ["a", "c"]}), labels, "tau_a", queries="all")
    by_query = dict(zip(result.queries, result["tau_a"].tolist(), strict=True))
    assert by_query["q"] == 1
    assert by_query["r"] == 0
    assert np.isnan(by_query["s"])


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ({"q": [("a", "a")]}, "compares item 'a' with itself"),
        ({"q": ["ab"]}, "a pair of query 'q' is 'ab'"),
        ({"q": [("a", "b", 1, 2)]}, "a pair of query 'q' is"),
        ({"q": [("a", "b", 0)]}, "the weight of a pair is 0"),
        ({"q": [("a", "b", "much")]}, "the weight of a pair is 'much'"),
    ],
)
def test_broken_pairs(pairs, message) -> None:
    with pytest.raises(InputError, match=message):
        Labels.from_pairs(pairs)


@pytest.mark.parametrize("use", [lambda x: x.grades, lambda x: x.align(x.index), lambda x: x.to_frame()])
def test_pairs_have_no_grades(use) -> None:
    with pytest.raises(InputError, match="the labels are pairs, which have no grades"):
        use(Labels.from_pairs(CYCLE))


# -- from preferences -------------------------------------------------------------------------------------------------


def test_labels_from_lists_and_votes() -> None:
    one = Labels.from_preferences(Preferences.from_rows(["q"] * 4, ["e"] * 4, "abcd", rank=[3, 1, 3, 9]))
    assert one == Labels.from_rankings({"q": ["b", ["a", "c"], "d"]})
    votes = Preferences.from_comparisons(["q"] * 3, ["e", "f", "g"], "aab", "bbc")
    assert Labels.from_preferences(votes) == Labels.from_pairs({"q": [("a", "b", 2), ("b", "c")]})
    several = Preferences.from_lists({"q": {"e": ["a", "b", "c"], "f": ["b", "a"]}})
    expected = {"q": [("a", "b"), ("a", "c"), ("b", "c"), ("b", "a")]}
    assert Labels.from_preferences(several) == Labels.from_pairs(expected)


def test_data_sets_hold_any_labels() -> None:
    p = Preferences.from_lists({f"q{n}": {"e": ["a", "b", "c"], "f": ["b", "c", "a"]} for n in range(6)})
    labels = Labels.from_pairs({f"q{n}": [("a", "b"), ("b", "a")] for n in range(6)})
    other = Labels.from_pairs({f"q{n}": [("a", "b"), ("b", "a", 2)] for n in range(6)})
    assert digest_dataset(Dataset(p, labels)) != digest_dataset(Dataset(p, other))
    result = cross_validate(Dataset(p, labels), {"rrf": podium.make("rrf")}, metrics=["tau_a"])
    assert result.mean("rrf") == {"tau_a": 0.0}
