"""Experts: agreement against scipy and a plain RBO, and faults that were planted."""

from __future__ import annotations

import itertools
import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from podium import Labels, Preferences, make, read
from podium.analysis.experts import diagnose
from podium.analysis.experts.agreement_matrices import effective_number
from podium.analysis.experts.id_overlap import suggest_id_repair
from podium.core import registry
from podium.core.errors import InputError, ParameterError
from podium.data.demo import demo
from podium.evaluate import evaluate, expert_rankings
from podium.metrics.agreement import rbo


def plain_rbo(a, b, p=0.9):
    """Webber, Moffat & Zobel's equation 32, term by term."""
    short, long = sorted((list(a), list(b)), key=len)
    s, n = len(short), len(long)

    def overlap(depth):
        return len(set(short[:depth]) & set(long[:depth]))

    total = sum(overlap(d) / d * p**d for d in range(1, n + 1))
    total += sum(overlap(s) * (d - s) / (s * d) * p**d for d in range(s + 1, n + 1))
    return (1 - p) / p * total + ((overlap(n) - overlap(s)) / n + overlap(s) / s) * p**n


lists_of_items = st.lists(st.integers(0, 14), min_size=1, max_size=12, unique=True)


@given(lists_of_items, lists_of_items, st.sampled_from([0.3, 0.9, 0.98]))
@settings(max_examples=150, deadline=None)
def test_rbo_is_its_definition(a, b, p):
    assert rbo(a, b, p) == pytest.approx(plain_rbo(a, b, p), abs=1e-12)


@given(st.integers(0, 10_000))
@settings(max_examples=25, deadline=None)
def test_matrices_are_means_over_queries(seed):
    rng = np.random.default_rng(seed)
    lists = {}
    for q in range(4):
        lists[q] = {}
        for e in "abcd":
            if rng.random() < 0.8:
                items = rng.choice(8, rng.integers(1, 8), replace=False).tolist()
                lists[q][e] = {f"d{i}": float(rng.integers(0, 4)) for i in items}
    p = Preferences.from_lists(lists)
    found = diagnose(p)
    for (i, a), (j, b) in itertools.combinations(enumerate(p.experts), 2):
        taus, rbos, both = [], [], 0
        for answers in lists.values():
            if not (answers.get(a) and answers.get(b)):
                continue
            both += 1
            common = sorted(set(answers[a]) & set(answers[b]))
            x, y = ([answers[e][d] for d in common] for e in (a, b))
            if len(set(x)) > 1 and len(set(y)) > 1:
                taus.append(stats.kendalltau(x, y).statistic)
            orders = (sorted(answers[e], key=lambda d, e=e: (-answers[e][d], d)) for e in (a, b))
            rbos.append(plain_rbo(*orders))
        for value, expected in ((found.agreement[i, j], taus), (found.overlap[i, j], rbos)):
            if expected:
                assert value == pytest.approx(np.mean(expected), abs=1e-9)
            else:
                assert math.isnan(value)
        assert found.shared[i, j] == found.shared[j, i] == both
    assert np.array_equal(found.agreement, found.agreement.T, equal_nan=True)


def test_votes_agree_by_share_of_pairs():
    rows = [
        ("x", "a", "b"),
        ("x", "b", "c"),
        ("x", "a", "c"),
        ("y", "a", "b"),
        ("y", "c", "b"),
        ("z", "d", "e"),
    ]
    who, won, lost = zip(*rows, strict=True)
    found = diagnose(Preferences.from_comparisons(["q"] * 6, who, won, lost))
    assert (found.measure, found.overlap) == ("agreeing pairs", None)
    assert found.agreement[0, 1] == 0.5  # a > b alike, b and c not
    assert np.isnan(found.agreement[0, 2])
    assert found.method == "copeland"
    with pytest.raises(ParameterError, match="no RBO"):
        found.matrix_grid("overlap")


