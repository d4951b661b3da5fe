"""Training over shards: the same as in memory when queries are visited in the same order, and bounded memory."""

from __future__ import annotations

import gc
import sys
import threading
import tracemalloc
import weakref
from types import SimpleNamespace

import numpy as np
import pytest

from podium import Dataset, Features, Labels, Preferences, formats, load, make, save
from podium.core.errors import InputError, ParameterError
from podium.core.progress import no_progress
from podium.evaluate import evaluate
from podium.formats.base import merge_contents
from podium.kernels.lambdas import OptimizerState, train_linear_pass
from podium.kernels.ranking_expectations import Potentials, sample_subsets, train_crf_pass
from podium.learning.examples import Examples, LearningTask
from podium.learning.feature_scorer import fit_scorer
from podium.learning.shard_cache import PreparedShards, open_prepared_shards
from podium.methods.learned.crf_shards import PreferenceShards
from podium.methods.learned.lambdarank import LambdaRank
from podium.methods.learned.lambdarank_shards import FeatureShards


def made(seed, queries=12, items=9, first=0, top=3):
    random = np.random.default_rng(seed)
    q, i = np.repeat(np.arange(first, first + queries), items), np.tile(np.arange(items), queries)
    x = random.normal(size=(len(q), 4)) * [1, 5, 0.2, 1] + [0, 3, 0, 0]
    y = x[:, 0] - 0.4 * x[:, 1] + 0.5 * random.normal(size=len(q))
    grades = np.minimum(np.digitize(y, [-1.0, 0.0, 1.5]), top).astype(float)
    return Features.from_rows(q, i, x, ["up", "down", "noise", "more"]), Labels.from_rows(q, i, grades)


def joined(parts):
    whole = merge_contents([formats.Content(features=x, labels=y) for x, y in parts])
    return whole.features, whole.labels


@pytest.mark.parametrize("how", [{}, {"hidden": 3}, {"average": True, "members": 2}])
def test_one_shard_is_fit(how):
    train, check = made(0), made(1, first=50)
    kept = {"passes": 6, "patience": 3, **how}
    whole = LambdaRank(**kept).fit(*train, validation=check)
    parts = LambdaRank(**kept).fit_stream([train], validation=[check])
    assert np.array_equal(whole.member_weights_, parts.member_weights_)
    assert whole.passes_ == parts.passes_
    assert whole.quality_ == pytest.approx(parts.quality_)


@pytest.mark.parametrize("metric", ["ndcg:exp", "err"])
def test_shards_are_what_the_same_visits_in_memory_are(metric):
    """Shards of twelve queries and batches of four: steps fall together."""
    parts = [made(0, top=2), made(1, first=12), made(2, first=24)]
    model = LambdaRank(metric=metric, passes=3, batch=4, standardize=True, l2=0.01, rate=0.05)
    weights = model.fit_stream(parts).member_weights_[0]
    with open_prepared_shards(parts, [], cache=False) as (train, check):
        given = FeatureShards(model, train, check, {}, no_progress)
        blocks = list(given.build_blocks(given.build_scorer(), train).iterate_blocks())
    whole = joined(parts)
    examples = Examples.from_labels(whole[0].index, whole[1])
    task = LearningTask(whole[0].values[examples.rows], examples)
    memory = fit_scorer(LambdaRank(metric=metric, standardize=True, passes=1), task)
    assert memory.center_ == pytest.approx(model.center_)
    assert memory.scale_ == pytest.approx(model.scale_)
    values, target = memory.scale_values(task.values), examples.build_target(metric)
    random, begin = np.random.default_rng((0, 0)), np.zeros(4)
    state = (np.zeros(4), np.zeros(4), np.zeros(1, np.int64))
    for _ in range(3):
        for number in random.permutation(3).tolist():
            visit = 12 * number + random.permutation(blocks[number].useful)  # queries lie by id
            train_linear_pass(
                values,
                examples.starts,
                target,
                visit,
                4,
                OptimizerState(begin, *state, True, 0.05, 0.01, False),
            )
    assert weights == pytest.approx(begin, abs=1e-12)


