"""Methods under the names that other tools have for them."""

from __future__ import annotations

import pytest

from podium.core import registry
from podium.core.errors import ParameterError
from podium.methods.base import make


@pytest.mark.parametrize(
    ("alias", "printed"),
    [
        ("reciprocal_rank_fusion", "rrf"),
        ("reciprocal_rank_fusion(k=20)", "rrf(k=20)"),
        ("bt", "bradley_terry"),
        ("comb_mnz", "combmnz"),
        ("kemeny_young", "kemeny"),
    ],
)
def test_an_alias_makes_the_method(alias, printed):
    assert repr(make(alias)) == printed


def test_aliases_are_unique_and_no_names_of_methods():
    classes = registry.aggregators.all()
    aliases = [alias for cls in classes.values() for alias in vars(cls).get("aliases", ())]
    assert len(set(aliases)) == len(aliases)
    assert not set(aliases) & set(classes)


def test_a_second_class_with_the_same_alias_is_refused():
    with pytest.raises(ParameterError, match="two methods are called 'bt': bradley_terry, beta_test"):
        registry.aggregators.add("beta_test", type("BetaTest", (), {"aliases": ("bt",)}))
    registry.aggregators.discard("beta_test")
