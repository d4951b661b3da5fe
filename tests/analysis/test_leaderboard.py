"""The leaderboard: rows, checks, judges, saving, adding votes."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from podium import Preferences, formats, make, read, save
from podium.analysis.leaderboard import Tally, leaderboard, leaderboards_by_query, load
from podium.analysis.leaderboard import save as keep
from podium.analysis.leaderboard.judges import (
    estimate_bias_by_judge,
    estimate_position_bias,
    find_one_sided_judges,
)
from podium.analysis.leaderboard.score_estimate import estimate_scores
from podium.core.errors import InputError, ModelFileError, ParameterError, PodiumWarning


def judged(judges=6, questions=60, items=5, seed=0, spread=1.0):
    """Columns of votes of independent judges on the same questions, with random sides."""
    random = np.random.default_rng(seed)
    truth = np.sort(random.normal(size=items) * spread)[::-1]
    rows = []
    for q in range(questions):
        a, b = random.permutation(items)[:2]
        for j in range(judges):
            won = random.random() < 1 / (1 + np.exp(truth[b] - truth[a]))
            rows.append((f"q{q}", f"judge{j}", f"m{a}", f"m{b}", won))
    return rows


def preferences(rows):
    """Rows (query, judge, shown first, shown second, first won) as preferences that know the sides."""
    q, e, a, b, won = map(list, zip(*rows, strict=True))
    winner = [x if w else y for x, y, w in zip(a, b, won, strict=True)]
    loser = [y if w else x for x, y, w in zip(a, b, won, strict=True)]
    return Preferences.from_comparisons(q, e, winner, loser, side=np.where(won, 1, -1))


def check(board, name):
    return next(c for c in board.checks if c.name == name)


def test_scores_are_those_of_the_method_on_both_scales():
    p = preferences(judged(1, 200))
    rows = make("bradley_terry").aggregate(Preferences.from_comparisons(
        [0] * 200, [0] * 200,
        [p.index.items[int(i)] for i in p.comparisons.winner], [p.index.items[int(i)] for i in p.comparisons.loser],
    )).to_dict()[0]  # fmt: skip
    natural, elo = leaderboard(p, scale="natural"), leaderboard(p, anchor=1500.0)
    for row in natural.rows:
        assert row.score == pytest.approx(rows[row.item], abs=1e-7)
        assert elo[row.item].score == pytest.approx(1500 + row.score * 400 / math.log(10))
        assert elo[row.item].error == pytest.approx(row.error * 400 / math.log(10))
    assert [r.item for r in natural.rows] == list(rows)
    assert [r.rank for r in natural.rows] == [1, 2, 3, 4, 5]


def test_counts_of_wins_losses_and_ties():
    p = Preferences.from_comparisons(
        [0] * 4, ["j"] * 4, [*"abab"], [*"bacc"], tie=[False, False, True, False], weight=[2, 1, 1, 3]
    )
    row = leaderboard(p)["b"]
    assert (row.votes, row.wins, row.losses, row.ties) == (6, 4, 2, 0)
    row = leaderboard(p)["c"]
    assert (row.votes, row.wins, row.losses, row.ties) == (4, 0, 3, 1)


def test_a_reference_has_no_error_and_the_anchor():
    board = leaderboard(preferences(judged()), reference="m2", anchor=1100.0)
    row = board["m2"]
    assert row.score == row.low == row.high == 1100
    assert board["m0"].error > 0
    with pytest.raises(ParameterError, match="no item 'zz' to measure from"):
        leaderboard(preferences(judged()), reference="zz")


def test_equal_items_share_a_rank():
    p = Preferences.from_comparisons([0] * 4, [0] * 4, ["a", "b", "a", "b"], ["b", "a", "c", "c"])
    assert [r.rank for r in leaderboard(p).rows] == [1, 1, 3]


def test_names_do_not_matter():
    rows = judged(seed=4)
    board = leaderboard(preferences(rows))
    other = leaderboard(
        preferences([(q, e, "z" + b[::-1], "z" + a[::-1], not w) for q, e, a, b, w in reversed(rows)])
    )
    for row in board.rows:
        twin = other["z" + row.item[::-1]]
        assert (twin.rank, twin.rank_low, twin.rank_high) == (row.rank, row.rank_low, row.rank_high)
        assert twin.score == pytest.approx(row.score)
        assert twin.error == pytest.approx(row.error)


@pytest.mark.parametrize("over", ["votes", "experts", "queries"])
def test_bootstrap_and_sandwich_agree(over):
    p = preferences(judged(12, 120))
    boot, sandwich = leaderboard(p, bootstrap=600, over=over), leaderboard(p, over=over)
    for row in sandwich.rows:
        assert boot[row.item].error == pytest.approx(row.error, rel=0.25)
        assert boot[row.item].score == row.score


def test_lists_count_as_all_their_pairs_and_are_drawn_whole():
    lists = {"q": {v: ["a", "b", "c"] if v % 3 else ["c", "a", "b"] for v in range(30)}}
    p = Preferences.from_lists(lists)
    board = leaderboard(p, bootstrap=200)
    assert board["a"].wins == 50
    tally = board.tally
    assert len(tally.build_clusters("votes").starts) - 1 == 30
    below = Tally.from_preferences(Preferences.from_lists({"q": {1: ["a"], 2: ["b", "c"]}}, unlisted="below"))
    wins, losses, _ = below.count_by_item()
    assert wins.tolist() == [2, 2, 1]
    assert losses.tolist() == [2, 1, 2]


def test_open_sides_are_infinite_and_named():
    won = [("x", "a")] * 3 + [("a", "b"), ("b", "a")] * 4 + [("a", "y")] * 2
    p = Preferences.from_comparisons([0] * 13, [0] * 13, *map(list, zip(*won, strict=True)))
    board = leaderboard(p)
    assert board["x"].high == math.inf
    assert math.isfinite(board["x"].low)
    assert board["y"].low == -math.inf
    assert math.isfinite(board["a"].high)
    found = check(board, "won and lost")
    assert found.verdict == "warning"
    assert found.details["never lost"] == ["x"]
    assert found.details["never won"] == ["y"]
    assert abs(board["x"].score) < 5000


def test_groups_that_never_met_are_named():
    won = [("a", "b"), ("b", "a")] * 9 + [("c", "d"), ("d", "c")] * 9
    p = Preferences.from_comparisons([0] * 36, [0] * 36, *map(list, zip(*won, strict=True)))
    with pytest.warns(PodiumWarning, match="2 groups were never compared") as heard:
        board = leaderboard(p)
    assert "per query" not in str(heard[0].message)  # there is one query
    found = check(board, "connected")
    assert found.verdict == "warning"
    assert sorted(map(sorted, found.details["groups"])) == [["a", "b"], ["c", "d"]]
    assert math.isinf(board["c"].low)
    assert "never compared" in board.stopping()[1]


def test_items_nobody_compared_are_left_out_and_named():
    lists = Preferences.from_rows(
        [0] * 4,
        [1, 1, 2, 2],
        ["a", "b", "b", "a"],
        rank=[1, 2, 1, 2],
        candidates=([0] * 3, ["a", "b", "ghost"]),
    )
    board = leaderboard(lists)
    assert [r.item for r in board.rows] == ["a", "b"]
    assert check(board, "connected").details["never_played"] == ["ghost"]


def test_one_vote_only_and_none():
    one = Preferences.from_comparisons([0], [0], ["a"], ["b"])
    with pytest.raises(InputError, match="there is 1 vote on 2 items; a leaderboard needs at least two"):
        leaderboard(one)
    with pytest.raises(InputError, match="there are no votes"):
        leaderboard(Preferences.from_lists({"q": {"e": ["a"]}}))


def test_settings_are_checked():
    p = preferences(judged(2, 20))
    for change, message in (
        ({"ties": "maybe"}, "ties is 'maybe'; accepted: half"),
        ({"level": 1.5}, "level is 1.5"),
        ({"boostrap": 10}, "no leaderboard setting 'boostrap'"),
        ({"model": "thurstone"}, "use scale='natural' for thurstone"),
        ({"over": "experts", "judges": "some"}, "judges is 'some'"),
    ):
        with pytest.raises(ParameterError, match=message):
            leaderboard(p, **change)
    alone = Preferences.from_comparisons([0] * 2, ["j"] * 2, ["a", "b"], ["b", "a"])
    with pytest.raises(ParameterError, match="all votes come from one of the experts"):
        leaderboard(alone, over="experts")


@pytest.mark.parametrize("ties", ["davidson", "rao_kupper", "ignore"])
def test_models_of_ties_have_intervals_too(ties):
    random = np.random.default_rng(0)
    rows = judged(4, 60)
    q, e, a, b, won = map(list, zip(*rows, strict=True))
    tie = random.random(len(rows)) < 0.3
    tied = Preferences.from_comparisons(
        q, e, [x if w else y for x, y, w in zip(a, b, won, strict=True)],
        [y if w else x for x, y, w in zip(a, b, won, strict=True)], tie=tie,
    )  # fmt: skip
    boot, sandwich = leaderboard(tied, ties=ties, bootstrap=150), leaderboard(tied, ties=ties)
    for row in sandwich.rows:
        assert boot[row.item].error == pytest.approx(row.error, rel=0.35)


def test_thurstone_is_on_its_own_scale():
    board = leaderboard(preferences(judged()), model="thurstone", scale="natural")
    logit = leaderboard(preferences(judged()), scale="natural")
    assert board.rows[0].item == logit.rows[0].item
    assert 1.5 < logit.rows[0].score / board.rows[0].score < 1.8


@pytest.mark.parametrize("weight", [9.2e18, 1e19, 1e30])
def test_one_vote_of_an_enormous_weight_is_answered(weight):
    p = Preferences.from_comparisons(
        [0] * 40, ["j", "k"] * 20, ["a", "b", "a", "c"] * 10, ["b", "c", "c", "a"] * 10,
        weight=[weight, *[1.0] * 39], side=[1, -1] * 20,
    )  # fmt: skip
    board = leaderboard(p)
    assert [r.item for r in board.rows] == ["a", "c", "b"]
    assert check(board, "position").verdict == "unknown"  # a was always shown first
    assert all(len(c.text) < 200 for c in board.checks)


def shown(rows):
    """A tally of rows (judge, shown first, shown second, first won), each on a query of its own."""
    return Tally.from_preferences(preferences([(k, j, a, b, won) for k, (j, a, b, won) in enumerate(rows)]))


def random_pairs(judge, count, choose, seed=0, items=8, spread=1.0):
    """Votes on pairs with sides by lot; `choose` gets the difference of the true scores, the first less the second."""
    random = np.random.default_rng(seed)
    truth = np.random.default_rng(99).normal(size=items) * spread
    for _ in range(count):
        a, b = random.permutation(items)[:2]
        yield judge, f"m{a}", f"m{b}", bool(choose(truth[a] - truth[b], random.random()))


def honest(gap, chance):
    return chance < 1 / (1 + np.exp(-gap))


def test_the_effect_of_the_side_is_that_of_a_regression_with_the_items():
    """Against scipy: logistic regression on items and side, with the same ridge on the items; one step is near it."""
    from scipy.optimize import minimize

    rows = list(random_pairs("j", 1500, lambda gap, chance: honest(gap + 0.3, chance)))
    tally = shown(rows)
    e = estimate_scores(tally.to_contests())
    first, second = ([int(r[k][1:]) for r in rows] for k in (1, 2))
    sign = np.where([r[3] for r in rows], 1, -1)

    def loss(x):
        gap = x[first] - x[second] + x[8]
        return np.logaddexp(0, -sign * gap).sum() + 0.0005 * (x[:8] ** 2).sum()

    best = minimize(loss, np.zeros(9), method="BFGS", options={"gtol": 1e-8})
    found = estimate_position_bias(tally, e)
    assert found.advantage == pytest.approx(best.x[8], rel=0.03)
    design = np.zeros((len(rows), 9))
    design[np.arange(len(rows)), first] = design[:, 8] = 1
    design[np.arange(len(rows)), second] = -1
    chance = 1 / (1 + np.exp(-design @ best.x))
    second_derivatives = (design.T * (chance * (1 - chance))) @ design + np.diag([0.001] * 8 + [0.0])
    assert found.error == pytest.approx(np.sqrt(np.linalg.inv(second_derivatives)[8, 8]), rel=0.05)


def test_the_effect_of_the_side_by_judge_leaves_room_for_taste():
    """Against least squares written out: the variance of a vote, and the judge's own opinion of the two items."""
    rows = [r for j in range(3) for r in random_pairs(f"j{j}", 60, honest, seed=j)]
    tally = shown(rows)
    e = estimate_scores(tally.to_contests())
    for code, found in enumerate(estimate_bias_by_judge(tally, e)):
        own = [r for r in rows if r[0] == f"j{code}"]
        b = np.zeros((60, 8))
        for k, (_, one, two, _) in enumerate(own):
            b[k, int(one[1:])], b[k, int(two[1:])] = 1, -1
        chance = 1 / (1 + np.exp(-(b @ e.scores)))
        h = chance * (1 - chance)
        inverse = np.linalg.inv(np.diag(1 / h) + b @ b.T)
        surplus = (np.array([r[3] for r in own]) - chance) / h
        assert found.error == pytest.approx(inverse.sum() ** -0.5, rel=1e-6)
        assert found.advantage == pytest.approx((inverse @ surplus).sum() / inverse.sum(), rel=1e-6)


