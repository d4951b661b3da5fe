"""What to ask next, against Monte Carlo; when to stop."""

from __future__ import annotations

import numpy as np
import pytest

from podium import Preferences
from podium.analysis.leaderboard import Tally, leaderboard
from podium.analysis.leaderboard import active_sampling as n
from podium.analysis.leaderboard import inference as u
from podium.analysis.leaderboard.score_estimate import compute_information, compute_outcome_probabilities


def board(won):
    """An estimate from a table of wins."""
    rows = [(a, b) for (a, b), times in won.items() for _ in range(times)]
    winner, loser = map(list, zip(*rows, strict=True))
    p = Preferences.from_comparisons([0] * len(rows), ["j"] * len(rows), winner, loser)
    e = u.estimate_scores(Tally.from_preferences(p).to_contests())
    return e, u.compute_covariance(e, "fisher")


WON = {
    ("a", "b"): 9,
    ("b", "a"): 6,
    ("b", "c"): 30,
    ("c", "b"): 30,
    ("c", "d"): 5,
    ("d", "c"): 1,
    ("a", "d"): 2,
}


def test_gain_is_the_information_that_monte_carlo_finds():
    e, matrix = board(WON)
    drawn = u.sample_scores(e.scores, matrix, draws=200_000)
    pairs = [(i, j) for i in range(4) for j in range(i + 1, 4)]
    gains = n.compute_gains(e, matrix)

    def entropy(p):
        return -(p * np.log(p) + (1 - p) * np.log(1 - p))

    truth = []
    for i, j in pairs:
        chance = 1 / (1 + np.exp(drawn[:, j] - drawn[:, i]))
        truth.append(entropy(chance.mean()) - entropy(chance).mean())  # mutual information of vote and scores
    ours = np.array([gains[i, j] for i, j in pairs])
    assert (np.argsort(ours) == np.argsort(truth)).all()
    assert np.allclose(ours, truth, rtol=0.25)


def test_the_gain_falls_with_votes_and_with_certainty():
    e, matrix = board({("a", "b"): 4, ("b", "a"): 4, ("b", "c"): 40, ("c", "b"): 40})
    first, *_ = n.find_next_pairs(e, matrix, 3)
    assert {first.first, first.second} == {0, 2}  # never met, so least is known of their difference
    assert first.votes == 0
    assert n.compute_gains(e, matrix)[1, 2] < n.compute_gains(e, matrix)[0, 1]


@pytest.mark.parametrize("ties", ["davidson", "rao_kupper"])
def test_chances_add_up_and_information_is_the_expected_curvature(ties):
    tie = [False, True, False, False, True, False]
    p = Preferences.from_comparisons([0] * 6, [0] * 6, list("aabbcc"), list("bbcaab"), tie=tie)
    e = u.estimate_scores(Tally.from_preferences(p).to_contests(), ties=ties)
    gap = np.linspace(-3, 3, 7)
    win, lose, tie = compute_outcome_probabilities(e.solution, gap)
    assert np.allclose(win + lose + tie, 1)
    assert np.allclose(win, lose[::-1])
    assert (tie > 0).all()
    step = 1e-5
    slopes = [(np.log(b) - np.log(a)) / (2 * step) for a, b in zip(
        compute_outcome_probabilities(e.solution, gap - step),
        compute_outcome_probabilities(e.solution, gap + step), strict=True)]  # fmt: skip
    fisher = sum(p * s**2 for p, s in zip((win, lose, tie), slopes, strict=True))
    assert np.allclose(compute_information(e.solution, gap), fisher, rtol=1e-4)


def test_focus_on_the_top_looks_at_its_boundary():
    won = {(a, b): 1 for a in range(6) for b in range(6) if a != b}
    for i in range(5):
        won[i, i + 1] = 400 if i != 1 else 30  # places 2 and 3 are close, all others far apart
        won[i + 1, i] = 100 if i != 1 else 28
    e, matrix = board(won)
    draws = u.sample_scores(e.scores, matrix)
    best = n.find_next_pairs(e, matrix, 1, top=2, draws=draws)[0]
    assert {best.first, best.second} == {1, 2}
    weight = n.compute_relevance(draws, 2)
    assert weight[1, 2] > 0.1 > weight[0, 5]


def test_stopping_rule():
    close = {("a", "b"): 10, ("b", "a"): 9, ("b", "c"): 40, ("c", "b"): 2}
    e, matrix = board(close)
    found = n.decide_stopping(e, matrix)
    assert (found.stop, found.reason, found.between) == (False, "open", (0, 1))
    assert found.votes > 1000
    assert n.decide_stopping(e, matrix, top=2).stop
    clear = {("a", "b"): 100, ("b", "a"): 20, ("b", "c"): 100, ("c", "b"): 20}
    assert n.decide_stopping(*board(clear)) == n.StoppingDecision(True, "settled")
    even = {(a, b): 40_000 for a in "ab" for b in "ab" if a != b}
    assert n.decide_stopping(*board(even)).reason == "as good as equal"
    few = {(a, b): 20 for a in "ab" for b in "ab" if a != b}  # equal as far as 40 votes go
    assert not n.decide_stopping(*board(few)).stop
    apart = n.decide_stopping(*board({("a", "b"): 3, ("b", "a"): 3, ("c", "d"): 3, ("d", "c"): 3}))
    assert (apart.stop, apart.reason) == (False, "never met")


