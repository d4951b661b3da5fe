"""The command line as a user runs it."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys

import pytest
from click.testing import CliRunner

from podium import formats, make
from podium.cli import program
from podium.kernels import dispatch

VERBS = [
    "annotators",
    "apply",
    "batch",
    "believe",
    "compare",
    "convert",
    "demo",
    "doctor",
    "eval",
    "experts",
    "explain",
    "fit",
    "fuse",
    "leaderboard",
    "methods",
    "report",
    "reproduce",
    "serve",
    "token",
    "tune",
]


def run(*words, stdin=None):
    return CliRunner().invoke(program, [str(w) for w in words], input=stdin)


def test_help_of_everything():
    done = run("--help")
    assert done.exit_code == 0
    for verb in VERBS:
        assert verb in done.output
        help_text = run(verb, "--help")
        assert help_text.exit_code == 0
        assert "--json" in help_text.output


def test_fuse_writes_a_run_into_a_pipe(files):
    done = run("fuse", files / "bm25.run", files / "dense.run")
    assert done.exit_code == 0
    lines = [line.split() for line in done.stdout.splitlines()]
    assert [(x[0], x[2], x[3], x[5]) for x in lines[:3]] == [
        ("q1", "b", "1", "podium"),
        ("q1", "a", "2", "podium"),
        ("q1", "c", "3", "podium"),
    ]


def test_fuse_writes_files_and_never_overwrites_unasked(files):
    out = files / "fused.csv.gz"
    assert run("fuse", files / "bm25.run", files / "dense.run", "-o", out, "--top", 1).exit_code == 0
    assert gzip.decompress(out.read_bytes()).decode().splitlines()[1].startswith("q1,")
    again = run("fuse", files / "bm25.run", "-o", out)
    assert again.exit_code == 2
    assert "exists" in again.stderr
    assert run("fuse", files / "bm25.run", "-o", out, "--overwrite").exit_code == 0


def test_fuse_json_and_weights(files):
    both = (files / "bm25.run", files / "dense.run")
    done = json.loads(run("fuse", *both, "--weights", "bm25=1,dense=0", "--json").stdout)
    assert [i["item"] for i in done["results"][0]["items"]] == ["a", "b", "c"]
    assert done["method"] == "quality_weighted(weights={'bm25': 1.0, 'dense': 0.0})"
    assert len(done["fingerprint"]) == 16
    wrong = run("fuse", *both, "--weights", "bm25=1")
    assert wrong.exit_code == 2
    assert "no weight for expert 'dense'" in wrong.stderr


def test_fuse_reads_standard_input_and_gzip(files):
    text = (files / "bm25.run").read_bytes()
    assert run("fuse", "-", stdin=text).stdout == run("fuse", files / "bm25.run").stdout
    assert run("fuse", "-", stdin=gzip.compress(text)).stdout == run("fuse", files / "bm25.run").stdout


def test_fuse_with_a_saved_model(files):
    from podium import models

    models.save(make("rrf(k=1)", weights={"bm25": 3.0, "dense": 1.0}), files / "m.podium")
    both = (files / "bm25.run", files / "dense.run")
    direct = run("fuse", *both, "-m", "rrf(k=1)", "--weights", "bm25=3,dense=1")
    assert run("fuse", *both, "-m", files / "m.podium").stdout == direct.stdout


def test_eval(files):
    done = run(
        "eval", files / "bm25.run", files / "dense.run", "-q", files / "qrels.txt", "-M", "mrr", "-M", "p@1"
    )
    assert done.stdout.splitlines() == [
        "run\tmrr\tp@1\tqueries\tmissing\tunlabelled",
        "dense\t1.0000\t1.0000\t2\t0\t0",
        "bm25\t0.5000\t0.0000\t2\t0\t0",
    ]
    by_query = json.loads(
        run("eval", files / "bm25.run", "-q", files / "qrels.txt", "--per-query", "--json").stdout
    )
    assert by_query[0]["per_query"]["q1"]["mrr"] == 0.5


def test_compare(files):
    words = (
        "compare",
        files / "bm25.run",
        files / "dense.run",
        "-q",
        files / "qrels.txt",
        "-m",
        "rrf",
        "-m",
        "borda",
    )
    table = run(*words)
    assert table.exit_code == 0
    assert "baseline" in table.stdout
    rows = json.loads(run(*words, "--json").stdout)["rows"]
    assert {r["name"] for r in rows} == {"rrf", "borda", "run bm25", "run dense"}


def test_convert_there_and_back(files):
    for name in ("x.csv", "x.tsv", "x.jsonl", "x.parquet", "x.run.gz"):
        assert run("convert", files / "bm25.run", "-o", files / name).exit_code == 0
        found = formats.read(files / name, unlisted="below").preferences
        assert found == formats.read(files / "bm25.run").preferences
    assert run("convert", "--formats").exit_code == 0
    assert "no output" in run("convert", files / "bm25.run").stderr


def test_methods():
    listed = json.loads(run("methods", "--json").stdout)
    assert len({m["name"] for m in listed}) == len(listed) >= 26
    assert "larger values flatten the top" in run("methods", "rrf").stdout
    assert "did you mean" in run("methods", "brda").stderr


def test_doctor(files):
    plain = run("doctor")
    assert plain.exit_code == 0
    wide = len(dispatch.list_wide_modules())
    assert (f"({wide} of them with AVX2)" if wide else "(all portable)") in plain.output
    healthy = run("doctor", files / "bm25.run", files / "dense.run", "-q", files / "qrels.txt", "--json")
    assert healthy.exit_code == 0
    (files / "other.txt").write_text("Q1 0 B 1\n")
    ill = run("doctor", files / "bm25.run", "-q", files / "other.txt")
    assert ill.exit_code == 1
    assert "WRONG" in ill.stdout


def test_doctor_ends_with_what_auto_would_do(files, tmp_path):
    lists = json.loads(run("doctor", files / "bm25.run", files / "dense.run", "--json").stdout)
    said = [f["detail"] for f in lists if f["what"] == "auto"]
    assert said[0].startswith("quality_weighted: ranked lists of 2 experts")
    advice = [f["detail"] for f in lists if f["what"] == "a better answer"]
    assert lists[-1]["detail"] == advice[-1]
    assert advice[0].startswith("more queries, and labels for 20 queries (here ")
    (tmp_path / "votes.csv").write_text("query,winner,loser\n" + "q,a,b\nq,b,c\n")
    votes = run("doctor", tmp_path / "votes.csv").stdout
    assert "bradley_terry: all votes come from one judge" in votes
    assert "a column with the annotator of each vote" in votes


def test_demo(tmp_path):
    done = run("demo", "-o", tmp_path / "out")
    assert done.exit_code == 0
    assert "25 engines" in done.stdout
    assert {p.name for p in (tmp_path / "out").iterdir()} == {"engines.run", "qrels.txt", "fused.run"}
    assert set(json.loads(run("demo", "--json").stdout)) == {"data", "fingerprint", "mean", "seconds"}


def test_runs_and_judgements_that_share_nothing_are_warned_of(files):
    (files / "other.txt").write_text("Q1 0 B 1\n")
    done = run("eval", files / "bm25.run", "-q", files / "other.txt")
    assert "share no query" in done.stderr


BAD = {
    "empty": (b"", "empty"),
    "blank": (b"\n\n  \n", "empty"),
    "binary": (bytes(range(256)) * 4, "binary|cannot be told"),
    "columns": (b"q1 Q0 a 1 9 bm25\nq1 Q0 b 2\n", r"x\.run:2: "),
    "nan": (b"q1 Q0 a 1 9 bm25\nq1 Q0 b 2 nan bm25\n", r"x\.run:2: .*nan"),
    "infinite": (b"q1 Q0 a 1 9 bm25\nq1 Q0 b 2 -inf bm25\n", r"x\.run:2: .*inf"),
    "word": (b"q1 Q0 a 1 9 bm25\nq1 Q0 b 2 high bm25\n", r"x\.run:2: .*high"),
    "twice": (b"q1 Q0 a 1 9 bm25\nq1 Q0 b 2 8 bm25\nq1 Q0 a 3 7 bm25\n", r"x\.run:3: .*'a'.*twice"),
    "latin": (b"q1 Q0 caf\xe9 1 9 bm25\n", r"x\.run:1: .*UTF-8.*encoding"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_files_get_one_line_with_file_and_line(tmp_path, case):
    content, pattern = BAD[case]
    (tmp_path / "x.run").write_bytes(content)
    done = run("fuse", tmp_path / "x.run", "-f", "trec")
    assert done.exit_code == 2, done.output
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    import re

    assert re.search(pattern, done.stderr), done.stderr


GOOD = {
    "crlf": b"q1 Q0 a 1 9 bm25\r\nq1 Q0 b 2 5 bm25\r\n",
    "bom": b"\xef\xbb\xbfq1 Q0 a 1 9 bm25\nq1 Q0 b 2 5 bm25\n",
    "tabs and spaces": b"q1\tQ0 a  1\t9 bm25\nq1 Q0 b 2 5 bm25\n",
    "blank lines": b"\nq1 Q0 a 1 9 bm25\n\n\nq1 Q0 b 2 5 bm25\n\n",
    "no last newline": b"q1 Q0 a 1 9 bm25\nq1 Q0 b 2 5 bm25",
}


@pytest.mark.parametrize("case", GOOD)
def test_odd_but_clear_files_are_read_right(tmp_path, case):
    (tmp_path / "x.run").write_bytes(GOOD[case])
    done = run("fuse", tmp_path / "x.run")
    assert [line.split()[2] for line in done.stdout.splitlines()] == ["a", "b"]
    assert done.stderr == ""


def test_the_same_run_twice(files):
    done = run("fuse", files / "bm25.run", files / "bm25.run")
    assert done.exit_code == 2
    assert "is given twice" in done.stderr
    (files / "copy.run").write_bytes((files / "bm25.run").read_bytes())
    done = run("fuse", files / "bm25.run", files / "copy.run")
    assert done.exit_code == 2
    assert all(word in done.stderr for word in ("bm25.run", "copy.run", "expert="))
    assert run("fuse", files / "bm25.run", files / "copy.run", "-O", "expert=file").exit_code == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["fuse"], "no input file"),
        (["fuse", "none.run"], "none.run: there is no such file"),
        (["fuse", "."], "this is a folder"),
        (["fuse", "x", "-m", "rrf(k=oops)"], "k is 'oops'"),
        (["fuse", "x", "-p", "k"], "write NAME=VALUE"),
        (["fuze"], "did you mean fuse"),
        (["fuse", "x", "--top", "0"], "--top"),
        (["eval", "x"], "no such file"),
    ],
)
def test_stupid_words(words, message):
    done = run(*words)
    assert done.exit_code == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_a_bug_of_ours_says_so(files, monkeypatch):
    def broken(*_, **__):
        raise RuntimeError("boom")

    monkeypatch.setattr("podium.formats.read", broken)
    monkeypatch.delenv("PODIUM_DEBUG", raising=False)
    done = run("fuse", files / "bm25.run")
    assert done.exit_code == 70
    assert "this is a bug in Podium (RuntimeError: boom)" in done.stderr


def podium(*words, **kwargs):
    return subprocess.run(
        [sys.executable, "-m", "podium", *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
        **kwargs,
    )


def test_as_a_process(files):
    done = podium("fuse", files / "bm25.run", files / "dense.run")
    assert done.returncode == 0
    assert done.stdout.startswith("q1 Q0 b 1 ")
    assert podium("fuse", "nothing.run").returncode == 2
    assert podium("--version").stdout.startswith("podium, version ")


def test_a_closed_pipe_is_not_an_error(tmp_path):
    lines = "".join(f"q{q} Q0 d{i} {i + 1} {100 - i} e\n" for q in range(300) for i in range(100))
    (tmp_path / "big.run").write_text(lines)
    command = f"{sys.executable} -m podium fuse {tmp_path}/big.run | head -1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False, env=os.environ)
    assert done.stdout.startswith("q0 Q0 d0 1")
    assert done.stderr == ""


def test_json_and_a_file_at_once(files):
    done = run("fuse", files / "bm25.run", "--json", "-o", files / "x.run")
    assert json.loads(done.stdout)["method"] == "rrf"
    assert (files / "x.run").read_text().startswith("q1 Q0 a 1 ")


def test_options_are_read_as_they_are_declared(files):
    (files / "bare.csv").write_text("q1,ann,a,3\nq1,ann,b,-1\nq1,bob,a,2\n")
    words = (
        "fuse",
        files / "bare.csv",
        "-f",
        "csv",
        "-O",
        "columns=query,expert,item,score",
        "-m",
        "majority",
    )
    assert [x.split()[2] for x in run(*words, "-O", "missing=-1").stdout.splitlines()] == ["a"]
    assert (
        "accepted: true or false"
        in run("fuse", files / "bm25.run", "-f", "letor", "-O", "reversed_lists=nein").stderr
    )
    assert run("fuse", files / "bm25.run", "-m", "combsum(normalizer=none)").exit_code == 0


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ("bm25=1,dense=two", "the weight of 'dense' is 'two'"),
        ("bm25=1,bm25=2", "is given twice"),
        ("bm25=1,dense=2,typo=3", "weight given for unknown expert 'typo'"),
        ("bm25=1,dense", "write NAME=VALUE"),
    ],
)
def test_weights_that_cannot_be_right(files, weights, message):
    done = run("fuse", files / "bm25.run", files / "dense.run", "--weights", weights)
    assert done.exit_code == 2
    assert message in done.stderr


def test_runs_and_tables_together(files):
    (files / "more.csv").write_text("query,expert,item,score\nq1,other,b,3\nq1,other,c,1\n")
    both = (files / "bm25.run", files / "more.csv")
    assert run("fuse", *both, "--unlisted", "below").exit_code == 0
    assert "unlisted" in run("fuse", *both).stderr


def test_weights_of_experts_that_are_numbers(files):
    lines = [
        {"query": "q", "expert": e, "item": i, "score": s}
        for e, i, s in ((1, "a", 2), (1, "b", 1), (2, "b", 5))
    ]
    (files / "n.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert run("fuse", files / "n.jsonl", "--weights", "1=1,2=0").exit_code == 0


def test_links_stay_links_and_modes_stay(files):
    target = files / "target.run"
    target.write_text("old")
    target.chmod(0o600)
    (files / "link.run").symlink_to(target)
    assert run("fuse", files / "bm25.run", "-o", files / "link.run", "--overwrite").exit_code == 0
    assert (files / "link.run").is_symlink()
    assert target.read_text().startswith("q1")
    assert target.stat().st_mode & 0o777 == 0o600


def test_eval_and_compare_agree(files):
    words = (files / "bm25.run", files / "dense.run", "-q", files / "qrels.txt", "-M", "mrr", "--json")
    alone = {r["run"]: r["mean"]["mrr"] for r in json.loads(run("eval", *words).stdout)}
    rows = json.loads(run("compare", *words, "-m", "rrf").stdout)["rows"]
    assert {r["name"].removeprefix("run "): r["mean"] for r in rows if r["name"] != "rrf"} == alone


def test_nothing_in_common_is_an_error(files):
    (files / "other.txt").write_text("Q1 0 B 1\n")
    assert run("eval", files / "bm25.run", "-q", files / "other.txt").exit_code == 2


def test_options_are_named_as_they_are_typed(tmp_path):
    path = tmp_path / "twice.run"
    path.write_text("q Q0 a 1 2 x\nq Q0 a 2 1 x\n")
    said = run("fuse", path).stderr
    assert "choose -O duplicates=first" in said
    assert run("fuse", path, "-O", "duplicates=first").exit_code == 0
