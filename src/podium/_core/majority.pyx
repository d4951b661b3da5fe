"""Orders from pairwise majorities; each kernel handles a range of queries with one reused matrix.

Scores count items below minus items above. Weights are integers, so sums are exact in any order.
"""

from cython cimport floating
from libc.math cimport INFINITY
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.string cimport memcpy, memset

import numpy as np

from podium._core.pairwise_votes cimport VoteColumns, fill_vote_matrix, find_largest_query, subtract_transpose
from podium._core.sorting cimport merge_sort


cdef inline void add_copeland_scores(const double* margin, int64_t size, double* score) noexcept nogil:
    """Items beaten minus items lost to. Row-wise sums keep the inner loop independent: it is vectorized."""
    cdef int64_t i, j
    for i in range(size):
        for j in range(size):
            score[j] += <double>(margin[i * size + j] < 0) - <double>(margin[i * size + j] > 0)


def copeland(int64_t first, int64_t last, votes, double[::1] scores):
    """Items beaten minus items lost to."""
    cdef VoteColumns columns = VoteColumns(votes)
    cdef int64_t q, base, size = max(find_largest_query(columns, first, last), 1)
    cdef double[::1] table = np.empty(size * size), spare = np.empty(size)
    with nogil:
        for q in range(first, last):
            base = columns.slots[q]
            size = columns.slots[q + 1] - base
            if size == 0:
                continue
            fill_vote_matrix(columns, q, &table[0], &spare[0])
            subtract_transpose(&table[0], size)
            add_copeland_scores(&table[0], size, &scores[base])


def schulze(int64_t first, int64_t last, votes, bint winning, double[::1] scores):
    """Items beaten minus items lost to, by the strength of the strongest path of majorities."""
    cdef VoteColumns columns = VoteColumns(votes)
    cdef int64_t q, base, size = max(find_largest_query(columns, first, last), 1)
    cdef double[::1] table = np.empty(size * size), spare = np.empty(size)
    cdef float[::1] narrow = np.empty(size * size, np.float32), narrow_spare = np.empty(size, np.float32)
    with nogil:
        for q in range(first, last):
            base = columns.slots[q]
            size = columns.slots[q + 1] - base
            if size == 0:
                continue
            fill_vote_matrix(columns, q, &table[0], &spare[0])
            find_strengths(&table[0], size, winning)
            # paths only select among the strengths, so numbers that fit into half the bytes stay exact
            if narrow_numbers(&table[0], size * size, &narrow[0]):
                find_strongest_paths(&narrow[0], size, &narrow_spare[0])
                widen_numbers(&narrow[0], size * size, &table[0])
            else:
                find_strongest_paths(&table[0], size, &spare[0])
            subtract_transpose(&table[0], size)
            add_copeland_scores(&table[0], size, &scores[base])


cdef void find_strengths(double* path, int64_t size, bint winning) noexcept nogil:
    """Votes -> the strength of the majority of each item over each other, in place."""
    cdef int64_t i, j
    cdef double a, b
    for i in range(size):
        for j in range(i + 1, size):
            a = path[i * size + j]
            b = path[j * size + i]
            path[i * size + j] = (a if winning else a - b) if a > b else 0.0
            path[j * size + i] = (b if winning else b - a) if b > a else 0.0


cdef bint narrow_numbers(const double* wide, int64_t count, float* narrow) noexcept nogil:
    """Copy numbers to half their bytes; returns whether all of them fit."""
    cdef int64_t e
    cdef bint exact = True
    for e in range(count):
        narrow[e] = <float>wide[e]
        exact &= <double>narrow[e] == wide[e]
    return exact


cdef void widen_numbers(const float* narrow, int64_t count, double* wide) noexcept nogil:
    """The reverse copy."""
    cdef int64_t e
    for e in range(count):
        wide[e] = narrow[e]


cdef void find_strongest_paths(floating* path, int64_t size, floating* middle) noexcept nogil:
    """Strengths -> those of the strongest path between every two items, in place (Floyd and Warshall)."""
    cdef int64_t i, j, k
    cdef floating a, through
    cdef floating* row
    for k in range(size):
        # a copy: the compiler then knows that writing a row does not change it
        memcpy(middle, path + k * size, size * sizeof(floating))
        for i in range(size):
            row = path + i * size
            a = row[k]
            if a > 0:
                for j in range(size):
                    through = a if a < middle[j] else middle[j]
                    row[j] = through if through > row[j] else row[j]


