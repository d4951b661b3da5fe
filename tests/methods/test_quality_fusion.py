"""Weights by estimated quality: bad experts lose theirs, copies are recognized, nothing learned means equal weights."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import podium.methods.quality_fusion as quality_fusion
from podium import Preferences, QualityWeightedFusion, deploy, make
from podium.core.errors import PodiumWarning
from podium.kernels.expert_agreement import (
    ExpertCorrelations,
    QueryLists,
    compute_expert_correlations,
    compute_order_shares,
    estimate_expert_quality,
    find_copies,
    measure_order_evidence,
    measure_similarity,
)
from podium.kernels.list_effects import ListValues, fit_list_effects
from podium.kernels.listing_evidence import (
    are_items_assigned,
    are_items_drawn,
    compare_ends_with_unlisted,
    measure_listing,
)
from podium.methods.positional import RankBiasedCentroids, ReciprocalRankFusion

ITEMS = [f"d{i:02d}" for i in range(20)]


def simulate(noise, queries=40, *, seed=0, depth=None, **more):
    """Experts that see the true order 0, 1, 2, ... with noise; `more` adds experts as functions of a query's lists."""
    dice = np.random.default_rng(seed)
    table = {}
    for query in range(queries):
        lists = {}
        for expert, sd in noise.items():
            seen = np.arange(len(ITEMS)) + dice.normal(0, sd, len(ITEMS))
            lists[expert] = [ITEMS[i] for i in np.argsort(seen)][:depth]
        for expert, build in more.items():
            lists[expert] = build(lists, dice)
        table[query] = lists
    return Preferences.from_lists(table)


GOOD = {"a": 3.0, "b": 4.0, "c": 5.0, "d": 4.0}


def weights_of(preferences, **parameters):
    return QualityWeightedFusion(**parameters).choose_rule(preferences).weights


def test_more_accurate_experts_weigh_more():
    weights = weights_of(simulate({"best": 2.0, "good": 5.0, "fair": 9.0, "poor": 25.0}))
    assert weights["best"] > weights["good"] > weights["fair"] > weights["poor"]


def test_reversed_and_random_experts_lose_their_weight():
    p = simulate(
        GOOD,
        rev=lambda lists, _: lists["a"][::-1],
        random=lambda lists, dice: dice.permutation(ITEMS).tolist(),
    )
    weights = weights_of(p)
    assert weights["rev"] == 0
    assert weights["random"] < 0.15 * min(weights[e] for e in GOOD)
    clean, fused = make("rbc").aggregate(p.with_experts(list(GOOD))), make("quality_weighted").aggregate(p)
    same = [fused.ranking(q)[:3] == clean.ranking(q)[:3] for q in p.queries]
    assert np.mean(same) > 0.6


def test_junk_that_nobody_else_lists_does_not_count():
    p = simulate(GOOD, junk=lambda lists, _: [f"x{i}" for i in range(20)])
    assert weights_of(p)["junk"] == 0
    assert all(
        not i.startswith("x")
        for q in p.queries
        for i in make("quality_weighted").aggregate(p).ranking(q)[:20]
    )


def test_copies_of_a_random_list_do_not_win():
    def copy(lists, dice):
        lists.setdefault("spam0", dice.permutation(ITEMS).tolist())
        return lists["spam0"]

    p = simulate(GOOD, **{f"spam{i}": copy for i in range(9)})
    weights = weights_of(p)
    assert sum(weights[f"spam{i}"] for i in range(9)) < 0.2 * sum(weights[e] for e in GOOD)
    assert "copies of one list" in " ".join(make("quality_weighted").aggregate(p).diagnostics.notes)


def test_copies_of_a_good_list_count_less_than_as_many_experts():
    p = simulate(GOOD, a2=lambda lists, _: lists["a"], a3=lambda lists, _: lists["a"])
    weights = weights_of(p)
    assert weights["a"] == pytest.approx(weights["a2"])
    assert weights["a"] * 3 == pytest.approx(
        np.sqrt(3) * weights_of(p.with_experts(list(GOOD)))["a"], rel=0.15
    )


def test_two_experts_and_one_query_of_three_items_get_equal_weights():
    two = weights_of(simulate({"a": 3.0, "b": 9.0}))
    assert two["a"] == pytest.approx(two["b"])
    few = Preferences.from_lists({"q": {"a": ["x", "y", "z"], "b": ["x", "z", "y"], "c": ["y", "x", "z"]}})
    assert len(set(np.round(list(weights_of(few).values()), 9))) == 1


