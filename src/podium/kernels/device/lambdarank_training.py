"""LambdaRank passes, linear or with hidden layers, over queries whose features stay on the device."""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from podium.kernels.device.device_optimizer import DeviceOptimizer
from podium.kernels.device.lambdas import DeviceRows, compute_lambdas
from podium.kernels.device.torch_device import (
    RecordedStep,
    TorchDevice,
    half_type,
    load_triton_kernels,
    next_power_of_two,
    split_halves,
)
from podium.kernels.dispatch import F8, I8
from podium.kernels.lambdas import MetricTarget, OptimizerState
from podium.kernels.ranking_measures import SUM

__all__ = ["DeviceObjective", "DeviceScorer"]

UNITS = 128  # largest number of hidden units that a program can hold per block of rows
ROOM = 1 << 30  # maximum number of values in the layer of a batch
PARTS = 128  # partial gradients that are summed last
# fastest block sizes of the kernels, without (False) and with hidden units
PAIRS = {"J": 8, "num_warps": 4}
FORWARD: dict[bool, dict[str, int]] = {
    False: {"K": 64, "T": 16, "num_warps": 4, "num_stages": 1},
    True: {"K": 32, "T": 64, "num_warps": 4, "num_stages": 3},
}
BACKWARD: dict[bool, dict[str, int]] = {
    False: {"G": 32, "T": 128, "num_warps": 4, "num_stages": 1},
    True: {"G": 64, "T": 64, "num_warps": 4, "num_stages": 1},
}


