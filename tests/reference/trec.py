"""A TREC run read with dictionaries and sorting only; the twin of the compiled reader."""

from __future__ import annotations

import itertools
import re


def read_run(text: str, order: str = "auto") -> dict[str, dict[str, list[tuple[str, int, float]]]]:
    """query -> tag -> [(item, rank, score)] in the order of the list; ranks that disagree with scores are replaced."""
    lists: dict[str, dict[str, list[tuple[str, int, float]]]] = {}
    for line in text.split("\n"):
        if fields := _fields(line):
            query, _, item, rank, score, tag = fields
            lists.setdefault(query, {}).setdefault(tag, []).append((item, int(rank), float(score)))
    for by_tag in lists.values():
        for tag, rows in by_tag.items():
            by_tag[tag] = _settled(rows, order)
    return lists


def _fields(line: str) -> list[str]:
    return [field for field in re.split("[ \t\r\v\f]+", line) if field]


def _settled(rows: list[tuple[str, int, float]], order: str) -> list[tuple[str, int, float]]:
    rows = sorted(rows, key=lambda r: (r[1], r[0].encode()))
    agree = all(r >= 1 for _, r, _ in rows) and all(
        (a[1] < b[1] and a[2] >= b[2]) or (a[1] == b[1] and a[2] == b[2]) for a, b in itertools.pairwise(rows)
    )
    if order == "rank" or (order == "auto" and agree):
        return rows
    return sorted(
        ((item, 1 + sum(other[2] > score for other in rows), score) for item, _, score in rows),
        key=lambda r: (r[1], r[0].encode()),
    )


def arrivals(text: str) -> dict[str, list[str]]:
    """query -> its items in the order they first occur."""
    found: dict[str, dict[str, None]] = {}
    for line in text.split("\n"):
        if fields := _fields(line):
            found.setdefault(fields[0], {})[fields[2]] = None
    return {query: list(items) for query, items in found.items()}
