"""Bounds, intervals and alarms of judge panels hold as often as they claim; full size in benchmarks/judge_panels.py."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from podium.analysis.judges import estimate_human_mean
from podium.analysis.judges.abstention import calibrate_rule, compute_error_bound
from podium.analysis.judges.gold_shift import detect_gold_shift
from podium.analysis.judges.panel import build_panel
from podium.analysis.judges.prediction_powered import estimate_win_rates
from podium.analysis.judges.shared_errors import estimate_effective_number
from podium.core.errors import InputError
from podium.kernels.distributions import hypergeometric_cdf
from podium.testing.panels import simulate_panel

FAST = ("best judge", "majority", "dawid_skene")


def read(kind, seed, **how):
    made = simulate_panel(kind, seed=seed, **how)
    panel = build_panel(made.preferences)
    return panel, panel.read_gold(made.gold).answer, made


def hypergeometric(count, total, marked, drawn):
    ways = sum(
        math.comb(marked, k) * math.comb(total - marked, drawn - k) for k in range(count + 1) if k <= drawn
    )
    return Fraction(ways, math.comb(total, drawn))


def test_hypergeometric_probabilities_are_exact():
    for total in (1, 5, 12, 40):
        for marked in range(0, total + 1, max(1, total // 6)):
            for drawn in range(0, total + 1, max(1, total // 5)):
                for count in range(drawn + 1):
                    expected = float(hypergeometric(count, total, marked, drawn))
                    assert hypergeometric_cdf(count, total, marked, drawn) == pytest.approx(
                        expected, abs=1e-12
                    )


@pytest.mark.parametrize(("drawn", "rest"), [(10, 15), (25, 8), (30, 60)])
@pytest.mark.parametrize("risk", [0.05, 0.2])
def test_the_error_bound_covers_the_questions_at_hand_whatever_their_errors(drawn, rest, risk):
    """For every number of errors among all questions, by summing over all possible samples."""
    bounds = [compute_error_bound(x, drawn, rest, risk) for x in range(drawn + 1)]
    total = drawn + rest
    for marked in range(total + 1):
        missed = Fraction(0)
        for x in range(max(0, marked - rest), min(drawn, marked) + 1):
            if (marked - x) / rest > bounds[x] + 1e-12:
                missed += Fraction(
                    math.comb(marked, x) * math.comb(total - marked, drawn - x), math.comb(total, drawn)
                )
        assert missed <= risk
    # one error fewer would no longer be a bound
    assert all(0 <= b <= 1 for b in bounds)
    assert bounds == sorted(bounds)


def test_without_questions_at_hand_the_bound_is_clopper_and_pearsons():
    assert compute_error_bound(0, 29, 0, 0.05) == pytest.approx(1 - 0.05 ** (1 / 29))
    # 3 of 50: P(at most 3 errors) = 0.05 at the bound
    bound = compute_error_bound(3, 50, 0, 0.05)
    tail = sum(math.comb(50, k) * bound**k * (1 - bound) ** (50 - k) for k in range(4))
    assert tail == pytest.approx(0.05, abs=1e-9)


@pytest.mark.parametrize("kind", ["independent", "shared bias", "one good judge"])
def test_error_bounds_hold(kind):
    """All four bounds of a panel at once, in at least 95 % of the panels; 60 allow 6 failures (p < 0.05)."""
    failures, answered = 0, 0
    for seed in range(60):
        panel, gold, made = read(kind, seed, questions=200, gold=120, position_bias=0.0)
        rule = calibrate_rule(panel, gold, FAST[:2], error=0.3, seed=seed)
        held = True
        for k, share in enumerate(rule.shares):
            given = ~np.isnan(rule.answers[k])
            assert given.sum() == share.answered
            if given.any():
                held &= bool((rule.answers[k] != made.truth)[given].mean() <= share.bound)
        failures += not held
        answered += rule.chosen is not None
        assert np.isnan(rule.answer[~np.isnan(gold)]).all()
    assert failures <= 6
    assert answered > 10  # the rule does not hold by never answering


def test_too_little_gold_gives_no_bound():
    panel, gold, _ = read("independent", 0, questions=60, gold=25)
    assert calibrate_rule(panel, gold, FAST) is None


def test_with_gold_for_all_questions_the_bound_is_one_for_future_questions():
    panel, gold, _ = read("independent", 0, questions=300, gold=300)
    rule = calibrate_rule(panel, gold, FAST[:2], error=0.3)
    assert rule.chosen is not None
    assert rule.chosen.answered == 0
    assert rule.chosen.calibration > 100


def test_prediction_powered_mean_against_its_formula():
    random = np.random.default_rng(0)
    y = (random.random(40) < 0.6) * 1.0
    f, other = 0.5 * y + random.random(40), 0.5 * (random.random(500) < 0.6) + random.random(500)
    e = estimate_human_mean(y, f, other)
    every = np.concatenate((f, other))
    weight = np.cov(y, f)[0, 1] / (every.var() * (1 + 40 / 500))
    assert e.weight == pytest.approx(weight)
    assert e.mean == pytest.approx(y.mean() + weight * (other.mean() - f.mean()))
    alone = estimate_human_mean(y, f, np.zeros(0))
    assert (alone.mean, alone.low, alone.high) == (alone.human, alone.human_low, alone.human_high)
    with pytest.raises(InputError, match="there are 2 labels"):
        estimate_human_mean(y[:2], f[:2], other)
    with pytest.raises(InputError, match="all 40 labels are 1, so the error of their mean is unknown"):
        estimate_human_mean(np.ones(40), f, other)


@pytest.mark.parametrize("slope", [0.9, 0.0, -0.5])
def test_prediction_powered_intervals_cover_and_are_not_wider(slope):
    """Predictions that are good, useless or reversed, and biased; 600 samples allow 92.5 to 97.5 %."""
    random = np.random.default_rng(1)
    covered, width = 0, []
    for _ in range(600):
        y = (random.random(1060) < 0.35) * 1.0
        f = np.clip(0.3 + slope * (y - 0.5) + random.normal(0, 0.2, 1060), 0, 1)
        e = estimate_human_mean(y[:60], f[:60], f[60:])
        covered += e.low <= 0.35 <= e.high
        width.append((e.high - e.low) / (e.human_high - e.human_low))
    assert 0.925 <= covered / 600 <= 0.975
    assert np.mean(width) < 1.02
    if slope == 0.9:
        assert np.mean(width) < 0.7


def test_win_rates_are_those_of_people_where_the_judges_are_biased():
    panel, gold, made = read("shared bias", 3, questions=2000, gold=400)
    rates = {row.item: row.estimate for row in estimate_win_rates(panel, gold)}
    assert rates["x"].mean == pytest.approx(1 - rates["y"].mean)
    assert rates["x"].low <= made.truth.mean() <= rates["x"].high
    assert rates["x"].worth > 1


def test_the_alarm_is_rarely_false_and_fires_on_shifted_gold():
    """At most 5 % false alarms: 60 panels allow 7 (p < 0.03)."""
    false, true = 0, 0
    for seed in range(60):
        panel, gold, _ = read("one good judge", seed, questions=120, gold=50)
        false += detect_gold_shift(panel, gold, seed=seed).fires
        if seed < 10:
            panel, gold, _ = read("independent", seed, questions=300, gold=100, shifted=True)
            true += detect_gold_shift(panel, gold, seed=seed).fires
    assert false <= 7
    assert true >= 9


def test_the_alarm_names_the_feature_that_differs():
    panel, gold, _ = read("independent", 0, questions=200, gold=80)
    values = np.where(np.isnan(gold), 1.0, 3.0)[:, None] + np.random.default_rng(0).normal(size=(200, 1))
    shift = detect_gold_shift(panel, gold, values, ("the mean length",))
    assert shift.fires
    assert shift.what == "the mean length"
    assert shift.gold_mean > shift.other_mean
    assert detect_gold_shift(panel, np.where(np.arange(200) < 5, gold, np.nan)) is None


def test_intervals_of_the_effective_number_cover():
    """Errors with correlation 0.3: 5 / (1 + 4 x 0.3) = 2.27; 150 samples of 120 questions allow 89 %."""
    covered = 0
    for seed in range(150):
        random = np.random.default_rng(seed)
        own, common = random.random((5, 120)) < 0.7, random.random(120) < 0.7
        right = np.where(random.random(120) < 0.3, common, own)
        panel = build_panel_of(right)
        number = estimate_effective_number(panel, np.ones(120), seed=seed)
        covered += number.low <= 5 / 2.2 <= number.high
    assert covered >= 0.89 * 150


def build_panel_of(right):
    """A panel whose judges prefer x where they are right."""
    from podium import Preferences

    judges, questions = right.shape
    rows = [(q, j, *("xy" if right[j, q] else "yx")) for j in range(judges) for q in range(questions)]
    return build_panel(Preferences.from_comparisons(*zip(*rows, strict=True)))
