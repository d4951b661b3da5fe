"""The learner: gradients of networks, early stopping, seeds, weights of queries, trees; and the SVD aggregator."""

from __future__ import annotations

import numpy as np
import pytest

from podium import Dataset, Features, Labels, Preferences, load, make, save
from podium.core.errors import InputError, NotFittedError, ParameterError, PodiumWarning
from podium.learning.examples import Examples
from podium.learning.feature_scorer import Network
from podium.methods.learned.lambdarank import LambdaRank
from podium.methods.learned.svd_features import POOLED


def made(seed, queries=60, items=12, width=4, noise=0.5, first=0):
    """Features of which the first two matter, the third is noise and the fourth constant."""
    random = np.random.default_rng(seed)
    q, i = np.repeat(np.arange(first, first + queries), items), np.tile(np.arange(items), queries)
    x = random.normal(size=(len(q), width))
    x[:, 3] = 1.0
    y = x[:, 0] - 2 * x[:, 1] + noise * random.normal(size=len(q))
    grades = np.digitize(y, [0.5, 2.0]).astype(float)
    return Features.from_rows(q, i, x, ["up", "down", "noise", "same"]), Labels.from_rows(q, i, grades)


def quality(model, features, labels, metric="ndcg@10:exp"):
    from podium.evaluate import evaluate

    return evaluate(model.rank(features), labels, metric).mean()[metric]


@pytest.mark.parametrize(("hidden", "layers"), [(0, 1), (5, 1), (4, 2)])
def test_network_gradient_by_finite_differences(hidden, layers):
    random = np.random.default_rng(0)
    network = Network(3, hidden, layers)
    flat, x, slope = random.normal(size=network.size), random.normal(size=(7, 3)), random.normal(size=7)
    found = network.compute_gradient(flat, x, slope)
    for k in range(network.size):
        step = np.eye(network.size)[k] * 1e-6
        difference = (
            slope @ (network.compute_scores(flat + step, x) - network.compute_scores(flat - step, x)) / 2e-6
        )
        assert found[k] == pytest.approx(difference, abs=1e-7)


@pytest.mark.parametrize("metric", ["ndcg", "ndcg@5:letor", "err", "map", "rbp(p=0.8)", "mrr"])
def test_every_target_is_learned(metric):
    model = LambdaRank(metric=metric, passes=30, rate=0.05).fit(*made(0))
    w = model.feature_weights()
    assert w["up"] > 0 > w["down"]
    assert abs(w["noise"]) < 0.5 * w["up"]
    assert w["same"] == pytest.approx(0, abs=1e-6)
    assert quality(model, *made(1)) > 0.9


def test_plain_descent_by_query_and_the_default_reach_the_same():
    train, test = made(0), made(1)
    paper = LambdaRank(optimizer="sgd", batch=1, passes=60).fit(*train)
    assert quality(LambdaRank(passes=30).fit(*train), *test) == pytest.approx(quality(paper, *test), abs=0.01)


def test_validation_stops_early_and_keeps_the_best_pass():
    told = []
    model = LambdaRank(passes=200, patience=5).fit(
        *made(0),
        validation=made(2, queries=20),
        progress=lambda done, total, what: told.append((done, total)),
    )
    assert len(told) < 200
    assert model.passes_[0] == len(told) - 5
    assert told[0] == (1, 200)
    assert model.quality_[0] == pytest.approx(quality(model, *made(2, queries=20)))


def test_seeds_and_members():
    a, b = (LambdaRank(passes=3, seed=7).fit(*made(0)) for _ in range(2))
    assert a.member_weights_.tobytes() == b.member_weights_.tobytes()
    other = LambdaRank(passes=3, seed=8).fit(*made(0))
    assert other.member_weights_.tobytes() != a.member_weights_.tobytes()
    several = LambdaRank(passes=3, seed=7, members=3).fit(*made(0))
    assert several.member_weights_.shape == (3, 4)
    assert several.member_weights_[0].tobytes() == a.member_weights_[0].tobytes()


def test_query_weights():
    (x, y), zero = made(0, queries=20), dict.fromkeys(range(10, 20), 0.0)
    weighted = LambdaRank(passes=5).fit(x, y, query_weights=zero)
    few = Features(x.select_codes(np.arange(10)).index, x.select_codes(np.arange(10)).values, x.names)
    np.testing.assert_allclose(weighted.member_weights_, LambdaRank(passes=5).fit(few, y).member_weights_)
    with pytest.raises(InputError, match="weight of query 3 is -1"):
        LambdaRank().fit(x, y, query_weights={3: -1})


def test_sample_weights():
    """Items of weight 0 are as good as unlabeled, but for their part in the ideal."""
    x, y = made(0, queries=20)
    none = {q: dict.fromkeys(range(12), 0.0) for q in range(10, 20)}
    weighed = LambdaRank(passes=5).fit(x, y, sample_weights=none)
    silent = LambdaRank(passes=5).fit(x, y, query_weights=dict.fromkeys(range(10, 20), 1e-300))
    np.testing.assert_allclose(weighed.member_weights_, silent.member_weights_, rtol=1e-6)
    with pytest.raises(InputError, match="sample weight is -1"):
        LambdaRank().fit(x, y, sample_weights={3: {0: -1}})


