"""Contextual leaderboards: against scipy, the plain board, known truth; covariates and bad input."""

from __future__ import annotations

import numpy as np
import pytest

from podium.analysis.leaderboard import contextual_leaderboard, leaderboard
from podium.analysis.leaderboard.pair_weights import compute_pair_weights, weight_pairs
from podium.analysis.leaderboard.tally import Tally
from podium.core.errors import InputError, ParameterError
from podium.data.vote_table import VoteTable

ITEMS, ELO = 5, 400 / np.log(10)


def make_votes(seed=0, votes=3000, effects=(1.0, -0.4), *, attributes=(), ties=0.1, judges=1):
    random = np.random.default_rng(seed)
    scores = np.linspace(0.8, -0.8, ITEMS)
    a = random.integers(0, ITEMS, votes)
    b = (a + random.integers(1, ITEMS, votes)) % ITEMS
    lengths = random.lognormal(5, 0.6, (2, votes)).round() + 1
    lengths[0] *= 1 + 0.5 * (a == 2)
    lengths[1] *= 1 + 0.5 * (b == 2)
    marks = random.poisson(2.0, (2, votes)).astype(float)
    total = marks.sum(axis=0)
    x = np.stack(
        [
            (lengths[0] - lengths[1]) / lengths.sum(axis=0),
            np.divide(marks[0] - marks[1], total, out=np.zeros(votes), where=total > 0),
        ],
        axis=1,
    )
    logits = scores[a] - scores[b] + x @ effects
    outcome = (random.random(votes) < 1 / (1 + np.exp(-logits))).astype(float)
    outcome[random.random(votes) < ties] = 0.5
    table = VoteTable.from_columns(
        [f"m{i}" for i in a],
        [f"m{i}" for i in b],
        outcome,
        expert=[f"j{k}" for k in random.integers(0, judges, votes)],
        attributes={"length": tuple(lengths), "markdown": tuple(marks), **dict(attributes)},
    )
    return table, x


def test_equal_to_a_logistic_regression():
    scipy = pytest.importorskip("scipy.optimize")
    table, x = make_votes(votes=800)
    board = contextual_leaderboard(table, ["length", "markdown"], ridge=2.0, l2=0.5, scale="natural")
    x = x / x.std(axis=0)
    design = np.zeros((len(table), ITEMS))
    design[np.arange(len(table)), table.first] = 1
    design[np.arange(len(table)), table.second] = -1
    design = np.hstack([design, x])
    penalty = np.array([0.5] * ITEMS + [2.0] * 2)

    def loss(u):
        z = design @ u
        return np.logaddexp(0, z).sum() - table.outcome @ z + 0.5 * penalty @ u**2

    best = scipy.minimize(loss, np.zeros(ITEMS + 2), tol=1e-14, options={"gtol": 1e-9}).x
    scores = [board[f"m{i}"].score for i in range(ITEMS)]
    np.testing.assert_allclose(scores, best[:ITEMS] - best[:ITEMS].mean(), atol=1e-5)
    np.testing.assert_allclose([e.coefficient for e in board.effects], best[ITEMS:], atol=1e-5)
    # the sandwich, written out
    chance = 1 / (1 + np.exp(-design @ best))
    bread = np.linalg.inv(design.T @ (design * (chance * (1 - chance))[:, None]) + np.diag(penalty))
    gradients = design * (table.outcome - chance)[:, None]
    errors = np.sqrt((bread @ gradients.T @ gradients @ bread).diagonal())[ITEMS:]
    steps = (1 / 3) / np.array([e.points / e.coefficient for e in board.effects])
    np.testing.assert_allclose([e.error for e in board.effects] * steps * 3, errors, rtol=1e-5)


def test_without_covariates_it_is_the_plain_board():
    for settings in ({"over": "votes"}, {"over": "experts"}, {"ties": "ignore", "over": "votes"}):
        table, _ = make_votes(judges=8)
        board = contextual_leaderboard(table, (), **settings)
        for mine, plain in zip(board.rows, leaderboard(table.to_preferences(), **settings).rows, strict=True):
            expected = [plain.score, plain.low, plain.high, plain.rank_low, plain.rank_high]
            np.testing.assert_allclose(
                [mine.score, mine.low, mine.high, mine.rank_low, mine.rank_high], expected, atol=1e-4
            )


