"""The CRF over rankings: its scores by definition, what it learns about experts, and that names decide nothing."""

from __future__ import annotations

import numpy as np
import pytest

import podium
from podium import Labels, Preferences
from podium.core.errors import InputError, NotFittedError, ParameterError
from podium.data.dataset import Dataset
from podium.evaluate import evaluate
from podium.methods.learned.crf import CrfAggregator
from reference import permutations as reference

ITEMS = 10


def problem(seed=0, queries=60, experts=("good", "fair", "reversed", "noise"), items=ITEMS, rare=()):
    """Grades 0 to 2; every expert lists eight of the items by its own idea of them, `rare` ones in four queries."""
    random = np.random.default_rng(seed)
    rows, grades = [], []
    for q in range(queries):
        grade = random.permutation([2, 1, 1] + [0] * (items - 3))
        grades += [(f"q{q}", f"i{i}", float(g)) for i, g in enumerate(grade)]
        for expert in (*experts, *(rare if q < 4 else ())):
            trust = {"good": 1.5, "fair": 0.7, "reversed": -1.0}.get(expert.split("-")[0], 0.0)
            idea = trust * grade + random.normal(size=items)
            listed = random.permutation(items)[: max(2, items - 2)]
            order = sorted(listed.tolist(), key=lambda i, idea=idea: -idea[i])
            rows += [(f"q{q}", expert, f"i{i}", r) for r, i in enumerate(order, 1)]
    query, expert, item, rank = zip(*rows, strict=True)
    return Preferences.from_rows(query, expert, item, rank=rank), Labels.from_rows(*zip(*grades, strict=True))


@pytest.fixture(scope="module")
def learned():
    preferences, labels = problem()
    return CrfAggregator(passes=60).fit(preferences, labels), preferences, labels


def quality(model, preferences, labels, metric="ndcg@5:exp") -> float:
    return evaluate(model.aggregate(preferences), labels, [metric]).mean()[metric]


def by_expert(model):
    return {row.expert: row for row in model.expert_weights()}


# -- the model ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("transform", ["log", "rank", "binary"])
@pytest.mark.parametrize(
    ("power", "divisor"), [(0.0, "items"), (1.0, "items"), (1.0, "others"), (0.5, "others")]
)
def test_scores_by_definition(transform, power, divisor) -> None:
    preferences, labels = problem(queries=3)
    model = CrfAggregator(passes=5, transform=transform, length_power=power, divisor=divisor)
    model.fit(preferences, labels)
    weights = {r.expert: (r.missing, r.preferred, r.beaten) for r in model.expert_weights()}
    for place in model.aggregate(preferences)["q1"]:
        fewer = int(divisor == "others")
        found = reference.score(preferences, "q1", place.item, weights, transform, power, fewer)
        assert place.score == pytest.approx(found, abs=1e-12)
        assert sum(model.explain(preferences, "q1", place.item).values()) == pytest.approx(found, abs=1e-12)


def test_learning_on_whole_queries_descends_to_the_optimum() -> None:
    """With all items of few queries in the subset the objective is exact: plain steps lower it every time."""
    preferences, labels = problem(queries=6, items=5)
    settings = {"optimizer": "sgd", "rate": 0.05, "decay": 0.0, "batch": 1000, "average": 1, "l2": 0.0}
    model = CrfAggregator(passes=150, **settings).fit(preferences, labels)
    assert (np.diff(model.losses_) < 1e-12).all()


