"""Learning from rankings and pairs: Kendall's tau as the loss, contradictions, and methods that refuse them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import podium
from podium import Dataset, Features, Labels, LambdaRank, Preferences
from podium.core import registry
from podium.core.errors import InputError, ParameterError
from podium.evaluate import evaluate

ITEMS = [f"i{k}" for k in range(9)]
LEARN_PAIRS = ("crf", "svd", "fused", "weighted_borda", "weighted_rrf", "query_weighted")
READ_ORDER = ("weighted_cps", "weighted_kemeny")  # these read nothing but the order of grades
READ_ANY = ("weighted_markov",)


def problem(seed: int, queries: int = 40, wrong: float = 0.0):
    """Expert `good` orders by worth with little noise, `bad` at random; a share of the true pairs is reversed."""
    random = np.random.default_rng(seed)
    lists, rankings, pairs = {}, {}, {}
    for n in range(queries):
        worth = random.normal(size=len(ITEMS))
        good = [ITEMS[k] for k in np.argsort(-worth - 0.4 * random.normal(size=len(ITEMS)))]
        lists[f"q{n}"] = {"good": good, "bad": random.permutation(ITEMS).tolist()}
        order = [ITEMS[k] for k in np.argsort(-worth)]
        rankings[f"q{n}"] = order
        some = [p for p in itertools.combinations(order, 2) if random.random() < 0.3] or [tuple(order[:2])]
        pairs[f"q{n}"] = [p[::-1] if random.random() < wrong else p for p in some]
    return Preferences.from_lists(lists), Labels.from_rankings(rankings), Labels.from_pairs(pairs)


@pytest.fixture(scope="module")
def data():
    return problem(0, wrong=0.1), problem(1)


def mean_tau(method, preferences, truth) -> float:
    return evaluate(method.aggregate(preferences), truth, "tau_a").mean()["tau_a"]


@pytest.mark.parametrize("name", LEARN_PAIRS)
@pytest.mark.parametrize("kind", ["rankings", "pairs"])
def test_methods_learn_whom_to_trust(name, kind, data) -> None:
    (train, rankings, pairs), (new, truth, _) = data
    model = podium.make(name, metric="tau_a", choose_by="tau_a", passes=30)
    held = Dataset(new, truth)
    model.fit(train, rankings if kind == "rankings" else pairs, validation=held)
    assert mean_tau(model, new, truth) > mean_tau(podium.make("rrf"), new, truth) + 0.03
    assert model.validation_["metric"] == "tau_a"


def test_lambdarank_learns_from_pairs_of_items_with_features() -> None:
    random = np.random.default_rng(2)
    values = random.normal(size=(20 * 9, 2))
    query, item = np.repeat([f"q{n}" for n in range(20)], 9).tolist(), ITEMS * 20
    x = Features.from_rows(query, item, values, ["useful", "noise"])
    pairs = {
        q: [(a, b) for a, b in itertools.permutations(ITEMS, 2) if x.values[x.index.slot(q, a)][0]
            > x.values[x.index.slot(q, b)][0] + 0.5]
        for q in dict.fromkeys(query)
    }  # fmt: skip
    for hidden in (0, 4):
        model = LambdaRank(metric="tau_a", passes=30, hidden=hidden).fit(x, Labels.from_pairs(pairs))
        assert evaluate(model.rank(x), Labels.from_pairs(pairs), "tau_a").mean()["tau_a"] > 0.95


def test_one_pair_per_item_and_direction_is_the_most_likely_order() -> None:
    """A cycle with a weak link: learning on it breaks the weak link."""
    lists = {f"q{n}": {e: [e, *(i for i in "abc" if i != e)] for e in "abc"} for n in range(6)}
    cycle = [("a", "b", 5.0), ("b", "c", 5.0), ("c", "a", 1.0)]
    model = podium.make("crf(metric=tau_a, passes=100)").fit(
        Preferences.from_lists(lists), Labels.from_pairs(dict.fromkeys(lists, cycle))
    )
    assert model.aggregate(Preferences.from_lists({"q": lists["q0"]})).ranking("q") == ["a", "b", "c"]


def test_expected_tau_by_enumeration() -> None:
    """The loss of the first pass, before any step: half of the pairs are wrong in expectation."""
    p, rankings, pairs = problem(3, 5)
    for labels in (rankings, pairs):
        model = podium.make("crf(metric=tau_a, passes=1, batch=1000, rate=1e-9)").fit(p, labels)
        assert model.losses_[0] == pytest.approx(0.5)


@pytest.mark.parametrize("kind", ["rankings", "pairs"])
def test_every_learner_takes_them_or_refuses_in_one_line(kind, data) -> None:
    (train, rankings, pairs), _ = data
    labels = rankings if kind == "rankings" else pairs
    for name, cls in registry.aggregators.all().items():
        if not cls.tags.supervised or not train.forms <= cls.tags.accepts:
            continue
        if name in READ_ANY or (kind == "rankings" and name in READ_ORDER):
            assert podium.make(name).fit(train.select(train.queries[:8]), labels).aggregate(train)
            continue
        with pytest.raises(InputError) as error:  # with default settings, which ask for grades
            podium.make(name).fit(train.select(train.queries[:8]), labels)
        assert "\n" not in str(error.value), name
        assert kind in str(error.value) or "no grades" in str(error.value), (name, error.value)


def test_validation_metrics_are_checked(data) -> None:
    (train, rankings, _), (new, truth, _) = data
    with pytest.raises(InputError, match="map needs grades, and the labels are rankings"):
        podium.make("crf(metric=tau_a, passes=2)").fit(train, rankings, validation=Dataset(new, truth))


def test_pairs_are_learned_on_the_processor_and_in_memory() -> None:
    with pytest.raises(ParameterError, match="tau_a is learned on the CPU"):
        podium.make("svd(metric=tau_a, device=cuda)")
    p, rankings, pairs = problem(3, 5)
    for labels in (rankings, pairs):
        with pytest.raises(InputError, match=f"its labels are {labels.kind}; shards need grades"):
            podium.make("crf(metric=tau_a)").fit_stream([Dataset(p, labels)])


def test_pairs_of_unknown_items_are_refused() -> None:
    p, *_ = problem(3, 5)
    with pytest.raises(InputError, match="no pair of the labels has both items"):
        podium.make("crf(metric=tau_a)").fit(p, Labels.from_pairs({"q0": [("x", "y")]}))
    with pytest.raises(InputError, match="every query with pairs has weight 0"):
        podium.make("crf(metric=tau_a)").fit(
            p, Labels.from_pairs({"q0": [("i0", "i1")]}), query_weights={"q0": 0}
        )
