"""Judgements of language models: two orders, strong preferences, failures."""

from __future__ import annotations

import itertools

import pytest

from podium.core.errors import InputError, ParameterError
from recipe_reading import list_votes, read_records

PAIR = {"question_id": 1, "model_1": "x", "model_2": "y", "judge": ["gpt-4", "pair-v2"], "turn": 1}
WINNERS = ("model_1", "model_2", "tie")


@pytest.mark.parametrize(("one", "two"), list(itertools.product(WINNERS, WINNERS)))
def test_mt_bench_games_give_the_points_of_both_orders(one, two):
    """A win is a point and a tie half a point, for half of the judgement each; the side is the order of the game."""
    content = read_records("mt-bench-pairs", [{**PAIR, "g1_winner": one, "g2_winner": two}])
    points = {"x": 0.0, "y": 0.0}
    for _, winner, loser, tie, weight, _ in list_votes(content):
        points[winner] += weight * (0.5 if tie else 1)
        points[loser] += weight * 0.5 * tie
    by_game = {"model_1": 1.0, "tie": 0.5, "model_2": 0.0}
    assert points["x"] == (by_game[one] + by_game[two]) / 2
    assert points["x"] + points["y"] == 1
    # the first game shows model_1 first, the second model_2
    shown_first = [winner if side == 1 else loser for _, winner, loser, _, _, side in list_votes(content)]
    assert sorted(shown_first) == ["x", "y"]


@pytest.mark.parametrize(("one", "two"), list(itertools.product(WINNERS, WINNERS)))
def test_mt_bench_agreement_is_the_rule_of_mt_bench(one, two):
    content = read_records(
        "mt-bench-pairs", [{**PAIR, "g1_winner": one, "g2_winner": two}], games="agreement"
    )
    ((_, winner, _, tie, weight, side),) = list_votes(content)
    expected = {"model_1": "x", "model_2": "y"}[one] if one == two != "tie" else None
    assert (None if tie else winner) == expected
    assert (weight, side) == (1.0, 0)


def test_mt_bench_queries_and_errors():
    records = [{**PAIR, "g1_winner": "model_1", "g2_winner": "tie", "turn": turn} for turn in (1, 2)]
    assert read_records("mt-bench-pairs", records).preferences.queries.tolist() == ["1:1", "1:2"]
    pooled = read_records("mt-bench-pairs", records, query="none").preferences
    assert pooled.queries.tolist() == ["all"]
    assert read_records("mt-bench-pairs", records, expert="judge.1").preferences.experts.tolist() == [
        "pair-v2"
    ]
    with pytest.raises(InputError, match=r"f\.jsonl:1: a winner is 'model_3'; accepted: model_1"):
        read_records("mt-bench-pairs", [{**PAIR, "g1_winner": "model_3", "g2_winner": "tie"}])
    with pytest.raises(
        InputError, match="no judgement could be read as mt-bench-pairs; dropped: 1 failed judgement"
    ):
        read_records("mt-bench-pairs", [{**PAIR, "g1_winner": "error", "g2_winner": "tie"}])
    with pytest.raises(ParameterError, match="games is 'one'"):
        read_records("mt-bench-pairs", records, games="one")
    with pytest.raises(ParameterError, match="has no option 'gamse' to read; did you mean games"):
        read_records("mt-bench-pairs", records, gamse="both")


@pytest.mark.parametrize("first", ["A>>B", "A>B", "A=B", "B>A", "B>>A"])
@pytest.mark.parametrize("second", ["A>>B", "A>B", "A=B", "B>A", "B>>A"])
def test_arena_hard_points_are_those_of_its_own_table(first, second):
    """Arena-Hard turns a score into 1 or 3 results; in its second game the model is A and the baseline B."""
    record = {"question_id": "q", "model": "x", "judge": "j", "games": [{"score": first}, {"score": second}]}
    content = read_records("arena-hard", [record], baseline="base")
    points = {"x": 0.0, "base": 0.0}
    for _, winner, loser, tie, weight, _ in list_votes(content):
        points[winner] += weight * (0.5 if tie else 1)
        points[loser] += weight * 0.5 * tie
    of_b = {"A>>B": (0, 3), "A>B": (0, 1), "A=B": (0.5, 0.5), "B>A": (1, 0), "B>>A": (3, 0)}
    model = of_b[first][0] + of_b[second][1]
    baseline = of_b[first][1] + of_b[second][0]
    assert (points["x"], points["base"]) == (model, baseline)


def test_arena_hard_without_a_baseline_and_with_failures():
    record = {"uid": "q", "model": "x", "judge": "j", "games": [{"score": "A>>B"}, {"score": None}]}
    content = read_records("arena-hard", [record], strong="2")
    assert list_votes(content) == [("q", "baseline", "x", False, 2.0, 1)]
    assert "1 failed game" in content.summary
    assert "does not name the baseline" in content.summary
    with pytest.raises(InputError, match=r"f\.jsonl:1: the score of a game is 'C'"):
        read_records("arena-hard", [{**record, "games": [{"score": "C"}]}])


def test_alpaca_eval_preferences():
    record = {"instruction": "i", "generator_1": "ref", "generator_2": "x", "annotator": "a"}
    soft = list_votes(read_records("alpaca-eval", [{**record, "preference": 1.1}]))
    assert [(w, round(weight, 9)) for _, w, _, _, weight, _ in soft] == [("ref", 0.9), ("x", 0.1)]
    assert list_votes(read_records("alpaca-eval", [{**record, "preference": 0}]))[0][3]  # a tie in old files
    with pytest.raises(InputError, match=r"f\.jsonl:1: the preference is 3; preferences are 1 to 2"):
        read_records("alpaca-eval", [{**record, "preference": 3}])
