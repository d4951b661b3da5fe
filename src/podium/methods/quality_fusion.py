"""Expert weights from agreement over all queries, without labels; and the points by rank that suit the lists."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Annotated

import numpy as np

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
)
from podium.kernels.listing_evidence import are_items_assigned
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
    averaging: float  # sums are divided by 1 + this x the weight of the lists with the item
    prior: float  # points of an item that is not listed, from which points are counted
    group: I8  # copies share a number
    queries: int
    doubtful: I8  # codes of queries in which the experts do not agree


@dataclass(kw_only=True, eq=False, repr=False)
class QualityWeightedFusion(Aggregator):
    """Sum of points by rank, experts weighted by how well they agree with the others over all queries.

    The quality of an expert is the correlation of its lists with the weighted sum of the other experts' lists;
    its weight is the quality, and 0 for an expert that contradicts the others. Copies of one list are no
    evidence for each other, and n of them count as the square root of n experts. The order of a list counts as far as
    items near its top are listed by more experts than those near its end, which reversed or random lists of other
    experts cannot change; without that, its items have equal points. With `points="auto"` the points
    are those of `rbc` where a high rank predicts that other experts list the item, and those of `rrf` where
    being listed at all predicts it better. Where items were assigned to the experts, who did not choose them, scores
    are damped means over the lists with an item. Two experts, or lists without agreement, get equal weights.

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
    damping: Annotated[
        float,
        Range(0.001, 1e9),
        Tune(1, 100, log=True),
        "experts of mean weight that are added to those of an item, if items were assigned",
    ] = 10.0

    def choose_rule(self, preferences: Preferences) -> Positional:
        """The rule closest to this method on these lists, `rrf` or `rbc` with a weight per expert, to save or deploy.

        It gives the same scores where every order counts in full and scores are sums; otherwise the weights are those
        of the orders.
        """
        check_forms(self, preferences)
        estimate = self._estimate(preferences, self.expert_weights_for(preferences.experts))
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
        return Outcome(
            self._sum_points(preferences, estimate, estimate.weights),
            preferences.unranked_slots(estimate.weights > 0) if estimate.prior else None,
            floor=0.0,
            magnitude=estimate.prior,
            notes=tuple(self._describe(preferences, estimate)),
            expert_weights=estimate.weights,
            overwrite=True,
        )

    def _sum_points(self, preferences: Preferences, estimate: _Estimate, weights: F8) -> F8:
        """By slot, the sum of weight x points; what does not count of an order gives all items of a list the same.

        A sum is divided by the weights of the estimate, which may differ from those that are summed.
        """
        points, order = self._get_points(estimate.rule, estimate.prior), estimate.order
        lists = preferences.lists
        if (order == 1.0).all():
            total = sum_rank_points(preferences, points, weights)
        else:
            value = compute_rank_points(lists, points)
            mean = segments.compute_list_statistics(lists.starts, value).mean
            flat, slope = (weights * (1.0 - order))[lists.expert], (weights * order)[lists.expert]
            total = lists.sum_affine(value, flat * mean, slope, len(preferences.index.items))
        if estimate.averaging:
            total /= 1.0 + estimate.averaging * sum_rank_points(preferences, np.ones_like, estimate.weights)
        return total

    def _get_points(self, rule: str, origin: float = 0.0) -> Callable[[F8], F8]:
        """The points by rank of `rrf`, of `rbc`, or, for `auto`, those of the first estimate; less the origin."""
        if rule == "rbc":
            return lambda rank: (1.0 - self.persistence) * self.persistence ** (rank - 1.0) - origin
        k = self.k if rule == "rrf" else FIRST_K
        return lambda rank: 1.0 / (k + rank) - origin

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
        trust = _estimate_trust(correlations, panel)[0]
        evidence = measure_order_evidence(lists, trust)
        order = compute_order_shares(evidence.agreement, evidence.error)
        # experts whose order counts are equal here, since weights favor those who list what others list
        counted = (trust * order > 0).astype(np.float64)
        assigned = preferences.unlisted == "unknown" and are_items_assigned(lists, counted)
        if assigned:
            order = np.ones(len(compared))  # the support of items that nobody chose is no evidence
        if rule == "auto":
            rule = "rbc" if assigned or _is_top_heavy(evidence, trust) else "rrf"
        correlations = compute_expert_correlations(lists, self._get_points(rule), order, panel)
        trust, quality, group = _estimate_trust(correlations, panel)
        weights = given * trust.mean() if len(trust) else given
        weights[compared] = given[compared] * trust
        shares = np.ones(len(given))
        shares[compared] = order
        doubtful = sample[correlations.by_query < DOUBTFUL]
        averaging = prior = 0.0
        if assigned:
            averaging = 1.0 / (self.damping * float(weights[weights > 0].mean()))
            prior = float(
                self._get_points(rule)(np.concatenate([one.rank[one.rank > 0] for one in lists])).mean()
            )
        return _Estimate(
            rule, compared, quality, weights, shares, averaging, prior, group, len(sample), doubtful
        )

    def _describe(self, preferences: Preferences, estimate: _Estimate) -> Iterator[str]:
        """What was chosen, in sentences."""
        experts = preferences.experts.tolist()
        yield f"points of {estimate.rule}; quality estimated from {format_count(estimate.queries, 'query', 'queries')}"
        compared = [str(experts[code]) for code in estimate.compared.tolist()]
        ignored = [e for e, q in zip(compared, estimate.quality.tolist(), strict=True) if q <= 0]
        used = estimate.weights[estimate.compared]
        if estimate.averaging:
            yield "items were assigned (others rank unlisted items above the last ones): scores are damped means"
        if len(used) > 2 and np.ptp(used) <= 1e-9 * used.max():
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


def _is_top_heavy(evidence: OrderEvidence, trust: F8) -> bool:
    """Whether ranks say more than listing, by the experts whose order can be trusted.

    In full lists, where every item is listed, ranks say all there is.
    """
    weight = np.maximum(evidence.agreement, 0.0)
    weight = weight if (weight > 0).any() else trust
    count = weight @ evidence.items
    top, tail, unlisted = weight @ evidence.support / np.maximum(count, 1e-300)
    return bool(count[2] <= 0 or top - tail > TOP_HEAVY * max(tail - unlisted, 0.0))


def _estimate_trust(correlations: ExpertCorrelations, panel: I8) -> tuple[F8, F8, I8]:
    """By expert the weight, the quality, and a number that copies of one list share."""
    group = find_copies(correlations.mean, correlations.shared, panel)
    items, length = correlations.items, correlations.length
    quality = estimate_expert_quality(correlations.mean, group, items, length, panel)
    trust = np.maximum(quality, 0.0) / np.sqrt(np.bincount(group)[group])
    return trust if (trust > 0).any() else np.ones(len(trust)), quality, group


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

    These are all queries and lists, or those with the smallest checksums of their ids.
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
    if len(useful) <= MOST_QUERIES and cost.sum() <= MOST_CELLS:
        return useful, most
    order = np.argsort(
        _compute_checksums(preferences.queries[code] for code in useful.tolist()), kind="stable"
    )
    last = int(np.searchsorted(np.cumsum(cost[order]), MOST_CELLS)) + 1
    return np.sort(useful[order[: min(last, MOST_QUERIES)]]), most


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
