"""EM-Elo: estimate the truth of each pair, then compute Elo ratings from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from podium.core.params import Range
from podium.data.preferences import Preferences
from podium.kernels.annotator_em import compute_expected_elo, estimate_pair_truths
from podium.kernels.dispatch import F8
from podium.methods.base import Outcome
from podium.methods.choice import EloScale
from podium.methods.crowd.crowd_model import TIE, CrowdModel, collect_crowd_votes

__all__ = ["EmElo"]


@dataclass(kw_only=True, eq=False, repr=False)
class EmElo(EloScale, CrowdModel):
    """EM-Elo: the truth of every pair and the quality of annotators by EM, then Elo ratings from the truths.

    Every annotator reports the true order of a pair with its own probability. Every vote on a pair is then a
    match whose result is the probability that the first item is the better one; pairs less certain than
    `sure` are skipped. With `quality=False` the results are the votes. Elo depends on the order of matches;
    these ratings are the mean over all orders, to first order in k, so they depend neither on the order nor
    on ids.

    >>> from podium import Preferences
    >>> p = Preferences.from_lists({"q": {1: "abcd", 2: "abdc", 3: "bacd", 4: "dcba"}})
    >>> found = EmElo().aggregate(p)
    >>> found.ranking("q"), found.expert_weights.round(2).tolist()
    (['a', 'b', 'c', 'd'], [0.9, 0.82, 0.82, 0.38])
    """

    name = "em_elo"
    citation = "Bashir, Anderton, Wu, Golbus, Pavlu & Aslam, SIGIR 2013"
    exempt: ClassVar = {"doubling": "twice as many independent votes also make the truths more certain"}

    sure: Annotated[float, Range(0.5, 1), "smallest probability at which a pair counts as a match"] = 0.5
    tolerance: Annotated[float, Range(1e-13, 1e-3), "largest change of an annotator's log odds in a step"] = (
        1e-10
    )
    max_iterations: Annotated[int, Range(1, 100_000_000), "maximum number of EM steps"] = 100_000

    def _scores(self, preferences: Preferences, weights: F8) -> Outcome:
        if not self.quality:
            answers = collect_crowd_votes(self.name, preferences, weights, pooled=True, merged=True).votes
            ratings = compute_expected_elo(answers, answers.won, answers.lost, self.k, self.odds_per_point)
            return Outcome(self.start + ratings, tolerance=TIE, magnitude=self.k)
        crowd = collect_crowd_votes(self.name, preferences, weights, pooled=self.pooled)
        coins = self._build_accuracy_model(preferences, crowd, weights)
        truth, quality, fixed_point = estimate_pair_truths(
            crowd.votes, coins, self.tolerance, self.max_iterations
        )
        # a margin, so that rounding does not drop a pair exactly at the threshold
        played = np.maximum(truth, 1 - truth) >= self.sure - 1e-9
        answers = crowd.votes
        weight = (answers.won + answers.lost) * coins.weight[answers.group]
        votes = np.bincount(answers.pair, weight, len(truth)) * played
        results = truth * votes, (1 - truth) * votes
        ratings = compute_expected_elo(answers, *results, self.k, self.odds_per_point)
        quality = self._average_quality(crowd.expert, crowd.vote_counts, quality, len(weights))
        return self._build_em_outcome(self.start + ratings, fixed_point, quality, magnitude=self.k)
