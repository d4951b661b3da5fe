"""A feed-forward scorer with its gradient, over a flat parameter vector; linear without hidden layers."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from podium.kernels.dispatch import F8

__all__ = ["Network"]


@dataclass(frozen=True)
class Network:
    """Layers of `tanh` units on top of the features, and an output without bias: only differences matter."""

    inputs: int
    hidden: int = 0
    layers: int = 1

    @property
    def widths(self) -> list[int]:
        """Widths of the features and of every hidden layer."""
        return [self.inputs] + [self.hidden] * (self.layers if self.hidden else 0)

    @property
    def size(self) -> int:
        """Number of parameters."""
        return sum((a + 1) * b for a, b in pairwise(self.widths)) + self.widths[-1]

    def init_weights(self, random: np.random.Generator) -> F8:
        """Zeros for a linear scorer; otherwise Glorot & Bengio's uniform weights, zero biases and output."""
        flat = np.zeros(self.size)
        for matrix, _ in self._split_parameters(flat)[0]:
            reach = np.sqrt(6.0 / sum(matrix.shape))
            matrix[:] = random.uniform(-reach, reach, matrix.shape)
        return flat

    def _split_parameters(self, flat: F8) -> tuple[list[tuple[F8, F8]], F8]:
        """Views of the flat vector: (matrix, bias) of every hidden layer, and the output weights."""
        layers, at = [], 0
        for a, b in pairwise(self.widths):
            matrix = flat[at : at + a * b].reshape(a, b)
            layers.append((matrix, flat[at + a * b : at + (a + 1) * b]))
            at += (a + 1) * b
        return layers, flat[at:]

    def compute_scores(self, flat: F8, values: F8) -> F8:
        """One score per row."""
        hidden, output = self._split_parameters(flat)
        for matrix, bias in hidden:
            values = np.tanh(values @ matrix + bias)
        # the same summation order for every row: equal rows get bit-identical scores wherever they lie
        return np.asarray(np.einsum("ij,j->i", values, output))

    def compute_gradient(self, flat: F8, values: F8, slope: F8) -> F8:
        """The gradient of sum(slope * scores) with respect to the parameters."""
        hidden, output = self._split_parameters(flat)
        seen = [values]
        for matrix, bias in hidden:
            seen.append(np.tanh(seen[-1] @ matrix + bias))
        out = np.zeros(len(flat))
        parts, last = self._split_parameters(out)
        last[:] = slope @ seen[-1]
        back = slope[:, None] * output
        for k in reversed(range(len(hidden))):
            back = back * (1.0 - seen[k + 1] ** 2)
            parts[k][0][:] = seen[k].T @ back
            parts[k][1][:] = back.sum(axis=0)
            back = back @ hidden[k][0].T
        return out
