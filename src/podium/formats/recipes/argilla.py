"""Argilla records: nested (`Record.to_dict`) and flat (`to_list(flatten=True)`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from podium.core.errors import Option
from podium.core.text import join_names
from podium.data.ids import Id
from podium.data.vote_outcomes import SIDES
from podium.formats.recipes.judgments import Judgments
from podium.formats.recipes.recipe import Recipe, find_pair, find_query_key, read_query, split_keys
from podium.formats.recipes.records import Record, to_id

__all__ = ["Argilla"]


class _Answer(NamedTuple):
    """The response of a user to a question; nested records do not keep the status."""

    value: Any
    user: Any
    status: str | None


class Argilla(Recipe):
    """Argilla records: a ranking question gives rankings, a rating question ratings, and a label question
    whose labels are sides or names of fields gives votes between two fields. Only submitted responses are
    read; nested records do not say whether a response was.

    `question` names the question where a record has several; suggestions are not read.
    """

    name = "argilla"
    summary = "Argilla records, nested or flat: rankings, ratings, labels of pairs"
    suffixes = (".json", ".jsonl", ".parquet")
    marks = ("fields responses", "*.responses.users")

    def matches(self, fields: Mapping[str, Any]) -> bool:
        nested = isinstance(fields.get("fields"), dict) and isinstance(fields.get("responses"), dict)
        return nested or any(name.endswith(".responses.users") for name in fields)

    def read_records(
        self,
        records: Iterator[Record],
        judgments: Judgments,
        *,
        query: str | None = None,
        items: str | None = None,
        question: str | None = None,
    ) -> None:
        for record in records:
            nested = isinstance(record.get("fields"), dict)
            answers = _read_nested(record) if nested else _read_flat(record)
            texts = record.get("fields") if nested else record.fields
            if nested:
                data = [f"fields.{name}" for name in texts]
            else:  # names without a dot that are not those of the record itself
                data = [n for n in texts if "." not in n and n not in ("id", "status", "_server_id")]
            suggested = (
                record.get("suggestions") if nested else [n for n in texts if n.endswith(".suggestion")]
            )
            if suggested:
                judgments.drop("suggestion", len(suggested))
            if nested:
                judgments.note("nested records do not say which responses were discarded")
            chosen = _choose_question(record, answers, question, judgments)
            if chosen is None:
                judgments.drop("record without response")
                continue
            for answer in answers[chosen]:
                if answer.status not in (None, "submitted"):
                    judgments.drop(f"{answer.status} response")
                elif answer.value is not None:
                    user = to_id(answer.user)
                    who = judgments.expert if user is None else user
                    _add_answer(record, judgments, answer.value, who, query, split_keys(items), data)


def _read_nested(record: Record) -> dict[str, list[_Answer]]:
    answers: dict[str, list[_Answer]] = {}
    for question, responses in (record.get("responses") or {}).items():
        if not isinstance(responses, list) or not all(isinstance(r, dict) for r in responses):
            raise record.error(
                f"the responses to {question} are not a list of objects", "export the records again"
            )
        answers[question] = [_Answer(r.get("value"), r.get("user_id"), r.get("status")) for r in responses]
    return answers


def _read_flat(record: Record) -> dict[str, list[_Answer]]:
    answers: dict[str, list[_Answer]] = {}
    for name, values in record.fields.items():
        if not name.endswith(".responses") or values is None:
            continue
        users, statuses = (record.fields.get(f"{name}.{part}") for part in ("users", "status"))
        count = len(values) if isinstance(values, list) else -1
        users = [None] * count if users is None else users
        statuses = [None] * count if statuses is None else statuses
        if any(not isinstance(column, list) or len(column) != count for column in (users, statuses)):
            raise record.error(f"{name} and its users differ in length", "export the records again")
        answers[name.removesuffix(".responses")] = list(map(_Answer, values, users, statuses))
    return answers


def _choose_question(
    record: Record, answers: Mapping[str, list[_Answer]], question: str | None, judgments: Judgments
) -> str | None:
    """The question to read: the named one, or the only ranking, or the only other one."""
    if question is not None:
        return question if question in answers else None
    with_answers = [
        name for name, given in answers.items() if any(answer.value is not None for answer in given)
    ]
    rankings = [n for n in with_answers if isinstance(answers[n][0].value, list)]
    candidates = rankings if len(rankings) == 1 else with_answers
    if len(candidates) > 1:
        remedy = ("choose one of them, ", Option("question", *candidates))
        raise record.error(f"several questions have responses: {join_names(candidates)}", remedy)
    if candidates:
        others = (
            f", not {join_names([n for n in with_answers if n != candidates[0]])}"
            if len(with_answers) > 1
            else ""
        )
        judgments.note(f"the question is {candidates[0]}{others}")
    return candidates[0] if candidates else None


def _add_answer(
    record: Record,
    judgments: Judgments,
    value: Any,
    who: Id,
    query: str | None,
    items: tuple[str, ...],
    data: list[str],
) -> None:
    if isinstance(value, list):
        groups: dict[float, list[Id]] = {}
        for place, entry in enumerate(value, 1):
            # older versions write objects with a rank, equal ranks for ties
            ranked = isinstance(entry, dict)
            item = to_id(entry.get("value") if ranked else entry)
            if item is None:
                raise record.error("a ranking contains nothing", "every place of a ranking names an item")
            rank = record.parse_number(entry.get("rank"), "rank") if ranked else place
            groups.setdefault(rank, []).append(item)
        task = read_query(record, query or find_query_key(data) or "id", None)
        judgments.add_ranking(record, task, who, [groups[rank] for rank in sorted(groups)])
        return
    if isinstance(value, int | float):
        key = find_query_key(data)
        keys = items or tuple(name for name in data if name not in (key, query))
        if len(keys) != 1:
            keys = ("id",)
        judgments.note(f"items are {keys[0]}")
        judgments.add_rating(
            record, read_query(record, query, key), who, record.read_id(keys[0], "item"), float(value)
        )
        return
    pair = items or find_pair(data) or ()
    names = [name.removeprefix("fields.") for name in pair]
    side = "a" if value in names[:1] else "b" if value in names[1:] else SIDES.get(str(value).lower())
    if len(pair) != 2 or side is None:
        remedy = ("name the fields of the two items, ", Option("items"), ", or another ", Option("question"))
        raise record.error(f"the label {value!r} is not one of two items"[:160], remedy)
    ids = record.read_id(pair[0], "item"), record.read_id(pair[1], "item")
    judgments.note(f"items are {pair[0]} and {pair[1]}")
    judgments.add_vote(record, read_query(record, query, find_query_key(data)), who, ids, side)
