"""Random cases for the fuzz tests of the kernels; PODIUM_FUZZ_CASES sets their number per test."""

from __future__ import annotations

import os

import numpy as np
import pytest

from podium.kernels import dispatch

CASES = int(os.environ.get("PODIUM_FUZZ_CASES", "20"))


@pytest.fixture(params=range(CASES), ids=str)
def random(request, monkeypatch):
    """A generator per case; every third case runs in several threads, however small it is."""
    if request.param % 3 == 0:
        monkeypatch.setattr(dispatch, "THREAD_WORK", 1)
        monkeypatch.setenv("PODIUM_THREADS", "3")
    return np.random.default_rng(request.param)
