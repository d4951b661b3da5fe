"""Spans: texts that stay where they are, at a position and of a length in a buffer of bytes."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from podium._core.bytes8 cimport count_shared_bytes, load_prefix, load_word, mix


cdef struct Spans:
    const uint8_t* data
    int64_t size  # of data
    const int64_t* at
    const int32_t* length


cdef inline Spans make_spans(const uint8_t[::1] data, const int64_t[::1] at, const int32_t[::1] length):
    """The three columns; they must live as long as the result is used."""
    cdef Spans spans
    spans.data = &data[0] if data.shape[0] else NULL
    spans.size = data.shape[0]
    spans.at = &at[0] if at.shape[0] else NULL
    spans.length = &length[0] if length.shape[0] else NULL
    return spans


cdef inline uint64_t hash_span(const Spans* s, int64_t row) noexcept nogil:
    """A hash of some bytes; its upper bits are well mixed."""
    cdef int64_t k = 0, length = s.length[row]
    cdef const uint8_t* text = s.data + s.at[row]
    cdef uint64_t h = <uint64_t>length
    if length < 8:
        return mix(h ^ load_prefix(s.data, s.size, s.at[row], length))
    while k + 8 < length:
        h = mix(h ^ load_word(text + k))
        h ^= h >> 32
        k += 8
    return mix(h ^ load_word(text + length - 8))


cdef inline bint is_same_span(const Spans* s, int64_t a, int64_t b) noexcept nogil:
    """Whether two rows hold the same bytes."""
    cdef int64_t length = s.length[a]
    return length == s.length[b] and count_shared_bytes(s.data + s.at[a], s.data + s.at[b], length) == length


cdef inline int64_t compare_tails(const Spans* s, int64_t a, int64_t b, int64_t skip) noexcept nogil:
    """Order of the texts of two rows with a common prefix of `skip` bytes."""
    cdef int64_t k, limit = min(s.length[a], s.length[b])
    if skip < limit:
        k = skip + count_shared_bytes(s.data + s.at[a] + skip, s.data + s.at[b] + skip, limit - skip)
        if k < limit:
            return <int64_t>s.data[s.at[a] + k] - <int64_t>s.data[s.at[b] + k]
    return <int64_t>s.length[a] - <int64_t>s.length[b]


cdef inline void insert_spans(
    const Spans* s, const int64_t* row, int64_t skip, uint64_t* key, int32_t* index, int64_t begin, int64_t end
) noexcept nogil:
    """Insertion sort of a few spans."""
    cdef int64_t i, j
    cdef uint64_t k
    cdef int32_t x
    for i in range(begin + 1, end):
        k = key[i]
        x = index[i]
        j = i - 1
        while j >= begin and key[j] >= k:
            if key[j] == k and compare_tails(s, row[index[j]], row[x], skip + 8) <= 0:
                break
            key[j + 1] = key[j]
            index[j + 1] = index[j]
            j -= 1
        key[j + 1] = k
        index[j + 1] = x


cdef inline int32_t* sort_spans(
    const Spans* s, const int64_t* row, int64_t n, int64_t skip,
    uint64_t* key, int32_t* index, uint64_t* key2, int32_t* index2,
) noexcept nogil:
    """Stable merge sort of spans by their bytes: `key` holds eight bytes after the common prefix.

    Returns the sorted index: one of the two given.
    """
    cdef int64_t width = 12, begin, middle, end, a, b, to
    cdef bint left
    for begin in range(0, n, 12):
        insert_spans(s, row, skip, key, index, begin, min(begin + 12, n))
    while width < n:
        begin = 0
        while begin < n:
            middle = min(begin + width, n)
            end = min(begin + 2 * width, n)
            a = begin
            b = middle
            for to in range(begin, end):
                left = b >= end
                if not left and a < middle:
                    left = key[a] < key[b]
                    if key[a] == key[b]:
                        left = compare_tails(s, row[index[a]], row[index[b]], skip + 8) <= 0
                if left:
                    key2[to] = key[a]
                    index2[to] = index[a]
                    a += 1
                else:
                    key2[to] = key[b]
                    index2[to] = index[b]
                    b += 1
            begin += 2 * width
        key, key2 = key2, key
        index, index2 = index2, index
        width *= 2
    return index
