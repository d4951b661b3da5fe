"""Kemeny against all permutations, and its parts against each other."""

from __future__ import annotations

import gzip
import itertools
import sys

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from podium import Preferences, make
from podium.core.errors import MissingPackageError, ParameterError
from podium.kernels import linear_ordering
from podium.methods.kemeny import Kemeny
from podium.testing import strategies
from reference import pairs as plain

few = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def skew(upper: np.ndarray) -> np.ndarray:
    upper = np.triu(upper, 1).astype(float)
    return upper - upper.T


@st.composite
def margins(draw, most=7):
    n = draw(st.integers(2, most))
    return skew(np.array(draw(st.lists(st.integers(-5, 5), min_size=n * n, max_size=n * n))).reshape(n, n))


def best_of_all(margin: np.ndarray) -> float:
    return max(
        linear_ordering.compute_order_value(margin, np.array(o))
        for o in itertools.permutations(range(len(margin)))
    )


@pytest.mark.parametrize("spec", ["kemeny", "kemeny(method='exact')"])
@few
@given(
    preferences=strategies.preferences(),
    weights=st.lists(st.sampled_from([0, 1, 2, 0.5]), min_size=12, max_size=12),
)
def test_no_ranking_is_better(spec, preferences, weights):
    by_expert = dict(zip(preferences.experts, weights, strict=False))
    if not any(by_expert.values()):
        by_expert = dict.fromkeys(by_expert, 1)
    consensus = make(spec, weights=by_expert).aggregate(preferences)
    least = spent = 0
    for query in preferences.queries:
        items, said = plain.voices(preferences, query, by_expert)
        if len(items) > 7:
            return  # too many permutations
        least += plain.kemeny(items, said)
        spent += plain.disagreements(items, said, consensus.ranking(query))
    assert spent == least
    assert consensus.diagnostics.objective == pytest.approx(float(least))
    assert consensus.diagnostics.notes == ("optimal",)


@few
@given(margin=margins())
def test_exact_solvers_find_the_best_of_all_orders(margin):
    best = best_of_all(margin)
    assert linear_ordering.compute_order_value(margin, linear_ordering.order_few(margin)) == best
    order, proved = linear_ordering.order_many(margin, np.arange(len(margin)), 1000)
    assert (linear_ordering.compute_order_value(margin, order), proved) == (best, True)


@few
@given(margin=margins(6))
def test_few_items_come_in_the_first_best_order(margin):
    orders = [np.array(o) for o in itertools.permutations(range(len(margin)))]
    best = max(linear_ordering.compute_order_value(margin, o) for o in orders)
    first = next(o for o in orders if linear_ordering.compute_order_value(margin, o) == best)
    assert linear_ordering.order_few(margin).tolist() == first.tolist()


@few
@given(margin=margins(9))
def test_components_never_lose_to_later_ones(margin):
    parts = linear_ordering.find_ordered_components(margin)
    assert sorted(np.concatenate(parts).tolist()) == list(range(len(margin)))
    for a, b in itertools.combinations(parts, 2):
        assert (margin[np.ix_(a, b)] >= 0).all()


@few
@given(margin=margins(9), start=st.randoms(use_true_random=False))
def test_local_search_leaves_no_better_move(margin, start):
    order = list(range(len(margin)))
    start.shuffle(order)
    found = linear_ordering.improve_order(margin, np.array(order))
    value = linear_ordering.compute_order_value(margin, found)
    assert value >= linear_ordering.compute_order_value(margin, np.array(order))
    for at, to in itertools.permutations(range(len(margin)), 2):
        moved = np.insert(np.delete(found, at), to, found[at])
        assert linear_ordering.compute_order_value(margin, moved) <= value


@pytest.mark.parametrize("seed", range(4))
def test_programming_equals_enumeration_on_harder_cases(seed):
    rng = np.random.default_rng(seed)
    margin = skew(rng.choice([-1, 1], (13, 13)) if seed % 2 else rng.integers(-9, 10, (13, 13)))
    order, proved = linear_ordering.order_many(margin, np.arange(13), 1000)
    assert proved
    assert linear_ordering.compute_order_value(margin, order) == linear_ordering.compute_order_value(
        margin, linear_ordering.order_few(margin)
    )


def noisy(items: int, experts: int, seed: int = 0) -> Preferences:
    rng = np.random.default_rng(seed)
    noise = rng.gumbel(size=(experts, items)) + np.arange(items) * 0.05
    return Preferences.from_lists({"q": {e: np.argsort(-row).tolist() for e, row in enumerate(noise)}})


