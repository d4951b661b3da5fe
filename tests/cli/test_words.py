"""What the command line says: options named as they are typed, and what to do next."""

from __future__ import annotations

import ast
import dataclasses
import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

import podium
from podium.cli import program
from podium.core import registry
from podium.metrics import parse


def run(*words, stdin=None):
    return CliRunner().invoke(program, [str(w) for w in words], input=stdin)


def test_the_format_of_the_output_is_asked_for_by_its_option(files):
    """Those named can write what there is: the fused lists, or the labels."""
    runs = (files / "bm25.run", files / "dense.run")
    said = run("fuse", *runs, "-o", files / "x.foo").stderr
    named = said.rpartition("give --to NAME, one of ")[2].strip().split(", ")
    assert named == [
        "abif", "blt", "csv", "jsonl", "letor", "msmarco", "parquet", "preflib", "ranx", "trec", "wide",
    ]  # fmt: skip
    for name in named:
        if name not in (
            "abif",
            "blt",
            "letor",
            "preflib",
        ):  # they warn of labels that are not there, and take one query
            done = run("fuse", *runs, "-o", files / f"x.{name}", "--to", name)
            assert done.exit_code == 0, done.output
    said = run("convert", files / "qrels.txt", "-o", files / "x.foo").stderr
    assert "give --to NAME, one of beir, csv, jsonl, parquet, qrels, ranx-qrels\n" in said


def test_the_format_of_the_input_has_its_own_option(tmp_path):
    (tmp_path / "odd.txt").write_text("one two\n")
    assert "give -f NAME, one of" in run("fuse", tmp_path / "odd.txt").stderr


def test_what_exists_is_replaced_by_an_option_that_is_named(files):
    out = files / "out.run"
    words = ("fuse", files / "bm25.run", "-o", out)
    assert run(*words).exit_code == 0
    done = run(*words)
    assert done.exit_code == 2
    assert "choose another name or give --overwrite" in done.stderr
    assert run(*words, "--overwrite").exit_code == 0


def test_the_demo_replaces_its_files_when_asked(tmp_path):
    words = ("demo", "-o", tmp_path / "out")
    assert run(*words).exit_code == 0
    done = run(*words)
    assert done.exit_code == 2
    assert "engines.run exists" in done.stderr
    assert "--overwrite" in done.stderr
    assert run(*words, "--overwrite").exit_code == 0


def test_every_option_of_a_format_is_named_as_it_is_typed(tmp_path):
    path = tmp_path / "odd.csv"
    path.write_text("frage,wer,was,platz\nq,x,a,1\nq,x,b,2\n")
    said = run("fuse", path, "-f", "csv").stderr
    assert "for example -O query=..., -O expert=..., -O item=..., -O rank=...; -O columns= names" in said
    named = ("-O", "query=frage", "-O", "expert=wer", "-O", "item=was", "-O", "rank=platz")
    assert run("fuse", path, "-f", "csv", *named).exit_code == 0


def test_warnings_name_options_as_they_are_typed(tmp_path):
    path = tmp_path / "minus.csv"
    path.write_text("query,worker,item,rating\nq,x,a,-1\nq,x,b,2\n")
    said = run("fuse", path, "-m", "borda").stderr
    assert "give -O missing=-1; if it is a real value, give -O missing=" in said
    assert "warning" not in run("fuse", path, "-m", "borda", "-O", "missing=").stderr


def test_a_remedy_can_be_typed_as_it_is_printed(tmp_path):
    """Every option in a message is a word of the command line, and following it works."""
    twice = tmp_path / "twice.run"
    twice.write_text("q Q0 a 1 3 x\nq Q0 a 2 2 x\nq Q0 b 3 1 x\n")
    said = run("fuse", twice).stderr
    assert "choose -O duplicates=first, -O duplicates=best or -O duplicates=sum to allow this" in said
    assert run("fuse", twice, "-O", "duplicates=best").exit_code == 0
    latin = tmp_path / "latin.run"
    latin.write_bytes("q Q0 caf\xe9 1 3 x\n".encode("latin-1"))
    assert "for example -O encoding=latin-1" in run("fuse", latin).stderr
    assert run("fuse", latin, "-O", "encoding=latin-1").exit_code == 0
    for name in ("one.run", "two.run"):
        (tmp_path / name).write_text("q Q0 a 1 3 tag\n")
    both = (tmp_path / "one.run", tmp_path / "two.run")
    assert "if two runs share the tag, use -O expert=file" in run("fuse", *both).stderr
    assert run("fuse", *both, "-O", "expert=file").exit_code == 0
    words = ("fit", tmp_path / "one.run", "-q", tmp_path / "q", "-o", tmp_path / "m", "-m", "svd")
    said = run(*words, "-p", "scorer=lambdamart", "-p", "metric=map").stderr
    assert "use -p scorer=lambdarank" in said


