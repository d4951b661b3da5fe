"""podium believe, and apply with what it saved, as a user runs them."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner

from podium.cli import program


def run(*words):
    return CliRunner().invoke(program, [str(w) for w in words])


@pytest.fixture
def files(tmp_path):
    random = np.random.default_rng(0)
    table, letor = ["query,item,bm25,tf,length,label"], []
    for query in "pqr":
        for k in range(8):
            good = random.normal()
            x = [good, good + 0.3 * random.normal(), random.normal()]
            grade = int(good > 0.3)
            cells = [f"{v:.4f}" for v in x]
            table.append(",".join([query, f"d{k}", *(["", *cells[1:]] if k == 5 else cells), str(grade)]))
            letor.append(
                f"{grade} qid:{query} "
                + " ".join(f"{c}:{v}" for c, v in enumerate(cells, 1))
                + f" #docid = d{k}"
            )
    (tmp_path / "f.csv").write_text("\n".join(table) + "\n")
    (tmp_path / "f.txt").write_text("\n".join(letor) + "\n")
    (tmp_path / "names.txt").write_text("bm25\ntf\nlength\n")
    (tmp_path / "some.txt").write_text("1 bm25 of the title\n3 length\n")
    (tmp_path / "beliefs.csv").write_text("feature,grade\nbm25,2\nlength,-0.5\n")
    return tmp_path


def test_beliefs_about_a_table_are_learned_reported_and_written(files):
    out = run("believe", files / "f.csv", "-b", "bm25=2", "-b", "length=-0.5", "-o", files / "r.run", "--model",
              files / "m.podium")  # fmt: skip
    assert out.exit_code == 0, out.output
    lines = [line.split("\t") for line in out.stdout.splitlines()]
    weights = {line[0]: (line[1], float(line[2])) for line in lines[1:4]}
    assert weights["bm25"][0] == "+2"
    assert weights["tf"][0] == ""
    assert weights["bm25"][1] > weights["tf"][1] > 0 > weights["length"][1]
    assert "mean Kendall tau with the graded sum" in out.stdout
    assert "judged queries, learned" in out.stdout
    run_lines = (files / "r.run").read_text().splitlines()
    assert len(run_lines) == 24
    again = run("apply", files / "m.podium", files / "f.csv", "-o", files / "again.run")
    assert again.exit_code == 0, again.output
    assert (files / "again.run").read_text().splitlines() == run_lines


def test_json_and_a_file_of_beliefs(files):
    out = run("believe", files / "f.csv", "--beliefs", files / "beliefs.csv", "--json", "-p", "kept=0")
    assert out.exit_code == 0, out.output
    found = json.loads(out.stdout)
    assert found["beliefs"] == {"bm25": 2.0, "length": -0.5}
    assert found["kept"] == 0
    assert found["quality"]["queries"] == 3
    assert found["weights"][0]["feature"] == "bm25"


def test_letor_columns_get_names(files):
    out = run(
        "believe",
        files / "f.txt",
        "-b",
        "bm25=2",
        "--names",
        files / "names.txt",
        "--model",
        files / "m.podium",
    )
    assert out.exit_code == 0, out.output
    assert out.stdout.split("\n")[1].startswith("bm25\t+2")
    new = run(
        "apply", files / "m.podium", files / "f.txt", "--names", files / "names.txt", "-o", files / "r.run"
    )
    assert new.exit_code == 0, new.output
    unnamed = run("apply", files / "m.podium", files / "f.txt", "-o", files / "r2.run")
    assert unnamed.exit_code == 2
    assert "same columns" in unnamed.stderr
    some = run(
        "believe", files / "f.txt", "-b", "bm25 of the title=2", "-b", "2=1", "--names", files / "some.txt"
    )
    assert some.exit_code == 0, some.output
    plain = run("believe", files / "f.txt", "-b", "1=2")
    assert plain.exit_code == 0, plain.output


def test_contradictions_are_warned_of(files):
    out = run("believe", files / "f.csv", "-b", "bm25=2", "-b", "tf=-1")
    assert out.exit_code == 0
    assert "the beliefs in bm25 and tf conflict" in out.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["-b", "bm52=2"], "did you mean bm25"),
        (["-b", "bm25"], "write FEATURE=GRADE"),
        (["-b", "bm25=lots"], "number from -2 to 2"),
        (["-b", "bm25=5"], "numbers from -2"),
        (["-b", "bm25=0"], "nonzero grade"),
        (["-b", "bm25=1", "-b", "bm25=2"], "graded twice"),
        ([], "no beliefs"),
        (["-b", "bm25=1", "-p", "keep=1"], "did you mean kept"),
        (["-b", "bm25=1", "--names", "names"], "cannot be read"),
        (["-b", "bm25=1", "-o", "-"], "file name"),
        (["--beliefs", "nowhere.csv"], "nowhere.csv"),
    ],
)
def test_mistakes_are_told(files, words, said):
    out = run("believe", files / "f.csv", *words)
    assert out.exit_code == 2, out.output
    assert said in out.stderr


def test_bad_files_are_told(files):
    (files / "short.txt").write_text("one\ntwo\n")
    out = run("believe", files / "f.txt", "-b", "one=1", "--names", files / "short.txt")
    assert "2 names for 3 columns" in out.stderr
    (files / "twice.txt").write_text("a\na\nb\n")
    assert (
        "two columns" in run("believe", files / "f.txt", "-b", "a=1", "--names", files / "twice.txt").stderr
    )
    (files / "wide.csv").write_text("bm25,2,3\n")
    assert "wide.csv:1" in run("believe", files / "f.csv", "--beliefs", files / "wide.csv").stderr
    (files / "words.csv").write_text("query,item,bm25\nq,a,high\n")
    out = run("believe", files / "words.csv", "-b", "bm25=1")
    assert "words.csv:2" in out.stderr
    assert "feature 'bm25'" in out.stderr
    (files / "bare.csv").write_text("query,item\nq,a\n")
    assert "no feature column" in run("believe", files / "bare.csv", "-b", "bm25=1").stderr
    (files / "r.run").write_text("")
    assert "exists" in run("believe", files / "f.csv", "-b", "bm25=1", "-o", files / "r.run").stderr


def test_parquet_tables_are_read(files):
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table({"query": [1, 1, 1], "item": ["a", "b", "c"], "bm25": [3.0, None, 1.0], "tf": [3, 2, 1]})
    pq.write_table(table, files / "f.parquet")
    out = run("believe", files / "f.parquet", "-b", "bm25=2", "--json")
    assert out.exit_code == 0, out.output
    assert json.loads(out.stdout)["items"] == 3


def test_a_run_holds_no_features(tmp_path):
    (tmp_path / "a.run").write_text("q Q0 d 1 1.0 a\n")
    out = run("believe", tmp_path / "a.run", "-b", "x=1")
    assert out.exit_code == 2
    assert "contains no item features; give a LETOR file" in out.stderr