def test_disagreement_is_reported_and_gives_equal_weights():
    p = simulate(dict.fromkeys("abcde", 1e6))
    consensus = make("quality_weighted").aggregate(p)
    assert "no order can be trusted" in " ".join(consensus.diagnostics.notes)


def test_queries_without_agreement_are_named():
    lists = {
        q: {"x": ["a", "b", "c", "d"], "y": ["a", "b", "d", "c"], "z": ["b", "a", "c", "d"]}
        for q in range(20)
    }
    lists["odd"] = {"x": ["a", "b", "c", "d"], "y": ["d", "c", "b", "a"], "z": ["c", "d", "a", "b"]}
    notes = make("quality_weighted").aggregate(Preferences.from_lists(lists)).diagnostics.notes
    assert "the experts hardly agree in 1 query of 21, such as odd" in notes


def test_ranks_decide_in_full_lists_and_listing_where_ranks_are_noise():
    assert isinstance(QualityWeightedFusion().choose_rule(simulate(GOOD)), RankBiasedCentroids)
    # every expert lists ten of the best items in random order: being listed is all that there is to learn
    table, dice = {}, np.random.default_rng(1)
    for query in range(60):
        chosen = [dice.permutation(np.argsort(np.arange(20) + dice.normal(0, 4, 20))[:8]) for _ in range(6)]
        table[query] = {f"e{k}": [ITEMS[i] for i in items] for k, items in enumerate(chosen)}
    assert isinstance(
        QualityWeightedFusion().choose_rule(Preferences.from_lists(table)), ReciprocalRankFusion
    )


@pytest.mark.parametrize("points", ["rrf", "rbc"])
def test_the_rule_gives_the_scores_and_the_explanation(points):
    p = simulate(GOOD, depth=8).with_unlisted("below")
    method = QualityWeightedFusion(points=points)
    rule, consensus = method.choose_rule(p), method.aggregate(p)
    assert rule.name == points
    assert consensus.scores == pytest.approx(rule.aggregate(p).scores, rel=1e-12)
    item = consensus.ranking(3)[0]
    assert sum(method.explain(p, 3, item).values()) == pytest.approx(consensus.to_dict()[3][item], rel=1e-9)


def test_the_rule_is_deployed():
    rule = QualityWeightedFusion(points="rrf").choose_rule(simulate(GOOD, depth=8))
    assert deploy(rule, "elasticsearch").exact


def test_given_weights_multiply_and_zero_leaves_an_expert_out():
    p = simulate(GOOD | {"poor": 25.0})
    plain, half = weights_of(p), weights_of(p, weights={"a": 0.5, "b": 1, "c": 1, "d": 1, "poor": 1})
    assert half["a"] == pytest.approx(plain["a"] / 2)
    without = weights_of(p, weights={"a": 0, "b": 1, "c": 1, "d": 1, "poor": 1})
    alone = weights_of(p.without_expert("a"))
    assert without["a"] == 0
    assert [without[e] for e in alone] == pytest.approx(list(alone.values()))


def test_a_sample_of_the_queries_gives_nearly_the_same_weights_in_any_order(monkeypatch):
    p = simulate(GOOD | {"poor": 20.0}, queries=120)
    whole = weights_of(p)
    monkeypatch.setattr(quality_fusion, "MOST_QUERIES", 60)
    part = weights_of(p)
    assert part != whole
    assert [part[e] for e in whole] == pytest.approx(list(whole.values()), abs=0.06)
    turned = p.select(list(reversed(p.queries.tolist())))
    assert weights_of(turned) == pytest.approx(part)


def test_experts_beyond_the_limit_get_the_mean_weight(monkeypatch):
    p = simulate(GOOD)
    monkeypatch.setattr(quality_fusion, "MOST_EXPERTS", 3)
    weights = weights_of(p)
    assert weights["d"] == pytest.approx(np.mean([weights[e] for e in "abc"]))


