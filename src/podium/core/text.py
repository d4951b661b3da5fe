"""Words for sentences: counts with their nouns, and lists of names cut short."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = ["format_count", "join_some"]


def format_count(count: int, one: str, many: str | None = None) -> str:
    """A count with its noun.

    >>> format_count(1, "query", "queries"), format_count(2000, "vote")
    ('1 query', '2,000 votes')
    """
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def join_some(names: Sequence[Any], most: int, between: str = ", ") -> str:
    """The first names, and the number of the others.

    >>> join_some("abcdef", 4), join_some("ab", 4)
    ('a, b, c, d and 2 more', 'a, b')
    """
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return between.join(map(str, names[:most])) + more
