"""A pytest plugin that counts the calls of compiled functions (`-p count_core_calls`).

It writes them as [module, function, calls] to the file named by PODIUM_CORE_CALLS.
"""

from __future__ import annotations

import functools
import importlib
import json
import os
import pkgutil
import sys
from pathlib import Path

import podium._core

COMPILED = ("cython_function_or_method", "fused_cython_function")
CALLS = {}


def list_compiled_functions():
    """(module, function) of every public function in `podium._core`."""
    names = [f"podium._core.{m.name}" for m in pkgutil.iter_modules(podium._core.__path__)]
    return [
        (name, function)
        for name in names
        for function, value in vars(importlib.import_module(name)).items()
        if not function.startswith("_") and type(value).__name__ in COMPILED
    ]


def pytest_configure(config):
    """Replace the compiled functions before any kernel imports them."""
    for module, name in list_compiled_functions():
        CALLS[module, name] = 0
        setattr(sys.modules[module], name, count_calls(module, name))


def count_calls(module, name):
    """The function, with its calls counted."""
    function = getattr(sys.modules[module], name)

    @functools.wraps(function)
    def call(*arguments):
        CALLS[module, name] += 1
        return function(*arguments)

    return call


def pytest_unconfigure(config):
    counts = [[*key, count] for key, count in CALLS.items()]
    Path(os.environ["PODIUM_CORE_CALLS"]).write_text(json.dumps(counts))
