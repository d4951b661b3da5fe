"""The grid: every aggregator x every check; nothing drops out of it unnoticed."""

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


def test_the_grid_is_complete():
    """Every pair of method and check has a state, every check runs somewhere, and exemptions are those declared."""
    methods = registry.aggregators.all().values()
    assert len({(cls, name) for cls, name, _ in GRID}) == len(GRID) == len(methods) * len(checks.CHECKS)
    assert {name for _, name, state in GRID if state == "run"} == set(checks.CHECKS)
    exempt = {(cls.name, name) for cls, name, state in GRID if state.startswith("exempt")}
    assert exempt == {(cls.name, name) for cls in methods for name in cls.exempt}
    ran = Counter(cls.name for cls, _, state in GRID if state == "run")
    # a method that reads any form of preference passes most of the checks; fewer means that they stopped applying
    assert min(ran[cls.name] for cls in methods) >= len(checks.CHECKS) / 2


def test_every_exemption_has_a_reason():
    for _, _, state in GRID:
        if state.startswith("exempt"):
            assert len(state) > len("exempt: ") + 20
