"""Compiled writers of numbers and rows against Python's own text on random inputs."""

from __future__ import annotations

import numpy as np

from podium.kernels import text_rows
from reference.fuzz_inputs import sample_size

SPECIAL = [
    0.0,
    -0.0,
    np.nan,
    np.inf,
    -np.inf,
    5e-324,
    1e16,
    9999999999999998.0,
    1e-5,
    1e-4,
    123456.0,
    2.0**-44,
]


def list_cells(cells):
    """The texts of a column."""
    raw, offsets = cells.data.tobytes(), cells.offsets.tolist()
    return [raw[offsets[c] : offsets[c + 1]].decode() for c in cells.codes.tolist()]


def sample_doubles(random, rows):
    """Numbers of every kind: any bits, decimals, sums of reciprocals, neighbors of powers of ten, ties."""
    bits = random.integers(0, 2**64, rows, dtype=np.uint64).view(np.float64)
    powers = 10.0 ** random.integers(-12, 18, rows)
    kinds = [
        bits,
        random.normal(size=rows) * 10.0 ** random.uniform(-12, 17, rows),
        np.round(random.normal(size=rows) * 100, 3),
        1 / (60 + random.integers(1, 200, rows)) + 1 / (60 + random.integers(1, 200, rows)),
        np.nextafter(powers, powers * random.choice([0, 1, 2], rows)),
        random.integers(-(2**54), 2**54, rows) / 2.0 ** random.integers(0, 60, rows),
        random.choice(SPECIAL, rows),
    ]
    return np.choose(random.integers(0, len(kinds), rows), kinds)


def test_floats_are_written_as_python_writes_them(random):
    values = sample_doubles(random, sample_size(random))
    assert list_cells(text_rows.format_floats(values)) == [repr(v) for v in values.tolist()]
    empty = ["" if v != v else repr(v) for v in values.tolist()]
    assert list_cells(text_rows.format_floats(values, nan_is_empty=True)) == empty


def test_integers_are_written_as_python_writes_them(random):
    rows = sample_size(random)
    values = random.integers(-(2**63), 2**63 - 1, rows) >> random.integers(0, 63, rows)
    values[: rows // 50] = -(2**63)
    assert list_cells(text_rows.format_integers(values)) == [str(v) for v in values.tolist()]


def test_rows_are_cells_with_separators(random):
    rows, width = sample_size(random), int(random.integers(1, 7))
    separator = str(random.choice([" ", ",", "§", "::"]))
    columns, texts = [], []
    for _ in range(width):
        words = [
            "".join(random.choice(["a", "é", "日", "xyz", "0123456789"], n)) for n in random.integers(0, 6, 9)
        ]
        data = [word.encode() for word in words]
        offsets = np.concatenate(([0], np.cumsum([len(d) for d in data]))).astype(np.int64)
        codes = random.integers(0, len(words), rows)
        columns.append(text_rows.TextCells(np.frombuffer(b"".join(data), np.uint8), offsets, codes))
        texts.append([words[c] for c in codes.tolist()])
    lines = "".join(separator.join(row) + "\n" for row in zip(*texts, strict=True))
    assert text_rows.join_cells(columns, separator.encode()) == lines.encode()
