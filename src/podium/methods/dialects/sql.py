"""SQL databases: reciprocal rank fusion and sums of scores as one query over a table of hits."""

from __future__ import annotations

from typing import ClassVar

from podium.core.errors import ParameterError
from podium.methods.dialects.fusion_engine import EngineForm, FusionEngine
from podium.methods.dialects.textbook import Rewriting, Textbook
from podium.methods.positional import ReciprocalRankFusion
from podium.methods.scores import CombSum

__all__ = ["ClickHouse", "DuckDb", "Postgres", "SqlEngine", "Sqlite"]

NORMALIZERS = ("minmax", "none")
DIGITS = 12  # decimals in which scores are compared: sums taken in another order differ in their last bits


class SqlEngine(FusionEngine):
    """One text for all databases; it reads `hits(query, expert, item, score)` and ranks each list by score."""

    syntax = "sql"
    was_run = True
    first = "rrf"
    textbook = ("combsum", "rrf")
    rounding: ClassVar[str] = f"ROUND(score, {DIGITS})"
    item: ClassVar[str] = "item"  # in an order by code points

    def rewrite(self, rule: Textbook) -> Rewriting:
        if rule.kind == "ranks":
            return Rewriting(ReciprocalRankFusion(k=rule.k))
        if rule.normalizer in NORMALIZERS:
            return Rewriting(CombSum(normalizer=rule.normalizer))
        reason = f"the SQL text has the normalizers {' and '.join(NORMALIZERS)}, not {rule.normalizer}"
        return Rewriting(CombSum(), reason)

    def write_config(self, form: EngineForm, depth: int) -> str:
        names = [s.name for s in form.sources]
        if any("\0" in name for name in names):
            raise ParameterError("the name of an expert contains a NUL character; choose another name")
        quoted = ["'" + name.replace("'", "''") + "'" for name in names]
        weights = " UNION ALL ".join(
            f"SELECT {name} AS expert, {float(w)!r} AS weight"
            for name, w in zip(quoted, form.weights, strict=True)
        )
        method = form.method
        if isinstance(method, ReciprocalRankFusion):
            term = f"w.weight / ({float(method.k)!r} + r.place)"
        elif isinstance(method, CombSum) and method.normalizer == "none":
            term = "w.weight * r.score"
        else:
            term = (
                "w.weight * CASE WHEN r.high > r.low THEN (r.score - r.low) / (r.high - r.low) ELSE 1.0 END"
            )
        return f"""WITH weights AS ({weights}),
ranked AS (
    SELECT query, expert, item, score,
           RANK() OVER (PARTITION BY query, expert ORDER BY score DESC) AS place,
           ROW_NUMBER() OVER (PARTITION BY query, expert ORDER BY score DESC, {self.item}) AS position
    FROM hits
),
ranges AS (
    SELECT query, expert, item, score, place,
           MIN(score) OVER (PARTITION BY query, expert) AS low, MAX(score) OVER (PARTITION BY query, expert) AS high
    FROM ranked WHERE position <= {depth}
),
fused AS (
    SELECT r.query AS query, r.item AS item, SUM({term}) AS score
    FROM ranges r JOIN weights w ON w.expert = r.expert GROUP BY r.query, r.item
)
SELECT query, item, score FROM fused ORDER BY query, {self.rounding} DESC, {self.item}
"""


class Postgres(SqlEngine):
    """PostgreSQL, with or without pgvector."""

    name = "postgres"
    title = "PostgreSQL"
    # PostgreSQL rounds only numeric values, and orders text by the locale unless told otherwise
    rounding = f"ROUND(score::numeric, {DIGITS})"
    item = 'item COLLATE "C"'


class DuckDb(SqlEngine):
    """DuckDB."""

    name = "duckdb"
    title = "DuckDB"


class Sqlite(SqlEngine):
    """SQLite 3.25 or later."""

    name = "sqlite"
    title = "SQLite"


class ClickHouse(SqlEngine):
    """ClickHouse."""

    name = "clickhouse"
    title = "ClickHouse"
