"""Methods on pairwise preference matrices: the multinomial preference model, and matrix completion by SVP."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, cast

import numpy as np

from podium.core.errors import Option, ParameterError
from podium.core.params import Choice, Range, Tune
from podium.data.preferences import Preferences
from podium.kernels import matrix_completion, multinomial, preference_svd
from podium.kernels.dispatch import B1, F8, I8
from podium.kernels.pairwise_votes import find_unranked_slots
from podium.methods.base import ALL_FORMS, Aggregator, Outcome, Tags
from podium.methods.costs import Cost, table_cost
from podium.methods.learned.expert_matrices import Transform, build_expert_matrices, scale_ranks
from podium.methods.majority import collect_votes

__all__ = ["Mpm", "Svp"]

TIE = 1e-8  # relative to the largest score: scores closer than this are ties
ROUNDS = 2000  # alternations between adherences and scores


@dataclass(kw_only=True, eq=False, repr=False)
class Mpm(Aggregator):
    """MPM: preferences are draws from all pairs, i over j with probability exp(t (s_i - s_j)) / Z.

    Every strength Y(i, j) with which an expert prefers i to j counts as that number of draws; Z sums over all
    pairs of items of the query. Scores s have a normal prior with mean 0. In the plain model t = 1 for all,
    and the items are ordered by net strength, the sum of Y(i, j) - Y(j, i). With `adherence` every expert has
    its own t >= 0 per query, with a normal prior around 1: experts that contradict the others get a small t.
    `pooled` gives an expert one t for all queries, which then depend on each other. The expert weights of the
    consensus are the given weights times t, averaged over queries by strength.

    >>> from podium import Preferences
    >>> p = Preferences.from_lists({"q": {1: "abcd", 2: "abdc", 3: "bacd", 4: "dbca"}})
    >>> Mpm().aggregate(p).ranking("q")
    ['b', 'a', 'd', 'c']
    >>> found = Mpm(adherence=True).aggregate(p)
    >>> found.ranking("q"), found.expert_weights.round(2).tolist()
    (['a', 'b', 'c', 'd'], [1.11, 1.01, 1.01, 0.0])
    """

    name = "mpm"
    citation = "Volkovs & Zemel, WWW 2012"
    tags = Tags(accepts=ALL_FORMS, cost="iterate")

    adherence: Annotated[bool, "estimate an adherence per expert"] = False
    pooled: Annotated[bool, "share an expert's adherence across queries"] = False
    strength: Annotated[
        str, Choice("binary", "rank", "log"), "strength of a pair: 1, or the difference of ranks or log ranks"
    ] = "binary"
    prior: Annotated[float, Range(1e-6, 1e6), Tune(1e-3, 10, log=True), "precision of the scores' prior"] = (
        0.1
    )
    steady: Annotated[
        float, Range(1e-6, 1e6), Tune(1e-2, 1e3, log=True), "precision of the adherences' prior around 1"
    ] = 1.0
    tolerance: Annotated[float, Range(1e-12, 1e-2), "largest relative gradient at convergence"] = 1e-10
    max_iterations: Annotated[int, Range(1, 1_000_000), "maximum number of Newton steps per query"] = 200

    def _scores(self, preferences: Preferences, weights: F8) -> Outcome:
        groups, expert = self._build_groups(preferences, weights)
        fit, adherence, late, rounds = self._fit_groups(groups, expert)
        notes = [f"largest gradient {fit.gradient.max(initial=0.0):.1e}"]
        if late.any():
            notes.append(f"not converged in {int(late.sum())} of {len(late)} queries")
        expert_weights = None
        if self.adherence:
            # the mean adherence of every expert, weighted by its strengths; 1 for experts without preferences
            strength = np.bincount(expert, groups.total, len(weights))
            total = np.bincount(expert, groups.total * adherence, len(weights))
            mean = total / np.where(strength > 0, strength, 1.0)
            expert_weights = np.where(strength > 0, mean, 1.0) * weights
        return Outcome(
            fit.score,
            find_unranked_slots(collect_votes(preferences, weights)[0]),
            tolerance=TIE,
            floor=1.0,
            converged=not late.any(),
            iterations=rounds + int(fit.steps.max(initial=0)),
            objective=float(fit.value.sum()),
            notes=tuple(notes),
            expert_weights=expert_weights,
        )

    def _build_groups(self, preferences: Preferences, weights: F8) -> tuple[multinomial.PreferenceGroups, I8]:
        """Weighted net strengths and totals, by query and expert (or by query), and the expert of each group."""
        made = build_expert_matrices(preferences, cast(Transform, self.strength))
        m = made.matrices
        row, column = preference_svd.sum_rows_and_columns(m)
        weight = weights[made.group]
        net, total = (row - column) * weight[m.owner], np.bincount(m.owner, row, len(m.query)) * weight
        slots, queries = m.slots, len(preferences)
        if self.adherence:
            starts = np.searchsorted(m.query, np.arange(queries + 1))
            return multinomial.PreferenceGroups(slots, starts, m.starts_out, net, total), made.group
        slot = np.arange(len(net)) + np.repeat(slots[m.query] - m.starts_out[:-1], m.sizes)
        net, total = (
            np.bincount(at, values, count).astype(np.float64, copy=False)
            for at, values, count in ((slot, net, int(slots[-1])), (m.query, total, queries))
        )
        groups = multinomial.PreferenceGroups(slots, np.arange(queries + 1), slots, net, total)
        return groups, np.zeros(queries, np.int64)

    def _fit_groups(
        self, groups: multinomial.PreferenceGroups, expert: I8
    ) -> tuple[multinomial.MultinomialFit, F8, B1, int]:
        """The fit, adherences by group, queries that did not converge, and the number of alternations."""
        queries, slots = len(groups.starts) - 1, int(groups.slots[-1])
        fit = multinomial.MultinomialFit(
            np.zeros(slots), np.zeros(queries), np.zeros(queries, np.int64), np.zeros(queries)
        )
        adherence, active, rounds = np.ones(len(groups.total)), np.ones(queries, np.bool_), 0
        settings = self.prior, self.tolerance, self.max_iterations
        multinomial.fit_scores(groups, adherence, *settings, fit, active)
        if not self.adherence:
            return fit, adherence, fit.steps > self.max_iterations, 0
        tied = np.zeros_like(expert) if self.pooled else groups.query  # groups that share one scale
        own = expert if self.pooled else np.arange(len(expert))  # groups that share one adherence
        while active.any() and rounds < ROUNDS * min(1, self.max_iterations - 1):
            rounds += 1
            moved = multinomial.fit_adherence(
                groups, adherence, own, tied, fit.score, active, self.prior, self.steady
            )
            active = np.full(queries, moved.any()) if self.pooled else moved
            multinomial.fit_scores(groups, adherence, *settings, fit, active)
        return fit, adherence, active | (fit.steps > self.max_iterations), rounds


@dataclass(kw_only=True, eq=False, repr=False)
class Svp(Aggregator):
    """SVP: complete a skew-symmetric preference matrix to rank two, and score items by its row means.

    Y(i, j), the strength of i over j minus that of j over i, is known for pairs that some expert compares:
    over experts the `sum`, the weighted `mean` or the smoothed `log_odds`, log((w + 1) / (l + 1)) of the
    support for i and for j, a tie half for each. A list's strength is the difference of ranks over its
    largest rank (`rank`), of log ranks (`log`), of plain ranks (`difference`), or 1 (`binary`); against
    unlisted items, where they are below, it is 1 (for `difference` they are one rank below the last). Unknown
    cells are filled in by repeated projection onto rank two. With few lists they are poorly determined, so
    `shrink` pulls them towards 0: 0 is the published method, which may not converge; 1 sets them to 0 and
    projects once. The notes report how much of Y the result explains.

    >>> from podium import Preferences
    >>> p = Preferences.from_lists({"q": {1: "abc", 2: "bcd", 3: "acd"}})
    >>> Svp().aggregate(p).ranking("q")
    ['a', 'b', 'c', 'd']
    """

    name = "svp"
    citation = "Gleich & Lim, KDD 2011"
    tags = Tags(accepts=ALL_FORMS, pairwise="items")

    strength: Annotated[
        str,
        Choice("rank", "log", "difference", "binary"),
        "strength with which a list prefers one item to another",
    ] = "rank"
    combine: Annotated[str, Choice(*matrix_completion.COMBINE), "how the experts' strengths are combined"] = (
        "sum"
    )
    shrink: Annotated[float, Range(0, 1), Tune(0.01, 1, log=True), "shrinkage of unknown cells towards 0"] = (
        0.1
    )
    tolerance: Annotated[
        float, Range(1e-12, 1e-2), "largest relative change by a projection at convergence"
    ] = 1e-10
    max_iterations: Annotated[int, Range(1, 1_000_000), "maximum number of projections per query"] = 2000

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.strength, self.combine) == ("difference", "log_odds"):
            raise ParameterError(
                "svp: log_odds counts wins, and differences of plain ranks are not counts; use ",
                Option("strength", "binary", of="method"),
            )

    def _estimate_costs(self, preferences: Preferences) -> list[Cost]:
        return table_cost(preferences.index.sizes, 40, square=5_000)

    def _scores(self, preferences: Preferences, weights: F8) -> Outcome:
        votes, unit = collect_votes(preferences, weights)
        # the position of every row on the scale of its list, and that of the unlisted items
        lists = preferences.lists
        if self.strength == "difference":
            value, bottom = lists.rank.astype(np.float64), lists.last_rank.astype(np.float64) + 1
        else:
            value, bottom = scale_ranks(lists, cast(Transform, self.strength)), np.full(len(lists), np.inf)
        rule = matrix_completion.DifferenceRule(
            value, bottom, self.strength == "binary", matrix_completion.COMBINE.index(self.combine), unit
        )
        completion = matrix_completion.complete_matrices(
            votes, rule, self.shrink, self.tolerance, self.max_iterations
        )
        late, norm = completion.steps > self.max_iterations, float(completion.norm.sum())
        explained = 1 - float(completion.error.sum()) / norm if norm > 0 else 1.0
        notes = [f"explains {explained:.1%} of the strengths"]
        if late.any():
            notes.append(
                f"stopped after {self.max_iterations} projections in {int(late.sum())} of {len(late)} queries, "
                f"with changes of up to {float(completion.change[late].max()):.1e}"
            )
        return Outcome(
            completion.score,
            find_unranked_slots(votes),
            tolerance=TIE,
            floor=1.0,
            converged=not late.any(),
            iterations=int(completion.steps.max(initial=0)),
            objective=float(completion.error.sum()),
            notes=tuple(notes),
        )
