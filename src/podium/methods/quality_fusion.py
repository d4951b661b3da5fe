"""Expert weights from agreement over all queries, without labels; and the points by rank that suit the lists."""

from __future__ import annotations

import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np

from podium.core.errors import Option, PodiumWarning
from podium.core.params import Choice, Range, Tune
from podium.core.text import format_count
from podium.data.features import Features
from podium.data.ids import Id, Ids
from podium.data.preferences import Preferences
from podium.kernels import segments
from podium.kernels.dispatch import F8, I8
from podium.kernels.expert_agreement import (
    ExpertCorrelations,
    OrderEvidence,
    QueryLists,
    compute_expert_correlations,
    compute_order_shares,
    estimate_expert_quality,
    find_copies,
    measure_order_evidence,
    measure_similarity,
)
from podium.kernels.list_effects import ListEffects, ListValues, fit_list_effects, sum_by_item
from podium.kernels.listing_evidence import are_items_assigned, are_items_drawn
from podium.methods.base import LIST_FORMS, Aggregator, Outcome, Tags
from podium.methods.input_checks import check_forms
from podium.methods.positional import (
    Positional,
    RankBiasedCentroids,
    ReciprocalRankFusion,
    compute_rank_points,
    sum_rank_points,
)

__all__ = ["QualityWeightedFusion"]

# what the weights are estimated from, at most: about a tenth of a second
MOST_QUERIES = 500
MOST_CELLS = 4_000_000  # items and lists by list
FIRST_K = 10.0  # of the first estimate, before the points by rank are chosen: between the two rules
TOP_HEAVY = (
    0.5  # rank counts for more than listing where it moves agreement by this share of what listing does
)
ERRORS = 2.0  # standard errors by which listing must say more than ranks
MOST_EXPERTS = 2_000  # measured, those with the most lists; all others get the mean weight
PANEL = 200  # experts with whom every expert is compared, those with the most lists
MIXING = 2_654_435_761  # odd, below 2**32
MANY_QUERIES = 40  # if there are as many, lists beyond twice the panel are left out for their sake
DOUBTFUL = 0.05  # mean quality, or mean correlation in a query, below which the experts do not agree


@dataclass(frozen=True, eq=False)
class _Estimate:
    """What the lists tell about the experts."""

    rule: str  # whose points by rank are used: rrf or rbc
    compared: I8  # codes of the experts that were compared
    quality: F8  # of those
    weights: F8  # of all experts
    order: F8  # of all experts: the share of the order of their lists that counts
    group: I8  # copies share a number
    queries: int
    doubtful: I8  # codes of queries in which the experts do not agree
    effects: ListEffects | None = None  # the model that gives the scores, where items were assigned


