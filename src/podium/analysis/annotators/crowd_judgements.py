"""The judgements of all annotators as columns, and their agreement with a reference.

A judgement is a vote between two items, or an item placed in a list. Pairs are votes with a winner, and any
two items that a list puts in order. The reference is either scores of the items (a consensus, gold labels) or
the judgements of the other annotators, without the annotator's own.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from podium.data.preferences import Preferences
from podium.kernels import segments
from podium.kernels.dispatch import B1, F8, I8
from podium.kernels.grouping import number_rows, sum_by_group
from podium.kernels.pairwise_votes import count_items_above
from podium.metrics.agreement import count_concordant_pairs

__all__ = ["AgreementCounts", "CrowdJudgements", "SharedAnswers"]

MOST_GRADES = 20  # up to this many distinct ratings are grades of one scale shared by all annotators
ROUNDS, PRIOR = 3, 2.0  # rounds of weighting the others by quality; judgements added per side
# Weight of the gap between the two items' mean values (from -1 to 1); a direct vote of another annotator on
# the pair counts 1. Best of 0, 1, 3 and 10 on votes with known truth (reading difficulty); direct votes alone
# are 0.8 points worse.
GAP = 3.0
NEARLY, MANY = 0.98, 50  # this share of equal answers, out of MANY or more, counts as all
EQUAL = 1e-9  # values closer to 0 are no preference


class AgreementCounts(NamedTuple):
    """Per annotator: pairs ordered as in the reference, and in reverse; ties of the reference do not count.

    The last two are effective sample sizes: pairs of one list are correlated (see `pair_worth`), and so are
    repeated answers to one comparison (see `compute_vote_worth`).
    """

    same: F8
    other: F8
    same_worth: F8
    other_worth: F8


class SharedAnswers(NamedTuple):
    """Per annotator: judgements shared with others, and the mean share of those others who agree."""

    judgements: I8
    questions: I8  # without repeated answers
    share: F8  # NaN if nothing is shared


@dataclass(frozen=True, eq=False)
class CrowdJudgements:
    """The judgements of one set of preferences."""

    preferences: Preferences

    def __len__(self) -> int:
        return len(self.preferences.experts)

    @property
    def slot_count(self) -> int:
        """Items of all queries."""
        return len(self.preferences.index.items)

    # -- columns ---------------------------------------------------------------------------------------------

    @functools.cached_property
    def annotator_of_row(self) -> I8:
        """The annotator of each list row."""
        lists = self.preferences.lists
        return lists.expert[lists.list_of_row].astype(np.int64)

    @functools.cached_property
    def grades(self) -> F8 | None:
        """The rating scale, if all annotators share one."""
        score = self.preferences.lists.score
        scale = np.zeros(0) if score is None or np.isnan(score).any() else np.unique(score)
        return scale if 1 < len(scale) <= MOST_GRADES else None

    @functools.cached_property
    def row_values(self) -> F8:
        """Value from -1 to 1 that a list row gives its item.

        From the rating scale if all annotators share one, otherwise from the place in the list.
        """
        lists, grades = self.preferences.lists, self.grades
        if grades is not None:
            assert lists.score is not None
            return np.asarray(2 * (lists.score - grades[0]) / (grades[-1] - grades[0]) - 1, np.float64)
        above, upto = count_items_above(lists.starts, lists.rank)
        length = lists.lengths[lists.list_of_row]
        return np.asarray((length - upto - above) / np.maximum(length - 1, 1), np.float64)

    @functools.cached_property
    def win_weights(self) -> F8:
        """Weight of each vote, 0 for ties."""
        votes = self.preferences.comparisons
        return np.where(votes.tie, 0.0, votes.weight)

    @functools.cached_property
    def reference_weights(self) -> F8:
        """Weight of a vote in the reference: all votes of one annotator on one pair share one vote."""
        weight = self.preferences.comparisons.weight
        return np.asarray(weight / np.maximum(self._sum_own_votes(weight), 1.0), np.float64)

    @functools.cached_property
    def vote_pairs(self) -> tuple[I8, I8]:
        """Pair number of each vote, and 1 where the winner is the lower slot, else -1."""
        votes = self.preferences.comparisons
        pair = number_rows(np.minimum(votes.winner, votes.loser), np.maximum(votes.winner, votes.loser))[1]
        return pair, np.where(votes.winner < votes.loser, 1, -1)

    @functools.cached_property
    def judgements(self) -> I8:
        """Number of judgements per annotator."""
        votes = self.preferences.comparisons
        return np.bincount(self.annotator_of_row, minlength=len(self)) + np.bincount(
            votes.expert, minlength=len(self)
        )

    @functools.cached_property
    def queries(self) -> I8:
        """Number of queries per annotator."""
        lists, votes = self.preferences.lists, self.preferences.comparisons
        who = np.concatenate((lists.expert, votes.expert))
        (experts, _), _ = number_rows(who, np.concatenate((lists.query_of_list, votes.query_of_row)))
        return np.bincount(experts, minlength=len(self))

    @functools.cached_property
    def pair_worth(self) -> F8:
        """Effective number of independent votes per pair of a list: pairs over the variance of their balance.

        The variance is Kendall's for random orders with the list's ties. A list of two items gives one vote
        per pair; a list with two grades gives three over the number of items plus one.
        """
        lists = self.preferences.lists
        above, upto = count_items_above(lists.starts, lists.rank)
        n, t = lists.lengths.astype(np.float64), (upto - above).astype(np.float64)
        tied = sum_by_group(lists.list_of_row, t - 1, len(lists)) / 2  # a group of t rows adds t (t - 1) / 2
        spread = sum_by_group(lists.list_of_row, (t - 1) * (2 * t + 5), len(lists))
        pairs = n * (n - 1) / 2 - tied
        variance = (n * (n - 1) * (2 * n + 5) - spread) / 18
        return np.divide(pairs, variance, out=np.ones(len(n)), where=variance > 0)

    # -- against a reference ---------------------------------------------------------------------------------

    def count_against_scores(self, scores: F8) -> AgreementCounts:
        """Agreement with scores by slot; NaN means unknown."""
        votes = self.preferences.comparisons
        return self._count_agreement(
            scores[self.preferences.lists.item], scores[votes.winner] - scores[votes.loser]
        )

    def count_against_others(self) -> AgreementCounts:
        """Agreement with the other annotators, weighted by quality; malicious annotators count in reverse."""
        return self.count_against_weighted(self.estimate_weights_without(np.zeros(len(self), np.bool_)))

    def count_against_weighted(self, weights: F8) -> AgreementCounts:
        """Agreement with the other annotators under the given weights."""
        return self._count_agreement(*self._summarize_others(weights))

    def estimate_weights_without(self, left_out: B1) -> F8:
        """Quality weights estimated without some of the annotators, whose weight is 0."""
        start = np.where(left_out, 0.0, 1.0)
        weights = start
        for _ in range(ROUNDS - 1):
            weights = start * self.compute_quality_weights(self.count_against_weighted(weights))
        return weights

    def compute_quality_weights(self, counts: AgreementCounts) -> F8:
        """Weights from -1 (always reversed) to 1 by quality, shrunk toward 0."""
        total = counts.same_worth + counts.other_worth
        return np.asarray(2 * (counts.same_worth + PRIOR) / (total + 2 * PRIOR) - 1, np.float64)

    def _summarize_others(self, weights: F8) -> tuple[F8, F8]:
        """Per list row the others' mean value of the item, per vote the others' preference for the winner.

        NaN where no other annotator judges the item.
        """
        votes, rows = self.preferences.comparisons, self.preferences.lists.rows
        by_row, by_vote = weights[self.annotator_of_row], weights[votes.expert] * self.reference_weights
        for_winner: F8 = np.where(votes.tie, 0.0, by_vote)
        slot = np.concatenate((self.preferences.lists.item, votes.winner, votes.loser))
        sums = np.concatenate((by_row * self.row_values, for_winner, -for_winner))
        size = np.abs(np.concatenate((by_row, by_vote, by_vote)))
        # minus the annotator's own judgements, so that nobody is compared with themselves
        own = self._item_cells
        total, mass = (
            sum_by_group(slot, c, self.slot_count)[slot] - sum_by_group(own, c, len(c))[own]
            for c in (sums, size)
        )
        mass = np.where(mass > EQUAL, mass, np.nan)
        mean = np.round(total / (mass + 1), 9)  # one pseudo-judgement of 0 shrinks rarely judged items
        won, lost = mean[rows : rows + len(votes)], mean[rows + len(votes) :]
        pair, sign = self.vote_pairs
        for_low: F8 = for_winner * sign
        direct: F8 = sign * (sum_by_group(pair, for_low, len(pair))[pair] - self._sum_own_votes(for_low))
        placed = mean[:rows]
        if self.grades is not None:
            # the nearest grade; NaN halfway, since items of one grade form no pair
            placed = total[:rows] / mass[:rows]
            scale = 2 * (self.grades - self.grades[0]) / (self.grades[-1] - self.grades[0]) - 1
            middle = (scale[1:] + scale[:-1]) / 2
            unclear = np.isnan(placed) | (np.abs(placed[:, None] - middle) < EQUAL).any(axis=1)
            level = np.searchsorted(middle, np.nan_to_num(placed)).astype(np.float64)
            placed = np.where(unclear, np.nan, level)
        return placed, direct + GAP * np.nan_to_num(won - lost)

    @functools.cached_property
    def _item_cells(self) -> I8:
        """Number of the (annotator, item) pair of list rows, winners and losers, concatenated."""
        lists, votes = self.preferences.lists, self.preferences.comparisons
        who = np.concatenate((self.annotator_of_row, votes.expert, votes.expert))
        return number_rows(who, np.concatenate((lists.item, votes.winner, votes.loser)))[1]

    @functools.cached_property
    def _pair_cells(self) -> I8:
        """Number of the (annotator, pair) combination of each vote."""
        return number_rows(self.preferences.comparisons.expert, self.vote_pairs[0])[1]

    def _sum_own_votes(self, values: F8) -> F8:
        return sum_by_group(self._pair_cells, values, len(values))[self._pair_cells]

    def _count_agreement(self, of_row: F8, of_vote: F8) -> AgreementCounts:
        """Pairs ordered as in the reference, and pairs ordered the other way."""
        lists, votes = self.preferences.lists, self.preferences.comparisons
        known = ~np.isnan(of_row)
        starts = segments.offsets(known)[lists.starts]
        same, other = count_concordant_pairs(starts, -lists.rank[known].astype(np.float64), of_row[known])
        sign = np.where(np.abs(of_vote) > EQUAL, np.sign(of_vote), 0.0)  # a NaN is no preference
        columns = []
        for worth, of_one in (
            (np.ones(len(lists)), np.ones(len(votes))),
            (self.pair_worth, self.compute_vote_worth(sign)),
        ):
            for by_list, wanted in ((same, 1), (other, -1)):
                columns.append(
                    sum_by_group(lists.expert, by_list * worth, len(self))
                    + sum_by_group(votes.expert, self.win_weights * of_one * (sign == wanted), len(self))
                )
        # sums of fractions depend on the order of the rows in the last bits; results must not
        return AgreementCounts(*(np.round(c, 9) for c in columns))

    def compute_vote_worth(self, sign: F8) -> F8:
        """Effective number of independent votes per vote; `sign` is 1 if it matches the reference, else -1.

        Repeated answers of one annotator to one comparison are correlated. k votes are worth
        k / (1 + (k - 1) r); r is their correlation over all annotators, 1 unless the votes show less.
        """
        known = (self.win_weights > 0) & (sign != 0)
        who, cell = self.preferences.comparisons.expert[known], self._pair_cells[known]
        right = (sign[known] > 0).astype(np.float64)
        share = sum_by_group(who, right, len(self)) / np.maximum(np.bincount(who, minlength=len(self)), 1)
        off = right - share[who]
        count = np.bincount(cell, minlength=len(self._pair_cells))
        together = (sum_by_group(cell, off, len(count)) ** 2 - sum_by_group(cell, off**2, len(count))).sum()
        alone = ((count[cell] - 1) * (share * (1 - share))[who]).sum()
        r = round(float(np.clip((1 + together) / (1 + alone), 0.0, 1.0)), 9)
        weight = sum_by_group(self._pair_cells, self.win_weights, len(self._pair_cells))[self._pair_cells]
        return np.asarray(1 / (1 + r * np.maximum(weight - 1, 0.0)), np.float64)

    # -- among themselves ------------------------------------------------------------------------------------

    def count_shared_answers(self) -> SharedAnswers:
        """Agreement with others on the same questions: the same two items, or the grade or half of a list."""
        lists, votes = self.preferences.lists, self.preferences.comparisons
        pair, sign = self.vote_pairs
        placed = np.sign(np.where(np.abs(self.row_values) > EQUAL, self.row_values, 0.0)).astype(np.int64)
        answer = np.concatenate((placed, np.where(votes.tie, 0, sign)))
        question = np.concatenate((lists.item.astype(np.int64), self.slot_count + pair))
        who = np.concatenate((self.annotator_of_row, votes.expert.astype(np.int64)))
        cell = number_rows(who, question)[1]
        there = np.bincount(question)[question] - np.bincount(cell)[cell]
        same = np.bincount(question * 3 + answer + 1)[question * 3 + answer + 1]
        same = same - np.bincount(cell * 3 + answer + 1)[cell * 3 + answer + 1]
        is_shared = there > 0
        judgements = np.bincount(who[is_shared], minlength=len(self))
        once = np.unique(cell[is_shared], return_index=True)[1]
        questions = np.bincount(who[is_shared][once], minlength=len(self))
        sums = sum_by_group(who[is_shared], same[is_shared] / there[is_shared], len(self))
        share = np.divide(sums, judgements, out=np.full(len(self), np.nan), where=judgements > 0)
        return SharedAnswers(judgements, questions, share)

    @functools.cached_property
    def overlap(self) -> I8:
        """Per annotator: judgements of items that others judge too; a vote needs both items."""
        lists, votes = self.preferences.lists, self.preferences.comparisons
        slot = np.concatenate((lists.item, votes.winner, votes.loser))
        once = np.unique(self._item_cells, return_index=True)[1]
        known = np.bincount(slot[once], minlength=self.slot_count) > 1
        voted = known[votes.winner] & known[votes.loser]
        who = np.concatenate((self.annotator_of_row[known[lists.item]], votes.expert[voted]))
        return np.asarray(np.bincount(who, minlength=len(self)), np.int64)

    def count_repeats(self) -> tuple[F8, F8, F8]:
        """Per annotator: pairs of answers to one comparison (same query and two items), how many of them are
        equal, and answers beyond the first.
        """
        votes = self.preferences.comparisons
        answer = np.where(votes.tie, 0, self.vote_pairs[1])
        total = np.bincount(self._pair_cells)
        alike = np.bincount(self._pair_cells * 3 + answer + 1, minlength=3 * len(total)).reshape(-1, 3)
        who = np.zeros(len(total), np.int64)
        who[self._pair_cells] = votes.expert
        pairs, equal = total * (total - 1) / 2, (alike * (alike - 1) / 2).sum(axis=1)
        again = np.maximum(total - 1, 0)
        return (
            sum_by_group(who, pairs, len(self)),
            sum_by_group(who, equal, len(self)),
            sum_by_group(who, again, len(self)),
        )

    def find_constant_annotators(self) -> B1:
        """Annotators with several answers that are all the same, or with many that nearly all are."""
        lists, votes, n = self.preferences.lists, self.preferences.comparisons, len(self)
        if self.grades is not None:
            assert lists.score is not None
            key = self.annotator_of_row * len(self.grades) + np.searchsorted(self.grades, lists.score)
            most = np.bincount(key, minlength=n * len(self.grades)).reshape(n, -1).max(axis=1)
        else:
            above, upto = count_items_above(lists.starts, lists.rank)
            most = np.bincount(
                self.annotator_of_row[upto - above == lists.lengths[lists.list_of_row]], minlength=n
            )
        same = most + np.bincount(votes.expert[votes.tie], minlength=n)
        nearly = (self.judgements >= MANY) & (same >= NEARLY * self.judgements)
        return np.asarray((same == self.judgements) & (same > 1) | nearly, np.bool_)
