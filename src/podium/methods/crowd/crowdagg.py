"""CrowdAgg: the ranking that maximizes an expected measure under the ranks that judgements make likely."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple, Self

import numpy as np

from podium.core.errors import InputError, ParameterError
from podium.core.params import Choice, Range, Tune
from podium.data.features import Features
from podium.data.ids import Id
from podium.data.labels import Labels
from podium.data.preferences import Preferences
from podium.kernels import poisson_binomial
from podium.kernels.dispatch import F8, I8
from podium.kernels.grouping import sum_by_group
from podium.methods.base import ALL_FORMS, Aggregator, Outcome, Tags
from podium.methods.costs import Cost
from podium.methods.crowd.annotator_contests import (
    AnnotatorContests,
    collect_annotator_contests,
    find_level_starts,
    place_opponents,
)
from podium.methods.crowd.crowd_model import NO_JUDGEMENTS
from podium.methods.crowd.expected_discounts import ScoreSums, choose_expectation, sum_scores
from podium.methods.crowd.pair_agreement import (
    TOLERANCE,
    compute_levels,
    compute_places,
    count_agreeing_pairs,
    rank_without_own,
)
from podium.methods.crowd.quality_steps import QualitySteps
from podium.methods.input_checks import check_features, check_forms

__all__ = ["CrowdAgg", "RankDistributions"]

# for cost estimates: discount rates per tenfold items, quality estimates, operations per logarithm
RATES, ROUNDS, LOGARITHM = 10, 4, 5


class CrowdState(NamedTuple):
    """The consensus at the last estimate of the annotators' quality."""

    sums: ScoreSums
    answers: AnnotatorContests
    eta: F8  # quality by group
    converged: bool
    iterations: int
    notes: tuple[str, ...]


class RankDistributions(NamedTuple):
    """P(rank) by annotator (an answer each: one with ratings and votes occurs twice), item and rank from the top."""

    items: tuple[Id, ...]
    annotators: tuple[Id, ...]
    probabilities: F8


