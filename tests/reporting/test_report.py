"""The report on every kind of input, bad input too; one file, no network, everything escaped, always the same bytes."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser

import numpy as np
import pytest

from podium import Labels, Preferences, make
from podium.analysis.figures import rank_heatmap, weight_matrix
from podium.core.errors import ParameterError
from podium.data.demo import demo
from podium.data.vote_table import VoteTable
from podium.reporting import VoteSources, report
from podium.reporting.inputs import ReportRequest, collect_inputs
from podium.reporting.verdict import describe_verdict
from podium.reporting.vote_parts import find_slice_columns

pytest.importorskip("vl_convert")
NASTY = "<script>alert('x')</script>"
VOID = {"meta", "br", "img", "link", "input", "hr", "col"}
SVG_VOID = {"path", "rect", "line", "circle", "stop"}


class Page(HTMLParser):
    """Tags, addresses and visible text; complains about tags that are not closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.addresses: list[str] = []
        self.ids: list[str] = []
        self.words: list[str] = []
        self.open: list[str] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.ids += [v for k, v in attrs if k == "id"]
        self.addresses += [v or "" for k, v in attrs if k in ("src", "href", "xlink:href", "action", "data")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)


def checked(found):
    """The page, after what must hold for every page."""
    text = found.to_html()
    page = Page(text)
    assert not [a for a in page.addresses if not a.startswith("#")]
    assert not re.search(r"https?://|url\((?!['\"]?#)|@import", text)
    assert len(page.ids) == len(set(page.ids))
    assert "script" not in page.tags
    assert {a.removeprefix("#") for a in page.addresses} <= set(page.ids)
    assert not re.search(r"\bnan\b|\bNone\b|\binf\b", " ".join(page.words))
    json.dumps(found.to_dict())
    words = " ".join(page.words)
    assert words.index(found.verdict[0][:20]) < words.index("Can you trust it?")
    return page


def names(found):
    return [s.name for s in found.sections]


def verdicts(found):
    return {f.name: f.verdict for f in found.findings}


@pytest.fixture(scope="module")
def whole():
    data = demo(24)
    return report(data.preferences, data.labels, methods=["rrf", "borda"], title="A & B")


def test_everything_in_its_order(whole):
    page = checked(whole)
    assert names(whole) == ["methods", "weights", "queries", "differences", "experts"]
    assert [f.name.split("-")[0] for f in whole.figures][:2] == ["curves", "weights"]
    assert page.tags.count("svg") == len(whole.figures)
    assert "A & B" in " ".join(page.words)
    assert whole.made["fingerprint"] == demo(24).preferences.fingerprint


def test_verdict_names_the_best_method(whole):
    data = demo(24)
    from podium.evaluate import evaluate

    means = {
        m: evaluate(
            make(m).aggregate(data.preferences).with_ties("trec", single=True), data.labels, "ndcg@10"
        ).mean()
        for m in ("rrf", "borda")
    }
    best = max(means, key=lambda m: means[m]["ndcg@10"])
    assert whole.verdict[0].startswith(f"Use {best}: its ndcg@10 of {means[best]['ndcg@10']:.4f}")


def test_no_labels():
    found = report(demo(12).preferences, methods=["rrf", "borda", "mc4"])
    checked(found)
    assert "no labels" in found.verdict[0]
    assert names(found) == ["methods", "queries", "experts"]
    assert verdicts(found)["labels"] == "unknown"


def test_labels_for_other_queries():
    labels = Labels.from_dict({"elsewhere": {"a": 1, "b": 0}})
    found = report(demo(6).preferences, labels, methods=["rrf", "borda"])
    checked(found)
    assert verdicts(found)["labels"] == "wrong"
    assert any("labels" in line for line in found.verdict)
    assert "q001" in next(f.text for f in found.findings if f.name == "labels")


def test_no_judged_item_in_the_top():
    p = Preferences.from_lists({q: {e: [f"{q}{i}" for i in range(12)] for e in "xyz"} for q in "abc"})
    labels = Labels.from_dict({q: {f"{q}11": 1.0} for q in "abc"})
    found = report(p, labels, methods=["rrf", "borda"], metrics=["ndcg@5"])
    checked(found)
    assert verdicts(found)["judged items"] == "wrong"
    assert "do not cover these results" in found.verdict[0]