@dataclass(kw_only=True, eq=False, repr=False)
class QualityWeightedFusion(Aggregator):
    """Sum of points by rank, experts weighted by how well they agree with the others over all queries.

    The quality of an expert is the correlation of its lists with the weighted sum of the other experts' lists;
    its weight is the quality, and 0 for an expert that contradicts the others. Copies of one list are no
    evidence for each other, and n of them count as the square root of n experts; similar experts are copies in
    part. The order of a list counts as far as items near its top are listed by more experts than those near its
    end, which reversed or random lists of other experts cannot change; without that, its items have equal
    points. With `points="auto"` the points are those of `rbc`, or those of `rrf` where being listed at all
    predicts better than a high rank that other experts list the item. Where items were assigned to the experts,
    who did not choose them, scores are mean points, corrected for the other items of a list. Two experts, or
    lists without agreement, get equal weights.

    >>> from podium import Preferences
    >>> lists = {"x": ["a", "b", "c", "d"], "y": ["a", "b", "d", "c"], "bad": ["d", "c", "b", "a"]}
    >>> p = Preferences.from_lists({query: lists for query in range(9)})
    >>> rule = QualityWeightedFusion().choose_rule(p)
    >>> rule.name, rule.weights["bad"], rule.aggregate(p).ranking(0)[:2]
    ('rbc', 0.0, ['a', 'b'])
    """

    name = "quality_weighted"
    citation = "Podium; Wu & Crestani, SAC 2003; Soboroff, Nicholas & Cahan, SIGIR 2001"
    tags = Tags(accepts=LIST_FORMS, per_query=False)
    exempt = {  # noqa: RUF012 - read-only by convention, like all class attributes here
        "doubling": "copies of an expert are recognized, and count less than twice",
        "weight_two": "copies of an expert are recognized, and count less than twice",
    }

    points: Annotated[
        str, Choice("auto", "rrf", "rbc"), "points by rank: those of rrf, of rbc, or by the lists"
    ] = "auto"
    k: Annotated[float, Range(0, 10_000), Tune(1, 200, log=True), "of the points of rrf"] = 60
    persistence: Annotated[float, Range(0.0, 0.999999), Tune(0.5, 0.99), "of the points of rbc"] = 0.9

    def choose_rule(self, preferences: Preferences) -> Positional:
        """The rule closest to this method on these lists, `rrf` or `rbc` with a weight per expert, to save or deploy.

        It gives the same scores where every order counts in full and scores are sums; otherwise the weights are those
        of the orders. No such rule ranks items that were assigned as this method does: it warns.
        """
        check_forms(self, preferences)
        estimate = self._estimate(preferences, self.expert_weights_for(preferences.experts))
        if estimate.effects is not None:
            warnings.warn(
                PodiumWarning(
                    "the items of these lists look assigned, not chosen: rrf and rbc reward items that many rank, so "
                    "they rank otherwise than quality_weighted; if experts chose the items, set ",
                    Option("unlisted", "below"),
                ),
                stacklevel=2,
            )
        by_order = (estimate.weights * estimate.order).tolist()
        weights = dict(zip(preferences.experts.tolist(), by_order, strict=True))
        if estimate.rule == "rrf":
            return ReciprocalRankFusion(k=self.k, weights=weights)
        return RankBiasedCentroids(persistence=self.persistence, weights=weights)

    def _explain_query(self, preferences: Preferences, query: Id, features: Features | None) -> dict[Id, F8]:
        """Contributions under the weights that come from all queries."""
        check_forms(self, preferences)
        estimate = self._estimate(preferences, self.expert_weights_for(preferences.experts))
        one, alone = preferences.select([query]), np.eye(len(preferences.experts))
        if estimate.effects is not None:
            estimate = replace(estimate, effects=_select_query(preferences, estimate.effects, query))
        return {
            expert: self._sum_points(one, estimate, estimate.weights * alone[code])
            for code, expert in enumerate(one.experts)
            if one.active_experts[code]
        }

    @property
    def explains_exactly(self) -> bool:
        """True: scores are sums over experts."""
        return True

    def _scores(self, preferences: Preferences, weights: F8) -> Outcome:
        estimate = self._estimate(preferences, weights)
        signed = estimate.effects is not None  # terms of a score can cancel
        return Outcome(
            self._sum_points(preferences, estimate, estimate.weights),
            floor=0.0,
            magnitude=float(self._get_points(estimate.rule)(np.ones(1))[0]) if signed else 0.0,
            notes=tuple(self._describe(preferences, estimate)),
            expert_weights=estimate.weights,
            overwrite=True,
        )

    def _sum_points(self, preferences: Preferences, estimate: _Estimate, weights: F8) -> F8:
        """By slot, the sum of weight x points; what does not count of an order gives all items of a list the same.

        Where items were assigned, points are counted from the level of a list, and sums are divided by the weights of
        the estimate, which may differ from those that are summed.
        """
        points, order = self._get_points(estimate.rule), estimate.order
        lists, effects = preferences.lists, estimate.effects
        if effects is not None:
            by_list, rows = weights[lists.expert], self._build_rows(preferences, estimate.rule)
            return (
                sum_by_item(rows, rows.value, -by_list * effects.level, by_list, len(effects.item))
                / effects.divisor
            )
        if (order == 1.0).all():
            return sum_rank_points(preferences, points, weights)
        value = compute_rank_points(lists, points)
        mean = segments.compute_list_statistics(lists.starts, value).mean
        flat, slope = (weights * (1.0 - order))[lists.expert], (weights * order)[lists.expert]
        return lists.sum_affine(value, flat * mean, slope, len(preferences.index.items))

    def _build_rows(self, preferences: Preferences, rule: str) -> ListValues:
        lists = preferences.lists
        value = compute_rank_points(lists, self._get_points(rule))
        return ListValues(
            lists.query_starts, preferences.index.starts, lists.starts, lists.expert, lists.item, value
        )

    def _get_points(self, rule: str) -> Callable[[F8], F8]:
        """The points by rank of `rrf`, of `rbc`, or, for `auto`, those of the first estimate."""
        if rule == "rbc":
            return lambda rank: (1.0 - self.persistence) * self.persistence ** (rank - 1.0)
        k = self.k if rule == "rrf" else FIRST_K
        return lambda rank: 1.0 / (k + rank)

    def _estimate(self, preferences: Preferences, given: F8) -> _Estimate:
        """Quality and weights of the experts; `given` are the weights that the user set."""
        counts = np.bincount(preferences.lists.expert, minlength=len(given))
        # experts with a weight and lists, the ones with the most lists if too many
        compared = np.flatnonzero((counts > 0) & (given > 0))
        if len(compared) > MOST_EXPERTS:
            compared = np.sort(compared[np.argsort(-counts[compared], kind="stable")[:MOST_EXPERTS]])
        panel = _select_panel(preferences.experts, compared, counts)
        sample, most = _sample_queries(preferences, compared)
        lists = list(_iterate_lists(preferences, sample, compared, panel, most))
        order, rule = np.ones(len(compared)), self.points
        # the support of items comes from a first estimate, in which every order counts
        correlations = compute_expert_correlations(lists, self._get_points("auto"), order, panel)
        group = find_copies(correlations, panel)
        similarity = measure_similarity(correlations, group, panel)
        trust = _estimate_trust(correlations, similarity, panel)[0]
        evidence = measure_order_evidence(lists, trust)
        order = compute_order_shares(evidence.agreement, evidence.error)
        # experts whose order counts are equal here, since weights favor those who list what others list
        counted = (trust * order > 0).astype(np.float64)
        if preferences.unlisted == "unknown" and (
            are_items_assigned(lists, counted) or are_items_drawn(lists)
        ):
            return self._fit_effects(preferences, given, compared, len(sample))
        if rule == "auto":
            rule = "rbc" if _is_top_heavy(evidence, trust) else "rrf"
        correlations = compute_expert_correlations(lists, self._get_points(rule), order, panel)
        trust, quality = _estimate_trust(correlations, similarity, panel)
        weights = given * trust.mean() if len(trust) else given
        weights[compared] = given[compared] * trust
        shares = np.ones(len(given))
        shares[compared] = order
        doubtful = np.sort(sample[correlations.by_query < DOUBTFUL])
        return _Estimate(rule, compared, quality, weights, shares, group, len(sample), doubtful)

    def _fit_effects(self, preferences: Preferences, given: F8, compared: I8, queries: int) -> _Estimate:
        """Where items were assigned: all orders count, and lists that share few items are no evidence of copies."""
        rule = "rbc" if self.points == "auto" else self.points
        rows = self._build_rows(preferences, rule)
        effects = fit_list_effects(rows, given)
        quality, everyone = effects.quality[compared], np.arange(len(compared))
        nothing = np.zeros(0, np.int64)
        return _Estimate(
            rule, compared, quality, effects.weight, np.ones(len(given)), everyone, queries, nothing, effects
        )

    def _describe(self, preferences: Preferences, estimate: _Estimate) -> Iterator[str]:
        """What was chosen, in sentences."""
        experts = preferences.experts.tolist()
        yield f"points of {estimate.rule}; quality estimated from {format_count(estimate.queries, 'query', 'queries')}"
        compared = [str(experts[code]) for code in estimate.compared.tolist()]
        ignored = [e for e, q in zip(compared, estimate.quality.tolist(), strict=True) if q <= 0]
        used = estimate.weights[estimate.compared]
        if estimate.effects is not None:
            yield "items look assigned, not chosen: scores are mean points, corrected for the other items of a list"
        if estimate.effects is None and len(used) > 2 and np.ptp(used) <= 1e-9 * used.max():
            yield "equal weights: these lists do not tell the experts apart"
        if ignored and len(ignored) < len(compared):
            yield f"contradict the other experts and have weight 0: {', '.join(ignored[:5])}" + (
                f" and {len(ignored) - 5} more" if len(ignored) > 5 else ""
            )
        unordered = [
            e
            for e, share in zip(compared, estimate.order[estimate.compared], strict=True)
            if share < 0.5 and e not in ignored
        ]
        if unordered:
            yield f"the order of these lists counts for less than half: {', '.join(unordered[:5])}" + (
                f" and {len(unordered) - 5} more" if len(unordered) > 5 else ""
            )
        for code in np.flatnonzero(np.bincount(estimate.group) > 1)[:3].tolist():
            names = [compared[e] for e in np.flatnonzero(estimate.group == code).tolist()]
            yield f"copies of one list: {', '.join(names[:5])}" + (" ..." if len(names) > 5 else "")
        if len(compared) > 2 and float(estimate.quality.mean()) < DOUBTFUL:
            yield "the experts hardly agree: no order can be trusted without labels"
        elif len(estimate.doubtful):
            named = ", ".join(str(preferences.queries[code]) for code in estimate.doubtful[:5].tolist())
            count = format_count(len(estimate.doubtful), "query", "queries")
            yield f"the experts hardly agree in {count} of {estimate.queries:,}, such as {named}"


