"""Panels of judges: what is read, what is refused, and every figure against a plain definition."""

from __future__ import annotations

import csv
import gzip
import itertools
import math
import warnings

import numpy as np
import pytest

from podium import Features, Labels, Preferences
from podium.analysis.judges import assess_panel
from podium.analysis.judges.judge_figures import (
    compute_gold_agreement,
    measure_feature_bias,
    measure_position_bias,
)
from podium.analysis.judges.panel import build_panel
from podium.analysis.judges.panel_rules import BEST_JUDGE, RULES, choose_rule, measure_rules, split_folds
from podium.analysis.judges.shared_errors import estimate_effective_number, find_shared_errors
from podium.core.errors import InputError, ParameterError, PodiumWarning
from podium.testing.panels import simulate_panel

FAST = ("majority", "dawid_skene")


def vote(rows, **columns):
    """Votes (query, judge, winner, loser)."""
    return Preferences.from_comparisons(*zip(*rows, strict=True), **columns)


def votes_of(answers):
    """Votes for x where a judge's answer is 1, for y where it is 0; rows are judges, columns questions."""
    rows = [
        (f"q{q}", f"j{j}", *(("x", "y") if answer else ("y", "x")))
        for j, line in enumerate(answers)
        for q, answer in enumerate(line)
        if answer is not None
    ]
    return vote(rows)


def gold_of(answers):
    return vote([(f"q{q}", "people", *(("x", "y") if a else ("y", "x"))) for q, a in enumerate(answers)])


# -- reading -------------------------------------------------------------------------------------------------


def test_answers_are_shares_of_a_judges_votes():
    panel = build_panel(
        vote([("q", "j", "x", "y"), ("q", "j", "y", "x"), ("q", "k", "y", "x"), ("p", "k", "x", "z")])
    )
    assert panel.judges == ["j", "k"]
    shares = {panel.describe_question(k): panel.answers[:, k].tolist() for k in range(len(panel))}
    assert shares["q", "x", "y"] == [0.5, 0.0]
    assert np.isnan(shares["p", "x", "z"][0])
    assert shares["p", "x", "z"][1] == 1.0


def test_gold_from_votes_and_from_grades_is_the_same():
    made = simulate_panel(questions=60, gold=30)
    panel = build_panel(made.preferences)
    winners = zip(made.gold.comparisons.query_of_row, made.gold.comparisons.winner, strict=True)
    grades = {
        made.gold.index.queries[int(q)]: {"x": 0.0, "y": 0.0, made.gold.index.items[int(w)]: 2.0}
        for q, w in winners
    }
    by_votes, by_grades = panel.read_gold(made.gold).answer, panel.read_gold(Labels.from_dict(grades)).answer
    np.testing.assert_array_equal(by_votes, by_grades)
    # truth is by number of the question in its name
    number = [int(str(panel.describe_question(k)[0])[1:]) for k in range(len(panel))]
    known = ~np.isnan(by_votes)
    np.testing.assert_array_equal(by_votes[known], made.truth[number][known])


def test_gold_that_names_unknown_items_is_counted_in_a_warning():
    panel = build_panel(votes_of([[1, 0, 1], [1, 1, 1]]))
    gold = vote([("q0", "p", "x", "y"), ("q1", "p", "x", "zebra"), ("q9", "p", "x", "y")])
    with pytest.warns(
        PodiumWarning, match="names 2 questions that no judge was asked about, such as x of q1"
    ):
        answers = panel.read_gold(gold)
    assert answers.unknown == 2
    assert answers.answer[0] == 1.0
    assert np.isnan(answers.answer[1:]).all()


def test_gold_without_any_known_question_is_refused():
    panel = build_panel(votes_of([[1, 0], [1, 1]]))
    gold = vote([("Q0", "p", "x", "y")])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PodiumWarning)
        with pytest.raises(InputError, match="answers none of the 2 questions"):
            panel.read_gold(gold)


