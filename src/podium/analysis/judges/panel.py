"""A panel of judges as a table of answers: one row per judge, one column per question, and the gold answers.

A question is a pair of items of one query, or one item with a rating of two levels. An answer is the share of
the judge's votes on the question that go to the first item (or to the higher level): 1, 0, or 1/2 if the
judge is split, for example because its answer changes with the order in which the items are shown.
"""

from __future__ import annotations

import functools
import warnings
from dataclasses import dataclass

import numpy as np

from podium.core.errors import InputError, PodiumWarning
from podium.core.text import format_count, join_names
from podium.data.features import Features
from podium.data.ids import Id, Ids
from podium.data.index import ItemIndex
from podium.data.labels import Labels
from podium.data.lists import Comparisons, Lists
from podium.data.preferences import Preferences
from podium.kernels.contest_counts import orient_votes
from podium.kernels.dispatch import B1, F8, I8
from podium.kernels.grouping import number_rows, sum_by_group

__all__ = ["GoldAnswers", "JudgePanel", "Question", "build_panel"]

LARGEST_TABLE = 50_000_000  # answers in memory
Question = tuple[Id, Id, Id | None]  # query, first item, second item (None: a rating of the first)


@dataclass(frozen=True, eq=False)
class GoldAnswers:
    """The gold answer per question, and what could not be used."""

    answer: F8  # 1: the first item, 0: the second, NaN: no gold
    undecided: int = 0  # questions whose gold is a tie
    unknown: int = 0  # gold answers to questions that no judge was asked


