"""The grid: every aggregator x every check. Its size is pinned so that nothing drops out unnoticed."""

from __future__ import annotations

from collections import Counter

import pytest

from podium.core import registry
from podium.testing import checks

GRID = [
    (cls, name, state)
    for cls in registry.aggregators.all().values()
    for name, state in checks.plan(cls).items()
]


@pytest.mark.parametrize(
    ("cls", "name"), [pytest.param(c, n, id=f"{c.name}-{n}") for c, n, state in GRID if state == "run"]
)
def test_check(cls, name):
    checks.run(cls, name)


def test_grid_size_is_pinned():
    counts = Counter(state.split(":")[0] for _, _, state in GRID)
    assert (len(registry.aggregators.all()), len(checks.CHECKS)) == (49, 37)
    assert counts == {"run": 1539, "does not apply": 259, "exempt": 15}


def test_every_exemption_has_a_reason():
    for _, _, state in GRID:
        if state.startswith("exempt"):
            assert len(state) > len("exempt: ") + 20