def test_tied_gold_is_counted_in_a_warning():
    panel = build_panel(votes_of([[1, 0], [1, 1]]))
    gold = vote([("q0", "p", "x", "y"), ("q0", "r", "y", "x"), ("q1", "p", "x", "y")])
    with pytest.warns(PodiumWarning, match="the gold is tied on 1 question"):
        assert panel.read_gold(gold).undecided == 1


def test_ratings_with_two_levels_are_a_panel_and_other_ratings_are_refused():
    def rate(level):
        rows = [("q", f"j{j}", f"d{d}", level * float((d + j) % 3 == 0)) for j in range(3) for d in range(30)]
        query, judge, item, score = zip(*rows, strict=True)
        return Preferences.from_rows(query, judge, item, score=score)

    gold = Labels.from_dict({"q": {f"d{d}": 4.0 * (d % 3 == 0) for d in range(20)}})
    panel = assess_panel(rate(4.0), gold, rules=FAST)
    assert panel["j0"].accuracy == 1.0
    assert panel.means[0].item == "rated 4"
    assert {row["answer"] for row in panel.list_answers()} <= {0.0, 4.0}
    with pytest.raises(InputError, match="the gold grade of item 'd0' is 1, and the ratings are 0 and 4"):
        assess_panel(rate(4.0), Labels.from_dict({"q": {"d0": 1.0}}))
    three = Preferences.from_rows(["q"] * 3, ["a", "b", "c"], ["d"] * 3, score=[0.0, 1.0, 2.0])
    with pytest.raises(InputError, match="ratings with 3 levels; give votes on pairs"):
        build_panel(three)


def test_one_judge_is_not_a_panel():
    with pytest.raises(InputError, match="there is one judge, 'j0'"):
        assess_panel(votes_of([[1, 0, 1]]))


def test_a_judge_with_one_vote_is_named_and_changes_nothing_else():
    made = simulate_panel(questions=100, gold=60, seed=4)
    extra = vote([("q0", "once", "x", "y")])
    plain = assess_panel(made.preferences, made.gold, rules=FAST)
    more = assess_panel(Preferences.concat([made.preferences, extra]), made.gold, rules=FAST)
    assert more["once"].flags == ("one vote",)
    assert more.rows[-1].judge == "once"
    assert any(line == "too few answers for any statement: once" for line in more.lines)
    assert more.effective.judges == plain.effective.judges
    assert not any("once" in (pair.judge, pair.other) for pair in more.shared)
    assert more["once"].position.excess is None


def test_bad_settings_are_refused():
    made = simulate_panel(questions=40, gold=25)
    with pytest.raises(ParameterError, match="error is 1"):
        assess_panel(made.preferences, made.gold, error=1.0)
    with pytest.raises(ParameterError, match="there is no rule 'majorty'"):
        assess_panel(made.preferences, made.gold, rules=("majorty",))
    with pytest.raises(ParameterError, match="the best judge is the only rule"):
        assess_panel(made.preferences, made.gold, rules=("best judge",))
    other = Features.from_rows(["elsewhere"], ["x"], [[1.0]], ["length"])
    with pytest.raises(InputError, match="no judged item has features"):
        assess_panel(made.preferences, made.gold, features=other)


def test_features_that_are_missing_or_constant_are_named_in_a_warning():
    made = simulate_panel(questions=40, gold=25)
    some = [(f"q{k}", item, 5.0) for k in range(30) for item in "xy"]
    query, item, length = zip(*some, strict=True)
    features = Features.from_rows(query, item, [[v] for v in length], ["length"])
    with pytest.warns(PodiumWarning) as recorded:
        panel = assess_panel(made.preferences, made.gold, features=features, rules=FAST)
    texts = [str(warning.message) for warning in recorded]
    assert any(text.startswith("10 questions of 40 have an item without length") for text in texts)
    assert any(text.startswith("length is equal for both items of every question") for text in texts)
    assert panel.rows[0].biases[1].excess is None