def test_votes_on_the_same_pair_are_added_up():
    who, won, lost = ["x", "x", "x", "y"], ["a", "a", "b", "a"], ["b", "b", "a", "b"]
    found = diagnose(Preferences.from_comparisons([0] * 4, who, won, lost))
    assert found.agreement[0, 1] == 1.0


# -- planted faults ---------------------------------------------------------------------------------------------


def crowd(experts=6, queries=12, items=15, noise=1.5, seed=0):
    """Experts who see a truth through noise: query -> expert -> items with scores, and the grades."""
    rng = np.random.default_rng(seed)
    lists, grades = {}, {}
    for q in range(queries):
        truth = rng.normal(size=items)
        names = [f"q{q}d{i}" for i in range(items)]
        lists[q] = {
            f"e{e}": dict(zip(names, (truth + noise * rng.normal(size=items)).tolist(), strict=True))
            for e in range(experts)
        }
        grades[q] = {n: int(t > 0.5) for n, t in zip(names, truth, strict=True)}
    return lists, grades


def flagged(found, word):
    return {row.expert for row in found.rows if word in row.flags}


def test_healthy_experts_are_left_alone():
    lists, grades = crowd()
    found = diagnose(Preferences.from_lists(lists), Labels.from_dict(grades))
    assert not found.warnings
    assert not found.copies
    assert 2 < found.effective <= 6


def test_planted_copies():
    lists, _ = crowd()
    for answers in lists.values():
        answers["copy"] = dict(answers["e2"])
        answers["near"] = {k: v + 1e-9 for k, v in answers["e2"].items()}
    before, found = (diagnose(Preferences.from_lists(x)) for x in (crowd()[0], lists))
    assert flagged(found, "copy") == {"e2", "copy", "near"}
    assert {(c.first, c.second) for c in found.copies} == {("copy", "e2"), ("copy", "near"), ("e2", "near")}
    assert any("'copy', 'e2' and 'near' are near-duplicates" in w for w in found.warnings)
    assert found.effective < before.effective + 0.5  # two more names, hardly more voices


def test_a_planted_reversed_list():
    lists, _ = crowd()
    for answers in lists.values():
        answers["e4"] = {k: -v for k, v in answers["e4"].items()}
    found = diagnose(Preferences.from_lists(lists))
    assert flagged(found, "reversed") == {"e4"}
    assert found.warnings[0].startswith("'e4' orders the items shared with the others mostly in reverse")
    assert "is the list reversed?" in found.warnings[0]


def test_two_experts_against_each_other():
    p = Preferences.from_lists({q: {"a": list("xyz"), "b": list("zyx")} for q in range(8)})
    (said,) = diagnose(p).warnings
    assert (
        said
        == "'a' and 'b' order their shared items in opposite ways (tau-b down to -1.00): is one of them reversed?"
    )


def test_a_few_items_prove_nothing():
    p = Preferences.from_lists({"q": {"a": list("xyz"), "b": list("xyz"), "c": list("zyx")}})
    found = diagnose(p)
    assert found.agreement.tolist() == [[1, 1, -1], [1, 1, -1], [-1, -1, 1]]
    assert not found.warnings


def test_a_planted_mismatch_of_item_ids():
    lists, grades = crowd()
    for answers in lists.values():
        answers["e1"] = {k.upper(): v for k, v in answers["e1"].items()}
    found = diagnose(Preferences.from_lists(lists), Labels.from_dict(grades))
    assert flagged(found, "unmatched ids") == flagged(found, "unjudged") == {"e1"}
    assert found["e1"].alone == 1.0
    assert found["e1"].agreement is None
    assert any(w.startswith("'e1' lists no item that any other expert lists") and w.endswith("ignoring case")
               for w in found.warnings)  # fmt: skip


def test_a_planted_mismatch_of_query_ids():
    lists, grades = crowd()
    for q in list(lists):
        lists[f"topic{q}"] = {"e0": lists[q].pop("e0")}
    found = diagnose(Preferences.from_lists(lists), Labels.from_dict(grades))
    assert "unmatched ids" in found["e0"].flags
    assert any("'e0' answers no query that any other expert answers" in w for w in found.warnings)


