"""CRF passes on the device: all rankings of the few items of a visit, a batch of visits at once."""

from __future__ import annotations

from typing import Any

import numpy as np

from podium.core.errors import Option, ParameterError
from podium.kernels.device.device_optimizer import DeviceOptimizer
from podium.kernels.device.torch_device import (
    RecordedStep,
    TorchDevice,
    load_triton_kernels,
    next_power_of_two,
)
from podium.kernels.dispatch import F8, I8
from podium.kernels.lambdas import MetricTarget, OptimizerState
from podium.kernels.ranking_expectations import Potentials, enumerate_rankings
from podium.kernels.ranking_measures import PRECISION, SUM

__all__ = ["DeviceCrf"]

LARGEST = 1 << 30  # values in the table of statements
CELLS = 1 << 26  # values of rankings computed at once
WIDEST = 2048  # weights that one program can hold for every item of a visit


class DeviceCrf:
    """Statements about every row as a table on the device, and the training target."""

    def __init__(
        self,
        where: TorchDevice,
        potentials: Potentials,
        target: MetricTarget,
        weight: F8,
        starts: I8,
        groups: int,
        size: int,
    ) -> None:
        rows, columns = len(potentials.starts) - 1, potentials.values.shape[1]
        if rows * columns * groups > LARGEST:
            raise ParameterError(
                f"{rows:,} items and {groups:,} experts make the table too large for the device; use ",
                Option("device", "cpu", of="method"),
                ", or ",
                Option("sharing", "hybrid", of="method"),
                " with a larger min_preferences",
            )
        self.where, self.target, self.size, self.rows = where, target, size, np.diff(starts)
        put = where.to_device
        self.statements = where.zeros(rows, groups, columns)
        self.statements[put(potentials.row), put(potentials.group)] = put(potentials.values, where.real)
        self.statements = self.statements.view(rows, columns * groups)
        order, fall = enumerate_rankings(size)
        self.order, self.falls = put(order), put(fall.T, where.real)
        # visits with fewer items: only rankings that leave the last places to the missing items
        short = np.arange(size + 1)[:, None, None] > np.arange(size)
        allowed = (short | (order == np.arange(size))).all(axis=2)
        self.allowed = put(np.where(allowed, 0.0, -np.inf), where.real)
        self.gain, self.weight = put(target.gain, where.real), weight
        self._choose_kernel(order)
        self.plan: _VisitPlan | None = None

    def _choose_kernel(self, order: I8) -> None:
        """The kernel for a visit, if available; and its arguments for metrics that are sums."""
        known, size, target = load_triton_kernels(self.where), self.size, self.target
        self.kernel: Any = None
        if known is not None and self.statements.shape[1] <= WIDEST:
            from podium.kernels.device import triton_rankings

            self.kernel = triton_rankings.compute_visit_gradient
        # a query with fewer rows than the cutoff has no gains beyond them, so one cutoff serves all
        cut, sizes = int(target.limit.max(initial=0)), np.minimum(size, self.rows)
        self.sums = target.kind == SUM and bool((target.limit >= np.minimum(cut, sizes)).all())
        discount = np.zeros(size)
        counted = min(cut, size, len(target.discount))
        discount[:counted] = target.discount[:counted]
        self.seats = self.where.to_device(discount[order.argsort(axis=1)].T, self.where.real)

    def learn(self, visit: I8, rows: I8, batch: int, optimizer: OptimizerState) -> float:
        """Visit queries, each through its rows (-1 is padding); a step after every `batch`; the mean loss."""
        if self.plan is None or not self.plan.can_serve(len(visit), batch, optimizer):
            self.plan = _VisitPlan(self, len(visit), batch, optimizer)
        lost = self.plan.run_pass(visit, rows, optimizer)
        return lost / max(float(self.weight[visit].sum()), 1e-300)

    def compute_metric_values(self, gain: Any, limit: Any) -> Any:
        """The metric of every ranking over that of the ideal one; `gain` is (visits, items), best first."""
        torch, kind = self.where.torch, self.target.kind
        total = torch.zeros((len(gain), len(self.order)), dtype=gain.dtype, device=gain.device)
        state = torch.full_like(total, float(kind != PRECISION))
        for p, discount in enumerate(self.target.discount[: self.size].tolist()):
            here = gain[:, self.order[:, p]] * (p < limit)[:, None]
            if kind == SUM:
                total += here * discount
            elif kind == PRECISION:
                state += here
                total += here * state / discount
            else:
                total += discount * here * state
                state *= 1.0 - here
        ideal = total[:, :1]  # the first ranking keeps the given order
        return torch.where(ideal > 0, total / ideal, 0.0)


