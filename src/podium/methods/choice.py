"""Scores from the outcomes of contests: Bradley-Terry and related models.

Every comparison is a contest, and a list is one contest per pair of its items (equal ranks are ties; with
unlisted="below" a listed item also beats every unlisted one, while two unlisted items do not meet). A contest
weighs the weight of the vote times that of the expert. Where the contests do not determine the distance
between two items, because one group never lost to the other or never met it, the prior decides, and a note
reports it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from podium.core.errors import InputError
from podium.core.params import Choice, Range, Tune
from podium.data.preferences import Preferences
from podium.kernels import contest_scores
from podium.kernels.contest_counts import Part, counting_bytes, split_contests
from podium.kernels.dispatch import F8, I8
from podium.kernels.elo import compute_elo
from podium.kernels.rank_centrality import compute_rank_centrality
from podium.methods.base import ALL_FORMS, Aggregator, Outcome, Tags
from podium.methods.costs import Cost
from podium.methods.majority import collect_votes

__all__ = ["BradleyTerry", "Elo", "EloScale", "RankCentrality", "ThurstoneMosteller"]

TIE = 1e-9  # scores closer than this fraction of the largest one are ties
SHOWN = 3  # queries, and items per query, named in the notes
NO_CONTESTS = "keep the top of the lists, or use bradley_terry, which does not expand lists into pairs"


def collect_contests(
    name: str, preferences: Preferences, weights: F8, *, sided: bool = False, keep_lists: bool = False
) -> Iterator[Part]:
    """The contests of all queries in parts; `sided` also returns which side was shown first."""
    votes, unit = collect_votes(preferences, weights)
    shown = preferences.comparisons.side
    if sided and shown is None:
        raise InputError(
            f"{name} cannot estimate the advantage of being shown first: the votes do not record the order",
            remedy="give votes with the columns model_a, model_b and winner, or side= to from_comparisons",
        )
    side = shown.astype(np.float64) if sided and shown is not None else None
    return split_contests(votes, unit, side, keep_lists=keep_lists)


def contest_costs(preferences: Preferences, remedy: str) -> list[Cost]:
    """Cost of the query whose lists expand into the most contests; comparisons never exceed the input."""
    pairs, memory = counting_bytes(collect_votes(preferences, np.ones(len(preferences.experts)))[0])
    if not len(pairs):
        return []
    worst = int(memory.argmax())
    return [Cost(float(pairs[worst]), "pairs of items", float(memory[worst]), 0.0, worst, remedy)]


@dataclass(kw_only=True, eq=False, repr=False)
class LatentScores(Aggregator):
    """Maximum-likelihood scores of a contest model, by Newton's method (`podium.kernels.contest_scores`)."""

    tags = Tags(accepts=ALL_FORMS, pairwise="lists")

    tolerance: Annotated[float, Range(1e-13, 1e-3), "largest change of a score in the last step"] = 1e-8
    max_iterations: Annotated[int, Range(1, 100_000), "maximum number of steps per query"] = 100

    @abstractmethod
    def _fit_contests(self, met: contest_scores.Contests) -> contest_scores.ContestSolution:
        """Solve all queries."""

    @abstractmethod
    def _describe_prior(self) -> str:
        """Describe the prior in the notes."""

    def _needs_sides(self) -> bool:
        return False

    def _keeps_lists(self) -> bool:
        """Whether lists can be used without expanding them into pairs."""
        return False

    def _estimate_costs(self, preferences: Preferences) -> list[Cost]:
        return contest_costs(preferences, NO_CONTESTS)

    def _scores(self, preferences: Preferences, weights: F8) -> Outcome:
        parts, results = [], []
        options = {"sided": self._needs_sides(), "keep_lists": self._keeps_lists()}
        for base, met in collect_contests(self.name, preferences, weights, **options):
            parts.append((base, self._fit_contests(met)))
            results.append(contest_scores.count_wins_and_losses(met))
        solution = contest_scores.join_solutions(parts)
        wins, losses = (np.concatenate(sides) for sides in zip(*results, strict=True))
        converged = bool(solution.converged.all())
        notes = []
        if not converged:
            late = np.flatnonzero(~solution.converged)
            worst = int(late[solution.gradient[late].argmax()])
            notes.append(
                f"{len(late)} of {len(preferences)} queries stopped after {self.max_iterations} steps; "
                f"largest gradient {solution.gradient[worst]:.1e}, query {preferences.queries[worst]!r}"
            )
        if self._needs_sides():
            sides = zip(preferences.queries[:SHOWN], solution.extra["advantage"], strict=False)
            size = ", ".join(f"{query!r} {advantage:+.3f}" for query, advantage in sides)
            notes.append(f"advantage of the side shown first, in log odds, by query: {size}")
        notes += describe_gaps(preferences, wins, losses, solution.component, self._describe_prior())
        return Outcome(
            solution.scores,
            tolerance=TIE,
            floor=1.0,
            magnitude=1.0,  # log odds of even contests cancel
            converged=converged,
            iterations=int(solution.iterations.max(initial=0)),
            objective=float(solution.objective.sum()),
            notes=tuple(notes),
        )


