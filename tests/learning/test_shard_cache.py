"""Prepared shards on disk: the same bits as without, never believed by halves, known again only if nothing changed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from podium import Features, Labels, Preferences, formats, make
from podium.core.errors import InputError, ParameterError
from podium.learning import shard_cache
from podium.learning.training_shards import ShardFiles, SharedLabels
from podium.methods.learned.lambdarank import LambdaRank
from podium.models.model_files import compute_fingerprint
from podium.storage import array_files


def described(seed, queries=12, items=9, first=0):
    """Features and grades as a table."""
    random = np.random.default_rng(seed)
    q, i = np.repeat(np.arange(first, first + queries), items), np.tile(np.arange(items), queries)
    x = random.normal(size=(len(q), 4)) * [1, 5, 0.2, 1] + [0, 3, 0, 0]
    x[random.random(x.shape) < 0.05] = np.nan
    grade = np.digitize(np.nan_to_num(x[:, 0]) + 0.5 * random.normal(size=len(q)), [-1.0, 0.0, 1.5])
    columns = {"query": q, "item": i, "grade": grade.astype(float)}
    values = {f"f{k}": pa.array(x[:, k], mask=np.isnan(x[:, k])) for k in range(4)}
    return pa.table(columns | values)


def listed(seed, queries=10, first=0, experts="abc"):
    """Lists with grades as a table; the last query has no grades that differ, one item no grade."""
    random, rows = np.random.default_rng(seed), []
    for q in range(first, first + queries):
        for k, e in enumerate(experts):
            order = np.argsort(np.arange(9) + 2 * k * random.normal(size=9))[:7]
            rows += [
                (q, e, int(i), r + 1, float((8 - i) // 3) if q < first + queries - 1 else 1.0)
                for r, i in enumerate(order)
            ]
    return pa.table(
        dict(zip(("query", "expert", "item", "rank", "grade"), zip(*rows, strict=True), strict=True))
    )


TABLE = {"lambdarank": described, "crf": listed}


def files(folder, method, numbers=range(3), name="part"):
    folder.mkdir(exist_ok=True)
    paths = [folder / f"{name}-{k}.parquet" for k in numbers]
    for k, path in zip(numbers, paths, strict=True):
        pq.write_table(TABLE[method](k, first=20 * k), path)
    return paths


def model(method, **how):
    if method == "lambdarank":
        return LambdaRank(**{"passes": 4, "standardize": True, **how})
    return make("crf", **{"passes": 4, "average": 2, **how})


def read(method, path):
    content = formats.read(path, **({"kind": "features"} if method == "lambdarank" else {}))
    return (content.features or content.preferences), content.labels


@pytest.fixture
def opened(monkeypatch):
    """How often a shard was opened."""
    count, usual = [], shard_cache.read_shard
    monkeypatch.setattr(shard_cache, "read_shard", lambda *given: count.append(1) or usual(*given))
    return count


@pytest.mark.parametrize(
    ("method", "how"),
    [
        ("lambdarank", {}),
        ("lambdarank", {"hidden": 3, "members": 2, "normalize": "range", "metric": "err"}),
        ("lambdarank", {"standardize": False, "average": True}),
        ("crf", {}),
        ("crf", {"sharing": "shared", "transform": "rank", "metric": "err"}),
        ("crf", {"sharing": "hybrid", "min_preferences": 150}),
    ],
)
def test_the_same_bits_with_and_without(tmp_path, opened, method, how):
    train = files(tmp_path / "in", method)
    pq.write_table(TABLE[method](7, first=200), tmp_path / "in" / "vali.parquet")
    given = {"validation": [tmp_path / "in" / "vali.parquet"], "query_weights": {0: 2.0, 21: 0.0, 205: 3.0}}
    without = model(method, **how).fit_stream(train, cache=False, **given)
    assert len(opened) > 12
    for folder, times in ((True, 4), (tmp_path / "kept", 4), (tmp_path / "kept", 0)):
        opened.clear()
        found = model(method, **how).fit_stream(train, cache=folder, **given)
        assert compute_fingerprint(found) == compute_fingerprint(without)
        assert len(opened) == times, folder


@pytest.mark.parametrize("method", ["lambdarank", "crf"])
def test_one_shard_is_fit(tmp_path, method):
    (path,) = files(tmp_path / "in", method, [0])
    holder, labels = read(method, path)
    whole = model(method).fit(holder, labels)
    for folder in (True, False, tmp_path / "kept"):
        assert compute_fingerprint(model(method).fit_stream([path], cache=folder)) == compute_fingerprint(
            whole
        )


def test_what_is_prepared_anew(tmp_path, opened):
    train, kept = files(tmp_path / "in", "lambdarank"), tmp_path / "kept"

    def times(shards, **how):
        opened.clear()
        model("lambdarank", **how).fit_stream(shards, cache=kept)
        return len(opened)

    assert times(train) == 3
    assert times(train, rate=0.5, hidden=2, standardize=False) == 0  # nothing that preparing depends on
    assert times(train[::-1]) == 0
    assert times(train, normalize="range") == 3
    pq.write_table(described(9, first=20), train[1])  # another content under the same name
    assert times(train) == 1
    os.utime(train[0])  # another time, the same content
    assert times(train) == 0
    moved = train[0].rename(tmp_path / "other.parquet")  # names may tell experts
    assert times([moved, *train[1:]]) == 1
    assert times([ShardFiles((moved,), options={"item": "item"}), *train[1:]]) == 1
    opened.clear()
    model("lambdarank").fit_stream(train[1:], cache=kept, query_weights={20: 2.0})
    assert len(opened) == 2


def test_a_new_expert_does_not_make_shards_be_read_again(tmp_path, opened):
    """The groups of experts change with it, but what a shard says does not."""
    train, kept = files(tmp_path / "in", "crf"), tmp_path / "kept"
    model("crf", sharing="hybrid", min_preferences=150).fit_stream(train, cache=kept)
    pq.write_table(listed(5, first=300, experts="0ab"), tmp_path / "new.parquet")
    opened.clear()
    shards = [tmp_path / "new.parquet", *train]
    found = model("crf", sharing="hybrid", min_preferences=150).fit_stream(shards, cache=kept)
    assert len(opened) == 1
    without = model("crf", sharing="hybrid", min_preferences=150).fit_stream(shards, cache=False)
    assert compute_fingerprint(found) == compute_fingerprint(without)


@pytest.mark.parametrize("damage", ["cut", "empty", "header", "garbage", "longer"])
@pytest.mark.parametrize("method", ["lambdarank", "crf"])
def test_what_is_not_whole_is_not_believed(tmp_path, method, damage):
    train, kept = files(tmp_path / "in", method), tmp_path / "kept"
    wanted = compute_fingerprint(model(method).fit_stream(train, cache=kept))
    for part in sorted(kept.iterdir()):
        raw = part.read_bytes()
        part.write_bytes(
            {
                "cut": raw[:-8],
                "empty": b"",
                "header": raw[:40],
                "garbage": b"\xff" * 64,
                "longer": raw + b"\0" * 8,
            }[damage]
        )
    assert compute_fingerprint(model(method).fit_stream(train, cache=kept)) == wanted
    assert all(array_files.read_arrays(part) is not None for part in kept.iterdir())


KILLED = """
import os, signal, sys
from podium import make
from podium.storage import array_files
from podium.methods.learned.lambdarank import LambdaRank
usual, written = array_files.encode_arrays, []
def chunks(arrays, metadata):
    for chunk in usual(arrays, metadata):
        written.append(1)
        if len(written) == 6:  # in the middle of the second part
            os.kill(os.getpid(), signal.SIGKILL)
        yield chunk
