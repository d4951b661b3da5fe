"""Parquet settings for regrouped shards and results."""

from __future__ import annotations

from typing import Any

from podium.core.optional import require_module
from podium.scale.arrow_schema import is_text, to_plain_type

__all__ = ["UNLISTED", "build_writer_options", "declare_required", "read_unlisted"]

UNLISTED = b"podium:unlisted"  # metadata key for the interpretation of unlisted items
SOON = 1 << 16  # bytes of distinct text above which no dictionary is written: it is slow and saves nothing


def read_unlisted(schema: Any) -> Any:
    """The interpretation of unlisted items that a shard declares; None if it declares none."""
    declared = (schema.metadata or {}).get(UNLISTED)
    return None if declared is None else declared.decode()


def declare_required(table: Any) -> Any:
    """The table with columns without missing values declared as not nullable.

    Readers then skip the check for missing values, which dominates the cost for integers.
    """
    pa = require_module("pyarrow")
    kinds = [f.with_nullable(bool(c.null_count)) for f, c in zip(table.schema, table.columns, strict=True)]
    return table.cast(pa.schema(kinds, table.schema.metadata))


def build_writer_options(schema: Any, compression: str) -> dict[str, Any]:
    """Options of a Parquet writer: text as dictionaries, other columns plain, compressed where values repeat.

    Scores and numeric ids do not repeat: compressing them would dominate the run time and save little.
    """
    text = [f.name for f in schema if is_text(to_plain_type(f.type))]
    varied = {f.name for f in schema if f.name in ("item", "score") and f.name not in text}
    return {
        "compression": {f.name: "none" if f.name in varied else compression for f in schema},
        "use_dictionary": text,
        "dictionary_pagesize_limit": SOON,
        "write_statistics": ["query"],
    }