def test_results_with_fewer_judged_items_are_named():
    lists = {q: {"e": ["a", "b"], "f": ["b", "a"], "g": ["x", "y"], "h": ["y", "x"]} for q in range(12)}
    labels = Labels.from_dict({q: {"a": 1, "b": 0, "x": 1} for q in range(12)})
    page = report(
        Preferences.from_lists(lists), labels, methods=["rrf", "rrf(weights={'e':9,'f':9,'g':1,'h':1})"]
    )
    assert [f.name for f in page.findings if "may be underrated" in f.text] == ["fair judging"]


def test_one_query():
    data = demo(1)
    found = report(data.preferences, data.labels, methods=["rrf", "borda"])
    checked(found)
    assert verdicts(found)["enough queries"] == "wrong"
    assert "one query" in found.verdict[0]
    assert "differences" not in names(found)


def test_all_methods_equal():
    p = Preferences.from_lists({q: {e: ["a", "b", "c"] for e in "xyz"} for q in range(12)})
    labels = Labels.from_dict({q: {"a": 1, "b": 0, "c": 0} for q in range(12)})
    found = report(p, labels, methods=["rrf", "borda", "copeland"])
    checked(found)
    assert found.verdict[0].startswith("All 3 methods score equally on every query")
    assert verdicts(found)["copies"] == "check"


def test_votes_only_give_a_leaderboard():
    rng = np.random.default_rng(0)
    strength = dict(zip("abcde", (2, 1, 0, -1, -2), strict=True))
    rows = []
    for _ in range(600):
        x, y = rng.choice(list("abcde"), 2, replace=False)
        first = rng.random() < 1 / (1 + np.exp(strength[y] - strength[x]))
        rows.append((str(x), str(y)) if first else (str(y), str(x)))
    won, lost = zip(*rows, strict=True)
    found = report(Preferences.from_comparisons(["v"] * 600, ["j"] * 600, won, lost))
    checked(found)
    assert "leaderboard" in names(found)
    assert "a leads" in found.verdict[0]
    assert "queries" not in names(found)


def test_votes_with_voters_slices_and_a_panel():
    """One report on votes: the board, tampering, slices and the panel of judges."""
    rng = np.random.default_rng(2)
    a, b, won, judge, query, topic = [], [], [], [], [], []
    for q in range(150):
        x, y = rng.permutation(5)[:2].tolist()
        for j in range(4):
            a.append(f"m{x}")
            b.append(f"m{y}")
            won.append(float(rng.random() < 1 / (1 + np.exp(x - y))))
            judge.append(f"judge-{j}")
            query.append(q)
            topic.append(("code", "chat")[q % 2])
    votes = VoteTable.from_columns(a, b, won, expert=judge, query=query, attributes={"category": topic})
    sources = VoteSources(votes, find_slice_columns(votes))
    found = report(votes.to_preferences(), vote_sources=sources)
    page = checked(found)
    assert names(found)[:4] == ["leaderboard", "tampering", "slices", "judges"]
    words = " ".join(page.words)
    assert "hold for one look at the votes" in words
    assert "The lead of m0 is lost to m1 with" in words
    assert "Robust board" in words
    assert "Ranks by category" in words
    assert verdicts(found)["panel of judges"] == "unknown"
    assert verdicts(found)["voters: one item"] in ("ok", "unknown")
    gold = Preferences.from_comparisons(query[:400:4], ["h"] * 100, a[:400:4], b[:400:4])
    with_gold = report(votes.to_preferences(), vote_sources=VoteSources(gold=gold))
    checked(with_gold)
    assert "judges" in [f.name for f in with_gold.figures]
    assert verdicts(with_gold)["panel of judges"] in ("ok", "check")