def _select_query(preferences: Preferences, effects: ListEffects, query: Id) -> ListEffects:
    code = preferences.queries.code_of(query)
    assert code is not None
    items = slice(*preferences.index.starts[code : code + 2])
    lists = slice(*preferences.lists.query_starts[code : code + 2])
    return effects._replace(
        item=effects.item[items], level=effects.level[lists], divisor=effects.divisor[items]
    )


def _is_top_heavy(evidence: OrderEvidence, trust: F8) -> bool:
    """Whether ranks say more than listing, by the experts whose order can be trusted; also in doubt.

    In full lists, where every item is listed, ranks say all there is. Otherwise the points of `rrf` need evidence, two
    standard errors over the queries, since they cost more where they are wrong.
    """
    weight = np.maximum(evidence.agreement, 0.0)
    weight = (weight if (weight > 0).any() else trust)[evidence.expert][:, None]
    support, items = weight * evidence.support, weight * evidence.items
    count = items.sum(axis=0)
    queries = len(np.unique(evidence.query))
    if count[2] <= 0 or queries < 2:
        return True
    mean = support.sum(axis=0) / np.maximum(count, 1e-300)
    top_tail, tail_unlisted = np.array([1.0, -1.0, 0.0]), np.array([0.0, 1.0, -1.0])
    contrast = top_tail - TOP_HEAVY * tail_unlisted
    # what every query adds to the deviation of the means, which are ratios of sums
    added = np.bincount(evidence.query, (support - mean * items) @ (contrast / np.maximum(count, 1e-300)))
    error = np.sqrt((added**2).sum() * queries / (queries - 1))
    # of two experts, every known item has the support 1: rounding must not decide
    return bool(mean @ contrast > -ERRORS * error - 1e-9)


