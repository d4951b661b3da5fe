"""POST /v1/fuse builds the preferences and the method once, whatever the method and the form of the lists."""

import pytest

from podium import Preferences
from podium.core import registry
from podium.methods import fuse as fuse_module
from podium.methods.base import Aggregator
from serving import serving

PLAIN = [["a", "b", "c"], ["c", "a"], ["b"]]
FORMS = {
    "plain": {"lists": PLAIN},
    "an empty list": {"lists": [*PLAIN, []]},
    "named": {"lists": {"x": ["a", "b"], "y": ["b", "c"]}},
    "scored": {"lists": [{"a": 1.0, "b": 3.0}, {"b": 2.0, "c": 1.0}]},
    "repeats": {"lists": [["a", "b", "a"], ["b"]], "duplicates": "first"},
    "long": {"lists": [[f"item {n}" for n in range(20_000)], ["item 5"]]},  # parsed and fused in a worker
}


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("studio")) as found:
        yield found


@pytest.fixture
def made(monkeypatch):
    """The preferences and the methods that are constructed, by class."""
    found = {Preferences: 0, Aggregator: 0}
    fuse_module._make_cached.cache_clear()
    # methods validate their parameters in the base class, whatever else they do
    for cls, name in ((Preferences, "__init__"), (Aggregator, "__post_init__")):
        original = getattr(cls, name)

        def count(self, *args, cls=cls, original=original, **kwargs):
            found[cls] += 1
            original(self, *args, **kwargs)

        monkeypatch.setattr(cls, name, count)
    return found


def list_methods():
    return [
        n for n, m in registry.aggregators.all().items() if not m.tags.supervised and not m.tags.uses_features
    ]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("method", ["rrf", "rbc", "borda", "combsum", "mc4"])
def test_preferences_and_method_are_built_once(client, made, method, form):
    found = client.post("/v1/fuse", json=FORMS[form] | {"method": method})
    assert found.status_code in (200, 413, 422), found.text
    assert made[Aggregator] == 1
    assert made[Preferences] == 1


@pytest.mark.parametrize("method", list_methods())
def test_every_method_is_built_once(client, made, method):
    found = client.post("/v1/fuse", json={"lists": PLAIN, "method": method})
    if found.status_code == 200:
        assert made == {Preferences: 1, Aggregator: 1}
    else:
        assert found.status_code == 422


@pytest.mark.parametrize("method", ["rrf", "borda", "combsum(normalizer=sum)"])
def test_weights_and_parameters_build_nothing_twice(client, made, method):
    body = {"lists": PLAIN, "method": method, "weights": [1, 2, 0.5]}
    found = client.post("/v1/fuse", json=body)
    assert found.status_code == 200, found.text
    assert found.json()["method"]["parameters"]["weights"] == [1, 2, 0.5]
    assert made == {Preferences: 1, Aggregator: 1}
