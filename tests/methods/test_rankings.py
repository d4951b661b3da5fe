"""Plackett-Luce against other solvers and the literature; Mallows against enumeration."""

from __future__ import annotations

import csv
import gzip
import itertools
import math

import numpy as np
import pytest
from scipy.optimize import minimize

from podium import Preferences, formats, make
from podium.data.preferences import Form
from podium.evaluate import evaluate
from podium.testing.samples import ITEMS, iterate_samples
from reference import plackett_luce as plain

METRICS = [f"ndcg@{k}:letor" for k in range(1, 6)] + ["map"]
PUBLISHED = {  # Volkovs, Larochelle & Zemel, CIKM 2012: NDCG@1..5 and MAP
    "mq2008-agg": [35.20, 38.49, 39.70, 40.49, 41.55, 42.20],
    "mq2007-agg": [40.63, 40.39, 40.26, 40.71, 40.96, 43.64],
}


def rankings_of(preferences, query, weights=None):
    """The lists and votes of a query as (blocks, weight, unlisted are below) over 0 .. M - 1."""
    one = preferences.select([query])
    weight = np.ones(len(one.experts)) if weights is None else np.asarray(weights, float)
    lists, votes = one.lists, one.comparisons
    found = []
    for n in range(len(lists)):
        rows = slice(lists.starts[n], lists.starts[n + 1])
        blocks = [lists.item[rows][lists.rank[rows] == r].tolist() for r in np.unique(lists.rank[rows])]
        found.append((blocks, weight[lists.expert[n]], one.unlisted == "below"))
    for e, a, b, tie, w in zip(votes.expert, votes.winner, votes.loser, votes.tie, votes.weight, strict=True):
        found.append(([[a, b]] if tie else [[a], [b]], w * weight[e], False))
    return found, len(one.index.items)


def best_scores(rankings, size, shape, rate=2.0):
    """Log odds of the largest posterior under gamma(shape, rate) odds, by a general optimizer; with mean 0."""

    def cost(s):
        return -plain.log_likelihood(rankings, s, size) - plain.gamma_prior(s, shape, rate)

    found = minimize(cost, np.zeros(size), method="BFGS", options={"gtol": 1e-8, "maxiter": 2000})
    return found.x - found.x.mean()


@pytest.mark.parametrize("answers", list(iterate_samples(frozenset(Form), 2)), ids=lambda a: a.form.value)
def test_plackett_luce_is_the_largest_posterior(answers):
    preferences = answers.to_preferences()
    method = make("plackett_luce", shape=1.6, weights=[2.0, 1.0, 0.5, 1.0])
    found = method.aggregate(preferences)
    assert found.diagnostics.converged
    for query in preferences.queries:
        rankings, size = rankings_of(preferences, query, [2.0, 1.0, 0.5, 1.0])
        spoken = {i for blocks, _, below in rankings for b in blocks for i in (range(size) if below else b)}
        here = sorted(spoken)
        scores = found.scores[preferences.index.slots(query)]
        expected = best_scores(rankings, size, 1.6)
        np.testing.assert_allclose(np.ptp(scores[here] - expected[here]), 0.0, atol=2e-6)


def test_the_rate_of_the_prior_only_sets_the_scale():
    rankings = [([[0], [1], [2]], 1.0, False), ([[2], [0]], 1.0, False)]
    a, b = (best_scores(rankings, 3, 1.5, rate) for rate in (0.1, 30.0))
    np.testing.assert_allclose(a, b, atol=1e-6)


def nascar(data_dir):
    with gzip.open(data_dir / "small" / "nascar2002.csv.gz", "rt") as file:
        return [[int(float(x)) for x in row[1:] if x] for row in list(csv.reader(file))[1:]]


def test_nascar_2002(data_dir):
    """Hunter (2004), table 2: log odds relative to driver 1, without the four drivers that only lose."""
    races = nascar(data_dir)
    kept = {n: [d for d in race if d <= 83] for n, race in enumerate(races)}
    found = make("plackett_luce", shape=1.0).aggregate(Preferences.from_lists({"2002": kept}))
    assert found.diagnostics.converged
    score = found.to_dict()["2002"]
    place = {d: np.mean([r.index(d) for r in races if d in r]) for d in score}
    order = sorted(place, key=lambda d: (place[d], d))
    shown = [round(score[d] - score[1], 2) for d in order[:3] + order[-3:]]
    assert shown == [4.15, 3.62, 2.08, 0.03, -0.31, -0.15]  # Jones, Pruett, Martin; Marcis, Trickle, Varde


