"""Intervals where votes weigh differently or hang together: against definitions, textbook formulas and simulation."""

from __future__ import annotations

import importlib.util
import math
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import t as student

from podium import Preferences
from podium.analysis.leaderboard import Tally, leaderboard, load, save
from podium.analysis.leaderboard import inference as u
from podium.core.errors import ParameterError
from podium.kernels import bootstrap as drawing

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "interval_coverage.py"


@pytest.fixture(scope="module")
def simulation():
    spec = importlib.util.spec_from_file_location("interval_coverage", BENCHMARK)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def star(weight_of_first=1.0, seed=0):
    """One judge, item 0 against each of three others 200 times; the first vote has another weight."""
    random = np.random.default_rng(seed)
    other = np.repeat([1, 2, 3], 200)
    won = random.random(600) < np.repeat([0.3, 0.6, 0.8], 200)
    weight = np.ones(600)
    weight[0] = weight_of_first
    same = np.zeros(600, int)
    return Preferences.from_comparisons(
        same, same, np.where(won, 0, other), np.where(won, other, 0), weight=weight
    )


def on_two_items(shares, votes, weight=1.0):
    """Judge j gives the share j of so many votes to a over b."""
    rows = [(j, "ab" if k < round(s * votes) else "ba") for j, s in enumerate(shares) for k in range(votes)]
    judge, sides = zip(*rows, strict=True)
    winner, loser = zip(*sides, strict=True)
    count = len(rows)
    return Preferences.from_comparisons([0] * count, judge, winner, loser, weight=[weight] * count)


# -- weights ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rounds", [0, 400])
def test_one_vote_of_fractional_weight_leaves_the_errors_as_they_are(rounds):
    whole, half = (leaderboard(star(w), bootstrap=rounds, over="votes") for w in (1.0, 0.5))
    for row in whole.rows:
        assert half[row.item].error == pytest.approx(row.error, rel=0.15 if rounds else 0.01)


def test_a_weight_is_a_number_of_votes_or_the_importance_of_one():
    """Against the sum over single votes, w g g' for frequencies and w^2 g g' for importance."""
    random = np.random.default_rng(3)
    a = random.integers(0, 5, 200)
    b = (a + random.integers(1, 5, 200)) % 5
    weight = random.uniform(0.2, 3, 200)
    p = Preferences.from_comparisons(np.zeros(200, int), random.integers(0, 4, 200), a, b, weight=weight)
    for meaning, power in (("frequency", 1), ("importance", 2)):
        board = leaderboard(p, over="votes", vote_weights=meaning, scale="natural")
        e = board.estimate
        slope = 1 / (1 + np.exp(e.scores[b] - e.scores[a])) - 1
        g = np.zeros((200, 5))
        g[np.arange(200), a], g[np.arange(200), b] = slope, -slope
        meat = (g * weight[:, None] ** power).T @ g
        expected = u.center_covariance(e.inverse_hessian @ meat @ e.inverse_hessian, e.core)
        assert np.allclose(board.matrix, expected)
        assert board.scheme.vote_weights == meaning


@pytest.mark.parametrize("errors", ["sandwich", "fisher"])
@pytest.mark.parametrize("rounds", [0, 300])
def test_weight_two_is_two_votes_and_importance_does_not_depend_on_the_unit(errors, rounds):
    once, settings = on_two_items([0.4, 0.7], 50), {"errors": errors, "bootstrap": rounds, "over": "votes"}
    twice = leaderboard(on_two_items([0.4, 0.7], 100), **settings)
    heavy = on_two_items([0.4, 0.7], 50, weight=2.0)
    assert leaderboard(heavy, **settings)["a"].error == pytest.approx(twice["a"].error, rel=1e-9)
    plain = leaderboard(once, **settings)["a"].error
    # the prior weighs less beside heavier votes, by less than a percent here
    for weight in (2.0, 0.5, 0.3):
        scaled = leaderboard(
            on_two_items([0.4, 0.7], 50, weight=weight), vote_weights="importance", **settings
        )
        assert scaled["a"].error == pytest.approx(plain, rel=0.01)


def test_weights_are_read_by_what_they_are_and_the_board_says_so():
    board = leaderboard(star(0.5))
    assert (board.scheme.vote_weights, board.scheme.over) == ("importance", "votes")
    assert "a vote counts as one vote, whatever its weight (some are not whole numbers)" in board.scheme.text
    board = leaderboard(star(3.0))
    assert board.scheme.vote_weights == "frequency"
    assert "a vote of weight w counts as w votes (all are whole numbers)" in board.scheme.text
    assert "weight" not in leaderboard(star()).scheme.text
    # two halves of a vote are whole in sum, and still fractions
    both = Tally.from_preferences(star(0.5)) + Tally.from_preferences(star(0.5))
    assert leaderboard(both).scheme.vote_weights == "importance"
    with pytest.raises(
        ParameterError, match="vote_weights is 'counts'; accepted: auto, frequency, importance"
    ):
        leaderboard(star(), vote_weights="counts")


