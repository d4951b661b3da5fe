"""podium tune, as a user runs it."""

from __future__ import annotations

import json
import shlex

import numpy as np
import pytest
from click.testing import CliRunner

from podium import models
from podium.cli import program


def run(*words):
    return CliRunner().invoke(program, [str(w) for w in words])


@pytest.fixture
def files(tmp_path):
    """Twenty queries of thirty documents: run `good` knows, four others do not."""
    random, qrels = np.random.default_rng(0), []
    runs = {name: [] for name in ("good", "bad1", "bad2", "bad3", "bad4")}
    for q in range(20):
        truth = random.permutation(30)
        qrels += [f"q{q} 0 d{d} {int(place < 3)}" for place, d in enumerate(truth)]
        for name, lines in runs.items():
            order = truth if name == "good" else random.permutation(30)
            lines += [f"q{q} Q0 d{d} {r + 1} {30 - r} {name}" for r, d in enumerate(order[:15])]
    for name, lines in runs.items():
        (tmp_path / f"{name}.run").write_text("\n".join(lines) + "\n")
    (tmp_path / "qrels.txt").write_text("\n".join(qrels) + "\n")
    return tmp_path


def runs_of(folder):
    return sorted(folder.glob("*.run"))


def test_the_verdict_comes_first_and_the_command_it_prints_works(files, monkeypatch):
    monkeypatch.chdir(files)
    names = [p.name for p in runs_of(files)]
    done = run(
        "tune", *names, "-q", "qrels.txt", "-m", "rrf", "-m", "combsum", "--trials", 40, "-o", "b.podium"
    )
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert lines[0].startswith("Tuning helps: ndcg@10 ")
    assert lines[1].startswith("ndcg@10 on held-out queries\tmean\ttuned is better by\t95% interval\tp")
    assert [line.split("\t")[0] for line in lines[2:6]] == [
        "tuned", "rrf", "best expert in training", "oracle expert (good)",
    ]  # fmt: skip
    assert lines[6].startswith("best configurations\tndcg@10 (optimistic: selected on it)")
    command = lines[-1].removeprefix("apply it with: ")
    words = shlex.split(command)
    assert words[:2] == ["podium", "apply"]
    assert run(*words[1:]).exit_code == 0
    evaluated = json.loads(run("eval", "fused.run", "-q", "qrels.txt", "-M", "ndcg@10", "--json").stdout)
    assert evaluated[0]["mean"]["ndcg@10"] > 0.9
    assert models.load("b.podium").weights["good"] == 1.0


def test_json_holds_everything_and_the_seed_repeats(files):
    words = (
        "tune",
        *runs_of(files),
        "-q",
        files / "qrels.txt",
        "-M",
        "map",
        "-m",
        "rrf",
        "--trials",
        15,
        "--json",
    )
    first, again, other = (json.loads(run(*words, "--seed", s).stdout) for s in (0, 0, 1))
    assert first == again
    assert first["trials"] != other["trials"]
    assert first["verdict"] == "better"
    assert first["held_out"] is True
    assert first["model"] is None
    assert len(first["trials"]) == 15
    assert {r["name"] for r in first["rows"]} == {
        "rrf",
        "best expert in training",
        "oracle expert (good)",
    }


def test_weights_have_the_names_of_their_experts(files):
    words = ("tune", *runs_of(files), "-q", files / "qrels.txt", "-m", "rrf", "--trials", 40)
    document = json.loads(run(*words, "--json").stdout)
    named = {w["expert"]: w["weight"] for w in document["weights"]}
    assert named.keys() == {"good", "bad1", "bad2", "bad3", "bad4"}
    assert document["weights"][0] == {"expert": "good", "weight": 1.0}
    drawn = [t["config"].split(", weights ")[1] for t in document["trials"] if "weights bad1=" in t["config"]]
    assert drawn
    assert all([w.split("=")[0] for w in d.split(", ")] == sorted(named) for d in drawn)
    assert {t["method"] for t in document["trials"]} == {"rrf"}
    lines = run(*words).stdout.splitlines()
    at = lines.index("expert\tweight in the best configuration")
    assert lines[at + 1] == "good\t1"
    assert {line.split("\t")[0] for line in lines[at + 1 : at + 6]} == named.keys()
    plain = json.loads(run(*words, "--no-weights", "--json").stdout)
    assert plain["weights"] == []


