"""Agreement of every list with the other lists of its query, and weights by list that follow from it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from podium.kernels.dispatch import F8, I8

__all__ = ["compute_consensus_correlations", "tilt_weights"]

NOTHING = 1e-10  # variances below this share of the squares are rounding error


def compute_consensus_correlations(
    list_of_row: I8,
    item: npt.NDArray[np.integer],
    value: F8,
    query_of_list: I8,
    query_of_slot: I8,
    weight: F8,
    left_out: F8,
) -> F8:
    """For every list, the correlation of its values with the consensus of the other lists of its query.

    A list is a vector over all items of its query: `value` where it has a row, otherwise 0. The consensus is
    the sum of the vectors times `weight`, minus `left_out` times the list itself. The correlation is Pearson's,
    over the items of the query; 0 where one of the two is constant, as without any other list.
    """
    lists, slots = len(query_of_list), len(query_of_slot)
    queries = int(max(query_of_slot.max(initial=-1), query_of_list.max(initial=-1))) + 1
    total: F8 = np.asarray(np.bincount(item, value * weight[list_of_row], slots), np.float64)

    def sum_by_list(terms: F8) -> F8:
        return np.asarray(np.bincount(list_of_row, terms, lists), np.float64)

    def sum_by_query(terms: F8 | None) -> F8:
        return np.asarray(np.bincount(query_of_slot, terms, queries)[query_of_list], np.float64)

    own_sum, own, inner = sum_by_list(value), sum_by_list(value * value), sum_by_list(value * total[item])
    whole_sum, whole, size = sum_by_query(total), sum_by_query(total * total), sum_by_query(None)
    # sums over the vector total - left_out * value, without building it for each list
    rest_sum, rest = whole_sum - left_out * own_sum, whole - 2.0 * left_out * inner + left_out**2 * own
    covariance = inner - left_out * own - own_sum * rest_sum / np.maximum(size, 1.0)
    variances = own - own_sum**2 / np.maximum(size, 1.0), rest - rest_sum**2 / np.maximum(size, 1.0)
    varies = (variances[0] > NOTHING * own) & (variances[1] > NOTHING * whole)
    scale = np.sqrt(np.where(varies, variances[0] * variances[1], 1.0))
    return np.asarray(np.where(varies, np.clip(covariance / scale, -1.0, 1.0), 0.0), np.float64)


def tilt_weights(weight: F8, exponent: F8, query_of_list: I8, queries: int) -> F8:
    """Weights by list times exp(exponent), rescaled so that their sum in every query stays the same.

    >>> tilt_weights(np.ones(2), np.log([3.0, 1.0]), np.zeros(2, np.int64), 1).tolist()
    [1.5, 0.5]
    """
    # relative to the largest exponent of a list that counts: no overflow, and one factor stays 1
    top = np.full(queries, -np.inf)
    counted = weight > 0
    np.maximum.at(top, query_of_list[counted], exponent[counted])
    shift = np.where(np.isfinite(top), top, 0.0)[query_of_list]
    tilted = weight * np.exp(np.where(counted, exponent - shift, 0.0))
    before = np.bincount(query_of_list, weight, queries)
    after = np.bincount(query_of_list, tilted, queries)
    return np.asarray(tilted * (before / np.where(after > 0, after, 1.0))[query_of_list], np.float64)
