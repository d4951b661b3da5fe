"""Bytes eight at a time: unaligned loads and stores, the first byte in the low end (little-endian machines)."""

from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcpy

cdef extern from *:
    uint64_t swap_bytes "__builtin_bswap64"(uint64_t word) noexcept nogil
    int count_low_zeros "__builtin_ctzll"(uint64_t word) noexcept nogil  # word is not 0

# Fibonacci hashing: the upper bits of the product are well mixed
cdef inline uint64_t mix(uint64_t word) noexcept nogil:
    return word * <uint64_t>0x9E3779B97F4A7C15


cdef inline uint64_t load_word(const uint8_t* data) noexcept nogil:
    """Eight bytes as one number; compiles to a single load."""
    cdef uint64_t word
    memcpy(&word, data, 8)
    return word


cdef inline void store_word(uint8_t* out, uint64_t word) noexcept nogil:
    memcpy(out, &word, 8)


cdef inline bint is_blank(uint8_t c) noexcept nogil:
    """Whether a byte is ASCII white space."""
    return c == 32 or 9 <= c <= 13


cdef inline int64_t count_shared_bytes(const uint8_t* a, const uint8_t* b, int64_t limit) noexcept nogil:
    """Length of the common prefix of a and b, up to `limit` bytes."""
    cdef int64_t k = 0
    cdef uint64_t x
    while k + 8 <= limit:
        x = load_word(a + k) ^ load_word(b + k)
        if x != 0:
            return k + (count_low_zeros(x) >> 3)
        k += 8
    while k < limit and a[k] == b[k]:
        k += 1
    return k


cdef inline void copy_bytes(
    const uint8_t* data, int64_t size, int64_t at, int64_t length, uint8_t* out, int64_t to, int64_t stop
) noexcept nogil:
    """out[to : to + length] = data[at : at + length]; later bytes of out, up to `stop`, may be overwritten."""
    cdef int64_t k, end = to + length
    if end + 8 <= stop and at + length + 8 <= size:
        while to < end:
            store_word(out + to, load_word(data + at))
            to += 8
            at += 8
    else:
        for k in range(length):
            out[to + k] = data[at + k]


cdef inline uint64_t load_prefix(
    const uint8_t* data, int64_t size, int64_t at, int64_t length
) noexcept nogil:
    """Up to eight bytes as one number, first byte highest, so that number order is byte order."""
    cdef uint64_t word = 0
    cdef int cut
    cdef int64_t k
    if length <= 0:
        return 0
    if at + 8 <= size:
        word = swap_bytes(load_word(data + at))
        if length < 8:
            cut = <int>(64 - 8 * length)
            word = (word >> cut) << cut
        return word
    for k in range(min(length, 8)):
        word |= <uint64_t>data[at + k] << (56 - 8 * k)
    return word


cdef inline int64_t find_field_end(const uint8_t* data, int64_t size, int64_t at, int64_t end) noexcept nogil:
    """The first white space in data[at:end], or end."""
    cdef uint64_t word, low
    while at + 8 <= size:
        word = load_word(data + at)
        # marks the first byte below 33 (and perhaps others after it)
        low = (word - <uint64_t>0x2121212121212121) & ~word & <uint64_t>0x8080808080808080
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