def test_totals_drawn_have_the_mean_and_variance_of_weighted_votes():
    weights = [
        np.full(9, 0.5),
        np.array([0.1, 0.2, 0.9]),
        np.array([7.5]),
        np.linspace(0.1, 3, 60),
        np.ones(4),
    ]
    totals, squares = (np.array([(w**k).sum() for w in weights]) for k in (1, 2))
    repeated = np.repeat(totals, 20_000), np.repeat(squares, 20_000)
    drawn = drawing._sample_poisson(
        drawing.derive_round_keys(1, 1), drawing.build_poisson_tables(*repeated)
    ).reshape(5, -1)
    assert np.allclose(drawn.mean(axis=1), totals, atol=4 * np.sqrt(squares / 20_000).max())
    assert np.allclose(drawn.var(axis=1), squares, rtol=0.06)


def test_soft_votes_have_the_errors_of_their_shares():
    """Two items: the error of the log odds is that of the mean share, over its slope."""
    random = np.random.default_rng(5)
    s = random.beta(3, 2, 400)
    query = np.tile(np.arange(400), 2)
    winner, loser = ["a"] * 400 + ["b"] * 400, ["b"] * 400 + ["a"] * 400
    p = Preferences.from_comparisons(query, ["llm"] * 800, winner, loser, weight=np.concatenate((s, 1 - s)))
    board = leaderboard(p, scale="natural")
    mean = s.mean()
    wanted = s.std(ddof=1) / math.sqrt(400) / (mean * (1 - mean))
    assert 2 * board["a"].error == pytest.approx(wanted, rel=0.01)
    assert "400 soft votes" in board.scheme.text
    alike = Preferences.from_comparisons(
        np.zeros(800, int), ["llm"] * 800, winner, loser, weight=np.concatenate((s, 1 - s))
    )
    assert wanted < 2 * leaderboard(alike, scale="natural")["a"].error < 3 * wanted  # wider, never narrower


# -- experts and queries ---------------------------------------------------------------------------------------------


SHARES = [0.3, 0.5, 0.55, 0.8, 0.35]


@pytest.mark.parametrize("settings", [{}, {"over": "experts"}])
def test_a_few_judges_have_the_interval_of_students_t(settings):
    """Two items, judges of equal size: the interval of a mean share, through the slope of the log odds."""
    board = leaderboard(on_two_items(SHARES, 40), scale="natural", **settings)
    mean = np.mean(SHARES)
    error = np.std(SHARES, ddof=1) / math.sqrt(len(SHARES)) / (mean * (1 - mean))
    half = student.ppf(0.975, len(SHARES) - 1) * error / 2
    row = board["a"]
    assert (row.high - row.low) / 2 == pytest.approx(half, rel=0.01)
    assert board.degrees == pytest.approx([4.0, 4.0])
    gap = abs(row.score - board["b"].score)
    wanted = 2 * student.sf(gap / error, len(SHARES) - 1)
    assert u.pairwise_p(board.estimate.scores, board.matrix, board.degrees)[0, 1] == pytest.approx(
        wanted, rel=0.02
    )
    assert (board.scheme.over, board.scheme.clusters) == ("experts", 5)


def test_the_board_says_what_its_intervals_are_over_and_why():
    board = leaderboard(on_two_items(SHARES, 40))
    assert board.scheme.text.startswith("intervals are over 5 experts (votes of one expert vary ")
    assert board.scheme.dispersion["experts"] > 2
    assert board.to_dict()["scheme"]["over"] == "experts"
    plain = leaderboard(on_two_items(SHARES, 40), over="votes")
    assert plain.scheme.text.startswith(
        "intervals are over single votes, as requested (votes of one expert vary "
    )
    assert plain["a"].error < board["a"].error / 1.5
    same = leaderboard(on_two_items([0.5] * 5, 40))
    assert same.scheme.over == "votes"
    alone = leaderboard(on_two_items([0.6], 40))
    assert alone.scheme.text == "intervals are over single votes: there is one expert and one query"


def test_dispersion_is_one_for_judges_who_cast_one_vote_each():
    p = star()
    v, items = p.comparisons, np.array(p.index.items.tolist())
    apart = Preferences.from_comparisons(np.zeros(600, int), np.arange(600), items[v.winner], items[v.loser])
    tally = Tally.from_preferences(apart)
    e = u.estimate_scores(tally.to_contests())
    found = u.compute_dispersion(
        e, tally.pair_of_row(), tally.expert, tally.sums, tally.weight_squares("frequency")
    )
    assert found == pytest.approx(1.0, abs=1e-12)
    assert leaderboard(apart).scheme.over == "votes"


