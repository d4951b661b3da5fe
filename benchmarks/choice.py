"""Bradley-Terry from integer ids to scores: Podium against choix, evalica and logistic regression.

Votes follow the model with normal scores. Every way reports the largest gradient of the likelihood at its answer, so
that speed bought by stopping early shows. "arena" is a logistic regression on a sparse design matrix with a row per
vote (scipy's L-BFGS), as public leaderboards did it; "pairs" is the same on unique pairs.

python benchmarks/choice.py [--quick]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
from timing import measure, once

from podium import Preferences, make
from podium.kernels import contest_scores
from podium.kernels.pairwise_votes import Votes

L2 = 1e-3
TOLERANCE = 1e-8


def games(votes: int, items: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Winners and losers as item numbers."""
    random = np.random.default_rng(seed)
    score = random.normal(size=items)
    a = random.integers(0, items, votes, dtype=np.int32)
    b = ((a + random.integers(1, items, votes)) % items).astype(np.int32)
    up = random.random(votes) < 1 / (1 + np.exp(score[b] - score[a]))
    return np.where(up, a, b), np.where(up, b, a)


def as_votes(winner: np.ndarray, loser: np.ndarray, items: int) -> Votes:
    """The arrays as one query, without ids."""
    n, none = len(winner), np.zeros(0, np.int32)
    return Votes(
        slots=np.array([0, items]),
        query_starts=np.zeros(2, np.int64),
        starts=np.zeros(1, np.int64),
        item=none,
        rank=none,
        list_weight=np.zeros(0),
        vote_starts=np.array([0, n]),
        winner=winner,
        loser=loser,
        tie=np.zeros(n, np.bool_),
        vote_weight=np.ones(n),
        below=False,
    )


def podium(winner: np.ndarray, loser: np.ndarray, items: int) -> np.ndarray:
    """Count and solve."""
    return contest_scores.fit_contests(
        contest_scores.count_contests(as_votes(winner, loser, items)), l2=L2
    ).scores


def podium_table(winner: np.ndarray, loser: np.ndarray, items: int) -> np.ndarray:
    """The public way: preferences, then a consensus."""
    one = np.zeros(len(winner), np.int32)
    preferences = Preferences.from_comparisons(one, one, winner, loser)
    scores = np.zeros(items)
    scores[np.array(preferences.index.items.tolist())] = (
        make("bradley_terry", l2=L2).aggregate(preferences).scores
    )
    return scores


def logistic(winner: np.ndarray, loser: np.ndarray, items: int, *, unique: bool) -> np.ndarray:
    """Ridge logistic regression by L-BFGS on a sparse design matrix."""
    from scipy import optimize, sparse

    weight = np.ones(len(winner))
    if unique:
        key, number = np.unique(winner.astype(np.int64) * items + loser, return_counts=True)
        winner, loser, weight = key // items, key % items, number.astype(np.float64)
    rows = np.arange(len(winner))
    ends = (np.concatenate((rows, rows)), np.concatenate((winner, loser)))
    sign = np.concatenate((np.ones(len(rows)), -np.ones(len(rows))))
    design = sparse.csr_array((sign, ends), shape=(len(rows), items))
    across = design.T.tocsr()

    def value(x: np.ndarray) -> tuple[float, np.ndarray]:
        d = design @ x
        q = 1 / (1 + np.exp(d))
        return float(weight @ np.logaddexp(0, -d) + L2 / 2 * (x @ x)), L2 * x - across @ (weight * q)

    stop = {"ftol": 1e-16, "gtol": TOLERANCE, "maxiter": 5_000, "maxfun": 10_000}
    return optimize.minimize(value, np.zeros(items), jac=True, method="L-BFGS-B", options=stop).x


def choix_dense(winner: np.ndarray, loser: np.ndarray, items: int) -> np.ndarray:
    """Iterative Luce spectral ranking on the matrix of wins."""
    import choix

    table = np.bincount(winner.astype(np.int64) * items + loser, minlength=items**2).reshape(items, items)
    return choix.ilsr_pairwise_dense(table.astype(np.float64), tol=TOLERANCE, max_iter=1_000)


def evalica_scores(winner: np.ndarray, loser: np.ndarray, items: int) -> np.ndarray:
    """Minorization-maximization in Rust; its own tolerance is on the change of the scores."""
    import evalica

    found = evalica.bradley_terry(
        winner.tolist(), loser.tolist(), [evalica.Winner.X] * len(winner), tolerance=1e-12, limit=10_000
    )
    return np.log([found.scores.get(i, 1.0) for i in range(items)])


