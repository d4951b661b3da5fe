"""Checks of voters: exact tails, planted voters of every kind, false alarms, tastes, bad input."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from podium.analysis.leaderboard import assess_tampering, assess_trust, leaderboard, robust_leaderboard
from podium.analysis.leaderboard.voter_tests import (
    SharedShifts,
    TrialGroups,
    compute_binomial_tail,
    compute_tails,
    estimate_spread,
)
from podium.core.errors import InputError, ParameterError
from podium.data.vote_table import VoteTable

ITEMS = 20


def draw_rows(random, voters, each, taste=0.0, scores=None):
    """Honest votes in columns: first, second, outcome, voter."""
    scores = np.linspace(1, -1, ITEMS) if scores is None else scores
    voter = np.repeat(np.arange(voters), each)
    a = random.integers(0, ITEMS, len(voter))
    b = (a + random.integers(1, ITEMS, len(voter))) % ITEMS
    tastes = random.normal(size=(voters, ITEMS)) * taste
    logit = scores[a] - scores[b] + tastes[voter, a] - tastes[voter, b]
    return a, b, (random.random(len(voter)) < 1 / (1 + np.exp(-logit))).astype(float), voter


def make_table(a, b, outcome, voter, query=None, **attributes):
    return VoteTable.from_columns(
        [f"m{i:02d}" for i in a], [f"m{i:02d}" for i in b], outcome, expert=[f"v{i}" for i in voter],
        query=query, attributes=attributes or None,
    )  # fmt: skip


# -- tests of groups -----------------------------------------------------------------------------------------


def test_tails_equal_enumeration():
    """Every group's tails are sums over all outcomes of its trials."""
    random = np.random.default_rng(0)
    sizes = [1, 2, 3, 3, 6]
    group = np.repeat(np.arange(len(sizes)), sizes)
    logit, success = random.normal(size=len(group)), random.random(len(group)) < 0.5
    groups = TrialGroups.from_labels(group, len(sizes), logit, success)
    tails = compute_tails(groups, np.zeros(len(sizes)))
    for g in range(len(sizes)):
        p, wins = 1 / (1 + np.exp(-logit[group == g])), success[group == g].sum()
        law = np.zeros(len(p) + 1)
        for outcome in itertools.product((0, 1), repeat=len(p)):
            law[sum(outcome)] += np.prod(np.where(outcome, p, 1 - p))
        assert tails.upper[g] == pytest.approx(law[wins:].sum(), rel=1e-12)
        assert tails.lower[g] == pytest.approx(law[: wins + 1].sum(), rel=1e-12)


def test_tails_with_a_shift_equal_a_simulation():
    logit = np.array([0.3, -0.2, 0.8, 0.1])
    groups = TrialGroups.from_labels(np.zeros(4, int), 1, logit, np.ones(4, bool))
    random = np.random.default_rng(1)
    shift = random.normal(size=400_000) * 1.2
    drawn = (1 / (1 + np.exp(-(logit + shift[:, None])))).prod(axis=1)
    error = drawn.std() / np.sqrt(len(drawn))
    assert compute_tails(groups, np.array([1.2])).upper[0] == pytest.approx(drawn.mean(), abs=4 * error)


def test_binomial_tail():
    from math import comb

    for count, trials, chance in ((1, 7, 0.2), (3, 9, 0.1), (9, 9, 0.02), (2, 5, 1.0)):
        exact = sum(
            comb(trials, k) * chance**k * (1 - chance) ** (trials - k) for k in range(count, trials + 1)
        )
        tail = compute_binomial_tail(*(np.array([float(v)]) for v in (count, trials, chance)))
        assert tail[0] == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("spread", [0.0, 0.8])
def test_the_spread_between_groups_is_estimated(spread):
    """Groups of 30 trials with normal shifts, and a twentieth of planted groups that always succeed."""
    random = np.random.default_rng(2)
    groups, size = 400, 30
    shift = random.normal(size=groups) * spread
    shift[:20] = 50
    logit = random.normal(size=(groups, size)) * 0.5
    success = random.random((groups, size)) < 1 / (1 + np.exp(-np.clip(logit + shift[:, None], -50, 50)))
    label = np.repeat(np.arange(groups), size)
    trials = SharedShifts(logit.ravel(), success.ravel(), label, None, np.arange(groups), np.zeros(groups))
    assert estimate_spread(trials) == pytest.approx(spread, abs=0.15)


