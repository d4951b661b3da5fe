"""Digests of the labeled queries that a model was fitted on, stored in the model to detect them later.

A query is recognized by its id together with items that were labeled for it: data sets that number their
queries from 1 are not confused, and labels added later change nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from podium.data.ids import Id
from podium.data.labels import Labels
from podium.kernels.dispatch import B1

__all__ = ["digest_queries", "find_fitted_queries", "forget_queries", "note_queries"]

SAMPLE = 4  # labeled items stored per query
U8 = npt.NDArray[np.uint64]


def note_queries(model: Any, labels: Iterable[Labels]) -> None:
    """Record in a model that it was fitted on (or selected by) the queries of these labels."""
    rows = np.concatenate([np.zeros((0, 1 + SAMPLE), np.uint64), *map(digest_queries, labels)])
    model.fitted_on_ = rows[np.lexsort(rows.T[::-1])]


def forget_queries(model: Any) -> None:
    """Remove the records of an earlier fit."""
    for name in ("fitted_on_", "validation_", "tuning_"):
        model.__dict__.pop(name, None)


def digest_queries(labels: Labels) -> U8:
    """One row per labeled query: a digest of its id, then digests of up to `SAMPLE` of its items, 0 for none.

    >>> digest_queries(Labels.from_dict({"q": {"a": 1, "b": 0}, "r": {}})).shape
    (1, 5)
    """
    index, rows = labels.index, []
    for query, (begin, end) in zip(index.queries, pairwise(index.starts.tolist()), strict=True):
        if end > begin:
            items = index.items.take(np.arange(begin, min(end, begin + SAMPLE))).tolist()
            row = [_digest_ids(query), *(_digest_ids(query, item) for item in items)]
            rows.append(row + [0] * (1 + SAMPLE - len(row)))
    return np.array(rows, np.uint64).reshape(len(rows), 1 + SAMPLE)


def find_fitted_queries(model: Any, labels: Labels) -> B1 | None:
    """For every query of the labels whether the model was fitted on it; None if the model has no record.

    Models of unsupervised methods were fitted on no query, unless labels selected their parameters.
    """
    kept = getattr(model, "fitted_on_", None)
    if kept is None:
        return None if model.tags.supervised else np.zeros(len(labels), np.bool_)
    known = {int(row[0]): row[1:][row[1:] > 0] for row in np.asarray(kept, np.uint64)}
    fitted_queries = np.zeros(len(labels), np.bool_)
    index = labels.index
    for code, query in enumerate(index.queries):
        items = known.get(_digest_ids(query))
        if items is not None:
            mine = index.items.take(np.arange(index.starts[code], index.starts[code + 1])).tolist()
            fitted_queries[code] = not {_digest_ids(query, item) for item in mine}.isdisjoint(items.tolist())
    return fitted_queries


def _digest_ids(*ids: Id) -> int:
    """A digest that is the same on every machine; never 0, and 5 differs from "5"."""
    text = "\0".join(f"{type(i).__name__}:{i}" for i in ids)
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big") or 1
