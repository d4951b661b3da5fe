"""A folder of values: made once, made again when the key changes or the file is damaged, kept by nobody else."""

from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.core.errors import InputError, PodiumWarning
from podium.storage.array_files import PreparedArrays
from podium.storage.digests import digest_bytes, digest_file, digest_values
from podium.storage.folder_cache import ArrayCache, ResultCache

plain = st.recursive(
    st.none() | st.integers() | st.text(),
    lambda v: st.lists(v) | st.dictionaries(st.text(), v),
)


def ask(cache, key, value, name=None):
    """The value for a key, and whether it was made."""
    made = []
    found = cache.get_or_make(lambda: key, lambda: made.append(1) or value, name)
    return found, bool(made)


VALUES = {
    ResultCache: lambda n: {"n": n, "values": [float(n), math.nan]},
    ArrayCache: lambda n: PreparedArrays(
        {"n": n}, {"x": np.arange(float(n)), "none": np.zeros((0, 3), np.int32)}
    ),
}


def as_plain(value):
    return repr((value.about, {k: v.tolist() for k, v in value.arrays.items()})
                if isinstance(value, PreparedArrays) else value)  # fmt: skip


@pytest.mark.parametrize("kind", [ResultCache, ArrayCache])
def test_a_value_is_made_once(tmp_path, kind):
    cache, key = kind(tmp_path), digest_values("a")
    for made in (True, False):
        found, was_made = ask(cache, key, VALUES[kind](3))
        assert as_plain(found) == as_plain(VALUES[kind](3))
        assert was_made == made
    assert not ask(kind(tmp_path), key, None)[1]  # another run
    assert ask(cache, digest_values("b"), VALUES[kind](4))[1]
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("kind", [ResultCache, ArrayCache])
def test_without_a_folder_nothing_is_kept_and_no_key_is_computed(kind):
    def no_key():
        raise AssertionError

    cache, value = kind(None), VALUES[kind](2)
    assert cache.get_or_make(no_key, lambda: value) is value
    assert cache.find("x") is None


@pytest.mark.parametrize("damage", [b"", b"{", b"\xff" * 64, "cut", "changed"])
@pytest.mark.parametrize("kind", [ResultCache, ArrayCache])
@pytest.mark.filterwarnings("ignore:.*is damaged")
def test_a_damaged_file_is_not_believed(tmp_path, kind, damage):
    cache, key = kind(tmp_path), digest_values("a")
    ask(cache, key, VALUES[kind](3))
    (file,) = tmp_path.iterdir()
    raw = file.read_bytes()
    if damage == "changed":
        damage = raw.replace(b'"n": 3', b'"n": 4') if kind is ResultCache else raw + b"\0"
    file.write_bytes(raw[: len(raw) // 2] if damage == "cut" else damage)
    found, made = ask(cache, key, VALUES[kind](3))
    assert made
    assert as_plain(found) == as_plain(VALUES[kind](3))
    assert not ask(cache, key, None)[1]


def test_a_damaged_result_is_reported(tmp_path):
    ask(ResultCache(tmp_path), "key", {"a": 1})
    (tmp_path / "key.json").write_text("{")
    with pytest.warns(PodiumWarning, match=r"key.json is damaged; its result is recomputed"):
        assert ask(ResultCache(tmp_path), "key", {"a": 1}) == ({"a": 1}, True)


def test_under_a_name_the_last_key_counts(tmp_path):
    cache = ArrayCache(tmp_path)
    for key, made in (("1", True), ("1", False), ("2", True), ("1", True)):
        assert ask(cache, key, VALUES[ArrayCache](int(key)), "day=1/part-000")[1] == made
        assert cache.find("day=1/part-000").about == {"n": int(key)}
    assert [p.name for p in tmp_path.rglob("*.*")] == ["part-000.safetensors"]


def test_a_value_that_cannot_be_made_leaves_nothing(tmp_path):
    def fail():
        raise InputError("no")

    with pytest.raises(InputError):
        ArrayCache(tmp_path).get_or_make(lambda: "key", fail)
    assert not list(tmp_path.iterdir())


def test_a_result_of_an_earlier_version_is_read(tmp_path):
    """The file as it was written when each package had a cache of its own."""
    result = {"values": [1.5, None]}
    checksum = hashlib.blake2b(json.dumps(result).encode(), digest_size=16).hexdigest()
    (tmp_path / "k.json").write_text(json.dumps({"key": "k", "checksum": checksum, "result": result}))
    found, made = ask(ResultCache(tmp_path), "k", None)
    assert not made
    assert found["values"][0] == 1.5
    assert math.isnan(found["values"][1])


@given(plain, plain)
def test_equal_values_and_only_those_have_equal_digests(a, b):
    assert (digest_values(a) == digest_values(b)) == (a == b)


def test_digests_of_files_and_bytes(tmp_path):
    content = bytes(range(256)) * 5000
    (tmp_path / "x").write_bytes(content)
    assert digest_file(tmp_path / "x") == digest_file("elsewhere", content)
    # uploads of earlier versions are stored under such names
    assert digest_bytes(content) == hashlib.blake2b(content, digest_size=20).hexdigest()
    with pytest.raises(InputError, match=r"none: the file cannot be read: No such file"):
        digest_file(Path("none"))