def describe_gaps(preferences: Preferences, wins: F8, losses: F8, component: I8, held: str) -> list[str]:
    """Notes for the first few queries: disconnected groups, and items that never lost or never won."""
    index = preferences.index
    played = wins + losses > 0
    root = played & (component == np.arange(len(component)))
    parts = np.bincount(index.query_of_slot[root], minlength=len(index))
    one_sided = played & ((wins == 0) | (losses == 0))
    open_queries = np.flatnonzero(
        (parts > 1) | (np.bincount(index.query_of_slot[one_sided], minlength=len(index)) > 0)
    )
    notes = []
    for q in open_queries[:SHOWN].tolist():
        here = slice(*index.starts[q : q + 2].tolist())
        if parts[q] > 1:
            notes.append(
                f"query {index.queries[q]!r}: {parts[q]} groups of items never met, so scores of different "
                f"groups cannot be compared; {held} centers each group at 0"
            )
        for word, none in (("lost", losses), ("won", wins)):
            items = np.flatnonzero(played[here] & (none[here] == 0)) + here.start
            if len(items):
                names = ", ".join(repr(index.items[int(i)]) for i in items[:SHOWN])
                more = f" and {len(items) - SHOWN} more" if len(items) > SHOWN else ""
                notes.append(
                    f"query {index.queries[q]!r}: never {word}: {names}{more}; {held} keeps this finite"
                )
    if len(open_queries) > SHOWN:
        notes.append(f"the same applies to {len(open_queries) - SHOWN:,} more queries of {len(index):,}")
    return notes


@dataclass(kw_only=True, eq=False, repr=False)
class BradleyTerry(LatentScores):
    """Log strengths s such that i beats j with probability 1 / (1 + exp(s_j - s_i)).

    Scores are natural log odds with mean 0. The default prior is a ridge, l2 / 2 times the sum of squared
    scores. With l2 = 0.001 it is a normal distribution with standard deviation 32: it barely moves items that
    both won and lost, and keeps the others finite. The gamma prior of the strengths exp(s) has the given
    shape (its rate only shifts all scores) and sets their mean to 1 instead of the mean score to 0. A tie is
    half a win for each side, an outcome of its own (Davidson; Rao & Kupper), or ignored; an item with only
    ignored ties has score 0.

    >>> from podium import Preferences
    >>> p = Preferences.from_comparisons([0] * 4, ["j"] * 4, ["a", "a", "a", "b"], ["b", "b", "b", "a"])
    >>> {i: round(s, 3) for i, s in BradleyTerry(l2=1e-6).aggregate(p).to_dict()[0].items()}
    {'a': 0.549, 'b': -0.549}
    """

    name = "bradley_terry"
    aliases = ("bt",)
    citation = (
        "Bradley & Terry, Biometrika 1952; Davidson, JASA 1970; Rao & Kupper, JASA 1967; Caron & Doucet, 2012"
    )

    ties: Annotated[
        str,
        Choice("half", "davidson", "rao_kupper", "ignore"),
        "how a tie counts: half a win each, an outcome of its own, or not at all",
    ] = "half"
    prior: Annotated[str, Choice("ridge", "gamma"), "prior of the scores (ridge) or strengths (gamma)"] = (
        "ridge"
    )
    l2: Annotated[float, Range(1e-9, 1e6), Tune(1e-4, 10, log=True), "weight of the ridge prior"] = 0.001
    shape: Annotated[float, Range(1 + 1e-9, 1e6), Tune(1.01, 10, log=True), "shape of the gamma prior"] = 1.1
    advantage: Annotated[bool, "estimate the advantage of the side shown first, and remove it"] = False

    def _needs_sides(self) -> bool:
        return self.advantage

    def _keeps_lists(self) -> bool:
        return self.ties in ("half", "ignore") and not self.advantage

    def _estimate_costs(self, preferences: Preferences) -> list[Cost]:
        option = "advantage=False" if self.advantage else "ties='half'"
        remedy = f"keep the top of the lists, or use {option}, which does not expand lists into pairs"
        return [] if self._keeps_lists() else contest_costs(preferences, remedy)

    def _fit_contests(self, met: contest_scores.Contests) -> contest_scores.ContestSolution:
        gamma = self.prior == "gamma"
        return contest_scores.fit_contests(
            met,
            ties=self.ties,
            l2=0.0 if gamma else self.l2,
            shape=self.shape if gamma else 1.0,
            tolerance=self.tolerance,
            max_iterations=self.max_iterations,
        )

    def _describe_prior(self) -> str:
        return f"the prior (shape={self.shape:g})" if self.prior == "gamma" else f"the prior (l2={self.l2:g})"


