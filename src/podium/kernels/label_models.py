"""True labels and the reliability of annotators: one-coin Dawid-Skene, MACE and GLAD, most likely a posteriori.

MACE is also fitted by variational Bayes.

A task has one of a few labels; annotators report labels with errors. Labels are exchangeable where tasks are
pairs of items, whose first item is arbitrary: their frequencies are then equal, and guesses are even.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from podium.kernels.annotator_em import FixedPoint, find_fixed_point
from podium.kernels.dispatch import F8, I8
from podium.kernels.distributions import digamma, log_gamma_divergence, logistic

__all__ = ["LabelEstimate", "LabelVotes", "fit_abilities", "fit_guessers", "fit_one_coin"]


class LabelVotes(NamedTuple):
    """Labels that annotators (or groups of their judgements) gave to tasks."""

    tasks: int
    labels: int
    task: I8  # by row
    group: I8
    label: I8
    times: F8  # how often the label was given
    weight: F8  # by group: multiplies its rows and its prior
    right: F8  # by group: prior numbers of right and of wrong labels
    wrong: F8
    symmetric: bool  # whether the labels can be exchanged

    @property
    def mass(self) -> F8:
        """Weighted count by row."""
        return self.times * self.weight[self.group]

    def sum_by_label(self, value: F8) -> F8:
        """Sum of the values of rows by task and label."""
        cells = np.bincount(self.task * self.labels + self.label, value, self.tasks * self.labels)
        return np.asarray(cells, np.float64).reshape(self.tasks, self.labels)

    def sum_by_group(self, value: F8) -> F8:
        return np.bincount(self.group, value, len(self.weight)).astype(np.float64, copy=False)


class LabelEstimate(NamedTuple):
    """Probabilities of the labels by task, accuracy by group, and how the estimate ended."""

    truth: F8
    quality: F8
    end: FixedPoint


def _normalize_rows(log_values: F8) -> tuple[F8, F8]:
    """Probabilities of each row, and the logarithm of the sum that they are divided by."""
    top = log_values.max(axis=1, keepdims=True)
    values = np.exp(log_values - top)
    total = values.sum(axis=1, keepdims=True)
    return values / total, (top + np.log(total))[:, 0]


def _compute_vote_shares(votes: LabelVotes) -> F8:
    """Share of each label by task, to start from; even without votes."""
    given = votes.sum_by_label(votes.mass)
    total = given.sum(axis=1, keepdims=True)
    return np.where(total > 0, given / np.where(total > 0, total, 1.0), 1.0 / votes.labels)


def fit_one_coin(votes: LabelVotes, tolerance: float, max_iterations: int) -> LabelEstimate:
    """Every annotator reports the true label with its own probability, and any other label otherwise."""
    others, groups = max(votes.labels - 1, 1), len(votes.weight)
    rated = np.bincount(votes.task, votes.mass, votes.tasks) > 0
    given = votes.sum_by_group(votes.times)

    def fit_coins(truth: F8) -> F8:
        right = votes.sum_by_group(votes.times * truth[votes.task, votes.label]) + votes.right
        odds = np.log(right / (given + votes.right + votes.wrong - right))
        # a prior of one task per label keeps the logs of labels that nobody gave finite
        share = np.ones(votes.labels) if votes.symmetric else truth[rated].sum(axis=0) + 1.0
        return np.concatenate((odds, np.log(share / share.sum())))

    def update(x: F8) -> tuple[F8, float, F8]:
        odds, log_share = x[:groups], x[groups:]
        log_share = log_share - np.log(np.exp(log_share).sum())
        right, wrong = -np.logaddexp(0, -odds), -np.logaddexp(0, odds)
        # start as if every vote were wrong, and correct the cell of the label that it names
        base = (wrong - np.log(others))[votes.group]
        bonus = votes.sum_by_label(votes.mass * (right[votes.group] - base))
        truth, total = _normalize_rows(log_share + bonus)
        value = total[rated].sum() + (votes.mass * base).sum()
        value += (votes.weight * (votes.right * right + votes.wrong * wrong)).sum()
        value += 0.0 if votes.symmetric else log_share.sum()
        return fit_coins(truth), float(value), truth

    start = fit_coins(_compute_vote_shares(votes))
    end = find_fixed_point(lambda x: update(x)[:2], start, tolerance, max_iterations)
    _, value, truth = update(end.x)
    return LabelEstimate(truth, logistic(end.x[:groups]), end._replace(objective=value))


def fit_guessers(
    votes: LabelVotes, spread: float, tolerance: float, max_iterations: int, *, variational: bool = False
) -> LabelEstimate:
    """Every annotator knows the label with its own probability, and guesses from its own labels otherwise (MACE).

    `spread` is the prior number of guesses of each label. With `variational`, a beta distribution of knowing
    and a Dirichlet distribution of guesses are fitted per annotator instead of their modes; the objective is
    then the lower bound of the log evidence, and the quality the mean of the beta distribution.
    """
    labels, groups, mass = votes.labels, len(votes.weight), votes.mass
    rated = np.bincount(votes.task, mass, votes.tasks) > 0
    given = votes.sum_by_group(votes.times)
    prior = np.stack((votes.right, votes.wrong), axis=1)
    even = np.full((groups, labels), -np.log(labels))

    def unpack(x: F8) -> tuple[F8, F8, F8]:
        """By group, log probabilities of knowing and guessing, of labels when guessing, and of the prior."""
        log_know = -np.logaddexp(0, np.stack((-x[:groups], x[:groups]), axis=1))
        logs = x[groups:].reshape(-1, labels)
        if variational:
            # only the log odds of the two counts are iterated, since their sum is known
            coin = (given + votes.right + votes.wrong)[:, None] * np.exp(log_know)
            coin_logs, penalty = _expect_logs(coin, prior)
            if votes.symmetric:
                return coin_logs, even, -penalty
            label_logs, label_penalty = _expect_logs(np.exp(logs), np.full((groups, labels), spread))
            return coin_logs, label_logs, -penalty - label_penalty
        if votes.symmetric:
            return log_know, even, (prior * log_know).sum(axis=1)
        log_labels = np.log(np.maximum(_normalize_rows(logs)[0], 1e-300))
        return log_know, log_labels, (prior * log_know).sum(axis=1) + spread * log_labels.sum(axis=1)

    def pack(known: F8) -> F8:
        """The best parameters, given the expected number of known labels by row."""
        right = votes.sum_by_group(known) + votes.right
        odds = np.log(right / (given + votes.right + votes.wrong - right))
        if votes.symmetric:
            return odds
        guessed = np.bincount(votes.group * labels + votes.label, votes.times - known, groups * labels)
        return np.concatenate((odds, np.log(guessed + spread)))

    def update(x: F8) -> tuple[F8, float, F8]:
        coin, log_labels, log_prior = unpack(x)
        know, spam = coin[votes.group, 0], coin[votes.group, 1] + log_labels[votes.group, votes.label]
        # who knows the label, or guesses it, reports it
        match = np.logaddexp(know, spam)
        truth, total = _normalize_rows(votes.sum_by_label(mass * (match - spam)))
        known = votes.times * truth[votes.task, votes.label] * np.exp(know - match)
        value = (total - np.log(labels))[rated].sum() + (mass * spam).sum() + (votes.weight * log_prior).sum()
        return pack(known), float(value), truth

    chance = _compute_vote_shares(votes)[votes.task, votes.label]
    # the share of a label in excess of chance, since guesses hit it too
    start = pack(votes.times * np.clip((chance * labels - 1) / max(labels - 1, 1), 0.0, 1.0))
    end = find_fixed_point(lambda x: update(x)[:2], start, tolerance, max_iterations)
    _, value, truth = update(end.x)
    return LabelEstimate(truth, logistic(end.x[:groups]), end._replace(objective=value))


def _expect_logs(counts: F8, prior: F8) -> tuple[F8, F8]:
    """By row, the expected logs of Dirichlet probabilities, and the divergence from the prior."""
    total, prior_total = counts.sum(axis=1), prior.sum(axis=1)
    divergence = log_gamma_divergence(counts, prior).sum(axis=1) - log_gamma_divergence(total, prior_total)
    return digamma(counts) - digamma(total)[:, None], divergence


def fit_abilities(
    votes: LabelVotes, difficulty: float, tolerance: float, max_iterations: int
) -> LabelEstimate:
    """The log odds of a right label are the annotator's ability times the task's ease (GLAD).

    Abilities are normal around the prior log odds, log eases around `difficulty`, all with deviation 1. The
    quality is that on a task of ease 1.
    """
    others, groups, mass = max(votes.labels - 1, 1), len(votes.weight), votes.mass
    center = np.log(votes.right / votes.wrong)
    shown = np.bincount(votes.task, mass, votes.tasks) > 0

    def estimate_truths(x: F8) -> tuple[F8, F8, F8]:
        """Log odds of a right label by row, and the labels' probabilities and log sums by task."""
        odds = x[votes.group] * np.exp(x[groups + votes.task])
        truth, total = _normalize_rows(votes.sum_by_label(mass * (odds + np.log(others))))
        return odds, truth, total

    def compute_loss(x: F8) -> tuple[float, F8]:
        odds, truth, total = estimate_truths(x)
        away, apart = x[:groups] - center, np.where(shown, x[groups:] - difficulty, 0.0)
        value = (total - np.log(votes.labels))[shown].sum()
        value -= (mass * (np.logaddexp(0, odds) + np.log(others))).sum()
        value -= 0.5 * ((votes.weight * away**2).sum() + (apart**2).sum())
        change = mass * (truth[votes.task, votes.label] - logistic(odds))
        ability = votes.sum_by_group(change * np.exp(x[groups + votes.task])) - votes.weight * away
        ease = np.bincount(votes.task, change * odds, votes.tasks) - apart
        return -float(value), np.asarray(-np.concatenate((ability, ease)), np.float64)

    def step_uphill(x: F8) -> tuple[F8, float]:
        """A step along the slope, each coordinate divided by a bound of its curvature."""
        loss, slope = compute_loss(x)
        ease = np.exp(x[groups + votes.task])
        odds = np.abs(x[votes.group] * ease)
        # the slope of the logistic is at most 1/4; doubled, as a vote moves an ability and an ease at once
        ability_bend = votes.sum_by_group(mass * ease**2) / 2 + votes.weight
        ease_bend = np.bincount(votes.task, mass * (odds**2 / 2 + 2 * odds), votes.tasks) + 1.0
        bend = np.concatenate((np.where(ability_bend > 0, ability_bend, 1.0), ease_bend))
        return x - slope / bend, -loss

    start = np.concatenate((center, np.full(votes.tasks, difficulty)))
    end = find_fixed_point(step_uphill, start, tolerance, max_iterations)
    return LabelEstimate(estimate_truths(end.x)[1], logistic(end.x[:groups]), end)
