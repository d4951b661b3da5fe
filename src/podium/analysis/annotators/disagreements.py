"""Examples of an annotator's disagreement: answers that most of the others gave differently."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from podium.data.ids import Id
from podium.data.preferences import Preferences

__all__ = ["Disagreement", "find_disagreements"]


@dataclass(frozen=True)
class Disagreement:
    """One answer of an annotator and those of the others to the same question.

    For a vote, `item` was preferred to `other` (or tied with it), and `against` of the `others` preferred the
    other item. For a rating, `own` is the given score and `mean` that of the others.
    """

    query: Id
    item: Id
    other: Id | None
    tie: bool
    others: int  # annotators who answered the same question
    against: int  # of them, those with the opposite answer; for a rating, those with another score
    own: float | None = None
    mean: float | None = None
    strength: float = 0.0  # how clear the disagreement is; examples are sorted by it


def find_disagreements(preferences: Preferences, annotator: Id, most: int = 20) -> list[Disagreement]:
    """The clearest disagreements of an annotator with the others, clearest first.

    >>> votes = Preferences.from_comparisons(
    ...     [1, 1, 1, 2], ["ann", "ben", "cid", "cid"], ["a", "a", "b", "a"], ["b", "b", "a", "b"])
    >>> [(d.query, d.item, d.other, d.others, d.against) for d in find_disagreements(votes, "cid")]
    [(1, 'b', 'a', 2, 2)]
    """
    code = preferences.expert_code(annotator)
    found = _find_in_votes(preferences, code) + _find_in_ratings(preferences, code)
    return sorted(found, key=lambda d: (-d.strength, str(d.query), str(d.item)))[:most]


def _find_in_votes(preferences: Preferences, code: int) -> list[Disagreement]:
    """Votes that more of the other annotators contradict than share."""
    votes, index = preferences.comparisons, preferences.index
    if not len(votes):
        return []
    low, high = np.minimum(votes.winner, votes.loser), np.maximum(votes.winner, votes.loser)
    _, pair = np.unique(low.astype(np.int64) * len(index.items) + high, return_inverse=True)
    # 1: the lower slot won, -1: the higher slot won, 0: a tie
    answer = np.where(votes.tie, 0, np.where(votes.winner == low, 1, -1))
    own = votes.expert == code
    # one answer per annotator and pair: the sign of the sum of their votes
    everyone, who = np.unique(np.stack((pair, votes.expert)), axis=1, return_inverse=True)
    total = np.sign(np.bincount(who.reshape(-1), weights=answer * votes.weight))
    pairs = int(pair.max()) + 1
    is_other = everyone[1] != code
    count = np.bincount(everyone[0][is_other], minlength=pairs)
    up = np.bincount(everyone[0][is_other & (total > 0)], minlength=pairs)
    down = np.bincount(everyone[0][is_other & (total < 0)], minlength=pairs)
    own_pairs = np.flatnonzero(~is_other)
    mine_by_pair = dict(zip(everyone[0][own_pairs].tolist(), total[own_pairs].tolist(), strict=True))
    shown, disagreements = set(), []
    for row in np.flatnonzero(own).tolist():
        k = int(pair[row])
        if k in shown:
            continue
        shown.add(k)
        mine = mine_by_pair[k]
        against = int(down[k] if mine > 0 else up[k] if mine < 0 else max(up[k], down[k]))
        same = int(up[k] if mine > 0 else down[k] if mine < 0 else count[k] - up[k] - down[k])
        if against > same:
            first, second = (low[row], high[row]) if mine >= 0 else (high[row], low[row])
            disagreements.append(
                Disagreement(
                    index.queries[int(index.query_of_slot[low[row]])], index.items[int(first)],
                    index.items[int(second)], mine == 0, int(count[k]), against,
                    strength=(against - same) / np.sqrt(count[k] + 1.0),
                )
            )  # fmt: skip
    return disagreements


def _find_in_ratings(preferences: Preferences, code: int) -> list[Disagreement]:
    """Ratings far from the mean of the others, in standard deviations of all ratings."""
    lists, index = preferences.lists, preferences.index
    if lists.score is None or not lists.rows or np.isnan(lists.score).any():
        return []
    who, score, slots = lists.expert[lists.list_of_row], lists.score, len(index.items)
    other = who != code
    count = np.bincount(lists.item[other], minlength=slots)
    total = np.bincount(lists.item[other], weights=score[other], minlength=slots)
    spread = float(np.std(score)) or 1.0
    own_score = np.full(slots, np.nan)
    own_score[lists.item[~other]] = score[~other]
    differs = score[other] != own_score[lists.item[other]]
    differing = np.bincount(lists.item[other], weights=differs, minlength=slots)
    disagreements = []
    for row in np.flatnonzero(~other).tolist():
        slot = int(lists.item[row])
        if not count[slot]:
            continue
        mean = float(total[slot] / count[slot])
        gap = abs(float(score[row]) - mean)
        if gap > 0 and 2 * differing[slot] > count[slot]:
            disagreements.append(
                Disagreement(
                    index.queries[int(index.query_of_slot[slot])], index.items[slot], None, False,
                    int(count[slot]), int(differing[slot]), float(score[row]), mean,
                    gap / spread * np.sqrt(count[slot] / (count[slot] + 1.0)),
                )
            )  # fmt: skip
    return disagreements
