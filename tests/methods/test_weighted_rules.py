"""Rules with learned weights: whom they trust, and that they are the plain rules under the weights they learned."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import lessons
from podium import Borda, Kemeny, Labels, Preferences, ReciprocalRankFusion, formats, load, make, save
from podium.core.errors import InputError, NotFittedError, ParameterError, UnsupportedFormError
from podium.data.dataset import Dataset
from podium.evaluate import evaluate
from podium.methods.learned.weighted_rules import WeightedBorda, WeightedKemeny, WeightedRrf

METHODS = pytest.mark.parametrize("method", [WeightedBorda, WeightedRrf, WeightedKemeny])
RULES = pytest.mark.parametrize("method", [WeightedBorda, WeightedRrf])


def lesson(queries=40, seed=0, unlisted="unknown"):
    return lessons.lesson(lambda p: None if p == 4 else (7 - p) // 3, queries, seed, unlisted)


@METHODS
def test_good_experts_count_and_reversed_ones_do_not(method):
    p, labels = lesson()
    weights = method().fit(p, labels).weights_
    assert list(weights) == p.experts.tolist()
    assert weights["good"] > 4 * weights["noise"]
    assert weights["reversed"] <= 0.02 * weights["good"]
    assert min(weights.values()) >= 0


@RULES
def test_learning_helps(method):
    train, test = lesson(), lesson(seed=1)
    model = method().fit(*train)
    plain = make(method.name.removeprefix("weighted_"))
    learned, before = (
        evaluate(m.aggregate(test[0]), test[1], ["ndcg"]).mean()["ndcg"] for m in (model, plain)
    )
    assert learned > before + 0.1


@pytest.mark.parametrize(("method", "plain"), [(WeightedBorda, Borda), (WeightedRrf, ReciprocalRankFusion)])
def test_scores_are_those_of_the_plain_rule(method, plain):
    p, labels = lesson(10)
    model = method(passes=3).fit(p, labels)
    weighted = plain(weights=model.weights_).aggregate(p)
    found = model.aggregate(p)
    assert np.allclose(found.scores, weighted.scores, rtol=1e-12)
    assert found.order.tolist() == weighted.order.tolist()
    assert found.expert_weights.tolist() == [*model.weights_.values()]
    assert np.mean([*model.weights_.values()]) == pytest.approx(1.0)
    model.weights_ = dict.fromkeys(model.weights_, 1.0)
    assert model.aggregate(p).order.tolist() == plain().aggregate(p).order.tolist()


@RULES
def test_contributions_add_up(method):
    p, labels = lesson(10)
    model = method().fit(p, labels)
    score = {row.item: row.score for row in model.aggregate(p)[3]}
    for item in "ah":
        parts = model.explain(p, 3, item)
        assert sum(parts.values()) == pytest.approx(score[item])
        assert set(parts) == {"good", "noise", "reversed"}


@RULES
def test_validation_chooses_the_pass_and_progress_is_told(method):
    p, labels = lesson()
    seen = []
    model = method(passes=7).fit(
        p, labels, validation=Dataset(*lesson(20, seed=2)), progress=lambda *about: seen.append(about)
    )
    assert 1 <= model.passes_[0] <= 7
    assert seen == [(i, 7, "learning") for i in range(1, 8)]


# -- Kemeny ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("agreement", ["tau", "ndcg"])
def test_kemeny_is_kemeny_under_the_weights(agreement):
    p, labels = lesson(10)
    model = WeightedKemeny(agreement=agreement).fit(p, labels)
    expected = Kemeny(weights=model.weights_).aggregate(p)
    found = model.aggregate(p)
    assert found.scores.tolist() == expected.scores.tolist()
    assert found.diagnostics.objective == expected.diagnostics.objective
    assert found.expert_weights.tolist() == [*model.weights_.values()]


def agreement_by_definition(p, labels, weight):
    """Every expert, every pair of labeled items of different grade."""
    found = {}
    for expert in p.experts:
        one = p.with_experts([expert])
        total = [0.0, 0.0]
        for q in p.queries:
            rank = ranks(one, q)
            graded = {i: g for i, g in grades(labels, q).items() if i in p.index.items[p.index.slots(q)]}
            for x, y in itertools.permutations(graded, 2):
                if graded[x] > graded[y] and rank:
                    a, b = rank.get(x), rank.get(y)
                    if p.unlisted == "below":
                        a, b = (99 if r is None else r for r in (a, b))
                    if a is not None and b is not None and a != b:
                        total[a > b] += weight.get(q, 1.0)
        found[expert] = max(0.0, (total[0] - total[1]) / (sum(total) or 1.0))
    return found


def ranks(p, query):
    here = p.select([query])
    return {here.index.items[int(s)]: int(r) for s, r in zip(here.lists.item, here.lists.rank, strict=True)}


def grades(labels, query):
    if query not in labels.queries.tolist():
        return {}
    here = labels.index.slots(query)
    return dict(zip(labels.index.items[here], labels.grades[here].tolist(), strict=True))


@pytest.mark.parametrize("unlisted", ["unknown", "below"])
def test_tau_agreement_is_that_of_the_definition(unlisted):
    random = np.random.default_rng(5)
    rows = [
        (q, e, i, random.integers(1, 6))
        for q in range(12)
        for e in ("x", "y", "z")
        if random.random() < 0.8
        for i in lessons.ITEMS
        if random.random() < 0.7
    ]
    query, expert, item, rank = zip(*rows, strict=True)
    p = Preferences.from_rows(query, expert, item, rank=rank, unlisted=unlisted)
    labels = Labels.from_dict({q: {i: int(random.integers(-1, 3)) for i in "abcdex"} for q in range(11)})
    model = WeightedKemeny().fit(p, labels, query_weights={2: 3.0, 4: 0.0})
    assert model.weights_ == pytest.approx(agreement_by_definition(p, labels, {2: 3.0, 4: 0.0}))


def test_votes_count_in_agreement():
    p = Preferences.from_comparisons(
        ["q"] * 5, ["v", "v", "v", "w", "w"], "aabba", "bcacb", weight=[3, 1, 1, 1, 1]
    )
    labels = Labels.from_dict({"q": {"a": 2, "b": 1}})
    assert WeightedKemeny().fit(p, labels).weights_ == {"v": 0.5, "w": 1.0}


def test_ndcg_of_an_expert_is_that_of_its_run():
    p, labels = lesson(15)
    model = WeightedKemeny(agreement="ndcg").fit(p, labels)
    alone = ReciprocalRankFusion().aggregate(p.with_experts(["good"]))
    judged = Labels.from_dict({q: grades(labels, q) for q in labels.queries})
    kept = {q: [i for i in alone.ranking(q) if i in grades(labels, q)] for q in labels.queries}
    only = ReciprocalRankFusion().aggregate(Preferences.from_lists({q: {"e": kept[q]} for q in kept}))
    assert model.weights_["good"] == pytest.approx(evaluate(only, judged, ["ndcg:exp"]).mean()["ndcg:exp"])


def test_equal_places_are_counted_at_their_worst():
    p = Preferences.from_rows(["q"] * 3, ["e"] * 3, ["a", "b", "c"], rank=[1, 1, 1])
    one = WeightedKemeny(agreement="ndcg").fit(p, Labels.from_dict({"q": {"a": 1, "b": 0, "c": 0}}))
    two = WeightedKemeny(agreement="ndcg").fit(p, Labels.from_dict({"q": {"a": 0, "b": 0, "c": 1}}))
    assert one.weights_ == two.weights_ == pytest.approx({"e": 0.5})


def test_nobody_to_trust_ties_all():
    p = Preferences.from_lists({"q": {"bad": ["c", "b", "a"]}})
    model = WeightedKemeny().fit(p, Labels.from_dict({"q": {"a": 2, "b": 1, "c": 0}}))
    assert model.weights_ == {"bad": 0.0}
    assert all(row.tied for row in model.aggregate(p)["q"])


# -- all -----------------------------------------------------------------------------------------------------------


@METHODS
def test_saved_and_loaded(method, tmp_path):
    p, labels = lesson(5)
    model = method().fit(p, labels)
    save(model, tmp_path / "model.podium")
    again = load(tmp_path / "model.podium")
    assert again.weights_ == model.weights_
    assert again.aggregate(p).scores.tolist() == model.aggregate(p).scores.tolist()


@METHODS
def test_errors_say_what_to_do(method):
    p, labels = lesson(3)
    with pytest.raises(NotFittedError, match="has not been fitted"):
        method().aggregate(p)
    with pytest.raises(InputError, match="no labels to learn from"):
        method().fit(p)
    with pytest.raises(ParameterError, match="takes no weights"):
        method(weights=[1, 2, 3])
    stranger = Preferences.from_lists({"q": {"new": ["a", "b"], "good": ["b", "a"]}})
    with pytest.raises(ParameterError, match="not trained on expert 'new'"):
        method().fit(p, labels).aggregate(stranger)
    model = method(unseen="ignore").fit(p, labels)
    assert model.aggregate(stranger).ranking("q") == ["b", "a"]
    assert model.aggregate(stranger).expert_weights.tolist() == [model.weights_["good"], 0.0]


@RULES
def test_rules_refuse_what_they_cannot_learn_or_read(method):
    with pytest.raises(ParameterError, match="cannot be learned"):
        method(metric="tau_b")
    votes = Preferences.from_comparisons(["q"], ["e"], ["a"], ["b"])
    with pytest.raises(UnsupportedFormError, match="comparison"):
        method().fit(votes, Labels.from_dict({"q": {"a": 1, "b": 0}}))


@pytest.mark.data
@RULES
def test_learned_weights_help_on_real_data(data_dir, method):
    """The mean of five folds of MQ2008-agg: N@5 and MAP above the same rule without weights."""
    data = formats.read([data_dir / "mq2008-agg" / f"A{i}.txt.gz" for i in range(1, 6)]).dataset()
    plain, found = make(method.name.removeprefix("weighted_")), []
    for fold in data.folds():
        model = method(passes=10).fit(fold.train.preferences, fold.train.labels, validation=fold.validation)
        both = (m.aggregate(fold.test.preferences, ties="input") for m in (model, plain))
        found.append(
            [[*evaluate(c, fold.test.labels, ["ndcg@5:letor", "map"]).mean().values()] for c in both]
        )
    learned, before = np.mean(found, axis=0)
    assert (learned > before + 0.015).all()
