"""Cost checks: pairwise methods estimate time and memory and reject inputs beyond the limits."""

from __future__ import annotations

import re
from typing import Any

from podium.core import registry
from podium.core.errors import InputError
from podium.methods.base import Aggregator
from podium.testing.checks import build_sample_preferences, check, fit_aggregator, set_environment

REFUSAL = r"^{name} needs about .+ for [\d,]+ .+, and the limit is .+; .+"


@check()
def refuses_what_costs_too_much(cls: type[Aggregator]) -> None:
    """A method that compares items pairwise estimates its cost and rejects inputs beyond the limits."""
    compares = False
    for preferences in build_sample_preferences(cls, 1):
        one = fit_aggregator(cls(), preferences) if cls.tags.supervised else cls()
        usual = one.aggregate(preferences).scores.tobytes()
        needs = any(max(c.memory, c.operations) > 0 for c in one._estimate_costs(preferences))
        compares |= needs
        with set_environment(PODIUM_MEMORY="0", PODIUM_OPERATIONS="0"):
            if needs:
                _assert_refused(one, preferences)
            else:
                assert one.aggregate(preferences).scores.tobytes() == usual
    if cls.tags.pairwise == "none":
        assert not compares, "a method with costs has the tag pairwise"
    if cls.tags.pairwise == "items":
        assert compares, "the tag pairwise='items' needs an estimate from _costs"


def _assert_refused(one: Aggregator, preferences: Any) -> None:
    def fail_if_computed(*_: Any) -> Any:
        raise AssertionError("the method computed before it checked the limits")

    vars(one)["_compute_raw_outcome"] = fail_if_computed
    try:
        one.aggregate(preferences)
        raise AssertionError("with limits of zero the input was not rejected")
    except InputError as error:
        refusal = error
    finally:
        del vars(one)["_compute_raw_outcome"]
    assert re.match(REFUSAL.format(name=one.name), str(refusal)), str(refusal)
    known = {*registry.aggregators.all(), *one.get_parameters()} - {one.name}
    named = known & set(re.findall(r"\w+", str(refusal.remedy)))
    assert named, f"the error names no alternative method or option: {refusal}"
