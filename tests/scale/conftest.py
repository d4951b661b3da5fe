"""Real clusters on this machine, started once; tests that need them say how to get the library."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

HELP = "{} is not installed here; `make test-scale` has it"


@pytest.fixture(scope="session")
def importable():
    """Workers must find the helpers of the tests."""
    with pytest.MonkeyPatch.context() as patch:
        here = str(Path(__file__).resolve().parent.parent / "support")
        patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, (here, os.environ.get("PYTHONPATH")))))
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("PODIUM_THREADS", "1")
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_DATA_USAGE_DISABLED", "1")
        yield


@pytest.fixture
def cluster(importable):
    """A Ray cluster of a head and two nodes, all on this machine; nodes can be taken away."""
    ray = pytest.importorskip("ray", reason=HELP.format("ray"))
    from ray.cluster_utils import Cluster

    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    nodes = [made.add_node(num_cpus=1) for _ in range(2)]
    ray.init(address=made.address, log_to_driver=False)
    yield made, nodes
    ray.shutdown()
    made.shutdown()


@pytest.fixture(scope="session")
def spark(importable):
    """A Spark session on two cores that tries a task four times."""
    pytest.importorskip("pyspark", reason=HELP.format("pyspark"))
    from pyspark.sql import SparkSession

    build = (
        SparkSession.builder.master("local[2,4]").appName("podium-tests").config("spark.ui.enabled", "false")
    )
    build = build.config("spark.sql.shuffle.partitions", "3").config("spark.driver.bindAddress", "127.0.0.1")
    session = build.config("spark.driver.host", "127.0.0.1").getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()