def test_dispersion_is_the_mean_square_of_shares_over_the_binomial_variance():
    board = leaderboard(on_two_items(SHARES, 40))
    mean = np.mean(SHARES)
    wanted = np.var(SHARES, ddof=1) / (mean * (1 - mean) / 40)
    assert board.scheme.dispersion["experts"] == pytest.approx(wanted, rel=0.03)


def test_votes_on_one_query_that_go_together_are_seen_too():
    random = np.random.default_rng(1)
    won = np.repeat(random.random(60) < 0.6, 10)
    query, judge = np.repeat(np.arange(60), 10), np.tile(np.arange(10), 60)
    board = leaderboard(
        Preferences.from_comparisons(query, judge, np.where(won, "a", "b"), np.where(won, "b", "a"))
    )
    assert (board.scheme.over, board.scheme.clusters) == ("queries", 60)
    assert board.scheme.dispersion["queries"] == pytest.approx(10, rel=0.05)


def test_an_item_of_one_judge_only_is_open_where_judges_differ():
    rows = [
        (j, w, o)
        for j, s in enumerate((20, 60, 90))
        for k in range(100)
        for w, o in ["ab" if k < s else "ba"]
    ]
    rows += [(0, "c" if k % 2 else "a", "a" if k % 2 else "c") for k in range(100)]
    judge, winner, loser = zip(*rows, strict=True)
    p = Preferences.from_comparisons([0] * len(rows), judge, winner, loser)
    board = leaderboard(p)
    assert board.scheme.over == "experts"
    assert (board["c"].low, board["c"].high) == (-math.inf, math.inf)
    assert (board["c"].rank_low, board["c"].rank_high) == (1, 3)
    assert math.isfinite(board["a"].low)
    assert math.isfinite(leaderboard(p, over="votes")["c"].low)


def test_the_bootstrap_of_a_few_judges_is_as_wide_as_the_sandwich():
    shares = [0.3, 0.5, 0.55, 0.8, 0.35, 0.6, 0.45, 0.7]
    sandwich, drawn = (leaderboard(on_two_items(shares, 40), bootstrap=n) for n in (0, 2000))
    assert drawn["a"].error == pytest.approx(sandwich["a"].error, rel=0.1)
    assert drawn["a"].high - drawn["a"].low == pytest.approx(sandwich["a"].high - sandwich["a"].low, rel=0.1)


def test_errors_of_the_model_have_nothing_to_choose():
    board = leaderboard(on_two_items(SHARES, 40), errors="fisher", scale="natural")
    assert board.scheme.over == "votes"
    mean = np.mean(SHARES)
    assert 2 * board["a"].error == pytest.approx(1 / math.sqrt(200 * mean * (1 - mean)), rel=0.01)


def test_what_was_asked_is_kept_and_decided_anew_with_more_votes(tmp_path):
    path = tmp_path / "b.podium"
    save(leaderboard(on_two_items([0.5, 0.5, 0.5], 40, weight=0.5)), path)
    again = load(path)
    assert (again.settings.over, again.scheme.over, again.scheme.vote_weights) == (
        "auto",
        "votes",
        "importance",
    )
    more = again.with_votes(on_two_items([0.1, 0.9, 0.5], 40))
    assert (more.settings.over, more.scheme.over) == ("auto", "experts")
    whole = leaderboard(again.tally + Tally.from_preferences(on_two_items([0.1, 0.9, 0.5], 40)))
    assert more["a"].error == pytest.approx(whole["a"].error, rel=1e-6)


# -- coverage --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["one_half", "counts", "importance", "probability", "soft"])
def test_intervals_of_weighted_votes_cover(simulation, name):
    """Before, the sandwich covered 10, 21, 5, 73 and 13 %."""
    settings = {"counts": {"vote_weights": "frequency"}, "probability": {"vote_weights": "importance"}}
    found = simulation.covered(getattr(simulation, name), settings.get(name, {}), 40)
    assert 88 <= found["intervals"] <= 99.5


@pytest.mark.parametrize("judges", [3, 10])
@pytest.mark.parametrize("opinions", [0.0, 0.5])
def test_intervals_of_judges_with_opinions_cover(simulation, judges, opinions):
    found = simulation.covered(simulation.opinionated(judges, opinions), {}, 40)
    assert 88 <= found["intervals"] <= 99.5
    assert found["clustered"] > 95 if opinions else found["clustered"] < 80


def test_intervals_cover_where_copies_share_a_voice(simulation):
    found = simulation.covered(simulation.copied(2), {"judges": "discounted", "over": "votes"}, 40)
    assert 90 <= found["intervals"] <= 99.5
