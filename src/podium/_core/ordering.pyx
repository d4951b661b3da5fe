"""Sorting the slots of every query by score.

A comparison sort of a few hundred scores costs several times as much as summing them. Scores are therefore
sorted by their first bits, digit by digit, and one insertion pass finishes the order; where many scores share
their first bits, a merge sort does. All steps are stable, so equal scores stay in slot order.
"""

from libc.math cimport fabs, isfinite
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

import numpy as np

from podium._core.sorting cimport count_bits, merge_sort


def rank_order(
    int64_t first, int64_t last, const int64_t[::1] starts, const double[::1] given, double[::1] scores,
    int32_t[::1] order, uint8_t[::1] tied, const int32_t[::1] tie_key, double tolerance, double share,
    const double[::1] least,
):
    """Per query: sort by falling score, determine tie groups, sort inside them, snap their scores.

    The given scores are copied to `scores` here, while they are in the cache.
    """
    cdef Py_ssize_t widest = 1
    cdef int64_t q, a, n, i
    cdef double floor
    cdef bint unequal
    for q in range(first, last):
        widest = max(widest, starts[q + 1] - starts[q])
    cdef double[::1] value = np.empty(widest), spare_key = np.empty(widest)
    cdef int32_t[::1] place = np.empty(widest, np.int32), spare_item = np.empty(widest, np.int32)
    cdef uint64_t[::1] first_bits = np.empty(widest, np.uint64), half = np.empty(widest, np.uint64)
    cdef double[::1] key = np.empty(widest)
    cdef uint8_t[::1] joined = np.empty(widest + 1, np.uint8)
    cdef SortRoom room = SortRoom(&value[0], &place[0], &first_bits[0], &half[0], &spare_item[0])
    with nogil:
        for q in range(first, last):
            a = starts[q]
            n = starts[q + 1] - a
            if n == 0:
                continue
            for i in range(a, a + n):
                scores[i] = given[i] + 0.0  # -0.0 becomes 0.0: equal scores have equal bytes
            floor = share * max(least[q], sort_scores(&scores[a], n, &room))
            unequal = mark_ties(&value[0], n, floor, tolerance, &joined[0])
            spread_marks(&joined[0], n, &tied[a])
            # equal scores are in slot order already
            if unequal or tie_key is not None:
                resolve_ties(&joined[0], n, a, value, place, scores, tie_key, key, spare_key, spare_item)
            for i in range(n):
                order[a + i] = <int32_t>a + place[i]


cdef double sort_scores(const double* scores, Py_ssize_t n, const SortRoom* room) noexcept nogil:
    """Fill `place` with positions by falling score, `value` with the scores; returns the largest magnitude."""
    cdef Py_ssize_t i
    cdef double low, high
    cdef double* value = room.value
    cdef int32_t* place = room.place
    find_extremes(scores, n, &low, &high)
    if n > FEW and isfinite(high - low):
        sort_by_first_bits(scores, n, low, high, room)
    else:
        for i in range(n):
            value[i] = scores[i]
            place[i] = <int32_t>i
    if not insertion_sort(n, value, place):
        for i in range(n):
            value[i] = -value[i]
        merge_sort(value, place, n, <double*>room.key, room.spare_item)
        for i in range(n):
            value[i] = -value[i]
    return max(fabs(low), fabs(high))


