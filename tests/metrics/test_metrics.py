"""Every metric against a plain loop; hand cases and traps."""

from __future__ import annotations

import functools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podium.core.errors import ParameterError
from podium.core.registry import metrics as known
from podium.data.consensus import Consensus
from podium.data.labels import Labels
from podium.data.preferences import Preferences
from podium.evaluate import evaluate
from podium.kernels import dispatch
from podium.metrics import (
    DCG,
    F1,
    MAP,
    MRR,
    NDCG,
    RBP,
    Hits,
    Judged,
    Metric,
    Precision,
    Recall,
    RPrecision,
    Success,
    parse,
    parse_all,
)
from reference import metrics as plain

TWINS = {
    "ndcg": plain.ndcg,
    "ndcg@3": functools.partial(plain.ndcg, k=3),
    "ndcg@3:exp": functools.partial(plain.ndcg, k=3, dialect="exp"),
    "ndcg@5:letor": functools.partial(plain.ndcg, k=5, dialect="letor"),
    "ndcg:letor": functools.partial(plain.ndcg, dialect="letor"),
    "dcg@3": functools.partial(plain.dcg, k=3),
    "dcg@4:exp": functools.partial(plain.dcg, k=4, dialect="exp"),
    "f1@3": functools.partial(plain.f1, k=3),
    "hits@4": functools.partial(plain.hits, k=4),
    "hits": plain.hits,
    "map": plain.average_precision,
    "map@3": functools.partial(plain.average_precision, k=3),
    "map(relevant=2)": functools.partial(plain.average_precision, threshold=2),
    "p@4": functools.partial(plain.precision, k=4),
    "recall": plain.recall,
    "recall@2": functools.partial(plain.recall, k=2),
    "mrr": plain.reciprocal_rank,
    "mrr@2": functools.partial(plain.reciprocal_rank, k=2),
    "success@2": functools.partial(plain.success, k=2),
    "rprec": plain.r_precision,
    "bpref": plain.bpref,
    "err(max_grade=4)@4": functools.partial(plain.err, top=4, k=4),
    "err(max_grade=4)": functools.partial(plain.err, top=4),
    "rbp": functools.partial(plain.rbp, p=0.8),
    "rbp(p=0.5)@3": functools.partial(plain.rbp, p=0.5, k=3),
    "judged@3": functools.partial(plain.judged_share, k=3),
    "judged": plain.judged_share,
}


def rankings(scores: dict[str, dict[str, float]]) -> Consensus:
    p = Preferences.from_lists({q: {"e": s} for q, s in scores.items()})
    assert p.lists.score is not None
    by_slot = np.empty(len(p.index.items))
    by_slot[p.lists.item] = p.lists.score
    return Consensus.from_scores(p.index, by_slot)


@st.composite
def problems(draw):
    """Queries with scored items, some of them judged, and judged items that are not ranked."""
    names = [f"d{i}" for i in range(12)]
    grade = st.sampled_from([-2, -1, 0, 0, 1, 2, 3, 4, 0.5, 1.5])
    run, qrels = {}, {}
    for q in range(draw(st.integers(1, 4))):
        ranked = draw(st.lists(st.sampled_from(names), min_size=1, max_size=12, unique=True))
        run[f"q{q}"] = {d: float(draw(st.integers(0, 6))) for d in ranked}
        labelled = draw(st.lists(st.sampled_from(names), min_size=1, max_size=12, unique=True))
        qrels[f"q{q}"] = {d: draw(grade) for d in labelled}
    return run, qrels


@pytest.mark.filterwarnings("ignore::podium.core.errors.PodiumWarning")
@settings(max_examples=40, deadline=None)
@given(problems())
def test_every_metric_equals_its_plain_twin(problem):
    run, qrels = problem
    consensus = rankings(run)
    found = evaluate(consensus, Labels.from_dict(qrels), list(TWINS))
    for metric, twin in TWINS.items():
        for q, value in zip(found.queries, found[metric], strict=True):
            ranked = [qrels[q].get(d) for d in consensus.ranking(q)]
            assert value == pytest.approx(twin(ranked, list(qrels[q].values())), abs=1e-12), metric


