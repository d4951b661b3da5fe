"""How many votes do chosen pairs save, compared with random pairs?

python benchmarks/active_pairs.py [noise] [truths] [board] [online] [top] [judges] [speed] [--repeats 10] [--items 1000]

Protocol, fixed before the first run of this script (the rule was chosen before, on seeds 0 and 1 of these truths, among
Swiss rounds, expected information gain and the reduction of misplaced pairs, with and without a covariance matrix).

- Truth: scores of `--items` items, scaled to a standard deviation s of log odds. `normal`; `heavy` (Student's t with 3
  degrees of freedom); `clustered` (20 normal centers, items 0.05 standard deviations around them); `uniform`. A vote
  follows the Bradley-Terry model. The larger s, the more often the better of two random items wins (`agreement`).
- Rounds of items / 2 votes. `random`: every vote on two items drawn at random. `balanced`: random pairings in which
  every item occurs once per round. `swiss`: neighbors by a draw from the posterior meet, once per round. `gain`: as in
  ASAP and Hybrid-MST, the pairs of the largest expected information gain, by item (the one with the largest variance,
  then its best opponent), on the same posterior. `podium`: `PairChooser`, what `podium.suggest_comparisons` uses.
- After each round (every fourth one of `random` and `balanced`) all scores are fitted to all votes with the same prior
  for every rule, and Kendall's tau with the truth is computed. Counted are the votes until tau is 0.9, interpolated
  between the two fits around it; seeds 100, 101, ... . The ratio is that of the means, its error by the delta method.
  A rule that does not get there within 250 rounds has no figure.
- `limit`: 0.25 over the mean information of a vote on two random items, which no rule can exceed by much once scores
  are known roughly: the most that close pairs can save, without the cost of finding out which pairs are close.
- noise: `normal`, s of 1, 1.5, 2, 3 and 5, for random and podium. truths: s = 3, all truths and rules.
- online: `ComparisonPlanner`, a suggestion and a vote at a time, `normal`, s = 3, a fifth of the repeats.
- board: votes until the order of `podium leaderboard` (ridge 0.001 instead of the prior) reaches tau 0.9, s = 3.
- top: votes until 90 % of the true best 20 are among the best 20, s = 3: random, podium, podium with top=20.
- judges: 200 items, s = 3. Three judges cost 1 each, with slopes 2, 1 and 0.2. 2,000 votes on random pairs to begin
  with, then batches of 100. Votes until tau 0.95 with `cost` per judge, and with judges in turn.
- speed: time of processor and peak memory: a suggestion and a vote at 1,000 items, batches of 15,000 pairs at 30,000
  items before the first vote and after 450,000 votes.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from podium import suggest_comparisons
from podium.analysis.leaderboard import ComparisonPlanner, Tally
from podium.analysis.leaderboard.comparison_planner import count_pairs
from podium.analysis.leaderboard.pair_choice import PairChooser, expect_information
from podium.analysis.leaderboard.score_posterior import ScorePosterior, build_prior, fit_posterior
from podium.data.vote_table import VoteTable
from podium.kernels.contest_scores import fit_contests
from podium.kernels.dispatch import F8, I8
from podium.kernels.distributions import logistic

SECTIONS = ("noise", "truths", "online", "board", "top", "judges", "speed")
GOAL, FIRST_SEED, MOST = 0.9, 100, 250
Pairs = tuple[I8, I8]


def show(**row: Any) -> None:
    """Print one result."""
    print(json.dumps(row), flush=True)


def draw_truth(kind: str, size: int, spread: float, rng: np.random.Generator) -> F8:
    """Scores of the items."""
    if kind == "normal":
        scores = rng.normal(size=size)
    elif kind == "heavy":
        scores = rng.standard_t(3, size=size)
    elif kind == "clustered":
        scores = rng.normal(size=20)[rng.integers(0, 20, size)] + 0.05 * rng.normal(size=size)
    else:
        scores = rng.uniform(size=size)
    return np.asarray((scores - scores.mean()) / scores.std() * spread, np.float64)


def vote(truth: F8, first: I8, second: I8, rng: np.random.Generator) -> F8:
    """1 where the first item wins."""
    return (rng.random(len(first)) < logistic(truth[first] - truth[second])).astype(np.float64)


def compute_tau(truth: F8, scores: F8) -> float:
    """Kendall's tau, by counting all pairs."""
    signs = np.sign(truth[:, None] - truth) * np.sign(scores[:, None] - scores)
    return float(signs.sum() / (len(truth) * (len(truth) - 1)))


