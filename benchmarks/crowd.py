"""CrowdAgg: a crowd of the shape of TREC 2011, growth with the items of a query, and ways to a rank law.

The crowd has 100 queries of 190 items and 762 workers who judge 15 items at a time, 0 or 1, rightly with a probability
of their own. Ways to the laws of all items of a query: direct convolution, and trees of Fourier transforms with leaves
of several sizes; `podium.kernels.poisson_binomial.DIRECT` and `LEAF` come from here.

python benchmarks/crowd.py [--quick]
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from timing import measure, once

from podium import Preferences, make
from podium.kernels import poisson_binomial

TARGET = 3.0  # seconds for the whole crowd, modules imported


def crowd(queries: int, items: int, workers: int, lists: int, each: int, seed: int = 0) -> Preferences:
    """Binary judgements of workers with accuracies of their own."""
    random = np.random.default_rng(seed)
    accuracy = random.beta(6, 3, workers)
    truth = random.random((queries, items)) < 0.45
    query = np.repeat(random.integers(0, queries, lists), each)
    worker = np.repeat(random.integers(0, workers, lists), each)
    item = np.concatenate([random.choice(items, each, replace=False) for _ in range(lists)])
    right = random.random(len(item)) < accuracy[worker]
    score = (truth[query, item] == right).astype(float)
    return Preferences.from_rows(query, worker, item, score=score, duplicates="first")


def whole() -> list[dict[str, Any]]:
    """The crowd of the shape of TREC 2011."""
    preferences = crowd(100, 190, 762, 5_800, 15)
    rows = []
    for spec in ("crowdagg", "crowdagg(measure=rbp)", "crowdagg(quality=none)", "net_votes", "majority"):
        method = make(spec)
        method.aggregate(preferences)  # modules are imported before anything is timed
        timing, found = measure(lambda method=method: method.aggregate(preferences), repeats=3)
        row = {"crowd": "TREC 2011", "method": spec, "seconds": timing.median}
        rows.append(row | {"estimates": found.diagnostics.iterations, "met": timing.median < TARGET})
        print(rows[-1], flush=True)
    return rows


def growth(sizes: tuple[int, ...], workers: int) -> list[dict[str, Any]]:
    """Seconds of one estimate of the quality with ten judgements a worker, and of a discount given as numbers."""
    rows = []
    for items in sizes:
        preferences = crowd(1, items, workers, workers, 10)
        for spec in ("crowdagg(max_iterations=1)", "crowdagg(max_iterations=1, unjudged=even)"):
            method = make(spec)
            timing, _ = measure(lambda method=method, p=preferences: method.aggregate(p), repeats=3)
            rows.append({"items": items, "workers": workers, "method": spec, "seconds": timing.median})
            print(rows[-1], flush=True)
        numbers = (1 / np.log2(np.arange(items) + 2)).tolist()
        method = make("crowdagg(max_iterations=1, unjudged=even)", discount=numbers)
        timing, _ = measure(lambda method=method, p=preferences: method.aggregate(p), repeats=3)
        row = {"items": items, "workers": workers, "method": "even, discount in numbers"}
        rows.append(row | {"seconds": timing.median})
        print(rows[-1], flush=True)
    return rows


def rankings(sizes: tuple[int, ...]) -> list[dict[str, Any]]:
    """Ten complete rankings: every item meets every other one."""
    rows = []
    for items in sizes:
        random = np.random.default_rng(items)
        given = {"q": {e: random.permutation(items).tolist() for e in range(10)}}
        preferences, method = Preferences.from_lists(given), make("crowdagg(quality=none)")
        timing, _ = measure(lambda method=method, p=preferences: method.aggregate(p), repeats=3)
        rows.append({"items": items, "rankings": 10, "seconds": timing.median})
        print(rows[-1], flush=True)
    return rows


def crossover(sizes: tuple[int, ...]) -> list[dict[str, Any]]:
    """Seconds an item for the laws of 256 items with that many contests."""
    ways = {"direct": poisson_binomial.convolve_directly}
    ways |= {
        f"tree {leaf}": lambda w, leaf=leaf: poisson_binomial.convolve_by_fft(w, leaf)
        for leaf in (1, 32, 128, 512)
    }
    rows = []
    for contests in sizes:
        win = np.random.default_rng(contests).random((256, contests))
        row: dict[str, Any] = {"contests": contests}
        for name, way in ways.items():
            way(win)
            row[name] = measure(lambda way=way, win=win: way(win), repeats=3)[0].median / 256
        rows.append(row | {"best": min(ways, key=row.__getitem__)})
        print(rows[-1], flush=True)
    return rows


def noisy_bradley_terry() -> list[dict[str, Any]]:
    """Crowd-BT against crowd-kit's NoisyBradleyTerry: 10,000 votes of 100 workers on 1,000 items.

    The two stop by different quantities; both go to a tight one, and the correlation with the true scores is shown.
    """
    random = np.random.default_rng(0)
    votes, items, workers = 10_000, 1_000, 100
    first = random.integers(0, items, votes)
    second = (first + random.integers(1, items, votes)) % items
    truth, who = random.normal(size=items), random.integers(0, workers, votes)
    quality = random.choice([0.95, 0.8, 0.5, 0.1], workers, p=[0.4, 0.4, 0.1, 0.1])
    wins = random.random(votes) < 1 / (1 + np.exp(truth[second] - truth[first]))
    wins ^= random.random(votes) > quality[who]
    winner, loser = np.where(wins, first, second), np.where(wins, second, first)
    p = Preferences.from_comparisons(np.zeros(votes, np.int64), who, winner, loser)
    method = make("crowd_bt")
    method.aggregate(p)  # modules are imported before anything is timed
    timing, found = measure(lambda: method.aggregate(p), repeats=5)
    near = np.corrcoef(found.scores, truth[np.array(found.index.items.tolist())])[0, 1]
    rows = [{"work": "crowd_bt", "seconds": timing.median, "correlation": float(near)}]
    try:
        import pandas
        from crowdkit.aggregation import NoisyBradleyTerry
    except ImportError as problem:
        return [*rows, {"work": f"crowd-kit's NoisyBradleyTerry: not installed ({problem})"}]
    frame = pandas.DataFrame({"worker": who, "left": first, "right": second, "label": winner})
    taken, scores = once(lambda: NoisyBradleyTerry(n_iter=100_000, tol=1e-9).fit_predict(frame))
    near = np.corrcoef(scores.reindex(range(items)).fillna(0.0).to_numpy(), truth)[0, 1]
    peer = {"work": "crowd-kit's NoisyBradleyTerry", "seconds": taken, "correlation": float(near)}
    return [*rows, peer | {"times podium": taken / timing.median}]


def run(quick: bool = False) -> list[dict[str, Any]]:
    """All of it; the large sizes only when there is time."""
    rows = whole() + noisy_bradley_terry()
    rows += growth((50, 500, 5_000) if quick else (50, 150, 500, 1_500, 5_000), 1_000 if quick else 10_000)
    rows += rankings((50, 500) if quick else (50, 500, 1_500, 5_000))
    sizes = (50, 200, 800, 1_600, 5_000)
    return rows + crossover(sizes if quick else (50, 100, 200, 400, 800, 1_200, 1_600, 2_400, 5_000, 10_000))


def main() -> None:
    """Print the rows."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="fewer sizes")
    run(parser.parse_args().quick)


if __name__ == "__main__":
    main()
