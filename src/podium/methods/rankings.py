"""Models of whole rankings: Plackett-Luce chooses place by place, Mallows scatters around a center."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import numpy as np

from podium.core.params import Range, Tune
from podium.data.index import ItemIndex
from podium.data.preferences import Preferences
from podium.kernels import mallows
from podium.kernels.comparison_graph import Connections, find_connections
from podium.kernels.dispatch import B1, F8, I8
from podium.kernels.pairwise_votes import find_unranked_slots
from podium.kernels.plackett_luce import fit_plackett_luce
from podium.methods.base import ALL_FORMS, Aggregator, Outcome, Tags
from podium.methods.kemeny import Kemeny
from podium.methods.majority import collect_votes

__all__ = ["Mallows", "PlackettLuce"]

TIE = 1e-8  # relative: scores closer than this are ties
NAMED = 5  # items that a note names


@dataclass(kw_only=True, eq=False, repr=False)
class PlackettLuce(Aggregator):
    """Every place is a choice among the items left, with odds exp(score); scores by maximum likelihood.

    A list carries no information about unlisted items or, with unlisted="below", they are chosen after all
    listed ones. A comparison is a list of two. A block of t tied items is t choices from the items at or
    below it, each by one of the tied (Breslow), and t - 1 choices where nothing is below, so that a tie of
    two is half a win for each.

    The odds have a gamma prior with this `shape` (its rate only sets the scale): as if every item had been
    chosen `shape - 1` times from all. With shape 1 there is no prior, and no finite solution where some items
    are always above the others; the notes name such items. The scores of placed items have mean 0 in every
    query; an item that no expert places does not affect them and ranks last. Converged means that no
    component of the gradient exceeds `tolerance`, relative to the choices won by the most chosen item.

    >>> from podium import Preferences
    >>> p = Preferences.from_lists({"q": {1: "abc", 2: "acb", 3: "bac"}})
    >>> {i: round(s, 3) for i, s in PlackettLuce(shape=1.5).aggregate(p).to_dict()["q"].items()}
    {'a': 0.759, 'b': -0.057, 'c': -0.702}
    """

    name = "plackett_luce"
    aliases = ("pl",)
    citation = (
        "Plackett, Applied Statistics 1975; Hunter, Annals of Statistics 2004; Caron & Doucet, JCGS 2012"
    )
    tags = Tags(accepts=ALL_FORMS, cost="iterate")
    exempt = {  # noqa: RUF012 - read-only by convention, like all class attributes here
        "doubling": "the prior has a fixed size: twice the evidence moves items in few lists further away from it"
    }

    shape: Annotated[
        float,
        Range(1, 1000),
        Tune(1.01, 50, log=True),
        "shape of the gamma prior on the odds; 1 means no prior",
    ] = 2.0
    tolerance: Annotated[float, Range(1e-12, 1e-2), "largest relative gradient at convergence"] = 1e-10
    max_iterations: Annotated[int, Range(1, 1_000_000), "maximum number of Newton steps per query"] = 200

    def _scores(self, preferences: Preferences, weights: F8) -> Outcome:
        votes, unit = collect_votes(preferences, weights)
        fit = fit_plackett_luce(votes, (self.shape - 1) / unit, self.tolerance, self.max_iterations)
        late, index = fit.steps > self.max_iterations, preferences.index
        unranked = find_unranked_slots(votes)
        notes, bounded = self._describe_gaps(index, find_connections(votes), ~unranked)
        if late.any():
            where, worst = _format_queries(index, late), float(fit.gradient[late].max())
            notes.append(
                f"queries not converged after {self.max_iterations} steps: {where}; largest gradient {worst:.1e}"
            )
        query, known = index.query_of_slot, ~unranked
        total, count = (np.bincount(query[known], w, len(index)) for w in (fit.score[known], None))
        return Outcome(
            np.asarray(fit.score - (total / np.maximum(count, 1))[query], np.float64),
            unranked,
            tolerance=TIE,
            magnitude=1.0,  # log odds of even choices cancel
            converged=bounded and not late.any(),
            iterations=int(fit.steps.max(initial=0)),
            objective=float(fit.value.sum()) * unit,
            notes=(f"largest gradient {fit.gradient.max(initial=0.0):.1e}", *notes),
        )

    def _describe_gaps(self, index: ItemIndex, connections: Connections, known: B1) -> tuple[list[str], bool]:
        """Notes on what the votes leave undetermined, and whether the scores are bounded."""
        prior = self.shape > 1
        keeps = "only the prior keeps their scores finite" if prior else "their scores have no finite maximum"
        cases = (
            ("never placed below another", known & connections.above & ~connections.below),
            ("never placed above another", known & connections.below & ~connections.above),
        )
        notes = []
        for what, which in cases:
            if which.any():
                # number of items and queries, and the first few items of the first query by name
                slots = np.flatnonzero(which)
                query = index.query_of_slot[slots]
                here = slots[query == query[0]]
                names = ", ".join(repr(index.items[int(s)]) for s in here[:NAMED])
                more = ", ..." if len(slots) > min(len(here), NAMED) else ""
                count, queries = len(slots), len(np.unique(query))
                sizes = f"{count} item{'s'[: count > 1]} in {queries} quer{'ies' if queries > 1 else 'y'}"
                where = f"query {index.queries[int(query[0])]!r}: {names}{more}"
                notes.append(f"{what}: {sizes} ({where}); {keeps}")
        split = _count_parts(index, connections.group, known) > 1
        if split.any():
            places = "the prior alone places them" if prior else "nothing places them"
            notes.append(
                f"queries with groups of items that no vote compares: {_format_queries(index, split)}; {places}"
            )
        apart = _count_parts(index, connections.level, known) > 1
        return notes, prior or not apart.any()


def _format_queries(index: ItemIndex, which: B1) -> str:
    """'3 of 10 (the first is 'q')'."""
    first = index.queries[int(np.flatnonzero(which)[0])]
    return f"{int(which.sum())} of {len(which)} (the first is {first!r})"


def _count_parts(index: ItemIndex, group: I8, known: B1) -> I8:
    """Groups of known items in every query."""
    first = np.unique(group[known], return_index=True)[1]
    return np.bincount(index.query_of_slot[known][first], minlength=len(index))


@dataclass(kw_only=True, eq=False, repr=False)
class Mallows(Kemeny):
    """Maximum-likelihood center of rankings whose probability falls by a factor phi per discordant pair.

    The center is the Kemeny ranking, computed as by `Kemeny`, and gives the scores. A list scatters around
    the center's order of its own items: P = phi^d / Z, d the discordant pairs between list and center. Ties
    and, with unlisted="below", the unlisted items are blocks without an inner order, and Z sums over all ways
    to fill the blocks; a comparison is a list of two. One phi is fitted over all queries by maximum
    likelihood: 0 is perfect agreement, 1 is chance. The objective is the log-likelihood; the notes give phi
    and the summed distance d.

    >>> from podium import Preferences
    >>> p = Preferences.from_lists({"q": {1: "abc", 2: "acb", 3: "bac", 4: "abc"}})
    >>> found = Mallows().aggregate(p)
    >>> found.ranking("q"), found.diagnostics.notes[0]
    (['a', 'b', 'c'], 'phi 0.2578, total distance 2')
    """

    name = "mallows"
    citation: ClassVar[str] = "Mallows, Biometrika 1957"

    def _scores(self, preferences: Preferences, weights: F8) -> Outcome:
        outcome = super()._scores(preferences, weights)
        votes, unit = collect_votes(preferences, weights)
        distance = float(outcome.objective or 0.0)
        sizes = mallows.count_block_sizes(votes) * unit
        phi = mallows.estimate_dispersion(sizes, distance)
        notes = (f"phi {phi:.4g}, total distance {distance:g}", *outcome.notes)
        return replace(outcome, objective=mallows.compute_log_likelihood(sizes, distance, phi), notes=notes)