# -- rules -----------------------------------------------------------------------------------------------------------


def pair_at_random(size: int, count: int, rng: np.random.Generator) -> Pairs:
    """Each pair drawn at random."""
    first = rng.integers(0, size, count)
    return first, (first + rng.integers(1, size, count)) % size


def pair_neighbors(scores: F8) -> Pairs:
    """Each item with its neighbor in the order."""
    order = np.argsort(scores)[: len(scores) // 2 * 2]
    return order[::2], order[1::2]


def pair_by_gain(posterior: ScorePosterior, count: int, rng: np.random.Generator) -> Pairs:
    """The largest variance, then the largest expected information gain, each pair once."""
    variances, means = posterior.variances * (1 + 1e-3 * rng.random(len(posterior.means))), posterior.means
    taken: set[tuple[int, int]] = set()
    pairs = []
    for _ in range(count):
        i = int(variances.argmax())
        total = variances[i] + variances
        information = expect_information(means[i] - means, total)
        gain = information * total
        gain[i] = -1.0
        while (min(i, j := int(gain.argmax())), max(i, j)) in taken:
            gain[j] = -1.0
        taken.add((min(i, j), max(i, j)))
        pairs.append((i, j))
        share = information[j] / (1 + information[j] * total[j])
        variances[[i, j]] -= variances[[i, j]] ** 2 * share
    first, second = np.array(pairs, np.int64).T
    return first, second


def choose_pairs(rule: str, posterior: ScorePosterior, rng: np.random.Generator, top: int | None) -> Pairs:
    """The pairs of a round."""
    size = len(posterior.means)
    if rule == "random":
        return pair_at_random(size, size // 2, rng)
    if rule == "balanced":
        return pair_neighbors(rng.random(size))
    if rule == "swiss":
        return pair_neighbors(posterior.means + np.sqrt(posterior.variances) * rng.normal(size=size))
    if rule == "gain":
        return pair_by_gain(posterior, size // 2, rng)
    chooser = PairChooser(posterior, rng=rng, top=top)
    pairs = []
    for _ in range(size // 2):
        pair = chooser.choose()
        assert pair is not None
        chooser.count_as_answered(pair)
        pairs.append(pair[:2])
    first, second = np.array(pairs, np.int64).T
    return first, second


def iterate_rounds(
    rule: str, truth: F8, rng: np.random.Generator, *, top: int | None = None, board: bool = False
) -> Iterator[tuple[int, F8]]:
    """The number of votes and the scores after each round."""
    size = len(truth)
    posterior, start, scores = build_prior(size), None, None
    first: I8 = np.zeros(0, np.int64)
    second, outcome = first, np.zeros(0)
    for number in range(1, MOST + 1):
        new = choose_pairs(rule, posterior, rng, top)
        first, second = np.concatenate((first, new[0])), np.concatenate((second, new[1]))
        outcome = np.concatenate((outcome, vote(truth, *new, rng)))
        if rule in ("random", "balanced") and number % 4:
            continue
        contests = count_pairs(first, second, outcome, np.ones(len(first)), size).to_contests(size)
        posterior = fit_posterior(contests, start)
        start = posterior.means
        if board:
            scores = fit_contests(contests, l2=0.001, start=scores, tolerance=1e-4).scores
        yield len(first), posterior.means if scores is None else scores


def count_votes(rule: str, kind: str, spread: float, seed: int, size: int, *, board: bool = False) -> float:
    """Votes until the goal is reached."""
    rng = np.random.default_rng(seed)
    truth = draw_truth(kind, size, spread, rng)
    before = (0, 0.0)
    for votes, scores in iterate_rounds(rule, truth, rng, board=board):
        tau = compute_tau(truth, scores)
        if tau >= GOAL:
            return before[0] + (GOAL - before[1]) / (tau - before[1]) * (votes - before[0])
        before = votes, tau
    return float("nan")


# -- sections --------------------------------------------------------------------------------------------------------


def describe_noise(kind: str, spread: float) -> dict[str, float]:
    """How often the better of two random items wins, and the limit of what close pairs can save."""
    rng = np.random.default_rng(1)
    a, b = draw_truth(kind, 100_000, spread, rng), rng.permutation(draw_truth(kind, 100_000, spread, rng))
    chance = logistic(np.abs(a - b))
    return {
        "agreement": round(float(chance.mean()), 3),
        "limit": round(0.25 / float((chance * (1 - chance)).mean()), 2),
    }


def compare_rules(kind: str, spread: float, rules: tuple[str, ...], options: Any, **more: bool) -> None:
    """Votes of every rule, and how many times fewer than random pairs."""
    base: F8 | None = None
    for rule in rules:
        votes = np.array([
            count_votes(rule, kind, spread, FIRST_SEED + k, options.items, **more) for k in range(options.repeats)
        ])  # fmt: skip
        base = votes if base is None else base
        if np.isnan(votes).any():
            show(truth=kind, spread=spread, rule=rule, votes=None, missed=int(np.isnan(votes).sum()))
            continue
        ratio = base.mean() / votes.mean()
        relative = (
            [x.std(ddof=1) / x.mean() / len(x) ** 0.5 for x in (base, votes)] if len(votes) > 1 else [0, 0]
        )
        show(
            truth=kind, spread=spread, rule=rule, votes=round(votes.mean()), sd=round(votes.std()),
            ratio=round(ratio, 2), ratio_error=round(ratio * float(np.hypot(*relative)), 2),
            **describe_noise(kind, spread), **more,
        )  # fmt: skip


def measure_online(options: Any) -> None:
    """A suggestion and a vote at a time."""
    results = []
    for k in range(max(options.repeats // 5, 1)):
        rng = np.random.default_rng(FIRST_SEED + k)
        truth = draw_truth("normal", options.items, 3.0, rng)
        planner = ComparisonPlanner(list(range(options.items)), seed=k)
        while planner.votes < MOST * options.items:
            a, b = planner.suggest()
            planner.add_vote(a, b, float(rng.random() < logistic(truth[a] - truth[b])))
            if planner.votes % 250 == 0 and compute_tau(truth, np.array([*planner.scores.values()])) >= GOAL:
                break
        results.append(planner.votes)
    show(section="online", votes=round(np.mean(results)), sd=round(np.std(results)))


def measure_top(options: Any, best: int = 20) -> None:
    """Votes until most of the best items are found."""
    for rule, top in (("random", None), ("podium", None), ("podium", best)):
        results = []
        for k in range(options.repeats):
            rng = np.random.default_rng(FIRST_SEED + k)
            truth = draw_truth("normal", options.items, 3.0, rng)
            true_best = set(np.argsort(-truth)[:best].tolist())
            rounds = iterate_rounds(rule, truth, rng, top=top)
            results.append(
                next(
                    n for n, s in rounds if len(true_best & set(np.argsort(-s)[:best].tolist())) >= 0.9 * best
                )
            )
        show(section="top", rule=rule, top=top, votes=round(np.mean(results)), sd=round(np.std(results)))


def measure_judges(options: Any, size: int = 200) -> None:
    """Judges chosen by what they are worth, against judges in turn."""
    slopes = {"careful": 2.0, "average": 1.0, "careless": 0.2}
    for chosen in (True, False):
        results = []
        for k in range(options.repeats):
            rng = np.random.default_rng(FIRST_SEED + k)
            truth = draw_truth("normal", size, 3.0, rng)
            a, b = pair_at_random(size, 10 * size, rng)
            who, outcome = rng.integers(0, 3, len(a)), np.zeros(0)
            while True:
                new = slice(len(outcome), len(a))
                slope = np.array([*slopes.values()])[who[new]]
                won = rng.random(len(slope)) < logistic(slope * (truth[a[new]] - truth[b[new]]))
                outcome = np.concatenate((outcome, won))
                contests = count_pairs(a, b, outcome, np.ones(len(a)), size).to_contests(size)
                if compute_tau(truth, fit_posterior(contests).means) >= 0.95 or len(a) > 200 * size:
                    break
                names = [*slopes]
                votes = VoteTable.from_columns(
                    a.tolist(), b.tolist(), outcome, expert=[names[w] for w in who]
                )
                cost: Any = dict.fromkeys(names, 1.0) if chosen else 1.0
                batch = suggest_comparisons(votes, 100, items=list(range(size)), cost=cost, seed=k)
                turn = [names.index(str(r.judge)) for r in batch] if chosen else np.arange(100) % 3
                a = np.concatenate((a, [r.first for r in batch]))
                b = np.concatenate((b, [r.second for r in batch]))
                who = np.concatenate((who, turn))
            results.append(len(a))
        show(section="judges", chosen=chosen, votes=round(np.mean(results)), sd=round(np.std(results)))


def measure_speed() -> None:
    """Processor time and memory."""
    rng = np.random.default_rng(0)
    truth = draw_truth("normal", 1000, 3.0, rng)
    planner = ComparisonPlanner(list(range(1000)))
    times: dict[str, list[float]] = {"suggest": [], "vote": []}
    for _ in range(15_000):
        begin = time.process_time()
        a, b = planner.suggest()
        middle = time.process_time()
        planner.add_vote(a, b, float(rng.random() < logistic(truth[a] - truth[b])))
        times["suggest"].append(1e3 * (middle - begin))
        times["vote"].append(1e3 * (time.process_time() - middle))
    for name, values in times.items():
        show(
            section="speed",
            items=1000,
            act=name,
            mean_ms=round(np.mean(values), 3),
            most_ms=round(max(values), 1),
        )
    size = 30_000
    items = list(range(size))
    begin = time.process_time()
    suggest_comparisons(items=items, count=size // 2)
    show(section="speed", items=size, votes=0, seconds=round(time.process_time() - begin, 2), mb=_peak())
    truth = draw_truth("normal", size, 3.0, rng)
    a, b = pair_at_random(size, 15 * size, rng)
    votes = VoteTable.from_columns(a.tolist(), b.tolist(), vote(truth, a, b, rng))
    tally = Tally.from_preferences(votes.to_preferences())
    show(section="speed", items=size, votes=15 * size, act="counted", mb=_peak())
    begin = time.process_time()
    batch = suggest_comparisons(tally, size // 2, items=items)
    show(
        section="speed", items=size, votes=15 * size, seconds=round(time.process_time() - begin, 2), mb=_peak(),
        expected_tau=round(batch.expected_tau, 3),
    )  # fmt: skip


def _peak() -> int:
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def main() -> None:
    """Run the sections."""
    parser = argparse.ArgumentParser()
    parser.add_argument("sections", nargs="*", default=["noise", "truths"])
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--items", type=int, default=1000)
    parser.add_argument("--spread", type=float, nargs="*", help="of the section noise only")
    options = parser.parse_args()
    for section in options.sections:
        if section not in SECTIONS:
            parser.error(f"there is no section {section!r}; accepted: {', '.join(SECTIONS)}")
    if "noise" in options.sections:
        for spread in options.spread or (5.0, 3.0, 2.0, 1.5, 1.0):
            compare_rules("normal", spread, ("random", "podium"), options)
    if "truths" in options.sections:
        for kind in ("normal", "heavy", "clustered", "uniform"):
            compare_rules(kind, 3.0, ("random", "balanced", "swiss", "gain", "podium"), options)
    if "board" in options.sections:
        compare_rules("normal", 3.0, ("random", "podium"), options, board=True)
    if "online" in options.sections:
        measure_online(options)
    if "top" in options.sections:
        measure_top(options)
    if "judges" in options.sections:
        measure_judges(options)
    if "speed" in options.sections:
        measure_speed()


if __name__ == "__main__":
    main()
