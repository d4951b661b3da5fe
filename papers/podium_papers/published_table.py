"""What a published table is made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from podium.data.consensus import TieRule
from podium.data.preferences import Unlisted

__all__ = ["Figures", "PublishedRow", "PublishedTable", "parse_figures"]

Figures = tuple[float, ...]


@dataclass(frozen=True)
class PublishedRow:
    """One line of a table: its method (or candidates, chosen on validation data) and the published figures."""

    name: str
    method: str | tuple[str, ...] | None
    published: Mapping[str, Figures] = field(default_factory=dict)  # by data set
    pruned: bool = False  # fitted again without the experts that the model does not use
    without: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # experts left out, by data set
    labelled: bool = False  # sees the preferences over labelled items alone
    unlisted: Unlisted | None = None  # another reading of what experts do not list
    features: Mapping[str, str] = field(default_factory=dict)  # data set with the item features, by data set
    quality: bool = False  # the method estimates the quality of annotators, as a probability


@dataclass(frozen=True)
class PublishedTable:
    """A published table and how its figures were made."""

    name: str
    title: str
    citation: str
    sets: tuple[str, ...]
    metrics: tuple[str, ...]
    rows: tuple[PublishedRow, ...]
    baseline: str  # the row that the others are tested against
    tested: tuple[str, ...]  # metrics of the paired tests
    ties: TieRule = "input"
    splits: int | None = None  # so many random splits of 60/20/20 instead of the data set's own folds
    labelled_only: bool = False  # measure the order of the labelled items alone
    choose_by: str = "map"
    whole: bool = False  # measured on all queries at once, by methods that do not learn
    comparable: bool = (
        True  # the published figures are of the same labels, so that differences mean something
    )
    annotators: bool = False  # compare the annotators' estimated qualities with those against the labels
    notes: tuple[str, ...] = ()
    generated: bool = False  # from made data: no folder is needed
    study: str = ""  # the module of this package that computes it, where rows are not methods by metrics


def parse_figures(text: str) -> Figures:
    """Numbers from text."""
    return tuple(map(float, text.split()))
