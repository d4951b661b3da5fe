"""Real frameworks run the Python that `podium deploy` writes, and rank as the emulator says."""

from __future__ import annotations

import pytest

from engines.framework_drivers import run_haystack, run_langchain, run_llamaindex, run_pyterrier
from engines.order_agreement import assert_same_orders
from engines.random_inputs import sample_batches

HELP = "{} is not installed here; `make test-engines` has it"
pytestmark = pytest.mark.filterwarnings("ignore")  # what these packages warn of is theirs
FRAMEWORKS = {
    "langchain": ("langchain_classic", run_langchain, ("langchain_rrf(k={k})", "rrf(k={k})"), None),
    "llamaindex": ("llama_index.core", run_llamaindex, ("llamaindex_rrf", "llamaindex_dist_based", "rrf(k=59)"), 10),
    "haystack": ("haystack", run_haystack, ("haystack_rrf", "haystack_dbsf", "rrf(k=60)", "rrf(k={k})"), 10),
    "pyterrier": ("pyterrier_alpha", run_pyterrier, ("pyterrier_rrf(k={k})", "rrf(k={k})"), 10),
}  # fmt: skip


@pytest.mark.parametrize("engine", FRAMEWORKS)
def test_a_framework_ranks_as_its_emulator(engine):
    module, run, methods, limit = FRAMEWORKS[engine]
    pytest.importorskip(module, reason=HELP.format(module))
    for batch in sample_batches(engine, methods):
        # a retriever returns an order: the places of the list are its ranks, also where scores are equal
        assert_same_orders(batch, batch.to_numbered_preferences(), run(batch), limit=limit)