def test_votes_to_separate_do_separate():
    e, matrix = board({("a", "b"): 60, ("b", "a"): 45})
    [more] = n.votes_to_separate(e, matrix, np.array([0]), np.array([1]))
    win = 1 / (1 + np.exp(e.scores[1] - e.scores[0]))
    longer, wide = board({("a", "b"): 60 + round(more * win), ("b", "a"): 45 + round(more * (1 - win))})
    z = (longer.scores[0] - longer.scores[1]) / np.sqrt(n.compute_difference_variances(wide)[0, 1])
    assert z == pytest.approx(1.96, abs=0.1)  # the scores move a little as votes are whole


def test_words_of_a_leaderboard():
    p = Preferences.from_comparisons([0] * 40, ["j"] * 40, ["a"] * 21 + ["b"] * 19, ["b"] * 21 + ["a"] * 19)
    found = leaderboard(p)
    stop, why = found.stopping()
    assert not stop
    assert why.startswith(
        f"continue: the votes do not separate a and b at 95% (p = {found.p_value('a', 'b'):.3f})"
    )
    assert found.next(3)[0].first == "a"


def test_scores_that_are_equal_but_for_rounding_need_endless_votes():
    e, matrix = board(WON)
    scores = e.scores.copy()
    scores[1] = scores[0] + 1e-13
    near = u.Estimate(e.contests, e.solution, scores, e.core, e.above, e.below)
    assert n.votes_to_separate(near, matrix, np.array([0]), np.array([1])) == [float("inf")]


def random_board(seed):
    """Five items, some of them close, with 20 to 3,000 votes by one judge."""
    random = np.random.default_rng(seed)
    truth = random.normal(size=5) * random.choice([0.02, 0.3, 1.5], 5)
    count = int(random.choice([20, 300, 3_000]))
    a = random.integers(0, 5, count)
    b = (a + random.integers(1, 5, count)) % 5
    won = random.random(count) < 1 / (1 + np.exp(truth[b] - truth[a]))
    winner, loser = np.where(won, a, b).tolist(), np.where(won, b, a).tolist()
    return leaderboard(Preferences.from_comparisons([0] * count, ["j"] * count, winner, loser))


@pytest.mark.parametrize("top", [None, 1, 2])
def test_advice_does_not_contradict_itself(top):
    """Stop exactly when nothing is left to ask; what is asked is open by the one p-value that the ranks rest on."""
    stops = 0
    for seed in range(40):
        found = random_board(seed)
        stop, why = found.stopping(top=top)
        asked = found.next(10, top=top)
        assert stop == (not asked), why
        stops += stop
        for pair in asked:
            assert found.p_value(pair.first, pair.second) > 0.05
            above, below = found[pair.first], found[pair.second]
            assert max(above.rank_low, below.rank_low) < max(above.rank_high, below.rank_high)
            if top is not None:
                assert min(above.rank, below.rank) <= top <= max(above.rank, below.rank)
    assert 0 < stops < 40


def test_one_p_value_is_behind_ranks_groups_and_advice():
    """Written out: Holm's correction of two-sided z-tests of the differences of scores."""
    from scipy.stats import norm

    found = random_board(3)
    items, matrix = found.tally.items.tolist(), found.matrix
    score = {r.item: found.estimate.scores[items.index(r.item)] for r in found.rows}
    pairs = [(i, j) for i in range(5) for j in range(i + 1, 5)]
    error = [np.sqrt(matrix[i, i] + matrix[j, j] - 2 * matrix[i, j]) for i, j in pairs]
    raw = [
        2 * norm.sf(abs(score[items[i]] - score[items[j]]) / e)
        for (i, j), e in zip(pairs, error, strict=True)
    ]
    at_least = 0.0
    for tests, k in zip(range(10, 0, -1), np.argsort(raw), strict=True):
        at_least = max(at_least, min(tests * raw[k], 1.0))
        assert found.p_value(*(items[i] for i in pairs[k])) == pytest.approx(at_least, rel=1e-9)
    for row in found.rows:
        surely_better = sum(score[o] > score[row.item] and found.p_value(o, row.item) <= 0.05 for o in items)
        assert row.rank_low == 1 + surely_better
    for group in found.groups:
        assert all(found.p_value(a, b) > 0.05 for a in group for b in group)


def test_votes_beyond_reason_are_not_announced():
    """Of nearly equal items the first guess of the difference is noise, and so is a number of votes made from it."""
    won = {("a", "b"): 2_000, ("b", "a"): 1_999, ("b", "c"): 1_000, ("c", "b"): 400}
    rows = [(a, b) for (a, b), times in won.items() for _ in range(times)]
    winner, loser = map(list, zip(*rows, strict=True))
    p = Preferences.from_comparisons([0] * len(rows), ["j"] * len(rows), winner, loser)
    stop, why = leaderboard(p).stopping()
    assert not stop
    assert "too close to estimate how many" in why
    assert not any(character.isdigit() for character in why.split("too close")[1])