def test_nascar_drivers_that_only_lose_are_named(data_dir):
    preferences = Preferences.from_lists({"2002": dict(enumerate(nascar(data_dir)))})
    with_prior = make("plackett_luce").aggregate(preferences)
    assert with_prior.diagnostics.converged
    assert (
        "4 items in 1 query (query '2002': 84, 85, 86, 87); only the prior" in with_prior.diagnostics.notes[1]
    )
    without = make("plackett_luce", shape=1.0).aggregate(preferences)
    assert not without.diagnostics.converged
    assert "no finite maximum" in without.diagnostics.notes[1]
    assert set(without.ranking("2002")[-4:]) == {84, 85, 86, 87}


def test_sushi_agrees_with_minorisation_maximisation(data_dir):
    """Hunter's MM iteration, written out for full rankings, and 5,000 people's orders of ten kinds of sushi."""
    preferences = formats.read(data_dir / "preflib/00014-sushi/00014-00000001.soc.gz").dataset().preferences
    found = make("plackett_luce", shape=1.0).aggregate(preferences)
    assert found.diagnostics.converged
    order = preferences.lists.item.reshape(-1, 10)
    odds, wins = np.ones(10), len(order) - np.bincount(order[:, -1], minlength=10)
    for _ in range(300):
        left = 1 / np.cumsum(odds[order][:, ::-1], axis=1)[:, ::-1]
        left[:, -1] = 0.0  # the last place is no choice
        odds = wins / np.bincount(order.ravel(), np.cumsum(left, axis=1).ravel())
    expected = np.log(odds) - np.log(odds).mean()
    np.testing.assert_allclose(found.scores, expected, atol=1e-6)


def test_agrees_with_choix(data_dir):
    choix = pytest.importorskip("choix")
    races = [[d for d in race if d <= 83] for race in nascar(data_dir)]
    ids = sorted({d for race in races for d in race})
    ours = make("plackett_luce", shape=1.0).aggregate(Preferences.from_lists({0: dict(enumerate(races))}))
    data = [[ids.index(d) for d in race] for race in races]
    theirs = choix.ilsr_rankings(len(ids), data, alpha=0, tol=1e-12, max_iter=1000)
    np.testing.assert_allclose(
        [ours.to_dict()[0][d] for d in ids], theirs - np.mean(theirs), atol=1e-6
    )  # fmt: skip


@pytest.mark.parametrize("name", PUBLISHED)
@pytest.mark.parametrize(("unlisted", "shape"), [("unknown", 11.0), ("below", 2.0)])
def test_published_figures(data_dir, name, unlisted, shape):
    """Within 1.5 points of the published rows, or above them, with a strong prior or the items unlisted below."""
    data = formats.read([data_dir / name / f"A{i}.txt.gz" for i in range(1, 6)]).dataset()
    preferences = data.preferences.with_unlisted(unlisted)
    consensus = make("plackett_luce", shape=shape).aggregate(preferences, ties="input")
    found = evaluate(consensus, data.labels, METRICS).mean_over_parts(data.part)
    assert (100 * np.array(list(found.values())) >= np.array(PUBLISHED[name]) - 1.5).all(), found


def test_symmetric_lists_tie():
    p = Preferences.from_lists({"q": {1: "abc", 2: "bca", 3: "cab"}})
    found = make("plackett_luce").aggregate(p)
    assert all(place.tied and place.score == 0 for place in found["q"])


