"""The peers that take tables: a polars expression, and SQL in DuckDB, chDB and DataFusion, all with all threads."""

from __future__ import annotations

from typing import Any

import numpy as np
from check import Ranking
from peers import Peer
from synthetic import Runs, rows


def _narrow(made: Runs) -> dict[str, np.ndarray]:
    """The flat columns with 32-bit integers, which the engines like better."""
    return {k: v if v.dtype.kind == "f" else v.astype(np.int32) for k, v in rows(made).items()}


class Polars(Peer):
    name, package = "polars", "polars"
    methods = ("rrf", "combmnz", "borda")

    def build(self, made: Runs) -> None:
        import polars as pl

        self.frame = pl.DataFrame(_narrow(made))

    def run(self, method: str) -> Any:
        import polars as pl

        points = {"rrf": self._rrf, "combmnz": self._combmnz, "borda": self._borda}[method](
            pl, self.frame.lazy()
        )
        ordered = points.sort("query", "points", "item", descending=[False, True, False])
        return ordered.collect(engine="streaming")  # faster here than the default engine

    @staticmethod
    def _rrf(pl: Any, frame: Any) -> Any:
        return frame.group_by("query", "item").agg(points=(1 / (60 + pl.col("rank"))).sum())

    @staticmethod
    def _combmnz(pl: Any, frame: Any) -> Any:
        lists = frame.group_by("query", "expert").agg(low=pl.col("score").min(), high=pl.col("score").max())
        scaled = (pl.col("score") - pl.col("low")) / (pl.col("high") - pl.col("low"))
        joined = frame.join(lists, on=["query", "expert"])
        return joined.group_by("query", "item").agg(points=scaled.sum() * pl.len())

    @staticmethod
    def _borda(pl: Any, frame: Any) -> Any:
        """Points M - rank where listed, (M - n - 1) / 2 where not, with the sum over lists taken out."""
        lists = frame.group_by("query", "expert").agg(n=pl.len())
        queries = lists.group_by("query").agg(rows=pl.col("n").sum(), lists=pl.len())
        items = (
            frame.join(lists, on=["query", "expert"])
            .group_by("query", "item")
            .agg(part=(pl.col("n") / 2 - pl.col("rank")).sum(), count=pl.len())
        )
        size = items.group_by("query").agg(size=pl.len().cast(pl.Float64)).join(queries, on="query")
        points = (
            pl.col("part")
            + pl.col("count") * (pl.col("size") + 1) / 2
            + (pl.col("lists") * (pl.col("size") - 1) - pl.col("rows")) / 2
        )
        return items.join(size, on="query").select("query", "item", points=points)

    def answer(self, result: Any, query: int) -> Ranking:
        import polars as pl

        here = result.filter(pl.col("query") == query)
        return list(zip(here["item"].to_list(), here["points"].to_list(), strict=True))


SQL = {
    "rrf": "select query, item, sum(1::double / (60 + rank)) as points from lists group by query, item",
    "combmnz": """
        with l as (select query, expert, min(score) as low, max(score) as high
                   from lists group by query, expert)
        select query, item, sum((score - low) / (high - low)) * count(*) as points
        from lists join l using (query, expert) group by query, item""",
    "borda": """
        with l as (select query, expert, count(*)::double as n from lists group by query, expert),
             q as (select query, sum(n) as rows, count(*)::double as lists from l group by query),
             i as (select query, item, sum(n / 2 - rank) as part, count(*)::double as count
                   from lists join l using (query, expert) group by query, item),
             m as (select query, count(*)::double as size from i group by query)
        select i.query as query, item, part + count * (size + 1) / 2 + (lists * (size - 1) - rows) / 2 as points
        from i join m using (query) join q using (query)""",
}


class SqlEngine(Peer):
    """A database in this process: rows in a table of its own, `SQL` over it, an Arrow table as the answer."""

    methods = ("rrf", "combmnz", "borda")

    def query(self, text: str) -> Any:
        """The answer as an Arrow table."""
        raise NotImplementedError

    def run(self, method: str) -> Any:
        return self.query(f"{SQL[method]} order by query, points desc, item")

    def answer(self, result: Any, query: int) -> Ranking:
        query_of, item, points = (result[name].to_numpy() for name in ("query", "item", "points"))
        here = query_of == query
        return list(zip(item[here].tolist(), points[here].tolist(), strict=True))


class DuckDB(SqlEngine):
    name, package = "DuckDB", "duckdb"

    def build(self, made: Runs) -> None:
        import duckdb
        import pyarrow as pa

        self.base = duckdb.connect()
        self.base.register("given", pa.table(_narrow(made)))
        self.base.execute("create table lists as select * from given")
        self.base.unregister("given")

    def query(self, text: str) -> Any:
        return self.base.sql(text).to_arrow_table()

    def close(self) -> None:
        self.base.close()
        super().close()


class ChDB(SqlEngine):
    """ClickHouse as a library; a table with the engine Memory is the nearest to DuckDB's."""

    name, package = "chDB", "chdb"

    def build(self, made: Runs) -> None:
        import pyarrow as pa
        from chdb.session import Session

        given = pa.table(_narrow(made))  # noqa: F841  # chDB finds it by name
        self.session = Session()
        self.session.query("create table lists engine = Memory as select * from Python(given)")

    def query(self, text: str) -> Any:
        return self.session.query(text, "ArrowTable")

    def close(self) -> None:
        self.session.close()
        super().close()


class DataFusion(SqlEngine):
    name, package = "DataFusion", "datafusion"

    def build(self, made: Runs) -> None:
        import pyarrow as pa
        from datafusion import SessionContext

        self.context = SessionContext()
        self.context.from_arrow(pa.table(_narrow(made)), "given")
        self.context.sql("create table lists as select * from given").collect()
        self.context.deregister_table("given")

    def query(self, text: str) -> Any:
        return self.context.sql(text).to_arrow_table()


ENGINES: tuple[type[Peer], ...] = (DuckDB, ChDB, DataFusion, Polars)