def test_named_voters_stand_in_the_verdict():
    rng = np.random.default_rng(3)
    x = rng.integers(0, 10, 1200)
    y = (x + rng.integers(1, 10, 1200)) % 10
    first = rng.random(1200) < 1 / (1 + np.exp((x - y) / 4))
    names_ = [f"v{k // 12}" for k in range(1200)]
    won, lost = np.where(first, x, y).tolist(), np.where(first, y, x).tolist()
    won, lost = won + [4] * 40, lost + [int(i) for i in rng.choice([0, 1, 2, 3, 5, 6], 40)]
    found = report(Preferences.from_comparisons(["q"] * 1240, [*names_, *([NASTY] * 40)], won, lost))
    checked(found)
    assert any("Improbable votes of 1 of 101 voters" in line for line in found.verdict)
    assert verdicts(found)["voters: one item"] == "check"
    assert NASTY not in found.to_html()


def crowd(random_too: bool = True):
    rng = np.random.default_rng(1)
    rows = []
    for q in range(100):
        for w in range(12):
            for i in range(8):
                truth = i < 3
                says = (
                    rng.random() < 0.5
                    if random_too and w < 3
                    else (truth if rng.random() < 0.9 else not truth)
                )
                rows.append((f"q{q}", f"w{w}", f"d{q}-{i}", float(says)))
    query, who, item, score = zip(*rows, strict=True)
    return Preferences.from_rows(query, who, item, score=score)


def test_ratings_of_a_crowd_give_annotators():
    found = report(crowd())
    checked(found)
    assert "annotators" in names(found)
    assert verdicts(found)["annotators"] == "check"
    assert "3 random" in found.verdict[0]


def test_one_expert_and_one_item():
    for lists in ({"q": {"e": ["a"]}}, {"q": {"e": ["a", "b"]}, "r": {"e": ["c"]}}):
        found = report(Preferences.from_lists(lists), methods=["rrf", "borda"])
        checked(found)
        assert verdicts(found)["experts"] == "unknown"


def test_nothing_at_all():
    with pytest.raises(ParameterError, match="the preferences are empty"):
        report(Preferences.from_lists({"q": {"e": []}}), methods=["rrf"])


def test_unknown_query_and_metric():
    p = demo(3).preferences
    with pytest.raises(ParameterError, match="no query 'q9'"):
        report(p, queries=["q9"])
    with pytest.raises(ParameterError):
        report(p, metrics=["nonsense"])


def test_names_are_escaped_everywhere():
    lists = {
        f"{NASTY}{q}": {
            f"{e}{NASTY}": [f"{NASTY}{i}" for i in order]
            for e, order in zip("xyz", ("abc", "bca", "cab"), strict=True)
        }
        for q in range(3)
    }
    labels = Labels.from_dict({q: {f"{NASTY}a": 1.0, f"{NASTY}b": 0.0} for q in lists})
    found = report(
        Preferences.from_lists(lists), labels, methods=["rrf", "borda"], title=NASTY, made={NASTY: NASTY}
    )
    page = checked(found)
    assert "".join(page.words).count("alert('x')") > 10
    text = found.to_html(interactive=True)
    assert text.count("<script") == len(found.figures) + 1  # our own
    assert "alert('x')</script>" not in text


def test_interactive_pages_hold_the_code_once(whole):
    text = whole.to_html(interactive=True)
    assert text.count('<script type="module">') == 1
    assert text.count('<script type="application/json">') == len(whole.figures)
    assert not re.search(r'(?:src|href)\s*=\s*["\']https?:', text)
    assert len(text) < 3_000_000


def test_figures_as_files(tmp_path):
    lists = {q: {"x": ["a", "b"], "y": ["b", "a"]} for q in "qr"}
    small = report(Preferences.from_lists(lists), methods=["rrf"], queries=["r"])
    paths = small.save_figures(tmp_path / "new" / "folder")
    assert [p.name for p in paths] == ["query-1-r.svg", "query-1-r.png"]
    assert all(p.stat().st_size > 500 for p in paths)
    with pytest.raises(ParameterError, match="exists"):
        small.save_figures(tmp_path / "new" / "folder")
    small.save_figures(tmp_path / "new" / "folder", overwrite=True)


