"""Claims at every look: e-values against direct sums, simulations of error, bounds of win rates, the leader."""

from __future__ import annotations

import math

import numpy as np
import pytest

from podium import Preferences
from podium.analysis.leaderboard import PairEvidence, anytime_leaderboard, leaderboard, load, save
from podium.analysis.leaderboard.anytime_board import collect_evidence, find_rank_claims
from podium.analysis.leaderboard.confidence_sequences import (
    ADVANTAGES,
    bound_win_rate,
    close_claims,
    compute_log_evidence,
    mixture_critical_value,
)
from podium.core.errors import InputError, ParameterError


def make_votes(scores, votes, seed=0, ties=0.0):
    random = np.random.default_rng(seed)
    a = random.integers(0, len(scores), votes)
    b = (a + random.integers(1, len(scores), votes)) % len(scores)
    first = random.random(votes) < 1 / (1 + np.exp(scores[b] - scores[a]))
    names = np.array([f"m{i}" for i in range(len(scores))])
    zeros = np.zeros(votes, int)
    winner, loser = names[np.where(first, a, b)], names[np.where(first, b, a)]
    tie = random.random(votes) < ties
    return Preferences.from_comparisons(zeros, zeros, winner.tolist(), loser.tolist(), tie=tie)


def test_evidence_is_the_mean_likelihood_ratio():
    for won, lost in ((0, 0), (3, 1), (7, 20)):
        chances = [1 / (1 + math.exp(-a)) for a in ADVANTAGES]
        expected = np.mean([(2 * p) ** won * (2 * (1 - p)) ** lost for p in chances])
        assert math.exp(compute_log_evidence(np.array(won), np.array(lost))) == pytest.approx(expected)


def test_evidence_is_fair_without_an_advantage():
    """By enumeration: the expected e-value after n fair votes is 1, and less if the item is worse."""
    for n in (1, 5, 12):
        won = np.arange(n + 1.0)
        counts = np.array([math.comb(n, k) for k in range(n + 1)])
        values = np.exp(compute_log_evidence(won, n - won))
        assert counts @ values / 2**n == pytest.approx(1)
        assert counts * 0.4**won * 0.6 ** (n - won) @ values < 1


def test_votes_one_by_one_equal_counts():
    random = np.random.default_rng(1)
    one = PairEvidence(5)
    won, tied = np.zeros((5, 5)), np.zeros((5, 5))
    for _ in range(400):
        a, b = map(int, random.choice(5, 2, replace=False))
        tie = random.random() < 0.2
        one.add(a, b, tie=tie)
        won[a, b] += not tie
        tied[a, b] += tie
        tied[b, a] += tie
    many = PairEvidence.from_counts(won, tied)
    np.testing.assert_allclose(one.against_best, many.against_best, atol=1e-12)
    np.testing.assert_allclose(one.below, many.below, atol=1e-12)
    np.testing.assert_array_equal(one.tied, many.tied)
    # against being the best: half the mean over rivals, half all votes together
    pairs = [np.exp(compute_log_evidence(won[k, 2], won[2, k])) for k in range(5) if k != 2]
    pooled = np.exp(compute_log_evidence(won[:, 2].sum(), won[2].sum()))
    assert np.exp(many.against_best[2]) == pytest.approx((np.mean(pairs) + pooled) / 2)


def test_error_at_some_look_stays_below_the_level():
    """120 simulations of 5 equal items with 100 looks; the pair that looks clearest is asked again and again."""
    random = np.random.default_rng(2)
    false_claims = exclusions = 0
    for _ in range(120):
        evidence = PairEvidence(5)
        claimed = excluded = False
        for _look in range(100):
            target = int(evidence.below.argmax())
            for _vote in range(5):
                chase = random.random() < 0.5 and target % 6
                a, b = divmod(target, 5) if chase else map(int, random.choice(5, 2, replace=False))
                evidence.add(*((a, b) if random.random() < 0.5 else (b, a)))
            claimed |= bool(evidence.find_claims().any())
            excluded |= not evidence.find_contenders()[0]
        false_claims, exclusions = false_claims + claimed, exclusions + excluded
    # 5 % of 120 is 6; more than 13 has probability below 0.005
    assert false_claims <= 13
    assert exclusions <= 13


def test_ranks_by_the_model_hold_at_every_look():
    """30 simulations of 6 equal items with 20 looks, and a clear order that is found."""
    wrong = 0
    for seed in range(30):
        random = np.random.default_rng(seed)
        a = random.integers(0, 6, 800)
        b = (a + random.integers(1, 6, 800)) % 6
        zeros, ever = np.zeros(800, int), False
        for votes in range(40, 801, 40):
            columns = (zeros[:votes], zeros[:votes], a[:votes], b[:votes])
            ever |= bool(find_rank_claims(leaderboard(Preferences.from_comparisons(*columns))).any())
        wrong += ever
    assert wrong <= 5  # 5 % of 30 is 1.5; more than 5 has probability below 0.005
    board = leaderboard(make_votes(np.array([1.5, 0.5, 0.0, -1.0]), 3000))
    claims = find_rank_claims(board)
    assert claims[0, 1:].all()
    assert not claims[1:, 0].any()


def test_boundary_of_the_mixture():
    """The value at which the likelihood ratio of a normal mixture is one over the error."""
    for information, error in ((4.0, 0.05), (25.0, 0.01), (3000.0, 0.001)):
        z = float(mixture_critical_value(np.array([information]), error)[0])
        total = z * math.sqrt(information)  # a sum with variance `information`
        slope = np.linspace(-60, 60, 2_000_001) / math.sqrt(25 + information)
        logs = (
            slope * total - slope**2 * information / 2 - slope**2 * 25 / 2 + math.log(25 / (2 * math.pi)) / 2
        )
        ratio = np.exp(logs).sum() * (slope[1] - slope[0])
        assert ratio == pytest.approx(1 / error, rel=1e-3)


