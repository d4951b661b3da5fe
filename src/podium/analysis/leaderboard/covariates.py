"""Covariates of votes: attributes as columns of numbers, and what one unit of each means in words.

- A pair of non-negative numbers, such as two lengths, becomes the normalized difference (a - b) / (a + b), which
  is 0 where both are 0; its unit is "twice as much", a difference of 1/3.
- A pair of numbers with negative ones becomes the plain difference; its unit is one standard deviation.
- A pair of categories becomes one column per category but the most frequent: 1 if only the first side has it, -1
  if only the second has.
- One number per vote is used as it is: positive values favor the item shown first.
- One category per vote becomes the advantage of the item shown first in that category.
- `order` (or `position`) is the advantage of the item shown first.

Columns are divided by their standard deviation, so that one ridge fits all. They are not centered: a centered
difference would favor one side of the screen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from podium.core.errors import InputError, ParameterError
from podium.core.params import suggest_names
from podium.core.text import join_names
from podium.data.ids import CodedColumn
from podium.data.vote_table import SideColumns, VoteTable
from podium.formats.vote_attributes import POSITION_NAMES
from podium.kernels.contextual_contests import ContextualVotes, compute_products
from podium.kernels.dispatch import F8

__all__ = ["Covariate", "CovariateColumns", "Standardization", "build_covariates", "check_collinearity"]

Standardization = Literal["scale", "center", "none"]
TWICE = 1 / 3  # (2 - 1) / (2 + 1)
MOST_CATEGORIES = 50
REST = 1e-9  # share of a column's variance below which it follows from the others


@dataclass(frozen=True)
class Covariate:
    """One column: its name, the change that its effect is reported for, and the column's divisor."""

    name: str
    change: str  # "twice the length"
    step: float  # of the column before division
    divisor: float = 1.0


class CovariateColumns(NamedTuple):
    """Covariates, and their values by vote."""

    covariates: tuple[Covariate, ...]
    values: F8  # votes x covariates


def build_covariates(
    votes: VoteTable, names: Sequence[str], standardize: Standardization = "scale"
) -> CovariateColumns:
    """The columns of the named attributes; constant ones are an error."""
    if standardize not in ("scale", "center", "none"):
        raise ParameterError(f"standardize is {standardize!r}; accepted: scale, center, none")
    twice = next((name for name in names if list(names).count(name) > 1), None)
    if twice is not None:
        raise ParameterError(f"the covariate {twice!r} is named twice; name it once")
    parts: list[tuple[Covariate, F8]] = []
    with_order = any(name in POSITION_NAMES and name not in votes.attributes for name in names)
    for name in names:
        parts += _build_columns(votes, name, with_order)
    covariates, columns = [], []
    for covariate, column in parts:
        constant = bool((column == column[0]).all()) if len(column) else True
        if constant and not _is_position(votes, covariate.name):
            raise InputError(
                f"the covariate {covariate.name!r} is {column[0]:g} in all votes"
                if len(column)
                else "no votes",
                remedy="it cannot change the board; leave it out",
            )
        divisor = 1.0 if constant or standardize == "none" else float(column.std())
        shift = float(column.mean()) if standardize == "center" and not constant else 0.0
        covariates.append(Covariate(covariate.name, covariate.change, covariate.step, divisor))
        columns.append((column - shift) / divisor)
    values = np.stack(columns, axis=1) if columns else np.zeros((len(votes), 0))
    return CovariateColumns(tuple(covariates), np.asfortranarray(values))


def _is_position(votes: VoteTable, name: str) -> bool:
    return name in POSITION_NAMES and name not in votes.attributes


