"""The same numbers as trec_eval (through pytrec_eval): ties, near-ties, unjudged items, negative grades."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

from podium.data.labels import Labels
from podium.data.preferences import Preferences
from podium.evaluate import evaluate, expert_rankings

pytrec_eval = pytest.importorskip("pytrec_eval")

NAMES = {
    "ndcg": "ndcg",
    "ndcg@1": "ndcg_cut_1",
    "ndcg@10": "ndcg_cut_10",
    "map": "map",
    "map@5": "map_cut_5",
    "p@1": "P_1",
    "p@10": "P_10",
    "recall@5": "recall_5",
    "mrr": "recip_rank",
    "bpref": "bpref",
    "rprec": "Rprec",
    "success@3": "success_3",
    "hits": "num_rel_ret",
}
MEASURES = [
    "ndcg",
    "ndcg_cut.1,10",
    "map",
    "map_cut.5",
    "P.1,10",
    "recall.5",
    "recip_rank",
    "bpref",
    "Rprec",
    "success.3",
    "num_rel_ret",
]


def random_problem(seed: int, score) -> tuple[dict, dict]:
    rng = np.random.default_rng(seed)
    run, qrels = {}, {}
    for q in range(40):
        ranked = rng.permutation(60)[: rng.integers(1, 50)]
        run[f"q{q}"] = {f"d{d}": float(score(rng)) for d in ranked}
        judged = rng.permutation(60)[: rng.integers(1, 40)]
        grades = [0] if q % 8 == 0 else [-2, -1, 0, 0, 1, 2, 3]  # every eighth query has no relevant item
        qrels[f"q{q}"] = {f"d{d}": int(rng.choice(grades)) for d in judged}
    run["not judged"] = {"d1": 1.0}
    qrels["not retrieved"] = {"d1": 1}
    return run, qrels


SCORES = {
    "distinct": lambda rng: rng.normal(),
    "ties": lambda rng: rng.integers(0, 5),
    "all tied": lambda _: 1.0,
    "nearer than 32 bits": lambda rng: 1.0 + rng.integers(0, 20) * 1e-8,
    "huge": lambda rng: rng.choice([1e300, 1e299, -1e300, 1.0]),
}


@pytest.mark.filterwarnings("ignore:all items of every query")
@pytest.mark.parametrize("relevant", [1, 2])
@pytest.mark.parametrize("scores", SCORES)
def test_same_values_as_trec_eval(scores, relevant):
    run, qrels = random_problem(len(scores), SCORES[scores])
    theirs = pytrec_eval.RelevanceEvaluator(qrels, set(MEASURES), relevance_level=relevant).evaluate(run)
    consensus = expert_rankings(Preferences.from_lists({q: {"run": s} for q, s in run.items()}), "run")
    metrics = {m if m.startswith("ndcg") else _with_threshold(m, relevant): name for m, name in NAMES.items()}
    ours = evaluate(consensus.with_ties("trec", single=True), Labels.from_dict(qrels), list(metrics))
    assert set(ours.queries) == set(theirs)
    assert ours.missing == ours.unlabelled == 1
    for metric, name in metrics.items():
        expected = [theirs[q][name] for q in ours.queries]
        np.testing.assert_allclose(ours[metric], expected, rtol=1e-12, atol=1e-15, err_msg=metric)
        assert ours.mean()[str(_parsed(metric))] == pytest.approx(np.mean(expected))


@pytest.mark.parametrize(("ours", "theirs"), NAMES.items())
def test_the_names_of_trec_eval_parse(ours, theirs):
    assert _parsed(theirs) == _parsed(ours)


def _with_threshold(metric: str, relevant: int) -> str:
    name, at, cutoff = metric.partition("@")
    return f"{name}(relevant={relevant}){at}{cutoff}"


def _parsed(metric: str):
    from podium.metrics import parse

    return parse(metric)


def test_queries_without_relevant_items_count_as_zero():
    theirs = pytrec_eval.RelevanceEvaluator({"q": {"a": 0}}, {"map", "ndcg", "bpref"}).evaluate(
        {"q": {"a": 1.0}}
    )
    consensus = expert_rankings(Preferences.from_lists({"q": {"run": {"a": 1.0}}}), "run")
    ours = evaluate(consensus, Labels.from_dict({"q": {"a": 0}}), ["map", "ndcg", "bpref"])
    assert list(ours.mean().values()) == list(theirs["q"].values()) == [0, 0, 0]


def test_double_precision_order_is_kept_unless_single_is_asked_for():
    run = {"q": {"a": 1.0 + 1e-9, "b": 1.0}}
    consensus = expert_rankings(Preferences.from_lists({q: {"run": s} for q, s in run.items()}), "run")
    labels = Labels.from_dict({"q": {"a": 1, "b": 0}})
    assert evaluate(consensus.with_ties("trec"), labels, "mrr").mean() == {"mrr": 1.0}
    theirs = pytrec_eval.RelevanceEvaluator({"q": {"a": 1, "b": 0}}, {"recip_rank"}).evaluate(run)
    with pytest.warns(match="same score"):
        single = evaluate(consensus.with_ties("trec", single=True), labels, "mrr")
    assert single.mean()["mrr"] == theirs["q"]["recip_rank"] == 0.5


@pytest.mark.data
def test_real_runs_of_trec(data_dir):
    folder = data_dir / "robust03-runs"
    qrels: dict = {}
    with gzip.open(folder / "robust03.qrels.gz", "rt") as lines:
        for query, _, item, grade in map(str.split, lines):
            qrels.setdefault(query, {})[item] = int(grade)
    runs: dict = {}
    with gzip.open(folder / "robust03.tsv.gz", "rt") as lines:
        for name, query, _, item, score in (line.split() for line in lines if line.count("\t") == 4):
            if score.lstrip("-")[:1].isdigit():
                runs.setdefault(name, {}).setdefault(query, {})[item] = float(score)
    assert len(runs) == 17
    rows = [
        (q, name, i, s)
        for name, run in runs.items()
        for q, by_item in run.items()
        for i, s in by_item.items()
    ]
    q, e, i, s = zip(*rows, strict=True)
    preferences, labels = Preferences.from_rows(q, e, i, score=s), Labels.from_dict(qrels)
    evaluator = pytrec_eval.RelevanceEvaluator(qrels, set(MEASURES))
    for name, run in runs.items():
        theirs = evaluator.evaluate(run)
        ours = evaluate(
            expert_rankings(preferences, name).with_ties("trec", single=True), labels, list(NAMES)
        )
        for metric, measure in NAMES.items():
            np.testing.assert_allclose(ours[metric], [theirs[q][measure] for q in ours.queries], rtol=1e-12)
