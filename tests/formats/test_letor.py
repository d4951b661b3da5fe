"""LETOR / SVMlight files."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podium.core.errors import InputError, ParameterError
from podium.formats.base import Content
from podium.formats.letor import Letor
from podium.formats.letor_cells import parse_cells, parse_cells_by_line
from podium.storage.files import Source

AGG = b"""0 qid:10 1:NULL 2:NULL 3:NULL #docid = C
2 qid:10 1:1 2:NULL 3:30 #docid = B inc = 1
0 qid:10 1:7 2:NULL 3:NULL #docid = A
1 qid:11 1:NULL 2:4 3:1 #docid = A
"""


def read(*texts: bytes, **options: object) -> Content:
    return Letor().read([Source(f"A{k}.txt", text) for k, text in enumerate(texts, 1)], **options)  # type: ignore[arg-type]


def test_ranks_with_missing_values() -> None:
    content = read(AGG)
    p = content.preferences
    assert p is not None
    assert content.features is None
    assert p.experts.tolist() == ["1", "2", "3"]
    assert p.index.items.tolist() == ["A", "B", "C", "A"]
    assert p.index.arrival.tolist() == [2, 1, 0, 0]  # the order of the file, also of those nobody ranks
    assert p.lists.rank.tolist() == [1, 7, 30, 4, 1]  # raw, with gaps
    assert content.labels is not None
    assert content.labels.grades.tolist() == [0, 2, 0, 1]
    assert content.part is None


def test_large_on_top() -> None:
    p = read(AGG, reversed_lists=True).preferences
    assert p is not None
    assert p.lists.rank.tolist() == [1, 7, 1, 1, 1]
    assert p.index.items[int(p.lists.item[0])] == "A"  # 7 is on top of expert 1's list


def test_scores() -> None:
    p = read(b"0 qid:1 1:0.5 2:1\n1 qid:1 1:0.7 2:NULL\n", kind="scores").preferences
    assert p is not None
    assert p.lists.score is not None
    assert p.lists.score.tolist() == [0.7, 0.5, 1.0]


def test_features_sparse_and_missing() -> None:
    content = read(b"# a comment\n1 qid:7 2:0.5 4:-3e2 # no id\n0 qid:7 1:NULL\n\n0 qid:8 4:1\n")
    x = content.features
    assert x is not None
    assert x.names == ("1", "2", "3", "4")
    assert x.index.items.tolist() == ["1", "2", "1"]
    np.testing.assert_array_equal(x.values, [[0, 0.5, 0, -300], [np.nan, 0, 0, 0], [0, 0, 0, 1]])


def test_files_are_parts() -> None:
    content = read(AGG, b"0 qid:12 1:NULL 2:3 3:1 #docid = Z\n")
    assert content.part is not None
    assert content.part.tolist() == [0, 0, 1]
    assert content.dataset().select_parts([1]).preferences.queries.tolist() == ["12"]
    with pytest.raises(InputError, match=r"query '10' is in two files, A1.txt and A2.txt"):
        read(AGG, AGG)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"1 qid:3 1:x", "the value is 'x'"),
        (b"1 qid:3 1:inf", "the value is 'inf'"),
        (b"1 qid:3 1:nan", "the value is 'nan'"),
        (b"1 qid:3 1:", "the value is ''"),
        (b"1 qid:3 5", "'5' is not column:value"),
        (b"1 qid:3 x:5", "the column is 'x'"),
        (b"1 qid:3 0:5", "the column is '0'"),
        (b"1 qid:3 99999999999999999999999:5", "the column is"),
        (b"1 qid:3 1:5 1:6", "column 1 is given twice"),
        (b"1 1:5", "no qid:"),
        (b"high qid:3 1:5", "the label is 'high'"),
    ],
)
def test_wrong_lines_are_named(line: bytes, words: str) -> None:
    with pytest.raises(InputError) as error:
        read(AGG + line + b"\n")
    assert words in str(error.value)
    assert str(error.value).startswith("A1.txt:5: ")


def test_kind_is_checked() -> None:
    with pytest.raises(ParameterError, match="kind is 'rank'"):
        read(AGG, kind="rank")
    with pytest.raises(InputError, match=r"A1.txt:1: the rank is 0.5"):
        read(b"0 qid:1 1:0.5\n", kind="ranks")


cell = st.tuples(
    st.integers(1, 60),
    st.floats(allow_nan=False, allow_infinity=False).map(repr)
    | st.sampled_from(["NULL", "0.500000", "-1e-3", "7", ".5", "+3."]),
)


@settings(deadline=None)
@given(st.lists(st.lists(cell, max_size=6, unique_by=lambda c: c[0]), min_size=1, max_size=8))
def test_both_parsers_of_cells_agree(lines: list[list[tuple[int, str]]]) -> None:
    raw = [" \t".join(f"{c}:{v}" for c, v in line).encode() for line in lines]
    plain, compiled = (f(raw, lambda *_: InputError("no")) for f in (parse_cells_by_line, parse_cells))
    for a, b in zip(plain, compiled, strict=True):
        np.testing.assert_array_equal(a, b)
    assert plain.value.tolist() == pytest.approx(
        [float(v.replace("NULL", "nan")) for line in lines for _, v in line], abs=0, nan_ok=True
    )
