"""What all annotators said as columns, and how often each says what a reference says.

A judgement is a vote between two items, or an item placed in a list. Pairs are votes with a winner, and any two items
that one list puts in order. The reference may be scores of the items (a consensus, gold labels), or what the other
annotators say, from which the annotator's own judgements are taken out.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from podium.data.preferences import Preferences
from podium.kernels.dispatch import B1, F8, I8
from podium.kernels.pairwise_votes import count_items_above
from podium.metrics.agreement import count_concordant_pairs

__all__ = ["AgreementCounts", "CrowdJudgements", "SharedAnswers"]

MOST_GRADES = 20  # distinct ratings up to which they are grades of one scale, the same for all annotators
ROUNDS, PRIOR = 3, 2.0  # of weighing the others by their quality; judgements added on both sides of one half
# A vote of the others on the very pair counts 1, and the gap of the two items' mean values (from -1 to 1) so much: of
# 0, 1, 3 and 10 the best on votes with known truth (reading difficulty), where direct votes alone are 0.8 points worse.
GAP = 3.0
NEARLY, MANY = 0.98, 50  # share of equal answers, of so many, that counts as all of them
EQUAL = 1e-9  # what is nearer to 0 is no preference


class AgreementCounts(NamedTuple):
    """By annotator: pairs judged as the reference has them, and the other way round; pairs that it ties are no pairs.

    The last two count what they are worth as independent votes: pairs of a list go together (see `Crowd.worth`), and so
    do answers to a comparison that is asked again (see `Crowd.vote_worth`).
    """

    same: F8
    other: F8
    same_worth: F8
    other_worth: F8


class SharedAnswers(NamedTuple):
    """By annotator: judgements that others made too, and the mean share of those others who say the same."""

    judgements: I8
    questions: I8  # the same without repeated answers
    share: F8  # NaN for none


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

    # -- columns -----------------------------------------------------------------------------------------------

    @functools.cached_property
    def annotator_of_row(self) -> I8:
        """The annotator of every row of the lists."""
        lists = self.preferences.lists
        return lists.expert[lists.list_of_row].astype(np.int64)

    @functools.cached_property
    def grades(self) -> F8 | None:
        """The scale of the ratings, where there is one that all annotators share."""
        score = self.preferences.lists.score
        found = np.zeros(0) if score is None or np.isnan(score).any() else np.unique(score)
        return found if 1 < len(found) <= MOST_GRADES else None

    @functools.cached_property
    def row_values(self) -> F8:
        """From -1 to 1: how well a row of a list speaks of its item.

        By the scale where ratings are grades that all annotators share, else by the place in the list.
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
        """Weight of every vote, 0 for ties."""
        votes = self.preferences.comparisons
        return np.where(votes.tie, 0.0, votes.weight)

    @functools.cached_property
    def reference_weights(self) -> F8:
        """What a vote counts for in the reference: all votes of one annotator on one pair are one voice."""
        weight = self.preferences.comparisons.weight
        return np.asarray(weight / np.maximum(self._sum_own_votes(weight), 1.0), np.float64)

    @functools.cached_property
    def vote_pairs(self) -> tuple[I8, I8]:
        """The number of the two items of every vote, and 1 where the winner is the lower slot, else -1."""
        votes = self.preferences.comparisons
        low, high = np.minimum(votes.winner, votes.loser), np.maximum(votes.winner, votes.loser)
        key = low.astype(np.int64) * max(self.slot_count, 1) + high
        return _encode_keys(key), np.where(votes.winner < votes.loser, 1, -1)

    @functools.cached_property
    def judgements(self) -> I8:
        """How many judgements each annotator made."""
        votes = self.preferences.comparisons
        return np.bincount(self.annotator_of_row, minlength=len(self)) + np.bincount(
            votes.expert, minlength=len(self)
        )

    @functools.cached_property
    def queries(self) -> I8:
        """How many queries each annotator judged."""
        lists, votes, n = self.preferences.lists, self.preferences.comparisons, max(len(self), 1)
        key = np.concatenate((lists.query_of_list * n + lists.expert, votes.query_of_row * n + votes.expert))
        return np.bincount(np.unique(key) % n, minlength=len(self))

    @functools.cached_property
    def pair_worth(self) -> F8:
        """Independent votes that a pair of each list is worth: pairs over the variance of their balance.

        That is Kendall's, of random orders with the list's ties: one for a list of two items, and three a pair over
        the number of items plus one for a list of two grades.
        """
        lists = self.preferences.lists
        above, upto = count_items_above(lists.starts, lists.rank)
        n, t = lists.lengths.astype(np.float64), (upto - above).astype(np.float64)
        tied = _sum_by_group(lists.list_of_row, t - 1, len(lists)) / 2  # a group of t rows adds t (t - 1) / 2
        spread = _sum_by_group(lists.list_of_row, (t - 1) * (2 * t + 5), len(lists))
        pairs = n * (n - 1) / 2 - tied
        variance = (n * (n - 1) * (2 * n + 5) - spread) / 18
        return np.divide(pairs, variance, out=np.ones(len(n)), where=variance > 0)

    # -- against a reference -----------------------------------------------------------------------------------

    def count_against_scores(self, scores: F8) -> AgreementCounts:
        """Against scores by slot; NaN: not known."""
        votes = self.preferences.comparisons
        return self._count_agreement(
            scores[self.preferences.lists.item], scores[votes.winner] - scores[votes.loser]
        )

    def count_against_others(self) -> AgreementCounts:
        """Against what the others say, each of whom counts by its own quality; the malicious count in reverse."""
        return self.count_against_weighted(self.estimate_weights_without(np.zeros(len(self), np.bool_)))

    def count_against_weighted(self, weights: F8) -> AgreementCounts:
        """Against what the others say, each with a weight."""
        return self._count_agreement(*self._summarize_others(weights))

    def estimate_weights_without(self, left_out: B1) -> F8:
        """Weights of the annotators by their quality, as estimated without some of them, who have none."""
        start = np.where(left_out, 0.0, 1.0)
        weights = start
        for _ in range(ROUNDS - 1):
            weights = start * self.compute_quality_weights(self.count_against_weighted(weights))
        return weights

    def compute_quality_weights(self, counts: AgreementCounts) -> F8:
        """From -1 (always the other way round) to 1: what annotators count for by their quality, shrunk to 0."""
        total = counts.same_worth + counts.other_worth
        return np.asarray(2 * (counts.same_worth + PRIOR) / (total + 2 * PRIOR) - 1, np.float64)

    def _summarize_others(self, weights: F8) -> tuple[F8, F8]:
        """By row of the lists the others' mean value of the item, by vote the others' preference for the winner.

        NaN where nobody else speaks of an item.
        """
        votes, rows = self.preferences.comparisons, self.preferences.lists.rows
        by_row, by_vote = weights[self.annotator_of_row], weights[votes.expert] * self.reference_weights
        for_winner: F8 = np.where(votes.tie, 0.0, by_vote)
        slot = np.concatenate((self.preferences.lists.item, votes.winner, votes.loser))
        sums = np.concatenate((by_row * self.row_values, for_winner, -for_winner))
        size = np.abs(np.concatenate((by_row, by_vote, by_vote)))
        total, mass = (
            _sum_by_group(slot, c, self.slot_count)[slot] - self._sum_own_rows(c) for c in (sums, size)
        )
        mass = np.where(mass > EQUAL, mass, np.nan)
        mean = np.round(total / (mass + 1), 9)
        won, lost = mean[rows : rows + len(votes)], mean[rows + len(votes) :]
        pair, sign = self.vote_pairs
        for_low: F8 = for_winner * sign
        direct: F8 = sign * (_sum_by_group(pair, for_low, len(pair))[pair] - self._sum_own_votes(for_low))
        placed = mean[:rows] if self.grades is None else self._round_to_grades(total[:rows] / mass[:rows])
        return placed, direct + GAP * np.nan_to_num(won - lost)

    def _round_to_grades(self, mean: F8) -> F8:
        """Mean values as the nearest grade, not known half way: items of one grade are no pair to be right about."""
        assert self.grades is not None
        scale = 2 * (self.grades - self.grades[0]) / (self.grades[-1] - self.grades[0]) - 1
        middle = (scale[1:] + scale[:-1]) / 2
        level = np.searchsorted(middle, np.nan_to_num(mean)).astype(np.float64)
        unclear = np.isnan(mean) | (np.abs(mean[:, None] - middle) < EQUAL).any(axis=1)
        return np.where(unclear, np.nan, level)

    @functools.cached_property
    def _item_cells(self) -> I8:
        """The number of (annotator, item) for rows of lists, winners and losers, one after the other."""
        lists, votes = self.preferences.lists, self.preferences.comparisons
        who = np.concatenate((self.annotator_of_row, votes.expert, votes.expert))
        key = who * max(self.slot_count, 1) + np.concatenate((lists.item, votes.winner, votes.loser))
        return _encode_keys(key)

    @functools.cached_property
    def _pair_cells(self) -> I8:
        """The number of (annotator, pair) of every vote."""
        pair = self.vote_pairs[0]
        key = self.preferences.comparisons.expert * (int(pair.max(initial=0)) + 1) + pair
        return _encode_keys(key)

    def _sum_own_rows(self, values: F8) -> F8:
        return _sum_by_group(self._item_cells, values, len(values))[self._item_cells]

    def _sum_own_votes(self, values: F8) -> F8:
        return _sum_by_group(self._pair_cells, values, len(values))[self._pair_cells]

    def _count_agreement(self, of_row: F8, of_vote: F8) -> AgreementCounts:
        """Pairs the same way round as the reference, and the other way round."""
        lists, votes = self.preferences.lists, self.preferences.comparisons
        known = ~np.isnan(of_row)
        starts = np.concatenate(([0], np.cumsum(known)))[lists.starts]
        same, other = count_concordant_pairs(starts, -lists.rank[known].astype(np.float64), of_row[known])
        sign = np.where(np.abs(of_vote) > EQUAL, np.sign(of_vote), 0.0)  # a NaN is no preference
        columns = []
        for worth, of_one in (
            (np.ones(len(lists)), np.ones(len(votes))),
            (self.pair_worth, self.compute_vote_worth(sign)),
        ):
            for by_list, wanted in ((same, 1), (other, -1)):
                columns.append(
                    _sum_by_group(lists.expert, by_list * worth, len(self))
                    + _sum_by_group(votes.expert, self.win_weights * of_one * (sign == wanted), len(self))
                )
        # sums of fractions depend on their order in the last bits, and results must not
        return AgreementCounts(*(np.round(c, 9) for c in columns))

    def compute_vote_worth(self, sign: F8) -> F8:
        """Independent votes that a vote is worth, where `sign` says whether it is as the reference has it (1, -1).

        An annotator who answers the same comparison again tends to say the same again. k votes on it are worth
        k / (1 + (k - 1) r), where r is the correlation of such answers over all annotators; 1 unless votes show less.
        """
        known = (self.win_weights > 0) & (sign != 0)
        who, cell = self.preferences.comparisons.expert[known], self._pair_cells[known]
        right = (sign[known] > 0).astype(np.float64)
        share = _sum_by_group(who, right, len(self)) / np.maximum(np.bincount(who, minlength=len(self)), 1)
        off = right - share[who]
        count = np.bincount(cell, minlength=len(self._pair_cells))
        together = (_sum_by_group(cell, off, len(count)) ** 2 - _sum_by_group(cell, off**2, len(count))).sum()
        alone = ((count[cell] - 1) * (share * (1 - share))[who]).sum()
        r = round(float(np.clip((1 + together) / (1 + alone), 0.0, 1.0)), 9)
        weight = _sum_by_group(self._pair_cells, self.win_weights, len(self._pair_cells))[self._pair_cells]
        return np.asarray(1 / (1 + r * np.maximum(weight - 1, 0.0)), np.float64)

    # -- among themselves --------------------------------------------------------------------------------------

    def count_shared_answers(self) -> SharedAnswers:
        """How far others answer the same questions alike: the same two items, or the grade or half of a list."""
        lists, votes = self.preferences.lists, self.preferences.comparisons
        pair, sign = self.vote_pairs
        answer = np.concatenate((_thirds(self.row_values), np.where(votes.tie, 0, sign)))
        question = np.concatenate((lists.item.astype(np.int64), self.slot_count + pair))
        who = np.concatenate((self.annotator_of_row, votes.expert.astype(np.int64)))
        key = who * (int(question.max(initial=0)) + 1) + question
        cell = _encode_keys(key)
        there = np.bincount(question)[question] - np.bincount(cell)[cell]
        same = np.bincount(question * 3 + answer + 1)[question * 3 + answer + 1]
        same = same - np.bincount(cell * 3 + answer + 1)[cell * 3 + answer + 1]
        asked = there > 0
        judgements = np.bincount(who[asked], minlength=len(self))
        once = np.unique(cell[asked], return_index=True)[1]
        questions = np.bincount(who[asked][once], minlength=len(self))
        sums = _sum_by_group(who[asked], same[asked] / there[asked], len(self))
        share = np.divide(sums, judgements, out=np.full(len(self), np.nan), where=judgements > 0)
        return SharedAnswers(judgements, questions, share)

    @functools.cached_property
    def overlap(self) -> I8:
        """By annotator: judgements of items that others judge too; of a vote, both items."""
        lists, votes = self.preferences.lists, self.preferences.comparisons
        slot = np.concatenate((lists.item, votes.winner, votes.loser))
        once = np.unique(self._item_cells, return_index=True)[1]
        known = np.bincount(slot[once], minlength=self.slot_count) > 1
        voted = known[votes.winner] & known[votes.loser]
        who = np.concatenate((self.annotator_of_row[known[lists.item]], votes.expert[voted]))
        return np.asarray(np.bincount(who, minlength=len(self)), np.int64)

    def count_repeats(self) -> tuple[F8, F8, F8]:
        """By annotator: pairs of answers to the same comparison (same query, same two items), how many of them are
        equal, and answers beyond the first.
        """
        votes = self.preferences.comparisons
        answer = np.where(votes.tie, 0, self.vote_pairs[1])
        total = np.bincount(self._pair_cells)
        alike = np.bincount(self._pair_cells * 3 + answer + 1, minlength=3 * len(total)).reshape(-1, 3)
        who = np.zeros(len(total), np.int64)
        who[self._pair_cells] = votes.expert
        asked, equal = total * (total - 1) / 2, (alike * (alike - 1) / 2).sum(axis=1)
        again = np.maximum(total - 1, 0)
        return (
            _sum_by_group(who, asked, len(self)),
            _sum_by_group(who, equal, len(self)),
            _sum_by_group(who, again, len(self)),
        )

    def find_constant_annotators(self) -> B1:
        """Annotators whose answers, of several, are all the same, or nearly all of many."""
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


def _thirds(value: F8) -> I8:
    return np.sign(np.where(np.abs(value) > EQUAL, value, 0.0)).astype(np.int64)


def _encode_keys(key: npt.NDArray[Any]) -> I8:
    """Equal keys get equal numbers 0, 1, 2, ..."""
    return np.asarray(np.unique(key, return_inverse=True)[1], np.int64)


def _sum_by_group(group: npt.NDArray[Any], values: npt.NDArray[Any], count: int) -> F8:
    return np.asarray(np.bincount(group, weights=values, minlength=count), np.float64)
