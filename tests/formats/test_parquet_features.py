"""Item features in Parquet are read by column, and as those of other tables are."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from podium import formats
from podium.core.errors import InputError

ROWS = {
    "query": ["q", "q", "q", "r"],
    "item": ["a", "b", "c", "a"],
    "grade": [1.0, 0.0, 2.0, 1.0],
    "whole": [1, None, 3, 2**53],
    "small": [0.5, 1.25, None, -2.0],
    "text": ["1", "2.5", "", "1e3"],
    "flag": [7, 8, 9, 10],
}
TYPES = {"whole": pa.int64(), "small": pa.float32(), "flag": pa.uint8()}


def written(folder, **columns):
    table = ROWS | columns
    arrays = {name: pa.array(cells, TYPES.get(name)) for name, cells in table.items()}
    pq.write_table(pa.table(arrays), folder / "f.parquet")
    lines = (json.dumps(dict(zip(table, row, strict=True))) for row in zip(*table.values(), strict=True))
    (folder / "f.jsonl").write_text("\n".join(lines))
    return folder / "f.parquet", folder / "f.jsonl"


def test_the_same_as_from_text(tmp_path):
    here, there = (formats.read(path, kind="features") for path in written(tmp_path))
    assert here.features.names == there.features.names == ("whole", "small", "text", "flag")
    assert np.array_equal(here.features.values, there.features.values, equal_nan=True)
    assert here.labels == there.labels
    assert np.isnan(here.features.values).sum() == 3


def test_marks_of_missing_values_and_nan(tmp_path):
    path, _ = written(tmp_path, small=[0.5, float("nan"), -9.0, 1.0])
    found = formats.read(path, kind="features", missing="-9.0").features
    assert np.isnan(found.values[:, 1]).tolist() == [False, True, True, False]


def test_numbers_that_are_none(tmp_path):
    path, _ = written(tmp_path, small=[0.5, float("inf"), 1.0, 1.0])
    with pytest.raises(InputError, match=r"f.parquet:2: the feature 'small' is inf"):
        formats.read(path, kind="features")
    pq.write_table(pa.table(ROWS | {"flag": [True, False, True, True]}), path)
    with pytest.raises(InputError, match="the feature 'flag' is True"):
        formats.read(path, kind="features")
