"""Tables with named columns -> preferences and labels, for every table format."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from podium.core.errors import InputError, Option, ParameterError, PodiumWarning
from podium.data.building.validate import SELF_VOTE, Duplicates
from podium.data.column_roles import LIST_ROLES, VOTE_ROLES, assign_roles
from podium.data.features import Features
from podium.data.ids import CodedColumn, Id, Ids
from podium.data.ignored_columns import TableReading, warn_of_ignored_columns
from podium.data.labels import Labels
from podium.data.preferences import Preferences, Unlisted
from podium.data.vote_outcomes import (
    AnswerCodes,
    PairAnswers,
    VoteOutcomes,
    WinnerCodes,
    build_votes,
    decode_outcomes,
    parse_winner_codes,
    refuse_sides_as_items,
)
from podium.data.vote_table import VoteTable
from podium.formats.base import Content, Format, merge_contents
from podium.formats.file_table import FileTable, parse_all_numbers
from podium.formats.text_lines import parse_number_or_nan
from podium.formats.vote_attributes import build_vote_table, read_attributes
from podium.kernels.dispatch import F8
from podium.storage.files import Source, derive_expert_names, refuse_same_names

__all__ = ["TableFormat", "TableKind"]

TableKind = Literal["auto", "lists", "votes", "ratings", "labels", "features"]
_KINDS = ("auto", "lists", "votes", "ratings", "labels", "features")


class TableFormat(Format):
    """Base of CSV, JSONL and Parquet: named columns, recognized by common names.

    `kind` is detected from the columns: votes (winner and loser, or two items and the winner), lists (item
    with rank or score), ratings, or labels (item and grade, no expert); `features` reads every column but
    query, item and grade as a feature and must be set explicitly. Each role takes a column name, or '' for no
    such column. Without an expert column the expert is named after the file; without a query column there is
    one query, 'all'. A warning names columns that look like queries, experts or weights but are not read.
    `missing` lists the cells that mean "no value" (their rows are skipped); `self_votes="skip"` skips votes
    between an item and itself. `winner_codes` decodes winner cells that are neither ids nor words for a side:
    "1=a,2=b,0=tie" for codes, "1..2" for soft preferences between 1 (the first item) and 2 (the second).
    `attributes` names what else to read about each vote (a column, or a pair such as length_a and length_b).
    """

    holds = frozenset({"lists", "votes", "labels"})

    def read_table(
        self, source: Source, columns: Sequence[str] | None, delimiter: str | None, missing: frozenset[str]
    ) -> FileTable:
        """The columns of one file."""
        raise NotImplementedError

    def read(
        self,
        sources: Sequence[Source],
        *,
        kind: TableKind = "auto",
        columns: Sequence[str] | None = None,
        delimiter: str | None = None,
        missing: str | Sequence[str] | None = None,
        duplicates: Duplicates = "error",
        unlisted: Unlisted = "unknown",
        self_votes: Literal["error", "skip"] = "error",
        winner_codes: WinnerCodes | None = None,
        query: str | None = None,
        expert: str | None = None,
        item: str | None = None,
        rank: str | None = None,
        score: str | None = None,
        grade: str | None = None,
        winner: str | None = None,
        loser: str | None = None,
        item_a: str | None = None,
        item_b: str | None = None,
        tie: str | None = None,
        weight: str | None = None,
        seconds: str | None = None,
        attributes: Sequence[str] | None = None,
    ) -> Content:
        if kind not in _KINDS:
            raise ParameterError(f"kind is {kind!r}; accepted: {', '.join(_KINDS)}")
        if self_votes not in ("error", "skip"):
            raise ParameterError(f"self_votes is {self_votes!r}; accepted: error, skip")
        marks = frozenset([missing] if isinstance(missing, str) else missing or ())
        role_columns = {
            "query": query, "expert": expert, "item": item, "rank": rank, "score": score, "grade": grade,
            "winner": winner, "loser": loser, "item_a": item_a, "item_b": item_b, "tie": tie, "weight": weight,
            "seconds": seconds,
        }  # fmt: skip
        codes = parse_winner_codes(winner_codes)
        contents, unnamed = [], []
        for source, name in zip(sources, derive_expert_names(sources), strict=True):
            table = replace(self.read_table(source, columns, delimiter, marks), expert_name=name)
            roles = assign_roles(list(table.columns), role_columns, source.name)
            pair = ("winner", "loser") if "loser" in roles else ("item_a", "item_b")
            if self_votes == "skip" and set(pair) <= roles.keys():
                one, two = (table.columns[roles[role]] for role in pair)
                table = table.select_rows(np.flatnonzero([a != b for a, b in zip(one, two, strict=True)]))
            try:
                content = _read_content(table, roles, kind, duplicates, unlisted, codes, warn=missing is None)
            except InputError as error:
                if error.problem != SELF_VOTE:
                    raise
                remedy = (Option("self_votes", "skip"), " skips such votes")
                raise InputError(SELF_VOTE, source=error.source, line=error.line, remedy=remedy) from None
            if attributes is not None:
                content = replace(content, votes=_read_vote_table(table, roles, codes, attributes))
            contents.append(content)
            if (p := contents[-1].preferences) is not None:
                read = (*VOTE_ROLES, "seconds") if not p.lists.rows else (*LIST_ROLES, "grade", "seconds")
                used = {role: column for role, column in roles.items() if role in read}
                decided = [role for role, column in role_columns.items() if column is not None]
                warn_of_ignored_columns(TableReading(table.columns, used, decided, source.name))
            if "expert" not in roles and p is not None:
                unnamed.append((name, source))
        if unnamed:
            refuse_same_names(*zip(*unnamed, strict=True))
        return merge_contents(contents)


def _read_content(
    table: FileTable,
    roles: dict[str, str],
    kind: str,
    duplicates: Duplicates,
    unlisted: Unlisted,
    codes: AnswerCodes,
    *,
    warn: bool,
) -> Content:
    if kind == "auto":
        graded = "grade" in roles
        if "winner" in roles and ("loser" in roles or {"item_a", "item_b"} <= roles.keys()):
            kind = "votes"
        elif "item" in roles and ("rank" in roles or "score" in roles or (graded and "expert" in roles)):
            kind = "lists"
        elif "item" in roles and graded:
            kind = "labels"
        else:
            raise _unknown_kind_error(table, roles)
    if kind == "votes":
        table = _drop_incomplete_votes(table, roles)
        query, expert = _read_query_and_expert(table, roles)
        weight = table.read_numbers(roles["weight"], "weight") if "weight" in roles else None
        if "loser" in roles and "winner" in roles:
            tie = table.read_marks(roles["tie"]) if "tie" in roles else None
            one, two = _read_winners_and_losers(table, roles)
            votes = Preferences.from_comparisons(
                query, expert, one, two, tie=tie, weight=weight, origin=table.origin
            )
        else:
            items, outcomes = _read_pairs(table, roles, codes)
            votes = build_votes(query, expert, items, outcomes, weight, table.origin)
        return Content(
            preferences=votes, seconds=_read_seconds(table, roles, expert) if "seconds" in roles else None
        )
    if "item" not in roles:
        raise _columns_error(table, "no item column")
    if kind == "labels" and "grade" not in roles:
        raise _columns_error(table, "no grade column")
    if kind == "labels":
        return Content(labels=_read_labels(table, roles, warn))
    if kind == "features":
        labels = _read_labels(table, roles, warn) if "grade" in roles else None
        return Content(
            labels=labels, features=read_features(table, roles, _read_query_and_expert(table, roles)[0])
        )
    if "items" not in roles and "rank" not in roles and "score" not in roles and "grade" in roles:
        roles = {**roles, "score": roles["grade"]}
        roles.pop("grade")
    if "rank" not in roles and "score" not in roles:
        raise _columns_error(table, "no rank or score column")
    lists = _read_lists(table, roles, duplicates, unlisted, warn)
    labels = _read_labels(table, roles, warn) if "grade" in roles else None
    seconds = None
    if "seconds" in roles:  # of all rows, those without a rank too
        seconds = _read_seconds(table, roles, _read_query_and_expert(table, roles)[1])
    return Content(lists, labels, seconds=seconds)


def _drop_incomplete_votes(table: FileTable, roles: dict[str, str]) -> FileTable:
    """The votes whose items, winner and weight are given; the option `missing` names the cells that are not."""
    for role in ("winner", "loser", "item_a", "item_b", "weight"):
        if role in roles:
            table = table.drop_missing(roles[role])
    return table


def _read_winners_and_losers(table: FileTable, roles: dict[str, str]) -> tuple[CodedColumn, CodedColumn]:
    one, two = table.read_ids(roles["winner"], "winner"), table.read_ids(roles["loser"], "loser")
    refuse_sides_as_items(one, two, (roles["winner"], roles["loser"]), table.source.name)
    return one, two


def _read_pairs(
    table: FileTable, roles: dict[str, str], codes: AnswerCodes
) -> tuple[tuple[CodedColumn, CodedColumn], VoteOutcomes]:
    """The two items of each row, and who won."""
    for role in ("item_a", "item_b", "winner"):
        if role not in roles:
            listed = ", ".join(map(repr, table.columns))
            raise table.source.error(
                f"votes need a column {role}; the columns are {listed}",
                1,
                ("give ", Option(role), ", or ", Option("winner"), " and ", Option("loser")),
            )
    names = roles["item_a"], roles["item_b"]
    items = table.read_ids(names[0], "item_a"), table.read_ids(names[1], "item_b")
    first, second, answers = (table.columns[name] for name in (*names, roles["winner"]))
    outcomes = decode_outcomes(
        PairAnswers(first, second, answers, names),
        codes,
        table.error,
        (Option("missing", ""), " skips rows without an answer; name the cell there where it is not empty"),
    )
    if "tie" in roles:
        outcomes = outcomes._replace(tie=outcomes.tie | table.read_marks(roles["tie"])[outcomes.row])
    return items, outcomes


def _read_vote_table(
    table: FileTable, roles: dict[str, str], codes: AnswerCodes, attributes: Sequence[str]
) -> VoteTable:
    """The votes of a table one by one, with attributes."""
    if "winner" not in roles:
        raise table.source.error("attributes belong to votes, and this table has no winner", 1)
    table = _drop_incomplete_votes(table, roles)
    query, expert = _read_query_and_expert(table, roles)
    weight = table.read_numbers(roles["weight"], "weight") if "weight" in roles else None
    sides_known = "loser" not in roles
    if sides_known:
        items, outcomes = _read_pairs(table, roles, codes)
    else:
        items, n = _read_winners_and_losers(table, roles), len(table)
        tie = table.read_marks(roles["tie"]) if "tie" in roles else np.zeros(n, np.bool_)
        outcomes = VoteOutcomes(np.arange(n), np.zeros(n, np.bool_), tie, np.ones(n))
    columns = read_attributes(table, attributes)
    return build_vote_table(items, outcomes, query, expert, weight, columns, sides_known=sides_known)


def _unknown_kind_error(table: FileTable, roles: dict[str, str]) -> InputError:
    """What is missing from a table whose columns are known in part; all columns where none is that matters."""
    choices: tuple[str, ...]
    if "item" in roles:
        missing, choices = "rank, score or grade", ("score", "rank", "grade")
    elif {"item_a", "item_b"} <= roles.keys() or "loser" in roles:
        missing, choices = "winner", ("winner",)
    elif "winner" in roles:
        missing, choices = "loser", ("loser",)
    else:
        return _columns_error(table, "the columns are not those of lists, votes, ratings or labels")
    known = ", ".join(f"{role} is {column!r}" for role, column in roles.items())
    others = [name for name in list(table.columns)[:20] if name not in roles.values()]
    example = others[0] if len(others) == 1 else "..."
    remedy = [part for role in choices for part in (Option(role, example), " or ")][:-1]
    if missing == "loser":
        remedy += [", or both items with ", Option("item_a", "..."), " and ", Option("item_b", "...")]
    rest = ", ".join(map(repr, others)) or "none"
    return table.source.error(
        f"no {missing} column: {known}; other columns: {rest}", 1, ("name it with ", *remedy)
    )


def _columns_error(table: FileTable, problem: str) -> InputError:
    names = ", ".join(map(repr, list(table.columns)[:12]))
    example = [part for role in ("query", "expert", "item", "rank") for part in (Option(role, "..."), ", ")]
    rest = ("; ", Option("columns"), " names the columns of a file without a header")
    remedy = ("name them, for example ", *example[:-1], *rest)
    return table.source.error(f"{problem}: {names}", 1, remedy)


def _read_query_and_expert(table: FileTable, roles: dict[str, str]) -> tuple[CodedColumn, CodedColumn]:
    """The query and expert columns, or one query or expert for all rows."""
    n = len(table)
    defaults = {"query": "all", "expert": table.expert_name}
    columns = []
    for role, name in defaults.items():
        if role in roles:
            columns.append(table.read_ids(roles[role], role))
        else:
            columns.append(CodedColumn(np.zeros(n, np.int64), Ids([name] if n else [])))
    return columns[0], columns[1]


def _read_lists(
    table: FileTable, roles: dict[str, str], duplicates: Duplicates, unlisted: Unlisted, warn: bool
) -> Preferences:
    needed = roles.get("rank", roles.get("score"))
    assert needed is not None
    table = table.drop_missing(needed)
    q, e = _read_query_and_expert(table, roles)
    rank = table.read_numbers(roles["rank"], "rank") if "rank" in roles else None
    score = None
    if "score" in roles:
        # beside ranks, scores may be empty
        read_scores = table.read_numbers if rank is None else table.read_numbers_or_nan
        score = read_scores(roles["score"], "score")
        if rank is None and warn:
            _warn_of_minus_one(score, roles["score"], table)
    if rank is not None and score is not None:
        empty = np.isnan(score)
        key = q.codes * max(len(e.ids), 1) + e.codes
        if len(mixed := np.flatnonzero(empty & np.isin(key, key[~empty]))):
            problem = "the score is missing, but other rows of this list have one"
            raise table.error(int(mixed[0]), problem, "give all or none")
    return Preferences.from_rows(
        q,
        e,
        table.read_ids(roles["item"], "item"),
        rank=rank,
        score=None if score is None or np.isnan(score).all() else score,
        duplicates=duplicates,
        unlisted=unlisted,
        blank_scores=True,
        origin=table.origin,
    )


def read_features(table: FileTable, roles: Mapping[str, str], query: CodedColumn) -> Features:
    """All columns other than query, item and grade; empty cells are missing values."""
    taken = {roles.get(role) for role in ("query", "item", "grade")}
    names = [name for name in table.columns if name not in taken]
    if not names:
        raise _columns_error(table, "no feature column")
    values = np.stack([table.read_numbers_or_nan(name, f"feature {name!r}") for name in names], axis=1)
    return Features.from_rows(
        query, table.read_ids(roles["item"], "item"), values, names, origin=table.origin
    )


def _read_seconds(table: FileTable, roles: dict[str, str], expert: CodedColumn) -> dict[Id, F8]:
    """The duration of each expert's judgements; cells without a number are skipped."""
    cells = table.columns[roles["seconds"]]
    given = parse_all_numbers(cells)
    if given is None:
        given = np.array([parse_number_or_nan(str(v)) for v in cells], np.float64)
    known = np.flatnonzero(np.isfinite(given))
    known = known[np.argsort(expert.codes[known], kind="stable")]
    ends = np.searchsorted(expert.codes[known], np.arange(len(expert.ids) + 1))
    return {who: given[known[ends[k] : ends[k + 1]]] for k, who in enumerate(expert.ids.tolist())}


