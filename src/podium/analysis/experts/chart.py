"""Chart of the agreement between experts."""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING, Any

from podium.evaluate import charts

if TYPE_CHECKING:
    from podium.analysis.experts.result import Diagnosis

__all__ = ["draw_agreement", "plot_agreement"]


def plot_agreement(diagnosis: Diagnosis, path: str | os.PathLike[str]) -> None:
    """Write the chart to a .svg, .png or .html file; the page needs no network."""
    charts.save_chart(draw_agreement(diagnosis), path)


def draw_agreement(diagnosis: Diagnosis) -> Any:
    """The matrices side by side as an Altair chart; similar experts are adjacent."""
    alt = charts.import_altair()
    parts = [
        _draw_matrix(
            alt,
            diagnosis,
            diagnosis.agreement,
            diagnosis.measure,
            0.0 if diagnosis.measure == "tau-b" else 0.5,
        )
    ]
    if diagnosis.overlap is not None:
        parts.append(_draw_matrix(alt, diagnosis, diagnosis.overlap, "RBO", None))
    return alt.hconcat(*parts).resolve_scale(color="independent")


def _draw_matrix(alt: Any, diagnosis: Diagnosis, matrix: Any, title: str, middle: float | None) -> Any:
    names = _order_by_similarity(diagnosis)
    values: list[dict[str, Any]] = [
        {"a": str(a), "b": str(b), "value": v, "queries": int(diagnosis.shared[i, j])}
        for i, a in enumerate(diagnosis.experts)
        for j, b in enumerate(diagnosis.experts)
        if math.isfinite(v := float(matrix[i, j]))
    ]
    low = min((v["value"] for v in values), default=0.0)
    scale = (
        alt.Scale(scheme="blues", domain=[min(low, 0.0), 1])
        if middle is None
        else alt.Scale(scheme="redblue", domain=[2 * middle - 1, 1], domainMid=middle)
    )
    axis = alt.Axis(labelLimit=160)
    return (
        alt.Chart(alt.Data(values=values))
        .mark_rect()
        .encode(
            x=alt.X("b:N", sort=names, title=None, axis=axis),
            y=alt.Y("a:N", sort=names, title=None, axis=axis),
            color=alt.Color("value:Q", scale=scale, title=title),
            tooltip=["a:N", "b:N", alt.Tooltip("value:Q", format=".3f"), "queries:Q"],
        )
        .properties(title=title, width={"step": 18}, height={"step": 18})
    )


def _order_by_similarity(diagnosis: Diagnosis) -> list[str]:
    """Names in clustering order, so that groups appear as squares; up to three experts keep their order."""
    names = [str(e) for e in diagnosis.experts]
    if len(names) < 4:
        return names
    import numpy as np
    from scipy.cluster.hierarchy import leaves_list, linkage
    from scipy.spatial.distance import squareform

    apart = 1.0 - np.nan_to_num(diagnosis.agreement, nan=0.0)
    np.fill_diagonal(apart, 0.0)
    order = leaves_list(linkage(squareform(np.maximum(apart, 0.0), checks=False), "average"))
    return [names[i] for i in order]
