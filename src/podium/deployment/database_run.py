"""A deployed SQL text on a real database: the lists as a temporary table, the order as the database returns it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import closing
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from podium.core.errors import ParameterError
from podium.data.consensus import Consensus
from podium.data.index import ItemIndex
from podium.data.preferences import Preferences
from podium.deployment.engine_input import close_gaps, select_experts
from podium.methods.dialects.fusion_engine import ListSource

__all__ = ["Hit", "list_hits", "rank_on_database", "read_order"]

MEMORY = ":memory:"
ROWS_AT_ONCE = 200  # four values each; older versions of SQLite take at most 999 in a statement
MODULES = {"sqlite": "sqlite3", "duckdb": "duckdb", "postgres": "psycopg"}
ACCEPTED = "sqlite:///FILE, duckdb:///FILE (or :memory: as the file) and postgresql://USER@HOST/DATABASE"


class Hit(NamedTuple):
    """One row of the table that a deployed SQL text reads."""

    query: str
    expert: str
    item: str
    score: float


def rank_on_database(
    body: str, engine: str, sources: Sequence[ListSource], preferences: Preferences, connection: str
) -> Consensus:
    """The ranking that a database makes of these lists with a deployed SQL text.

    The lists go into a temporary table, which hides a table `hits` of the database and disappears with the
    connection; nothing else is read or written.
    """
    hits = list_hits(preferences, sources)
    mark = "%s" if engine == "postgres" else "?"
    row = f"({', '.join([mark] * len(Hit._fields))})"
    with closing(_connect(connection, engine)) as database:
        cursor = database.cursor()
        cursor.execute(
            "CREATE TEMPORARY TABLE hits (query TEXT, expert TEXT, item TEXT, score DOUBLE PRECISION)"
        )
        for first in range(0, len(hits), ROWS_AT_ONCE):
            several = hits[first : first + ROWS_AT_ONCE]
            values = ", ".join([row] * len(several))
            cursor.execute(f"INSERT INTO hits VALUES {values}", [v for hit in several for v in hit])
        cursor.execute(body)
        return read_order(preferences.index, cursor.fetchall())


def list_hits(preferences: Preferences, sources: Sequence[ListSource]) -> list[Hit]:
    """The rows of the lists, with ids as text and experts under their names in the engine."""
    chosen = close_gaps(select_experts(preferences, sources))
    names = {str(s.expert): s.name for s in sources}
    lists, index = chosen.lists, chosen.index
    experts = [names[str(e)] for e in chosen.experts]
    queries = [str(q) for q in index.queries]
    columns = (
        lists.query_of_list[lists.list_of_row].tolist(),
        lists.expert[lists.list_of_row].tolist(),
        lists.item.tolist(),
        lists.fill_scores(index.sizes).tolist(),
    )
    return [
        Hit(queries[q], experts[e], str(index.items[i]), score)
        for q, e, i, score in zip(*columns, strict=True)
    ]


def read_order(index: ItemIndex, ranked: Iterable[tuple[Any, ...]]) -> Consensus:
    """The order of an engine as a consensus: rows of a query and an item, those of a query best first.

    The score of an item is the number of items of its query from its place down; an item that the engine did
    not return has 0.
    """
    queries = [str(index.queries[q]) for q in index.query_of_slot.tolist()]
    slots = {(q, str(i)): slot for slot, (q, i) in enumerate(zip(queries, index.items, strict=True))}
    sizes = dict(zip(map(str, index.queries), index.sizes.tolist(), strict=True))
    scores = np.zeros(len(index.items))
    for query, item, *_ in ranked:
        scores[slots[str(query), str(item)]] = sizes[str(query)]
        sizes[str(query)] -= 1
    return Consensus.from_scores(index, scores)


def _connect(connection: str, engine: str) -> Any:
    scheme, mark, place = connection.partition("://")
    named = {"postgresql": "postgres"}.get(scheme, scheme)
    if not mark or named not in MODULES:
        raise ParameterError(f"no database can be reached by {connection!r}; accepted: {ACCEPTED}")
    if named != engine:
        raise ParameterError(f"{connection} is a database of {named}, and the configuration is for {engine}")
    try:
        module = import_module(MODULES[named])
    except ImportError:
        name = MODULES[named]
        raise ParameterError(f"{connection} needs the package {name}: pip install {name}") from None
    file = place.removeprefix("/")
    if named != "postgres" and file != MEMORY and not Path(file).is_file():
        raise ParameterError(f"there is no database {file}; give a file that exists, or {MEMORY}")
    try:
        return module.connect(connection if named == "postgres" else file)
    except module.Error as error:
        problem = (str(error).splitlines() or [type(error).__name__])[0]
        raise ParameterError(f"cannot open {connection}: {problem}") from None
