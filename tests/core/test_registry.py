"""Public lists follow from the registries: every registered class can be imported from its package."""

from __future__ import annotations

import importlib

import pytest

import podium
from podium.core import registry

PACKAGES = [
    (registry.aggregators, "podium"),
    (registry.aggregators, "podium.methods"),
    (registry.metrics, "podium.metrics"),
    (registry.formats, "podium.formats"),
]


@pytest.mark.parametrize(("known", "package"), PACKAGES, ids=[package for _, package in PACKAGES])
def test_every_registered_class_can_be_imported_from_its_package(known, package):
    module = importlib.import_module(package)
    assert known.all()
    for cls in known.all().values():
        assert getattr(module, cls.__name__) is cls
    for name in ("NoSuchClass", "no_such_module"):
        with pytest.raises(AttributeError, match=f"module '{package}' has no attribute '{name}'"):
            getattr(module, name)


def test_the_list_of_metrics_is_complete():
    names = {cls.__name__ for cls in registry.metrics.all().values() if cls.__module__.startswith("podium.")}
    assert names <= set(podium.metrics.__all__)
    assert "PairAccuracy" in names


def test_importing_a_submodule_does_not_load_the_package():
    """An import asks the package for the submodule as an attribute first."""
    lost = registry.Registry("toy", "podium.no_such_package")
    with pytest.raises(AttributeError):
        lost.get_class("submodule", "podium.toys")