class DeviceScorer:
    """Features on the device, and a feed-forward scorer over one flat vector of parameters.

    `widths` are those of the features and of every hidden layer; parameters are laid out as in
    `learning.feature_scorer`.
    """

    def __init__(self, where: TorchDevice, values: F8, widths: list[int]) -> None:
        self.where, self.widths, self.kernels = where, widths, load_triton_kernels(where)
        self.values = where.torch.empty(values.shape, dtype=where.real, device=where.device)
        for first in range(0, len(values), 1 << 20):  # in parts: the host's copy is in double precision
            part = slice(first, first + (1 << 20))
            self.values[part].copy_(where.to_device(values[part]))

    def split_parameters(self, flat: Any) -> tuple[list[tuple[Any, Any]], Any]:
        """Views: (matrix, bias) of every hidden layer, and the output weights."""
        found, at = [], 0
        for a, b in pairwise(self.widths):
            found.append((flat[at : at + a * b].view(a, b), flat[at + a * b : at + (a + 1) * b]))
            at += (a + 1) * b
        return found, flat[at:]

    def forward(self, flat: Any, values: Any) -> tuple[list[Any], Any]:
        """The output of every layer, features first, and the scores."""
        hidden, output = self.split_parameters(flat)
        seen = [values]
        for matrix, bias in hidden:
            seen.append(self.where.torch.addmm(bias, seen[-1], matrix).tanh_())
        return seen, seen[-1] @ output

    def backward(self, flat: Any, seen: list[Any], slope: Any) -> Any:
        """The gradient of sum(slope * scores) with respect to the parameters."""
        hidden, output = self.split_parameters(flat)
        parts, back = [slope @ seen[-1]], None
        for k in reversed(range(len(hidden))):
            last = k + 1 == len(hidden)
            back = (
                self._backpropagate_output(slope, output, seen[-1])
                if last
                else back * (1.0 - seen[k + 1] ** 2)
            )
            parts[:0] = [(seen[k].T @ back).ravel(), back.sum(dim=0)]
            if k:
                back = back @ hidden[k][0].T
        return self.where.torch.cat(parts)

    def _backpropagate_output(self, slope: Any, output: Any, seen: Any) -> Any:
        """The input of the last hidden layer's units, before their tanh."""
        if self.kernels is None:
            return slope[:, None] * output * (1.0 - seen * seen)
        out, (rows, width) = self.where.torch.empty_like(seen), seen.shape
        self.kernels.back[(-(-rows // 32),)](slope, output, seen, out, rows, width, T=32, K=64)
        return out

    def scores(self, flat: F8) -> F8:
        """One score per row, on the host."""
        there, step = self.where.to_device(flat, self.where.real), 1 << 20
        found = [self.forward(there, part)[1].cpu() for part in self.values.split(step)]
        return np.concatenate([part.numpy() for part in found] or [np.zeros(0)]).astype(np.float64)


class DeviceObjective(DeviceScorer):
    """Training rows: queries are laid out as on the host, and a pass gathers the rows of each batch.

    All batches have the same number of row positions, so that one recorded step serves the whole pass.
    """

    def __init__(
        self, where: TorchDevice, values: F8, starts: I8, target: MetricTarget, widths: list[int]
    ) -> None:
        super().__init__(where, values, widths)
        self.starts, self.sizes = starts, np.diff(starts)
        weight = np.ones(len(target.gain)) if target.weight is None else target.weight
        longest = int(self.sizes.max(initial=1))
        discount = np.concatenate(
            (target.discount[:longest], np.ones(max(0, longest - len(target.discount))))
        )
        put, real = where.to_device, where.real
        self.kind, self.discount = target.kind, put(discount, real)
        self.first = put(starts)
        self.by_row = (put(target.gain, real), put(target.level), put(weight, real))
        self.by_query = (put(target.limit), put(target.scale, real))
        self.plan: _BatchPlan | None = None

    def compute_score_gradients(self, scores: Any, starts: Any, row: Any, query: Any) -> Any:
        """The gradients of a batch: one program per query where possible, else by tables of pairs."""
        where = self.where
        if self.kernels is None or self.kind != SUM:
            gain, level, weight = (column.index_select(0, row) for column in self.by_row)
            limit, scale = (column.index_select(0, query) for column in self.by_query)
            batch = DeviceRows(starts, gain, level, weight, limit, scale, self.kind, self.discount)
            return compute_lambdas(where, scores, batch)
        out, longest = where.torch.zeros_like(scores), self.padded_length()
        known, room = (*self.by_row, *self.by_query, self.discount), self.allocate_buffers(len(query))
        self.kernels.lambdas[(len(query),)](
            scores, starts, query, self.first, *known, *room, out, where.tie_tolerance, self.score_limit(), longest,
            T=self.block_size(), **PAIRS,
        )  # fmt: skip
        return out

    def padded_length(self) -> int:
        """Row positions of the longest query, padded so that all queries can start at a multiple of 16."""
        return -(-len(self.discount) // 16) * 16

    def allocate_buffers(self, queries: int) -> tuple[Any, Any]:
        """Scratch memory for the gradients of this many queries."""
        zeros, longest = self.where.zeros, self.padded_length()
        return zeros(queries, longest, kind=self.where.torch.int32), zeros(queries, 5, longest)

    def score_limit(self) -> float:
        """Score differences are clipped here to keep exponentials finite."""
        return 600.0 if self.where.real == self.where.torch.float64 else 80.0

    def block_size(self) -> int:
        """Rows of a query that a program handles at once."""
        return min(128, max(16, next_power_of_two(len(self.discount))))

    def learn(self, visit: I8, batch: int, optimizer: OptimizerState) -> None:
        """Visit queries in this order, with a step after every `batch`; updates the optimizer in place."""
        if self.plan is None or not self.plan.can_serve(visit, batch, optimizer):
            # there are kernels for at most one hidden layer
            shallow = len(self.widths) == 1 or (len(self.widths) == 2 and self.widths[1] <= UNITS)
            single = self.where.real == self.where.torch.float32
            fits = batch * self.padded_length() * self.widths[-1] <= ROOM
            has_kernels = self.kernels is not None and self.kind == SUM and single and shallow and fits
            self.plan = (_ShallowPlan if has_kernels else _LayeredPlan)(self, visit, batch, optimizer)
        self.plan.run_pass(visit, optimizer)

    @cached_property
    def halves(self) -> tuple[Any, Any]:
        """The features as sums of two half-precision numbers, which matrix units multiply exactly.

        Rows are padded with a one, for the bias of the first layer, and zeros.
        """
        rows, width = self.values.shape
        high, low = self.where.zeros(2, rows, -(-(width + 1) // 8) * 8, kind=half_type(self.where))
        for first in range(0, rows, 1 << 20):  # in parts: there is an intermediate copy
            part = slice(first, first + (1 << 20))
            split_halves(self.values[part], high[part, :width], low[part, :width])
        high[:, width] = 1.0
        return high, low


class _BatchPlan:
    """The batches of a pass in tables by step, and the recorded step."""

    def __init__(self, objective: DeviceObjective, visit: I8, batch: int, optimizer: OptimizerState) -> None:
        where, long = objective.where, objective.where.torch.int64
        self.objective, self.visits, self.batch, self.steps = (
            objective,
            len(visit),
            batch,
            -(-len(visit) // batch),
        )
        self.query = where.zeros(self.steps, batch, kind=long)
        count = np.minimum(batch, self.visits - batch * np.arange(self.steps))
        self.count, self.turn = where.to_device(count), where.zeros(2, kind=long)
        self.descent = DeviceOptimizer(where, optimizer, halves=len(objective.widths) == 2)
        self._allocate_tables(visit)
        self.step = RecordedStep(where, self._run_step, self.turn)

    def can_serve(self, visit: I8, batch: int, optimizer: OptimizerState) -> bool:
        """Whether this plan can be reused for another pass."""
        kind = (len(visit), batch, optimizer.adam, optimizer.positive)
        return kind == (self.visits, self.batch, self.descent.adam, self.descent.positive)

    def run_pass(self, visit: I8, optimizer: OptimizerState) -> None:
        """Run one pass."""
        self._fill_tables(visit)
        self.descent.load(optimizer)
        self.turn.zero_()
        self.step.run_steps(self.steps)
        self.descent.save(optimizer, self.steps)

    def _allocate_tables(self, visit: I8) -> None:
        """Allocate memory."""
        raise NotImplementedError

    def _fill_tables(self, visit: I8) -> None:
        """Write the visits of a pass into the tables."""
        self.query.view(-1)[: self.visits] = self.objective.where.to_device(visit)

    def _run_step(self) -> None:
        """The next step."""
        raise NotImplementedError


class _ShallowPlan(_BatchPlan):
    """Three kernels per step: scores, their gradients, gradients of the weights."""

    def _allocate_tables(self, visit: I8) -> None:
        objective, zeros = self.objective, self.objective.where.zeros
        longest, width = objective.padded_length(), objective.widths[0]
        units = objective.widths[1] if len(objective.widths) > 1 else 0
        self.blocks = {"T": objective.block_size(), "H": max(16, next_power_of_two(units)) if units else 1}
        self.values = objective.halves if units else (objective.values, objective.values)
        self.shape = (width, self.values[0].shape[1], units)
        self.scores, self.slope = zeros(self.batch, longest), zeros(self.batch, longest)
        self.room, self.seen = (
            objective.allocate_buffers(self.batch),
            zeros(self.batch, longest, self.blocks["H"]),
        )
        self.partial = zeros(min(self.batch, PARTS), len(self.descent.weights))

    def _run_step(self) -> None:
        objective, descent, kernels = self.objective, self.descent, self.objective.kernels
        longest, (width, _, units) = objective.padded_length(), self.shape
        which = (self.turn, self.query, self.count, objective.first)
        known = (*objective.by_row, *objective.by_query, objective.discount)
        how = self.blocks | FORWARD[units > 0]
        kernels.forward[(self.batch, -(-longest // how["T"]))](
            *self.values, descent.flat, *descent.halves, *which, self.scores, self.seen, self.batch, longest,
            *self.shape, **how,
        )  # fmt: skip
        kernels.pairs[(self.batch,)](
            self.scores, *which, *known, *self.room, self.slope, objective.where.tie_tolerance, objective.score_limit(),
            self.batch, longest, T=objective.block_size(), **PAIRS,
        )  # fmt: skip
        parts, size = self.partial.shape
        how = self.blocks | BACKWARD[units > 0]
        kernels.backward[(-(-(width + (units > 0)) // how["G"]) + (units > 0), parts)](
            *self.values, descent.flat, *which, self.slope, self.seen, self.partial, self.batch, longest, parts, size,
            *self.shape, **how,
        )  # fmt: skip
        descent.update_weights(self.partial, self.count, self.turn)


class _LayeredPlan(_BatchPlan):
    """Layer by layer over the rows of a batch; all batches have the same number of row positions."""

    def _find_most_rows(self, visit: I8) -> int:
        return int(np.add.reduceat(self.objective.sizes[visit], np.arange(0, len(visit), self.batch)).max())

    def can_serve(self, visit: I8, batch: int, optimizer: OptimizerState) -> bool:
        return super().can_serve(visit, batch, optimizer) and self._find_most_rows(visit) <= self.room

    def _allocate_tables(self, visit: I8) -> None:
        where, long = self.objective.where, self.objective.where.torch.int64
        # slightly more than this pass needs
        self.room = -(-self._find_most_rows(visit) * 65 // 64 // 64) * 64
        self.rows = where.zeros(self.steps, self.room, kind=long)
        self.starts = where.zeros(self.steps, self.batch + 1, kind=long)

    def _fill_tables(self, visit: I8) -> None:
        super()._fill_tables(visit)
        objective, where, torch = self.objective, self.objective.where, self.objective.where.torch
        sizes = np.zeros(self.steps * self.batch, np.int64)
        sizes[: self.visits] = objective.sizes[visit]
        starts = np.zeros((self.steps, self.batch + 1), np.int64)
        np.cumsum(sizes.reshape(self.steps, self.batch), axis=1, out=starts[:, 1:])
        self.starts.copy_(where.to_device(starts))
        # from (batch, query, place) to rows, on the device: as many as there are items
        length, total = where.to_device(sizes), int(sizes.sum())
        owner = torch.repeat_interleave(length, output_size=total)
        place = torch.arange(total, device=where.device) - (length.cumsum(0) - length)[owner]
        row = objective.first[self.query.view(-1)[owner]] + place
        at = self.starts[:, :-1].reshape(-1)[owner] + place + (owner // self.batch) * self.room
        self.rows.zero_()
        self.rows.view(-1).scatter_(0, at, row)

    def _run_step(self) -> None:
        objective, flat = self.objective, self.descent.flat
        row, query, starts = (
            t.index_select(0, self.turn[:1])[0] for t in (self.rows, self.query, self.starts)
        )
        seen, scores = objective.forward(flat, objective.values.index_select(0, row))
        slope = objective.compute_score_gradients(scores, starts, row, query)
        objective.where.torch.add(self.turn[:1], 1, out=self.turn[1:])
        self.descent.update_weights(objective.backward(flat, seen, slope), self.count, self.turn)
