"""How far annotators agree with a ranking: pairs of their answers in its order, and in the opposite order."""

from __future__ import annotations

import numpy as np

from podium.data.preferences import Preferences
from podium.kernels import ranking_measures, segments
from podium.kernels.dispatch import B1, F8, I8
from podium.kernels.grouping import sum_by_group
from podium.kernels.ordering import rank_order
from podium.methods.crowd.annotator_contests import AnnotatorContests

__all__ = ["TOLERANCE", "compute_levels", "compute_places", "count_agreeing_pairs", "rank_without_own"]

TOLERANCE = 1e-10  # relative, for ties: scores are sums over annotators of terms of either sign


def compute_places(scores: F8, starts: I8, magnitude: F8) -> I8:
    """The place of every slot in its query, from 0; ties share one."""
    snapped, order, _ = rank_order(scores, starts, None, TOLERANCE, magnitude=magnitude)
    first: B1 = np.zeros(len(scores), np.bool_)
    first[starts[:-1][np.diff(starts) > 0]] = True
    value = snapped[order]
    first[1:] |= value[1:] != value[:-1]
    begin = np.maximum.accumulate(np.where(first, np.arange(len(scores)), 0))
    place = np.empty(len(scores), np.int64)
    place[order] = begin - np.repeat(starts[:-1], np.diff(starts))
    return place


def compute_levels(place: I8, starts: I8) -> F8:
    """By slot: the share of its query below it, tied ones and itself half."""
    query = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    first = starts[query] + place
    tied = np.bincount(first, minlength=len(place))[first]
    return np.asarray(1.0 - (place + tied / 2) / np.diff(starts)[query], np.float64)


def rank_without_own(
    answers: AnnotatorContests, scores: F8, own: F8, starts: I8, magnitude: F8
) -> tuple[I8, I8]:
    """Places by slot, and by entry those that its items have without the own terms of its expert, on one scale."""
    query = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    both = np.concatenate((query, query[answers.slot]))
    order = np.argsort(both, kind="stable")
    values = np.concatenate((scores, scores[answers.slot] - own))
    place = np.empty(len(order), np.int64)
    sizes = segments.offsets(np.bincount(both, minlength=len(starts) - 1))
    place[order] = compute_places(values[order], sizes, magnitude)
    return place[: len(scores)], place[len(scores) :]


def count_agreeing_pairs(
    preferences: Preferences, answers: AnnotatorContests, by_slot: I8, by_entry: I8 | None = None
) -> tuple[F8, F8, F8]:
    """By group: pairs in the same order as a ranking, pairs in the opposite order, and all pairs.

    Place 0 is the top; negative places mark unranked slots, whose pairs are excluded. With places by entry each group
    has a ranking of its own of the items that it judged.
    """
    place = by_slot[answers.slot] if by_entry is None else by_entry
    a, b = place[answers.winner], place[answers.loser]
    known = answers.decided & (a >= 0) & (b >= 0)
    groups, pair_group = len(answers.expert), answers.contests.group[answers.row[answers.winner]]
    counted = known & (a < b), known & (a > b), known
    agree, against, total = (sum_by_group(pair_group, w, groups) for w in counted)
    # pairs of the lists, which are the first groups and have the first entries
    lists = preferences.lists
    kept = np.flatnonzero(place[: lists.rows] >= 0)
    of_row, rank = lists.list_of_row[kept], lists.rank[kept]
    value = place[kept]
    starts = segments.offsets(np.bincount(of_row, minlength=len(lists)))
    new = np.ones(len(kept), np.bool_)
    new[1:] = (of_row[1:] != of_row[:-1]) | (rank[1:] != rank[:-1])
    levels = np.append(np.flatnonzero(new), len(kept))
    inside = ranking_measures.count_earlier(levels, value)
    outside = ranking_measures.count_earlier(starts, value)
    counts = [outside[0] - inside[0], outside[1] - inside[1], levels[np.cumsum(new) - 1] - starts[of_row]]
    if preferences.unlisted == "below":
        # unlisted items that the ranking puts below a row of a list, above it, and all of them
        ranked = np.flatnonzero(by_slot >= 0)
        all_of_query = _count_lower_and_higher(
            preferences.index.query_of_slot[ranked], by_slot[ranked], lists.query_of_list[of_row], value
        )
        listed = _count_lower_and_higher(of_row, by_slot[lists.item[kept]], of_row, value)
        above, below, others = (a - b for a, b in zip(all_of_query, listed, strict=True))
        counts = [f + m for f, m in zip(counts, (below, above, others), strict=True)]
    for sums, by_row in zip((agree, against, total), counts, strict=True):
        sums[: len(lists)] += sum_by_group(of_row, by_row, len(lists))
    return agree, against, total


def _count_lower_and_higher(segment: I8, value: I8, where: I8, threshold: I8) -> tuple[I8, I8, I8]:
    """Values of a segment below and above each threshold, and all of them; values and thresholds are not negative."""
    width = 1 + max(int(value.max(initial=0)), int(threshold.max(initial=0)))
    keys = np.sort(segment * width + value)
    begin, end = (np.searchsorted(keys, (where + more) * width) for more in (0, 1))
    low, high = (np.searchsorted(keys, where * width + threshold, side) for side in ("left", "right"))
    return low - begin, end - high, end - begin