def test_hidden_layers_learn_what_a_linear_scorer_cannot():
    random = np.random.default_rng(0)
    q, i = np.repeat(np.arange(80), 10), np.tile(np.arange(10), 80)
    x = random.normal(size=(len(q), 2))
    labels = Labels.from_rows(q, i, (x[:, 0] * x[:, 1] > 0.3).astype(float))
    features = Features.from_rows(q, i, x, ["a", "b"])
    flat = LambdaRank(passes=30).fit(features, labels)
    deep = LambdaRank(passes=60, hidden=16, rate=0.02).fit(features, labels)
    assert quality(deep, features, labels) > quality(flat, features, labels) + 0.2


def test_boosted_trees():
    pytest.importorskip("lightgbm")
    model = LambdaRank(scorer="lambdamart", passes=60, rate=0.1).fit(*made(0), validation=made(2))
    assert quality(model, *made(1)) > 0.85
    with pytest.raises(ParameterError, match="optimizes ndcg:exp only"):
        LambdaRank(scorer="lambdamart", metric="ndcg@5:trec")
    with pytest.raises(InputError, match="only a linear scorer"):
        model.feature_weights()


def test_what_a_learner_refuses():
    with pytest.raises(ParameterError, match="cannot be learned directly"):
        LambdaRank(metric="tau_b")
    with pytest.raises(ParameterError, match="hidden is -1"):
        LambdaRank(hidden=-1)
    with pytest.raises(NotFittedError):
        LambdaRank().predict(made(0)[0])
    x, y = made(0)
    with pytest.raises(InputError, match="was fitted with the item features"):
        LambdaRank(passes=1).fit(x, y).predict(Features(x.index, x.values[:, :2], ("up", "down")))


# -- the SVD aggregator --------------------------------------------------------------------------------------------


def crowd(seed, queries=40, items=8):
    """A good expert, one upside down, one that guesses; lists miss some items."""
    random = np.random.default_rng(seed)
    lists, grades = {}, {}
    for q in range(queries):
        truth = random.normal(size=items)
        noisy = {
            "good": truth + 0.3 * random.normal(size=items),
            "reversed": -truth + 0.3 * random.normal(size=items),
        }
        noisy["guess"] = random.normal(size=items)
        lists[f"{seed}-{q}"] = {
            e: [f"i{i}" for i in np.argsort(-s) if random.random() < 0.8] for e, s in noisy.items()
        }
        grades[f"{seed}-{q}"] = {f"i{i}": float(np.digitize(t, [0, 1])) for i, t in enumerate(truth)}
    return Preferences.from_lists(lists), Labels.from_dict(grades)


def ndcg(model, data):
    from podium.evaluate import evaluate

    return evaluate(model.aggregate(data[0]), data[1], "ndcg:exp").mean()["ndcg:exp"]


@pytest.mark.parametrize("transform", ["log", "rank", "binary"])
@pytest.mark.parametrize("components", [1, 2])
def test_svd_finds_out_whom_to_trust(transform, components):
    model = make("svd", transform=transform, components=components, passes=40).fit(*crowd(0))
    assert ndcg(model, crowd(1)) > ndcg(make("rrf"), crowd(1)) + 0.05
    p, _ = crowd(1)
    query = p.queries[0]
    best = model.aggregate(p)[query][0]
    parts = model.explain(p, query, best.item)
    assert sum(parts.values()) == pytest.approx(best.score)
    assert set(parts) == {"good", "reversed", "guess"}
    worst = model.aggregate(p)[query][-1]
    gap = model.explain_order(p, query, best.item, worst.item)
    assert sum(gap.values()) == pytest.approx(best.score - worst.score)
    assert list(gap)[-1] == "guess"


def test_combined_and_hybrid_take_any_expert():
    train, test = crowd(0), crowd(1)
    strangers = Preferences.from_lists({"q": {"new": ["a", "b"], "newer": ["a", "c"]}})
    for matrices in ("combined", "hybrid"):
        model = make("svd", matrices=matrices, min_preferences=10_000, passes=10).fit(*train)
        assert model.aggregate(strangers).ranking("q")
        assert set(model.explain(strangers, "q", "a")) == {POOLED}
    own = make("svd", matrices="hybrid", min_preferences=10, passes=40).fit(*train)
    assert own.own_ == ["good", "guess", "reversed"]
    assert ndcg(own, test) > ndcg(make("rrf"), test) + 0.05
    with pytest.raises(ParameterError, match="was not trained on expert 'new' and 1 more"):
        make("svd", passes=1).fit(*train).aggregate(strangers)
    with pytest.warns(PodiumWarning, match="trained on none of these experts"):
        assert make("svd", passes=1, unseen="ignore").fit(*train).aggregate(strangers).ranking("q")


