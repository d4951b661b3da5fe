"""Loops over the bytes of whitespace-separated text."""

from __future__ import annotations

import numpy as np
from numba import njit

from podium.kernels.compiled.words import blank, copy, field_end, prefix, shared

POWERS = 10.0 ** np.arange(23)  # the powers of ten that a double holds exactly


@njit(cache=True, nogil=True)
def number(data, at, end):
    """The decimal number in data[at:end]: (value, state); state 0 is exact, 1 needs a slower parser, 2 is no number."""
    negative = data[at] == 45
    if negative or data[at] == 43:
        at += 1
    mantissa, digits, scale, seen = np.uint64(0), 0, 0, False
    point = False
    while at < end:
        c = data[at]
        if 48 <= c <= 57:
            seen = True
            if digits < 19:
                mantissa = mantissa * np.uint64(10) + np.uint64(c - 48)
                if mantissa > 0:
                    digits += 1
                scale -= point
            else:
                digits += 1
        elif c == 46 and not point:
            point = True
        else:
            break
        at += 1
    if not seen:
        return 0.0, 1  # nan, inf, words: left to the slower parser to name
    if at < end:
        if data[at] != 69 and data[at] != 101:
            return 0.0, 1
        at += 1
        below = at < end and data[at] == 45
        if at < end and (data[at] == 45 or data[at] == 43):
            at += 1
        if at == end or end - at > 4:
            return 0.0, 1
        power = 0
        while at < end:
            if not 48 <= data[at] <= 57:
                return 0.0, 1
            power = power * 10 + data[at] - 48
            at += 1
        scale += -power if below else power
    if digits > 19 or mantissa > np.uint64(2**53) or scale < -22 or scale > 22:
        return 0.0, 1
    value = np.float64(mantissa)
    value = value / POWERS[-scale] if scale < 0 else value * POWERS[scale]
    return (-value if negative else value), 0


@njit(cache=True, nogil=True, inline="always")
def _same(data, a, b, length):
    return shared(data, a, b, length) == length


@njit(cache=True, nogil=True)
def tokenise(data, begin, end, row, shape, cuts, lowest, item_at, item_len, rank, score):
    """Split data[begin:end] into lines and fields, from row number `row` on.

    `shape` holds the number of fields and which of them are query, item, rank, score and expert (-1: none). Rows
    of one query and expert in a row of lines form a run. Returns (next row, place of a bad line or -1, and per
    run: first row, query place, query length, expert place, expert length). Scores that need a slower parser are
    NaN. A run ends at every place in `cuts` (where files begin).
    """
    fields, q_field, i_field, r_field, s_field, e_field = shape
    at = np.zeros(fields, np.int64)
    stop = np.zeros(fields, np.int64)
    runs = np.empty((1024, 5), np.int64)
    count, q_at, q_len, e_at, e_len = 0, -1, -1, -1, 0
    cut = np.searchsorted(cuts, begin, side="right")
    pos = begin
    while pos < end:
        line, field = pos, 0
        while pos < end and data[pos] != 10:
            if blank(data[pos]):
                pos += 1
                continue
            here = pos
            pos = field_end(data, pos, end)
            if field < fields:
                at[field], stop[field] = here, pos
            field += 1
        pos += 1
        if field == 0:
            continue
        if field != fields:
            return row, line, runs[:count]
        if r_field >= 0:
            value, state = number(data, at[r_field], stop[r_field])
            if state or value != np.floor(value) or value < lowest or value > 2147483647:
                return row, line, runs[:count]
            rank[row] = np.int32(value)
        value, state = number(data, at[s_field], stop[s_field])
        score[row] = np.nan if state else value
        item_at[row], item_len[row] = at[i_field], stop[i_field] - at[i_field]
        length = stop[q_field] - at[q_field]
        new = length != q_len or not _same(data, at[q_field], q_at, length)
        if e_field >= 0 and not new:
            size = stop[e_field] - at[e_field]
            new = size != e_len or not _same(data, at[e_field], e_at, size)
        if cut < len(cuts) and line >= cuts[cut]:
            new = True
            while cut < len(cuts) and line >= cuts[cut]:
                cut += 1
        if new:
            if count == len(runs):
                wider = np.empty((2 * count, 5), np.int64)
                wider[:count] = runs
                runs = wider
            q_at, q_len = at[q_field], length
            if e_field >= 0:
                e_at, e_len = at[e_field], stop[e_field] - at[e_field]
            runs[count] = row, q_at, q_len, e_at, e_len
            count += 1
        row += 1
    return row, -1, runs[:count]


