"""Damaged files are read or refused in words, never with a traceback; `benchmarks/fuzz_formats.py` tries many more."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from file_shapes import FILES, MORE_SHAPES, SHAPES
from podium import Preferences, formats
from podium.core.errors import InputError
from podium.core.registry import formats as registry
from podium.formats.jsonl import JsonLines
from podium.storage.files import Source
from podium.testing.mutations import find_failure, mutated_file, sample_files

OF_OTHER_TOOLS = [
    (Path(s.file).suffix, s.text.encode() if s.text else (FILES / s.file).read_bytes())
    for s in (*SHAPES, *MORE_SHAPES)
]


@pytest.mark.parametrize("part", range(4))
def test_damaged_files_end_in_words(tmp_path, part):
    for number in range(part * 400, part * 400 + 400):
        failure = find_failure(mutated_file(23, number), tmp_path)
        assert failure is None, f"case {number} of seed 23: {failure}"


@pytest.mark.parametrize("part", range(4))
def test_damaged_files_of_other_tools_end_in_words(tmp_path, part):
    for number in range(part * 400, part * 400 + 400):
        failure = find_failure(mutated_file(29, number, OF_OTHER_TOOLS), tmp_path)
        assert failure is None, f"case {number} of seed 29: {failure}"


def test_the_files_that_are_damaged_are_sound_and_of_every_format(tmp_path):
    found = set()
    for k, (suffix, raw) in enumerate((*sample_files(), *OF_OTHER_TOOLS)):
        (tmp_path / f"{k}{suffix}").write_bytes(raw)
        found.add(formats.sniff(tmp_path / f"{k}{suffix}"))
    assert found == set(registry.all())


@pytest.mark.parametrize(
    "text",
    [
        '{"query": "q", "expert": "e", "item": "a\\ud800", "rank": 1}',
        '{"query": "q", "expert": "e", "items": ["\\uDC00b"]}',
        '[{"query": "q", "expert": "e\\udfff", "item": "a", "rank": 1}]',
        '{"models": ["\\ud800", "b"], "X": [[0, 1]], "Y": [[1, 2]]}',
    ],
)
def test_half_a_surrogate_pair_in_json(tmp_path, text):
    (tmp_path / "f.json").write_text(text)
    with pytest.raises(InputError, match=r"f\.json.* an unpaired surrogate"):
        formats.read(tmp_path / "f.json")


def test_whole_surrogate_pairs_are_characters():
    line = json.dumps({"query": "q", "expert": "e", "item": "\N{PILE OF POO}", "rank": 1})
    assert "\\ud83d" in line
    p = JsonLines().read([Source("f.jsonl", line.encode())]).preferences
    assert p is not None
    assert p.index.items.tolist() == ["\N{PILE OF POO}"]


@pytest.mark.parametrize("name", ["jsonl", "parquet", "csv", "trec", "counts"])
def test_half_a_surrogate_pair_is_not_written(name):
    p = Preferences.from_lists({"q": {"e": ["a", "\ud800"]}})
    if name == "counts":
        p = Preferences.from_comparisons(["q"], ["e"], ["a"], ["\ud800"])
    with pytest.raises(InputError, match="cannot be written"):
        b"".join(registry.get(name)().write(formats.Content(p)))


@pytest.mark.parametrize("role", ["query", "item"])
def test_parquet_text_that_is_not_utf8(tmp_path, role):
    columns = {
        "query": pa.array(["q"]),
        "expert": pa.array(["e"]),
        "item": pa.array(["a"]),
        "rank": pa.array([1]),
    }
    offsets = pa.py_buffer(b"\0\0\0\0\2\0\0\0")
    columns[role] = pa.StringArray.from_buffers(1, offsets, pa.py_buffer(b"\xff\xc3"))
    pq.write_table(pa.table(columns), tmp_path / "f.parquet")
    with pytest.raises(InputError, match=r"f\.parquet: .*UTF-?8"):
        formats.read(tmp_path / "f.parquet")


def test_parquet_columns_whose_names_cannot_be_used(tmp_path):
    table = pa.table([pa.array(["q"])] * 2, names=["item", "item"])
    pq.write_table(table, tmp_path / "twice.parquet")
    with pytest.raises(InputError, match=r"twice\.parquet: two columns are named 'item'"):
        formats.read(tmp_path / "twice.parquet")
    pq.write_table(pa.table({"query": ["q"], "ab": ["x"]}), tmp_path / "names.parquet")
    raw = (tmp_path / "names.parquet").read_bytes()
    (tmp_path / "names.parquet").write_bytes(raw.replace(b"\x02ab", b"\x02\xed\xa0"))
    with pytest.raises(InputError, match=r"names\.parquet: this is not a Parquet file"):
        formats.read(tmp_path / "names.parquet")


@pytest.mark.parametrize("raw", [b"\xef\xbb\xbf", b"\xef\xbb\xbf \n", b""])
@pytest.mark.parametrize("packed", [False, True])
def test_a_table_of_which_nothing_is_left(tmp_path, raw, packed):
    (tmp_path / "f.csv").write_bytes(gzip.compress(raw) if packed else raw)
    with pytest.raises(InputError, match=r"f\.csv: the file is empty"):
        formats.read(tmp_path / "f.csv")


def test_what_the_fuzzer_found_besides(tmp_path):
    """Labels without grades; a ballot of nobody cast by millions; counts that no integer holds; mixed objects."""
    (tmp_path / "f.csv").write_text("query,item,rank\nq,a,1\n")
    with pytest.raises(InputError, match="no grade column"):
        formats.read(tmp_path / "f.csv", kind="labels")
    (tmp_path / "f.soi").write_text("# ALTERNATIVE NAME 1: A\n9999999999999: \n")
    with pytest.raises(InputError, match=r"f\.soi:2: the ballots have more than 1,000,000"):
        formats.read(tmp_path / "f.soi", "preflib")
    huge = Preferences.from_comparisons(["q"], ["e"], ["a"], ["b"], weight=[1e300])
    with pytest.raises(InputError, match=r"1e\+300 votes between them"):
        b"".join(registry.get("counts")().write(formats.Content(huge)))
    for single in ("score", "rank", "item"):
        other = ', "scores": [1, 2]' if single == "score" else ""
        text = f'{{"query": 1, "expert": "e", "items": ["a", "b"], "{single}": 1{other}}}\n'
        (tmp_path / "f.jsonl").write_text(text)
        with pytest.raises(InputError, match=f"but '{single}' has single values"):
            formats.read(tmp_path / "f.jsonl")