@dataclass(frozen=True, eq=False)
class JudgePanel:
    """The votes of all judges by question; votes are in rows, with the first item of the question first."""

    index: ItemIndex  # of the input
    judges: list[Id]
    first: I8  # slot per question
    second: I8  # slot per question, -1 for ratings
    judge: I8  # by vote
    question: I8  # by vote
    won: F8  # weight of the vote if it is for the first item; half of it for a tie
    lost: F8
    side: I8  # 1: the first item was shown first, -1: the second was, 0: unknown
    levels: tuple[float, float] | None = None  # of ratings

    def __len__(self) -> int:
        return len(self.first)

    @functools.cached_property
    def answers(self) -> F8:
        """Judges x questions: share of the judge's votes for the first item, NaN without a vote."""
        size = len(self.judges) * len(self)
        cell = self.judge * len(self) + self.question
        won, total = (sum_by_group(cell, c, size) for c in (self.won, self.won + self.lost))
        share = np.divide(won, total, out=np.full(size, np.nan), where=total > 0)
        return np.asarray(share.reshape(len(self.judges), len(self)), np.float64)

    @functools.cached_property
    def mean_answer(self) -> F8:
        """The mean answer of the judges per question; every question has at least one."""
        return np.asarray(np.nanmean(self.answers, axis=0), np.float64)

    def describe_question(self, number: int) -> Question:
        """Query and items of a question."""
        slot, items = int(self.first[number]), self.index.items
        other = int(self.second[number])
        query = self.index.queries[int(self.index.query_of_slot[slot])]
        return query, items[slot], items[other] if other >= 0 else None

    @functools.cached_property
    def preferences(self) -> Preferences:
        """The same votes with one query per question, item 0 for its first item and 1 for its second."""
        count = len(self)
        index = ItemIndex(
            Ids(list(range(count))), np.arange(0, 2 * count + 1, 2), Ids([0, 1] * count),
            np.tile(np.arange(2, dtype=np.int32), count),
        )  # fmt: skip
        order = np.lexsort((self.judge, self.question))
        question = self.question[order]
        tie = (self.won == self.lost)[order]
        turned = (self.lost > self.won)[order]
        votes = Comparisons(
            np.searchsorted(question, np.arange(count + 1)),
            self.judge[order].astype(np.int32),
            (2 * question + turned).astype(np.int32),
            (2 * question + ~turned).astype(np.int32),
            tie,
            (self.won + self.lost)[order],
            np.where(turned, -self.side[order], self.side[order]).astype(np.int32),
        )
        return Preferences(index, Ids(list(self.judges)), Lists.empty(count), votes)

    def to_labels(self, gold: F8, known: B1) -> Labels:
        """Gold answers to the `known` questions as grades of items 0 and 1."""
        first = np.where(known, gold, np.nan)
        return Labels(self.preferences.index, np.stack((first, 1 - first), axis=1).reshape(-1))

    def collect_features(self, features: Features) -> tuple[F8, F8]:
        """Values of the first item of each question, and of the second (0 for ratings), by feature."""
        values = features.align(self.index)
        if np.isnan(values).all():
            raise InputError(
                f"no judged item has features: the judgements have items such as {self.index.items[:3]} of queries "
                f"{self.index.queries[:3]}, the features have queries {features.index.queries[:3]}",
                remedy="ids are compared exactly, case and type included",
            )
        other = np.where((self.second >= 0)[:, None], values[np.maximum(self.second, 0)], 0.0)
        mine = np.asarray(values[self.first], np.float64)
        gaps = mine - other
        for k, name in enumerate(features.names):
            blank, known = np.isnan(gaps[:, k]), ~np.isnan(gaps[:, k])
            if blank.any():
                warnings.warn(
                    f"{format_count(int(blank.sum()), 'question')} of {len(self):,} have an item without {name}; they "
                    f"count for nothing in the bias toward larger {name}",
                    PodiumWarning,
                    stacklevel=3,
                )
            if known.any() and not gaps[known, k].any():
                warnings.warn(
                    f"{name} is equal for both items of every question, so no bias toward it can be measured",
                    PodiumWarning,
                    stacklevel=3,
                )
        return mine, np.asarray(other, np.float64)

    # -- gold ------------------------------------------------------------------------------------------------

    def read_gold(self, gold: Preferences | Labels) -> GoldAnswers:
        """The gold answers from votes of people on the questions, or from grades of their items."""
        answers = self._read_grades(gold) if isinstance(gold, Labels) else self._read_gold_votes(gold)
        count = int((~np.isnan(answers.answer)).sum())
        if not count:
            raise InputError(
                f"the gold answers none of the {format_count(len(self), 'question')}: the judgements have items such "
                f"as {join_names(self.index.items[:3])} of queries {join_names(self.index.queries[:3])}, the gold has "
                f"items such as {join_names(gold.index.items[:3])} of queries {join_names(gold.index.queries[:3])}",
                remedy="ids are compared exactly, case and type included",
            )
        if answers.undecided:
            warnings.warn(
                f"the gold is tied on {format_count(answers.undecided, 'question')}, which count as questions "
                "without gold",
                PodiumWarning,
                stacklevel=3,
            )
        return answers

    def _read_grades(self, gold: Labels) -> GoldAnswers:
        at = gold.index.locate(self.index)
        missing = np.flatnonzero((at < 0) & ~np.isnan(gold.grades))
        self._warn_of_unknown(gold.index, missing, "item", len(missing))
        grades = gold.align(self.index)
        if self.levels is not None:
            mine = grades[self.first]
            foreign = np.flatnonzero(~np.isnan(mine) & ~np.isin(mine, self.levels))
            if len(foreign):
                raise InputError(
                    f"the gold grade of item {self.index.items[int(self.first[foreign[0]])]!r} is "
                    f"{mine[foreign[0]]:g}, and the ratings are {self.levels[0]:g} and {self.levels[1]:g}",
                    remedy="give gold on the scale of the ratings",
                )
            return GoldAnswers(
                np.where(np.isnan(mine), np.nan, (mine == self.levels[1]) * 1.0), 0, len(missing)
            )
        gap = grades[self.first] - grades[self.second]
        answer = np.where(gap > 0, 1.0, np.where(gap < 0, 0.0, np.nan))
        return GoldAnswers(answer, int((gap == 0).sum()), len(missing))

    def _read_gold_votes(self, gold: Preferences) -> GoldAnswers:
        votes, at = gold.comparisons, gold.index.locate(self.index)
        if not len(votes.winner) or (self.second < 0).any():
            raise InputError(
                "the gold is not of the kind of the judgements",
                remedy="give votes on pairs (query, item_a, item_b, winner), or grades (query, item, grade)",
            )
        turned = orient_votes(at[votes.winner], at[votes.loser], votes.tie, votes.weight)
        _, number = number_rows(
            np.concatenate((self.first, np.maximum(turned.first, 0))),
            np.concatenate((self.second, np.maximum(turned.second, 0))),
        )
        question = np.full(int(number.max()) + 1, -1)
        question[number[: len(self)]] = np.arange(len(self))
        asked = np.where((turned.first >= 0) & (turned.second >= 0), question[number[len(self) :]], -1)
        missing = np.flatnonzero(asked < 0)
        self._warn_of_unknown(gold.index, votes.winner[missing].astype(np.int64), "question", len(missing))
        known = asked >= 0
        won, lost, tied = (
            sum_by_group(asked[known], c[known], len(self)) for c in (turned.won, turned.lost, turned.tied)
        )
        answer = np.where(won > lost, 1.0, np.where(won < lost, 0.0, np.nan))
        return GoldAnswers(answer, int(((won + lost + tied > 0) & (won == lost)).sum()), len(missing))

    def _warn_of_unknown(self, index: ItemIndex, slots: I8, noun: str, count: int) -> None:
        if not count:
            return
        shown = [f"{index.items[int(s)]} of {index.queries[int(index.query_of_slot[s])]}" for s in slots[:3]]
        warnings.warn(
            f"the gold names {format_count(count, noun)} that no judge was asked about, such as "
            f"{join_names(shown)}; they are ignored",
            PodiumWarning,
            stacklevel=4,
        )


