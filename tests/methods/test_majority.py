"""Majority methods against their plain twins, textbook elections and what their definitions promise."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from podium import Preferences, make
from podium.core.errors import InputError
from podium.kernels import pairwise_votes
from podium.methods.majority import CondorcetFuse, MajorityVote, collect_votes
from podium.testing import strategies
from reference import pairs as plain

METHODS = {
    "condorcet": plain.condorcet,
    "copeland": plain.copeland,
    "greedy": plain.greedy,
    "schulze": plain.schulze,
    "schulze(strength='margin')": lambda items, said: plain.schulze(items, said, winning=False),
    "ranked_pairs": plain.ranked_pairs,
    "minimax": plain.minimax,
    "minimax(strength='winning')": lambda items, said: plain.minimax(items, said, winning=True),
    "split_cycle": plain.split_cycle,
    "split_cycle(strength='winning')": lambda items, said: plain.split_cycle(items, said, winning=True),
}
ORDERS = ["condorcet", "copeland", "greedy", "schulze", "ranked_pairs", "minimax", "split_cycle"]
WEIGHTS = st.lists(st.sampled_from([0, 1, 2, 0.1, 0.2, 0.3, 0.5]), min_size=12, max_size=12)
few = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def votes(**ballots: tuple[int, str]) -> Preferences:
    """One query; 'name=(voters, ranking)'."""
    who = {f"{name}-{v}": list(order) for name, (count, order) in ballots.items() for v in range(count)}
    return Preferences.from_lists({"q": who})


def weighed(preferences: Preferences, weights: list[float]) -> dict:
    found = dict(zip(preferences.experts, weights, strict=False))
    return found if any(found.values()) else dict.fromkeys(found, 1)


def decimal(weights: dict) -> dict:
    """The same weights as exact tenths, for the twins."""
    return {e: round(10 * w) for e, w in weights.items()}


@pytest.mark.parametrize("spec", METHODS)
@few
@given(preferences=strategies.preferences(), weights=WEIGHTS)
def test_equals_its_definition(spec, preferences, weights):
    by_expert = weighed(preferences, weights)
    consensus = make(spec, weights=by_expert).aggregate(preferences)
    for query in preferences.queries:
        items, said = plain.voices(preferences, query, decimal(by_expert))
        if (len(items) > 8 and "schulze" in spec) or (len(items) > 6 and "split_cycle" in spec):
            continue  # the twin tries all paths
        expected, silent = METHODS[spec](items, said), plain.silent(items, said)
        lowest = min((expected[i] for i in items if i not in silent), default=1)
        for place in consensus[query]:
            assert place.score == (lowest - 1 if place.item in silent else expected[place.item])


@few
@given(preferences=strategies.preferences(), weights=WEIGHTS)
def test_matrix_equals_its_definition(preferences, weights):
    by_expert = weighed(preferences, weights)
    table, unit = collect_votes(preferences, np.array([by_expert[e] for e in preferences.experts], float))
    for q, query in enumerate(preferences.queries):
        items, said = plain.voices(preferences, query, decimal(by_expert))
        won = plain.compute_vote_matrix(items, said)
        expected = np.array([[float(won[i, j]) / 10 for j in items] for i in items])
        matrix = pairwise_votes.compute_vote_matrix(table, q)
        np.testing.assert_allclose(matrix * unit, expected, rtol=1e-12)


@few
@given(preferences=strategies.preferences(), weights=WEIGHTS)
def test_majority_vote_equals_its_definition(preferences, weights):
    by_expert = weighed(preferences, weights)
    consensus = MajorityVote(weights=by_expert).aggregate(preferences)
    for query in preferences.queries:
        if preferences.lists.score is not None:
            expected = mean_ratings(preferences, query, by_expert)
        else:
            expected = plain.majority(*plain.voices(preferences, query, by_expert))
        known = [v for v in expected.values() if v is not None]
        for place in consensus[query]:
            want = expected[place.item]
            want = min(known, default=1.0) - 1 if want is None else want
            assert place.score == pytest.approx(float(want), abs=1e-9 * max(1.0, *map(abs, known), 1.0))


def mean_ratings(preferences, query, weights):
    one, total = preferences.select([query]), {}
    for row in range(one.lists.rows):
        w = weights[one.experts[int(one.lists.expert[one.lists.list_of_row[row]])]]
        item = one.index.items[int(one.lists.item[row])]
        old = total.get(item, (0.0, 0.0))
        total[item] = (old[0] + w * float(one.lists.score[row]), old[1] + w)
    return {i: s / w if w else None for i, (s, w) in total.items()}


@few
@given(preferences=strategies.comparisons())
def test_equal_votes_can_be_put_together(preferences):
    table, _ = collect_votes(preferences, np.ones(len(preferences.experts)))
    fewer = pairwise_votes.merge_comparisons(table)
    for q in range(len(preferences)):
        assert (
            pairwise_votes.compute_vote_matrix(fewer, q) == pairwise_votes.compute_vote_matrix(table, q)
        ).all()
    assert fewer.vote_weight.sum() == table.vote_weight.sum()
    assert fewer.vote_weight[fewer.tie].sum() == table.vote_weight[table.tie].sum()


# -- textbook elections ------------------------------------------------------------------------------------------

# 42 % of the voters live in Memphis, 26 % in Nashville, 15 % in Chattanooga, 17 % in Knoxville (Tennessee example)
TENNESSEE = {"m": (42, "MNCK"), "n": (26, "NCKM"), "c": (15, "CKNM"), "k": (17, "KCNM")}
# Schulze 2011, section 3.1 of the long version: 45 voters, five candidates, E > A > C > B > D
SCHULZE = {
    "a": (5, "ACBED"),
    "b": (5, "ADECB"),
    "c": (8, "BEDAC"),
    "d": (3, "CABED"),
    "e": (7, "CAEBD"),
    "f": (2, "CBADE"),
    "g": (7, "DCEBA"),
    "h": (8, "EBADC"),
}


@few
@given(preferences=strategies.preferences(), weights=WEIGHTS)
def test_win_rate_equals_its_definition(preferences, weights):
    by_expert = weighed(preferences, weights)
    consensus = make("win_rate", weights=by_expert).aggregate(preferences)
    for query in preferences.queries:
        expected = plain.win_rate(*plain.voices(preferences, query, decimal(by_expert)))
        known = [float(v) for v in expected.values() if v is not None]
        for place in consensus[query]:
            want = expected[place.item]
            if want is None:  # met nobody: below the others, however far
                assert place.score < min(known, default=1.0)
            else:
                assert place.score == pytest.approx(float(want), abs=1e-12)


@few
@given(preferences=strategies.preferences(), weights=WEIGHTS)
def test_win_rate_over_lists_is_the_mean_share_beaten(preferences, weights):
    by_expert = weighed(preferences, weights)
    consensus = make("win_rate(over='lists')", weights=by_expert).aggregate(preferences)
    for query in preferences.queries:
        expected = plain.majority(*plain.voices(preferences, query, by_expert))
        known = [float(v) for v in expected.values() if v is not None]
        for place in consensus[query]:
            want = expected[place.item]
            want = min(known, default=1.0) - 1 if want is None else float(want)
            assert place.score == pytest.approx(want, abs=1e-9)


def test_both_win_rates_agree_if_every_list_has_all_items():
    lists = {e: list(np.random.default_rng(e).permutation(list("abcdef"))) for e in range(5)}
    p = Preferences.from_lists({"q": {e: [str(i) for i in o] for e, o in lists.items()}})
    a, b = (make("win_rate", over=over).aggregate(p) for over in ("opponents", "lists"))
    np.testing.assert_allclose(a.scores, b.scores)


@pytest.mark.parametrize(
    "spec", ["condorcet", "copeland", "schulze", "ranked_pairs", "kemeny", "minimax", "split_cycle"]
)
def test_tennessee(spec):
    assert "".join(make(spec).aggregate(votes(**TENNESSEE)).ranking("q")) == "NCKM"


@pytest.mark.parametrize("strength", ["winning", "margin"])
def test_schulze_example(strength):
    consensus = make("schulze", strength=strength).aggregate(votes(**SCHULZE))
    assert "".join(consensus.ranking("q")) == "EACBD"
    assert not consensus.tied.any()


def test_schulze_example_as_comparisons():
    pair_votes = [
        (f"{name}{k}", a, b)
        for name, (n, order) in SCHULZE.items()
        for k in range(n)
        for a, b in itertools.combinations(order, 2)
    ]
    who, won, lost = zip(*pair_votes, strict=True)
    p = Preferences.from_comparisons(["q"] * len(who), who, won, lost)
    assert "".join(make("schulze").aggregate(p).ranking("q")) == "EACBD"


def test_greedy_order_example():
    # a beats b by 3, b beats c by 3, c beats a by 1: a has the largest potential, then b beats c
    p = Preferences.from_comparisons([0] * 7, ["e"] * 7, list("aaabbbc"), list("bbbccca"))
    assert make("greedy").aggregate(p).ranking(0) == ["a", "b", "c"]


# -- symmetry -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("spec", ORDERS)
@pytest.mark.parametrize("size", [3, 4, 5])
def test_cycles_are_visible_ties(spec, size):
    items = "abcde"[:size]
    turns = {k: list(items[k:] + items[:k]) for k in range(size)}
    consensus = make(spec).aggregate(Preferences.from_lists({"q": turns}))
    assert len(set(consensus.scores)) == 1
    assert consensus.tied.all()


@pytest.mark.parametrize("spec", [*ORDERS, "majority"])
@few
@given(
    rankings=st.lists(st.permutations("abcd").map(lambda r: r[:3]), min_size=1, max_size=5),
    names=st.permutations("abcd"),
    seed=st.randoms(use_true_random=False),
)
def test_names_and_order_do_not_matter(spec, rankings, names, seed):
    first = make(spec).aggregate(Preferences.from_lists({"q": dict(enumerate(rankings))}))
    other = dict(zip("abcd", names, strict=True))
    seed.shuffle(rankings)
    renamed = {k: [other[i] for i in r] for k, r in enumerate(rankings)}
    second = make(spec).aggregate(Preferences.from_lists({"q": renamed}))
    assert {other[i]: s for i, s in first.to_dict()["q"].items()} == pytest.approx(second.to_dict()["q"])


@few
@given(preferences=strategies.preferences())
def test_no_item_stands_right_above_one_that_beats_it(preferences):
    consensus = CondorcetFuse().aggregate(preferences)
    for query in preferences.queries:
        items, said = plain.voices(preferences, query, dict.fromkeys(preferences.experts, 1))
        margin, places = plain.margin(items, said), consensus[query]
        for a, b in itertools.pairwise(places):
            assert a.tied or b.tied or margin[a.item, b.item] >= 0


@pytest.mark.parametrize("spec", ["condorcet", "copeland", "schulze", "ranked_pairs", "kemeny"])
@few
@given(preferences=strategies.preferences(), weights=WEIGHTS)
def test_a_condorcet_winner_comes_first(spec, preferences, weights):
    by_expert = weighed(preferences, weights)
    consensus = make(spec, weights=by_expert).aggregate(preferences)
    for query in preferences.queries:
        items, said = plain.voices(preferences, query, decimal(by_expert))
        margin = plain.margin(items, said)
        winner = [i for i in items if all(margin[i, j] > 0 for j in items if j != i)]
        if winner and len(items) > 1:
            top = consensus[query][0]
            assert (top.item, top.tied) == (winner[0], False)


# -- weights, limits, corners -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "weights",
    [[0.1, 0.2, 0.3], [1 / 3, 1 / 3, 2 / 3], [np.pi, 2 * np.pi, 3 * np.pi], [1e-9, 2e-9, 3e-9], [25, 50, 75]],
)
def test_equal_sums_of_weights_are_equal(weights):
    p = Preferences.from_lists({"q": {1: "ab", 2: "ab", 3: "ba"}})
    assert make("copeland", weights=weights).aggregate(p).tied.all()


def test_weights_that_are_not_round_still_count():
    p = Preferences.from_lists({"q": {1: "ab", 2: "ba", 3: "ba"}})
    found = make("copeland", weights=[np.e + np.pi + 1e-6, np.e, np.pi]).aggregate(p)
    assert found.ranking("q") == ["a", "b"]
    tiny = Preferences.from_lists({"q": {1: "ab"}, "r": {2: "ba"}})
    assert make("copeland", weights=[1e-12, np.pi]).aggregate(tiny).ranking("q") == ["a", "b"]


@pytest.mark.parametrize("spec", [*ORDERS, "mc4", "kemeny"])
def test_too_many_items_say_so(spec):
    size = 20_000
    p = Preferences.from_lists({"small": {1: ["a"]}, "big": {1: list(range(size))}})
    with pytest.raises(
        InputError, match=r"199,990,000 pairs of items of query 'big', .*such as bradley_terry"
    ):
        make(spec).aggregate(p)


def test_majority_vote_mixes_forms_by_shares():
    ratings = Preferences.from_lists({"q": {"ann": {"a": 5, "b": 3, "c": 1}}})
    duel = Preferences.from_comparisons(["q"], ["bob"], ["c"], ["a"])
    found = MajorityVote().aggregate(Preferences.concat([ratings, duel])).to_dict()["q"]
    assert found == {"a": 0.5, "b": 0.5, "c": 0.5}


def test_majority_vote_puts_unrated_items_last():
    p = Preferences.from_rows(["q"], ["e"], ["x"], score=[-100.0], candidates=(["q"], ["a"]))
    assert MajorityVote().aggregate(p).ranking("q") == ["x", "a"]


def test_schulze_distinguishes_strengths_that_single_precision_rounds_together():
    big = 2**24
    preferences = Preferences.from_comparisons(
        ["q"] * 3, ["e"] * 3, ["a", "b", "c"], ["b", "c", "a"], weight=[big + 1, big, big]
    )
    scores = {row.item: row.score for row in make("schulze").aggregate(preferences)["q"]}
    # only a -> b is stronger than the path back, which goes through the two weaker majorities
    assert scores == {"a": 1.0, "b": -1.0, "c": 0.0}
