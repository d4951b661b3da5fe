"""Do the intervals of a leaderboard hold what they promise where votes weigh differently or hang together?

python benchmarks/interval_coverage.py [weights] [judges] [copies] [--repeats 200] [--bootstrap 200]

Protocol, fixed before the first run. A repeat draws true scores, votes and, where there are any, opinions and weights;
`leaderboard` makes a board with default settings, except for those named in the row; counted is the share of all
intervals (of the score less the mean of all items, level 95 %) that hold the truth, and the share of boards on which
all ranks allowed by the rank intervals hold the true rank. Repeats in which wins do not link all items are drawn
again. A row passes when the intervals cover 93 to 97 %; rank intervals are simultaneous and should reach 95 %.

- weights: one judge, a star of four items (the first meets each other one 200 times), scores normal (sd 0.7).
  `one_half`: all votes weigh 1, one weighs 0.5. `counts`: votes in rows of equal ones, the weight of a row is their
  number, a tie in five votes is half a vote for either (frequency). `importance`: weights uniform in 0.05 to 1,
  whatever the vote. `probability`: of two kinds of votes, equally frequent, with scores that differ by independent
  normal numbers (sd 0.7), the second is sampled with probability 0.2 and weighs 5; the truth is the population's.
  `soft`: a preference s between 0 and 1 (Beta with the expected mean, concentration 2) as two rows, s and 1 - s, on a
  query of its own. `soft_on_one_query`: the same without queries, where the two rows look like two votes;
  this may cover more than 97 %, as such intervals are too wide.
- judges: 10 items with normal scores (sd 1), 1,500 votes on random pairs by 3, 8, 10, 30 or 40 judges drawn at random
  (`uneven`: judge k gets a share that falls like 0.7 ** k), each of whom adds normal opinions of its own (sd 0, 0.25,
  0.5 or 1) to the scores. The truth is the scores that infinitely many such judges would give. With opinions of sd 0.5
  also the bootstrap, and `over="votes"`, which takes votes as independent and is bound to fail.
- copies: 5 judges, or 2, 10 items, 150 questions that all judges answer, scores normal (sd 1); three more judges answer
  as the first does; `judges="discounted"`, and the same votes with equal judges.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit

from podium import Preferences
from podium.analysis.leaderboard import Leaderboard, leaderboard
from podium.analysis.leaderboard import inference as u
from podium.kernels.contest_counts import Contests
from podium.kernels.dispatch import F8

SECTIONS = ("weights", "judges", "copies")
JUDGES, OPINIONS = (3, 10, 30, 8, 40), (0.5, 0.0, 0.25, 1.0)


class Votes(NamedTuple):
    """Votes of one repeat, and the true scores by item 0, 1, ..."""

    query: Any
    expert: Any
    winner: Any
    loser: Any
    weight: F8
    truth: F8

    def board(self, **settings: Any) -> Leaderboard:
        """Their leaderboard on the natural scale."""
        columns = (self.query, self.expert, self.winner, self.loser)
        return leaderboard(
            Preferences.from_comparisons(*columns, weight=self.weight), scale="natural", **settings
        )


Draw = Callable[[np.random.Generator], Votes]


# -- weights ---------------------------------------------------------------------------------------------------------


def star(random: np.random.Generator) -> tuple[F8, Any, Any]:
    """Scores of four items and the two sides of 600 votes: item 0 meets each other one 200 times."""
    other = np.repeat([1, 2, 3], 200)
    return random.normal(size=4) * 0.7, np.zeros(len(other), np.int64), other


def votes_of_one(winner: Any, loser: Any, weight: F8, truth: F8) -> Votes:
    """Votes of one judge on one query."""
    same = np.zeros(len(winner), np.int64)
    return Votes(same, same, winner, loser, weight, truth)


def one_half(random: np.random.Generator) -> Votes:
    truth, a, b = star(random)
    won = random.random(len(a)) < expit(truth[a] - truth[b])
    weight = np.ones(len(a))
    weight[random.integers(len(a))] = 0.5
    return votes_of_one(np.where(won, a, b), np.where(won, b, a), weight, truth)


def counts(random: np.random.Generator) -> Votes:
    """Ties come about where a second look disagrees, so that half a vote for either is right on average."""
    truth, a, b = star(random)
    won = (random.random(len(a)) < expit(truth[a] - truth[b])).astype(float)
    again = random.random(len(a)) < expit(truth[a] - truth[b])
    won = np.where(random.random(len(a)) < 0.2, (won + again) / 2, won)
    wins = np.array([won[b == k].sum() for k in (1, 2, 3)])
    other, hub = np.array([1, 2, 3]), np.zeros(3, np.int64)
    weight = np.concatenate((wins, 200 - wins))
    return votes_of_one(np.concatenate((hub, other)), np.concatenate((other, hub)), weight, truth)


def importance(random: np.random.Generator) -> Votes:
    truth, a, b = star(random)
    won = random.random(len(a)) < expit(truth[a] - truth[b])
    weight = random.uniform(0.05, 1, len(a))
    return votes_of_one(np.where(won, a, b), np.where(won, b, a), weight, truth)


def probability(random: np.random.Generator) -> Votes:
    """Drawn until 200 votes of each pair are sampled."""
    truth, _, _ = star(random)
    other = np.repeat([1, 2, 3], 2000)
    kinds = truth + random.normal(size=(2, 4)) * 0.7
    kind = random.integers(0, 2, len(other))
    won = random.random(len(other)) < expit(kinds[kind, 0] - kinds[kind, other])
    taken = random.random(len(other)) < np.where(kind == 0, 1.0, 0.2)
    first = np.concatenate([np.flatnonzero(taken & (other == k))[:200] for k in (1, 2, 3)])
    won, other, weight = won[first], other[first], np.where(kind == 0, 1.0, 5.0)[first]
    hub = np.zeros(len(other), np.int64)
    share = np.array([expit(kinds[:, 0] - kinds[:, k]).mean() for k in (1, 2, 3)])
    found = np.concatenate(([0.0], -np.log(share / (1 - share))))
    return votes_of_one(np.where(won, hub, other), np.where(won, other, hub), weight, found)


def soft(random: np.random.Generator) -> Votes:
    found = soft_on_one_query(random)
    return found._replace(query=np.tile(np.arange(len(found.query) // 2), 2))


def soft_on_one_query(random: np.random.Generator) -> Votes:
    truth, a, b = star(random)
    mean = expit(truth[a] - truth[b])
    s = np.clip(random.beta(2 * mean, 2 * (1 - mean)), 1e-6, 1 - 1e-6)
    return votes_of_one(np.concatenate((a, b)), np.concatenate((b, a)), np.concatenate((s, 1 - s)), truth)


# -- judges ----------------------------------------------------------------------------------------------------------


def opinionated(judges: int, opinions: float, shares: F8 | None = None) -> Draw:
    """1,500 votes among 10 items by judges with opinions of their own."""

    def draw(random: np.random.Generator) -> Votes:
        items, size = 10, 1500
        scores = random.normal(size=items)
        own = scores + opinions * random.normal(size=(judges, items))
        judge = random.choice(judges, size, p=shares)
        a = random.integers(0, items, size)
        b = (a + random.integers(1, items, size)) % items
        won = random.random(size) < expit(own[judge, a] - own[judge, b])
        truth = of_population(scores, opinions)
        same = np.zeros(size, np.int64)
        return Votes(same, judge, np.where(won, a, b), np.where(won, b, a), np.ones(size), truth)

    return draw


def of_population(scores: F8, opinions: float) -> F8:
    """The scores that infinitely many judges would give: Bradley-Terry of the mean chances of all pairs."""
    nodes, masses = np.polynomial.hermite_e.hermegauss(40)
    a, b = np.triu_indices(len(scores), 1)
    gap = (scores[a] - scores[b])[:, None] + nodes * opinions * np.sqrt(2)
    mean = expit(gap) @ (masses / masses.sum())
    ends = np.array([0, len(scores)]), np.array([0, len(a)])
    sides = a.astype(np.int32), b.astype(np.int32)
    return u.estimate_scores(Contests(*ends, *sides, 1e5 * mean, 1e5 * (1 - mean), np.zeros(len(a)))).scores


# -- copies ----------------------------------------------------------------------------------------------------------


def copied(judges: int) -> Draw:
    """150 questions, each answered by all judges and by three who copy the first."""

    def draw(random: np.random.Generator) -> Votes:
        items, questions, voices = 10, 150, judges + 3
        truth = random.normal(size=items)
        a = random.integers(0, items, questions)
        b = (a + random.integers(1, items, questions)) % items
        won = random.random((voices, questions)) < expit(truth[a] - truth[b])
        won[judges:] = won[0]
        query, expert = np.tile(np.arange(questions), voices), np.repeat(np.arange(voices), questions)
        winner, loser = np.where(won, a, b).ravel(), np.where(won, b, a).ravel()
        return Votes(query, expert, winner, loser, np.ones(len(query)), truth)

    return draw


# -- counting --------------------------------------------------------------------------------------------------------


def cases(section: str, rounds: int) -> Iterator[tuple[str, Draw, dict[str, Any]]]:
    """What a section looks at: a name, votes, and settings of the board."""
    again = {"bootstrap": rounds}
    if section == "weights":
        for draw, settings in (
            (one_half, {}), (counts, {"vote_weights": "frequency"}), (importance, {}),
            (probability, {"vote_weights": "importance"}), (soft, {}), (soft_on_one_query, {}),
        ):  # fmt: skip
            yield draw.__name__, draw, settings
            yield f"{draw.__name__}, bootstrap", draw, settings | again
    elif section == "judges":
        for judges in JUDGES:
            for opinions in OPINIONS:
                name, draw = f"{judges} judges, opinions {opinions:g}", opinionated(judges, opinions)
                yield name, draw, {}
                if opinions == 0.5:
                    yield f"{name}, over votes", draw, {"over": "votes"}
                    yield f"{name}, bootstrap", draw, again
        shares = 0.7 ** np.arange(8)
        for opinions in (0.0, 0.5):
            yield (
                f"8 uneven judges, opinions {opinions:g}",
                opinionated(8, opinions, shares / shares.sum()),
                {},
            )
    else:
        for judges in (5, 2):
            name, draw = f"{judges} judges and 3 copies", copied(judges)
            yield f"{name}, discounted", draw, {"judges": "discounted"}
            yield f"{name}, discounted, bootstrap", draw, {"judges": "discounted", **again}
            yield f"{name}, equal", draw, {}


def covered(draw: Draw, settings: dict[str, Any], repeats: int) -> dict[str, Any]:
    """Shares of intervals, and of boards by their ranks, that hold the truth; mean width, and what errors were over."""
    inside, ranks, width, over = [], [], [], []
    attempt = 0
    while len(inside) < repeats:
        votes = draw(np.random.default_rng([attempt, 17]))
        attempt += 1
        board = votes.board(**settings)
        if not board.estimate.core.all():
            continue
        rows = sorted(board.rows, key=lambda r: int(r.item))
        truth = votes.truth - votes.truth.mean()
        place = u.rank_draws(truth[None])[0]
        low, high = (np.array([getattr(r, n) for r in rows]) for n in ("low", "high"))
        inside.append(np.mean((low <= truth) & (truth <= high)))
        ranks.append(all(r.rank_low <= k <= r.rank_high for r, k in zip(rows, place, strict=True)))
        width.append(np.median(high - low))
        over.append(board.scheme.over != "votes")
    percent = {"intervals": np.mean(inside), "ranks": np.mean(ranks), "clustered": np.mean(over)}
    found = {name: round(100 * float(value), 1) for name, value in percent.items()}
    return found | {"width": round(float(np.mean(width)), 3), "repeats": repeats}


def run(sections: tuple[str, ...], repeats: int, rounds: int) -> dict[str, dict[str, Any]]:
    """All cases of the sections."""
    found: dict[str, dict[str, Any]] = {}
    print(f"{'':42s} intervals   ranks   clustered   width")
    for section in sections:
        for name, draw, settings in cases(section, rounds):
            row = found[name] = covered(draw, settings, repeats)
            shown = f"{row['intervals']:7.1f} % {row['ranks']:7.1f} % {row['clustered']:8.0f} % {row['width']:9.2f}"
            print(f"{name:42s} {shown}", flush=True)
    return found


if __name__ == "__main__":
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("sections", nargs="*", default=SECTIONS, choices=[*SECTIONS, SECTIONS])
    words.add_argument("--repeats", type=int, default=200)
    words.add_argument("--bootstrap", type=int, default=200)
    words.add_argument("-o", "--output", help="write the figures as JSON")
    given = words.parse_args()
    figures = run(tuple(given.sections), given.repeats, given.bootstrap)
    if given.output:
        with open(given.output, "w") as file:
            json.dump(figures, file, indent=2)
