"""Stable sorts of a key with an item beside it, by comparison and by digits."""

from libc.stdint cimport int32_t, int64_t, uint64_t

cdef extern from *:
    int count_high_zeros "__builtin_clzll"(uint64_t word) noexcept nogil  # word is not 0

ctypedef fused sort_key:
    int32_t
    int64_t
    uint64_t
    double

ctypedef fused digit_key:
    int64_t
    uint64_t


cdef inline void merge_sort(
    sort_key* key, int32_t* item, Py_ssize_t n, sort_key* spare_key, int32_t* spare_item
) noexcept nogil:
    """Stable sort of both by ascending key: runs of eight by insertion, then merges between two buffers."""
    cdef Py_ssize_t width = 8, low, i, j
    cdef sort_key k
    cdef int32_t x
    cdef sort_key* key_from = key
    cdef sort_key* key_to = spare_key
    cdef int32_t* item_from = item
    cdef int32_t* item_to = spare_item
    for low in range(0, n, 8):
        for i in range(low + 1, min(low + 8, n)):
            k = key[i]
            x = item[i]
            j = i
            while j > low and key[j - 1] > k:
                key[j] = key[j - 1]
                item[j] = item[j - 1]
                j -= 1
            key[j] = k
            item[j] = x
    while width < n:
        merge_runs(key_from, item_from, n, width, key_to, item_to)
        key_from, key_to = key_to, key_from
        item_from, item_to = item_to, item_from
        width *= 2
    if key_from != key:
        for i in range(n):
            key[i] = spare_key[i]
            item[i] = spare_item[i]


cdef inline void merge_runs(
    sort_key* key, int32_t* item, Py_ssize_t n, Py_ssize_t width, sort_key* to_key, int32_t* to_item
) noexcept nogil:
    """Merge neighboring sorted runs of `width` elements; of equal keys the left one goes first."""
    cdef Py_ssize_t low = 0, middle, high, i, j, k
    cdef bint right
    while low < n:
        middle = min(low + width, n)
        high = min(low + 2 * width, n)
        i = low
        j = middle
        k = low
        while i < middle and j < high:
            right = key[j] < key[i]
            to_key[k] = key[j] if right else key[i]
            to_item[k] = item[j] if right else item[i]
            j += right
            i += not right
            k += 1
        while i < middle:
            to_key[k] = key[i]
            to_item[k] = item[i]
            i += 1
            k += 1
        while j < high:
            to_key[k] = key[j]
            to_item[k] = item[j]
            j += 1
            k += 1
        low = high


cdef inline void radix_sort(
    digit_key* key, int32_t* item, Py_ssize_t n, digit_key* spare_key, int32_t* spare_item, digit_key low, int bits
) noexcept nogil:
    """Stable sort of both by ascending key, digit by digit; keys minus `low` have at most `bits` bits."""
    cdef Py_ssize_t[256] count
    cdef Py_ssize_t i, d, here, total
    cdef int shift = 0
    cdef digit_key* key_from = key
    cdef digit_key* key_to = spare_key
    cdef int32_t* item_from = item
    cdef int32_t* item_to = spare_item
    while shift < bits:
        for d in range(256):
            count[d] = 0
        for i in range(n):
            count[(<uint64_t>(key_from[i] - low) >> shift) & 255] += 1
        total = 0
        for d in range(256):
            here = count[d]
            count[d] = total
            total += here
        for i in range(n):
            d = (<uint64_t>(key_from[i] - low) >> shift) & 255
            key_to[count[d]] = key_from[i]
            item_to[count[d]] = item_from[i]
            count[d] += 1
        key_from, key_to = key_to, key_from
        item_from, item_to = item_to, item_from
        shift += 8
    if key_from != key:
        for i in range(n):
            key[i] = spare_key[i]
            item[i] = spare_item[i]


cdef inline int count_bits(uint64_t value) noexcept nogil:
    """Length of a number in bits."""
    return 64 - count_high_zeros(value) if value else 0
