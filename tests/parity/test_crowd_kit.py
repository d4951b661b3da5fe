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


ABILITIES = {
    "mostly able": lambda random: np.append(random.uniform(0.6, 0.95, 12), np.zeros(3)),
    "half guess": lambda random: np.append(random.uniform(0.5, 0.9, 8), np.zeros(7)),
    "all weak": lambda random: random.uniform(0.1, 0.6, 15),
}


def simulate_guessers(seed, abilities, labels, per_task):
    """Labels of 100 tasks by `per_task` of 15 annotators each; every annotator has its own habit of guessing."""
    random = np.random.default_rng([seed, labels, per_task, list(ABILITIES).index(abilities)])
    ability = ABILITIES[abilities](random)
    habit = random.dirichlet(np.full(labels, 0.5), 15)
    truth = random.integers(0, labels, 100)
    task = np.repeat(np.arange(100), per_task)
    group = np.concatenate([np.sort(random.choice(15, per_task, replace=False)) for _ in range(100)])
    guess = np.array([random.choice(labels, p=habit[g]) for g in group])
    given = np.where(random.random(len(task)) < ability[group], truth[task], guess)
    ones = np.ones(15)
    return label_models.LabelVotes(
        100, labels, task, group, given, np.ones(len(task)), ones, ones, ones, False
    ), truth


def fit_mace_of_crowd_kit(votes, *, aligned, steps=50):
    """The label probabilities of crowd-kit's MACE.

    It numbers annotators and labels by first appearance but sorts both in its table of guesses, so that an annotator
    can get the habits of another. With `aligned`, ids are numbers by first appearance, and both orders agree.
    """
    from crowdkit.aggregation import MACE

    worker, label, order = votes.group, votes.label, np.arange(votes.labels)
    if aligned:
        worker, (label, order) = pd.factorize(worker)[0], pd.factorize(label)
    frame = pd.DataFrame({"task": votes.task, "worker": worker, "label": label})
    # one start: every restart has the same seed
    shares = MACE(n_restarts=1, n_iter=steps).fit(frame).probas_.sort_index()
    table = np.zeros((votes.tasks, votes.labels))
    for column in shares.columns:
        table[:, order[column]] = shares[column]
    return table


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(min(CASES, 5)))
def test_variational_mace_has_the_same_probabilities(seed):
    """With the priors of the paper. The tolerance is what is left after 150 of crowd-kit's steps."""
    votes, _, _ = sample_votes(seed, 0.5, 0.5)
    ours = label_models.fit_guessers(votes, 10.0, TIGHT, STEPS, variational=True)
    np.testing.assert_allclose(ours.truth, fit_mace_of_crowd_kit(votes, aligned=True, steps=150), atol=1e-4)


@pytest.mark.filterwarnings("ignore")
def test_mace_is_not_below_crowd_kit():
    """Shares of right labels over 18 settings: three mixes of abilities, 2, 3 or 5 labels, 3 or 6 labels per task.

    CASES / 5 seeds per setting. On the same crowds: Podium's default (the mode, priors 1, 1 and 10), its variational
    form with the priors of the paper and of crowd-kit (0.5, 0.5 and 10), crowd-kit as called, and crowd-kit with
    aligned ids. The figure is the mean over all crowds of the default minus each of the others, with the standard
    error of the paired differences; the rows by setting are printed for reading. The rule for the default was fixed
    before the first run, which took the mode with priors 0.5 as well: the variational form, unless it is below the
    mode by more than that error. It was, by 0.0056 with an error of 0.0012 over 144 crowds.

    The mean may not be below 0, without tolerance: at 90 crowds it is five standard errors above.
    """
    settings = [(mix, labels, each) for mix in ABILITIES for labels in (2, 3, 5) for each in (3, 6)]
    rows = []
    for setting in settings:
        for seed in range(max(CASES // 5, 1)):
            votes, truth = simulate_guessers(seed, *setting)
            half = np.full(len(votes.weight), 0.5)
            paper = votes._replace(right=half, wrong=half)
            tables = [
                label_models.fit_guessers(votes, 10.0, TIGHT, STEPS).truth,
                label_models.fit_guessers(paper, 10.0, TIGHT, STEPS, variational=True).truth,
                *(fit_mace_of_crowd_kit(votes, aligned=aligned) for aligned in (False, True)),
            ]
            rows.append([accuracy(table.argmax(axis=1), truth) for table in tables])
    shares = np.array(rows).reshape(len(settings), -1, 4)
    print(
        f"\n{'abilities, labels, per task':28}{'mode':>12}{'variational':>12}{'crowd-kit':>12}{'aligned':>12}"
    )
    for setting, means in zip(settings, shares.mean(axis=1), strict=True):
        print(f"{', '.join(map(str, setting)):28}" + "".join(f"{mean:12.4f}" for mean in means))
    print(f"{'all':28}" + "".join(f"{mean:12.4f}" for mean in shares.mean(axis=(0, 1))))
    gain = (shares[:, :, :1] - shares[:, :, 1:]).reshape(-1, 3)
    error = gain.std(axis=0, ddof=1) / np.sqrt(len(gain))
    print("mode minus the others:", gain.mean(axis=0).round(4), "standard errors:", error.round(4))
    assert (gain.mean(axis=0)[1:] >= 0).all()


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
