"""The structure of a published table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from podium.data.consensus import TieRule
from podium.data.preferences import Unlisted
from podium.evaluate.majority_errors import MajorityOutcome

__all__ = ["Figures", "PublishedRow", "PublishedTable", "parse_figures"]

Figures = tuple[float, ...]


@dataclass(frozen=True)
class PublishedRow:
    """One row: its method (or candidates, selected on validation data) and the published figures."""

    name: str
    method: str | tuple[str, ...] | None
    published: Mapping[str, Figures] = field(default_factory=dict)  # by data set
    pruned: bool = False  # refitted without the experts that the model does not use
    without: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # excluded experts, by data set
    labelled: bool = False  # scores test queries from the preferences over their labeled items alone
    unlisted: Unlisted | None = None  # another reading of unlisted items
    features: Mapping[str, str] = field(default_factory=dict)  # data set with the item features, by data set
    quality: bool = False  # the method estimates annotator qualities as probabilities


@dataclass(frozen=True)
class PublishedTable:
    """A published table and how its figures were computed."""

    name: str
    title: str
    citation: str
    sets: tuple[str, ...]
    metrics: tuple[str, ...]
    rows: tuple[PublishedRow, ...]
    baseline: str  # the row that the others are tested against
    tested: tuple[str, ...]  # metrics of the paired tests
    ties: TieRule = "input"
    splits: int | None = None  # number of random 60/20/20 splits that replace the data set's folds
    labelled_only: bool = False  # measure only the order of the labeled items
    choose_by: str = "map"
    where: MajorityOutcome | None = (
        None  # measured only on the test queries where the majority is wrong, or right
    )
    whole: bool = False  # measured on all queries at once, by methods that do not learn
    comparable: bool = True  # the published figures use the same labels, so that differences are meaningful
    annotators: bool = False  # compare estimated annotator qualities with the labels
    notes: tuple[str, ...] = ()
    generated: bool = False  # synthetic data: no folder is needed
    unit: str = "percent"  # of the figures
    study: str = ""  # the module that computes it, if rows are not methods by metrics


def parse_figures(text: str) -> Figures:
    """Parse numbers from text."""
    return tuple(map(float, text.split()))
