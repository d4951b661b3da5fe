"""Optimizer steps with the state on the device: the host's `OptimizerState`, copied there and back."""

from __future__ import annotations

from typing import Any

import numpy as np

from podium.kernels.device.torch_device import TorchDevice, half_type, load_triton_kernels, split_halves
from podium.kernels.lambdas import OptimizerState

__all__ = ["DeviceOptimizer"]

BLOCK, ROWS = 64, 128  # weights updated per program, and gradient parts added at once


class DeviceOptimizer:
    """The optimizer state in double precision: it is small, and single precision would lose small steps."""

    def __init__(self, where: TorchDevice, optimizer: OptimizerState, *, halves: bool = False) -> None:
        double = where.torch.float64
        self.where, self.adam, self.positive = where, optimizer.adam, optimizer.positive
        # one array, so that they are copied in one transfer
        self.arrays = where.zeros(4, len(optimizer.weights), kind=double)
        self.weights, self.mean, self.square, self.towards = self.arrays
        self.numbers = where.zeros(3, kind=double)
        self.steps, self.rate, self.l2 = self.numbers
        self.flat = where.zeros(len(optimizer.weights))  # the weights in the precision of the data
        self.kernels = load_triton_kernels(where)
        # the same as sums of two halves, for matrix units
        kind, self.split = (half_type(where) if halves else None), halves
        self.halves = [where.zeros(len(optimizer.weights) * halves, kind=kind) for _ in range(2)]

    def load(self, optimizer: OptimizerState) -> None:
        """Copy the state from the host."""
        o, put = optimizer, self.where.to_device
        self.arrays.copy_(put(np.stack((o.weights, o.mean, o.square, o.penalty_center()))))
        self.numbers.copy_(put(np.array([o.steps[0], o.rate, o.l2], np.float64)))
        self.flat.copy_(self.weights)
        if self.split:
            split_halves(self.flat, *self.halves)

    def save(self, optimizer: OptimizerState, made: int) -> None:
        """Write the state into the host's arrays, after `made` steps."""
        found = self.arrays.cpu().numpy()
        optimizer.weights[:], optimizer.mean[:], optimizer.square[:] = found[:3]
        optimizer.steps[0] += made

    def update_weights(self, gradient: Any, count: Any, turn: Any) -> None:
        """As `podium.kernels.lambdas.update_weights`: step number turn[1] since loading; then sets turn[0].

        `gradient` is that of a batch of count[turn] queries, or a table whose first count[turn] rows sum to
        it.
        """
        if self.kernels is not None:
            size, single = len(self.weights), gradient.ndim == 1
            how = {"single": single, "adam": self.adam, "positive": self.positive, "split": self.split}
            self.kernels.step[(-(-size // BLOCK),)](
                gradient,
                count,
                turn,
                *self.kernel_state(),
                self.flat,
                *self.halves,
                size,
                len(gradient),
                **how,
                T=BLOCK,
                R=ROWS,
            )
            return
        # the same in PyTorch, where Triton is missing; Adam's decay rates are 0.9 and 0.999
        mean = gradient.to(self.weights.dtype) / count.index_select(0, turn[:1])
        mean += self.l2 * (self.weights - self.towards)
        done = self.steps + turn[1]
        if self.adam:
            self.mean += 0.1 * (mean - self.mean)
            self.square += 0.001 * (mean * mean - self.square)
            root = (self.square / (1 - 0.999**done)).sqrt_().add_(1e-8)
            self.weights -= self.rate * (self.mean / (1 - 0.9**done)) / root
        else:
            self.weights -= self.rate * mean
        if self.positive:
            self.weights.clamp_(min=0.0)
        self.flat.copy_(self.weights)
        turn[:1] = turn[1:]

    def kernel_state(self) -> tuple[Any, ...]:
        """Arguments of the kernels that perform steps."""
        return self.weights, self.mean, self.square, self.towards, self.steps, self.rate, self.l2
