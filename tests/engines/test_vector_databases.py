"""Real vector databases run the configuration that `podium deploy` writes, and rank as the emulator says."""

from __future__ import annotations

import pytest

from engines.order_agreement import assert_same_orders
from engines.random_inputs import INPUTS, sample_batches
from engines.vector_drivers import run_lancedb, run_milvus, run_qdrant

HELP = "{} is not installed here; `make test-engines` has it"
pytestmark = pytest.mark.filterwarnings("ignore")  # what these packages warn of is theirs


def test_qdrant(tmp_path):
    pytest.importorskip("qdrant_edge", reason=HELP.format("qdrant-edge-py"))
    methods = (
        "qdrant_rrf(k={k})",
        "qdrant_dbsf",
        "qdrant_formula",
        "rrf(k={k})",
        "dbsf",
        "combsum(normalizer='none')",
    )
    for number, batch in enumerate(sample_batches("qdrant", methods)):
        numbered, rankings = run_qdrant(batch, tmp_path / str(number))
        assert_same_orders(numbered, numbered.to_numbered_preferences(), rankings)


@pytest.fixture
def milvus(tmp_path):
    """Milvus Lite in this process."""
    pytest.importorskip("milvus_lite", reason=HELP.format("milvus-lite"))
    pymilvus = pytest.importorskip("pymilvus", reason=HELP.format("pymilvus"))
    client = pymilvus.MilvusClient(str(tmp_path / "milvus.db"))
    yield client
    client.close()


@pytest.mark.parametrize(
    ("scores", "share", "methods"),
    [
        ("any", 0.75, ("milvus_rrf(k={k})", "milvus_weighted", "milvus_weighted(metric='none')", "rrf(k={k})",
                       "combsum(normalizer='none')")),
        ("cosine", 0.25, ("milvus_weighted(metric='COSINE')", "milvus_weighted(metrics={'bm25': 'COSINE'})")),
    ],
    ids=["inner products", "cosines"],
)  # fmt: skip
def test_milvus(milvus, scores, share, methods):
    for batch in sample_batches("milvus", methods, scores=scores, inputs=round(share * INPUTS)):
        numbered, rankings = run_milvus(batch, milvus)
        assert_same_orders(numbered, numbered.to_numbered_preferences(), rankings)


def test_lancedb(tmp_path):
    lancedb = pytest.importorskip("lancedb", reason=HELP.format("lancedb"))
    database = lancedb.connect(tmp_path)
    for batch in sample_batches("lancedb", ("lancedb_rrf(k={k})", "rrf(k={k})")):
        numbered, rankings = run_lancedb(batch, database)
        assert_same_orders(numbered, numbered.to_numbered_preferences(), rankings)
