"""Select queries to show: where methods differ most, where the best one is worst, and a typical one."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from podium.core.errors import ParameterError
from podium.core.params import suggest_names
from podium.data.ids import Id
from podium.kernels.dispatch import B1, F8, I8
from podium.reporting.inputs import ReportInputs

__all__ = ["SelectedQuery", "select_queries"]


class SelectedQuery(NamedTuple):
    """A query and why it is shown."""

    query: Id
    why: str


def select_queries(inputs: ReportInputs) -> list[SelectedQuery]:
    """The requested queries, or up to three informative ones; only queries with lists."""
    p = inputs.preferences
    listing = np.diff(p.lists.row_starts) > 0
    if inputs.request.queries:
        known = set(p.queries)
        for query in inputs.request.queries:
            if query not in known:
                raise ParameterError(
                    f"there is no query {query!r}; {suggest_names(str(query), map(str, p.queries))}"
                )
        return [
            SelectedQuery(q, "requested") for q in inputs.request.queries if listing[p.index.query_code(q)]
        ]
    listed = np.flatnonzero(listing)
    if len(listed) < 2:
        return [SelectedQuery(p.queries[int(q)], "the only query with lists") for q in listed]
    select = _select_by_labels if inputs.has_judged_items else _select_by_agreement
    picked = select(inputs, listed)
    return list({c.query: c for c in reversed(picked)}.values())[::-1]


def _select_by_labels(inputs: ReportInputs, listed: I8) -> list[SelectedQuery]:
    assert inputs.comparison is not None
    comparison, p = inputs.comparison, inputs.preferences
    metric = comparison.metrics[0]
    queries = comparison.evaluations[inputs.best_method].queries
    codes = p.queries.codes_of(queries)
    value = {n: comparison.evaluations[n][metric] for n in inputs.leading_methods}
    table = np.array(list(value.values()))
    usable = np.isin(codes, listed) & ~np.isnan(table).any(axis=0) & _has_relevant_item(inputs, codes)
    if not usable.any():
        return _select_by_agreement(inputs, listed)
    best, own = inputs.best_method, value[inputs.best_method]
    spread = np.where(usable, np.ptp(table, axis=0), -1.0)
    lowest = int(np.where(usable, own, np.inf).argmin())
    middle = _find_middle(np.where(usable, own, np.nan), p.index.sizes[codes].astype(np.float64))
    picked = []
    if spread.max() > 1e-12:
        picked.append(SelectedQuery(queries[int(spread.argmax())], "the methods differ most here"))
    picked.append(SelectedQuery(queries[lowest], f"{best} scores lowest here"))
    return [*picked, SelectedQuery(queries[middle], f"a typical query: {best} is near its median")]


def _has_relevant_item(inputs: ReportInputs, codes: I8) -> B1:
    """Queries with an item of a grade above 0; on others all rankings score the same."""
    assert inputs.request.labels is not None
    index = inputs.preferences.index
    good = inputs.request.labels.align(index) > 0
    count = np.bincount(index.query_of_slot[good], minlength=len(index))
    return np.asarray((codes >= 0) & (count[codes] > 0), np.bool_)


def _find_middle(values: F8, sizes: F8) -> int:
    """The index of the value nearest to the median; ties go to the query of the most typical size."""
    apart = np.abs(values - np.nanmedian(values))
    # sizes are compared by ratio: 5 against 10 items is as far as 50 against 100
    usual = np.abs(np.log(np.maximum(sizes, 1)) - np.log(max(float(np.median(sizes)), 1)))
    # rounding makes distances that differ only by float error tie, so the size decides
    return int(np.lexsort((usual, np.where(np.isnan(apart), np.inf, np.round(apart, 9))))[0])


def _select_by_agreement(inputs: ReportInputs, listed: I8) -> list[SelectedQuery]:
    queries, alike = inputs.preferences.queries, inputs.compute_similarity()[listed]
    sizes = inputs.preferences.index.sizes[listed].astype(np.float64)
    picked = []
    if len(inputs.results) > 1 and alike.min() < 1 - 1e-9:
        picked.append(SelectedQuery(queries[int(listed[alike.argmin()])], "the methods differ most here"))
    return [*picked, SelectedQuery(queries[int(listed[_find_middle(alike, sizes)])], "a typical query")]