def test_sides_that_go_with_items_are_not_reported():
    """A reference that is always shown first and mostly wins: votes for the first say nothing of the side."""
    random = np.random.default_rng(0)
    rows = [(f"j{k % 4}", "reference", f"m{k % 9}", random.random() < 0.8) for k in range(400)]
    board = leaderboard(shown(rows))
    assert check(board, "position").verdict == check(board, "one-sided judges").verdict == "unknown"
    assert "to separate side from item" in check(board, "position").text
    mixed = [(j, a, b, w) if k % 8 < 4 else (j, b, a, not w) for k, (j, a, b, w) in enumerate(rows)]
    board = leaderboard(shown(mixed))
    assert check(board, "position").verdict == check(board, "one-sided judges").verdict == "ok"


def test_a_judge_who_loves_one_item_is_not_one_sided():
    """a was nearly always first, and this judge votes for it wherever it is."""
    others = list(random_pairs("k", 300, honest, items=3))
    fan = [("fan", "m0", "m1", True)] * 38 + [("fan", "m1", "m0", False)] * 2
    tally = shown(others + fan)
    assert (
        find_one_sided_judges(tally, estimate_bias_by_judge(tally, estimate_scores(tally.to_contests())))
        == []
    )


def test_few_honest_judges_are_called_one_sided():
    """Items differ much, judges see few pairs: of 40 judges in each of ten boards at most some per cent."""
    flagged = 0
    for seed in range(10):
        rows = [
            r for j in range(40) for r in random_pairs(f"j{j}", 30, honest, seed=100 * seed + j, spread=2.0)
        ]
        tally = shown(rows)
        flagged += len(
            find_one_sided_judges(tally, estimate_bias_by_judge(tally, estimate_scores(tally.to_contests())))
        )
    assert flagged <= 4


