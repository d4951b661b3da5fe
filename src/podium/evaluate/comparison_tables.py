"""Tables of a comparison: results, pairs of results, queries."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from podium.core.results import Column, build_grid, show_field
from podium.core.tables import Grid, format_decimal, format_interval, format_p_value, format_percent
from podium.core.text import format_count
from podium.evaluate.metric_curves import curve_grid, curve_summary

if TYPE_CHECKING:
    from podium.evaluate.comparison_result import Comparison

__all__ = ["INTERVALS", "curve_grid", "curve_summary", "metric_grid", "pairs_grid", "query_grid"]

INTERVALS = {
    "t": "from Student's t, per difference",
    "randomization": "from the randomization test, per difference",
    "wilcoxon": "of the mean from Student's t (the test concerns the median), per difference",
}
DIFFERENCE: list[Column] = [
    ("difference", lambda r: format_decimal(r.difference, sign=True)),
    ("interval", lambda r: format_interval(r.low, r.high)),
    ("p (Holm)", show_field("p_holm", format_p_value)),
    ("won/tied/lost", lambda r: "" if r.difference is None else f"{r.wins}/{r.ties}/{r.losses}"),
]


def metric_grid(comparison: Comparison, metric: str) -> Grid:
    """All results on one metric, best first."""
    rows = [r for r in comparison.rows if r.metric == metric]
    rows.sort(key=lambda r: -r.mean if math.isfinite(r.mean) else math.inf)
    (word, difference), (_, interval), *rest = DIFFERENCE
    columns: list[Column] = [
        (metric, show_field("name")),
        ("mean", show_field("mean", format_decimal)),
        ("judged", show_field("judged", format_percent)),
        (word, lambda r: difference(r) or ("baseline" if r.name == comparison.baseline else "")),
        (f"{100 * comparison.level:.6g} % interval", interval),
    ]
    title = f"{metric}, {format_count(comparison.queries, 'query', 'queries')}"
    return build_grid([*columns, *rest], rows, title=title)


def query_grid(comparison: Comparison, metric: str, name: str | None = None) -> Grid:
    """All queries on one metric, largest difference first, with the judged share next to every value."""
    base = comparison.baseline
    columns: list[Column] = [
        ("query", show_field("query")),
        (base, lambda r: format_decimal(r.values[base])),
        ("judged", lambda r: format_percent(r.judged[base])),
        ("other", show_field("other")),
        ("value", lambda r: format_decimal(r.values[r.other])),
        ("judged", lambda r: format_percent(r.judged[r.other])),
        DIFFERENCE[0],
        ("best", lambda r: "tied" if r.winner is None else r.winner),
    ]
    title = f"{metric} by query: {base} and " + (name or "the result farthest from it")
    return build_grid(columns, comparison.per_query(metric, name=name), title=title)


def pairs_grid(comparison: Comparison, metric: str) -> Grid:
    """All pairs on one metric."""
    columns: list[Column] = [("better", show_field("better")), ("worse", show_field("worse")), *DIFFERENCE]
    return build_grid(columns, comparison.pairs(metric), left=2, title=f"{metric}, all pairs")
