"""The local engine: results as in memory, written whole, found again, done again where something changed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import podium
from podium import Preferences, formats, scale
from podium.cli import program
from podium.core.errors import InputError, MissingPackageError, NotFittedError, ParameterError, PodiumWarning
from podium.methods.learned.lambdarank import LambdaRank
from podium.scale import engines
from podium.scale.batch import batch_function
from podium.scale.engines import find_engine
from podium.scale.shard_job import ShardJob
from podium.scale.shard_records import load_records
from podium.storage.shards import find_shards
from shards import DiesOnce, contents, lists, results, shards


def run(*words):
    return CliRunner().invoke(program, [str(w) for w in words])


def ranked(method, table):
    found = podium.make(method).aggregate(Preferences.from_frame(table)).to_frame()
    return found.set_column(2, "rank", found["rank"].cast(pa.int32()))


@pytest.mark.parametrize("kind", ["text", "integers", "dictionaries"])
def test_shards_give_the_results_of_all_rows_in_memory(tmp_path, kind):
    shards(tmp_path / "in", 3, ids=kind)
    done = scale.apply("rrf", tmp_path / "in", tmp_path / "out", workers=1, rows=50)
    table = pa.concat_tables(
        lists(range(20 * k, 20 * k + 20), ids=kind.replace("dictionaries", "text")) for k in range(3)
    )
    expected = ranked("rrf", table)
    got = results(tmp_path / "out")
    for name in expected.column_names:
        assert got[name].to_pylist() == expected[name].to_pylist()
    assert (done.shards, done.found, done.rows, done.queries) == (3, 0, len(table), 60)
    assert done.results == len(got)


def test_the_number_of_workers_and_of_rows_at_a_time_change_no_byte_of_the_answers(tmp_path):
    shards(tmp_path / "in", 4)
    scale.apply("rrf", tmp_path / "in", tmp_path / "one", workers=1)
    scale.apply("rrf", tmp_path / "in", tmp_path / "two", workers=2)
    scale.apply("rrf", tmp_path / "in", tmp_path / "small", workers=1, rows=30)
    assert contents(tmp_path / "one") == contents(tmp_path / "two")
    assert results(tmp_path / "one").equals(results(tmp_path / "small"))


def test_what_is_done_is_found_and_only_the_new_and_the_changed_is_computed(tmp_path):
    shards(tmp_path / "in", 3)
    scale.apply("rrf", tmp_path / "in", tmp_path / "out", workers=1)
    before = contents(tmp_path / "out")
    times = {p: p.stat().st_mtime_ns for p in (tmp_path / "out").glob("*.parquet")}
    again = scale.apply("rrf", tmp_path / "in", tmp_path / "out", workers=1)
    assert (again.found, again.rows) == (3, 0)
    shards(tmp_path / "in", 4)  # one more; the others have the same bytes under a new date
    more = scale.apply("rrf", tmp_path / "in", tmp_path / "out", workers=1)
    assert (more.found, more.queries) == (3, 20)
    assert {p: p.stat().st_mtime_ns for p in times} == times
    pq.write_table(lists(range(20, 45), seed=9), tmp_path / "in" / "part-001.parquet")
    with pytest.raises(InputError, match=r"is in .*part-00[12].parquet and in"):
        scale.apply("rrf", tmp_path / "in", tmp_path / "out", workers=1)
    pq.write_table(lists(range(20, 40), seed=9), tmp_path / "in" / "part-001.parquet")
    changed = scale.apply("rrf", tmp_path / "in", tmp_path / "out", workers=1)
    assert [r.name for r in changed.records if r.fresh] == ["part-001"]
    after = contents(tmp_path / "out")
    assert [n for n in before if before[n] != after[n]] == ["part-001.parquet"]


def test_results_that_are_lost_or_cut_short_are_made_again(tmp_path):
    shards(tmp_path / "in", 3)
    scale.apply("rrf", tmp_path / "in", tmp_path / "out", workers=1)
    before = contents(tmp_path / "out")
    (tmp_path / "out" / "part-000.parquet").unlink()
    (tmp_path / "out" / "part-001.parquet").write_bytes(before["part-001.parquet"][:50])
    (tmp_path / "out" / "_podium" / "shards" / "part-002.json").write_text("{")
    assert scale.apply("rrf", tmp_path / "in", tmp_path / "out", workers=1).found == 0
    assert contents(tmp_path / "out") == before


def test_a_folder_of_other_results_is_not_overwritten_unasked(tmp_path):
    shards(tmp_path / "in", 2)
    scale.apply("rrf", tmp_path / "in", tmp_path / "out", workers=1)
    with pytest.raises(ParameterError, match="contains results of rrf; choose another"):
        scale.apply("borda", tmp_path / "in", tmp_path / "out", workers=1)
    with pytest.raises(ParameterError, match="results with other options"):
        scale.apply("rrf", tmp_path / "in", tmp_path / "out", workers=1, top=3)
    assert scale.apply("borda", tmp_path / "in", tmp_path / "out", workers=1, overwrite=True).found == 0
    with pytest.raises(ParameterError, match="is in the output folder"):
        scale.apply("rrf", tmp_path / "in", tmp_path)
    with pytest.raises(ParameterError, match="other Parquet files"):
        scale.apply("rrf", tmp_path / "out", tmp_path / "in")
    with pytest.warns(PodiumWarning, match="also has results of 1 shards that were not given"):
        scale.apply("borda", tmp_path / "in" / "part-000.parquet", tmp_path / "out", workers=1)


STOPPED = """
import sys, time
from podium import scale
from podium.scale.shard_job import ShardJob
run = ShardJob.__call__
ShardJob.__call__ = lambda self, shard: (time.sleep(0.05), run(self, shard))[1]
scale.apply("rrf", sys.argv[1], sys.argv[2], workers=1, rows=40)
"""


def test_killed_in_the_middle_and_run_again_gives_the_same_bytes(tmp_path):
    shards(tmp_path / "in", 30, queries=5)
    scale.apply("rrf", tmp_path / "in", tmp_path / "whole", workers=1, rows=40)
    out = tmp_path / "out"
    process = subprocess.Popen([sys.executable, "-c", STOPPED, str(tmp_path / "in"), str(out)])
    while len(list(out.glob("*.parquet"))) < 4:
        assert process.poll() is None
        time.sleep(0.001)
    process.kill()
    process.wait()
    there = contents(out)
    whole = contents(tmp_path / "whole")
    assert 4 <= len(there) < 30
    assert all(whole[name] == content for name, content in there.items())  # whole, or not there
    again = scale.apply("rrf", tmp_path / "in", out, workers=1, rows=40)
    assert 3 <= again.found <= len(there)
    assert contents(out) == whole


def test_a_worker_that_is_killed_is_replaced(tmp_path):
    shards(tmp_path / "in", 6)
    scale.apply("rrf", tmp_path / "in", tmp_path / "whole", workers=1)
    job = ShardJob(batch_function("rrf"), str(tmp_path / "out"))
    work = DiesOnce(job, str(tmp_path / "marker"), "part-002")
    done = list(find_engine("local")(work, find_shards(tmp_path / "in"), workers=2, address=None))
    assert (tmp_path / "marker").exists()
    assert sorted(r.name for r in done) == [f"part-{k:03d}" for k in range(6)]
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")


def test_a_query_in_two_shards_is_refused_and_can_be_regrouped(tmp_path):
    table = lists(range(30))
    (tmp_path / "in").mkdir()
    for k in range(4):  # rows dealt round: every query is everywhere
        pq.write_table(table.take(list(range(k, len(table), 4))), tmp_path / "in" / f"{k}.parquet")
    with pytest.raises(InputError, match=r"query 'q-000\d\d' is in .*regroup"):
        scale.apply("rrf", tmp_path / "in", tmp_path / "out")
    names = scale.regroup(tmp_path / "in", tmp_path / "grouped", shards=3)
    assert len(names) == 3
    scale.apply("rrf", names, tmp_path / "out", workers=1)
    order = [("query", "ascending"), ("rank", "ascending")]
    expected = ranked("rrf", table).sort_by(order)
    assert results(tmp_path / "out").sort_by(order).to_pydict() == expected.to_pydict()
    assert scale.regroup(tmp_path / "in", tmp_path / "grouped", shards=3) == names  # found
    pq.write_table(table.take(list(range(len(table) - 1, -1, -1))), tmp_path / "all.parquet")
    scale.regroup(tmp_path / "all.parquet", tmp_path / "again", shards=3)
    assert contents(tmp_path / "again") == contents(tmp_path / "grouped")  # the rows decide, not their order
    with pytest.raises(ParameterError, match="is not empty"):
        scale.regroup(tmp_path / "in", tmp_path / "grouped", shards=2)


def test_a_query_that_comes_back_in_a_shard_is_refused_by_name(tmp_path):
    table = lists(range(3))
    (tmp_path / "in").mkdir()
    pq.write_table(lists(range(3, 6)), tmp_path / "in" / "good.parquet")
    pq.write_table(pa.concat_tables([table.slice(5), table.slice(0, 5)]), tmp_path / "in" / "bad.parquet")
    with pytest.raises(
        InputError, match=r"bad.parquet: query 'q-00000' reappears.*the other 1 shards are processed"
    ):
        scale.apply("rrf", tmp_path / "in", tmp_path / "out", workers=1)
    assert [r.name for r in load_records(str(tmp_path / "out"))] == ["good"]


def test_partitions_are_folders(tmp_path):
    table = lists(range(20))
    lang = [
        None if q.endswith("0") else ("a/b c" if q.endswith("1") else "de")
        for q in table["query"].to_pylist()
    ]
    (tmp_path / "in").mkdir()
    pq.write_table(table.append_column("lang", pa.array(lang)), tmp_path / "in" / "x.parquet")
    scale.apply("rrf", tmp_path / "in", tmp_path / "out", partition_by=["lang"], workers=1)
    names = ["lang=__HIVE_DEFAULT_PARTITION__", "lang=a%2Fb%20c", "lang=de"]
    assert list(contents(tmp_path / "out")) == [f"{n}/x.parquet" for n in names]
    hive = pads.partitioning(pa.schema([("lang", pa.string())]), flavor="hive")
    read = pads.dataset(tmp_path / "out", partitioning=hive).to_table()  # Arrow knows such folders
    plain = scale.batch_function("rrf", keep=["lang"])(pq.read_table(tmp_path / "in" / "x.parquet"))
    order = [("query", "ascending"), ("rank", "ascending")]
    assert (
        read.sort_by(order)
        .select(["query", "item", "rank", "score", "tied"])
        .equals(plain.sort_by(order).drop_columns(["lang"]))
    )
    assert read.sort_by(order)["lang"].to_pylist() == plain.sort_by(order)["lang"].to_pylist()
    pq.write_table(table.append_column("lang", pa.array(["de"] * len(table))), tmp_path / "in" / "x.parquet")
    scale.apply("rrf", tmp_path / "in", tmp_path / "out", partition_by=["lang"], workers=1)
    assert list(contents(tmp_path / "out")) == ["lang=de/x.parquet"]  # what is no longer true is gone


def test_folders_of_the_input_stay(tmp_path):
    shards(tmp_path / "in" / "day=1", 1)
    (tmp_path / "in" / "day=2").mkdir()
    pq.write_table(lists(range(50, 60)), tmp_path / "in" / "day=2" / "part-000.parquet")
    scale.apply("rrf", tmp_path / "in", tmp_path / "out", workers=1)
    assert list(contents(tmp_path / "out")) == ["day=1/part-000.parquet", "day=2/part-000.parquet"]


def test_empty_shards_give_empty_results(tmp_path):
    shards(tmp_path / "in", 1)
    pq.write_table(lists(range(1)).slice(0, 0), tmp_path / "in" / "none.parquet")
    scale.apply("rrf", tmp_path / "in", tmp_path / "out", workers=1)
    assert pq.read_table(tmp_path / "out" / "none.parquet").num_rows == 0
    schemas = [pq.read_schema(p) for p in sorted((tmp_path / "out").glob("*.parquet"))]
    assert schemas[0].equals(schemas[1])


def test_run_files_are_shards_too(tmp_path):
    (tmp_path / "in").mkdir()
    for k in range(2):
        rows = [(q, e, r, d) for q in range(3) for e in "ab" for r, d in enumerate("xyz", 1)]
        text = "".join(f"q{k}{q} Q0 {d} {r} {9 - r} {e}\n" for q, e, r, d in rows)
        (tmp_path / "in" / f"{k}.run").write_text(text)
    scale.apply("rrf", tmp_path / "in", tmp_path / "out", workers=1)
    expected = podium.make("rrf").aggregate(podium.read(sorted((tmp_path / "in").glob("*.run"))).preferences)
    got = results(tmp_path / "out")
    assert got["item"].to_pylist() == expected.to_frame()["item"].to_pylist()
    assert [str(f.type) for f in got.schema] == ["string", "string", "int32", "double", "bool"]


def test_runs_of_one_engine_each_are_refused_and_can_be_regrouped(tmp_path):
    for e in "ab":
        (tmp_path / f"{e}.run").write_text(
            "".join(f"q{q} Q0 d{r} {r} {9 - r} {e}\n" for q in range(5) for r in (1, 2))
        )
    runs = [tmp_path / "a.run", tmp_path / "b.run"]
    with pytest.raises(InputError, match="regroup"):
        scale.apply("rrf", runs, tmp_path / "out", workers=1)
    assert contents(tmp_path / "out") == {}
    done = run(
        "batch", "rrf", *runs, tmp_path / "new", "--regroup", tmp_path / "grouped", "--engine", "local"
    )
    assert done.exit_code == 0, done.output
    assert "10 results" in done.stderr


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"PAR1 is not enough", "not a Parquet file"), (b"", "not a Parquet file")],
)
def test_files_that_are_not_what_they_seem(tmp_path, content, message):
    (tmp_path / "x.parquet").write_bytes(content)
    with pytest.raises(InputError, match=f"x.parquet: .*{message}"):
        scale.apply("rrf", tmp_path / "x.parquet", tmp_path / "out", workers=1)


TOY_ENGINE = """
def run(work, shards, *, workers=None, address=None):
    for shard in reversed(shards):
        yield work(shard)