def test_a_judge_who_always_votes_left_does_not_take_over_and_is_flagged():
    rows = judged(6, 150, seed=2, spread=1.5)
    clean = leaderboard(preferences(rows))
    random = np.random.default_rng(1)
    lefty = [(f"x{k}", "lefty", *(f"m{i}" for i in random.permutation(5)[:2]), True) for k in range(300)]
    board = leaderboard(preferences(rows + lefty))
    assert [r.item for r in board.rows] == [r.item for r in clean.rows]
    found = check(board, "one-sided judges")
    assert found.verdict == "warning"
    assert [j["judge"] for j in found.details["judges"]] == ["lefty"]
    assert check(board, "position").verdict == "warning"
    assert check(clean, "one-sided judges").verdict == "ok"
    assert check(clean, "position").verdict == "ok"
    left_out = leaderboard(board.tally.without_experts(["lefty"]))
    assert [r.score for r in left_out.rows] == pytest.approx([r.score for r in clean.rows])


def test_the_advantage_of_a_side_can_be_fitted():
    random = np.random.default_rng(0)
    truth = np.linspace(1, -1, 5)
    rows = []
    for k in range(4000):  # stronger items are shown first more often, and being first is worth 0.8
        a, b = sorted(random.permutation(5)[:2])
        a, b = (a, b) if random.random() < 0.8 else (b, a)
        rows.append((k, "j", f"m{a}", f"m{b}", random.random() < 1 / (1 + np.exp(truth[b] - truth[a] - 0.8))))
    plain, fitted = (leaderboard(preferences(rows), scale="natural", sides=s) for s in ("ignore", "fit"))
    assert fitted.estimate.solution.extra["advantage"][0] == pytest.approx(0.8, abs=0.1)
    error = {
        name: np.abs([board[f"m{i}"].score - truth[i] for i in range(5)]).max()
        for name, board in (("plain", plain), ("fitted", fitted))
    }
    assert error["fitted"] < 0.15 < error["plain"]
    assert check(plain, "position").verdict == "warning"
    boot = leaderboard(preferences(rows), scale="natural", sides="fit", bootstrap=60)
    assert boot["m0"].error == pytest.approx(fitted["m0"].error, rel=0.4)