# -- planted voters ------------------------------------------------------------------------------------------


def plant(kind, random, count=4):
    """Votes of 300 honest voters and of `count` planted ones, v300 and up; 25 planted votes each."""
    a, b, outcome, voter = draw_rows(random, 300, 15, taste=0.3)
    query = random.integers(0, 4000, len(a))
    seconds = np.cumsum(60 * np.exp(random.normal(size=len(a))))
    more = draw_rows(random, count, 25)
    a2, b2, outcome2, voter2 = [*more[:3], more[3] + 300]
    query2, gaps = random.integers(0, 4000, len(a2)), 60 * np.exp(random.normal(size=len(a2)))
    if kind == "one item":
        a2, b2 = np.full(len(a2), 9), np.where(b2 == 9, 3, b2)
        outcome2 = np.ones(len(a2))
    elif kind == "one side":
        outcome2 = np.ones(len(a2))
    elif kind == "copies":
        source = np.arange(len(a2)) % 25
        a2, b2, outcome2, query2 = a2[source], b2[source], outcome2[source], query2[source]
    elif kind == "bursts":
        gaps = gaps / 60
    seconds2 = seconds[-1] + np.cumsum(gaps)
    columns = [np.concatenate(pair) for pair in ((a, a2), (b, b2), (outcome, outcome2), (voter, voter2))]
    return make_table(
        *columns, query=np.concatenate((query, query2)).tolist(), time=np.concatenate((seconds, seconds2))
    )


@pytest.mark.parametrize("kind", ["one item", "one side", "copies", "bursts"])
def test_planted_voters_are_named(kind):
    votes = plant(kind, np.random.default_rng(3))
    trust = assess_trust(votes, time="time")
    assert {str(row.voter) for row in trust.rows} == {"v300", "v301", "v302", "v303"}
    assert all(kind in row.checks for row in trust.rows)
    assert all(row.votes == 25 and row.p <= 0.01 for row in trust.rows)
    assert trust.p_value("v300") <= 0.01 < trust.p_value("v7")
    reasons = {
        "one item": "votes are on m09, which is in",
        "one side": "25 of 25 votes are for the item shown first",
        "copies": "same answer as v30",
        "bursts": "s between them",
    }
    row = trust["v300"]
    assert reasons[kind] in row.reasons[row.checks.index(kind)]
    assert trust.conclusion.startswith("improbable votes of 4 of 304 voters")


def test_a_judge_who_favors_one_item_is_named():
    """A judge sees the pairs that all see, and votes for one weak item whenever it is shown."""
    random = np.random.default_rng(13)
    a, b, outcome, voter = draw_rows(random, 40, 200, taste=0.3)
    own = voter == 5
    outcome = np.where(own & (a == 18), 1.0, np.where(own & (b == 18), 0.0, outcome))
    trust = assess_trust(make_table(a, b, outcome, voter))
    assert [(row.voter, row.checks) for row in trust.rows] == [("v5", ("favored item",))]
    count = int((own & ((a == 18) | (b == 18))).sum())
    assert f"{count} of the {count} votes on m18 are for it" in trust.rows[0].reasons[0]


def test_honest_voters_are_not_named():
    """25 boards of 100 voters at an alarm rate of 4 %: one board with a name is expected at most, four are rare."""
    boards, small = 0, []
    for seed in range(25):
        random = np.random.default_rng([4, seed])
        votes = make_table(*draw_rows(random, 100, random.integers(1, 30), taste=0.0 if seed % 2 else 0.6))
        trust = assess_trust(votes, alarm=0.04)
        boards += bool(trust.rows)
        small.append((trust.p < 0.05).mean())
    assert boards <= 3
    assert np.mean(small) <= 0.05


