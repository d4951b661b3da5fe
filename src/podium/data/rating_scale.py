"""Whether scores are ratings, as people and judges give them on a scale, or scores of search engines."""

from __future__ import annotations

import numpy as np

from podium.data.preferences import Preferences
from podium.kernels.dispatch import F8

__all__ = ["count_rating_levels"]

UNITS = (1.0, 2.0, 4.0, 10.0)  # steps of a scale per unit: whole numbers, halves, quarters, tenths
FINEST = 20.0  # a multiple of all units
STEPS = 100  # of a scale, at most, such as 0 to 100
REPEATS = 2  # ratings per level, at least
TIES = 0.25  # tied pairs within lists, at least, as a share of those by chance; ranks in disguise do not tie


def count_rating_levels(preferences: Preferences) -> int:
    """The number of distinct ratings if the scores are ratings on a scale, otherwise 0.

    The form of the container comes first: a run, whose unlisted items rank below, and lists with ranks that are not
    those of the scores hold no ratings. Then two experts must rate one item, the values must be multiples of 1, 1/2,
    1/4 or 1/10 over at most 100 steps, each must occur twice in the mean, and they must be tied within lists at least
    a quarter as often as if all ratings were dealt out at random: scores such as 3, 2, 1 are ranks in disguise.

    >>> lists = {"ann": {"a": 2.5, "b": 4, "c": 4, "d": 1}, "bob": {"a": 2.5, "b": 4, "c": 2.5, "d": 1}}
    >>> count_rating_levels(Preferences.from_lists({"q": lists}))
    3
    """
    lists = preferences.lists
    score = lists.score
    if score is None or not len(score) or preferences.unlisted == "below" or not _lies_on_scale(score):
        return 0
    same_list = np.ones(lists.rows - 1, np.bool_)
    same_list[lists.starts[(lists.starts > 0) & (lists.starts < lists.rows)] - 1] = False
    tied = same_list & (lists.rank[1:] == lists.rank[:-1])
    if (tied != (same_list & (score[1:] == score[:-1]))).any() or np.bincount(lists.item).max() < 2:
        return 0
    counts = np.bincount(np.rint((score - score.min()) * FINEST).astype(np.int64))
    counts = counts[counts > 0]
    if len(counts) < 2 or len(score) < REPEATS * len(counts):
        return 0
    runs = np.diff(np.flatnonzero(np.concatenate(([True], ~tied, [True]))))  # lengths of groups of tied rows
    chance = float(counts @ (counts - 1)) / (len(score) * (len(score) - 1.0))
    expected = chance * float(lists.lengths @ (lists.lengths - 1))
    return len(counts) if float(runs @ (runs - 1)) >= TIES * expected else 0


def _lies_on_scale(score: F8) -> bool:
    for part in (score[:1000], score):  # the scores of search engines fail at once
        low, high = float(part.min()), float(part.max())
        if not any(
            (high - low) * unit <= STEPS + 1e-6 and np.abs(part * unit - np.rint(part * unit)).max() <= 1e-6
            for unit in UNITS
        ):
            return False
    return True