def test_no_message_spells_an_option_in_text():
    """Options in messages are data (`podium.core.errors.Option`), or a surface would show them as Python has them."""
    from podium.core import registry

    names = {name for cls in registry.formats.all().values() for name in cls().options("read")}
    spelled = re.compile(
        rf"(?<![\w'\"(])({'|'.join(sorted(names | {'encoding', 'format', 'overwrite'}))})=(?!=)"
    )
    found = []
    for folder in ("formats", "data", "models", "scale", "studio"):
        for path in sorted((Path(podium.__file__).parent / folder).rglob("*.py")):
            if path.name == "frames.py":  # dataframes are read from Python only
                continue
            tree = ast.parse(path.read_text("utf-8"))
            for node in ast.walk(tree):
                if isinstance(node, ast.Raise | ast.Call) and _says(node):
                    words = [
                        n.value
                        for n in ast.walk(node)
                        if isinstance(n, ast.Constant) and isinstance(n.value, str)
                    ]
                    found += [f"{path.name}: {text}" for text in words if spelled.search(text)]
    assert not found, "\n".join(found)


def _says(node):
    """An error that is raised, a warning that is given, or what makes one of them."""
    if isinstance(node, ast.Raise):
        return True
    named = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    return named in ("warn", "error", "refuse", "_error", "send_error") or named.endswith(
        ("Error", "Warning")
    )


def test_ids_that_do_not_meet_are_shown_side_by_side(files):
    (files / "items.txt").write_text("q1 0 A 1\nq2 0 B 0\n")
    done = run("doctor", files / "bm25.run", "-q", files / "items.txt")
    assert done.exit_code == 1
    lines = {line.split("\t")[0]: line.split("\t")[1:] for line in done.stdout.splitlines()}
    assert lines["judged queries"][0] == "ok"
    assert lines["judged items"][0] == "WRONG"
    assert (
        "the ids do not match: the input has ['a', 'b', 'c'], the judgements have ['A', 'B']" in done.stdout
    )
    assert "distinct grades" not in lines
    (files / "queries.txt").write_text("Q1 0 a 1\n")
    done = run("doctor", files / "bm25.run", "-q", files / "queries.txt")
    assert done.exit_code == 1
    assert (
        done.stdout.count("the ids do not match: the input has ['q1', 'q2'], the judgements have ['Q1']") == 1
    )
    same = run("doctor", files / "bm25.run", "-q", files / "qrels.txt")
    assert "do not meet" not in same.stdout


def test_tune_refuses_a_second_metric(files):
    words = ("tune", files / "bm25.run", files / "dense.run", "-q", files / "qrels.txt")
    done = run(*words, "-M", "map", "-M", "ndcg@5")
    assert done.exit_code == 2
    assert "tune maximizes one metric, but 2 are given: map, ndcg@5; give one -M" in done.stderr


@pytest.mark.parametrize(
    ("given", "meant"),
    [("P_10", "p@10"), ("ndcg_cut_10", "ndcg@10"), ("map_cut_10", "map@10"), ("recall_100", "recall@100")],
)
def test_metrics_as_trec_eval_names_them(files, given, meant):
    words = ("eval", files / "bm25.run", "-q", files / "qrels.txt", "-M")
    assert run(*words, given).stdout == run(*words, meant).stdout


def test_every_method_that_help_names_is_known_to_methods():
    shown = run("fit", "--help").stdout
    named = (set(re.findall(r"-m '?(\w+)", shown)) | {"crf", "lambdarank"}) - {"auto"}
    assert {"svd", "lambdarank"} <= named
    listed = {m["name"] for m in json.loads(run("methods", "--json").stdout)}
    for name in named:
        assert name in listed
        assert run("methods", name).exit_code == 0
    said = run("methods", "lambdarank").stdout
    assert "item features (podium fit --shards)" in said
    assert "passes" in said


@pytest.mark.parametrize("verb", ["eval", "compare", "report"])
def test_metrics_and_their_parameters_are_found_in_help(verb):
    """But for those that compare a ranking with another one, such as tau_b."""
    shown = " ".join(run(verb, "--help").stdout.split())
    graded = [c for c in registry.metrics.all().values() if c.__module__ != "podium.metrics.correlations"]
    for cls in graded:
        assert re.search(rf"\b{cls.name}\b", shown), cls.name
        for field in dataclasses.fields(cls):
            if field.name not in ("cutoff", "dialect"):
                assert f"{field.name}=" in shown, field.name
    names = "|".join(cls.name for cls in graded)
    specs = re.findall(rf"\b(?:(?:{names})\([\w=.]+\)(?:@\d+)?|ndcg@\d+:\w+)", shown)
    assert len({str(parse(spec)) for spec in specs}) >= 6


def test_relevant_grades_of_eval(files):
    (files / "graded.txt").write_text("q1 0 d1 1\nq1 0 d2 2\n")
    (files / "one.run").write_text("q1 Q0 d1 1 2 t\nq1 Q0 d2 2 1 t\n")
    words = (
        "eval",
        files / "one.run",
        "-q",
        files / "graded.txt",
        "--json",
        "-M",
        "map(relevant=2)",
        "-M",
        "map",
    )
    assert json.loads(run(*words).stdout)[0]["mean"] == {"map(relevant=2)": 0.5, "map": 1.0}