def test_of_many_methods_the_best_are_drawn():
    from podium.reporting.inputs import DRAWN

    data = demo(12)
    methods = {"best": make("rrf"), **{f"worse {k}": make("combmax") for k in range(DRAWN + 2)}}
    found = collect_inputs(ReportRequest(data.preferences, data.labels, methods=methods, learn=False))
    drawn = [line.name for line in found.lines]
    assert found.best_method == "best"
    assert len(drawn) == DRAWN
    assert {"best", found.run} <= set(drawn)


def test_same_input_same_bytes():
    code = (
        "from podium.data.demo import demo; from podium.reporting import report; import sys;"
        "d = demo(5); r = report(d.preferences, d.labels, methods=['rrf', 'mc4'], queries=['q001']);"
        "sys.stdout.write(r.to_html())"
    )
    seed = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"  # not that of this process
    there = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        check=True,
        env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONIOENCODING": "utf-8"},
    ).stdout
    data = demo(5)
    here = report(data.preferences, data.labels, methods=["rrf", "mc4"], queries=["q001"]).to_html()
    assert there.decode() == here
    assert len(here) > 10_000


def test_models_and_features_take_part():
    data = demo(30)
    model = make("crf(passes=20)").fit(data.preferences, data.labels)
    found = report(data.preferences, data.labels, methods={"rrf": "rrf", "mine": model})
    checked(found)
    weights = next(s for s in found.sections if s.name == "weights")
    assert "mine" in weights.blocks[0].caption
    assert verdicts(found)["held-out queries"] == "check"


def test_a_model_has_no_figures_on_queries_it_was_fitted_on():
    """All figures are held out: on other queries where there are some, and none at all where there are not."""
    data = demo(40)
    names = data.preferences.queries.tolist()
    some = make("crf(passes=20)").fit(data.preferences.select(names[:20]), data.labels)
    every = make("crf(passes=20)").fit(data.preferences, data.labels)
    found = collect_inputs(
        ReportRequest(data.preferences, data.labels, methods={"rrf": make("rrf"), "some": some}, learn=False)
    )
    assert set(found.comparison.evaluations["some"].queries) == set(names[20:])
    assert found.comparison.queries == 20
    alone = collect_inputs(
        ReportRequest(data.preferences, data.labels, methods={"every": every}, learn=False)
    )
    assert (alone.comparison, alone.measured_methods) == (None, [])
    whole = report(data.preferences, data.labels, methods={"rrf": "rrf", "every": every})
    told = [f for f in whole.findings if f.name == "held-out queries"]
    assert "every is not evaluated: it was fitted on all 40 labeled queries" in told[0].text
    assert "Use every" not in whole.verdict[0]
    checked(report(data.preferences, data.labels, methods={"every": every}))


def test_the_verdict_screens_every_quick_method():
    """The best by our own evaluation of all that need not learn, and not the best of a few."""
    from podium.core import registry
    from podium.evaluate import evaluate
    from podium.reporting.inputs import choose_methods

    data = demo(60)
    found = collect_inputs(ReportRequest(data.preferences, data.labels, learn=False))
    tried = choose_methods(data.preferences, data.labels)
    mean = {}
    for name in tried.methods:
        result = make(name).aggregate(data.preferences).with_ties("trec", single=True)
        mean[name] = evaluate(result, data.labels, "ndcg@10").mean()["ndcg@10"]
    top = max(mean, key=mean.get)
    assert mean[top] > mean["mc4"] + 0.02
    assert found.comparison.row(found.best_method, "ndcg@10").mean == pytest.approx(mean[top], abs=1e-6)
    plain = {n for n, c in registry.aggregators.all().items() if not c.tags.supervised and not c.tags.dialect}
    can = {n for n in plain if data.preferences.forms <= registry.aggregators.get(n).tags.accepts}
    assert set(tried.methods) | set(tried.slow) == can
    assert {"rbc", "retargeting", "isr", "mc1"} <= set(tried.methods)


