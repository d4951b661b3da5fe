"""The answer: the best of all quick methods or a tuned model, the same wherever it stands."""

from __future__ import annotations

import math

import pytest

from podium import find_answer, make
from podium.analysis.leaderboard import leaderboard
from podium.data.demo import demo
from podium.data.preferences import Preferences
from podium.evaluate import compare
from podium.reporting.inputs import ReportRequest, choose_methods, collect_inputs
from podium.studio.answer_card import build_answer_card
from podium.studio.job_kinds import queue_job
from podium.studio.job_queue import Job
from podium.studio.job_worker import run_jobs
from serving import serving


@pytest.fixture(scope="module")
def inputs():
    data = demo(60)
    screen = choose_methods(data.preferences, data.labels)
    names = ("rrf", "borda", "mc4", "combsum", "log_isr", "quality_weighted")
    methods = {n: m for n, m in screen.methods.items() if n in names}
    return collect_inputs(ReportRequest(data.preferences, data.labels, methods=methods, learn=False))


def tuned(value, metric="ndcg@10"):
    rows = [
        {"name": "rrf", "mean": 0.6, "difference": value - 0.6, "low": 0.01, "high": 0.2, "p": 0.004},
        {
            "name": "best expert in training",
            "mean": 0.5,
            "difference": value - 0.5,
            "low": 0.1,
            "high": 0.3,
            "p": 0.001,
        },
    ]
    document = {
        "metric": metric,
        "tuned": value,
        "held_out": True,
        "config": "rrf(k=2)",
        "rows": rows,
        "queries": 60,
    }
    return Job(
        "j",
        "p",
        "tune",
        {},
        "done",
        1,
        1,
        "",
        {"model": "m1", "document": document},
        None,
        None,
        1,
        False,
        0.0,
        1.0,
    )


def test_the_card_is_the_answer_of_the_library(inputs):
    card = build_answer_card(inputs)
    data = demo(60)
    answer = find_answer(
        data.preferences, data.labels, methods=list(inputs.results), learned=False, budget=None, ties="trec"
    )
    assert card.winner == answer.method.name
    assert (card.value, card.certainty) == (answer.value, answer.certainty)
    gains = {gain.over: gain for gain in card.gains}
    assert {row.name: row.difference for row in answer.rows} == {
        name: g.difference for name, g in gains.items()
    }
    assert set(gains) == {"rrf", "the best expert"}
    assert gains["rrf"].low <= gains["rrf"].difference <= gains["rrf"].high
    assert card.p == answer.p or (answer.p is None and math.isnan(card.p))


def test_on_held_out_queries_the_winner_is_as_good_as_its_card_says(inputs):
    card = build_answer_card(inputs)
    data = demo(60)
    ranking = make(card.winner).aggregate(data.preferences).with_ties("trec", single=True)
    theirs = compare({card.winner: ranking}, data.labels, "ndcg@10")
    mean = theirs.row(card.winner, "ndcg@10").mean
    assert card.value == pytest.approx(mean, abs=0.03)


def test_a_tuned_model_wins_only_if_it_is_better_on_held_out_queries(inputs):
    assert build_answer_card(inputs, [tuned(0.99)]).spec == "model:m1"
    assert build_answer_card(inputs, [tuned(0.99)]).p == 0.004  # the larger of the two
    assert build_answer_card(inputs, [tuned(0.1)]).spec != "model:m1"
    assert build_answer_card(inputs, [tuned(0.99, "map")]).spec != "model:m1"  # another metric


def test_a_tuning_job_counts_only_for_the_data_it_was_run_on(tmp_path):
    lines = [f"q{q} Q0 d{d} {d} {9 - d} e{e}" for q in range(6) for e in range(3) for d in range(1, 6)]
    qrels = "".join(f"q{q} 0 d{d} 1\n" for q in range(5) for d in (2, 4))
    files = [("files", ("a.run", "\n".join(lines))), ("files", ("q.qrels", qrels))]
    with serving(tmp_path) as client:
        project = client.post("/v1/projects", files=files).json()["id"]
        store, address = client.app.state.store, f"/v1/projects/{project}"
        job = queue_job(store, project, "fit", {"method": "rrf"})
        run_jobs(store)
        data = client.get(f"{address}/jobs/{job}").json()["data"]
        claimed = store.add_job(project, "tune", {})
        store.claim("me", 60, (), 1)
        store.finish(claimed, "me", "done", "", tuned(0.99).result | {"data": data})

        def look():
            card = client.get(f"{address}/views/overview").json()["answer"]
            stale = {job["stale"] for job in client.get(f"{address}/views/jobs").json()["jobs"]}
            words = "data changed since" in client.get(f"/p/{project}/jobs").text
            detail = "does not count" in client.get(f"/p/{project}/job?job={claimed}").text
            return card["spec"] == "model:m1", stale, words, detail

        assert look() == (True, {False}, False, False)
        client.post(f"{address}/labels", files={"files": ("more.qrels", "q5 0 d1 1\n")})
        assert look() == (False, {True}, True, True)
        client.delete(f"{address}/labels")
        assert look() == (True, {False}, False, False)


def test_without_labels_nothing_is_claimed():
    lists = Preferences.from_lists({q: {e: ["a", "b", "c"] for e in ("x", "y")} for q in range(3)})
    card = build_answer_card(collect_inputs(ReportRequest(lists, learn=False)))
    assert card.certainty == "unknown"
    assert math.isnan(card.p)
    assert "no labels" in card.explanation


def test_votes_have_their_first_item_as_the_answer():
    winners = ["a"] * 30 + ["b"] * 8
    losers = ["b"] * 30 + ["a"] * 8
    votes = Preferences.from_comparisons([0] * 38, ["j"] * 38, winners, losers)
    inputs = collect_inputs(ReportRequest(votes, learn=False))
    card = build_answer_card(inputs)
    assert card.winner == "a"
    assert card.p == inputs.board.p_value("a", "b")
    assert "rating" in card.metric


def test_the_answer_of_votes_has_intervals():
    winners, losers = zip(
        *([("a", "b")] * 30 + [("b", "a")] * 12 + [("b", "c")] * 25 + [("c", "a")] * 9), strict=True
    )
    votes = Preferences.from_comparisons([0] * 76, ["j"] * 76, winners, losers)
    card = build_answer_card(collect_inputs(ReportRequest(votes, learn=False)))
    board = leaderboard(votes)
    first, second = board.rows[:2]
    assert (card.low, card.high) == (first.low, first.high)
    assert card.interval_text == f"{first.low:.0f} to {first.high:.0f}"
    # with the second item as the reference, the interval of the first is that of their difference
    anchored = leaderboard(votes, reference=second.item).rows[0]
    zero = board.settings.origin_score
    [gain] = card.gains
    assert (gain.difference, gain.low, gain.high) == pytest.approx(
        (anchored.score - zero, anchored.low - zero, anchored.high - zero)
    )
    assert gain.describe(card.digits) == f"{gain.difference:+.0f} ({gain.low:+.0f} to {gain.high:+.0f})"


def test_without_labels_the_card_has_both_sentences_of_auto():
    preferences = demo(20).preferences
    card = build_answer_card(collect_inputs(ReportRequest(preferences, learn=False)))
    answer = find_answer(preferences)
    assert card.winner == answer.method.name
    for sentence in answer.sentences:
        assert sentence in card.explanation
