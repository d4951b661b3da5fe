"""podium experts."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from podium.cli import program


def run(*words):
    return CliRunner().invoke(program, [str(w) for w in words])


@pytest.fixture
def files(tmp_path):
    """Three runs that agree, one with other ids, and judgements."""
    orders = {"a": "xyzw", "b": "xzyw", "c": "yxzw", "odd": "XYZW"}
    for name, order in orders.items():
        lines = [
            f"q{q} Q0 {item} {i + 1} {10 - i} {name}"
            for q in range(5)
            for i, item in enumerate(order[q % 2 :])
        ]
        (tmp_path / f"{name}.run").write_text("\n".join(lines) + "\n")
    (tmp_path / "qrels.txt").write_text("".join(f"q{q} 0 x 1\nq{q} 0 w 0\n" for q in range(5)))
    return tmp_path


def test_table_and_warnings(files):
    done = run("experts", *sorted(files.glob("*.run")), "-q", files / "qrels.txt")
    assert done.exit_code == 0
    head, *rows = [line.split("\t") for line in done.stdout.splitlines()]
    assert head[0] == "expert"
    assert {"tau-b", "RBO", "judged", "ndcg@10", "effect", "flags"} <= set(head)
    assert {row[0] for row in rows} == {"a", "b", "c", "odd"}
    assert "'odd' lists no item that any other expert lists" in done.stderr
    assert "ignoring case" in done.stderr
    assert "nan" not in done.output


def test_without_judgements(files):
    done = run("experts", *sorted(files.glob("*.run")))
    assert done.exit_code == 0
    assert "effect" not in done.stdout.splitlines()[0]
    assert "moved" in done.stdout.splitlines()[0]


def test_json_and_matrices(files):
    runs = sorted(files.glob("*.run"))
    document = json.loads(run("experts", *runs, "-q", files / "qrels.txt", "--json").stdout)
    assert document["names"] == ["a", "b", "c", "odd"]
    assert document["agreement"][0][3] is None
    shown = run("experts", *runs, "--matrix", "agreement", "--matrix", "shared").stdout.splitlines()
    assert shown[0].split("\t") == ["", "a", "b", "c", "odd"]
    assert len(shown) == 10


def test_a_picture(files):
    pytest.importorskip("altair")
    path = files / "agreement.svg"
    assert run("experts", *sorted(files.glob("*.run")), "--plot", path).exit_code == 0
    assert path.read_text().startswith("<svg")
    assert run("experts", *sorted(files.glob("*.run")), "--plot", path).exit_code == 2


@pytest.mark.parametrize(("more", "said"), [
    (["-m", "svd"], "learns from labels"),
    (["-m", "nothing"], "nothing"),
    (["-q", "QRELS", "-M", "ndgc"], "ndcg"),
    (["-q", "QRELS", "--level", "2"], "level"),
    (["--matrix", "other"], "agreement"),
])  # fmt: skip
def test_mistakes_get_an_answer(files, more, said):
    given = [files / "qrels.txt" if w == "QRELS" else w for w in more]
    done = run("experts", *sorted(files.glob("*.run")), *given)
    assert done.exit_code == 2, done.output
    assert said in done.stderr
    assert "bug" not in done.stderr


def test_votes(tmp_path):
    path = tmp_path / "votes.csv"
    pairs = [(a, b) for a in "abcdef" for b in "abcdef" if a < b]
    votes = [f"{who},{a},{b}\n" for a, b in pairs for who in ("ann", "ben")] + [
        f"cid,{b},{a}\n" for a, b in pairs
    ]
    path.write_text("expert,winner,loser\n" + "".join(votes))
    done = run("experts", path)
    assert done.exit_code == 0, done.output
    assert "agreeing pairs" in done.stdout
    assert "'cid'" in done.stderr
