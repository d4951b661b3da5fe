"""How Parquet files are written here: shards that are regrouped, and results."""

from __future__ import annotations

from typing import Any

from podium.scale.arrow_schema import is_text, to_plain_type

__all__ = ["UNLISTED", "build_writer_options", "declare_required"]

UNLISTED = b"podium:unlisted"  # what the metadata of a shard say of items that an expert does not list
SOON = (
    1 << 16
)  # bytes of different texts at which a dictionary is given up: a large one takes long and saves nothing


def declare_required(table: Any) -> Any:
    """The table with the columns in which nothing is missing declared so.

    Readers then need not look for missing values, which for whole numbers is most of their work.
    """
    import pyarrow as pa

    kinds = [f.with_nullable(bool(c.null_count)) for f, c in zip(table.schema, table.columns, strict=True)]
    return table.cast(pa.schema(kinds, table.schema.metadata))


def build_writer_options(schema: Any, compression: str) -> dict[str, Any]:
    """Options of a Parquet writer: text as dictionaries, all else as it is, compressed where values repeat.

    Scores and ids in numbers do not repeat, so that compressing them takes longer than all the rest and gains little.
    """
    text = [f.name for f in schema if is_text(to_plain_type(f.type))]
    varied = {f.name for f in schema if f.name in ("item", "score") and f.name not in text}
    return {
        "compression": {f.name: "none" if f.name in varied else compression for f in schema},
        "use_dictionary": text,
        "dictionary_pagesize_limit": SOON,
        "write_statistics": ["query"],
    }