def test_bounds_of_win_rates():
    special = pytest.importorskip("scipy.special")
    won, lost = np.array([60.0, 0.0, 3.5, 0.0]), np.array([40.0, 12.0, 2.5, 0.0])
    low, high = bound_win_rate(won, lost, 0.9)
    for wins, losses, one, two in zip(won, lost, low, high, strict=True):
        for end in (one, two):
            if 1e-9 < end < 1 - 1e-9:
                ratio = special.betaln(wins + 0.5, losses + 0.5) - special.betaln(0.5, 0.5)
                ratio -= wins * math.log(end) + losses * math.log1p(-end)
                assert ratio == pytest.approx(math.log(10), abs=1e-6)
    assert (low[1], low[3], high[3]) == pytest.approx((0, 0, 1))
    assert high[1] < 0.5


def test_bounds_hold_at_every_look():
    random = np.random.default_rng(3)
    missed = 0
    for _ in range(400):
        won = np.cumsum(random.random(500) < 0.3).astype(float)
        low, high = bound_win_rate(won, np.arange(1, 501) - won)
        missed += bool(((low > 0.3) | (high < 0.3)).any())
    assert missed <= 32  # 5 % of 400 is 20; more than 32 has probability below 0.005


def test_claims_follow_by_transitivity():
    claims = np.zeros((4, 4), bool)
    claims[0, 1] = claims[1, 2] = True
    assert close_claims(claims)[0, 2]
    assert close_claims(claims).sum() == 3
    claims[2, 0] = True  # a circle claims nothing
    assert not close_claims(claims)[:3, :3].any()


def test_a_clear_leader_and_ranks():
    board = anytime_leaderboard(make_votes(np.array([1.5, 0.5, 0.0, -1.0]), 3000, ties=0.1))
    assert (board.leader, board.contenders) == ("m0", ("m0",))
    assert board.conclusion == "m0 is the best at 95%, at every look"
    assert board.votes_needed == {}
    assert (board["m0"].rank_low, board["m0"].rank_high) == (1, 1)
    assert board["m3"].rank_low == 4
    pair = board.compare_pair("m0", "m3")
    assert pair.low < 1 / (1 + math.exp(-2.5)) * 0.9 + 0.05 < pair.high
    assert pair.first_above > 1e6 > 1 > pair.second_above
    with pytest.raises(ParameterError, match="there is no item 'm9'"):
        board.compare_pair("m0", "m9")


def test_votes_needed_are_about_right():
    """The estimate from half of the votes: continuing as estimated excludes the rivals after about as many."""
    board = anytime_leaderboard(make_votes(np.array([0.45, 0.0, -0.6]), 300, seed=5))
    needed = board.votes_needed
    assert needed
    assert "more comparisons of m0" in board.conclusion
    items, scores = board.plain.tally.items, board.plain.estimate.scores
    won = board.evidence.won.copy()
    for rival, votes in needed.items():
        a, b = items.code_of("m0"), items.code_of(rival)
        chance = 1 / (1 + math.exp(scores[b] - scores[a]))
        won[a, b] += chance * votes
        won[b, a] += (1 - chance) * votes
    assert PairEvidence.from_counts(won, board.evidence.tied).find_contenders().tolist() == [
        True,
        False,
        False,
    ]


def test_equal_items_are_too_close_to_foresee():
    votes = Preferences.from_comparisons([0] * 40, [0] * 40, ["a", "b"] * 20, ["b", "a"] * 20)
    board = anytime_leaderboard(votes)
    assert board.contenders == ("a", "b")
    assert "too close to foresee" in board.conclusion


def test_a_saved_board_continues(tmp_path):
    scores = np.array([0.8, 0.0, -0.8])
    one, two = make_votes(scores, 200, seed=6), make_votes(scores, 300, seed=7)
    save(leaderboard(one), tmp_path / "board.podium")
    continued = anytime_leaderboard(load(tmp_path / "board.podium").with_votes(two))
    whole = anytime_leaderboard(Preferences.concat([one, two]))
    for mine, other in zip(continued, whole, strict=True):
        assert (mine.item, mine.rank_low, mine.rank_high) == (other.item, other.rank_low, other.rank_high)
        assert mine.against == pytest.approx(other.against)


def test_correlated_votes_are_named():
    judges = np.repeat([f"j{k}" for k in range(4)], 100).tolist()
    sides = [("a", "b") if k % 100 < share else ("b", "a") for share in (20, 50, 60, 90) for k in range(100)]
    winner, loser = zip(*sides, strict=True)
    board = anytime_leaderboard(Preferences.from_comparisons([0] * 400, judges, winner, loser))
    assert "votes within experts may be correlated" in board.warning
    assert board.to_dict()["warning"] == board.warning


def test_lists_and_fractions_are_refused():
    lists = Preferences.from_lists({"q": {"e": ["a", "b", "c"], "f": ["b", "a", "c"]}})
    with pytest.raises(InputError, match="come from lists"):
        anytime_leaderboard(lists)
    soft = Preferences.from_comparisons([0] * 3, [0] * 3, list("aba"), list("bab"), weight=[0.5, 1, 1])
    with pytest.raises(InputError, match="not a whole number"):
        collect_evidence(leaderboard(soft).tally)