def build_panel(preferences: Preferences) -> JudgePanel:
    """The panel of the experts of the preferences, from votes on pairs or from ratings with two levels."""
    votes, lists = preferences.comparisons, preferences.lists
    scale: tuple[float, float] | None = None
    if len(votes.winner) and lists.rows:
        raise InputError("there are both votes and lists", remedy="give one kind of judgements per panel")
    if len(votes.winner):
        side = np.zeros(len(votes.winner), np.int64) if votes.side is None else votes.side
        turned = orient_votes(votes.winner, votes.loser, votes.tie, votes.weight, side=side)
        (first, second), question = number_rows(turned.first, turned.second)
        columns = (votes.expert, question, turned.won + turned.tied / 2, turned.lost + turned.tied / 2)
        shown = turned.side
    else:
        levels = np.zeros(0) if lists.score is None else np.unique(lists.score)
        if len(levels) != 2:
            raise InputError(
                f"the judgements are {'lists' if lists.score is None else f'ratings with {len(levels):,} levels'}",
                remedy="give votes on pairs, or ratings with two levels; podium annotators reads all kinds",
            )
        assert lists.score is not None
        scale = float(levels[0]), float(levels[1])
        (first,), question = number_rows(lists.item)
        second, high = np.full(len(first), -1), (lists.score == levels[1]).astype(np.float64)
        columns = lists.expert[lists.list_of_row], question, high, 1 - high
        shown = np.zeros(len(question), np.int64)
    judges = preferences.experts.tolist()
    if len(judges) < 2:
        raise InputError(
            f"there is one judge, {judges[0]!r}",
            remedy="a panel has at least two; name the column of the judges if it was not recognized",
        )
    if len(judges) * len(first) > LARGEST_TABLE:
        raise InputError(
            f"{len(judges):,} judges x {len(first):,} questions are more than {LARGEST_TABLE:,} answers",
            remedy="give fewer questions, or podium annotators, which reads crowds",
        )
    judge, number, won, lost = columns
    return JudgePanel(
        preferences.index, judges, first, second, judge.astype(np.int64), number, won, lost, shown, scale
    )
