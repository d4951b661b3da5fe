"""Every command takes `auto`, acts on what it chooses and states it; or names the command to use."""

from __future__ import annotations

import json

import pytest

import podium
from podium.core.errors import ParameterError, PodiumWarning
from podium.data.demo import demo

pytest.importorskip("click")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    from podium import formats

    place, data = tmp_path_factory.mktemp("auto"), demo(40)
    with pytest.warns(PodiumWarning, match="items nobody ranks"):
        formats.write(data.preferences, place / "engines.run", "trec")
    formats.write(data.labels, place / "qrels.txt", "qrels")
    return place


@pytest.fixture
def run(folder):
    from click.testing import CliRunner

    from podium.cli import program

    return lambda *words: CliRunner().invoke(program, [w.replace("@", str(folder)) for w in words])


CHOICE = "auto chose quality_weighted: ranked lists of 25 experts"


def test_explain_explains_what_fuse_ranks(run):
    plain = run("explain", "@/engines.run", "--query", "q001", "--json")
    assert plain.stderr.startswith(CHOICE)
    first = json.loads(run("fuse", "@/engines.run", "--json").stdout)["results"][0]["items"][0]
    assert json.loads(plain.stdout)["items"][0]["item"] == first["item"]
    assert json.loads(plain.stdout)["method"].startswith("quality_weighted")


def test_compare_measures_it_beside_others(run):
    done = run(
        "compare", "@/engines.run", "--qrels", "@/qrels.txt", "-m", "auto", "-m", "rrf", "--no-runs", "--json"
    )
    assert CHOICE in done.stderr
    values = {
        row["name"]: row["mean"] for row in json.loads(done.stdout)["rows"] if row["metric"] == "ndcg@10"
    }
    assert values["auto"] > values["rrf"]


def test_fit_without_judgements_saves_the_rule_with_its_weights(run, folder):
    done = run("fit", "@/engines.run", "-m", "auto", "-o", "@/m.podium")
    assert done.exit_code == 0, done.stderr
    assert CHOICE in done.stderr
    assert "Saved is rbc with the weights of these lists" in done.stderr
    model = podium.load(folder / "m.podium")
    fixed = podium.QualityWeightedFusion().choose_rule(podium.read(str(folder / "engines.run")).preferences)
    assert model.weights == fixed.weights
    assert run("apply", "@/m.podium", "@/engines.run", "-o", "@/f.run").exit_code == 0


def test_deploy_takes_the_rule(run, folder):
    done = run("deploy", "auto", "--to", "elasticsearch", "--nearest", "@/engines.run", "-o", "@/x.json")
    assert done.exit_code == 0, done.stderr
    assert CHOICE in done.stderr
    assert "weight" in (folder / "x.json").read_text()
    assert "no input file" in run("deploy", "auto", "--to", "elasticsearch").stderr


def test_batch_and_tune_name_the_command(run):
    assert "podium fit SHARD -m auto" in run("batch", "auto", "@/engines.run", "@/out").stderr
    refused = run("tune", "@/engines.run", "--qrels", "@/qrels.txt", "-m", "auto")
    assert refused.exit_code == 2
    assert "podium fit FILES -m auto" in refused.stderr


@pytest.mark.parametrize("verb", ["experts", "report", "annotators"])
def test_other_verbs(run, verb):
    more = ["-o", "@/r.html"] if verb == "report" else []
    done = run(verb, "@/engines.run", "-m", "auto", *more)
    assert CHOICE in done.stderr
    assert done.exit_code == 0, done.stderr


def test_make_says_what_chooses():
    with pytest.raises(ParameterError, match=r"podium.choose_method\(preferences\)"):
        podium.make("auto")
