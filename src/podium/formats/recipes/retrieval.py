"""Runs and judgements of retrieval toolkits: ranx, BEIR, MS MARCO; responses of Elasticsearch and OpenSearch."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from podium.core.errors import InputError, Option
from podium.data.ids import CodedColumn
from podium.data.preferences import Preferences, Unlisted
from podium.formats.base import Content, Format
from podium.formats.recipes.judgments import Judgments
from podium.formats.recipes.recipe import Recipe, read_query, warn_of_guess
from podium.formats.recipes.records import Record, to_id
from podium.formats.table_writing import CellColumn, format_rows
from podium.formats.text_ids import encode_plain_ids, format_ids
from podium.storage.files import Source, derive_distinct_names

__all__ = ["Beir", "MsMarco", "RanxQrels", "RanxRun", "SearchResponse"]


def _holds_numbers(fields: Mapping[str, Any]) -> set[type]:
    """The types of the numbers in an object of objects of numbers; empty for any other object."""
    inner = list(fields.values())
    if not inner or not all(isinstance(items, dict) and items for items in inner):
        return set()
    kinds = {type(value) for items in inner for value in items.values()}
    return kinds if kinds <= {int, float} else set()


def _iterate_scores(record: Record) -> Iterator[tuple[str, str, float]]:
    for query, items in record.fields.items():
        if not isinstance(items, dict):
            raise record.error(f"query {query!r} has no items"[:120], "map queries to items to numbers")
        for item, value in items.items():
            if not query or not item:
                raise record.error("an id is empty", "every query and item needs an id")
            yield query, item, record.parse_number(value, f"number of item {item!r}")


class RanxRun(Recipe):
    """A run as JSON, `{query: {item: score}}`, as ranx saves it and BEIR returns it; the expert is the file."""

    name = "ranx"
    summary = "ranx Run as JSON: {query: {item: score}}"
    suffixes = (".json",)
    containers = frozenset({"json"})
    holds = frozenset({"lists"})
    unlisted = "below"

    def matches(self, fields: Mapping[str, Any]) -> bool:
        return float in _holds_numbers(fields)

    def read_records(self, records: Iterator[Record], judgments: Judgments) -> None:
        for record in records:
            for query, item, score in _iterate_scores(record):
                judgments.add_rating(record, query, judgments.expert, item, score)

    def write(self, content: Content) -> Iterator[bytes]:
        p = content.preferences
        if p is None or not p.lists.rows:
            raise InputError("there are no lists to write", remedy="a run stores the lists of one expert")
        if len(p.experts) != 1:
            raise InputError(
                f"a run stores one expert, not {len(p.experts)}", remedy="write a file per expert"
            )
        self.warn_of_omitted(labels=content.labels, features=content.features, comparisons=len(p.comparisons))
        queries = format_ids(p.queries, "query", self.name)
        items = format_ids(p.index.items, "item", self.name, p.index.query_of_slot)
        lists, scores = p.lists, p.lists.fill_scores(p.index.sizes)
        run: dict[str, dict[str, float]] = {query: {} for query in queries}
        for query, item, score in zip(
            lists.query_of_list[lists.list_of_row].tolist(), lists.item.tolist(), scores.tolist(), strict=True
        ):
            run[queries[query]][items[item]] = float(score)
        yield json.dumps(run, ensure_ascii=False).encode()


class RanxQrels(Recipe):
    """Judgements as JSON, `{query: {item: grade}}` with whole numbers, as ranx saves them."""

    name = "ranx-qrels"
    summary = "ranx Qrels as JSON: {query: {item: grade}}"
    suffixes = (".json",)
    containers = frozenset({"json"})
    holds = frozenset({"labels"})

    def matches(self, fields: Mapping[str, Any]) -> bool:
        return _holds_numbers(fields) == {int}

    def read_records(self, records: Iterator[Record], judgments: Judgments) -> None:
        for record in records:
            for query, item, grade in _iterate_scores(record):
                judgments.add_label(record, query, item, grade)
        judgments.note("whole numbers are grades; format ranx reads them as scores of a run")

    def write(self, content: Content) -> Iterator[bytes]:
        labels = content.labels
        if labels is None:
            raise InputError("there are no labels to write", remedy="write lists as ranx")
        self.warn_of_omitted(preferences=content.preferences, features=content.features)
        queries = format_ids(labels.queries, "query", self.name)
        items = format_ids(labels.index.items, "item", self.name, labels.index.query_of_slot)
        judged = np.flatnonzero(~np.isnan(labels.grades))
        qrels: dict[str, dict[str, int]] = {}
        for slot in judged.tolist():
            grade = float(labels.grades[slot])
            if not grade.is_integer():
                raise InputError(f"the grade {grade} is not a whole number", remedy="write qrels or csv")
            query = queries[int(labels.index.query_of_slot[slot])]
            qrels.setdefault(query, {})[items[slot]] = int(grade)
        yield json.dumps(qrels, ensure_ascii=False).encode()


class Beir(Recipe):
    """BEIR's judgements: a table of query-id, corpus-id and score."""

    name = "beir"
    summary = "BEIR qrels: query-id, corpus-id, score"
    suffixes = (".tsv",)
    marks = ("query-id corpus-id score",)
    holds = frozenset({"labels"})

    def read_records(self, records: Iterator[Record], judgments: Judgments) -> None:
        for record in records:
            query, item = (
                record.read_id(key, role) for key, role in (("query-id", "query"), ("corpus-id", "item"))
            )
            judgments.add_label(record, query, item, record.read_number("score", "grade"))

    def write(self, content: Content) -> Iterator[bytes]:
        labels = content.labels
        if labels is None:
            raise InputError("there are no labels to write", remedy="BEIR qrels store labels")
        self.warn_of_omitted(preferences=content.preferences, features=content.features)
        index, judged = labels.index, np.flatnonzero(~np.isnan(labels.grades))
        grades = labels.grades[judged]
        if any('"' in str(name) for ids in (labels.queries, index.items) for name in ids.tolist()):
            raise InputError("an id contains a quotation mark", remedy="rename it, or write qrels")
        whole = bool((grades == np.rint(grades)).all()) and bool((np.abs(grades) < 2**53).all())
        columns: list[CellColumn] = [
            CodedColumn(index.query_of_slot[judged], encode_plain_ids(labels.queries, "query", self.name)),
            CodedColumn(judged, encode_plain_ids(index.items, "item", self.name, index.query_of_slot)),
            grades.astype(np.int64) if whole else grades,
        ]
        yield b"query-id\tcorpus-id\tscore\n"
        yield from format_rows(columns, "\t")


