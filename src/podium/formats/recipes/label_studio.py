"""Label Studio exports: pairwise, ranker and rating results, as JSON and as JSON_MIN."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from podium.core.errors import InputError, Option
from podium.core.text import join_names
from podium.data.building.validate import check_choice
from podium.data.ids import Id
from podium.data.vote_outcomes import SIDES
from podium.formats.recipes.judgments import Judgments
from podium.formats.recipes.recipe import (
    Recipe,
    find_pair,
    find_query_key,
    read_expert,
    read_query,
    split_keys,
)
from podium.formats.recipes.records import Record, to_id

__all__ = ["LabelStudio"]

_KINDS = ("selected", "ranker", "rating")
_TASK_KEYS = {
    "id", "annotator", "annotation_id", "created_at", "updated_at", "lead_time", "completed_by", "inner_id", "history",
}  # fmt: skip


class LabelStudio(Recipe):
    """Label Studio exports. Annotations that were cancelled are dropped, and so are ground-truth annotations,
    unless `ground_truth="keep"`.

    `question` is the name of the control (`from_name`) where a project has several; `query` and `items` are
    keys such as data.prompt and data.answer_a,data.answer_b, and `buckets` lists the buckets of a ranker from
    best to worst.
    """

    name = "label-studio"
    summary = "Label Studio exports (JSON, JSON_MIN): pairwise, ranker, rating"
    suffixes = (".json",)
    marks = ("data annotations", "annotation_id annotator lead_time")

    def matches(self, fields: Mapping[str, Any]) -> bool:
        full = isinstance(fields.get("data"), dict) and isinstance(fields.get("annotations"), list)
        return full or {"annotation_id", "annotator", "lead_time"} <= fields.keys()

    def read_records(
        self,
        records: Iterator[Record],
        judgments: Judgments,
        *,
        query: str | None = None,
        items: str | None = None,
        expert: str | None = None,
        question: str | None = None,
        ground_truth: Literal["drop", "keep"] = "drop",
        buckets: str | None = None,
    ) -> None:
        check_choice("ground_truth", ground_truth, ("drop", "keep"))
        reading = _Reading(judgments, query, split_keys(items), expert, question, split_keys(buckets))
        for record in records:
            if not isinstance(record.get("data"), dict):
                reading.add_minimal(record)
                continue
            annotations = record.get("annotations")
            for annotation in annotations if isinstance(annotations, list) else ():
                if not isinstance(annotation, dict):
                    raise record.error("an annotation is not an object", "export the project as JSON again")
                if annotation.get("was_cancelled"):
                    judgments.drop("cancelled annotation")
                elif annotation.get("ground_truth") and ground_truth == "drop":
                    judgments.drop("ground-truth annotation")
                else:
                    reading.add_annotation(record, annotation)
            if not annotations:
                judgments.drop("task without annotation")


@dataclass(frozen=True)
class _Reading:
    """The options of a call, and what they mean for a task."""

    judgments: Judgments
    query: str | None
    items: tuple[str, ...]
    expert: str | None
    question: str | None
    buckets: tuple[str, ...]

    def add_annotation(self, record: Record, annotation: Mapping[str, Any]) -> None:
        """Add the results of one annotation of a JSON export."""
        results = [r for r in annotation.get("result") or () if isinstance(r, dict)]
        if not results:
            self.judgments.drop("empty annotation")
            return
        known = Record(
            record.source, record.line, record.element, {**record.fields, "annotation": annotation}
        )
        who = read_expert(known, self.expert, ("annotation.completed_by",), self.judgments)
        values = [(str(r.get("from_name", "")), r.get("to_name"), r.get("value")) for r in results]
        data = {f"data.{name}": value for name, value in record.fields["data"].items()}
        self._add_results(record, who, values, data)

    def add_minimal(self, record: Record) -> None:
        """Add the one annotation of a JSON_MIN task: results are fields beside the data."""
        who = read_expert(record, self.expert, ("annotator",), self.judgments)
        self.judgments.note("JSON_MIN does not mark ground truth")
        values, data = [], {}
        for name, field in record.fields.items():
            one = field[0] if isinstance(field, list) and field else field
            if isinstance(one, dict) and any(kind in one for kind in _KINDS):
                values += [(name, None, value) for value in (field if isinstance(field, list) else [field])]
            elif name not in _TASK_KEYS:
                data[name] = field
        if not values:
            self.judgments.drop("empty annotation")
            return
        self._add_results(record, who, values, data)

    def _add_results(
        self, record: Record, who: Id, values: list[tuple[str, Any, Any]], data: Mapping[str, Any]
    ) -> None:
        usable = [v for v in values if isinstance(v[2], dict) and any(kind in v[2] for kind in _KINDS)]
        if self.question is not None:
            usable = [v for v in usable if v[0] == self.question]
        if len(values) > len(usable):
            self.judgments.drop("result of another kind", len(values) - len(usable))
        names = list(dict.fromkeys(name for name, _, _ in usable))
        targets = [str(to) for _, to, _ in usable]
        if len(names) > 1 and len(set(targets)) < len(targets):
            remedy = ("choose one of them, ", Option("question", *names))
            raise record.error(f"several controls have results: {join_names(names)}", remedy)
        for _, target, value in usable:
            if "selected" in value:
                self._add_pair(record, who, value["selected"], data)
            elif "ranker" in value:
                self._add_ranking(record, who, value["ranker"], data)
            else:
                self._add_rating(record, who, value["rating"], target, data, several=len(usable) > 1)

    def _add_pair(self, record: Record, who: Id, selected: Any, data: Mapping[str, Any]) -> None:
        side = SIDES.get(str(selected).lower())
        if side is None:
            raise record.error(f"the selected side is {selected!r}"[:120], "accepted: left, right")
        keys = self.items or find_pair(data)
        if keys is None or len(keys) != 2:
            raise self._error(record, "cannot tell which fields are the two items", data, 2)
        pair = record.read_id(keys[0], "item"), record.read_id(keys[1], "item")
        self.judgments.note(f"items are {keys[0]} and {keys[1]}")
        self.judgments.add_vote(record, self._read_query(record, data, keys), who, pair, side)

    def _add_ranking(self, record: Record, who: Id, ranker: Any, data: Mapping[str, Any]) -> None:
        if isinstance(ranker, dict) and len(ranker) > 1 and not self.buckets:
            remedy = ("list them from best to worst, ", Option("buckets", ",".join(ranker)), ", or name one")
            raise record.error(f"the ranker has the buckets {join_names(list(ranker))}", remedy)
        if isinstance(ranker, dict):
            wanted = (
                [ranker.get(name, []) for name in self.buckets] if self.buckets else list(ranker.values())
            )
        else:
            wanted = [ranker]
        if not all(isinstance(bucket, list) for bucket in wanted):
            raise record.error(
                "the ranker's value is not a list of items", "export the project as JSON again"
            )
        order = [item for bucket in wanted for value in bucket if (item := to_id(value)) is not None]
        if not order:
            self.judgments.drop("empty ranking")
            return
        # the items of a task are its own, so that a task without a query is one
        query = self.query or find_query_key(data) or "id"
        self.judgments.add_ranking(record, read_query(record, query, None), who, [[item] for item in order])

    def _add_rating(
        self, record: Record, who: Id, rating: Any, target: Any, data: Mapping[str, Any], *, several: bool
    ) -> None:
        score = record.parse_number(rating, "rating")
        name = target[0] if isinstance(target, list) and target else target
        keys = self.items
        if not keys and several and name is not None:
            keys = (f"data.{name}",) if f"data.{name}" in data else ()
            if not keys:  # the object that was rated is known by its name alone
                query = self._read_query(record, data, ())
                self.judgments.add_rating(record, query, who, str(name), score)
                return
        if not keys:
            keys = tuple(key for key in data if key != find_query_key(data) and key != self.query)
        if len(keys) != 1:
            raise self._error(record, "cannot tell which field is the item", data, 1)
        self.judgments.note(f"items are {keys[0]}")
        query = self._read_query(record, data, keys)
        self.judgments.add_rating(record, query, who, record.read_id(keys[0], "item"), score)

    def _read_query(self, record: Record, data: Mapping[str, Any], items: tuple[str, ...]) -> Id:
        key = find_query_key(name for name in data if name not in items)
        if self.query is None:
            self.judgments.note(
                "no field names the query: one query" if key is None else f"queries are {key}"
            )
        return read_query(record, self.query, key)

    def _error(self, record: Record, problem: str, data: Mapping[str, Any], count: int) -> InputError:
        example = ",".join(list(data)[:count]) if len(data) >= count else "..."
        remedy = ("name the keys, such as ", Option("items", example))
        return record.error(f"{problem} among {join_names(list(data), 12)}", remedy)
