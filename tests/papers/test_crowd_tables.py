"""The tables on crowds: their data sets, their protocol, and the annotators' qualities."""

from __future__ import annotations

import dataclasses
import json
import random

import numpy as np
import pytest
from click.testing import CliRunner
from scipy import stats

from podium import make
from podium.cli import program
from podium.evaluate import evaluate, judged_only
from podium_papers import TABLES, PublishedRow, reproduce, write
from podium_papers.crowd_tables import compare_qualities, compute_divergence
from podium_papers.paper_datasets import load_dataset

CROWD = [t for name, t in TABLES.items() if name.startswith("crowd-")]


@pytest.fixture
def folder(tmp_path):
    """The three sets of the tables, tiny."""
    chance = random.Random(1)
    for name in ("mirex2005", "reading-level", "trec2011-crowd"):
        (tmp_path / name).mkdir()
    rows = ["topicID\tworkerID\tdocID\tgold_binary\tlabel_binary\n"]
    votes, groups, pairs = ["query,worker,doc_a,doc_b,answer,seconds\n"], [], []
    for t in range(4):
        groups += [f"MTurk\tq{t}\td{d}\t{d + 1}\n" for d in range(7)]
        for w in range(6):
            for d in range(6):
                gold = d % 2 if d < 5 else -1
                wrong = chance.random() < (0.1 if w else 0.9)
                rows.append(f"{t}\tw{w}\td{d}\t{gold}\t{d % 2 ^ wrong}\n")
                a, b = chance.sample(range(7), 2)
                answer = "same" if chance.random() < 0.1 else "a" if (a < b) != wrong else "b"
                votes.append(f"q{t},{w},d{a},d{b},{answer if w or d else ''},{chance.randint(5, 50)}\n")
    for w in range(8):
        for _ in range(30):
            a, b = sorted(chance.sample(range(10), 2), reverse=chance.random() < (0.9 if w else 0.2))
            pairs.append(f"{w} {a} {b}\n")
    pairs.append("3 4 4\n")
    (tmp_path / "trec2011-crowd" / "judgments.tsv").write_text("".join(rows))
    (tmp_path / "mirex2005" / "judgments.csv").write_text("".join(votes))
    (tmp_path / "mirex2005" / "MTurk.qrel").write_text("".join(groups))
    (tmp_path / "reading-level" / "all_pair.txt").write_text("".join(pairs))
    (tmp_path / "reading-level" / "doc_info.txt").write_text("".join(f"{d} {d // 2}\n" for d in range(10)))
    return tmp_path


def test_the_data_sets_are_read(folder):
    melodies, texts = load_dataset("mirex2005", folder), load_dataset("reading-level", folder)
    assert len(melodies.preferences.comparisons) == 4 * 6 * 6 - 4  # four have no answer
    assert melodies.preferences.comparisons.tie.any()
    assert melodies.preferences.comparisons.side is not None
    assert [melodies.labels.grade("q0", f"d{d}") for d in range(7)] == [4, 3, 2, 1, 0, 0, 0]
    assert len(texts.preferences.comparisons) == 8 * 30  # an item is not compared with itself
    assert texts.labels.grade("all", "9") == 4


@pytest.mark.parametrize("table", CROWD, ids=[t.name for t in CROWD])
def test_a_row_is_the_measure_of_its_method_on_all_queries(folder, table):
    [one] = reproduce(table, folder, only=["Copeland", "GreedyOrder"]).sets
    data = load_dataset(table.sets[0], folder)
    assert one.queries == len(data)
    for row, spec in zip(one.rows, ("copeland", "greedy"), strict=True):
        ranking = make(spec).aggregate(data.preferences)
        shown = judged_only(ranking, data.labels) if table.labelled_only else ranking
        means = evaluate(shown, data.labels, table.metrics).mean()
        assert row.ours == pytest.approx([100 * v for v in means.values()], abs=0.006)


def test_differences_only_where_figures_can_be_compared(folder):
    trec = reproduce("crowd-trec2011", folder, only=["GreedyOrder"]).sets[0].rows[0]
    mirex = reproduce("crowd-mirex2005", folder, only=["GreedyOrder"]).sets[0].rows[0]
    assert trec.difference is not None
    assert (mirex.difference, mirex.published[0]) == (None, 27.3)


def test_qualities_are_compared_with_the_truth(folder):
    data = load_dataset("reading-level", folder)
    ours, *others = compare_qualities(
        [PublishedRow("equal", "copeland"), PublishedRow("learned", "crowd_bt", quality=True)], data
    )
    assert ours.name == "podium annotators"
    assert [q.name for q in others] == ["learned"]  # copeland has nothing to say of annotators
    assert ours.annotators == 8
    assert (ours.converged, others[0].converged) == (None, True)
    grades = data.labels.align(data.preferences.index)
    v = data.preferences.comparisons
    gap = grades[v.winner] - grades[v.loser]
    true = [np.mean(gap[(v.expert == e) & (gap != 0)] > 0) for e in range(8)]
    assert ours.true == pytest.approx(np.mean(true))


def test_the_divergence_of_two_distributions_of_quality():
    """As computed by scipy from histograms, half a count added to each of ten classes."""
    chance = np.random.default_rng(0)
    estimated, true = chance.beta(6, 3, 40), chance.beta(4, 4, 30)
    counts = [np.histogram(q, 10, (0, 1))[0] + 0.5 for q in (true, estimated)]
    assert compute_divergence(estimated, true) == pytest.approx(stats.entropy(*counts))
    assert compute_divergence(true, true) == 0


def test_rows_without_a_method_are_left_out_and_named(folder):
    table = TABLES["crowd-reading"]
    more = dataclasses.replace(table, rows=(*table.rows, PublishedRow("Tomorrow", "not_there_yet")))
    found = reproduce(more, folder, only=["Copeland", "Tomorrow"])
    assert [row.name for row in found.sets[0].rows] == ["Copeland"]
    assert found.notes[-1] == "Not available in this version, so left out: Tomorrow."


def test_qualities_are_written_and_shown(folder, tmp_path):
    found = reproduce("crowd-reading", folder, only=["Copeland"])
    write(found, str(tmp_path / "out"))
    assert "| annotators | rank correlation |" in (tmp_path / "out.md").read_text()
    document = json.loads((tmp_path / "out.json").read_text())
    assert document["sets"][0]["annotators"][0]["name"] == "podium annotators"
    words = ["reproduce", "crowd-reading", "--data", str(folder), "--only", "Copeland"]
    done = CliRunner().invoke(program, words)
    assert "reading-level\tpodium annotators\t" in done.stdout


@pytest.mark.data
def test_known_figures_on_real_crowds(data_dir):
    """Mean votes and net votes on TREC 2011 as measured by an independent prototype."""
    rows = {
        r.name: r
        for r in reproduce("crowd-trec2011", data_dir, only=["Majority vote", "Net votes"]).sets[0].rows
    }
    at = TABLES["crowd-trec2011"].metrics.index("ndcg@10:exp")
    assert rows["Majority vote"].ours[at] == pytest.approx(71.4, abs=0.3)
    if "Net votes" in rows:
        assert rows["Net votes"].ours[at] == pytest.approx(76.5, abs=0.3)
