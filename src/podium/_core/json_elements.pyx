"""Where the elements of a JSON array end."""

from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memchr


cdef int64_t find_string_end(const uint8_t* text, int64_t at, int64_t size) noexcept nogil:
    """The position after the closing quote of the string whose content begins at `at`."""
    cdef const uint8_t* quote
    cdef int64_t end, k
    cdef int64_t begin = at
    while at < size:
        quote = <const uint8_t*> memchr(text + at, c'"', size - at)
        if quote == NULL:
            return size
        end = quote - text
        k = end
        while k > begin and text[k - 1] == c"\\":
            k -= 1
        if (end - k) % 2 == 0:  # an odd number of backslashes escapes the quote
            return end + 1
        at = end + 1
    return size


def find_element_ends(const uint8_t[::1] text, int64_t begin, int64_t span, int64_t[::1] ends):
    """Write the positions of the separators after the elements from `begin` on; return their number.

    A separator is the comma after an element, or the bracket or brace that closes what holds it, or the end of the
    text. Stops there, when `ends` is full, or `span` bytes after `begin`.
    """
    cdef const uint8_t* data = &text[0]
    cdef int64_t size = text.shape[0], at = begin, count = 0, depth = 0
    cdef uint8_t c
    with nogil:
        while at < size:
            c = data[at]
            if c == c'"':
                at = find_string_end(data, at + 1, size)
                continue
            if c == c"{" or c == c"[":
                depth += 1
            elif c == c"}" or c == c"]":
                depth -= 1
                if depth < 0:
                    break
            elif c == c"," and depth == 0:
                ends[count] = at
                count += 1
                if count == ends.shape[0] or at - begin >= span:
                    with gil:
                        return count
            at += 1
        ends[count] = at
    return count + 1
