"""Random splits of queries that depend only on query ids and seed, not on row order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from podium.core.errors import ParameterError
from podium.data.dataset import Dataset, Fold
from podium.kernels.dispatch import B1

__all__ = ["find_labeled_queries", "holdout", "random_splits"]


def random_splits(
    dataset: Dataset, times: int = 5, shares: Sequence[float] = (0.6, 0.2, 0.2), seed: int = 0
) -> list[Fold]:
    """`times` independent splits of the queries; a query may be tested by several of them.

    >>> from podium.data.demo import demo
    >>> [tuple(len(part) for part in fold) for fold in random_splits(demo(20), times=2)]
    [(12, 4, 4), (12, 4, 4)]
    """
    if len(shares) != 3 or any(not 0 < share < 1 for share in shares) or abs(sum(shares) - 1) > 1e-9:
        raise ParameterError(
            f"shares is {tuple(shares)}; accepted: three positive numbers that sum to 1 (train, validation, test)"
        )
    validation, test = (round(len(dataset) * share) for share in shares[1:])
    if times < 1:
        raise ParameterError(f"times is {times}; accepted: whole numbers from 1")
    if min(validation, test, len(dataset) - validation - test) < 1:
        raise ParameterError(
            f"{len(dataset)} queries are too few to split {tuple(shares)}; give more queries"
        )
    random, queries = np.random.default_rng(seed), dataset.queries_by_id()
    folds = []
    for _ in range(times):
        dealt = random.permutation(queries)
        parts = np.split(dealt, [len(dealt) - validation - test, len(dealt) - test])
        folds.append(Fold(*(dataset.select_codes(np.sort(part)) for part in parts)))
    return folds


def holdout(dataset: Dataset, share: float, seed: int = 0) -> tuple[Dataset, Dataset]:
    """Split off a share of the labeled queries, at least one and not all; unlabeled queries stay.

    >>> from podium.data.demo import demo
    >>> [len(part) for part in holdout(demo(10), 0.2)]
    [8, 2]
    """
    if not 0 < share < 1:
        raise ParameterError(f"share is {share:g}; accepted: numbers between 0 and 1, both excluded")
    queries = dataset.queries_by_id()
    known = queries[find_labeled_queries(dataset)[queries]]
    if len(known) < 2:
        raise ParameterError(f"a share of {len(known)} labeled queries cannot be set aside; label more")
    held = np.random.default_rng(seed).permutation(known)[
        : min(max(1, round(share * len(known))), len(known) - 1)
    ]
    rest = np.setdiff1d(np.arange(len(dataset)), held)
    return dataset.select_codes(rest), dataset.select_codes(np.sort(held))


def find_labeled_queries(dataset: Dataset) -> B1:
    """For every query, whether one of its items has a grade."""
    index = dataset.preferences.index
    has_labels = np.zeros(len(index), np.bool_)
    if dataset.labels is not None:
        has_labels[index.query_of_slot[~np.isnan(dataset.labels.align(index))]] = True
    return has_labels
