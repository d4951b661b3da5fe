"""Numbers as text, and rows of text cells in one buffer."""

from libc.math cimport isfinite, signbit
from libc.stdint cimport int64_t, uint8_t, uint64_t

import numpy as np

from podium._core.bytes8 cimport copy_bytes

cdef enum:
    MOST_COLUMNS = 16
    MOST_CHARACTERS = 24  # of a double or a 64-bit integer
    NOT_SHORT = -1

cdef extern from *:
    """
    #include <math.h>
    #include <stdint.h>
    #include <string.h>

    static const uint64_t POWERS_OF_FIVE[28] = {
        1u, 5u, 25u, 125u, 625u, 3125u, 15625u, 78125u, 390625u, 1953125u, 9765625u, 48828125u, 244140625u,
        1220703125u, 6103515625u, 30517578125u, 152587890625u, 762939453125u, 3814697265625u,
        19073486328125u, 95367431640625u, 476837158203125u, 2384185791015625u, 11920928955078125u,
        59604644775390625u, 298023223876953125u, 1490116119384765625u, 7450580596923828125u};

    /* The fewest decimal digits that only `value` rounds to, of these the closest to it, and the power of ten
       of the last one. 0 if another algorithm must find them: a tie, or numbers outside 1e-10 .. 1e16. In C:
       Cython has no integers of 128 bits, which hold the ends of the interval exactly. */
    static int find_shortest_digits(double value, uint64_t *digits, int *power) {
        if (!(value >= 1e-10 && value < 1e16))
            return 0;
        uint64_t bits;
        memcpy(&bits, &value, 8);
        uint64_t mantissa = (bits & 0xfffffffffffffu) | 0x10000000000000u;
        int exponent = (int)(bits >> 52) - 1075;
        int scale = 16 - (int)floor(log10(value));  /* 16 to 18 digits before the point, whatever log10 rounds */
        if (scale < 0 || scale > 27)
            return 0;
        int shift = 2 - exponent - scale;  /* value * 10^scale = mantissa * 5^scale / 2^(shift - 2) */
        if (shift < 0 || shift > 100)
            return 0;
        unsigned __int128 five = POWERS_OF_FIVE[scale], one = 1;
        unsigned __int128 middle = five * (mantissa << 2);
        unsigned __int128 below = middle - five * (mantissa == 0x10000000000000u ? 1 : 2);
        unsigned __int128 above = middle + five * 2;
        unsigned __int128 rest = (one << shift) - 1;
        int even = !(mantissa & 1);  /* the ends themselves round to an even mantissa */
        uint64_t low = (uint64_t)(below >> shift) + (!even || (below & rest) != 0);
        uint64_t high = (uint64_t)(above >> shift) - (!even && (above & rest) == 0);
        uint64_t unit = 1;
        int dropped = 0;
        if (shift == 0 || low > high)
            return 0;
        while ((low + 9) / 10 <= high / 10) {
            low = (low + 9) / 10;
            high /= 10;
            unit *= 10;
            dropped++;
        }
        uint64_t whole = (uint64_t)(middle >> shift), candidate = whole / unit;
        uint64_t twice = 2 * (whole % unit);
        int fraction = (middle & rest) != 0;
        if (unit == 1) {  /* the fraction alone decides */
            unsigned __int128 half = one << (shift - 1);
            if ((middle & rest) == half)
                return 0;
            candidate += (middle & rest) > half;
        } else {
            if (twice == unit && !fraction)
                return 0;
            candidate += twice >= unit;
        }
        if (candidate < low || candidate > high)
            candidate = candidate < low ? low : high;
        *digits = candidate;
        *power = dropped - scale;
        return 1;
    }
    """
    bint find_shortest_digits(double value, uint64_t* digits, int* power) noexcept nogil


cdef inline int write_digits(uint64_t number, uint8_t* out) noexcept nogil:
    """The digits of a number; returns how many there are."""
    cdef uint8_t[20] reversed
    cdef int count = 0, k
    while True:
        reversed[count] = <uint8_t>(c"0" + number % 10)
        number //= 10
        count += 1
        if number == 0:
            break
    for k in range(count):
        out[k] = reversed[count - 1 - k]
    return count


