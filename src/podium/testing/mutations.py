"""Damaged files of every format, for fuzzing the readers; reproducible from a seed and a number.

>>> mutated_file(0, 17) == mutated_file(0, 17), mutated_file(0, 17).name.startswith("file.")
(True, True)
"""

from __future__ import annotations

import contextlib
import functools
import gzip
import io
import itertools
import json
import os
import random
import re
import traceback
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from podium.core.errors import InputError, ParameterError, PodiumError, PodiumWarning
from podium.core.optional import require_module
from podium.core.registry import formats
from podium.data.labels import Labels
from podium.data.preferences import Preferences
from podium.formats import read
from podium.formats.base import Content

__all__ = ["MutatedFile", "find_failure", "mutated_file", "sample_files"]


class MutatedFile(NamedTuple):
    """A possibly damaged file, and the options to read it with."""

    name: str
    raw: bytes
    options: dict[str, Any]


# typical parser breakers: extreme numbers, markers of other formats, invalid text
_TOKENS = [
    b"", b"0", b"-1", b"1", b"2147483648", b"9" * 25, b"9" * 5000, b"1e999", b"-1e308", b"nan", b"inf", b"0x1F",
    b"1_0", b"1.5",
    b'"', b'""', b"'", b",", b"\t", b";", b"|", b" ", b"\n", b"\r", b"\r\n", b"\x00", b"\xff", b"\xc3\x28",
    b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\xff\xfe", b"\xe2\x80\xa8", b"\xc2\xa0", "日本".encode(), "٣²".encode(),
    "²".encode(),
    b"\\ud800", b"\\udc00\\ud800", b"\\u0000", b"\\", b"null", b"true", b"[]", b"{}", b"[", b"]", b"{", b"}", b":",
    b"#", b"# ALTERNATIVE NAME 1: x\n", b"qid:", b"1:", b"999999999:1", b"#docid = ", b"PAR1", b"\x1f\x8b", b"tie",
    b"left", b"a", b"x" * 300, b"[" * 3000, b"query", b"item", b"rank", b"winner",
]  # fmt: skip
_OPTIONS: list[dict[str, Any]] = [
    {}, {}, {}, {}, {}, {}, {"encoding": "latin-1"}, {"encoding": "utf-16"}, {"unlisted": "below"}, {"missing": ""},
    {"missing": "1"}, {"duplicates": "sum"}, {"duplicates": "best"}, {"self_votes": "skip"}, {"kind": "votes"},
    {"kind": "labels"}, {"kind": "features"}, {"kind": "ratings"}, {"winner_codes": "1=a,2=b,0=tie"},
    {"winner_codes": "1..2"}, {"columns": ("query", "expert", "item", "rank")}, {"delimiter": " "}, {"delimiter": "\t"},
    {"order": "rank"}, {"order": "score"}, {"expert": "file"}, {"expert": ""}, {"query": ""},
]  # fmt: skip


@functools.cache
def sample_files() -> tuple[tuple[str, bytes], ...]:
    """Valid files: the output of each format for lists, votes and labels, plus handwritten ones."""
    lists = Preferences.from_lists(
        {"q1": {"e": {"a": 3.0, "b": 1.5}, "f": {"b": 2.0}}, "q2": {"e": {"ä": 1.0}}}
    )
    ranks = Preferences.from_lists({"q1": {"1": ["a", "b", "c"], "2": ["c", "a"]}})
    columns = (["q", "q", "p"], ["j", "k", "j"], ["a", "b", "a"], ["b", "c", "c"])
    votes = Preferences.from_comparisons(*columns, tie=[False, True, False], weight=[1, 0.5, 2])
    labels = Labels.from_dict({"q1": {"a": 2, "b": 0}, "q2": {"ä": 1}})
    contents = [*map(Content, (lists, ranks, votes)), Content(labels=labels), Content(ranks, labels)]
    files = list(_BY_HAND)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for cls, content in itertools.product(formats.all().values(), contents):
            if not cls.holds & content.parts or (cls.name == "letor" and content.labels is None):
                continue
            with contextlib.suppress(InputError):  # several experts are not one run, for example
                try:
                    raw = b"".join(cls().write(content))
                except InputError:  # two queries are not one election, for example
                    one = content.preferences and content.preferences.select(["q1"])
                    raw = b"".join(cls().write(Content(one)))
                files.append((cls.suffixes[0], raw))
    return tuple(files)