def said(seed, queries=10, first=0, experts="abc"):
    random = np.random.default_rng(seed)
    queries = range(first, first + queries)
    lists = {
        q: {
            e: [int(i) for i in np.argsort(np.arange(9) + 2 * k * random.normal(size=9))][:7]
            for k, e in enumerate(experts)
        }
        for q in queries
    }
    labels = {q: {i: float((8 - i) // 3) for i in range(9)} for q in queries}
    return Dataset(Preferences.from_lists(lists), Labels.from_dict(labels))


@pytest.mark.parametrize("sharing", ["own", "shared", "hybrid"])
def test_one_shard_of_preferences_is_fit(sharing):
    train, check = said(0), said(1, first=50)
    spec = f"crf(passes=6, average=2, sharing={sharing}, min_preferences=60)"
    whole = make(spec).fit(train.preferences, train.labels, validation=check)
    parts = make(spec).fit_stream([train], validation=[check])
    assert np.array_equal(whole.weights_, parts.weights_)
    assert parts.expert_weights() == whole.expert_weights()
    assert parts.quality_ == pytest.approx(whole.quality_)
    assert parts.losses_ == pytest.approx(whole.losses_)


def test_shards_of_preferences_are_what_the_same_visits_in_memory_are():
    parts = [said(0), said(1, first=10, experts="abd"), said(2, first=20, experts="db")]
    model = make("crf(passes=3, average=1, batch=5, subset=4)").fit_stream(parts)
    assert model.experts_ == ["a", "b", "c", "d"]
    with open_prepared_shards(parts, [], cache=False) as (train, check):
        given = PreferenceShards(model, train, check, {}, no_progress)
        scale = given.measure_scale()
        visits = list(given.build_blocks(train, scale).iterate_blocks())
    # all rows in one table
    starts = np.concatenate([[0], *(np.diff(v.potentials.starts) for v in visits)]).cumsum()
    mine = Potentials(
        starts, *(np.concatenate([getattr(v.potentials, f) for v in visits]) for f in ("group", "values"))
    )
    target = visits[0].target._replace(**{
        f: np.concatenate([getattr(v.target, f) for v in visits]) for f in ("gain", "level", "limit", "scale")
    })  # fmt: skip
    row = np.concatenate([[0], np.cumsum([len(v.examples) for v in visits])])
    random, weights = np.random.default_rng(0), np.zeros(12)
    state = (weights, np.zeros(12), np.zeros(12), np.zeros(1, np.int64))
    for done in range(3):
        optimizer = OptimizerState(*state, True, 0.03 / (1 + done / 30), 1e-4, False)
        for number in random.permutation(3).tolist():
            part = visits[number]
            turn = random.permutation(part.useful)
            rows = sample_subsets(
                part.examples.starts, part.target.level, turn, 4, random.random((len(turn), 8))
            )
            rows = np.where(rows >= 0, rows + row[number], -1)
            train_crf_pass(mine, target, np.ones(30), turn + 10 * number, rows, 5, optimizer)
    assert model.weights_ == pytest.approx(weights.reshape(-1, 3) / scale, abs=1e-12)


def test_files_are_shards(tmp_path):
    parts = [made(0), made(1, first=12)]
    for k, (x, y) in enumerate(parts):
        formats.write(formats.Content(features=x, labels=y), tmp_path / f"{k}.letor")
    files = [tmp_path / "0.letor", tmp_path / "1.letor"]
    read = LambdaRank(passes=3).fit_stream(files)
    memory = LambdaRank(passes=3).fit_stream([lambda f=f: formats.read(f, kind="features") for f in files])
    assert np.array_equal(read.member_weights_, memory.member_weights_)
    save(read, tmp_path / "model")
    x = formats.read(files[0]).features
    assert np.array_equal(load(tmp_path / "model").predict(x), read.predict(x))


def test_validation_chooses_over_all_its_shards():
    train, check = [made(0), made(1, first=12)], [made(5, first=100), made(6, first=112)]
    model = LambdaRank(passes=5).fit_stream(train, validation=check)
    features, labels = joined(check)
    wanted = evaluate(model.rank(features), labels, "ndcg@10:exp").mean()["ndcg@10:exp"]
    assert model.quality_[0] == pytest.approx(wanted)


def owner(array):
    """Who holds the memory of an array: another array, or the map of a file."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    held = array if array.base is None else array.base
    return held.obj if isinstance(held, memoryview) else held


@pytest.mark.parametrize("cache", [True, False])
@pytest.mark.parametrize("method", [LambdaRank(passes=3), make("crf(passes=3, average=1)")])
def test_two_shards_at_most_are_in_memory(method, cache, monkeypatch):
    """One in use, one ready, and one just begun while the first is being let go; nothing waits for the collector."""
    held, most, read, reading = [], [], [], []
    prepared, content = PreparedShards.get_or_make, PreparedShards.content

    def counted(self, number, recipe, make):
        found = prepared(self, number, recipe, make)
        if "values" in found.arrays:
            held.append(weakref.ref(owner(found.arrays["values"])))
            most.append(sum(ref() is not None for ref in held))
        return found

    def opened(self, number):
        found = content(self, number)
        read.extend(map(weakref.ref, (found.labels, found.features or found.preferences)))
        reading.append(sum(ref() is not None for ref in read))
        return found

    monkeypatch.setattr(PreparedShards, "get_or_make", counted)
    monkeypatch.setattr(PreparedShards, "content", opened)
    part = made if isinstance(method, LambdaRank) else said
    gc.collect()
    gc.disable()
    try:
        method.fit_stream([lambda k=k: part(k, first=100 * k) for k in range(8)], cache=cache)
    finally:
        gc.enable()
    assert len(most) == 8 * 4  # a first look and three passes
    assert max(most) <= 3
    assert max(reading) == 2  # labels and what they label, of one shard


def test_memory_does_not_grow_with_the_number_of_shards():
    def shard(k):
        return lambda: made(k, queries=60, items=50, first=100 * k)

    def peak(count):
        tracemalloc.start()
        LambdaRank(passes=1, batch=60).fit_stream([shard(k) for k in range(count)])
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    peak(2)
    few, many = peak(3), peak(12)
    assert many < 1.5 * few, (few, many)


def test_a_shard_that_teaches_nothing_is_no_matter_but_none_that_does_is():
    x, y = made(0)
    flat = (
        Features.from_rows([90, 90], [0, 1], [[0.0] * 4] * 2, x.names),
        Labels.from_rows([90, 90], [0, 1], [1.0, 1.0]),
    )
    both = LambdaRank(passes=2, device="cpu").fit_stream([(x, y), flat])
    assert both.member_weights_.any()
    with pytest.raises(InputError, match="no query of any shard"):
        LambdaRank().fit_stream([flat])


@pytest.mark.parametrize(
    ("shards", "message"),
    [
        ([], "empty"),
        ("data.letor", "is a str"),
        ((x for x in ()), "is a generator"),
        ([3], "a shard is a int"),
        ([made(0), made(0)], "shard 2: query 0 is also in shard 1"),
        ([made(0)[0]], "a shard is a Features"),
        ([said(0)], "shard 1: it contains no features"),
    ],
)
def test_what_is_no_shard(shards, message):
    with pytest.raises((ParameterError, InputError), match=message):
        LambdaRank().fit_stream(shards)
    with pytest.raises((ParameterError, InputError)):
        make("crf").fit_stream([made(0)])


def test_other_columns_in_a_later_shard():
    x, y = made(1, first=50)
    other = Features(x.index, x.values[:, :3], x.names[:3])
    with pytest.raises(InputError, match="the same columns"):
        LambdaRank().fit_stream([made(0), (other, y)])


def test_a_device_is_used_from_one_thread(monkeypatch):
    """What is being read ahead must not touch the device: a recorded step breaks if another thread allocates."""
    threads = set()

    class Lesson:
        def __init__(self, where, values, starts, target, widths):
            threads.add(threading.get_ident())
            self.given = values, starts, target

        def learn(self, visit, batch, optimizer):
            threads.add(threading.get_ident())
            train_linear_pass(*self.given, visit, batch, optimizer)

    class Scorer:
        def __init__(self, where, values, widths):
            threads.add(threading.get_ident())
            self.values = values

        def scores(self, weights):
            return self.values @ weights

    stub = SimpleNamespace(DeviceObjective=Lesson, DeviceScorer=Scorer)
    monkeypatch.setitem(sys.modules, "podium.kernels.device.lambdarank_training", stub)
    monkeypatch.setitem(
        sys.modules, "podium.kernels.device.torch_device", SimpleNamespace(resolve_device=lambda name: None)
    )
    parts = [made(0), made(1, first=12), made(2, first=24)]
    there = LambdaRank(passes=3, device="torch").fit_stream(parts)
    assert len(threads) == 1
    assert there.member_weights_ == pytest.approx(LambdaRank(passes=3).fit_stream(parts).member_weights_)
    check = made(5, first=50)
    threads.clear()
    there = LambdaRank(passes=3, device="torch", members=2).fit(*parts[0], validation=check)
    assert len(threads) == 1
    here = LambdaRank(passes=3, members=2).fit(*parts[0], validation=check)
    assert there.member_weights_ == pytest.approx(here.member_weights_)
    assert there.quality_ == pytest.approx(here.quality_)