array_files.encode_arrays = chunks
model = LambdaRank(passes=4, standardize=True) if sys.argv[1] == "lambdarank" else make("crf(passes=4, average=2)")
model.fit_stream(sys.argv[3:], cache=sys.argv[2])
"""


@pytest.mark.parametrize("method", ["lambdarank", "crf"])
def test_killed_in_the_middle(tmp_path, method, opened):
    train, kept = files(tmp_path / "in", method), tmp_path / "kept"
    done = subprocess.run([sys.executable, "-c", KILLED, method, kept, *train], check=False)
    assert done.returncode == -signal.SIGKILL
    whole = [p for p in kept.iterdir() if not p.name.startswith(".")]
    assert len(whole) < len(list(kept.iterdir()))  # what was being written is there under another name
    found = model(method).fit_stream(train, cache=kept)
    assert compute_fingerprint(found) == compute_fingerprint(model(method).fit_stream(train, cache=False))


def test_a_file_that_changes_while_it_is_read(tmp_path, monkeypatch):
    train, usual = files(tmp_path / "in", "lambdarank"), shard_cache.read_shard

    def slow(shard, kind):
        if shard.paths[0] == train[1]:
            pq.write_table(described(8, first=20), train[1])
        return usual(shard, kind)

    monkeypatch.setattr(shard_cache, "read_shard", slow)
    with pytest.raises(InputError, match=r"shard 2 \(.*part-1.parquet\): a file changed while it was read"):
        model("lambdarank").fit_stream(train, cache=tmp_path / "kept")


@pytest.mark.parametrize("method", ["lambdarank", "crf"])
def test_the_temporary_folder_is_removed(tmp_path, monkeypatch, method):
    train = files(tmp_path / "in", method)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    seen = []
    model(method).fit_stream(
        train, progress=lambda *_: seen.append(len(list((tmp_path / "tmp").glob("*/*"))))
    )
    assert max(seen) == (3 if method == "lambdarank" else 6)
    assert not list((tmp_path / "tmp").iterdir())

    def stop(done, total, what):
        if what == "learning":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        model(method).fit_stream(train, progress=stop)
    assert not list((tmp_path / "tmp").iterdir())
    (tmp_path / "in" / "bad.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(InputError, match=r"shard 4: .*bad.parquet"):
        model(method).fit_stream([*train, tmp_path / "in" / "bad.parquet"])
    assert not list((tmp_path / "tmp").iterdir())


def test_no_room(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    train = files(tmp_path / "in", "lambdarank")
    monkeypatch.setattr("podium.storage.files.os.replace", full)
    with pytest.raises(
        InputError, match=r"shard 1: .*No space left on device; prepared shards need disk space"
    ):
        model("lambdarank").fit_stream(train)


def test_caches_that_cannot_be(tmp_path):
    pair = Features.from_rows([1, 1], [1, 2], [[0.0], [1.0]]), Labels.from_dict({1: {1: 0, 2: 1}})
    with pytest.raises(ParameterError, match="a shard is a tuple, which a persistent cache cannot identify"):
        LambdaRank().fit_stream([pair], cache=tmp_path)
    with pytest.raises(ParameterError, match="a shard is a function"):
        make("crf").fit_stream([lambda: pair], cache=tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(ParameterError, match="cannot create the cache folder"):
        LambdaRank().fit_stream([pair], cache=tmp_path / "file")
    with pytest.raises(ParameterError, match="cache is None"):
        LambdaRank().fit_stream([pair], cache=None)


@settings(max_examples=50, deadline=None)
@given(
    st.dictionaries(st.text(min_size=1), st.sampled_from([np.float64, np.int64, np.int32, np.uint8, np.bool_]).flatmap(
        lambda kind: hnp.arrays(kind, hnp.array_shapes(max_dims=2, min_side=0, max_side=5))
    ), max_size=5),
    st.dictionaries(st.text(), st.one_of(st.integers(), st.text(), st.lists(st.integers()))),
)  # fmt: skip
def test_parts_come_back_and_are_safetensors(arrays, about):
    from safetensors.numpy import load_file

    arrays.pop("__metadata__", None)
    with tempfile.TemporaryDirectory() as folder:
        path = array_files.Path(folder, "part")
        array_files.write_arrays(array_files.PreparedArrays(about, arrays), path)
        found, theirs = array_files.read_arrays(path), load_file(path)
    assert found.about == about
    assert found.arrays.keys() == theirs.keys() == arrays.keys()
    for name, array in arrays.items():
        for got in (found.arrays[name], theirs[name]):
            assert got.dtype == array.dtype
            assert np.array_equal(got, array, equal_nan=array.dtype == np.float64)
        assert found.arrays[name].flags.writeable  # kernels are compiled for arrays that can be written to
        assert found.arrays[name].flags.aligned


def test_labels_elsewhere(tmp_path, opened):
    """One file for all, or one for each shard: the same as labels in the shards."""
    for method in TABLE:
        folder = tmp_path / method
        train = files(folder, method)
        wanted = compute_fingerprint(model(method).fit_stream(train))
        grades = []
        for k, path in enumerate(train):
            table = pq.read_table(path)
            rows = table.select(["query", "item", "grade"]).group_by(["query", "item", "grade"]).aggregate([])
            grades.append(rows)
            pq.write_table(rows, folder / f"labels-{k}.parquet")
            pq.write_table(table.drop_columns("grade"), path)
        pq.write_table(pa.concat_tables(grades), folder / "labels.parquet")
        judged = SharedLabels(folder / "labels.parquet")
        shared = [ShardFiles((path,), labels=judged) for path in train]
        own = [ShardFiles((path,), labels=folder / f"labels-{k}.parquet") for k, path in enumerate(train)]
        assert compute_fingerprint(model(method).fit_stream(shared)) == wanted
        assert compute_fingerprint(model(method).fit_stream(own, cache=folder / "kept")) == wanted
        opened.clear()
        pq.write_table(grades[1].slice(1), folder / "labels-1.parquet")
        model(method).fit_stream(own, cache=folder / "kept")
        assert len(opened) == 1
        with pytest.raises(InputError, match="it contains no labels"):
            model(method).fit_stream(train)


@pytest.mark.parametrize("method", ["lambdarank", "crf"])
def test_shards_without_rows_or_without_labels(tmp_path, method):
    train = files(tmp_path / "in", method)
    wanted = compute_fingerprint(model(method).fit_stream(train))
    pq.write_table(TABLE[method](0).slice(0, 0), tmp_path / "none.parquet")
    unjudged = TABLE[method](5, first=500)
    pq.write_table(unjudged.drop_columns("grade"), tmp_path / "unjudged.parquet")
    pq.write_table(
        TABLE[method](0).select(["query", "item", "grade"]).slice(0, 1), tmp_path / "qrels.parquet"
    )
    no_labels = ShardFiles((tmp_path / "unjudged.parquet",), labels=tmp_path / "qrels.parquet")
    found = model(method)
    assert (
        compute_fingerprint(found.fit_stream([tmp_path / "none.parquet", train[0], no_labels, *train[1:]]))
        == wanted
    )
    assert found.shard_counts.shards == 5
    with pytest.raises(InputError, match="no query of any shard has labels"):
        model(method).fit_stream([tmp_path / "none.parquet"])
    with pytest.raises(InputError, match="no query of any validation shard has labels"):
        model(method).fit_stream(train, validation=[tmp_path / "none.parquet"])


@pytest.mark.parametrize("method", ["lambdarank", "crf"])
def test_queries_in_two_shards(tmp_path, method):
    train = files(tmp_path / "in", method)
    (again,) = files(tmp_path / "again", method, [1], name="again")
    with pytest.raises(InputError, match=r"shard 4 \(.*again-1.parquet\): query 20 is also in shard 2 \("):
        model(method).fit_stream([*train, again], cache=tmp_path / "kept")
    with pytest.raises(InputError, match=r"validation shard 1 \(.*\): query 20 is also in shard 2 \("):
        model(method).fit_stream(train, validation=[again])
    with pytest.raises(InputError, match=r"shard 2: .*no-such.parquet: "):
        model(method).fit_stream([train[0], tmp_path / "no-such.parquet"])


def test_validation_experts_that_training_did_not_see(tmp_path):
    train = files(tmp_path / "in", "crf")
    pq.write_table(listed(5, first=300, experts="abz"), tmp_path / "new.parquet")
    seen = []
    with pytest.raises(ParameterError, match="was not trained on expert 'z'"):
        model("crf").fit_stream(
            train, validation=[tmp_path / "new.parquet"], progress=lambda *given: seen.append(given)
        )
    assert all(what != "learning" for *_, what in seen)
    assert model("crf", unseen="ignore").fit_stream(train, validation=[tmp_path / "new.parquet"]).quality_ > 0


def test_the_top_grade_is_that_of_the_examples():
    """An item that no list has may have the highest grade: `fit` does not look at it either."""
    lists = {q: {"a": [1, 2, 3], "b": [2, 1, 3]} for q in range(6)}
    grades = {q: {1: 2, 2: 1, 3: 0, 99: 4} for q in range(6)}
    p, labels = Preferences.from_lists(lists), Labels.from_dict(grades)
    whole = model("crf", metric="err").fit(p, labels)
    parts = model("crf", metric="err").fit_stream([formats.Content(p, labels)])
    assert np.array_equal(whole.weights_, parts.weights_)
