"""The report on beliefs, and the reproduction of the published curve."""

from __future__ import annotations

import json

import numpy as np
import pytest

from podium import Features, Labels
from podium.analysis.feature_beliefs import belief_report
from podium.methods.feature.labelled_features import LabelledFeatures
from podium.metrics.agreement import kendall_tau
from podium_papers import TABLES, belief_curves, figure_lines, reproduce
from podium_papers.letor_columns import COLUMNS


def made(seed=0):
    random = np.random.default_rng(seed)
    q, i = np.repeat(np.arange(8), 10), np.tile(np.arange(10), 8)
    x = random.normal(size=(80, 5))
    x[:, 1] = -x[:, 0] + 0.2 * x[:, 1]
    x[:, 2] = x[:, 0] + 0.5 * x[:, 2]
    x[:, 4] = 7.0
    return Features.from_rows(q, i, x, ["good", "bad", "along", "noise", "same"])


def test_the_report_adds_up():
    x = made()
    labels = Labels(x.index, (x.values[:, 2] > 0.5).astype(float))
    model = LabelledFeatures(beliefs={"good": 2, "noise": 1}).fit(x)
    report = belief_report(model, x, labels, most=3)
    assert {w.feature: w.weight for w in report.weights} == model.feature_weights()
    assert [w.weight for w in report.weights] == sorted(model.feature_weights().values(), reverse=True)
    assert {w.feature: w.grade for w in report.weights if w.grade} == {"good": 2, "noise": 1}
    naive, learned = model.naive(x), model.predict(x)
    taus = [kendall_tau(naive[a : a + 10], learned[a : a + 10]) for a in range(0, 80, 10)]
    assert report.tau == pytest.approx(np.mean(taus))
    assert [c.tau for c in report.changed] == sorted(taus)[:3]
    assert report.conflicts == ()
    assert report.quality is not None
    assert 0 < report.quality.naive < 1
    json.dumps(report.to_dict())


def test_beliefs_that_contradict_each_other_are_told():
    x = made()
    model = LabelledFeatures(beliefs={"good": 2, "bad": 1, "same": 1}, kept=0.0, l2=0.01).fit(x)
    kinds = {c.kind: c for c in belief_report(model, x).conflicts}
    assert kinds["opposed"].features == ("good", "bad")
    assert kinds["opposed"].value < -0.9
    assert "conflict (correlation" in kinds["opposed"].text
    assert kinds["silent"].features == ("same",)
    assert kinds["reversed"].features == ("bad",)
    agreeing = LabelledFeatures(beliefs={"good": 2, "bad": -1}).fit(x)
    assert belief_report(agreeing, x).conflicts == ()


def test_queries_of_one_item_and_equal_rankings():
    x = Features.from_rows(["q", "r", "r"], ["a", "b", "c"], [[1.0], [2.0], [3.0]], ["only"])
    report = belief_report(LabelledFeatures(beliefs={"only": 1}).fit(x), x)
    assert report.tau == 1
    assert report.changed == ()


def test_every_believed_feature_is_a_column():
    assert {name: len(columns) for name, columns in COLUMNS.items()} == {
        "mslr-web10k-sample": 136, "mq2008": 46, "ohsumed": 45,
    }  # fmt: skip
    assert COLUMNS["mslr-web10k-sample"][105:110] == tuple(
        f"BM25 {f}" for f in ("body", "anchor", "title", "url", "whole")
    )
    assert [COLUMNS["mslr-web10k-sample"].index(n) + 1 for n in ("PageRank", "quality")] == [130, 132]
    assert [COLUMNS["mq2008"].index(n) + 1 for n in ("BM25 title", "PageRank")] == [23, 41]
    for name, kinds in belief_curves.BELIEFS.items():
        assert len(set(COLUMNS[name])) == len(COLUMNS[name])
        for grades in kinds.values():
            assert set(grades) <= set(COLUMNS[name])


def test_the_quality_of_a_random_order_is_the_mean_over_all_orders():
    from itertools import permutations

    from podium import Consensus
    from podium.evaluate import evaluate

    labels = Labels.from_dict({"q": {"a": 2, "b": 0, "c": 1, "d": 0}})
    values = [
        evaluate(Consensus.from_scores(labels.index, np.array(p, float)), labels, "ndcg@10:exp").mean()[
            "ndcg@10:exp"
        ]
        for p in permutations(range(4))
    ]
    assert belief_curves._random_quality(labels) == pytest.approx(np.mean(values))


def test_the_table_is_computed_from_files(tmp_path, monkeypatch):
    random = np.random.default_rng(0)
    folder = tmp_path / "ohsumed"
    folder.mkdir()
    for part in range(1, 6):
        lines = []
        for query in range(6):
            good = random.normal(size=(9, 45))
            good[:, 20:] += 1.5 * good[:, 10:11]
            labels = np.digitize(good[:, 10] + good[:, 25], [0.5, 2.5])
            labels[0] = 2
            cells = [" ".join(f"{c + 1}:{v:.4f}" for c, v in enumerate(row)) for row in good]
            lines += [
                f"{y} qid:{part}{query} {x} #docid = {k}"
                for k, (y, x) in enumerate(zip(labels, cells, strict=True))
            ]
        (folder / f"Fold{part}.test.txt").write_text("\n".join(lines) + "\n")
    monkeypatch.setattr(belief_curves, "DRAWS", 3)
    found = reproduce("labelled-features", tmp_path, sets=["ohsumed"])
    [one] = found.sets
    assert one.columns == ("10 queries", "15 queries", "all 30")
    assert [row.name for row in one.rows] == [row.name for row in TABLES["labelled-features"].rows]
    rows = {row.name: row.ours for row in one.rows}
    for kind in ("one belief", "five beliefs"):
        np.testing.assert_allclose(
            np.array(rows[f"{kind}: learned"]) - rows[f"{kind}: graded sum"], rows[f"{kind}: gain"], atol=1e-9
        )
        assert rows[f"{kind}: graded sum"][0] == rows[f"{kind}: graded sum"][1]
    assert one.more[0][0].startswith("summary")
    assert len(figure_lines(found.table, one)[1]) == 5
    some = reproduce("labelled-features", tmp_path, sets=["ohsumed"], only=["one belief: learned"])
    assert [row.ours for row in some.sets[0].rows] == [rows["one belief: learned"]]