cdef inline void sort_by_first_bits(
    const double* scores, Py_ssize_t n, double low, double high, const SortRoom* room
) noexcept nogil:
    """Sort by the first bits of the scores; scores that differ in later bits keep their order.

    The bits of positive numbers are in the order of the numbers, finer where these are small. Scores with a
    sign are moved to between their spread and twice it, where all have one exponent.
    """
    cdef double offset = 0.0 if low > 0.0 else (high - low) - low
    cdef uint64_t top = get_bits(high + offset)
    cdef int width = count_bits(n)
    cdef int bits = width + 2 if n <= SHORT else 2 * min(width - 1, DIGIT_BITS)
    cdef int shift = max(count_bits(top - get_bits(low + offset)) - bits, 0)
    cdef uint64_t limit = (<uint64_t>1 << bits) - 1
    cdef Py_ssize_t i
    for i in range(n):
        # without the limit, a NaN would be counted outside of the table
        room.key[i] = min((top - get_bits(scores[i] + offset)) >> shift, limit)
    if n <= SHORT:
        distribute_once(scores, n, bits, room)
    else:
        distribute_twice(scores, n, bits // 2, room)


cdef inline void distribute_once(const double* scores, Py_ssize_t n, int bits, const SortRoom* room) noexcept nogil:
    """Stable sort by key, in one pass."""
    cdef uint32_t[8 * SHORT] count  # of 2 ** bits numbers, at most
    cdef uint32_t here, p, total = 0
    cdef Py_ssize_t i
    memset(&count[0], 0, sizeof(uint32_t) << bits)
    for i in range(n):
        count[room.key[i]] += 1
    for i in range(1 << bits):
        here = count[i]
        count[i] = total
        total += here
    for i in range(n):
        p = count[room.key[i]]
        count[room.key[i]] = p + 1
        room.value[p] = scores[i]
        room.place[p] = <int32_t>i


cdef inline void distribute_twice(const double* scores, Py_ssize_t n, int digit, const SortRoom* room) noexcept nogil:
    """Stable sort by the lower and then by the higher digit of the key."""
    cdef uint32_t[2 << DIGIT_BITS] counts
    cdef uint32_t* lower = &counts[0]
    cdef uint32_t* higher = &counts[1 << digit]
    cdef uint32_t here, p, mask = (1 << digit) - 1, total_lower = 0, total_higher = 0
    cdef uint64_t key
    cdef Py_ssize_t i
    memset(&counts[0], 0, sizeof(uint32_t) << (digit + 1))
    for i in range(n):
        lower[room.key[i] & mask] += 1
        higher[room.key[i] >> digit] += 1
    for i in range(1 << digit):
        here = lower[i]
        lower[i] = total_lower
        total_lower += here
        here = higher[i]
        higher[i] = total_higher
        total_higher += here
    for i in range(n):
        key = room.key[i]
        p = lower[key & mask]
        lower[key & mask] = p + 1
        room.half[p] = (key >> digit) << 32 | <uint64_t>i
    for i in range(n):
        key = room.half[i]
        p = higher[key >> 32]
        higher[key >> 32] = p + 1
        room.value[p] = scores[<uint32_t>key]
        room.place[p] = <int32_t>key


cdef inline uint64_t get_bits(double value) noexcept nogil:
    """The bits of a number."""
    cdef uint64_t bits
    memcpy(&bits, &value, sizeof(double))
    return bits


cdef inline void find_extremes(const double* scores, Py_ssize_t n, double* low, double* high) noexcept nogil:
    """The smallest and the largest of at least one score; in four lanes, as one would wait for each comparison."""
    cdef double least[4]
    cdef double most[4]
    cdef Py_ssize_t i = 0, k
    for k in range(4):
        least[k] = most[k] = scores[0]
    while i + 4 <= n:
        for k in range(4):
            least[k] = scores[i + k] if scores[i + k] < least[k] else least[k]
            most[k] = scores[i + k] if scores[i + k] > most[k] else most[k]
        i += 4
    while i < n:
        least[0] = min(least[0], scores[i])
        most[0] = max(most[0], scores[i])
        i += 1
    low[0] = min(min(least[0], least[1]), min(least[2], least[3]))
    high[0] = max(max(most[0], most[1]), max(most[2], most[3]))


cdef inline bint insertion_sort(Py_ssize_t n, double* value, int32_t* place) noexcept nogil:
    """Stable insertion sort by falling value, for values nearly in place; gives up when they are not."""
    cdef Py_ssize_t i, j, moves = 0
    cdef double v
    cdef int32_t p
    for i in range(1, n):
        v = value[i]
        if value[i - 1] >= v:
            continue
        p = place[i]
        j = i
        while j > 0 and value[j - 1] < v:
            value[j] = value[j - 1]
            place[j] = place[j - 1]
            j -= 1
        value[j] = v
        place[j] = p
        moves += i - j
        if moves > MOVES * n:
            return False
    return True


cdef inline void spread_marks(const uint8_t* joined, Py_ssize_t n, uint8_t* tied) noexcept nogil:
    """From marks of positions tied with the one before to marks of all positions in a tie."""
    cdef Py_ssize_t i
    for i in range(n):
        tied[i] = joined[i] | joined[i + 1]


cdef void resolve_ties(
    const uint8_t* joined, Py_ssize_t n, Py_ssize_t base, double[::1] value, int32_t[::1] place,
    double[::1] scores, const int32_t[::1] tie_key, double[::1] key, double[::1] spare_key,
    int32_t[::1] spare_item,
) noexcept nogil:
    """Order every tie group by the tie rule and give it one score."""
    cdef Py_ssize_t k, begin, end = 1
    cdef bint snapped
    while end < n:
        if not joined[end]:
            end += 1
            continue
        begin = end - 1
        while joined[end]:
            end += 1
        snapped = value[end - 1] != value[begin]
        if snapped:
            for k in range(begin, end):
                scores[base + place[k]] = value[begin]
        if snapped or tie_key is not None:
            for k in range(begin, end):
                key[k] = place[k] if tie_key is None else tie_key[base + place[k]]
            merge_sort(&key[begin], &place[begin], end - begin, &spare_key[0], &spare_item[0])