def test_six_judges_that_copy_count_as_few():
    rows = judged(5, 150, seed=3)
    copied = [(q, f"copy{k}", a, b, w) for q, e, a, b, w in rows if e == "judge0" for k in range(5)]
    plain, board = leaderboard(preferences(rows)), leaderboard(preferences(rows + copied))
    assert plain.agreement.effective > 4.5
    assert not plain.agreement.copies
    assert board.agreement.effective < 3
    assert sorted(board.agreement.copies[0]) == ["copy0", "copy1", "copy2", "copy3", "copy4", "judge0"]
    assert check(board, "copies").verdict == "warning"
    at = [board.agreement.judges.index(j) for j in ("copy1", "judge0", "judge1")]
    assert board.agreement.agree[at[0], at[1]] == 1
    assert board.agreement.agree[at[0], at[2]] < 0.9
    discounted = leaderboard(preferences(rows + copied), judges="discounted")
    gap = [np.abs([b[r.item].score - r.score for r in plain.rows]).max() for b in (board, discounted)]
    assert gap[1] < 0.2 * gap[0]


def test_one_judge_who_dominates_is_named():
    rows = judged(2, 30)
    rows += [(f"z{k}", "boss", "m4", f"m{k % 4}", True) for k in range(400)]
    found = check(leaderboard(preferences(rows)), "one judge")
    assert found.verdict == "warning"
    assert found.details["judge"] == "boss"
    assert found.details["leader"] == "m4" != found.details["leader_without"]