def test_every_number_of_threads_gives_the_same_bits(monkeypatch):
    rng = np.random.default_rng(3)
    run, qrels = {}, {}
    for q in range(60):
        n = int(rng.integers(1, 90))
        run[q] = dict(zip(range(n), rng.integers(0, 30, n).astype(float).tolist(), strict=True))
        qrels[q] = dict(
            zip(rng.permutation(100)[:40].tolist(), rng.choice([-1, 0, 1, 2, 0.3], 40).tolist(), strict=True)
        )
    consensus = rankings(run)
    monkeypatch.setattr(dispatch, "THREAD_WORK", 0)
    values = []
    for threads in ("1", "3"):
        monkeypatch.setenv("PODIUM_THREADS", threads)
        values.append(evaluate(consensus, Labels.from_dict(qrels), list(TWINS)).values)
    assert np.array_equal(*values)


def test_every_metric_of_the_registry_has_a_twin():
    walked = {
        n
        for n, c in known.all().items()
        if c.__module__.startswith(("podium.metrics.gains", "podium.metrics.binary"))
    }
    assert {parse(t).name for t in TWINS} == walked


# -- values ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("ndcg@10", NDCG @ 10),
        ("nDCG@10", NDCG(cutoff=10)),
        ("ndcg@10:trec", NDCG @ 10),
        ("ndcg@5:letor", NDCG(dialect="letor") @ 5),
        ("ndcg:exp", NDCG(dialect="exp")),
        ("rbp(p=0.95)@20", RBP(p=0.95) @ 20),
        ("rbp(p=0.95, relevant=2)", RBP(p=0.95, relevant=2)),
        ("MAP", MAP()),
        ("ap", MAP()),
        ("precision@3", Precision @ 3),
        # as trec_eval prints them, and as its option -m takes them
        ("ndcg_cut_10", NDCG @ 10),
        ("ndcg_cut.10", NDCG @ 10),
        ("map_cut_1000", MAP @ 1000),
        ("P_10", Precision @ 10),
        ("recall_100", Recall @ 100),
        ("success_5", Success @ 5),
        ("recip_rank", MRR()),
        ("Rprec", RPrecision()),
        ("num_rel_ret", Hits()),
        # ir_measures
        ("nDCG(dcg='exp-log2')@10", NDCG(dialect="exp") @ 10),
        ("nDCG(dcg='log2')@10", NDCG @ 10),
        ("AP(rel=2)@100", MAP(relevant=2) @ 100),
        ("RR(rel=2)", MRR(relevant=2)),
        ("R@1000", Recall @ 1000),
        ("RBP(p=0.5, rel=2)", RBP(p=0.5, relevant=2)),
        ("Success@1", Success @ 1),
        ("Judged@10", Judged @ 10),
        # ranx
        ("hits@10", Hits @ 10),
        ("hit_rate@10", Success @ 10),
        ("r_precision", RPrecision()),
        ("f1@10", F1 @ 10),
        ("mrr@5-l2", MRR(relevant=2) @ 5),
        ("rbp.95", RBP(p=0.95)),
        ("ndcg_burges@10", NDCG(dialect="exp") @ 10),
        ("dcg@10", DCG @ 10),
        ("dcg_burges@10", DCG(dialect="exp") @ 10),
    ],
)
def test_metrics_parse_compare_and_hash(text, value):
    assert parse(text) == value
    assert hash(parse(text)) == hash(value)
    assert parse(str(value)) == value
    assert str(parse(str(value))) == str(value)


def test_defaults_print_bare():
    assert [str(m) for m in parse_all("ndcg@10:trec rbp(p=0.8),map(relevant=1)")] == ["ndcg@10", "rbp", "map"]
    assert len({NDCG @ 10, parse("ndcg@10"), NDCG(dialect="exp") @ 10}) == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ndgc@10", "did you mean ndcg"),
        ("ndcg@0", "whole number in"),
        ("ndcg@10:foo", "one of trec | exp | letor"),
        ("map:letor", "map has no dialects"),
        ("rbp(q=1)", "rbp has no parameter 'q'"),
        ("rbp(p=2)", "p is 2"),
        ("bpref@5", "bpref takes no cutoff"),
        ("map(rel=0)", "relevant is 0"),
        ("tau_b(rel=2)", "tau_b has no parameter 'rel'"),
        ("@10", "cannot parse the metric"),
        ("ndcg@ten", "cannot parse the metric"),
        (7, "cannot parse the metric"),
    ],
)
def test_bad_metrics_are_refused(text, message):
    with pytest.raises(ParameterError, match=message.replace("|", r"\|")):
        parse(text)


