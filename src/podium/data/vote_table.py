"""Votes one by one, with attributes: what was known about each vote, such as the lengths of both answers.

`Preferences` merge and reorder votes; a `VoteTable` keeps a row per vote, so that attributes stay beside them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

import numpy as np

from podium.core.errors import InputError, ParameterError
from podium.core.params import suggest_names
from podium.data.ids import CodedColumn, Id, Ids, code_ids
from podium.data.preferences import Preferences
from podium.kernels.dispatch import F8, I8

__all__ = ["AttributeColumn", "SideColumns", "VoteAttribute", "VoteTable", "concat_vote_tables"]

AttributeColumn = F8 | CodedColumn  # numbers, or categories


class SideColumns(NamedTuple):
    """An attribute of each side of a vote, such as the length of both answers."""

    first: AttributeColumn
    second: AttributeColumn


VoteAttribute = AttributeColumn | SideColumns


@dataclass(frozen=True, eq=False, repr=False)
class VoteTable:
    """Votes in the order of their rows: two items, the share of the vote that the first one got, and attributes.

    >>> votes = VoteTable.from_columns(["a", "b"], ["b", "a"], [1, 0.5], attributes={"length": ([90, 50], [30, 60])})
    >>> votes, votes.first.tolist(), votes.attributes["length"].second.tolist()
    (VoteTable(2 votes on 2 items, attributes: length), [0, 1], [30.0, 60.0])
    """

    items: Ids  # distinct, in id order
    first: I8
    second: I8
    outcome: F8  # 1: the first item won, 0: the second, 0.5: a tie
    weight: F8
    expert: CodedColumn
    query: CodedColumn
    attributes: Mapping[str, VoteAttribute] = field(default_factory=dict)
    sides_known: bool = True  # the first item of a row was shown first

    @classmethod
    def from_columns(
        cls,
        first: Sequence[Id],
        second: Sequence[Id],
        outcome: Sequence[float] | F8,
        *,
        weight: Sequence[float] | F8 | None = None,
        expert: Sequence[Id] | CodedColumn | None = None,
        query: Sequence[Id] | CodedColumn | None = None,
        attributes: Mapping[str, Any] | None = None,
        sides_known: bool = True,
    ) -> VoteTable:
        """Votes from columns of equal length.

        `outcome` is the share of the vote that `first` got: 1, 0, or 0.5 for a tie. An attribute is one column
        (numbers or texts), or a pair of columns, for `first` and for `second`.
        """
        both = CodedColumn.concat(
            [code_ids(first, "item"), code_ids(second, "item")], "item"
        ).with_sorted_ids()
        size = len(both.codes) // 2
        constant = CodedColumn(np.zeros(size, np.int64), Ids(["all"]))
        columns = {
            name: SideColumns(*map(_to_column, given)) if _is_pair(given, size) else _to_column(given)
            for name, given in (attributes or {}).items()
        }
        table = cls(
            both.ids,
            both.codes[:size],
            both.codes[size:],
            np.asarray(outcome, np.float64),
            np.ones(size) if weight is None else np.asarray(weight, np.float64),
            constant if expert is None else code_ids(expert, "expert"),
            constant if query is None else code_ids(query, "query"),
            columns,
            sides_known,
        )
        table._check()
        return table

    def _check(self) -> None:
        columns = {
            "second": self.second,
            "outcome": self.outcome,
            "weight": self.weight,
            "expert": self.expert.codes,
        }
        columns["query"] = self.query.codes
        for name, attribute in self.attributes.items():
            sides = attribute if isinstance(attribute, SideColumns) else (attribute,)
            columns |= {
                f"{name} ({k})": c.codes if isinstance(c, CodedColumn) else c for k, c in enumerate(sides, 1)
            }
        for name, column in columns.items():
            if len(column) != len(self):
                raise ParameterError(f"{name} has {len(column)} rows, and there are {len(self)} votes")
        if not ((self.outcome >= 0) & (self.outcome <= 1)).all():
            row = int(np.flatnonzero(~((self.outcome >= 0) & (self.outcome <= 1)))[0])
            raise InputError(
                f"vote {row}: the outcome is {self.outcome[row]}", remedy="accepted: numbers from 0 to 1"
            )
        if not (np.isfinite(self.weight) & (self.weight >= 0)).all():
            raise InputError("a weight is negative or not finite", remedy="weights are finite numbers from 0")
        if (self.first == self.second).any():
            row = int(np.flatnonzero(self.first == self.second)[0])
            raise InputError(f"vote {row} compares {self.items[int(self.first[row])]!r} with itself")

    def __len__(self) -> int:
        return len(self.first)

    def __repr__(self) -> str:
        named = f", attributes: {', '.join(self.attributes)}" if self.attributes else ""
        return f"VoteTable({len(self):,} votes on {len(self.items):,} items{named})"

    def get_attribute(self, name: str) -> VoteAttribute:
        """An attribute by name."""
        if name not in self.attributes:
            raise ParameterError(f"there is no attribute {name!r}; {suggest_names(name, self.attributes)}")
        return self.attributes[name]

    def select(self, rows: I8) -> VoteTable:
        """The votes of some rows, and the items in them."""
        played, codes = np.unique(np.concatenate((self.first[rows], self.second[rows])), return_inverse=True)
        return VoteTable(
            self.items.take(played),
            codes[: len(rows)],
            codes[len(rows) :],
            self.outcome[rows],
            self.weight[rows],
            CodedColumn(self.expert.codes[rows], self.expert.ids),
            CodedColumn(self.query.codes[rows], self.query.ids),
            {name: _select_rows(attribute, rows) for name, attribute in self.attributes.items()},
            self.sides_known,
        )

    def without_experts(self, experts: Sequence[Id]) -> VoteTable:
        """The votes of all other experts, and the items in them."""
        known = {str(expert): code for code, expert in enumerate(self.expert.ids)}
        for expert in experts:
            if str(expert) not in known:
                raise ParameterError(
                    f"there is no expert {expert!r} to exclude; {suggest_names(str(expert), known)}"
                )
        rows = np.flatnonzero(~np.isin(self.expert.codes, [known[str(expert)] for expert in experts]))
        if not len(rows):
            raise InputError("no votes are left", remedy="exclude fewer experts")
        return self.select(rows)

    def split_by_query(self) -> Iterator[tuple[Id, VoteTable]]:
        """The votes of each query."""
        for code in np.unique(self.query.codes).tolist():
            yield self.query.ids[code], self.select(np.flatnonzero(self.query.codes == code))

    def to_preferences(self) -> Preferences:
        """The votes without attributes; a divided vote becomes two."""
        whole = np.isin(self.outcome, (0.0, 0.5, 1.0))
        row = np.repeat(np.arange(len(self)), np.where(whole, 1, 2))
        follows = np.zeros(len(row), np.bool_)
        follows[1:] = row[1:] == row[:-1]
        lost = np.where(whole[row], self.outcome[row] == 0, follows)
        share = np.where(whole[row], 1.0, np.where(lost, 1 - self.outcome[row], self.outcome[row]))
        a, b = self.first[row], self.second[row]
        return Preferences.from_comparisons(
            CodedColumn(self.query.codes[row], self.query.ids),
            CodedColumn(self.expert.codes[row], self.expert.ids),
            CodedColumn(np.where(lost, b, a), self.items),
            CodedColumn(np.where(lost, a, b), self.items),
            tie=self.outcome[row] == 0.5,
            weight=share * self.weight[row],
            side=np.where(lost, -1, 1) if self.sides_known else None,
        )


def _select_rows(attribute: VoteAttribute, rows: I8) -> VoteAttribute:
    if isinstance(attribute, SideColumns):
        return SideColumns(*(cast(AttributeColumn, _select_rows(side, rows)) for side in attribute))
    if isinstance(attribute, CodedColumn):
        # ids without a row would be categories without a vote
        kept, codes = np.unique(attribute.codes[rows], return_inverse=True)
        return CodedColumn(codes, attribute.ids.take(kept))
    return attribute[rows]


def _is_pair(given: Any, size: int) -> bool:
    """Whether an attribute is a tuple of two columns, not one column of two cells."""
    return isinstance(given, tuple) and len(given) == 2 and all(
        not isinstance(part, str) and hasattr(part, "__len__") and len(part) == size for part in given
    )  # fmt: skip


def _to_column(given: Any) -> AttributeColumn:
    if isinstance(given, CodedColumn):
        return given
    cells = np.asarray(given)
    if cells.dtype.kind in "biuf":
        return cells.astype(np.float64)
    return code_ids([str(cell) for cell in given], "attribute")


def concat_vote_tables(tables: Sequence[VoteTable]) -> VoteTable:
    """The votes of several tables, one table after the other."""
    if len(tables) == 1:
        return tables[0]
    items = CodedColumn.concat(
        [CodedColumn(side, t.items) for side_of in ("first", "second") for t in tables
         for side in [getattr(t, side_of)]], "item",
    ).with_sorted_ids()  # fmt: skip
    size = len(items.codes) // 2
    return VoteTable(
        items.ids,
        items.codes[:size],
        items.codes[size:],
        np.concatenate([t.outcome for t in tables]),
        np.concatenate([t.weight for t in tables]),
        CodedColumn.concat([t.expert for t in tables], "expert"),
        CodedColumn.concat([t.query for t in tables], "query"),
        {
            name: _concat_columns(name, [t.get_attribute(name) for t in tables])
            for name in tables[0].attributes
        },
        all(t.sides_known for t in tables),
    )


def _concat_columns(name: str, parts: Sequence[Any]) -> Any:
    if all(isinstance(part, SideColumns) for part in parts):
        return SideColumns(*(_concat_columns(name, sides) for sides in zip(*parts, strict=True)))
    if all(isinstance(part, CodedColumn) for part in parts):
        return CodedColumn.concat(parts, name)
    if all(isinstance(part, np.ndarray) for part in parts):
        return np.concatenate(parts)
    raise InputError(
        f"the attribute {name!r} is a number in one file and not in another",
        remedy="write it in the same way",
    )