def _read_labels(table: FileTable, roles: dict[str, str], warn: bool) -> Labels:
    """Grades; the same grade in the rows of several experts counts once."""
    table = table.drop_missing(roles["grade"])
    grade = table.read_numbers(roles["grade"], "grade")
    if warn:
        _warn_of_minus_one(grade, roles["grade"], table)
    q, i = _read_query_and_expert(table, roles)[0], table.read_ids(roles["item"], "item")
    if "expert" not in roles:
        return Labels.from_rows(q, i, grade, origin=table.origin)
    pair = q.codes * max(len(i.ids), 1) + i.codes
    _, first, inverse = np.unique(pair, return_index=True, return_inverse=True)
    differ = np.flatnonzero(grade != grade[first][inverse])
    if len(differ):
        k = int(differ[0])
        raise table.error(
            k,
            f"the grade of item {i.ids[int(i.codes[k])]!r} differs from an earlier row",
            ("an item has one grade; ignore the column with ", Option("grade", "")),
        )
    first = np.sort(first)
    return Labels.from_rows(
        CodedColumn(q.codes[first], q.ids), CodedColumn(i.codes[first], i.ids), grade[first]
    )


def _warn_of_minus_one(values: F8, name: str, table: FileTable) -> None:
    """-1 among otherwise non-negative numbers often means "unknown"; it is kept, with a warning."""
    if len(values) and (values == -1).any() and (values[values != -1] >= 0).all():
        count = int((values == -1).sum())
        where = f"{table.source.name}: {count} of {len(values)} values in {name!r}"
        unknown = f"{where} are -1 and are read as the number -1; if -1 means 'unknown', give "
        meant = (Option("missing", "-1"), "; if it is a real value, give ", Option("missing", ()))
        warning = PodiumWarning(unknown, *meant)
        warnings.warn(warning, stacklevel=5)
