"""A method defined here appears in the registry, the command line, the model files and the checks by itself."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Annotated

import pytest
from click.testing import CliRunner

from podium import fuse, models, registry
from podium.aggregators.base import LIST_FORMS, Tags, make
from podium.aggregators.positions import Positional
from podium.cli import program
from podium.params import Range, Tune
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
    from podium.errors import ParameterError

    with pytest.raises(ParameterError, match="two methods are called 'toy'"):
        type("Other", (toy,), {"name": "toy"})