@njit(cache=True, nogil=True)
def cells(data, last_column, widths, column, value):
    """Parse lines of `column:value` with rising columns; returns the first line that is not so, or -1.

    Numbers that need a slower parser count as not so. NULL gives NaN.
    """
    pos, line, count, last = 0, 0, 0, 0
    while pos < len(data):
        if data[pos] == 10:
            line += 1
            last = 0
        if blank(data[pos]):
            pos += 1
            continue
        end = field_end(data, pos, len(data))
        at, number_of = pos, 0
        while at < end and 48 <= data[at] <= 57 and number_of <= last_column:
            number_of = 10 * number_of + data[at] - 48
            at += 1
        if at + 1 >= end or data[at] != 58 or number_of <= last or number_of > last_column:
            return line
        at += 1
        if (
            end - at == 4
            and data[at] == 78
            and data[at + 1] == 85
            and data[at + 2] == 76
            and data[at + 3] == 76
        ):
            value[count] = np.nan
        else:
            value[count], state = number(data, at, end)
            if state:
                return line
        column[count] = number_of
        widths[line] += 1
        count += 1
        last, pos = number_of, end
    return -1


@njit(cache=True, nogil=True)
def intern(data, at, length, codes, firsts):
    """Codes by first appearance of the spans; returns how many are distinct."""
    size = 16
    while size < 2 * len(at):
        size *= 2
    table = np.full(size, -1, np.int64)
    count = 0
    for i in range(len(at)):
        h = np.uint64(14695981039346656037)
        for k in range(at[i], at[i] + length[i]):
            h = (h ^ np.uint64(data[k])) * np.uint64(1099511628211)
        place = np.int64((h ^ (h >> np.uint64(29))) & np.uint64(size - 1))
        while table[place] >= 0:
            j = firsts[table[place]]
            if length[j] == length[i] and _same(data, at[i], at[j], length[i]):
                break
            place = (place + 1) & (size - 1)
        if table[place] < 0:
            table[place] = count
            firsts[count] = i
            count += 1
        codes[i] = table[place]
    return count


@njit(cache=True, nogil=True)
def copy_spans(data, at, length, offsets, out):
    """Put the spans one after the other; fills offsets (one more than spans)."""
    to = offsets[0]
    for i in range(len(at)):
        copy(data, at[i], np.int64(length[i]), out, to, len(out))
        to += length[i]
        offsets[i + 1] = to


@njit(cache=True, nogil=True)
def field_after(data, rows, at, skip, starts, lengths):
    """The span of the field `skip` fields after the one at `at`, for some rows."""
    for i in range(len(rows)):
        pos = at[rows[i]]
        for _ in range(skip):
            while not blank(data[pos]):
                pos += 1
            while blank(data[pos]):
                pos += 1
        starts[i] = pos
        lengths[i] = field_end(data, pos, len(data)) - pos


@njit(cache=True, nogil=True)
def _tail_order(data, a, a_len, b, b_len, skip):
    """Order of two spans whose first `skip` bytes are the same."""
    limit = min(a_len, b_len)
    if skip < limit:
        k = skip + shared(data, a + skip, b + skip, limit - skip)
        if k < limit:
            return np.int64(data[a + k]) - np.int64(data[b + k])
    return np.int64(a_len) - np.int64(b_len)


@njit(cache=True, nogil=True)
def _sort_spans(data, at, length, row, skip, key, idx, key2, idx2):
    """Stable merge sort of spans by their bytes: `key` holds eight bytes after the `skip` shared ones."""
    n = len(key)
    block = 12
    for begin in range(0, n, block):
        for i in range(begin + 1, min(begin + block, n)):
            k, x = key[i], idx[i]
            j = i - 1
            while j >= begin:
                y = idx[j]
                if key[j] < k:
                    break
                if (
                    key[j] == k
                    and _tail_order(data, at[row[y]], length[row[y]], at[row[x]], length[row[x]], skip + 8)
                    <= 0
                ):
                    break
                key[j + 1], idx[j + 1] = key[j], y
                j -= 1
            key[j + 1], idx[j + 1] = k, x
    width = block
    while width < n:
        for begin in range(0, n, 2 * width):
            middle, end = min(begin + width, n), min(begin + 2 * width, n)
            a, b = begin, middle
            for to in range(begin, end):
                left = b >= end
                if not left and a < middle:
                    left = key[a] < key[b]
                    if key[a] == key[b]:
                        x, y = row[idx[a]], row[idx[b]]
                        left = _tail_order(data, at[x], length[x], at[y], length[y], skip + 8) <= 0
                if left:
                    key2[to], idx2[to] = key[a], idx[a]
                    a += 1
                else:
                    key2[to], idx2[to] = key[b], idx[b]
                    b += 1
        key, key2 = key2, key
        idx, idx2 = idx2, idx
        width *= 2
    return key, idx


@njit(cache=True, nogil=True)
def _gather_rows(runs, run_rows, row):
    n = 0
    for r in runs:
        for k in range(run_rows[r], run_rows[r + 1]):
            row[n] = k
            n += 1


