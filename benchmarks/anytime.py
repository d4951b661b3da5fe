"""Do claims at every look hold at every look, and what do they cost?

python benchmarks/anytime.py [error] [ranks] [votes] [looks] [speed] [--repeats 1000] [--looks 1000]

Protocol, fixed before the first run.

- error: 10 items. `equal`: all equal. `ladder`: log odds 0.03 apart. `two best`: two equal best items, the others
  0.5 below. A simulation has `--looks` looks, one after every 20 votes; level 95 %. Three rules choose the pair of each
  vote from the votes before it: `uniform` at random; `contenders`, the item with the most wins less losses against a
  random one of the next three; `chase`, the pair whose evidence for a false claim is the largest so far, which is as
  unfair as a rule can be without seeing the future (with probability 1/2; else at random). Counted is the share of
  simulations in which, at some look, an item is claimed to be above one that is not worse, or (`leader`) all best items
  are excluded from the contenders. Both must be at most 5 %. With equal items the best item is any of them: excluding
  one of two equal best items is no false claim, as the other remains.
- ranks: the same truths and rules for ranks by the model: Bradley-Terry scores (ridge 0.001, a Newton step or more per
  look from the last ones) with Fisher errors, differences beyond `mixture_critical_value`, Bonferroni over the pairs.
  Counted is the share of simulations in which an item is, at some look, claimed to be above one that is not worse.
- votes: two items, the better one wins with probability 0.55 (also 0.57, 0.6, 0.7). Votes until the better one is the
  only contender, a look after every vote; mean, median and 90 % quantile, share of simulations that name the worse one.
  The fixed design is the two-sided z-test at 5 % with power 80 % and 90 %. The mean must be at most 1.5 times the fixed
  design of 80 %. `five`: five items, the first beats each of the others with 0.55 and the others are equal; pairs at
  random, and the first four times as often (adaptive: the item with the best share of wins against a random contender);
  the fixed design asks every pair of the first equally often, with one-sided z-tests at 5 % / 4 each, and the number of
  votes at which 80 % of 2,000 simulations reject all four; a fiftieth of the repeats.
- looks: 10 equal items, 6,000 votes on random pairs, the plain board looked at 60 times (every 100 votes): the share of
  simulations with a separated pair at the last look, and at some look; 200 simulations, fewer with fewer repeats.
- speed: 129 items, votes at random: milliseconds per vote to add it and to find the contenders, and for all claims.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from typing import Any

import numpy as np

from podium import Preferences
from podium.analysis.leaderboard import PairEvidence, leaderboard
from podium.analysis.leaderboard.confidence_sequences import compute_log_evidence, mixture_critical_value
from podium.kernels.dispatch import F8
from podium.kernels.distributions import normal_quantile

SECTIONS = ("error", "ranks", "votes", "looks", "speed")
ITEMS, STEP, LEVEL = 10, 20, 0.95
RULES = ("uniform", "contenders", "chase")
TRUTHS = {
    "equal": np.zeros(ITEMS),
    "ladder": -0.03 * np.arange(ITEMS),
    "two best": np.array([0.0, 0.0] + [-0.5] * (ITEMS - 2)),
}


def show(**row: Any) -> None:
    """Print one result."""
    print(json.dumps(row), flush=True)


# -- error -----------------------------------------------------------------------------------------------------------


def choose_pairs(rule: str, won: F8, false: F8, random: np.random.Generator) -> tuple[Any, Any]:
    """The pair of the next votes of each simulation, from the votes before them."""
    runs = len(won)
    a = random.integers(0, ITEMS, (runs, STEP))
    b = (a + random.integers(1, ITEMS, (runs, STEP))) % ITEMS
    if rule == "contenders":
        order = np.argsort(-(won.sum(axis=2) - won.sum(axis=1)) + random.random((runs, ITEMS)) / 2, axis=1)
        a = np.repeat(order[:, :1], STEP, axis=1)
        b = np.take_along_axis(order, random.integers(1, 4, (runs, STEP)), axis=1)
    if rule == "chase":
        flat = compute_log_evidence(won, won.transpose(0, 2, 1)) + random.random(won.shape) * 1e-3
        target = np.where(false, flat, -np.inf).reshape(runs, -1).argmax(axis=1)
        chased = random.random((runs, STEP)) < 0.5
        a = np.where(chased, (target // ITEMS)[:, None], a)
        b = np.where(chased, (target % ITEMS)[:, None], b)
    return a, b


def measure_error(scores: F8, rule: str, repeats: int, looks: int) -> tuple[float, float]:
    """Shares of simulations with a false claim about a pair, and with all best items excluded, at some look."""
    random = np.random.default_rng(20)
    false = scores[:, None] <= scores  # row above column would be false
    np.fill_diagonal(false, False)
    best = scores == scores.max()
    won = np.zeros((repeats, ITEMS, ITEMS))
    wrong, lost = np.zeros(repeats, bool), np.zeros(repeats, bool)
    holder, rows = PairEvidence(ITEMS), np.tile(np.arange(ITEMS), repeats)
    run = np.arange(repeats)[:, None]
    for _ in range(looks):
        a, b = choose_pairs(rule, won, false, random)
        first = random.random(a.shape) < 1 / (1 + np.exp(scores[b] - scores[a]))
        np.add.at(won, (run, np.where(first, a, b), np.where(first, b, a)), 1)
        above = compute_log_evidence(won, won.transpose(0, 2, 1))
        claimed = above >= math.log(ITEMS * (ITEMS - 1) / (1 - LEVEL))
        wrong |= (claimed & false).any(axis=(1, 2))
        pooled = compute_log_evidence(won.sum(axis=1), won.sum(axis=2)).reshape(-1)
        against = holder.combine(above.transpose(0, 2, 1).reshape(-1, ITEMS), pooled, rows)
        excluded = against.reshape(repeats, ITEMS) >= -math.log(1 - LEVEL)
        lost |= excluded[:, best].all(axis=1)
    return float(wrong.mean()), float(lost.mean())


def measure_rank_error(scores: F8, rule: str, repeats: int, looks: int) -> float:
    """Share of simulations with a false claim of the model at some look."""
    random = np.random.default_rng(25)
    false = scores[:, None] <= scores
    np.fill_diagonal(false, False)
    won = np.zeros((repeats, ITEMS, ITEMS))
    fitted, wrong = np.zeros((repeats, ITEMS)), np.zeros(repeats, bool)
    run, diagonal = np.arange(repeats)[:, None], np.arange(ITEMS)
    error = (1 - LEVEL) / (ITEMS * (ITEMS - 1) / 2)
    for _ in range(looks):
        a, b = choose_pairs(rule, won, false, random)
        first = random.random(a.shape) < 1 / (1 + np.exp(scores[b] - scores[a]))
        np.add.at(won, (run, np.where(first, a, b), np.where(first, b, a)), 1)
        met = won + won.transpose(0, 2, 1)
        for _step in range(20):
            chance = 1 / (1 + np.exp(fitted[:, None, :] - fitted[:, :, None]))
            gradient = (won - met * chance).sum(axis=2) - 0.001 * fitted
            hessian = -met * chance * (1 - chance)
            hessian[:, diagonal, diagonal] = 0.001 - hessian.sum(axis=2)
            inverse = np.linalg.inv(hessian)
            step = np.clip((inverse @ gradient[:, :, None])[:, :, 0], -1, 1)
            fitted += step
            if np.abs(step).max() < 1e-3:
                break
        spread = inverse[:, diagonal, diagonal]
        variance = spread[:, :, None] + spread[:, None, :] - 2 * inverse
        variance[:, diagonal, diagonal] = 1.0
        z = (fitted[:, :, None] - fitted[:, None, :]) / np.sqrt(variance)
        wrong |= ((z > mixture_critical_value(1 / variance, error)) & false).any(axis=(1, 2))
    return float(wrong.mean())


def run_error(repeats: int, looks: int) -> None:
    """All truths and rules."""
    for name, scores in TRUTHS.items():
        for rule in RULES:
            pairs, leader = measure_error(scores, rule, repeats, looks)
            show(
                section="error",
                truth=name,
                rule=rule,
                pairs=pairs,
                leader=leader,
                repeats=repeats,
                looks=looks,
            )


def run_ranks(repeats: int, looks: int) -> None:
    """All truths and rules, by the model."""
    for name, scores in TRUTHS.items():
        for rule in RULES:
            wrong = measure_rank_error(scores, rule, repeats, looks)
            show(section="ranks", truth=name, rule=rule, ranks=wrong, repeats=repeats, looks=looks)


# -- votes -----------------------------------------------------------------------------------------------------------


def fixed_design(chance: float, power: float) -> int:
    """Votes of a two-sided z-test at 5 % with this power."""
    z, w = float(normal_quantile(0.975)), float(normal_quantile(power))
    return math.ceil((z / 2 + w * math.sqrt(chance * (1 - chance))) ** 2 / (chance - 0.5) ** 2)


def run_votes(repeats: int) -> None:
    """Two items, then five."""
    random = np.random.default_rng(21)
    bound = -math.log(1 - LEVEL)
    for chance in (0.55, 0.57, 0.6, 0.7):
        fixed = fixed_design(chance, 0.8)
        most, stops, mistakes = 12 * fixed, [], 0
        for _ in range(repeats):
            won = np.cumsum(random.random(most) < chance).astype(float)
            lost = np.arange(1, most + 1) - won
            good = np.flatnonzero(compute_log_evidence(won, lost) >= bound)
            bad = np.flatnonzero(compute_log_evidence(lost, won) >= bound)
            ends = [int(hits[0]) + 1 if len(hits) else most for hits in (good, bad)]
            stops.append(min(ends))
            mistakes += ends[1] < ends[0]
        at = {f"q{q}": int(np.quantile(stops, q / 100)) for q in (50, 90)}
        mean = float(np.mean(stops))
        show(section="votes", chance=chance, mean=round(mean), **at, mistakes=mistakes / repeats, fixed80=fixed,
             fixed90=fixed_design(chance, 0.9), ratio=round(mean / fixed, 3))  # fmt: skip
    run_five(max(repeats // 50, 2))


def run_five(repeats: int) -> None:
    """The first of five items beats each other one with 0.55."""
    random = np.random.default_rng(22)
    z = float(normal_quantile(1 - 0.05 / 4))
    per_pair, power = 500, 0.0
    while power < 0.8:
        per_pair += 10
        gained = random.binomial(per_pair, 0.55, (2000, 4)) - per_pair / 2
        power = float((gained >= z * math.sqrt(per_pair) / 2).all(axis=1).mean())
    for rule in ("random", "adaptive"):
        stops, mistakes = [], 0
        for _ in range(repeats):
            evidence, votes = PairEvidence(5), 0
            while True:
                votes += 1
                a, b = random.permutation(5)[:2]
                if rule == "adaptive":
                    net = evidence.won.sum(axis=1) / np.maximum(
                        evidence.won.sum(axis=1) + evidence.won.sum(axis=0), 1
                    )
                    a = int(net.argmax())
                    rivals = np.flatnonzero(evidence.find_contenders())
                    rivals = rivals[rivals != a]
                    b = int(random.choice(rivals)) if len(rivals) else (a + 1) % 5
                chance = 0.5 if 0 not in (a, b) else 0.55 if a == 0 else 0.45
                winner, loser = (a, b) if random.random() < chance else (b, a)
                evidence.add(int(winner), int(loser))
                contenders = evidence.find_contenders()
                if contenders.sum() == 1 or votes > 100_000:
                    break
            stops.append(votes)
            mistakes += int(contenders.argmax()) != 0
        show(section="votes", items=5, rule=rule, mean=round(float(np.mean(stops))), fixed=4 * per_pair,
             fixed_all_pairs=10 * per_pair, mistakes=mistakes / repeats, repeats=repeats)  # fmt: skip


# -- looks and speed -------------------------------------------------------------------------------------------------


def run_looks(repeats: int) -> None:
    """The plain board, looked at again and again."""
    random = np.random.default_rng(23)
    ever = last = 0
    runs = min(repeats, 200)
    for _ in range(runs):
        a = random.integers(0, ITEMS, 6000)
        b = (a + random.integers(1, ITEMS, 6000)) % ITEMS
        zeros, separated = np.zeros(6000, int), False
        for votes in range(100, 6001, 100):
            columns = (zeros[:votes], zeros[:votes], a[:votes], b[:votes])
            board = leaderboard(Preferences.from_comparisons(*columns), over="votes")
            now = bool((board.p <= 1 - LEVEL).any())
            separated |= now
        ever, last = ever + separated, last + now
    show(section="looks", last=last / runs, ever=ever / runs, repeats=runs)


def run_speed() -> None:
    """Time per vote at 129 items."""
    random = np.random.default_rng(24)
    evidence, votes = PairEvidence(129), 20_000
    pairs = [tuple(map(int, random.choice(129, 2, replace=False))) for _ in range(votes)]
    start = time.process_time()
    for winner, loser in pairs:
        evidence.add(winner, loser)
        evidence.find_contenders()
    each = (time.process_time() - start) / votes * 1e3
    start = time.process_time()
    evidence.find_claims()
    show(section="speed", vote_ms=round(each, 4), claims_ms=round((time.process_time() - start) * 1e3, 2))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sections", nargs="*", default=SECTIONS)
    parser.add_argument("--repeats", type=int, default=1000)
    parser.add_argument("--looks", type=int, default=1000)
    given = parser.parse_args()
    for section in given.sections:
        if section not in SECTIONS:
            parser.error(f"unknown section {section}; accepted: {', '.join(SECTIONS)}")
    if "error" in given.sections:
        run_error(given.repeats, given.looks)
    if "ranks" in given.sections:
        run_ranks(given.repeats, given.looks)
    if "votes" in given.sections:
        run_votes(given.repeats)
    if "looks" in given.sections:
        run_looks(given.repeats)
    if "speed" in given.sections:
        run_speed()


if __name__ == "__main__":
    main()
