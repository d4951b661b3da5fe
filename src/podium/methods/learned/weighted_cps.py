"""The coset-permutation stagewise model with learned weights of the experts."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np

from podium.core.old_names import accept_old_names
from podium.core.params import Range, Tune
from podium.data.building.subset import restrict_items
from podium.data.features import Features
from podium.data.ids import Id
from podium.data.preferences import Preferences
from podium.kernels import segments
from podium.kernels.bounded_minimum import minimize_smooth
from podium.kernels.dispatch import B1, F8, I8
from podium.kernels.stagewise_model import compute_coset_distances
from podium.learning.examples import Training
from podium.methods.base import LIST_FORMS, Outcome, Tags
from podium.methods.costs import Cost
from podium.methods.input_checks import match_experts
from podium.methods.learned.supervised_method import SupervisedAggregator
from podium.methods.learned.weighted_rules import select_weights
from podium.methods.stagewise import Distance, mean_places, score_by_stages, stage_costs

__all__ = ["StageChoices", "WeightedCps"]


class StageChoices(NamedTuple):
    """Stages at which one of the items was to be chosen: rows of distances, stage after stage."""

    values: F8  # (row, expert)
    chosen: B1  # by row: whether it has the best remaining grade
    starts: I8  # rows of each stage
    weight: F8  # by stage

    @classmethod
    def from_training(cls, training: Training, places: F8, distance: str, normalize: bool) -> StageChoices:
        """One stage for every query and grade but its lowest: items of the grade against those below."""
        examples, values, chosen, weights = training.examples, [], [], []
        starts, grades = examples.starts, examples.labels.grades
        for query in examples.find_useful_queries().tolist():
            rows = slice(int(starts[query]), int(starts[query + 1]))
            grade, place = grades[rows], places[rows]
            unit = len(grade) ** (2 if distance == "spearman" else 1) if normalize else 1
            for begin in [0, *(np.flatnonzero(np.diff(grade)) + 1).tolist()][:-1]:
                values.append(compute_coset_distances(place[begin:], begin, distance) / unit)
                chosen.append(grade[begin:] == grade[begin])
                weights.append(float(examples.weight[query]))
        stages = segments.offsets([len(items) for items in chosen])
        return cls(np.concatenate(values), np.concatenate(chosen), stages, np.array(weights))

    def compute_loss(self, theta: F8, l2: float) -> tuple[float, F8]:
        """The mean of -log P(chosen) plus l2 / 2 |theta|^2, and its gradient; convex in theta."""
        first, sizes = self.starts[:-1], np.diff(self.starts)
        # not BLAS, whose sums depend on the number of threads
        cost = np.einsum("ij,j->i", self.values, theta)
        least = np.minimum.reduceat(cost, first)
        share = np.exp(np.repeat(least, sizes) - cost)
        total = np.add.reduceat(share, first)
        count = np.add.reduceat(self.chosen.astype(np.float64), first) * self.weight
        weight = np.repeat(self.weight, sizes) * self.chosen
        slope = weight - share / np.repeat(total, sizes) * np.repeat(count, sizes)
        value = float(weight @ cost + count @ (np.log(total) - least))
        everything = float(count.sum())
        return (
            value / everything + l2 / 2 * float(theta @ theta),
            np.einsum("i,ij->j", slope, self.values) / everything + l2 * theta,
        )


@accept_old_names(normalise="normalize")
@dataclass(kw_only=True, eq=False, repr=False)
class WeightedCps(SupervisedAggregator):
    """Fills the ranking from the top with the item of lowest total cost; the weights theta are learned.

    Item x is chosen with probability proportional to exp(-sum_k theta_k d_k(x)), where d_k is the coset
    distance: the mean distance (`kendall`, `spearman` or `footrule`) between expert k's list and all rankings
    that continue with x. Items that an expert does not list share its remaining places. theta maximizes the
    likelihood of the labels. Items of one grade have no order among themselves, so each is taken as the first
    choice among its grade and all below (as Breslow treats ties in Cox's regression); the problem stays
    convex.

    `normalize` divides distances by the number of items (its square for `spearman`), so that long lists do
    not count more than short ones; False is the published model. Validation data are not used.

    >>> from podium import Labels, Preferences
    >>> p = Preferences.from_lists({"q": {"good": ["a", "b", "c"], "bad": ["c", "b", "a"]}})
    >>> model = WeightedCps().fit(p, Labels.from_dict({"q": {"a": 2, "b": 1, "c": 0}}))
    >>> model.theta_["good"] > model.theta_["bad"], model.aggregate(p).ranking("q")
    (True, ['a', 'b', 'c'])
    """

    name = "weighted_cps"
    citation = "Qin, Geng & Liu, NIPS 2010"
    tags = Tags(accepts=LIST_FORMS, weighted=False, supervised=True, pairwise="items")

    distance: Distance = "kendall"
    positive: Annotated[bool, "restrict theta to nonnegative values: no expert is reversed"] = True
    normalize: Annotated[bool, "measure distances relative to the length of the ranking"] = True
    l2: Annotated[float, Range(0, 1e6), Tune(1e-5, 0.1, log=True), "penalty on the squared theta"] = 1e-3
    max_iterations: Annotated[int, Range(1, 100_000), "maximum number of L-BFGS steps"] = 300

    def _learn(self, training: Training) -> None:
        # places among the labeled items of each query, in the order of the examples
        given, rows, width = training.preferences, training.examples.rows, len(self.experts_)
        keep = np.zeros(len(given.index.items), np.bool_)
        keep[rows] = True
        places = mean_places(restrict_items(given, keep), np.arange(width), width)
        places = places[(np.cumsum(keep) - 1)[rows]]
        choices = StageChoices.from_training(training, places, self.distance, self.normalize)
        minimum = minimize_smooth(
            functools.partial(choices.compute_loss, l2=self.l2),
            np.zeros(choices.values.shape[1]),
            nonnegative=self.positive,
            steps=self.max_iterations,
            value_tolerance=1e-13,
            slope_tolerance=1e-8,
            on_step=lambda done: training.progress(done, self.max_iterations, "learning"),
        )
        self.converged_, self.iterations_ = minimum.converged, minimum.steps
        self.theta_: dict[Id, float] = dict(zip(self.experts_, minimum.x.tolist(), strict=True))

    def _estimate_costs(self, preferences: Preferences) -> list[Cost]:
        return stage_costs(preferences, self.distance)

    def _score(self, preferences: Preferences, features: Features | None) -> Outcome:
        codes = match_experts(self, preferences)
        theta = np.array([*self.theta_.values()])
        scores = score_by_stages(preferences, codes, theta, self.distance)
        return Outcome(
            scores,
            converged=self.converged_,
            iterations=self.iterations_,
            expert_weights=select_weights(self.theta_, codes),
        )