def test_effects_are_found_and_the_board_is_cleared_of_them():
    table, _ = make_votes(votes=40_000, ties=0.0)
    board = contextual_leaderboard(table, ["length", "markdown", "order"])
    length, markdown, order = board.effects
    # twice as long is a normalized difference of 1/3
    assert length.points == pytest.approx(ELO / 3, abs=4)
    assert markdown.points == pytest.approx(-0.4 * ELO / 3, abs=4)
    assert length.low < ELO / 3 < length.high
    assert order.low < 0 < order.high
    assert length.sentence.startswith("twice the length = +")
    truth = np.linspace(0.8, -0.8, ITEMS) * ELO + 1000
    adjusted, plain = ([b[f"m{i}"].score for i in range(ITEMS)] for b in (board, board.plain))
    assert np.abs(adjusted - truth).max() < 10 < np.abs(plain - truth).max()
    assert [r.item for r in board] == [f"m{i}" for i in range(ITEMS)]
    document = board.to_dict()
    assert document["effects"][0]["sentence"] == length.sentence
    assert len(document["plain"]) == ITEMS


def test_swapping_the_sides_changes_nothing_but_signs():
    table, _ = make_votes(votes=500)
    turned = VoteTable.from_columns(
        [table.items[i] for i in table.second],
        [table.items[i] for i in table.first],
        1 - table.outcome,
        attributes={name: sides[::-1] for name, sides in table.attributes.items()},
    )
    one, two = (contextual_leaderboard(t, ["length", "markdown", "order"]) for t in (table, turned))
    np.testing.assert_allclose([r.score for r in one], [r.score for r in two], atol=1e-5)
    signs = [1, 1, -1]
    np.testing.assert_allclose(
        [e.points for e in one.effects],
        [s * e.points for s, e in zip(signs, two.effects, strict=True)],
        atol=1e-5,
    )


def test_categories_of_sides_and_of_votes():
    random = np.random.default_rng(3)
    style = random.choice(["plain", "table"], (2, 6000), p=[0.7, 0.3])
    table, _ = make_votes(votes=6000, attributes={"style": tuple(style), "language": style[0]}.items())
    board = contextual_leaderboard(table, ["style"])
    assert [(e.name, e.change) for e in board.effects] == [("style=table", "style table instead of plain")]
    board = contextual_leaderboard(table, ["language"])
    assert [e.name for e in board.effects] == ["language=plain", "language=table"]
    board = contextual_leaderboard(table, ["order", "language"])
    assert [e.name for e in board.effects] == ["order", "language=table"]
    assert "compared with plain" in board.effects[1].change


def test_numbers_of_either_sign_are_subtracted():
    random = np.random.default_rng(4)
    mood = random.normal(size=(2, 2000))
    table, _ = make_votes(votes=2000, attributes={"mood": tuple(mood), "gap": mood[0] - mood[1]}.items())
    one, two = (contextual_leaderboard(table, [name]).effects[0] for name in ("mood", "gap"))
    assert one.points == pytest.approx(two.points)
    assert one.change.startswith("mood larger by 1.4")


@pytest.mark.parametrize(
    ("control", "message"),
    [
        (
            ["constant"],
            "the covariate 'constant' is 3 in all votes; it cannot change the board; leave it out",
        ),
        (["equal"], "the covariate 'equal' is 0 in all votes"),
        (["length", "twin"], "the covariate 'twin' is a combination of length; leave one of them out"),
        (["owner"], "the covariate 'owner' is the same in all votes of an item"),
        (["lengths"], "there is no covariate 'lengths'; did you mean length"),
        (["length", "length"], "the covariate 'length' is named twice"),
    ],
)
def test_covariates_that_cannot_be_fitted(control, message):
    table, _ = make_votes(votes=200)
    same, sides = np.full(200, 3.0), table.attributes["length"]
    extra = {
        "constant": same,
        "equal": (same, same),
        "twin": tuple(2 * side for side in sides),
        "owner": tuple(np.where(codes < 2, 1.0, 3.0) for codes in (table.first, table.second)),
    }
    table, _ = make_votes(votes=200, attributes=extra.items())
    with pytest.raises((InputError, ParameterError), match=message):
        contextual_leaderboard(table, control)


