"""A pytest plugin that records what compiled functions compute (`-p record_core_results`).

PODIUM_CORE_RESULTS names the modules, separated by commas, and then the file that receives for every function
the digests of its results, in order of the calls. All calls are made in one thread: an array that another
thread is filling has no digest.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import json
import os
from pathlib import Path

import numpy as np

from count_core_calls import COMPILED
from podium.kernels import dispatch

RESULTS: dict[str, list[str]] = {}


def pytest_configure(config):
    """Replace the compiled functions before any kernel imports them."""
    dispatch.count_threads = lambda: 1
    *names, _ = os.environ["PODIUM_CORE_RESULTS"].split(",")
    for name in names:
        module = importlib.import_module(f"podium._core.{name}")
        RESULTS[f"{name} is from"] = [str(Path(module.__file__).parent)]
        for key, function in list(vars(module).items()):
            if not key.startswith("_") and type(function).__name__ in COMPILED:
                RESULTS[f"{name}.{key}"] = []
                setattr(module, key, record_results(function, RESULTS[f"{name}.{key}"]))


def record_results(function, digests):
    """The function, which records the bytes of what it returns and of every array it was called with."""

    @functools.wraps(function)
    def call(*arguments):
        value = function(*arguments)
        values = value if isinstance(value, tuple) else (value,)
        arrays = [np.asarray(v) for v in (*values, *arguments) if isinstance(v, float) or hasattr(v, "shape")]
        digests.append(hashlib.sha256(b"|".join(a.tobytes() for a in arrays)).hexdigest())
        return value

    return call


def pytest_unconfigure(config):
    path = os.environ["PODIUM_CORE_RESULTS"].split(",")[-1]
    Path(path).write_text(json.dumps(RESULTS))
