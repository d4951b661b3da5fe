"""The training loop against plain loops over a toy objective: selection, patience, averages, members."""

from __future__ import annotations

import threading
from dataclasses import replace

import numpy as np
import pytest

from podium import make
from podium.learning.plan import ALL_PASSES, Plan, ScorerSettings
from podium.learning.trainer import train, train_members

PLAN = Plan("ndcg:exp", "ndcg@10:exp", optimizer="sgd", rate=0.1, passes=12)


class Walk:
    """Weights take random steps; the quality of a pass is given, or that of the weights."""

    center, nonnegative, threads = None, False, True

    def __init__(self, quality=None):
        self.quality, self.seen, self.rates, self.validated = quality, [], [], []

    def init_weights(self, random):
        return random.normal(size=3)

    def run_pass(self, optimizer, random):
        self.rates.append(optimizer.rate)
        optimizer.weights[:] += optimizer.rate * random.normal(size=3)
        self.seen.append(optimizer.weights.copy())
        return 6.0 * len(self.seen), 2.0

    def validate(self, weights):
        self.validated.append(weights.copy())
        return None if self.quality is None else self.quality[len(self.seen) - 1]


def test_without_validation_the_last_pass_counts():
    walk = Walk()
    trained = train(walk, PLAN, 5)
    assert np.array_equal(trained.weights, walk.seen[-1])
    assert (trained.pass_number, trained.quality) == (12, -np.inf)
    assert trained.losses.tolist() == [3.0 * k for k in range(1, 13)]
    assert np.array_equal(train(Walk(), PLAN, 5).weights, trained.weights)
    assert not np.array_equal(train(Walk(), PLAN, 6).weights, trained.weights)


def test_the_first_best_pass_is_kept_and_patience_ends_training():
    quality = [0.1, 0.3, 0.2, 0.3, 0.1, 0.9, *[0.0] * 6]
    walk = Walk(quality)
    trained = train(walk, PLAN, 0)
    assert (trained.pass_number, trained.quality) == (6, 0.9)
    assert np.array_equal(trained.weights, walk.seen[5])
    short = Walk(quality)
    trained = train(short, replace(PLAN, patience=3), 0)
    assert (trained.pass_number, trained.quality, len(short.seen)) == (2, 0.3, 5)


def test_the_last_pass_is_kept_on_request():
    walk = Walk([0.9, *[0.1] * 11])
    trained = train(walk, replace(PLAN, kept_pass="last", patience=3), 0)
    assert (trained.pass_number, trained.quality, len(walk.seen)) == (12, 0.1, 12)
    assert np.array_equal(trained.weights, walk.seen[-1])


@pytest.mark.parametrize("window", [1, 4, 30])
def test_weights_are_averaged_over_a_window_and_selected_once_it_is_full(window):
    walk = Walk()
    trained = train(walk, replace(PLAN, average=window), 0)
    mean = np.mean(walk.seen[:window], axis=0)
    for weights in walk.seen[window:]:
        mean = mean + (weights - mean) / window
    assert trained.weights == pytest.approx(mean)
    assert len(walk.validated) == 12 - min(window, 12) + 1


def test_the_mean_of_all_passes():
    walk = Walk()
    trained = train(walk, replace(PLAN, average=ALL_PASSES), 0)
    assert trained.weights == pytest.approx(np.mean(walk.seen, axis=0))
    assert walk.validated[2] == pytest.approx(np.mean(walk.seen[:3], axis=0))


def test_the_rate_is_halved_after_decay_passes():
    walk = Walk()
    train(walk, replace(PLAN, decay=4.0), 0)
    assert walk.rates[0] == 0.1
    assert walk.rates[4] == pytest.approx(0.05)


def test_members_differ_by_seed_and_count_as_one_training():
    calls = []
    plan = replace(PLAN, members=3, seed=7)
    members = train_members(Walk(), plan, lambda *call: calls.append(call))
    for number, member in enumerate(members):
        assert np.array_equal(member.weights, train(Walk(), PLAN, (7, number)).weights)
    assert sorted(calls) == [(done, 36, "learning") for done in range(1, 37)]


def test_the_cause_of_a_failure_is_reported_and_the_other_members_stop():
    class Failing(Walk):
        lock = threading.Lock()

        def run_pass(self, optimizer, random):
            with self.lock:
                if len(self.seen) == 20:
                    raise OSError("the disk is full")
                return super().run_pass(optimizer, random)

    walk = Failing()
    with pytest.raises(OSError, match="the disk is full"):
        train_members(walk, replace(PLAN, passes=1000, members=3), lambda *call: None)
    assert len(walk.seen) == 20


def test_a_plan_is_made_from_the_parameters_of_a_method():
    svd, crf = make("svd(passes=7, average=true, rate=0.5)").plan, make("crf(average=9)").plan
    assert (svd.passes, svd.rate, svd.average, svd.optimizer) == (7, 0.5, ALL_PASSES, "adam")
    assert (crf.average, crf.passes, crf.choose_by, crf.members) == (9, 200, "map", 1)
    assert ScorerSettings().plan.average is None
    assert make("weighted_rrf(seed=4)").plan.seed == 4
