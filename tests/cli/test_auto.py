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


def test_deploy_names_the_points_that_the_engine_has(run):
    refused = run("deploy", "auto", "--to", "elasticsearch", "@/engines.run")
    assert refused.exit_code == 2
    assert "podium deploy 'quality_weighted(points=rrf)' --to elasticsearch" in refused.stderr
    exact = run("deploy", "quality_weighted(points=rrf)", "--to", "elasticsearch", "@/engines.run", "--json")
    assert json.loads(exact.stdout)["exact"] is True
    # Qdrant divides the rank by the weight, which is no form of these points either
    assert "points=rrf" not in run("deploy", "auto", "--to", "qdrant", "@/engines.run").stderr


def test_weights_of_the_user_are_mentioned(run, folder):
    (folder / "two.csv").write_text("query,expert,item,rank\n1,x,a,1\n1,x,b,2\n1,y,b,1\n1,y,a,2\n")
    assert "2 experts, equally weighted" in run("fuse", "@/two.csv", "--json").stderr
    assert "2 experts, weighted as you ask." in run("fuse", "@/two.csv", "--weights", "x=1,y=2").stderr
    assert (
        "weighted as you ask and by their agreement"
        in run("fuse", "@/engines.run", "--weights", ",".join(f"{e}=1" for e in experts(folder))).stderr
    )


def experts(folder):
    return podium.read(str(folder / "engines.run")).preferences.experts.tolist()


def test_judgements_and_features_in_the_input_are_mentioned(run, folder):
    rows = [
        f"{q % 2} qid:{q} 1:1 2:2 3:NULL #docid = d1\n1 qid:{q} 1:2 2:1 3:1 #docid = d2" for q in range(12)
    ]
    (folder / "ranks.txt").write_text("\n".join(rows) + "\n")
    assert "--qrels too" in run("fuse", "@/ranks.txt").stderr
    assert "--qrels too" not in run("fuse", "@/ranks.txt", "--qrels", "@/ranks.txt").stderr
    (folder / "features.txt").write_text("\n".join(rows).replace("NULL", "0.5") + "\n")
    refused = run("fuse", "@/features.txt")
    assert "labels and item features but no lists" in refused.stderr
    assert run("fuse", "@/features.txt", "-O", "kind=scores").exit_code == 0


def test_doctor_says_how_to_use_judgements(run, folder):
    assert (
        "podium fuse FILES --qrels QRELS" in run("doctor", "@/engines.run", "--qrels", "@/qrels.txt").stdout
    )
    few = [line for line in (folder / "qrels.txt").read_text().splitlines() if line.startswith("q001 ")]
    (folder / "few.txt").write_text("\n".join(few) + "\n")
    assert (
        "10 judged queries, and there is 1)" in run("doctor", "@/engines.run", "--qrels", "@/few.txt").stdout
    )


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
