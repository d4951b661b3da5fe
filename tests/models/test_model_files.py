"""A model file is read with every doubt."""

from __future__ import annotations

import json
import pickle
import struct

import numpy as np
import pytest

from podium import make, models
from podium.core.errors import ModelFileError


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "m.podium"
    models.save(make("rrf(k=7)", weights={"a": 1.0, 3: 2.0}), path)
    return path


def test_what_was_saved_comes_back(saved):
    model = models.load(saved)
    assert model.get_parameters() == {"k": 7, "weights": {"a": 1.0, 3: 2.0}}


def test_learned_values_come_back(tmp_path):
    model = make("borda")
    model.table_, model.names_, model.seen_ = np.arange(6.0).reshape(2, 3), ["x", 1], {"x": 0.5}
    models.save(model, tmp_path / "m")
    again = models.load(tmp_path / "m")
    np.testing.assert_array_equal(again.table_, model.table_)
    assert (again.names_, again.seen_) == (["x", 1], {"x": 0.5})


def test_nothing_is_overwritten_unasked(saved):
    before = saved.read_bytes()
    with pytest.raises(ModelFileError, match="exists; give overwrite=True"):
        models.save(make("borda"), saved)
    assert saved.read_bytes() == before
    models.save(make("borda"), saved, overwrite=True)
    assert models.load(saved).name == "borda"
    assert [p.name for p in saved.parent.iterdir()] == ["m.podium"]


def test_every_flipped_byte_and_every_cut_is_noticed(saved):
    content = saved.read_bytes()
    for at in range(len(content)):
        for damaged in (content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :], content[:at]):
            saved.write_bytes(damaged)
            try:
                again = models.load(saved)
            except ModelFileError:
                continue
            # padding and JSON white space may change without changing the model
            assert again.get_parameters() == {"k": 7, "weights": {"a": 1.0, 3: 2.0}}


def _edited(path, change):
    content = path.read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + length])
    change(header["__metadata__"])
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + content[8 + length :])


def test_tampering_is_noticed(saved):
    _edited(saved, lambda m: m.update(podium=m["podium"].replace("7", "9")))
    with pytest.raises(ModelFileError, match="the checksum does not match"):
        models.load(saved)


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (
            {"version": 99, "method": "rrf", "parameters": {}, "learned": {}},
            "format version 99, this Podium reads 1",
        ),
        (
            {"version": 1, "method": "os.system", "parameters": {}, "learned": {}},
            "no method is called 'os.system'",
        ),
        ({"version": 1, "method": "rrf", "parameters": {"k": -5}, "learned": {}}, "k is -5; accepted"),
        ({"version": 1, "method": "rrf", "parameters": {"zz": 1}, "learned": {}}, "zz"),
        (
            {"version": 1, "method": "rrf", "parameters": {}, "learned": {"__class__": 1}},
            "is not a learned value",
        ),
        (
            {"version": 1, "method": "rrf", "parameters": {}, "learned": {"_scores": 1}},
            "is not a learned value",
        ),
        ([], "not a model document"),
        ({"version": 1}, "not a model document"),
    ],
)
def test_a_well_formed_file_with_bad_content_is_refused(saved, document, message):
    from podium.models.model_files import _compute_checksum

    text = json.dumps(document)
    _edited(saved, lambda m: m.update(podium=text, checksum=_compute_checksum(text, {})))
    with pytest.raises(ModelFileError, match=message):
        models.load(saved)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\0" * 7,
        b"hello, world, this is text",
        pickle.dumps({"a": 1}),
        b"\xff" * 64,
        struct.pack("<Q", 2) + b"{}",
    ],
)
def test_foreign_files_are_refused(tmp_path, content):
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(ModelFileError, match="not a Podium model file, or cut short"):
        models.load(tmp_path / "x")


def test_missing_files_are_named(tmp_path):
    with pytest.raises(ModelFileError, match="cannot be read"):
        models.load(tmp_path / "none")
    with pytest.raises(ModelFileError, match="cannot be read"):
        models.load(tmp_path)


def test_the_same_model_is_the_same_bytes():
    from podium.models.model_files import dumps, loads

    model = make("rrf(k=10)")
    assert len({dumps(model) for _ in range(20)}) == 1
    assert repr(loads(dumps(make("rrf", weights={"é": 1.0, "b": 2.0})))) == repr(
        make("rrf", weights={"é": 1.0, "b": 2.0})
    )
