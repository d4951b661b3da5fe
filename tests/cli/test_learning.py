"""fit, apply, explain and reproduce, as a user runs them."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass

import pytest
from click.testing import CliRunner

from podium import models
from podium.cli import program
from podium.core import registry
from podium.methods.base import LIST_FORMS, Tags
from podium.methods.input_checks import match_experts
from podium.methods.learned.supervised_method import SupervisedAggregator


def run(*words, stdin=None, env=None):
    return CliRunner().invoke(program, [str(w) for w in words], input=stdin, env=env)


@pytest.fixture
def toy():
    @dataclass(kw_only=True, eq=False, repr=False)
    class Trust(SupervisedAggregator):
        """Weighs every expert by the mean grade of its first item; for tests."""

        name = "trust"
        tags = Tags(accepts=LIST_FORMS, supervised=True, weighted=False)

        def _learn(self, training):
            p = training.preferences
            grades = dict(
                zip(training.examples.rows.tolist(), training.examples.labels.grades.tolist(), strict=True)
            )
            first = p.lists.starts[:-1]
            self.trust_ = [0.1] * len(p.experts)
            for expert, row in zip(p.lists.expert.tolist(), first.tolist(), strict=True):
                self.trust_[expert] += grades.get(int(p.lists.item[row]), 0.0)
            training.progress(1, 1, "trusting")
            self.passes_ = [1]

        def _score(self, preferences, features):
            import numpy as np

            lists = preferences.lists
            codes = match_experts(self, preferences)
            trust = np.append(self.trust_, 0.0)[codes][lists.expert][lists.list_of_row]
            return np.bincount(lists.item, weights=trust / lists.rank, minlength=len(preferences.index.items))

    yield Trust
    registry.aggregators.discard("trust")


@pytest.fixture
def files(tmp_path):
    """Thirty queries: expert good puts the relevant item first, bad puts it last."""
    good = "".join(f"q{q} Q0 z 1 3 good\nq{q} Q0 b 2 2 good\nq{q} Q0 c 3 1 good\n" for q in range(30))
    bad = "".join(f"q{q} Q0 c 1 3 bad\nq{q} Q0 b 2 2 bad\nq{q} Q0 z 3 1 bad\n" for q in range(30))
    (tmp_path / "good.run").write_text(good)
    (tmp_path / "bad.run").write_text(bad)
    (tmp_path / "qrels.txt").write_text("".join(f"q{q} 0 z 1\nq{q} 0 b 0\nq{q} 0 c 0\n" for q in range(30)))
    return tmp_path


def fit(files, *more, runs=("good.run", "bad.run")):
    inputs = [files / name for name in runs]
    return run("fit", *inputs, "-q", files / "qrels.txt", "-o", files / "m.podium", *more)


def test_fit_says_what_was_learned_and_apply_uses_it(files, toy):
    done = fit(files, "-m", "trust")
    assert done.exit_code == 0, done.stderr
    facts = dict(line.split("\t") for line in done.stdout.splitlines()[1:])
    assert facts["trained on"].startswith("24 judged queries")
    assert facts["validated on"] == "6 other judged queries"
    assert facts["passes kept"] == "1"
    assert facts["ndcg@10 on validation queries, this model"] == "1.0000"

    (files / "new.run").write_text("n Q0 x 1 2 good\nn Q0 y 2 1 good\nn Q0 y 1 2 bad\nn Q0 x 2 1 bad\n")
    done = run("apply", files / "m.podium", files / "new.run", "--top", 1)
    assert done.stdout.split()[:4] == ["n", "Q0", "x", "1"]
    assert run("fuse", files / "new.run", "-m", files / "m.podium", "--top", 1).stdout == done.stdout
    shown = json.loads(run("apply", files / "m.podium", files / "new.run", "--json").stdout)
    assert shown["method"] == "trust"
    assert run("apply", files / "m.podium", files / "new.run", "-o", files / "out.run").exit_code == 0
    assert "exists" in run("apply", files / "m.podium", files / "new.run", "-o", files / "out.run").stderr


def test_fit_json_and_shares(files, toy):
    done = json.loads(fit(files, "-m", "trust", "--validation-share", "0.5", "--json").stdout)
    assert (done["queries"], done["validation_queries"], done["measured_on"]) == (15, 15, "validation")
    assert done["before"] < done["after"] == 1.0
    again = fit(files, "-m", "trust")
    assert again.exit_code == 2
    assert "--overwrite" in again.stderr
    none = json.loads(fit(files, "-m", "trust", "--validation-share", "0", "--overwrite", "--json").stdout)
    assert (none["queries"], none["validation_queries"], none["verdict"]) == (30, 0, "not measured")
    assert "after" not in none  # figures of training queries say nothing


def test_fit_says_that_a_model_is_worse_than_rrf(tmp_path):
    """The judgements believe one run for the queries of training, and another for those of validation."""
    rng, items, judged = random.Random(0), [f"d{n}" for n in range(12)], []
    for part, believed, queries in (("train", "bad", 20), ("check", "good", 10)):
        lines = {"good": [], "fine": [], "bad": []}
        for q in range(queries):
            good, bad = rng.sample(items, 12), rng.sample(items, 12)
            for name, order in (("good", good), ("fine", good), ("bad", bad)):
                lines[name] += [f"{part}{q} Q0 {i} {r} {13 - r} {name}\n" for r, i in enumerate(order, 1)]
            top = (bad if believed == "bad" else good)[:3]
            judged += [f"{part}{q} 0 {i} {int(i in top)}\n" for i in items]
        for name, rows in lines.items():
            (tmp_path / f"{name}-{part}.run").write_text("".join(rows))
    (tmp_path / "qrels.txt").write_text("".join(judged))
    train, check = (sorted(tmp_path.glob(f"*-{part}.run")) for part in ("train", "check"))
    chosen = [w for path in check for w in ("--validation", path)]
    words = ("fit", *train, *chosen, "-q", tmp_path / "qrels.txt", "-m", "weighted_borda")
    refused = run(*words, "-o", tmp_path / "m.podium")
    assert refused.exit_code == 2
    last = refused.stderr.splitlines()[-1]
    assert last.startswith("podium: not saved: on 10 queries of validation weighted_borda has ndcg@10:exp 0.")
    assert "which is below rrf (0." in last
    assert last.endswith("let podium fit -m auto choose, or give --save-anyway")
    assert not (tmp_path / "m.podium").exists()
    words = (*words, "--save-anyway")
    done = run(*words, "-o", tmp_path / "m.podium")
    assert done.exit_code == 0, done.stderr
    assert "warning: weighted_borda is worse than rrf on the 10 validation queries" in done.stderr
    assert "VERDICT\tWORSE than rrf: use rrf" in done.stdout
    assert (tmp_path / "m.podium").exists()
    facts = json.loads(run(*words, "-o", tmp_path / "n.podium", "--json").stdout)
    assert (facts["verdict"], facts["baseline"]) == ("worse", "rrf")
    assert facts["after"] < facts["before"]


def test_few_queries_are_all_learned_from(files, toy):
    (files / "qrels.txt").write_text("".join(f"q{q} 0 z 1\nq{q} 0 b 0\n" for q in range(24)))
    done = fit(files, "-m", "trust")
    assert "validated on\tnothing: the last pass was kept" in done.stdout
    # without a validation part, cross-validation compares: the best expert is as good, rrf is not
    facts = dict(line.split("\t") for line in done.stdout.splitlines()[1:])
    assert facts["ndcg@10 in cross-validation, this method"] == "1.0000"
    assert facts["better than the best expert by"].startswith("+0.0000")
    assert float(facts["better than rrf by"].split()[0]) > 0.1


def test_a_model_that_cannot_be_compared_is_not_saved_unless_asked(files, toy):
    (files / "qrels.txt").write_text("q0 0 z 1\nq0 0 b 0\n")
    done = fit(files, "-m", "trust")
    assert done.exit_code == 2
    assert "not saved: trust cannot be compared" in done.stderr
    assert not (files / "m.podium").exists()
    assert fit(files, "-m", "trust", "--save-anyway").exit_code == 0


def test_auto_chooses_by_judgements_and_saves_a_method(files):
    done = fit(files, "-m", "auto", "--json")
    assert done.exit_code == 0, done.stderr
    facts = json.loads(done.stdout)
    assert facts["answer"]["queries"] == 30
    assert [row["name"] for row in facts["answer"]["rows"]] == ["the best expert", "rrf"]
    assert facts["answer"]["value"] == 1.0
    assert "auto chose" in done.stderr
    (files / "new.run").write_text("n Q0 x 1 2 good\nn Q0 y 2 1 good\nn Q0 y 1 2 bad\nn Q0 x 2 1 bad\n")
    applied = run("apply", files / "m.podium", files / "new.run", "--top", 1)
    assert applied.stdout.split()[:4] == ["n", "Q0", "x", "1"]
    assert "leave --validation" in fit(files, "-m", "auto", "--validation-share", "0.2", "--overwrite").stderr
    assert "has no parameters" in fit(files, "-m", "auto", "-p", "k=2", "--overwrite").stderr


def test_fuse_with_judgements_chooses_by_them(files):
    runs = (files / "good.run", files / "bad.run")
    for words in (
        ("fuse", *runs),
        ("fit", *runs, "-q", files / "qrels.txt", "-m", "svd", "-o", "model.podium"),
    ):
        refused = run(*words, "--budget", 5)
        assert refused.exit_code == 2
        assert "--budget limits the choice that auto makes by judgements" in refused.stderr
    done = run("fuse", *runs, "-q", files / "qrels.txt", "--top", 1, "--budget", "30")
    assert done.exit_code == 0, done.stderr
    assert {line.split()[2] for line in done.stdout.splitlines()} == {"z"}
    assert "auto chose" in done.stderr
    named = run("fuse", *runs, "-q", files / "qrels.txt", "-m", "rrf")
    assert "rrf is named, so judgements choose nothing" in named.stderr
    weighed = run("fuse", *runs, "-q", files / "qrels.txt", "--weights", "good=1,bad=2")
    assert "judgements choose the weights too" in weighed.stderr


def test_validation_files_of_their_own(files, toy):
    for name in ("good", "bad"):
        lines = (files / f"{name}.run").read_text().splitlines(keepends=True)
        (files / f"{name}-train.run").write_text("".join(lines[:60]))
        (files / f"{name}-check.run").write_text("".join(lines[60:]))
    check = ("--validation", files / "good-check.run", "--validation", files / "bad-check.run")
    train = ("good-train.run", "bad-train.run")
    done = json.loads(fit(files, "-m", "trust", *check, "--json", runs=train).stdout)
    assert (done["queries"], done["validation_queries"]) == (20, 10)
    wrong = fit(files, "-m", "trust", *check, "--overwrite")
    assert wrong.exit_code == 2
    assert "query 'q20' is in both the input and --validation" in wrong.stderr
    assert "not both" in fit(files, "-m", "trust", *check, "--validation-share", "0.2", "--overwrite").stderr


def test_a_method_that_does_not_learn_can_be_saved(files):
    done = fit(files, "-m", "rrf", "-p", "k=7", "--weights", "good=2,bad=1")
    assert done.exit_code == 0, done.stderr
    saved = models.load(files / "m.podium")
    assert (saved.k, saved.weights) == (7, {"good": 2.0, "bad": 1.0})
    assert "trained on" not in done.stdout
    bare = run("fit", files / "good.run", "-m", "borda", "-o", files / "b.podium")
    assert bare.exit_code == 0, bare.stderr


def test_what_cannot_be_learned(files, toy):
    out = files / "x.podium"
    runs = (files / "good.run", files / "bad.run")
    assert "give --qrels FILE" in run("fit", *runs, "-m", "trust", "-o", out).stderr
    (files / "flat.txt").write_text("q1 0 z 1\nq1 0 b 1\n")
    assert (
        "all labels have the same grade"
        in run("fit", *runs, "-q", files / "flat.txt", "-m", "trust", "-o", out).stderr
    )
    (files / "other.txt").write_text("Q1 0 z 1\nQ1 0 b 0\n")
    done = run("fit", *runs, "-q", files / "other.txt", "-m", "trust", "-o", out)
    assert "no label matches an item" in done.stderr
    assert "no method is called" in run("fit", *runs, "-m", "trsut", "-o", out).stderr
    features = run(
        "fit", *runs, "-q", files / "qrels.txt", "-m", "trust", "--features", files / "qrels.txt", "-o", out
    )
    assert "contains no item features" in features.stderr
    assert not out.exists()


def test_models_that_do_not_fit_the_input(files, toy):
    assert fit(files, "-m", "trust").exit_code == 0
    (files / "new.run").write_text("n Q0 x 1 2 stranger\nn Q0 y 2 1 stranger\n")
    done = run("apply", files / "m.podium", files / "new.run")
    assert done.exit_code == 2
    assert "trust was not trained on expert 'stranger'" in done.stderr
    assert "has not been fitted" in run("fuse", files / "good.run", "-m", "trust").stderr
    assert "cannot be read" in run("apply", files / "none.podium", files / "new.run").stderr
    assert "not a Podium model file" in run("apply", files / "good.run", files / "new.run").stderr
    assert "no input file" in run("apply", files / "m.podium").stderr
    models.save(toy(), files / "empty.podium")
    assert "has not been fitted" in run("apply", files / "empty.podium", files / "good.run").stderr


def test_explain(files):
    runs = (files / "good.run", files / "bad.run")
    done = json.loads(
        run("explain", *runs, "-m", "rrf(k=1)", "--query", "q1", "--item", "b", "--json").stdout
    )
    assert [(e["ranks"], round(e["value"], 4)) for e in done["experts"]] == [([2], 0.3333)] * 2
    assert (done["exact"], done["items"][0]["of"]) == (True, 3)
    words = ("--weights", "good=2,bad=1", "--query", "q1", "--item", "z", "--over", "c")
    text = run("explain", *runs, "-m", "rrf(k=1)", *words).stdout.splitlines()
    assert text[0] == "expert\trank of z\trank of c\tfavors z\tweight"
    assert [line.split("\t")[-1] for line in text[1:]] == ["2", "1"]
    assert [line.split("\t")[:3] for line in text[1:]] == [["good", "1", "3"], ["bad", "3", "1"]]
    first = json.loads(
        run("explain", *runs, "-m", "rrf", "--weights", "good=2,bad=1", "--query", "q1", "--json").stdout
    )
    assert first["items"][0]["item"] == "z"
    assert "no query 'q99'; there are q0, q1" in run("explain", *runs, "--query", "q99").stderr
    assert "no item 'none' of query 'q1'" in run("explain", *runs, "--query", "q1", "--item", "none").stderr


def test_explain_ids_that_are_numbers(tmp_path):
    rows = [{"query": 7, "expert": 1, "item": i, "rank": i} for i in (1, 2)]
    (tmp_path / "n.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = json.loads(run("explain", tmp_path / "n.jsonl", "--query", 7, "--item", 2, "--json").stdout)
    assert (done["query"], done["items"][0]["item"]) == (7, 2)


def test_reproduce(tmp_path):
    listed = json.loads(run("reproduce", "--json").stdout)
    assert {t["name"] for t in listed} >= {"table2", "table3", "crf", "fused"}
    assert "table3" in run("reproduce").stdout
    none = {"PODIUM_DATA": None}
    assert "--data" in run("reproduce", "table3", env=none).stderr
    assert "did you mean table3" in run("reproduce", "tabel3", env=none).stderr
    missing = run("reproduce", "table3", "--data", tmp_path)
    assert missing.exit_code == 2
    assert f"{tmp_path}/mq2008-agg/A1.txt: there is no such file" in missing.stderr
    assert "there is no such folder" in run("reproduce", "table3", "--data", tmp_path / "no").stderr


@pytest.fixture
def data(tmp_path):
    (tmp_path / "mq2008-agg").mkdir()
    for part in range(1, 6):
        lines = [
            f"{(q + d) % 3} qid:{part}{q} 1:{d + 1} 2:{5 - d} #docid = D{part}{q}{d}\n"
            for q in range(3)
            for d in range(4)
        ]
        (tmp_path / "mq2008-agg" / f"A{part}.txt").write_text("".join(lines))
    return tmp_path


def test_reproduce_computes_shows_and_writes(data):
    words = (
        "reproduce",
        "table3",
        "--data",
        data,
        "--sets",
        "mq2008-agg",
        "--only",
        "rrf",
        "--only",
        "Borda",
    )
    done = run(*words, "-o", data / "out", "--resume", data / "kept")
    assert done.exit_code == 0, done.stderr
    lines = [line.split("\t") for line in done.stdout.splitlines()]
    assert lines[0][:5] == ["set", "", "", "N@1", "N@2"]
    assert [line[1:3] for line in lines[1:5]] == [
        ["Borda", "ours"], ["RRF", "published"], ["RRF", "ours"], ["RRF", "difference"]
    ]  # fmt: skip
    assert lines[2][3] == "38.77"
    assert len(list((data / "kept").iterdir())) == 10
    assert all((data / f"out.{kind}").exists() for kind in ("md", "csv", "json"))
    assert "--overwrite" in run(*words, "-o", data / "out").stderr
    document = json.loads(run(*words, "--json", "--resume", data / "kept").stdout)
    assert document["sets"][0]["rows"][1]["published"][0] == 38.77
    assert "no row 'LR-X'" in run(*words[:4], "--only", "LR-X").stderr


@pytest.mark.parametrize(
    "method", ["svd", "crf", "fused", "weighted_borda", "weighted_rrf", "weighted_kemeny"]
)
def test_fit_and_explain_of_every_method(files, method):
    done = fit(files, "-m", method)
    assert done.exit_code == 0, done.stderr
    facts = dict(line.split("\t") for line in done.stdout.splitlines()[1:])
    chooses = method != "weighted_kemeny"  # it has no passes to choose among
    assert ("passes kept" in facts) == ("validated on" in facts) == chooses
    assert ("held out" in facts) != chooses
    shown = run(
        "explain", files / "good.run", files / "bad.run", "-m", files / "m.podium", "--query", "q0", "--json"
    )
    explained = json.loads(shown.stdout)
    assert explained["items"][0]["item"] == "z"
    assert explained["exact"] == chooses
    if chooses:
        total = sum(e["value"] for e in explained["experts"])
        assert total == pytest.approx(explained["items"][0]["score"])


def test_explanations_that_are_not_exact_say_so(files):
    assert fit(files, "-m", "svd", "-p", "hidden=2", "-p", "passes=2").exit_code == 0
    shown = run(
        "explain", files / "good.run", files / "bad.run", "-m", files / "m.podium", "--query", "q0", "--json"
    )
    assert json.loads(shown.stdout)["exact"] is False


@pytest.mark.parametrize("value", ["ndcg@5:exp", "'ndcg@5:exp'", "map", "rbp(p=0.5)"])
def test_metrics_are_typed_as_they_are_printed(files, value):
    done = fit(files, "-m", "svd", "-p", f"metric={value}", "-p", "passes=2", "--json")
    assert done.exit_code == 0, done.stderr
    assert value.strip("'") in json.loads(done.stdout)["method"]


def test_fit_refuses_before_it_learns_and_keeps_a_query_to_learn_from(files):
    done = run(
        "fit", files / "good.run", "-q", files / "qrels.txt", "-m", "svd", "-o", files / "none" / "m.podium"
    )
    assert done.exit_code == 2
    assert "does not exist; create it" in done.stderr
    done = fit(files, "-m", "svd", "-p", "passes=2", "--validation-share", "0.999", "--json")
    assert json.loads(done.stdout)["queries"] == 1


def test_features_from_several_files(files):
    for name, queries in (("one.txt", range(15)), ("two.txt", range(15, 30))):
        text = "".join(
            f"{grade} qid:q{q} 1:{value} 2:0.5 #docid = {item}\n"
            for q in queries
            for item, grade, value in (("z", 1, 0.9), ("b", 0, 0.1), ("c", 0, 0.2))
        )
        (files / name).write_text(text)
    described = [w for name in ("one.txt", "two.txt") for w in ("--features", files / name)]
    done = fit(files, "-m", "fused", *described)
    assert done.exit_code == 0, done.stderr
    runs = files / "good.run", files / "bad.run"
    shown = run("explain", *runs, "-m", files / "m.podium", *described, "--query", "q20", "--json")
    parts = {e["expert"]: e["value"] for e in json.loads(shown.stdout)["experts"]}
    assert parts["(item features)"] > 0
    done = run("apply", files / "m.podium", *runs)
    assert done.exit_code == 2
    assert "was fitted with the item features" in done.stderr
