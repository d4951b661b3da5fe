"""Cost checks: pairwise methods estimate time and memory and reject inputs beyond the limits."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from typing import Any

from podium.core import registry
from podium.core.errors import InputError
from podium.methods.base import Aggregator
from podium.testing.checks import build_samples, check, fit_aggregator

REFUSAL = r"^{name} needs about .+ for [\d,]+ .+, and the limit is .+; .+"


@check()
def refuses_what_costs_too_much(cls: type[Aggregator]) -> None:
    """A method that compares items pairwise estimates its cost and rejects inputs beyond the limits."""
    compares = False
    for answers in build_samples(cls, 1):
        preferences = answers.to_preferences()
        one = fit_aggregator(cls(), preferences) if cls.tags.supervised else cls()
        usual = one.aggregate(preferences).scores.tobytes()
        needs = any(max(c.memory, c.operations) > 0 for c in one._estimate_costs(preferences))
        compares |= needs
        with _zero_limits():
            if needs:
                _assert_refused(one, preferences)
            else:
                assert one.aggregate(preferences).scores.tobytes() == usual
    if cls.tags.pairwise == "none":
        assert not compares, "a method with costs has the tag pairwise"
    if cls.tags.pairwise == "items":
        assert compares, "the tag pairwise='items' needs an estimate from _costs"


def _assert_refused(one: Aggregator, preferences: Any) -> None:
    refusal = _catch_refusal(one, preferences)
    assert refusal is not None, "with limits of zero the input was not rejected"
    assert re.match(REFUSAL.format(name=one.name), str(refusal)), str(refusal)
    known = {*registry.aggregators.all(), *one.get_parameters()} - {one.name}
    named = known & set(re.findall(r"\w+", str(refusal.remedy)))
    assert named, f"the error names no alternative method or option: {refusal}"


def _catch_refusal(one: Aggregator, preferences: Any) -> InputError | None:
    """The error of the method; computing anything before it is a failure."""

    def fail_if_computed(*_: Any) -> Any:
        raise AssertionError("the method computed before it checked the limits")

    vars(one)["_compute_raw_outcome"] = fail_if_computed
    try:
        one.aggregate(preferences)
    except InputError as refusal:
        return refusal
    finally:
        del vars(one)["_compute_raw_outcome"]
    return None


@contextlib.contextmanager
def _zero_limits() -> Iterator[None]:
    """Set the limits to zero for costs that grow faster than the input."""
    before = {name: os.environ.get(name) for name in ("PODIUM_MEMORY", "PODIUM_OPERATIONS")}
    os.environ.update(dict.fromkeys(before, "0"))
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value
