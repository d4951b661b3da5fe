"""Leading singular vectors of many pairwise matrices: structured products against dense decompositions.

python benchmarks/svd.py [--quick]

Every matrix is one ranking on the log scale. `alike` rankings have no gaps, so that all of one length make the same
matrix; `distinct` ones have random gaps. What is timed is `leading` from the lists in memory; the dense ways get
their matrices for nothing. All must give the same vectors.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from timing import Timing, measure

from podium.kernels import preference_svd
from podium.kernels.dispatch import F8, I8
from podium.kernels.preference_svd import PreferenceMatrices

CASES = ((19_600, 20), (5, 1000))  # how many matrices, of how many items


def lists(count: int, size: int, *, gaps: bool) -> PreferenceMatrices:
    """One list a matrix, over all items of a query of its own."""
    random = np.random.default_rng(0)
    order = np.argsort(random.random((count, size)), axis=1)
    rank = np.tile(np.arange(1, size + 1), (count, 1))
    if gaps:
        rank += np.cumsum(random.integers(0, 4, (count, size)), axis=1)
    starts: I8 = np.arange(count + 1) * size
    value = np.log(rank) / np.log(rank[:, -1:])
    empty, no_votes = np.zeros(0, np.int32), np.zeros(count + 1, np.int64)
    each = np.arange(count)
    item = (order + starts[:-1, None]).ravel().astype(np.int32)
    one = np.arange(count + 1)
    return PreferenceMatrices(
        starts, each, one, starts, item, value.ravel(), False, False, no_votes, empty, empty, np.zeros(0)
    )


def dense_power(tables: F8, steps: int) -> F8:
    """Left vectors by power iteration with the whole matrices."""
    v = np.ones(tables.shape[:2])
    for _ in range(steps):
        u = np.einsum("gij,gj->gi", tables, v)
        v = np.einsum("gij,gi->gj", tables, u)
        v /= np.linalg.norm(v, axis=1, keepdims=True)
    return u / np.linalg.norm(u, axis=1, keepdims=True)


def structured(m: PreferenceMatrices) -> tuple[Timing, preference_svd.LeadingVectors]:
    """Podium's time and vectors."""
    preference_svd.compute_leading_vectors(m)
    return measure(lambda: preference_svd.compute_leading_vectors(m))


def rows_of(count: int, size: int, repeats: int) -> list[dict[str, Any]]:
    """One row a way, for matrices of one size."""
    rows = []
    for name, gaps in (("distinct", True), ("alike", False)):
        m = lists(count, size, gaps=gaps)
        own, found = structured(m)
        case = {"matrices": f"{count:,} of {size:,} x {size:,}", "lists": name}
        rows.append({**case, "way": "podium", "time": str(own), "steps": float(found.iterations.mean())})
        if not gaps:
            continue
        tables = np.array([preference_svd.build_dense_matrix(m, g) for g in range(count)])
        steps = int(found.iterations.max())
        for way, call in (
            ("numpy svd", lambda t=tables: np.abs(np.linalg.svd(t)[0][:, :, 0])),
            ("dense power iteration", lambda t=tables, k=steps: dense_power(t, k)),
        ):
            timing, u = measure(call, repeats=repeats, budget=20.0)
            assert np.abs(u.ravel() - found.u).max() < 1e-8, way
            ratio = round(timing.median / own.median, 1)
            rows.append({**case, "way": way, "time": str(timing), "over podium": ratio})
    return rows


def run(quick: bool = False) -> list[dict[str, Any]]:
    """All cases; a quick run takes a tenth of the small matrices."""
    rows = []
    for count, size in CASES:
        rows += rows_of(count // 10 if quick and count > 10 else count, size, 1 if quick else 3)
    columns: dict[str, Any] = {key: "" for row in rows for key in row}
    return [columns | row for row in rows]


if __name__ == "__main__":
    import sys

    for row in run("--quick" in sys.argv):
        print("  ".join(f"{key}: {value}" for key, value in row.items() if value != ""))