def test_more_votes_give_the_same_as_all_at_once(tmp_path):
    rows = judged(6, 80, seed=5)
    extra = [
        *judged(3, 40, seed=6, items=7),
        ("new", "late", "fresh", "m0", True),
        ("new", "late", "m1", "fresh", True),
    ]
    whole = leaderboard(preferences(rows + extra), bootstrap=20)
    path = tmp_path / "board.podium"
    keep(leaderboard(preferences(rows), bootstrap=20), path)
    again = load(path)
    assert again.settings.bootstrap == 20
    for board in (again.with_votes(preferences(extra)), load(path, level=0.9).with_votes(preferences(extra))):
        assert [r.item for r in board.rows] == [r.item for r in whole.rows]
        for row, twin in zip(board.rows, whole.rows, strict=True):
            assert row.score == pytest.approx(twin.score, abs=1e-6)
            assert row.error == pytest.approx(twin.error, rel=1e-4)
            assert (row.votes, row.wins, row.rank_low) == (
                twin.votes,
                twin.wins,
                twin.rank_low,
            ) or board.settings.level == 0.9
        assert [c.text for c in board.checks if c.name != "converged"] == [
            c.text for c in whole.checks if c.name != "converged"
        ]
    with pytest.raises(ModelFileError, match="exists"):
        keep(again, path)


