"""Verdicts on annotators: honest ones are seldom dismissed, those who guess or mislead are found."""

from __future__ import annotations

import numpy as np
import pytest

from podium import Preferences
from podium.analysis.annotators import annotators
from podium.analysis.annotators.annotator_verdicts import measure_reversal
from podium.analysis.annotators.crowd_judgements import CrowdJudgements
from podium.testing.crowds import simulate

BAD = ("random", "malicious")


def verdicts(quality, *, votes, items=30, repeats=4):
    """Name -> verdicts in simulated crowds; `quality` draws the qualities by name."""
    found = {}
    for seed in range(repeats):
        drawn = quality(np.random.default_rng(seed))
        p = simulate(drawn, items=items, judgements=votes, seed=seed).preferences
        for row in annotators(p, method="copeland"):
            found.setdefault(str(row.annotator).split()[0], []).append(row.verdict)
    return {name: np.array(v) for name, v in found.items()}


def honest(random, count=30, low=0.6, high=0.95):
    return {f"honest {k}": float(q) for k, q in enumerate(random.uniform(low, high, count))}


@pytest.mark.parametrize("votes", [10, 16, 30, 60, 120])
@pytest.mark.parametrize("items", [30, 300])
def test_honest_annotators_are_seldom_dismissed(votes, items):
    """With 300 items the others know little of most pairs; up to 45 % were called random for that."""
    found = verdicts(honest, votes=votes, items=items)["honest"]
    assert np.isin(found, BAD).mean() <= 0.05


def test_honest_annotators_of_a_hard_task_are_seldom_dismissed():
    found = verdicts(lambda random: honest(random, low=0.55, high=0.75), votes=100)["honest"]
    assert np.isin(found, BAD).mean() <= 0.05


def test_those_who_guess_or_mislead_are_found():
    def mixed(random):
        others = {f"guess {k}": 0.5 for k in range(6)} | {f"evil {k}": 0.1 for k in range(4)}
        return honest(random, 20) | others

    found = verdicts(mixed, votes=240, repeats=4)
    assert (found["guess"] == "random").mean() >= 0.8
    assert (found["evil"] == "malicious").all()
    assert np.isin(found["honest"], BAD).mean() <= 0.05


def test_sixteen_votes_do_not_make_a_random_annotator():
    """Eight of sixteen as the others say: the interval holds .27 and .73, and excludes neither."""
    votes = [(q, who, "a", "b") for q in range(16) for who in "xyz"]
    votes += [(q, "half", *("ab" if q % 2 else "ba")) for q in range(16)]
    row = annotators(Preferences.from_comparisons(*zip(*votes, strict=True)), method="copeland")["half"]
    assert (row.low, row.high) == (pytest.approx(0.27, abs=0.01), pytest.approx(0.73, abs=0.01))
    assert row.verdict == "too few judgements"
    assert row.missing == "judgements: 16 pairs that others order too leave more than one verdict possible"


def test_of_two_who_contradict_each_other_neither_is_malicious():
    p = simulate({"one": 0.9, "two": 0.1}, items=12, judgements=200).preferences
    for row in annotators(p, method="copeland"):
        assert row.high < 0.5
        assert row.verdict == "too little overlap"
        assert row.missing == "other annotators who judge the same items and agree with each other"
    more = {"one": 0.9, "two": 0.1, "three": 0.9, "four": 0.9}
    found = annotators(simulate(more, items=12, judgements=200).preferences, method="copeland")
    assert (found["two"].verdict, found["one"].verdict) == ("malicious", "reliable")


def test_two_who_agree_can_tell_of_a_third():
    votes = [(q, who, *("ba" if who == "z" else "ab")) for q in range(40) for who in "xyz"]
    found = annotators(Preferences.from_comparisons(*zip(*votes, strict=True)), method="copeland")
    assert [found[who].verdict for who in "xyz"] == ["reliable", "reliable", "malicious"]


def test_two_camps_of_equal_size_are_not_all_malicious():
    quality = {f"a{k}": 0.95 for k in range(4)} | {f"b{k}": 0.05 for k in range(4)}
    p = simulate(quality, items=12, judgements=100).preferences
    assert not any(row.verdict in BAD for row in annotators(p, method="copeland"))


def test_a_loud_minority_does_not_make_the_others_malicious():
    """Three who always answer the other way round cast four times as many votes as ten honest annotators."""
    found = annotators(crowd_with(0.05, 800, 60), method="copeland")
    assert not any(row.verdict in BAD for row in found if str(row.annotator).startswith("honest"))


def test_one_opinion_said_again_and_again_is_one_opinion():
    votes = [(who, *("ba" if who == "f" else "ab")) for who in "abcdef" for _ in range(100)]
    found = annotators(Preferences.from_comparisons([0] * 600, *zip(*votes, strict=True)), method="copeland")
    assert {row.verdict for row in found} == {"too few judgements"}


def test_repeated_votes_that_differ_like_new_ones_count_like_new_ones():
    """Votes that are drawn anew each time are independent even on few pairs, and intervals as short as theirs."""
    p = simulate({f"w{k}": 0.8 for k in range(12)}, items=4, judgements=300).preferences
    for row in annotators(p, method="copeland"):
        independent = 2 * 1.96 * np.sqrt(row.quality * (1 - row.quality) / 300)
        assert independent * 0.9 < row.high - row.low < independent * 1.5


