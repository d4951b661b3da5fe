"""Loops over the bytes of whitespace-separated text."""

from libc.math cimport NAN, floor, ldexp
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

import numpy as np

from podium._core.bytes8 cimport copy_bytes, count_shared_bytes, find_field_end, is_blank

cdef enum:
    NO_POWER = 1_000_000
    MOST_FIELDS = 64

cdef extern from *:
    """
    /* dividend / divisor, rounded once (half to even); the dividend is at least 2^53. In C: Cython has no
       integers of 128 bits. */
    static double divide_rounding_once(uint64_t dividend, uint64_t divisor) {
        unsigned __int128 wide = (unsigned __int128)dividend << 64, quotient = wide / divisor;
        int rest = quotient * divisor != wide;
        uint64_t high = (uint64_t)(quotient >> 64);
        int bits = high ? 128 - __builtin_clzll(high) : 64 - __builtin_clzll((uint64_t)quotient);
        int dropped = bits - 54;  /* what is kept: 53 bits and the one that decides the rounding */
        uint64_t kept = (uint64_t)(quotient >> dropped), rounded = kept >> 1;
        rest |= ((unsigned __int128)kept << dropped) != quotient;
        if ((kept & 1) && (rest || (rounded & 1)))
            rounded++;
        return ldexp((double)rounded, dropped + 1 - 64);
    }
    """
    double divide_rounding_once(uint64_t dividend, uint64_t divisor) noexcept nogil

# the powers of ten that 64 bits hold
cdef uint64_t[20] WHOLE_POWERS
cdef int _place
WHOLE_POWERS[0] = 1
for _place in range(1, 20):
    WHOLE_POWERS[_place] = WHOLE_POWERS[_place - 1] * 10

# the powers of ten that a double holds exactly
cdef double[23] POWERS = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18,
    1e19, 1e20, 1e21, 1e22,
]


cdef int64_t parse_exponent(const uint8_t* data, int64_t at, int64_t end) noexcept nogil:
    """The exponent in data[at:end], such as e-12, or NO_POWER."""
    cdef bint below
    cdef int64_t power = 0
    if data[at] != c"E" and data[at] != c"e":
        return NO_POWER
    at += 1
    below = at < end and data[at] == c"-"
    if at < end and (data[at] == c"-" or data[at] == c"+"):
        at += 1
    if at == end or end - at > 4:
        return NO_POWER
    while at < end:
        if not c"0" <= data[at] <= c"9":
            return NO_POWER
        power = power * 10 + data[at] - c"0"
        at += 1
    return -power if below else power


cdef bint parse_number(const uint8_t* data, int64_t at, int64_t end, double* value) noexcept nogil:
    """The decimal number in data[at:end]; False where a slower parser must look at it."""
    cdef bint negative = data[at] == c"-", seen = False, point = False
    cdef uint64_t mantissa = 0
    cdef int64_t digits = 0, scale = 0, power
    cdef uint8_t c
    if negative or data[at] == c"+":
        at += 1
    while at < end:
        c = data[at]
        if c"0" <= c <= c"9":
            seen = True
            if digits < 19:
                mantissa = mantissa * 10 + (c - c"0")
                if mantissa > 0:
                    digits += 1
                scale -= point
            else:
                digits += 1
        elif c == c"." and not point:
            point = True
        else:
            break
        at += 1
    if not seen:
        return False  # nan, inf, words
    if at < end:
        power = parse_exponent(data, at, end)
        if power == NO_POWER:
            return False
        scale += power
    if digits > 19 or scale < -22 or scale > 22:
        return False
    if mantissa <= (<uint64_t>1 << 53):
        # both factors are doubles, so the result is rounded once
        value[0] = <double>mantissa
        value[0] = value[0] / POWERS[-scale] if scale < 0 else value[0] * POWERS[scale]
    elif -20 < scale <= 0:
        value[0] = divide_rounding_once(mantissa, WHOLE_POWERS[-scale])
    else:
        return False
    if negative:
        value[0] = -value[0]
    return True


cdef inline bint is_same_text(const uint8_t* data, int64_t a, int64_t b, int64_t length) noexcept nogil:
    return count_shared_bytes(data + a, data + b, length) == length


cdef inline int64_t find_fields(
    const uint8_t* data, int64_t size, int64_t pos, int64_t end, int64_t most, int64_t* at, int64_t* stop,
    int64_t* fields,
) noexcept nogil:
    """Start and end of the fields of the line at `pos`, and their number; returns the next line."""
    cdef int64_t here, field = 0
    while pos < end and data[pos] != c"\n":
        if is_blank(data[pos]):
            pos += 1
            continue
        here = pos
        pos = find_field_end(data, size, pos, end)
        if field < most:
            at[field] = here
            stop[field] = pos
        field += 1
    fields[0] = field
    return pos + 1


