"""Preferences as pairwise matrices, one per query and group of experts."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from podium.core.errors import InputError
from podium.data.lists import Lists
from podium.data.preferences import Preferences
from podium.kernels import segments
from podium.kernels.dispatch import B1, F8, I8
from podium.kernels.preference_svd import PreferenceMatrices

__all__ = [
    "ExpertMatrices",
    "Transform",
    "build_expert_matrices",
    "build_group_table",
    "find_unranked_cells",
    "scale_ranks",
]

Transform = Literal["binary", "rank", "log"]
LIGHTEST, HEAVIEST = 1e-60, 1e60  # strengths of votes whose products neither underflow nor overflow


class ExpertMatrices(NamedTuple):
    """Matrices ordered by query and group, and the group of each."""

    matrices: PreferenceMatrices
    group: I8


def build_expert_matrices(
    preferences: Preferences, transform: Transform, groups: I8 | None = None
) -> ExpertMatrices:
    """One matrix for every query and group of experts that has a list or a vote on it.

    `groups` numbers the group of every expert code from 0, or is -1 for excluded experts; None gives every
    expert its own. Strengths are 1 (`binary`), the difference of ranks over the largest rank of the list
    (`rank`), or that of log ranks (`log`); a vote counts its weight.

    >>> p = Preferences.from_rows([0] * 3, ["e"] * 3, ["a", "c", "d"], rank=[7, 5, 15])
    >>> from podium.kernels.preference_svd import build_dense_matrix
    >>> build_dense_matrix(build_expert_matrices(p, "log").matrices, 0).round(2)
    array([[0.  , 0.  , 0.28],
           [0.12, 0.  , 0.41],
           [0.  , 0.  , 0.  ]])
    """
    lists, votes = preferences.lists, preferences.comparisons
    group = np.arange(len(preferences.experts)) if groups is None else np.asarray(groups, np.int64)
    width = int(group.max(initial=0)) + 1
    list_key, which = _sort_keys(lists.query_of_list, group[lists.expert], width)
    vote_key, cast = _sort_keys(votes.query_of_row, group[votes.expert], width)
    weight = votes.weight[cast]
    if len(weight) and not LIGHTEST <= weight.min() <= weight.max() <= HEAVIEST:
        worst = weight.min() if weight.min() < LIGHTEST else weight.max()
        raise InputError(
            f"a vote has weight {worst:g}, and matrices of votes accept {LIGHTEST:g} to {HEAVIEST:g}",
            remedy="divide all weights by one number",
        )
    starts, rows = segments.gather_segments(lists.starts, which)
    keys = np.union1d(list_key, vote_key)
    ends = np.append(keys, np.iinfo(np.int64).max)
    matrices = PreferenceMatrices(
        slots=preferences.index.starts,
        query=keys // width,
        list_starts=np.searchsorted(list_key, ends),
        starts=starts,
        item=lists.item[rows],
        value=scale_ranks(lists, transform)[rows],
        binary=transform == "binary",
        below=preferences.unlisted == "below",
        vote_starts=np.searchsorted(vote_key, ends),
        winner=votes.winner[cast],
        loser=votes.loser[cast],
        strength=np.where(votes.tie[cast], 0.0, weight),
    )
    return ExpertMatrices(matrices, keys % width)


def _sort_keys(query: I8, group: I8, width: int) -> tuple[I8, I8]:
    """Sorted keys (query, group) of the rows that count, and these rows."""
    counted = np.flatnonzero(group >= 0)
    key = query[counted] * width + group[counted]
    order = np.argsort(key, kind="stable")
    return key[order], counted[order]


def scale_ranks(lists: Lists, transform: Transform) -> F8:
    """The position of every row on the scale of its list."""
    rank = lists.rank.astype(np.float64)
    if transform == "binary":
        return rank
    last = lists.last_rank.astype(np.float64)[lists.list_of_row]
    if transform == "rank":
        return rank / last
    return np.log(rank) / np.where(last > 1, np.log(last), 1.0)


def build_group_table(grouped: ExpertMatrices, values: npt.NDArray[Any], n_groups: int) -> F8:
    """Values over (matrix, item) as an array (slot, group); 0 for cells in no matrix."""
    m = grouped.matrices
    sizes, starts = m.sizes, m.starts_out
    slot = np.arange(starts[-1]) + np.repeat(m.slots[m.query] - starts[:-1], sizes)
    cells = np.zeros((int(m.slots[-1]), n_groups))
    cells[slot, np.repeat(grouped.group, sizes)] = values
    return cells


def find_unranked_cells(preferences: Preferences, groups: I8 | None, n_groups: int) -> B1:
    """For every (slot, group): whether no expert of the group lists the item or votes on it."""
    lists, votes = preferences.lists, preferences.comparisons
    group = np.arange(len(preferences.experts)) if groups is None else np.asarray(groups, np.int64)
    absent = np.ones((len(preferences.index.items), n_groups), np.bool_)
    by_vote = group[votes.expert]
    sources = (
        (lists.item, group[lists.expert][lists.list_of_row]),
        (votes.winner, by_vote),
        (votes.loser, by_vote),
    )
    for slot, of in sources:
        counted = of >= 0
        absent[slot[counted], of[counted]] = False
    return absent
