"""The coset-permutation stagewise model: its likelihood, what it learns, and what it ranks."""

from __future__ import annotations

import math

import numpy as np
import pytest

import lessons
from lessons import ITEMS
from podium import Labels, Preferences, formats, load, make, save
from podium.core.errors import InputError, NotFittedError, ParameterError
from podium.core.progress import no_progress
from podium.evaluate import evaluate
from podium.learning.examples import Examples, Training
from podium.methods.learned.weighted_cps import StageChoices, WeightedCps
from podium.methods.stagewise import Cps, mean_places
from reference import stagewise as plain

KINDS = pytest.mark.parametrize("distance", ["kendall", "spearman", "footrule"])


def lesson(queries=30, seed=0, grades=3):
    return lessons.lesson(lambda p: (len(ITEMS) - 1 - p) * grades // len(ITEMS), queries, seed)


def choices_of(preferences, labels, distance, normalize=True, weights=None):
    examples = Examples.from_labels(preferences.index, labels, weights)
    training = Training(preferences, examples, None, None, no_progress)
    experts = len(preferences.experts)
    places = mean_places(preferences, np.arange(experts), experts)[examples.rows]
    return StageChoices.from_training(training, places, distance, normalize)


@KINDS
@pytest.mark.parametrize("normalize", [True, False])
def test_gradient_equals_finite_differences(distance, normalize):
    choices = choices_of(*lesson(), distance, normalize, {0: 0.5, 3: 4.0, 7: 0.0})
    theta, step = np.array([0.3, 0.01, -0.2]), 1e-6
    gradient = choices.compute_loss(theta, 0.1)[1]
    for k in range(3):
        move = step * np.eye(3)[k]
        slope = (choices.compute_loss(theta + move, 0.1)[0] - choices.compute_loss(theta - move, 0.1)[0]) / (
            2 * step
        )
        assert gradient[k] == pytest.approx(slope, rel=1e-5, abs=1e-7)


@KINDS
def test_likelihood_of_a_full_order_is_that_of_the_definition(distance):
    p = Preferences.from_lists({"q": {"x": ["a", "b", "c", "d"], "y": ["c", "a"], "z": ["d", "c", "b", "a"]}})
    labels = Labels.from_dict({"q": {"b": 9, "a": 5, "d": 3, "c": 1}})
    theta = np.array([0.4, 0.1, 0.05])
    places = mean_places(p, np.arange(3), 3)
    assert places.tolist() == [[1, 2, 4], [2, 3.5, 3], [3, 1, 2], [4, 3.5, 1]]
    expected = plain.log_probability([1, 0, 3, 2], places.tolist(), theta.tolist(), distance)
    found = (
        -3 * choices_of(p, labels, distance, normalize=False).compute_loss(theta, 0.0)[0]
    )  # the mean of three stages
    assert found == pytest.approx(expected)


@KINDS
def test_learned_theta_is_a_minimum_and_tells_experts_apart(distance):
    p, labels = lesson()
    model = WeightedCps(distance=distance).fit(p, labels)
    theta = np.array([*model.theta_.values()])
    assert model.converged_
    value, slope = choices_of(p, labels, distance).compute_loss(theta, model.l2)
    assert (np.abs(slope[theta > 0]) < 1e-5).all()
    assert (slope[theta == 0] >= 0).all()
    assert value < math.log(8)
    assert model.theta_["good"] > 5 * model.theta_["noise"]
    assert model.theta_["reversed"] == 0
    free = WeightedCps(distance=distance, positive=False).fit(p, labels)
    assert free.theta_["reversed"] < -0.1 < 0.1 < free.theta_["good"]


def test_unlabeled_items_do_not_matter_for_learning():
    p, labels = lesson(10)
    fewer = Labels.from_dict({q: {i: labels.grade(q, i) for i in "abcde"} for q in labels.queries})
    inside = Preferences.from_lists(
        {
            q: {e: [i for i in found if i in "abcde"] for e, found in by_expert.items()}
            for q, by_expert in as_lists(p).items()
        }
    )
    one, two = WeightedCps().fit(p, fewer).theta_, WeightedCps().fit(inside, fewer).theta_
    assert one == pytest.approx(two, abs=1e-6)


def as_lists(p):
    lists, found = p.lists, {}
    for n in range(len(lists)):
        rows = slice(int(lists.starts[n]), int(lists.starts[n + 1]))
        items = [p.index.items[int(s)] for s in lists.item[rows]]
        found.setdefault(p.queries[int(lists.query_of_list[n])], {})[p.experts[int(lists.expert[n])]] = items
    return found


def test_equal_theta_on_full_lists_is_the_greedy_order():
    """With every pair ordered by every expert, fewest items above is largest net preference."""
    random = np.random.default_rng(1)
    p = Preferences.from_lists(
        {q: {e: [ITEMS[i] for i in random.permutation(8)] for e in range(5)} for q in range(20)}
    )
    greedy = make("greedy").aggregate(p)
    assert Cps().aggregate(p).scores.tolist() == greedy.scores.tolist()


@KINDS
def test_ranking_is_that_of_the_twin(distance):
    p, labels = lesson(6)
    model = WeightedCps(distance=distance).fit(p, labels)
    consensus = model.aggregate(p)
    assert consensus.expert_weights.tolist() == [*model.theta_.values()]
    places = mean_places(p, np.arange(3), 3)
    for q in range(2):
        rows = slice(8 * q, 8 * q + 5)  # the definition lists all rankings: keep five items
        few = np.argsort(np.argsort(places[rows], axis=0), axis=0) + 1.0
        one = Preferences.from_rows(
            [0] * 15,
            np.repeat(p.experts.tolist(), 5).tolist(),
            list("abcde") * 3,
            rank=few.T.ravel().astype(int),
        )
        found = model.aggregate(one).scores
        expected = plain.compute_stage_scores(few.tolist(), [*model.theta_.values()], distance)
        assert np.array_equal(
            np.argsort(-found, kind="stable"), np.argsort(-np.array(expected), kind="stable")
        )


def test_saved_and_loaded(tmp_path):
    p, labels = lesson(5)
    model = WeightedCps(distance="footrule").fit(p, labels)
    save(model, tmp_path / "cps.podium")
    again = load(tmp_path / "cps.podium")
    assert again.theta_ == model.theta_
    assert again.aggregate(p).scores.tolist() == model.aggregate(p).scores.tolist()


def test_progress_and_limits_are_reported():
    p, labels = lesson(5)
    seen = []
    model = WeightedCps(max_iterations=1).fit(p, labels, progress=lambda *about: seen.append(about))
    assert seen == [(1, 1, "learning")]
    assert not model.aggregate(p).diagnostics.converged
    assert WeightedCps().fit(p, labels).aggregate(p).diagnostics.converged


def test_errors_say_what_to_do():
    p, labels = lesson(3)
    with pytest.raises(NotFittedError, match="has not been fitted"):
        WeightedCps().aggregate(p)
    with pytest.raises(InputError, match="weight 0"):
        WeightedCps().fit(p, labels, query_weights=dict.fromkeys(range(3), 0.0))
    with pytest.raises(ParameterError, match="kendall"):
        WeightedCps(distance="cosine")
    stranger = Preferences.from_lists({"q": {"new": ["a", "b"], "good": ["b", "a"]}})
    with pytest.raises(ParameterError, match="not trained on expert 'new'"):
        WeightedCps().fit(p, labels).aggregate(stranger)
    model = WeightedCps(unseen="ignore").fit(p, labels)
    assert model.aggregate(stranger).ranking("q") == ["b", "a"]
    assert model.aggregate(stranger).expert_weights.tolist() == [model.theta_["good"], 0.0]


@pytest.mark.data
def test_better_than_the_published_row(data_dir):
    """CPS-best on MQ2008-agg (Volkovs, Larochelle & Zemel, CIKM 2012), N@1..5 and MAP, the mean of five folds."""
    published = [26.52, 31.38, 34.59, 37.63, 40.04, 41.02]
    metrics = [*(f"ndcg@{k}:letor" for k in range(1, 6)), "map"]
    data = formats.read([data_dir / "mq2008-agg" / f"A{i}.txt.gz" for i in range(1, 6)]).dataset()
    found = []
    for fold in data.folds():
        model = WeightedCps(distance="spearman").fit(fold.train.preferences, fold.train.labels)
        consensus = model.aggregate(fold.test.preferences, ties="input")
        found.append(list(evaluate(consensus, fold.test.labels, metrics).mean().values()))
    assert (100 * np.mean(found, axis=0) > published).all()
