"""podium deploy and podium tune --for, as a user runs them."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from podium import Preferences, make
from podium.cli import program
from podium.data.demo import demo
from podium.formats import write


def run(*words):
    return CliRunner().invoke(program, [str(w) for w in words])


def write_demo(folder):
    """Forty queries of the demo with four of its engines, as files; and the same in memory."""
    data = demo(40)
    chosen = data.preferences.with_experts(data.preferences.experts.tolist()[:4])
    few = Preferences.from_frame(chosen.to_frame())  # without the items that nobody ranks now
    write(few, folder / "runs.csv")
    write(data.labels, folder / "qrels.txt", "qrels")
    return data, few


def test_a_configuration_is_written_and_checked(files):
    target = files / "fusion.http"
    done = run(
        "deploy",
        "rrf(k=60)",
        "--to",
        "qdrant",
        "--check",
        files / "bm25.run",
        files / "dense.run",
        "-o",
        target,
    )
    assert done.exit_code == 0, done.output
    assert "the same order in 2 of 2 queries." in done.stderr
    text = target.read_text()
    assert text.startswith("# Qdrant configuration by Podium")
    assert '"k": 61' in text
    again = run("deploy", "rrf", "--to", "qdrant", "--experts", "bm25=a", "-o", target)
    assert again.exit_code == 2
    assert "exists" in again.stderr


def test_without_a_file_the_configuration_is_printed(files):
    done = run("deploy", "rrf", "--to", "milvus", "--experts", "bm25=sparse,dense=embedding", "--depth", "30")
    assert done.exit_code == 0
    assert "AnnSearchRequest([queries['dense']], 'embedding'" in done.stdout
    assert "limit=30" in done.stdout


def test_json_has_the_facts(files):
    words = (
        "--to",
        "opensearch",
        files / "bm25.run",
        files / "dense.run",
        "-q",
        files / "qrels.txt",
        "--json",
    )
    facts = json.loads(run("deploy", "rrf", *words).stdout)
    assert facts["exact"] is True
    assert facts["check"] == {"queries": 2, "same": 2, "same_top": 2, "real": False}
    assert "+0.0000 against the method" in facts["cost"]
    assert any("not run against the real engine" in note for note in facts["notes"])


def test_a_real_database_is_checked(files):
    runs = (files / "bm25.run", files / "dense.run")
    done = run("deploy", "rrf", "--to", "sqlite", "--check", *runs, "--on", "sqlite:///:memory:", "--json")
    assert "SQLite, the real engine: the same order in 2 of 2 queries" in done.stderr
    assert json.loads(done.stdout)["check"]["real"] is True


@pytest.mark.parametrize(
    ("engine", "connection", "message"),
    [
        ("qdrant", "sqlite:///:memory:", "Qdrant is not a SQL database"),
        ("sqlite", "mysql://root@host", "accepted: sqlite:///FILE, duckdb:///FILE"),
        ("sqlite", "hits.db", "no database can be reached by 'hits.db'"),
        ("sqlite", "sqlite:///no/such.db", "there is no database no/such.db"),
        ("duckdb", "sqlite:///:memory:", "is a database of sqlite, and the configuration is for duckdb"),
    ],
)
def test_a_connection_that_cannot_be_used_gets_one_clear_line(files, engine, connection, message):
    runs = (files / "bm25.run", files / "dense.run")
    done = run("deploy", "rrf", "--to", engine, "--on", connection, *runs)
    assert done.exit_code == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_refusal_says_what_the_nearest_form_costs(files):
    runs = (files / "bm25.run", files / "dense.run")
    refused = run("deploy", "rrf", "--to", "vespa", *runs, "--qrels", files / "qrels.txt")
    assert refused.exit_code == 2
    assert refused.stderr.count("\n") == 1
    for words in (
        "Vespa ranks every hit",
        "nearest form is vespa_rrf",
        "ndcg@10",
        "--nearest",
        "podium tune --for vespa",
    ):
        assert words in refused.stderr
    accepted = run("deploy", "rrf", "--to", "vespa", "--nearest", *runs)
    assert accepted.exit_code == 0
    assert "NOT exact" in accepted.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("rrf", "--to", "solr"), "no engine is called 'solr'; known: clickhouse, duckdb"),
        (("rrf", "--to", "qdrant"), "rrf does not name its experts; name them with --experts"),
        (("condorcet", "--to", "qdrant"), "Qdrant has no form of condorcet; the nearest form is qdrant_rrf"),
        (("rrf", "--to", "qdrant", "--check"), "--check needs runs"),
        (("rrf", "--to", "qdrant", "--cost"), "--cost needs runs"),
        (("rrf", "--to", "sqlite", "--on", "sqlite:///:memory:"), "--on needs runs"),
        (("rrf", "--to", "qdrant", "--experts", "bm25"), "expert 'bm25' cannot be read; write NAME=VALUE"),
        (
            ("qdrant_rrf(k=0)", "--to", "qdrant", "--experts", "a=b"),
            "k is 0; accepted: whole number in [1, 10000]",
        ),
        (
            ("rrf(weights={'a':-1,'b':1})", "--to", "qdrant"),
            "a weight is -1; accepted: finite numbers from 0",
        ),
        (("rrf(weights={'a':1,'b':1})", "--to", "qdrant", "--experts", "a=x"), "no name for b"),
    ],
)
def test_bad_input_gets_one_clear_line(words, message):
    done = run("deploy", *words)
    assert done.exit_code == 2
    assert done.stderr.startswith("podium: ")
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


def test_tuning_for_an_engine_ends_in_its_configuration(tmp_path):
    write_demo(tmp_path)
    model = tmp_path / "best.podium"
    words = (
        tmp_path / "runs.csv",
        "--qrels",
        tmp_path / "qrels.txt",
        "--for",
        "opensearch",
        "--trials",
        "12",
    )
    done = run("tune", *words, "-o", model)
    assert done.exit_code == 0, done.output
    assert "before rounding" in done.stdout
    written = run("deploy", model, "--to", "opensearch", tmp_path / "runs.csv")
    assert written.exit_code == 0, written.output
    assert "on held-out queries" in written.stdout
    assert "the same order in 40 of 40 queries" in written.stderr


def test_the_cost_of_copying_is_measured_on_held_out_queries(tmp_path):
    data, few = write_demo(tmp_path)
    words = (tmp_path / "runs.csv", "--qrels", tmp_path / "qrels.txt", "--to", "qdrant", "--cost", "--json")
    cost = json.loads(run("deploy", "rrf(k=60)", *words).stdout)
    names = [row["name"] for row in cost["rows"]]
    assert names[:3] == ["rrf, untuned", "tuned", "the same values typed into Qdrant"]
    assert cost["queries"] == 40
    assert cost["rows"][1]["difference"] is None
    # the untuned row does not depend on the folds: it is the plain method
    from podium.evaluate import evaluate

    plain = evaluate(make("rrf").aggregate(few), data.labels, "ndcg@10").mean()["ndcg@10"]
    assert cost["rows"][0]["mean"] == pytest.approx(plain, abs=1e-9)


def test_dialects_work_wherever_methods_do(files, tmp_path):
    runs, qrels = (files / "bm25.run", files / "dense.run"), ("--qrels", files / "qrels.txt")
    assert run("fuse", *runs, "-m", "qdrant_rrf(k=61)", "-o", tmp_path / "fused.run").exit_code == 0
    assert "qdrant_rrf" in run("compare", *runs, *qrels, "-m", "rrf", "-m", "qdrant_rrf(k=61)").stdout
    assert run("explain", *runs, "-m", "vespa_rrf", "--query", "q1").exit_code == 0
    assert "inside" in run("methods", "qdrant_rrf").stdout or "weight" in run("methods", "qdrant_rrf").stdout
    report = tmp_path / "report.html"
    assert (
        run("report", *runs, *qrels, "-m", "rrf", "-m", "opensearch_normalization", "-o", report).exit_code
        == 0
    )
    assert "opensearch_normalization" in report.read_text()


def test_weights_of_experts_with_numbers_as_ids():
    from podium import deploy

    preferences = Preferences.from_lists({"q": {1: ["a", "b"], 2: ["b", "c"]}})
    found = deploy(make("rrf", weights={1: 1, 2: 2}), "elasticsearch", experts={"1": "x", "2": "y"})
    assert found.check(preferences).first is None
