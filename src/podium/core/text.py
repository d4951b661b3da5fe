"""Words of messages: joined names and counted things."""

from __future__ import annotations

from collections.abc import Sequence


def join_words(words: Sequence[str], last: str) -> str:
    """Join words as in a sentence.

    >>> join_words(["a", "b", "c"], "or"), join_words([], "or")
    ('a, b or c', '')
    """
    return f" {last} ".join(filter(None, (", ".join(words[:-1]), "".join(words[-1:]))))


def join_names(names: Sequence[object], most: int = 5, last: str = "", between: str = ", ") -> str:
    """The first few names and the number of the others; `last` stands before the last of a complete list.

    >>> join_names(["a", "b"]), join_names(["a", "b"], last="and"), join_names("abcdefg")
    ('a, b', 'a and b', 'a, b, c, d, e and 2 more')
    """
    shown = [str(name) for name in names[:most]]
    if len(names) > most:
        return f"{between.join(shown)} and {len(names) - most} more"
    return join_words(shown, last) if last else between.join(shown)


def format_count(number: int, noun: str, plural: str | None = None) -> str:
    """A number with its noun; nouns with another plural than -s or -ies need it.

    >>> format_count(1, "query"), format_count(1200, "query"), format_count(0, "item")
    ('1 query', '1,200 queries', '0 items')
    """
    if plural is None:
        plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{number:,} {noun if number == 1 else plural}"
