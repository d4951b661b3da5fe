"""Leading singular vectors of many pairwise matrices, single lists on the device, in double precision."""

from __future__ import annotations

from typing import Any

import numpy as np

from podium.kernels import segments
from podium.kernels.device.torch_device import TorchDevice, load_triton_kernels
from podium.kernels.dispatch import I8
from podium.kernels.preference_matrices import PreferenceMatrices, select_matrices
from podium.kernels.preference_svd import PATIENCE, SLOW, TOLERANCE, LeadingVectors
from podium.kernels.preference_svd import compute_leading_vectors as on_host

__all__ = ["compute_leading_vectors"]

# rows that a list is padded to, lists per program, and warps per program
SHAPES = ((32, 4, 1), (64, 2, 1), (128, 1, 1), (256, 1, 2), (512, 1, 4), (1024, 1, 8), (4096, 1, 16))
WIDTHS = [wide for wide, _, _ in SHAPES]


def compute_leading_vectors(
    where: TorchDevice, m: PreferenceMatrices, tolerance: float = TOLERANCE
) -> LeadingVectors:
    """The same as `podium.kernels.preference_svd.compute_leading_vectors`.

    Matrices of several lists or of votes, lists longer than the last of SHAPES, and lists on which power
    iteration is slow are left to the CPU; so is everything where Triton is missing.
    """
    if load_triton_kernels(where) is None:
        return on_host(m, tolerance)
    found = _solve_lists(where, m, tolerance)
    rest = np.flatnonzero(found.iterations == 0)
    if not len(rest):
        return found
    part, inside = (
        on_host(select_matrices(m, rest), tolerance),
        segments.gather_segments(m.starts_out, rest)[1],
    )
    found.u[inside], found.v[inside] = part.u, part.v
    found.sigma[rest], found.iterations[rest] = part.sigma, part.iterations
    return found._replace(converged=part.converged)


def _solve_lists(where: TorchDevice, m: PreferenceMatrices, tolerance: float) -> LeadingVectors:
    """Solutions of single lists; matrices left to the CPU have 0 iterations."""
    offsets, count = m.starts_out, len(m.query)
    size, number = int(offsets[-1]), m.list_starts[:-1]
    rows, sizes = np.diff(m.starts[m.list_starts]), np.diff(offsets)
    single = (np.diff(m.list_starts) == 1) & (np.diff(m.vote_starts) == 0)
    shape = np.where(single, np.searchsorted(WIDTHS, rows), len(SHAPES))
    below = np.where(rows > 0, sizes - rows, 0) if m.below else np.zeros_like(rows)
    table = np.stack((m.starts[number], rows, below, offsets[:-1], offsets[:-1] - m.slots[m.query]))
    # one array, so that they are copied in one transfer
    out = where.zeros(2 * (size + count), kind=where.torch.float64)
    value, item = where.to_device(m.value), where.to_device(m.item)
    order: list[I8] = []
    for kind in np.flatnonzero(np.bincount(shape, minlength=1)[: len(SHAPES)]).tolist():
        which = np.flatnonzero(shape == kind)
        ends = out[2 * (size + sum(len(part) for part in order)) :]
        some = table if len(which) == count else table[:, which]
        _launch_kernel(
            kind,
            where.to_device(some),
            value,
            item,
            out[:size],
            out[size : 2 * size],
            ends,
            tolerance,
            m.binary,
        )
        order.append(which)
    # into pinned memory, which the device writes to directly: new pages would cost more than all the rest
    found = where.torch.empty(out.shape, dtype=out.dtype, pin_memory=out.is_cuda).copy_(out).numpy()
    sigma, steps = np.zeros(count), np.zeros(count, np.int64)
    if order:
        which = np.concatenate(order)
        ends = found[2 * size :].reshape(-1, 2)[: len(which)]
        sigma[which], steps[which] = ends[:, 0], ends[:, 1]
    return LeadingVectors(found[:size], found[size : 2 * size], sigma, steps, True)


def _launch_kernel(
    kind: int, table: Any, value: Any, item: Any, u: Any, v: Any, ends: Any, *how: Any
) -> None:
    """Solve lists of one shape."""
    from podium.kernels.device import triton_rankings

    (wide, lists, warps), count = SHAPES[kind], table.shape[1]
    tolerance, binary = how
    triton_rankings.compute_leading_vectors[(-(-count // lists),)](
        table, value, item, u, v, ends, count, tolerance, SLOW, PATIENCE, binary, L=lists, W=wide, num_warps=warps
    )  # fmt: skip