class MsMarco(Format):
    """MS MARCO runs: lines of query, item and rank, without a header; the expert is the file."""

    name = "msmarco"
    summary = "MS MARCO run: query, item, rank"
    suffixes = (".tsv",)
    holds = frozenset({"lists"})

    def sniff(self, head: bytes) -> float:
        lines = [line.split() for line in head.split(b"\n")[:200] if line.strip()]
        if not lines or not all(len(line) == 3 and re.fullmatch(rb"[0-9]{1,9}", line[2]) for line in lines):
            return 0.0
        ranks: dict[bytes, int] = {}
        for query, _, rank in lines:
            if int(rank) != ranks.get(query, 0) + 1:
                return 0.0
            ranks[query] = int(rank)
        return 0.85

    def read(self, sources: Sequence[Source], *, unlisted: Unlisted = "below") -> Content:
        rows: list[tuple[tuple[str, int], str, str, str, int]] = []
        for source, name in zip(sources, derive_distinct_names(sources), strict=True):
            for line, text in source.iterate_lines():
                cells = text.decode().split()
                if len(cells) != 3 or not re.fullmatch("[0-9]{1,9}", cells[2]) or int(cells[2]) < 1:
                    raise source.error(f"{text[:60].decode(errors='replace')!r} is not a line of an MS MARCO run", line,
                                       "a line holds query, item and rank, 1 for the first")  # fmt: skip
                rows.append(((source.name, line), cells[0], name, cells[1], int(cells[2])))
        places, query, expert, item, rank = zip(*rows, strict=True)
        preferences = Preferences.from_rows(
            query, expert, item, rank=np.array(rank), unlisted=unlisted, origin=places.__getitem__
        )
        summary = f"{self.name}: the third column is the rank; {preferences!r}"
        return Content(preferences=preferences, summary=summary)

    def write(self, content: Content) -> Iterator[bytes]:
        p = content.preferences
        if p is None or not p.lists.rows:
            raise InputError("there are no lists to write", remedy="MS MARCO runs store rankings")
        if len(p.experts) != 1:
            raise InputError(
                f"a run stores one expert, not {len(p.experts)}", remedy="write a file per expert"
            )
        self.warn_of_omitted(labels=content.labels, features=content.features, comparisons=len(p.comparisons),
                             scores=p.lists.score is not None)  # fmt: skip
        t = p.lists
        items = encode_plain_ids(p.index.items, "item", self.name, p.index.query_of_slot)
        columns: list[CellColumn] = [
            CodedColumn(t.query_of_list[t.list_of_row], encode_plain_ids(p.queries, "query", self.name)),
            CodedColumn(t.item.astype(np.int64), items),
            t.rank,
        ]
        return format_rows(columns, "\t")


class SearchResponse(Recipe):
    """Responses of Elasticsearch and OpenSearch: the hits in the order of the engine.

    A response to `_msearch`, and a file with a response per line, hold one response per query: queries are
    numbered from 1, unless `query` is the key of an id beside the hits. The expert is the file.
    """

    name = "search-response"
    summary = "Elasticsearch and OpenSearch responses (hits, _msearch)"
    marks = ("hits", "responses")
    unlisted = "below"

    def matches(self, fields: Mapping[str, Any]) -> bool:
        responses = fields.get("responses")
        one = responses[0] if isinstance(responses, list) and responses else fields
        hits = one.get("hits") if isinstance(one, dict) else None
        return isinstance(hits, dict) and isinstance(hits.get("hits"), list)

    def read_records(
        self, records: Iterator[Record], judgments: Judgments, *, query: str | None = None
    ) -> None:
        number, first = 0, None
        for record in records:
            first = first or record
            responses = record.get("responses")
            for response in responses if isinstance(responses, list) else [record.fields]:
                number += 1
                here = Record(
                    record.source, record.line, record.element, response if isinstance(response, dict) else {}
                )
                hits = here.get("hits.hits")
                if not isinstance(hits, list):
                    judgments.drop("failed response")
                    continue
                if not hits:
                    judgments.drop("empty response")
                ids = [to_id(hit.get("_id")) if isinstance(hit, dict) else None for hit in hits]
                if None in ids:
                    raise here.error("a hit has no _id", "keep the _id of the hits")
                name = str(number) if query is None else read_query(here, query, None)
                judgments.add_ranking(record, name, judgments.expert, [[i] for i in ids if i is not None])
        if query is None and number > 1 and first is not None:
            judgments.note(f"queries are numbered 1 to {number:,}, in the order of the responses")
            warn_of_guess(
                first,
                "responses do not name their queries, which are numbered from 1; name the key of an id with ",
                Option("query"),
            )
