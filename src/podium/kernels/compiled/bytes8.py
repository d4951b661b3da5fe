"""Bytes eight at a time: unaligned loads and stores, which plain indexing cannot express."""

from __future__ import annotations

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import njit, types
from numba.extending import intrinsic

LOWS = np.uint64(0x2121212121212121)
TOPS = np.uint64(0x8080808080808080)


def _word_pointer(context, builder, kind, array, index):
    data = context.make_array(kind)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [index]), ir.IntType(64).as_pointer())


@intrinsic
def load_word(typing, array, index):  # noqa: ARG001
    """Eight bytes from `index` on, the first in the low end (little-endian machines)."""

    def generate(context, builder, signature, args):
        return builder.load(_word_pointer(context, builder, signature.args[0], *args), align=1)

    return types.uint64(array, types.int64), generate


@intrinsic
def store_word(typing, array, index, value):  # noqa: ARG001
    """Store eight bytes at `index`."""

    def generate(context, builder, signature, args):
        builder.store(args[2], _word_pointer(context, builder, signature.args[0], *args[:2]), align=1)
        return context.get_dummy_value()

    return types.void(array, types.int64, types.uint64), generate


@intrinsic
def swap_bytes(typing, word):  # noqa: ARG001
    """The bytes in reverse."""

    def generate(context, builder, signature, args):  # noqa: ARG001
        return builder.bswap(args[0])

    return types.uint64(types.uint64), generate


@intrinsic
def count_low_zeros(typing, word):  # noqa: ARG001
    """Number of trailing zero bits (word is not 0)."""

    def generate(context, builder, signature, args):  # noqa: ARG001
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.uint64), generate


@njit(cache=True, nogil=True, inline="always")
def is_blank(c):
    """Whether a byte is ASCII white space."""
    return c == 32 or (9 <= c <= 13)


@njit(cache=True, nogil=True)
def count_shared_bytes(data, a, b, limit):
    """Length of the common prefix of a and b, up to `limit` bytes."""
    k = 0
    while k + 8 <= limit:
        x = load_word(data, a + k) ^ load_word(data, b + k)
        if x != 0:
            return k + (count_low_zeros(x) >> 3)
        k += 8
    while k < limit and data[a + k] == data[b + k]:
        k += 1
    return k


@njit(cache=True, nogil=True)
def copy_bytes(data, at, length, out, to, stop):
    """out[to : to + length] = data[at : at + length]; later bytes of out, up to `stop`, may be overwritten."""
    end = to + length
    if end + 8 <= stop and at + length + 8 <= len(data):
        while to < end:
            store_word(out, to, load_word(data, at))
            to += 8
            at += 8
    else:
        for k in range(length):
            out[to + k] = data[at + k]


@njit(cache=True, nogil=True)
def load_prefix(data, at, length):
    """Up to eight bytes as one number, first byte highest, so that number order is byte order."""
    if length <= 0:
        return np.uint64(0)
    if at + 8 <= len(data):
        word = swap_bytes(load_word(data, at))
        if length < 8:
            cut = np.uint64(64 - 8 * length)
            word = (word >> cut) << cut
        return word
    word = np.uint64(0)
    for k in range(min(length, 8)):
        word |= np.uint64(data[at + k]) << np.uint64(56 - 8 * k)
    return word


@njit(cache=True, nogil=True)
def find_field_end(data, at, end):
    """The first white space in data[at:end], or end."""
    while at + 8 <= len(data):
        word = load_word(data, at)
        low = (word - LOWS) & ~word & TOPS  # marks the first byte below 33 (and perhaps others after it)
        if low == 0:
            at += 8
            continue
        at += count_low_zeros(low) >> 3
        if is_blank(data[at]):
            return at
        at += 1
    while at < end and not is_blank(data[at]):
        at += 1
    return at