def test_the_headline_has_one_p_value_that_is_corrected_for_the_choice():
    """Twenty-four queries and all quick methods: winner and gain are those of `find_answer`."""
    from podium import find_answer

    data = demo(24)
    found = collect_inputs(ReportRequest(data.preferences, data.labels, learn=False))
    assert found.answer is not None
    assert found.answer.method.name == found.best_method
    again = find_answer(
        data.preferences, data.labels, methods=list(found.results), learned=False, ties="trec", budget=None
    )
    assert found.answer.to_dict() == again.to_dict()
    lines = " ".join(describe_verdict(found, ()))
    assert lines.count("p = ") + lines.count("p <") == (found.answer.p is not None)
    assert "over the best expert and " in lines


def test_without_labels_a_few_methods_will_do():
    data = demo(5)
    assert list(collect_inputs(ReportRequest(data.preferences, learn=False)).results) == [
        "quality_weighted",  # what auto chooses
        "rrf",
        "borda",
        "combmnz",
        "condorcet",
        "mc4",
    ]


def test_the_verdict_on_noise_claims_no_winner():
    """Grades that have nothing to do with the lists: of all quick methods, none may be called better than another."""
    claims = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        items = [f"d{n}" for n in range(10)]
        lists = {f"q{q}": {e: list(rng.permutation(items)) for e in "abcd"} for q in range(30)}
        labels = Labels.from_dict({q: {i: float(rng.random() < 0.3) for i in items} for q in lists})
        found = collect_inputs(ReportRequest(Preferences.from_lists(lists), labels, learn=False))
        claims += any(lead.p < 0.05 for lead in found.leads)
    assert len(found.results) > 25
    assert claims <= 4  # of 20; 5 % of them are expected at most


def test_tuning_documents_are_shown():
    tuning = {
        "best": {"k": 20},
        "metric": "ndcg@10",
        "trials": [{"k": 20, "mean": 0.5}, {"k": 60, "mean": 0.4}],
    }
    found = report(demo(3).preferences, methods=["rrf"], tuning=tuning)
    checked(found)
    section = next(s for s in found.sections if s.name == "tuning")
    assert section.blocks[1].grid.rows == (("20", "0.5"), ("60", "0.4"))


# -- the pictures by themselves --------------------------------------------------------------------------------------


def cells(chart, part):
    return chart.to_dict()["hconcat"][part]["data"]["values"]


def test_heatmap_holds_what_the_lists_say():
    lists = {"q": {"x": ["a", "b"], "y": ["c", "a", "b"]}}
    p = Preferences.from_lists(lists)
    consensus = make("rrf").aggregate(p)
    chart = rank_heatmap(p, "q", {"rrf": consensus}, Labels.from_dict({"q": {"a": 2}}))
    ranks = {(c["expert"], c["item"]): c["value"] for c in cells(chart, 0)}
    want = {
        (e, i): items.index(i) + 1 if i in items else None for e, items in lists["q"].items() for i in "abc"
    }
    assert ranks == want
    assert [c["item"] for c in cells(chart, 1)] == consensus.ranking("q")
    assert {c["item"]: c["text"] for c in cells(chart, 2)} == {"a": "2", "b": "?", "c": "?"}


def test_heatmap_shows_good_items_that_are_far_down():
    p = Preferences.from_lists({"q": {"x": [f"d{i:02d}" for i in range(50)]}})
    labels = Labels.from_dict({"q": {"d45": 1, "d00": 1, "d46": 0}})
    chart = rank_heatmap(p, "q", make("rrf").aggregate(p), labels, items=10)
    assert [c["item"] for c in cells(chart, 1)] == [f"d{i:02d}" for i in range(10)] + ["d45"]


def test_heatmap_tells_ids_apart_that_look_alike():
    p = Preferences.from_lists({"q": {1: [1, "1"], "1": ["1", 1]}})
    chart = rank_heatmap(p, "q", make("rrf").aggregate(p))
    assert len({(c["expert"], c["item"]) for c in cells(chart, 0)}) == 4


def test_heatmap_needs_lists():
    p = Preferences.from_comparisons(["q"], ["j"], ["a"], ["b"])
    with pytest.raises(ParameterError, match="no ranks to draw"):
        rank_heatmap(p, "q", make("copeland").aggregate(p))