def _estimate_trust(correlations: ExpertCorrelations, similarity: F8, panel: I8) -> tuple[F8, F8]:
    """By expert the weight and the quality."""
    mean, _, items, _, length, _ = correlations
    quality = estimate_expert_quality(mean, similarity, items, length, panel)
    trust = np.maximum(quality, 0.0) / np.sqrt(np.maximum(similarity.sum(axis=1), 1.0))
    return trust if (trust > 0).any() else np.ones(len(trust)), quality


def _compute_checksums(ids: Iterable[Id]) -> I8:
    """Numbers to draw by: by id rather than by place, so that the order of the rows does not decide."""
    return np.array([zlib.crc32(str(one).encode()) for one in ids], np.int64)


def _select_panel(experts: Ids, compared: I8, counts: I8) -> I8:
    """Places among the compared experts of those with the most lists; checksums decide between equals."""
    if len(compared) <= PANEL:
        return np.arange(len(compared))
    checksums = _compute_checksums(experts[code] for code in compared.tolist())
    return np.sort(np.lexsort((checksums, -counts[compared]))[:PANEL])


def _sample_queries(preferences: Preferences, compared: I8) -> tuple[I8, int]:
    """Codes of the queries to estimate from, and the number of lists of a query that are used.

    These are all queries and lists, or those with the smallest checksums of their ids, in whose order they are, so
    that the order of the rows does not decide.
    """
    lists, sizes = preferences.lists, preferences.index.sizes
    wanted = np.zeros(len(preferences.experts))
    wanted[compared] = 1.0
    counted = np.bincount(lists.query_of_list, wanted[lists.expert], len(sizes))
    useful = np.flatnonzero((counted > 1) & (sizes > 1))
    length = sizes[useful] + np.minimum(counted[useful], PANEL)
    share = MOST_CELLS / max(min(len(useful), MANY_QUERIES), 1)
    most = max(2 * PANEL, int(share / max(length.mean(), 1.0))) if len(useful) else 0
    cost = np.minimum(counted[useful], most) * length
    checksums = _compute_checksums(preferences.queries[code] for code in useful.tolist())
    order = np.argsort(checksums, kind="stable")
    last = int(np.searchsorted(np.cumsum(cost[order]), MOST_CELLS)) + 1
    return useful[order[: min(last, MOST_QUERIES)]], most


