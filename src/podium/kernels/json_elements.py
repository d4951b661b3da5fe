"""Split a JSON array into its elements without decoding them."""

from __future__ import annotations

import numpy as np

from podium._core import json_elements as core
from podium.kernels.dispatch import I8, U1

__all__ = ["find_element_ends"]

_MOST = 4096  # elements per call


def find_element_ends(text: U1, begin: int, span: int) -> I8:
    """Positions of the commas after some elements from `begin` on, or of what else ends the last element.

    At least one; no further element is looked for `span` bytes after `begin`. Text that is not JSON has ends too.
    """
    ends = np.empty(_MOST, np.int64)
    return ends[: core.find_element_ends(text, begin, span, ends)]
