"""Held-out figures only: queries that a model was fitted on do not measure its quality."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from podium.data.labels import Labels
from podium.kernels.dispatch import B1
from podium.methods.base import Aggregator
from podium.methods.learned.provenance import find_fitted_queries

__all__ = ["HeldOutLabels", "exclude_fitted_queries"]

# a model with fewer held-out queries than this, or than half, is left out and the others use all queries
LEAST = 10


@dataclass(frozen=True, eq=False)
class HeldOutLabels:
    """Labels on which all methods may be measured, and the treatment of methods that learned from labels."""

    labels: Labels  # of queries on which no measured method was fitted
    left_out: Mapping[str, str]  # method -> why it has no figures
    used: Mapping[str, int]  # method -> queries removed because it was fitted on them
    unrecorded: tuple[str, ...]  # models that do not record their training queries
    unaffected: tuple[str, ...]  # models that were fitted on none of these queries

    @property
    def notes(self) -> tuple[str, ...]:
        """Caveats, one sentence each."""
        sentences = []
        if self.used:
            names, most = ", ".join(self.used), max(self.used.values())
            sentences.append(
                f"{names} {'was' if len(self.used) == 1 else 'were'} fitted on some of the labeled queries (up to "
                f"{most:,}): all figures use the {len(self.labels):,} others"
            )
        if self.unrecorded:
            does = "does" if len(self.unrecorded) == 1 else "do"
            sentences.append(
                f"{', '.join(self.unrecorded)} learned from labels and {does} not record which ones: "
                "if they include these, the figures are too optimistic; refit the model to record them"
            )
        return tuple(sentences)


def exclude_fitted_queries(methods: Mapping[str, Aggregator], labels: Labels) -> HeldOutLabels:
    """Labels without the queries that any of the methods was fitted on.

    A model with few other queries (below ten and below half) is left out; the others use all queries.

    >>> from podium.data.demo import demo
    >>> from podium import make
    >>> data = demo(30)
    >>> some = data.preferences.select(data.preferences.queries[:12])
    >>> found = exclude_fitted_queries({"crf": make("crf").fit(some, data.labels), "rrf": make("rrf")}, data.labels)
    >>> len(found.labels), dict(found.used)
    (18, {'crf': 12})
    """
    has_labels = np.diff(labels.index.starts) > 0
    total = int(has_labels.sum())
    left_out: dict[str, str] = {}
    used: dict[str, int] = {}
    unrecorded, unaffected = [], []
    seen: B1 = np.zeros(len(labels), np.bool_)
    for name, method in methods.items():
        mine = find_fitted_queries(method, labels)
        if mine is None:
            unrecorded.append(name)
            continue
        count = int(mine.sum())
        if count and total - int((seen | mine).sum()) < min(LEAST, total / 2):
            which = "all" if count == total else f"{count:,} of"
            left_out[name] = (
                f"it was fitted on {which} {total:,} labeled queries, where its figures are training figures; "
                "measure it on other queries, or let `tune` estimate it by cross-validation"
            )
        elif count:
            used[name], seen = count, seen | mine
        elif method.tags.supervised or hasattr(method, "fitted_on_"):
            unaffected.append(name)
    rest = labels.select_codes(np.flatnonzero(~seen)) if seen.any() else labels
    return HeldOutLabels(rest, left_out, used, tuple(unrecorded), tuple(unaffected))