@dataclass(kw_only=True, eq=False, repr=False)
class CrowdAgg(Aggregator):
    """Sum over annotators of the expected discount at an item's rank, random where judgements are few.

    Each annotator's answers become contests between items: ratings and rankings compare all their items
    (equal ones carry no information), votes the two items they name (by the majority of the annotator's votes
    on a pair). With `pair="vote"` every contest is decided. N(i) is the number of items that i beats; with
    `"difference"` item s wins against t, once compared, with probability p = 1/2 + (N(s) - N(t)) / (2 n), where
    n counts the items judged by this annotator or all items (`scale`); `"printed"` is the formula in the
    paper, (N(s) - N(t)) / n for the item with more wins and the rest to 1 for the other: it favors the wrong
    item where they differ little; kept for comparison.

    Unjudged items meet all others evenly, as published, or, with `unjudged="typical"`, like a typical item:
    one below a rating as often as the ratings of the query are, or at a uniformly random place of a ranking,
    or below an item with w of n votes with probability (w + 1) / (n + 2). With `"placed"` the places of the
    consensus say how strong the opponents in these votes were (Colley's rule), and ties count. Unjudged items
    gain and lose nothing themselves. The score is the sum over annotators of the expected discount (1 /
    log2(rank + 1), that of rank-biased precision, or a custom `discount` from rank 1 on, 0 beyond its end)
    minus that of an item without evidence; sorting by it maximizes the expected measure, which is the
    objective in the diagnostics. `compute_rank_distributions` returns the distributions of the ranks.

    Quality: an annotator who agrees with the truth on a fraction eta of pairs wins its contests with
    probability eta p + (1 - eta)(1 - p). Starting from 1, eta is the fraction of the annotator's pairs, over
    all queries ("pooled") or per query ("query"), that agree with the consensus, after adding `prior_agree`
    and `prior_disagree` observations. The consensus is recomputed and quality moves towards the next estimate,
    after five of them by less each time (`steps`), until no quality changes by more than .001. An
    observation is a vote, or a judgement: the pairs of a list of n items count as n - 1 together
    (`evidence="pair"`: each counts). With `decided_by="others"` a pair that the consensus would not order
    the same way without this answer counts half for and half against. If most annotators disagree with the
    pooled consensus, it is reversed once (`reversal`). After `fit` with labels, an annotator's pairs of items
    with different grades are added too, each as `gold` pairs. `Consensus.expert_weights` holds eta. As
    published, except the formula: `pair="difference", unjudged="even", scale="all", quality="query",
    decided_by="all", steps="full", prior_agree=0, prior_disagree=0`.
    A subclass may override `compute_win_probabilities`, in place of `pair`, and `compute_discounts`, the loss.

    >>> from podium import Preferences
    >>> good = {"a": 1, "b": 1, "c": 0, "d": 0}
    >>> bad = {i: 1 - r for i, r in good.items()}
    >>> p = Preferences.from_lists({"q": {"ann": good, "bob": good, "eve": bad}})
    >>> found = CrowdAgg(prior_agree=1, prior_disagree=1).aggregate(p)
    >>> found.ranking("q"), {e: round(float(w), 2) for e, w in zip(found.experts, found.expert_weights)}
    (['a', 'b', 'c', 'd'], {'ann': 0.8, 'bob': 0.8, 'eve': 0.2})
    """

    name = "crowdagg"
    citation = "Niu, Lan, Guo, Cheng, Yu & Long, CIKM 2015"
    tags = Tags(accepts=ALL_FORMS, per_query=False, pairwise="items", cost="search")
    exempt: ClassVar = {"doubling": "a copy of an annotator confirms its answers"}

    measure: Annotated[str, Choice("ndcg", "rbp"), "measure that defines the discount of a rank"] = "ndcg"
    persistence: Annotated[
        float, Range(0.0, 0.999999, open_low=True), "probability of continuing to the next item, for rbp"
    ] = 0.95
    pair: Annotated[
        str, Choice("difference", "vote", "printed"), "how certain the outcome of a contest is"
    ] = "vote"
    scale: Annotated[str, Choice("judged", "all"), "number of items that divides a difference of wins"] = (
        "judged"
    )
    unjudged: Annotated[
        str, Choice("placed", "typical", "even"), "how contests with unjudged items count"
    ] = "placed"
    quality: Annotated[
        str,
        Choice("pooled", "query", "none"),
        "estimate the annotators' quality over all queries, per query, or not",
    ] = "pooled"
    prior_agree: Annotated[
        float, Range(0, 1e9), Tune(1, 1_000, log=True), "prior number of agreeing observations"
    ] = 12.0
    prior_disagree: Annotated[
        float, Range(0, 1e9), Tune(1, 1_000, log=True), "prior number of disagreeing observations"
    ] = 4.0
    evidence: Annotated[
        str, Choice("judgement", "pair"), "what counts as one observation of a list: a judgement or a pair"
    ] = "judgement"
    decided_by: Annotated[
        str, Choice("others", "all"), "who must order a pair before it counts as evidence of quality"
    ] = "others"
    steps: Annotated[
        str,
        Choice("shrinking", "full"),
        "how far an estimate moves the quality: less each time, or all the way",
    ] = "shrinking"
    reversal: Annotated[
        bool, "reverse a consensus that most annotators disagree with (with pooled quality)"
    ] = True
    gold: Annotated[
        float, Range(0, 1e9), Tune(1, 100, log=True), "number of pairs that one labeled pair counts as"
    ] = 10.0
    max_iterations: Annotated[int, Range(1, 100_000), "maximum number of quality estimates"] = 200
    discount: Annotated[
        Sequence[float] | None, "custom discount, one number per rank from the top, instead of the measure's"
    ] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        given: Any = self.discount
        if given is None:
            return
        good = isinstance(given, Sequence) and not isinstance(given, str) and len(given) > 0
        if not good or not all(
            isinstance(v, int | float) and not isinstance(v, bool) and np.isfinite(v) for v in given
        ):
            raise ParameterError(
                f"crowdagg: the discount is {given!r}; accepted: finite numbers, one per rank from the top"
            )

    def fit(
        self, preferences: Preferences, labels: Labels | None = None, features: Features | None = None
    ) -> Self:
        """Count how often annotators agree with labels; without labels, only discard earlier counts."""
        check_forms(self, preferences)
        check_features(self, features)
        self.__dict__.pop("gold_", None)
        if labels is None:
            return self
        self._check_costs(preferences)
        grades = labels.align(preferences.index)
        place = np.where(np.isnan(grades), -1, np.unique(-grades, return_inverse=True)[1])
        answers = self._collect_contests(preferences, np.ones(len(preferences.experts)))
        agree, against, _ = count_agreeing_pairs(preferences, answers, place)
        agree, decided = (
            sum_by_group(answers.expert, n, len(preferences.experts)) for n in (agree, agree + against)
        )
        if not decided.any():
            raise InputError(
                "the annotators compared no two labeled items of different grades",
                remedy="label items that they judged, or fit without labels",
            )
        # by expert: labeled pairs in the order of their grades, and all pairs of different grades
        self.gold_: dict[Id, list[float]] = {
            preferences.experts[k]: [float(agree[k]), float(decided[k])]
            for k in np.flatnonzero(decided).tolist()
        }
        return self

    def _estimate_costs(self, preferences: Preferences) -> list[Cost]:
        """In every list each rank meets each other one, at every discount rate."""
        lists, queries = preferences.lists, len(preferences)
        which = lists.list_of_row[find_level_starts(lists)]
        levels = np.bincount(which, minlength=len(lists)).astype(np.float64)
        size = float(preferences.index.sizes.max(initial=0))
        pairs = np.bincount(lists.query_of_list, levels * (levels - 1) / 2, queries)
        if self.compute_discounts(int(size)) is None:
            each = levels**2 * (1 if self.measure == "rbp" else RATES * np.log10(size + 1))
        else:
            each = levels * lists.lengths.astype(np.float64) ** 2
        rounds = 1 if self.quality == "none" else min(self.max_iterations, ROUNDS)
        operations = LOGARITHM * rounds * np.bincount(lists.query_of_list, each, queries)
        if not queries:
            return []
        worst = int(operations.argmax())
        ranks, needed = float(pairs[worst]), float(operations[worst])
        return [Cost(ranks, "pairs of ranks", 0.0, needed, worst, NO_JUDGEMENTS)]

    def _collect_contests(self, preferences: Preferences, weights: F8) -> AnnotatorContests:
        overridden = type(self).compute_win_probabilities is not CrowdAgg.compute_win_probabilities
        own = self.compute_win_probabilities if overridden else None
        return collect_annotator_contests(preferences, weights, self.pair, self.scale, self.unjudged, own)

    def compute_win_probabilities(self, wins: F8, opponent_wins: F8, items: F8) -> F8:
        """The probability that an item beats another one of the same answer; override it for your own.

        By contest: how many items each of the two beats in the answer, and how many the annotator judged.
        """
        return np.asarray(0.5 + (wins - opponent_wins) / (2 * items), np.float64)

    def compute_discounts(self, items: int) -> Sequence[float] | F8 | None:
        """What rank 1, 2, .. of at most `items` is worth; None: as `measure` says. Override it for your own loss."""
        return self.discount

    def _scores(self, preferences: Preferences, weights: F8) -> Outcome:
        answers = self._collect_contests(preferences, weights)
        state = self._estimate_consensus(preferences, answers, weights)
        quality = None
        if self.quality != "none":
            # by expert: the mean over its answers weighted by their pairs, or the prior without any
            all_equal, count = np.zeros(len(preferences.index.items), np.int64), len(preferences.experts)
            pairs = count_agreeing_pairs(preferences, answers, all_equal)[2]
            total = sum_by_group(answers.expert, pairs, count)
            mean = sum_by_group(answers.expert, pairs * state.eta, count) / np.where(total > 0, total, 1.0)
            prior = self._posterior_mean(*self._count_labeled_pairs(preferences))
            quality = np.where(total > 0, mean, prior)
        # the expected measure of the ranking, minus that of items without evidence; the gain of an item follows from
        # its place as published: 2^((n - place) / n) - 1, or (n - place) / n
        scores = state.sums.scores
        starts, sizes = preferences.index.starts, preferences.index.sizes
        discounts = self.compute_discounts(int(sizes.max(initial=0)))
        query = preferences.index.query_of_slot
        order = np.lexsort((-scores, query))
        relevance = 1.0 - (np.arange(len(scores)) - starts[:-1][query] + 1.0) / sizes[query]
        gain = 2.0**relevance - 1.0 if self.measure == "ndcg" and discounts is None else relevance
        return Outcome(
            scores,
            tolerance=TOLERANCE,
            magnitude=state.sums.magnitude,
            converged=state.converged,
            iterations=state.iterations,
            objective=float(np.sum(gain * scores[order])),
            notes=state.notes,
            expert_weights=quality,
        )

    def _estimate_consensus(
        self, preferences: Preferences, answers: AnnotatorContests, weights: F8
    ) -> CrowdState:
        """Scores and qualities in turn, until they settle or one of the earlier orders returns."""
        starts, estimated = preferences.index.starts, self.quality != "none"
        placed = self.unjudged == "placed" and len(answers.winner) > 0
        size = int(preferences.index.sizes.max(initial=0))
        discounts = self.compute_discounts(size)
        compute_excess = choose_expectation(self.measure, self.persistence, discounts, size)
        # quality by group: 1, or the estimate from labels
        eta, labeled = np.ones(len(answers.expert)), self._count_labeled_pairs(preferences)
        if estimated and labeled[1].any():
            eta = self._posterior_mean(*labeled)[answers.expert]
        may_reverse = self.reversal and self.quality == "pooled" and not labeled[1].any()
        level, notes = np.full(len(preferences.index.items), 0.5), list[str]()
        steps = QualitySteps(self.steps == "shrinking")
        for done in range(self.max_iterations + 1):
            answers = place_opponents(answers, level) if placed else answers
            excess = compute_excess(answers.contests, 2 * eta - 1)
            sums = sum_scores(preferences, answers, weights, excess)
            if not estimated and not placed:
                steps.settled = True
                break
            place = compute_places(sums.scores, starts, sums.magnitude)
            agree, total = self._count_evidence(preferences, answers, place, sums)
            estimate = self._estimate_quality(preferences, answers, agree, total) if estimated else eta
            moved = steps.move(eta, level, estimate, compute_levels(place, starts))
            if done == self.max_iterations:
                break
            if steps.cycle or steps.settled:
                more = sum_by_group(answers.expert, 2 * agree - total, len(weights))
                # most annotators may disagree with the consensus: a few busy or consistent ones outweigh them
                is_reversed = float(weights @ np.sign(np.round(more, 9))) < 0
                if not may_reverse or not is_reversed:
                    break
                may_reverse = False
                reverse = self._estimate_quality(preferences, answers, total - agree, total)
                moved = reverse, 1 - compute_levels(place, starts)
                notes.append("most annotators disagreed with the consensus, so it was reversed once")
                steps.restart()
            eta, level = moved
        if not steps.settled:
            end = (
                f"it cycles through {steps.cycle} orders"
                if steps.cycle
                else f"stopped after {done} estimates"
            )
            notes.append(f"the annotators' quality did not converge: {end}")
        return CrowdState(sums, answers, eta, steps.settled, done, tuple(notes))

    def compute_rank_distributions(self, preferences: Preferences, query: Id) -> RankDistributions:
        """The distribution of every item's rank by each annotator of a query, at the estimated qualities.

        >>> from podium import Preferences
        >>> p = Preferences.from_lists({"q": {"ann": {"a": 1, "b": 0}, "bob": {"b": 1, "c": 0}}})
        >>> ranks = CrowdAgg(quality="none").compute_rank_distributions(p, "q")
        >>> ranks.items, ranks.annotators
        (('a', 'b', 'c'), ('ann', 'bob'))
        >>> ranks.probabilities[0].round(2).tolist()
        [[0.75, 0.25, 0.0], [0.0, 0.25, 0.75], [0.25, 0.5, 0.25]]
        """
        check_forms(self, preferences)
        self._check_costs(preferences)
        index, code = preferences.index, preferences.index.query_code(query)
        weights = self.expert_weights_for(preferences.experts.tolist())
        answers = self._collect_contests(preferences, weights)
        state = self._estimate_consensus(preferences, answers, weights)
        answers, tilt = state.answers, 2 * state.eta - 1
        first, size = int(index.starts[code]), int(index.sizes[code])
        groups = np.flatnonzero(answers.query == code)
        even = poisson_binomial.compute_rank_distributions(np.full((1, size - 1), 0.5))[0]
        laws = np.tile(even, (len(groups), size, 1))
        group_of_entry = answers.contests.group[answers.row]
        for number, group in enumerate(groups.tolist()):
            rows = np.flatnonzero(answers.contests.group == group)
            win = np.stack(
                [answers.contests.list_win_chances(row, float(tilt[group])) for row in rows.tolist()]
            )
            by_row = poisson_binomial.compute_rank_distributions(win)
            if group < len(answers.rest) and answers.rest[group] >= 0:
                laws[number] = by_row[np.searchsorted(rows, answers.rest[group])]
            entries = np.flatnonzero(group_of_entry == group)
            laws[number, answers.slot[entries] - first] = by_row[np.searchsorted(rows, answers.row[entries])]
        names = preferences.experts.take(answers.expert[groups])
        return RankDistributions(tuple(index.items[first : first + size]), tuple(names), laws)

    # -- quality ---------------------------------------------------------------------------------------------

    def _count_labeled_pairs(self, preferences: Preferences) -> tuple[F8, F8]:
        """By expert: labeled pairs agreed on, and all labeled pairs, each counted `gold` times."""
        known: dict[Id, list[float]] = getattr(self, "gold_", {})
        table = np.array([known.get(e, [0.0, 0.0]) for e in preferences.experts]).reshape(-1, 2)
        return self.gold * table[:, 0], self.gold * table[:, 1]

    def _posterior_mean(self, agree: F8, total: F8) -> F8:
        """The beta posterior mean; 1/2 without any evidence."""
        whole = total + self.prior_agree + self.prior_disagree
        return np.where(whole > 0, (agree + self.prior_agree) / np.where(whole > 0, whole, 1.0), 0.5)

    def _count_evidence(
        self, preferences: Preferences, answers: AnnotatorContests, place: I8, sums: ScoreSums
    ) -> tuple[F8, F8]:
        """By group: pairs in the order of a consensus, pairs it ties counting half, and all pairs.

        By judgement, the pairs of a list count as many as it has items, less one: they are not independent.
        """
        agree, against, total = count_agreeing_pairs(preferences, answers, place)
        if self.quality != "none" and self.decided_by == "others":
            # an answer moves all its pairs the same way, so the smaller count is that of pairs ordered both times
            places = rank_without_own(
                answers, sums.scores, sums.own, preferences.index.starts, sums.magnitude
            )
            without = count_agreeing_pairs(preferences, answers, *places)
            agree, against = np.minimum(agree, without[0]), np.minimum(against, without[1])
        agree = (total + agree - against) / 2
        if self.evidence == "judgement":
            lists = len(answers.rest)
            most = preferences.lists.lengths - 1
            factor = np.ones(len(total))
            factor[:lists] = np.minimum(1.0, most / np.maximum(total[:lists], 1.0))
            agree, total = factor * agree, factor * total
        return agree, total

    def _estimate_quality(
        self, preferences: Preferences, answers: AnnotatorContests, agree: F8, total: F8
    ) -> F8:
        """Quality by group, from the agreement with labels and with a consensus."""
        if self.quality == "pooled":
            count = len(preferences.experts)
            agree, total = (sum_by_group(answers.expert, n, count)[answers.expert] for n in (agree, total))
        right, decided = (n[answers.expert] for n in self._count_labeled_pairs(preferences))
        return self._posterior_mean(agree + right, total + decided)
