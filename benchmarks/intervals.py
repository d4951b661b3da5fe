"""Do intervals hold what they promise? Votes are simulated from known scores; counted is how often intervals hold them.

python benchmarks/intervals.py [--repeats 500] [--bootstrap 200]

Every repeat draws scores, a connected random graph and votes by Bradley-Terry, fits, and asks which intervals (of the
score less the mean of all) hold the truth: by Fisher's errors, by the sandwich, and by the bootstrap. A level of 95 %
should be reached within two points, ranks and simultaneous intervals should reach it for all items at once.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator

import numpy as np

from podium.analysis.leaderboard import inference as u
from podium.kernels.contest_counts import Contests, group_votes_by_pair, orient_votes
from podium.kernels.dispatch import F8

CASES = ((10, 400), (30, 3_000), (30, 30_000))  # items, votes


def votes(items: int, count: int, random: np.random.Generator, spread: float = 1.0) -> tuple[Contests, F8]:
    """Votes among random neighbors on a ring with chords, and the true scores."""
    truth = random.normal(size=items) * spread
    a = random.integers(0, items, count)
    b = (a + np.where(random.random(count) < 0.3, 1, random.integers(1, items, count))) % items
    won = random.random(count) < 1 / (1 + np.exp(truth[b] - truth[a]))
    rows = orient_votes(np.where(won, a, b), np.where(won, b, a), np.zeros(count, np.bool_), np.ones(count))
    return group_votes_by_pair(np.array([0, items]), rows), truth


def one(met: Contests, truth: F8, rounds: int, seed: int) -> Iterator[tuple[str, float]]:
    """What one repeat covers, by the name of the interval."""
    e = u.estimate_scores(met)
    truth = truth - truth[e.origin].mean()
    z, inside = u.critical_value(0.95), e.origin
    for errors in ("fisher", "sandwich"):
        matrix = u.compute_covariance(e, errors)
        yield errors, _share(e.scores, z * np.sqrt(matrix.diagonal()), truth, inside)
    wide = u.critical_value(0.95, matrix)
    yield (
        "sandwich, all at once",
        float(_share(e.scores, wide * np.sqrt(matrix.diagonal()), truth, inside) == 1),
    )
    low, high = u.rank_bounds(e.scores, u.pairwise_p(e.scores, matrix))
    true_rank = u.rank_draws(truth[None])[0]
    yield "ranks by tests, all at once", float(((low <= true_rank) & (true_rank <= high)).all())
    drawn = u.bootstrap_scores(e, rounds, seed=seed)
    yield "bootstrap, normal", _share(e.scores, z * drawn.std(axis=0, ddof=1), truth, inside)
    low_, high_ = np.quantile(drawn, (0.025, 0.975), axis=0)
    yield "bootstrap, percentile", float(((low_ <= truth) & (truth <= high_))[inside].mean())
    yield (
        "bootstrap, basic",
        float(((2 * e.scores - high_ <= truth) & (truth <= 2 * e.scores - low_))[inside].mean()),
    )


def _share(scores: F8, half: F8, truth: F8, inside: object) -> float:
    return float((np.abs(scores - truth) <= half)[inside].mean())  # type: ignore[index]


def run(repeats: int, rounds: int) -> list[dict[str, object]]:
    """All cases."""
    found = []
    for items, count in CASES:
        shares: dict[str, list[float]] = {}
        for repeat in range(repeats):
            met, truth = votes(items, count, np.random.default_rng([repeat, items, count]))
            for name, share in one(met, truth, rounds, repeat):
                shares.setdefault(name, []).append(share)
        case = {name: round(100 * float(np.mean(s)), 2) for name, s in shares.items()}
        print(f"{items} items, {count:,} votes, {repeats} repeats")
        for name, share in case.items():
            print(f"  {name:30s} {share:6.2f} %", flush=True)
        found.append({"items": items, "votes": count, "repeats": repeats, "rounds": rounds, "covered": case})
    return found


if __name__ == "__main__":
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--repeats", type=int, default=500)
    words.add_argument("--bootstrap", type=int, default=200)
    words.add_argument("-o", "--output", help="write the figures as JSON")
    given = words.parse_args()
    figures = run(given.repeats, given.bootstrap)
    if given.output:
        with open(given.output, "w") as file:
            json.dump(figures, file, indent=2)
