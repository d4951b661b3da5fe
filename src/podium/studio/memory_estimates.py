"""How much memory a cached value takes, roughly."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

MOST = 50_000  # objects that are looked at; further ones count as those before them


def estimate_bytes(value: Any) -> int:
    """The bytes of an object and of all that it refers to; arrays count in full, code and modules do not.

    >>> estimate_bytes(np.zeros(1000)) >= 8000, estimate_bytes(["a" * 1000] * 5) < 2000
    (True, True)
    """
    seen: set[int] = set()
    waiting, size = [value], 0
    while waiting and len(seen) < MOST:
        one = waiting.pop()
        if id(one) in seen or isinstance(one, type) or callable(one) or type(one).__name__ == "module":
            continue
        seen.add(id(one))
        size += sys.getsizeof(one, 64)
        if isinstance(one, np.ndarray):
            size += one.nbytes if one.base is not None else 0
            waiting += [] if one.dtype != object else one.ravel()[:MOST].tolist()
        elif isinstance(one, dict):
            waiting += [*one.keys(), *one.values()]
        elif isinstance(one, list | tuple | set | frozenset):
            waiting += one
        elif not isinstance(one, str | bytes | int | float | bool | None):
            waiting += vars(one).values() if hasattr(one, "__dict__") else ()
            slots = getattr(type(one), "__slots__", ())
            waiting += [getattr(one, name, None) for name in slots if name != "__dict__"]
    return size * (len(seen) + len(waiting)) // max(len(seen), 1)
