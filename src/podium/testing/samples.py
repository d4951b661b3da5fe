"""Small random preferences of every form; the checks run on these."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import numpy as np

from podium.data.ids import Id
from podium.data.preferences import Form, Preferences
from podium.kernels.dispatch import I8

__all__ = ["PreferenceRows", "iterate_samples", "reorder_rows", "sample_crowd_rows", "sample_rows"]

ITEMS = ("ant", "bee", "cat", "dog", "elk", "fox")
EXPERTS = ("e1", "e2", "e3", "e4")
QUERIES = ("q1", "q2", "q3")


@dataclasses.dataclass(frozen=True)
class PreferenceRows:
    """Preferences as plain rows, so that a check can rename, reorder or repeat them."""

    form: Form
    lists: tuple[tuple[Id, Id, Id, float], ...] = ()  # query, expert, item, rank or score
    votes: tuple[tuple[Id, Id, Id, Id, bool, float], ...] = ()  # query, expert, winner, loser, tie, weight
    candidates: tuple[tuple[Id, Id], ...] = ()

    def to_preferences(self) -> Preferences:
        """The same rows as `Preferences`."""
        if self.form is Form.COMPARISON:
            columns = list(zip(*self.votes, strict=True))
            return Preferences.from_comparisons(*columns[:4], tie=columns[4], weight=columns[5])
        query, expert, item, value = zip(*self.lists, strict=True)
        rated = self.form is Form.RATING
        pairs = list(zip(*self.candidates, strict=True)) if self.candidates else None
        return Preferences.from_rows(
            query,
            expert,
            item,
            candidates=None if pairs is None else (pairs[0], pairs[1]),
            unlisted="below" if self.form is Form.TOP_K else "unknown",
            rank=None if rated else value,
            score=value if rated else None,
        )


def sample_rows(form: Form, seed: int, *, complete: bool = False) -> PreferenceRows:
    """Random preferences of four experts for three queries; partial and with ties unless `complete`."""
    random = np.random.default_rng((seed, list(Form).index(form)))
    rows: list[tuple[Id, Id, Id, float]] = []
    votes: list[tuple[Id, Id, Id, Id, bool, float]] = []
    for query in QUERIES:
        for expert in EXPERTS:
            if form is Form.COMPARISON:
                for _ in range(6):
                    a, b = random.choice(len(ITEMS), 2, replace=False)
                    tie, weight = bool(random.random() < 0.15), float(random.integers(1, 3))
                    votes.append((query, expert, ITEMS[a], ITEMS[b], tie, weight))
                continue
            items = list(random.permutation(ITEMS))[: None if complete else random.integers(2, 6)]
            if form is Form.RATING and not complete:
                rows += [(query, expert, str(i), float(random.integers(0, 4))) for i in items]
            elif form is Form.RATING:
                rows += [(query, expert, str(i), float(len(items) - r)) for r, i in enumerate(items)]
            else:
                rows += [(query, expert, str(i), float(r)) for r, i in enumerate(items, 1)]
    candidates = ((QUERIES[0], "zebu"),) if form is Form.RANKING and not complete else ()
    return PreferenceRows(form, tuple(rows), tuple(votes), candidates)


def sample_crowd_rows(form: Form, seed: int) -> PreferenceRows:
    """A few answers of good, careless or malicious annotators; one of them may use its own rating scale.

    Many of these cases are degenerate: even votes, contradicting annotators, items judged once. Sums that
    cancel and likelihoods without a maximum are common.
    """
    random = np.random.default_rng((seed, list(Form).index(form), 1))
    items, experts = ITEMS[: random.choice([2, 2, 3, 5])], EXPERTS[: random.integers(2, 5)]
    right = random.choice([0.9, 0.5, 0.1], len(experts))
    lists: list[tuple[Id, Id, Id, float]] = []
    votes: list[tuple[Id, Id, Id, Id, bool, float]] = []
    for query in QUERIES[: random.integers(1, 4)]:
        truth = random.permutation(len(items))
        for expert, quality in zip(experts, right, strict=True):
            if form is Form.COMPARISON:
                for _ in range(random.integers(1, 4)):
                    a, b = random.choice(len(items), 2, replace=False)
                    if (truth[a] > truth[b]) != (random.random() < quality):
                        a, b = b, a
                    weight = float(random.choice([0.5, 1.0, 1.0, 2.0]))
                    votes.append((query, expert, items[a], items[b], bool(random.random() < 0.1), weight))
                continue
            held = random.permutation(len(items))[: random.integers(1, len(items) + 1)]
            if form is Form.RATING:
                shift = 4 * (expert == EXPERTS[0] and quality < 0.9)
                for i in held:
                    level = truth[i] * 4 // len(items) if random.random() < quality else random.integers(0, 4)
                    lists.append((query, expert, items[i], float(level + shift)))
            else:
                value = np.sign(quality - 0.5) * truth[held] + random.normal(0, 2, len(held))
                order = held[np.argsort(-value)]
                lists += [(query, expert, items[i], float(rank)) for rank, i in enumerate(order, 1)]
    return PreferenceRows(form, tuple(lists), tuple(votes))


def iterate_samples(accepts: frozenset[Form], seeds: int = 3) -> Iterator[PreferenceRows]:
    """A few samples of each accepted form."""
    for form in Form:
        if form in accepts:
            yield from (sample_rows(form, seed) for seed in range(seeds))


def reorder_rows(answers: PreferenceRows, order: I8) -> PreferenceRows:
    """The same rows in another order."""
    if answers.form is Form.COMPARISON:
        return dataclasses.replace(answers, votes=tuple(answers.votes[i] for i in order))
    return dataclasses.replace(answers, lists=tuple(answers.lists[i] for i in order))