_BY_HAND: tuple[tuple[str, bytes], ...] = (
    (
        ".json",
        json.dumps([{"model_a": "x", "model_b": "y", "winner": w, "turn": 1} for w in ("x", "tie")]).encode(),
    ),
    (".jsonl", b'{"query": 1, "expert": "e", "items": ["a", "b"], "scores": [2, 1]}\n' * 2),
    (".jsonl", b'{"prompt": "p", "chosen": "x \\u00e9", "rejected": "y", "annotator": 3}\n'),
    (".csv", b'topic,worker,doc,gold,label\r\n1,w,"a, ""b""\nc",-1,0\r\n1,v,d,1,1\r\n'),
    (".csv", b"a,b,preference,seconds\nx,y,1.25,3\nx,z,2,\n"),
    (".tsv", b"query\texpert\titem\trank\tscore\nq\te\ta\t1\t2\nq\te\tb\t2\t1\n"),
    (".csv", b"query;item;grade\nq;a;1\nq;b;0\n"),
    (".txt", b"2 qid:10 1:0.5 2:1e-3 #docid = x inc = 1\n0 qid:10 1:0 2:7 #docid = y\n1 qid:11 1:1 2:2\n"),
    (".txt", b"0 qid:1 1:NULL 2:3 #docid = GX01\n1 qid:1 1:1 2:NULL #docid = GX02\n"),
    (
        ".soi",
        b"# FILE NAME: x.soi\n# ALTERNATIVE NAME 1: A\n# ALTERNATIVE NAME 2: B\n2: 1,2\n1: {1,2}\n1: 2\n",
    ),
    (".soc", b"2\n1,A\n2,B\n3,3,2\n2,1,2\n1,2,1\n"),
    (".json", b'{"models": ["x", "y", "z"], "X": [[0, 1], [1, 2]], "Y": [[3, 1, 0], [2, 2, 1]]}'),
)


def mutated_file(seed: int, number: int, samples: Sequence[tuple[str, bytes]] | None = None) -> MutatedFile:
    """A valid file with a few random changes, possibly compressed before or after them."""
    pick = random.Random(f"{seed}:{number}")
    suffix, raw = pick.choice(samples or sample_files())
    options = pick.choice(_OPTIONS)
    if suffix == ".parquet" and pick.random() < 0.7:
        raw = _replace_parquet_columns(raw, pick)
    else:
        for _ in range(pick.choice((0, 1, 1, 1, 2, 3, 8))):
            raw = pick.choice(_DAMAGES)(raw, pick)
    if pick.random() < 0.25:
        raw, suffix = gzip.compress(raw, 1, mtime=0), f"{suffix}.gz"
        for _ in range(pick.choice((0, 0, 1, 2))):
            raw = pick.choice(_DAMAGES)(raw, pick)
    if pick.random() < 0.1:
        suffix = pick.choice(("", ".csv", ".run", ".json", ".parquet", ".txt", ".gz"))
    return MutatedFile(f"file{suffix}" if suffix else "file.", raw, options)


def find_failure(file: MutatedFile, folder: str | os.PathLike[str]) -> str | None:
    """Read a file and write its content in every format; returns the traceback of any error but Podium's own."""
    path = os.path.join(folder, file.name)
    with open(path, "wb") as out:
        out.write(file.raw)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # invalid arithmetic emits a warning
            warnings.simplefilter("ignore", PodiumWarning)
            try:
                content = read(path, **file.options)
            except ParameterError:  # the format has no such option
                content = read(path)
            repr(content.preferences)
            for cls in formats.all().values():
                if cls.holds & content.parts:
                    with contextlib.suppress(InputError):  # ids that a format cannot store, for example
                        b"".join(cls().write(content))
    except PodiumError as error:
        return None if str(error).strip() else "an error without a message"
    except Exception:
        return traceback.format_exc()
    return None


def _sample_range(raw: bytes, pick: random.Random, longest: int = 40) -> tuple[int, int]:
    begin = pick.randrange(len(raw) + 1)
    return begin, min(len(raw), begin + pick.randrange(longest))


def _flip_bit(raw: bytes, pick: random.Random) -> bytes:
    if not raw:
        return raw
    at = pick.randrange(len(raw))
    return raw[:at] + bytes([raw[at] ^ (1 << pick.randrange(8))]) + raw[at + 1 :]


