"""The kernels for a CUDA device against those of the processor; without a device PyTorch runs on the processor too."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from podium import Dataset, Features, Labels, Preferences, make
from podium.core.errors import ParameterError
from podium.kernels import lambdas as host
from podium.kernels import preference_svd, ranking_expectations
from podium.kernels.lambdas import OptimizerState
from podium.kernels.ranking_expectations import Potentials
from podium.learning.examples import Examples
from podium.learning.feature_scorer import Network, train_network_pass
from podium.methods.learned.expert_matrices import build_expert_matrices
from podium.methods.learned.lambdarank import LambdaRank

torch = pytest.importorskip(
    "torch", reason="the kernels for devices need PyTorch: pip install 'podium-rank[torch]'"
)

from podium.kernels.device import lambdarank_training  # noqa: E402
from podium.kernels.device import lambdas as device_lambdas  # noqa: E402
from podium.kernels.device import preference_svd as device_strengths  # noqa: E402
from podium.kernels.device.lambdarank_training import DeviceObjective  # noqa: E402
from podium.kernels.device.ranking_expectations import DeviceCrf  # noqa: E402
from podium.kernels.device.torch_device import TorchDevice, resolve_device  # noqa: E402

PLACE, DEVICE = ("cuda", "cuda64") if torch.cuda.is_available() else ("cpu", "torch")
TOLERANCE = {torch.float64: 1e-12, torch.float32: 2e-5}
METRICS = ["ndcg:exp", "ndcg@3:letor", "map", "err", "mrr", "rbp(p=0.8)"]


@pytest.fixture(params=[torch.float64, torch.float32], ids=["double", "single"])
def where(request):
    return TorchDevice(torch, torch.device(PLACE), request.param)


def examples(seed=0, queries=17, longest=40):
    random = np.random.default_rng(seed)
    sizes = random.integers(1, longest, queries)
    sizes[0] = longest
    labels = Labels.from_dict(
        {
            q: {i: float(g) for i, g in enumerate(random.integers(0, 3, n))}
            for q, n in enumerate(sizes.tolist())
        }
    )
    return Examples.from_labels(labels.index, labels), random


def rows_of(where, found, target):
    longest = int(np.diff(found.starts).max())
    discount = np.concatenate((target.discount[:longest], np.ones(max(0, longest - len(target.discount)))))
    put = where.to_device
    return device_lambdas.DeviceRows(
        put(found.starts), put(target.gain, where.real), put(target.level), put(target.weight, where.real),
        put(target.limit), put(target.scale, where.real), target.kind, put(discount, where.real),
    )  # fmt: skip


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("kind", ["apart", "tied", "equal"])
def test_gradients_of_queries(where, metric, kind):
    found, random = examples()
    target = found.build_target(metric)._replace(weight=random.random(len(found)) + 0.5)
    scores = random.normal(size=len(found))
    if kind == "tied":
        scores = np.round(scores) + 1e-13 * random.normal(size=len(scores))
    elif kind == "equal":
        scores[:] = 0.25
    wanted = host.compute_lambdas(scores, found.starts, target)
    got = device_lambdas.compute_lambdas(
        where, where.to_device(scores, where.real), rows_of(where, found, target)
    )
    assert got.cpu().numpy() == pytest.approx(wanted, abs=TOLERANCE[where.real] * np.abs(wanted).max())


def optimizer(weights, adam=True, rate=0.05, **others):
    state = (weights, np.zeros_like(weights), np.zeros_like(weights), np.zeros(1, np.int64))
    return OptimizerState(*state, adam, rate, 0.01, others.get("positive", False), others.get("towards"))


@pytest.mark.parametrize("metric", ["ndcg:exp", "map"])
@pytest.mark.parametrize(("hidden", "layers"), [(0, 1), (5, 1), (4, 2)])
@pytest.mark.parametrize("adam", [True, False])
def test_passes_of_a_network(where, metric, hidden, layers, adam):
    found, random = examples()
    values, network = random.normal(size=(len(found), 7)), Network(7, hidden, layers)
    target, useful = found.learning_target(metric)
    begin = network.init_weights(random) + 0.1 * random.normal(size=network.size)
    lesson = DeviceObjective(where, values, found.starts, target, network.widths)
    mine, theirs = optimizer(begin.copy(), adam), optimizer(begin.copy(), adam)
    for _ in range(3):
        visit = random.permutation(useful)
        lesson.learn(visit, 4, mine)
        train_network_pass(network, values, found.starts, target, visit, 4, theirs)
    assert mine.weights == pytest.approx(theirs.weights, abs=TOLERANCE[where.real])
    assert mine.square == pytest.approx(theirs.square, rel=1e-3, abs=1e-9)
    assert mine.steps == theirs.steps
    assert lesson.scores(mine.weights) == pytest.approx(
        network.compute_scores(mine.weights, values), abs=1e-5
    )


def test_the_first_steps_of_a_few_queries_and_bounds_on_weights(where):
    found, random = examples(queries=3)
    values, network = random.normal(size=(len(found), 4)), Network(4)
    target, useful = found.learning_target("ndcg:exp")
    lesson = DeviceObjective(where, values, found.starts, target, network.widths)
    how = {"positive": True, "towards": np.full(4, 0.3)}
    mine, theirs = optimizer(np.ones(4), False, 3.0, **how), optimizer(np.ones(4), False, 3.0, **how)
    for batch in (100, 1):
        lesson.learn(useful, batch, mine)
        train_network_pass(network, values, found.starts, target, useful, batch, theirs)
        assert mine.weights == pytest.approx(theirs.weights, abs=1e-5)
    assert mine.weights.min() >= 0


@pytest.mark.parametrize("hidden", [0, 20, 100])
def test_queries_longer_than_a_block_and_the_same_bits_again(where, hidden, monkeypatch):
    monkeypatch.setattr(
        lambdarank_training, "PARTS", 2
    )  # programs that add up the gradients of several queries
    found, random = examples(queries=5, longest=300)
    values, network = random.normal(size=(len(found), 37)), Network(37, hidden)
    target, useful = found.learning_target("ndcg:exp")
    lesson = DeviceObjective(where, values, found.starts, target, network.widths)
    mine = [optimizer(network.init_weights(np.random.default_rng(0)), rate=0.01) for _ in range(3)]
    for o in mine[:2]:
        lesson.learn(useful, 4, o)
    train_network_pass(network, values, found.starts, target, useful, 4, mine[2])
    assert np.array_equal(mine[0].weights, mine[1].weights)
    assert mine[0].weights == pytest.approx(mine[2].weights, abs=10 * TOLERANCE[where.real])


@pytest.mark.parametrize("metric", ["ndcg:exp", "ndcg@3:letor", "map", "err"])
@pytest.mark.parametrize("size", [3, 6])
def test_passes_of_the_crf(where, metric, size):
    found, random = examples(longest=11)
    groups = 4
    entry = np.sort(random.choice(len(found) * groups, 2 * len(found), replace=False))
    starts = np.searchsorted(entry, np.arange(len(found) + 1) * groups)
    said = Potentials(starts, entry % groups, random.normal(size=(len(entry), 3)))
    (target, useful), weight = found.learning_target(metric), random.random(len(found.starts) - 1)
    field = DeviceCrf(where, said, target, weight, found.starts, groups, size)
    mine, theirs = optimizer(np.zeros(3 * groups)), optimizer(np.zeros(3 * groups))
    for _ in range(3):
        visit = random.permutation(useful)
        rows = ranking_expectations.sample_subsets(
            found.starts, target.level, visit, size, random.random((len(visit), 2 * size))
        )
        loss = ranking_expectations.train_crf_pass(said, target, weight, visit, rows, 5, theirs)
        assert field.learn(visit, rows, 5, mine) == pytest.approx(loss, abs=1e-6)
    assert mine.weights == pytest.approx(theirs.weights, abs=TOLERANCE[where.real])


@pytest.mark.parametrize("unlisted", ["unknown", "below"])
@pytest.mark.parametrize("transform", ["log", "rank", "binary"])
@pytest.mark.parametrize("together", [False, True])
def test_leading_singular_vectors(unlisted, transform, together):
    random = np.random.default_rng(0)
    lists = {
        q: {e: [int(i) for i in random.permutation(12)[: random.integers(1, 12)]] for e in "abc"}
        for q in range(9)
    }
    found = build_expert_matrices(
        Preferences.from_lists(lists, unlisted=unlisted),
        transform,
        np.zeros(3, np.int64) if together else None,
    )
    same_vectors(found.matrices)


def same_vectors(m):
    mine, theirs = (
        device_strengths.compute_leading_vectors(
            resolve_device("torch")._replace(device=torch.device(PLACE)), m
        ),
        preference_svd.compute_leading_vectors(m),
    )
    assert mine.converged
    assert mine.u == pytest.approx(theirs.u, abs=1e-11)
    assert mine.v == pytest.approx(theirs.v, abs=1e-11)
    assert mine.sigma == pytest.approx(theirs.sigma, rel=1e-11, abs=1e-14)


@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("below", [False, True])
def test_leading_singular_vectors_of_lists_of_all_lengths(binary, below):
    random = np.random.default_rng(2)
    lengths = np.array([1, 2, 20, 32, 33, 100, 128, 129, 700, 5000])
    starts = np.concatenate(([0], np.cumsum(lengths)))
    slots = np.concatenate(([0], np.cumsum(lengths + 3)))
    item = np.concatenate(
        [s + random.permutation(n + 3)[:n] for s, n in zip(slots[:-1], lengths, strict=True)]
    )
    value = np.concatenate([np.cumsum(random.integers(0, 3, n) ** 2.0) / n for n in lengths])
    value[starts[5] + 50 : starts[6]] += 1e3  # one list in two parts
    one, none = np.arange(len(slots)), np.zeros(len(slots), np.int64)
    some = item.astype(np.int32)
    votes = (none, some[:0], some[:0], np.zeros(0))
    same_vectors(
        preference_svd.PreferenceMatrices(slots, one[:-1], one, starts, some, value, binary, below, *votes)
    )


def test_leading_singular_vectors_of_votes_and_of_nothing():
    random = np.random.default_rng(1)
    votes = [
        (q, random.choice(["x", "y"]), *random.choice(9, 2, replace=False))
        for q in range(4)
        for _ in range(25)
    ]
    query, expert, winner, loser = (list(column) for column in zip(*votes, strict=True))
    p = Preferences.from_comparisons(
        query, [str(e) for e in expert], [int(w) for w in winner], [int(w) for w in loser]
    )
    same_vectors(build_expert_matrices(p, "log", np.zeros(2, np.int64)).matrices)
    same_vectors(build_expert_matrices(Preferences.from_lists({"q": {"a": ["x"]}}), "log").matrices)


def data(queries=20):
    random = np.random.default_rng(3)
    noise = {"a": 1, "b": 3, "c": 9}
    lists = {
        q: {e: np.argsort(np.arange(9) + s * random.normal(size=9))[:7].tolist() for e, s in noise.items()}
        for q in range(queries)
    }
    labels = Labels.from_dict({q: {i: float((8 - i) // 3) for i in range(9)} for q in range(queries)})
    return Dataset(Preferences.from_lists(lists), labels)


@pytest.mark.parametrize(
    "spec",
    [
        "svd(passes=4, members=2, device={})",
        "svd(passes=4, hidden=6, device={})",
        "fused(passes=3, members=1, device={})",
        "crf(passes=5, average=2, device={})",
    ],
)
@pytest.mark.filterwarnings("ignore::podium.core.errors.NoGainWarning")  # the sample is small
def test_methods_learn_the_same_there(spec):
    train, check = data(), data(7)
    fitted = [
        make(spec.format(d)).fit(train.preferences, train.labels, validation=check) for d in ("cpu", DEVICE)
    ]
    here, there = (model.aggregate(check.preferences).scores for model in fitted)
    assert there == pytest.approx(here, abs=1e-9)
    assert fitted[0].passes_ == fitted[1].passes_
    assert fitted[1].get_parameters()["device"] == DEVICE


def test_lambdarank_there():
    random = np.random.default_rng(0)
    q, i = np.repeat(np.arange(12), 8), np.tile(np.arange(8), 12)
    x = random.normal(size=(96, 3))
    features, labels = (
        Features.from_rows(q, i, x),
        Labels.from_rows(q, i, np.digitize(x[:, 0], [0, 1]).astype(float)),
    )
    for how in ({}, {"hidden": 4, "standardize": True}):
        here, there = (LambdaRank(passes=5, device=d, **how).fit(features, labels) for d in ("cpu", DEVICE))
        assert there.predict(features) == pytest.approx(here.predict(features), abs=1e-9)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_no_device_is_an_error_that_says_so():
    train = data(3)
    for spec in ("svd(device=cuda)", "crf(device=cuda64)"):
        with pytest.raises(ParameterError, match=r"needs a CUDA device.*device='cpu'"):
            make(spec).fit(train.preferences, train.labels)
    with pytest.raises(ParameterError, match="trains LambdaRank"):
        LambdaRank(scorer="lambdamart", device="torch")


def test_triton_kernels_by_its_interpreter():
    pytest.importorskip("triton", reason="Triton is not installed; it comes with PyTorch for CUDA")
    if torch.cuda.is_available() or os.environ.get("TRITON_INTERPRET") == "1":
        pytest.skip("the other tests run the kernels themselves")
    chosen = "singular or single and ((test_passes and ndcg) or test_the_first_steps or test_queries)"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", chosen, __file__]
    done = subprocess.run(
        command, check=False, env={**os.environ, "TRITON_INTERPRET": "1"}, capture_output=True, text=True
    )
    if "only 0-dimensional arrays" in done.stdout:
        pytest.skip("this version of Triton cannot interpret loops with this version of NumPy")
    assert done.returncode == 0, done.stdout[-2000:]
