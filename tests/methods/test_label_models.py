"""One-coin Dawid-Skene, MACE and GLAD: their likelihoods by definition, quality found again, odd inputs."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from podium import Labels, Preferences, make
from podium.core.errors import InputError
from podium.kernels import label_models
from podium.testing import crowds

NAMES = ["one_coin_dawid_skene", "mace", "glad"]
TIGHT, STEPS = 1e-11, 100_000


def sample_votes(seed, labels=3, symmetric=False):
    """Few tasks and annotators, so that all truths can be enumerated."""
    random = np.random.default_rng(seed)
    rows = [(t, g) for t in range(4) for g in range(3) if random.random() < 0.8] or [(0, 0)]
    task, group = np.array(rows).T
    return label_models.LabelVotes(
        4,
        labels,
        task,
        group,
        random.integers(0, labels, len(task)),
        random.integers(1, 3, len(task)).astype(float),
        np.array([1.0, 2.0, 1.0]),
        np.array([4.0, 2.0, 4.0]),
        np.array([1.0, 1.0, 2.0]),
        symmetric,
    )


def enumerate_truths(votes, log_chance, log_share):
    """Log evidence and probabilities of labels by trying all truths; `log_chance(row, label)`."""
    table, rated = np.zeros((votes.tasks, votes.labels)), sorted(set(votes.task.tolist()))
    logs, truths = [], list(itertools.product(range(votes.labels), repeat=len(rated)))
    for truth in truths:
        known = dict(zip(rated, truth, strict=True))
        total = sum(log_share[label] for label in truth)
        for row in range(len(votes.task)):
            times = votes.times[row] * votes.weight[votes.group[row]]
            total += times * log_chance(row, known[int(votes.task[row])])
        logs.append(total)
    evidence = np.logaddexp.reduce(logs)
    for truth, value in zip(truths, logs, strict=True):
        for task, label in zip(rated, truth, strict=True):
            table[task, label] += np.exp(value - evidence)
    return evidence, table, rated


def check_optimum(votes, estimate, log_posterior):
    """The reported objective is the log posterior at the end, and no nearby point is better."""
    best = log_posterior(estimate.end.x)[0]
    assert estimate.end.objective == pytest.approx(best, abs=1e-9)
    random = np.random.default_rng(0)
    for scale in (1e-3, 1e-1):
        for _ in range(15):
            near = estimate.end.x + scale * random.normal(size=len(estimate.end.x))
            assert log_posterior(near)[0] <= best + 1e-9
    _, table, rated = log_posterior(estimate.end.x)
    np.testing.assert_allclose(estimate.truth[rated], table[rated], atol=1e-8)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("symmetric", [False, True])
def test_one_coin_is_the_most_likely(seed, symmetric):
    votes = sample_votes(seed, 2 if symmetric else 3, symmetric)

    def log_posterior(x):
        odds, share = x[:3], x[3:] - np.logaddexp.reduce(x[3:])
        right, wrong = -np.logaddexp(0, -odds), -np.logaddexp(0, odds)

        def log_chance(row, label):
            g = votes.group[row]
            return right[g] if votes.label[row] == label else wrong[g] - np.log(votes.labels - 1)

        share = np.full(votes.labels, -np.log(votes.labels)) if symmetric else share
        evidence, table, rated = enumerate_truths(votes, log_chance, share)
        prior = (votes.weight * (votes.right * right + votes.wrong * wrong)).sum()
        return evidence + prior + (0.0 if symmetric else share.sum()), table, rated

    check_optimum(votes, label_models.fit_one_coin(votes, TIGHT, STEPS), log_posterior)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("symmetric", [False, True])
def test_mace_is_the_most_likely(seed, symmetric):
    votes = sample_votes(seed, 2 if symmetric else 3, symmetric)

    def log_posterior(x):
        know, guess = -np.logaddexp(0, -x[:3]), -np.logaddexp(0, x[:3])
        logs = np.zeros((3, votes.labels)) if symmetric else x[3:].reshape(3, votes.labels)
        logs = logs - np.logaddexp.reduce(logs, axis=1, keepdims=True)

        def log_chance(row, label):
            g, given = votes.group[row], votes.label[row]
            spam = guess[g] + logs[g, given]
            return np.logaddexp(know[g], spam) if given == label else spam

        share = np.full(votes.labels, -np.log(votes.labels))
        evidence, table, rated = enumerate_truths(votes, log_chance, share)
        prior = (votes.weight * (votes.right * know + votes.wrong * guess)).sum()
        prior += 0.0 if symmetric else 0.7 * (votes.weight * logs.sum(axis=1)).sum()
        return evidence + prior, table, rated

    check_optimum(votes, label_models.fit_guessers(votes, 0.7, TIGHT, STEPS), log_posterior)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("symmetric", [False, True])
def test_variational_mace_has_the_highest_bound(seed, symmetric):
    """The bound by its definition: expected log likelihood of the votes minus divergences from the priors."""
    special = pytest.importorskip("scipy.special")
    votes = sample_votes(seed, 2 if symmetric else 3, symmetric)
    given = votes.sum_by_group(votes.times)

    def expect(counts, prior):
        """Expected log probabilities, and the expected log ratio of the densities of prior and posterior."""
        logs = special.digamma(counts) - special.digamma(counts.sum())
        return logs, ((prior - counts) * logs).sum() + sum(
            sign * (special.gammaln(alpha).sum() - special.gammaln(alpha.sum()))
            for sign, alpha in ((1, counts), (-1, prior))
        )

    def bound(x):
        coins, habits, gain = [], [], 0.0
        for g in range(3):
            prior = np.array([votes.right[g], votes.wrong[g]])
            share = special.expit(x[g])
            coin, coin_gain = expect((given[g] + prior.sum()) * np.array([share, 1 - share]), prior)
            habit, habit_gain = np.full(votes.labels, -np.log(votes.labels)), 0.0
            if not symmetric:
                counts = np.exp(x[3:].reshape(3, -1)[g])
                habit, habit_gain = expect(counts, np.full(votes.labels, 0.7))
            coins, habits = [*coins, coin], [*habits, habit]
            gain += votes.weight[g] * (coin_gain + habit_gain)

        def log_chance(row, label):
            g, chosen = votes.group[row], votes.label[row]
            spam = coins[g][1] + habits[g][chosen]
            return np.logaddexp(coins[g][0], spam) if chosen == label else spam

        share = np.full(votes.labels, -np.log(votes.labels))
        evidence, table, rated = enumerate_truths(votes, log_chance, share)
        return evidence + gain, table, rated

    check_optimum(votes, label_models.fit_guessers(votes, 0.7, TIGHT, STEPS, variational=True), bound)


@pytest.mark.parametrize("seed", range(4))
def test_variational_mace_bounds_the_evidence(seed):
    """The evidence by quadrature over the three probabilities of knowing; it is exact for these polynomials."""
    votes = sample_votes(seed, 2, True)._replace(weight=np.ones(3))
    place, share = np.polynomial.legendre.leggauss(16)
    node = (place + 1) / 2
    priors = zip(votes.right, votes.wrong, strict=True)
    density = [node ** (right - 1) * (1 - node) ** (wrong - 1) * share for right, wrong in priors]
    integrand = np.einsum("i,j,k->ijk", *(values / values.sum() for values in density))
    know = np.stack(np.meshgrid(node, node, node, indexing="ij"))[votes.group]
    for task in set(votes.task.tolist()):
        by_label = [
            np.prod(
                [
                    (know[row] * (votes.label[row] == label) + (1 - know[row]) / 2) ** votes.times[row]
                    for row in np.flatnonzero(votes.task == task)
                ],
                axis=0,
            )
            for label in range(2)
        ]
        integrand = integrand * (by_label[0] + by_label[1]) / 2
    bound = label_models.fit_guessers(votes, 0.7, TIGHT, STEPS, variational=True).end.objective
    assert bound < np.log(integrand.sum())


@pytest.mark.parametrize("variational", [False, True])
def test_mace_with_huge_priors_and_copies(variational):
    """Priors of very different sizes do not stop the iteration; weight 2 equals two annotators."""
    votes = sample_votes(0)
    for right, wrong, spread in ((1e6, 1e-3, 1e6), (1e-3, 1e6, 1e-3), (1e5, 0.5, 10.0)):
        prior = {"right": np.full(3, right), "wrong": np.full(3, wrong)}
        estimate = label_models.fit_guessers(
            votes._replace(**prior), spread, TIGHT, 2_000, variational=variational
        )
        assert estimate.end.converged
    twice = np.append(np.arange(len(votes.task)), np.flatnonzero(votes.group == 1))
    group = np.append(votes.group, np.full(len(twice) - len(votes.task), 3))
    by_group = {name: getattr(votes, name)[[0, 1, 2, 1]] for name in ("right", "wrong")}
    rows = {name: getattr(votes, name)[twice] for name in ("task", "label", "times")}
    copies = votes._replace(group=group, weight=np.ones(4), **by_group, **rows)
    one, two = (
        label_models.fit_guessers(v, 0.7, TIGHT, STEPS, variational=variational) for v in (votes, copies)
    )
    np.testing.assert_allclose(one.truth, two.truth, atol=1e-8)
    np.testing.assert_allclose(one.quality, two.quality[:3], atol=1e-8)
    assert one.end.objective == pytest.approx(two.end.objective, abs=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_glad_is_the_most_likely(seed):
    votes = sample_votes(seed)

    def log_posterior(x):
        ability, ease = x[:3], x[3:]

        def log_chance(row, label):
            odds = ability[votes.group[row]] * np.exp(ease[votes.task[row]])
            wrong = -np.logaddexp(0, odds) - np.log(votes.labels - 1)
            return -np.logaddexp(0, -odds) if votes.label[row] == label else wrong

        share = np.full(votes.labels, -np.log(votes.labels))
        evidence, table, rated = enumerate_truths(votes, log_chance, share)
        away = ability - np.log(votes.right / votes.wrong)
        apart = (ease - 0.5)[rated]
        return evidence - 0.5 * (votes.weight * away**2).sum() - 0.5 * (apart**2).sum(), table, rated

    check_optimum(votes, label_models.fit_abilities(votes, 0.5, TIGHT, STEPS), log_posterior)


def test_on_votes_one_coin_is_dawid_skene():
    p = crowds.simulate(crowds.annotators(6, 2, 2), queries=2, items=8, judgements=30, seed=0).preferences
    a, b = (make(name).aggregate(p) for name in ("one_coin_dawid_skene", "dawid_skene"))
    np.testing.assert_allclose(a.scores, b.scores, rtol=1e-7)
    np.testing.assert_allclose(a.expert_weights, b.expert_weights, rtol=1e-7)


@pytest.mark.parametrize("name", NAMES)
def test_quality_is_found_again(name):
    crowd = crowds.simulate(
        crowds.annotators(12, 4, 0), form="ratings", queries=3, items=40, judgements=40, levels=3, seed=0
    )
    consensus = make(name).aggregate(crowd.preferences)
    assert consensus.diagnostics.converged
    good = np.array([e.startswith("good") for e in crowd.preferences.experts])
    assert consensus.expert_weights[good].min() > consensus.expert_weights[~good].max()


@pytest.mark.parametrize("spec", ["mace", "mace(variational=true)"])
def test_mace_discounts_those_who_always_answer_the_same(spec):
    random = np.random.default_rng(0)
    truth = random.integers(0, 3, 60)
    rated = {
        f"good{e}": {i: float(t) for i, t in enumerate(truth) if random.random() < 0.9} for e in range(3)
    }
    rated["constant"] = dict.fromkeys(range(60), 1.0)
    consensus = make(spec).aggregate(Preferences.from_lists({"q": rated}))
    quality = dict(zip(consensus.experts, consensus.expert_weights, strict=True))
    assert quality["constant"] < 0.3 < 0.8 < quality["good0"]


@pytest.mark.parametrize("name", NAMES)
def test_gold_labels_count_as_judgements(name):
    random = np.random.default_rng(1)
    truth = random.integers(0, 3, 40)
    rated = {
        "right": {i: float(t) for i, t in enumerate(truth)},
        "wrong": {i: float((t + 1) % 3) for i, t in enumerate(truth)},
    }
    p = Preferences.from_lists({"q": rated})
    gold = Labels.from_dict({"q": {i: float(t) for i, t in enumerate(truth)}})
    model = make(name).fit(p, gold)
    assert model.gold_ == {"right": [40.0, 0.0], "wrong": [0.0, 40.0]}
    quality = model.aggregate(p).expert_weights
    assert quality[0] > 0.8 > quality[1]
    with pytest.raises(InputError, match="no rated item has a label"):
        make(name).fit(p, Labels.from_dict({"q": {"other": 1.0}}))


@pytest.mark.parametrize("name", NAMES)
def test_too_many_levels_are_refused(name):
    p = Preferences.from_lists({"q": {"e": {i: float(i) for i in range(101)}}})
    with pytest.raises(InputError, match=f"101 distinct ratings, and {name}"):
        make(name).aggregate(p)
