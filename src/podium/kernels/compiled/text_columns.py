"""Loops over the bytes of whitespace-separated text."""

from __future__ import annotations

import numpy as np
from numba import njit

from podium.kernels.compiled.bytes8 import copy_bytes, count_shared_bytes, find_field_end, is_blank

NO_POWER = 1_000_000
POWERS = 10.0 ** np.arange(23)  # the powers of ten that a double holds exactly


@njit(cache=True, nogil=True)
def _parse_exponent(data, at, end):
    """The exponent in data[at:end], such as e-12, or NO_POWER."""
    if data[at] != 69 and data[at] != 101:
        return NO_POWER
    at += 1
    below = at < end and data[at] == 45
    if at < end and (data[at] == 45 or data[at] == 43):
        at += 1
    if at == end or end - at > 4:
        return NO_POWER
    power = 0
    while at < end:
        if not 48 <= data[at] <= 57:
            return NO_POWER
        power = power * 10 + data[at] - 48
        at += 1
    return -power if below else power


@njit(cache=True, nogil=True)
def parse_number(data, at, end):
    """The decimal number in data[at:end]: (value, state); state 0: exact, 1: slower parser, 2: no number."""
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
        return 0.0, 1  # nan, inf, words: left to the slower parser
    if at < end:
        power = _parse_exponent(data, at, end)
        if power == NO_POWER:
            return 0.0, 1
        scale += power
    if digits > 19 or mantissa > np.uint64(2**53) or scale < -22 or scale > 22:
        return 0.0, 1
    value = np.float64(mantissa)
    value = value / POWERS[-scale] if scale < 0 else value * POWERS[scale]
    return (-value if negative else value), 0


@njit(cache=True, nogil=True, inline="always")
def _is_same_span(data, a, b, length):
    return count_shared_bytes(data, a, b, length) == length


@njit(cache=True, nogil=True)
def _find_fields(data, pos, end, at, stop):
    """Start and end of the fields of the line at `pos`; returns the next line and the number of fields."""
    field = 0
    while pos < end and data[pos] != 10:
        if is_blank(data[pos]):
            pos += 1
            continue
        here = pos
        pos = find_field_end(data, pos, end)
        if field < len(at):
            at[field], stop[field] = here, pos
        field += 1
    return pos + 1, field


@njit(cache=True, nogil=True)
def _grow_runs(runs, count):
    """The table of runs, doubled when it is full."""
    if count < len(runs):
        return runs
    wider = np.empty((2 * count, 5), np.int64)
    wider[:count] = runs
    return wider


@njit(cache=True, nogil=True)
def tokenize_lines(data, begin, end, row, shape, cuts, lowest, item_at, item_len, rank, score):
    """Split data[begin:end] into lines and fields, from row number `row` on.

    `shape` holds the number of fields and the positions of query, item, rank, score and expert (-1: none).
    Consecutive lines of one query and expert form a run. Returns (next row, position of a bad line or -1, and
    per run: first row, query position, query length, expert position, expert length). Scores that need a
    slower parser are NaN. A run ends at every position in `cuts` (where files begin).
    """
    fields, q_field, i_field, r_field, s_field, e_field = shape
    at = np.zeros(fields, np.int64)
    stop = np.zeros(fields, np.int64)
    runs = np.empty((1024, 5), np.int64)
    count, q_at, q_len, e_at, e_len = 0, -1, -1, -1, 0
    cut = np.searchsorted(cuts, begin, side="right")
    pos = begin
    while pos < end:
        line = pos
        pos, field = _find_fields(data, pos, end, at, stop)
        if field == 0:
            continue
        if field != fields:
            return row, line, runs[:count]
        if r_field >= 0:
            value, state = parse_number(data, at[r_field], stop[r_field])
            if state or value != np.floor(value) or value < lowest or value > 2147483647:
                return row, line, runs[:count]
            rank[row] = np.int32(value)
        value, state = parse_number(data, at[s_field], stop[s_field])
        score[row] = np.nan if state else value
        item_at[row], item_len[row] = at[i_field], stop[i_field] - at[i_field]
        length = stop[q_field] - at[q_field]
        new = length != q_len or not _is_same_span(data, at[q_field], q_at, length)
        if e_field >= 0 and not new:
            size = stop[e_field] - at[e_field]
            new = size != e_len or not _is_same_span(data, at[e_field], e_at, size)
        if cut < len(cuts) and line >= cuts[cut]:
            new = True
            while cut < len(cuts) and line >= cuts[cut]:
                cut += 1
        if new:
            runs = _grow_runs(runs, count)
            q_at, q_len = at[q_field], length
            if e_field >= 0:
                e_at, e_len = at[e_field], stop[e_field] - at[e_field]
            runs[count] = row, q_at, q_len, e_at, e_len
            count += 1
        row += 1
    return row, -1, runs[:count]


@njit(cache=True, nogil=True)
def parse_cells(data, last_column, widths, column, value):
    """Parse lines of `column:value` with ascending columns; returns the first other line, or -1.

    Numbers that need a slower parser count as other lines. NULL gives NaN.
    """
    pos, line, count, last = 0, 0, 0, 0
    while pos < len(data):
        if data[pos] == 10:
            line += 1
            last = 0
        if is_blank(data[pos]):
            pos += 1
            continue
        end = find_field_end(data, pos, len(data))
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
            value[count], state = parse_number(data, at, end)
            if state:
                return line
        column[count] = number_of
        widths[line] += 1
        count += 1
        last, pos = number_of, end
    return -1


@njit(cache=True, nogil=True)
def intern_spans(data, at, length, codes, firsts):
    """Codes of the spans by first appearance; returns the number of distinct spans."""
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
            if length[j] == length[i] and _is_same_span(data, at[i], at[j], length[i]):
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
    """Concatenate the spans; fills offsets (one more than spans)."""
    to = offsets[0]
    for i in range(len(at)):
        copy_bytes(data, at[i], np.int64(length[i]), out, to, len(out))
        to += length[i]
        offsets[i + 1] = to


@njit(cache=True, nogil=True)
def find_field_after(data, rows, at, skip, starts, lengths):
    """The span of the field `skip` fields after the one at `at`, for some rows."""
    for i in range(len(rows)):
        pos = at[rows[i]]
        for _ in range(skip):
            while not is_blank(data[pos]):
                pos += 1
            while is_blank(data[pos]):
                pos += 1
        starts[i] = pos
        lengths[i] = find_field_end(data, pos, len(data)) - pos
