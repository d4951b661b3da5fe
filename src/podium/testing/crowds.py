"""Simulated crowds: annotators of known accuracy, and spammers added to real data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from podium.core.errors import ParameterError
from podium.data.ids import Id
from podium.data.labels import Labels
from podium.data.lists import Comparisons, Lists
from podium.data.preferences import Preferences
from podium.kernels.dispatch import F8, I8

__all__ = ["SimulatedCrowd", "add_spammers", "annotators", "simulate"]

SpammerKind = Literal["random", "malicious"]
Random = np.random.Generator
Spammer = tuple[int, str, int]  # query, name, and the expert whose items it judges


@dataclass(frozen=True)
class SimulatedCrowd:
    """Judgements, the ground truth, and the accuracy of each annotator."""

    preferences: Preferences
    labels: Labels
    quality: Mapping[Id, float]


def annotators(
    good: int = 0, random: int = 0, malicious: int = 0, *, best: float = 0.9, worst: float = 0.1
) -> dict[Id, float]:
    """Names and accuracies of annotators: `best` for good, 1/2 for random, `worst` for malicious ones.

    >>> annotators(good=1, random=1, malicious=1)
    {'good 1': 0.9, 'random 1': 0.5, 'malicious 1': 0.1}
    """
    kinds = (("good", good, best), ("random", random, 0.5), ("malicious", malicious, worst))
    return {f"{kind} {n}": value for kind, count, value in kinds for n in range(1, count + 1)}


def simulate(
    quality: Mapping[Id, float],
    *,
    form: Literal["pairs", "ratings"] = "pairs",
    queries: int = 1,
    items: int = 20,
    judgements: int = 50,
    levels: int = 4,
    seed: int = 0,
) -> SimulatedCrowd:
    """Each annotator judges random pairs or items in each query and is right with the given probability.

    Pairs: items are ranked from `items` - 1 down to 0, and each pair has one correct answer. Ratings: grades
    are 0 .. levels - 1, an error is any other grade, and an annotator rates an item at most once.

    >>> crowd = simulate(annotators(good=3), items=5, judgements=4, seed=1)
    >>> crowd.preferences, crowd.labels
    (Preferences(1 query, 5 items, 3 experts, 12 comparisons), Labels(1 query, 5 judged items, grades 0..4))
    """
    if form not in ("pairs", "ratings") or min(items, levels) < 2:
        got = f"form is {form!r} with {items} items and {levels} levels"
        raise ParameterError(f"{got}; accepted: pairs or ratings, two or more of both")
    chance = np.random.default_rng(seed)
    ids = np.array([f"item {i:0{len(str(items - 1))}d}" for i in range(items)])
    grades = {q: chance.permutation(items) for q in range(1, queries + 1)}
    if form == "ratings":
        grades = {q: g * levels // items for q, g in grades.items()}
    rows = [
        (q, who, *answer)
        for q, true in grades.items()
        for who, right in quality.items()
        for answer in zip(*SAMPLERS[form](true, right, judgements, levels, chance), strict=True)
    ]
    query, expert, first, second = zip(*rows, strict=True) if rows else [()] * 4
    if form == "pairs":
        made = Preferences.from_comparisons(query, expert, ids[list(first)], ids[list(second)])
    else:
        every = np.repeat(list(grades), items), np.tile(ids, queries)
        made = Preferences.from_rows(query, expert, ids[list(first)], score=second, candidates=every)
    truth: dict[Id, dict[Id, float]] = {
        q: {i: float(g) for i, g in zip(ids.tolist(), true.tolist(), strict=True)}
        for q, true in grades.items()
    }
    return SimulatedCrowd(made, Labels.from_dict(truth), dict(quality))


def _sample_votes(grades: I8, right: float, count: int, _: int, chance: Random) -> tuple[I8, I8]:
    """Winners and losers of random pairs."""
    n = len(grades)
    a = chance.integers(0, n, count)
    b = (a + chance.integers(1, n, count)) % n
    swap = (grades[a] > grades[b]) != (chance.random(count) < right)
    return np.where(swap, b, a), np.where(swap, a, b)


def _sample_ratings(grades: I8, right: float, count: int, levels: int, chance: Random) -> tuple[I8, I8]:
    """Random items, and their ratings."""
    item = chance.permutation(len(grades))[:count]
    shift = np.where(chance.random(len(item)) < right, 0, chance.integers(1, levels, len(item)))
    return item, (grades[item] + shift) % levels


SAMPLERS = {"pairs": _sample_votes, "ratings": _sample_ratings}


def add_spammers(
    preferences: Preferences,
    share: float,
    kind: SpammerKind = "random",
    seed: int = 0,
    labels: Labels | None = None,
) -> Preferences:
    """The same preferences with spammers: in each query `share` times the number of its experts.

    A spammer judges the pairs or items of a random expert of the query. A random spammer answers at random
    (with any rating that occurs); a malicious one gives the opposite of the labels, or of that expert where
    there are none: votes and lists reversed, ratings mirrored. The n-th spammer is the same in all queries.

    >>> p = Preferences.from_comparisons([0, 0], ["ann", "bob"], ["a", "a"], ["b", "c"])
    >>> add_spammers(p, 0.5, "malicious").experts.tolist()
    ['ann', 'bob', 'spammer 1']
    """
    if kind not in ("random", "malicious"):
        raise ParameterError(f"kind is {kind!r}; accepted: random, malicious")
    if not 0 <= share < np.inf:
        raise ParameterError(f"share is {share!r}; accepted: finite numbers from 0")
    chance, index = np.random.default_rng(seed), preferences.index
    grades = np.full(len(index.items), np.nan) if labels is None else labels.align(index)
    name = "spammer"
    while any(str(e).startswith(name) for e in preferences.experts):
        name = f"another {name}"
    drawn: list[Spammer] = []
    for query in range(len(preferences)):
        tables = preferences.lists, preferences.comparisons
        own = [t.expert[t.query_starts[query] : t.query_starts[query + 1]] for t in tables]
        experts = np.unique(np.concatenate(own))
        count = int(np.floor(share * len(experts) + 0.5))
        chosen = chance.choice(experts, count).tolist() if count else []
        drawn += [(query, f"{name} {n}", expert) for n, expert in enumerate(chosen, 1)]
    if not drawn:
        return preferences
    votes = _imitate_votes(preferences, drawn, kind == "random", grades, chance)
    lists = _imitate_lists(preferences, drawn, kind == "random", grades, chance)
    return Preferences.concat([preferences, *(p for p in (votes, lists) if p is not None)])


def _find_imitated_rows(table: Comparisons | Lists, drawn: Sequence[Spammer]) -> tuple[I8, list[str]]:
    """The votes or lists that spammers copy, and the spammer of each."""
    rows, who = [np.zeros(0, np.int64)], []
    for query, name, expert in drawn:
        begin, end = table.query_starts[query : query + 2].tolist()
        matches = begin + np.flatnonzero(table.expert[begin:end] == expert)
        rows.append(matches)
        who += [name] * len(matches)
    return np.concatenate(rows), who


def _imitate_votes(
    p: Preferences, drawn: Sequence[Spammer], by_lot: bool, grades: F8, chance: Random
) -> Preferences | None:
    """The comparisons of the spammers."""
    votes = p.comparisons
    row, who = _find_imitated_rows(votes, drawn)
    if not who:
        return None
    a, b = votes.winner[row], votes.loser[row]
    gap = grades[a] - grades[b]
    unknown = np.isnan(gap) | (gap == 0)
    turn = chance.random(len(row)) < 0.5 if by_lot else unknown | (gap > 0)
    items = p.index.items
    return Preferences.from_comparisons(
        [p.queries[int(q)] for q in votes.query_of_row[row]],
        who,
        [items[int(i)] for i in np.where(turn, b, a)],
        [items[int(i)] for i in np.where(turn, a, b)],
        tie=votes.tie[row] & unknown & (not by_lot),
        weight=votes.weight[row],
    )


def _imitate_lists(
    p: Preferences, drawn: Sequence[Spammer], by_lot: bool, grades: F8, chance: Random
) -> Preferences | None:
    """The lists of the spammers."""
    lists = p.lists
    which, names = _find_imitated_rows(lists, drawn)
    if not names:
        return None
    score = None if lists.score is None or np.isnan(lists.score).any() else lists.score
    levels = np.zeros(0) if score is None else np.unique(score)
    query, who, slot, value = [], [], [], []
    for n, name in zip(which.tolist(), names, strict=True):
        rows = slice(*lists.starts[n : n + 2].tolist())
        items = lists.item[rows]
        given = lists.rank[rows].astype(np.float64) if score is None else score[rows]
        if by_lot:
            answer = chance.choice(levels, len(given)) if len(levels) else chance.permutation(given)
        elif len(levels):
            rating_of = np.where(np.isin(grades[items], levels), grades[items], given)
            answer = np.asarray(levels[0] + levels[-1] - rating_of, np.float64)
        else:  # ranks, as there are no levels of ratings
            worst = -given if np.isnan(grades[items]).any() else grades[items]
            answer = np.asarray((worst[:, None] > worst).sum(axis=1) + 1.0, np.float64)
        value.append(answer)
        slot += items.tolist()
        who += [name] * len(items)
        query += [p.queries[int(lists.query_of_list[n])]] * len(items)
    values = np.concatenate(value)
    rank, rating = (values, None) if score is None else (None, values)
    names_of = [p.index.items[i] for i in slot]
    return Preferences.from_rows(query, who, names_of, rank=rank, score=rating, unlisted=p.unlisted)