def test_correlations_are_those_of_numpy():
    dice = np.random.default_rng(5)
    ranks = [np.array([dice.permutation(7) + 1.0 for _ in range(3)]) for _ in range(4)]
    ranks[1][2] = np.where(ranks[1][2] > 4, 0, ranks[1][2])
    queries = [QueryLists(np.arange(3), rank) for rank in ranks]
    correlation, shared, items, rows, length, by_query = compute_expert_correlations(
        queries, lambda r: 1 / (60 + r), np.ones(3), np.arange(3)
    )
    expected = np.mean([np.corrcoef(np.where(r > 0, 1 / (60 + np.maximum(r, 1)), 0)) for r in ranks], axis=0)
    assert correlation == pytest.approx(expected, abs=1e-12)
    assert shared.tolist() == [[4] * 3] * 3
    assert items.tolist() == [28] * 3
    assert rows.tolist() == [28, 28, 25]
    assert length.tolist() == [7, 7, (7 * 3 + 4) / 4]
    pairs = [
        np.corrcoef(np.where(r > 0, 1 / (60 + np.maximum(r, 1)), 0))[np.triu_indices(3, 1)].mean()
        for r in ranks
    ]
    assert by_query == pytest.approx(pairs, abs=1e-12)


def test_quality_is_recovered_from_a_one_factor_model():
    """If experts share one factor, the correlation of two is the product of their qualities."""
    true = np.array([0.9, 0.7, 0.5, 0.3, 0.0])
    correlation = np.outer(true, true)
    np.fill_diagonal(correlation, 1.0)
    quality = estimate_expert_quality(correlation, np.eye(5), np.full(5, 10**9), np.ones(5), np.arange(5))
    assert np.argsort(-quality).tolist() == [0, 1, 2, 3, 4]
    assert quality[-1] == pytest.approx(0, abs=1e-6)
    assert quality / quality[0] == pytest.approx(true / true[0], abs=0.12)


def test_good_experts_are_not_similar_but_near_copies_are():
    """One common factor leaves no partial correlation; two experts that share an error have the rest of theirs."""
    quality = np.array([0.9, 0.8, 0.7, 0.6, 0.5, 0.4])
    correlation = np.outer(quality, quality)
    correlation[4, 5] = correlation[5, 4] = 0.9
    np.fill_diagonal(correlation, 1.0)
    everyone = np.arange(6)
    found = ExpertCorrelations(
        correlation,
        np.full((6, 6), 50),
        np.full(6, 10**9),
        np.full(6, 10**9),
        np.full(6, 10.0),
        np.zeros(50),
    )
    assert find_copies(found, everyone).tolist() == list(range(6))
    similarity = measure_similarity(found, everyone, everyone)
    assert np.diag(similarity).tolist() == [1.0] * 6
    partial = (0.9 - 0.5 * 0.4) / np.sqrt((1 - 0.25) * (1 - 0.16))
    assert similarity[4, 5] == pytest.approx(partial**2, abs=0.15)
    honest = similarity[:4, :4][~np.eye(4, dtype=bool)]
    assert honest.max() < 0.4 * similarity[4, 5]
    few = found._replace(rows=np.full(6, 9))
    assert measure_similarity(few, everyone, everyone).tolist() == np.eye(6).tolist()


def test_three_near_copies_do_not_outvote_three_independent_experts():
    """The near copies share an error that is as large as what they know."""
    dice, table = np.random.default_rng(3), {}
    for query in range(40):
        true, error = dice.normal(size=30), dice.normal(size=30)
        seen = {f"good{k}": true + 0.9 * dice.normal(size=30) for k in range(3)}
        seen |= {f"near{k}": 0.6 * true + error + 0.25 * dice.normal(size=30) for k in range(3)}
        table[query] = {e: [f"d{i}" for i in np.argsort(-x)] for e, x in seen.items()}
    weights = weights_of(Preferences.from_lists(table))
    near, good = (sum(weights[f"{kind}{k}"] for k in range(3)) for kind in ("near", "good"))
    assert near < 1.2 * good


def test_one_good_engine_among_weak_ones_keeps_the_largest_weight():
    """Nobody but the good one is confirmed by the others: that leaves no other expert to compare it with."""
    dice, table = np.random.default_rng(0), {}
    for query in range(40):
        true = dice.normal(size=500)
        table[query] = {
            name: [f"d{i}" for i in np.argsort(-(true + noise * dice.normal(size=500)))[:50]]
            for name, noise in {"good": 0.4, "weak1": 2.0, "weak2": 2.0}.items()
        }
    weights = weights_of(Preferences.from_lists(table, unlisted="below"))
    assert weights["good"] > 2 * max(weights["weak1"], weights["weak2"])