@pytest.mark.parametrize(("mine", "theirs", "words"), [
    ([1, 2], ["1", "2"], "numbers and text"),
    ([" a"], ["a"], "blanks"),
    (["A"], ["a"], "case"),
    (["007"], ["7"], "leading zeros"),
    (["docs/a.txt"], ["a"], "folders"),
    (["msmarco:7"], ["7"], "colon"),
])  # fmt: skip
def test_hints(mine, theirs, words):
    assert words in suggest_id_repair(mine, theirs)


def test_labels_of_others_are_said():
    lists, grades = crowd()
    p = Preferences.from_lists(lists)
    other = diagnose(p, Labels.from_dict({f"x{q}": g for q, g in grades.items()}))
    assert other.warnings[0].startswith("the labels share no query with the input")
    assert (other.metric, other.value, other["e0"].effect) == (None, None, None)
    items = diagnose(p, Labels.from_dict({q: {"nowhere": 1} for q in grades}))
    assert items.warnings[0].startswith("the labels share no item with the input")
    assert items["e0"].value == 0


def test_constant_lists_are_said():
    lists, _ = crowd()
    for answers in lists.values():
        answers["flat"] = dict.fromkeys(answers["e0"], 1.0)
    found = diagnose(Preferences.from_lists(lists))
    assert flagged(found, "all tied") == {"flat"}
    assert found["flat"].agreement is None
    assert any("'flat' ties all items in every list" in w for w in found.warnings)


# -- what an expert is worth ------------------------------------------------------------------------------------


def test_effects_are_the_consensus_with_and_without():
    data = demo(12)
    p, labels = data.preferences, data.labels
    found = diagnose(p, labels, "combmnz", "ndcg@5")
    ties = {"single": True}  # ties and precision as in trec_eval, as everywhere else
    whole = evaluate(make("combmnz").aggregate(p).with_ties("trec", **ties), labels, "ndcg@5")["ndcg@5"]
    assert found.value == pytest.approx(whole.mean())
    for expert in p.experts[:4]:
        without = make("combmnz").aggregate(p.without_expert(expert)).with_ties("trec", **ties)
        less = evaluate(without, labels, "ndcg@5")["ndcg@5"]
        row = found[expert]
        assert row.effect == pytest.approx((whole - less).mean(), abs=1e-12)
        assert row.low <= row.effect <= row.high
        alone = expert_rankings(p, expert).with_ties("trec", **ties)
        own = evaluate(alone, labels, "ndcg@5", queries="all").mean()["ndcg@5"]
        assert row.value == pytest.approx(own)


def test_an_expert_who_answers_the_other_way_round_hurts():
    lists, grades = crowd(experts=3, queries=60, noise=1.0, seed=1)
    for answers in lists.values():
        answers["liar"] = {k: -v for k, v in answers["e0"].items()}
    found = diagnose(Preferences.from_lists(lists), Labels.from_dict(grades), "combsum", "map")
    assert "hurts" in found["liar"].flags
    assert found["liar"].effect < 0
    assert any("map of the consensus is higher without 'liar'" in w for w in found.warnings)


def test_weights_follow_the_experts_that_are_left():
    p = Preferences.from_lists({q: {"a": list("xyz"), "b": list("yxz"), "c": list("zyx")} for q in range(3)})
    found = diagnose(p, method=make("rrf", weights={"a": 1, "b": 1, "c": 0}))
    assert found["c"].moved == pytest.approx(0)
    only = diagnose(p, method=make("rrf", weights=[1, 0, 0]))
    assert only["a"].moved is None  # nobody counts without it


METHODS = registry.aggregators.all()


