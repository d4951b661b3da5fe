"""Votes, rankings, ratings and labels, gathered record by record, with a summary of what was read and
dropped.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from podium.core.errors import InputError
from podium.core.settings import Duplicates, Unlisted
from podium.core.text import format_count
from podium.data.ids import Id
from podium.data.labels import Labels
from podium.data.preferences import Preferences
from podium.data.vote_outcomes import Side
from podium.formats.base import Content
from podium.formats.recipes.records import Record

__all__ = ["Judgments"]

Place = tuple[str, int | None]  # file and line


class Judgments:
    """What a recipe reads."""

    def __init__(self, recipe: str) -> None:
        self.recipe = recipe
        self._file: tuple[str, bool] = ("", False)  # the name of the file, and whether an expert has it
        # rows begin with their place in a file, not with the record: that may hold conversations
        self._votes: list[tuple[Place, Id, Id, Id, Id, bool, float, int]] = []
        self._rankings: list[tuple[Place, Id, Id, Id, float]] = []
        self._ratings: list[tuple[Place, Id, Id, Id, float]] = []
        self._labels: list[tuple[Place, Id, Id, float]] = []
        self._dropped: Counter[str] = Counter()
        self._notes: dict[str, list[int]] = {}

    @property
    def expert(self) -> Id:
        """The name of the file, which stands for the expert where the file names none."""
        self._file = (self._file[0], True)
        return self._file[0]

    def begin_file(self, name: str) -> None:
        """Set the name of the file."""
        self._file = (name, False)

    @property
    def has_expert_of_file(self) -> bool:
        """Whether an expert is named after the file."""
        return self._file[1]

    def add_vote(
        self,
        record: Record,
        query: Id,
        expert: Id,
        pair: tuple[Id, Id],
        winner: Side,
        weight: float = 1.0,
        *,
        shown: bool = True,
    ) -> None:
        """A vote between two items; `shown` means that the first of them was shown first."""
        if pair[0] == pair[1]:
            self.drop("self-vote")
            return
        better, worse = (pair[1], pair[0]) if winner == "b" else pair
        side = (-1 if winner == "b" else 1) if shown else 0
        self._votes.append((record.origin, query, expert, better, worse, winner == "tie", weight, side))

    def add_ranking(self, record: Record, query: Id, expert: Id, groups: Sequence[Sequence[Id]]) -> None:
        """A ranking, best first; the items of a group are tied."""
        rank = 1
        for group in groups:
            self._rankings += [(record.origin, query, expert, item, rank) for item in group]
            rank += len(group)

    def add_rank(self, record: Record, query: Id, expert: Id, item: Id, rank: float) -> None:
        """The rank of one item in the list of an expert, 1 for the best."""
        self._rankings.append((record.origin, query, expert, item, rank))

    def add_rating(self, record: Record, query: Id, expert: Id, item: Id, score: float) -> None:
        """A score, larger is better."""
        self._ratings.append((record.origin, query, expert, item, score))

    def add_label(self, record: Record, query: Id, item: Id, grade: float) -> None:
        """A relevance grade."""
        self._labels.append((record.origin, query, item, grade))

    def drop(self, reason: str, count: int = 1) -> None:
        """Count something that is not used; the reason is a noun in the singular, such as "task without answer"."""
        self._dropped[reason] += count

    def note(self, text: str) -> None:
        """Add an assumption or a fact to the summary, once."""
        self._notes.setdefault(text, [])

    def count(self, text: str, of: str, hit: bool) -> None:
        """Count judgements in the summary: `text` N of M `of`."""
        hits = self._notes.setdefault(f"{text}\0{of}", [0, 0])
        hits[0] += hit
        hits[1] += 1

    # -- result ----------------------------------------------------------------------------------------------

    def build(self, unlisted: Unlisted, duplicates: Duplicates, sources: str) -> Content:
        """The content with its summary."""
        parts = []
        columns: Any
        if self._votes:
            columns = list(zip(*self._votes, strict=True))
            _, query, expert, winner, loser, tie, weight, side = columns
            parts.append(
                Preferences.from_comparisons(
                    query, expert, winner, loser, tie=np.array(tie), weight=np.array(weight, np.float64),
                    side=np.array(side), origin=columns[0].__getitem__,
                )
            )  # fmt: skip
        for rows, value in ((self._rankings, "rank"), (self._ratings, "score")):
            if rows:
                columns = list(zip(*rows, strict=True))
                parts.append(
                    Preferences.from_rows(
                        *columns[1:4],
                        **{value: columns[4]},
                        duplicates=duplicates,
                        unlisted=unlisted,
                        origin=columns[0].__getitem__,
                    )
                )
        labels = None
        if self._labels:
            places, query, item, grade = zip(*self._labels, strict=True)
            labels = Labels.from_rows(query, item, np.array(grade), origin=lambda row: places[row])
        if not parts and labels is None:
            raise InputError(
                f"no judgement could be read as {self.recipe}{self._describe_dropped()}",
                source=sources,
                remedy="check the file, or name another format",
            )
        preferences = None if not parts else parts[0] if len(parts) == 1 else Preferences.concat(parts)
        return Content(preferences, labels, summary=self._summarize())

    def _summarize(self) -> str:
        judged = [*self._votes, *self._rankings, *self._ratings]
        rows: list[Any] = [*judged, *self._labels]
        items = (
            {row[2] for row in self._labels} | {row[3] for row in judged} | {row[4] for row in self._votes}
        )
        counts = {
            "query": len({row[1] for row in rows}),
            "item": len(items),
            "expert": len({r[2] for r in judged}),
        }
        if self._votes:
            counts |= {"vote": len(self._votes), "tie": sum(vote[5] for vote in self._votes)}
        counts |= {
            "ranking": len({row[1:3] for row in self._rankings}),
            "rating": len(self._ratings),
            "label": len(self._labels),
        }
        words = [format_count(n, noun) for noun, n in counts.items() if n or noun == "tie"]
        notes = []
        for text, hits in self._notes.items():
            before, _, of = text.partition("\0")
            notes.append(f"{before} {hits[0]:,} of {format_count(hits[1], of)}" if of else text)
        return "; ".join([f"{self.recipe}: {', '.join(words)}{self._describe_dropped()}", *notes])

    def _describe_dropped(self) -> str:
        dropped = []
        for reason, count in self._dropped.items():
            noun, preposition, rest = re.split(r"( without | of |$)", reason, maxsplit=1)
            dropped.append(f"{format_count(count, noun)}{preposition}{rest}")
        return f"; dropped: {', '.join(dropped)}" if dropped else ""