@dataclass(kw_only=True, eq=False, repr=False)
class ThurstoneMosteller(LatentScores):
    """Scores s such that i beats j with probability Phi(s_i - s_j), Phi the normal CDF (Thurstone's case V).

    The unit is the standard deviation of the noise in a difference. A tie is half a win for each side, or
    ignored; the ridge prior is that of `bradley_terry`.

    >>> from podium import Preferences
    >>> p = Preferences.from_comparisons([0] * 4, ["j"] * 4, ["a", "a", "a", "b"], ["b", "b", "b", "a"])
    >>> {i: round(s, 3) for i, s in ThurstoneMosteller(l2=1e-6).aggregate(p).to_dict()[0].items()}
    {'a': 0.337, 'b': -0.337}
    """

    name = "thurstone"
    citation = "Thurstone, Psychological Review 1927; Mosteller, Psychometrika 1951"

    ties: Annotated[str, Choice("half", "ignore"), "how a tie counts: half a win each, or not at all"] = (
        "half"
    )
    l2: Annotated[float, Range(1e-9, 1e6), Tune(1e-4, 10, log=True), "weight of the ridge prior"] = 0.001

    def _fit_contests(self, met: contest_scores.Contests) -> contest_scores.ContestSolution:
        stop = {"tolerance": self.tolerance, "max_iterations": self.max_iterations}
        return contest_scores.fit_contests(met, model="thurstone", ties=self.ties, l2=self.l2, **stop)  # type: ignore[arg-type]

    def _describe_prior(self) -> str:
        return f"the prior (l2={self.l2:g})"


