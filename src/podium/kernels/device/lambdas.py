"""LambdaRank gradients for a batch of queries at once, by tables of all pairs; any metric."""

from __future__ import annotations

from typing import Any, NamedTuple

from podium.kernels.device.torch_device import TorchDevice
from podium.kernels.ranking_measures import PRECISION, SUM

__all__ = ["DeviceRows", "compute_lambdas"]

CELLS = 1 << 26  # pairs held at once


class DeviceRows(NamedTuple):
    """A batch of queries with consecutive rows, best grade first; everything is on the device."""

    starts: Any  # rows of query q: starts[q] .. starts[q + 1]
    gain: Any  # by row
    level: Any  # by row
    weight: Any  # by row
    limit: Any  # by query
    scale: Any  # by query
    kind: int
    discount: Any  # by place, for all places


def compute_lambdas(where: TorchDevice, scores: Any, rows: DeviceRows) -> Any:
    """The gradient of the objective by every score, as `podium.kernels.lambdas.compute_lambdas`."""
    torch, longest = where.torch, len(rows.discount)
    out = torch.zeros_like(scores)
    at = max(1, CELLS // longest**2)
    for first in range(0, len(rows.limit), at):
        part = rows._replace(
            starts=rows.starts[first : first + at + 1],
            limit=rows.limit[first : first + at],
            scale=rows.scale[first : first + at],
        )
        _compute_chunk_lambdas(where, scores, part, out)
    return out


def _compute_chunk_lambdas(where: TorchDevice, scores: Any, rows: DeviceRows, out: Any) -> None:
    """Gradients of a few queries, in tables (query, place) and (query, place, place), written to `out`."""
    torch = where.torch
    place = torch.arange(len(rows.discount), device=where.device)
    held = place < (rows.starts[1:] - rows.starts[:-1])[:, None]
    at = torch.where(held, rows.starts[:-1, None] + place, 0)
    order, run = _sort_rows(where, torch.where(held, scores[at], -torch.inf), rows.level[at], held)
    at, held = at.gather(1, order), held.gather(1, order)
    s, gain, level = scores[at], torch.where(held, rows.gain[at], 0.0), rows.level[at]
    counted = place < rows.limit[:, None]
    change = _compute_swap_changes(where, rows.kind, gain, rows.discount, counted) * rows.scale[:, None, None]
    weight = torch.where(held, rows.weight[at], 0.0)
    change = change * (weight[:, :, None] * weight[:, None, :])
    better = (level[:, :, None] > level[:, None, :]) & held[:, :, None] & held[:, None, :]
    pull = torch.where(better, change * torch.sigmoid(s[:, None, :] - s[:, :, None]), 0.0)
    slope = pull.sum(dim=1) - pull.sum(dim=2)
    # rows of one grade in one run of near-equal scores get their mean
    alike = (run[:, :, None] == run[:, None, :]) & (level[:, :, None] == level[:, None, :])
    alike = (alike & held[:, None, :]).to(s.dtype)
    slope = (alike @ slope[:, :, None])[:, :, 0] / alike.sum(dim=2).clamp_(min=1.0)
    # padding is written to an unused position
    spare = torch.zeros(len(out) + 1, dtype=out.dtype, device=out.device)
    spare.scatter_(0, torch.where(held, at, len(out)).ravel(), slope.ravel())
    out += spare[:-1]


def _sort_rows(where: TorchDevice, scores: Any, level: Any, held: Any) -> tuple[Any, Any]:
    """Rows from the top, worst grade first where scores are nearly equal; and the run of each place."""
    torch, n = where.torch, scores.shape[1]
    order = torch.sort(scores, dim=1, descending=True, stable=True).indices
    ranked = scores.gather(1, order)
    near = where.tie_tolerance * torch.where(held, scores.abs(), 0.0).amax(dim=1, keepdim=True)
    falls = torch.zeros_like(order)
    falls[:, 1:] = (ranked[:, :-1] - ranked[:, 1:]) > near
    run = falls.cumsum(dim=1)
    # one integer per row sorts by run, then grade, then place
    key = (run * (level.max() + 1) + level.gather(1, order)) * n + order
    inside = key.sort(dim=1).indices
    return order.gather(1, inside), run.gather(1, inside)


def _compute_swap_changes(where: TorchDevice, kind: int, gain: Any, discount: Any, counted: Any) -> Any:
    """|change when the rows at two places are swapped|, not scaled."""
    torch = where.torch
    if kind == SUM:
        d = torch.where(counted, discount, 0.0)
        return ((gain[:, :, None] - gain[:, None, :]) * (d[:, :, None] - d[:, None, :])).abs()
    by_place = _precision_changes if kind == PRECISION else _cascade_changes
    upper = by_place(where, gain, discount, counted).triu(1)
    return (upper + upper.transpose(1, 2)).abs()


def _precision_changes(where: TorchDevice, gain: Any, discount: Any, counted: Any) -> Any:
    torch = where.torch
    inverse = torch.where(counted, 1.0 / discount, 0.0)
    hits, between = gain.cumsum(dim=1), (gain * inverse).cumsum(dim=1)
    a, b = (slice(None), slice(None), None), (slice(None), None)
    inner = (between - gain * inverse)[b] - between[a]
    down = (hits * inverse)[b] - (hits * inverse)[a] - inner
    up = ((hits + 1) * inverse)[a] + inner - (hits * inverse)[b]
    return torch.where(gain[a] > gain[b], down, torch.where(gain[a] < gain[b], up, 0.0))


def _cascade_changes(where: TorchDevice, gain: Any, discount: Any, counted: Any) -> Any:
    torch, n = where.torch, gain.shape[1]
    d = torch.where(counted, discount, 0.0)
    place = torch.arange(n, device=where.device)
    later = place > place[:, None]  # place k after place a
    ones = torch.ones_like(gain[:, :1])
    before = torch.cat((ones, (1 - gain).cumprod(dim=1)[:, :-1]), dim=1)
    # the chance to read past all places between two
    through = torch.where(later, (1 - gain)[:, None, :], 1.0).cumprod(dim=2)
    through = torch.cat((ones[:, :, None].expand(-1, n, 1), through[:, :, :-1]), dim=2)
    worth = torch.where(later, through * (d * gain)[:, None, :], 0.0)
    inner = worth.cumsum(dim=2) - worth
    a, b = (slice(None), slice(None), None), (slice(None), None)
    old = (d * gain)[a] + (1 - gain)[a] * (inner + through * (d * gain)[b])
    new = d[a] * gain[b] + (1 - gain)[b] * (inner + through * d[b] * gain[a])
    return before[a] * (new - old)
