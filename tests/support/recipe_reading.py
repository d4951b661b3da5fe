"""Reading small files of other tools in tests."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

from podium import formats
from podium.core.errors import PodiumWarning
from podium.core.registry import formats as registry
from podium.formats.base import Content
from podium.storage.files import Source


def read_records(name: str, records: list[Any], file: str = "f.jsonl", **options: Any) -> Content:
    """JSON lines read by a recipe, whose guesses are not shown."""
    text = "".join(json.dumps(record) + "\n" for record in records)
    return read_text(name, text, file, **options)


def read_text(name: str | None, text: str, file: str = "f.txt", **options: Any) -> Content:
    """A text read by a recipe, or by the one that is detected, whose guesses are not shown."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PodiumWarning)
        return formats.read([Source(file, text.encode())], name, **options)


def write_and_read(name: str, content: Content, file: str, **options: Any) -> Content:
    """The content after it was written and detected again."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PodiumWarning)
        raw = b"".join(registry.get(name)().write(content))
        return formats.read([Source(file, raw)], **options)


def list_votes(content: Content) -> list[tuple[Any, ...]]:
    """Query, winner, loser, tie, weight and side of every vote."""
    p = content.preferences
    assert p is not None
    v, items, queries = p.comparisons, p.index.items.tolist(), p.queries.tolist()
    side = [0] * len(v) if v.side is None else v.side.tolist()
    rows = zip(
        v.query_of_row.tolist(), v.winner.tolist(), v.loser.tolist(), v.tie.tolist(), v.weight.tolist(), side,
        strict=True,
    )  # fmt: skip
    return [(queries[q], items[w], items[o], tie, weight, s) for q, w, o, tie, weight, s in rows]


FILES = Path(__file__).parents[1] / "formats" / "recipes" / "files"