def _iterate_lists(
    preferences: Preferences, queries: I8, compared: I8, panel: I8, most: int
) -> Iterator[QueryLists]:
    """The lists of the compared experts, by query; the experts are numbered as in `compared`.

    Of more than `most` lists of a query, those of the panel are used, and others that change from query to query.
    """
    lists, starts = preferences.lists, preferences.index.starts
    number = np.full(len(preferences.experts), -1)
    number[compared] = np.arange(len(compared))
    if len(compared) > most:
        checksums = _compute_checksums(preferences.experts[code] for code in compared.tolist())
        checksums[panel] = -1  # drawn first
    for query in queries.tolist():
        first, last = lists.query_starts[query], lists.query_starts[query + 1]
        which = first + np.flatnonzero(number[lists.expert[first:last]] >= 0)
        expert = number[lists.expert[which]]
        if len(which) > most:
            drawn = checksums[expert]
            mixed = (drawn ^ zlib.crc32(str(preferences.queries[query]).encode())) * MIXING % 2**32
            chosen = np.sort(np.argsort(np.where(drawn < 0, -1, mixed), kind="stable")[:most])
            which, expert = which[chosen], expert[chosen]
        begins, rows = segments.gather_segments(lists.starts, which)
        rank = np.zeros((len(which), starts[query + 1] - starts[query]))
        rank[np.repeat(np.arange(len(which)), np.diff(begins)), lists.item[rows] - starts[query]] = (
            lists.rank[rows]
        )
        yield QueryLists(expert, rank)