cdef struct Run:
    # consecutive lines of one query and expert
    int64_t row
    int64_t query_at
    int64_t query_length
    int64_t expert_at
    int64_t expert_length


cdef class LineReader:
    """Reads lines of whitespace-separated fields into columns, until memory for one more run is needed."""

    cdef const uint8_t[::1] data
    cdef const int64_t[::1] cuts
    cdef int64_t[::1] item_at
    cdef int32_t[::1] item_len, rank
    cdef double[::1] score
    cdef int64_t fields, query, item, rank_field, score_field, expert  # number of fields, and their positions
    cdef int64_t lowest, pos, end, row, cut, bad
    cdef Run run
    cdef int64_t[:, ::1] runs
    cdef int64_t count

    def __cinit__(self, const uint8_t[::1] data, int64_t begin, int64_t end, int64_t row, shape, cuts, int64_t lowest):
        self.data, self.cuts = data, cuts
        self.fields, self.query, self.item, self.rank_field, self.score_field, self.expert = shape
        if self.fields > MOST_FIELDS:
            raise ValueError(f"lines of {self.fields} fields: at most {MOST_FIELDS} are supported")
        self.pos, self.end, self.row, self.lowest = begin, end, row, lowest
        self.cut = np.searchsorted(cuts, begin, side="right")
        self.bad = -1
        self.run = Run(0, -1, -1, -1, 0)
        self.runs = np.empty((1024, 5), np.int64)
        self.count = 0

    cdef bint begins_run(self, const uint8_t* data, int64_t line, int64_t* at, int64_t* stop) noexcept nogil:
        """Whether query or expert of a line differ from those of the line before, or a file begins."""
        cdef int64_t length = stop[self.query] - at[self.query]
        cdef bint new = length != self.run.query_length
        new = new or not is_same_text(data, at[self.query], self.run.query_at, length)
        if self.expert >= 0 and not new:
            length = stop[self.expert] - at[self.expert]
            new = length != self.run.expert_length
            new = new or not is_same_text(data, at[self.expert], self.run.expert_at, length)
        while self.cut < self.cuts.shape[0] and line >= self.cuts[self.cut]:
            new = True
            self.cut += 1
        return new

    cdef void add_run(self, int64_t* at, int64_t* stop) noexcept nogil:
        """Record that a run begins at the current row."""
        self.run.row = self.row
        self.run.query_at = at[self.query]
        self.run.query_length = stop[self.query] - at[self.query]
        if self.expert >= 0:
            self.run.expert_at = at[self.expert]
            self.run.expert_length = stop[self.expert] - at[self.expert]
        self.runs[self.count, 0] = self.run.row
        self.runs[self.count, 1] = self.run.query_at
        self.runs[self.count, 2] = self.run.query_length
        self.runs[self.count, 3] = self.run.expert_at
        self.runs[self.count, 4] = self.run.expert_length
        self.count += 1

    cdef void read(self) noexcept nogil:
        """Read until the end, a bad line, or until the table of runs is full."""
        cdef const uint8_t* data = &self.data[0] if self.data.shape[0] else NULL
        cdef int64_t[MOST_FIELDS] at, stop
        cdef int64_t line, field
        cdef double value = 0.0
        while self.pos < self.end and self.count < self.runs.shape[0]:
            line = self.pos
            self.pos = find_fields(data, self.data.shape[0], line, self.end, self.fields, at, stop, &field)
            if field == 0:
                continue
            if field != self.fields:
                self.bad = line
                return
            if self.rank_field >= 0:
                if (
                    not parse_number(data, at[self.rank_field], stop[self.rank_field], &value)
                    or value != floor(value) or value < self.lowest or value > 2147483647
                ):
                    self.bad = line
                    return
                self.rank[self.row] = <int32_t>value
            if parse_number(data, at[self.score_field], stop[self.score_field], &value):
                self.score[self.row] = value
            else:
                self.score[self.row] = NAN
            self.item_at[self.row] = at[self.item]
            self.item_len[self.row] = <int32_t>(stop[self.item] - at[self.item])
            if self.begins_run(data, line, at, stop):
                self.add_run(at, stop)
            self.row += 1