def test_a_metric_is_frozen_and_a_plug_in_needs_one_class():
    with pytest.raises(AttributeError):
        (NDCG @ 3).cutoff = 5  # type: ignore[misc]
    with pytest.raises(ParameterError, match="needs a cutoff"):
        evaluate(rankings({"q": {"a": 1.0}}), Labels.from_dict({"q": {"a": 1}}), "p")

    class Halves(Metric):
        name = "halves"

        def values(self, _consensus, _judgements, which):
            return np.full(len(which), 0.5)

    try:
        assert evaluate(rankings({"q": {"a": 1.0}}), Labels.from_dict({"q": {"a": 1}}), "halves").mean() == {
            "halves": 0.5
        }
    finally:
        known.discard("halves")


# -- hand cases and traps ----------------------------------------------------------------------------------


def test_ideal_comes_from_all_judged_items():
    result = evaluate(
        rankings({"q": {"a": 1.0}}),
        Labels.from_dict({"q": {"a": 1, "b": 3}}),
        ["ndcg", "map", "recall", "rprec"],
    )
    assert result["ndcg"][0] == pytest.approx(1 / (3 + 1 / math.log2(3)))
    assert [result[m][0] for m in ("map", "recall", "rprec")] == [0.5, 0.5, 0.5]


def test_letor_weighs_the_first_two_places_alike():
    labels = Labels.from_dict({"q": {"a": 0, "b": 2, "c": 1}})
    first = evaluate(rankings({"q": {"b": 2.0, "a": 1.0}}), labels, "ndcg@2:letor").values
    second = evaluate(rankings({"q": {"a": 2.0, "b": 1.0}}), labels, "ndcg@2:letor").values
    assert first[0, 0] == second[0, 0] == pytest.approx(3 / (3 + 1))


def test_published_err_and_rbp_hand_values():
    labels = Labels.from_dict({"q": {"a": 3, "b": 2, "c": 4}})
    run = rankings({"q": {"a": 3.0, "b": 2.0, "c": 1.0}})
    r1, r2, r3 = 7 / 16, 3 / 16, 15 / 16
    assert evaluate(run, labels, "err")["err"][0] == pytest.approx(
        r1 + (1 - r1) * r2 / 2 + (1 - r1) * (1 - r2) * r3 / 3
    )
    assert evaluate(run, labels, "rbp(p=0.5)").values[0, 0] == pytest.approx(0.5 * (1 + 0.5 + 0.25))


@pytest.mark.filterwarnings("ignore::podium.core.errors.PodiumWarning")
def test_an_all_tied_run_does_not_depend_on_insertion_order():
    names = [f"d{i}" for i in range(8)]
    labels = Labels.from_dict({"q": {n: int(i == 3) for i, n in enumerate(names)}})
    rng = np.random.default_rng(0)
    for ties in ("item", "trec"):
        found = {
            evaluate(
                rankings({"q": dict.fromkeys(rng.permutation(names).tolist(), 1.0)}).with_ties(ties),
                labels,
                "mrr",
            ).values[0, 0]
            for _ in range(10)
        }
        assert found == {1 / 4 if ties == "item" else 1 / 5}


def test_a_constant_scorer_is_reported():
    labels = Labels.from_dict({q: {"a": 1, "b": 0} for q in "xyz"})
    with pytest.warns(match="same score"):
        evaluate(rankings({q: {"b": 1.0, "a": 1.0} for q in "xyz"}), labels, "mrr")


def test_unjudged_items_gain_nothing_and_are_counted():
    labels = Labels.from_dict({"q": {"a": 1, "z": 0}})
    found = evaluate(
        rankings({"q": {"u": 3.0, "a": 2.0, "z": 1.0}}), labels, ["mrr", "bpref", "judged@2", "judged@10"]
    )
    assert found["mrr"][0] == 0.5
    assert found["bpref"][0] == 1.0
    assert found["judged@2"][0] == 0.5
    assert found["judged@10"][0] == pytest.approx(2 / 3)