def test_all_methods_end_with_the_command_that_applies_the_result(files):
    words = ("tune", *runs_of(files), "-q", files / "qrels.txt", "--trials", 60, "--limit", 0.001)
    done = run(*words, "-o", files / "best.podium")
    assert done.exit_code == 0, done.output
    assert "not tried\twhy" in done.stdout
    assert done.stdout.splitlines()[-1].startswith("apply it with: podium apply ")


def test_no_difference_is_said_and_a_model_below_its_rivals_is_saved_on_request_only(files):
    bad = [p for p in runs_of(files) if p.name.startswith("bad")]
    words = ("tune", *bad, "-q", files / "qrels.txt", "-m", "rrf", "--trials", 20, "-o", files / "b.podium")
    refused = run(*words)
    assert refused.exit_code == 2
    assert "not saved: on 20 queries of nested cross-validation rrf" in refused.stderr
    assert refused.stdout.startswith("Statistically tied with rrf on held-out queries")
    assert not (files / "b.podium").exists()
    done = run(*words, "--save-anyway")
    assert done.exit_code == 0
    assert done.stdout.startswith("Statistically tied with rrf on held-out queries")
    assert "Use rrf unless you have other evidence." in done.stdout
    assert models.load(files / "b.podium").name == "rrf"


def test_bad_input_is_one_line(files):
    runs, qrels = runs_of(files), files / "qrels.txt"
    (files / "other.txt").write_text("z9 0 d1 1\n")
    (files / "old.podium").write_text("x")
    for words, message in [
        ((*runs,), "no judgements"),
        ((*runs, "-q", files / "other.txt"), "no item that was ranked has a label"),
        ((*runs, "-q", qrels, "-m", "nosuch"), "no method is called 'nosuch'"),
        ((*runs, "-q", qrels, "-o", files / "old.podium"), "exists; choose another name"),
        ((*runs, "-q", qrels, "-m", "rrf", "--search", "grid", "--trials", 3), "the grid has"),
        ((*runs, "-q", qrels, "-M", "nosuch"), "no metric is called"),
    ]:
        done = run("tune", *words)
        assert done.exit_code == 2, (words, done.output)
        assert message in done.output
        assert len(done.output.strip().splitlines()) == 1


def test_one_query_says_what_the_figures_are(files):
    one = files / "one.txt"
    one.write_text(
        "\n".join(x for x in (files / "qrels.txt").read_text().splitlines() if x.startswith("q3 "))
    )
    done = run("tune", *runs_of(files), "-q", one, "-m", "rrf", "-m", "isr", "--trials", 9)
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("One judged query allows no estimate")
    assert "ndcg@10 on the query it was tuned on" in done.stdout
    assert "note: only 1 judged query" in done.stdout


def test_resume_keeps_and_finds(files):
    words = ("tune", *runs_of(files), "-q", files / "qrels.txt", "-m", "rrf", "--trials", 10, "--json",
             "--resume", files / "kept")  # fmt: skip
    first = run(*words).stdout
    assert len(list((files / "kept").glob("*.json"))) == 10
    assert run(*words).stdout == first


def test_ids_that_a_run_cannot_hold_are_written_as_a_table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [
        f"query {q},{e},doc {i},{(i * (3 if e == 'x' else 5)) % 7}"
        for q in range(6)
        for e in "xy"
        for i in range(7)
    ]
    (tmp_path / "lists.csv").write_text("\n".join(["query,expert,item,score", *rows]) + "\n")
    grades = [f"query {q},doc {i},{int(i > 4)}" for q in range(6) for i in range(7)]
    (tmp_path / "grades.csv").write_text("\n".join(["query,item,grade", *grades]) + "\n")
    done = run(
        "tune", "lists.csv", "-q", "grades.csv", "-m", "rrf", "--trials", 3, "-o", "b.podium", "--save-anyway"
    )
    words = shlex.split(done.stdout.splitlines()[-1].removeprefix("apply it with: "))
    assert words[-1] == "fused.csv"
    assert run(*words[1:]).exit_code == 0


def test_a_notebook_shows_what_was_found():
    from podium.data.demo import demo
    from podium.evaluate.tuning import tune

    found = tune(demo(20), "ndcg@5", ["rrf", "borda"], trials=6)
    shown = found._repr_html_()
    assert found.conclusion().split(":")[0] in shown
    assert "oracle expert" in shown
