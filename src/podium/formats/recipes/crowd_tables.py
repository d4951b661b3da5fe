"""Tables of crowdsourcing platforms: Mechanical Turk, Toloka, crowd-kit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from podium.core.errors import Option
from podium.core.text import join_names
from podium.data.ids import Id
from podium.data.vote_outcomes import SIDES, Side
from podium.formats.recipes.judgments import Judgments
from podium.formats.recipes.recipe import (
    NONE,
    Recipe,
    find_pair,
    find_query_key,
    parse_grade,
    parse_grades,
    read_expert,
    read_query,
    split_keys,
)
from podium.formats.recipes.records import Record

__all__ = ["CrowdKit", "MechanicalTurk", "Toloka"]


class CrowdRecipe(Recipe):
    """Base of the platforms: columns of the task have one prefix, columns of the answer another.

    A task with two items is a vote, a task with one item a rating. `items` names the columns of the items,
    `answer` the column of the answer, where a table has several; `grades` gives the numbers of named grades.
    """

    suffixes = (".csv", ".tsv")
    containers = frozenset({"table"})
    task_prefix = ""
    answer_prefix = ""
    worker_keys: tuple[str, ...] = ()

    def drop_reason(self, record: Record) -> str | None:
        """Why a row is not read, or None."""
        return None

    def read_records(
        self,
        records: Iterator[Record],
        judgments: Judgments,
        *,
        query: str | None = None,
        items: str | None = None,
        expert: str | None = None,
        answer: str | None = None,
        grades: str | None = None,
    ) -> None:
        keys, numbers = split_keys(items), parse_grades(grades)
        for record in records:
            reason = self.drop_reason(record)
            column = answer
            if not column:
                named = [name for name in record.fields if name.startswith(self.answer_prefix)]
                if len(named) != 1:
                    columns = f"the columns of answers are {join_names(named)}"
                    problem = columns if named else "there is no column of answers"
                    raise record.error(problem, ("choose one, ", Option("answer", *named[:3])))
                column = named[0]
            if reason is None and record.get(column) in (None, ""):
                reason = "empty answer"
            if reason is not None:
                judgments.drop(reason)
                continue
            task = [name for name in record.fields if name.startswith(self.task_prefix)]
            who = read_expert(record, expert, self.worker_keys, judgments)
            pair = keys if len(keys) == 2 else None if keys else find_pair(task)
            query_key = find_query_key(name.removeprefix(self.task_prefix) for name in task)
            key = None if query_key is None else self.task_prefix + query_key
            if pair is not None:
                key = None if key in pair else key
                ids = record.read_id(pair[0], "item"), record.read_id(pair[1], "item")
                side = _decode_side(record, record.get(column), ids, (pair[0], pair[1]), self.task_prefix)
                judgments.note(f"items are {pair[0]} and {pair[1]}, the answer is {column}")
                judgments.add_vote(record, self._read_query(record, query, key, judgments), who, ids, side)
                continue
            candidates = keys or tuple(name for name in task if name not in (key, query))
            if not candidates and key is not None:  # the only column of the task is the item
                candidates, key = (key,), None
            if len(candidates) != 1:
                remedy = ("name one column, or two for a vote, ", Option("items", ",".join(task[:2])))
                problem = f"cannot tell which columns are items among {join_names(task, 12)}"
                raise record.error(problem, remedy)
            judgments.note(f"items are {candidates[0]}, the answer is {column}")
            grade = parse_grade(record, record.get(column), numbers, "answer")
            place = self._read_query(record, query, key, judgments), who
            judgments.add_rating(record, *place, record.read_id(candidates[0], "item"), grade)

    def _read_query(self, record: Record, query: str | None, key: str | None, judgments: Judgments) -> Id:
        judgments.note(
            f"queries are {query or key}" if (query or key) not in (None, NONE, "") else "one query"
        )
        return read_query(record, query, key)


def _decode_side(
    record: Record, answer: Any, ids: tuple[Id, Id], names: tuple[str, str], prefix: str = ""
) -> Side:
    """The side of an answer: an id, the name of a column, or a word for a side."""
    text = str(answer).strip()
    for side, item, name in (("a", ids[0], names[0]), ("b", ids[1], names[1])):
        if text in (str(item), name, name.removeprefix(prefix)):
            return side  # type: ignore[return-value]
    decoded = SIDES.get(text.lower(), {"1": "a", "2": "b", "0": "tie"}.get(text))
    if decoded is None:
        shown = f"the answer {text[:60]!r} is neither of the two items"
        raise record.error(shown, "accepted: the id or column of an item, or a word such as left, right, tie")
    return decoded  # type: ignore[return-value]


class MechanicalTurk(CrowdRecipe):
    """Batch results of Mechanical Turk: columns Input.* describe the task, Answer.* hold the answer of
    WorkerId.

    Rejected assignments are dropped.
    """

    name = "mturk"
    summary = "Mechanical Turk batch results (Input.*, Answer.*, WorkerId)"
    task_prefix = "Input."
    answer_prefix = "Answer."
    worker_keys = ("WorkerId",)

    marks = ("HITId WorkerId Answer.*",)

    def drop_reason(self, record: Record) -> str | None:
        return "rejected assignment" if record.get("AssignmentStatus") == "Rejected" else None


class Toloka(CrowdRecipe):
    """Results of a Toloka pool: columns INPUT:* describe the task, OUTPUT:* hold the answer.

    Rejected assignments are dropped. Answers to control tasks (GOLDEN:*) are read like the others.
    """

    name = "toloka"
    summary = "Toloka pool results (INPUT:*, OUTPUT:*, ASSIGNMENT:worker_id)"
    task_prefix = "INPUT:"
    answer_prefix = "OUTPUT:"
    worker_keys = ("ASSIGNMENT:worker_id", "ASSIGNMENT:user_id")

    marks = ("INPUT:* OUTPUT:*",)

    def drop_reason(self, record: Record) -> str | None:
        if not any(value for name, value in record.fields.items() if name.startswith(("INPUT:", "OUTPUT:"))):
            return "empty row"  # Toloka separates assignments by empty rows
        return "rejected assignment" if record.get("ASSIGNMENT:status") == "REJECTED" else None


class CrowdKit(Recipe):
    """crowd-kit's tables: worker, left, right and label (the better of the two) are votes; task, worker and
    label are ratings of the tasks, with numbers as labels or with `grades`.
    """

    name = "crowd-kit"
    summary = "crowd-kit tables: worker, left, right, label; or task, worker, label"
    suffixes = (".csv", ".tsv", ".parquet")
    containers = frozenset({"table"})
    marks = ("worker left right label", "task worker label")

    def read_records(
        self,
        records: Iterator[Record],
        judgments: Judgments,
        *,
        query: str | None = None,
        grades: str | None = None,
    ) -> None:
        numbers = parse_grades(grades)
        for record in records:
            worker, place = record.read_id("worker", "expert"), read_query(record, query, None)
            if "left" in record.fields:
                ids = record.read_id("left", "item"), record.read_id("right", "item")
                side = _decode_side(record, record.get("label"), ids, ("left", "right"))
                judgments.add_vote(record, place, worker, ids, side)
            else:
                grade = parse_grade(record, record.get("label"), numbers, "label")
                judgments.add_rating(record, place, worker, record.read_id("task", "item"), grade)
