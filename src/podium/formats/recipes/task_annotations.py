"""Annotated tasks, one per line: Prodigy's choice interface, doccano."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from podium.core.errors import Option
from podium.formats.recipes.judgments import Judgments
from podium.formats.recipes.recipe import (
    Recipe,
    parse_grade,
    parse_grades,
    read_expert,
    read_query,
    split_keys,
)
from podium.formats.recipes.records import Record, find_value, to_id

__all__ = ["Doccano", "Prodigy"]


class Prodigy(Recipe):
    """Prodigy's choice interface: the accepted options rank above the others. Two options are a vote; more
    are a ranking with two places, the accepted options before all others. Tasks that were rejected or ignored
    are dropped.

    Every task is a query, named by its text (or prompt); `items` is the key of an item in an option, `id` by
    default.
    """

    name = "prodigy"
    summary = "Prodigy annotations with options (choice)"
    suffixes = (".jsonl",)
    marks = ("options answer accept",)

    def matches(self, fields: Mapping[str, Any]) -> bool:
        return isinstance(fields["options"], list)

    def read_records(
        self,
        records: Iterator[Record],
        judgments: Judgments,
        *,
        query: str | None = None,
        items: str | None = None,
        expert: str | None = None,
    ) -> None:
        (key,) = split_keys(items, 1) or ("id",)
        for record in records:
            if record.get("answer") != "accept":
                judgments.drop(f"{'rejected' if record.get('answer') == 'reject' else 'ignored'} task")
                continue
            options, accepted = record.get("options"), record.get("accept")
            if not isinstance(options, list) or not isinstance(accepted, list):
                raise record.error(
                    "options or accept is not a list", "a task has options and those that were accepted"
                )
            ids = [(find_value(option, "id"), to_id(find_value(option, key))) for option in options]
            if any(item is None for _, item in ids):
                raise record.error(
                    f"an option has no {key}", ("name the key of the items, ", Option("items"))
                )
            better = [item for own, item in ids if own in accepted and item is not None]
            worse = [item for own, item in ids if own not in accepted and item is not None]
            if not better or not worse:
                judgments.drop("task without preference")
                continue
            task = next(
                (name for name in ("prompt", "text", "_input_hash") if record.get(name) is not None), None
            )
            place = (
                read_query(record, query, task),
                read_expert(record, expert, ("_annotator_id", "_session_id"), judgments),
            )
            if len(ids) == 2:
                pair = (ids[0][1], ids[1][1])
                judgments.add_vote(record, *place, pair, "a" if pair[0] == better[0] else "b")  # type: ignore[arg-type]
            else:
                judgments.add_ranking(record, *place, [better, worse])


class Doccano(Recipe):
    """doccano's classification: the label of a document is its grade, a number, or a category whose number
    `grades` gives. A file holds the annotations of one user, who has the name of the file.
    """

    name = "doccano"
    summary = "doccano document classification: labels are grades"
    suffixes = (".jsonl", ".json")
    marks = ("id label*",)

    def matches(self, fields: Mapping[str, Any]) -> bool:
        label = fields.get("label", fields.get("labels"))
        plain = isinstance(label, list) and all(isinstance(value, str | int | float) for value in label)
        return plain and bool({"text", "data", "filename"} & fields.keys())

    def read_records(
        self,
        records: Iterator[Record],
        judgments: Judgments,
        *,
        query: str | None = None,
        items: str | None = None,
        expert: str | None = None,
        grades: str | None = None,
    ) -> None:
        numbers = parse_grades(grades)
        (key,) = split_keys(items, 1) or ("id",)
        for record in records:
            labels = record.fields.get("label", record.fields.get("labels"))
            if not isinstance(labels, list):
                raise record.error("the labels are not a list", "export the project as JSONL")
            if not labels:
                judgments.drop("document without label")
                continue
            if len(labels) > 1:
                raise record.error("the document has several labels", "a grade is one label")
            who = read_expert(record, expert, ("username", "user", "annotator"), judgments)
            grade = parse_grade(record, labels[0], numbers, "label")
            judgments.add_rating(
                record, read_query(record, query, None), who, record.read_id(key, "item"), grade
            )