def test_files_without_squares_of_weights_are_still_read(tmp_path, monkeypatch):
    """Whole counts of votes are their own sums of squares; sums of fractions cannot be taken apart."""
    from podium.analysis.leaderboard import board_file, tally

    def keep_as_before(board, path):
        with monkeypatch.context() as patch:
            patch.setattr(board_file, "COLUMNS", [c for c in tally.COLUMNS if c not in tally.SQUARES])
            patch.setattr(board_file, "MARKS", ["listed"])
            keep(board, path)

    rows = [(0, 0, "a", "b"), (0, 1, "b", "a"), (0, 0, "a", "c"), (0, 1, "c", "b"), (0, 0, "a", "b")]
    board = leaderboard(Preferences.from_comparisons(*zip(*rows, strict=True)))
    keep_as_before(board, tmp_path / "whole.podium")
    for row, twin in zip(load(tmp_path / "whole.podium").rows, board.rows, strict=True):
        assert (row.item, row.error) == (twin.item, pytest.approx(twin.error, rel=1e-6))
    weighted = Preferences.from_comparisons(*zip(*rows, strict=True), weight=[0.5] * 5)
    keep_as_before(leaderboard(weighted), tmp_path / "fractions.podium")
    with pytest.raises(ModelFileError, match="save it again"):
        load(tmp_path / "fractions.podium")


def test_files_that_are_not_leaderboards_are_refused(tmp_path):
    save(make("rrf"), tmp_path / "m.podium")
    with pytest.raises(ModelFileError, match="not a leaderboard"):
        load(tmp_path / "m.podium")
    (tmp_path / "junk").write_bytes(b"junk")
    with pytest.raises(ModelFileError, match="not a Podium model file"):
        load(tmp_path / "junk")


def test_ids_of_both_kinds_survive_a_file(tmp_path):
    p = Preferences.from_comparisons([0] * 4, [7, 7, "7", "7"], [1, "1", 1, "ü"], ["1", 1, "ü", 1])
    keep(leaderboard(p), tmp_path / "b.podium")
    board = load(tmp_path / "b.podium")
    assert {r.item for r in board.rows} == {1, "1", "ü"}
    assert board.tally.experts.tolist() == [7, "7"]


COUNTS = {
    "models": ["x", "y", "z"],
    "X": [[0, 1], [1, 2], [0, 2]],
    "Y": [[5, 3, 2, 1], [4, 4, 0, 0], [0, 0, 0, 0]],
}


