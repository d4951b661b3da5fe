"""Matching of keys and ids between two tables."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from podium._core import id_joins as core
from podium.kernels.dispatch import I8, U1, run_in_threads

__all__ = ["find_keys", "match_text_ids"]


class TextBuffer(Protocol):
    """Ids in one UTF-8 buffer."""

    buffer: U1 | None
    offsets: I8 | None


def find_keys(keys: I8, wanted: I8) -> I8:
    """Position in `keys` (distinct, any order) of every wanted key, or -1."""
    if len(keys) == 0:
        return np.full(len(wanted), -1, np.int64)
    order = np.argsort(keys, kind="stable")
    # a key above all others would be sought past the end
    at = np.minimum(np.searchsorted(keys[order], wanted), len(keys) - 1)
    found = order[at]
    return np.where(keys[found] == wanted, found, -1)


def match_text_ids(match: I8, starts: I8, ids: TextBuffer, other_starts: I8, other_ids: TextBuffer) -> I8:
    """For every slot, the slot of the same id in the matching query of another index (ids sorted in both)."""
    found = np.full(int(starts[-1]), -1, np.int64)
    run_in_threads(
        core.match_text_ids,
        starts,
        match,
        starts,
        ids.buffer,
        ids.offsets,
        other_starts,
        other_ids.buffer,
        other_ids.offsets,
        found,
    )
    return found
