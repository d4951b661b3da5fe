"""podium compare, from files to tables."""

from __future__ import annotations

import csv
import io
import json

import pytest
from click.testing import CliRunner

from podium.cli import program
from podium.data.demo import demo


def run(*words):
    return CliRunner().invoke(program, [str(w) for w in words])


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Five runs of the demo, and judgements."""
    folder = tmp_path_factory.mktemp("runs")
    data = demo(12)
    p = data.preferences
    rows = p.to_frame().to_pylist()
    for name in p.experts[:5]:
        mine = [r for r in rows if r["expert"] == name]
        lines = [f"{r['query']} Q0 {r['item']} {r['rank']} {100 - r['rank']} {name}" for r in mine]
        (folder / f"{name}.run").write_text("\n".join(lines) + "\n")
    grades = data.labels.to_frame().to_pylist()
    (folder / "qrels.txt").write_text("".join(f"{g['query']} 0 {g['item']} {g['grade']:g}\n" for g in grades))
    return folder


@pytest.fixture
def words(files):
    return ("compare", *sorted(files.glob("*.run")), "-q", files / "qrels.txt")


def test_best_all_or_no_single_runs(words):
    def names(*more):
        return {r["name"] for r in json.loads(run(*words, "-m", "rrf", *more, "--json").stdout)["rows"]}

    assert len(names()) == 1 + 3
    assert len(names("--runs", "all")) == 1 + 5
    assert names("--runs", "none") == names("--no-runs") == {"rrf"}


def test_every_figure_has_its_judged_share(words):
    shown = run(*words, "-m", "rrf", "-m", "borda", "--curve", "--per-query")
    assert shown.exit_code == 0
    tables = [line.split("\t") for line in shown.stdout.splitlines()]
    heads = [t for t in tables if "judged" in t]
    assert [h[0] for h in heads] == ["ndcg@10", "map", "result", "query"]
    assert heads[3].count("judged") == 2
    assert "nan" not in shown.stdout
    assert "rrf" in shown.stderr  # the verdict does not disturb the table


def test_only_queries_where_the_majority_is_wrong(tmp_path):
    """Two of three queries: there the two experts that agree are wrong about the relevant item."""
    lines = [f"q{q} Q0 {i} {r} {-r} e{e}\n" for q in range(3) for e in range(3)
             for r, i in enumerate("ab" if e else "ba")]  # fmt: skip
    for e in range(3):
        (tmp_path / f"{e}.run").write_text("".join(line for line in lines if line.endswith(f"e{e}\n")))
    (tmp_path / "qrels.txt").write_text("q0 0 a 1\nq0 0 b 0\nq1 0 a 0\nq1 0 b 1\nq2 0 a 0\nq2 0 b 1\n")
    words = (
        "compare",
        *sorted(tmp_path.glob("*.run")),
        "-q",
        tmp_path / "qrels.txt",
        "-m",
        "rrf",
        "-m",
        "borda",
    )
    for where, mean, count in (("majority-wrong", 0, 2), ("majority-right", 1, 1)):
        document = json.loads(run(*words, "-M", "p@1", "--no-runs", "--where", where, "--json").stdout)
        assert (document["queries"], [row["mean"] for row in document["rows"]]) == (count, [mean, mean])
        assert any(f"Only the {count} of 3 judged queries" in note for note in document["notes"])


def test_curve_pairs_and_queries_in_json(words):
    document = json.loads(
        run(*words, "-m", "rrf", "-m", "borda", "--curve", "--per-query", "--pairs", "--json").stdout
    )
    assert len(document["curves"]) == 5
    assert document["curves"][0]["depths"] == list(range(1, 21))
    assert len(document["per_query"]) == document["queries"] == 12
    assert len([p for p in document["pairs"] if p["metric"] == "map"]) == 10
    assert document["verdicts"].keys() == {"ndcg@10", "map"}


@pytest.mark.parametrize(("suffix", "mark"), [
    ("md", "| --- |"), ("tex", "\\toprule"), ("csv", "name,metric,mean"), ("json", '"rows"'),
    ("html", "<!doctype html>"),
])  # fmt: skip
def test_tables_by_suffix(words, tmp_path, suffix, mark):
    path = tmp_path / f"table.{suffix}"
    assert run(*words, "-m", "rrf", "-o", path).exit_code == 0
    assert mark in path.read_text()
    again = run(*words, "-m", "rrf", "-o", path)
    assert again.exit_code == 2
    assert "--overwrite" in again.stderr
    assert run(*words, "-m", "rrf", "-o", path, "--overwrite").exit_code == 0
    assert mark in run(*words, "-m", "rrf", "--as", suffix).stdout


def test_csv_is_read_back(words):
    rows = list(csv.DictReader(io.StringIO(run(*words, "-m", "rrf", "-m", "isr", "--as", "csv").stdout)))
    assert {r["name"] for r in rows} >= {"rrf", "isr"}
    assert all(0 <= float(r["judged"]) <= 1 for r in rows)


def test_what_is_asked_for_is_in_the_file_too(words):
    more = ("-m", "rrf", "-m", "isr", "--per-query", "--curve")
    for kind in ("md", "tex", "html"):
        text = run(*words, *more, "--as", kind).stdout
        assert "ndcg@10 by query" in text
        assert "ndcg by depth" in text
    assert json.loads(run(*words, *more, "--as", "json").stdout).keys() >= {"curves", "per_query"}
    refused = run(*words, *more, "--as", "csv")
    assert refused.exit_code == 2
    assert "one table" in refused.stderr
    one = run(*words, "-m", "rrf", "-m", "isr", "--per-query", "--top", "2", "--as", "csv").stdout
    assert next(csv.reader(io.StringIO(one)))[0] == "query"
    assert len(one.splitlines()) == 3


def test_all_methods_come_from_the_registry(words):
    from podium.core import registry

    rows = json.loads(run(*words, "-m", "all", "--runs", "none", "-M", "ndcg@5", "--json").stdout)["rows"]
    names = {r["name"] for r in rows}
    known = registry.aggregators.all()
    assert names <= known.keys()
    assert len(names) > 20
    assert not any(known[n].tags.supervised for n in names)


def test_a_picture(words, tmp_path):
    pytest.importorskip("altair")
    path = tmp_path / "curves.svg"
    assert run(*words, "-m", "rrf", "-m", "borda", "--plot", path).exit_code == 0
    assert path.read_text().startswith("<svg")
    assert run(*words, "-m", "rrf", "--plot", tmp_path / "x.gif").exit_code == 2
    assert run(*words, "-m", "rrf", "--plot", path).exit_code == 2


def test_a_saved_model_is_a_method_on_queries_it_was_not_fitted_on(words, files, tmp_path):
    """Figures are held out: those of training are not shown, and the command says which queries are left."""
    grades = (files / "qrels.txt").read_text().splitlines(keepends=True)
    first = sorted({line.split()[0] for line in grades})[:5]
    (tmp_path / "some.txt").write_text("".join(g for g in grades if g.split()[0] in first))
    for model, qrels in (("some", tmp_path / "some.txt"), ("every", files / "qrels.txt")):
        fitted = run(
            "fit", *words[1:-2], "-q", qrels, "-m", "svd", "--save-anyway", "-o", tmp_path / f"{model}.podium"
        )
        assert fitted.exit_code == 0, fitted.stderr
    some, every = tmp_path / "some.podium", tmp_path / "every.podium"
    done = run(*words, "-m", "rrf", "-m", some, "--json")
    found = json.loads(done.stdout)
    assert str(some) in {r["name"] for r in found["rows"]}
    assert found["queries"] == 12 - 5
    assert "was fitted on some of the labeled queries (up to 5): all figures use the 7 others" in done.stderr
    done = run(*words, "-m", "rrf", "-m", every)
    assert "every.podium is left out: it was fitted on all 12 labeled queries" in done.stderr
    alone = run(*words, "-m", every)
    assert alone.exit_code == 2
    assert "cannot be evaluated on this input: it was fitted on all 12 labeled queries" in alone.stderr


def test_the_british_spelling_of_a_test_is_read(words):
    old, new = (run(*words, "-m", "rrf", "-m", "mc4", "--test", f"randomi{c}ation", "--json") for c in "sz")
    assert old.stdout == new.stdout
    assert "--test randomisation is now --test randomization" in old.stderr
    assert "randomisation" not in new.stderr


@pytest.mark.parametrize(("more", "said"), [
    (["-m", "rrff"], "rrf"),
    (["-m", "rrf", "--baseline", "bordaa"], "bordaa"),
    (["-M", "ndgc@10"], "ndcg"),
    (["-m", "rrf", "-o", "table.doc"], "use a suffix of"),
    (["-m", "rrf", "-o", "noplace/table.md"], "folder noplace does not exist"),
    (["-m", "rrf", "-M", "tau", "--curve"], "no cutoff"),
    (["-m", "svd"], "fit"),
])  # fmt: skip
def test_mistakes_get_an_answer(words, more, said):
    done = run(*words, *more)
    assert done.exit_code == 2, done.output
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert "bug" not in done.stderr


def test_judgements_of_other_queries(files, tmp_path):
    (tmp_path / "other.txt").write_text("elsewhere 0 d1 1\n")
    done = run("compare", *sorted(files.glob("*.run")), "-q", tmp_path / "other.txt", "-m", "rrf")
    assert done.exit_code == 2
    assert "no result shares a query" in done.stderr


def test_one_query_and_equal_methods(tmp_path):
    (tmp_path / "a.run").write_text("q Q0 x 1 2 a\nq Q0 y 2 1 a\n")
    (tmp_path / "qrels.txt").write_text("q 0 x 1\n")
    done = run(
        "compare", tmp_path / "a.run", "-q", tmp_path / "qrels.txt", "-m", "rrf", "-m", "isr", "--per-query"
    )
    assert done.exit_code == 0
    assert "only one query" in done.stderr.lower()
    assert "nan" not in done.output.lower()
    (tmp_path / "b.run").write_text("".join(f"q{i} Q0 x 1 2 a\nq{i} Q0 y 2 1 a\n" for i in range(4)))
    (tmp_path / "more.txt").write_text("".join(f"q{i} 0 x 1\n" for i in range(4)))
    same = run(
        "compare", tmp_path / "b.run", "-q", tmp_path / "more.txt", "-m", "rrf", "-m", "isr", "--runs", "none"
    )
    assert "isr equals rrf on every query." in same.stderr


def test_a_method_that_fails_is_named_and_the_others_go_on(words, tmp_path):
    asked = (*words, "-m", "svd", "-m", "rrf", "-m", "borda", "--runs", "none")
    done = run(*asked)
    assert done.exit_code == 0
    assert "Note: svd is left out: " in done.stderr
    assert "fit" in done.stderr
    document = json.loads(run(*asked, "--json").stdout)
    assert {r["name"] for r in document["rows"]} == {"rrf", "borda"}
    assert document["baseline"] == "rrf"
    assert document["left_out"].keys() == {"svd"}
    assert any(note.startswith("svd is left out: ") for note in document["notes"])
    table = run(*asked, "-o", tmp_path / "table.csv")
    assert "svd is left out" in table.stderr
    assert "svd is left out" in run(*asked, "--as", "html").stdout
    assert json.loads(run(*words, "-m", "rrf", "--json").stdout)["left_out"] == {}


def test_no_method_left_is_an_error_even_with_single_runs(words):
    done = run(*words, "-m", "svd", "-m", "crf", "--json")
    assert done.exit_code == 2
    assert done.stdout == ""
    assert "svd: " in done.stderr
    assert "crf: " in done.stderr
    baseline = run(*words, "-m", "rrf", "-m", "svd", "--baseline", "svd")
    assert baseline.exit_code == 2
    assert "the baseline svd gave no result: " in baseline.stderr


def test_votes_leave_out_methods_for_lists(tmp_path):
    rows = [f"q{q},j{j},a,b" for q in range(12) for j in range(3)]
    (tmp_path / "votes.csv").write_text("query,expert,winner,loser\n" + "\n".join(rows) + "\n")
    (tmp_path / "qrels.txt").write_text("".join(f"q{q} 0 a 1\n" for q in range(12)))
    files = (tmp_path / "votes.csv", "-q", tmp_path / "qrels.txt")
    done = run("compare", *files, "-m", "rrf", "-m", "copeland", "--json")
    assert done.exit_code == 0, done.stderr
    assert {r["name"] for r in json.loads(done.stdout)["rows"]} == {"copeland"}
    assert "comparison" in json.loads(done.stdout)["left_out"]["rrf"]


def test_usual_methods_that_cannot_read_votes_are_named(tmp_path):
    rows = [f"q{q},j{j},a,b" for q in range(12) for j in range(3)]
    (tmp_path / "votes.csv").write_text("query,expert,winner,loser\n" + "\n".join(rows) + "\n")
    (tmp_path / "qrels.txt").write_text("".join(f"q{q} 0 a 1\n" for q in range(12)))
    words = ("compare", tmp_path / "votes.csv", "-q", tmp_path / "qrels.txt")
    document = json.loads(run(*words, "--json").stdout)
    assert {r["name"] for r in document["rows"]} == {"condorcet", "mc4", "bradley_terry"}
    assert document["left_out"].keys() == {"rrf", "borda", "combmnz"}
    assert "Note: rrf is left out: " in run(*words).stderr


def test_a_run_that_is_the_baseline_is_shown_though_it_is_not_among_the_best(words, files):
    every = json.loads(run(*words, "-m", "rrf", "--runs", "all", "-M", "map", "--json").stdout)["rows"]
    worst = min((r for r in every if r["name"] != "rrf"), key=lambda r: r["mean"])["name"]
    assert worst.startswith("run ")
    for given in (worst, worst.removeprefix("run ")):
        found = json.loads(run(*words, "-m", "rrf", "-M", "map", "--baseline", given, "--json").stdout)
        assert found["baseline"] == worst
        assert len(found["rows"]) == 1 + 3 + 1
    alone = json.loads(
        run(*words, "-m", "rrf", "-M", "map", "--runs", "none", "--baseline", worst, "--json").stdout
    )
    assert {r["name"] for r in alone["rows"]} == {"rrf", worst}


def test_labels_of_other_items_are_warned_of_once(files, tmp_path):
    grades = (files / "qrels.txt").read_text().split("\n")
    strange = "".join(f"{line.split()[0]} 0 other-{line.split()[2]} 1\n" for line in grades if line)
    (tmp_path / "qrels.txt").write_text(strange)
    words = ("compare", *sorted(files.glob("*.run")), "-q", tmp_path / "qrels.txt")
    done = run(*words, "-m", "rrf", "-m", "isr", "-m", "borda", "--curve")
    assert done.exit_code == 0
    assert done.stderr.count("share no item") == 1
    assert "6 results (rrf, isr, borda, ...) and the labels share no item: rrf has" in done.stderr
