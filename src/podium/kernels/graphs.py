"""Connected components and reachability of directed graphs given by their edges."""

from __future__ import annotations

from typing import Any

import numpy as np

from podium._core import graphs as core
from podium.kernels.dispatch import B1, I8

__all__ = ["label_matrix_components", "label_strong_components", "label_weak_components", "mark_reachable"]


def label_weak_components(source: Any, target: Any, nodes: int) -> I8:
    """A label 0, 1, ... per node, by first appearance; equal for nodes that edges of any direction connect.

    >>> label_weak_components([0, 3], [2, 1], 5).tolist()
    [0, 1, 0, 1, 2]
    """
    return np.asarray(core.label_weak_components(*_as_edges(source, target), nodes), np.int64)


def label_matrix_components(linked: B1) -> I8:
    """The same for a matrix whose nonzero cells are links."""
    source, target = np.nonzero(linked)
    return label_weak_components(source, target, len(linked))


def label_strong_components(source: Any, target: Any, nodes: int) -> I8:
    """A label 0, 1, ... per node; equal for nodes that reach each other.

    >>> label_strong_components([0, 1, 1], [1, 0, 2], 3).tolist()
    [1, 1, 0]
    """
    return np.asarray(core.label_strong_components(*_as_edges(source, target), nodes), np.int64)


def mark_reachable(source: Any, target: Any, nodes: int, root: int) -> B1:
    """Whether each node can be reached from `root` along the edges; the root itself can.

    >>> mark_reachable([0, 1], [1, 2], 4, 1).tolist()
    [False, True, True, False]
    """
    return np.asarray(core.mark_reachable(*_as_edges(source, target), nodes, root), np.bool_)


def _as_edges(source: Any, target: Any) -> tuple[I8, I8]:
    return np.ascontiguousarray(source, np.int64), np.ascontiguousarray(target, np.int64)