def test_weight_matrix_of_several_models():
    data = demo(10)
    models = {
        n: make(n).fit(data.preferences, data.labels)
        for n in ("crf(passes=5)", "svd(passes=5)", "weighted_rrf(passes=2)")
    }
    blocks = weight_matrix(models).to_dict()["vconcat"]
    rows = [b["data"]["values"] for b in blocks]
    assert [len({c["kind"] for c in r}) for r in rows] == [3, 3, 1]
    assert all(max(abs(c["share"]) for c in r) == pytest.approx(1) for r in rows)
    learned = models["weighted_rrf(passes=2)"].weights_
    assert {c["expert"]: c["weight"] for c in rows[2]} == learned


@pytest.mark.data
def test_on_letor(data_dir):
    """The report and both figures of the papers on MQ2008-agg."""
    import podium

    content = podium.read([data_dir / "mq2008-agg" / f"A{i}.txt.gz" for i in (1, 2)])
    found = report(content.preferences, content.labels, methods=["rrf", "borda"])
    page = checked(found)
    assert {"curves", "weights", "differences", "agreement"} <= {f.name for f in found.figures}
    assert sum(f.name.startswith("query-") for f in found.figures) == 3
    assert len("".join(page.words)) > 1000
    assert len(found.to_html()) < 3_000_000


def test_heatmap_of_ratings_shows_ratings():
    p = Preferences.from_lists({"q": {"x": {"a": 3, "b": 0}, "y": {"a": 1}}})
    chart = rank_heatmap(p, "q", make("combsum").aggregate(p))
    assert {(c["expert"], c["item"]): c["value"] for c in cells(chart, 0)} == {
        ("x", "a"): 3.0, ("x", "b"): 0.0, ("y", "a"): 1.0, ("y", "b"): None,
    }  # fmt: skip


def test_an_expert_that_is_ahead_is_said_to_be_ahead():
    random = np.random.default_rng(1)
    lists, grades = {}, {}
    for q in range(6):
        truth = random.permutation(12).tolist()
        lists[q] = {"good": truth, "b": random.permutation(12).tolist(), "c": random.permutation(12).tolist()}
        grades[q] = {i: int(place < 3) for place, i in enumerate(truth)}
    found = report(Preferences.from_lists(lists), Labels.from_dict(grades), methods=["rrf", "borda"])
    lead = next(s for s in found.verdict if "good" in s)
    assert "which is ahead (+" in lead or "alone is better (+" in lead


def test_judged_queries_that_nobody_answers_are_said():
    p = Preferences.from_lists({q: {"a": ["x", "y"], "b": ["y", "x"]} for q in range(3)})
    labels = Labels.from_dict({q: {"x": 1, "y": 0} for q in range(10)})
    found = {f.name: f for f in report(p, labels, methods=["rrf", "borda"]).findings}
    assert found["answered queries"].text == "7 of 10 judged queries are not in the input and count as 0"
    assert found["answered queries"].verdict == "wrong"
    assert found["judged items"].verdict == "ok"


def test_one_flagged_expert_is_spoken_of_as_one():
    from podium.reporting.findings import FLAGS

    lists = {q: {**dict.fromkeys("rst", "abcdefgh"), "odd": "hgfedcba"} for q in range(12)}
    found = {f.name: f.text for f in report(Preferences.from_lists(lists), methods=["rrf", "borda"]).findings}
    assert found["reversed"] == "odd orders most pairs the opposite way"
    assert all(many.split()[0] != one for _, one, many in FLAGS.values())


def test_notebooks_show_the_verdict_and_the_checks(whole):
    shown = whole._repr_html_()
    assert whole.verdict[0].split(":")[0] in shown
    assert all(f.name in shown for f in whole.findings)


def test_the_same_chart_twice_is_the_same_svg():
    from podium.evaluate.charts import render_svg

    data = demo(5)
    chart = rank_heatmap(data.preferences, "q001", {"rrf": make("rrf").aggregate(data.preferences)})
    first, again = render_svg(chart, "h"), render_svg(chart, "h")
    assert first == again
    ids = re.findall(r'\bid="([^"]+)"', first)
    assert set(re.findall(r"url\([\"']?#([^\"')]+)", first)) <= set(ids)
    assert all(i.startswith("h-") for i in ids)
