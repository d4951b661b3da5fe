"""One-coin Dawid-Skene, MACE and GLAD against crowd-kit, where it is installed (the extra bench)."""

from __future__ import annotations

import os

import numpy as np
import pytest

from podium.kernels import label_models

pytest.importorskip("crowdkit", reason="needs the extra bench: pip install 'podium-rank[bench]'")
pd = pytest.importorskip("pandas")

CASES = int(os.environ.get("PODIUM_PARITY_CASES", "5"))
TIGHT, STEPS = 1e-10, 100_000


def sample_votes(seed, right=1e-3, wrong=1e-3):
    """Labels of 80 tasks by 12 annotators, some of whom guess or always answer the same."""
    random = np.random.default_rng(seed)
    tasks, groups, labels = 80, 12, int(random.choice([2, 3, 4]))
    truth = random.integers(0, labels, tasks)
    skill = np.concatenate((random.uniform(0.6, 0.95, groups - 4), [0.4, 0.0, 0.0, 0.9]))
    rows = [(t, g) for t in range(tasks) for g in range(groups) if random.random() < 0.5]
    task, group = np.array(rows).T
    guess = np.where(group == groups - 2, 0, random.integers(0, labels, len(task)))
    given = np.where(random.random(len(task)) < skill[group], truth[task], guess)
    ones = np.ones(groups)
    votes = label_models.LabelVotes(
        tasks, labels, task, group, given, np.ones(len(task)), ones, right * ones, wrong * ones, False
    )
    return votes, pd.DataFrame({"task": task, "worker": group, "label": given}), truth


def accuracy(labels, truth):
    return float((np.asarray(labels) == truth).mean())


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(CASES))
def test_one_coin_dawid_skene(seed):
    from crowdkit.aggregation import OneCoinDawidSkene

    votes, frame, _ = sample_votes(seed)
    theirs = OneCoinDawidSkene(n_iter=2000, tol=1e-12).fit(frame)
    ours = label_models.fit_one_coin(votes, TIGHT, STEPS)
    # level frequencies have a prior of one task per label here
    np.testing.assert_allclose(ours.quality, theirs.skills_.sort_index(), atol=0.01)
    probabilities = theirs.probas_.sort_index()[sorted(theirs.probas_.columns)].to_numpy()
    np.testing.assert_allclose(ours.truth, probabilities, atol=0.1)
    assert (ours.truth.argmax(axis=1) == probabilities.argmax(axis=1)).all()


@pytest.mark.filterwarnings("ignore")
def test_mace_is_as_accurate():
    from crowdkit.aggregation import MACE

    ours, theirs = [], []
    for seed in range(max(CASES, 5)):
        votes, frame, truth = sample_votes(seed, 1.0, 1.0)
        theirs.append(accuracy(MACE(n_restarts=1).fit(frame).labels_.sort_index(), truth))
        ours.append(
            accuracy(label_models.fit_guessers(votes, 10.0, TIGHT, STEPS).truth.argmax(axis=1), truth)
        )
    assert np.mean(ours) >= np.mean(theirs) - 0.01  # theirs is variational, with the same priors


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(min(CASES, 5)))
def test_glad_reaches_at_least_the_same_posterior(seed):
    from crowdkit.aggregation import GLAD

    votes, frame, truth = sample_votes(seed, np.e, 1.0)
    theirs = GLAD(n_iter=30, silent=True).fit(frame)
    ours = label_models.fit_abilities(votes, 1.0, TIGHT, STEPS)
    ability, ease = theirs.alphas_.sort_index().to_numpy(), theirs.betas_.sort_index().to_numpy()
    assert ours.end.objective >= compute_log_posterior(votes, ability, ease) - 1e-6
    assert ours.end.objective == pytest.approx(
        compute_log_posterior(votes, ours.end.x[: len(ability)], ours.end.x[len(ability) :])
    )
    assert accuracy(ours.truth.argmax(axis=1), truth) >= accuracy(theirs.labels_.sort_index(), truth) - 0.02


def compute_log_posterior(votes, ability, ease):
    """The log posterior of GLAD by its definition, up to the constants of the normal priors."""
    total = -0.5 * ((ability - 1) ** 2).sum() - 0.5 * ((ease - 1) ** 2).sum()
    for task in range(votes.tasks):
        by_label = np.full(votes.labels, -np.log(votes.labels))
        for row in np.flatnonzero(votes.task == task):
            odds = ability[votes.group[row]] * np.exp(ease[task])
            for label in range(votes.labels):
                wrong = -np.logaddexp(0, odds) - np.log(votes.labels - 1)
                by_label[label] += -np.logaddexp(0, -odds) if votes.label[row] == label else wrong
        total += np.logaddexp.reduce(by_label)
    return total
