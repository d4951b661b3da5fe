"""Joins over ids kept as UTF-8 text."""

from libc.stdint cimport int64_t, uint8_t

from podium._core.bytes8 cimport count_shared_bytes


cdef inline int64_t compare_texts(
    const uint8_t* a, int64_t a_length, const uint8_t* b, int64_t b_length
) noexcept nogil:
    """Byte order of two texts: negative, zero or positive."""
    cdef int64_t limit = min(a_length, b_length)
    cdef int64_t k = count_shared_bytes(a, b, limit)
    return <int64_t>a[k] - <int64_t>b[k] if k < limit else a_length - b_length


def match_text_ids(
    int64_t first, int64_t last, const int64_t[::1] match, const int64_t[::1] starts,
    const uint8_t[::1] buffer, const int64_t[::1] offsets, const int64_t[::1] other_starts,
    const uint8_t[::1] other_buffer, const int64_t[::1] other_offsets, int64_t[::1] found,
):
    """Merge join of two sorted id columns, query by query."""
    cdef int64_t q, m, i, j, d
    cdef const uint8_t* mine = &buffer[0] if buffer.shape[0] else NULL
    cdef const uint8_t* other = &other_buffer[0] if other_buffer.shape[0] else NULL
    with nogil:
        for q in range(first, last):
            m = match[q]
            if m < 0:
                continue
            i = starts[q]
            j = other_starts[m]
            while i < starts[q + 1] and j < other_starts[m + 1]:
                d = compare_texts(
                    mine + offsets[i], offsets[i + 1] - offsets[i],
                    other + other_offsets[j], other_offsets[j + 1] - other_offsets[j],
                )
                if d == 0:
                    found[i] = j
                i += d <= 0
                j += d >= 0