# -- judges --------------------------------------------------------------------------------------------------


def test_agreement_with_gold_counts_split_answers_half():
    agreement = compute_gold_agreement(
        np.array([[1.0, 0.5, 0.0, np.nan], [0.0, 0.0, 0.0, 0.0]]), np.array([1.0, 1.0, 1.0, np.nan])
    )
    assert agreement.questions.tolist() == [3.0, 3.0]
    np.testing.assert_allclose(agreement.share, [0.5, 0.0])
    assert agreement.low[1] == 0.0


def test_position_bias_in_both_orders_is_half_the_share_of_answers_that_follow_the_position():
    # of 20 questions asked in both orders, the judge follows the first position on 6 and the second on 2
    rows, side = [], []
    for q in range(20):
        for x_first in (True, False):
            for_x = x_first if q < 6 else not x_first if q < 8 else True
            for judge in ("j", "k"):
                won = for_x if judge == "j" else True
                rows.append((f"q{q}", judge, *(("x", "y") if won else ("y", "x"))))
                side.append(1 if won == x_first else -1)
    biased, fair = measure_position_bias(build_panel(vote(rows, side=side)), None)
    assert biased.excess == pytest.approx((6 - 2) / 20 / 2)
    assert biased.reference == "both orders"
    assert fair.excess == 0.0
    assert fair.p == 1.0


def test_position_bias_in_one_order_needs_gold():
    made = [(f"q{q}", judge, "x", "y") for q in range(12) for judge in "jk"]
    panel = build_panel(vote(made, side=[1] * len(made)))
    assert all(bias.excess is None for bias in measure_position_bias(panel, None))
    gold = np.array([1.0] * 9 + [0.0] * 3)
    assert measure_position_bias(panel, gold)[0].excess == pytest.approx(3 / 12)


def test_feature_bias_is_the_excess_over_the_gold_and_over_the_other_judges():
    panel = build_panel(votes_of([[1] * 12, [1] * 8 + [0] * 4, [0] * 12]))
    gaps = np.array([1.0] * 6 + [-1.0] * 6)
    order = [int(str(panel.describe_question(k)[0])[1:]) for k in range(len(panel))]
    gold = np.array([1.0] * 3 + [0.0] * 9)[order]
    # larger items: x on q0..q5, y on q6..q11; the first judge picks them 6 times, the gold 3 + 6 times
    assert measure_feature_bias(panel, gaps[order], "length", gold)[0].excess == pytest.approx((6 - 9) / 12)
    # the others pick them (6 + 4) / 2 and (0 + 6) / 2 times on average
    assert measure_feature_bias(panel, gaps[order], "length", None)[0].excess == pytest.approx(
        6 / 12 - 8 / 12
    )


# -- shared errors -------------------------------------------------------------------------------------------


def test_effective_number_of_copies_is_one_and_of_independent_judges_their_number():
    random = np.random.default_rng(0)
    right = random.random((4, 6000)) < 0.75
    gold = np.ones(6000)
    independent = estimate_effective_number(build_panel(votes_of(right.tolist())), gold)
    assert independent.value == pytest.approx(4, abs=0.25)
    copies = estimate_effective_number(build_panel(votes_of([right[0].tolist()] * 4)), gold)
    assert copies.value == pytest.approx(1)


def test_effective_number_of_equally_correlated_errors_is_kishs():
    # with probability c all judges copy one answer, so errors have correlation c: n / (1 + (n - 1) c)
    random, judges, c = np.random.default_rng(1), 5, 0.3
    own, common = random.random((judges, 8000)) < 0.7, random.random(8000) < 0.7
    copied = random.random(8000) < c
    panel = build_panel(votes_of(np.where(copied, common, own).tolist()))
    number = estimate_effective_number(panel, np.ones(8000))
    expected = judges / (1 + (judges - 1) * c)
    assert number.low <= expected <= number.high
    assert number.value == pytest.approx(expected, abs=0.15)
    # the truth cancels in products of answers, so the same comes out without gold if no error is common to all
    pair = np.where(copied, common, own)
    pair[2:] = own[2:]
    seen = estimate_effective_number(build_panel(votes_of(pair.tolist())), None)
    assert seen is not None
    assert not seen.from_gold
    assert seen.value <= judges


