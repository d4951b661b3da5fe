"""Chart of the agreement between experts."""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING, Any

from podium.evaluate import charts
from podium.kernels.dispatch import F8

if TYPE_CHECKING:
    from podium.analysis.experts.result import Diagnosis

__all__ = ["draw_agreement", "order_by_linkage", "plot_agreement"]


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
    names = [str(e) for e in diagnosis.experts]
    if len(names) > 3:  # in clustering order, so that groups appear as squares
        import numpy as np

        apart = np.maximum(1.0 - np.nan_to_num(diagnosis.agreement, nan=0.0), 0.0)
        names = [names[i] for i in order_by_linkage(apart)]
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


def order_by_linkage(apart: F8) -> list[int]:
    """The leaves of an average-linkage clustering, from a matrix of distances; a merged cluster keeps the
    order of its parts, the older part first.
    """
    import numpy as np

    count = len(apart)
    distance = apart.copy()
    np.fill_diagonal(distance, np.inf)
    leaves = [[i] for i in range(count)]
    born = list(range(count))  # the merge that made a cluster, after the single leaves
    for merge in range(count, 2 * count - 1):
        a, b = sorted(divmod(int(distance.argmin()), count), key=born.__getitem__)
        sizes = len(leaves[a]), len(leaves[b])
        mean = (sizes[0] * distance[a] + sizes[1] * distance[b]) / sum(sizes)
        mean[[a, b]] = np.inf
        distance[a], distance[:, a] = mean, mean
        distance[b], distance[:, b] = np.inf, np.inf
        leaves[a], leaves[b], born[a] = leaves[a] + leaves[b], [], merge
    return max(leaves, key=len)