def _delete_range(raw: bytes, pick: random.Random) -> bytes:
    begin, end = _sample_range(raw, pick)
    return raw[:begin] + raw[end:]


def _repeat_range(raw: bytes, pick: random.Random) -> bytes:
    begin, end = _sample_range(raw, pick)
    at = pick.randrange(len(raw) + 1)
    return raw[:at] + raw[begin:end] * pick.choice((1, 2, 5)) + raw[at:]


def _insert_token(raw: bytes, pick: random.Random) -> bytes:
    begin, end = _sample_range(raw, pick, 6)
    return raw[:begin] + pick.choice(_TOKENS) + raw[pick.choice((begin, end)) :]


def _replace_token(raw: bytes, pick: random.Random) -> bytes:
    """Replace one cell, word or number."""
    tokens = list(re.finditer(rb"[^\s,;:|\t\"{}\[\]]+", raw))
    if not tokens:
        return raw
    token = pick.choice(tokens)
    return raw[: token.start()] + pick.choice(_TOKENS) + raw[token.end() :]


def _splice_files(raw: bytes, pick: random.Random) -> bytes:
    other = pick.choice(sample_files())[1]
    return raw[: pick.randrange(len(raw) + 1)] + other[pick.randrange(len(other) + 1) :]


def _shuffle_lines(raw: bytes, pick: random.Random) -> bytes:
    lines = raw.split(b"\n")
    pick.shuffle(lines)
    return b"\n".join(lines)


_DAMAGES: Sequence[Callable[[bytes, random.Random], bytes]] = (
    _flip_bit,
    _delete_range,
    _repeat_range,
    lambda raw, pick: raw[: pick.randrange(len(raw) + 1)],
    *(_insert_token,) * 2,
    *(_replace_token,) * 3,
    _splice_files,
    _shuffle_lines,
    lambda raw, pick: pick.choice(_TOKENS) + raw,
)


def _replace_parquet_columns(raw: bytes, pick: random.Random) -> bytes:
    """A valid Parquet file whose columns have unexpected types."""
    pa = require_module("pyarrow")
    pq = require_module("pyarrow.parquet")
    table = pq.read_table(io.BytesIO(raw))
    n = table.num_rows
    for _ in range(pick.choice((1, 1, 2))):
        at = pick.randrange(table.num_columns)
        name = table.column_names[at]
        if pick.random() < 0.2:
            table = table.set_column(
                at, pick.choice(("x", "Item", "prompt", "weight", "", "\N{BOM}é")), table.column(at)
            )
            continue
        table = table.set_column(at, name, pick.choice(_COLUMNS)(pa, n))
    if pick.random() < 0.1:
        table = table.slice(0, 0)
    out = io.BytesIO()
    try:
        pq.write_table(table, out)
    except (pa.ArrowException, ValueError):  # types that Parquet cannot store
        return raw
    return out.getvalue()


def _build_invalid_text(pa: Any, n: int) -> Any:
    """Text that is not UTF-8, which Arrow writes and reads without validation."""
    import numpy as np

    offsets = np.arange(0, 2 * n + 1, 2, dtype=np.int32)
    return pa.StringArray.from_buffers(n, pa.py_buffer(offsets), pa.py_buffer(b"\xff\xc3" * n))


_COLUMNS: Sequence[Callable[[Any, int], Any]] = (
    _build_invalid_text,
    lambda pa, n: pa.nulls(n),
    lambda pa, n: pa.nulls(n, pa.string()),
    lambda pa, n: pa.array([None, *range(n)][:n], pa.int64()),
    lambda pa, n: pa.array([float("nan")] * n),
    lambda pa, n: pa.array([1e308] * n),
    lambda pa, n: pa.array([True] * n),
    lambda pa, n: pa.array([2**63 + k for k in range(n)], pa.uint64()),
    lambda pa, n: pa.array([[k] for k in range(n)]),
    lambda pa, n: pa.array([{"a": k} for k in range(n)]),
    lambda pa, n: pa.array([b"\xff"] * n, pa.binary()),
    lambda pa, n: pa.array(["", "a", "b"] * n)[:n],
    lambda pa, n: pa.array(["a"] * n).dictionary_encode(),
    lambda pa, n: pa.array(list(range(n)), pa.timestamp("us")),
    lambda pa, n: pa.array(list(range(n)), pa.int8()),
    lambda pa, n: pa.array([0.5] * n, pa.float32()),
)