def _build_columns(votes: VoteTable, name: str, with_order: bool) -> list[tuple[Covariate, F8]]:
    if _is_position(votes, name):
        _require_sides(votes, name)
        return [(Covariate(name, "shown first", 1.0), np.ones(len(votes)))]
    if name not in votes.attributes:
        raise ParameterError(
            f"there is no covariate {name!r}; {suggest_names(name, (*votes.attributes, POSITION_NAMES[0]))}"
        )
    attribute = votes.attributes[name]
    if isinstance(attribute, SideColumns):
        first, second = attribute
        if isinstance(first, CodedColumn):
            assert isinstance(second, CodedColumn)
            return _compare_categories(name, first, second)
        assert not isinstance(second, CodedColumn)
        column = first - second
        if min(first.min(initial=0.0), second.min(initial=0.0)) >= 0:
            total = first + second
            column = np.divide(column, total, out=np.zeros(len(total)), where=total > 0)
            return [(Covariate(name, f"twice the {name}", TWICE), column)]
        spread = float(column.std())
        return [(Covariate(name, f"{name} larger by {spread:.3g}", spread), column)]
    _require_sides(votes, name)
    if isinstance(attribute, CodedColumn):
        return _build_category_advantages(name, attribute, with_order)
    spread = float(attribute.std())
    few = len(np.unique(attribute[:1000])) <= 3 and bool(np.isin(attribute, (-1, 0, 1)).all())
    step, change = (1.0, f"{name} 1 higher") if few else (spread, f"{name} higher by {spread:.3g}")
    return [(Covariate(name, change, step), attribute)]


def _require_sides(votes: VoteTable, name: str) -> None:
    """One value per vote is an advantage of the item shown first, which must be known."""
    if not votes.sides_known:
        raise InputError(
            f"{name!r} has one value per vote, and the votes do not record which item was shown first",
            remedy="give a value per side, such as winner_length and loser_length, or votes with model_a, model_b "
            "and winner; --slice makes a board per value",
        )


def _compare_categories(name: str, first: CodedColumn, second: CodedColumn) -> list[tuple[Covariate, F8]]:
    both = CodedColumn.concat([first, second], name)
    a, b = both.codes.reshape(2, -1)
    counts = np.bincount(both.codes, minlength=len(both.ids))
    usual = int(counts.argmax())
    _check_categories(name, len(both.ids))
    return [
        (
            Covariate(f"{name}={both.ids[k]}", f"{name} {both.ids[k]} instead of {both.ids[usual]}", 1.0),
            (a == k).astype(np.float64) - (b == k),
        )
        for k in range(len(both.ids))
        if k != usual
    ]


def _build_category_advantages(
    name: str, column: CodedColumn, with_order: bool
) -> list[tuple[Covariate, F8]]:
    counts = np.bincount(column.codes, minlength=len(column.ids))
    usual = int(counts.argmax()) if with_order else -1
    _check_categories(name, len(column.ids))
    than = f", compared with {column.ids[usual]}" if with_order else ""
    return [
        (
            Covariate(f"{name}={column.ids[k]}", f"shown first where {name} is {column.ids[k]}{than}", 1.0),
            (column.codes == k).astype(np.float64),
        )
        for k in range(len(column.ids))
        if k != usual
    ]


def _check_categories(name: str, count: int) -> None:
    if count > MOST_CATEGORIES:
        raise InputError(
            f"the covariate {name!r} has {count:,} categories, more than {MOST_CATEGORIES}",
            remedy="merge rare ones",
        )


def check_collinearity(votes: ContextualVotes, covariates: Sequence[Covariate]) -> None:
    """Refuse covariates that follow from the items or from earlier covariates."""
    n = votes.size
    gram = compute_products(votes, votes.weight)
    own = gram.diagonal()[n:].copy()
    base = gram[:n, :n] + np.eye(n) * max(gram[:n, :n].max() * 1e-12, 1e-12)
    left = gram[n:, n:] - gram[n:, :n] @ np.linalg.solve(base, gram[:n, n:])
    for k, covariate in enumerate(covariates):
        if left[k, k] <= REST * own[k]:
            if gram[n + k, n + k] - gram[n + k, :n] @ np.linalg.solve(base, gram[:n, n + k]) <= REST * own[k]:
                raise InputError(
                    f"the covariate {covariate.name!r} is the same in all votes of an item",
                    remedy="its effect is confounded with the scores of the items; leave it out",
                )
            others = join_names([c.name for c in covariates[:k]])
            raise InputError(
                f"the covariate {covariate.name!r} is a combination of {others}",
                remedy="leave one of them out",
            )
        row = left[k].copy()
        left -= np.outer(row, row) / row[k]