def test_voters_with_strong_tastes_are_not_named():
    """Ten judges with 400 votes each and opinions of their own are honest."""
    for seed in range(6):
        votes = make_table(*draw_rows(np.random.default_rng([5, seed]), 10, 400, taste=0.2))
        assert not assess_trust(votes).rows
    votes = make_table(*draw_rows(np.random.default_rng(6), 40, 200, taste=1.0))
    trust = assess_trust(votes)
    assert not trust.rows
    assert trust.checks[0].details["spread"] == pytest.approx(1.0, abs=0.2)


def test_few_judges_with_different_side_effects_are_not_named():
    """Eight judges are too few to call the one who differs most dishonest."""
    named = 0
    for seed in range(10):
        random = np.random.default_rng([14, seed])
        a, b, _, voter = draw_rows(random, 8, 130)
        scores, bias = np.linspace(1, -1, ITEMS), random.normal(size=8) * 0.7
        outcome = (random.random(len(a)) < 1 / (1 + np.exp(scores[b] - scores[a] - bias[voter]))).astype(
            float
        )
        named += bool(assess_trust(make_table(a, b, outcome, voter)).rows)
    assert named <= 1


def test_assigned_pairs_are_not_suspicious():
    """Every voter compares one item of its own with the others, and votes honestly."""
    random = np.random.default_rng(7)
    a, b, _, voter = draw_rows(random, 100, 20)
    a = voter % ITEMS
    b = np.where(a == b, (b + 1) % ITEMS, b)
    scores = np.linspace(1, -1, ITEMS)
    outcome = (random.random(len(a)) < 1 / (1 + np.exp(scores[b] - scores[a]))).astype(float)
    trust = assess_trust(make_table(a, b, outcome, voter))
    assert not trust.rows
    check = next(check for check in trust.checks if check.name == "one item")
    assert check.verdict == "unknown"
    assert "not drawn at random" in check.text
    assert trust.weights.min() > 0


def test_names_and_order_of_voters_do_not_matter():
    votes = plant("one item", np.random.default_rng(8))
    order = np.random.default_rng(9).permutation(len(votes))
    names = np.array([str(v) for v in votes.expert.ids])[votes.expert.codes]
    other = VoteTable.from_columns(
        [votes.items[i] for i in votes.first[order]], [votes.items[i] for i in votes.second[order]],
        votes.outcome[order], expert=[f"x{name[::-1]}" for name in names[order]],
        query=[votes.query.ids[i] for i in votes.query.codes[order]],
    )  # fmt: skip
    plain = assess_trust(votes)
    turned = assess_trust(other)
    assert {f"x{str(r.voter)[::-1]}" for r in plain.rows} == {str(r.voter) for r in turned.rows}


# -- the robust board ----------------------------------------------------------------------------------------