def test_a_step_as_in_the_authors_code() -> None:
    """One step from 0 without scaling is minus the rate times the gradient, here by differences over all rankings."""
    preferences, labels = problem(queries=1, items=4)
    plain = {"optimizer": "sgd", "rate": 2.0, "decay": 0.0, "batch": 1, "average": 1, "l2": 0.0, "passes": 1}
    settings = {"length_power": 1.0, "divisor": "others", "scaling": "none"}
    model = CrfAggregator(**plain, **settings).fit(preferences, labels)
    items = preferences.index.items.tolist()
    gain = [2 ** labels.grade("q0", item) - 1 for item in items]
    discount = [1 / np.log2(place + 2) for place in range(len(items))]

    def expected_loss(weights) -> float:
        omega = [reference.score(preferences, "q0", item, weights, "log", 1.0, 1) for item in items]
        return -reference.compute_expected_metric(omega, gain, "sum", discount, len(items))

    for row in model.expert_weights():
        for column, learned_weight in enumerate((row.missing, row.preferred, row.beaten)):
            nearby = []
            for step in (1e-5, -1e-5):
                weights = {r.expert: [0.0, 0.0, 0.0] for r in model.expert_weights()}
                weights[row.expert][column] = step
                nearby.append(expected_loss(weights))
            assert learned_weight == pytest.approx(-2.0 * (nearby[0] - nearby[1]) / 2e-5, abs=1e-8)


@pytest.mark.parametrize("metric", ["ndcg:exp", "ndcg@3:letor", "map", "err", "rbp", "mrr", "p@2"])
def test_any_metric_can_be_learned(metric) -> None:
    preferences, labels = problem(queries=40)
    model = CrfAggregator(metric=metric, passes=60).fit(preferences, labels)
    assert np.mean(model.losses_[-10:]) < np.mean(model.losses_[:2])
    new, truth = problem(seed=1, queries=40)
    assert quality(model, new, truth) > quality(podium.make("rrf"), new, truth) + 0.05


def test_metrics_that_cannot_be_learned_are_refused() -> None:
    with pytest.raises(ParameterError, match="tau_b cannot be learned"):
        CrfAggregator(metric="tau_b")
    with pytest.raises(NotFittedError):
        CrfAggregator().expert_weights()
    preferences, _ = problem(queries=1)
    below = Labels.from_dict({"q0": {"i0": 0, "i1": -1}})
    with pytest.raises(InputError, match="ndcg:exp is 0 for every ranking"):
        CrfAggregator().fit(preferences, below)


def test_votes_and_top_lists_and_ratings_are_read() -> None:
    votes = Preferences.from_comparisons(["q"] * 3, ["e"] * 3, ["a", "a", "b"], ["b", "c", "c"])
    top = Preferences.from_rows(
        ["q"] * 2, ["e"] * 2, ["a", "b"], rank=[1, 2], unlisted="below", candidates=("q", "c")
    )
    rated = Preferences.from_lists({"q": {"e": {"a": 5.0, "b": 3.0, "c": 3.0}}})
    labels = Labels.from_dict({"q": {"a": 2, "b": 1, "c": 0}})
    for preferences in (votes, top):
        assert CrfAggregator().fit(preferences, labels).aggregate(preferences).ranking("q") == ["a", "b", "c"]
    consensus = CrfAggregator().fit(rated, labels).aggregate(rated)
    assert [place.tied for place in consensus["q"]] == [False, True, True]


# -- what it says of experts -------------------------------------------------------------------------------------


def test_readings(learned) -> None:
    model, _, _ = learned
    table = by_expert(model)
    assert table["good"].reading == "important"
    assert max(row.share for row in table.values()) == 1.0
    assert table["reversed"].reading == "used in reverse"
    assert table["reversed"].preferred < 0
    assert table["reversed"].beaten < 0


def test_a_random_expert_is_ignored_and_pruned(tmp_path) -> None:
    preferences, labels = problem(queries=400)
    model = CrfAggregator(passes=60).fit(preferences, labels)
    assert by_expert(model)["noise"].reading == "ignored"
    smaller = model.prune(preferences, labels)
    assert smaller.dropped_ == ["noise"]
    assert by_expert(smaller)["noise"].reading == "dropped"
    assert model.dropped_ == []
    new, truth = problem(seed=1, queries=200)
    assert quality(smaller, new, truth) > quality(model, new, truth) - 0.01
    without = new.with_experts(["good", "fair", "reversed"])
    assert np.array_equal(smaller.aggregate(new).scores, smaller.aggregate(without).scores)
    podium.save(smaller, tmp_path / "m")
    again = podium.load(tmp_path / "m")
    assert again.expert_weights() == smaller.expert_weights()
    assert again.aggregate(new).scores.tobytes() == smaller.aggregate(new).scores.tobytes()