def test_a_common_bias_is_seen_with_gold_and_not_without():
    made = simulate_panel("shared bias", questions=3000, gold=3000, seed=2)
    panel = build_panel(made.preferences)
    gold = panel.read_gold(made.gold).answer
    assert estimate_effective_number(panel, gold).high < 4.5
    assert estimate_effective_number(panel, None).value > 6.5
    lines = assess_panel(made.preferences).lines
    assert "a bias that most judges share looks like the truth and cannot be seen" in lines[1]


def test_judges_without_common_questions_have_no_effective_number():
    answers = [[1 if k % 3 == j else None for k in range(60)] for j in range(3)]
    assert estimate_effective_number(build_panel(votes_of(answers)), np.ones(60)) is None


def test_shared_errors_against_fishers_exact_test_by_enumeration():
    random = np.random.default_rng(3)
    right = random.random((3, 40)) < 0.7
    right[1, :25] = right[0, :25]
    pairs = find_shared_errors(build_panel(votes_of(right.tolist())), np.ones(40))
    raw = {}
    for i, j in itertools.combinations(range(3), 2):
        a, b, both = (~right[i]).sum(), (~right[j]).sum(), (~right[i] & ~right[j]).sum()
        tail = sum(math.comb(b, k) * math.comb(40 - b, a - k) for k in range(both, min(a, b) + 1))
        raw[f"j{i}", f"j{j}"] = tail / math.comb(40, a)
    ordered = sorted(raw.values())
    for pair in pairs:
        place = ordered.index(raw[pair.judge, pair.other])
        holm = max(min(1.0, ordered[k] * (3 - k)) for k in range(place + 1))
        assert pair.p == pytest.approx(holm)
    assert (pairs[0].judge, pairs[0].other) == ("j0", "j1")
    assert pairs[0].is_certain


# -- rules ---------------------------------------------------------------------------------------------------


def test_the_best_judge_stays_unless_another_rule_leads_significantly():
    best = np.array([1.0] * 70 + [0.0] * 30)
    little, much = best.copy(), best.copy()
    little[70:72] = 1.0
    much[70:80] = 1.0
    assert choose_rule(np.array([best, little])) == 0
    assert choose_rule(np.array([best, little, much])) == 2


def test_folds_hold_every_gold_question_once():
    known = np.arange(57) % 3 > 0
    fold = split_folds(known)
    assert (fold[~known] == -1).all()
    sizes = np.bincount(fold[known])
    assert sizes.max() - sizes.min() <= 1


def test_no_rule_sees_the_gold_that_measures_it():
    """Gold that contradicts every judge at random cannot be predicted."""
    random = np.random.default_rng(5)
    panel = build_panel(votes_of((random.random((6, 200)) < 0.5).tolist()))
    gold = (random.random(200) < 0.5) * 1.0
    measured = measure_rules(panel, gold, np.ones(200, np.bool_), tuple(RULES))
    assert (np.abs(measured.shares - 0.5) < 0.12).all(), measured.shares


@pytest.mark.parametrize("kind", ["independent", "shared bias", "one good judge"])
def test_rules_are_about_as_good_as_the_panel_allows(kind):
    made = simulate_panel(kind, questions=260, gold=250, seed=5)
    panel = assess_panel(made.preferences, made.gold)
    shares = {rule.rule.partition(" (")[0]: rule.right for rule in panel.choice.rules}
    assert set(shares) == set(RULES)
    if kind == "independent":
        # three of five judges are right more often than one
        assert panel.choice.gain.p < 0.05
        assert shares["majority"] > shares[BEST_JUDGE]
    if kind == "one good judge":
        assert panel.choice.chosen == f"{BEST_JUDGE} (judge 1)"
        assert shares["majority"] < shares[BEST_JUDGE] - 0.05