def test_count_files_are_read_and_written(tmp_path):
    path = tmp_path / "c.json"
    path.write_text(json.dumps(COUNTS))
    assert formats.sniff(path) == "counts"
    board = leaderboard(read(path).preferences)
    assert (board["y"].votes, board["y"].wins, board["y"].ties) == (19, 7, 3)
    formats.write(read(path).preferences, tmp_path / "d.json", "counts")
    assert json.loads((tmp_path / "d.json").read_text()) == {
        "models": ["x", "y", "z"], "X": [[0, 1], [1, 2]], "Y": [[5, 3, 3], [4, 4, 0]],
    }  # fmt: skip
    with pytest.warns(PodiumWarning, match="queries, experts"):
        formats.write(preferences(judged(2, 5)), tmp_path / "e.json", "counts")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"X": [[0, 0], [1, 2], [0, 2]]}, "pair 1: 'x' is compared with itself"),
        ({"X": [[0, 9], [1, 2], [0, 2]]}, r"pair 1 is \[0, 9\]"),
        ({"Y": [[5, -3, 2, 1], [4, 4, 0, 0], [0, 0, 0, 0]]}, "pair 1: a count is -3"),
        ({"Y": [[5, 3], [4, 4, 0], [0, 0]]}, "differ in length or are too short"),
        ({"Y": [[5, 3]]}, "X and Y differ in length"),
        ({"Y": [[0, 0], [0, 0], [0, 0]]}, "all counts are 0"),
        ({"models": ["x", "x", "z"]}, "distinct ids"),
        ({"X": None}, "X and Y differ"),
    ],
)
def test_bad_counts_are_refused_in_words(tmp_path, change, message):
    path = tmp_path / "c.json"
    path.write_text(json.dumps(COUNTS | change))
    with pytest.raises(InputError, match=message):
        read(path)


@pytest.mark.data
def test_chatbot_arena(data_dir):
    p = read(data_dir / "chatbot-arena-counts" / "chatbotarena_20240814.json.gz").preferences
    board = leaderboard(p, bootstrap=50)
    assert board.tally.votes == 1_670_250
    assert len(board.rows) == 129
    # the first three of the public leaderboard of that day
    assert [r.item for r in board.rows[:3]] == [
        "chatgpt-4o-latest",
        "gemini-1.5-pro-exp-0801",
        "gpt-4o-2024-05-13",
    ]
    plain = leaderboard(p)
    ratio = [board[r.item].error / r.error for r in plain.rows]
    assert 0.9 < np.median(ratio) < 1.1


def test_sides_that_are_fitted_are_fitted_in_every_check():
    """All judges see a first, so a judge left out must not change what the sides explain."""
    rows = [
        (f"q{k}", f"judge{k % 3}", *("ab" if k % 8 else "ba"), k % 8 == 0 or k % 5 < 3) for k in range(400)
    ]
    board = leaderboard(preferences(rows), sides="fit")
    assert board.rows[0].item == "b"
    assert check(board, "one judge").details["leader_without"] == "b"
    assert check(board, "position").verdict == "ok"
    assert "the scores are corrected for this" in check(board, "position").text


def test_sides_cannot_be_fitted_where_they_are_not_known():
    p = Preferences.from_comparisons([0] * 4, ["j"] * 4, list("abab"), list("baba"))
    with pytest.raises(InputError, match="do not record which item was shown first"):
        leaderboard(p, sides="fit")


@pytest.mark.parametrize(
    ("changes", "message"),
    [({"anchor": math.inf}, "anchor is inf"), ({"anchor": math.nan}, "anchor is nan"),
     ({"bootstrap": 1}, "bootstrap is 1"), ({"top": 0}, "top is 0"), ({"seed": -1}, "seed is -1"),
     ({"bootstrap": "x"}, "bootstrap is 'x'; accepted: whole numbers"), ({"top": 2.5}, "top is 2.5"),
     ({"level": "95%"}, "level is '95%'; accepted: numbers"), ({"anchor": "high"}, "anchor is 'high'"),
     ({"seed": None}, "seed is None"), ({"l2": "1"}, "l2 is '1'"), ({"over": ["votes"]}, "over is ")],
)  # fmt: skip
def test_settings_say_what_they_got(changes, message):
    with pytest.raises(ParameterError, match=message):
        leaderboard(preferences(judged(1, 20)), **changes)