def test_of_two_engines_the_order_of_rows_does_not_choose_the_points():
    """Of two, the support of every known item is 1, so that nothing speaks for one rule or the other."""
    dice, rows = np.random.default_rng(1), []
    for query in range(5):
        true = dice.normal(size=300)
        for name, depth in (("words", 100), ("vectors", 30)):
            seen = np.argsort(-(true + dice.normal(size=300)))[:depth]
            rows += [(query, name, f"d{i}", place) for place, i in enumerate(seen, 1)]
    found = set()
    for _ in range(8):
        query, name, item, rank = zip(*(rows[k] for k in dice.permutation(len(rows))), strict=True)
        p = Preferences.from_rows(list(query), list(name), list(item), rank=list(rank), unlisted="below")
        found.add(QualityWeightedFusion().choose_rule(p).name)
    assert len(found) == 1


def test_three_that_agree_outvote_two_random_experts():
    """What three similar experts share is more likely right than what two random ones do not."""

    def random(lists, dice):
        return dice.permutation(ITEMS).tolist()

    weights = weights_of(simulate({"a": 1.5, "b": 1.5, "c": 1.5}, random1=random, random2=random))
    assert max(weights["random1"], weights["random2"]) < 0.15 * min(weights[e] for e in "abc")


def test_order_evidence_is_the_mean_correlation_of_place_and_support():
    """The plain definition, list by list."""
    dice = np.random.default_rng(3)
    weight, queries = np.array([1.0, 0.5, 2.0, 0.0]), []
    for _ in range(5):
        rank = np.array([np.where(dice.random(9) < 0.6, dice.permutation(9) + 1.0, 0.0) for _ in range(4)])
        queries.append(QueryLists(np.arange(4), rank))
    evidence = measure_order_evidence(queries, weight)
    for expert in range(4):
        products, degrees = 0.0, 0
        for _, rank in queries:
            mine = np.flatnonzero(rank[expert])
            others = [e for e in range(4) if e != expert]
            support = [sum(weight[e] * (rank[e] > 0).sum() for e in others if rank[e, i] > 0) for i in mine]
            products += (len(mine) - 1) * np.corrcoef(-rank[expert, mine], support)[0, 1]
            degrees += len(mine) - 1
        assert evidence.agreement[expert] == pytest.approx(products / degrees, abs=1e-12)
        assert evidence.error[expert] == pytest.approx(degrees**-0.5)
    # support by part of a list, of the items that another expert with a weight lists
    for row, (query, expert) in enumerate(zip(evidence.query, evidence.expert, strict=True)):
        rank = queries[query].rank
        lengths = weight * (rank > 0).sum(axis=1)
        others, size = [e for e in range(4) if e != expert], (rank[expert] > 0).sum()
        sums, counts = np.zeros(3), np.zeros(3)
        for item in range(9):
            share = sum(lengths[e] for e in others if rank[e, item] > 0) / sum(lengths[e] for e in others)
            place = rank[expert, item]
            part = (
                2 if place == 0 else 0 if place <= max(0.2 * size, 1) else 1 if place > 0.5 * size else None
            )
            if share > 0 and part is not None:
                sums[part] += share
                counts[part] += 1
        assert evidence.support[row] == pytest.approx(sums, abs=1e-12)
        assert evidence.items[row].tolist() == counts.tolist()


def test_order_shares_give_the_benefit_of_the_doubt():
    shares = compute_order_shares(
        np.array([0.5, 0.5, 0.0, -0.5, 0.0]), np.array([0.02, 0.02, 0.02, 0.02, 0.5])
    )
    assert shares == pytest.approx([1.0, 1.0, 0.08, 0.0, 1.0])
    assert (
        compute_order_shares(np.array([0.1, -0.4]), np.array([0.1, 0.1])) == 1
    ).all()  # nobody is known to be right
    assert (compute_order_shares(np.zeros(2), np.full(2, np.inf)) == 1).all()


def simulate_bad_majority(change, seed=0):
    """Two of ten experts list the best twelve of forty items in the order they see; the lists of the others change."""
    dice, table = np.random.default_rng(seed), {}
    for query in range(60):
        lists = [np.argsort(np.arange(40) + dice.normal(0, 5, 40))[:12] for _ in range(10)]
        table[query] = {
            f"e{k}": [f"d{i:02d}" for i in (items if k < 2 else change(items, dice))]
            for k, items in enumerate(lists)
        }
    return table