def test_figures_do_not_depend_on_the_order_of_votes_and_names_of_items():
    made = simulate_panel(questions=80, gold=50, seed=8)
    votes = made.preferences.comparisons
    order = np.random.default_rng(0).permutation(len(votes.winner))
    index = made.preferences.index
    turn = {"x": "zz", "y": "aa"}

    def rename(slots):
        return [turn[index.items[int(s)]] for s in slots]

    rows = (
        [index.queries[int(q)] for q in votes.query_of_row[order]],
        [made.preferences.experts[int(e)] for e in votes.expert[order]],
        rename(votes.winner[order]),
        rename(votes.loser[order]),
    )
    people = made.gold.comparisons
    gold = Preferences.from_comparisons(
        [made.gold.index.queries[int(q)] for q in people.query_of_row],
        ["people"] * len(people.winner),
        [turn[made.gold.index.items[int(s)]] for s in people.winner],
        [turn[made.gold.index.items[int(s)]] for s in people.loser],
    )
    one = assess_panel(made.preferences, made.gold, rules=("majority",))
    two = assess_panel(Preferences.from_comparisons(*rows, side=votes.side[order]), gold, rules=("majority",))
    for row in one.rows:
        other = two[row.judge]
        assert (row.accuracy, row.split) == pytest.approx((other.accuracy, other.split))
        assert row.position.excess == pytest.approx(other.position.excess)
    assert one.effective.value == pytest.approx(two.effective.value)
    assert [pair.p for pair in one.shared] == pytest.approx([pair.p for pair in two.shared])


def test_documents_and_views():
    made = simulate_panel(questions=120, gold=80, seed=1)
    panel = assess_panel(made.preferences, made.gold, features=made.features, rules=FAST)
    document = panel.to_dict()
    assert set(document) == set(panel.facts)
    assert len(document["rule"]["shares"]) == 4
    assert document["means"][0]["labels"] == 80
    assert "judge 1" in panel._repr_html_()
    assert "larger length" in panel.grid().head
    answers = panel.list_answers()
    assert len(answers) == 120
    assert {row["answer"] for row in answers} <= {"x", "y", None}


def test_the_judges_of_the_real_sets_agree_with_people_as_documented(data_dir):
    folder = data_dir / "llm-judges"
    if not folder.is_dir():
        pytest.skip("the folder llm-judges is not among the real data sets")
    with gzip.open(folder / "gold.csv.gz", "rt") as file:
        labels = {row["pair"]: row["preferred_answer"] for row in csv.DictReader(file)}
    with gzip.open(folder / "votes.csv.gz", "rt") as file:
        votes = [row for row in csv.DictReader(file) if row["preferred_answer"]]
    other = {"1": "2", "2": "1"}
    # the best single judge of each set as documented with the data, where an empty answer in one order counts half
    for name, best in (("mt-bench", 0.810), ("llmeval2", 0.769), ("faireval", 0.727)):
        mine = [
            (r["pair"], r["judge"], r["preferred_answer"], other[r["preferred_answer"]])
            for r in votes
            if r["set"] == name
        ]
        gold = [(pair, "people", won, other[won]) for pair, won in labels.items() if pair.startswith(name)]
        panel = build_panel(vote(mine))
        answer = panel.read_gold(vote(gold)).answer
        share = compute_gold_agreement(np.nan_to_num(panel.answers, nan=0.5), answer).share
        assert share.max() == pytest.approx(best, abs=0.002)
        assert 1 < estimate_effective_number(panel, answer).value < 3
