"""Files of arrays against the package safetensors: the same bytes, and nothing accepted that it refuses."""

from __future__ import annotations

import json
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from podium.storage.array_files import KINDS, decode_arrays, encode_arrays

safetensors = pytest.importorskip("safetensors", reason="the package safetensors is the reference here")
pytest.importorskip("safetensors.numpy")
named_arrays = st.dictionaries(
    st.text(min_size=1, max_size=8).filter("__metadata__".__ne__),
    st.sampled_from(list(KINDS.values())).flatmap(
        lambda kind: hnp.arrays(kind, hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=4))
    ),
    max_size=6,
)


def assert_same(ours, theirs):
    assert ours.keys() == theirs.keys()
    for name, array in ours.items():
        assert (array.dtype, array.shape) == (theirs[name].dtype, theirs[name].shape)
        assert array.tobytes() == theirs[name].tobytes()


@settings(max_examples=200)
@given(named_arrays, st.text(max_size=10))
def test_bytes_are_those_of_safetensors(arrays, text):
    content = b"".join(encode_arrays(arrays, {"about": text}))
    assert content == safetensors.numpy.save(arrays, metadata={"about": text})
    metadata, back = decode_arrays(content)
    assert metadata == {"about": text}
    assert_same(back, arrays)


def test_what_safetensors_refuses_is_refused():
    arrays = {"a_": np.arange(3.0), "b_": np.arange(4, dtype=np.int8), "none_": np.zeros((0, 2))}
    content = b"".join(encode_arrays(arrays, {"about": "x"}))
    accepted = 0
    for at in range(len(content)):
        for damaged in (
            content[:at],
            *(content[:at] + bytes([content[at] ^ bit]) + content[at + 1 :] for bit in (1, 2, 8, 64, 128)),
        ):
            try:
                _, ours = decode_arrays(damaged)
            except ValueError:
                continue
            assert_same(ours, safetensors.numpy.load(damaged))
            accepted += 1
    assert accepted  # flipped bits in the numbers and names


@pytest.mark.parametrize(
    "header",
    [
        {"a": {"dtype": "F64", "shape": [2], "data_offsets": [0, 8]}},
        {"a": {"dtype": "F64", "shape": [1], "data_offsets": [8, 16]}},
        {"a": {"dtype": "F64", "shape": [-1], "data_offsets": [0, -8]}},
        {"a": {"dtype": "F64", "shape": [1], "data_offsets": [0, 8]}, "b": {"dtype": "F64", "shape": [1],
                                                                          "data_offsets": [0, 8]}},
        {"a": {"dtype": "PICKLE", "shape": [1], "data_offsets": [0, 8]}},
        {"a": {"dtype": "F64", "shape": "1", "data_offsets": [0, 8]}},
        {"a": []},
        [],
    ],
)  # fmt: skip
def test_headers_that_do_not_fit_are_refused(header):
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    content = struct.pack("<Q", len(text)) + text + bytes(8)
    with pytest.raises(safetensors.SafetensorError):
        safetensors.numpy.load(content)
    with pytest.raises(ValueError):
        decode_arrays(content)
