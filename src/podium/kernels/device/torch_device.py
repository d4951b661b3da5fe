"""Device and precision of a computation, and replay of a recorded step without waiting for Python."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy.typing as npt

from podium.core.errors import Option, ParameterError
from podium.core.optional import require_module

__all__ = [
    "DEVICES",
    "RecordedStep",
    "TorchDevice",
    "half_type",
    "load_triton_kernels",
    "next_power_of_two",
    "resolve_device",
    "split_halves",
]

DEVICES = ("cpu", "cuda", "cuda64", "torch")  # "cpu" uses the kernels beside this package


class TorchDevice(NamedTuple):
    """PyTorch, one of its devices, and the type of numbers there."""

    torch: Any
    device: Any
    real: Any

    @property
    def tie_tolerance(self) -> float:
        """Scores closer than this fraction of the largest are equal."""
        return 1e-10 if self.real == self.torch.float64 else 1e-6

    def to_device(self, array: npt.NDArray[Any], kind: Any = None) -> Any:
        """An array on the device, in its own or another type."""
        import numpy as np

        there = self.torch.from_numpy(np.ascontiguousarray(array))
        return there.to(self.device) if kind is None else there.to(self.device, kind)

    def zeros(self, *shape: int, kind: Any = None) -> Any:
        """Zeros on the device."""
        return self.torch.zeros(shape, dtype=kind or self.real, device=self.device)


def resolve_device(name: str) -> TorchDevice:
    """`cuda` (single precision), `cuda64` (double) or `torch` (PyTorch on the CPU, double, for checks)."""
    torch = require_module(
        "torch",
        (Option("device", name, of="method"), " needs"),
        ("use ", Option("device", "cpu", of="method")),
    )
    if name == "torch":
        return TorchDevice(torch, torch.device("cpu"), torch.float64)
    if not torch.cuda.is_available():
        raise ParameterError(
            Option("device", name, of="method"),
            f" needs a CUDA device, and PyTorch {torch.__version__} detects none; use ",
            Option("device", "cpu", of="method"),
        )
    return TorchDevice(torch, torch.device("cuda"), torch.float32 if name == "cuda" else torch.float64)


def load_triton_kernels(where: TorchDevice) -> Any:
    """The module of Triton kernels, where they can run (or be interpreted, in tests); otherwise None."""
    if where.device.type != "cuda" and os.environ.get("TRITON_INTERPRET") != "1":
        return None
    try:
        from podium.kernels.device import triton_lambdarank
    except ImportError:  # PyTorch comes without Triton on some systems
        return None
    return triton_lambdarank


def next_power_of_two(n: int) -> int:
    """The smallest power of two at or above n, as kernels require for block sizes."""
    return 1 << (max(1, n) - 1).bit_length()


def half_type(where: TorchDevice) -> Any:
    """The type that matrix units multiply exactly; Triton's interpreter does not support it."""
    return where.torch.bfloat16 if where.device.type == "cuda" else where.torch.float32


def split_halves(whole: Any, high: Any, low: Any) -> None:
    """Write numbers as sums of two halves."""
    high.copy_(whole)
    low.copy_(whole - high)


class RecordedStep:
    """A step on fixed tensors, recorded once on a CUDA device and replayed, as launching costs more.

    `turn` counts the steps and selects the data of each. Recording runs the first step a few times, so any
    state that steps change must be set afterwards.
    """

    def __init__(self, where: TorchDevice, step: Callable[[], None], turn: Any) -> None:
        torch, self._graph, self._step = where.torch, None, step
        if where.device.type != "cuda":
            return
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            # CUDA requires a warm-up on another stream before it records;
            # the first steps compile and allocate
            for _ in range(3):
                turn.zero_()
                step()
            turn.zero_()
        torch.cuda.current_stream().wait_stream(side)
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph):
            step()

    def run_steps(self, times: int) -> None:
        """Replay this many steps."""
        call = self._step if self._graph is None else self._graph.replay
        for _ in range(times):
            call()