def test_degenerate_queries():
    p = Preferences.from_rows(
        ["one", "alone", "two", "two"], ["e"] * 4, ["x", "x", "x", "y"], rank=[1, 1, 1, 2],
        candidates=(["alone", "none", "none"], ["z", "u", "v"]),
    )  # fmt: skip
    found = make("plackett_luce").aggregate(p)
    assert found.ranking("one") == ["x"]
    assert found.ranking("alone") == ["x", "z"]
    assert found.ranking("two") == ["x", "y"]
    assert [place.tied for place in found["none"]] == [True, True]
    # x was chosen once, and each of x and y once more from both: odds 2 to 1
    assert math.isclose(found.to_dict()["two"]["x"] - found.to_dict()["two"]["y"], math.log(2), rel_tol=1e-8)


def test_groups_that_nothing_compares_are_reported():
    p = Preferences.from_lists({"q": {1: ["a", "b"], 2: ["b", "a"], 3: ["c", "d"], 4: ["d", "c"]}})
    found = make("plackett_luce").aggregate(p)
    assert (
        "groups of items that no vote compares: 1 of 1 (the first is 'q'); the prior alone"
        in found.diagnostics.notes[1]
    )
    assert np.allclose(found.scores, 0.0)


def test_a_tie_of_two_is_half_a_win_for_each():
    rows = ["q"] * 3, ["e"] * 3, ["a", "a", "a"], ["b", "b", "b"]
    tied = Preferences.from_comparisons(*rows, tie=[True, True, False])
    split = Preferences.from_comparisons(["q"] * 3, ["e"] * 3, ["a", "b", "a"], ["b", "a", "b"])
    a, b = (make("plackett_luce").aggregate(p).scores for p in (tied, split))
    np.testing.assert_allclose(a, b)


def every_center(preferences, query, phi):
    """The best log-likelihood over all centers of one query of full or partial rankings without ties."""
    rankings, size = rankings_of(preferences, query)
    best = -math.inf
    for center in itertools.permutations(range(size)):
        place = {item: n for n, item in enumerate(center)}
        lists = []
        for blocks, weight, _ in rankings:
            held = sorted((i for b in blocks for i in b), key=place.__getitem__)
            lists.append((tuple(next(n for n, b in enumerate(blocks) if i in b) for i in held), weight))
        best = max(best, plain.mallows_log_likelihood(lists, phi))
    return best


def test_mallows_is_the_likeliest_of_all_centers():
    random = np.random.default_rng(2)
    names = ITEMS[:4]
    lists = {e: [str(i) for i in random.permutation(names)[: random.integers(2, 5)]] for e in range(6)}
    preferences = Preferences.from_lists({"q": lists})
    found = make("mallows").aggregate(preferences)
    phi = float(found.diagnostics.notes[0].split()[1].rstrip(","))
    values = [every_center(preferences, "q", p) for p in (phi - 1e-3, phi, phi + 1e-3)]
    np.testing.assert_allclose(found.diagnostics.objective, values[1], atol=1e-5)
    assert values[1] > max(values[0], values[2])


def test_mallows_orders_as_kemeny_and_spans_agreement_to_chance():
    for answers in iterate_samples(frozenset({Form.RANKING}), 2):
        p = answers.to_preferences()
        np.testing.assert_array_equal(make("mallows").aggregate(p).scores, make("kemeny").aggregate(p).scores)
    same = Preferences.from_lists({"q": {1: "abc", 2: "abc"}})
    assert make("mallows").aggregate(same).diagnostics.notes[0] == "phi 0, total distance 0"
    split = Preferences.from_lists({"q": {1: "ab", 2: "ba"}})
    assert make("mallows").aggregate(split).diagnostics.notes[0] == "phi 1, total distance 1"


def test_mallows_finds_the_dispersion_it_is_given():
    """Rankings drawn by repeated insertion with phi 0.6 around a known center."""
    random, phi, names = np.random.default_rng(0), 0.6, "abcdefgh"
    lists = {}
    for e in range(600):
        order = []
        for n, item in enumerate(names):
            odds = phi ** np.arange(n, -1, -1)  # the last place costs nothing
            order.insert(random.choice(n + 1, p=odds / odds.sum()), item)
        lists[e] = order
    found = make("mallows").aggregate(Preferences.from_lists({"q": lists}))
    assert "".join(found.ranking("q")) == names
    assert abs(float(found.diagnostics.notes[0].split()[1].rstrip(",")) - phi) < 0.02
