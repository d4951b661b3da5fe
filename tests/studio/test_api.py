"""The service answers what the library answers."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import podium
from podium import Labels, Preferences, make
from podium.analysis.annotators import annotators
from podium.analysis.leaderboard import leaderboard
from podium.core import registry
from podium.evaluate import evaluate, expert_rankings
from serving import serving


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("studio")) as found:
        yield found


def ask(client, what, **body):
    found = client.post(f"/v1/{what}", json=body)
    assert found.status_code == 200, found.text
    return found.json()


IDS = st.text(max_size=6).filter(lambda t: t.isprintable()) | st.integers(-(2**63), 2**63 - 1)
ANSWERS = st.lists(st.lists(IDS, max_size=12, unique=True), min_size=1, max_size=5)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(ANSWERS, st.sampled_from(["rrf", "rrf(k=3)", "rbc", "borda", "combsum", "mc4"]), st.data())
def test_fuse_is_the_librarys(client, lists, method, data):
    weights = data.draw(st.none() | st.just([1.5] * len(lists)))
    ours = ask(client, "fuse", lists=lists, method=method, weights=weights)
    theirs = podium.fuse(lists, method, weights=weights)
    assert ours["items"] == theirs.ranking
    assert [type(i) for i in ours["items"]] == [type(i) for i in theirs.ranking]
    assert ours["scores"] == theirs.scores
    assert ours["tied"] == theirs.tied
    assert ours["method"]["spec"] == theirs.method
    assert ours["fingerprint"] == Preferences.from_lists({0: dict(enumerate(lists))}).fingerprint


def test_fuse_by_name_by_score_and_cut(client):
    named = {"bm25": ["a", "b"], "dense": ["b", "a"]}
    found = ask(client, "fuse", lists=named, weights={"bm25": 1, "dense": 2})
    assert found["items"] == ["b", "a"]
    assert make(found["method"]["spec"]).weights == {"bm25": 1, "dense": 2}
    scored = [{"a": 1.0, "b": 3}, {"b": 2, "c": 1}]
    theirs = podium.fuse(scored, "combmnz", normalizer="sum")
    ours = ask(client, "fuse", ratings=scored, method="combmnz", parameters={"normalizer": "sum"}, top=2)
    assert ours["items"] == theirs.ranking[:2]
    assert ours["scores"] == theirs.scores[:2]
    assert ask(client, "fuse", lists=[["a", "b", "a"]], duplicates="first")["items"] == ["a", "b"]


QUERIES = {
    "q1": {"x": ["a", "b", "c"], "y": ["b", "a"], "z": ["c", "b", "d"]},
    "q2": {"x": ["k"], "y": ["m", "k"], "z": ["l"]},
}
RATINGS = {"q1": {"x": {"a": 3, "b": 1}, "y": {"b": 2.5, "a": 2}, "z": {"a": 1, "b": 1, "c": 0}}}
VOTES = [
    ("j", "a", "b"),
    ("j", "b", "c"),
    ("k", "a", "c"),
    ("k", "c", "b"),
    ("k", "b", "a"),
    ("l", "a", "b"),
] * 3
WHO, WON, LOST = zip(*VOTES, strict=True)
SENT = [{"expert": e, "winner": w, "loser": lo} for e, w, lo in VOTES]


def same(ours, consensus, method):
    assert [r["query"] for r in ours["results"]] == consensus.queries.tolist()
    for r in ours["results"]:
        places = consensus[r["query"]]
        assert r["items"] == [p.item for p in places]
        assert r["scores"] == [p.score for p in places]
        assert r["tied"] == [p.tied for p in places]
    assert ours["fingerprint"] == consensus.fingerprint
    assert ours["method"] == {
        "name": method.name,
        "spec": repr(method),
        "parameters": method.get_parameters(),
    }


def untaught(form):
    return [
        n
        for n, c in registry.aggregators.all().items()
        if not c.tags.supervised and not c.tags.uses_features and form in {f.value for f in c.tags.accepts}
    ]


@pytest.mark.parametrize("name", untaught("ranking"))
def test_aggregate_rankings(client, name):
    method = make(name)
    ours = ask(client, "aggregate", rankings=QUERIES, method=name)
    same(ours, method.aggregate(Preferences.from_lists(QUERIES)), method)


@pytest.mark.parametrize("name", untaught("comparison"))
def test_aggregate_votes(client, name):
    votes = Preferences.from_comparisons([0] * len(VOTES), WHO, WON, LOST)
    same(ask(client, "aggregate", votes=SENT, method=name), make(name).aggregate(votes), make(name))


def test_aggregate_ratings_weights_ties_unlisted(client):
    ratings = Preferences.from_lists(RATINGS, unlisted="below")
    method = make("copeland", weights={"x": 1.0, "y": 2.0, "z": 0.5})
    ours = ask(
        client, "aggregate", ratings=RATINGS, unlisted="below", method="copeland", weights={"x": 1, "y": 2, "z": 0.5},
        ties="trec",
    )  # fmt: skip
    same(ours, method.aggregate(ratings, ties="trec"), method)
    assert ours["weights"] == [
        {"expert": "x", "weight": 1}, {"expert": "y", "weight": 2}, {"expert": "z", "weight": 0.5}
    ]  # fmt: skip


def test_rows_keep_types_ranks_scores_and_empty_lists(client):
    rows = [
        {"query": 1, "expert": 7, "items": ["a", 1, "1"], "ranks": [1, 5, 9]},
        {"query": 1, "expert": "7", "items": [1], "ranks": [2]},
        {"query": "1", "expert": 7, "items": []},
    ]
    ours = ask(
        client,
        "aggregate",
        lists=rows,
        candidates=[{"query": 1, "items": ["zz"]}, {"query": "1", "items": [3]}],
    )
    theirs = make("rrf").aggregate(
        Preferences.from_rows(
            [1, 1, 1, 1],
            [7, 7, 7, "7"],
            ["a", 1, "1", 1],
            rank=[1, 5, 9, 2],
            candidates=([1, "1"], ["zz", 3]),
        )
    )
    for r in ours["results"]:
        assert r["items"] == theirs.ranking(r["query"])
    assert [r["query"] for r in ours["results"]] == [1, "1"]
    scored = [
        {"expert": "e", "items": ["a", "b"], "scores": [1, 2]},
        {"expert": "f", "items": ["b"], "scores": [0]},
    ]
    assert ask(client, "aggregate", lists=scored, method="combsum")["results"][0]["items"] == ["b", "a"]


def test_features(client):
    from podium import Features

    rows = [("q1", i, [float(n), 1.0 - n]) for n, i in enumerate("abcd")]
    sent = [{"query": q, "item": i, "values": v} for q, i, v in rows]
    body = {"q1": QUERIES["q1"]}
    ours = ask(client, "aggregate", rankings=body, method="retargeting", features=sent)
    theirs = make("retargeting").aggregate(
        Preferences.from_lists(body), Features.from_rows(*zip(*rows, strict=True))
    )
    assert ours["results"][0]["items"] == theirs.ranking("q1")


GRADES = [("q1", "a", 0), ("q1", "b", 2), ("q2", "k", 1), ("q3", "n", 1)]


@pytest.mark.parametrize("ties", ["item", "trec", "input"])
@pytest.mark.parametrize("queries", ["judged", "all"])
def test_evaluate(client, ties, queries):
    labels = Labels.from_rows(*zip(*GRADES, strict=True))
    sent = [{"query": q, "item": i, "grade": g} for q, i, g in GRADES]
    ours = ask(
        client, "evaluate", rankings=QUERIES, labels=sent, methods=["borda", "rrf(k=1)"], metrics=["ndcg@3", "mrr"],
        queries=queries, ties=ties, per_query=True,
    )  # fmt: skip
    preferences = Preferences.from_lists(QUERIES)
    expected = [expert_rankings(preferences, e) for e in preferences.experts]
    expected += [make(m).aggregate(preferences) for m in ("borda", "rrf(k=1)")]
    assert [r["name"] for r in ours["results"]] == ["x", "y", "z", "borda", "rrf(k=1)"]
    for r, consensus in zip(ours["results"], expected, strict=True):
        result = consensus.with_ties(ties, single=ties == "trec")
        found = evaluate(result, labels, ["ndcg@3", "mrr"], queries=queries)
        assert r["mean"] == found.mean()
        assert (r["queries"], r["missing"], r["unlabelled"]) == (len(found), found.missing, found.unlabelled)
        assert [p["values"]["mrr"] for p in r["per_query"]] == found["mrr"].tolist()


def test_explain(client):
    preferences = Preferences.from_lists(QUERIES)
    ours = ask(client, "explain", rankings=QUERIES, query="q1", item="c", over="b", method="rrf(k=5)")
    theirs = podium.explain(make("rrf(k=5)"), preferences, "q1", "c", over="b").to_dict()
    assert ours["changes"]
    for name in ("items", "exact", "above", "below", "experts", "changes", "complete", "text"):
        assert ours[name] == json.loads(json.dumps(theirs[name])), name


def test_leaderboard(client):
    votes = Preferences.from_comparisons([0] * len(VOTES), WHO, WON, LOST)
    ours = ask(client, "leaderboard", votes=SENT, scale="natural", level=0.9, next=2)
    theirs = leaderboard(votes, scale="natural", level=0.9)
    assert [(r["item"], r["rank"], r["score"], r["low"]) for r in ours["rows"]] == [
        (r.item, r.rank, r.score, r.low) for r in theirs.rows
    ]
    assert [p["first"] for p in ours["next"]] == [p.first for p in theirs.next(2)]
    assert (ours["stop"], ours["reason"]) == theirs.stopping()
    assert ours["scheme"] == theirs.to_dict()["scheme"]


def test_annotators(client):
    votes = Preferences.from_comparisons([0] * len(VOTES), WHO, WON, LOST)
    grades = [("a", 2), ("b", 1), ("c", 0)]
    sent = [{"item": i, "grade": g} for i, g in grades]
    ours = ask(client, "annotators", votes=SENT, method="copeland", labels=sent, level=0.9)
    labels = Labels.from_rows([0, 0, 0], *zip(*grades, strict=True))
    theirs = annotators(votes, make("copeland").aggregate(votes), labels=labels, level=0.9)
    assert [(r["annotator"], r["quality"], r["accuracy"]) for r in ours["rows"]] == [
        (r.annotator, r.quality, r.accuracy) for r in theirs.rows
    ]


def test_methods_are_those_of_the_registry(client):
    found = {m["name"]: m for m in client.get("/v1/methods").json()["methods"]}
    assert list(found) == list(registry.aggregators.all())
    assert found["rrf"]["parameters"][0]["name"] == "k"


def test_saved_models(client, tmp_path_factory):
    from podium.models import model_files

    store = client.app.state.store
    project = store.add_upload("p", [("a.csv", b"query,expert,item,rank\nq,e,a,1\n")])
    model = store.add_model(project, "m", "rrf(k=7)", model_files.dumps(make("rrf(k=7)")))
    for named in ({"model": model}, {"project": project}, {"project": project, "model": model}):
        assert ask(client, "aggregate", rankings=QUERIES, **named)["method"]["spec"] == "rrf(k=7)"
    for wrong in ({"model": "../../etc/passwd"}, {"project": "nobody"}, {"project": "x", "model": model}):
        assert client.post("/v1/aggregate", json={"rankings": QUERIES, **wrong}).status_code == 404
    both = client.post("/v1/aggregate", json={"rankings": QUERIES, "model": model, "method": "borda"})
    assert both.status_code == 422


def test_warnings_reach_the_one_who_caused_them(tmp_path):
    rows = [{"expert": "e", "items": ["a", "b"], "ranks": [1, 2], "scores": [1, 2]}]
    with serving(tmp_path) as client:
        assert "scores rise down the lists" in ask(client, "aggregate", lists=rows)["warnings"][0]
        assert ask(client, "aggregate", rankings=QUERIES)["warnings"] == []


@pytest.mark.parametrize(
    ("what", "body", "words"),
    [
        ("fuse", {"lists": [["a", "a"]]}, "appears twice"),
        ("fuse", {"lists": [["a"]], "method": "rff"}, "did you mean"),
        ("fuse", {"lists": [["a"]], "parameters": {"k": -1}}, "accepted: number in"),
        ("fuse", {"lists": [["a"]], "parameters": {"weights": "x"}}, "in the field `weights`"),
        ("aggregate", {}, "exactly one of"),
        ("aggregate", {"rankings": {}, "ratings": {}}, "exactly one of"),
        ("aggregate", {"rankings": QUERIES, "method": "svd"}, "fit"),
        ("aggregate", {"votes": SENT}, "cannot read preferences of the form comparison"),
        ("aggregate", {"votes": SENT, "method": "copeland", "unlisted": "below"}, "leave it out"),
        ("aggregate", {"rankings": QUERIES, "candidates": []}, "cannot be combined with"),
        ("aggregate", {"lists": [{"expert": "e", "items": ["a"], "ranks": [0]}]}, "ranks start at 1"),
        ("aggregate", {"lists": [{"expert": "e", "items": ["a"], "ranks": [1, 2]}]}, "2 ranks for 1 items"),
        ("aggregate", {"lists": [{"expert": "e", "items": []}] * 2}, "two lists"),
        ("explain", {"rankings": QUERIES}, "choose one with"),
        ("explain", {"rankings": QUERIES, "query": "q9"}, "there is no query"),
        ("evaluate", {"rankings": QUERIES, "labels": [], "metrics": ["ncdg"]}, "ndcg"),
        ("leaderboard", {"votes": []}, "votes"),
        ("leaderboard", {"votes": SENT, "level": 2}, "level"),
    ],
)
def test_errors_say_what_to_do(client, what, body, words):
    found = client.post(f"/v1/{what}", json=body)
    assert found.status_code == 422
    error = found.json()
    assert set(error) == {"type", "title", "status", "detail", "remedy"}
    assert words in error["detail"] + error["remedy"]


def test_health_metrics_and_documentation(client):
    assert client.get("/healthz").json()["status"] == "ok"
    assert client.get("/readyz").json()["status"] == "ready"
    ask(client, "fuse", lists=[["secret-document"]])
    text = client.get("/metrics").text
    assert 'podium_requests_total{method="POST",route="/v1/fuse",status="200"}' in text
    assert "secret-document" not in text
    assert 'route="other"' in text or client.get("/nowhere/secret").status_code == 404
    page = client.get("/docs").text
    assert "/v1/fuse" in page
    for path in client.get("/openapi.json").json()["paths"]:
        assert path in page
    assert "http://" not in page
    assert "https://" not in page
    assert "<script" not in page
