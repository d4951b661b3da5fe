"""Expert weights by query: what they are without slopes, whom they trust where, and what they cost with few labels."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner
from scipy import stats

from podium import Features, Labels, Preferences, load, make, save
from podium.analysis.explain import explain
from podium.cli import program
from podium.core.errors import InputError, NotFittedError, ParameterError
from podium.data.dataset import Dataset
from podium.data.demo import demo
from podium.evaluate import evaluate
from podium.methods.agreement_fusion import AgreementWeightedFusion
from podium.methods.learned.query_weighted_fusion import QueryWeightedFusion
from podium.methods.list_features import LIST_FEATURES, build_list_features
from podium.testing.samples import sample_rows

ITEMS = 20


def simulate(queries=60, seed=0, scored=False):
    """Four experts of some accuracy; "moody" is better than they are on even queries, and random on the others."""
    random = np.random.default_rng(seed)
    lists, grades = {}, {}
    for query in range(queries):
        useful = random.normal(size=ITEMS)
        noise = {f"steady{e}": 1.0 for e in range(4)}
        noise["moody"] = 1e6 if query % 2 else 0.4
        seen = {e: useful + sd * random.normal(size=ITEMS) for e, sd in noise.items()}
        lists[query] = {
            e: dict(enumerate(v.tolist())) if scored else np.argsort(-v).tolist() for e, v in seen.items()
        }
        grades[query] = dict(enumerate(np.digitize(useful, (0.5, 1.2)).tolist()))
    return Preferences.from_lists(lists), Labels.from_dict(grades)


def mean_ndcg(method, preferences, labels, features=None):
    return evaluate(method.aggregate(preferences, features), labels, ["ndcg@10"]).mean()["ndcg@10"]


# -- special cases -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [5, 60])
def test_without_slopes_it_is_weighted_rrf(k):
    data = demo(30)
    model = make(f"query_weighted(slopes=none, k={k})").fit(data.preferences, data.labels)
    plain = make(f"weighted_rrf(k={k}, rate={model.rate})").fit(data.preferences, data.labels)
    assert model.weights_ == pytest.approx(plain.weights_)
    assert model.aggregate(data.preferences).scores == pytest.approx(
        plain.aggregate(data.preferences).scores, rel=1e-12
    )


def test_slopes_of_zero_are_global_weights():
    p, labels = simulate()
    model = QueryWeightedFusion(slopes="expert").fit(p, labels)
    assert np.abs(model.slopes_).max() > 0
    model.slopes_ = np.zeros_like(model.slopes_)
    expected = make("rrf", weights=model.weights_).aggregate(p)
    assert model.aggregate(p).scores == pytest.approx(expected.scores, rel=1e-12)
    assert all(one == pytest.approx(model.weights_) for one in model.compute_expert_weights(p).values())


def test_min_max_points_are_combsum():
    p, labels = simulate(scored=True)
    model = QueryWeightedFusion(slopes="none", points="minmax").fit(p, labels)
    expected = make("combsum", weights=model.weights_).aggregate(p)
    assert model.aggregate(p).scores == pytest.approx(expected.scores, rel=1e-9, abs=1e-12)
    flat = AgreementWeightedFusion(sharpness=0, points="minmax").aggregate(p)
    assert flat.scores == pytest.approx(make("combsum").aggregate(p).scores, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("form", sorted(AgreementWeightedFusion.tags.accepts, key=str))
def test_sharpness_of_zero_is_rrf(form):
    p = sample_rows(form, 1).to_preferences()
    found, plain = AgreementWeightedFusion(sharpness=0).aggregate(p), make("rrf").aggregate(p)
    assert found.order.tolist() == plain.order.tolist()
    assert found.scores == pytest.approx(plain.scores, rel=1e-12)


# -- whom they trust ---------------------------------------------------------------------------------------------


def moody_weights(model, preferences):
    """Mean weight of the expert on the queries on which it is accurate, and on the others."""
    table = model.compute_expert_weights(preferences)
    return [np.mean([table[q]["moody"] for q in table if q % 2 == part]) for part in (0, 1)]


@pytest.mark.parametrize("slopes", ["shared", "expert"])
def test_an_expert_counts_less_where_it_is_random(slopes):
    train, test = simulate(120), simulate(200, seed=1)
    model, fixed = (QueryWeightedFusion(slopes=s).fit(*train) for s in (slopes, "none"))
    accurate, random = moody_weights(model, test[0])
    assert random < 0.7 * accurate
    assert moody_weights(fixed, test[0])[0] == pytest.approx(moody_weights(fixed, test[0])[1])
    assert mean_ndcg(model, *test) > mean_ndcg(fixed, *test)


def test_agreement_needs_no_labels():
    p, labels = simulate(200, seed=1)
    accurate, random = moody_weights(AgreementWeightedFusion(), p)
    assert random < 0.7 * accurate
    deep = AgreementWeightedFusion(
        sharpness=3, depth=10
    )  # all items are listed, and places beyond the first count
    assert mean_ndcg(deep, p, labels) > mean_ndcg(make("rrf"), p, labels)


@pytest.mark.parametrize("slopes", ["shared", "expert"])
def test_weights_of_a_query_keep_their_sum(slopes):
    p, labels = simulate(40)
    model = QueryWeightedFusion(slopes=slopes).fit(p, labels)
    for weights in model.compute_expert_weights(p).values():
        assert sum(weights.values()) == pytest.approx(sum(model.weights_.values()))
        assert min(weights.values()) >= 0
    for weights in AgreementWeightedFusion().compute_expert_weights(p).values():
        assert sum(weights.values()) == pytest.approx(len(p.experts))


def test_with_few_labels_weights_stay_near_the_global_ones():
    held = simulate(50, seed=2)[0]

    def distance(queries, seed):
        model = QueryWeightedFusion(rate=0.05, passes=100).fit(*simulate(queries, seed=seed))
        table = model.compute_expert_weights(held)
        ratios = [w[e] / model.weights_[e] for w in table.values() for e in w if model.weights_[e] > 0]
        return float(np.abs(np.log(ratios)).mean())

    few, many = (np.mean([distance(n, seed) for seed in (10, 11)]) for n in (3, 160))
    assert few < 0.1
    assert few < 0.25 * many
    strict = QueryWeightedFusion(shrinkage=1e6).fit(*simulate(60))
    assert np.abs(strict.slopes_).max() < 0.02


# -- features ----------------------------------------------------------------------------------------------------


def test_features_by_definition():
    data = demo(15)
    p = data.preferences
    random = np.random.default_rng(0)
    trust = random.random(len(p.experts))
    values = build_list_features(p, trust)
    assert values.shape == (len(p.lists), len(LIST_FEATURES))
    column = {name: values[:, at] for at, name in enumerate(LIST_FEATURES)}
    lists, starts = p.lists, p.lists.starts
    for one in random.choice(len(lists), 40, replace=False).tolist():
        rows = range(starts[one], starts[one + 1])
        query = lists.query_of_list[one]
        here = [other for other in np.flatnonzero(lists.query_of_list == query).tolist() if other != one]
        rank = {int(lists.item[r]): int(lists.rank[r]) for r in rows}
        size = int(p.index.sizes[query])
        tops = [lists.item[starts[n] : starts[n + 1]][:5] for n in [one, *here]]
        table = np.zeros((len(tops), size))
        for row, top in enumerate(tops):
            table[row, top - p.index.starts[query]] = 1.0
        mine, count = table[0], table[1:].sum(axis=0)
        constant = np.ptp(mine) == 0 or np.ptp(count) == 0
        overlap = 0.0 if constant else np.corrcoef(mine, count)[0, 1]
        assert column["overlap@5"][one] == pytest.approx(overlap, abs=1e-9)
        others: dict[int, float] = {}
        for other in here:
            for r in range(starts[other], starts[other + 1]):
                i = int(lists.item[r])
                others[i] = others.get(i, 0.0) + trust[lists.expert[other]] / (60 + lists.rank[r])
        shared = [i for i in rank if i in others]
        if len(shared) > 1:
            tau = stats.kendalltau([-rank[i] for i in shared], [round(others[i], 12) for i in shared])
            assert column["trusted tau"][one] == pytest.approx(np.nan_to_num(tau.statistic), abs=1e-9)
        assert column["length"][one] == pytest.approx(np.log(1 + len(rank)))
        assert column["gaps"][one] == pytest.approx(np.log(max(rank.values()) / len(rank)))
    assert not values[:, -3:].any()  # there are no scores


def test_features_of_scores_by_definition():
    scores = {"a": [9.0, 7.0, 3.0, 2.0, 1.0], "flat": [2.0, 2.0, 2.0], "one": [5.0]}
    scores["long"] = np.sort(np.random.default_rng(0).normal(50, 9, 40))[::-1].tolist()
    p = Preferences.from_lists({"q": {e: dict(enumerate(v)) for e, v in scores.items()}})
    values = dict(zip(p.experts, build_list_features(p, np.ones(4))[:, -3:].tolist(), strict=True))
    for expert in ("a", "long"):
        x = np.array(scores[expert])
        expected = (
            (x[0] - x[1]) / (x[0] - x[-1]),
            (x[:10].mean() - x.mean()) / x.std(),
            x[:10].std() / x.max(),
        )
        assert values[expert] == pytest.approx(expected)
    assert values["flat"] == values["one"] == [0.0, 0.0, 0.0]


def test_lists_without_scores_among_lists_with_scores():
    lists = {"q": {"scored": [*np.linspace(9, 1, 14)], "ranked": [np.nan] * 14}}
    rows = [("q", e, f"i{n}", n + 1, v) for e, vs in lists["q"].items() for n, v in enumerate(vs)]
    query, expert, item, rank, score = zip(*rows, strict=True)
    p = Preferences.from_rows(query, expert, item, rank=rank, score=score, blank_scores=True)
    values = dict(zip(p.experts, build_list_features(p, np.ones(2)), strict=True))
    assert not values["ranked"][-3:].any()
    assert values["scored"][-3:].all()
    assert np.isfinite(build_list_features(p, np.ones(2))).all()


def by_topic(queries=80, seed=0):
    """Two experts; which of them is accurate depends on the topic alone, and their lists do not show it."""
    random = np.random.default_rng(seed)
    lists, grades, rows = {}, {}, []
    for query in range(queries):
        useful, topic = random.normal(size=ITEMS), query % 2
        noise = {"law": (0.3, 3.0)[topic], "sport": (3.0, 0.3)[topic]}
        lists[query] = {
            e: np.argsort(-(useful + sd * random.normal(size=ITEMS))).tolist() for e, sd in noise.items()
        }
        grades[query] = dict(enumerate(np.digitize(useful, (0.5, 1.2)).tolist()))
        rows += [(query, item, [float(topic)]) for item in range(ITEMS)]
    query, item, values = zip(*rows, strict=True)
    return (
        Preferences.from_lists(lists),
        Labels.from_dict(grades),
        Features.from_rows(query, item, values, ["topic"]),
    )


def test_features_of_queries_tell_which_expert_is_good(tmp_path):
    (p, labels, x), (q, truth, y) = by_topic(), by_topic(seed=1)
    model = QueryWeightedFusion(slopes="none", shrinkage=1).fit(p, labels, x)
    table = model.compute_expert_weights(q, y)
    assert all((w["law"] > w["sport"]) == (query % 2 == 0) for query, w in table.items())
    blind = QueryWeightedFusion().fit(p, labels)
    assert mean_ndcg(model, q, truth, y) > mean_ndcg(blind, q, truth) + 0.02
    save(model, tmp_path / "m.podium")
    assert load(tmp_path / "m.podium").compute_expert_weights(q, y) == table
    with pytest.raises(InputError, match="topic"):
        model.aggregate(q)
    with pytest.raises(InputError, match="without item features"):
        blind.aggregate(q, y)


# -- explanations and commands -----------------------------------------------------------------------------------


@pytest.mark.parametrize("spec", ["agreement_weighted", "query_weighted(passes=5)", "weighted_rrf(passes=5)"])
def test_explanations_show_the_weights_of_the_query(spec):
    p, labels = simulate(30)
    model = make(spec)
    model = model.fit(p, labels) if model.tags.supervised else model
    shown = explain(model, p, 7)
    assert shown.exact
    table = model.compute_expert_weights(p)[7] if hasattr(model, "compute_expert_weights") else model.weights_
    assert {v.expert: v.weight for v in shown.contributions} == pytest.approx(table)
    for v in shown.contributions:
        assert v.value == pytest.approx(table[v.expert] / (60 + v.ranks[0]))
    assert "weight" in shown.grid().head
    assert "weight" not in explain("rrf", p, 7).grid().head


def test_commands(tmp_path):
    run = CliRunner().invoke
    data = demo(20)
    files = [str(tmp_path / name) for name in ("runs.csv", "labels.txt", "model.podium")]
    rows = data.preferences.to_frame("pandas")
    rows.to_csv(files[0], index=False)
    labels = data.labels
    with open(files[1], "w") as qrels:
        for query, items in ((q, labels.index.slots(q)) for q in labels.queries):
            for item, grade in zip(labels.index.items[items], labels.grades[items], strict=True):
                qrels.write(f"{query} 0 {item} {int(grade)}\n")
    fit = run(program, ["fit", files[0], "-q", files[1], "-m", "query_weighted(passes=5)", "-o", files[2]])
    assert fit.exit_code == 0, fit.output
    for call in (
        ["apply", files[2], files[0]],
        ["compare", files[0], "-q", files[1], "-m", "rrf", "-m", "agreement_weighted"],
        ["tune", files[0], "-q", files[1], "-m", "agreement_weighted", "--trials", "5"],
    ):
        result = run(program, call)
        assert result.exit_code == 0, (call, result.output)
    shown = run(program, ["explain", files[0], "-m", files[2], "--query", "q003", "--json"])
    assert shown.exit_code == 0, shown.output
    weights = {row["expert"]: row["weight"] for row in json.loads(shown.stdout)["experts"]}
    expected = load(files[2]).compute_expert_weights(data.preferences)["q003"]
    assert weights == pytest.approx(expected)


# -- what is refused ---------------------------------------------------------------------------------------------


def test_refusals():
    p, labels = simulate(10)
    with pytest.raises(NotFittedError, match="fit"):
        QueryWeightedFusion().compute_expert_weights(p)
    with pytest.raises(ParameterError, match="slopes is 'all'"):
        QueryWeightedFusion(slopes="all")
    with pytest.raises(ParameterError, match="takes no weights"):
        QueryWeightedFusion(weights=[1, 2])
    with pytest.raises(ParameterError, match="item features"):
        AgreementWeightedFusion().aggregate(p, by_topic(10)[2])
    model = QueryWeightedFusion().fit(p.without_expert("moody"), labels)
    with pytest.raises(ParameterError, match="moody"):
        model.compute_expert_weights(p)


def test_unknown_experts_are_left_out_of_features_too():
    p, labels = simulate(30)
    model = QueryWeightedFusion(unseen="ignore").fit(p.without_expert("moody"), labels)
    found, expected = model.aggregate(p), model.aggregate(p.without_expert("moody"))
    assert found.scores == pytest.approx(expected.scores, rel=1e-12)
    assert all(w["moody"] == 0 for w in model.compute_expert_weights(p).values())


def test_validation_chooses_the_pass():
    p, labels = simulate(30)
    model = QueryWeightedFusion(passes=7).fit(p, labels, validation=Dataset(*simulate(20, seed=4)))
    assert len(model.passes_) == 2
    assert all(1 <= n <= 7 for n in model.passes_)
