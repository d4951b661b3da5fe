"""Fusion by learned probabilities of positions: the published rules, ties, smoothing, and bad input."""

from __future__ import annotations

import numpy as np
import pytest

from podium import Labels, Preferences, make
from podium.methods.learned.position_probability import PositionProbabilityFusion
from reference import position_probability as plain

RULES = ["posfuse", "slidefuse", "probfuse", "segfuse", "bayesfuse", "mapfuse"]


def sample_lists(random, queries, experts="abc"):
    """expert -> query -> list, and the relevant items by query."""
    lists = {e: {} for e in experts}
    relevant = {}
    for q in queries:
        size = int(random.integers(3, 60))
        quality = random.normal(size=size)
        relevant[q] = {int(d) for d in np.flatnonzero(quality > 0.5)}
        for e in experts:
            order = np.argsort(-quality - random.normal(0, 1, size))
            lists[e][q] = order[: random.integers(1, size + 1)].tolist()
    return lists, relevant


def build(lists, relevant):
    queries = next(iter(lists.values()))
    p = Preferences.from_lists({q: {e: by_query[q] for e, by_query in lists.items()} for q in queries})
    grades = {q: {i: float(i in relevant[q]) for i in range(60)} for q in queries}
    return p, Labels.from_dict(grades)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("rule", RULES)
def test_scores_equal_the_published_definition(rule, seed):
    random = np.random.default_rng(seed)
    lists, relevant = sample_lists(random, [f"q{n}" for n in range(6)])
    model = PositionProbabilityFusion(rule=rule, smoothing=0, window=2, segments=3).fit(
        *build(lists, relevant)
    )
    test, none = sample_lists(random, ["t"])
    scores = model.aggregate(build(test, none)[0]).to_dict()["t"]
    by_expert = {e: by_query["t"] for e, by_query in test.items()}
    expected = plain.fuse(rule, lists, relevant, by_expert, window=2, segments=3)
    # segfuse multiplies by min-max scores: ranks without scores imply falling ones, equally far apart
    assert scores == pytest.approx(expected, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("rule", RULES)
def test_contributions_add_up_for_every_rule(rule):
    random = np.random.default_rng(0)
    p, labels = build(*sample_lists(random, ["q", "r", "s"]))
    model = PositionProbabilityFusion(rule=rule).fit(p, labels)
    scores = model.aggregate(p).to_dict()["q"]
    for item in list(scores)[:3]:
        assert sum(model.explain(p, "q", item).values()) == pytest.approx(scores[item], abs=1e-9)


@pytest.mark.parametrize("rule", RULES)
def test_tied_items_share_the_values_of_their_positions(rule):
    random = np.random.default_rng(1)
    lists, relevant = sample_lists(random, ["q", "r", "s"])
    model = PositionProbabilityFusion(rule=rule).fit(*build(lists, relevant))
    flat = {e: dict.fromkeys(range(5), 1.0) for e in lists}
    assert model.aggregate(Preferences.from_lists({"t": flat})).tied.all()


def test_smoothing_needs_fewer_queries():
    """With four labeled queries, smoothed probabilities rank better than raw ones."""
    gains = []
    for seed in range(20):
        random = np.random.default_rng(seed)
        lists, relevant = sample_lists(random, [f"q{n}" for n in range(4)])
        test, truth = sample_lists(random, [f"t{n}" for n in range(20)])
        p, _ = build(test, truth)
        means = []
        for smoothing in (1.0, 0.0):
            model = PositionProbabilityFusion(smoothing=smoothing).fit(*build(lists, relevant))
            consensus = model.aggregate(p)
            means.append(
                np.mean([plain.average_precision(consensus.ranking(q), truth[q]) for q in truth if truth[q]])
            )
        gains.append(means[0] - means[1])
    assert np.mean(gains) > 0.01


def test_relevant_items_that_no_expert_lists_lower_average_precision():
    p = Preferences.from_lists({"q": {"a": ["x", "y"], "b": ["y", "x"]}})
    for extra, best in (({}, 1.0), ({"z": 1.0}, 0.5)):
        labels = Labels.from_dict({"q": {"x": 1.0, "y": 0.0, **extra}})
        model = make("position_probability(rule=mapfuse)").fit(p, labels)
        assert model.table_[:, 0].tolist() == [best, best / 2]