def tokenize_lines(
    const uint8_t[::1] data, int64_t begin, int64_t end, int64_t row, shape, cuts, int64_t lowest,
    int64_t[::1] item_at, int32_t[::1] item_len, int32_t[::1] rank, double[::1] score,
):
    """Split data[begin:end] into lines and fields, from row number `row` on.

    `shape` holds the number of fields and the positions of query, item, rank, score and expert (-1: none).
    Consecutive lines of one query and expert form a run. Returns (next row, position of a bad line or -1, and
    per run: first row, query position, query length, expert position, expert length). Scores that need a
    slower parser are NaN. A run ends at every position in `cuts` (where files begin).
    """
    cdef LineReader reader = LineReader(data, begin, end, row, shape, cuts, lowest)
    reader.item_at, reader.item_len, reader.rank, reader.score = item_at, item_len, rank, score
    while True:
        with nogil:
            reader.read()
        runs = np.asarray(reader.runs)
        if reader.bad >= 0 or reader.pos >= end:
            return reader.row, reader.bad, runs[: reader.count]
        reader.runs = np.concatenate((runs, np.empty_like(runs)))


def parse_cells(
    const uint8_t[::1] data, int64_t last_column, int64_t[::1] widths, int32_t[::1] column, double[::1] value
):
    """Parse lines of `column:value` with ascending columns; returns the first other line, or -1.

    Numbers that need a slower parser count as other lines. NULL gives NaN.
    """
    cdef int64_t size = data.shape[0], pos = 0, line = 0, count = 0, last = 0, at, end, number
    cdef const uint8_t* text = &data[0] if size else NULL
    cdef bint good = True
    with nogil:
        while pos < size:
            if text[pos] == c"\n":
                line += 1
                last = 0
            if is_blank(text[pos]):
                pos += 1
                continue
            end = find_field_end(text, size, pos, size)
            at = pos
            number = 0
            while at < end and c"0" <= text[at] <= c"9" and number <= last_column:
                number = 10 * number + text[at] - c"0"
                at += 1
            if at + 1 >= end or text[at] != c":" or number <= last or number > last_column:
                good = False
                break
            at += 1
            if (
                end - at == 4 and text[at] == c"N" and text[at + 1] == c"U" and text[at + 2] == c"L"
                and text[at + 3] == c"L"
            ):
                value[count] = NAN
            elif not parse_number(text, at, end, &value[count]):
                good = False
                break
            column[count] = <int32_t>number
            widths[line] += 1
            count += 1
            last = number
            pos = end
    return -1 if good else line


def intern_spans(
    const uint8_t[::1] data, const int64_t[::1] at, const int64_t[::1] length, int64_t[::1] codes,
    int64_t[::1] firsts,
):
    """Codes of the spans by first appearance; returns the number of distinct spans."""
    cdef int64_t i, j, k, place, size = 16, count = 0
    cdef uint64_t h
    cdef const uint8_t* text = &data[0] if data.shape[0] else NULL
    while size < 2 * at.shape[0]:
        size *= 2
    cdef int64_t[::1] table = np.full(size, -1, np.int64)
    with nogil:
        for i in range(at.shape[0]):
            h = <uint64_t>14695981039346656037ULL  # FNV-1a
            for k in range(at[i], at[i] + length[i]):
                h = (h ^ text[k]) * <uint64_t>1099511628211
            place = <int64_t>((h ^ (h >> 29)) & <uint64_t>(size - 1))
            while table[place] >= 0:
                j = firsts[table[place]]
                if length[j] == length[i] and is_same_text(text, at[i], at[j], length[i]):
                    break
                place = (place + 1) & (size - 1)
            if table[place] < 0:
                table[place] = count
                firsts[count] = i
                count += 1
            codes[i] = table[place]
    return count


def copy_spans(
    const uint8_t[::1] data, const int64_t[::1] at, const int64_t[::1] length, int64_t[::1] offsets,
    uint8_t[::1] out,
):
    """Concatenate the spans; fills offsets (one more than spans)."""
    cdef int64_t i, to = offsets[0]
    cdef const uint8_t* source = &data[0] if data.shape[0] else NULL
    cdef uint8_t* target = &out[0] if out.shape[0] else NULL
    with nogil:
        for i in range(at.shape[0]):
            copy_bytes(source, data.shape[0], at[i], length[i], target, to, out.shape[0])
            to += length[i]
            offsets[i + 1] = to


def find_field_after(
    const uint8_t[::1] data, const int64_t[::1] rows, const int64_t[::1] at, int64_t skip,
    int64_t[::1] starts, int64_t[::1] lengths,
):
    """The span of the field `skip` fields after the one at `at`, for some rows."""
    cdef int64_t i, step, pos
    with nogil:
        for i in range(rows.shape[0]):
            pos = at[rows[i]]
            for step in range(skip):
                while not is_blank(data[pos]):
                    pos += 1
                while is_blank(data[pos]):
                    pos += 1
            starts[i] = pos
            lengths[i] = find_field_end(&data[0], data.shape[0], pos, data.shape[0]) - pos
