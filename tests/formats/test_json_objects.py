"""JSON files as columns: equal to decoding everything with the standard library, without keeping everything."""

from __future__ import annotations

import json
import tracemalloc

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from podium import formats
from podium.core.errors import InputError
from podium.formats import json_objects
from podium.formats.json_objects import ArrayElements, JsonColumns, ObjectLines
from podium.formats.jsonl import JsonLines
from podium.kernels.json_elements import find_element_ends
from podium.storage import files
from podium.storage.files import Source

TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=6)
NUMBERS = st.integers(-(2**70), 2**70) | st.floats(allow_nan=False) | st.just(float("inf"))
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
NAMES = (
    st.sampled_from(["query", "item", "Model A", "conversation", 'quo"ted', "a\\b", "tab\t", "é", ""]) | TEXT
)
OBJECTS = st.lists(st.dictionaries(NAMES, VALUES, max_size=5), min_size=1, max_size=8)


def decode_everything(records):
    """The columns of decoded objects, in the plainest way."""
    names = list(dict.fromkeys(name for record in records for name in record))
    return {name: [record.get(name) for record in records] for name in names}


@settings(max_examples=150, deadline=None)
@given(OBJECTS, st.booleans(), st.booleans())
@example([{}, {"items": [1]}], True, False)
@example(
    [{"query": "x"}, {"query": float("inf"), "late": [1]}, {"late": {"a": 1}, "query": 2**65}], True, True
)
def test_columns_are_those_of_the_standard_library(records, escape, array):
    texts = [json.dumps(record, ensure_ascii=escape) for record in records]
    raw = ("[" + ",\n".join(texts) + "]\n" if array else "\n \n".join(texts)).encode()
    columns = JsonColumns((ArrayElements if array else ObjectLines)(Source("f", raw)))
    expected = decode_everything(records)
    assert list(columns) == list(expected)
    assert {name: list(columns[name]) for name in columns} == expected
    assert columns.first == records[0]
    step = 1 if array else 2
    assert columns.numbers == list(range(1, step * len(records) + 1, step))


@settings(max_examples=50, deadline=None)
@given(OBJECTS)
def test_columns_without_the_fast_decoder(records):
    raw = "\n".join(map(json.dumps, records)).encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_objects, "_load_fast_decoder", lambda: None)
        columns = JsonColumns(ObjectLines(Source("f", raw)))
        assert {name: list(columns[name]) for name in columns} == decode_everything(records)


def test_of_a_repeated_name_the_last_value_counts():
    lines = b'{"query": 1, "text": "a"}\n{"query": 2, "query": 3, "text": "b", "text": "c"}\n'
    columns = JsonColumns(ObjectLines(Source("f", lines)))
    assert (list(columns["query"]), list(columns["text"])) == ([1, 3], ["a", "c"])


@settings(max_examples=200, deadline=None)
@given(st.lists(VALUES, min_size=1, max_size=6), st.sampled_from([None, 1]), st.integers(1, 40))
def test_an_array_is_split_at_its_own_commas(values, indent, span):
    text = json.dumps(values, indent=indent).encode()
    view, begin, elements = np.frombuffer(text, np.uint8), 1, []
    while begin < len(text):
        for end in find_element_ends(view, begin, span).tolist():
            elements.append(json.loads(text[begin:end]))
            begin = end + 1
    assert elements == values


@settings(max_examples=100, deadline=None)
@given(st.lists(st.binary(max_size=9).map(lambda b: b.replace(b"\r", b"")), min_size=1), st.integers(1, 9))
def test_blocks_are_complete_lines(lines, size):
    text = b"x" + b"\n".join(lines)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "_BLOCK", size)
        blocks = list(Source("f", text).iterate_blocks())
    assert b"".join(blocks) == text
    assert all(block.endswith(b"\n") for block in blocks[:-1])


def write_battles(path, array):
    words = "word " * 1000
    battles = [
        {"model_a": f"m{k % 5}", "model_b": f"m{k % 5 + 1}", "winner": "model_a", "conversation_id": f"c{k % 7}",
         "conversation_a": [{"role": "user", "content": words}], "answers": {"long": words}}
        for k in range(2500)
    ]  # fmt: skip
    with path.open("w") as file:
        if array:
            json.dump(battles, file)
        else:
            file.writelines(json.dumps(battle) + "\n" for battle in battles)


@pytest.mark.parametrize("array", [False, True])
def test_conversations_are_not_kept(tmp_path, array):
    path = tmp_path / "arena.json"
    write_battles(path, array)
    assert path.stat().st_size > 20_000_000
    formats.read(path)  # imports
    tracemalloc.start()
    try:
        p = formats.read(path).preferences
        assert tracemalloc.get_traced_memory()[1] < 18_000_000  # blocks of 4 MiB, not the file
    finally:
        tracemalloc.stop()
    assert len(p.comparisons) == 2500
    # a column that was not kept is read when an option names it
    assert formats.read(path, query="conversation_id").preferences.queries.tolist() == [
        f"c{k}" for k in range(7)
    ]
    with pytest.raises(InputError, match=r"arena\.json(:|, element )1: the query is \[\{"):
        formats.read(path, query="conversation_a")


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (
            b'{"query": 1, "text": "a"}\n{"query": 1, "text": "\xff"}\n',
            r"f\.jsonl:2: the byte 0xff is not UTF-8",
        ),
        (b'{"query": 1, "text": "a"}\n{"query": 1, "text": "\0"}\n', r"f\.jsonl:2: a NUL byte"),
        (
            b'[{"query": 1, "text": "a"}, {"query": 1, "text": "\xff"}]\n',
            r"f\.jsonl:1: the byte 0xff is not UTF-8",
        ),
        (
            b'{"query": 1, "text": "a"}\n{"query": 1, "text": "\\ud800"}\n',
            r"f\.jsonl:2: .* an unpaired surrogate",
        ),
        (b'{"query": 1, "text": "a"}\n{"query": 1, "text": [1,]}\n', r"f\.jsonl:2: this is not JSON"),
    ],
)
def test_fields_that_are_not_kept_are_checked(raw, message):
    with pytest.raises(InputError, match=message):
        JsonLines().read([Source("f.jsonl", raw)])


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize("block", [16, 1 << 20])
def test_line_ends_of_every_system(monkeypatch, end, block):
    monkeypatch.setattr(files, "_BLOCK", block)
    lines = [b'{"query": %d, "expert": "e", "item": "a", "rank": 1}' % q for q in (5, 6)]
    for text in (end.join(lines), end.join(lines) + end, b"\n".join(lines) + b"\r"):
        p = JsonLines().read([Source("f.jsonl", text)]).preferences
        assert p.queries.tolist() == [5, 6]


@pytest.mark.parametrize(("begin", "end"), [("[", "]"), ("", "\n")])
def test_a_line_longer_than_what_is_examined(tmp_path, begin, end):
    row = {"query": 1, "expert": "e", "item": "a", "rank": 1, "text": "é" * 2_500_000}
    (tmp_path / "f.txt").write_text(begin + json.dumps(row, ensure_ascii=False) + end)
    assert formats.sniff(tmp_path / "f.txt") == "jsonl"
    assert formats.read(tmp_path / "f.txt").preferences.lists.rows == 1
