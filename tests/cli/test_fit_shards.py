"""podium fit on shards, as a user runs it, and podium apply with what came of it."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from podium import formats, make, models
from podium.cli import program
from podium.methods.learned.lambdarank import LambdaRank
from podium.models.model_files import compute_fingerprint


def run(*words):
    return CliRunner().invoke(program, [str(w) for w in words])


def lists(first, queries=8):
    """Expert good puts items by their grade, bad the other way round."""
    rows = []
    for q in range(first, first + queries):
        for expert, order in (("good", [0, 1, 2, 3]), ("bad", [3, 2, 1, 0])):
            rows += [(f"q{q}", expert, f"d{i}", r + 1, 3.0 - i) for r, i in enumerate(order)]
    return pa.table(
        dict(zip(("query", "expert", "item", "rank", "grade"), zip(*rows, strict=True), strict=True))
    )


def features(first, queries=8):
    random = np.random.default_rng(first)
    rows = [(f"q{q}", f"d{i}", 3.0 - i) for q in range(first, first + queries) for i in range(4)]
    columns = dict(zip(("query", "item", "grade"), zip(*rows, strict=True), strict=True))
    useful = np.array(columns["grade"]) + 0.1 * random.normal(size=len(rows))
    return pa.table(columns | {"useful": useful, "noise": random.normal(size=len(rows))})


TABLES = {"crf": lists, "lambdarank": features}


@pytest.fixture(params=["crf", "lambdarank"])
def method(request):
    return request.param


@pytest.fixture
def folder(tmp_path, method):
    (tmp_path / "train").mkdir()
    (tmp_path / "vali").mkdir()
    for k in range(3):
        pq.write_table(TABLES[method](20 * k), tmp_path / "train" / f"part-{k}.parquet")
    pq.write_table(TABLES[method](100), tmp_path / "vali" / "part-9.parquet")
    return tmp_path


def spec(method):
    return f"{method}(passes=4, average={2 if method == 'crf' else True})"


def fit(folder, method, *more, train=None, out="m.podium"):
    given = [folder / "train"] if train is None else train
    return run("fit", *given, "-m", spec(method), "-o", folder / out, *more)


def test_fit_tells_and_saves(folder, method):
    done = fit(folder, method, "--validation", folder / "vali")
    assert done.exit_code == 0, done.stderr
    facts = dict(line.split("\t") for line in done.stdout.splitlines()[1:])
    assert facts["trained on"].startswith("24 judged queries of 3 shard(s) in ")
    assert facts["validated on"] == "8 other judged queries of 1 shard(s)"
    (quality,) = (
        value for name, value in facts.items() if name.endswith("on validation queries, this model")
    )
    assert 0.9 < float(quality) <= 1.0
    shards = sorted((folder / "train").iterdir())
    wanted = (make(spec(method)) if method == "crf" else LambdaRank(passes=4, average=True)).fit_stream(
        shards, validation=[folder / "vali" / "part-9.parquet"]
    )
    assert compute_fingerprint(models.load(folder / "m.podium")) == compute_fingerprint(wanted)
    again = fit(folder, method)
    assert (again.exit_code, "--overwrite" in again.stderr) == (2, True)


def test_json_and_a_cache_that_stays(folder, method):
    train, kept = sorted((folder / "train").iterdir()), folder / "kept"
    first = fit(folder, method, "--shards", "--cache", kept, "--json", train=train)
    facts = json.loads(first.stdout)
    assert (facts["shards"], facts["queries"], facts["validation_shards"]) == (3, 24, 0)
    assert facts["passes"] == [4]
    assert "quality" not in facts
    parts = {p.name: p.stat().st_mtime_ns for p in kept.iterdir()}
    assert len(parts) == (6 if method == "crf" else 3)
    assert fit(folder, method, "--cache", kept, out="again.podium").exit_code == 0
    assert {p.name: p.stat().st_mtime_ns for p in kept.iterdir()} == parts
    assert fit(folder, method, "--no-cache", out="none.podium").exit_code == 0
    saved = [(folder / name).read_bytes() for name in ("m.podium", "again.podium", "none.podium")]
    assert saved[0] == saved[1] == saved[2]


def test_labels_in_one_file_or_one_for_each_shard(folder, method):
    assert fit(folder, method, "--validation", folder / "vali").exit_code == 0
    (folder / "qrels").mkdir()
    whole = []
    for path in sorted([*(folder / "train").iterdir(), *(folder / "vali").iterdir()]):
        table = pq.read_table(path)
        rows = table.group_by(["query", "item", "grade"]).aggregate([])
        lines = [f"{r['query']} 0 {r['item']} {r['grade']:.0f}\n" for r in rows.to_pylist()]
        (folder / "qrels" / f"{path.stem}.txt").write_text("".join(lines))
        whole += lines
        pq.write_table(table.drop_columns("grade"), path)
    (folder / "qrels.txt").write_text("".join(whole))
    for number, qrels in enumerate((folder / "qrels", folder / "qrels.txt")):
        done = fit(folder, method, "--validation", folder / "vali", "-q", qrels, out=f"{number}.podium")
        assert done.exit_code == 0, done.stderr
        assert (folder / f"{number}.podium").read_bytes() == (folder / "m.podium").read_bytes()
    without = fit(folder, method, out="x.podium")
    assert without.exit_code == 2
    assert "part-0.parquet): it contains no labels" in without.stderr
    (folder / "qrels" / "part-1.txt").unlink()
    missing = fit(folder, method, "-q", folder / "qrels", out="x.podium")
    assert "contains no labels for the shard" in missing.stderr
    assert "part-1.parquet" in missing.stderr


@pytest.mark.parametrize("method", ["crf"], indirect=True)
def test_what_was_learned_is_applied_shard_by_shard(folder, method):
    """What fit was given can be given to batch: grades are left alone."""
    assert fit(folder, method).exit_code == 0
    done = run("batch", folder / "m.podium", folder / "train", f"{folder / 'out'}/")
    assert done.exit_code == 0, done.stderr
    found = pq.read_table(folder / "out" / "part-2.parquet").to_pylist()
    assert [row["item"] for row in found[:4]] == ["d0", "d1", "d2", "d3"]


@pytest.mark.parametrize("method", ["lambdarank"], indirect=True)
def test_letor_files_and_other_formats(folder, method):
    for k in range(2):
        content = formats.read(folder / "train" / f"part-{k}.parquet", kind="features")
        formats.write(content, folder / f"{k}.letor")
    done = fit(folder, method, "--shards", train=[folder / "0.letor", folder / "1.letor"])
    assert done.exit_code == 0, done.stderr
    ranked = run("apply", folder / "m.podium", folder / "0.letor", "--top", 1)
    assert ranked.stdout.split()[:3] == ["q0", "Q0", "d0"]
    table = folder / "t.csv"
    table.write_text("topic,thing,grade,a,b\nq1,x,1,2,0\nq1,y,0,1,0\nq2,x,0,1,1\nq2,y,1,3,1\n")
    done = fit(folder, method, "--shards", "-O", "item=thing", train=[table], out="csv.podium")
    assert done.exit_code == 0, done.stderr
    assert models.load(folder / "csv.podium").names_ == ["a", "b"]


def test_what_cannot_be_done(folder, method):
    def said(*words, train=None, name=method):
        done = run("fit", *(train or [folder / "train"]), "-m", name, "-o", folder / "x.podium", *words)
        assert done.exit_code == 2, done.output
        assert "Traceback" not in done.stderr
        return done.stderr

    assert "svd cannot be trained on shards, only crf, lambdarank" in said(name="svd")
    assert "no method is called" in said(name="nothing")
    assert "has no parameter 'passs'; did you mean passes" in said("-p", "passs=3")
    assert "--features, --validation-share cannot be used with shards" in said(
        "--features", "f.txt", "--validation-share", "0.2"
    )
    assert "not both" in said("--cache", folder / "c", "--no-cache")
    assert "there is no such file" in said("--shards", train=[folder / "none.parquet"])
    assert "query 'q0' is also in shard 1" in said(
        "--validation", folder / "train" / "part-0.parquet", "-p", "passes=1"
    )
    (folder / "train" / "part-5.parquet").write_bytes(b"PAR1")
    assert "part-5.parquet" in said()
    if method == "lambdarank":
        assert "learns from item features alone; give one or more feature files as shards" in said(
            train=[folder / "train" / "part-0.parquet"]
        )
        assert "no experts; leave --weights out" in said("--weights", "a=1")
        assert "lambdamart needs all data in memory" in said("-p", "scorer=lambdamart")
    assert not (folder / "x.podium").exists()
