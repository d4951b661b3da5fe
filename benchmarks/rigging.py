"""How many planted votes are found, how often honest voters are accused, and what a robust fit withstands and costs.

python benchmarks/rigging.py [alarms] [power] [leader] [price] [speed] [--repeats 20]

Reads the Chatbot Arena counts (`chatbot-arena-counts`) from the folder PODIUM_DATA. Protocol, fixed before the
first run.

- Votes: pairs are drawn with the frequencies of the counts (129 models); a vote is a tie as often as in its pair;
  otherwise log odds are the differences of Bradley-Terry scores fitted to the counts without ties, plus the voter's
  taste: a normal shift for each voter and model (sd 0.3). Sides are random. 100,000 votes by 10,000 honest voters,
  whose numbers of votes are geometric (mean 10). Every vote has one of 30,000 prompts. Seconds between the votes of a
  voter are log-normal (median 60 s, sd 1), times a rate of the voter (log-normal, sd 0.5).
- Planted: 1 % more voters (100), each with n = 5, 10 or 20 votes. `target` votes only on pairs with the model of
  rank 5 (opponents as in the counts), always for it. `camouflage` casts as many honest votes besides. `runner-up` votes
  only for the second model over the first. `first` votes on pairs as they come, always for the item shown first.
  `copies` repeat the votes of one honest-looking voter of n votes, with 5 % of the answers turned, ten to an original.
  `bursts` votes honestly, with a median of 2 s between votes.
- alarms: boards without planted votes. Counted: boards on which some voter is named (at most 1 % allowed), and the
  share of voters with a p-value of their own below 1 % (at most 1 %).
- power: the share of planted votes that come from named voters (alarm rate of 1 % for the whole board: the chance that
  any honest voter is named), and of those with a p-value below 1 % (alarm rate of 1 % per voter), for every attack;
  honest voters named. Wanted: 90 % of the planted votes of `target` with n = 10 and more, at the rate per voter.
- leader: a board without planted votes has a leader and a runner-up. Voters who vote for the runner-up over other
  models (opponents as in the counts; n votes each, the last with the rest) are added until the leader of the plain fit
  is another one. The robust fit must keep its leader with 3 times as many planted votes; counted are the boards where
  it does, and the first of 1.5, 3, 5, 10 and 30 times as many that change it. Boards whose robust leader differs from
  the plain one without planted votes are skipped and counted. n = 1, 2, 3, 5, 10, 20.
- price: without planted votes, the ratio of the mean squared errors of robust and plain scores (less their means)
  against the truth, the length of their intervals, and the coverage of the 95 % intervals of both (tastes 0,
  so that the truth is what the votes are drawn from).
- Tried: after first runs of one board per row, the check for copies got its test of shared questions, the check for
  bursts normal scores, and voters with unusual items lost their weight in the first fit. Later runs include those
  boards.
- speed: a million votes by 100,000 voters among 129 models: seconds of wall-clock and of processor time of each part.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import podium
from podium.analysis.leaderboard import Tally, leaderboard
from podium.analysis.leaderboard.leader_margin import measure_leader_margin
from podium.analysis.leaderboard.robust_board import robust_leaderboard, weigh_experts
from podium.analysis.leaderboard.score_estimate import estimate_scores
from podium.analysis.leaderboard.vote_trust import assess_trust, tally_votes
from podium.analysis.leaderboard.voter_influence import measure_influence
from podium.data.ids import CodedColumn, Ids
from podium.data.vote_table import VoteTable
from podium.kernels.dispatch import F8, I8

SECTIONS = ("alarms", "power", "leader", "price", "speed")
ARENA = Path("chatbot-arena-counts") / "chatbotarena_20240814.json.gz"
VOTES, VOTERS, PROMPTS, TASTE = 100_000, 10_000, 30_000, 0.3
MULTIPLES = (1.5, 3, 5, 10, 30)  # of the planted votes that change the plain leader
ATTACKS = ("target", "camouflage", "runner-up", "first", "copies", "bursts")


class Arena(NamedTuple):
    """What votes are drawn from."""

    items: Ids
    scores: F8
    first: I8
    second: I8
    often: F8  # share of each pair
    ties: F8  # share of ties of each pair


class Rows(NamedTuple):
    """Votes in columns."""

    first: I8
    second: I8
    outcome: F8
    voter: I8
    prompt: I8
    seconds: F8

    def to_table(self, arena: Arena) -> VoteTable:
        """The votes as Podium takes them."""
        voters = Ids(list(range(int(self.voter.max()) + 1)))
        prompts = Ids(list(range(int(self.prompt.max()) + 1)))
        return VoteTable.from_columns(
            CodedColumn(self.first, arena.items), CodedColumn(self.second, arena.items), self.outcome,
            expert=CodedColumn(self.voter, voters), query=CodedColumn(self.prompt, prompts),
            attributes={"time": self.seconds},
        )  # fmt: skip


def read_arena() -> Arena:
    """Scores, pair frequencies and ties of the counts."""
    folder = os.environ.get("PODIUM_DATA")
    if not folder:
        raise SystemExit("set PODIUM_DATA to the folder of the data sets")
    content = podium.read(Path(folder) / ARENA)
    tally = Tally.from_preferences(content.preferences)
    contests = tally.to_contests()
    total = contests.won + contests.lost + contests.tied
    scores = estimate_scores(contests, ties="ignore").scores
    return Arena(
        tally.items, scores, contests.first.astype(np.int64), contests.second.astype(np.int64),
        total / total.sum(), contests.tied / total,
    )  # fmt: skip


def draw_pairs(
    random: np.random.Generator, arena: Arena, size: int, item: int | None = None
) -> tuple[I8, I8, F8]:
    """Pairs as they are shown, in random order of the sides, and their share of ties; those of one item only."""
    often = arena.often if item is None else arena.often * ((arena.first == item) | (arena.second == item))
    pair = random.choice(len(often), size, p=often / often.sum())
    turned = random.random(size) < 0.5
    first, second = arena.first[pair], arena.second[pair]
    return np.where(turned, second, first), np.where(turned, first, second), arena.ties[pair]


def vote_honestly(
    random: np.random.Generator, arena: Arena, voter: I8, tastes: F8, median: float = 60.0
) -> Rows:
    """One vote per entry of `voter`; `tastes` by voter (relative to the first) and item."""
    size = len(voter)
    a, b, ties = draw_pairs(random, arena, size)
    own = voter - voter[0]
    logit = arena.scores[a] - arena.scores[b] + tastes[own, a] - tastes[own, b]
    outcome = (random.random(size) < 1 / (1 + np.exp(-logit))).astype(float)
    outcome[random.random(size) < ties] = 0.5
    return Rows(a, b, outcome, voter, random.integers(0, PROMPTS, size), draw_times(random, voter, median))


def draw_times(random: np.random.Generator, voter: I8, median: float = 60.0) -> F8:
    """When votes are cast; the votes of a voter follow each other."""
    count = int(voter.max(initial=0)) + 1
    rate = np.exp(0.5 * random.normal(size=count))
    gaps = median * rate[voter] * np.exp(random.normal(size=len(voter)))
    order = np.argsort(voter, kind="stable")
    times = np.zeros(len(voter))
    times[order] = np.cumsum(gaps[order])
    return times


def draw_board(random: np.random.Generator, arena: Arena, taste: float = TASTE) -> Rows:
    """The votes of the honest voters."""
    counts = random.geometric(VOTERS / VOTES, VOTERS)
    voter = np.repeat(np.arange(VOTERS), counts)
    return vote_honestly(random, arena, voter, random.normal(size=(VOTERS, len(arena.items))) * taste)


def vote_for(random: np.random.Generator, arena: Arena, voter: I8, item: int) -> Rows:
    """Votes on pairs with the item, all for it."""
    a, b, _ = draw_pairs(random, arena, len(voter), item)
    outcome = (a == item).astype(float)
    return Rows(a, b, outcome, voter, random.integers(0, PROMPTS, len(voter)), draw_times(random, voter))


def join(*parts: Rows) -> Rows:
    """All votes."""
    return Rows(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def plant(random: np.random.Generator, arena: Arena, attack: str, votes: int) -> Rows:
    """The votes of the planted voters."""
    count = VOTERS // 100
    voter = VOTERS + np.repeat(np.arange(count), votes)
    order = np.argsort(-arena.scores)
    tastes = random.normal(size=(count, len(arena.items))) * TASTE
    if attack == "target":
        return vote_for(random, arena, voter, int(order[4]))
    if attack == "camouflage":
        honest = vote_honestly(random, arena, voter, tastes)
        both = join(vote_for(random, arena, voter, int(order[4])), honest)
        return both._replace(seconds=draw_times(random, both.voter))
    rows = vote_honestly(random, arena, voter, tastes, 2.0 if attack == "bursts" else 60.0)
    if attack == "bursts":
        return rows
    if attack == "runner-up":
        flip = random.random(len(voter)) < 0.5
        one, two = np.full(len(voter), order[1]), np.full(len(voter), order[0])
        return rows._replace(
            first=np.where(flip, one, two), second=np.where(flip, two, one), outcome=flip.astype(float)
        )
    if attack == "first":
        return rows._replace(outcome=np.ones(len(voter)))
    # ten accounts repeat the same votes on the same prompts
    source = (np.arange(len(voter)) // votes // 10 * 10) * votes + np.arange(len(voter)) % votes
    outcome = rows.outcome[source]
    turned = random.random(len(voter)) < 0.05
    outcome = np.where(turned, 1 - outcome, outcome)
    return rows._replace(
        first=rows.first[source], second=rows.second[source], outcome=outcome, prompt=rows.prompt[source]
    )


def run_alarms(arena: Arena, repeats: int) -> None:
    """Boards without planted votes."""
    named, voters, small = 0, 0, []
    for seed in range(repeats):
        trust = assess_trust(draw_board(np.random.default_rng([1, seed]), arena).to_table(arena), time="time")
        named, voters = named + bool(trust.rows), voters + len(trust.rows)
        small.append(float((trust.p < 0.01).mean()))
    print(json.dumps({
        "section": "alarms", "boards": repeats, "boards with a voter named": named, "voters named": voters,
        "share of voters with p < 1 %": round(100 * float(np.mean(small)), 3),
    }), flush=True)  # fmt: skip


def run_power(arena: Arena, repeats: int) -> None:
    """Every attack with every number of votes."""
    for attack in ATTACKS:
        for votes in (5, 10, 20):
            found, single, honest, checks = [], [], 0, {}
            for seed in range(max(repeats // 4, 1)):
                random = np.random.default_rng([2, ATTACKS.index(attack), votes, seed])
                rows = join(draw_board(random, arena), plant(random, arena, attack, votes))
                trust = assess_trust(rows.to_table(arena), time="time")
                planted = np.arange(VOTERS, len(trust.voters))
                named = {int(row.voter) for row in trust.rows}
                found.append(np.isin(planted, list(named)).mean())
                single.append(float((trust.p[planted] < 0.01).mean()))
                honest += sum(voter < VOTERS for voter in named)
                for row in trust.rows:
                    checks[row.checks[0]] = checks.get(row.checks[0], 0) + 1
            print(json.dumps({
                "section": "power", "attack": attack, "votes each": votes, "boards": len(found),
                "planted named, %": round(100 * float(np.mean(found)), 1),
                "planted with p < 1 %, %": round(100 * float(np.mean(single)), 1),
                "honest named": honest, "by check": checks,
            }), flush=True)  # fmt: skip


def find_leader(tally: Tally) -> int:
    """The first item of the plain fit with ties as half a win."""
    return int(estimate_scores(tally.to_contests()).scores.argmax())


def find_robust_leader(tally: Tally) -> int:
    """The first item with the weights of a robust fit."""
    return find_leader(weigh_experts(tally, assess_trust(tally).weights))


def add_planted(
    arena: Arena, clean: Rows, random: np.random.Generator, item: int, total: int, each: int
) -> Tally:
    """The tally with planted votes by voters of `each` votes."""
    voter = VOTERS + np.arange(total) // each
    return tally_votes(join(clean, vote_for(random, arena, voter, item)).to_table(arena))


def count_planted(arena: Arena, clean: Rows, seed: int, each: int) -> tuple[int, float] | None:
    """Planted votes that change the plain leader, and the first tried multiple that changes the robust one.

    None if the two fits have different leaders without planted votes; 99 if no multiple changes the robust leader.
    """
    tally = tally_votes(clean.to_table(arena))
    scores = estimate_scores(tally.to_contests()).scores
    leader, rival = np.argsort(-scores)[:2].tolist()
    if find_robust_leader(tally) != leader:
        return None

    def is_lost(total: int, find: Callable[[Tally], int]) -> bool:
        planted = add_planted(arena, clean, np.random.default_rng([4, seed]), rival, total, each)
        return find(planted) != leader

    low, high = 0, 8
    while not is_lost(high, find_leader):
        low, high = high, 2 * high
    while high - low > max(1, high // 20):
        middle = (low + high) // 2
        low, high = (low, middle) if is_lost(middle, find_leader) else (middle, high)
    return high, next((r for r in MULTIPLES if is_lost(int(r * high), find_robust_leader)), 99)


def run_leader(arena: Arena, repeats: int) -> None:
    """Planted votes until the leader changes, plain and robust."""
    for each in (1, 2, 3, 5, 10, 20):
        boards = [
            count_planted(arena, draw_board(np.random.default_rng([3, seed]), arena), seed, each)
            for seed in range(max(repeats // 2, 1))
        ]
        known = [board for board in boards if board is not None]
        print(json.dumps({
            "section": "leader", "votes each": each, "boards": len(known), "skipped": len(boards) - len(known),
            "median planted votes, plain": float(np.median([votes for votes, _ in known])),
            "kept at 3 times": sum(multiple > 3 for _, multiple in known),
            "multiples that lose": [multiple for _, multiple in known],
        }), flush=True)  # fmt: skip


def run_price(arena: Arena, repeats: int) -> None:
    """Errors and coverage without planted votes."""
    truth = arena.scores - arena.scores.mean()
    errors: dict[str, list[float]] = {"plain": [], "robust": []}
    held: dict[str, list[float]] = {"plain": [], "robust": []}
    wider, weight = [], []
    for seed in range(max(repeats // 2, 1)):
        rows = draw_board(np.random.default_rng([5, seed]), arena, 0.0)
        board = robust_leaderboard(rows.to_table(arena), ties="ignore", scale="natural", over="votes")
        wider.append(board.wider)
        weight.append(board.counted_votes / board.votes)
        for name, part in (("plain", board.plain), ("robust", board.board)):
            items = part.tally.items
            known = truth[[arena.items.code_of(item) for item in items]]
            by_item = {row.item: row for row in part.rows}
            scores = np.array([by_item[item].score for item in items])
            core = part.estimate.core
            gap = known[core].mean() - scores[core].mean()
            errors[name].append(float(((scores + gap - known)[core] ** 2).mean()))
            held[name] += [
                by_item[item].low <= known[k] - gap <= by_item[item].high
                for k, item in enumerate(items)
                if core[k]
            ]
    print(json.dumps({
        "section": "price", "boards": len(wider),
        "robust / plain squared error": round(sum(errors["robust"]) / sum(errors["plain"]), 4),
        "median widening, %": round(100 * float(np.mean(wider)), 2),
        "weight kept, %": round(100 * float(np.mean(weight)), 2),
        "coverage, %": {name: round(100 * float(np.mean(values)), 2) for name, values in held.items()},
    }), flush=True)  # fmt: skip


def iterate_parts(table: VoteTable) -> Iterator[tuple[str, Any]]:
    """The parts to time, each with a function."""
    tally = tally_votes(table)
    yield "tally", lambda: tally_votes(table)
    board = leaderboard(tally)
    yield "board", lambda: leaderboard(tally)
    yield "trust checks", lambda: assess_trust(table, time="time")
    yield "influence of all voters", lambda: measure_influence(board)
    yield "margins of ten places", lambda: measure_leader_margin(board)
    yield "robust board", lambda: robust_leaderboard(board)


def run_speed(arena: Arena) -> None:
    """A million votes by 100,000 voters."""
    random = np.random.default_rng(6)
    voter = np.repeat(np.arange(100_000), random.geometric(0.1, 100_000))
    table = vote_honestly(random, arena, voter, np.zeros((100_000, len(arena.items)))).to_table(arena)
    for name, work in iterate_parts(table):
        wall, processor = time.perf_counter(), time.process_time()
        work()
        print(json.dumps({
            "section": "speed", "part": name, "votes": len(table), "seconds": round(time.perf_counter() - wall, 2),
            "processor seconds": round(time.process_time() - processor, 2),
        }), flush=True)  # fmt: skip


def main() -> None:
    """Run the sections."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sections", nargs="*", choices=SECTIONS, default=list(SECTIONS))
    parser.add_argument("--repeats", type=int, default=20)
    given = parser.parse_args()
    arena = read_arena()
    for name in given.sections:
        if name == "speed":
            run_speed(arena)
        else:
            {"alarms": run_alarms, "power": run_power, "leader": run_leader, "price": run_price}[name](
                arena, given.repeats
            )


if __name__ == "__main__":
    main()