def test_labeled_items_only():
    p, labels = crowd(0)
    half = Labels.from_dict(
        {q: {i: labels.grade(q, i) for i in ("i0", "i1", "i2", "i3", "i4")} for q in p.queries}
    )
    every, some = (make("svd", items=items, passes=20).fit(p, half) for items in ("all", "labelled"))
    assert not np.allclose(every.member_weights_, some.member_weights_)
    assert min(ndcg(every, crowd(1)), ndcg(some, crowd(1))) > ndcg(make("rrf"), crowd(1))
    # an expert has features of its own by the number of all its rows, not of those on labeled items
    hybrid = {"matrices": "hybrid", "passes": 1}
    count = int(p.lists.lengths.sum()) // len(p.experts)
    own = [
        make("svd", items=i, min_preferences=count, **hybrid).fit(p, half).own_ for i in ("all", "labelled")
    ]
    assert own[0] == own[1] != []


@pytest.mark.parametrize(
    "spec", ["svd(passes=5)", "svd(passes=5, hidden=4)", "svd(passes=5, scorer=lambdamart)"]
)
def test_saved_and_loaded(spec, tmp_path):
    if "lambdamart" in spec:
        pytest.importorskip("lightgbm")
    p, labels = crowd(0)
    held = crowd(2, queries=10)
    model = make(spec).fit(p, labels, validation=Dataset(*held))
    save(model, tmp_path / "m.podium")
    again = load(tmp_path / "m.podium")
    assert again.aggregate(p).scores.tobytes() == model.aggregate(p).scores.tobytes()
    parts = again.explain(p, p.queries[0], "i0")
    assert set(parts) <= {"good", "reversed", "guess"}


def test_a_tie_is_no_merit():
    """Validation ranks tied items worst grade first: a scorer that says nothing must not look perfect."""
    from podium.learning.examples import Examples

    labels = Labels.from_dict({"q": {"a": 1, "b": 0, "c": 0, "d": 0}, "r": {"a": 0, "b": 0, "c": 1, "d": 0}})
    found = Examples.from_labels(labels.index, labels)
    assert found.compute_mean_metric(np.zeros(8), "mrr") == 0.25
    assert found.compute_mean_metric(found.labels.grades, "mrr") == 1.0


def test_trees_are_chosen_by_the_metric_asked_for(monkeypatch):
    pytest.importorskip("lightgbm")
    validation, asked = made(2), []
    plain = Examples.compute_mean_metric

    def watched(self, scores, metric):
        asked.append((str(metric), plain(self, scores, metric)))
        return asked[-1][1]

    monkeypatch.setattr(Examples, "compute_mean_metric", watched)
    model = LambdaRank(scorer="lambdamart", passes=20, rate=0.3, choose_by="p@1")
    model.fit(*made(0), validation=validation)
    values = [value for name, value in asked if name == "p@1"]
    assert len(values) == 20 == len(asked)
    assert model.passes_ == [1 + values.index(max(values))]


@pytest.mark.parametrize(
    "method", ["svd", "svd(scorer=lambdamart)", "crf", "fused", "weighted_rrf", "weighted_borda"]
)
def test_labels_from_which_the_metric_learns_nothing(method):
    if "lambdamart" in method:
        pytest.importorskip("lightgbm")
    p, labels = crowd(0)
    spam = Labels(labels.index, labels.grades - 5.0)  # two grades in a query, but none above 0
    with pytest.raises(InputError, match="is 0 for every ranking of the labeled items"):
        make(method).fit(p, spam)
    with pytest.raises(InputError, match="every query with two grades has weight 0"):
        make(method).fit(p, labels, query_weights=dict.fromkeys(p.queries, 0))
    with pytest.raises(InputError, match="the labels are a dict"):
        make(method).fit(p, {"q": {"a": 1}})
    assert make(method).fit(p, labels, query_weights={p.queries[0]: np.float32(2)}).experts_


def test_validation_without_labels_and_a_fit_that_broke_off():
    features, labels = made(0)
    with pytest.raises(InputError, match="the validation queries have no labels"):
        LambdaRank().fit(features, labels, validation=(features, Labels.from_dict({"other": {"a": 1}})))
    model = LambdaRank(passes=2, standardize=True).fit(features, labels)

    def stop(*_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        model.fit(Features(features.index, features.values * 9, features.names), labels, progress=stop)
    for use in (lambda: model.predict(features), model.feature_weights, LambdaRank().feature_weights):
        with pytest.raises(NotFittedError):
            use()


def test_members_stop_when_one_is_interrupted():
    told = []

    def interrupt(*_):
        told.append(1)
        if len(told) == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        LambdaRank(members=4, passes=2000).fit(*made(0), progress=interrupt)
    assert len(told) < 1000  # of 8000


def test_queries_too_long_for_trees():
    pytest.importorskip("lightgbm")
    features, labels = made(0, queries=1, items=10_001)
    with pytest.raises(InputError, match="10,001 labeled items, and LightGBM accepts 10,000"):
        LambdaRank(scorer="lambdamart", passes=2).fit(features, labels)
    small = made(1, queries=20)
    with pytest.raises(InputError, match="LightGBM accepts 10,000"):
        LambdaRank(scorer="lambdamart", passes=2).fit(*small, validation=(features, labels))
