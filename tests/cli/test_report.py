"""podium report and podium explain as typed."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from podium.cli import program

pytest.importorskip("vl_convert")


def run(*words):
    return CliRunner().invoke(program, [str(w) for w in words])


@pytest.fixture
def runs(tmp_path):
    orders = {"bm25": "abcd", "dense": "bacd", "sparse": "cabe"}
    for name, order in orders.items():
        lines = [f"{q} Q0 {i} {r} {10 - r} {name}\n" for q in ("1", "2") for r, i in enumerate(order, 1)]
        (tmp_path / f"{name}.run").write_text("".join(lines))
    (tmp_path / "qrels").write_text(
        "".join(f"{q} 0 {i} {int(i == 'b')}\n" for q in ("1", "2") for i in "abc")
    )
    return tmp_path


def files(folder):
    return sorted(folder.glob("*.run"))


def test_report_is_written_once(runs):
    page = runs / "r.html"
    first = run("report", *files(runs), "-q", runs / "qrels", "-m", "rrf", "-m", "borda", "-o", page)
    assert first.exit_code == 0, first.output
    text = page.read_text()
    assert text.startswith("<!doctype html>")
    assert "bm25" in text
    again = run("report", *files(runs), "-q", runs / "qrels", "-m", "rrf", "-o", page)
    assert again.exit_code == 2
    assert "exists" in again.output
    assert page.read_text() == text
    assert run("report", *files(runs), "-m", "rrf", "-o", page, "--overwrite").exit_code == 0
    assert page.read_text() != text


def test_report_as_json_and_figures(runs):
    found = run(
        "report",
        *files(runs),
        "-m",
        "rrf",
        "-m",
        "borda",
        "--json",
        "--figures",
        runs / "pictures",
        "--query",
        "2",
    )
    assert found.exit_code == 0, found.output
    document = json.loads(found.stdout)
    assert document["verdict"][0].startswith("There are no labels")
    assert any(p.name.startswith("query-1-2") for p in (runs / "pictures").iterdir())


def test_report_with_a_model_and_tuning(runs):
    fitted = run(
        "fit",
        *files(runs),
        "-q",
        runs / "qrels",
        "-m",
        "crf",
        "-p",
        "passes=3",
        "--save-anyway",
        "-o",
        runs / "m.podium",
    )
    assert fitted.exit_code == 0, fitted.output
    tuned = run("tune", *files(runs), "-q", runs / "qrels", "-m", "rrf", "--trials", 4, "--json")
    (runs / "t.json").write_text(tuned.stdout)
    found = run(
        "report",
        *files(runs),
        "-q",
        runs / "qrels",
        "--model",
        runs / "m.podium",
        "--tuning",
        runs / "t.json",
        "--json",
    )
    assert found.exit_code == 0, found.output
    document = json.loads(found.stdout)
    assert {"weights", "tuning"} <= {s["name"] for s in document["sections"]}
    assert "m: crf(passes=3)" in document["made"]["methods"]
    assert "rrf" in document["made"]["methods"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "no output"),
        (["-o", "{}/x.html"], "give input files"),
        (["{}/bm25.run", "--demo", "-o", "{}/x.html"], "give input files"),
        (["{}/bm25.run", "-o", "{}/no/such/x.html"], "does not exist"),
        (["{}/bm25.run", "-o", "{}/x.html", "-m", "nonsense"], "nonsense"),
        (["{}/bm25.run", "-o", "{}/x.html", "--query", "77"], "there is no query '77'"),
        (["{}/bm25.run", "-o", "{}/x.html", "--tuning", "{}/qrels"], "is not JSON"),
        (["{}/bm25.run", "-o", "{}/x.html", "-m", "rrf", "-m", "rrf"], "twice"),
        (["{}/bm25.run", "-o", "{}/x.html", "--features", "{}/qrels"], "no method here uses item features"),
        (["{}/qrels", "-o", "{}/x.html"], "contains labels"),
    ],
)
def test_report_refuses(runs, words, said):
    found = run("report", *(w.format(runs) for w in words))
    assert found.exit_code == 2
    assert said in found.output
    assert not (runs / "x.html").exists()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[1]", "this is a JSON array, not the result of tuning"),
        ('"rrf"', "this is a JSON string"),
        ('{"best": {"k": 1}}', "this is a JSON object with best, not the result of tuning"),
        ("[" * 100_000, "is not JSON"),
        ("", "is not JSON"),
    ],
)
def test_report_takes_tuning_results_only(runs, text, said):
    (runs / "t.json").write_text(text)
    found = run("report", *files(runs), "--tuning", runs / "t.json", "-o", runs / "x.html")
    assert found.exit_code == 2
    assert said in found.output
    assert "podium tune --json" in found.output
    compared = run("compare", *files(runs), "-q", runs / "qrels", "-m", "rrf", "--json").stdout
    (runs / "t.json").write_text(compared)
    other = run("report", *files(runs), "--tuning", runs / "t.json", "-o", runs / "x.html")
    assert other.exit_code == 2
    assert "with baseline, test, level" in other.output
    assert not (runs / "x.html").exists()


def test_report_leaves_out_a_method_that_fails(runs):
    done = run("report", *files(runs), "-q", runs / "qrels", "-m", "rrf", "-m", "svd", "--json")
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    assert any("svd is left out: " in f["text"] for f in document["findings"])
    assert document["made"]["methods"] == "rrf"


def test_explain_tells_what_would_swap(runs):
    found = run("explain", *files(runs), "--query", "1", "--item", "a", "--over", "b", "--json")
    assert found.exit_code == 0, found.output
    document = json.loads(found.stdout)
    assert [i["item"] for i in document["items"]] == ["a", "b"]
    assert {c["kind"] for c in document["changes"]} == {"weight", "move"}
    assert any("would swap" in line for line in document["text"])


def test_explain_draws(runs):
    found = run(
        "explain",
        *files(runs),
        "--query",
        "1",
        "--plot",
        runs / "p.svg",
        "--heatmap",
        runs / "h.png",
        "-q",
        runs / "qrels",
    )
    assert found.exit_code == 0, found.output
    assert "<svg" in (runs / "p.svg").read_text()
    assert (runs / "h.png").read_bytes().startswith(b"\x89PNG")
    again = run("explain", *files(runs), "--query", "1", "--plot", runs / "p.svg")
    assert again.exit_code == 2
    assert "exists" in again.output
    wrong = run("explain", *files(runs), "--query", "1", "--plot", runs / "p.gif")
    assert wrong.exit_code == 2
    assert ".svg" in wrong.output


def test_explain_in_a_pipe_is_a_table(runs):
    words = ("explain", *files(runs), "--query", "1", "--item", "a", "--over", "b")
    lines = run(*words, "-m", "rrf").stdout.splitlines()
    assert lines[0].split("\t") == ["expert", "rank of a", "rank of b", "favors a"]
    assert len(lines) == 4
    weighted = run(*words).stdout.splitlines()  # auto weights the experts
    assert weighted[0].split("\t") == ["expert", "rank of a", "rank of b", "favors a", "weight"]


def test_explain_votes(tmp_path):
    rows = ["query,expert,winner,loser"] + ["q,j,a,b"] * 3 + ["q,j,b,c"] * 2 + ["q,k,b,a"]
    (tmp_path / "v.csv").write_text("\n".join(rows) + "\n")
    found = run(
        "explain",
        tmp_path / "v.csv",
        "-m",
        "copeland",
        "--query",
        "q",
        "--item",
        "a",
        "--over",
        "b",
        "--json",
    )
    document = json.loads(found.stdout)
    assert {e["expert"]: e["votes"] for e in document["experts"]} == {"j": [3.0, 0.0], "k": [0.0, 1.0]}
    [votes] = [c for c in document["changes"] if c["kind"] == "votes" and c["expert"] == "k"]
    assert votes["value"] == 2  # 3 : 3 is enough, as b also beats c


def test_explain_refuses_strangers(runs):
    assert "there is no query" in run("explain", *files(runs), "--query", "9").output
    assert "there is no item" in run("explain", *files(runs), "--query", "1", "--item", "zz").output


def test_explain_in_a_pipe_tells_beside_the_table_what_would_swap(runs):
    done = run("explain", *files(runs), "--query", "1", "--item", "a", "--over", "d")
    assert done.stdout.startswith("expert\trank of a\trank of d")
    assert "a is above d by" in done.stderr


def test_standard_output_is_the_page_or_the_document(runs):
    done = run("report", *files(runs), "-m", "rrf", "-m", "borda", "--json", "-o", "-")
    assert json.loads(done.stdout)["verdict"]


def test_brackets_in_names_are_not_markup(capsys, monkeypatch):
    from podium.cli.output import print_table

    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    long = "a title that is much longer than the little table it stands above"
    print_table(["[bold]a[/bold]"], [["x"]], title=long)
    shown = capsys.readouterr().out
    assert "[bold]a[/bold]" in shown
    assert long in shown


def test_report_on_votes_reads_times_and_slices(tmp_path):
    lines = ["model_a,model_b,winner,voter,tstamp,category,language"]
    for k in range(400):
        one, two = k % 3, (k + 1 + k // 3 % 2) % 3
        winner = "model_a" if (k * 7919) % 10 < 5 + 2 * (two > one) else "model_b"
        clock = f"2026-03-01T{k // 60 % 24:02d}:{k % 60:02d}:00"
        lines.append(f"m{one},m{two},{winner},v{k // 10},{clock},{'ab'[k % 2]},{'' if k == 7 else 'en'}")
    path = tmp_path / "votes.csv"
    path.write_text("\n".join(lines) + "\n")
    done = run("report", path, "--json")
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    sections = {section["name"]: section for section in document["sections"]}
    assert list(sections)[:3] == ["leaderboard", "tampering", "slices"]
    findings = {finding["name"]: finding for finding in document["findings"]}
    assert "voters: bursts" in findings  # the times are found by the name of their column
    tables = [block["table"] for block in sections["slices"]["blocks"] if isinstance(block, dict)]
    assert len(tables) == 1  # a column with a missing cell is not used, and a warning says so
    assert "Ranks by category" in tables[0]
    refused = run("report", path, "--slice", "language", "--json")
    assert refused.exit_code == 2
    assert "votes.csv:9: the value in column 'language' is missing" in refused.output
    assert "there is no column 'when'" in run("report", path, "--time", "when", "--json").output


def test_report_options_of_votes_need_votes(runs):
    done = run("report", *files(runs), "--slice", "category", "--json")
    assert done.exit_code == 2
    assert "belong to votes" in done.output
