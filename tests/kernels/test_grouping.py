"""Rows numbered and summed by their keys, against sorted tuples and dictionaries."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.kernels import grouping

rows = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 50), st.integers(0, 2)), max_size=40)


@pytest.mark.parametrize("largest", [2**62, 100])
@given(rows=rows)
def test_rows_are_numbered_as_sorted_tuples(largest, rows):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(grouping, "LARGEST_KEY", largest)  # small: intermediate keys are numbered too
        distinct, number = grouping.number_rows(*np.array(rows, np.int64).reshape(-1, 3).T)
    expected = sorted(set(rows))
    assert list(zip(*(c.tolist() for c in distinct), strict=True)) == expected
    assert number.tolist() == [expected.index(row) for row in rows]


def test_codes_whose_product_overflows_stay_apart():
    large = np.array([2**40, 0, 2**40, 5], np.int64)
    distinct, number = grouping.number_rows(large, large, large[::-1].copy())
    expected = sorted(set(zip(large.tolist(), large.tolist(), large[::-1].tolist(), strict=True)))
    assert list(zip(*(c.tolist() for c in distinct), strict=True)) == expected
    assert len(set(number.tolist())) == len(expected)


@given(rows=rows)
def test_sums_by_key(rows):
    table = np.array(rows, np.int64).reshape(-1, 3)
    (keys,), (sums, counts) = grouping.sum_rows([table[:, 0]], (table[:, 1] * 0.5, np.ones(len(table))))
    expected: dict[int, list[float]] = defaultdict(list)
    for key, value, _ in rows:
        expected[key].append(value * 0.5)
    assert keys.tolist() == sorted(expected)
    assert sums.tolist() == [sum(expected[k]) for k in sorted(expected)]
    assert counts.tolist() == [len(expected[k]) for k in sorted(expected)]
    assert sums.dtype == counts.dtype == np.float64
