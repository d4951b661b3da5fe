"""Krippendorff's alpha and the kappas: published examples, their definitions over all pairs, and intervals."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from podium import Preferences
from podium.analysis.annotators import annotators
from podium.analysis.annotators.agreement_coefficients import build_unit_labels, compute_coefficients
from podium.analysis.annotators.crowd_judgements import CrowdJudgements


def rate(table):
    """Ratings from rows of annotators, None where an annotator skips the unit."""
    return Preferences.from_lists(
        {"q": {a: {u: float(v) for u, v in enumerate(row) if v is not None} for a, row in enumerate(table)}}
    )


def coefficients(preferences, level=0.95):
    labels = build_unit_labels(CrowdJudgements(preferences))
    return {c.name: c for c in compute_coefficients(labels, level)}


# Krippendorff, Computing Krippendorff's Alpha-Reliability (2011), example C: 4 observers, 12 units
N = None
RELIABILITY = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, N, N, N],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, N, 3],
    [N, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, N],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, N],
]


def test_krippendorffs_example():
    values = {name: round(c.value, 3) for name, c in coefficients(rate(RELIABILITY)).items()}
    assert values["alpha_nominal"] == 0.743
    assert values["alpha_ordinal"] == 0.815
    assert values["alpha_interval"] == 0.849


# Fleiss, Psychological Bulletin 1971, as in the worked example of 14 raters, 10 subjects, 5 categories: 0.210
FLEISS = [
    [0, 0, 0, 0, 14],
    [0, 2, 6, 4, 2],
    [0, 0, 3, 5, 6],
    [0, 3, 9, 2, 0],
    [2, 2, 8, 1, 1],
    [7, 7, 0, 0, 0],
    [3, 2, 6, 3, 0],
    [2, 5, 3, 2, 2],
    [6, 5, 2, 1, 0],
    [0, 2, 2, 3, 7],
]


def test_fleiss_example():
    by_unit = [np.repeat(np.arange(5), row).tolist() for row in FLEISS]
    found = coefficients(rate(list(zip(*by_unit, strict=True))))
    assert round(found["fleiss_kappa"].value, 3) == 0.210


def test_cohens_example():
    """50 proposals read by two readers: 20 yes/yes, 5 yes/no, 10 no/yes, 15 no/no; kappa is 0.4."""
    pairs = [(1, 1)] * 20 + [(1, 0)] * 5 + [(0, 1)] * 10 + [(0, 0)] * 15
    assert coefficients(rate(list(zip(*pairs, strict=True))))["cohen_kappa"].value == pytest.approx(0.4)


def krippendorff(table, kind):
    """Alpha as the mean squared difference within units over that between all labels, pair by pair."""
    units = [[row[u] for row in table if row[u] is not None] for u in range(len(table[0]))]
    units = [u for u in units if len(u) > 1]
    every = [v for u in units for v in u]

    def gap(a, b):
        if kind == "nominal":
            return float(a != b)
        if kind == "interval":
            return (a - b) ** 2
        low, high = min(a, b), max(a, b)
        between = sum(low <= v <= high for v in every)
        return (between - (every.count(a) + every.count(b)) / 2) ** 2

    within = sum(sum(gap(a, b) for a, b in itertools.permutations(u, 2)) / (len(u) - 1) for u in units)
    between = sum(gap(a, b) for a, b in itertools.permutations(every, 2))
    return 1 - within / len(every) / (between / len(every) / (len(every) - 1))


@pytest.mark.parametrize("seed", range(12))
def test_alpha_equals_its_definition(seed):
    random = np.random.default_rng(seed)
    truth = random.integers(0, 5, 20)
    table = [
        [int(np.clip(t + random.integers(-1, 2), 0, 4)) if random.random() < 0.7 else None for t in truth]
        for _ in range(int(random.integers(2, 6)))
    ]
    found = coefficients(rate(table))
    for kind in ("nominal", "ordinal", "interval"):
        assert found[f"alpha_{kind}"].value == pytest.approx(krippendorff(table, kind))


def test_intervals_cover_the_value_of_many_units():
    random = np.random.default_rng(0)

    def sample(units):
        truth = random.integers(0, 3, units)
        return [
            np.where(random.random(units) < 0.7, truth, random.integers(0, 3, units)).tolist()
            for _ in range(4)
        ]

    large = {name: c.value for name, c in coefficients(rate(sample(20_000))).items()}
    covered = dict.fromkeys(large, 0)
    for _ in range(60):
        for name, c in coefficients(rate(sample(60)), 0.9).items():
            covered[name] += c.low <= large[name] <= c.high
    assert set(covered) == {"alpha_nominal", "alpha_ordinal", "alpha_interval", "fleiss_kappa", "cohen_kappa"}
    for name, times in covered.items():
        assert times >= 45, name  # 54 of 60 are expected


def test_votes_do_not_depend_on_which_item_is_first():
    random = np.random.default_rng(1)
    rows = []
    for q in range(60):
        for e in range(4):
            up = random.random() < 0.75
            rows.append((q, e, "a" if up else "b", "b" if up else "a"))
    same = coefficients(Preferences.from_comparisons(*zip(*rows, strict=True)))
    names = {q: random.permutation(["a", "b"]).tolist() for q in range(60)}
    turned = [(q, e, names[q]["ab".index(w)], names[q]["ab".index(lost)]) for q, e, w, lost in rows]
    other = coefficients(Preferences.from_comparisons(*zip(*turned, strict=True)))
    for name in ("alpha_nominal", "fleiss_kappa", "cohen_kappa"):
        assert same[name].value == pytest.approx(other[name].value)
    # three of four votes agree with the better item: 0.75^2 + 0.25^2 = 0.625 against 1/2 by chance
    assert same["fleiss_kappa"].value == pytest.approx(0.25, abs=0.12)


def test_undetermined_coefficients_are_left_out():
    assert coefficients(rate([[1, 1, 1], [1, 1, 1]])) == {}  # one level is no scale
    assert coefficients(rate([[1, 2, None], [None, None, 3]])) == {}  # no unit has two labels
    lists = Preferences.from_lists({"q": {1: ["a", "b"], 2: ["b", "a"]}})
    assert coefficients(lists) == {}


def test_the_report_prints_and_saves_them():
    report = annotators(rate(RELIABILITY), method="dawid_skene")
    assert report.lines[-1].startswith("agreement beyond chance: Krippendorff's alpha nominal 0.74 (")
    document = report.to_dict()
    assert document["coefficients"][1]["name"] == "alpha_ordinal"
    assert report.filter_by_flag("reliable").coefficients == report.coefficients


@pytest.mark.parametrize("distance", ["nominal", "ordinal", "interval"])
@pytest.mark.parametrize("seed", range(6))
def test_alpha_is_that_of_evalica(seed, distance):
    evalica = pytest.importorskip("evalica")
    pd = pytest.importorskip("pandas")
    if not hasattr(evalica, "alpha"):
        pytest.skip("needs evalica 0.4 or later")
    random = np.random.default_rng(seed)
    truth = random.integers(0, 4, 40)
    table = np.array([np.clip(truth + random.integers(-1, 2, 40), 0, 4) for _ in range(4)], float)
    table[random.random(table.shape) < 0.25] = np.nan
    theirs = evalica.alpha(pd.DataFrame(table), distance=distance).alpha
    rows = [[None if np.isnan(v) else v for v in row] for row in table]
    assert coefficients(rate(rows))[f"alpha_{distance}"].value == pytest.approx(theirs)
