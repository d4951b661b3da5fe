"""TREC runs (`query Q0 item rank score tag`) and qrels (`query 0 item grade`)."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from typing import Literal

import numpy as np

from podium.core.errors import InputError, Option, PodiumWarning
from podium.data.building.validate import Duplicates, check_choice
from podium.data.ids import CodedColumn, Ids, code_ids
from podium.data.labels import Labels
from podium.data.preferences import Preferences, Unlisted
from podium.formats import trec_columns
from podium.formats.base import Content, Format
from podium.formats.table_writing import CellColumn, format_rows
from podium.formats.text_ids import encode_plain_ids
from podium.formats.text_lines import QRELS, RUN, parse_lines
from podium.kernels import segments
from podium.kernels.dispatch import B1, F8, I4, I8
from podium.storage.files import Source, derive_distinct_names

__all__ = ["Qrels", "TrecRun"]

RunOrder = Literal["auto", "rank", "score"]
ExpertSource = Literal["tag", "file"]


class TrecRun(Format):
    """TREC run files; ids are strings.

    `expert` names a list by its tag or by its file. `order` selects the column that ranks: `rank`, `score`
    (as in trec_eval: items with equal scores are tied), or `auto`, which keeps the ranks of each list whose
    scores agree with them and ranks the others by score. Without `order`, lists are read as with `auto`, and
    a warning states how many are ranked by score. Items that a run does not list were not retrieved and rank
    below all listed ones, unless `unlisted="unknown"` is given.
    """

    name = "trec"
    holds = frozenset({"lists"})
    suffixes = (".run", ".trec", ".runs", ".res")
    summary = "TREC run: query Q0 item rank score tag"

    def sniff(self, head: bytes) -> float:
        lines = [line.split() for line in head.split(b"\n")[:50] if line.strip()]
        good = all(len(f) == 6 and _is_number(f[3]) and _is_number(f[4]) for f in lines)
        return 0.95 if lines and good else 0.0

    def read(
        self,
        sources: Sequence[Source],
        *,
        order: RunOrder | None = None,
        expert: ExpertSource = "tag",
        unlisted: Unlisted = "below",
        duplicates: Duplicates = "error",
    ) -> Content:
        by = order or "auto"
        check_choice("order", by, ("auto", "rank", "score"))
        check_choice("expert", expert, ("tag", "file"))
        names = Ids(derive_distinct_names(sources)) if expert == "file" else None
        reading = trec_columns.read_runs(sources, by, names) if duplicates == "error" else None
        preferences, changed = reading or _read_runs_by_line(sources, by, names, duplicates)
        if order is None and len(changed):
            lists, files = len(changed), sorted(set(changed.tolist()))
            where = sources[files[0]].name
            if len(files) > 1:
                where += f" and {len(files) - 1} more of the {len(sources)} files"
            warning = PodiumWarning(
                f"{where}: the ranks of {lists} list{'s' if lists > 1 else ''} disagree with the scores or start at 0; "
                f"{'these are' if lists > 1 else 'this one is'} ranked by score, as trec_eval does (",
                Option("order", "auto"),
                " does the same without this warning; ",
                Option("order", "rank"),
                " keeps the ranks of every list)",
            )
            warnings.warn(warning, stacklevel=3)
        return Content(preferences=preferences.with_unlisted(unlisted))

    def write(self, content: Content) -> Iterator[bytes]:
        p = content.preferences
        if p is None or not p.lists.rows:
            raise InputError(
                "there are no lists to write", remedy="TREC runs store rankings; write labels as qrels"
            )
        unranked = len(p.index.items) - np.count_nonzero(np.bincount(p.lists.item))
        self.warn_of_omitted(
            labels=content.labels,
            features=content.features,
            comparisons=len(p.comparisons),
            items_nobody_ranks=unranked,
        )
        t = p.lists
        queries = encode_plain_ids(p.queries, "query", self.name)
        experts = encode_plain_ids(p.experts, "expert", self.name)
        items = encode_plain_ids(p.index.items, "item", self.name, p.index.query_of_slot)
        columns: list[CellColumn] = [
            CodedColumn(t.query_of_list[t.list_of_row], queries),
            _repeat_text("Q0", t.rows),
            CodedColumn(t.item.astype(np.int64), items),
            t.rank,
            t.fill_scores(p.index.sizes),
            CodedColumn(t.expert[t.list_of_row].astype(np.int64), experts),
        ]
        return format_rows(columns, " ")


class Qrels(Format):
    """TREC relevance judgements; ids are strings, grades are numbers and may be negative."""

    name = "qrels"
    holds = frozenset({"labels"})
    suffixes = (".qrels", ".qrel")
    summary = "TREC qrels: query 0 item grade"

    def sniff(self, head: bytes) -> float:
        lines = [line.split() for line in head.split(b"\n")[:50] if line.strip()]
        return 0.9 if lines and all(len(f) == 4 and _is_number(f[3]) for f in lines) else 0.0

    def read(self, sources: Sequence[Source]) -> Content:
        labels = trec_columns.read_qrels(sources)
        if labels is None:
            rows = parse_lines(sources, QRELS)
            labels = Labels.from_rows(rows.query, rows.item, rows.score, origin=rows.origin)
        return Content(labels=labels)

    def write(self, content: Content) -> Iterator[bytes]:
        labels = content.labels
        if labels is None:
            raise InputError("there are no labels to write", remedy="qrels store labels; write lists as trec")
        unjudged = int(np.isnan(labels.grades).sum())
        self.warn_of_omitted(
            preferences=content.preferences, features=content.features, unjudged_items=unjudged
        )
        queries = encode_plain_ids(labels.queries, "query", self.name)
        items = encode_plain_ids(labels.index.items, "item", self.name, labels.index.query_of_slot)
        judged = np.flatnonzero(~np.isnan(labels.grades))
        distinct, codes = np.unique(labels.grades[judged], return_inverse=True)
        # whole numbers have no decimal point
        whole = [grade == int(grade) and abs(grade) < 2**53 for grade in distinct.tolist()]
        values = [int(g) if is_whole else g for g, is_whole in zip(distinct.tolist(), whole, strict=True)]
        grades = Ids([repr(value) for value in values]).as_text
        assert grades is not None
        columns = [
            CodedColumn(labels.index.query_of_slot[judged], queries),
            _repeat_text("0", len(judged)),
            CodedColumn(judged, items),
            CodedColumn(codes, grades),
        ]
        return format_rows(columns, " ")


def _repeat_text(text: str, rows: int) -> CodedColumn:
    """A column with the same text in every row."""
    return CodedColumn(
        np.zeros(rows, np.int64),
        Ids.from_text(np.frombuffer(text.encode(), np.uint8), np.array([0, len(text)])),
    )


def _is_number(token: bytes) -> bool:
    try:
        float(token)
    except ValueError:
        return False
    return True


def _read_runs_by_line(
    sources: Sequence[Source], order: RunOrder, names: Ids | None, duplicates: Duplicates
) -> tuple[Preferences, I8]:
    """Preferences, and the file of each list that is ranked by score instead of its ranks."""
    rows = parse_lines(sources, RUN, ranks=order != "score", lowest_rank=1 if order == "rank" else 0)
    query = code_ids(rows.query, "query")
    file = np.array(rows.file, np.int64)
    experts = code_ids(rows.expert, "expert") if names is None else CodedColumn(file, names)
    key = query.codes * max(len(experts.ids), 1) + experts.codes
    if len(sources) > 1:
        trec_columns.refuse_same_run_twice(key, file, sources, query.ids, experts.ids)
    score, rank, changed = np.array(rows.score), None, np.zeros(0, np.int64)
    if order != "score":
        rank = np.array(rows.rank, np.int32)
    if rank is not None and order == "auto":
        rank, first = _rerank_by_score(key, rank, score)
        changed = file[first]
    made = Preferences.from_rows(
        query, experts, rows.item, rank=rank, score=score, origin=rows.origin, duplicates=duplicates
    )
    return made, changed


def _rerank_by_score(key: I8, rank: I4, score: F8) -> tuple[I4, I8]:
    """Ranks by score for lists (rows of one key) whose ranks disagree with the scores, and a row of each."""
    order = np.lexsort((rank, key))
    k, r, s = key[order], rank[order], score[order]
    same = k[1:] == k[:-1]
    step = same & ((s[1:] > s[:-1]) | ((r[1:] == r[:-1]) & (s[1:] != s[:-1])))
    bad = np.concatenate((k[1:][step], k[r < 1]))
    if not len(bad):
        return rank, np.zeros(0, np.int64)
    wrong: B1 = np.isin(key, bad)
    at = np.flatnonzero(wrong)
    at = at[np.lexsort((-score[at], key[at]))]
    settled = rank.copy()
    settled[at] = segments.competition_ranks(key[at], -score[at])
    return settled, at[np.unique(key[at], return_index=True)[1]]
