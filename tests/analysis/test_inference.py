"""Standard errors, bootstrap, ranks and flips, against finite differences, refits and brute force."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from podium import Preferences, make
from podium.analysis.leaderboard import Tally
from podium.analysis.leaderboard import inference as u
from podium.analysis.leaderboard.score_estimate import votes_to_flip
from podium.core.errors import InputError, ParameterError
from podium.kernels import bootstrap as drawing
from podium.kernels import dispatch
from podium.kernels.contest_models import compute_pair_terms, compute_prior_value
from podium.kernels.contest_scores import build_query_problem


def votes(items=6, count=300, seed=0, ties=0.0, experts=1, spread=1.0):
    random = np.random.default_rng(seed)
    truth = random.normal(size=items) * spread
    a = random.integers(0, items, count)
    b = (a + random.integers(1, items, count)) % items
    won = random.random(count) < 1 / (1 + np.exp(truth[b] - truth[a]))
    rows = np.where(won, a, b), np.where(won, b, a)
    who = random.integers(0, experts, count)
    p = Preferences.from_comparisons(np.zeros(count, int), who, *rows, tie=random.random(count) < ties)
    return p, truth


@pytest.mark.parametrize(
    ("model", "ties"), [("bradley_terry", "half"), ("bradley_terry", "davidson"), ("bradley_terry", "rao_kupper"),
                        ("thurstone", "half")]
)  # fmt: skip
def test_fisher_is_the_inverse_of_the_information_by_finite_differences(model, ties):
    p, _ = votes(5, 200, ties=0.3)
    e = u.estimate_scores(Tally.from_preferences(p).to_contests(), model=model, ties=ties, l2=0.05)
    problem = build_query_problem(e.contests, 0, e.solution.model, e.solution.component)
    x = e.solution.scores
    if problem.widths:
        x = np.append(x, e.solution.extra["width"][0])

    def value(at):
        return compute_pair_terms(problem, at).value.sum() + compute_prior_value(problem, at)

    n, step = len(x), 1e-4
    unit = np.eye(n) * step
    found = np.array([[
        (value(x + a + b) - value(x + a - b) - value(x - a + b) + value(x - a - b)) / (4 * step**2) for b in unit
    ] for a in unit])  # fmt: skip
    wanted = u.center_covariance(np.linalg.inv(found)[:5, :5], e.core)
    assert np.allclose(u.compute_covariance(e, "fisher"), wanted, rtol=1e-4, atol=1e-6)


def test_sandwich_is_the_sum_over_single_votes_and_over_clusters():
    p, _ = votes(5, 120, ties=0.2, experts=9)
    tally = Tally.from_preferences(p)
    e = u.estimate_scores(tally.to_contests())
    v, items = p.comparisons, np.array(p.index.items.tolist())
    s = e.solution.scores[[tally.items.code_of(int(i)) for i in items]]
    chance = 1 / (1 + np.exp(s[v.loser] - s[v.winner]))
    slope = chance - np.where(v.tie, 0.5, 1.0)
    g = np.zeros((len(v), 5))
    g[np.arange(len(v)), v.winner] += slope
    g[np.arange(len(v)), v.loser] -= slope
    by_vote = e.inverse_hessian @ (g.T @ g) @ e.inverse_hessian
    assert np.allclose(u.compute_covariance(e), u.center_covariance(by_vote, e.core))
    k = np.zeros((9, 5))
    np.add.at(k, v.expert, g)
    shown = np.zeros((9, 5))
    for side in (v.winner, v.loser):
        np.add.at(shown, (v.expert, side), 1)
    k /= np.sqrt(1 - shown / shown.sum(axis=0))  # CR2: less the leverage, the share of an item's votes
    by_expert = e.inverse_hessian @ (k.T @ k) @ e.inverse_hessian
    assert np.allclose(
        u.compute_covariance(e, clusters=tally.build_clusters("experts")),
        u.center_covariance(by_expert, e.core),
    )


def test_bootstrap_equals_a_refit_of_the_votes_drawn():
    p, _ = votes(6, 400, ties=0.2)
    tally = Tally.from_preferences(p)
    e = u.estimate_scores(tally.to_contests())
    draws = u.bootstrap_scores(e, 4, seed=3, tolerance=1e-11)
    law = drawing.build_poisson_tables(np.concatenate((e.contests.won, e.contests.lost, e.contests.tied)))
    for r, key in enumerate(drawing.derive_round_keys(3, 4)):
        c = drawing.resample_contests(e.contests, law, key[None])
        rows = []
        for i, j, *counts in zip(c.first, c.second, c.won, c.lost, c.tied, strict=True):
            for (a, b, tie), n in zip(((i, j, False), (j, i, False), (i, j, True)), counts, strict=True):
                rows += [(int(a), int(b), tie)] * int(n)
        winner, loser, tie = map(list, zip(*rows, strict=True))
        again = Preferences.from_comparisons([0] * len(rows), ["e"] * len(rows), winner, loser, tie=tie)
        scores = make("bradley_terry", tolerance=1e-11).aggregate(again).to_dict()[0]
        wanted = np.array([scores[i] for i in range(6)])
        assert np.allclose(draws[r], wanted - wanted.mean(), atol=1e-8)


def test_bootstrap_over_experts_draws_whole_experts():
    p, _ = votes(5, 300, experts=12, ties=0.1)
    tally = Tally.from_preferences(p)
    e = u.estimate_scores(tally.to_contests())
    draws = u.bootstrap_scores(e, 3, clusters=tally.build_clusters("experts"), seed=5, tolerance=1e-11)
    for r, key in enumerate(drawing.derive_round_keys(5, 3)):
        often = drawing.sample_cluster_counts(key[None], 12)
        assert often.sum() == 12
        weights = {expert: float(n) for expert, n in zip(p.experts, often, strict=True)}
        scores = make("bradley_terry", weights=weights, tolerance=1e-11).aggregate(p).to_dict()[0]
        wanted = np.array([scores[i] for i in range(5)])
        assert np.allclose(draws[r], wanted - wanted.mean(), atol=1e-8)


@pytest.mark.parametrize("over", ["votes", "experts"])
def test_rounds_do_not_depend_on_the_threads(over, monkeypatch):
    p, _ = votes(12, 2000, ties=0.2, experts=40)
    tally = Tally.from_preferences(p)
    e, clusters = u.estimate_scores(tally.to_contests()), tally.build_clusters(over)
    monkeypatch.setattr(dispatch, "THREAD_WORK", 0)
    monkeypatch.setenv("PODIUM_THREADS", "1")
    one = u.bootstrap_scores(e, 30, clusters=clusters, seed=1)
    monkeypatch.setenv("PODIUM_THREADS", "3")
    three = u.bootstrap_scores(e, 30, clusters=clusters, seed=1)
    assert (one == three).all()
    assert not np.allclose(one, u.bootstrap_scores(e, 30, clusters=clusters, seed=2))


def test_counts_drawn_follow_poisson():
    counts = np.repeat([0.0, 1.0, 7.0, 15.0, 16.0, 300.0, 20_000.0], 4000)
    drawn = drawing._sample_poisson(
        drawing.derive_round_keys(0, 1), drawing.build_poisson_tables(counts)
    ).reshape(7, -1)
    mean = counts.reshape(7, -1)[:, 0]
    assert np.allclose(drawn.mean(axis=1), mean, atol=1e-9 + 4 * np.sqrt(mean / 4000))
    assert np.allclose(drawn.var(axis=1), mean, rtol=0.12)
    assert np.isclose((drawn[1] == 0).mean(), np.exp(-1), atol=0.03)


def test_intervals_cover_on_a_small_simulation():
    inside = []
    for seed in range(40):
        p, truth = votes(8, 600, seed=seed)
        tally = Tally.from_preferences(p)
        e = u.estimate_scores(tally.to_contests())
        gap = np.abs(e.scores - (truth - truth.mean())) / np.sqrt(u.compute_covariance(e).diagonal())
        inside.append(gap <= u.critical_value(0.95))
    assert 0.90 < np.mean(inside) < 0.99


def test_simultaneous_intervals_are_wider_and_bonferroni_bounds_them():
    p, _ = votes(8, 600)
    e = u.estimate_scores(Tally.from_preferences(p).to_contests())
    wide = u.critical_value(0.95, u.compute_covariance(e))
    assert u.critical_value(0.95) < wide < u.critical_value(1 - 0.05 / 8) + 0.05
    with pytest.raises(ParameterError, match="level is 1"):
        u.critical_value(1.0)


def test_what_only_the_prior_holds_is_open():
    winner = ["top"] * 9 + ["a", "b", "a", "b"] * 5 + ["a", "b"]
    loser = ["a", "b", "c"] * 3 + ["b", "a", "c", "c"] * 5 + ["low", "low"]
    p = Preferences.from_comparisons([0] * 31, ["j"] * 31, winner, loser)
    tally = Tally.from_preferences(p)
    e = u.estimate_scores(tally.to_contests())
    at = {item: k for k, item in enumerate(tally.items)}
    assert {i for i in at if e.core[at[i]]} == {"a", "b"}
    assert {i for i in at if e.above[at[i]]} == {"top"}
    assert {i for i in at if e.below[at[i]]} == {"c", "low"}
    fisher, robust = (np.sqrt(u.compute_covariance(e, k).diagonal()) for k in ("fisher", "sandwich"))
    assert np.allclose(fisher[~e.core], robust[~e.core])
    assert fisher[at["top"]] > 3 * fisher[at["a"]]
    spread = u.bootstrap_scores(e, 300).std(axis=0)
    assert spread[at["top"]] > 0.7 * fisher[at["top"]]


def test_pairwise_tests_ranks_and_groups():
    scores = np.array([3.0, 1.0, 0.9, -2.0])
    p = u.pairwise_p(scores, np.eye(4) * 0.04)
    assert (p.diagonal() == 1).all()
    low, high = u.rank_bounds(scores, p)
    assert low.tolist() == [1, 2, 2, 4]
    assert high.tolist() == [1, 3, 3, 4]
    assert u.find_tied_groups(np.arange(4), p) == [[0], [1, 2], [3]]
    draws = u.sample_scores(scores, np.eye(4) * 0.04)
    top = u.top_share(draws, 2)
    assert top[0] == 1
    assert top[3] == 0
    assert top[1] + top[2] == pytest.approx(1)
    assert top[1] == pytest.approx(0.638, abs=0.03)  # P(N(0.1, 0.08) > 0)


def test_groups_are_the_longest_runs_without_a_told_pair():
    random = np.random.default_rng(0)
    for _ in range(50):
        p = random.random((6, 6))
        p = np.minimum(p, p.T) * 0.4
        np.fill_diagonal(p, 1)
        runs = [
            list(range(a, b)) for a in range(6) for b in range(a + 1, 7)
            if all(p[i, j] > 0.05 for i, j in itertools.combinations(range(a, b), 2))
        ]  # fmt: skip
        longest = [r for r in runs if not any(set(r) < set(o) for o in runs)]
        assert u.find_tied_groups(np.arange(6), p) == longest


@pytest.mark.parametrize("seed", range(6))
def test_votes_to_flip_by_brute_force(seed):
    p, _ = votes(4, 25, seed=seed, ties=0.1, spread=0.5)
    tally = Tally.from_preferences(p)
    e = u.estimate_scores(tally.to_contests())
    flip = votes_to_flip(e)
    v, items = p.comparisons, p.index.items.tolist()
    winner, loser = [items[i] for i in v.winner], [items[i] for i in v.loser]
    leader, other = tally.items[flip.leader], tally.items[flip.challenger]

    def ahead(extra):
        n = len(v) + extra
        columns = (winner + [other] * extra, loser + [leader] * extra)
        again = Preferences.from_comparisons([0] * n, [0] * n, *columns, tie=v.tie.tolist() + [False] * extra)
        s = make("bradley_terry", tolerance=1e-11).aggregate(again).to_dict()[0]
        return s[other] > s[leader] + 1e-9

    assert flip.votes == next(n for n in range(1, 500) if ahead(n))


def test_a_single_item_has_no_rival():
    e = u.estimate_scores(
        Tally.from_preferences(Preferences.from_comparisons([0], [0], ["a"], ["b"])).to_contests()
    )
    assert votes_to_flip(e).votes == 2
    with pytest.raises(ParameterError, match="rounds is 1"):
        u.bootstrap_scores(e, 1)


@pytest.mark.parametrize("names", list(itertools.permutations("abc")))
def test_without_cycles_scores_are_measured_from_all_whatever_the_names(names):
    x, y, z = names
    p = Preferences.from_comparisons([0] * 6, ["j"] * 6, [x, x, y] * 2, [y, z, z] * 2)
    tally = Tally.from_preferences(p)
    e = u.estimate_scores(tally.to_contests())
    first, middle, last = (tally.items.code_of(i) for i in names)
    assert not e.core.any()
    assert e.origin.all()
    assert e.scores[middle] == pytest.approx(0, abs=1e-6)
    assert e.scores[first] == pytest.approx(-e.scores[last], abs=1e-6)
    assert [bool(e.above[i]) for i in (first, middle, last)] == [True, True, False]
    assert [bool(e.below[i]) for i in (first, middle, last)] == [False, True, True]
    assert (np.diag(u.compute_covariance(e)) > 0).all()


@pytest.mark.parametrize("names", ["abcd", "cdab", "dcba"])
def test_of_two_groups_of_one_size_the_one_with_more_votes_is_the_core(names):
    a, b, c, d = names
    rows = [(a, b), (b, a), (c, d), (d, c), (c, d)]
    p = Preferences.from_comparisons([0] * 5, ["j"] * 5, *zip(*rows, strict=True))
    tally = Tally.from_preferences(p)
    e = u.estimate_scores(tally.to_contests())
    assert {tally.items[int(i)] for i in np.flatnonzero(e.core)} == {c, d}


def test_votes_that_are_all_ties_have_the_errors_of_fisher():
    p = Preferences.from_comparisons([0] * 3, ["j"] * 3, list("aab"), list("bcc"), tie=[True] * 3)
    e = u.estimate_scores(Tally.from_preferences(p).to_contests())
    fisher = u.compute_covariance(e, "fisher")
    assert np.allclose(u.compute_covariance(e, "sandwich"), fisher)
    draws = u.bootstrap_scores(e, 4000, seed=1)
    assert np.allclose(draws.var(axis=0), np.diag(fisher), rtol=0.1)
    assert np.allclose(u.top_share(draws, 1), 1 / 3, atol=0.05)


def test_ignored_ties_bound_nothing():
    p = Preferences.from_comparisons([0] * 3, ["j"] * 3, list("aba"), list("bac"), tie=[False, False, True])
    e = u.estimate_scores(Tally.from_preferences(p).to_contests(), ties="ignore")
    assert e.core.tolist() == [True, True, False]
    assert e.above.tolist() == e.below.tolist() == [False, False, True]


@pytest.mark.parametrize("over", [None, "experts"])
@pytest.mark.parametrize("errors", ["fisher", "sandwich"])
def test_errors_shrink_with_the_root_of_the_votes_however_many(errors, over):
    """Votes that weigh W times as much: errors times the root of W stay, once the votes outweigh the prior.

    Clusters are the exception: as many experts as before, each as sure as before, leave the error as it was.
    """
    p, _ = votes(5, 200, ties=0.1, experts=12)
    found = []
    for weight in (1.0, 1e3, 1e6, 1e7):
        tally = Tally.from_preferences(_weighing(p, weight))
        e = u.estimate_scores(tally.to_contests(), l2=1e-4)
        matrix = u.compute_covariance(e, errors, tally.build_clusters(over) if over else None)
        grows = 1.0 if over and errors == "sandwich" else weight
        found.append(np.sqrt(matrix.diagonal() * grows))
    assert np.allclose(found, found[1], rtol=1e-3)


def _weighing(p, weight):
    v, item = p.comparisons, np.array(p.index.items.tolist())
    count = len(v)
    return Preferences.from_comparisons(
        np.zeros(count, int),
        v.expert,
        item[v.winner],
        item[v.loser],
        tie=v.tie,
        weight=np.full(count, weight),
    )


@pytest.mark.parametrize("errors", ["fisher", "sandwich"])
def test_errors_with_too_few_digits_are_refused(errors):
    e = u.estimate_scores(Tally.from_preferences(_weighing(votes(6, 300)[0], 1e11)).to_contests())
    with pytest.raises(
        InputError, match="too much relative to the prior; use smaller weights, or a larger l2"
    ):
        u.compute_covariance(e, errors)
