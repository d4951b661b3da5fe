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
from podium.formats import trec_large
from podium.formats.base import Content, Format
from podium.formats.text_ids import format_plain_ids
from podium.formats.text_lines import QRELS, RUN, parse_lines
from podium.kernels import segments
from podium.kernels.dispatch import B1, F8, I4, I8, is_large
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
        reading = None
        if duplicates == "error" and is_large(sum(s.estimated_rows for s in sources)):
            reading = trec_large.read_runs(sources, by, names)
        preferences, changed = reading or _read_small_runs(sources, by, names, duplicates)
        if order is None:
            _warn_of_disagreement(changed, sources)
        return Content(preferences=preferences.with_unlisted(unlisted))

    def write(self, content: Content) -> Iterator[bytes]:
        p = content.preferences
        if p is None or not p.lists.rows:
            raise InputError(
                "there are no lists to write", remedy="TREC runs store rankings; write labels as qrels"
            )
        unranked = len(p.index.items) - len(np.unique(p.lists.item))
        self.warn_of_omitted(
            labels=content.labels,
            features=content.features,
            comparisons=len(p.comparisons),
            items_nobody_ranks=unranked,
        )
        queries, experts = (
            format_plain_ids(p.queries, "query", self.name),
            format_plain_ids(p.experts, "expert", self.name),
        )
        items = format_plain_ids(p.index.items, "item", self.name, p.index.query_of_slot)
        return self._format_lines(p, queries, experts, items)

    def _format_lines(
        self, p: Preferences, queries: list[str], experts: list[str], items: list[str]
    ) -> Iterator[bytes]:
        t, scores = p.lists, p.lists.fill_scores(p.index.sizes)
        for begin in range(0, len(t), 2000):
            lines = []
            for k in range(begin, min(begin + 2000, len(t))):
                a, b = int(t.starts[k]), int(t.starts[k + 1])
                query, expert = queries[int(t.query_of_list[k])], experts[int(t.expert[k])]
                for i, r, s in zip(
                    t.item[a:b].tolist(), t.rank[a:b].tolist(), scores[a:b].tolist(), strict=True
                ):
                    lines.append(f"{query} Q0 {items[i]} {r} {s!r} {expert}\n")
            yield "".join(lines).encode()


class Qrels(Format):
    """TREC relevance judgments; ids are strings, grades are numbers and may be negative."""

    name = "qrels"
    holds = frozenset({"labels"})
    suffixes = (".qrels", ".qrel")
    summary = "TREC qrels: query 0 item grade"

    def sniff(self, head: bytes) -> float:
        lines = [line.split() for line in head.split(b"\n")[:50] if line.strip()]
        return 0.9 if lines and all(len(f) == 4 and _is_number(f[3]) for f in lines) else 0.0

    def read(self, sources: Sequence[Source]) -> Content:
        if is_large(sum(s.estimated_rows for s in sources)):
            labels = trec_large.read_qrels(sources)
            if labels is not None:
                return Content(labels=labels)
        rows = parse_lines(sources, QRELS)
        return Content(labels=Labels.from_rows(rows.query, rows.item, rows.score, origin=rows.origin))

    def write(self, content: Content) -> Iterator[bytes]:
        labels = content.labels
        if labels is None:
            raise InputError("there are no labels to write", remedy="qrels store labels; write lists as trec")
        unjudged = int(np.isnan(labels.grades).sum())
        self.warn_of_omitted(
            preferences=content.preferences, features=content.features, unjudged_items=unjudged
        )
        queries = format_plain_ids(labels.queries, "query", self.name)
        items = format_plain_ids(labels.index.items, "item", self.name, labels.index.query_of_slot)
        return self._format_lines(labels, queries, items)

    def _format_lines(self, labels: Labels, queries: list[str], items: list[str]) -> Iterator[bytes]:
        grades, query_of = labels.grades.tolist(), labels.index.query_of_slot.tolist()
        for begin in range(0, len(items), 100_000):
            block = range(begin, min(begin + 100_000, len(items)))
            lines = [
                f"{queries[query_of[k]]} 0 {items[k]} {_format_grade(grades[k])}\n"
                for k in block
                if grades[k] == grades[k]
            ]
            yield "".join(lines).encode()


def _format_grade(value: float) -> str:
    return repr(int(value)) if value == int(value) and abs(value) < 2**53 else repr(value)


def _is_number(token: bytes) -> bool:
    try:
        float(token)
    except ValueError:
        return False
    return True


def _read_small_runs(
    sources: Sequence[Source], order: RunOrder, names: Ids | None, duplicates: Duplicates
) -> tuple[Preferences, I8]:
    """Preferences, and the file of each list that is ranked by score instead of its ranks."""
    rows = parse_lines(sources, RUN, ranks=order != "score", lowest_rank=1 if order == "rank" else 0)
    query = code_ids(rows.query, "query")
    file = np.array(rows.file, np.int64)
    experts = code_ids(rows.expert, "expert") if names is None else CodedColumn(file, names)
    key = query.codes * max(len(experts.ids), 1) + experts.codes
    if len(sources) > 1:
        trec_large.refuse_same_run_twice(key, file, sources, query.ids, experts.ids)
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
    bad = np.unique(np.concatenate((k[1:][step], k[r < 1])))
    wrong: B1 = np.isin(key, bad)
    at = np.flatnonzero(wrong)
    at = at[np.lexsort((-score[at], key[at]))]
    settled = rank.copy()
    settled[at] = segments.competition_ranks(key[at], -score[at])
    return settled, at[np.unique(key[at], return_index=True)[1]]


def _warn_of_disagreement(file_of_list: I8, sources: Sequence[Source]) -> None:
    """Warn how many lists of which files are ranked by score, given the file of each list."""
    lists, files = len(file_of_list), np.unique(file_of_list)
    if not lists:
        return
    where = sources[int(files[0])].name
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
    warnings.warn(warning, stacklevel=4)
