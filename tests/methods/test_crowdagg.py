"""CrowdAgg and net votes: definition, optimality, quality of annotators, labels, odd input, published data."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from podium import CrowdAgg, Labels, NetVotes, Preferences, load, make, save
from podium.core.errors import InputError, ParameterError
from podium.core.params import parameters
from podium.data.preferences import Form
from podium.evaluate import evaluate, judged_only
from podium.methods.crowd.annotator_contests import collect_annotator_contests
from podium.methods.crowd.pair_agreement import count_agreeing_pairs
from podium.testing import crowds, strategies
from podium.testing.checks import check_all
from podium.testing.samples import sample_rows
from podium_papers import paper_datasets
from reference import rank_laws as plain

few = settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))


def beaten(preferences, query, level=None):
    """By answer (a list, or the votes of an expert): expert, (winner, loser) pairs, chances against the unjudged,
    and the number of items of a list (none for votes). With the level of every item, the share of items below it,
    votes count by the levels of the opponents (Colley's rule)."""
    one = preferences.select([query])
    items, lists, votes = one.index.items.tolist(), one.lists, one.comparisons
    ratings = [] if lists.score is None else lists.score.tolist()
    for k in range(len(lists)):
        rows = range(lists.starts[k], lists.starts[k + 1])
        rank = {items[lists.item[r]]: int(lists.rank[r]) for r in rows}
        pairs = {(a, b) for a in rank for b in rank if rank[a] < rank[b]}
        n = len(rank)
        chance = {
            a: (sum(v > rank[a] for v in rank.values()) + (sum(v == rank[a] for v in rank.values()) + 1) / 2)
            / (n + 1)
            for a in rank
        }
        if ratings:
            own = {items[lists.item[r]]: ratings[r] for r in rows}
            chance = {a: sum((v < own[a]) + 0.5 * (v == own[a]) for v in ratings) / len(ratings) for a in own}
        if one.unlisted == "below" and rank:
            pairs |= {(a, b) for a in rank for b in items if b not in rank}
            chance = dict.fromkeys(items, 0.5)
        yield int(lists.expert[k]), pairs, chance, n
    for expert in np.unique(votes.expert).tolist():
        net: dict = {}
        for r in np.flatnonzero(votes.expert == expert).tolist():
            a, b = items[votes.winner[r]], items[votes.loser[r]]
            w = 0.0 if votes.tie[r] else votes.weight[r]
            net[a, b] = net.get((a, b), 0.0) + w
            net[b, a] = net.get((b, a), 0.0) - w
        pairs = {p for p, w in net.items() if w > 0}
        judged = {i for p in net for i in p}
        chance = {i: (sum(a == i for a, _ in pairs) + 1) / (sum(i in p for p in pairs) + 2) for i in judged}
        if level is not None:
            for i in judged:
                met = [b for a, b in net if a == i]
                lead = sum(a == i for a, _ in pairs) - sum(b == i for _, b in pairs)
                chance[i] = min(1.0, max(0.0, (1 + lead / 2 + sum(level[b] for b in met)) / (2 + len(met))))
        yield expert, pairs, chance, None


def levels_of(method, preferences, query):
    """By item the share of the query below it, tied ones and itself half, in the order before the last one; or none."""
    if method.unjudged != "placed":
        return None
    items, ones = preferences.index.items[preferences.index.slots(query)], np.ones(len(preferences.experts))
    rounds = method._scores(preferences, ones).iterations
    if rounds == 0:
        return dict.fromkeys(items, 0.5)
    earlier = replace(method, max_iterations=max(rounds - 1, 1))._scores(preferences, ones)
    value = dict(zip(items, np.round(earlier.scores[preferences.index.slots(query)], 9), strict=True))
    return {
        i: sum((value[j] < value[i]) + (value[j] == value[i]) / 2 for j in items) / len(items) for i in items
    }


def by_definition(preferences, query, method, eta, level=None, only=None):
    """Sums of expected discounts, and of the even ones, item by item; of all answers, or of one."""
    items = preferences.index.items[preferences.index.slots(query)]
    n = len(items)
    discount = plain.discounts(method.measure, n, method.persistence)
    even = plain.expected([0.5] * (n - 1), discount)
    total, base = dict.fromkeys(items, 0.0), 0.0
    for number, (expert, pairs, chance, _) in enumerate(beaten(preferences, query, level)):
        if only not in (None, number):
            continue
        by = n if method.scale == "all" else max(len(chance), 1)
        known = dict.fromkeys(chance, 0.5) if method.unjudged == "even" else chance
        table = plain.tilted(plain.contests(items, pairs, method.pair, by, known), eta[expert])
        base += even
        for i in items:
            # items that the annotator did not judge get what an item nothing is known of gets
            win = [table[i, j] if i in known else 0.5 for j in items if j != i]
            total[i] += plain.expected(win, discount)
    return total, base


VARIANTS = [
    "crowdagg(quality=none, steps=full)",
    "crowdagg(quality=none, unjudged=typical)",
    "crowdagg(quality=none, unjudged=even)",
    "crowdagg(quality=none, unjudged=even, scale=all, measure=rbp)",
    "crowdagg(quality=none, pair=difference, steps=full)",
    "crowdagg(quality=none, pair=difference, scale=all, steps=full)",
    "crowdagg(quality=none, pair=printed, scale=all, measure=rbp, persistence=0.5, steps=full)",
]


@pytest.mark.parametrize("spec", VARIANTS)
@pytest.mark.parametrize("form", list(Form))
def test_scores_are_those_of_the_definition(form, spec):
    method = make(spec)
    for seed in range(2):
        preferences = sample_rows(form, seed).to_preferences()
        found = method._scores(preferences, np.ones(len(preferences.experts))).scores
        for query in preferences.queries:
            level = levels_of(method, preferences, query)
            total, base = by_definition(preferences, query, method, dict.fromkeys(range(9), 1.0), level)
            want = [total[i] - base for i in preferences.index.items[preferences.index.slots(query)]]
            np.testing.assert_allclose(found[preferences.index.slots(query)], want, rtol=1e-7, atol=1e-11)


@pytest.mark.parametrize("decided_by", ["others", "all"])
@pytest.mark.parametrize("evidence", ["judgement", "pair"])
@pytest.mark.parametrize("quality", ["query", "pooled"])
@pytest.mark.parametrize("form", list(Form))
def test_quality_is_a_fixed_point(form, quality, evidence, decided_by):
    """Scores come from the qualities, and qualities from the order of the scores, with and without an answer."""
    method = CrowdAgg(
        quality=quality, prior_agree=3, prior_disagree=1, evidence=evidence, decided_by=decided_by
    )
    for seed in itertools.count(5):  # a few votes may lead to a cycle, which has no fixed point
        preferences = sample_rows(form, seed).to_preferences()
        found = method._scores(preferences, np.ones(len(preferences.experts)))
        if found.converged:
            break
    assert form == Form.COMPARISON or seed == 5
    right, count = np.zeros((2, len(preferences.experts)))
    if quality == "query":
        return  # no quality by query in the result
    for query in preferences.queries:
        scores = found.scores[preferences.index.slots(query)]
        items = preferences.index.items[preferences.index.slots(query)]
        level = levels_of(method, preferences, query)
        total, base = by_definition(preferences, query, method, found.expert_weights, level)
        np.testing.assert_allclose(scores, [total[i] - base for i in items], rtol=1e-7, atol=1e-9)
        whole = dict(zip(items, np.round(scores, 9), strict=True))
        for number, (expert, pairs, _, length) in enumerate(beaten(preferences, query, level)):
            rest = dict(whole)
            if decided_by == "others":
                own, even = by_definition(
                    preferences, query, method, found.expert_weights, level, only=number
                )
                rest = {i: round(float(scores[k] - own[i] + even), 9) for k, i in enumerate(items)}
            signs = [
                {(1 if d > 0 else -1 if d < 0 else 0) for d in (v[a] - v[b] for v in (whole, rest))}
                for a, b in pairs
            ]
            factor = 1.0
            if evidence == "judgement" and length is not None:
                factor = min(1.0, (length - 1) / max(len(pairs), 1))
            right[expert] += factor * sum(1.0 if s == {1} else 0.0 if s == {-1} else 0.5 for s in signs)
            count[expert] += factor * len(pairs)
    np.testing.assert_allclose(found.expert_weights, (right + 3) / (count + 4), rtol=1e-9)


def test_an_annotator_does_not_refute_itself():
    """Eight agree with each other; the ninth contradicts them on two items and is alone on the others, where it is
    neither confirmed nor refuted: its quality is that of the two items and the prior."""
    rows = [("q", f"annotator {k}", i, float(i == "a")) for k in range(8) for i in ("a", "b")]
    rows += [("q", "eve", i, s) for i, s in (("b", 4.0), ("c", 3.0), ("d", 2.0), ("e", 1.0), ("a", 0.0))]
    query, expert, item, score = zip(*rows, strict=True)
    preferences = Preferences.from_rows(query, expert, item, score=score)
    method = CrowdAgg(evidence="pair", prior_agree=0, prior_disagree=0)
    found = dict(zip(preferences.experts.tolist(), method.aggregate(preferences).expert_weights, strict=True))
    alone = CrowdAgg(evidence="pair", prior_agree=0, prior_disagree=0, decided_by="all").aggregate(
        preferences
    )
    assert found["annotator 0"] == 1.0
    assert found["eve"] > dict(zip(preferences.experts.tolist(), alone.expert_weights, strict=True))["eve"]


def test_votes_count_by_their_opponents():
    """A win over the best item counts more than one over the worst, and so does a tie."""
    chain = [("w", a, b) for a, b in itertools.combinations("abcdef", 2)]
    for tie in (False, True):
        votes = [*chain, ("x", "n", "a"), ("y", "m", "f")]
        expert, first, second = zip(*votes, strict=True)
        ties = [False] * len(chain) + [tie, tie]
        p = Preferences.from_comparisons(["q"] * len(votes), expert, first, second, tie=ties)
        scores = CrowdAgg(quality="none").aggregate(p).to_dict()["q"]
        assert scores["n"] > scores["m"]
        same = CrowdAgg(quality="none", unjudged="typical").aggregate(p).to_dict()["q"]
        assert same["n"] == pytest.approx(same["m"])


# -- the optimum ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("measure", ["ndcg", "rbp"])
@few
@given(preferences=strategies.preferences())
def test_no_assignment_of_items_to_places_does_better(measure, preferences):
    """The Hungarian method on the expected measure of the paper: gain of the consensus place x expected discount."""
    from scipy.optimize import linear_sum_assignment

    method = CrowdAgg(quality="none", measure=measure, steps="full")
    consensus = method.aggregate(preferences)
    silent = preferences.unranked_slots(np.ones(len(preferences.experts), np.bool_))
    for query in preferences.queries:
        here = preferences.index.slots(query)
        if silent is not None and silent[here].any():
            continue  # put last by rule
        items = preferences.index.items[here]
        n = len(items)
        level = levels_of(method, preferences, query)
        total, _ = by_definition(preferences, query, method, dict.fromkeys(range(99), 1.0), level)
        kappa = [(n - place) / n for place in range(1, n + 1)]
        gain = np.array([2**k - 1 for k in kappa] if measure == "ndcg" else kappa)
        profit = np.outer([total[i] for i in items], gain)
        rows, columns = linear_sum_assignment(profit, maximize=True)
        best = profit[rows, columns].sum()
        place = {i: k for k, i in enumerate(consensus.ranking(query))}
        got = sum(profit[k, place[i]] for k, i in enumerate(items))
        assert got == pytest.approx(best, rel=1e-10)


@pytest.mark.parametrize("measure", ["ndcg", "rbp"])
@pytest.mark.parametrize("form", list(Form))
def test_the_objective_is_the_expected_measure_above_no_evidence(form, measure):
    preferences = sample_rows(form, 6).to_preferences()
    method = CrowdAgg(quality="none", measure=measure)
    scores = method._scores(preferences, np.ones(len(preferences.experts)))
    want = 0.0
    for query in preferences.queries:
        level = levels_of(method, preferences, query)
        total, base = by_definition(preferences, query, method, dict.fromkeys(range(9), 1.0), level)
        n = len(total)
        for place, value in enumerate(sorted(total.values(), reverse=True), 1):
            share = (n - place) / n
            want += (2**share - 1 if measure == "ndcg" else share) * (value - base)
    assert scores.objective == pytest.approx(want, rel=1e-7)
    assert method.aggregate(preferences).diagnostics.objective == scores.objective


@pytest.mark.parametrize("spec", [*VARIANTS, "crowdagg"])
@pytest.mark.parametrize("form", list(Form))
def test_rank_distributions_are_those_of_the_contests(form, spec):
    """Each contest by its definition, and the rank by adding one contest after the other."""
    method = make(spec)
    preferences = sample_rows(form, 4).to_preferences()
    outcome = method._scores(preferences, np.ones(len(preferences.experts)))
    quality = outcome.expert_weights
    for query in preferences.queries:
        ranks = method.compute_rank_distributions(preferences, query)
        assert list(ranks.items) == list(preferences.index.items[preferences.index.slots(query)])
        np.testing.assert_allclose(ranks.probabilities.sum(axis=2), 1.0)
        answers = list(beaten(preferences, query, levels_of(method, preferences, query)))
        assert list(ranks.annotators) == [preferences.experts[e] for e, *_ in answers]
        for (expert, pairs, chance, _), laws in zip(answers, ranks.probabilities, strict=True):
            by = len(ranks.items) if method.scale == "all" else max(len(chance), 1)
            known = dict.fromkeys(chance, 0.5) if method.unjudged == "even" else chance
            eta = 1.0 if method.quality == "none" else quality[expert]
            table = plain.tilted(plain.contests(ranks.items, pairs, method.pair, by, known), eta)
            for item, law in zip(ranks.items, laws, strict=True):
                want = np.array([1.0])
                for other in ranks.items:
                    if other != item:
                        win = table[item, other] if item in known else 0.5
                        want = np.append(want * win, 0.0) + np.append(0.0, want * (1 - win))
                np.testing.assert_allclose(law, want, atol=1e-12)


def test_pair_probabilities_of_a_subclass():
    """Contests by the definition of the subclass: the square root of the fraction of items beaten."""

    class Cautious(CrowdAgg):
        def compute_win_probabilities(self, wins, opponent_wins, items):
            return 0.5 + (np.sqrt(wins / items) - np.sqrt(opponent_wins / items)) / 2

    method = Cautious(quality="none", unjudged="even")
    for form in (Form.RATING, Form.RANKING, Form.COMPARISON):
        preferences = sample_rows(form, 3).to_preferences()
        for query in preferences.queries:
            ranks = method.compute_rank_distributions(preferences, query)
            for (_, pairs, chance, _), laws in zip(
                beaten(preferences, query), ranks.probabilities, strict=True
            ):
                wins = {i: sum(a == i for a, _ in pairs) for i in ranks.items}
                for item, law in zip(ranks.items, laws, strict=True):
                    want = np.array([1.0])
                    for other in ranks.items:
                        if other == item:
                            continue
                        met = (item, other) in pairs or (other, item) in pairs
                        gap = (
                            math.sqrt(wins[item] / len(chance)) - math.sqrt(wins[other] / len(chance))
                            if met
                            else 0
                        )
                        want = np.append(want * (0.5 + gap / 2), 0.0) + np.append(0.0, want * (0.5 - gap / 2))
                    np.testing.assert_allclose(law, want, atol=1e-12)


def test_inherited_pair_probabilities_are_those_of_a_difference():
    """The hook with the formula of pair=difference gives the same answer as the kernel for it."""

    class Same(CrowdAgg):
        def compute_win_probabilities(self, wins, opponent_wins, items):
            return super().compute_win_probabilities(wins, opponent_wins, items)

    for form in (Form.RATING, Form.RANKING, Form.COMPARISON):
        preferences = sample_rows(form, 5).to_preferences()
        found, want = (m.aggregate(preferences) for m in (Same(), CrowdAgg(pair="difference")))
        np.testing.assert_allclose(found.scores, want.scores, atol=1e-9)


def test_pair_probabilities_that_contradict_themselves_are_refused():
    class Wrong(CrowdAgg):
        def compute_win_probabilities(self, wins, opponent_wins, items):
            return np.full(len(wins), 0.9)

    with pytest.raises(ParameterError, match="sum to 1 over the two sides"):
        Wrong().aggregate(sample_rows(Form.RATING, 3).to_preferences())


@pytest.mark.parametrize("measure", ["ndcg", "rbp"])
def test_shrinking_steps_settle_where_full_steps_do_not(measure):
    """Near a settled answer, the qualities are those estimated from it, up to pairs that are nearly tied in it."""
    settled = wandering = 0
    for seed in range(12):
        sample = crowds.simulate(
            {f"a{k}": 0.55 + 0.03 * k for k in range(12)}, items=20, judgements=30, seed=seed
        )
        full = CrowdAgg(steps="full", measure=measure).aggregate(sample.preferences)
        found = CrowdAgg(measure=measure).aggregate(sample.preferences)
        assert found.diagnostics.converged
        if full.diagnostics.converged:  # a stable order has one answer, whatever the steps
            settled += 1
            np.testing.assert_allclose(found.expert_weights, full.expert_weights, atol=0.05)
        else:
            wandering += 1
    assert settled
    assert wandering


def test_swaps_towards_the_consensus_never_lower_the_objective():
    """At fixed quality the objective rises along every adjacent swap of a pair that is out of order."""
    preferences = sample_rows(Form.RATING, 1).to_preferences()
    method = CrowdAgg(quality="none")
    total, _ = by_definition(preferences, "q1", method, dict.fromkeys(range(9), 1.0))
    order = method.aggregate(preferences).ranking("q1")[::-1]
    gain = [2 ** ((len(order) - r) / len(order)) - 1 for r in range(1, len(order) + 1)]
    values = [math.fsum(g * total[i] for g, i in zip(gain, order, strict=True))]
    for _ in order:
        for k in range(len(order) - 1):
            if total[order[k]] < total[order[k + 1]]:
                order[k], order[k + 1] = order[k + 1], order[k]
                values.append(math.fsum(g * total[i] for g, i in zip(gain, order, strict=True)))
    assert all(b >= a - 1e-12 for a, b in itertools.pairwise(values))
    assert len(values) > 3


def test_any_discount():
    """The named measures given as plain numbers give the same order and scores."""
    for form in Form:
        preferences = sample_rows(form, 2).to_preferences()
        for measure in ("ndcg", "rbp"):
            named = CrowdAgg(measure=measure).aggregate(preferences)
            given_ = CrowdAgg(discount=plain.discounts(measure, 50)).aggregate(preferences)
            np.testing.assert_allclose(given_.scores, named.scores, rtol=1e-8, atol=1e-10)
            assert given_.order.tolist() == named.order.tolist()


def test_a_short_discount_ends_in_zeros():
    preferences = sample_rows(Form.RATING, 3).to_preferences()
    short = CrowdAgg(discount=[1.0, 0.5], quality="none").aggregate(preferences)
    long = CrowdAgg(discount=[1.0, 0.5] + [0.0] * 20, quality="none").aggregate(preferences)
    assert short.scores.tobytes() == long.scores.tobytes()
    assert make(repr(CrowdAgg(discount=[1.0, 0.5]))).discount == [1.0, 0.5]
    for bad in ([], "ab", [1.0, math.nan], ["a"], 3):
        with pytest.raises(ParameterError, match="discount"):
            CrowdAgg(discount=bad)


def test_a_loss_of_a_subclass():
    """The hook with given discounts is the parameter; one by the number of items is the mean rank."""

    class Given(CrowdAgg):
        def compute_discounts(self, items):
            return [1.0, 0.5]

    class MeanRank(CrowdAgg):
        def compute_discounts(self, items):
            return [-float(rank) for rank in range(1, items + 1)]

    preferences = sample_rows(Form.RATING, 3).to_preferences()
    given_, want = (m.aggregate(preferences) for m in (Given(), CrowdAgg(discount=[1.0, 0.5])))
    assert given_.scores.tobytes() == want.scores.tobytes()
    assert given_.diagnostics.objective == want.diagnostics.objective
    found = MeanRank(quality="none").aggregate(preferences)
    for query in preferences.queries:
        ranks = MeanRank(quality="none").compute_rank_distributions(preferences, query)
        size = len(ranks.items)
        mean = (ranks.probabilities @ np.arange(1, size + 1) - (size + 1) / 2).sum(axis=0)
        np.testing.assert_allclose(found.scores[preferences.index.slots(query)], -mean, atol=1e-9)


def test_a_loss_that_is_not_finite_is_refused():
    class Wrong(CrowdAgg):
        def compute_discounts(self, items):
            return [math.nan] * items

    with pytest.raises(ParameterError, match="finite numbers"):
        Wrong().aggregate(sample_rows(Form.RATING, 3).to_preferences())


def test_the_list_of_methods_says_what_a_discount_is():
    [discount] = [p for p in parameters(CrowdAgg) if p.name == "discount"]
    assert discount.describe() == "list of numbers"
    assert "one number per rank" in discount.help


# -- quality -------------------------------------------------------------------------------------------------------


def crowd(seed, queries=12, items=20, each=8, accuracy=(0.9, 0.9, 0.9, 0.8, 0.8, 0.5, 0.5, 0.1)):
    """Binary ratings of annotators that are right with some probability, and the truth."""
    rng = np.random.default_rng(seed)
    rows, grades = [], {}
    for q in range(queries):
        truth = rng.permutation(np.arange(items) % 2)
        grades[q] = dict(enumerate(truth.tolist()))
        for e, right in enumerate(accuracy):
            for i in rng.choice(items, each, replace=False).tolist():
                rows.append((q, e, i, float(truth[i] if rng.random() < right else 1 - truth[i])))
    q, e, i, score = zip(*rows, strict=True)
    return Preferences.from_rows(q, e, i, score=score), Labels.from_dict(grades), np.array(accuracy)


def pair_accuracy(preferences, labels):
    """Agreement of every expert with the labels, on pairs of different grades."""
    answers = collect_annotator_contests(
        preferences, np.ones(len(preferences.experts)), "vote", "all", "even"
    )
    grades = labels.align(preferences.index)
    agree, against, _ = count_agreeing_pairs(preferences, answers, (2 - grades).astype(np.int64))
    agree, against = (np.bincount(answers.expert, weights=n) for n in (agree, against))
    return agree / (agree + against)


@pytest.mark.parametrize("measure", ["ndcg", "rbp"])
def test_good_random_and_malicious_annotators_are_told_apart(measure):
    """Estimates are agreements over all pairs that an annotator orders, so one who is right in p of judgements lies
    below p; what must hold is their order and on which side of 1/2 they are."""
    for seed in range(3):
        preferences, labels, accuracy = crowd(seed)
        method = CrowdAgg(measure=measure, prior_agree=3, prior_disagree=1)
        found = method.aggregate(preferences)
        eta = np.asarray(found.expert_weights)
        assert np.corrcoef(eta, pair_accuracy(preferences, labels))[0, 1] > 0.9
        assert eta[accuracy >= 0.8].min() > eta[accuracy == 0.5].max()
        assert eta[accuracy == 0.1].max() < 0.5
        assert eta[accuracy == 0.5].min() > eta[accuracy == 0.1].max()
        with_, without = (
            evaluate(m.aggregate(preferences), labels, "map").mean()["map"]
            for m in (method, CrowdAgg(measure=measure, quality="none"))
        )
        assert with_ >= without


def test_labels_move_the_estimates():
    """Four who copy the malicious one outvote three; labels of other queries put that right."""
    preferences, labels, accuracy = crowd(7, accuracy=(0.95, 0.95, 0.95, 0.05, 0.05, 0.05, 0.05))
    known, rest = preferences.select(range(8)), preferences.select(range(8, 12))
    alone = CrowdAgg().aggregate(rest)
    taught = CrowdAgg().fit(known, labels)
    found = taught.aggregate(rest)
    assert evaluate(alone, labels, "map").mean()["map"] < 0.6
    assert evaluate(found, labels, "map").mean()["map"] > 0.9
    eta = np.asarray(found.expert_weights)
    assert eta[accuracy > 0.5].min() > 0.6 > 0.4 > eta[accuracy < 0.5].max()
    forgotten = taught.fit(known).aggregate(rest)
    assert forgotten.scores.tobytes() == alone.scores.tobytes()


def test_labels_and_strangers(tmp_path):
    """Annotators that labels say nothing of are estimated; what was learned can be saved."""
    preferences, labels, _ = crowd(8)
    taught = CrowdAgg().fit(preferences.select(range(4)).with_experts([0, 1]), labels)
    assert set(taught.gold_) == {0, 1}
    found = taught.aggregate(preferences)
    assert len(found.expert_weights) == 8
    save(taught, tmp_path / "crowd.podium")
    assert load(tmp_path / "crowd.podium").aggregate(preferences).scores.tobytes() == found.scores.tobytes()
    flat = Labels(preferences.index, np.ones(len(preferences.index.items)))
    with pytest.raises(InputError, match="different grades"):
        CrowdAgg().fit(preferences, flat)


def test_gold_pairs_of_one_grade_say_nothing():
    preferences = Preferences.from_lists({"q": {"ann": {"a": 1, "b": 1, "c": 0}}})
    taught = CrowdAgg().fit(preferences, Labels.from_dict({"q": {"a": 1, "b": 0, "c": 0}}))
    assert taught.gold_ == {
        "ann": [1.0, 1.0]
    }  # a before c is right; b and c have one grade; a and b are not ordered


@pytest.mark.parametrize("form", ["pairs", "ratings"])
def test_a_consistent_minority_does_not_reverse_the_consensus(form):
    """A third of the annotators always gives the opposite of the truth, the others are right in 70 %."""
    quality = crowds.annotators(good=40, malicious=20, best=0.7, worst=0.0)
    for seed in range(3):
        sample = crowds.simulate(quality, form=form, items=16, judgements=16, levels=2, seed=seed)
        right = [
            evaluate(CrowdAgg(reversal=check).aggregate(sample.preferences), sample.labels, "pairs").mean()[
                "pairs"
            ]
            for check in (True, False)
        ]
        assert right[0] >= 0.85
        assert right[1] < 0.15
        assert "so it was reversed" in CrowdAgg().aggregate(sample.preferences).diagnostics.notes[0]


def test_a_cycle_of_orders_is_detected_and_reported():
    """The published estimates, brute force: random small crowds until an order other than the last one returns."""
    published = (
        "pair=difference, unjudged=even, scale=all, quality=query, decided_by=all, steps=full, "
        "prior_agree=0, prior_disagree=0"
    )
    cycles = 0
    for seed in range(150):
        rng = np.random.default_rng(seed)
        votes = [(e, *rng.choice(6, 2, replace=False).tolist()) for e in range(6) for _ in range(5)]
        expert, winner, loser = zip(*votes, strict=True)
        p = Preferences.from_comparisons(["q"] * len(votes), expert, winner, loser)
        notes = make(f"crowdagg({published})").aggregate(p).diagnostics
        if notes.converged:
            continue
        length = int(notes.notes[0].split("cycles through ")[1].split()[0])
        orders = [
            make(
                f"crowdagg({published}, max_iterations={n})"
                if n
                else "crowdagg(pair=difference, unjudged=even, scale=all, quality=none)"
            )
            ._scores(p, np.ones(6))
            .scores
            for n in range(notes.iterations - length, notes.iterations + 1)
        ]
        ranks = [tuple(np.argsort(np.argsort(np.round(-o, 9)))) for o in orders]
        assert ranks[0] == ranks[-1]
        assert len(set(ranks)) == length > 1
        cycles += 1
    assert cycles


def test_too_few_rounds_are_reported():
    preferences, _, _ = crowd(3)
    found = CrowdAgg(max_iterations=1).aggregate(preferences).diagnostics
    assert not found.converged
    assert "did not converge: stopped after 1 estimates" in found.notes[0]
    assert CrowdAgg().aggregate(preferences).diagnostics.converged


# -- odd input -----------------------------------------------------------------------------------------------------


def test_equal_ratings_one_judgement_and_contradictions():
    equal = Preferences.from_lists({"q": {"ann": dict.fromkeys("abc", 1), "bob": {"b": 1}}})
    assert all(r.tied for r in CrowdAgg().aggregate(equal)["q"])
    one = Preferences.from_lists({"q": {"ann": {"a": 1}, "bob": {"b": 0}}})
    assert CrowdAgg().aggregate(one).ranking("q") == ["a", "b"]
    assert all(r.tied for r in CrowdAgg(unjudged="even").aggregate(one)["q"])
    against = Preferences.from_comparisons(["q"] * 2, ["ann"] * 2, ["a", "b"], ["b", "a"])
    assert all(r.tied for r in CrowdAgg().aggregate(against)["q"])
    circle = Preferences.from_comparisons(["q"] * 3, ["ann"] * 3, list("abc"), list("bca"))
    assert all(r.tied for r in CrowdAgg().aggregate(circle)["q"])


def test_an_annotator_who_votes_twice_on_a_pair_counts_once():
    once = Preferences.from_comparisons(["q"] * 2, [1, 2], ["a", "c"], ["b", "a"])
    twice = Preferences.from_comparisons(["q"] * 4, [1, 1, 1, 2], ["a", "a", "b", "c"], ["b", "b", "a", "a"])
    assert CrowdAgg().aggregate(once).scores.tobytes() == CrowdAgg().aggregate(twice).scores.tobytes()


def test_one_voice_moves_items_whatever_the_size_of_the_query():
    """With 5,000 items and one judgement of two, the rest stays tied and nothing drowns in rounding."""
    items = [f"i{k:04}" for k in range(5_000)]
    p = Preferences.from_rows(
        ["q"] * 2, ["ann"] * 2, ["i0003", "i0001"], score=[1, 0], candidates=(["q"] * len(items), items)
    )
    for spec in ("crowdagg", "crowdagg(unjudged=even, scale=all)", "crowdagg(measure=rbp)"):
        scores = make(spec)._scores(p, np.ones(1)).scores
        assert scores[3] > 0 > scores[1]
        assert (np.delete(scores, [1, 3]) == 0).all()


def test_many_annotators_on_many_items():
    """5,000 items, 10,000 annotators with ten judgements each."""
    rng = np.random.default_rng(0)
    item = np.concatenate([rng.choice(5_000, 10, replace=False) for _ in range(10_000)])
    truth = rng.random(5_000)
    score = (rng.random(len(item)) < truth[item]).astype(float)
    p = Preferences.from_rows(np.zeros(len(item), int), np.repeat(np.arange(10_000), 10), item, score=score)
    found = CrowdAgg(max_iterations=2).aggregate(p)
    by_item = np.empty(5_000)
    by_item[found.index.items.tolist()] = found.scores
    assert np.corrcoef(by_item, truth)[0, 1] > 0.85


# -- the family ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cls", [CrowdAgg, NetVotes])
def test_checks(cls):
    check_all(cls)


def test_net_votes():
    ratings = Preferences.from_lists({"q": {1: {"a": 5, "b": 3, "c": 1}, 2: {"a": 4, "c": 3}}})
    assert NetVotes(middle=3).aggregate(ratings).to_dict() == {"q": {"a": 2.0, "b": 0.0, "c": -1.0}}
    votes = Preferences.from_comparisons(["q"] * 3, [1, 2, 2], "aab", "bcc", tie=[False, False, True])
    assert NetVotes().aggregate(votes).to_dict() == {"q": {"a": 2.0, "b": -1.0, "c": -1.0}}


@pytest.mark.data
def test_crowd_of_trec_2011(data_dir):
    """Every step counts: the published model, judged items as scale, typical strangers, pooled quality."""
    data = paper_datasets.load_dataset("trec2011-crowd", data_dir)
    found = {}
    for spec in (
        "majority",
        "net_votes",
        "crowdagg(quality=none, pair=difference, unjudged=even, scale=all)",
        "crowdagg(quality=none, pair=difference, unjudged=even)",
        "crowdagg(quality=none)",
        "crowdagg",
    ):
        consensus = judged_only(make(spec).aggregate(data.preferences), data.labels)
        found[spec] = evaluate(consensus, data.labels, "ndcg@10").mean()["ndcg@10"]
    mean, net, published, judged, typical, pooled = found.values()
    # figures of an independent prototype on the same data
    assert (mean, net, published, judged) == pytest.approx((0.714, 0.765, 0.722, 0.750), abs=0.006)
    assert judged < net < typical < pooled


@pytest.mark.data
def test_the_documentation_has_the_divergences_of_mirex_2005(data_dir):
    """Estimated and true qualities, compared again; the tables of the page are checked by their own test."""
    from podium_papers import reproduce

    text = " ".join((Path(__file__).parents[2] / "docs" / "crowds.md").read_text().split())
    names = ["EM-Elo", "Crowd-BT", "CrowdAgg-NDCG as published", "CrowdAgg-NDCG"]
    found = {q.name: q for q in reproduce("crowd-mirex2005", data_dir, only=names).sets[0].annotators}
    elo, crowd_bt, published, ours = (found[name].divergence for name in names)
    assert (
        f"CrowdAgg {ours:.2f} (as published {published:.2f}), EM-Elo {elo:.2f}, Crowd-BT {crowd_bt:.2f}"
        in text
    )
    assert found["CrowdAgg-NDCG as published"].converged is False


@pytest.mark.parametrize(("middle", "notes"), [(0.5, 1), (3, 0), (9, 1)])
def test_net_votes_says_when_the_middle_is_not_on_the_scale(middle, notes):
    p = Preferences.from_lists({"q": {1: {"a": 5, "b": 1}, 2: {"a": 4, "c": 2}}})
    found = NetVotes(middle=middle).aggregate(p).diagnostics.notes
    assert len(found) == notes
    assert all("on one side of middle" in note for note in found)
