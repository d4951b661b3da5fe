"""Crowd-BT: Bradley-Terry with annotators of different quality."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from podium.core.params import Range, Tune
from podium.data.preferences import Preferences
from podium.kernels import noisy_contests
from podium.kernels.dispatch import F8
from podium.methods.base import Outcome
from podium.methods.crowd.crowd_model import TIE, CrowdModel, CrowdVotes, collect_crowd_votes

__all__ = ["CrowdBt"]


@dataclass(kw_only=True, eq=False, repr=False)
class CrowdBt(CrowdModel):
    """Crowd-BT: annotator a prefers i to j with probability h_a S(s_i - s_j) + (1 - h_a) S(s_j - s_i), S logistic.

    Scores s and qualities h are estimated jointly by maximum likelihood; votes of annotators with h near 1/2
    have almost no effect, and those of malicious annotators (h < 1/2) count in reverse. In `virtual` contests
    every item wins and loses against an item of score 0, which keeps all scores finite; h has a beta prior.
    The likelihood has several maxima; the search starts from plain Bradley-Terry (`quality=False`) and each
    annotator's agreement with it.

    >>> from podium import Preferences
    >>> p = Preferences.from_lists({"q": {1: "abcd", 2: "abdc", 3: "bacd", 4: "dcba"}})
    >>> found = CrowdBt().aggregate(p)
    >>> found.ranking("q"), found.expert_weights.round(2).tolist()
    (['a', 'b', 'c', 'd'], [0.89, 0.88, 0.88, 0.45])
    """

    name = "crowd_bt"
    citation = "Chen, Bennett, Collins-Thompson & Horvitz, WSDM 2013"
    exempt: ClassVar = {"doubling": "twice as many votes outweigh the same virtual contests"}

    virtual: Annotated[
        float,
        Range(1e-6, 1e6),
        Tune(1e-2, 10, log=True),
        "contests that every item wins and loses against a virtual item",
    ] = 1.0
    tolerance: Annotated[
        float, Range(1e-13, 1e-3), "largest gradient, relative to the curvature, at convergence"
    ] = 1e-9
    max_iterations: Annotated[int, Range(1, 100_000), "maximum number of steps"] = 500

    def _scores(self, preferences: Preferences, weights: F8) -> Outcome:
        crowd = collect_crowd_votes(self.name, preferences, weights, pooled=True, merged=True)
        plain = self._build_noisy_contests(crowd, np.ones(1), np.zeros(0), np.zeros(0))
        plain_fit = noisy_contests.fit_noisy_contests(
            plain, np.zeros(plain.slots), self.tolerance, self.max_iterations
        )
        if not self.quality:
            return self._build_outcome(plain_fit, plain_fit.steps, None)
        crowd = collect_crowd_votes(self.name, preferences, weights, pooled=self.pooled)
        right, wrong = self._prior_votes(preferences, crowd.expert)
        weight = weights[crowd.expert]
        problem = self._build_noisy_contests(crowd, weight, right * weight, wrong * weight)
        # start from the log odds of being right that follow from the annotators' agreement with the scores
        votes, scores = crowd.votes, plain_fit.scores
        chance = (1.0 / (1.0 + np.exp(scores[votes.second] - scores[votes.first])))[votes.pair]
        agreed = np.bincount(votes.group, votes.won * chance + votes.lost * (1 - chance), len(crowd.expert))
        start = np.concatenate((scores, np.log((agreed + right) / (crowd.vote_counts - agreed + wrong))))
        best = noisy_contests.fit_noisy_contests(problem, start, self.tolerance, self.max_iterations)
        quality = 1.0 / (1.0 + np.exp(-best.odds))
        return self._build_outcome(
            best,
            plain_fit.steps + best.steps,
            self._average_quality(crowd.expert, crowd.vote_counts, quality, len(weights)),
        )

    def _build_noisy_contests(
        self, crowd: CrowdVotes, weight: F8, right: F8, wrong: F8
    ) -> noisy_contests.NoisyContests:
        votes = crowd.votes
        by_row = weight[votes.group]
        ends = votes.first[votes.pair], votes.second[votes.pair]
        rows = (*ends, votes.group, votes.won * by_row, votes.lost * by_row)
        return noisy_contests.build_noisy_contests(rows, int(votes.starts[-1]), self.virtual, right, wrong)

    def _build_outcome(self, fit: noisy_contests.NoisyFit, steps: int, quality: F8 | None) -> Outcome:
        note = f"stopped after {self.max_iterations} steps; largest gradient {fit.error:.1e} of the curvature"
        return Outcome(
            fit.scores,
            tolerance=TIE,
            floor=1.0,
            magnitude=1.0,  # log odds of even contests cancel
            converged=fit.converged,
            iterations=steps,
            objective=fit.value,
            notes=() if fit.converged else (note,),
            expert_weights=quality,
        )
