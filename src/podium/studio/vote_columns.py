"""The columns of a project's votes beyond items and winner: what a board can hold equal or be sliced by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from podium.core import registry
from podium.core.errors import InputError, PodiumError, capture_warnings
from podium.data.column_roles import assign_roles
from podium.data.ids import CodedColumn, Id
from podium.data.vote_table import SideColumns, VoteAttribute, VoteTable
from podium.formats.detection import detect_format
from podium.formats.table_format import TableFormat
from podium.formats.vote_attributes import POSITION_NAMES, list_attribute_names
from podium.storage.files import Source, open_source
from podium.studio.form_fields import select_reading_options
from podium.studio.loading import recheck_allowed_path
from podium.studio.store import Project, Store

HEAD = 1 << 18  # bytes of a text file whose columns are looked at
MOST_SLICES = 60  # values of a column that is offered for slices


@dataclass(frozen=True)
class VoteColumns:
    """Attributes that a board can hold equal (`control`), and columns that it can be sliced by (`slices`)."""

    control: tuple[str, ...] = ()
    slices: tuple[str, ...] = ()


def list_sources(store: Store, project: Project, roots: Sequence[Path]) -> list[Source]:
    """The files of a project, without labels that were added later."""
    encoding = str(project.options.get("encoding", "utf-8"))
    sources = []
    for file in project.files:
        if file.path is not None:
            sources.append(
                replace(open_source(recheck_allowed_path(roots, file.path), encoding), name=file.name)
            )
        elif file.digest is not None and file.digest not in project.options.get("labels", ()):
            sources.append(Source(file.name, store.blob_path(file.digest).read_bytes(), encoding))
    return sources


def find_vote_columns(store: Store, project: Project, roots: Sequence[Path]) -> VoteColumns:
    """The columns of the first file; none if it is not a table of votes, or for the demo, which has no file."""
    if project.kind == "demo":
        return VoteColumns()
    try:
        [source, *_] = list_sources(store, project, roots)
        options = select_reading_options(project.options)
        options.pop("encoding", None)
        with capture_warnings():
            reader = registry.formats.get(options.pop("format", None) or detect_format(source, options))()
            if not isinstance(reader, TableFormat):
                return VoteColumns()
            if source.raw[:4] != b"PAR1" and len(source.raw) > HEAD:
                source = replace(source, raw=source.raw[:HEAD].rpartition(b"\n")[0])
            table = reader.read_table(source, options.get("columns"), options.get("delimiter"), frozenset())
            given = {name: value for name, value in options.items() if name in ("query", "expert", "item")}
            roles = assign_roles(list(table.columns), given, source.name)
    except (PodiumError, ValueError):
        return VoteColumns()
    used = [column for role, column in roles.items() if role != "expert"]
    sides, single = list_attribute_names(list(table.columns), used)
    order = [POSITION_NAMES[0]] if "item_a" in roles else []
    few = [name for name in single if 1 < len(set(map(str, table.columns[name]))) <= MOST_SLICES]
    return VoteColumns((*sides, *order), tuple(few))


def read_vote_table(
    store: Store, project: Project, roots: Sequence[Path], names: Sequence[str], excluded: Sequence[Id] = ()
) -> VoteTable:
    """The votes in a project's files with their attributes, without those of excluded annotators."""
    from podium import formats

    options = select_reading_options(project.options)
    options.pop("encoding", None)
    with capture_warnings():  # the notes of the project already say this
        content = formats.read(
            list_sources(store, project, roots),
            options.pop("format", None),
            **options,
            attributes=tuple(names),
        )
    if content.votes is None:
        raise InputError(
            "these files are not tables of votes", remedy="open a table with two items and the winner per row"
        )
    return select_votes(content.votes, excluded) if excluded else content.votes


def select_votes(votes: VoteTable, excluded: Sequence[Id]) -> VoteTable:
    """The votes without those of some experts."""
    names = votes.expert.ids
    left_out = [code for who in excluded if (code := names.code_of(who)) is not None]
    kept = np.flatnonzero(~np.isin(votes.expert.codes, left_out))

    def pick(column: VoteAttribute) -> VoteAttribute:
        if isinstance(column, SideColumns):
            return SideColumns(pick(column.first), pick(column.second))  # type: ignore[arg-type]
        return (
            CodedColumn(column.codes[kept], column.ids) if isinstance(column, CodedColumn) else column[kept]
        )

    return replace(
        votes,
        first=votes.first[kept],
        second=votes.second[kept],
        outcome=votes.outcome[kept],
        weight=votes.weight[kept],
        expert=CodedColumn(votes.expert.codes[kept], names),
        query=CodedColumn(votes.query.codes[kept], votes.query.ids),
        attributes={name: pick(column) for name, column in votes.attributes.items()},
    )
