"""Ray and Spark, real ones on this machine: the same bytes as the local engine, also when something dies."""

from __future__ import annotations

import threading
import time

import pyarrow as pa
import pytest

from podium import scale
from podium.core.errors import InputError, MissingPackageError
from podium.scale.batch import batch_function
from podium.scale.engines import find_engine
from podium.scale.shard_job import ShardJob
from podium.storage.shards import find_shards
from shards import DiesOnce, Slow, contents, lists, shards

# the libraries' own farewells and deprecations are not ours to judge
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning"),
]


@pytest.fixture
def whole(tmp_path):
    """Shards, and what the local engine makes of them."""
    shards(tmp_path / "in", 8, queries=6)
    scale.apply("rrf", tmp_path / "in", tmp_path / "local", workers=1)
    return tmp_path


def job(folder):
    return ShardJob(batch_function("rrf"), str(folder / "out"))


def sorted_rows(table):
    return table.sort_by([("query", "ascending"), ("rank", "ascending")])


def given(count=8):
    return pa.concat_tables(lists(range(6 * k, 6 * k + 6)) for k in range(count))


def test_spark_gives_the_same_bytes(whole, spark):
    done = scale.apply("rrf", whole / "in", whole / "out", engine="spark")
    assert (done.shards, done.found) == (8, 0)
    assert contents(whole / "out") == contents(whole / "local")
    assert scale.apply("rrf", whole / "in", whole / "out", engine="spark").found == 8


def test_spark_tries_again_when_a_task_dies(whole, spark):
    work = DiesOnce(job(whole), str(whole / "marker"), "part-004")
    done = list(find_engine("spark")(work, find_shards(whole / "in"), workers=None, address=None))
    assert (whole / "marker").exists()
    assert sorted(r.name for r in done) == [f"part-{k:03d}" for k in range(8)]
    assert contents(whole / "out") == contents(whole / "local")


def test_bad_input_is_one_clear_error_and_is_not_tried_again(whole, spark):
    (whole / "in" / "zzz.run").write_text("q 1 nonsense\n")
    with pytest.raises(InputError, match=r"zzz.run:1: .*the other 8 shards are processed"):
        scale.apply("rrf", whole / "in", whole / "out", engine="spark", format="trec")
    assert contents(whole / "out") == contents(whole / "local")


def test_the_function_in_map_in_arrow_and_apply_in_arrow(whole, spark):
    """As docs/scale.md shows it."""
    rrf = batch_function("rrf")
    frame = spark.read.parquet(str(whole / "in"))
    schema = "query string, item string, rank int, score double, tied boolean"
    expected = sorted_rows(rrf(given())).to_pydict()
    grouped = frame.repartition(3, "query").sortWithinPartitions("query")
    assert sorted_rows(grouped.mapInArrow(rrf, schema).toArrow()).to_pydict() == expected
    alone = frame.groupBy("query").applyInArrow(rrf, schema).toArrow()
    assert sorted_rows(alone).to_pydict() == expected


def test_ray_gives_the_same_bytes(whole, cluster):
    done = scale.apply("rrf", whole / "in", whole / "out", engine="ray")
    assert (done.shards, done.found) == (8, 0)
    assert contents(whole / "out") == contents(whole / "local")
    _ray_moves_rows_too(whole)


def _ray_moves_rows_too(whole):
    """`map_batches` with the function itself, as docs/scale.md shows it."""
    import ray

    rrf = batch_function("rrf")
    data = ray.data.from_arrow([lists(range(6 * k, 6 * k + 6)) for k in range(8)])
    made = data.map_batches(rrf, batch_format="pyarrow", batch_size=None).take_all()
    alone = data.groupby("query", num_partitions=2).map_groups(rrf, batch_format="pyarrow").take_all()
    expected = sorted_rows(rrf(given())).to_pylist()
    for found in (made, alone):
        assert sorted(found, key=lambda r: (r["query"], r["rank"])) == expected


def test_ray_goes_on_when_a_worker_and_then_a_node_are_lost(whole, cluster):
    made, nodes = cluster
    shards(whole / "in", 24, queries=6)
    scale.apply("rrf", whole / "in", whole / "local", workers=1)
    work = DiesOnce(Slow(job(whole), 0.4), str(whole / "marker"), "part-005")

    finished = []

    def take_away():
        while len(contents(whole / "out")) < 4:
            time.sleep(0.02)
        finished.append(len(contents(whole / "out")))
        made.remove_node(nodes[0], allow_graceful=False)

    thief = threading.Thread(target=take_away)
    thief.start()
    done = list(find_engine("ray")(work, find_shards(whole / "in"), workers=None, address=None))
    thief.join()
    assert (whole / "marker").exists()
    assert 4 <= finished[0] < 20  # it was taken away in the middle
    assert sorted(r.name for r in done) == [f"part-{k:03d}" for k in range(24)]
    assert contents(whole / "out") == contents(whole / "local")


def test_a_library_that_is_missing_is_named(monkeypatch, tmp_path):
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    with pytest.raises(
        MissingPackageError, match=r"the engine ray needs ray, .*pip install 'podium-rank\[ray\]'"
    ):
        scale.apply("rrf", tmp_path, tmp_path / "out", engine="ray")