@pytest.mark.parametrize("spec", sorted(METHODS))
def test_every_method_serves_or_says_why_not(spec):
    lists, grades = crowd(experts=3, queries=3, items=4)
    tags = METHODS[spec].tags
    if tags.supervised:
        with pytest.raises(ParameterError, match="learns from labels"):
            diagnose(Preferences.from_lists(lists), method=spec)
    elif not tags.uses_features:
        found = diagnose(Preferences.from_lists(lists), Labels.from_dict(grades), spec)
        assert found.method == spec
        assert found["e0"].effect is not None


def test_one_expert_and_one_query():
    p = Preferences.from_lists({"q": {"e": ["a", "b"]}})
    found = diagnose(p, Labels.from_dict({"q": {"a": 1}}))
    row = found["e"]
    assert (row.agreement, row.effect, row.low, row.alone, row.value) == (None, None, None, None, 1.0)
    assert found.effective == 1
    assert found.grid().rows[0][0] == "e"
    json.loads(found.to_json())


def test_nothing_at_all_is_an_error():
    with pytest.raises(InputError, match="the preferences are empty"):
        diagnose(Preferences.from_lists({}))
    with pytest.raises(ParameterError, match="no expert"):
        diagnose(Preferences.from_lists({"q": {"e": ["a"]}}))["f"]


def test_json_holds_no_nan_and_all_matrices():
    lists, grades = crowd(experts=3, queries=3)
    del lists[0]["e0"]
    document = json.loads(diagnose(Preferences.from_lists(lists), Labels.from_dict(grades)).to_json())
    assert len(document["agreement"]) == len(document["overlap"]) == len(document["shared"]) == 3
    assert [row["expert"] for row in document["experts"]] == document["names"]
    assert "NaN" not in json.dumps(document)


def test_the_effective_number_is_that_of_equal_groups():
    two = np.kron(np.eye(2), np.ones((3, 3)))
    assert effective_number(two, np.ones(6, np.bool_)) == pytest.approx(2)
    assert effective_number(two, np.arange(6) < 3) == pytest.approx(1)


def test_order_and_names_do_not_matter():
    lists, _ = crowd(experts=4, queries=5)
    rename = {"e0": "z", "e1": "y", "e2": "x", "e3": "w"}
    turned = {q: {rename[e]: lists[q][e] for e in reversed(lists[q])} for q in reversed(lists)}
    a, b = diagnose(Preferences.from_lists(lists)), diagnose(Preferences.from_lists(turned))
    for old, new in rename.items():
        assert a[old].agreement == pytest.approx(b[new].agreement, abs=1e-12)
        assert a[old].overlap == pytest.approx(b[new].overlap, abs=1e-12)
    assert a.effective == pytest.approx(b.effective)


@pytest.mark.data
def test_real_runs(data_dir):
    folder = data_dir / "robust03-runs"
    p = read(str(folder / "robust03.tsv.gz")).preferences
    some = p.select(p.queries[:10])
    found = diagnose(some, read(str(folder / "robust03.qrels.gz")).labels)
    assert len(found) == 17
    assert not flagged(found, "unmatched ids")
    a, b = (expert_rankings(some, e) for e in ("InexpC2", "Sel50"))
    i, j = (p.experts.code_of(e) for e in ("InexpC2", "Sel50"))
    expected = np.mean([rbo(a.ranking(q), b.ranking(q)) for q in some.queries])
    assert found.overlap[i, j] == pytest.approx(expected)


@pytest.mark.parametrize("seed", range(20))
def test_the_order_of_the_chart_is_scipys_clustering(seed):
    """Random distances have no ties, so both orders are determined."""
    from scipy.cluster.hierarchy import leaves_list, linkage
    from scipy.spatial.distance import squareform

    from podium.analysis.experts.chart import order_by_linkage

    random = np.random.default_rng(seed)
    distances = random.random((n := int(random.integers(2, 30)), n))
    apart = np.triu(distances, 1) + np.triu(distances, 1).T
    assert order_by_linkage(apart) == leaves_list(linkage(squareform(apart), "average")).tolist()
