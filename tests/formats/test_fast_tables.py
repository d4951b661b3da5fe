"""Tables that Arrow reads, and rows that compiled loops write, are those of Python's own csv module."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podium import Preferences, formats
from podium.formats import csv_format
from podium.formats.base import Content
from podium.storage.files import Source

CELLS = ["a", "é", "日 本", "7", "07", "x'y"]
NUMBERS = ["1", "+1", "-0", ".5", "1.", "1e3", " 2 ", "1E-7", "0.1", "123456789012345678901234567890"]
IDS = st.integers(-(2**63), 2**63 - 1) | st.sampled_from(["a", "é", 'b"c', "d,e", "f\ng", ";", " h "])


@settings(max_examples=60, deadline=None)
@given(
    rows=st.lists(
        st.tuples(*[st.sampled_from(CELLS)] * 3, st.sampled_from(NUMBERS)),
        min_size=1,
        max_size=30,
        unique_by=lambda r: r[:3],
    )
)
def test_arrow_reads_what_the_plain_reader_reads(rows):
    pytest.importorskip("pyarrow")
    text = "query,expert,item,score\n" + "".join(",".join(row) + "\n" for row in rows)

    def read(least):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(csv_format, "ARROW_ROWS", least)
            return formats.read([Source("t.csv", text.encode())]).preferences

    quick, plain = read(0), read(10**9)
    assert quick == plain
    assert quick.experts.tolist() == plain.experts.tolist()
    assert quick.index.arrival.tolist() == plain.index.arrival.tolist()


@pytest.mark.parametrize("score", ["nan", "inf", "x", "1_0", "", "0x1p3"])
def test_arrow_refuses_what_the_plain_reader_refuses(monkeypatch, score):
    pytest.importorskip("pyarrow")
    monkeypatch.setattr(csv_format, "ARROW_ROWS", 0)
    text = f"query,expert,item,score\nq,e,a,1\nq,e,b,{score}\n"
    with pytest.raises(formats.base.InputError, match=r"t.csv.*3.*the score is"):
        formats.read([Source("t.csv", text.encode())])


@settings(max_examples=60, deadline=None)
@given(
    lists=st.dictionaries(
        IDS,
        st.dictionaries(IDS, st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=8),
        min_size=1,
        max_size=4,
    ),
    delimiter=st.sampled_from([",", ";", "\t", "5", ".", "e", "§"]),
)
def test_csv_is_written_as_by_the_csv_module(lists, delimiter):
    p = Preferences.from_lists({"q": lists})
    out = io.StringIO()
    writer = csv.writer(out, delimiter=delimiter, lineterminator="\n")
    writer.writerow(["query", "expert", "item", "rank", "score"])
    t, experts, items = p.lists, p.experts.tolist(), p.index.items.tolist()
    for row, k in enumerate(t.list_of_row.tolist()):
        writer.writerow(
            ["q", experts[t.expert[k]], items[t.item[row]], int(t.rank[row]), float(t.score[row])]
        )
    data = b"".join(csv_format.Csv().write(Content(preferences=p), delimiter=delimiter))
    assert data == out.getvalue().encode()
