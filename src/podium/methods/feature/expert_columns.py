"""The experts' lists as a table with one column per expert."""

from __future__ import annotations

import numpy as np

from podium.core.errors import ParameterError
from podium.data.ids import Id, Ids
from podium.data.lists import Lists
from podium.data.preferences import Preferences
from podium.kernels import segments
from podium.kernels.dispatch import F8, I8
from podium.kernels.distributions import normal_quantile
from podium.methods.costs import check_table_size

__all__ = [
    "SCALES",
    "build_expert_columns",
    "find_equal_columns",
    "match_experts",
    "share_items_beyond_chance",
]

SCALES = ("rank", "normal", "score")
SURE = 2.0  # standard errors


def build_expert_columns(preferences: Preferences, experts: I8, n: int, scale: str) -> F8:
    """A table (slot, expert), each list with mean 0; `experts` numbers each expert's column, -1 excludes one.

    The scale is minus the place over the number of items, equal items sharing the best place; or the normal
    quantile of the mean place; or the score, scaled to 0..1 in its list. An unlisted item is below all listed
    ones, or has the list's mean where its position is unknown.
    """
    lists, index = preferences.lists, preferences.index
    check_table_size(preferences, n, "leave out experts, or aggregate in parts")
    of_row, length = lists.list_of_row, lists.lengths
    size = index.sizes[lists.query_of_list]
    below = preferences.unlisted == "below"
    values, bottom = _scale_rows(lists, size if below else length, index.sizes, scale)
    left = (size - length) if below else np.zeros(len(lists), np.int64)
    total = np.bincount(of_row, weights=values, minlength=len(lists)) + left * bottom
    mean = total / np.maximum(length + left, 1)
    expert_of_list = experts[lists.expert]
    kept = expert_of_list >= 0
    rest = np.zeros((len(index), n))
    if below:
        rest[lists.query_of_list[kept], expert_of_list[kept]] = (bottom - mean)[kept]
    table = rest[index.query_of_slot]
    rows = np.flatnonzero(kept[of_row])
    table[lists.item[rows], expert_of_list[of_row[rows]]] = (values - mean[of_row])[rows]
    return table


def match_experts(preferences: Preferences, experts: list[Id], method: str) -> I8:
    """For every expert here its number among those of the fit, -1 for unknown ones, which may not rank items."""
    codes = Ids(experts).codes_of(preferences.experts)
    unknown = np.flatnonzero((codes < 0) & preferences.active_experts)
    if len(unknown):
        raise ParameterError(
            f"{method} was not fitted with expert {preferences.experts[int(unknown[0])]!r}; fitted with "
            f"{', '.join(map(repr, experts[:8]))}{', ...' if len(experts) > 8 else ''}; fit it with all experts"
        )
    return codes


def _scale_rows(lists: Lists, places: I8, sizes: I8, scale: str) -> tuple[F8, F8]:
    """The value of each row, and the value below all of a list; `places` counts the places of a list."""
    of_row, length = lists.list_of_row, lists.lengths
    if scale == "score":
        given = lists.fill_scores(sizes)
        stats = segments.compute_list_statistics(lists.starts, given)
        spread = np.where(stats.high > stats.low, stats.high - stats.low, np.inf)
        return (given - stats.low[of_row]) / spread[of_row], -1.0 / np.maximum(length, 1)
    shared = segments.fractional_ranks(lists.starts, lists.rank)
    if scale == "rank":
        n = np.maximum(sizes[lists.query_of_list], 1)
        # the first place of each run of equal items, which share the mean of their places
        rows = np.arange(lists.rows)
        place = rows - lists.starts[:-1][of_row] + 1.0
        is_first = np.ones(lists.rows, np.bool_)
        is_first[1:] = (shared[1:] != shared[:-1]) | (place[1:] == 1.0)
        best = np.maximum.accumulate(np.where(is_first, rows, 0)) - rows + place
        return -best / n[of_row], -(length + 1.0) / n
    n = np.maximum(places, 1)
    last = np.minimum((length + 1 + n) / 2, n)  # the mean of the remaining places
    return normal_quantile(1 - (shared - 0.5) / n[of_row]), normal_quantile(1 - (last - 0.5) / n)


def find_equal_columns(table: F8) -> I8:
    """For every column the first column equal to it."""
    first: dict[bytes, int] = {}
    rounded = np.round(table, 12) + 0.0
    return np.array(
        [first.setdefault(c.tobytes(), k) for k, c in enumerate(np.ascontiguousarray(rounded.T))], np.int64
    )


def share_items_beyond_chance(preferences: Preferences) -> bool:
    """Whether the lists of a query have more items in common than lists of random items would have.

    Lists that end early because they keep their best items do; lists of items that were assigned do not. The
    variance of the number of lists per item is compared with that under independent choices.
    """
    lists, index, experts = preferences.lists, preferences.index, len(preferences.experts)
    if (lists.lengths == index.sizes[lists.query_of_list]).all():
        return False
    # equal lists count once, as they do in the search for weights
    table = build_expert_columns(preferences, np.arange(experts), experts, "rank")
    kept = (find_equal_columns(table) == np.arange(experts))[lists.expert]
    rows = kept[lists.list_of_row]
    times = np.bincount(lists.item[rows], minlength=len(index.items)).astype(np.float64)
    query = lists.query_of_list[kept]
    share = lists.lengths[kept] / np.maximum(index.sizes[query], 1)
    expected = np.bincount(query, share * (1 - share), len(index))
    some = expected > 0
    mean = np.bincount(query, share, len(index))
    spread = np.bincount(index.query_of_slot, (times - mean[index.query_of_slot]) ** 2, len(index))
    wanted = float((expected * index.sizes)[some].sum())
    freedom = float((index.sizes - 1)[some].sum())
    return freedom > 0 and float(spread[some].sum()) / wanted > 1 + SURE * np.sqrt(2 / freedom)