def test_pruning_is_refused_where_it_means_nothing(learned) -> None:
    model, preferences, labels = learned
    with pytest.raises(ParameterError, match=r"share is 1\.5"):
        model.prune(preferences, labels, share=1.5)
    alike = CrfAggregator(sharing="shared", passes=2).fit(preferences, labels)
    with pytest.raises(ParameterError, match="no expert has weights of its own"):
        alike.prune(preferences, labels)


# -- who has weights --------------------------------------------------------------------------------------------


def test_shared_weights_work_for_any_experts() -> None:
    preferences, labels = problem(experts=("good-1", "good-2", "fair"), queries=30)
    model = CrfAggregator(sharing="shared", passes=40).fit(preferences, labels)
    assert len({row[1:4] for row in model.expert_weights()}) == 1
    assert model.weights_.shape == (1, 3)
    assert model.weights_[0, 1] > 0
    new, truth = problem(seed=2, experts=("good-8", "good-9", "fair-7"), queries=30)
    names = {"good-8": "good-1", "good-9": "good-2", "fair-7": "fair"}
    assert quality(model, new, truth) > 0.75
    known, _ = problem(seed=2, experts=tuple(names.values()), queries=30)
    np.testing.assert_allclose(model.aggregate(new).scores, model.aggregate(known).scores)


def test_hybrid_gives_own_weights_to_those_with_enough_data() -> None:
    preferences, labels = problem(queries=20, rare=("good-rare", "good-rarer"))
    model = CrfAggregator(sharing="hybrid", min_preferences=100, passes=30).fit(preferences, labels)
    table = by_expert(model)
    assert table["good-rare"][1:4] == table["good-rarer"][1:4]
    assert len({row[1:4] for row in table.values()}) == 5
    new, truth = problem(seed=3, experts=("good-new", "good-newer"), queries=20)
    assert quality(model, new, truth) > quality(
        podium.make("rrf"), *problem(seed=3, experts=("noise",), queries=20)
    )
    item = new.index.items[0]
    found = sum(model.explain(new, new.queries[0], item).values())
    weights = dict.fromkeys(new.experts, table["good-rare"][1:4])
    assert found == pytest.approx(reference.score(new, new.queries[0], item, weights, "log", 0.5))


def test_strangers_get_the_mean_where_everybody_has_own_weights() -> None:
    preferences, labels = problem(queries=20)
    model = CrfAggregator(sharing="hybrid", min_preferences=1, passes=10).fit(preferences, labels)
    np.testing.assert_allclose(model.weights_[-1], model.weights_[:-1].mean(axis=0))


def test_experts_that_training_did_not_see(learned) -> None:
    model, preferences, labels = learned
    new, _ = problem(seed=3, experts=("good", "stranger"), queries=2)
    with pytest.raises(ParameterError, match="not trained on expert 'stranger'"):
        model.aggregate(new)
    kind = CrfAggregator(passes=5, unseen="ignore").fit(preferences, labels)
    assert kind.aggregate(new).scores.tolist() == kind.aggregate(new.with_experts(["good"])).scores.tolist()


# -- learning ---------------------------------------------------------------------------------------------------


def test_names_and_order_decide_nothing() -> None:
    """Queries have more items than a subset takes, so this is about how items are drawn."""
    preferences, labels = problem(queries=12)
    plain = CrfAggregator(passes=30).fit(preferences, labels)
    items = {f"i{i}": f"z{(7 * i + 3) % ITEMS}" for i in range(ITEMS)}
    experts = {"good": "x", "fair": "a", "reversed": "m", "noise": "b"}
    other, truth = renamed(preferences, labels, items, experts)
    again = CrfAggregator(passes=30).fit(other, truth)
    new, old = by_expert(again), by_expert(plain)
    for expert, name in experts.items():
        np.testing.assert_allclose(new[name][1:5], old[expert][1:5], rtol=1e-7, atol=1e-9)