def minimax(int64_t first, int64_t last, votes, bint winning, double[::1] scores):
    """Repeatedly take the items whose strongest defeat by those left is weakest."""
    cdef VoteColumns columns = VoteColumns(votes)
    cdef int64_t q, base, size = max(find_largest_query(columns, first, last), 1)
    cdef double[::1] table = np.empty(size * size), worst = np.empty(size)
    cdef int64_t[::1] left = np.empty(size, np.int64)
    with nogil:
        for q in range(first, last):
            base = columns.slots[q]
            size = columns.slots[q + 1] - base
            if size == 0:
                continue
            fill_vote_matrix(columns, q, &table[0], &worst[0])
            find_strengths(&table[0], size, winning)
            take_least_defeated(&table[0], size, &worst[0], &left[0], &scores[base])


def split_cycle(int64_t first, int64_t last, votes, bint winning, double[::1] scores):
    """Repeatedly take the items that none of those left defeats; the weakest majority of a cycle is no defeat."""
    cdef VoteColumns columns = VoteColumns(votes)
    cdef int64_t q, base, i, j, size = max(find_largest_query(columns, first, last), 1)
    cdef double[::1] table = np.empty(size * size), path = np.empty(size * size), worst = np.empty(size)
    cdef int64_t[::1] left = np.empty(size, np.int64)
    with nogil:
        for q in range(first, last):
            base = columns.slots[q]
            size = columns.slots[q + 1] - base
            if size == 0:
                continue
            fill_vote_matrix(columns, q, &table[0], &worst[0])
            find_strengths(&table[0], size, winning)
            memcpy(&path[0], &table[0], size * size * sizeof(double))
            find_strongest_paths(&path[0], size, &worst[0])
            for i in range(size):
                for j in range(size):
                    table[i * size + j] = table[i * size + j] > path[j * size + i]
            take_least_defeated(&table[0], size, &worst[0], &left[0], &scores[base])


cdef void take_least_defeated(
    const double* strength, int64_t size, double* worst, int64_t* left, double* score
) noexcept nogil:
    """Take the items with the weakest strongest defeat, then those of the rest, and so on."""
    cdef int64_t a, b, count = size, taken, rest
    cdef double best, defeat
    for a in range(size):
        left[a] = a
    while count > 0:
        for a in range(count):
            worst[a] = 0.0
        for b in range(count):
            for a in range(count):
                defeat = strength[left[b] * size + left[a]]
                if defeat > worst[a]:
                    worst[a] = defeat
        best = worst[0]
        for a in range(1, count):
            best = min(best, worst[a])
        taken = 0
        for a in range(count):
            taken += worst[a] == best
        rest = 0
        for a in range(count):
            if worst[a] == best:
                # items below minus items above
                score[left[a]] = 2 * count - size - taken
            else:
                left[rest] = left[a]
                rest += 1
        count = rest


def greedy(int64_t first, int64_t last, votes, double[::1] scores):
    """Repeatedly take the item with the largest net preference over those left."""
    cdef VoteColumns columns = VoteColumns(votes)
    cdef int64_t q, base, size = max(find_largest_query(columns, first, last), 1)
    cdef double[::1] table = np.empty(size * size), potential = np.empty(size), inside = np.empty(size)
    cdef int64_t[::1] left = np.empty(size, np.int64), taken = np.empty(size, np.int64)
    with nogil:
        for q in range(first, last):
            base = columns.slots[q]
            size = columns.slots[q + 1] - base
            if size == 0:
                continue
            fill_vote_matrix(columns, q, &table[0], &inside[0])
            subtract_transpose(&table[0], size)
            take_greedily(&table[0], size, &potential[0], &inside[0], &left[0], &taken[0], &scores[base])


