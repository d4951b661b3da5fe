"""Explanations: parts add up, and every reported change is applied here again, by other means."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from podium import Features, Labels, Preferences, make
from podium.analysis.explain import Change, Explanation, explain
from podium.core import registry
from podium.core.errors import ParameterError
from podium.data.demo import demo
from podium.data.preferences import Form
from podium.testing.samples import sample_rows

METHODS = sorted(
    name
    for name, cls in registry.aggregators.all().items()
    if cls.tags.per_query and not cls.tags.supervised and cls.__module__.startswith("podium.")
)


def rows_of(p, query):
    """Lists and votes of a query as plain rows."""
    lists, votes = [], []
    code, t = p.index.query_code(query), p.lists
    for which in range(int(t.query_starts[code]), int(t.query_starts[code + 1])):
        for row in range(int(t.starts[which]), int(t.starts[which + 1])):
            score = None if t.score is None else float(t.score[row])
            lists.append(
                [p.experts[int(t.expert[which])], p.index.items[int(t.item[row])], int(t.rank[row]), score]
            )
    c = p.comparisons
    for row in range(int(c.query_starts[code]), int(c.query_starts[code + 1])):
        ids = (p.index.items[int(c.winner[row])], p.index.items[int(c.loser[row])])
        votes.append([p.experts[int(c.expert[row])], *ids, bool(c.tie[row]), float(c.weight[row])])
    return lists, votes


def rebuilt(p, query, lists, votes):
    """Preferences of one query, read afresh from rows."""
    if votes:
        who, won, lost, tie, weight = zip(*votes, strict=True)
        return Preferences.from_comparisons([query] * len(votes), who, won, lost, tie=tie, weight=weight)
    expert, item, rank, score = zip(*lists, strict=True)
    here = p.select([query]).index.items.tolist()
    values = {"rank": rank} if score[0] is None else {"score": score}
    return Preferences.from_rows(
        [query] * len(lists),
        expert,
        item,
        **values,
        candidates=([query] * len(here), here),
        unlisted=p.unlisted,
    )


def changed(method, p, found: Explanation, change: Change):
    """The method and preferences after a change, made by hand."""
    lists, votes = rows_of(p, found.query)
    spec = method
    if change.kind == "weight":
        speaking = p.select([found.query])
        experts = [e for e, said in zip(speaking.experts, speaking.active_experts, strict=True) if said]
        if not make(method).tags.weighted:
            assert change.value == 0
            lists = [r for r in lists if r[0] != change.expert]
            return make(spec), rebuilt(p, found.query, lists, votes)
        weights = {e: change.value if e == change.expert else 1.0 for e in experts}
        return make(spec, weights=weights), rebuilt(p, found.query, lists, votes)
    if change.kind == "votes":
        votes += [[change.expert, found.lower, found.upper, False, 1.0]] * int(change.value)
        return make(spec), rebuilt(p, found.query, lists, votes)
    old = [r for r in lists if r[0] == change.expert and r[1] == found.lower]
    lists = [r for r in lists if r not in old]
    before = old[0][2] if old else math.inf
    assert (old[0][2] if old else None) == change.before
    for r in lists:
        if r[0] == change.expert and change.value <= r[2] < before:
            r[2] += 1
    lists.append([change.expert, found.lower, int(change.value), change.score])
    return make(spec), rebuilt(p, found.query, lists, votes)


def check_changes(method, p, found):
    for change in found.changes:
        aggregator, preferences = changed(method, p, found, change)
        scores = aggregator.aggregate(preferences).to_dict()[found.query]
        assert scores[found.lower] > scores[found.upper], (method, change)


@pytest.mark.parametrize("method", METHODS)
def test_every_change_that_is_told_makes_them_swap(method):
    told = 0
    for form in Form:
        if form not in make(method).tags.accepts:
            continue
        p = sample_rows(form, 0).to_preferences()
        for query in p.queries.tolist()[:1]:
            ranking = make(method).aggregate(p.select([query])).ranking(query)
            found = explain(make(method), p, query, ranking[1], over=ranking[0])
            assert found.complete
            check_changes(method, p, found)
            told += len(found.changes)
    # a median of grades does not move in these samples when one expert changes one item
    assert told > 0 or method == "majority_judgment"


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.sampled_from(["rrf", "borda", "combmnz", "condorcet", "mc4"]),
    st.dictionaries(st.sampled_from("xyzw"), st.permutations("abcde").flatmap(
        lambda order: st.integers(1, 5).map(lambda n: order[:n])), min_size=1),
    st.data(),
)  # fmt: skip
def test_changes_hold_on_any_lists(method, lists, data):
    p = Preferences.from_lists({"q": lists}, unlisted=data.draw(st.sampled_from(["below", "unknown"])))
    ranking = make(method).aggregate(p).ranking("q")
    if len(ranking) < 2:
        return
    a, b = data.draw(st.permutations(ranking))[:2]
    found = explain(make(method), p, "q", a, over=b)
    assert {found.upper, found.lower} == {a, b}
    check_changes(method, p, found)
    assert all(line for line in found.lines)


def test_smallest_weight_by_hand():
    """b leads a by 1/62 + 1/61 - 1/61; with bm25 at m: m/61 > m/62 + 1/61, so m > 62."""
    p = Preferences.from_lists({"q": {"bm25": ["a", "b"], "dense": ["b"]}})
    found = explain(make("rrf"), p, "q", "b", over="a")
    [up] = [c for c in found.changes if c.kind == "weight" and c.expert == "bm25"]
    assert 62 < up.value < 63
    [down] = [c for c in found.changes if c.kind == "weight" and c.expert == "dense"]
    assert 0 < down.value < 1 / 62


def test_smallest_move_is_the_smallest():
    """One step less far does not do it; checked by trying all ranks."""
    p = demo(12).preferences
    for query in p.queries.tolist()[:6]:
        one = p.select([query])
        ranking = make("rrf").aggregate(one).ranking(query)
        found = explain(make("rrf"), one, query, ranking[0], over=ranking[1])
        for change in [c for c in found.changes if c.kind == "move"]:
            worse = replace(change, value=change.value + 1)
            own = [r[2] for r in rows_of(one, query)[0] if r[0] == change.expert]
            if worse.value == change.before or (change.before is None and change.value > max(own)):
                continue  # that is where it is, or the end of the list
            aggregator, after = changed("rrf", one, found, worse)
            scores = aggregator.aggregate(after).to_dict()[query]
            assert scores[found.lower] <= scores[found.upper]


def test_nothing_single_does_it_and_says_so():
    p = Preferences.from_lists({"q": {e: ["a", "b"] for e in "vwxyz"}})
    found = explain(make("copeland"), p, "q", "a", over="b")
    assert not found.changes
    assert "No change of one expert's weight or list would make them swap" in found.lines[-1]
    assert "5 experts put a first, 0 b" in " ".join(found.lines)


def test_ties_and_one_expert_and_one_item():
    p = Preferences.from_lists({"q": {"e": ["a", "b"], "f": ["b", "a"]}, "one": {"e": ["a"]}})
    tied = explain(make("rrf"), p, "q", "b", over="a")
    assert tied.upper == "a"
    assert any("same score" in line for line in tied.lines)
    check_changes("rrf", p, tied)
    alone = explain(make("rrf"), p, "one")
    assert (alone.item.item, alone.above, alone.below, alone.of) == ("a", None, None, 1)


def test_parts_add_up_where_exact():
    p = demo(5).preferences
    query = p.queries[0]
    found = explain(make("rrf"), p, query)
    assert found.exact
    assert math.fsum(v.value for v in found.contributions) == pytest.approx(found.item.score, rel=1e-9)
    assert (found.item.rank, found.above) == (1, None)
    assert found.below is not None


@pytest.mark.parametrize(
    "method", ["crf(passes=20)", "svd(passes=20)", "fused(passes=10)", "weighted_rrf(passes=5)"]
)
def test_learned_sums(method):
    """What an expert adds, times the factor told, turns the order; weighted rules are applied with the new weight."""
    data = demo(10)
    model = make(method).fit(data.preferences, data.labels)
    query = data.preferences.queries[3]
    ranking = model.aggregate(data.preferences).ranking(query)
    found = explain(model, data.preferences, query, ranking[2], over=ranking[1])
    assert found.exact
    gap = found.over.score - found.item.score
    assert math.fsum(-v.value for v in found.contributions) == pytest.approx(gap, abs=1e-9 * max(1, abs(gap)))
    weights = [c for c in found.changes if c.kind == "weight"]
    assert weights
    value = {v.expert: -v.value for v in found.contributions}
    for c in weights:
        assert gap + (c.value - 1) * value[c.expert] < 0


def test_crowds_are_left_out_of_all_queries():
    """A method whose answer depends on other queries is explained with all of them at hand."""
    p = sample_rows(Form.RATING, 0).to_preferences()
    query = p.queries[0]
    first, second = make("crowdagg").aggregate(p).ranking(query)[:2]
    found = explain(make("crowdagg"), p, query, first, over=second)
    whole = make("crowdagg").aggregate(p).to_dict()[query]
    for v in found.contributions:
        rest = make("crowdagg").aggregate(p.without_expert(v.expert)).to_dict()[query]
        gap = (whole[first] - rest[first]) - (whole[second] - rest[second])
        assert v.value == pytest.approx(gap, abs=1e-12)


def lists_and_features():
    random = np.random.default_rng(0)
    rows, lists = [], {}
    for q in range(4):
        good = random.normal(size=8)
        noisy = {e: good + random.normal(size=8) * noise for e, noise in (("a", 0.3), ("b", 0.6), ("c", 3.0))}
        lists[f"q{q}"] = {e: [f"i{k}" for k in np.argsort(-v)] for e, v in noisy.items()}
        rows += [(f"q{q}", f"i{k}", [good[k] + 0.3 * random.normal(), random.normal()]) for k in range(8)]
    query, item, values = zip(*rows, strict=True)
    return Preferences.from_lists(lists), Features.from_rows(query, item, values, ["f", "g"])


@pytest.mark.parametrize("fitted", [False, True])
@pytest.mark.parametrize("method", ["retargeting", "retargeting(side=both)", "labelled_features"])
def test_sums_learned_from_all_queries(method, fitted):
    """What is called exact adds up to the scores of all queries together, features included."""
    p, x = lists_and_features()
    model = make(method).fit(p, features=x) if fitted else make(method)
    found = explain(model, p, "q1", "i1", over="i2", features=x)
    assert found.exact
    assert found.experts == 3
    gap = found.item.score - found.over.score
    assert math.fsum(v.value for v in found.contributions) == pytest.approx(gap, rel=1e-9)
    one = explain(model, p, "q1", "i1", features=x)
    assert math.fsum(v.value for v in one.contributions) == pytest.approx(one.item.score, rel=1e-9)
    assert one.lines[1].startswith("3 of 3 experts")


@pytest.mark.parametrize("method", ["combsum", "labelled_features"])
def test_an_item_nobody_lists_goes_last_and_its_sum_is_not_called_exact(method):
    rows = (["q"] * 4, ["a", "a", "b", "b"], ["x", "y", "x", "z"])
    p = Preferences.from_rows(*rows, rank=[1, 2, 1, 2], candidates=(["q"] * 4, list("xyzu")))
    x = Features.from_rows(["q"] * 4, list("xyzu"), [[1.0], [2.0], [3.0], [9.0]], ["f"])
    model = make(method, **({"beliefs": {"f": 2}} if method == "labelled_features" else {}))
    own = x if model.tags.uses_features else None
    last, above = (explain(model, p, "q", item, features=own) for item in "uz")
    assert last.item.rank == 4
    assert not last.exact
    assert above.exact
    assert math.fsum(v.value for v in above.contributions) == pytest.approx(above.item.score)


def test_a_sum_of_each_query_alone_leaves_experts_out():
    p, x = lists_and_features()
    model = make("retargeting(pooled=False)")
    told, found = model.explain(p, "q1", "i1", x), explain(model, p, "q1", "i1", features=x)
    assert not found.exact
    assert any(told.values())
    assert {v.expert: v.value for v in found.contributions} == pytest.approx(told)
    alone = Preferences.from_lists({"q": {"e": ["a", "b"]}})
    assert model.explain(alone, "q", "a") == {"e": pytest.approx(model.aggregate(alone)["q"][0].score)}


def test_bad_questions():
    p = Preferences.from_lists({"q": {"e": ["a", "b"]}})
    with pytest.raises(ParameterError, match="no item 'c'"):
        explain(make("rrf"), p, "q", "c")
    with pytest.raises(ParameterError, match="itself"):
        explain(make("rrf"), p, "q", "a", over="a")


def test_large_data_cut_the_search_short(monkeypatch):
    from podium.analysis.explain import counterfactuals

    monkeypatch.setattr(counterfactuals, "WORK", 1)
    monkeypatch.setattr(counterfactuals, "LEAST", 3)
    p = demo(2).preferences
    query = p.queries[0]
    ranking = make("condorcet").aggregate(p).ranking(query)
    found = explain(make("condorcet"), p, query, ranking[0], over=ranking[1])
    assert not found.complete
    assert "cut short" in found.lines[-1]


def test_document_is_plain():
    import json

    p = Preferences.from_lists({"q": {"e": ["a", "b"], "f": ["b", "a", "c"]}})
    document = explain(make("rrf"), p, "q", "a", over="c").to_dict()
    assert json.loads(json.dumps(document))["items"][0]["item"] == "a"


def test_notebooks_show_a_table():
    p = Preferences.from_lists({"q": {"<b>": ["a", "b"], "f": ["b", "a"]}})
    text = explain(make("rrf"), p, "q", "a")._repr_html_()
    assert "&lt;b&gt;" in text
    assert text.count("<tr>") == 3


def test_chart_draws(tmp_path):
    pytest.importorskip("vl_convert")
    from podium.analysis.explain.chart import plot_explanation

    p = Preferences.from_lists({"q": {"<b>": ["a", "b"], "f": ["b", "a", "c"]}})
    plot_explanation(explain(make("rrf"), p, "q", "a", over="c"), tmp_path / "x.svg")
    text = (tmp_path / "x.svg").read_text()
    assert "&lt;b&gt;" in text
    assert "<b>" not in text


def test_labels_are_not_needed_for_weights_of_rules():
    from podium.analysis.figures import weight_table

    assert weight_table(make("rrf", weights={"a": 1, "b": 2})) == {"weight": {"a": 1, "b": 2}}
    with pytest.raises(ParameterError, match="no weights"):
        weight_table(make("rrf"))


def test_weight_tables_reproduce_the_scores_of_a_crf():
    """missing, preferred and beaten are what the model adds up: one expert, one pair, by hand."""
    p = Preferences.from_lists({"q": {"x": ["a", "b"], "y": ["b", "a"]}})
    model = make("crf(transform=binary, length_power=0)").fit(p, Labels.from_dict({"q": {"a": 1, "b": 0}}))
    from podium.analysis.figures import weight_table

    table = weight_table(model)
    scores = model.aggregate(p).to_dict()["q"]
    assert scores["a"] == pytest.approx(table["preferred"]["x"] + table["beaten"]["y"])
    assert scores["b"] == pytest.approx(table["preferred"]["y"] + table["beaten"]["x"])


def test_a_method_may_be_named():
    p = Preferences.from_lists({"q": {"x": ["a", "b"], "y": ["b"]}})
    assert explain("rrf(k=10)", p, "q").lines == explain(make("rrf(k=10)"), p, "q").lines