def test_who_overlaps_with_nobody_lacks_overlap():
    votes = [(0, who, f"a{k}", f"b{k}") for k in range(30) for who in "xyz"]
    votes += [(1, "alone", f"a{k}", f"b{k}") for k in range(2000)]
    found = annotators(Preferences.from_comparisons(*zip(*votes, strict=True)), method="copeland")
    row = found["alone"]
    assert (row.verdict, row.judgements, row.overlap) == ("too little overlap", 2000, 0)
    assert row.missing == "other annotators on the same items: 0 of 2,000 judgements have them"
    assert (found["x"].overlap, found["x"].missing) == (30, None)
    assert "1 with too little overlap" in found.lines[0]
    assert any(
        line.startswith("too little overlap: 95.7% of the judgements, by alone") for line in found.lines
    )


def test_equal_answers_to_equal_items_are_no_fault():
    """One item in twenty is positive, and all are right: many rate nothing but 0, and should."""
    random = np.random.default_rng(0)
    truth = random.random(200) < 0.05
    rows = [(f"w{k}", int(i), int(truth[i])) for k in range(30) for i in random.permutation(200)[:40]]
    who, item, rating = zip(*rows, strict=True)
    found = annotators(Preferences.from_rows([0] * len(rows), who, item, score=rating), method="copeland")
    assert sum("all answers equal" in row.flags for row in found) >= 2
    assert not any(row.verdict in BAD for row in found)


def crowd_with(evil, votes, honest_votes):
    """Ten honest annotators, and three of quality `evil` with another number of votes; the larger item is better."""
    random = np.random.default_rng(0)
    quality = [(f"honest {k}", 0.75, honest_votes) for k in range(10)] + [
        (f"evil {k}", evil, votes) for k in range(3)
    ]
    rows = []
    for who, right, count in quality:
        for _ in range(count):
            low, high = sorted(random.permutation(40)[:2].tolist())
            rows.append((0, who, *((high, low) if random.random() < right else (low, high))))
    return Preferences.from_comparisons(*zip(*rows, strict=True))


def test_reversing_is_advised_where_it_helps_with_held_out_judgements():
    found = annotators(crowd_with(0.05, 100, 60), method="copeland")
    assert {r.annotator for r in found if r.verdict == "malicious"} == {"evil 0", "evil 1", "evil 2"}
    assert found.reversal.helps
    assert found.reversal.reversed > found.reversal.left_out
    line = next(line for line in found.lines if line.startswith("malicious"))
    assert "reversing their answers helps" in line
    assert found.to_dict()["reversal"]["helps"] is True


def test_reversing_is_not_advised_where_it_does_not_help():
    """Thirty honest annotators know more than two who mislead a little."""
    quality = {f"honest {k}": 0.9 for k in range(30)} | {"evil 1": 0.3, "evil 2": 0.3}
    p = simulate(quality, items=12, judgements=100).preferences
    found = annotators(p, method="copeland")
    assert found.counts["malicious"] == 2
    assert not found.reversal.helps
    assert any("reversing their answers shows no benefit" in line for line in found.lines)


def test_the_held_out_check_is_no_self_fulfilling_one():
    """Guessing annotators who happen to disagree with the others: reversing them helps no more often than promised."""
    helps = []
    for seed in range(60):
        quality = {f"honest {k}": 0.7 for k in range(8)} | {f"guess {k}": 0.5 for k in range(4)}
        crowd = CrowdJudgements(simulate(quality, items=15, judgements=40, seed=seed).preferences)
        counts = crowd.count_against_others()
        suspects = (counts.same_worth < counts.other_worth) & np.array(
            ["guess" in str(e) for e in crowd.preferences.experts]
        )
        if suspects.any():
            helps.append(measure_reversal(crowd, suspects).helps)
    assert len(helps) > 40
    assert np.mean(helps) <= 0.12  # .05 promised, in about fifty draws


def test_sides_are_not_reported_where_the_reference_is_always_first():
    random = np.random.default_rng(0)
    votes = []
    for q in range(120):
        for w in range(4):
            won = random.random() < 0.9
            votes.append((q, f"w{w}", *(("base", "new") if won else ("new", "base")), 1 if won else -1))
    *columns, side = zip(*votes, strict=True)
    found = annotators(Preferences.from_comparisons(*columns, side=side), method="copeland")
    for row in found:
        assert (row.first, row.first_p, row.flags) == (None, None, ())


def test_annotators_are_rows_by_name_and_a_dataframe():
    found = annotators(simulate({"a": 0.9, "b": 0.9, "c": 0.9}, judgements=60).preferences, method="copeland")
    assert list(found) == list(found.rows)
    assert len(found) == 3
    assert found["b"].annotator == "b"
    frame = found.to_frame()
    assert frame.column_names == list(vars(found.rows[0]))
    assert frame["annotator"].to_pylist() == [r.annotator for r in found]
    assert frame["flags"].to_pylist() == [", ".join(r.flags) for r in found]
    assert frame["accuracy"].to_pylist() == [None] * 3
    assert found.to_frame("pandas")["quality"].tolist() == [r.quality for r in found]
    assert found.to_frame("polars")["verdict"].to_list() == [r.verdict for r in found]