def count_true_tops(consensus):
    """The mean number of the best five items among the first five."""
    best = {f"d{i:02d}" for i in range(5)}
    return np.mean([len(best & set(consensus.ranking(q)[:5])) for q in consensus.queries])


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "change",
    [lambda items, _: items[::-1], lambda items, dice: dice.permutation(items)],
    ids=["reversed", "random"],
)
def test_a_majority_of_reversed_or_random_partial_lists_is_not_followed(change, seed):
    p = Preferences.from_lists(simulate_bad_majority(change, seed))
    rule = QualityWeightedFusion().choose_rule(p)
    assert min(rule.weights["e0"], rule.weights["e1"]) > 3 * max(rule.weights[f"e{k}"] for k in range(2, 10))
    fused = make("quality_weighted").aggregate(p)
    assert count_true_tops(fused) > max(count_true_tops(make(m).aggregate(p)) for m in ("rrf", "rbc"))
    assert "the order of these lists counts for less than half: e2, e3" in " ".join(fused.diagnostics.notes)


def test_scores_are_points_of_which_the_order_counts_in_part():
    """The formula, item by item; contributions add up to the score."""
    table = simulate_bad_majority(lambda items, _: items[::-1])
    p = Preferences.from_lists(table)
    method = QualityWeightedFusion(points="rrf")
    estimate = method._estimate(p, np.ones(len(p.experts)))
    assert 0 == estimate.order.min() < estimate.order.max() == 1
    consensus, expected = method.aggregate(p), {}
    for code in range(10):
        items = table[7][f"e{code}"]
        points = np.array([1 / (60 + r) for r in range(1, len(items) + 1)])
        share = estimate.order[code]
        for item, own in zip(items, points, strict=True):
            part = estimate.weights[code] * (share * own + (1 - share) * points.mean())
            expected[item] = expected.get(item, 0.0) + part
    scores = consensus.to_dict()[7]
    assert scores == pytest.approx(expected, rel=1e-9)
    item = consensus.ranking(7)[2]
    assert sum(method.explain(p, 7, item).values()) == pytest.approx(scores[item], rel=1e-9)


def simulate_survey(experts, *, chosen=False, items=30, length=8, queries=1, seed=3):
    """Everybody ranks some items with noise: a random choice that was assigned, or the best ones."""
    dice = np.random.default_rng(seed)
    lists = {}
    for q in range(queries):
        for k in range(experts):
            seen = np.arange(items) + dice.normal(0, 3 + k % 5, items)
            some = np.argsort(seen)[:length] if chosen else dice.choice(items, length, replace=False)
            lists.setdefault(q, {})[f"e{k}"] = [f"d{i:02d}" for i in some[np.argsort(seen[some])]]
    return lists


def solve_effects(lists, weights, points, damping):
    """Damped least squares of value = level of the list + effect of the item, by the normal equations."""
    items = sorted({item for ranked in lists.values() for item in ranked})
    n, total = len(items), len(items) + len(lists)
    matrix, right = np.zeros((total, total)), np.zeros(total)
    for k, (expert, ranked) in enumerate(lists.items()):
        w = weights[expert]
        # the level of a list is the plain mean of its residuals, whatever its weight
        for place, item in enumerate(ranked):
            i = items.index(item)
            matrix[i, i] += w
            matrix[i, n + k] += w
            right[i] += w * points(place + 1)
            matrix[n + k, n + k] += 1
            matrix[n + k, i] += 1
            right[n + k] += points(place + 1)
    matrix[np.arange(n), np.arange(n)] += damping * np.mean([w for w in weights.values() if w > 0])
    return dict(zip(items, np.linalg.solve(matrix, right)[:n], strict=True))


def test_scores_of_items_that_were_assigned_are_effects_of_an_additive_model():
    """The normal equations, solved plainly; contributions add up to the score."""
    dice, lists = np.random.default_rng(0), simulate_survey(60, queries=6)
    for by in lists.values():
        by.update({f"e{k}": dice.permutation(by[f"e{k}"]).tolist() for k in range(10)})
    p = Preferences.from_lists(lists)
    method = QualityWeightedFusion(points="rrf")
    estimate = method._estimate(p, np.ones(60))
    assert estimate.effects is not None
    assert estimate.weights.min() < estimate.weights.max()
    weights = dict(zip(p.experts, estimate.weights.tolist(), strict=True))
    first = p.index.items[: p.index.sizes[0]]  # of the first survey
    totals = [sum(weights[e] for e, ranked in lists[0].items() if item in ranked) for item in first]
    spare = estimate.effects.divisor[: len(first)] - totals
    assert np.ptp(spare) < 1e-9 * spare.max()  # every item is damped alike
    damping = spare[0] / np.mean([w for w in weights.values() if w > 0])
    expected = solve_effects(lists[0], weights, lambda r: 1 / (60 + r), damping)
    consensus = method.aggregate(p)
    spread = np.std(list(expected.values()))
    assert consensus.to_dict()[0] == pytest.approx(expected, abs=1e-3 * spread)
    assert "items look assigned" in " ".join(consensus.diagnostics.notes)
    item = consensus.ranking(0)[2]
    assert sum(method.explain(p, 0, item).values()) == pytest.approx(consensus.to_dict()[0][item], rel=1e-9)


