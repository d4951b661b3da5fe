"""The two readings of items that an expert leaves out: each is named, and a winner that depends on it."""

from __future__ import annotations

import numpy as np
import pytest
from click.testing import CliRunner

from podium import Labels, Preferences, compare, diagnose, make, report
from podium.cli import program
from podium.data.unlisted_rule import describe_unlisted_rule
from podium.evaluate import evaluate
from podium.evaluate.unlisted_reading import warn_of_other_reading

METHODS = ("borda", "condorcet", "mc4")
READINGS = {"below": "below those it lists", "unknown": "unknown to it"}


def run(*words):
    return CliRunner().invoke(program, [str(w) for w in words])


def lists_of(seed, queries=12, items=14, length=6):
    """Experts that see short and different parts of a true order."""
    random, lists, grades = np.random.default_rng(seed), {}, {}
    for q in range(queries):
        truth = random.normal(size=items)
        grades[f"q{q}"] = {f"d{i}": int(truth[i] > 0.8) for i in range(items)}
        lists[f"q{q}"] = {
            f"e{e}": [f"d{i}" for i in sorted(random.choice(items, length, False), key=lambda i: noisy[i])]
            for e, noisy in enumerate(-truth + random.normal(0, 1.2, (4, items)))
        }
    return lists, grades


def winner(lists, grades, unlisted, names=METHODS):
    """The best method, by one evaluation per method."""
    p = Preferences.from_lists(lists, unlisted=unlisted)
    mean = {}
    for name in names:
        c = make(name).aggregate(p).with_ties("trec", single=True)
        mean[name] = evaluate(c, grades, "ndcg@5", queries="all").mean()["ndcg@5"]
    return max(mean, key=mean.get)


@pytest.mark.parametrize("unlisted", READINGS)
def test_a_warning_comes_exactly_when_the_winner_changes(unlisted):
    changed = []
    for seed in range(12):
        lists, grades = lists_of(seed)
        p, labels = Preferences.from_lists(lists, unlisted=unlisted), Labels.from_dict(grades)
        methods = {n: make(n) for n in METHODS}
        results = {n: m.aggregate(p).with_ties("trec", single=True) for n, m in methods.items()}
        found = compare(results, labels, "ndcg@5")
        said = warn_of_other_reading(found, p, methods, labels)
        best = {reading: winner(lists, grades, reading) for reading in READINGS}
        other = next(r for r in READINGS if r != unlisted)
        if best[unlisted] == best[other]:
            assert not said
        else:
            changed.append(seed)
            assert f"by ndcg@5, {best[unlisted]} is best" in said
            assert f"and {best[other]} if they are read the other way (unlisted: {other}" in said
    assert 0 < len(changed) < 12


def test_nothing_is_said_where_nothing_is_left_out():
    p = Preferences.from_lists({"q": {"x": ["a", "b"], "y": ["b", "a"]}, "r": {"x": ["a"]}}, unlisted="below")
    assert describe_unlisted_rule(p) == ""
    votes = Preferences.from_comparisons(["q", "q"], ["x", "x"], ["a", "b"], ["b", "c"])
    assert describe_unlisted_rule(votes) == ""


@pytest.fixture(scope="module")
def divided():
    """Lists of which the two readings have different winners."""
    for seed in range(50):
        lists, grades = lists_of(seed)
        if winner(lists, grades, "below") != winner(lists, grades, "unknown"):
            return lists, grades
    raise AssertionError("no such lists")


@pytest.fixture
def folder(divided, tmp_path, monkeypatch):
    """The same lists as a TREC run and as a table."""
    lists, grades = divided
    rows = [(q, e, d, r + 1) for q, own in lists.items() for e, row in own.items() for r, d in enumerate(row)]
    run_lines = [f"{q} Q0 {d} {r} {100 - r} {e}" for q, e, d, r in sorted(rows, key=lambda row: row[1])]
    (tmp_path / "all.run").write_text("\n".join(run_lines) + "\n")
    table = ["query\texpert\titem\trank", *("\t".join(map(str, row)) for row in rows)]
    (tmp_path / "all.tsv").write_text("\n".join(table) + "\n")
    qrels = [f"{q} 0 {d} {g}" for q, own in grades.items() for d, g in own.items()]
    (tmp_path / "qrels.txt").write_text("\n".join(qrels) + "\n")
    monkeypatch.chdir(tmp_path)
    return divided


FILES = {"below": "all.run", "unknown": "all.tsv"}


@pytest.mark.parametrize("unlisted", READINGS)
def test_compare_names_its_reading_and_the_winner_of_the_other(unlisted, folder):
    chosen = [word for name in METHODS for word in ("-m", name)]
    words = [FILES[unlisted], "--qrels", "qrels.txt", "--runs", "none", "-M", "ndcg@5", *chosen]
    said = run("compare", *words).stderr
    assert f"count as {READINGS[unlisted]} (unlisted: {unlisted})" in said
    assert f"by ndcg@5, {winner(*folder, unlisted)} is best as they are read here" in said
    written = run("compare", *words, "-o", "table.md").stderr
    assert "podium: warning: The reading of unlisted items decides the winner" in written
    assert READINGS[unlisted] in written


@pytest.mark.parametrize("unlisted", READINGS)
def test_every_summary_names_the_reading(unlisted, folder):
    asked = {
        "fuse": ["-o", "fused.run"],
        "experts": [],
        "tune": ["--qrels", "qrels.txt", "-m", "rrf", "--trials", "2"],
        "report": ["--qrels", "qrels.txt", "-o", "page.html", "--no-learn"],
    }
    for verb, words in asked.items():
        found = run(verb, FILES[unlisted], *words)
        assert found.exit_code == 0, found.output
        assert f"count as {READINGS[unlisted]} (unlisted: {unlisted})" in found.output, verb


@pytest.mark.parametrize("unlisted", READINGS)
def test_a_report_warns_and_a_diagnosis_names_the_reading(unlisted, divided):
    lists, grades = divided
    p, labels = Preferences.from_lists(lists, unlisted=unlisted), Labels.from_dict(grades)
    found = report(p, labels, methods=METHODS, metrics=["ndcg@5"], learn=False)
    assert READINGS[unlisted] in found.verdict[-1]
    assert any("decides the winner" in f.text and f.verdict == "check" for f in found.findings)
    assert READINGS[unlisted] in diagnose(p).to_dict()["reading"]