"""


def test_an_engine_is_one_file(tmp_path, monkeypatch):
    """A module in the folder of the engines is known by its name, and gives the same bytes as any other."""
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "toy_engine.py").write_text(TOY_ENGINE)
    (tmp_path / "more" / "lost_engine.py").write_text("LIBRARY = 'no_such_library'\nrun = None\n")
    monkeypatch.setattr(engines, "__path__", [*engines.__path__, str(tmp_path / "more")])
    assert engines.list_engines() == ["local", "lost", "ray", "spark", "toy"]
    shards(tmp_path / "in", 3)
    done = scale.apply("rrf", tmp_path / "in", tmp_path / "toy", engine="toy")
    assert (done.shards, done.queries) == (3, 60)
    scale.apply("rrf", tmp_path / "in", tmp_path / "local", workers=1)
    assert contents(tmp_path / "toy") == contents(tmp_path / "local")
    with pytest.raises(MissingPackageError, match=r"needs no_such_library.*podium-rank\[lost\]"):
        scale.apply("rrf", tmp_path / "in", tmp_path / "out", engine="lost")
    code = f"from podium.scale import engines; engines.__path__.append({str(tmp_path / 'more')!r})\n"
    code += f"from podium.cli import program; program(['apply', 'rrf', {str(tmp_path / 'in')!r}, '--engine', 'toy', "
    code += f"'-o', {str(tmp_path / 'cli')!r}])"
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
    assert contents(tmp_path / "cli") == contents(tmp_path / "local")


def test_two_shards_of_one_name_and_no_shards(tmp_path):
    shards(tmp_path / "in", 1)
    pq.write_table(lists(range(90, 91)), tmp_path / "in" / "part-000.pq")
    with pytest.raises(InputError, match="would share a name; rename"):
        scale.apply("rrf", tmp_path / "in", tmp_path / "out")
    (tmp_path / "none").mkdir()
    with pytest.raises(InputError, match="no shards"):
        scale.apply("rrf", tmp_path / "none", tmp_path / "out")
    with pytest.raises(InputError, match="no such file"):
        scale.apply("rrf", tmp_path / "nowhere.parquet", tmp_path / "out")
    with pytest.raises(ParameterError, match=r"unknown engine 'rey'.*ray"):
        scale.apply("rrf", tmp_path / "in", tmp_path / "out", engine="rey")
    with pytest.raises(ParameterError, match="local engine has no address"):
        scale.apply("rrf", tmp_path / "in" / "part-000.pq", tmp_path / "out", address="x")


def test_the_command_line(tmp_path):
    folder = shards(tmp_path / "in", 3)
    parts = sorted(folder.glob("*.parquet"))
    assert run("batch", "rrf", *parts, f"{tmp_path}/out/", "--workers", 1).exit_code == 0
    done = run(
        "batch", "--engine", "local", "--json", *parts, tmp_path / "out"
    )  # a shard first: the method is rrf
    document = json.loads(done.stdout)
    assert (document["method"], document["found"], document["shards"]) == ("rrf", 3, 3)
    assert json.loads(run("batch", "--json", folder, f"{tmp_path}/out/").stdout)["found"] == 3
    podium.save(podium.make("rrf(k=7)"), tmp_path / "m.podium")
    done = run("batch", tmp_path / "m.podium", folder, "-o", tmp_path / "k7", "--engine", "local", "--top", 2)
    assert "rrf(k=7): 3 shards processed" in done.stderr
    assert max(results(tmp_path / "k7")["rank"].to_pylist()) == 2
    bad = run("batch", tmp_path / "m.podium", folder, tmp_path / "out", "--engine", "local")
    assert bad.exit_code == 2
    assert "contains results of rrf; choose another folder" in bad.stderr
    assert "give the shards" in run("batch", "rrf", f"{tmp_path}/o/", "--engine", "local").stderr
    assert Path(tmp_path / "out" / "_podium").is_dir()
    assert os.listdir(tmp_path / "k7")


@pytest.mark.parametrize("more", [(), ("--engine", "local"), ("--workers", 1)])
def test_apply_still_ranks_shards_and_names_the_verb_that_does(tmp_path, more):
    folder = shards(tmp_path / "in", 2)
    now = run("batch", "rrf", folder, f"{tmp_path}/new/", *more)
    before = run("apply", "rrf", folder, f"{tmp_path}/old/", *more)
    assert (now.exit_code, before.exit_code) == (0, 0)
    assert "deprecated; use podium batch" in before.stderr
    assert "deprecated" not in now.stderr
    assert contents(tmp_path / "new") == contents(tmp_path / "old")
    refused = run("apply", "rrf", folder, f"{tmp_path}/o/", "--to", "trec").stderr
    assert "--to cannot be used with shards" in refused


def test_apply_reads_files_and_sends_methods_elsewhere(tmp_path):
    (tmp_path / "a.run").write_text("q Q0 a 1 1 x\n")
    said = run("apply", "rrf", tmp_path / "a.run").stderr
    assert "use podium fuse -m 'rrf', or, for shards, podium batch" in said
    shown = run("apply", "--help").stdout
    assert "--engine" not in shown
    assert "--engine" in run("batch", "--help").stdout


def test_a_model_over_item_features_ranks_shards_of_them(tmp_path):
    rng = np.random.default_rng(3)
    query, item = np.repeat(np.arange(9), 5), np.tile(np.arange(5), 9)
    columns = {"query": [f"q{q}" for q in query], "item": [f"d{i}" for i in item], "grade": (item == 2) * 1.0}
    table = pa.table(columns | {"a": item * 1.0 + rng.normal(size=45), "b": rng.normal(size=45)})
    (tmp_path / "in").mkdir()
    for k in range(3):
        pq.write_table(table.slice(15 * k, 15), tmp_path / "in" / f"{k}.parquet")
    pq.write_table(table.slice(0, 0), tmp_path / "in" / "none.parquet")
    whole = formats.read(str(tmp_path / "in" / "0.parquet"), kind="features")
    model = LambdaRank(passes=3).fit(whole.features, whole.labels)
    done = scale.apply(model, tmp_path / "in", tmp_path / "out", workers=1)
    assert (done.shards, done.queries, done.rows) == (4, 9, 45)
    assert scale.apply(model, tmp_path / "in", tmp_path / "out", workers=1).found == 4
    expected = [
        model.rank(formats.read(str(tmp_path / "in" / f"{k}.parquet"), kind="features").features).to_frame()
        for k in range(3)
    ]
    assert results(tmp_path / "out").to_pylist() == pa.concat_tables(expected).to_pylist()
    with pytest.raises(ParameterError, match="ranks by item features; give shards"):
        batch_function(model)(table)
    shards(tmp_path / "lists", 1)
    with pytest.raises(InputError, match="the feature 'expert' is 'engine 0'"):
        scale.apply(model, tmp_path / "lists", tmp_path / "other", workers=1)


def test_a_worker_does_not_import_pandas(tmp_path):
    """pyarrow would, for every array from numpy or to it, and every worker would wait for it."""
    shards(tmp_path / "in", 1, ids="integers")
    code = (
        "import sys; from podium.scale.shard_job import ShardJob; from podium.storage.shards import find_shards\n"
        "from podium.scale import batch_function\n"
        f"job = ShardJob(batch_function('rrf'), {str(tmp_path / 'out')!r})\n"
        f"done = job(find_shards({str(tmp_path / 'in')!r})[0])\n"
        "print(done.error, done.queries, 'pandas' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["None", "20", "False"]


def write(path, **columns):
    path.parent.mkdir(exist_ok=True)
    pq.write_table(pa.table(columns), path)


def test_partitions_of_no_number_lose_nothing(tmp_path):
    n = float("nan")
    columns = {"query": ["a", "b", "c", "d"], "expert": ["e"] * 4, "item": ["x"] * 4, "rank": [1] * 4}
    write(tmp_path / "in" / "a.parquet", **columns, p=[1.0, n, 2.0, None])
    scale.apply("rrf", tmp_path / "in", tmp_path / "out", partition_by=["p"], workers=1)
    rows = {p.parent.name: pq.read_metadata(p).num_rows for p in (tmp_path / "out").rglob("*.parquet")}
    assert rows == {"p=1.0": 1, "p=nan": 1, "p=2.0": 1, "p=__HIVE_DEFAULT_PARTITION__": 1}


@pytest.mark.parametrize("meta", [{}, {"meta": [{"u": 1, "v": 2}]}])
def test_columns_inside_of_columns_do_not_hide_a_query_in_two_shards(tmp_path, meta):
    for k in (1, 2):
        inside = {"meta": [{"u": k, "v": k}]} if meta else {}
        write(tmp_path / "in" / f"{k}.parquet", **inside, query=["same"], expert=["e"], item=["x"], rank=[1])
    with pytest.raises(InputError, match="query 'same' is in"):
        scale.apply("rrf", tmp_path / "in", tmp_path / "out", workers=1)


def test_a_shard_that_reaches_over_others_is_looked_into(tmp_path):
    for name, queries in (("a", (0, 55, 100)), ("b", (10, 20)), ("c", (50, 55, 60))):
        n = len(queries)
        write(
            tmp_path / "in" / f"{name}.parquet", query=queries, expert=["e"] * n, item=["x"] * n, rank=[1] * n
        )
    with pytest.raises(InputError, match="query 55 is in"):
        scale.apply("rrf", tmp_path / "in", tmp_path / "out", workers=1)


def test_a_shard_without_queries_or_with_damaged_pages_is_named(tmp_path):
    write(tmp_path / "in" / "a.parquet", query=["q"], expert=["e"], item=["x"], rank=[1])
    write(tmp_path / "in" / "b.parquet", quary=["q"], expert=["e"], item=["x"], rank=[1])
    with pytest.raises(
        InputError, match=r"b.parquet: the batch has no column 'query' .*quary.*other 1 shards are processed"
    ):
        scale.apply("rrf", tmp_path / "in", tmp_path / "out", workers=1)
    for name in "ab":  # spans that meet, so that the column is read
        table = pa.table(
            {
                "query": ["q", "r"] * 5000,
                "expert": ["e"] * 10_000,
                "item": range(10_000),
                "rank": [1] * 10_000,
            }
        )
        pq.write_table(table, tmp_path / "in" / f"{name}.parquet", compression="zstd", use_dictionary=False)
    place = pq.read_metadata(tmp_path / "in" / "a.parquet").row_group(0).column(0).data_page_offset
    data = bytearray((tmp_path / "in" / "a.parquet").read_bytes())
    data[place + 20 : place + 60] = b"?" * 40
    (tmp_path / "in" / "a.parquet").write_bytes(data)
    with pytest.raises(InputError, match=r"a.parquet: .*damaged"):
        scale.apply("rrf", tmp_path / "in", tmp_path / "out", workers=1)


def test_regrouped_files_are_known_by_their_names_too(tmp_path):
    lines = ("q Q0 d1 1 2 x\nq Q0 d2 2 1 x\n", "q Q0 d2 1 2 x\nq Q0 d3 2 1 x\n")
    files = [tmp_path / "a.run", tmp_path / "b.run"]
    for file, text in zip(files, lines, strict=True):
        file.write_text(text)
    how = {"options": {"expert": "file"}, "shards": 1}
    scale.regroup(files, tmp_path / "g", **how)
    for file, text in zip(files, lines[::-1], strict=True):
        file.write_text(text)
    with pytest.raises(ParameterError, match="is not empty"):  # what is there is of other rows
        scale.regroup(files, tmp_path / "g", **how)


def test_a_folder_of_shards_and_a_folder_to_be(tmp_path):
    shards(tmp_path / "in", 2)
    done = run("batch", "rrf", tmp_path / "in", tmp_path / "out")
    assert done.exit_code == 0, done.output
    assert len(contents(tmp_path / "out")) == 2


def test_what_text_says_of_unlisted_items_holds_on_shards_too(tmp_path):
    """In TREC runs what is not listed is below; regrouped or not, said otherwise or not, all is as in memory."""
    rng = np.random.default_rng(7)
    for q in range(6):  # one file for each query, with all its lists
        drawn = ((e, rng.permutation(9)[:4]) for e in "abc")
        lines = (f"q{q} Q0 d{i} {r + 1} {9 - r} {e}" for e, items in drawn for r, i in enumerate(items))
        (tmp_path / "in").mkdir(exist_ok=True)
        (tmp_path / "in" / f"{q}.run").write_text("\n".join(lines) + "\n")
    files = [str(f) for f in sorted((tmp_path / "in").glob("*.run"))]
    order = [("query", "ascending"), ("rank", "ascending")]
    answers = {}
    for said in (None, "below", "unknown"):
        option = {} if said is None else {"unlisted": said}
        memory = podium.make("condorcet").aggregate(formats.read(files, **option).preferences).to_frame()
        scale.apply("condorcet", tmp_path / "in", tmp_path / f"out-{said}", workers=1, **option)
        grouped = scale.regroup(tmp_path / "in", tmp_path / f"g-{said}", shards=2, options=option)
        scale.apply("condorcet", grouped, tmp_path / f"again-{said}", workers=1)
        for folder in ("out", "again"):
            got = results(tmp_path / f"{folder}-{said}").sort_by(order)
            assert got.to_pydict() == memory.sort_by(order).to_pydict(), (folder, said)
        answers[said] = memory.to_pydict()
    assert answers[None] == answers["below"] != answers["unknown"]


def test_columns_with_other_names(tmp_path):
    shards(tmp_path / "in", 2)
    shards(tmp_path / "plain", 2)
    for file in (tmp_path / "in").glob("*"):
        table = pq.read_table(file).rename_columns(["qid", "system", "doc", "rank", "score"])
        pq.write_table(table.append_column("item", pa.array(["wrong"] * len(table))), file)
    words = ("-O", "query=qid", "-O", "expert=system", "-O", "item=doc")
    done = run("batch", "rrf", tmp_path / "in", f"{tmp_path}/out/", *words)
    assert done.exit_code == 0, done.output
    scale.apply("rrf", tmp_path / "plain", tmp_path / "expected", workers=1)
    assert contents(tmp_path / "out") == contents(tmp_path / "expected")
    again = run("batch", "rrf", tmp_path / "in", f"{tmp_path}/other/", *words, "--regroup", tmp_path / "g")
    assert again.exit_code == 0, again.output
    for option, message in (("item=docc", "no column 'docc'"), ("nonsense=3", "no option 'nonsense'")):
        bad = run("batch", "rrf", tmp_path / "in", f"{tmp_path}/bad/", *words[:4], "-O", option)
        assert bad.exit_code == 2
        assert message in bad.stderr
    assert run("batch", "rrf", tmp_path / "plain", f"{tmp_path}/x/", "-f", "trec").exit_code == 2


def test_duplicates_are_settled_as_asked(tmp_path):
    write(
        tmp_path / "in" / "a.parquet", query=["q"] * 3, expert=["e"] * 3, item=["x", "y", "x"], rank=[1, 2, 3]
    )
    assert run("batch", "rrf", tmp_path / "in", f"{tmp_path}/a/").exit_code == 2
    done = run("batch", "rrf", tmp_path / "in", f"{tmp_path}/b/", "-O", "duplicates=best")
    assert done.exit_code == 0, done.output
    assert results(tmp_path / "b")["item"].to_pylist() == ["x", "y"]


def test_weights_by_name_on_text_shards(tmp_path):
    for k, expert in enumerate("ab"):
        (tmp_path / "in").mkdir(exist_ok=True)
        (tmp_path / "in" / f"{k}.run").write_text(f"q{k} Q0 x 1 2 {expert}\nq{k} Q0 y 2 1 {expert}\n")
    method = podium.make("rrf", weights={"a": 1.0, "b": 2.0})
    assert scale.apply(method, tmp_path / "in", tmp_path / "out", workers=1).queries == 2


def test_links_and_names_of_methods(tmp_path, monkeypatch):
    shards(tmp_path / "real", 1)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "link.parquet").symlink_to(tmp_path / "real" / "part-000.parquet")
    assert scale.apply("rrf", tmp_path / "in", tmp_path / "out", workers=1).queries == 20
    monkeypatch.chdir(tmp_path)
    (tmp_path / "borda").mkdir()  # a folder of that name is no shard
    done = run("batch", "borda", "in/", "out-borda/")
    assert done.stderr.startswith("borda: 1 shards processed")


def test_results_are_not_there_twice(tmp_path):
    shards(tmp_path / "in", 1)
    shards(tmp_path / "more", 1, queries=3, seed=9)
    (tmp_path / "more" / "part-000.parquet").rename(tmp_path / "more" / "other.parquet")
    scale.apply("rrf", tmp_path / "in", tmp_path / "out", workers=1)
    pq.write_table(lists(range(500, 503)), tmp_path / "more" / "other.parquet")
    both = [tmp_path / "in", tmp_path / "more"]
    with pytest.raises(ParameterError, match="already has results of"):
        scale.apply("rrf", both, tmp_path / "out", workers=1)
    scale.apply("rrf", both, tmp_path / "out", workers=1, overwrite=True)
    assert sorted(contents(tmp_path / "out")) == ["in/part-000.parquet", "more/other.parquet"]


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"partition_by": ["query"]}, "cannot be partitioned by 'query'"),
        ({"rows": 0}, "rows is 0"),
    ],
)
def test_options_that_make_no_sense(tmp_path, how, message):
    shards(tmp_path / "in", 1)
    with pytest.raises(ParameterError, match=message):
        scale.apply("rrf", tmp_path / "in", tmp_path / "out", workers=1, **how)


def test_folders_in_folders_damaged_notes_and_what_was_left_behind(tmp_path):
    shards(tmp_path / "in", 1)
    with pytest.raises(ParameterError, match="is in the input"):
        scale.apply("rrf", tmp_path / "in", tmp_path / "in" / "out", workers=1)
    with pytest.raises(NotFittedError):
        scale.apply("svd", tmp_path / "in", tmp_path / "out", workers=1)
    scale.apply("rrf", tmp_path / "in", tmp_path / "out", workers=1)
    (tmp_path / "out" / "_podium" / "about.json").write_text("{")
    (tmp_path / "out" / ".part-000.parquet.podium-0.tmp").write_text("half")
    scale.apply("rrf", tmp_path / "in", tmp_path / "out", workers=1, overwrite=True, top=3)
    assert [p.name for p in (tmp_path / "out").glob(".*")] == []
    with pytest.raises(ParameterError, match="shards is 0"):
        scale.regroup(tmp_path / "in", tmp_path / "g", shards=0)
    write(tmp_path / "none" / "a.parquet", **{k: [] for k in ("query", "expert", "item", "rank")})
    pq.write_table(lists(range(1)).slice(0, 0), tmp_path / "none" / "a.parquet")
    with pytest.raises(InputError, match="none of the files has rows"):
        scale.regroup(tmp_path / "none", tmp_path / "g", shards=1)
    (tmp_path / "g" / "_podium").mkdir(parents=True)  # what a killed run leaves
    first = scale.regroup(tmp_path / "in", tmp_path / "h", shards=1)
    os.replace(tmp_path / "h/_podium/regrouped.json", tmp_path / "h/_podium/regrouping.json")
    assert scale.regroup(tmp_path / "in", tmp_path / "h", shards=1) == first


def test_workers_end_with_the_process_that_began_them(tmp_path):
    shards(tmp_path / "in", 4)
    code = (
        "from podium.scale.engines.local_engine import run\nfrom podium.storage.shards import find_shards\n"
        "from shards import Pid\n"
        f"folder = {str(tmp_path)!r}\n"
        "if __name__ == '__main__':\n    list(run(Pid(folder), find_shards(folder + '/in'), workers=2))\n"
    )
    script = tmp_path / "script.py"
    script.write_text(code)
    path = os.pathsep.join([str(Path(__file__).parents[1] / "support"), os.environ.get("PYTHONPATH", "")])
    parent = subprocess.Popen([sys.executable, str(script)], env={**os.environ, "PYTHONPATH": path})
    begin = time.monotonic()
    while len(pids := [int(p.stem) for p in tmp_path.glob("*.pid")]) < 2 and time.monotonic() - begin < 60:
        time.sleep(0.05)
    assert len(pids) == 2
    parent.kill()
    parent.wait()
    while any(Path(f"/proc/{pid}").exists() for pid in pids) and time.monotonic() - begin < 90:
        time.sleep(0.05)
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)


def test_the_command_says_what_to_do(tmp_path):
    shards(tmp_path / "in", 1)
    assert run("batch", "rrf", tmp_path / "in", tmp_path / "out").exit_code == 0
    assert (
        "all 1 shards are already up to date" in run("batch", "rrf", tmp_path / "in", tmp_path / "out").stderr
    )
    words = ("rrf", tmp_path / "in" / "part-000.parquet", tmp_path / "new")
    done = run("apply", *words)
    assert done.exit_code == 2
    assert "rrf is a method, not a saved model; use podium fuse -m 'rrf'" in done.stderr
    assert run("batch", *words).exit_code == 0