def test_no_rule_stands_for_the_model_of_assigned_items():
    p = Preferences.from_lists(simulate_survey(60, queries=3))
    with pytest.warns(PodiumWarning, match="look assigned, not chosen"):
        assert QualityWeightedFusion().choose_rule(p).name == "rbc"


def test_contributions_in_one_of_several_surveys():
    p = Preferences.from_lists(simulate_survey(60, queries=3))
    method, consensus = QualityWeightedFusion(), make("quality_weighted").aggregate(p)
    assert "items look assigned" in " ".join(consensus.diagnostics.notes)
    for query in range(3):
        item = consensus.ranking(query)[1]
        parts = method.explain(p, query, item)
        assert sum(parts.values()) == pytest.approx(consensus.to_dict()[query][item], rel=1e-9)


def test_damping_is_the_noise_in_units_of_the_variance_between_items():
    """Values with known variances: 4 about the effect of their item, 1 between items."""
    dice, items, listed = np.random.default_rng(1), 200, 20
    effect = dice.normal(size=items)
    effect = (effect - effect.mean()) / effect.std()
    lists = [dice.choice(items, listed, replace=False) for _ in range(1500)]
    item = np.concatenate(lists).astype(np.int32)
    value = effect[item] + 2 * dice.normal(size=len(item))
    starts = np.arange(0, len(item) + 1, listed)
    rows = ListValues(
        np.array([0, len(lists)]),
        np.array([0, items]),
        starts,
        np.arange(len(lists), dtype=np.int32),
        item,
        value,
    )
    found = fit_list_effects(rows, np.ones(len(lists)))
    by_item = np.bincount(item, found.weight[np.repeat(np.arange(len(lists)), listed)], items)
    damping = (found.divisor - by_item)[0] / found.weight[found.weight > 0].mean()
    assert damping == pytest.approx(4.0, rel=0.1)
    assert np.corrcoef(found.item, effect)[0, 1] > 0.97


def test_unreliable_experts_of_a_survey_lose_their_weight():
    """A third of 300 experts order their assigned items at random."""
    dice, lists = np.random.default_rng(2), {}
    for k in range(300):
        some = dice.choice(40, 10, replace=False)
        order = dice.permutation(some) if k % 3 == 0 else some[np.argsort(some + dice.normal(0, 4, 10))]
        lists[f"e{k}"] = [f"d{i:02d}" for i in order]
    estimate = QualityWeightedFusion()._estimate(Preferences.from_lists({"q": lists}), np.ones(300))
    assert estimate.effects is not None
    weight = dict(zip(Preferences.from_lists({"q": lists}).experts, estimate.weights, strict=True))
    bad = np.mean([weight[f"e{k}"] for k in range(0, 300, 3)])
    assert bad < 0.5 * np.mean([weight[f"e{k}"] for k in range(300) if k % 3])


