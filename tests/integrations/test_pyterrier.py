"""The PyTerrier transformer, in experiments and under PyTerrier's inspection."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pyterrier as pt
import pyterrier_alpha as pta
import pytest

import podium
from podium.core.errors import InputError, ParameterError
from podium.integrations.pyterrier import PodiumFusion

pytestmark = pytest.mark.filterwarnings("ignore")  # what these packages warn of is theirs
QUERIES = [f"q{n}" for n in range(25)]
TOPICS = pd.DataFrame({"qid": QUERIES, "query": [f"words of {q}" for q in QUERIES]})


def sample_run(seed, **columns):
    rng = np.random.default_rng(seed)
    rows = [
        (q, f"words of {q}", f"d{d}", score)
        for q in QUERIES
        for d, score in zip(rng.choice(40, 15, replace=False), rng.normal(size=15), strict=True)
    ]
    run = pd.DataFrame(rows, columns=["qid", "query", "docno", "score"]).assign(**columns)
    return pt.Transformer.from_df(pt.model.add_ranks(run), uniform=True)


@pytest.fixture(scope="module")
def runs():
    return {"a": sample_run(1), "b": sample_run(2), "c": sample_run(3)}


@pytest.fixture(scope="module")
def qrels():
    rng = np.random.default_rng(9)
    rows = [(q, f"d{d}", int(rng.integers(0, 3))) for q in QUERIES for d in range(40)]
    return pd.DataFrame(rows, columns=["qid", "docno", "label"])


def test_an_experiment_gives_the_figures_of_rrfusion(runs, qrels):
    # PyTerrier counts ranks from 0, so its k is one more
    systems = [pta.RRFusion(*runs.values(), k=60), PodiumFusion(runs, "rrf(k=59)")]
    table = pt.Experiment(systems, TOPICS, qrels, ["map", "ndcg_cut_10", "P_5"], names=["theirs", "ours"])
    assert table.iloc[0, 1:].tolist() == pytest.approx(table.iloc[1, 1:].tolist(), rel=1e-12)
    theirs, ours = (system(TOPICS).set_index(["qid", "docno"])["score"].sort_index() for system in systems)
    pd.testing.assert_series_equal(ours, theirs)


def test_pyterrier_measures_what_podium_measures(runs, qrels):
    weights = {"a": 1.0, "b": 3.0, "c": 0.5}
    system = PodiumFusion(runs, "rrf(k=5)", weights=weights)
    (theirs,) = pt.Experiment([system], TOPICS, qrels, ["ndcg_cut_10"])["ndcg_cut_10"]
    lists: dict = {}
    for name, run in runs.items():
        for q, part in run(TOPICS).sort_values("rank").groupby("qid"):
            lists.setdefault(q, {})[name] = part["docno"].tolist()
    labels = {q: dict(zip(part.docno, part.label, strict=True)) for q, part in qrels.groupby("qid")}
    consensus = podium.make("rrf(k=5)", weights=weights).aggregate(podium.Preferences.from_lists(lists))
    # trec_eval, which PyTerrier calls, has its own order of ties
    consensus = consensus.with_ties("trec", single=True)
    (ours,) = podium.evaluate.evaluate(consensus, labels, "ndcg_cut_10").mean().values()
    assert theirs == pytest.approx(ours)


def test_pyterrier_can_inspect_it(runs):
    fusion = PodiumFusion({"a": sample_run(1, text="t"), "b": sample_run(2, text="u", url="v")})
    columns = ["qid", "query", "docno", "text", "score", "rank"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert pt.inspect.transformer_outputs(fusion, ["qid", "query"]) == columns
        assert pt.inspect.subtransformers(fusion) == {"pipelines": list(fusion.pipelines.values())}
    assert list(fusion(TOPICS).columns) == columns
    assert list(fusion(TOPICS.iloc[:1]).columns) == columns
    pipeline = fusion % 3 >> pt.apply.generic(lambda results: results)
    assert pipeline(TOPICS).groupby("qid").size().unique().tolist() == [3]


def test_the_first_pipeline_with_a_document_gives_its_columns():
    first, second = sample_run(1, text="first"), sample_run(2, text="second")
    results = PodiumFusion({"a": first, "b": second})(TOPICS)
    listed = set(map(tuple, first(TOPICS)[["qid", "docno"]].to_numpy()))
    texts = [
        "first" if (q, d) in listed else "second" for q, d in zip(results.qid, results.docno, strict=True)
    ]
    assert results["text"].tolist() == texts
    assert (results.groupby("qid")["rank"].min() == 0).all()


def test_ranks_come_from_the_order_or_from_the_scores():
    tied = pd.DataFrame({"qid": "q", "query": "w", "docno": ["x", "y", "z"], "score": [2.0, 1.0, 1.0]})
    run = pt.Transformer.from_df(pt.model.add_ranks(tied), uniform=True)
    topics = pd.DataFrame({"qid": ["q"], "query": ["w"]})
    given = PodiumFusion({"only": run})(topics).set_index("docno")["score"]
    assert given.to_dict() == pytest.approx({"x": 1 / 61, "y": 1 / 62, "z": 1 / 63})
    scored = PodiumFusion({"only": run}, ranks="scores")(topics).set_index("docno")["score"]
    assert scored.to_dict() == pytest.approx({"x": 1 / 61, "y": 1 / 62, "z": 1 / 62})


def test_a_pipeline_without_results_keeps_its_weight(runs):
    empty = pt.apply.generic(lambda topics: runs["a"](topics).iloc[:0])
    results = PodiumFusion({"a": runs["a"], "b": empty}, weights={"a": 1, "b": 2})(TOPICS)
    assert len(results) == len(runs["a"](TOPICS))


def test_wrong_settings_are_errors(runs):
    with pytest.raises(InputError, match="the pipeline 'a' returns no column 'docno'"):
        PodiumFusion({"a": pt.apply.generic(lambda topics: topics)})(TOPICS)
    with pytest.raises(ParameterError, match="no weight for expert 'b'"):
        PodiumFusion(runs, weights={"a": 1})
    with pytest.raises(ParameterError, match="there are no pipelines"):
        PodiumFusion({})