@njit(cache=True, nogil=True)
def index_items(
    first, last, data, at, length, run_rows, order, query_runs, row_starts, slot, rep, counts, widths
):
    """Number the distinct items of every query in byte order.

    Fills slot (number of each row's item within its query), rep (a row for each distinct item, from the query's
    row start on), counts (items) and widths (bytes of their ids).
    """
    most = 0
    for q in range(first, last):
        most = max(most, row_starts[q + 1] - row_starts[q])
    row = np.empty(most, np.int64)
    key, key2 = np.empty(most, np.uint64), np.empty(most, np.uint64)
    idx, idx2 = np.empty(most, np.int32), np.empty(most, np.int32)
    for q in range(first, last):
        n = row_starts[q + 1] - row_starts[q]
        _gather_rows(order[query_runs[q] : query_runs[q + 1]], run_rows, row)
        skip = length[row[0]]
        for i in range(1, n):
            skip = shared(data, at[row[i]], at[row[0]], min(skip, length[row[i]]))
        for i in range(n):
            key[i] = prefix(data, at[row[i]] + skip, length[row[i]] - skip)
            idx[i] = i
        keys, found = _sort_spans(data, at, length, row, skip, key[:n], idx[:n], key2[:n], idx2[:n])
        count, width = 0, 0
        for i in range(n):
            r = row[found[i]]
            p = row[found[i - 1]] if i else r
            if (
                i == 0
                or keys[i] != keys[i - 1]
                or length[r] != length[p]
                or not _same(data, at[r] + skip, at[p] + skip, length[r] - skip)
            ):
                rep[row_starts[q] + count] = r
                width += length[r]
                count += 1
            slot[r] = count - 1
        counts[q], widths[q] = count, width


@njit(cache=True, nogil=True)
def write_items(
    first,
    last,
    data,
    at,
    length,
    run_rows,
    order,
    query_runs,
    row_starts,
    slot,
    rep,
    starts,
    text,
    buffer,
    offsets,
    arrival,
):
    """Copy the distinct ids of every query and note the order in which they came."""
    for q in range(first, last):
        to, stop = text[q], text[q + 1]
        for k in range(starts[q + 1] - starts[q]):
            r = rep[row_starts[q] + k]
            offsets[starts[q] + k] = to
            copy(data, at[r], np.int64(length[r]), buffer, to, stop)
            to += length[r]
        came = 0
        for r in order[query_runs[q] : query_runs[q + 1]]:
            for i in range(run_rows[r], run_rows[r + 1]):
                s = starts[q] + slot[i]
                if arrival[s] < 0:
                    arrival[s] = came
                    came += 1


@njit(cache=True, nogil=True)
def _order(row, slot, value, sign):
    """The rows by rising sign * value, then slot."""
    slots, values = np.empty(len(row)), np.empty(len(row))
    for i in range(len(row)):
        slots[i], values[i] = slot[row[i]], sign * value[row[i]]
    by_slot = np.argsort(slots, kind="mergesort")
    return row[by_slot[np.argsort(values[by_slot], kind="mergesort")]]


@njit(cache=True, nogil=True)
def _is_ordered(row, slot, rank):
    for i in range(1, len(row)):
        a, b = row[i - 1], row[i]
        if rank[b] < rank[a] or (rank[b] == rank[a] and slot[b] < slot[a]):
            return False
    return True


@njit(cache=True, nogil=True)
def _agrees(row, rank, score):
    """Whether the ranks of ordered rows are valid and follow from their scores."""
    for i in range(len(row)):
        b = row[i]
        if rank[b] < 1:
            return False
        if i:
            a = row[i - 1]
            if score[b] > score[a] or (rank[a] == rank[b] and score[a] != score[b]):
                return False
    return True


@njit(cache=True, nogil=True)
def fill_lists(
    first,
    last,
    list_runs,
    order,
    run_rows,
    starts,
    base,
    slot,
    rank,
    score,
    by,
    width,
    out_item,
    out_rank,
    out_score,
    disagree,
    repeat,
):
    """Sort the rows of every list by rank or score (`by` 0: rank where scores agree, 1: rank, 2: score).

    `base` is the first slot of each list's query and `width` the most slots a query has. Notes in `disagree` the
    lists whose ranks do not follow from their scores and in `repeat` a row whose item the list has twice, or -1.
    """
    stamp = np.full(width, -1, np.int64)
    most = 0
    for t in range(first, last):
        most = max(most, starts[t + 1] - starts[t])
    rows = np.empty(most, np.int64)
    for t in range(first, last):
        n = starts[t + 1] - starts[t]
        row = rows[:n]
        _gather_rows(order[list_runs[t] : list_runs[t + 1]], run_rows, row)
        for i in range(n):
            s = slot[row[i]]
            if stamp[s] == t:
                repeat[t] = row[i]
            stamp[s] = t
        scored = by == 2
        if not scored:
            if not _is_ordered(row, slot, rank):
                row = _order(row, slot, rank, 1.0)
            scored = by == 0 and not _agrees(row, rank, score)
            disagree[t] = scored
        if scored:
            row = _order(row, slot, score, -1.0)
        for i in range(n):
            r, to = row[i], starts[t] + i
            out_item[to] = base[t] + slot[r]
            out_score[to] = score[r]
            if not scored:
                out_rank[to] = rank[r]
            elif i and score[r] == score[row[i - 1]]:
                out_rank[to] = out_rank[to - 1]
            else:
                out_rank[to] = i + 1