cdef inline int place_point(uint8_t* digits, int count, int point, uint8_t* out) noexcept nogil:
    """Digits with the decimal point before digit `point`, as `repr` of a float places it; returns the length."""
    cdef int k, at = 0
    if point <= -4:
        out[0] = digits[0]
        at = 1
        if count > 1:
            out[1] = c"."
            for k in range(1, count):
                out[k + 1] = digits[k]
            at = count + 1
        out[at] = c"e"
        out[at + 1] = c"-"
        out[at + 2] = <uint8_t>(c"0" + (1 - point) // 10)
        out[at + 3] = <uint8_t>(c"0" + (1 - point) % 10)
        return at + 4
    if point <= 0:
        out[0] = c"0"
        out[1] = c"."
        at = 2
        for k in range(-point):
            out[at] = c"0"
            at += 1
    for k in range(count):
        if k == point and point > 0:
            out[at] = c"."
            at += 1
        out[at] = digits[k]
        at += 1
    if point < count:
        return at
    for k in range(count, point):
        out[at] = c"0"
        at += 1
    out[at] = c"."
    out[at + 1] = c"0"
    return at + 2


cdef int write_float(double value, uint8_t* out) noexcept nogil:
    """The text of `repr(value)`; returns its length, or NOT_SHORT if Python must write it."""
    cdef uint8_t[20] digits
    cdef uint64_t number = 0
    cdef int power = 0, count, sign = 0
    if not isfinite(value):
        return NOT_SHORT
    if signbit(value):
        out[0] = c"-"
        sign = 1
        value = -value
    if value == 0.0:
        out[sign] = c"0"
        out[sign + 1] = c"."
        out[sign + 2] = c"0"
        return sign + 3
    if not find_shortest_digits(value, &number, &power):
        return NOT_SHORT
    count = write_digits(number, digits)
    return sign + place_point(digits, count, count + power, out + sign)


def format_floats(const double[::1] values, bint nan_is_empty, uint8_t[::1] out, int64_t[::1] offsets):
    """The texts of `repr`, one after another; NaN is empty if `nan_is_empty`. Fills offsets (one more than values)."""
    cdef int64_t i, k, at = 0
    cdef int length
    cdef const uint8_t* raw
    if out.shape[0] < MOST_CHARACTERS * values.shape[0]:
        raise ValueError("too little room")
    offsets[0] = 0
    with nogil:
        for i in range(values.shape[0]):
            if nan_is_empty and values[i] != values[i]:
                length = 0
            else:
                length = write_float(values[i], &out[at])
            if length == NOT_SHORT:
                with gil:
                    text = repr(values[i]).encode()
                    raw = text
                    length = <int>len(text)
                    for k in range(length):
                        out[at + k] = raw[k]
            at += length
            offsets[i + 1] = at


def format_integers(const int64_t[::1] values, uint8_t[::1] out, int64_t[::1] offsets):
    """The decimal digits of integers, one after another; fills offsets (one more than values)."""
    cdef int64_t i, at = 0
    if out.shape[0] < MOST_CHARACTERS * values.shape[0]:
        raise ValueError("too little room")
    offsets[0] = 0
    with nogil:
        for i in range(values.shape[0]):
            if values[i] < 0:
                out[at] = c"-"
                # the negative of the smallest integer is not an integer of 64 bits
                at += 1 + write_digits(<uint64_t>0 - <uint64_t>values[i], &out[at + 1])
            else:
                at += write_digits(<uint64_t>values[i], &out[at])
            offsets[i + 1] = at


cdef struct Column:
    const uint8_t* data
    int64_t size
    const int64_t* offsets
    const int64_t* codes


def join_cells(columns, const uint8_t[::1] separator):
    """Rows of cells with separators and a newline at the end of each, as one array of bytes.

    A column is (data, offsets, codes): its cell in row i is data[offsets[c] : offsets[c + 1]] with c = codes[i].
    """
    cdef Column[MOST_COLUMNS] table
    cdef const uint8_t[::1] data
    cdef const int64_t[::1] offsets
    cdef const int64_t[::1] codes
    cdef int64_t rows = len(columns[0][2]), gap = separator.shape[0], i, at, length, to = 0
    cdef int k, width = <int>len(columns)
    if width > MOST_COLUMNS:
        raise ValueError(f"{width} columns: at most {MOST_COLUMNS} are supported")
    if rows == 0:
        return np.empty(0, np.uint8)
    cdef int64_t size = rows * (1 + gap * (width - 1))
    for k in range(width):
        data = columns[k][0]
        offsets = columns[k][1]
        codes = columns[k][2]
        if codes.shape[0] != rows:
            raise ValueError("columns differ in length")
        table[k].size = data.shape[0]
        table[k].data = &data[0] if table[k].size else NULL
        table[k].offsets = &offsets[0]
        table[k].codes = &codes[0]
        for i in range(rows):
            size += offsets[codes[i] + 1] - offsets[codes[i]]
    cdef uint8_t[::1] out = np.empty(size, np.uint8)
    with nogil:
        for i in range(rows):
            for k in range(width):
                if k > 0:
                    copy_bytes(&separator[0], gap, 0, gap, &out[0], to, size)
                    to += gap
                at = table[k].offsets[table[k].codes[i]]
                length = table[k].offsets[table[k].codes[i] + 1] - at
                copy_bytes(table[k].data, table[k].size, at, length, &out[0], to, size)
                to += length
            out[to] = c"\n"
            to += 1
    return np.asarray(out)