def test_numbers_and_text_that_look_alike_are_not_added_up():
    number = Preferences.from_comparisons([0] * 2, ["j"] * 2, [1, 2], [2, 1])
    text = Preferences.from_comparisons([0] * 2, ["j"] * 2, ["1", "3"], ["3", "1"])
    with pytest.raises(InputError, match="'1' and 1, which look like one id"):
        Tally.from_preferences(number) + Tally.from_preferences(text)


def test_weights_beside_which_the_prior_is_lost_are_refused():
    """The second derivatives of two items are then a matrix that cannot be inverted."""
    tie = Preferences.from_comparisons([0], ["j"], ["a"], ["b"], tie=[True], weight=[119139793305911.0])
    with pytest.raises(InputError, match="too much relative to the prior; use smaller weights"):
        leaderboard(tie)


def by_topic():
    """Two topics with items of their own, and votes on both by the same judges."""
    rows = [(t, f"j{k % 3}", f"{t}{a}", f"{t}{b}", k % 5 > 0) for t in "xy" for a in range(4) for b in range(a)
            for k in range(9)]  # fmt: skip
    return preferences(rows)


def test_boards_by_query_are_those_of_each_query_alone():
    votes = by_topic()
    with pytest.warns(
        PodiumWarning, match=r"2 groups were never compared.*one leaderboard per query \(--by query\)"
    ):
        leaderboard(votes)
    for given in (votes, Tally.from_preferences(votes)):
        boards = leaderboards_by_query(given, scale="natural")
        assert list(boards) == ["x", "y"]
        for topic, board in boards.items():
            alone = leaderboard(votes.select([topic]), scale="natural")
            assert [(r.item, r.score, r.low, r.rank_low) for r in board.rows] == [
                (r.item, pytest.approx(r.score, abs=1e-9), pytest.approx(r.low, abs=1e-9), r.rank_low)
                for r in alone.rows
            ]
            assert check(board, "connected").verdict == "ok"


def test_queries_without_two_votes_have_no_board_and_are_named():
    p = Preferences.from_comparisons(["q", "q", "thin"], ["j"] * 3, ["a", "b", "c"], ["b", "a", "d"])
    with pytest.warns(
        PodiumWarning, match=r"no leaderboard for 1 of 2 queries: thin \(there is 1 vote on 2 items"
    ):
        assert list(leaderboards_by_query(p)) == ["q"]
    with pytest.raises(InputError, match="there is 1 vote on 2 items"):
        leaderboards_by_query(p.select(["thin"]))
    with pytest.raises(ParameterError, match="over is queries, and each leaderboard has one query"):
        leaderboards_by_query(p, over="queries")


def test_too_many_items_are_refused_before_their_pairs_are_counted(monkeypatch):
    """51 lists of 100 items: few comparisons, but none of them may be looked at."""
    p = Preferences.from_lists({q: {"run": [f"{q}-{k}" for k in range(100)]} for q in range(51)})

    def count(*_):
        raise AssertionError("the pairs were counted")

    monkeypatch.setattr("podium.analysis.leaderboard.tally.expand_lists", count)
    with pytest.raises(
        InputError, match=r"5,100 items are too many.*one leaderboard per query \(--by query\)"
    ):
        leaderboard(p)


def test_a_board_as_a_dataframe():
    board = leaderboard(preferences(judged()))
    assert len(board) == len(list(board)) == 5
    for backend in ("pandas", "polars", "pyarrow"):
        frame = board.to_frame(backend, top=3)
        columns = (
            frame.to_pydict() if backend == "pyarrow" else {c: frame[c].to_list() for c in frame.columns}
        )
        for name, values in columns.items():
            assert values == [getattr(r, name) for r in board.rows[:3]]
    assert board.to_frame().column_names == list(vars(board.rows[0]))
