"""POST /v1/fuse builds the method once, and the preferences once or, where positions suffice, not at all."""

from pathlib import Path
from traceback import walk_stack

import msgspec
import pytest

from podium import Preferences
from podium.core import registry
from podium.methods import fuse as fuse_module
from podium.methods.base import Aggregator
from podium.studio.api import fuse_answers
from serving import serving

POSITIONAL = ("rrf", "rbc")  # of plain lists, these need the positions alone
PLAIN = [["a", "b", "c"], ["c", "a"], ["b"]]
FORMS = {
    "plain": {"lists": PLAIN},
    "an empty list": {"lists": [*PLAIN, []]},
    "named": {"lists": {"x": ["a", "b"], "y": ["b", "c"]}},
    "weighted": {"lists": {"y": ["a", "b"], "x": ["b", "c"]}, "weights": {"x": 0.3, "y": 2}},
    "scored": {"ratings": [{"a": 1.0, "b": 3.0}, {"b": 2.0, "c": 1.0}]},
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
            found[cls] += is_in_request()  # threads of other tests may still compute pages
            original(self, *args, **kwargs)

        monkeypatch.setattr(cls, name, count)
    return found


def is_in_request():
    """Whether a module of the service is among the callers."""
    return any("podium/studio/api" in Path(f.f_code.co_filename).as_posix() for f, _ in walk_stack(None))


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
    positions_only = method in POSITIONAL and form in ("plain", "named", "weighted", "long")
    assert made[Preferences] == (not positions_only)


@pytest.mark.parametrize("method", list_methods())
def test_every_method_is_built_once(client, made, method):
    found = client.post("/v1/fuse", json={"lists": PLAIN, "method": method})
    if found.status_code == 200:
        assert made == {Preferences: method not in POSITIONAL, Aggregator: 1}
    else:
        assert found.status_code == 422


@pytest.mark.parametrize("method", ["rrf", "borda", "combsum(normalizer=sum)"])
def test_weights_and_parameters_build_nothing_twice(client, made, method):
    body = {"lists": PLAIN, "method": method, "weights": [1, 2, 0.5]}
    found = client.post("/v1/fuse", json=body)
    assert found.status_code == 200, found.text
    assert found.json()["method"]["parameters"]["weights"] == [1, 2, 0.5]
    assert made == {Preferences: method not in POSITIONAL, Aggregator: 1}


BODIES = [
    b'{"lists": {"y": ["a", "b"], "x": ["b", 7]}}',
    b'{"lists": {"y": ["a", "b"], "x": ["b", 7]}, "weights": {"x": 1, "y": 0.1}}',
    b'{"lists": {"y": ["a", "b"], "x": ["b", "b"]}, "weights": {"x": 1, "y": 0.1}}',
    b'{"lists": {"y": ["a"], "x": []}, "weights": {"x": 1, "y": 0.1}, "method": "rbc"}',
    b'{"lists": {"y": ["a"]}, "weights": {"x": 1}}',
    b'{"lists": {"y": ["a"]}, "weights": {"y": -1}}',
    b'{"lists": {"y": ["a"]}, "weights": {"y": true}}',
    b'{"lists": {"y": ["a"]}, "weights": {"y": "1"}}',
    b'{"lists": {"y": ["a"]}, "weights": {"y": 1e999}}',
    b'{"lists": {"y": ["a"]}, "weights": [1]}',
    b'{"lists": [["a"], ["b", "a"]], "weights": [1, 2.5]}',
    b'{"lists": [["a"], ["b", "a"]], "weights": [1]}',
    b'{"lists": [["a"]], "weights": {"x": 1}}',
    b'{"lists": [["a"]], "weights": null}',
    b'{"lists": {}}',
    b'{"lists": [["a", "b"], ["b", 7]]}',
    b'{"lists": [["a"], ["b"]], "method": "rrf(k=3)", "top": 1}',
    b'{"lists": [["a"], ["b"]], "top": null}',
    b'{"lists": [["lists", "b"]]}',
    b'{"lists": [["a"]], "lists": [["b"]]}',
    b'{"lists": [["a"]], "li\\u0073ts": [["b"]]}',
    b'{"lists": [["a\\u00e9"]], "method": "rbc"}',
    b'{"lists": [["a", "a"]]}',
    b'{"lists": [[9223372036854775807, -9223372036854775808]]}',
    b'{"lists": [[9223372036854775808]]}',
    b'{"lists": [[1.0]]}',
    b'{"lists": [[true]]}',
    b'{"lists": [[null]]}',
    b'{"lists": [["a"]], "top": 0}',
    b'{"lists": [["a"]], "top": 1.0}',
    b'{"lists": [["a"]], "method": ""}',
    b'{"lists": [["a"]], "method": "nothing"}',
    b'{"lists": [["a"]], "other": 1}',
    b'{"lists": [["a"]],}',
    b'{"lists": [["\xff"]]}',
    b'{"lists": []}',
    b'{"lists": [[]]}',
    b'{"lists": [["a"], []]}',
    b'{"lists": {"x": ["a"]}}',
    b'{"lists": [{"a": 1}]}',
    b'{"lists": "ab"}',
    b"[]",
    b"",
]


@pytest.mark.parametrize("body", BODIES)
def test_requests_are_answered_as_by_the_model_alone(client, monkeypatch, body):
    """The decoder of frequent requests changes neither answers nor messages."""

    def answer():
        response = client.post("/v1/fuse", content=body, headers={"content-type": "application/json"})
        return response.status_code, {k: v for k, v in response.json().items() if k != "milliseconds"}

    def refuse(_):
        raise msgspec.DecodeError

    given = answer()
    monkeypatch.setattr(fuse_answers, "_decode_plain", refuse)
    assert answer() == given


@pytest.mark.parametrize(
    "body",
    [
        b'{"lists": {"x": ["a"], "x": ["b"]}}',
        b'{"lists": {"x": ["a"], "y" : ["b"], "x" :["c"]}, "weights": {"x": 1, "y": 2}}',
        b'{"lists": {"x": ["top"], "x": ["b"]}}',
        b'{"lists": {"x": ["a"], "y": ["b"]}, "weights": {"x": 1, "x": 2, "y": 1}}',
    ],
)
def test_repeated_names_are_refused(client, body):
    answer = client.post("/v1/fuse", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == 422
    assert "occurs twice" in answer.text