def test_forty_items_are_proved_optimal_and_local_search_is_near():
    pytest.importorskip("highspy", reason="proofs need the extra exact: pip install 'podium-rank[exact]'")
    p = noisy(40, 5)
    exact, local = Kemeny().aggregate(p), Kemeny(method="local").aggregate(p)
    assert exact.diagnostics.notes == ("optimal",)
    assert local.diagnostics.notes == ("local search: not proved optimal in 1 of 1 queries",)
    assert exact.diagnostics.objective <= local.diagnostics.objective <= 1.02 * exact.diagnostics.objective


@few
@given(
    rankings=st.lists(st.permutations("abcde").map(lambda r: r[:4]), min_size=1, max_size=4),
    names=st.permutations("abcde"),
)
def test_renaming_keeps_the_cost(rankings, names):
    other = dict(zip("abcde", names, strict=True))
    first = Kemeny().aggregate(Preferences.from_lists({"q": dict(enumerate(rankings))}))
    second = Kemeny().aggregate(
        Preferences.from_lists({"q": {k: [other[i] for i in r] for k, r in enumerate(rankings)}})
    )
    assert first.diagnostics.objective == second.diagnostics.objective


def test_items_that_no_vote_tells_apart_are_tied():
    p = Preferences.from_rows(["q"] * 8, [1] * 4 + [2] * 4, list("abcd") * 2, rank=[1, 1, 3, 4, 3, 3, 1, 2])
    consensus = Kemeny().aggregate(p)
    assert {r.item for r in consensus["q"] if r.tied} == {"a", "b"}


def test_bad_parameters():
    with pytest.raises(ParameterError, match="one of auto"):
        Kemeny(method="guess")


@pytest.mark.data
def test_sushi(data_dir):
    """Ten kinds of sushi by 5,000 people: the best of all 3,628,800 orders, found by another enumeration."""
    rows = (
        gzip.decompress((data_dir / "preflib/00014-sushi/00014-00000001.soc.gz").read_bytes())
        .decode()
        .splitlines()
    )
    counted = [line.split(": ") for line in rows if not line.startswith("#")]
    people = [(order.split(","), int(n)) for n, order in counted]
    p = Preferences.from_lists({"q": {k: order for k, (order, _) in enumerate(people)}})
    consensus = Kemeny(weights={k: n for k, (_, n) in enumerate(people)}).aggregate(p)
    items = [str(i) for i in range(1, 11)]
    above = dict.fromkeys(itertools.permutations(items, 2), 0)
    for order, n in people:
        for a, b in itertools.combinations(order, 2):
            above[a, b] += n
    assert sum(above.values()) == 5000 * 45
    assert consensus.diagnostics.objective == cheapest(items, above)
    assert consensus.diagnostics.objective == sum(
        above[b, a] for a, b in itertools.combinations(consensus.ranking("q"), 2)
    )


def cheapest(items, above):
    """Least disagreement, adding one item after the other at the bottom of every subset."""
    best = {frozenset(): 0}
    for k in range(1, len(items) + 1):
        for group in map(frozenset, itertools.combinations(items, k)):
            best[group] = min(
                best[group - {last}] + sum(above[last, i] for i in group - {last}) for last in group
            )
    return best[frozenset(items)]


def test_without_the_solver_the_default_still_ranks_and_exact_names_the_extra(monkeypatch):
    """Up to 14 items nothing changes; more are ordered by local search, and the notes state it."""
    random = np.random.default_rng(3)
    lists = {"q": {e: random.permutation(18).tolist() for e in range(5)}}
    few = {"q": {e: random.permutation(10).tolist() for e in range(5)}}
    with_solver = make("kemeny").aggregate(Preferences.from_lists(few))
    proved = make("kemeny").aggregate(Preferences.from_lists(lists))
    monkeypatch.setitem(sys.modules, "highspy", None)
    again = make("kemeny(method=exact)").aggregate(Preferences.from_lists(few))
    assert again.ranking("q") == with_solver.ranking("q")
    assert again.diagnostics.notes == ("optimal",)
    local = make("kemeny").aggregate(Preferences.from_lists(lists))
    assert local.diagnostics.objective >= proved.diagnostics.objective
    assert "not proved" in local.diagnostics.notes[0]
    assert "pip install 'podium-rank[exact]'" in local.diagnostics.notes[0]
    with pytest.raises(
        MissingPackageError, match=r"more than 14 items needs highspy.*\[exact\]'.*method='auto'"
    ):
        make("kemeny(method=exact)").aggregate(Preferences.from_lists(lists))