def test_robust_board_withstands_planted_voters():
    random = np.random.default_rng(10)
    a, b, outcome, voter = draw_rows(random, 400, 12)
    clean = make_table(a, b, outcome, voter)
    leader = leaderboard(clean.to_preferences()).rows[0].item
    count, each = 8, 30
    b2 = np.tile(np.array([i for i in range(ITEMS) if i != 4])[: each // 2], 2 * count)
    more = (np.full(count * each, 4), b2, np.ones(count * each), 400 + np.repeat(np.arange(count), each))
    board = robust_leaderboard(
        make_table(*(np.concatenate(p) for p in zip((a, b, outcome, voter), more, strict=True)))
    )
    assert board.plain.rows[0].item == "m04" != leader
    assert board.rows[0].item == leader
    assert board.excluded_voters >= count
    assert "leads instead of m04" in board.conclusion
    # without the planted voters, the robust board is the plain one up to the small price
    alone = robust_leaderboard(clean)
    assert max(abs(board[row.item].score - row.score) for row in alone.rows) < 2
    assert alone.counted_votes > 0.95 * alone.votes
    assert abs(alone.wider) < 0.05
    assert alone.extra_votes < 0.05


def test_a_robust_board_of_voters_who_all_count_is_the_plain_one():
    few = VoteTable.from_columns(["a", "a"], ["b", "b"], [1, 0], expert=["x", "y"])
    assert robust_leaderboard(few).wider == 0


def test_robust_weights_are_those_of_a_weighted_fit():
    """The robust board equals the plain board of votes that carry the weights of their voters."""
    votes = plant("one item", np.random.default_rng(11))
    board = robust_leaderboard(votes)
    weights = dict(zip(board.trust.voters.tolist(), board.trust.weights.tolist(), strict=True))
    by_vote = np.array([weights[votes.expert.ids[c]] for c in votes.expert.codes])
    kept = np.flatnonzero(by_vote > 0)
    weighted = VoteTable.from_columns(
        [votes.items[i] for i in votes.first[kept]], [votes.items[i] for i in votes.second[kept]],
        votes.outcome[kept], weight=by_vote[kept],
    )  # fmt: skip
    other = leaderboard(weighted.to_preferences())
    assert [row.item for row in board] == [row.item for row in other]
    assert [row.score for row in board] == pytest.approx([row.score for row in other], abs=1e-4)


def test_assessment_has_all_parts():
    assessment = assess_tampering(plant("one item", np.random.default_rng(12)), time="time", places=2)
    document = assessment.to_dict()
    assert set(document) == {"votes", "lines", "trust", "influence", "margin", "robust", "missing"}
    assert len(document["margin"]["rows"]) == 2
    assert len(document["lines"]) == 4
    assert [row.voter for row in assessment] == [row["voter"] for row in document["trust"]["rows"]]
    assert len(assessment.blocks()) == 4


# -- bad input -----------------------------------------------------------------------------------------------


def test_one_voter():
    votes = make_table(*draw_rows(np.random.default_rng(0), 1, 50))
    with pytest.raises(
        InputError, match=r"all votes come from one voter, 'v0'.*name the column of the voters"
    ):
        assess_trust(votes)
    loose = assess_tampering(votes, strict=False)
    assert loose.trust is None
    assert loose.margin.rows[0].removed_voters is None
    assert loose.lines[-1].startswith("voters are not checked: all votes come from one voter")


def test_ties_only_and_weights():
    a, b, _, voter = draw_rows(np.random.default_rng(0), 5, 10)
    with pytest.raises(InputError, match="all votes are ties"):
        assess_trust(make_table(a, b, np.full(len(a), 0.5), voter))
    soft = VoteTable.from_columns(["a", "b"], ["b", "a"], [1, 0], weight=[0.5, 1], expert=["x", "y"])
    with pytest.raises(InputError, match="not a whole number"):
        assess_trust(soft)


def test_two_models_and_voters_with_one_vote():
    random = np.random.default_rng(0)
    voter = np.concatenate((np.arange(50), np.repeat(np.arange(50, 60), 40)))
    won = (random.random(len(voter)) < 0.5).astype(float)
    won[-40:] = 1.0
    votes = VoteTable.from_columns(["a"] * len(voter), ["b"] * len(voter), won, expert=voter.tolist())
    trust = assess_trust(votes)
    assert [row.voter for row in trust.rows] == [59]
    assert trust.few == 50
    assert "50 voters cast fewer than 4 votes" in trust.conclusion


def test_equal_times():
    """Times of a whole day, or of one vote per second, say nothing about bursts."""
    a, b, outcome, voter = draw_rows(np.random.default_rng(0), 8, 10)
    for time in (np.zeros(len(a)), np.arange(len(a)) * 1.0):
        trust = assess_trust(make_table(a, b, outcome, voter, time=time), time="time")
        assert not trust.rows


def test_times_that_are_no_numbers():
    a, b, outcome, voter = draw_rows(np.random.default_rng(0), 5, 10)
    votes = make_table(a, b, outcome, voter, day=["monday"] * len(a))
    with pytest.raises(InputError, match=r"'day' is not a number of seconds.*day:seconds"):
        assess_trust(votes, time="day")
    with pytest.raises(ParameterError, match="there is no attribute 'time'"):
        assess_trust(votes, time="time")
    with pytest.raises(ParameterError, match="give a VoteTable"):
        assess_trust(votes.to_preferences(), time="day")
    with pytest.raises(ParameterError, match="alarm is 2"):
        assess_trust(votes, alarm=2)