@pytest.mark.parametrize(
    "settings",
    [{"model": "thurstone", "scale": "natural"}, {"ties": "davidson"}, {"sides": "fit"}, {"ridge": 0.0},
     {"judges": "discounted"}, {"pair_floor": 0.5}, {"standardize": "log"}],
)  # fmt: skip
def test_settings_that_covariates_exclude(settings):
    table, _ = make_votes(votes=200)
    with pytest.raises(ParameterError):
        contextual_leaderboard(table, ["length"], **settings)


def test_one_value_per_vote_needs_sides():
    votes = VoteTable.from_columns(["a", "b"] * 9, ["b", "a"] * 9, [1.0] * 18, attributes={"x": range(18)},
                                   sides_known=False)  # fmt: skip
    with pytest.raises(InputError, match="do not record which item was shown first"):
        contextual_leaderboard(votes, ["x"])
    with pytest.raises(InputError, match="do not record which item was shown first"):
        contextual_leaderboard(votes, ["order"])


def test_pair_weights_by_hand():
    first, second, votes = np.array([0, 1, 0, 2]), np.array([1, 0, 2, 1]), np.array([90.0, 10, 50, 10])
    weights = compute_pair_weights(first, second, votes, 20)
    expected = 1 / np.array([100, 100, 50, 20])
    np.testing.assert_allclose(weights, expected * 160 / (expected @ votes))
    table, _ = make_votes(votes=500)
    tally = weight_pairs(Tally.from_preferences(table.to_preferences()), 20)
    assert tally.votes == pytest.approx(500)
    whole = contextual_leaderboard(table, (), pair_floor=20, over="votes")
    plain = leaderboard(tally, over="votes")
    for mine, other in zip(whole.rows, plain.rows, strict=True):
        assert (mine.score, mine.low) == pytest.approx((other.score, other.low), abs=1e-4)


def test_a_covariate_that_decides_every_vote_is_named():
    table, x = make_votes(votes=300)
    sure = VoteTable.from_columns(
        [table.items[i] for i in table.first],
        [table.items[i] for i in table.second],
        (x[:, 0] > 0).astype(float),
        attributes=table.attributes,
    )
    board = contextual_leaderboard(sure, ["length"])
    check = next(c for c in board.checks if c.name == "covariates")
    assert (check.verdict, check.details["unbounded"]) == ("warning", ["length"])


def test_divided_votes_count_as_two():
    votes = VoteTable.from_columns(["a", "b", "a"], ["b", "a", "b"], [0.75, 0.5, 0.0])
    tally = Tally.from_preferences(votes.to_preferences())
    assert (tally.won.sum(), tally.lost.sum(), tally.tied.sum()) == (0.75, 1.25, 1.0)


@pytest.mark.parametrize("over", ["votes", "experts"])
def test_bootstrap_errors_are_near_those_of_the_sandwich(over):
    table, _ = make_votes(votes=2000, judges=60)
    plain, resampled = (
        contextual_leaderboard(table, ["length", "markdown"], over=over, bootstrap=rounds, seed=1)
        for rounds in (0, 400)
    )
    for one, two in zip(plain.effects, resampled.effects, strict=True):
        assert one.points == two.points
        assert two.error == pytest.approx(one.error, rel=0.2)
    for row in plain:
        assert resampled[row.item].error == pytest.approx(row.error, rel=0.2)
    again = contextual_leaderboard(table, ["length", "markdown"], over=over, bootstrap=400, seed=1)
    assert [r.low for r in again] == [r.low for r in resampled]


def test_bootstrap_of_weights():
    table, _ = make_votes(votes=1500)
    board, weighted = (
        contextual_leaderboard(table, ["length"], bootstrap=300, pair_floor=f) for f in (None, 1000)
    )
    # all pairs are below the floor: equal weights, as importance or as counts
    assert weighted.effects[0].error == pytest.approx(board.effects[0].error, rel=0.15)