def compare_plainly(lists, weights, by_vote):
    """By list, the preference of others for its first and its last fifth over all unlisted items, pair by pair."""
    table = []
    items = {item for ranked in lists.values() for item in ranked}
    for own, ranked in lists.items():
        row, end = [weights[own]], max(1, len(ranked) // 5)
        for part in (ranked[:end], ranked[-end:]):
            pairs = []
            for a, b in itertools.product(part, items - set(ranked)):
                votes = [
                    weights[other] * (1 if theirs.index(a) < theirs.index(b) else -1)
                    for other, theirs in lists.items()
                    if a in theirs and b in theirs
                ]
                pairs += [votes] if votes else []
            shares = [sum(votes) / sum(map(abs, votes)) for votes in pairs]
            both = [sum(map(abs, votes)) if by_vote else 1.0 for votes in pairs]
            row.append(np.average(shares, weights=both))
        table.append(row)
    return np.array(table)


@pytest.mark.parametrize("by_vote", [False, True])
def test_ends_of_lists_are_compared_with_unlisted_items_pair_by_pair(by_vote):
    lists = simulate_survey(12, items=15, length=10, seed=1)[0]
    weights = {f"e{k}": 0.5 + k for k in range(12)}
    rank = np.array(
        [[(f"d{i:02d}" in x) and x.index(f"d{i:02d}") + 1.0 for i in range(15)] for x in lists.values()]
    )
    table = compare_ends_with_unlisted(
        QueryLists(np.arange(12), rank), np.array(list(weights.values())), by_vote
    )
    assert table == pytest.approx(compare_plainly(lists, weights, by_vote))


def test_short_ballots_of_a_noisy_election_are_not_assigned():
    """Everybody's first three of ten, with the noise of a Plackett-Luce model."""
    found = []
    for seed in range(20):
        dice = np.random.default_rng(seed)
        value = 0.8 * dice.normal(size=10)
        ballots = [np.argsort(-(value + dice.gumbel(size=10)))[:3] for _ in range(60)]
        lists = [rank_lists(ballots, 10)]
        found.append(are_items_assigned(lists, np.ones(60)) or are_items_drawn(lists))
    assert np.mean(found) <= 0.1


@pytest.mark.parametrize("seed", range(4))
def test_assigned_items_are_distinguished_from_chosen_ones(seed):
    def judge(**more):
        lists = simulate_survey(seed=seed, **more)
        rank = [
            np.array(
                [
                    [(i in x) and x.index(i) + 1.0 for i in (f"d{k:02d}" for k in range(30))]
                    for x in by.values()
                ]
            )
            for by in lists.values()
        ]
        return are_items_assigned([QueryLists(np.arange(len(r)), r) for r in rank], np.ones(len(rank[0])))

    assert judge(experts=80)
    assert judge(experts=4, queries=60)
    assert not judge(experts=80, chosen=True)
    assert not judge(experts=4, queries=60, chosen=True)
    assert not judge(experts=9)


def rank_lists(lists, items):
    """Ranks by list and item, 0 where a list lacks an item."""
    return QueryLists(
        np.arange(len(lists)),
        np.array([[(i in ranked) and list(ranked).index(i) + 1.0 for i in range(items)] for ranked in lists]),
    )


@pytest.mark.parametrize("seed", range(3))
def test_drawn_items_are_distinguished_from_chosen_ones(seed):
    """200 experts list eight of 40 items: drawn (popular ones more often), the best ones, or those of their taste."""
    dice, items, experts = np.random.default_rng(seed), 40, 200
    value = dice.permutation(items)
    odds = np.exp(0.04 * value + dice.normal(0, 0.8, items))  # popularity goes with the value, but not only
    drawn, best, taste = [], [], []
    for k in range(experts):
        seen = value + dice.normal(0, 8, items)
        some = dice.choice(items, 8, replace=False, p=odds / odds.sum())
        drawn.append(some[np.argsort(-seen[some])])
        best.append(np.argsort(-seen)[:8])
        taste.append(np.argsort(-(seen + 15 * (np.arange(items) % 2 == k % 2)))[:8])
    found = {
        name: measure_listing([rank_lists(x, items)])
        for name, x in (("drawn", drawn), ("best", best), ("taste", taste))
    }
    assert found["drawn"].overlap == pytest.approx(1.0, abs=0.1)
    assert found["drawn"].explained < 0.75 < found["best"].explained
    assert found["taste"].overlap > 1.3
    assert are_items_drawn([rank_lists(drawn, items)])
    assert not are_items_drawn([rank_lists(best, items)])
    assert not are_items_drawn([rank_lists(taste, items)])
    assert measure_listing([rank_lists(drawn[:49], items)]) is None
    p = Preferences.from_lists({"q": {f"e{k}": [f"d{i:02d}" for i in x] for k, x in enumerate(drawn)}})
    order = [int(i[1:]) for i in make("quality_weighted").aggregate(p).ranking("q")]
    assert np.corrcoef(value[order], -np.arange(items))[0, 1] > 0.9


def test_overlaps_of_drawn_lists_have_the_variance_of_a_simulation():
    """Equal sizes and frequencies: the number of common items is hypergeometric."""
    dice = np.random.default_rng(0)
    drawn = [dice.choice(60, 12, replace=False) for _ in range(400)]
    assert measure_listing([rank_lists(drawn, 60)]).overlap == pytest.approx(1.0, abs=0.03)


def test_assigned_items_are_ranked_by_what_is_said_of_them():
    """Everybody ranks ten assigned items of forty, some of which are assigned more often, in the true order."""
    dice, share = np.random.default_rng(5), np.linspace(1, 5, 40)
    lists = {}
    for k in range(400):
        assigned = dice.choice(40, 10, replace=False, p=share / share.sum())
        lists[f"e{k}"] = [f"d{i:02d}" for i in assigned[np.argsort(assigned + dice.normal(0, 4, 10))]]
    p = Preferences.from_lists({"survey": lists})
    correlation = {}
    for unlisted in ("unknown", "below"):
        order = make("quality_weighted").aggregate(p.with_unlisted(unlisted)).ranking("survey")
        correlation[unlisted] = np.corrcoef([int(item[1:]) for item in order], np.arange(40))[0, 1]
    assert correlation["unknown"] > 0.95
    assert correlation["below"] < 0.5


def test_an_item_of_one_list_does_not_win_by_its_mean():
    lists = {f"e{k}": [f"d{i}" for i in range(8)] for k in range(9)}
    lists["odd"] = ["single", "d0", "d1"]
    p = Preferences.from_lists(dict.fromkeys(range(5), lists))
    assert make("quality_weighted").aggregate(p).ranking(0)[0] == "d0"


def test_one_flood_of_random_items_does_not_decide():
    p = simulate(
        GOOD,
        depth=8,
        flood=lambda lists, dice: dice.permutation(ITEMS + [f"x{i}" for i in range(80)]).tolist(),
    )
    weights = weights_of(p)
    assert weights["flood"] < 0.1 * min(weights[e] for e in GOOD)


def test_thousands_of_experts_are_estimated_from_many_queries():
    """900 experts, a third of them in random order: the cells once sufficed for six queries."""
    dice = np.random.default_rng(0)
    experts, queries, items, depth = 900, 60, 60, 20
    noise = np.where(np.arange(experts) % 3 == 0, 1e6, dice.uniform(3, 30, experts))
    listed = [
        np.argsort(np.arange(items) + noise[:, None] * dice.standard_normal((experts, items)), axis=1)[
            :, :depth
        ]
        for _ in range(queries)
    ]
    p = Preferences.from_rows(
        np.repeat(np.arange(queries), experts * depth),
        np.tile(np.repeat(np.arange(experts), depth), queries),
        np.concatenate(listed).ravel(),
        rank=np.tile(np.arange(1, depth + 1), experts * queries),
    )
    estimate = QualityWeightedFusion()._estimate(p, np.ones(experts))
    assert estimate.queries >= 30
    good = noise < 1e6
    assert estimate.weights[~good].sum() < 0.05 * estimate.weights.sum()
    assert np.corrcoef(estimate.weights[good], -noise[good])[0, 1] > 0.8


def test_a_panel_gives_nearly_the_weights_of_all_experts(monkeypatch):
    def copy(lists, dice):
        return lists.setdefault("spam0", dice.permutation(ITEMS).tolist())

    noise = {f"e{k:02d}": 3.0 + k for k in range(20)}
    p = simulate(noise, queries=80, **{f"spam{i}": copy for i in range(10)})
    whole = weights_of(p)
    monkeypatch.setattr(quality_fusion, "PANEL", 12)
    monkeypatch.setattr(quality_fusion, "MOST_CELLS", 80 * 26 * 32)  # 26 of 30 lists of a query
    monkeypatch.setattr(quality_fusion, "MANY_QUERIES", 80)
    part = weights_of(p)
    assert part != whole
    assert np.corrcoef([part[e] for e in noise], [whole[e] for e in noise])[0, 1] > 0.95
    # copies outside the panel are recognized by those inside
    assert sum(part[f"spam{i}"] for i in range(10)) < 0.2 * sum(part[e] for e in noise)
    turned = p.select(list(reversed(p.queries.tolist())))
    assert weights_of(turned) == pytest.approx(part)


def test_one_query_is_singular():
    one = Preferences.from_lists({"q": {"a": list("wxyz"), "b": list("wxzy"), "c": list("xwyz")}})
    assert make("quality_weighted").aggregate(one).diagnostics.notes[0].endswith("estimated from 1 query")
