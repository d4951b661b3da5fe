"""Leading singular vectors of many pairwise matrices on the device, by repeated squaring of Y'Y in double precision."""

from __future__ import annotations

from typing import Any

import numpy as np

from podium.kernels import segments
from podium.kernels.device.machine import Machine
from podium.kernels.dispatch import I8
from podium.kernels.strength_matrices import Matrices, compact, select
from podium.kernels.strengths import TOLERANCE, Leading

__all__ = ["leading"]

CELLS = 1 << 26  # cells of the matrices that are worked on at once
SQUARINGS = 50  # at most; k of them are worth 2 ** k steps of power iteration
POLISH = 2  # plain steps with Y itself at the end


def leading(where: Machine, m: Matrices, tolerance: float = TOLERANCE) -> Leading:
    """The same as `podium.kernels.strengths.leading`; `iterations` counts squarings.

    Matrices are built whole, sizes rounded up to a multiple of eight. Entries are non-negative, so squaring cancels
    nothing, and errors in the direction of the vectors add up instead of doubling.
    """
    small, entry = compact(m)
    size, count = int(m.starts_out[-1]), len(m.query)
    u, v, sigma = np.zeros(size), np.zeros(size), np.zeros(count)
    steps = np.zeros(count, np.int64)
    width = -(-small.sizes // 8) * 8
    for wide in np.unique(width[width > 0]).tolist():
        of_width = np.flatnonzero(width == wide)
        at_once = max(1, CELLS // wide**2)
        for first in range(0, len(of_width), at_once):
            which = of_width[first : first + at_once]
            found = _solve(where, _tables(where, select(small, which), wide), tolerance)
            held = np.arange(wide) < small.sizes[which, None]
            inside = entry[segments.gather(small.starts_out, which)[1]]
            u[inside], v[inside] = (part.cpu().numpy()[held] for part in found[:2])
            sigma[which], steps[which] = found[2].cpu().numpy(), found[3]
    return Leading(u, v, sigma, steps, bool((steps < SQUARINGS).all()))


def _tables(where: Machine, m: Matrices, wide: int) -> Any:
    """The matrices themselves, (matrices, wide, wide)."""
    torch, count = where.torch, len(m.query)
    out = where.zeros(count, wide, wide, kind=torch.float64)
    base = m.slots[m.query]
    inside = where.put(np.arange(wide) < m.sizes[:, None])
    lists = np.diff(m.list_starts)
    for number in range(int(lists.max(initial=0))):  # the lists with this number, one a matrix
        which = np.flatnonzero(lists > number)
        starts, rows = segments.gather(m.starts, m.list_starts[which] + number)
        matrix = np.repeat(which, np.diff(starts))
        value, held = np.zeros((count, wide)), np.zeros((count, wide), np.bool_)
        slot = m.item[rows] - base[matrix]
        value[matrix, slot], held[matrix, slot] = m.value[rows], True
        _add_list(out, where.put(value), where.put(held), inside, m)
    _add_votes(where, m, base, out)
    return out


def _add_list(out: Any, value: Any, held: Any, inside: Any, m: Matrices) -> None:
    over = value[:, None, :] - value[:, :, None]
    over = (over > 0).to(out.dtype) if m.binary else over.clamp_(min=0.0)
    out += over * (held[:, :, None] & held[:, None, :])
    if m.below:
        out += (held[:, :, None] & (inside & ~held)[:, None, :]).to(out.dtype)


def _add_votes(where: Machine, m: Matrices, base: I8, out: Any) -> None:
    """Votes on one pair are added up on the host, so that the order of the sums is always the same."""
    if not len(m.winner):
        return
    matrix = np.repeat(np.arange(len(m.query)), np.diff(m.vote_starts))
    wide = out.shape[1]
    cell = (matrix * wide + m.winner - base[matrix]) * wide + m.loser - base[matrix]
    cells, at = np.unique(cell, return_inverse=True)
    out.view(-1)[where.put(cells)] += where.put(np.bincount(at, weights=m.strength))


def _solve(where: Machine, tables: Any, tolerance: float) -> tuple[Any, Any, Any, I8]:
    """u, v, sigma and the squarings that each matrix took."""
    torch = where.torch
    tables, largest = tables / _or_one(tables.amax(dim=(1, 2), keepdim=True)), tables.amax(dim=(1, 2))
    power = tables.transpose(1, 2) @ tables
    start = _unit(tables.sum(dim=1))
    v = _unit((power @ start[:, :, None])[:, :, 0])
    steps = np.full(len(tables), SQUARINGS, np.int64)
    tolerance = max(tolerance, 2.0**-52 * tables.shape[1])
    for done in range(1, SQUARINGS):
        power = power / _or_one(power.sum(dim=(1, 2), keepdim=True))
        power = power @ power
        new = _unit((power @ start[:, :, None])[:, :, 0])
        near = (torch.linalg.vector_norm(new - v, dim=1) <= tolerance).cpu().numpy()
        v = new
        steps[near & (steps == SQUARINGS)] = done
        if near.all():
            break
    for _ in range(POLISH):
        v = _unit((tables.transpose(1, 2) @ (tables @ v[:, :, None]))[:, :, 0])
    u = (tables @ v[:, :, None])[:, :, 0]
    sigma = torch.linalg.vector_norm(u, dim=1)
    return u / _or_one(sigma)[:, None], v, sigma * largest, steps


def _or_one(x: Any) -> Any:
    return x + (x == 0).to(x.dtype)


def _unit(x: Any) -> Any:
    norm = x.square().sum(dim=1, keepdim=True).sqrt()
    return x / _or_one(norm)