def gradient(scores: np.ndarray, winner: np.ndarray, loser: np.ndarray, l2: float) -> float:
    """Largest absolute gradient of the likelihood (with the ridge) at centered scores."""
    scores = scores - scores.mean()
    q = 1 / (1 + np.exp(scores[winner] - scores[loser]))
    lost, won = (np.bincount(c, weights=q, minlength=len(scores)) for c in (loser, winner))
    return float(np.abs(lost - won + l2 * scores).max())


WAYS: dict[str, tuple[Callable[..., np.ndarray], float, int, int]] = {
    # name: call, ridge, most votes and most items it is asked for (above that it takes minutes, or gigabytes)
    "podium": (podium, L2, 10**8, 10**8),
    "podium, from a table": (podium_table, L2, 10**8, 10**8),
    "pairs": (lambda *a: logistic(*a, unique=True), L2, 10**8, 10**8),
    "arena": (lambda *a: logistic(*a, unique=False), L2, 10**6, 10**6),
    "choix": (choix_dense, 0.0, 10**8, 2_000),
    "evalica": (evalica_scores, 0.0, 10**7, 2_000),
}


def size(votes: int, items: int, ways: tuple[str, ...]) -> list[dict[str, Any]]:
    """Rows of one problem size; ratios are to the first way."""
    winner, loser = games(votes, items)
    rows: list[dict[str, Any]] = []
    for name in ways:
        call, ridge, most_votes, most_items = WAYS[name]
        if votes > most_votes or items > most_items:
            continue
        row: dict[str, Any] = {"votes": votes, "items": items, "way": name}
        try:
            if name.startswith("podium"):
                timing, scores = measure(lambda call=call: call(winner, loser, items), repeats=5)
                taken = timing.median
            else:
                taken, scores = once(lambda call=call: call(winner, loser, items))
        except Exception as problem:  # not installed, or no answer: said in place of its time
            rows.append(row | {"failed": f"{type(problem).__name__}: {problem}"})
            print(rows[-1], flush=True)
            continue
        row |= {"seconds": taken, "gradient": gradient(scores, winner, loser, ridge)}
        rows.append(row | {"times podium": taken / rows[0]["seconds"] if rows else 1.0})
        print(rows[-1], flush=True)
    return rows


def from_strings(votes: int, items: int) -> list[dict[str, Any]]:
    """From lists of string ids to scores by id, as a user would have them."""
    winner, loser = ([f"model-{i}" for i in column.tolist()] for column in games(votes, items))

    def own() -> object:
        one = np.zeros(votes, np.int32)
        return make("bradley_terry", l2=L2).aggregate(Preferences.from_comparisons(one, one, winner, loser))

    def arena() -> object:
        number = {name: code for code, name in enumerate(dict.fromkeys((*winner, *loser)))}
        codes = (np.fromiter(map(number.__getitem__, side), np.int64, votes) for side in (winner, loser))
        return logistic(*codes, len(number), unique=False)

    def in_rust() -> object:
        import evalica

        return evalica.bradley_terry(winner, loser, [evalica.Winner.X] * votes, tolerance=1e-12, limit=10_000)

    own()
    rows: list[dict[str, Any]] = []
    for name, call in (("podium", own), ("evalica", in_rust), ("arena", arena)):
        about = {"votes": votes, "items": items, "way": f"{name}, from string ids"}
        try:
            taken = measure(call, repeats=3)[0].median if name != "arena" else once(call)[0]
        except ImportError as problem:
            rows.append(about | {"failed": f"{type(problem).__name__}: {problem}"})
            continue
        rows.append(about | {"seconds": taken, "times podium": taken / rows[0]["seconds"] if rows else 1.0})
        print(rows[-1], flush=True)
    return rows


def run(quick: bool = False) -> list[dict[str, Any]]:
    """All sizes; then growth with the number of votes on the same items."""
    podium(*games(1_000_000, 1_000), 1_000)  # modules are imported before anything is timed
    podium(*games(20_000, 20_000), 20_000)
    every = tuple(WAYS)
    rows = size(10_000, 1_000, every) + size(1_000_000, 1_000, every)
    rows += from_strings(1_000_000, 1_000)
    if not quick:
        rows += size(10_000_000, 1_000, ("podium", "podium, from a table", "pairs", "evalica"))
        rows += size(10_000_000, 100_000, ("podium", "podium, from a table", "pairs"))
    for votes in (100_000, 300_000) if quick else (100_000, 300_000, 3_000_000):
        rows += size(votes, 10_000, ("podium",))
    return rows


def main() -> None:
    """Print the rows."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="up to a million votes")
    run(parser.parse_args().quick)


if __name__ == "__main__":
    main()