@dataclass(kw_only=True, eq=False, repr=False)
class RankCentrality(Aggregator):
    """Stationary distribution of a walk that moves from an item to an opponent at the rate it loses to it.

    Ties are half a win for each side. `smoothing` votes are added to both sides of every pair that met, so
    the walk can leave every item; groups that never met get mass in proportion to their number of items.
    Where the contests follow Bradley-Terry exactly, the probabilities are proportional to its strengths.

    >>> from podium import Preferences
    >>> p = Preferences.from_comparisons([0] * 4, ["j"] * 4, ["a", "a", "a", "b"], ["b", "b", "b", "a"])
    >>> {i: round(s, 3) for i, s in RankCentrality(smoothing=1e-6).aggregate(p).to_dict()[0].items()}
    {'a': 0.75, 'b': 0.25}
    """

    name = "rank_centrality"
    citation = "Negahban, Oh & Shah, Operations Research 2017"
    tags = Tags(accepts=ALL_FORMS, pairwise="lists", cost="iterate")

    smoothing: Annotated[
        float, Range(1e-9, 1e6), Tune(0.001, 10, log=True), "votes added to both sides of every pair that met"
    ] = 0.01
    tolerance: Annotated[float, Range(1e-13, 1e-3), "largest relative change of a probability in a sweep"] = (
        1e-12
    )
    max_iterations: Annotated[int, Range(1, 100_000_000), "maximum number of sweeps per query"] = 100_000

    def _estimate_costs(self, preferences: Preferences) -> list[Cost]:
        return contest_costs(preferences, NO_CONTESTS)

    def _scores(self, preferences: Preferences, weights: F8) -> Outcome:
        walks, columns = [], []
        for base, met in collect_contests(self.name, preferences, weights):
            walks.append(compute_rank_centrality(met, self.smoothing, self.tolerance, self.max_iterations))
            columns.append(
                (*contest_scores.count_wins_and_losses(met), contest_scores.find_weak_components(met) + base)
            )
        converged = all(walk.converged for walk in walks)
        notes = [] if converged else [f"stopped after {self.max_iterations} sweeps"]
        held = f"smoothing={self.smoothing:g}"
        wins, losses, component = (np.concatenate(column) for column in zip(*columns, strict=True))
        return Outcome(
            np.concatenate([walk.probability for walk in walks]),
            tolerance=TIE,
            converged=converged,
            iterations=max((walk.sweeps for walk in walks), default=None),
            notes=(*notes, *describe_gaps(preferences, wins, losses, component, held)),
        )


@dataclass(kw_only=True, eq=False, repr=False)
class EloScale:
    """The step, the scale and the origin of Elo ratings."""

    k: Annotated[
        float,
        Range(0, 1000, open_low=True),
        Tune(1, 100, log=True),
        "step size: points for a win with expected outcome 0",
    ] = 32.0
    scale: Annotated[float, Range(1e-6, 1e6), "rating difference that stands for odds of 10 to 1"] = 400.0
    start: Annotated[float, Range(-1e6, 1e6), "initial rating of every item"] = 1500.0

    @property
    def odds_per_point(self) -> float:
        """Natural log odds per point of rating difference."""
        return float(np.log(10) / self.scale)


@dataclass(kw_only=True, eq=False, repr=False)
class Elo(EloScale, Aggregator):
    """Ratings updated vote by vote: each vote moves them by k times (outcome - expected outcome).

    The order matters: a query's lists come first (by expert), then its comparisons by expert and, within an
    expert, in input order; later votes weigh more. A list is processed at once, each item's gain averaged
    over its opponents. With `rounds` the ratings are the mean over that many random orders of the votes,
    drawn from `seed`, and the input order of comparisons has no effect. The weights of experts and votes
    multiply k.

    >>> from podium import Preferences
    >>> Elo().aggregate(Preferences.from_comparisons([0], ["j"], ["a"], ["b"])).to_dict()
    {0: {'a': 1516.0, 'b': 1484.0}}
    """

    name = "elo"
    citation = "Elo, The Rating of Chessplayers, 1978"
    tags = Tags(accepts=ALL_FORMS)
    exempt: ClassVar = {
        "row_order": "Elo depends on the order of the votes; set rounds for a result that does not",
        "renaming_experts": "the votes of an expert are played together, in the order of the experts",
        "doubling": "a repeated vote moves the ratings less the second time, and the order matters",
        "weight_two": "one vote with twice the step differs from two votes in sequence",
        "weights_matter": "when two experts contradict each other, the later one wins",
    }

    rounds: Annotated[int, Range(0, 100_000), "random orders to average over; 0 keeps the input order"] = 0
    seed: Annotated[int, Range(0, 2**31 - 1), "seed of the random orders"] = 0

    def _scores(self, preferences: Preferences, weights: F8) -> Outcome:
        votes, unit = collect_votes(preferences, weights)
        ratings = compute_elo(votes, self.k * unit, self.odds_per_point, self.rounds, self.seed)
        notes = () if self.rounds else ("the ratings depend on the order of the votes",)
        return Outcome(self.start + ratings, tolerance=TIE, magnitude=self.k, notes=notes)
