"""A method defined here appears in the registry, the command line, the model files and the checks by itself."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Annotated

import pyarrow as pa
import pytest
from click.testing import CliRunner

from podium import Preferences, fuse, models
from podium.cli import program
from podium.core import registry
from podium.core.params import Range, Tune
from podium.methods import positional
from podium.methods.base import LIST_FORMS, Tags, make
from podium.methods.positional import Positional
from podium.scale import batch_function
from podium.testing import checks


@pytest.fixture
def toy():
    @dataclass(kw_only=True, eq=False, repr=False)
    class ToyFusion(Positional):
        """Sum of 1 / rank^power.

        >>> make("toy(power=2)")
        toy(power=2)
        """

        name = "toy"
        tags = Tags(accepts=LIST_FORMS, additive=True)
        power: Annotated[float, Range(0.1, 10), Tune(0.5, 3), "how steep"] = 1.0

        def _points(self, rank):
            return rank**-self.power

    yield ToyFusion
    registry.aggregators.discard("toy")


def test_a_toy_method_is_everywhere(toy, tmp_path):
    assert registry.aggregators.get("toy") is toy
    assert fuse([["a", "b"], ["b", "c"], ["b"]], "toy(power=2)").ranking == ["b", "a", "c"]

    checks.check_all(toy)
    assert sum(state == "run" for state in checks.plan(toy).values()) > 20

    models.save(make("toy(power=3.0)"), tmp_path / "toy.podium")
    assert repr(models.load(tmp_path / "toy.podium")) == "toy(power=3.0)"

    listed = json.loads(CliRunner().invoke(program, ["methods", "--json"]).output)
    [facts] = [m for m in listed if m["name"] == "toy"]
    assert facts["summary"] == "Sum of 1 / rank^power."
    assert facts["parameters"][0]["accepts"] == "number in [0.1, 10]"

    (tmp_path / "a.run").write_text("q Q0 x 1 2 bm25\nq Q0 y 2 1 bm25\n")
    done = CliRunner().invoke(
        program, ["fuse", str(tmp_path / "a.run"), "-m", "toy", "-p", "power=2", "--json"]
    )
    assert json.loads(done.output)["results"][0]["items"][1] == {"item": "y", "score": 0.25, "tied": False}


def test_two_classes_cannot_share_a_name(toy):
    from podium.core.errors import ParameterError

    with pytest.raises(ParameterError, match="two methods are called 'toy'"):
        type("Other", (toy,), {"name": "toy"})


def _number_of_lists(self, preferences, weights):
    """Reciprocal ranks times the number of lists that hold the item."""
    return Positional._sums(self, preferences, weights) * positional.sum_listing_weights(preferences, weights)


def _squared(self, preferences, weights):
    return Positional._sums(self, preferences, weights) ** 2 * positional.sum_listing_weights(
        preferences, weights
    )


@pytest.fixture(params=[{"_sums": _number_of_lists}, {"_scores": _squared}], ids=["_sums", "_scores"])
def counting(request):
    @dataclass(kw_only=True, eq=False, repr=False)
    class Counting(Positional):
        """Reciprocal ranks, with something made of their sum.

        >>> make("counting")
        counting
        """

        name = "counting"
        tags = Tags(accepts=LIST_FORMS)
        exempt = {"doubling": "the number of lists counts twice over"}  # noqa: RUF012 - read-only by convention

        def _points(self, rank):
            return 1 / rank

    for step, function in request.param.items():
        setattr(Counting, step, function)
    yield Counting
    registry.aggregators.discard("counting")


def test_a_method_that_changes_the_sum_ranks_the_same_in_batches(counting):
    """One list puts a first; the sum of points is larger for a, but three lists hold b."""
    lists = {"1": ["a"], "2": ["c", "d", "e", "b"], "3": ["d", "c", "e", "b"], "4": ["e", "c", "d", "b"]}
    expected = make("counting").aggregate(Preferences.from_lists({"q": lists})).ranking("q")
    assert expected.index("b") < expected.index("a")
    rows = [("q", expert, item, rank) for expert, held in lists.items() for rank, item in enumerate(held, 1)]
    table = pa.table(dict(zip(("query", "expert", "item", "rank"), zip(*rows, strict=True), strict=True)))
    assert batch_function("counting")(table)["item"].to_pylist() == expected
    assert fuse(list(lists.values()), "counting").ranking == expected
    assert not counting.sums_points()


def test_the_check_finds_a_method_that_ranks_batches_in_another_way(counting, monkeypatch):
    checks.run(counting, "one_answer_at_every_batch_size")
    monkeypatch.setattr(counting, "sums_points", classmethod(lambda cls: True))
    with pytest.raises(AssertionError):
        checks.run(counting, "one_answer_at_every_batch_size")