def renamed(preferences, labels, items, experts):
    lists, index = preferences.lists, preferences.index
    of = lists.list_of_row
    query = [index.queries[int(q)] for q in lists.query_of_list[of]]
    who = [experts[preferences.experts[int(e)]] for e in lists.expert[of]]
    what = [items[index.items[int(i)]] for i in lists.item]
    turn = np.random.default_rng(0).permutation(len(of)).tolist()
    columns = ([column[t] for t in turn] for column in (query, who, what, lists.rank.tolist()))
    a, b, c, rank = columns
    graded = [
        (labels.index.queries[int(q)], items[labels.index.items[s]], float(labels.grades[s]))
        for s, q in enumerate(labels.index.query_of_slot)
    ]
    return Preferences.from_rows(a, b, c, rank=rank), Labels.from_rows(*zip(*graded[::-1], strict=True))


def test_seeds(learned) -> None:
    model, preferences, labels = learned
    same = CrfAggregator(passes=60).fit(preferences, labels)
    assert same.weights_.tobytes() == model.weights_.tobytes()
    other = CrfAggregator(passes=60, seed=1).fit(preferences, labels)
    assert other.weights_.tobytes() != model.weights_.tobytes()


def test_validation_keeps_the_best_pass_and_progress_is_told() -> None:
    preferences, labels = problem(queries=20)
    check = Dataset(*problem(seed=5, queries=20))
    told = []
    model = CrfAggregator(passes=12, average=1, rate=0.5, decay=0.0).fit(
        preferences, labels, validation=check, progress=lambda done, total, _: told.append((done, total))
    )
    assert told == [(n, 12) for n in range(1, 13)]
    assert model.quality_ == pytest.approx(quality(model, check.preferences, check.labels, "map"))
    shorter = CrfAggregator(passes=model.passes_[0], average=1, rate=0.5, decay=0.0).fit(preferences, labels)
    np.testing.assert_allclose(shorter.weights_, model.weights_)
    with pytest.raises(InputError, match="validation queries have no labels"):
        model.fit(preferences, labels, validation=Dataset(preferences, Labels.from_dict({"other": {"a": 1}})))


def test_query_weights() -> None:
    """Half of the labels are upside down: which half counts decides whom to trust."""
    preferences, labels = problem(queries=40)
    late = np.array([int(q[1:]) >= 20 for q in labels.queries])[labels.index.query_of_slot]
    mixed = Labels(labels.index, np.where(late, 2 - labels.grades, labels.grades))
    for half, preferred in ((range(20, 40), True), (range(20), False)):
        nothing = {f"q{n}": 0.0 for n in half}
        model = CrfAggregator(passes=30).fit(preferences, mixed, query_weights=nothing)
        assert (by_expert(model)["good"].preferred > 0) == preferred


# -- published figures -------------------------------------------------------------------------------------------


def test_as_good_as_the_svd_features_on_mq2008(data_dir) -> None:
    """Volkovs & Zemel report accuracy like that of LR-logR; with and without the experts that are not used."""
    published = [42.81, 44.53, 47.02, 49.00, 50.69, 50.32]
    metrics = [*(f"ndcg@{k}:letor" for k in range(1, 6)), "map"]
    folder = data_dir / "mq2008-agg"
    data = podium.read([folder / f"A{part}.txt.gz" for part in range(1, 6)]).dataset()
    whole, pruned = [], []
    for train, validation, test in data.folds():
        model = CrfAggregator().fit(train.preferences, train.labels, validation=validation)
        smaller = model.prune(train.preferences, train.labels, validation=validation)
        assert smaller.dropped_
        for found, one in ((whole, model), (pruned, smaller)):
            consensus = one.aggregate(test.preferences, ties="input")
            found.append(list(evaluate(consensus, test.labels, metrics).mean().values()))
    whole, pruned = (100 * np.mean(found, axis=0) for found in (whole, pruned))
    assert (whole > np.array(published) - 1.0).all(), whole
    assert (pruned > whole - 0.3).all(), (whole, pruned)
