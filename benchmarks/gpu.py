"""Training on a CUDA device against two processor cores: LambdaRank with a hidden layer, the CRF, singular vectors.

OPENBLAS_NUM_THREADS=2 PODIUM_THREADS=2 taskset -c 0,1 python benchmarks/gpu.py
    [--quick] [--device cuda|torch] [--only mlp,linear,crf,svd]

`mlp`: a made-up set of the size of MSLR-WEB30K, 30,000 queries x 120 items x 136 features, hidden layer of 64 tanh
units, Adam. `linear`: the same without a hidden layer. A pass is timed from the call to the weights back on the host;
the features are on the device before. `crf`: the training part of the first fold of MQ2007-agg (or a set of that
shape). The floor is the time to read the features (or the preferences about the items) once at the bandwidth that a
copy shows on this device. `svd`: leading singular vectors of lists with gaps, from lists on the host to vectors there.
The processor (`host`) does the same in double precision with two threads, LambdaRank on a tenth of the queries, and
the time is multiplied by ten.

How far results are off, as the largest difference over the largest value: `gradient off`, of a batch of 1,024 queries
in single precision against double precision on the device; `double off host`, the weights after the pass that both
made in double precision; `off`, the weights or vectors of the device against those of the host.
"""

from __future__ import annotations

import argparse
import functools
from typing import Any

import numpy as np
from timing import measure, once, seconds

from podium.kernels import preference_svd, ranking_expectations
from podium.kernels.device import preference_svd as device_strengths
from podium.kernels.device.lambdarank_training import DeviceObjective
from podium.kernels.device.ranking_expectations import DeviceCrf
from podium.kernels.device.torch_device import TorchDevice, resolve_device
from podium.kernels.dispatch import F8, I8
from podium.kernels.lambdas import MetricTarget, OptimizerState, train_linear_pass
from podium.kernels.ranking_measures import SUM
from podium.learning.feature_scorer import Network, train_network_pass

QUERIES, ITEMS, WIDTH, HIDDEN = 30_000, 120, 136, 64
NOMINAL = {"NVIDIA H200": 4.8e12, "NVIDIA H100 80GB HBM3": 3.35e12}  # bytes a second, by the maker


def wait(where: TorchDevice) -> None:
    """Until the device is done."""
    if where.device.type == "cuda":
        where.torch.cuda.synchronize()


