"""Shared fixtures."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

# machines are shared: no test is about time; the same examples in every run, others with PODIUM_RANDOM_EXAMPLES=1
RANDOM_EXAMPLES = os.environ.get("PODIUM_RANDOM_EXAMPLES") == "1"
settings.register_profile("podium", deadline=None, derandomize=not RANDOM_EXAMPLES, database=None)
settings.load_profile("podium")

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of real data sets, or a skip that says how to provide it."""
    for folder in filter(None, (os.environ.get("PODIUM_DATA"), ROOT.parent / "shared" / "data")):
        if Path(folder).is_dir():
            return Path(folder)
    pytest.skip("the real data sets are not here; set PODIUM_DATA to their folder")
