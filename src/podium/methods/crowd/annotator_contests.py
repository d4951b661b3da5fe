"""Annotators' answers as contests between items: opponents, outcomes, and chances against items not judged."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from podium.core.errors import ParameterError
from podium.data.lists import Lists
from podium.data.preferences import Preferences
from podium.kernels import segments
from podium.kernels.contest_counts import orient_votes
from podium.kernels.dispatch import B1, F8, I8
from podium.kernels.grouping import number_rows, sum_by_group, sum_rows
from podium.kernels.pairwise_votes import count_items_above
from podium.kernels.poisson_binomial import OpponentTable

__all__ = [
    "AnnotatorContests",
    "collect_annotator_contests",
    "find_level_starts",
    "place_opponents",
]

_NONE = np.zeros(0, np.int64)

WinProbabilities = Callable[[F8, F8, F8], F8]  # from an item's wins, its opponent's wins and the items judged


class ContestRows(NamedTuple):
    """Items that one answer ties, and their opponents; see `OpponentTable`."""

    group: I8
    own: F8
    first: I8
    last: I8
    value: F8
    many: I8
    uneven: I8
    chance: F8  # probability of beating an item that the expert did not judge


class AnnotatorContests(NamedTuple):
    """Rows in groups (a list, or an expert's votes on a query); entries map rows to the slots they cover."""

    contests: OpponentTable
    expert: I8  # by group
    query: I8  # by group
    row: I8  # by entry
    slot: I8  # by entry
    rest: I8  # by list: the row of its unlisted items, or -1
    winner: I8  # by pair on which an expert voted: the entry with the majority of its votes
    loser: I8
    decided: B1  # by pair: whether one item has a majority


class _SourceContests(NamedTuple):
    rows: ContestRows
    judged: I8  # by group: number of items judged
    answers: tuple[I8, ...]  # expert, query, row, slot, rest, winner, loser
    decided: B1


def collect_annotator_contests(
    preferences: Preferences,
    weights: F8,
    pair: str,
    scale: str,
    unjudged: str,
    probabilities: WinProbabilities | None = None,
) -> AnnotatorContests:
    """All contests of all experts; the other arguments are those of CrowdAgg, its own probabilities last."""
    direct = pair == "vote" and probabilities is None
    a, b = _from_lists(preferences, weights), _from_votes(preferences, direct=direct)
    groups, rows, opponents = len(a.judged), len(a.rows.own), len(a.rows.value)
    shift = ContestRows(groups, 0, opponents, opponents, 0, 0, 0, 0)  # type: ignore[arg-type]
    both = ContestRows(*(np.concatenate((x, y + by)) for x, y, by in zip(a.rows, b.rows, shift, strict=True)))
    entries = len(a.answers[3])
    moved = (0, 0, rows, 0, 0, entries, entries)
    answers = [np.concatenate((x, y + by)) for x, y, by in zip(a.answers, b.answers, moved, strict=True)]
    judged, size = np.concatenate((a.judged, b.judged)), preferences.index.sizes[answers[1]]
    by = np.maximum(size if scale == "all" else judged, 1).astype(np.float64)
    if probabilities is not None:
        both, pair = _apply_probabilities(both, by, probabilities), "own"
    rules = {
        "difference": (0.5 / by, 0.0),
        "vote": (0.0 * by, 0.5),
        "printed": (1.0 / by, -0.5),
        "own": (np.ones(len(by)), 0.0),
    }
    slope, step = rules[pair]
    unjudged_items = (size - judged)[both.group]
    unjudged_edge = np.where((unjudged_items > 0) & (unjudged != "even"), both.chance - 0.5, 0.0)
    contests = OpponentTable(
        *both[:6],
        slope=slope,
        step=step,
        unjudged_edge=unjudged_edge,
        unjudged_items=unjudged_items,
        size=(size - 1)[both.group],
        uneven=both.uneven + np.where(unjudged_edge != 0, unjudged_items, 0),
    )
    expert, query, row, slot, rest, winner, loser = answers
    return AnnotatorContests(contests, expert, query, row, slot, rest, winner, loser, b.decided)


def _apply_probabilities(rows: ContestRows, items: F8, probabilities: WinProbabilities) -> ContestRows:
    """Rows with opponents of their own, whose values are minus the edges over them."""
    many = rows.last - rows.first
    ends = np.cumsum(many)
    row = np.repeat(np.arange(len(many)), many)
    opponent = np.arange(int(many.sum())) - np.repeat(ends - many, many) + rows.first[row]
    mine, other, by = rows.own[row], rows.value[opponent], items[rows.group[row]]
    win, lose = (np.asarray(probabilities(*p), np.float64) for p in ((mine, other, by), (other, mine, by)))
    if win.shape != mine.shape or not np.all((win >= 0) & (win <= 1)) or not np.allclose(win + lose, 1):
        raise ParameterError(
            "crowdagg: compute_win_probabilities returned other values than numbers in 0 .. 1, one for each contest, "
            "that sum to 1 over the two sides of a contest"
        )
    edge = win - 0.5
    count = rows.many[opponent]
    uneven = np.bincount(row, count * (edge != 0), len(many)).astype(np.int64)
    return rows._replace(
        own=np.zeros(len(many)), first=ends - many, last=ends, value=-edge, many=count, uneven=uneven
    )


def place_opponents(answers: AnnotatorContests, level: F8) -> AnnotatorContests:
    """The same contests, but an item on which an expert voted meets unjudged items by the levels of its opponents.

    The level of a slot is the share of its query below it. Laplace's rule of succession, (wins + 1) / (contests + 2),
    takes the opponents as typical; where they are not, each counts by its level (Colley's rule), and so does a tie.
    """
    if not len(answers.winner):
        return answers
    contests, entries = answers.contests, len(answers.slot)
    mine, met = (
        np.concatenate(p) for p in ((answers.winner, answers.loser), (answers.loser, answers.winner))
    )
    lead = np.where(answers.decided, 0.5, 0.0)
    gain = level[answers.slot[met]] + np.concatenate((lead, -lead))
    count = np.bincount(mine, minlength=entries)
    voted = np.flatnonzero(count)
    chance = ((1 + sum_by_group(mine, gain, entries)) / (2 + count))[voted]
    row, unjudged_edge = answers.row[voted], contests.unjudged_edge.copy()
    unjudged_edge[row] = np.where(contests.unjudged_items[row] > 0, np.clip(chance, 0.0, 1.0) - 0.5, 0.0)
    before, after = (
        np.where(edge != 0, contests.unjudged_items, 0) for edge in (contests.unjudged_edge, unjudged_edge)
    )
    return answers._replace(
        contests=contests._replace(unjudged_edge=unjudged_edge, uneven=contests.uneven - before + after)
    )


def find_level_starts(lists: Lists) -> I8:
    """The first row of every rank level of every list."""
    above, _ = count_items_above(lists.starts, lists.rank)
    return np.flatnonzero(np.arange(lists.rows) - lists.starts[:-1][lists.list_of_row] == above)


def _from_lists(preferences: Preferences, weights: F8) -> _SourceContests:
    """Lists: items at one rank form a row, which meets all others of the list."""
    lists = preferences.lists
    lengths = lists.lengths
    size = preferences.index.sizes[lists.query_of_list]
    below = preferences.unlisted == "below"
    left = np.where(below & (lengths > 0), size - lengths, 0)  # an empty list carries no information
    above, upto = count_items_above(lists.starts, lists.rank)
    head = find_level_starts(lists)
    level = np.cumsum(np.bincount(head, minlength=lists.rows)) - 1
    of_level, extra = lists.list_of_row[head], np.flatnonzero(left > 0)
    group = np.concatenate((of_level, extra))
    count = np.concatenate((upto[head] - above[head], left[extra]))
    own = np.concatenate((lengths[of_level] - upto[head] + left[of_level], np.zeros(len(extra), np.int64)))
    chance = np.concatenate(
        (_compute_unjudged_chances(preferences, weights, level, count[: len(head)]), np.zeros(len(extra)))
    )
    order = np.argsort(group, kind="stable")  # unlisted items come last in each list
    group, count, own, chance = group[order], count[order], own[order].astype(np.float64), chance[order]
    starts = segments.offsets(np.bincount(group, minlength=len(lists)))
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    rest = np.full(len(lists), -1, np.int64)
    rest[extra] = place[len(head) :]
    judged = lengths + left
    rows = ContestRows(
        group, own, starts[group], starts[group + 1], own, count, judged[group] - count, chance
    )
    expert, slot = lists.expert.astype(np.int64), lists.item.astype(np.int64)
    return _SourceContests(
        rows, judged, (expert, lists.query_of_list, place[level], slot, rest, _NONE, _NONE), _NONE > 0
    )


def _compute_unjudged_chances(preferences: Preferences, weights: F8, level: I8, count: I8) -> F8:
    """By level: the probability that an item which the expert did not judge would have ranked below.

    In a ranking every gap is equally likely; a rating is compared with all ratings of its query.
    """
    lists = preferences.lists
    _, upto = count_items_above(lists.starts, lists.rank)
    head = np.flatnonzero(np.diff(level, prepend=-1))
    lengths = lists.lengths[lists.list_of_row[head]]
    ranked = (lengths - upto[head] + (count + 1) / 2) / (lengths + 1)
    if lists.score is None:
        return ranked
    rated = np.flatnonzero(~np.isnan(lists.score))
    query, weight = lists.query_of_list[lists.list_of_row], weights[lists.expert][lists.list_of_row]
    order = rated[np.lexsort((lists.score[rated], query[rated]))]
    share = np.full(lists.rows, np.nan)
    share[order] = _compute_shares_below(query[order], lists.score[order], weight[order])
    mean = sum_by_group(level, share, len(head)) / np.maximum(count, 1)
    return np.where(np.isnan(mean), ranked, mean)


def _compute_shares_below(query: I8, score: F8, weight: F8) -> F8:
    """The fraction of a query's weight at lower scores, ties half; rows are sorted by query, then score."""
    if not len(query):
        return np.zeros(0)
    new = np.concatenate(([True], query[1:] != query[:-1]))
    value = np.cumsum(new | np.concatenate(([True], score[1:] != score[:-1]))) - 1
    which = np.cumsum(new) - 1
    at_value = sum_by_group(value, weight, int(value[-1]) + 1)
    total = sum_by_group(which, weight, int(which[-1]) + 1)
    of_value = which[np.flatnonzero(np.diff(value, prepend=-1))]
    upto = np.cumsum(at_value) - (np.cumsum(total) - total)[of_value]
    share = (upto - at_value / 2) / np.where(total > 0, total, 1.0)[of_value]
    return np.where(total[which] > 0, share[value], 0.5)


def _from_votes(preferences: Preferences, *, direct: bool) -> _SourceContests:
    """Votes: an expert's majority on each pair; a row is an item that it compared with others."""
    votes = preferences.comparisons
    (query, expert), of_vote = number_rows(votes.query_of_row, votes.expert)
    rows = orient_votes(votes.winner, votes.loser, votes.tie, votes.weight, of_vote)
    (group, low, high), (for_low, for_high) = sum_rows(rows[:3], (rows.won, rows.lost))
    net = for_low - for_high
    both = np.concatenate((group, group)), np.concatenate((low, high))
    (of_row, slot), row = number_rows(*both)
    clear = np.concatenate((net, net)) != 0
    mine, met, won = row[clear], np.roll(row, len(net))[clear], np.concatenate((net, -net))[clear]
    order = np.lexsort((met, mine))
    mine, met, won = mine[order], met[order], np.sign(won[order])
    wins, contests = sum_by_group(mine, won > 0, len(slot)), np.bincount(mine, minlength=len(slot))
    own, value = (0.0 * wins, -won) if direct else (wins, wins[met])
    ends = np.cumsum(contests)
    uneven = sum_by_group(mine, value != own[mine], len(slot)).astype(np.int64)
    ones = np.ones(len(met), np.int64)
    table = ContestRows(of_row, own, ends - contests, ends, value, ones, uneven, (wins + 1) / (contests + 2))
    judged = np.bincount(of_row, minlength=len(expert))
    up, (first, second) = net > 0, np.split(row, 2)
    pairs = np.where(up, first, second), np.where(up, second, first)
    answers = expert, query, np.arange(len(slot)), slot, _NONE, *pairs
    return _SourceContests(table, judged, answers, net != 0)