class _VisitPlan:
    """The visits of a pass by step, and the recorded step."""

    def __init__(self, field: DeviceCrf, visits: int, batch: int, optimizer: OptimizerState) -> None:
        where, size = field.where, field.size
        self.field, self.visits, self.batch, self.steps = field, visits, batch, -(-visits // batch)
        shape, long = (self.steps, batch), where.torch.int64
        self.table = where.zeros(*shape, size + 1, kind=long)  # rows of each visit, and their number
        self.worth = where.zeros(0 if field.kernel and field.sums else self.steps * batch, len(field.order))
        self.much, self.lost = where.zeros(*shape), where.zeros(*shape)
        self.partial = where.zeros(batch if field.kernel else 0, field.statements.shape[1])
        self.count = where.to_device(np.minimum(batch, visits - batch * np.arange(self.steps)))
        self.turn = where.zeros(2, kind=long)
        self.descent = DeviceOptimizer(where, optimizer)
        self.step = RecordedStep(where, self._launch_kernel if field.kernel else self._run_step, self.turn)

    def can_serve(self, visits: int, batch: int, optimizer: OptimizerState) -> bool:
        """Whether this plan can be reused for another pass."""
        kind = (visits, batch, optimizer.adam, optimizer.positive)
        return kind == (self.visits, self.batch, self.descent.adam, self.descent.positive)

    def run_pass(self, visit: I8, rows: I8, optimizer: OptimizerState) -> float:
        """Run one pass; returns the sum of the losses."""
        self._fill_tables(visit, rows)
        self.descent.load(optimizer)
        self.turn.zero_()
        self.step.run_steps(self.steps)
        self.descent.save(optimizer, self.steps)
        return float(self.lost.sum(dtype=self.field.where.torch.float64).item())

    def _fill_tables(self, visit: I8, rows: I8) -> None:
        """Positions beyond the last visit stay 0: they have no weight."""
        field, where, table = self.field, self.field.where, self.table.view(-1, self.table.shape[2])
        items = (rows >= 0).sum(axis=1)
        table[: self.visits] = where.to_device(np.column_stack((np.maximum(rows, 0), items)))
        self.much.view(-1)[: self.visits] = where.to_device(field.weight[visit], where.real)
        step = max(1, CELLS // len(field.order))
        for first in range(0, min(self.visits, len(self.worth)), step):
            part = slice(first, min(first + step, self.visits))
            held = where.to_device(np.arange(field.size) < items[part, None])
            gain = field.gain[table[part, :-1]] * held
            self.worth[part] = field.compute_metric_values(
                gain, where.to_device(field.target.limit[visit[part]])
            )

    def _launch_kernel(self) -> None:
        """The next step: one program per visit."""
        field, descent, (count, size) = self.field, self.descent, self.field.order.shape
        width = field.statements.shape[1]
        tables = [self.table, self.much, self.count, field.gain, self.worth]
        tables += [field.allowed, field.falls, field.seats, self.partial, self.lost]
        how = {
            "sums": field.sums,
            "N": size,
            "M": next_power_of_two(size),
            "P": next_power_of_two(count),
            "W": next_power_of_two(width),
        }
        how["num_warps"] = 4 if count < 1024 else 16
        field.kernel[(self.batch,)](
            field.statements, descent.flat, self.turn, *tables, self.batch, width, count, **how
        )
        descent.update_weights(self.partial, self.count, self.turn)

    def _run_step(self) -> None:
        """The same by tables of the whole batch."""
        field, descent, torch = self.field, self.descent, self.field.where.torch
        now = self.turn[:1]
        tables = (self.table, self.worth.view(*self.much.shape, -1), self.much)
        table, worth, much = (table.index_select(0, now)[0] for table in tables)
        row, items = table[:, :-1], table[:, -1]
        held = (items[:, None] > torch.arange(field.size, device=items.device)).to(worth.dtype)
        statements = field.statements.index_select(0, row.reshape(-1))
        omega = (statements @ descent.flat).view_as(held) * held
        energy = torch.addmm(field.allowed.index_select(0, items), omega, field.falls)
        chance = energy.softmax(dim=1)
        mean = (chance * worth).sum(dim=1)
        self.lost.index_copy_(0, now, (much * (1.0 - mean))[None])
        slope = (chance * (worth - mean[:, None])) @ field.falls.T
        slope = slope * held * -much[:, None]
        torch.add(now, 1, out=self.turn[1:])
        descent.update_weights(slope.ravel() @ statements, self.count, self.turn)
