"""Bradley-Terry, Thurstone, rank centrality and Elo as methods: what they read, what they say, what is published."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from podium import BradleyTerry, Elo, Preferences, RankCentrality, formats, make
from podium.core.errors import InputError
from podium.evaluate import evaluate
from podium.methods import choice
from podium.testing import strategies
from reference import contests as plain
from reference.pairs import voices

few = settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
FAMILY = ("bradley_terry", "thurstone", "rank_centrality", "elo")


def votes(*rows, **columns):
    """Votes of one judge on one query from strings such as 'ab': a beats b."""
    return Preferences.from_comparisons(
        ["q"] * len(rows), ["j"] * len(rows), [r[0] for r in rows], [r[1] for r in rows], **columns
    )


# -- known values --------------------------------------------------------------------------------------------------


def test_log_odds_of_two():
    found = make("bradley_terry(l2=1e-9)").aggregate(votes("ab", "ab", "ab", "ba")).to_dict()["q"]
    assert found["a"] - found["b"] == pytest.approx(np.log(3), abs=1e-7)
    found = make("thurstone(l2=1e-9)").aggregate(votes("ab", "ab", "ab", "ba")).to_dict()["q"]
    assert found["a"] - found["b"] == pytest.approx(0.6744897501960817, abs=1e-7)  # the upper quartile


def test_gamma_prior_adds_votes_against_an_average_item():
    """The fixed point of Caron & Doucet: strength = (shape - 1 + wins) / (shape - 1 + sum of n / (own + other))."""
    p = votes("ab", "ab", "bc", "cb", "ac", "ab")
    found = make("bradley_terry(prior=gamma, shape=1.5)").aggregate(p).to_dict()["q"]
    s = {i: np.exp(v) for i, v in found.items()}
    wins, met = {"a": 4, "b": 1, "c": 1}, {("a", "b"): 3, ("b", "c"): 2, ("a", "c"): 1}
    for i in s:
        rate = sum(n / (s[x] + s[y]) for (x, y), n in met.items() if i in (x, y))
        assert s[i] == pytest.approx((0.5 + wins[i]) / (0.5 + rate), rel=1e-9)


@pytest.mark.parametrize("ties", ["half", "davidson", "rao_kupper"])
def test_ties_pull_together(ties):
    alone = make("bradley_terry", ties="ignore").aggregate(votes("ab", "ab", "ba", "ab")).to_dict()["q"]
    tie = [False, False, False, False, True, True]
    tied = make("bradley_terry", ties=ties).aggregate(votes("ab", "ab", "ba", "ab", "ab", "ba", tie=tie))
    assert 0 < tied.to_dict()["q"]["a"] < alone["a"] + 1e-9
    ignored = make("bradley_terry(ties=ignore)").aggregate(votes("ab", "ab", "ba", "ab", "ab", "ba", tie=tie))
    assert ignored.to_dict()["q"] == pytest.approx(alone, abs=1e-12)


def test_weights_of_votes_and_experts_multiply():
    heavy = Preferences.from_comparisons(["q"] * 3, ["x", "x", "y"], "aab", "bcc", weight=[1.5, 1, 0.25])
    spelled_out = votes(*["ab"] * 6, *["ac"] * 4, "bc")
    for name in ("bradley_terry", "thurstone", "rank_centrality"):
        found = make(name, weights={"x": 4, "y": 4}).aggregate(heavy).to_dict()["q"]
        assert found == pytest.approx(make(name).aggregate(spelled_out).to_dict()["q"], abs=1e-9)


@few
@given(preferences=strategies.comparisons())
def test_elo_equals_its_definition(preferences):
    found = Elo(k=20, scale=300, start=1000).aggregate(preferences).to_dict()
    table = preferences.comparisons
    items = preferences.index.items
    for q, query in enumerate(preferences.queries):
        rows = range(table.query_starts[q], table.query_starts[q + 1])
        played = [
            (items[table.winner[r]], items[table.loser[r]], table.tie[r], table.weight[r]) for r in rows
        ]
        assert found[query] == pytest.approx(plain.compute_elo(played, 20, 300, 1000), abs=1e-6)


def test_elo_list_is_one_game_for_each():
    found = make("elo").aggregate(Preferences.from_lists({"q": {1: "abc"}})).to_dict()["q"]
    assert found == {"a": 1516, "b": 1500, "c": 1484}
    below = Preferences.from_rows(
        ["q"], [1], ["a"], rank=[1], candidates=(["q"] * 2, list("bc")), unlisted="below"
    )
    assert make("elo").aggregate(below).to_dict()["q"]["a"] == 1516


def test_elo_in_rounds_does_not_depend_on_the_order():
    rows = ["ab", "bc", "ca", "ab", "ac", "bd", "da"]
    given_order, other = Elo().aggregate(votes(*rows)), Elo().aggregate(votes(*rows[::-1]))
    assert given_order.to_dict() != other.to_dict()
    a, b = (Elo(rounds=50, seed=3).aggregate(votes(*r)) for r in (rows, rows[::-1]))
    assert a.scores.tobytes() == b.scores.tobytes()
    assert a.scores.tobytes() != Elo(rounds=50, seed=4).aggregate(votes(*rows)).scores.tobytes()
    assert sum(a.to_dict()["q"].values()) == pytest.approx(6000)


@few
@given(preferences=strategies.preferences())
def test_rank_centrality_is_the_eigenvector(preferences):
    weights = dict.fromkeys(preferences.experts, 1)
    consensus = RankCentrality(smoothing=0.3).aggregate(preferences)
    assert consensus.diagnostics.converged
    for query in preferences.queries:
        items, said = voices(preferences, query, weights)
        number = {item: n for n, item in enumerate(items)}
        met = plain.count_contests(items, said)
        if len({i for pair in met for i in pair}) < len(items):
            continue  # items that met nobody
        pairs = [(number[i], number[j], *c) for (i, j), c in met.items()]
        if not _connected(len(items), pairs):
            continue
        expected = dict(zip(items, plain.stationary(len(items), pairs, 0.3), strict=True))
        assert consensus.to_dict()[query] == pytest.approx(expected, rel=1e-7)


def _connected(size, pairs) -> bool:
    linked = np.eye(size, dtype=bool)
    for i, j, *_ in pairs:
        linked[i, j] = linked[j, i] = True
    for _ in range(size.bit_length()):
        linked = linked @ linked
    return bool(linked.all())


def test_all_agree_where_the_votes_follow_the_model():
    """Votes in exactly the proportions of Bradley-Terry: both estimates give back the strengths."""
    strength = {"a": 4, "b": 2, "c": 1}
    rows = [(i, j, strength[i] / (strength[i] + strength[j])) for i in strength for j in strength if i != j]
    p = Preferences.from_comparisons(
        ["q"] * 6, ["j"] * 6, *([r[c] for r in rows] for c in (0, 1)), weight=[30 * r[2] for r in rows]
    )
    latent = make("bradley_terry(l2=1e-9)").aggregate(p).to_dict()["q"]
    walk = make("rank_centrality(smoothing=1e-9)").aggregate(p).to_dict()["q"]
    total = sum(np.exp(v) for v in latent.values())
    for i in strength:
        assert np.exp(latent[i]) / total == pytest.approx(strength[i] / 7, abs=1e-6)
        assert walk[i] == pytest.approx(strength[i] / 7, abs=1e-6)


# -- what the votes leave open -------------------------------------------------------------------------------------


def test_unbeaten_and_winless_items_are_named():
    found = make("bradley_terry").aggregate(votes("ab", "bc"))
    assert found.ranking("q") == ["a", "b", "c"]
    assert np.abs(found.scores).max() < 10
    assert found.diagnostics.converged
    assert found.diagnostics.notes == (
        "query 'q': never lost: 'a'; the prior (l2=0.001) keeps this finite",
        "query 'q': never won: 'c'; the prior (l2=0.001) keeps this finite",
    )


def test_groups_that_never_met_are_reported():
    p = votes("ab", "ba", "cd", "dc", "cd")
    for name in ("bradley_terry", "thurstone", "rank_centrality"):
        notes = make(name).aggregate(p).diagnostics.notes
        assert notes[0].startswith("query 'q': 2 groups of items never met")
    scores = make("bradley_terry").aggregate(p).to_dict()["q"]
    assert scores["a"] == scores["b"] == pytest.approx(0.0, abs=1e-12)
    assert scores["c"] == pytest.approx(-scores["d"])


def test_a_clean_graph_has_no_notes():
    assert make("bradley_terry").aggregate(votes("ab", "bc", "ca")).diagnostics.notes == ()


def test_only_the_first_queries_are_named():
    p = Preferences.from_comparisons(list(range(20)), ["j"] * 20, ["a"] * 20, ["b"] * 20)
    notes = make("bradley_terry").aggregate(p).diagnostics.notes
    assert len(notes) == 2 * choice.SHOWN + 1
    assert notes[-1] == "the same applies to 17 more queries of 20"


@pytest.mark.parametrize("name", FAMILY)
def test_one_vote_a_million_votes_and_heavy_ones(name):
    for p in (
        votes("ab"),
        votes("ab", weight=[1e12]),
        Preferences.from_comparisons(["q"] * 10**4, ["j"] * 10**4, ["a"] * 10**4, ["b"] * 10**4),
    ):
        found = make(name).aggregate(p)
        assert found.ranking("q") == ["a", "b"]
        assert np.isfinite(found.scores).all()
        assert found.diagnostics.converged


def test_many_equal_votes_cost_one_pair():
    n = 10**6
    code = np.zeros(n, np.int64)
    p = Preferences.from_comparisons(code, code, code, code + 1)
    found = make("bradley_terry").aggregate(p)
    assert found.ranking(0) == [0, 1]
    a = found.to_dict()[0][0]
    assert n / (1 + np.exp(2 * a)) == pytest.approx(0.001 * a, rel=1e-6)


@pytest.mark.parametrize("name", FAMILY)
def test_candidates_that_nobody_lists_come_last(name):
    p = Preferences.from_rows(["q"] * 2, [1, 1], ["b", "c"], rank=[1, 2], candidates=(["q"], ["a"]))
    assert make(name).aggregate(p).ranking("q") == ["b", "c", "a"]


def test_objective_is_the_penalised_likelihood():
    found = BradleyTerry(l2=0.5).aggregate(votes("ab", "ab", "ba"))
    a, b = (found.to_dict()["q"][i] for i in "ab")
    expected = 2 * np.log1p(np.exp(b - a)) + np.log1p(np.exp(a - b)) + 0.25 * (a * a + b * b)
    assert found.diagnostics.objective == pytest.approx(expected, rel=1e-12)


# -- published rows ------------------------------------------------------------------------------------------------

PUBLISHED = {  # NDCG@1..5 and MAP of Bradley-Terry, Volkovs, Larochelle & Zemel
    "mq2008-agg": [38.05, 39.24, 40.77, 41.79, 42.62, 44.35],
    "mq2007-agg": [39.88, 39.86, 40.40, 40.60, 40.91, 43.98],
}


@pytest.mark.data
@pytest.mark.parametrize("name", PUBLISHED)
def test_published_rows_are_reached(data_dir, name):
    data = formats.read([data_dir / name / f"A{i}.txt.gz" for i in range(1, 6)]).dataset()
    below = dataclasses.replace(data.preferences, unlisted="below")
    found = make("bradley_terry").aggregate(below, ties="input")
    assert found.diagnostics.converged
    metrics = [f"ndcg@{k}:letor" for k in range(1, 6)] + ["map"]
    means = evaluate(found, data.labels, metrics).mean_over_parts(data.part)
    got = 100 * np.array(list(means.values()) if isinstance(means, dict) else means)
    assert (got > PUBLISHED[name]).all()


def test_the_advantage_of_being_shown_first_is_taken_out():
    """Votes from known scores and a known advantage: with the option both are found, without it neither."""
    random = np.random.default_rng(0)
    truth, advantage, n = np.array([0.0, 0.3, 0.6]), 1.0, 30_000
    # the weakest item is shown first most of the time
    first, second = np.array([0, 0, 0, 1, 2])[random.integers(0, 5, n)], np.zeros(n, np.int64)
    second = np.where(first == 0, random.integers(1, 3, n), np.where(first == 1, 2, 1))
    wins = random.random(n) < 1 / (1 + np.exp(-(truth[first] - truth[second] + advantage)))
    winner, loser = np.where(wins, first, second), np.where(wins, second, first)
    p = Preferences.from_comparisons(
        np.zeros(n, int), np.zeros(n, int), winner, loser, side=np.where(wins, 1, -1)
    )
    fair = make("bradley_terry(advantage=True)").aggregate(p)
    assert fair.ranking(0) == [2, 1, 0]
    np.testing.assert_allclose(fair.scores - fair.scores[0], truth, atol=0.08)
    assert "0 +1.0" in fair.diagnostics.notes[0] or "0 +0.9" in fair.diagnostics.notes[0]
    assert make("bradley_terry").aggregate(p).ranking(0)[0] == 0
    blind = Preferences.from_comparisons([0], ["j"], ["a"], ["b"])
    with pytest.raises(InputError, match="do not record the order"):
        make("bradley_terry(advantage=True)").aggregate(blind)
