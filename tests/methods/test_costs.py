"""Very large inputs: lists that are not taken apart answer as if they were, and what costs too much is refused."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from scipy.optimize import minimize

from podium import Features, Labels, Preferences, make
from podium.core.errors import InputError, ParameterError
from podium.kernels import contest_counts, elo
from podium.methods.feature.labelled_features import LabelledFeatures


def ranked(items, lengths, seed=0, block=1, unlisted="unknown", query="q"):
    """Lists of a few items each, by quality and error, with ties in blocks."""
    random = np.random.default_rng(seed)
    rows = []
    for expert, length in enumerate(lengths):
        order = np.argsort(np.arange(items) + random.normal(0, items / 3, items))
        kept = [int(i) for i in order if i in set(random.choice(items, length, replace=False).tolist())]
        rows += [(query, f"e{expert}", i, 1 + n // block * block) for n, i in enumerate(kept)]
    query, expert, item, rank = zip(*rows, strict=True)
    return Preferences.from_rows(query, expert, item, rank=rank, unlisted=unlisted)


def taken_apart(preferences, weights):
    """The same as single comparisons, by a plain loop over all pairs of every list."""
    votes = []
    items = preferences.index.items
    lists = preferences.lists
    for n, expert in enumerate(lists.expert.tolist()):
        rows = range(int(lists.starts[n]), int(lists.starts[n + 1]))
        rank = {int(lists.item[r]): int(lists.rank[r]) for r in rows}
        others = range(len(items)) if preferences.unlisted == "below" else rank
        for i in rank:
            for j in others:
                if i < j and j in rank:
                    up, down = (i, j) if rank[i] <= rank[j] else (j, i)
                    votes.append((items[up], items[down], rank[i] == rank[j], weights[expert]))
                elif j not in rank:
                    votes.append((items[i], items[j], False, weights[expert]))
    winner, loser, tie, weight = zip(*votes, strict=True)
    n = len(votes)
    return Preferences.from_comparisons(["q"] * n, ["all"] * n, winner, loser, tie=tie, weight=weight)


def scores(consensus):
    return np.array([s for _, s in sorted(consensus.to_dict()["q"].items())])


CASES = [
    ranked(25, [25, 25, 25]),
    ranked(40, [7, 30, 12, 40, 2, 1], seed=1),
    ranked(40, [7, 30, 12, 40, 9], seed=2, block=4),
    ranked(40, [7, 30, 12, 40, 9], seed=3, block=4, unlisted="below"),
    ranked(150, [150, 100, 60], seed=4, unlisted="below"),
]


@pytest.mark.parametrize("ties", ["half", "ignore"])
@pytest.mark.parametrize("prior", ["ridge", "gamma"])
@pytest.mark.parametrize("case", range(len(CASES)))
def test_bradley_terry_from_whole_lists_is_that_from_all_their_pairs(monkeypatch, case, prior, ties):
    monkeypatch.setattr(contest_counts, "LONG", 0)
    lists = CASES[case]
    weights = [0.5 + n % 3 for n in range(len(lists.experts))]
    whole = make("bradley_terry", ties=ties, prior=prior, weights=weights).aggregate(lists)
    pairs = make("bradley_terry", ties=ties, prior=prior).aggregate(taken_apart(lists, weights))
    assert whole.diagnostics.converged
    np.testing.assert_allclose(scores(whole), scores(pairs), rtol=1e-9, atol=1e-9)
    assert whole.diagnostics.objective == pytest.approx(pairs.diagnostics.objective, rel=1e-11)
    assert whole.diagnostics.notes == pairs.diagnostics.notes


def test_bradley_terry_from_whole_lists_reaches_the_optimum_of_another_solver(monkeypatch):
    monkeypatch.setattr(contest_counts, "LONG", 0)
    lists = [list("abcdef"), list("badfce"), list("cba"), list("fedb")]
    p = Preferences.from_lists({"q": dict(enumerate(lists))})

    def loss(x):
        s = dict(zip("abcdef", x, strict=True))
        pairs = ((u, v) for o in lists for n, u in enumerate(o) for v in o[n + 1 :])
        return sum(np.logaddexp(0, s[v] - s[u]) for u, v in pairs) + 0.05 * (x @ x)

    best = minimize(loss, np.zeros(6), method="BFGS", options={"gtol": 1e-9})
    found = make("bradley_terry(l2=0.1)").aggregate(p)
    np.testing.assert_allclose(scores(found), best.x, atol=1e-6)
    assert found.diagnostics.objective == pytest.approx(best.fun, rel=1e-10)


def test_lists_beside_single_comparisons(monkeypatch):
    lists = ranked(30, [30, 12, 20], seed=5)
    random = np.random.default_rng(5)
    one = random.integers(0, 30, 80)
    other = (one + random.integers(1, 30, 80)) % 30
    votes = Preferences.from_comparisons(["q"] * 80, ["v"] * 80, one.tolist(), other.tolist())
    both = Preferences.concat([lists, votes])
    pairs = Preferences.concat([taken_apart(lists, [1.0] * 3), votes])
    monkeypatch.setattr(contest_counts, "LONG", 0)
    found = make("bradley_terry").aggregate(both)
    np.testing.assert_allclose(scores(found), scores(make("bradley_terry").aggregate(pairs)), atol=1e-9)


@pytest.mark.parametrize("name", ["bradley_terry", "thurstone", "rank_centrality"])
def test_queries_in_parts_answer_as_all_at_once(monkeypatch, name):
    p = Preferences.concat([ranked(12, [12, 9, 5], seed=n, query=f"q{n}") for n in range(9)])
    whole = make(name).aggregate(p)
    monkeypatch.setattr(contest_counts, "PART", 10_000.0)
    monkeypatch.setattr(contest_counts, "LONG", 60)
    parts = make(name).aggregate(p)
    np.testing.assert_allclose(parts.scores, whole.scores, rtol=1e-9, atol=1e-9)
    assert parts.diagnostics.notes == whole.diagnostics.notes


@pytest.mark.parametrize("case", range(len(CASES)))
@pytest.mark.parametrize("options", [{}, {"k": 700.0, "rounds": 3}])
def test_elo_plays_long_lists_as_all_their_matches(monkeypatch, case, options):
    plain = make("elo", **options).aggregate(CASES[case])
    monkeypatch.setattr(elo, "LONG", 1)
    found = make("elo", **options).aggregate(CASES[case])
    np.testing.assert_allclose(found.scores, plain.scores, rtol=1e-12)


# -- sizes that nobody could take apart ------------------------------------------------------------------------------


def long_lists(experts, items, grades=0):
    random = np.random.default_rng(items)
    place = (np.arange(items) + random.normal(0, items / 4, (experts, items))).argsort(axis=1).argsort(axis=1)
    value = (
        {"score": (grades - place * grades // items).ravel() * 1.0}
        if grades
        else {"rank": (place + 1).ravel()}
    )
    expert, item = np.repeat(np.arange(experts), items), np.tile(np.arange(items), experts)
    return Preferences.from_rows(np.zeros_like(item), expert, item, **value)


def peak(work):
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_bradley_terry_answers_ten_lists_of_ten_thousand_in_memory_of_their_rows():
    p = long_lists(10, 10_000)
    make("bradley_terry").aggregate(long_lists(2, 4_000))
    assert peak(lambda: make("bradley_terry").aggregate(p)) < 500 * 10 * 10_000


def test_dawid_skene_answers_long_ratings_in_memory_of_their_rows():
    p = long_lists(5, 20_000, grades=5)
    assert peak(lambda: make("dawid_skene").aggregate(p)) < 1_000 * 5 * 20_000


DEAR = {
    "thurstone": r"about 4\.4 GB of memory for 49,995,000 pairs of items of query 0, .* 2 GB .* use bradley_terry",
    "rank_centrality": r"about 4\.4 GB of memory for 49,995,000 pairs of items of query 0, .* use bradley_terry",
    "bradley_terry(ties='davidson')": r"49,995,000 pairs of items of query 0, .* use ties='half'",
    "bradley_terry(ties='rao_kupper')": r"49,995,000 pairs of items of query 0, .* use ties='half'",
    "crowd_bt": r"about 110 GB of memory for 499,950,000 pairs of items in lists, .* 2 GB .* use mpm with adherence",
    "dawid_skene": r"499,950,000 pairs of items in lists, .* use mpm with adherence=True",
    "em_elo": r"499,950,000 pairs of items in lists, .* use mpm with adherence=True",
    "crowdagg": r"operations for 499,950,000 pairs of ranks of query 0, .* limit is 1\.0e11 .* use mpm",
    "kemeny": r"GB of memory for 49,995,000 pairs of items of query 0, .* such as bradley_terry or mc2",
    "svp": r"GB of memory for 49,995,000 pairs of items of query 0, .* such as bradley_terry or mc2",
    "ranked_pairs": r"about 3\.0e12 operations for 49,995,000 pairs of items of query 0",
}


@pytest.mark.parametrize("method", DEAR)
def test_ten_lists_of_ten_thousand_are_refused_at_once_by_what_must_compare_pairs(method):
    p = long_lists(10, 10_000)

    def refused():
        with pytest.raises(InputError, match=DEAR[method]):
            make(method).aggregate(p)

    assert peak(refused) < 100 * 10 * 10_000


@pytest.mark.parametrize("method", ["crowd_bt", "crowdagg", "em_elo"])
def test_learning_from_labels_is_refused_too(method):
    p = long_lists(10, 10_000)
    with pytest.raises(InputError, match="and the limit is"):
        make(method).fit(p, Labels.from_dict({0: {1: 1.0, 2: 0.0}}))


def test_beliefs_refuse_to_learn_from_too_many_items_of_a_query():
    p = long_lists(2, 40_000)
    refusal = r"about 2\.6e11 operations for 799,980,000 pairs of items of query 0, .*fit on a sample"
    with pytest.raises(InputError, match=f"^labelled_features needs {refusal}"):
        make("labelled_features").fit(p)
    items = list(range(40_000))
    x = Features.from_rows([0] * len(items), items, np.array(items, float)[:, None], ["a"])
    with pytest.raises(InputError, match=f"^LabelledFeatures needs {refusal}"):
        LabelledFeatures(beliefs={"a": 1}).fit(x)
    fitted = make("labelled_features").fit(long_lists(2, 300))
    assert len(fitted.aggregate(p).ranking(0)) == 40_000


def test_limits_are_set_from_outside(monkeypatch):
    p = long_lists(3, 300)
    monkeypatch.setenv("PODIUM_MEMORY", "0.001")
    with pytest.raises(InputError, match=r"the limit is 0\.001 GB \(PODIUM_MEMORY sets it\)"):
        make("copeland").aggregate(p)
    monkeypatch.setenv("PODIUM_MEMORY", "1000")
    monkeypatch.setenv("PODIUM_OPERATIONS", "1e3")
    with pytest.raises(InputError, match=r"the limit is 1,000 \(PODIUM_OPERATIONS sets it\)"):
        make("schulze").aggregate(p)
    monkeypatch.setenv("PODIUM_OPERATIONS", "many")
    with pytest.raises(ParameterError, match="PODIUM_OPERATIONS is 'many'; give a number from 0, such as 1e"):
        make("schulze").aggregate(p)


def test_explaining_counts_the_query_that_is_explained():
    large, small = long_lists(2, 9_000), Preferences.from_lists({"small": {0: [1, 2], 1: [2, 1]}})
    both = Preferences.concat([large, small])
    assert make("thurstone").explain(both, "small", 1)
    with pytest.raises(InputError, match="and the limit is"):
        make("thurstone").explain(both, 0, 1)


def test_the_cost_of_many_queries_is_not_that_of_one():
    query = np.repeat(np.arange(2_000), 200)
    item, expert = np.tile(np.arange(100), 4_000), np.tile(np.repeat([0, 1], 100), 2_000)
    p = Preferences.from_rows(query, expert, item, rank=item + 1)
    for name in ("thurstone", "crowdagg", "schulze", "labelled_features"):
        make(name)._check_costs(p)
