"""The only module that uses dataframe libraries: pandas, polars, pyarrow, anything narwhals supports."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from podium.core.errors import InputError, MessageText, ParameterError, PodiumWarning
from podium.core.optional import require_module
from podium.core.params import suggest_names
from podium.core.text import join_names
from podium.data.building.validate import Duplicates, check_numbers, check_tie_marks, row_origin
from podium.data.column_roles import LIST_ROLES, VOTE_ROLES, WORDS, assign_roles, normalize_name
from podium.data.ids import LAST_INTEGER, CodedColumn, Id, Ids, code_ids
from podium.data.ignored_columns import TableReading, warn_of_ignored_columns
from podium.data.preferences import Preferences
from podium.data.vote_outcomes import (
    AnswerCodes,
    PairAnswers,
    WinnerCodes,
    build_votes,
    decode_outcomes,
    parse_winner_codes,
    refuse_sides_as_items,
)
from podium.data.wide_tables import (
    LIST_CELL_ROLES,
    CellValues,
    WideColumns,
    build_from_list_cells,
    build_wide,
    find_wide_columns,
)
from podium.kernels.dispatch import I8

if TYPE_CHECKING:
    from podium.data.consensus import Consensus
    from podium.data.index import ItemIndex
    from podium.data.labels import Labels
    from podium.data.preferences import Unlisted

__all__ = [
    "FrameBackend",
    "check_parameters",
    "comparisons_frame",
    "consensus_frame",
    "labels_frame",
    "lists_frame",
    "read_labels",
    "read_preferences",
    "records_frame",
    "values_frame",
]

FrameBackend = Literal["pyarrow", "pandas", "polars"]
PARAMETERS = tuple(dict.fromkeys((*LIST_ROLES, *VOTE_ROLES)))


def read_preferences(
    frame: Any,
    *,
    duplicates: Duplicates = "error",
    unlisted: Unlisted = "unknown",
    winner_codes: WinnerCodes | None = None,
    experts: Sequence[str] | None = None,
    values: CellValues | None = None,
    **columns: str | None,
) -> Preferences:
    """Lists or comparisons, depending on the columns: query, expert, item with rank and/or score for lists;
    query, expert, winner and loser, or item_a, item_b and winner, with tie and weight, for comparisons.

    `items` may hold complete lists, best first, beside `ranks` or `scores`. A wide table has a row per item and
    a column per expert (`experts`), whose `values` are "scores" or "ranks" and may be missing. A frame is anything
    that narwhals reads (pandas, polars, pyarrow, DuckDB) or that has `__arrow_c_stream__`.

    A role takes a column name, such as `query="topic"`, or None for no such column; otherwise the column is
    matched by name, as in files. `query=None` or `expert=None` mean one query or one expert for all rows,
    which is the default for comparisons without such a column. `winner_codes` decodes cells of `winner` that
    are neither ids nor words for a side; see `podium convert --formats`.

    >>> import pyarrow as pa
    >>> table = pa.table({"query": [1, 1], "expert": ["e", "e"], "item": ["a", "b"], "score": [1.0, 2.0]})
    >>> read_preferences(table, score="score").lists.item.tolist()
    [1, 0]
    >>> read_preferences(pa.table({"model_a": ["x", "x"], "model_b": ["y", "z"], "winner": ["model_b", "tie"]}))
    Preferences(1 query, 3 items, 1 expert, 2 comparisons)
    """
    check_parameters(
        columns,
        (*PARAMETERS, *LIST_CELL_ROLES, "duplicates", "unlisted", "winner_codes", "experts", "values"),
        "Preferences.from_frame",
    )
    table = _to_narwhals(frame)
    names = [name for name in table.columns if isinstance(name, str)]
    wide = _find_wide(table, names, columns, experts)
    if wide is not None:
        item = _read_ids(table, wide.item, "item")
        query = _read_ids(table, wide.query, "query")
        cells = {name: np.asarray(_select_column(table, name).to_numpy()) for name in wide.experts}
        return build_wide(query, item, cells, values, duplicates, unlisted)
    role_columns = {role: name or "" for role, name in columns.items()}
    votes = any(role_columns.get(role) for role in ("winner", "loser", "item_a", "item_b"))
    if not votes and not role_columns.get("item") and "item" not in names:
        there = {role for role in VOTE_ROLES if any(normalize_name(n) in WORDS[role] for n in names)}
        votes = "winner" in there and ("loser" in there or {"item_a", "item_b"} <= there)
    if not votes and (role_columns.get("rank") or role_columns.get("score")):
        role_columns = {"rank": "", "score": "", **role_columns}  # the other one is not matched
    roles = assign_roles(
        names, role_columns, "the table", VOTE_ROLES if votes else (*LIST_ROLES, *LIST_CELL_ROLES)
    )
    if votes:
        preferences = _read_votes(table, roles, parse_winner_codes(winner_codes))
    else:
        preferences = _read_lists(table, roles, role_columns, duplicates, unlisted)
    warn_of_ignored_columns(
        TableReading(_FrameColumns(table), roles, role_columns.keys(), "the table", "None")
    )
    return preferences


def _find_wide(
    table: Any, names: Sequence[str], columns: Mapping[str, str | None], experts: Sequence[str] | None
) -> WideColumns | None:
    """The columns of a wide table: the experts are named, or nothing but such a table fits."""
    if experts is not None:
        for name in experts:
            _select_column(table, name)
        rest = [name for name in names if name not in experts]
        roles = assign_roles(rest, {role: name or "" for role, name in columns.items()}, "the table")
        rest = [name for name in rest if name != roles.get("query")]
        if not rest:
            remedy = f"name it with item='...'; {_describe_columns(table)}"
            raise InputError("the table has no column 'item'", remedy=remedy)
        return WideColumns(roles.get("query"), roles.get("item", rest[0]), tuple(experts))
    if columns or len(names) < len(table.columns):
        return None
    wide = find_wide_columns(names, {name: table[name].dtype.is_numeric() for name in names})
    if wide is not None:
        text = f"a row is an item ({wide.item}) and the columns {join_names(wide.experts)} are experts"
        warnings.warn(f"the table: {text}; name them, experts=[...]", PodiumWarning, stacklevel=4)
    return wide


def check_parameters(given: Iterable[str], accepted: Collection[str], caller: str) -> None:
    """Reject an unknown keyword; the message names the method that was called."""
    for name in given:
        if name not in accepted:
            raise ParameterError(f"{caller} has no parameter {name!r}; {suggest_names(name, accepted)}")


def _read_lists(
    table: Any,
    roles: Mapping[str, str],
    role_columns: Mapping[str, str],
    duplicates: Duplicates,
    unlisted: Unlisted,
) -> Preferences:
    in_cells = "items" in roles and "item" not in roles
    for role in ("query", "expert", *(() if in_cells else ("item",))):
        if role not in roles and (role == "item" or role_columns.get(role) is None):
            none = "" if role == "item" else f", or give {role}=None if all rows have the same"
            raise InputError(
                f"the table has no column {role!r}",
                remedy=f"name it with {role}='...'{none}; {_describe_columns(table)}",
            )
    query, expert = (_read_ids(table, roles.get(role), role) for role in ("query", "expert"))
    if in_cells:
        cells = {role: table[roles[role]].to_list() for role in LIST_CELL_ROLES if role in roles}
        return build_from_list_cells(query, expert, cells, duplicates, unlisted)
    return Preferences.from_rows(
        query,
        expert,
        _read_ids(table, roles["item"], "item"),
        rank=_read_values(table, roles.get("rank")),
        score=_read_values(table, roles.get("score")),
        duplicates=duplicates,
        unlisted=unlisted,
    )


def _read_votes(table: Any, roles: Mapping[str, str], codes: AnswerCodes) -> Preferences:
    query, expert = (_read_ids(table, roles.get(role), role) for role in ("query", "expert"))
    tie, weight = (_read_values(table, roles.get(role)) for role in ("tie", "weight"))
    if {"winner", "loser"} <= roles.keys():
        sides = _read_ids(table, roles["winner"], "winner"), _read_ids(table, roles["loser"], "loser")
        refuse_sides_as_items(*sides, (roles["winner"], roles["loser"]), "the table")
        return Preferences.from_comparisons(query, expert, *sides, tie=tie, weight=weight)
    missing = [role for role in ("winner", "item_a", "item_b") if role not in roles]
    if missing:
        raise InputError(
            f"comparisons need winner and loser, or item_a, item_b and winner; {missing[0]} is missing",
            remedy=f"name its column with {missing[0]}='...'; {_describe_columns(table)}",
        )
    names = roles["item_a"], roles["item_b"]
    items = _read_ids(table, names[0], "item_a"), _read_ids(table, names[1], "item_b")
    first, second, answers = (table[name].to_list() for name in (*names, roles["winner"]))
    blank = ("omit rows without an answer",)

    def row_error(row: int, problem: str, remedy: MessageText) -> InputError:
        return InputError(problem, source=row_origin(row)[0], remedy=remedy)

    outcomes = decode_outcomes(PairAnswers(first, second, answers, names), codes, row_error, blank)
    if tie is not None:
        outcomes = outcomes._replace(tie=outcomes.tie | check_tie_marks(tie, row_origin)[outcomes.row])
    given = None if weight is None else check_numbers(weight, "weight")
    return build_votes(query, expert, items, outcomes, given, row_origin)


def _describe_columns(table: Any) -> str:
    return f"the columns are {', '.join(map(repr, table.columns[:12]))}"


class _FrameColumns(Mapping[str, Sequence[Any]]):
    """The columns of a frame, converted to Python values on demand."""

    def __init__(self, table: Any) -> None:
        self._table = table

    def __getitem__(self, name: str) -> Sequence[Any]:
        values: list[Any] = self._table[name].to_list()
        return values

    def __iter__(self) -> Iterator[str]:
        return (name for name in self._table.columns if isinstance(name, str))

    def __len__(self) -> int:
        return len(self._table.columns)


def read_labels(
    frame: Any, *, query: str | None = "query", item: str = "item", grade: str = "grade"
) -> Labels:
    """Labels from a dataframe."""
    from podium.data.labels import Labels

    table = _to_narwhals(frame)
    grades = np.asarray(_select_column(table, grade).to_numpy())
    return Labels.from_rows(_read_ids(table, query, "query"), _read_ids(table, item, "item"), grades)


def _to_narwhals(frame: Any) -> Any:
    nw = require_module("narwhals.stable.v2")
    try:
        table = nw.from_native(frame)
    except TypeError as error:
        if not hasattr(frame, "__arrow_c_stream__"):
            raise InputError(
                f"cannot read a {type(frame).__name__} as a dataframe",
                remedy="give pandas, polars, pyarrow, or an object with __arrow_c_stream__",
            ) from error
        table = nw.from_native(require_module("pyarrow").table(frame))
    return table.collect() if isinstance(table, nw.LazyFrame) else table


def _select_column(table: Any, name: str) -> Any:
    if name not in table.columns:
        raise InputError(f"the table has no column {name!r}", remedy=suggest_names(name, table.columns))
    return table[name]


def _read_values(table: Any, name: str | None) -> npt.NDArray[Any] | None:
    return None if name is None else np.asarray(_select_column(table, name).to_numpy())


def _read_ids(table: Any, name: str | None, what: str) -> CodedColumn:
    """A column of ids; strings are coded by Arrow, because they dominate the run time."""
    if name is None:
        return CodedColumn(np.zeros(len(table), np.int64), Ids([what] if len(table) else []))
    column = _select_column(table, name)
    if column.null_count():
        row = int(np.flatnonzero(column.is_null().to_numpy())[0])
        raise InputError(f"the {what} id is missing", source=f"row {row + 1}", remedy="every row needs one")
    if column.dtype.is_integer():
        return code_ids(column.to_numpy(), what)
    pa = require_module("pyarrow")
    try:
        arrow = column.to_arrow()
    except pa.ArrowInvalid:  # strings mixed with integers
        return code_ids(column.to_list(), what)
    if pa.types.is_dictionary(arrow.type):
        arrow = arrow.cast(arrow.type.value_type)
    if arrow.type not in (pa.string(), pa.large_string(), pa.string_view()):
        return code_ids(arrow.to_pylist(), what)
    encoded = arrow.dictionary_encode()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    codes: I8 = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return CodedColumn(codes, Ids(encoded.dictionary.to_pylist()))


def _to_backend(columns: dict[str, Any], backend: FrameBackend) -> Any:
    table = require_module("pyarrow").table(columns)
    if backend == "pyarrow":
        return table
    if backend not in ("pandas", "polars"):
        raise ParameterError(f"backend is {backend!r}; accepted: pyarrow, pandas, polars")
    return require_module("narwhals.stable.v2").from_arrow(table, backend=backend).to_native()


def _to_arrow_ids(ids: Ids, codes: npt.NDArray[Any]) -> Any:
    """Ids of rows as an Arrow column: integers, or strings (also for a mixture of both)."""
    pa = require_module("pyarrow")
    if ids.is_text:
        taken = ids.take(codes)
        buffers = pa.py_buffer(np.ascontiguousarray(taken.offsets)), pa.py_buffer(taken.buffer)
        return pa.LargeStringArray.from_buffers(len(codes), *buffers)
    values = ids.tolist()
    whole = all(isinstance(v, int) and abs(v) <= LAST_INTEGER for v in values) and bool(values)
    if not whole:
        texts: list[Id] = [str(v) for v in values]
        if len(set(texts)) < len(set(values)):
            raise InputError("two ids differ only in their type", remedy="use strings or integers, not both")
        values = texts
    kind = pa.int64() if whole else pa.string()
    return pa.array(values, kind).take(pa.array(np.asarray(codes, np.int64)))


def lists_frame(preferences: Preferences, backend: FrameBackend) -> Any:
    """Rows of the lists: query, expert, item, rank and, if there are scores, score."""
    lists, index = preferences.lists, preferences.index
    columns = {
        "query": _to_arrow_ids(index.queries, lists.query_of_list[lists.list_of_row]),
        "expert": _to_arrow_ids(preferences.experts, lists.expert[lists.list_of_row]),
        "item": _to_arrow_ids(index.items, lists.item),
        "rank": lists.rank,
    }
    if lists.score is not None:
        columns["score"] = lists.score
    return _to_backend(columns, backend)


def comparisons_frame(preferences: Preferences, backend: FrameBackend) -> Any:
    """Rows of the votes: query, expert, winner, loser, tie, weight."""
    votes, index = preferences.comparisons, preferences.index
    columns = {
        "query": _to_arrow_ids(index.queries, votes.query_of_row),
        "expert": _to_arrow_ids(preferences.experts, votes.expert),
        "winner": _to_arrow_ids(index.items, votes.winner),
        "loser": _to_arrow_ids(index.items, votes.loser),
        "tie": votes.tie,
        "weight": votes.weight,
    }
    return _to_backend(columns, backend)


def labels_frame(labels: Labels, backend: FrameBackend) -> Any:
    """Rows of the judged items: query, item, grade."""
    judged = np.flatnonzero(~np.isnan(labels.grades))
    return items_frame(labels.index, judged, {"grade": labels.grades[judged]}, backend)


def items_frame(index: ItemIndex, slots: I8, columns: dict[str, Any], backend: FrameBackend) -> Any:
    """Rows of some items: query, item, then other columns."""
    ids = _to_arrow_ids(index.queries, index.query_of_slot[slots]), _to_arrow_ids(index.items, slots)
    return _to_backend({"query": ids[0], "item": ids[1], **columns}, backend)


def consensus_frame(consensus: Consensus, backend: FrameBackend, top: int | None = None) -> Any:
    """Rows of the result, best first: query, item, rank, score, tied, and p_value where there is one."""
    index = consensus.index
    place = np.arange(len(consensus.order)) - index.starts[index.query_of_slot]
    shown = np.flatnonzero(place < top) if top is not None else np.arange(len(place))
    slots = consensus.order[shown]
    columns = {
        "query": _to_arrow_ids(index.queries, index.query_of_slot[shown]),
        "item": _to_arrow_ids(index.items, slots),
        "rank": place[shown] + 1,
        "score": consensus.scores[slots],
        "tied": consensus.tied[shown],
    }
    if consensus.p_values is not None:
        columns["p_value"] = consensus.p_values[slots]
    return _to_backend(columns, backend)


def values_frame(queries: Ids, columns: dict[str, npt.NDArray[Any]], backend: FrameBackend) -> Any:
    """One row per query: its id, then one column per value."""
    return _to_backend({"query": _to_arrow_ids(queries, np.arange(len(queries))), **columns}, backend)


def records_frame(records: Sequence[Any], kind: type, key: str, backend: FrameBackend) -> Any:
    """One row per record, one column per field; `key` is a field of ids, tuples are joined by commas."""
    columns: dict[str, Any] = {}
    for name in (field.name for field in dataclasses.fields(kind)):
        values = [getattr(record, name) for record in records]
        if name == key:
            columns[name] = _to_arrow_ids(Ids(values), np.arange(len(values)))
        else:
            columns[name] = [", ".join(v) if isinstance(v, tuple) else v for v in values]
    return _to_backend(columns, backend)
