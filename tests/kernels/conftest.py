"""Random cases for the fuzz tests of the kernels.

PODIUM_FUZZ_CASES sets their number per test, or the first case and the one after the last: `2000:2500`.
"""

from __future__ import annotations

import os

import numpy as np
import pytest

from podium.kernels import dispatch

FIRST, _, STOP = os.environ.get("PODIUM_FUZZ_CASES", "20").rpartition(":")
CASES = range(int(FIRST or 0), int(STOP))


@pytest.fixture(params=CASES, ids=str)
def random(request, monkeypatch):
    """A generator per case; every third case runs in several threads, however small it is."""
    if request.param % 3 == 0:
        monkeypatch.setattr(dispatch, "THREAD_WORK", 1)
        monkeypatch.setenv("PODIUM_THREADS", "3")
    return np.random.default_rng(request.param)