cdef void take_greedily(
    const double* margin, int64_t size, double* potential, double* inside, int64_t* left, int64_t* taken,
    double* score,
) noexcept nogil:
    """The greedy order of one query; items that nothing separates are taken together."""
    cdef int64_t i, j, k, count, best, rest = size, above = 0
    for i in range(size):
        left[i] = i
        potential[i] = 0.0
        for j in range(size):
            potential[i] += margin[i * size + j]
    while above < size:
        count = select_largest(left, rest, potential, taken)
        while count > 1:
            for i in range(count):
                inside[taken[i]] = 0.0
                for j in range(count):
                    inside[taken[i]] += margin[taken[i] * size + taken[j]]
            best = select_largest(taken, count, inside, taken)
            if best == count:
                break
            count = best
        for k in range(count):
            i = taken[k]
            score[i] = size - 2 * above - count
            for j in range(size):
                potential[j] += margin[i * size + j]
            potential[i] = -INFINITY
        above += count
        k = 0
        for i in range(rest):
            left[k] = left[i]
            k += potential[left[i]] > -INFINITY
        rest = k


cdef int64_t select_largest(
    const int64_t* items, int64_t count, const double* key, int64_t* largest
) noexcept nogil:
    """The items with the largest key, in sequence; returns their number. The output may be the input."""
    cdef int64_t i, k = 0
    cdef double top = key[items[0]]
    for i in range(1, count):
        top = max(top, key[items[i]])
    for i in range(count):
        largest[k] = items[i]
        k += key[items[i]] == top
    return k


def ranked_pairs(int64_t first, int64_t last, votes, double[::1] scores):
    """Lock majorities by falling margin; equal margins are locked together, except those in a cycle."""
    cdef VoteColumns columns = VoteColumns(votes)
    cdef int64_t q, base, size = max(find_largest_query(columns, first, last), 1)
    cdef int64_t i, j, count, start, stop, most = size * size
    cdef double[::1] table = np.empty(most), strength = np.empty(most), spare = np.empty(most)
    cdef int32_t[::1] edges = np.empty(most, np.int32), spare_edges = np.empty(most, np.int32)
    cdef uint8_t[::1] reach = np.empty(most, np.uint8), trial = np.empty(most, np.uint8)
    with nogil:
        for q in range(first, last):
            base = columns.slots[q]
            size = columns.slots[q + 1] - base
            if size == 0:
                continue
            fill_vote_matrix(columns, q, &table[0], &spare[0])
            subtract_transpose(&table[0], size)
            count = list_majorities(&table[0], size, &edges[0], &strength[0])
            merge_sort(&strength[0], &edges[0], count, &spare[0], &spare_edges[0])
            memset(&reach[0], 0, size * size)
            for i in range(size):
                reach[i * size + i] = True
            start = 0
            while start < count:
                stop = start + 1
                while stop < count and strength[stop] == strength[start]:
                    stop += 1
                lock_edges(&reach[0], &trial[0], size, &edges[start], stop - start)
                start = stop
            for i in range(size):
                for j in range(size):
                    scores[base + i] += reach[i * size + j]
                    scores[base + j] -= reach[i * size + j]


cdef int64_t list_majorities(
    const double* margin, int64_t size, int32_t* edges, double* strength
) noexcept nogil:
    """The cells with a majority, and its size with the sign turned: ascending means strongest first."""
    cdef int64_t e, count = 0
    for e in range(size * size):
        if margin[e] > 0:
            edges[count] = <int32_t>e
            strength[count] = -margin[e]
            count += 1
    return count


cdef void lock_edges(
    uint8_t* reach, uint8_t* trial, int64_t size, int32_t* edges, int64_t count
) noexcept nogil:
    """Add those edges of a group that contradict neither the locked edges nor each other."""
    cdef int64_t k, i, j, undecided = 0
    for k in range(count):
        i = edges[k] // size
        j = edges[k] % size
        if not reach[i * size + j] and not reach[j * size + i]:
            edges[undecided] = edges[k]
            undecided += 1
    if undecided == 0:
        return
    memcpy(trial, reach, size * size)
    for k in range(undecided):
        add_to_closure(trial, size, edges[k] // size, edges[k] % size)
    for k in range(undecided):
        i = edges[k] // size
        j = edges[k] % size
        if not trial[j * size + i]:
            add_to_closure(reach, size, i, j)


cdef void add_to_closure(uint8_t* reach, int64_t size, int64_t i, int64_t j) noexcept nogil:
    """Update the transitive closure of a relation with i -> j."""
    cdef int64_t x, k
    if reach[i * size + j]:
        return
    for x in range(size):
        if reach[x * size + i] and not reach[x * size + j]:
            for k in range(size):
                reach[x * size + k] |= reach[j * size + k]