def bandwidth(where: TorchDevice) -> float:
    """Bytes a second of a large copy on the device, read and written."""
    size = 1 << (30 if where.device.type == "cuda" else 26)
    a, b = where.zeros(size // 4, kind=where.torch.float32), where.zeros(size // 4, kind=where.torch.float32)

    def copy() -> None:
        for _ in range(5):
            b.copy_(a)
        wait(where)

    copy()
    return 5 * 2 * size / measure(copy, repeats=5)[0].median


def made(queries: int) -> tuple[F8, I8, MetricTarget]:
    """Features, offsets and the target NDCG, rows best grade first."""
    random = np.random.default_rng(0)
    rows = queries * ITEMS
    values = np.empty((rows, WIDTH))
    for first in range(0, rows, 1 << 19):
        part = values[first : first + (1 << 19)]
        part[:] = random.standard_normal(part.shape, np.float32)
    worth = values[:, :8] @ random.normal(size=8) + np.tanh(values[:, 8:16]).sum(axis=1)
    grade = np.digitize(worth + 2 * random.normal(size=rows), [1.0, 4.0, 6.0, 8.0]).reshape(queries, ITEMS)
    order = np.argsort(-grade, axis=1, kind="stable")
    values = values.reshape(queries, ITEMS, WIDTH)
    for q in range(queries):
        values[q] = values[q, order[q]]
    level = np.take_along_axis(grade, order, 1).astype(np.int32)
    gain, discount = np.exp2(level) - 1.0, 1.0 / np.log2(np.arange(ITEMS) + 2.0)
    best = (gain * discount).sum(axis=1)
    scale = np.divide(1.0, best, out=np.zeros(queries), where=best > 0)
    limit = np.full(queries, ITEMS)
    target = MetricTarget(SUM, gain.ravel(), level.ravel(), discount, limit, scale)
    return values.reshape(rows, WIDTH), np.arange(queries + 1) * ITEMS, target


def fresh(weights: F8) -> OptimizerState:
    """Adam at its first step."""
    return OptimizerState(
        weights.copy(),
        np.zeros_like(weights),
        np.zeros_like(weights),
        np.zeros(1, np.int64),
        True,
        0.01,
        0.0,
        False,
    )


def host_pass(
    network: Network, values: F8, starts: I8, target: MetricTarget, visit: I8, batch: int, o: OptimizerState
) -> None:
    """What the learner does on the processor."""
    if not network.hidden:
        train_linear_pass(values, starts, target, visit, batch, o)
        return
    train_network_pass(network, values, starts, target, visit, batch, o)


def part_of(values: F8, starts: I8, target: MetricTarget, queries: int) -> tuple[F8, I8, MetricTarget]:
    """The first queries alone."""
    rows = np.arange(starts[queries])
    return values[: len(rows)], starts[: queries + 1], target.select_queries(rows, np.arange(queries))


def passes(
    where: TorchDevice, queries: int, hidden: int, batches: tuple[int, ...], speed: float, share: int
) -> list[dict[str, Any]]:
    """Rows for passes over the made-up set."""
    values, starts, target = made(queries)
    random, network = np.random.default_rng(1), Network(WIDTH, hidden)
    begin = network.init_weights(random) if hidden else np.zeros(WIDTH)
    if hidden:
        begin[-hidden:] = random.normal(size=hidden) / 8
    widths = [WIDTH, hidden] if hidden else [WIDTH]
    took, lesson = once(lambda: DeviceObjective(where, values, starts, target, widths))
    wait(where)
    double = where._replace(real=where.torch.float64)
    exact = DeviceObjective(double, values, starts, target, widths)
    size = values.size * where.zeros(1).element_size()
    floor = size / speed
    some = random.permutation(queries)[:1024]
    slope_off = far(*(one_step(which, begin, some) for which in (lesson, exact)))
    rows = []
    for batch in batches:
        visit = random.permutation(queries)

        def once_over(which: DeviceObjective = lesson, visit: I8 = visit, batch: int = batch) -> F8:
            o = fresh(begin)
            which.learn(visit, batch, o)
            return o.weights

        once_over()
        timing, _ = measure(once_over, repeats=7)
        part = random.permutation(min(queries, max(batch, queries // share)))
        few = part_of(values, starts, target, len(part))
        host_pass(network, *few, part[:batch], batch, fresh(begin))  # first-call costs are not measured
        o, check = fresh(begin), fresh(begin)
        host, _ = once(functools.partial(host_pass, network, *few, part, batch, o))
        exact.learn(part, batch, check)
        host *= queries / len(part)
        rows.append({
            "work": f"LambdaRank, {f'hidden {hidden}' if hidden else 'linear'}, batch {batch}",
            "device": str(timing), "host": seconds(host), "faster by": f"{host / timing.median:.0f}",
            "floor": seconds(floor), "share of floor": f"{floor / timing.median:.1%}",
            "gradient off": f"{slope_off:.1e}", "double off host": f"{far(check.weights, o.weights):.1e}",
        })  # fmt: skip
    rows[0]["upload"] = seconds(took)
    return rows


def one_step(lesson: DeviceObjective, begin: F8, visit: I8) -> F8:
    """The gradient over some queries."""
    o = fresh(begin)._replace(adam=False, rate=1.0)
    lesson.learn(visit, len(visit), o)
    return begin - o.weights


def far(found: F8, wanted: F8) -> float:
    """Largest difference over the largest value."""
    return float(np.abs(found - wanted).max() / np.abs(wanted).max())


def field(where: TorchDevice, batches: tuple[int, ...], speed: float) -> list[dict[str, Any]]:
    """Rows for passes of the CRF."""
    from learning import data
    from podium.learning.examples import Examples
    from podium.methods.learned.crf import CrfAggregator
    from podium.methods.learned.crf_columns import PotentialColumns
    from podium.methods.learned.crf_features import NO_FEATURES
    from podium.methods.learned.crf_potentials import build_potentials, compute_scales, sum_squares_within
    from podium.methods.learned.potentials import collect_entries, parse_potentials

    train, what = data()
    examples, count = (
        Examples.from_labels(train.preferences.index, train.labels),
        len(train.preferences.experts),
    )
    columns = PotentialColumns(parse_potentials("absence + pairwise"), NO_FEATURES)
    entries = collect_entries(train.preferences, "log", 0.5, np.ones(count, np.bool_))
    statements = columns.build_statements(entries, None, "crf")
    mine = build_potentials(
        *(statements, columns.unlisted, np.arange(count), count, examples.rows),
        len(train.preferences.index.items),
    )
    index = examples.labels.index
    squares = sum_squares_within(mine, index.query_of_slot, index.sizes, count)
    mine = mine._replace(values=mine.values / compute_scales([squares], columns.owner))
    target, useful = examples.learning_target("ndcg:exp")
    size, random, rows = CrfAggregator().subset, np.random.default_rng(0), []
    visit = random.permutation(useful)
    chosen = ranking_expectations.sample_subsets(
        examples.starts, target.level, visit, size, random.random((len(visit), 2 * size))
    )
    floor = len(visit) * size * 3 * count * where.zeros(1).element_size() / speed
    there = [
        DeviceCrf(m, mine, target, examples.weight, examples.starts, count, size)
        for m in (where, where._replace(real=where.torch.float64))
    ]
    for batch in batches:

        def on(which: DeviceCrf, batch: int = batch) -> F8:
            o = fresh(np.zeros(3 * count))
            which.learn(visit, chosen, batch, o)
            return o.weights

        def host(batch: int = batch) -> F8:
            o = fresh(np.zeros(3 * count))
            ranking_expectations.train_crf_pass(mine, target, examples.weight, visit, chosen, batch, o)
            return o.weights

        on(there[0]), host()
        timing, weights = measure(lambda on=on: on(there[0]), repeats=7)
        double, (slow, wanted) = on(there[1]), measure(host, repeats=5)
        rows.append({
            "work": f"CRF, batch {batch}, {len(visit)} visits, {what}", "device": str(timing),
            "host": seconds(slow.median), "faster by": f"{slow.median / timing.median:.1f}",
            "floor": seconds(floor), "share of floor": f"{floor / timing.median:.2%}",
            "off": f"{far(weights, wanted):.1e}", "double off host": f"{far(double, wanted):.1e}",
        })  # fmt: skip
    return rows


def vectors(where: TorchDevice, quick: bool) -> list[dict[str, Any]]:
    """Rows for leading singular vectors, from the lists on the host to vectors on the host."""
    from svd import CASES, lists

    rows = []
    for count, size in (*CASES, (200_000, 100)):
        m = lists(count // 10 if quick and count > 10 else count, size, gaps=True)
        device_strengths.compute_leading_vectors(where, m)
        timing, found = measure(lambda m=m: device_strengths.compute_leading_vectors(where, m), repeats=5)
        preference_svd.compute_leading_vectors(m)
        host, wanted = measure(lambda m=m: preference_svd.compute_leading_vectors(m), repeats=5)
        off = max(far(found.u, wanted.u), far(found.v, wanted.v))
        rows.append({
            "work": f"{count:,} lists of {size:,} items", "device": str(timing), "host": str(host),
            "faster by": f"{host.median / timing.median:.2f}", "off": f"{off:.1e}",
        })  # fmt: skip
    return rows


def run(quick: bool = False, device: str = "cuda", only: str = "mlp,linear,crf,svd") -> list[dict[str, Any]]:
    """A row per piece of work; a quick run takes a thirtieth of the queries."""
    where = resolve_device(device)
    where = where._replace(real=where.torch.float32)
    speed = bandwidth(where)
    name = where.torch.cuda.get_device_name() if where.device.type == "cuda" else "the processor"
    nominal = f"; {NOMINAL[name] / 1e12:g} by its maker" if name in NOMINAL else ""
    print(f"{name}, PyTorch {where.torch.__version__}: a copy moves {speed / 1e12:.2f} TB/s{nominal}")
    queries, rows = QUERIES // (30 if quick else 1), []
    parts = only.split(",")
    if "mlp" in parts:
        rows += passes(where, queries, HIDDEN, (64, 256, 1024), speed, 1 if quick else 10)
    if "linear" in parts:
        rows += passes(where, queries, 0, (256, 1024), speed, 1 if quick else 10)
    if "crf" in parts:
        rows += field(where, (8, 128), speed)
    return rows + (vectors(where, quick) if "svd" in parts else [])


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--device", default="cuda", choices=("cuda", "torch"))
    parser.add_argument("--only", default="mlp,linear,crf,svd")
    given = parser.parse_args()
    for row in run(given.quick, given.device, given.only):
        print("  ".join(f"{key}: {value}" for key, value in row.items()))
