"""Item features that are one of the lists, exactly or with noise."""

from __future__ import annotations

import numpy as np

from podium.data.preferences import Preferences
from podium.kernels.dispatch import F8, I8
from podium.methods.feature.expert_columns import find_equal_columns
from podium.methods.feature.retargeting_search import compute_agreement_weights, compute_reliability

__all__ = ["find_copied_features"]

COPY = 5e-3  # unexplained fraction of a list's ranks below which a feature is the list itself
CLOSE = 0.35  # the same, below which it may be the list with noise
NEWS = 0.1  # fraction of the other lists' common order, beyond the list, that a feature of its own explains
GOOD = 0.8  # fraction of the reliable part of that order from which a list may take the place of all others
FEWEST = 50  # ranked items below which chance alone moves NEWS too much to tell a copy with noise from a good feature
SHORT = (
    8  # listed items below which a feature may have their order by chance, if nothing is known of the others
)


def find_copied_features(preferences: Preferences, table: F8, values: F8) -> dict[int, int]:
    """Features (columns of `values`) that are a copy of a list or of its reverse, with its expert.

    Ranks are compared, so any monotone transform counts as a copy. A feature that orders the items of a list as
    the list does is a copy. One that nearly does, while the other features together do not, is a copy with noise
    if it explains nothing of the other lists that the list does not explain, unless there are no other lists, or
    the list has nearly all that they have in common, or ranks too few items to decide. `table` has a column per expert.
    """
    lists, index, below = preferences.lists, preferences.index, preferences.unlisted == "below"
    places = np.stack([_rank_in_groups(index.starts, column) for column in values.T], axis=1)
    same, copies = find_equal_columns(table), dict[int, int]()
    for expert, column in enumerate(table.T):
        rows = np.flatnonzero(lists.expert[lists.list_of_row] == expert)
        item, of_row = lists.item[rows], lists.list_of_row[rows]
        starts = np.append(np.flatnonzero(np.diff(of_row, prepend=-1)), len(rows))
        own = _rank_in_groups(starts, -lists.rank[rows].astype(np.float64))
        others = table[:, same != same[expert]]
        parts = others * compute_agreement_weights(others)
        agreed = _rank_in_groups(starts, parts.sum(axis=1)[item])
        common = 1.0 - _compute_unexplained(agreed, own)
        is_useful = not agreed.any() or common >= GOOD * compute_reliability(parts)
        has_list = np.isin(index.query_of_slot, index.query_of_slot[item])
        rest = np.setdiff1d(np.flatnonzero(has_list), item)
        # where the places of the others are unknown, or the feature has no values for them, the listed ones decide
        by_order = np.asarray((values[rest] == 0).all(axis=0) | (not below), np.bool_) & (len(rest) > 0)
        possible = values.any(axis=0) & ~(by_order & (len(rows) < SHORT))
        for feature in np.flatnonzero(possible).tolist():
            if feature in copies:
                continue
            # where unlisted items are below the listed ones, a copy puts the listed ones on top too
            if not by_order[feature] and _compute_unexplained(column[item], places[item, feature]) > CLOSE:
                continue
            mine = _rank_in_groups(starts, values[item, feature])
            far = _compute_unexplained(own, mine)
            news = 1.0 - _compute_unexplained(_remove(agreed, own), _remove(mine, own))
            is_near = len(rows) >= FEWEST and far < CLOSE and news < NEWS and not is_useful
            if far < COPY or (is_near and _compute_left(column, np.delete(values, feature, axis=1)) > CLOSE):
                copies[feature] = expert
    return copies


def _compute_left(column: F8, values: F8) -> float:
    """The fraction of a column that a regression on others leaves; columns without variance do not matter."""
    gram = values.T @ values + 1e-3 * len(values) * np.eye(values.shape[1])
    rest = column - values @ np.linalg.solve(gram, values.T @ column)
    return float(rest @ rest) / (float(column @ column) or 1.0)


def _remove(values: F8, other: F8) -> F8:
    """What a regression on `other` leaves of centered values."""
    size = float(other @ other)
    return values - other * (float(values @ other) / size) if size > 0 else values


def _rank_in_groups(starts: I8, values: F8) -> F8:
    """Mean ranks in each group, with mean 0."""
    group = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    order = np.lexsort((values, group))
    sorted_values = values[order]
    new = np.ones(len(values), np.bool_)
    new[1:] = (sorted_values[1:] != sorted_values[:-1]) | (np.diff(group) > 0)
    run = np.cumsum(new) - 1
    mean = np.bincount(run, np.arange(len(values), dtype=np.float64)) / np.bincount(run)
    ranks = np.empty(len(values))
    ranks[order] = mean[run]
    middle = (starts[:-1] + starts[1:] - 1) / 2
    return ranks - middle[group]


def _compute_unexplained(one: F8, other: F8) -> float:
    """1 minus the squared correlation of centered values; 1 where one is constant."""
    size = float(one @ one) * float(other @ other)
    return 1.0 - float(one @ other) ** 2 / size if size > 0 else 1.0
